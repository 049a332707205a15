// SPDX-License-Identifier: Apache-2.0
//! A server: one network port, a responder for every queue pair, and an application that owns the memory.
//! Promise: it answers as `penstock_transport` says, obeys pause and PFC, and counts every frame that it does not take.
//! Source: IBTA 9.7 through `penstock_transport`; ARCHITECTURE.md, "The way of a fragment" (posted receives are the credits).

use std::collections::VecDeque;

use penstock_transport::{Memory, RecvCompletion, RecvWr, Responder};
use penstock_wire::{MacControl, Packet, ParseError, Qpn, RocePacket};

use crate::node::{Frame, Node, Outbox, PortId};
use crate::pause::{PauseState, CLASSES};
use crate::trace::TraceSink;
use crate::units::Time;

/// What runs on the server. Time comes in by `now`; nothing else tells it.
pub trait HostApp: 'static {
    /// Where payloads go.
    fn memory(&mut self) -> &mut dyn Memory;

    /// A receive has ended.
    fn on_completion(&mut self, now: Time, completion: RecvCompletion);

    /// Posts what receives it now can to queue pair `qpn`, each by a call of `post`. Asked at the start, after the
    /// completions of a queue pair, and for every queue pair after `on_wakeup`.
    fn post_receives(&mut self, now: Time, qpn: Qpn, post: &mut dyn FnMut(RecvWr));

    /// When `on_wakeup` is wanted next. Asked at the start and after every call of `on_completion` or `on_wakeup`.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// The time asked for by `next_wakeup` has come; it may come more often than asked.
    fn on_wakeup(&mut self, _now: Time) {}

    /// Ends the run when true. Asked after every call of `on_completion` or `on_wakeup`.
    fn is_finished(&self) -> bool {
        false
    }

    /// Called every trace interval, under the host's name.
    fn sample(&mut self, _now: Time, _trace: &mut TraceSink) {}
}

/// How the host behaves, beside its queue pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostConfig {
    /// From the last bit of a packet to the first of its answer.
    pub ack_delay: Time,
    /// From this time on the host takes nothing and sends nothing.
    pub vanish_at: Option<Time>,
}

/// What the host's port has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostStats {
    pub rx_frames: u64,
    pub tx_frames: u64,
    /// Dropped: wrong FCS.
    pub fcs_errors: u64,
    /// Dropped: wrong ICRC.
    pub icrc_errors: u64,
    /// Dropped: a header that contradicts itself.
    pub malformed: u64,
    /// Dropped: not RoCEv2.
    pub not_roce: u64,
    /// Dropped: no queue pair of that number.
    pub unknown_qpn: u64,
    /// Dropped: arrived after the host vanished.
    pub ignored: u64,
    pub pause_frames_received: u64,
}

const PORT: PortId = PortId(0);

/// What a timer of the host is for.
const REPLY: u64 = 0;
const RESUME: u64 = 1;
const WAKEUP: u64 = 2;

/// A server node with the application `A`. Its only port is 0.
pub struct Host<A> {
    config: HostConfig,
    app: A,
    /// Sorted by queue pair number.
    responders: Vec<(Qpn, Responder)>,
    /// Answers whose delay has not passed, in order.
    delayed: VecDeque<(Time, Frame)>,
    queues: [VecDeque<Frame>; CLASSES],
    sending: bool,
    pause: PauseState,
    wakeup: Option<Time>,
    stats: HostStats,
}

impl<A: HostApp> Host<A> {
    /// A host with these queue pairs; each answers to the number in its configuration.
    pub fn new(config: HostConfig, app: A, responders: Vec<Responder>) -> Self {
        let mut responders: Vec<_> =
            responders.into_iter().map(|responder| (responder.config().local.qpn, responder)).collect();
        responders.sort_by_key(|(qpn, _)| *qpn);
        Host {
            config,
            app,
            responders,
            delayed: VecDeque::new(),
            queues: Default::default(),
            sending: false,
            pause: PauseState::default(),
            wakeup: None,
            stats: HostStats::default(),
        }
    }

    pub fn app(&self) -> &A {
        &self.app
    }

    pub fn app_mut(&mut self) -> &mut A {
        &mut self.app
    }

    pub fn into_app(self) -> A {
        self.app
    }

    /// The queue pair of that number.
    pub fn responder(&self, qpn: Qpn) -> Option<&Responder> {
        self.index_of(qpn).map(|index| &self.responders[index].1)
    }

    pub fn responders(&self) -> impl Iterator<Item = &Responder> {
        self.responders.iter().map(|(_, responder)| responder)
    }

    pub fn stats(&self) -> HostStats {
        HostStats { pause_frames_received: self.pause.frames, ..self.stats }
    }

    fn index_of(&self, qpn: Qpn) -> Option<usize> {
        self.responders.binary_search_by_key(&qpn, |(qpn, _)| *qpn).ok()
    }

    fn has_vanished(&self, now: Time) -> bool {
        self.config.vanish_at.is_some_and(|at| now >= at)
    }

    fn handle_packet(&mut self, packet: &RocePacket, out: &mut Outbox) {
        let Some(index) = self.index_of(packet.bth.dest_qpn) else {
            self.stats.unknown_qpn += 1;
            return;
        };
        let now = out.now();
        let responder = &mut self.responders[index].1;
        responder.handle_packet(now.as_ps(), packet, self.app.memory());
        let mut completed = false;
        while let Some(completion) = responder.poll_completion() {
            self.app.on_completion(now, completion);
            completed = true;
        }
        if completed {
            // A message may free receives of other queue pairs too: the last fragment of an event frees all its slots.
            self.post_all_receives(now);
            self.after_app(out);
        }
        self.take_replies(index, out);
    }

    fn post_all_receives(&mut self, now: Time) {
        for (qpn, responder) in &mut self.responders {
            self.app.post_receives(now, *qpn, &mut |receive| responder.post_receive(receive));
        }
    }

    /// Asks the application what it wants next.
    fn after_app(&mut self, out: &mut Outbox) {
        if self.app.is_finished() {
            out.stop();
        }
        let wanted = self.app.next_wakeup();
        if let Some(at) = wanted.filter(|at| self.wakeup.is_none_or(|armed| *at < armed || armed < out.now())) {
            self.wakeup = Some(at.max(out.now()));
            out.timer_at(at, WAKEUP);
        }
    }

    fn take_replies(&mut self, index: usize, out: &mut Outbox) {
        let ready = out.now() + self.config.ack_delay;
        let mut any = false;
        while let Some(packet) = self.responders[index].1.poll_transmit() {
            self.delayed.push_back((ready, Frame::new(packet.into())));
            any = true;
        }
        match any {
            true if ready > out.now() => out.timer_at(ready, REPLY),
            true => self.release_replies(out),
            false => {}
        }
    }

    fn release_replies(&mut self, out: &mut Outbox) {
        while self.delayed.front().is_some_and(|(ready, _)| *ready <= out.now()) {
            if let Some((_, frame)) = self.delayed.pop_front() {
                let class = match frame.packet() {
                    Packet::Roce(packet) => usize::from(packet.dscp >> 3) % CLASSES,
                    _ => 0,
                };
                self.queues[class].push_back(frame);
            }
        }
        self.send_next(out);
    }

    /// Starts the next frame if the port is free: the highest class that is not paused.
    fn send_next(&mut self, out: &mut Outbox) {
        let now = out.now();
        if self.sending || self.has_vanished(now) {
            return;
        }
        let classes = (0..CLASSES).rev();
        let next =
            classes.filter(|class| !self.pause.is_paused(*class, now)).find_map(|class| self.queues[class].pop_front());
        if let Some(frame) = next {
            self.sending = true;
            self.stats.tx_frames += 1;
            out.transmit(PORT, frame);
        }
    }

    fn receive_pause(&mut self, control: &MacControl, out: &mut Outbox) {
        if let Some(at) = self.pause.receive(out.now(), control, |quanta| out.pause_time(PORT, quanta)) {
            out.timer_at(at, RESUME);
        }
        self.send_next(out);
    }

    fn handle_frame(&mut self, packet: Packet, out: &mut Outbox) {
        match packet {
            Packet::Roce(packet) => self.handle_packet(&packet, out),
            Packet::MacControl { control, .. } => self.receive_pause(&control, out),
            Packet::Tcp(_) | Packet::Cnm(_) => self.stats.not_roce += 1,
            Packet::Raw(bytes) => match Packet::parse(bytes) {
                Ok(Packet::Raw(_)) => self.stats.not_roce += 1,
                Ok(packet) => self.handle_frame(packet, out),
                Err(ParseError::BadIcrc { .. }) => self.stats.icrc_errors += 1,
                Err(_) => self.stats.malformed += 1,
            },
        }
    }
}

impl<A: HostApp> Node for Host<A> {
    fn on_start(&mut self, out: &mut Outbox) {
        self.post_all_receives(out.now());
        self.after_app(out);
    }

    fn on_frame(&mut self, _at: Time, _port: PortId, frame: Frame, out: &mut Outbox) {
        if self.has_vanished(out.now()) {
            self.stats.ignored += 1;
            return;
        }
        self.stats.rx_frames += 1;
        if frame.fcs_ok() {
            self.handle_frame(frame.into_packet(), out);
        } else {
            self.stats.fcs_errors += 1;
        }
    }

    fn on_timer(&mut self, now: Time, token: u64, out: &mut Outbox) {
        match token {
            REPLY => self.release_replies(out),
            RESUME => {
                if let Some(at) = self.pause.wake(now) {
                    out.timer_at(at, RESUME);
                }
                self.send_next(out);
            }
            _ => {
                self.wakeup = self.wakeup.filter(|armed| *armed > now);
                self.app.on_wakeup(now);
                self.post_all_receives(now);
                self.after_app(out);
            }
        }
    }

    fn on_tx_done(&mut self, _now: Time, _port: PortId, out: &mut Outbox) {
        self.sending = false;
        self.send_next(out);
    }

    fn sample(&mut self, now: Time, trace: &mut TraceSink) {
        for (index, (_, responder)) in self.responders.iter().enumerate() {
            let counters = responder.counters();
            let channel = index as u16;
            trace.record(channel, "rx_payload_bytes", counters.rx_payload_bytes as f64);
            trace.record(channel, "np_cnp_sent", counters.np_cnp_sent as f64);
            trace.record(channel, "np_ecn_marked_roce_packets", counters.np_ecn_marked_roce_packets as f64);
        }
        self.app.sample(now, trace);
    }
}
