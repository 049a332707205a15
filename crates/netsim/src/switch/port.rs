// SPDX-License-Identifier: Apache-2.0
//! One port of the switch: its egress queues, its ingress accounting, and the PFC it sends and obeys.
//! Promise: frames of one class leave in order; a PFC frame always tells the newest state of every class it names.
//! Source: IEEE 802.1Qbb.

use penstock_wire::MacControl;

use super::buffer::Ingress;
use super::pool::{Held, List, Pool};
use super::scheduler::{Discipline, RoundRobin};
use super::stats::{ClassStats, PortStats};
use crate::node::Frame;
use crate::pause::{PauseState, CLASSES};
use crate::units::{Rate, Time};

/// What is on the wire.
#[derive(Debug, Clone, Copy)]
enum Sending {
    Nothing,
    /// A PFC frame, which takes no buffer.
    Control,
    Data(Held),
}

#[derive(Debug)]
pub(super) struct Port {
    sending: Sending,
    /// Classes with something to send.
    waiting: u8,
    /// Classes the other side is told to pause.
    pausing: u8,
    /// Classes whose state the other side must still be told.
    untold: u8,
    /// Whether a timer will come for `refresh_due`, when the pause must be repeated.
    refresh_armed: bool,
    /// Which of `Switch::markers` are this port's.
    pub(super) markers: u16,
    queued_bytes: u64,
    round_robin: RoundRobin,
    queues: [List; CLASSES],
    bytes: [u64; CLASSES],
    pub(super) ingress: Ingress,
    pub(super) pause: PauseState,
    refresh_due: Time,
    pausing_since: [Time; CLASSES],
    /// Up to where bytes held by a pause have been counted.
    held_until: [Time; CLASSES],
    stats: PortStats,
}

impl Port {
    pub(super) fn new() -> Self {
        Port {
            sending: Sending::Nothing,
            waiting: 0,
            pausing: 0,
            untold: 0,
            refresh_armed: false,
            markers: 0,
            queued_bytes: 0,
            round_robin: RoundRobin::default(),
            queues: [List::default(); CLASSES],
            bytes: [0; CLASSES],
            ingress: Ingress::default(),
            pause: PauseState::default(),
            refresh_due: Time::ZERO,
            pausing_since: [Time::ZERO; CLASSES],
            held_until: [Time::ZERO; CLASSES],
            stats: PortStats::default(),
        }
    }

    pub(super) fn queue_bytes(&self) -> u64 {
        self.queued_bytes
    }

    pub(super) fn class_bytes(&self, class: usize) -> u64 {
        self.bytes[class]
    }

    pub(super) fn class_stats(&mut self, class: usize) -> &mut ClassStats {
        &mut self.stats.classes[class]
    }

    pub(super) fn ecn_marked(&self) -> u64 {
        self.stats.classes.iter().map(|class| class.ecn_marked).sum()
    }

    /// Whether this class has ever sent, dropped or held anything here.
    pub(super) fn is_in_use(&self, class: usize) -> bool {
        let stats = &self.stats.classes[class];
        stats.peak_queue_bytes > 0 || stats.dropped > 0 || stats.peak_ingress_bytes > 0
    }

    /// Puts a frame at the end of its queue.
    pub(super) fn push(&mut self, pool: &mut Pool, frame: Frame, held: Held, now: Time) {
        let class = usize::from(held.class);
        self.settle_held(class, now);
        self.add_bytes(class, u64::from(held.bytes));
        pool.push(&mut self.queues[class], frame, held);
        self.waiting |= 1 << class;
    }

    fn add_bytes(&mut self, class: usize, bytes: u64) {
        self.bytes[class] += bytes;
        self.queued_bytes += bytes;
        let stats = &mut self.stats;
        stats.peak_queue_bytes = stats.peak_queue_bytes.max(self.queued_bytes);
        let class_stats = &mut stats.classes[class];
        class_stats.peak_queue_bytes = class_stats.peak_queue_bytes.max(self.bytes[class]);
    }

    pub(super) fn note_ingress(&mut self, class: usize) {
        let stats = &mut self.stats.classes[class];
        stats.peak_ingress_bytes = stats.peak_ingress_bytes.max(self.ingress.bytes[class]);
    }

    pub(super) fn is_sending(&self) -> bool {
        !matches!(self.sending, Sending::Nothing)
    }

    /// The first frame of the class whose turn it is.
    pub(super) fn take_next(&mut self, pool: &mut Pool, discipline: &Discipline, now: Time) -> Option<Frame> {
        let ready = self.waiting & !self.pause.paused_mask(now);
        if ready == 0 {
            return None;
        }
        let queues = &self.queues;
        let class = self.round_robin.choose(discipline, ready, |class| pool.head_bytes(queues[class]));
        self.settle_held(class, now);
        let (frame, held) = pool.pop(&mut self.queues[class])?;
        self.bytes[class] -= u64::from(held.bytes);
        self.queued_bytes -= u64::from(held.bytes);
        if self.queues[class].is_empty() {
            self.waiting &= !(1 << class);
            self.round_robin.emptied(class);
        }
        self.begin(held);
        Some(frame)
    }

    /// Whether a frame of this class need not wait: nothing is on the wire, in the queues or to be told.
    pub(super) fn is_free_for(&self, class: usize, now: Time) -> bool {
        !self.is_sending() && self.waiting == 0 && self.untold == 0 && !self.pause.is_paused(class, now)
    }

    /// Counts a frame as sent that has not waited; the same as `push` and `take_next` of a port that is free for it.
    pub(super) fn pass(&mut self, held: Held) {
        let (class, bytes) = (usize::from(held.class), u64::from(held.bytes));
        self.add_bytes(class, bytes);
        self.bytes[class] = 0;
        self.queued_bytes = 0;
        self.begin(held);
    }

    fn begin(&mut self, held: Held) {
        self.sending = Sending::Data(held);
        let stats = &mut self.stats.classes[usize::from(held.class)];
        stats.tx_frames += 1;
        stats.tx_bytes += u64::from(held.bytes);
    }

    /// The frame on the wire has left; what it occupied in the buffer, if anything.
    pub(super) fn finish_sending(&mut self) -> Option<Held> {
        match std::mem::replace(&mut self.sending, Sending::Nothing) {
            Sending::Data(held) => Some(held),
            Sending::Nothing | Sending::Control => None,
        }
    }

    /// What waits in the queue of a class, first to last.
    pub(super) fn queue<'a>(&self, pool: &'a Pool, class: usize) -> impl Iterator<Item = Held> + 'a {
        pool.iter(self.queues[class])
    }

    // ---- pauses received --------------------------------------------------------------------------------------------

    /// Takes a control frame in. `Some`: set a timer for this time.
    pub(super) fn receive_pause(&mut self, now: Time, control: &MacControl, rate: Rate) -> Option<Time> {
        (0..CLASSES).for_each(|class| self.settle_held(class, now));
        self.pause.receive(now, control, rate)
    }

    /// The timer of a pause has fired. `Some`: set it again for this time.
    pub(super) fn wake(&mut self, now: Time) -> Option<Time> {
        (0..CLASSES).for_each(|class| self.settle_held(class, now));
        self.pause.wake(now)
    }

    /// Adds what the pause of a class has held since this was last asked. Called before the queue or the pause changes.
    fn settle_held(&mut self, class: usize, now: Time) {
        if self.held_until[class] >= self.pause.until(class) {
            return;
        }
        let held = self.held_in(class, now);
        self.stats.classes[class].held_byte_ps += held;
        self.held_until[class] = now;
    }

    fn held_in(&self, class: usize, now: Time) -> u128 {
        let end = now.min(self.pause.until(class));
        let span = end.saturating_sub(self.held_until[class]);
        u128::from(self.bytes[class]) * u128::from(span.0)
    }

    // ---- pauses sent ------------------------------------------------------------------------------------------------

    pub(super) fn is_pausing(&self) -> bool {
        self.pausing != 0
    }

    pub(super) fn is_pausing_class(&self, class: usize) -> bool {
        self.pausing >> class & 1 == 1
    }

    /// The other side is to be paused; false if it has been told already.
    pub(super) fn begin_pausing(&mut self, class: usize, now: Time) -> bool {
        if self.is_pausing_class(class) {
            return false;
        }
        self.pausing |= 1 << class;
        self.untold |= 1 << class;
        self.pausing_since[class] = now;
        true
    }

    /// The other side, which is paused, may go on.
    pub(super) fn end_pausing(&mut self, class: usize, now: Time) {
        self.pausing &= !(1 << class);
        self.untold |= 1 << class;
        self.stats.classes[class].pausing += now - self.pausing_since[class];
    }

    /// A PFC frame that pauses has been sent and must be repeated at `due`. `Some`: set a timer for it.
    pub(super) fn plan_refresh(&mut self, due: Time) -> Option<Time> {
        self.refresh_due = due;
        let armed = std::mem::replace(&mut self.refresh_armed, true);
        (!armed).then_some(due)
    }

    /// The refresh timer has fired. `Some`: set it again for this time. What is due is told with the next PFC frame.
    pub(super) fn refresh(&mut self, now: Time) -> Option<Time> {
        self.refresh_armed = self.is_pausing() && now < self.refresh_due;
        if self.refresh_armed {
            return Some(self.refresh_due);
        }
        self.untold |= self.pausing;
        None
    }

    /// The PFC frame that is due, if one is, and the port counted as sending it. It names all pausing classes and so
    /// renews them all.
    pub(super) fn take_pfc_frame(&mut self, pause_quanta: u16) -> Option<MacControl> {
        if self.untold == 0 {
            return None;
        }
        let enabled = std::mem::take(&mut self.untold) | self.pausing;
        let quanta = std::array::from_fn(|class| if self.is_pausing_class(class) { pause_quanta } else { 0 });
        self.sending = Sending::Control;
        self.stats.pause_frames_sent += 1;
        Some(MacControl::Pfc { enabled, quanta })
    }

    pub(super) fn stats_at(&self, now: Time) -> PortStats {
        let mut stats = self.stats;
        stats.pause_frames_received = self.pause.frames;
        let paused = self.pause.paused_for(now);
        for (class, of_class) in stats.classes.iter_mut().enumerate() {
            of_class.paused = paused[class];
            of_class.held_byte_ps += self.held_in(class, now);
            if self.is_pausing_class(class) {
                of_class.pausing += now - self.pausing_since[class];
            }
        }
        stats.summed()
    }
}
