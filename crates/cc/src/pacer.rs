// SPDX-License-Identifier: Apache-2.0
//! The pacer: turns a rate into the times at which packets may start.

use crate::cycle_rate::CycleRate;

/// The most credit that a flow can save at any rate: the gateware counts in 19 bits.
const FULL: i64 = (128 * 1024) << CycleRate::FRACTION_BITS;

/// The credit of one queue pair (`rtl/cc/pacer.sv`): a packet may start while the credit is not
/// negative, and pays for all its bytes on the wire.
///
/// Over any time t a flow starts no more than `rate * (t + 2 visits) + 1 packet`; and no less than
/// `rate * (t - 2 visits) - 1 packet` while data waits and packets start as soon as they may. No
/// fraction of a byte is ever dropped, so in the long run that is exactly its rate.
///
/// At a visit, unspent credit is lost, unless a packet waits for its turn on the wire: then the credit
/// continues to grow, below `rate * turn` and 128 KiB, beyond which it restarts. A flow therefore makes
/// up for the time it waits for others, by at most that much above the first bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    turn: u32,
    credit: i64,
    unlimited: bool,
}

impl Pacer {
    /// A new flow: not limited, no saved credit. `turn` is a number of visits: about the time of one packet
    /// of each queue pair on the wire.
    pub const fn new(turn: u32) -> Self {
        Self { turn, credit: 0, unlimited: true }
    }

    /// A visit: earn `cycles * rate`. An unlimited flow (law off, or R_C at line rate) is always
    /// eligible; `waits` means that the flow has a packet that could start.
    #[inline]
    pub fn grant(&mut self, rate: CycleRate, cycles: u32, unlimited: bool, waits: bool) {
        self.unlimited = unlimited;
        let grant = i64::from(rate.0) * i64::from(cycles);
        let restart = unlimited || self.credit >= self.cycle(grant, waits).0;
        self.credit = if restart { grant } else { self.credit + grant };
    }

    /// Has exactly the effect of `visits` grants without packets between them.
    #[inline]
    pub fn skip(&mut self, rate: CycleRate, cycles: u32, visits: u64, unlimited: bool, waits: bool) {
        if visits == 0 {
            return;
        }
        self.unlimited = unlimited;
        let grant = i64::from(rate.0) * i64::from(cycles);
        if unlimited {
            self.credit = grant;
            return;
        }
        let (kept, cycle) = self.cycle(grant, waits);
        // For this number of visits no product overflows: a grant is below 2^40.
        const FEW: u64 = 1 << 20;
        if visits <= FEW && self.credit + grant * (visits as i64 - 1) < kept {
            // still growing before the last one
            self.credit += grant * visits as i64;
            return;
        }
        // The credit grows, restarts, and grows again, periodically.
        let growing = visits_to(kept - self.credit, grant);
        self.credit = match visits.checked_sub(growing) {
            None | Some(0) => self.credit + grant * visits as i64,
            Some(around) => grant * (1 + (around - 1) % cycle) as i64,
        };
    }

    /// The credit with which a flow restarts, and the number of visits after which it reaches this credit again.
    #[inline]
    fn cycle(&self, grant: i64, waits: bool) -> (i64, u64) {
        let turn = grant * i64::from(self.turn);
        match waits {
            false => (0, 1),
            true if grant == 0 || turn > FULL => (FULL.min(turn), visits_to(FULL.min(turn), grant).max(1)),
            true => (turn, u64::from(self.turn).max(1)),
        }
    }

    /// A packet starts: pay for its bytes, with preamble, FCS and gap.
    #[inline]
    pub fn charge(&mut self, bytes: u32) {
        self.credit -= i64::from(bytes) << CycleRate::FRACTION_BITS;
    }

    /// Whether a packet may start.
    #[inline]
    pub fn eligible(&self) -> bool {
        self.unlimited || self.credit >= 0
    }

    /// The credit in units of 2^-24 bytes.
    pub fn credit(&self) -> i64 {
        self.credit
    }
}

/// Visits that earn that much; never, if a visit earns nothing.
#[inline]
fn visits_to(missing: i64, grant: i64) -> u64 {
    match (missing, grant) {
        (..=0, _) => 0,
        (_, 0) => u64::MAX,
        (missing, grant) => (missing as u64).div_ceil(grant as u64),
    }
}
