// SPDX-License-Identifier: Apache-2.0
//! The messages of one front end: fragment header and payload, kept until they are acknowledged.
//! Promise: message n is the same whenever it is sent again, over any connection.
//! Source: `wire::fragment`; PRBS-31 and counter as in the gateware's message source: one sequence over all events of
//! the run, whichever server they go to.

use super::choices::PayloadName;
use super::plan::Plan;
use bytes::{Bytes, BytesMut};
use penstock_readout::{EventSource, Servers};
use penstock_transport::PayloadSource;
use penstock_units::Time;
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::{FragmentHeader, FragmentId, Payload, Prbs31};
use std::collections::VecDeque;
use std::sync::Arc;

/// 10 kHz, where no rate is given.
const DEFAULT_INTERVAL: Time = Time::from_us(100);

enum Kind {
    Prbs(Prbs31),
    Counter(u64),
    Recorded(Arc<EventSource>),
}

/// The servers that share a run, and the server whose events are sent.
pub type Shared = (Arc<Servers>, u16);

/// Makes messages in order, and holds those in flight. Message n has the address n << 32.
pub struct Messages {
    kind: Kind,
    source: u16,
    first_event: u64,
    /// The event after the last one of the run.
    end_event: u64,
    /// Number of the next message to be made; none after the last one.
    next_event: Option<u64>,
    share: Option<Shared>,
    /// The last event of which a message was made.
    last_made: Option<u64>,
    length: usize,
    /// The event at the present position of the pattern.
    pattern_event: u64,
    /// Time from event to event: all front ends must give an event the same time.
    interval_ns: u64,
    /// Number of the first message in `held`; those that have ended before it leave a gap.
    first: u64,
    held: VecDeque<Option<Bytes>>,
    /// Memory of messages that are done, for the next ones.
    spare: Vec<BytesMut>,
}

/// Buffers to spare: as many as are acknowledged at a time.
const SPARE: usize = 32;

impl Messages {
    pub fn new(plan: &Plan, share: Option<Shared>, source: u16) -> Messages {
        let kind = match (&plan.recorded, plan.payload) {
            (Some(events), _) => Kind::Recorded(events.clone()),
            (None, PayloadName::Counter) => Kind::Counter(0),
            // Every board has a part of the sequence of its own.
            (None, _) => Kind::Prbs(Prbs31::new(u32::from(source) + 1, true)),
        };
        let (length, first_event) = (plan.length as usize, plan.first_event);
        let interval = if plan.interval > Time::ZERO { plan.interval } else { DEFAULT_INTERVAL };
        let end_event = match plan.events {
            0 => u64::MAX,
            events => first_event.saturating_add(events),
        };
        let mut messages = Messages {
            kind,
            source,
            first_event,
            end_event,
            next_event: None,
            share,
            last_made: None,
            length,
            pattern_event: first_event,
            interval_ns: interval / Time::from_ns(1),
            first: 0,
            held: VecDeque::new(),
            spare: Vec::new(),
        };
        messages.go_on_from(first_event);
        messages
    }

    /// The table of servers has changed: what is not made yet follows the new one.
    pub fn share(&mut self, servers: &Arc<Servers>) {
        if let Some((current, _)) = &mut self.share {
            *current = servers.clone();
            self.go_on_from(self.next_event.unwrap_or(self.end_event));
        }
    }

    /// The last event of which a message was made.
    pub fn last_made(&self) -> Option<u64> {
        self.last_made
    }

    /// The event of the next message to be made.
    pub fn next_event(&self) -> Option<u64> {
        self.next_event
    }

    fn go_on_from(&mut self, event: u64) {
        let next = match &self.share {
            Some((servers, server)) => servers.next_of(*server, event),
            None => Some(event),
        };
        self.next_event = next.filter(|event| *event < self.end_event);
    }

    /// Whether there is a message `n`, already made or the next one to make.
    pub fn has(&self, n: u64) -> bool {
        n < self.made() || self.next_event.is_some()
    }

    /// Events of the run before message `n`: the time at which it is due.
    pub fn events_before(&self, n: u64) -> u64 {
        match self.next_event {
            Some(event) if n >= self.made() => event - self.first_event,
            _ => 0,
        }
    }

    /// Messages made so far.
    pub fn made(&self) -> u64 {
        self.first + self.held.len() as u64
    }

    /// Messages before the first one that has not ended.
    pub fn done(&self) -> u64 {
        self.first
    }

    /// Bytes of message `n`, which is made if it is the next one: see [`Self::has`].
    pub fn message(&mut self, n: u64) -> u32 {
        if let Some(event) = self.next_event.filter(|_| n >= self.made()) {
            let message = self.make(event);
            self.last_made = Some(event);
            self.held.push_back(Some(message));
            self.go_on_from(event + 1);
        }
        self.bytes(n).len() as u32
    }

    /// Message `n`, made by [`Self::message`]; empty once it has ended.
    pub fn bytes(&self, n: u64) -> Bytes {
        let held = n.checked_sub(self.first).and_then(|at| self.held.get(at as usize)?.clone());
        held.unwrap_or_default()
    }

    /// The event of message `n`, made by [`Self::message`]; 0 once it has ended.
    pub fn event(&self, n: u64) -> u64 {
        FragmentId::peek(&self.bytes(n)).map_or(0, |id| id.event_number)
    }

    /// Message `n` is acknowledged, or lost.
    pub fn ended(&mut self, n: u64) {
        let Some(at) = n.checked_sub(self.first) else { return };
        let message = self.held.get_mut(at as usize).and_then(Option::take);
        while self.held.front().is_some_and(Option::is_none) {
            self.held.pop_front();
            self.first += 1;
        }
        // A packet of it may still wait for the interface.
        if let Some(memory) = message.and_then(|message| message.try_into_mut().ok()) {
            if self.spare.len() < SPARE {
                self.spare.push(memory);
            }
        }
    }

    /// The number of events that went to other servers, with their part of the pattern.
    fn pass_over(&mut self, events: u64) {
        match &mut self.kind {
            Kind::Prbs(prbs) if events > 0 => {
                let bytes = u128::from(events) * self.length as u128 % u128::from(Prbs31::PERIOD);
                prbs.skip(bytes as u64);
            }
            Kind::Counter(count) => {
                *count = count.wrapping_add(events.wrapping_mul(self.length.div_ceil(8) as u64));
            }
            Kind::Prbs(_) | Kind::Recorded(_) => {}
        }
    }

    fn make(&mut self, event: u64) -> Bytes {
        if let Kind::Recorded(events) = &self.kind {
            return events.message(event, self.source, events.time_ns(event));
        }
        let timestamp_ns = event.wrapping_mul(self.interval_ns);
        self.pass_over(event - self.pattern_event);
        self.pattern_event = event + 1;
        let mut message = self.spare.pop().unwrap_or_default();
        message.resize(HEADER_LEN + self.length, 0);
        match &mut self.kind {
            Kind::Recorded(_) => {}
            Kind::Prbs(prbs) => prbs.fill(&mut message[HEADER_LEN..]),
            Kind::Counter(count) => {
                let mut words = message[HEADER_LEN..].chunks_exact_mut(8);
                let mut next = *count;
                for word in &mut words {
                    word.copy_from_slice(&next.to_le_bytes());
                    next = next.wrapping_add(1);
                }
                let rest = words.into_remainder();
                rest.copy_from_slice(&next.to_le_bytes()[..rest.len()]);
                *count = next.wrapping_add(u64::from(!rest.is_empty()));
            }
        }
        let header = FragmentHeader::for_payload(self.source, event, timestamp_ns, &message[HEADER_LEN..]);
        message[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        message.freeze()
    }
}

impl PayloadSource for Messages {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let at = (va & 0xFFFF_FFFF) as usize;
        // Only messages that are under way are read; an address of another is no message's.
        let held = (va >> 32).checked_sub(self.first & 0xFFFF_FFFF).and_then(|i| self.held.get(i as usize));
        held.and_then(Option::as_ref)
            .and_then(|message| message.get(at..at + len).map(|_| message.slice(at..at + len)))
            .map_or(Payload::Virtual(len as u32), Payload::Bytes)
    }
}
