// SPDX-License-Identifier: Apache-2.0
//! The congestion window: slow start, then the growth of the chosen variant; its reduction after a loss.
//! Promise: integers only, no byte of growth lost to rounding.
//! Source: RFC 5681 section 3.1 (slow start, congestion avoidance), RFC 3465 (counting acknowledged bytes).

use super::acked::Acked;
use super::bic::Bic;
use super::cubic::Cubic;
use super::{TcpConfig, TcpVariant};

/// The state of a variant in addition to the window.
#[derive(Clone, Debug)]
enum Avoidance {
    NewReno,
    Bic(Bic),
    Cubic(Cubic),
}

/// The window of one connection.
#[derive(Clone, Debug)]
pub(crate) struct CongestionWindow {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    avoidance: Avoidance,
    /// Growth below one byte, in units of 1/cwnd bytes.
    remainder: u128,
}

impl CongestionWindow {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        let mss = u64::from(config.mss);
        let avoidance = match config.variant {
            TcpVariant::NewReno => Avoidance::NewReno,
            TcpVariant::Bic => Avoidance::Bic(Bic::default()),
            TcpVariant::Cubic => Avoidance::Cubic(Cubic::default()),
        };
        let cwnd = mss * u64::from(config.initial_window.max(1));
        CongestionWindow { mss, cwnd, ssthresh: config.initial_ssthresh.max(2 * mss), avoidance, remainder: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.cwnd
    }

    pub(crate) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Grows the window. The caller has made sure that the window was what limited the sender (RFC 7661's concern).
    pub(crate) fn acknowledged(&mut self, acked: Acked) {
        let mut bytes = acked.bytes;
        if self.cwnd < self.ssthresh {
            // L = 1 of RFC 3465: one segment per ACK of a segment, two for a delayed one are two.
            let growth = bytes.min(2 * self.mss).min(self.ssthresh - self.cwnd);
            self.cwnd += growth;
            bytes -= growth;
            if self.cwnd < self.ssthresh || bytes == 0 {
                return;
            }
        }
        let per_round_trip = match &mut self.avoidance {
            Avoidance::NewReno => self.mss,
            Avoidance::Bic(bic) => bic.increment(self.cwnd, self.mss),
            Avoidance::Cubic(cubic) => cubic.increment(self.cwnd, self.mss, Acked { bytes, ..acked }),
        };
        // An acknowledged window is a round trip: bytes / cwnd of the increment.
        let growth = u128::from(bytes) * u128::from(per_round_trip) + self.remainder;
        let cwnd = u128::from(self.cwnd);
        self.cwnd += (growth / cwnd) as u64;
        self.remainder = growth % cwnd;
    }

    /// A loss was noticed with `flight` bytes outstanding: sets the threshold that recovery leads to.
    pub(crate) fn lost(&mut self, flight: u64) {
        let reduced = match &mut self.avoidance {
            Avoidance::NewReno => flight / 2,
            Avoidance::Bic(bic) => bic.reduced(self.cwnd, self.mss).min(flight.max(self.mss)),
            Avoidance::Cubic(cubic) => cubic.reduced(self.cwnd).min(flight.max(self.mss)),
        };
        self.ssthresh = reduced.max(2 * self.mss);
        self.remainder = 0;
    }

    /// The retransmission timer expired: begin again with one segment (RFC 5681 equation 4 and loss window).
    pub(crate) fn collapse(&mut self) {
        self.cwnd = self.mss;
    }

    /// Recovery has begun or ended with this window.
    pub(crate) fn set(&mut self, bytes: u64) {
        self.cwnd = bytes.max(self.mss);
    }

    /// New Reno's inflation by a segment that has left the network, and deflation (RFC 6582).
    pub(crate) fn inflate(&mut self, bytes: u64) {
        self.cwnd += bytes;
    }

    pub(crate) fn deflate(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.saturating_sub(bytes).max(self.mss);
    }
}
