// SPDX-License-Identifier: Apache-2.0
//! The counters of a switch: in total, per port, and per class of a port.
//! Promise: a lost frame is in exactly one of `SwitchStats`' drop counters, and in the drops of one port and class if
//! it was lost to congestion. A port's numbers are the sums of its classes'.

use penstock_wire::Packet;

use crate::pause::CLASSES;
use crate::port::PortId;
use crate::units::Time;

/// What is read of a switch of any kind, simulated or in gateware: see [`crate::Node::as_switch`].
pub trait SwitchView {
    fn port_count(&self) -> u16;

    /// The port by which this packet would leave; `None`: no route.
    fn egress(&self, packet: &Packet) -> Option<PortId>;

    /// Bytes waiting at one port, all classes.
    fn queue_bytes(&self, port: PortId) -> u64;

    fn stats(&self) -> SwitchStats;

    /// The counters of one port, pause times up to `now`.
    fn port_stats(&self, port: PortId, now: Time) -> PortStats;
}

/// The counters of the whole switch, in addition to those of its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchStats {
    /// Frames dropped because the shared buffer was full.
    pub dropped_buffer: u64,
    /// Frames of a lossy class dropped because their queue had reached its dynamic threshold.
    pub dropped_threshold: u64,
    /// Frames of a lossless class dropped because the headroom of their port was spent.
    pub dropped_headroom: u64,
    /// Frames dropped for a wrong FCS.
    pub fcs_errors: u64,
    /// Frames dropped because no route leads to their destination.
    pub no_route: u64,
    /// QCN messages sent.
    pub cnm_sent: u64,
    /// Most bytes ever in the shared buffer.
    pub peak_buffer_bytes: u64,
}

impl SwitchStats {
    /// Frames lost to congestion.
    pub fn dropped(&self) -> u64 {
        self.dropped_buffer + self.dropped_threshold + self.dropped_headroom
    }
}

/// The counters of one class of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassStats {
    /// Frames sent.
    pub tx_frames: u64,
    pub tx_bytes: u64,
    /// Frames that were to leave here and were dropped for lack of room.
    pub dropped: u64,
    /// Packets marked CE on their way into this queue.
    pub ecn_marked: u64,
    /// QCN messages this queue's congestion point gave rise to.
    pub cnm_sent: u64,
    /// Most bytes that ever waited here.
    pub peak_queue_bytes: u64,
    /// The peak of waiting bytes, at all egress ports, that came in at this port.
    pub peak_ingress_bytes: u64,
    /// Time in which the other side had this class paused.
    pub paused: Time,
    /// Time in which this port had the other side's class paused.
    pub pausing: Time,
    /// Head-of-line blocking: bytes waiting here, integrated over the time in which the class was paused, in byte x
    /// picosecond.
    pub held_byte_ps: u128,
}

impl ClassStats {
    /// `held_byte_ps` in byte seconds, for people.
    pub fn held_byte_seconds(&self) -> f64 {
        self.held_byte_ps as f64 * 1e-12
    }
}

/// The counters of a port, over all classes; peaks are those of the whole port.
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
    /// The peak of waiting bytes of one class, at all egress ports, that came in at this port.
    pub peak_ingress_bytes: u64,
    /// Pause and PFC frames received and sent.
    pub pause_frames_received: u64,
    pub pause_frames_sent: u64,
    /// Time in which the other side had this port paused, summed over classes.
    pub paused: Time,
    /// Time in which this port had the other side paused, summed over classes.
    pub pausing: Time,
    pub classes: [ClassStats; CLASSES],
}

impl PortStats {
    /// Sums over the classes; the other values come from `self`.
    pub fn summed(mut self) -> Self {
        for class in &self.classes {
            self.tx_frames += class.tx_frames;
            self.tx_bytes += class.tx_bytes;
            self.dropped += class.dropped;
            self.ecn_marked += class.ecn_marked;
            self.peak_ingress_bytes = self.peak_ingress_bytes.max(class.peak_ingress_bytes);
            self.paused += class.paused;
            self.pausing += class.pausing;
        }
        self
    }
}
