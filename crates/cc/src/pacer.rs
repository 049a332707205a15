// SPDX-License-Identifier: Apache-2.0
//! The pacer: turns a rate into the moments at which packets may start.

use crate::Rate;

/// Credit beyond this is lost; so a flow that waited bursts by at most this much above its rate.
///
/// Two packets of MTU 4096: room for the wait behind another queue pair's packet.
pub const CREDIT_CAP_BYTES: u32 = 8192;

const CAP: i64 = (CREDIT_CAP_BYTES as i64) << Rate::FRACTION_BITS;

/// The credit of one queue pair (`rtl/cc/pacer.sv`): a packet may start while the credit is not
/// negative, and pays for all its bytes on the wire.
///
/// Over any time t a backlogged flow sends no more than `rate * t + CREDIT_CAP_BYTES + 1 packet`;
/// in the long run it sends exactly `rate * t`, as no fraction of a byte is ever dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    credit: i64,
    unlimited: bool,
}

impl Pacer {
    /// A new flow: full credit, not limited.
    pub const fn new() -> Self {
        Self { credit: CAP, unlimited: true }
    }

    /// A visit: earn `cycles * rate`. An unlimited flow (law off, or R_C at line rate) is kept at
    /// full credit and always eligible.
    pub fn grant(&mut self, rate: Rate, cycles: u32, unlimited: bool) {
        self.unlimited = unlimited;
        let earned = self.credit + i64::from(rate.0) * i64::from(cycles);
        self.credit = if unlimited { CAP } else { earned.min(CAP) };
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
