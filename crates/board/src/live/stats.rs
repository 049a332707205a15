// SPDX-License-Identifier: Apache-2.0
//! The statistics of a live board, including its slowdown against real time.

use super::pace::Activity;
use crate::node::MessageTally;
use penstock_wire::gateware::LineClock;
use std::time::Duration;

/// Counts since the board was plugged in.
#[derive(Debug, Clone, Default)]
pub struct LiveStats {
    /// Frames the board has sent, with their bytes from destination MAC to payload.
    pub tx_frames: u64,
    pub tx_bytes: u64,
    /// Octets they took on the line: preamble, FCS and gap included.
    pub tx_octets: u64,
    /// Frames cut short by the board: their FCS is wrong, so they go no further.
    pub tx_bad_fcs: u64,
    /// Frames without a peer at the far end.
    pub lost_frames: u64,
    /// Frames that have entered the board, notifications of an emulated switch included.
    pub rx_frames: u64,
    pub rx_bytes: u64,
    /// Messages handed to the gateware, and completions of these and of the gateware's own source.
    pub messages: MessageTally,
    /// Events whose trigger came while the gateware was busy; no messages were posted for them.
    pub lost_events: u64,
    /// Clock cycles in which there was work, in which only the peer could go on, and in which there was nothing to do.
    pub running_cycles: u64,
    pub waiting_cycles: u64,
    pub idle_cycles: u64,
    /// Time of the machine for all these cycles, and for those with work.
    pub busy: Duration,
    pub running: Duration,
    /// Time asleep, and time for which a full wire held the clock.
    pub slept: Duration,
    pub blocked: Duration,
}

impl LiveStats {
    pub(crate) fn ran(&mut self, activity: Activity, cycles: u64, took: Duration) {
        self.busy += took;
        match activity {
            Activity::Running => {
                self.running_cycles += cycles;
                self.running += took;
            }
            Activity::Waiting => self.waiting_cycles += cycles,
            Activity::Idle => self.idle_cycles += cycles,
        }
    }

    /// How much slower than real time the board, with this clock, runs while it has work; 0 before it had any.
    pub fn slowdown(&self, clock: LineClock) -> f64 {
        match self.running_cycles {
            0 => 0.0,
            cycles => self.running.as_secs_f64() / (clock.picoseconds(cycles as f64) * 1e-12),
        }
    }
}
