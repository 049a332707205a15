// SPDX-License-Identifier: Apache-2.0
//! One port of the switch: its egress queues, its ingress accounting, and the PFC it sends and obeys.
//! Promise: frames of one class leave in order; a PFC frame always carries the latest state of every class it names.
//! Source: IEEE 802.1Qbb.

use penstock_wire::MacControl;

use super::buffer::Share;
use super::params::PauseFrame;
use super::pool::{Held, List, Pool};
use super::scheduler::{Discipline, RoundRobin};
use crate::frame::Frame;
use crate::node::Outbox;
use crate::pause::{classes_in, PauseState, CLASSES};
use crate::port::PortId;
use crate::switch_stats::{ClassStats, PortStats};
use crate::units::Time;

/// Egress state of one class of a port: everything that a leaving frame accesses. One cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Egress {
    queue: List,
    /// Bytes in the queue.
    bytes: u64,
    /// Up to where bytes held by a pause have been counted.
    held_until: Time,
    peak_bytes: u64,
    tx_frames: u64,
    tx_bytes: u64,
    ecn_marked: u64,
    dropped: u64,
}

/// Ingress state of one class of a port. One cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Ingress {
    /// The bytes still in the buffer.
    pub(super) share: Share,
    pub(super) peak_bytes: u64,
    pausing_since: Time,
    /// Time for which the other side was paused before.
    pausing: Time,
}

/// The rarely used counters of a class.
#[derive(Debug, Default)]
struct Rare {
    cnm_sent: u64,
    held_byte_ps: u128,
}

/// The first cache line has the data that every frame needs.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Port {
    /// Until when the wire has a frame, if `busy`. At that very time it has it still: frames that arrive then see the
    /// same port, whichever of them comes first.
    busy_until: Time,
    busy: bool,
    /// The engine will say when the wire is free.
    awaits_free: bool,
    /// CN-TAGs are taken off frames that leave.
    pub(super) is_edge: bool,
    /// Classes with something to send.
    waiting: u8,
    /// Classes for which the other side has a pause.
    pausing: u8,
    /// Classes whose state must still be sent to the other side.
    unreported: u8,
    /// Whether a timer will come for `refresh_due`, when the pause must be repeated.
    refresh_armed: bool,
    /// The link repeats the pause, and needs no timer for it.
    pub(super) renews: bool,
    /// Which of `Switch::markers` are this port's.
    pub(super) markers: u16,
    queued_bytes: u64,
    peak_queue_bytes: u64,
    refresh_due: Time,
    pause_frames_sent: u64,
    pub(super) pause: PauseState,
    egress: [Egress; CLASSES],
    ingress: [Ingress; CLASSES],
    round_robin: RoundRobin,
    rare: [Rare; CLASSES],
}

impl Port {
    pub(super) fn queue_bytes(&self) -> u64 {
        self.queued_bytes
    }

    pub(super) fn class_bytes(&self, class: usize) -> u64 {
        self.egress[class].bytes
    }

    pub(super) fn ingress(&mut self, class: usize) -> &mut Ingress {
        &mut self.ingress[class]
    }

    pub(super) fn count_drop(&mut self, class: usize) {
        self.egress[class].dropped += 1;
    }

    pub(super) fn count_mark(&mut self, class: usize) {
        self.egress[class].ecn_marked += 1;
    }

    pub(super) fn count_cnm(&mut self, class: usize) {
        self.rare[class].cnm_sent += 1;
    }

    pub(super) fn cnm_sent(&self) -> u64 {
        self.rare.iter().map(|rare| rare.cnm_sent).sum()
    }

    pub(super) fn ecn_marked(&self) -> u64 {
        self.egress.iter().map(|class| class.ecn_marked).sum()
    }

    /// Whether this class has ever sent, dropped or held anything here.
    pub(super) fn is_in_use(&self, class: usize) -> bool {
        let egress = &self.egress[class];
        egress.peak_bytes > 0 || egress.dropped > 0 || self.ingress[class].peak_bytes > 0
    }

    /// Puts a frame at the end of its queue.
    pub(super) fn push(&mut self, pool: &mut Pool, frame: Frame, held: Held, now: Time) {
        let class = usize::from(held.class);
        self.settle_held(class, now);
        self.add_bytes(class, u64::from(held.bytes));
        pool.push(&mut self.egress[class].queue, frame, held);
        self.waiting |= 1 << class;
    }

    fn add_bytes(&mut self, class: usize, bytes: u64) {
        self.queued_bytes += bytes;
        self.peak_queue_bytes = self.peak_queue_bytes.max(self.queued_bytes);
        let class = &mut self.egress[class];
        class.bytes += bytes;
        class.peak_bytes = class.peak_bytes.max(class.bytes);
    }

    pub(super) fn is_sending(&self, now: Time) -> bool {
        self.busy && now <= self.busy_until
    }

    /// A frame has begun that will be gone by `until`.
    pub(super) fn set_busy(&mut self, until: Time) {
        (self.busy, self.busy_until) = (true, until);
    }

    /// Whether a notification must be requested for when the wire is free: something could be sent then, and none is
    /// pending.
    #[inline]
    pub(super) fn must_await_free(&mut self, now: Time) -> bool {
        if self.awaits_free {
            return false;
        }
        self.awaits_free = self.unreported != 0 || self.waiting & !self.pause.paused_mask(now) != 0;
        self.awaits_free
    }

    /// The wire is free, as the engine reports.
    pub(super) fn set_free(&mut self) {
        (self.busy, self.awaits_free) = (false, false);
    }

    /// The first frame of the class whose turn it is.
    pub(super) fn take_next(&mut self, pool: &mut Pool, discipline: &Discipline, now: Time) -> Option<(Frame, Held)> {
        let ready = self.waiting & !self.pause.paused_mask(now);
        if ready == 0 {
            return None;
        }
        let egress = &self.egress;
        let class = self.round_robin.choose(discipline, ready, |class| pool.head_bytes(egress[class].queue));
        self.settle_held(class, now);
        let state = &mut self.egress[class];
        let (frame, held) = pool.pop(&mut state.queue)?;
        state.bytes -= u64::from(held.bytes);
        self.queued_bytes -= u64::from(held.bytes);
        if state.queue.is_empty() {
            self.waiting &= !(1 << class);
            self.round_robin.emptied(discipline, class);
        }
        self.count(held);
        Some((frame, held))
    }

    /// Whether a frame of this class need not wait: nothing is on the wire, in the queues or to be reported.
    pub(super) fn is_free_for(&self, class: usize, now: Time) -> bool {
        !self.is_sending(now) && self.waiting == 0 && self.unreported == 0 && !self.pause.is_paused(class, now)
    }

    /// Counts a frame as sent that has not waited; the same as `push` and `take_next` of a port that is free for it.
    pub(super) fn pass(&mut self, held: Held) {
        let (class, bytes) = (usize::from(held.class), u64::from(held.bytes));
        self.add_bytes(class, bytes);
        self.egress[class].bytes = 0;
        self.queued_bytes = 0;
        self.count(held);
    }

    fn count(&mut self, held: Held) {
        let class = &mut self.egress[usize::from(held.class)];
        class.tx_frames += 1;
        class.tx_bytes += u64::from(held.bytes);
    }

    /// The frames in the queue of a class, first to last.
    pub(super) fn queue<'a>(&self, pool: &'a Pool, class: usize) -> impl Iterator<Item = Held> + 'a {
        pool.iter(self.egress[class].queue)
    }

    // ---- pauses received --------------------------------------------------------------------------------------------

    /// Takes a control frame in. `Some`: set a timer for this time.
    pub(super) fn receive_pause(&mut self, control: &MacControl, id: PortId, out: &Outbox) -> Option<Time> {
        let now = out.now();
        for class in classes_in(self.waiting) {
            self.settle_held(class, now);
            // Waiting before the pause is not settled: it must not be charged to a pause that begins now.
            self.egress[class].held_until = now;
        }
        self.pause.receive(now, control, |quanta| out.pause_time(id, quanta))
    }

    /// The timer of a pause has fired. `Some`: set it again for this time.
    pub(super) fn wake(&mut self, now: Time) -> Option<Time> {
        classes_in(self.waiting).for_each(|class| self.settle_held(class, now));
        self.pause.wake(now)
    }

    /// Adds the byte-time held by the pause of a class since the last call. Called before the queue or the pause
    /// changes.
    fn settle_held(&mut self, class: usize, now: Time) {
        if self.egress[class].held_until >= self.pause.latest() {
            return;
        }
        self.rare[class].held_byte_ps += self.held_in(class, now);
        self.egress[class].held_until = now;
    }

    fn held_in(&self, class: usize, now: Time) -> u128 {
        let end = now.min(self.pause.until(class));
        let class = &self.egress[class];
        u128::from(class.bytes) * u128::from(end.saturating_sub(class.held_until).0)
    }

    // ---- pauses sent ------------------------------------------------------------------------------------------------

    pub(super) fn is_pausing(&self) -> bool {
        self.pausing != 0
    }

    pub(super) fn is_pausing_class(&self, class: usize) -> bool {
        self.pausing >> class & 1 == 1
    }

    /// Pauses the other side; false if it is already paused.
    pub(super) fn begin_pausing(&mut self, class: usize, now: Time) -> bool {
        if self.is_pausing_class(class) {
            return false;
        }
        self.pausing |= 1 << class;
        self.unreported |= 1 << class;
        self.ingress[class].pausing_since = now;
        true
    }

    /// The other side, which is paused, may go on.
    pub(super) fn end_pausing(&mut self, class: usize, now: Time) {
        self.pausing &= !(1 << class);
        self.unreported |= 1 << class;
        let class = &mut self.ingress[class];
        class.pausing += now - class.pausing_since;
    }

    /// A PFC frame that pauses has been sent and must be repeated at `due`. `Some`: set a timer for it.
    pub(super) fn plan_refresh(&mut self, due: Time) -> Option<Time> {
        self.refresh_due = due;
        let armed = std::mem::replace(&mut self.refresh_armed, true);
        (!armed).then_some(due)
    }

    /// Takes account of the pauses that the link has repeated. `Some`: it no longer does; set a timer for this time.
    pub(super) fn catch_up(&mut self, id: PortId, out: &mut Outbox) -> Option<Time> {
        let now = out.now();
        let sent = out.sent_pause(id)?.sent(now);
        if sent.frames > 0 {
            self.pause_frames_sent += sent.frames;
            self.set_busy(sent.busy_until);
        }
        let due = sent.left_at?;
        self.renews = false;
        if due > now {
            return self.plan_refresh(due);
        }
        self.unreported |= self.pausing;
        None
    }

    /// Whether a timer is set to repeat the pause.
    pub(super) fn awaits_refresh(&self) -> bool {
        self.refresh_armed
    }

    /// The refresh timer has fired. `Some`: set it again for this time. The next PFC frame carries the pauses that are
    /// due.
    pub(super) fn refresh(&mut self, now: Time) -> Option<Time> {
        self.refresh_armed = self.is_pausing() && now < self.refresh_due;
        if self.refresh_armed {
            return Some(self.refresh_due);
        }
        self.unreported |= self.pausing;
        None
    }

    /// The pause frame that is due, if one is. It renews the pauses of all classes.
    pub(super) fn take_pause_frame(&mut self, pause_quanta: u16, kind: PauseFrame) -> Option<MacControl> {
        if self.unreported == 0 {
            return None;
        }
        let enabled = std::mem::take(&mut self.unreported) | self.pausing;
        let quanta = std::array::from_fn(|class| if self.is_pausing_class(class) { pause_quanta } else { 0 });
        self.pause_frames_sent += 1;
        Some(match kind {
            PauseFrame::Pfc => MacControl::Pfc { enabled, quanta },
            PauseFrame::Port => MacControl::Pause { quanta: if self.is_pausing() { pause_quanta } else { 0 } },
        })
    }

    pub(super) fn stats_at(&self, now: Time) -> PortStats {
        let paused = self.pause.paused_for(now);
        let classes = std::array::from_fn(|class| {
            let (egress, ingress, rare) = (&self.egress[class], &self.ingress[class], &self.rare[class]);
            let pausing = if self.is_pausing_class(class) { now - ingress.pausing_since } else { Time::ZERO };
            ClassStats {
                tx_frames: egress.tx_frames,
                tx_bytes: egress.tx_bytes,
                dropped: egress.dropped,
                ecn_marked: egress.ecn_marked,
                cnm_sent: rare.cnm_sent,
                peak_queue_bytes: egress.peak_bytes,
                peak_ingress_bytes: ingress.peak_bytes,
                paused: paused[class],
                pausing: ingress.pausing + pausing,
                held_byte_ps: rare.held_byte_ps + self.held_in(class, now),
            }
        });
        let stats = PortStats {
            peak_queue_bytes: self.peak_queue_bytes,
            pause_frames_received: self.pause.frames,
            pause_frames_sent: self.pause_frames_sent,
            classes,
            ..PortStats::default()
        };
        stats.summed()
    }
}
