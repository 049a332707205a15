// SPDX-License-Identifier: Apache-2.0
//! One port of the switch: its egress queues, its ingress accounting, and the PFC it sends and obeys.
//! Promise: bytes counted in are counted out; a PFC frame always tells the newest state of every class it names.
//! Source: IEEE 802.1Qbb.

use std::collections::VecDeque;

use penstock_wire::MacControl;

use crate::node::{Frame, PortId};
use crate::pause::{PauseState, CLASSES};
use crate::units::Time;

/// A frame in an egress queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) frame: Frame,
    pub(super) ingress: PortId,
    pub(super) bytes: u64,
}

/// What a port has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStats {
    /// Frames sent, PFC not counted.
    pub tx_frames: u64,
    pub tx_bytes: u64,
    /// Frames that were to leave here and were dropped for lack of room.
    pub dropped: u64,
    /// Packets marked CE on their way into this port's queue.
    pub ecn_marked: u64,
    /// Most bytes that ever waited here.
    pub peak_queue_bytes: u64,
    /// Most bytes that ever waited anywhere of what came in here.
    pub peak_ingress_bytes: u64,
    /// Pause and PFC frames received and sent.
    pub pause_frames_received: u64,
    pub pause_frames_sent: u64,
    /// Time in which the other side had this port paused, summed over classes.
    pub paused: Time,
    /// Time in which this port had the other side paused, summed over classes.
    pub pausing: Time,
}

#[derive(Debug, Default)]
pub(super) struct Port {
    queues: [VecDeque<Queued>; CLASSES],
    bytes: [u64; CLASSES],
    /// What is on the wire: ingress, class and bytes, or `Some(None)` for a PFC frame, which takes no buffer.
    sending: Option<Option<(PortId, usize, u64)>>,
    pub(super) ingress_bytes: [u64; CLASSES],
    pub(super) pause: PauseState,
    /// Since when each class of the other side is told to pause.
    pausing_since: [Option<Time>; CLASSES],
    /// Classes whose state the other side must still be told.
    untold: u8,
    /// When the pause must be repeated, and whether a timer will come for it.
    refresh_due: Time,
    refresh_armed: bool,
    pub(super) stats: PortStats,
}

impl Port {
    pub(super) fn queue_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    pub(super) fn class_bytes(&self, class: usize) -> u64 {
        self.bytes[class]
    }

    pub(super) fn push(&mut self, class: usize, queued: Queued) {
        self.bytes[class] += queued.bytes;
        self.queues[class].push_back(queued);
        self.stats.peak_queue_bytes = self.stats.peak_queue_bytes.max(self.queue_bytes());
    }

    pub(super) fn take_in(&mut self, class: usize, bytes: u64) {
        self.ingress_bytes[class] += bytes;
        self.stats.peak_ingress_bytes = self.stats.peak_ingress_bytes.max(self.ingress_bytes[class]);
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// The first frame of the highest class that may be sent.
    pub(super) fn take_next(&mut self, now: Time) -> Option<Frame> {
        let class =
            (0..CLASSES).rev().find(|class| !self.queues[*class].is_empty() && !self.pause.is_paused(*class, now))?;
        let queued = self.queues[class].pop_front()?;
        self.bytes[class] -= queued.bytes;
        self.sending = Some(Some((queued.ingress, class, queued.bytes)));
        self.stats.tx_frames += 1;
        self.stats.tx_bytes += queued.bytes;
        Some(queued.frame)
    }

    /// The frame on the wire has left; what it occupied in the buffer, if anything.
    pub(super) fn finish_sending(&mut self) -> Option<(PortId, usize, u64)> {
        self.sending.take().flatten()
    }

    pub(super) fn is_pausing(&self) -> bool {
        self.pausing_since.iter().any(Option::is_some)
    }

    /// The other side is to be paused; false if it has been told already.
    pub(super) fn begin_pausing(&mut self, class: usize, now: Time) -> bool {
        if self.pausing_since[class].is_some() {
            return false;
        }
        self.pausing_since[class] = Some(now);
        self.untold |= 1 << class;
        true
    }

    /// The other side may go on; false if it was not paused.
    pub(super) fn end_pausing(&mut self, class: usize, now: Time) -> bool {
        let Some(since) = self.pausing_since[class].take() else { return false };
        self.stats.pausing += now - since;
        self.untold |= 1 << class;
        true
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
        self.untold |= self.pausing_classes();
        None
    }

    fn pausing_classes(&self) -> u8 {
        let bits = self.pausing_since.iter().enumerate();
        bits.fold(0, |bits, (class, since)| bits | u8::from(since.is_some()) << class)
    }

    /// The PFC frame that is due, if one is, and the port counted as sending it. It names all pausing classes and so
    /// renews them all.
    pub(super) fn take_pfc_frame(&mut self, pause_quanta: u16) -> Option<MacControl> {
        if self.untold == 0 {
            return None;
        }
        let enabled = std::mem::take(&mut self.untold) | self.pausing_classes();
        let quanta = self.pausing_since.map(|since| if since.is_some() { pause_quanta } else { 0 });
        self.sending = Some(None);
        self.stats.pause_frames_sent += 1;
        Some(MacControl::Pfc { enabled, quanta })
    }

    pub(super) fn stats_at(&self, now: Time) -> PortStats {
        let sum = |times: &mut dyn Iterator<Item = Time>| times.fold(Time::ZERO, |sum, time| sum + time);
        let mut stats = self.stats;
        stats.pause_frames_received = self.pause.frames;
        stats.paused = sum(&mut self.pause.paused_for(now).into_iter());
        stats.pausing += sum(&mut self.pausing_since.iter().flatten().map(|since| now - *since));
        stats
    }
}
