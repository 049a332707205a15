// SPDX-License-Identifier: Apache-2.0
//! How many packets a front end has under way: without limit until one is lost, then as few as losses make worth while.
//! Promise: a network that loses nothing never feels it; one that does costs less than all that was under way each time.
//! Source: go-back-N sends W packets again for each loss, hence W about sqrt(1.5 / p), as additive increase and
//! multiplicative decrease have it (Mathis et al. 1997).

use penstock_transport::{Requester, RequesterCounters};

/// No fewer: the least that keeps acknowledgements coming (one is asked for every 16 packets) while a batch is on its way.
const LEAST: u64 = 32;
/// The most that a requester has by itself.
const MOST: u64 = 4096;

pub struct Window {
    packets: u64,
    /// Acknowledged since the window has grown.
    acknowledged: u64,
    /// Before the call that is looked at.
    outstanding: u64,
    losses: u64,
}

impl Window {
    pub fn new() -> Window {
        Window { packets: MOST, acknowledged: 0, outstanding: 0, losses: 0 }
    }

    /// What is under way, before an acknowledgement or a timeout is given to the requester.
    pub fn before(&mut self, requester: &Requester) {
        self.outstanding = requester.outstanding_packets();
    }

    /// And behind it.
    pub fn after(&mut self, requester: &mut Requester) {
        let RequesterCounters { packet_seq_err, local_ack_timeout_err, rnr_nak, .. } = *requester.counters();
        // What was sent behind a message without a receive is lost, too.
        let losses = packet_seq_err + local_ack_timeout_err + rnr_nak;
        if losses > self.losses {
            self.losses = losses;
            self.packets = (self.outstanding.min(self.packets) / 2).max(LEAST);
            self.acknowledged = 0;
        } else if self.packets < MOST {
            self.acknowledged += self.outstanding.saturating_sub(requester.outstanding_packets());
            if self.acknowledged >= self.packets {
                self.acknowledged -= self.packets;
                self.packets += 1;
            }
        } else {
            return;
        }
        requester.set_window(self.packets as u32);
    }
}
