// SPDX-License-Identifier: Apache-2.0
//! The pacer: turns a rate into the moments at which packets may start.

use crate::Rate;

/// Credit beyond this is lost; so a flow that waited bursts by at most this much above its rate.
///
/// Two packets of MTU 4096: room for the wait behind another queue pair's packet.
pub const CREDIT_CAP_BYTES: u32 = 8192;

/// The credit of one queue pair (`rtl/cc/pacer.sv`): a packet may start while the credit is not
/// negative, and pays for all its bytes on the wire.
///
/// Over any time t a backlogged flow sends no more than `rate * t + CREDIT_CAP_BYTES + 1 packet`;
/// in the long run it sends exactly `rate * t`, as no fraction of a byte is ever dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    cap: i64,
    credit: i64,
    unlimited: bool,
}

impl Pacer {
    /// A new flow: full credit, not limited.
    pub const fn new() -> Self {
        Self::with_cap(CREDIT_CAP_BYTES)
    }

    /// The same with another cap, as builds with long rounds have it (256 bytes per cycle of a round).
    pub const fn with_cap(cap_bytes: u32) -> Self {
        let cap = (cap_bytes as i64) << Rate::FRACTION_BITS;
        Self { cap, credit: cap, unlimited: true }
    }

    /// A visit: earn `cycles * rate`. An unlimited flow (law off, or R_C at line rate) is kept at
    /// full credit and always eligible.
    pub fn grant(&mut self, rate: Rate, cycles: u32, unlimited: bool) {
        self.unlimited = unlimited;
        let earned = self.credit + i64::from(rate.0) * i64::from(cycles);
        self.credit = if unlimited { self.cap } else { earned.min(self.cap) };
    }

    /// Exactly what `visits` grants do between which nothing is charged.
    pub fn skip(&mut self, rate: Rate, cycles: u32, visits: u64, unlimited: bool) {
        if visits == 0 {
            return;
        }
        self.unlimited = unlimited;
        let earned = i128::from(rate.0) * i128::from(cycles) * i128::from(visits) + i128::from(self.credit);
        self.credit = if unlimited { self.cap } else { earned.min(i128::from(self.cap)) as i64 };
    }

    /// A packet starts: pay for its bytes, with preamble, FCS and gap.
    pub fn charge(&mut self, bytes: u32) {
        self.credit -= i64::from(bytes) << Rate::FRACTION_BITS;
    }

    /// Whether a packet may start.
    pub fn eligible(&self) -> bool {
        self.unlimited || self.credit >= 0
    }

    /// The credit in units of 2^-24 bytes.
    pub fn credit(&self) -> i64 {
        self.credit
    }
}

impl Default for Pacer {
    fn default() -> Self {
        Self::new()
    }
}
