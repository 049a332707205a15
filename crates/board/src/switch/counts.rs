// SPDX-License-Identifier: Apache-2.0
//! The counters of a port of the QCN switch.

/// Events of a port: `switch_stat_t`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Good frames.
    pub rx_frame: u64,
    /// Frames with a wrong FCS, or too long.
    pub rx_bad: u64,
    /// Good frames for which the port's store had no room.
    pub rx_lost: u64,
    /// Good frames without a port to leave by.
    pub rx_filtered: u64,
    pub rx_pause: u64,
    pub rx_pfc: u64,
    /// Forwarded frames.
    pub tx_frame: u64,
    /// Frames that found a queue of the port full.
    pub tx_dropped: u64,
    /// Notifications sent by this port.
    pub tx_cnm: u64,
    /// Notifications that found no room.
    pub cnm_dropped: u64,
    pub tx_pause: u64,
    pub tx_pfc: u64,
}

impl PortCounts {
    /// Pulses of a port in `SwitchPins::stat`.
    pub(super) const BITS: usize = 12;

    /// Counts the pulses of a cycle.
    pub(super) fn add(&mut self, pulses: u64) {
        // from the last field of the struct, which is the lowest
        let counts = [
            &mut self.tx_pfc,
            &mut self.tx_pause,
            &mut self.cnm_dropped,
            &mut self.tx_cnm,
            &mut self.tx_dropped,
            &mut self.tx_frame,
            &mut self.rx_pfc,
            &mut self.rx_pause,
            &mut self.rx_filtered,
            &mut self.rx_lost,
            &mut self.rx_bad,
            &mut self.rx_frame,
        ];
        for (bit, count) in counts.into_iter().enumerate() {
            *count += pulses >> bit & 1;
        }
    }
}
