// SPDX-License-Identifier: Apache-2.0
//! What a host has pulled, for reports and traces.

use penstock_wire::{wire_len, Opcode, RocePacket};

use crate::trace::TraceSink;

/// What a host has pulled, over all its boards. Bytes are those on the wire, with preamble, FCS and gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PullStats {
    /// The window.
    pub window_bytes: u64,
    /// Requested, and not arrived.
    pub in_flight_bytes: u64,
    /// The most that was in flight.
    pub highest_in_flight_bytes: u64,
    pub reads: u64,
    pub announcements: u64,
    /// Announcements that were refused, as a whole or in part.
    pub refused: u64,
    /// Times that a board left READs without an answer.
    pub silences: u64,
    /// Packets that have come from boards.
    pub came: CameBytes,
}

/// Bytes on the wire that have come from boards. What a READ brings about further messages is an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CameBytes {
    pub announcements: u64,
    pub responses: u64,
}

impl CameBytes {
    /// A part of the responses counted is an announcement.
    pub fn carried(&mut self, bytes: u64) {
        self.announcements += bytes;
        self.responses = self.responses.saturating_sub(bytes);
    }

    /// A packet of a board has come.
    pub fn count(&mut self, packet: &RocePacket) {
        let bytes = wire_len(packet.frame_len()) as u64;
        match packet.bth.opcode {
            opcode if opcode.is_rc_request() => self.announcements += bytes,
            Opcode::Acknowledge | Opcode::Cnp => {}
            _ => self.responses += bytes,
        }
    }
}

impl PullStats {
    /// The part of what came that was announcements, 0 to 1.
    #[must_use]
    pub fn announcement_share(&self) -> f64 {
        let CameBytes { announcements, responses } = self.came;
        announcements as f64 / (announcements + responses).max(1) as f64
    }

    /// Writes the window and what has been pulled into a trace.
    pub fn record(&self, channel: u16, trace: &mut TraceSink) {
        trace.record(channel, "window_bytes", self.window_bytes as f64);
        trace.record(channel, "requested_bytes", self.in_flight_bytes as f64);
        trace.record(channel, "reads", self.reads as f64);
        trace.record(channel, "announcement_share", self.announcement_share());
    }
}
