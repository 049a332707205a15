// SPDX-License-Identifier: Apache-2.0
//! The record of all flows: posted and arrived data with their times; messages, events and fairness are counted here.
//! Promise: messages are delivered in the order they were posted; every byte is counted once, at its arrival;
//! memory grows only with the outstanding data.
//! Source: Jain, Chiu, Hawe 1984 for the index.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::distribution::Distribution;
use crate::flow::{FlowId, Message};
use crate::units::Time;

/// The ledger as all endpoints of one simulation share it.
pub type SharedLedger = Rc<RefCell<Ledger>>;

/// The counters of one flow. The first cache line has the data needed by a packet and a window.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct FlowRecord {
    /// Payload that arrived in order at the receiver.
    pub delivered_bytes: u64,
    /// Bytes delivered at the last window's end, and whether something was outstanding.
    window_bytes: u64,
    outstanding: VecDeque<Outstanding>,
    was_busy: bool,
    carries_events: bool,
    ended: bool,
    closed: bool,
    pub posted_messages: u64,
    pub posted_bytes: u64,
    pub delivered_messages: u64,
    /// When its first message was there to be sent.
    pub first_post: Option<Time>,
    /// When its last message so far was whole at the receiver: the flow's completion once it has ended.
    pub last_delivery: Option<Time>,
    /// Time from a message being there to be sent to its last byte at the receiver.
    pub completion: Distribution,
    /// Why the sender gave up, and when.
    pub failure: Option<(Time, String)>,
}

impl FlowRecord {
    /// The sender has nothing more to post and all that it posted was delivered.
    pub fn is_complete(&self) -> bool {
        self.ended && self.is_idle()
    }

    /// The event of its oldest message that was not delivered.
    pub fn oldest_event(&self) -> Option<u64> {
        self.outstanding.front().map(|message| message.event)
    }

    /// It is complete, or its sender gave up.
    pub fn is_over(&self) -> bool {
        self.closed
    }

    /// Nothing that was posted is outstanding.
    pub fn is_idle(&self) -> bool {
        self.outstanding.is_empty()
    }
}

#[derive(Debug, Clone, Copy)]
struct Outstanding {
    at: Time,
    /// The flow's posted bytes with this message.
    end: u64,
    event: u64,
}

/// An event whose fragments are not all delivered.
#[derive(Debug, Clone, Copy, Default)]
struct OpenEvent {
    /// When it began and of how many fragments it is, once known.
    begun: Option<(Time, u32)>,
    delivered: u32,
    done: bool,
}

/// Completion times of what began before the end of a warm-up and of what began after it.
#[derive(Debug, Default)]
pub struct Phases {
    /// When the warm-up ends; 0: nothing is recorded.
    warm_up: Time,
    pub start_up: Distribution,
    pub steady: Distribution,
}

impl Phases {
    fn record(&mut self, begun: Time, now: Time) {
        if self.warm_up > Time::ZERO {
            let phase = if begun < self.warm_up { &mut self.start_up } else { &mut self.steady };
            phase.record(now.saturating_sub(begun));
        }
    }
}

/// The outcomes of the events.
#[derive(Debug, Default)]
pub struct EventRecord {
    /// Events that have begun.
    pub begun: u64,
    /// Events of which every fragment was delivered, at whichever server.
    pub complete: u64,
    /// Time from the event's begin to the delivery of its last fragment.
    pub completion: Distribution,
    pub phases: Phases,
    /// Event numbers from `first_open` on.
    open: VecDeque<OpenEvent>,
    first_open: u64,
}

impl EventRecord {
    /// Numbers of the events that have begun and are not complete.
    pub fn unfinished(&self) -> impl Iterator<Item = u64> + '_ {
        let begun = |entry: &OpenEvent| entry.begun.is_some_and(|(_, fragments)| fragments > 0) && !entry.done;
        (self.first_open..).zip(&self.open).filter(move |(_, entry)| begun(entry)).map(|(number, _)| number)
    }

    fn entry(&mut self, event: u64) -> Option<&mut OpenEvent> {
        let at = usize::try_from(event.checked_sub(self.first_open)?).ok()?;
        if at >= self.open.len() {
            self.open.resize(at + 1, OpenEvent::default());
        }
        self.open.get_mut(at)
    }

    fn settle(&mut self, event: u64, now: Time) {
        let Some(entry) = self.entry(event) else { return };
        let Some((begun, fragments)) = entry.begun else { return };
        if entry.done || entry.delivered < fragments {
            return;
        }
        entry.done = true;
        if fragments > 0 {
            self.complete += 1;
            self.completion.record(now.saturating_sub(begun));
            self.phases.record(begun, now);
        }
        while self.open.front().is_some_and(|entry| entry.done) {
            self.open.pop_front();
            self.first_open += 1;
        }
    }
}

/// One window of the throughput of all flows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Window {
    pub length: Time,
    /// Bytes delivered of all flows.
    pub bytes: u64,
    /// Jain's index of the flows that had something outstanding at both ends of the window; `None` below two of them.
    pub jain: Option<f64>,
}

/// Jain's index over the windows so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fairness {
    sum: f64,
    pub windows: u64,
    /// The least of any window.
    pub min: Option<f64>,
}

impl Fairness {
    pub fn mean(&self) -> Option<f64> {
        (self.windows > 0).then(|| self.sum / self.windows as f64)
    }
}

/// The totals over all flows.
#[derive(Debug, Default)]
pub struct Ledger {
    flows: Vec<FlowRecord>,
    /// Completion of the messages of all flows.
    pub completion: Distribution,
    pub phases: Phases,
    pub events: EventRecord,
    pub fairness: Fairness,
    window_end: Time,
    open_flows: usize,
}

impl Ledger {
    /// A book with flows 0 .. `flows`.
    pub fn shared(flows: usize) -> SharedLedger {
        let flows = vec![FlowRecord::default(); flows];
        Rc::new(RefCell::new(Ledger { open_flows: flows.len(), flows, ..Ledger::default() }))
    }

    /// From now on completion times are recorded by phases too: of what begins before `warm_up` and of what begins later.
    pub fn set_warm_up(&mut self, warm_up: Time) {
        (self.phases.warm_up, self.events.phases.warm_up) = (warm_up, warm_up);
    }

    pub fn flow(&self, flow: FlowId) -> &FlowRecord {
        &self.flows[flow.0 as usize]
    }

    pub fn flows(&self) -> &[FlowRecord] {
        &self.flows
    }

    /// Every flow has ended with all it posted delivered, or has failed.
    pub fn all_done(&self) -> bool {
        self.open_flows == 0
    }

    /// How many flows have ended or failed.
    pub fn flows_over(&self) -> usize {
        self.flows.len() - self.open_flows
    }

    /// The messages of this flow are fragments: `Message::event` names the event.
    pub fn carries_events(&mut self, flow: FlowId) {
        self.flows[flow.0 as usize].carries_events = true;
    }

    /// An event has begun and consists of this number of messages of flows that carry events. Events are reported in
    /// the order of their numbers, each before its last fragment is delivered; one of no fragments is none that a
    /// server could know of, and is not counted.
    pub fn expect(&mut self, event: u64, at: Time, fragments: u32) {
        self.events.begun += u64::from(fragments > 0);
        if let Some(entry) = self.events.entry(event) {
            entry.begun = Some((at, fragments));
        }
        self.events.settle(event, at);
    }

    /// The sender has taken a message up.
    pub fn posted(&mut self, flow: FlowId, message: &Message) {
        let record = &mut self.flows[flow.0 as usize];
        record.posted_messages += 1;
        record.posted_bytes += message.bytes;
        record.first_post.get_or_insert(message.at);
        record.outstanding.push_back(Outstanding { at: message.at, end: record.posted_bytes, event: message.event });
    }

    /// Payload has arrived, in order and for the first time.
    #[inline]
    pub fn arrived(&mut self, flow: FlowId, _now: Time, bytes: u64) {
        self.flows[flow.0 as usize].delivered_bytes += bytes;
    }

    /// Bytes of a stream have arrived in order: a message is delivered with its last byte.
    pub fn streamed(&mut self, flow: FlowId, now: Time, bytes: u64) {
        self.arrived(flow, now, bytes);
        let whole = |record: &FlowRecord| {
            record.outstanding.front().is_some_and(|message| message.end <= record.delivered_bytes)
        };
        while whole(self.flow(flow)) {
            self.delivered(flow, now);
        }
    }

    /// The oldest message that was not yet delivered is whole at the receiver.
    pub fn delivered(&mut self, flow: FlowId, now: Time) {
        let record = &mut self.flows[flow.0 as usize];
        record.delivered_messages += 1;
        record.last_delivery = Some(now);
        let Some(message) = record.outstanding.pop_front() else { return };
        let took = now.saturating_sub(message.at);
        record.completion.record(took);
        self.completion.record(took);
        self.phases.record(message.at, now);
        if record.carries_events {
            if let Some(entry) = self.events.entry(message.event) {
                entry.delivered += 1;
            }
            self.events.settle(message.event, now);
        }
        self.close_if_over(flow);
    }

    /// The sender has nothing more to post, ever.
    pub fn ended(&mut self, flow: FlowId) {
        self.flows[flow.0 as usize].ended = true;
        self.close_if_over(flow);
    }

    /// The sender gave up. The first reason is kept.
    pub fn failed(&mut self, flow: FlowId, now: Time, reason: &str) {
        self.flows[flow.0 as usize].failure.get_or_insert_with(|| (now, reason.to_owned()));
        self.close_if_over(flow);
    }

    fn close_if_over(&mut self, flow: FlowId) {
        let record = &mut self.flows[flow.0 as usize];
        if !record.closed && (record.is_complete() || record.failure.is_some()) {
            record.closed = true;
            self.open_flows -= 1;
        }
    }

    /// How long the window is that `close_window` would end at `now`.
    pub fn window_so_far(&self, now: Time) -> Time {
        now.saturating_sub(self.window_end)
    }

    /// Ends a window of throughput at `now` and reports each flow's delivered bytes in it, in the order of the flows.
    pub fn close_window(&mut self, now: Time, mut each: impl FnMut(FlowId, u64)) -> Window {
        let mut window = Window { length: self.window_so_far(now), ..Window::default() };
        let (mut busy, mut sum, mut squares) = (0u32, 0.0, 0.0);
        for (number, record) in self.flows.iter_mut().enumerate() {
            let bytes = record.delivered_bytes - record.window_bytes;
            let is_busy = !record.outstanding.is_empty();
            if is_busy && record.was_busy {
                busy += 1;
                sum += bytes as f64;
                squares += (bytes as f64).powi(2);
            }
            (record.window_bytes, record.was_busy) = (record.delivered_bytes, is_busy);
            window.bytes += bytes;
            each(FlowId(number as u32), bytes);
        }
        self.window_end = now;
        window.jain = (busy >= 2 && squares > 0.0).then(|| sum * sum / (f64::from(busy) * squares));
        if let Some(jain) = window.jain {
            self.fairness.sum += jain;
            self.fairness.windows += 1;
            self.fairness.min = Some(self.fairness.min.map_or(jain, |least| least.min(jain)));
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at: u64, bytes: u64, event: u64) -> Message {
        Message { at: Time(at), bytes, event }
    }

    #[test]
    fn completion_counts_from_the_moment_a_message_was_there() {
        let ledger = Ledger::shared(1);
        let mut ledger = ledger.borrow_mut();
        let flow = FlowId(0);
        ledger.posted(flow, &message(100, 10, 0));
        ledger.posted(flow, &message(150, 10, 1));
        ledger.delivered(flow, Time(300));
        ledger.delivered(flow, Time(310));
        let record = ledger.flow(flow);
        assert_eq!((record.first_post, record.last_delivery), (Some(Time(100)), Some(Time(310))));
        assert_eq!((record.completion.quantile(0.5), record.completion.max()), (Some(Time(160)), Some(Time(200))));
    }

    #[test]
    fn what_begins_before_the_end_of_the_warm_up_belongs_to_the_start() {
        let ledger = Ledger::shared(1);
        let mut ledger = ledger.borrow_mut();
        let flow = FlowId(0);
        ledger.set_warm_up(Time(200));
        ledger.carries_events(flow);
        for (event, at) in [100, 199, 200].into_iter().enumerate() {
            ledger.expect(event as u64, Time(at), 1);
            ledger.posted(flow, &message(at, 10, event as u64));
        }
        (0..3).for_each(|n| ledger.delivered(flow, Time(300 + n)));
        for phases in [&ledger.phases, &ledger.events.phases] {
            assert_eq!((phases.start_up.count(), phases.start_up.max()), (2, Some(Time(200))));
            assert_eq!((phases.steady.count(), phases.steady.max()), (1, Some(Time(102))));
        }
    }

    #[test]
    fn a_flow_is_over_when_all_it_posted_is_delivered_or_when_it_failed() {
        let ledger = Ledger::shared(2);
        let mut ledger = ledger.borrow_mut();
        ledger.posted(FlowId(0), &message(0, 1, 0));
        ledger.ended(FlowId(0));
        assert!(!ledger.flow(FlowId(0)).is_complete());
        ledger.delivered(FlowId(0), Time(5));
        assert!(ledger.flow(FlowId(0)).is_complete() && !ledger.all_done());
        ledger.failed(FlowId(1), Time(9), "retries exceeded");
        ledger.failed(FlowId(1), Time(10), "another");
        assert_eq!(ledger.flow(FlowId(1)).failure, Some((Time(9), "retries exceeded".to_owned())));
        assert!(ledger.all_done());
    }

    #[test]
    fn an_event_is_complete_with_its_last_fragment_at_whichever_server() {
        let ledger = Ledger::shared(3);
        let mut ledger = ledger.borrow_mut();
        (0..3).for_each(|flow| ledger.carries_events(FlowId(flow)));
        for (flow, event) in [(0, 0), (1, 0), (0, 1), (2, 1)] {
            ledger.posted(FlowId(flow), &message(10 * event, 1, event));
        }
        ledger.expect(0, Time(0), 2);
        ledger.delivered(FlowId(0), Time(20));
        ledger.delivered(FlowId(0), Time(30));
        ledger.delivered(FlowId(2), Time(40));
        ledger.expect(1, Time(10), 3);
        assert_eq!((ledger.events.begun, ledger.events.complete), (2, 0));
        ledger.delivered(FlowId(1), Time(50));
        assert_eq!((ledger.events.complete, ledger.events.completion.max()), (1, Some(Time(50))));
        ledger.posted(FlowId(1), &message(10, 1, 1));
        ledger.delivered(FlowId(1), Time(70));
        ledger.expect(2, Time(80), 0);
        assert_eq!((ledger.events.begun, ledger.events.complete), (2, 2), "nobody sends anything of event 2");
        assert_eq!((ledger.events.completion.count(), ledger.events.completion.max()), (2, Some(Time(60))));
        assert!(ledger.events.open.is_empty());
    }

    #[test]
    fn jain_counts_the_flows_that_had_data_all_through_a_window() {
        let ledger = Ledger::shared(4);
        let mut ledger = ledger.borrow_mut();
        (0..3).for_each(|flow| ledger.posted(FlowId(flow), &message(0, 100, 0)));
        ledger.close_window(Time(0), |_, _| ());
        for (flow, bytes) in [(0, 30), (1, 10), (2, 20)] {
            ledger.arrived(FlowId(flow), Time(5), bytes);
        }
        ledger.delivered(FlowId(2), Time(9));
        let mut shares = Vec::new();
        let window = ledger.close_window(Time(10), |_, bytes| shares.push(bytes));
        assert_eq!(shares, [30, 10, 20, 0]);
        assert_eq!(window, Window { length: Time(10), bytes: 60, jain: Some(40.0 * 40.0 / (2.0 * 1000.0)) });
        assert_eq!(ledger.close_window(Time(20), |_, _| ()).jain, None, "nothing moved");
        assert_eq!((ledger.fairness.mean(), ledger.fairness.min, ledger.fairness.windows), (Some(0.8), Some(0.8), 1));
    }
}
