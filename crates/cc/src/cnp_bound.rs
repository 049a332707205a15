// SPDX-License-Identifier: Apache-2.0
//! A bound on how long and how far congestion notifications alone hold the rate of a queue pair down, equal to
//! `rtl/cc/cnp_bound.sv` to the bit.
//! Promise: while data waits and nothing else shows congestion, a rate that notifications keep below a quarter of the
//! line gets a floor, which doubles every [`CnpBound::LOOKS`] looks (a second) up to that quarter: eight times from 1/512
//! of the line on. A lost packet, an RNR NAK, a pause or round trips that a queue makes longer take the floor away, and
//! the next one comes later.
//! Source: a CNP has no number that its sender must know but that of the queue pair (IBTA A17.9.3), so anybody who can
//! send with the server's address can forge it.

use crate::cycle_rate::CycleRate;

/// What a queue pair shows at a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CnpLook {
    /// Data waits that could be sent but for the rate, which the law holds at or below [`CnpBound::highest`].
    pub held: bool,
    /// A notification has come since the last look.
    pub cnp: bool,
    /// Something else has indicated congestion since then: a loss, an RNR NAK, a pause.
    pub congested: bool,
    /// This look is the last one of its period.
    pub ends: bool,
}

/// The bound of one queue pair. Times are in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnpBound {
    level: u8,
    /// Looks of this period at which the rate was held down; whether a notification came.
    held: u8,
    cnp: bool,
    /// Periods before the next raise, and after the next sign of congestion.
    wait: u8,
    next_wait: u8,
    /// The shortest round trips ever, and of this period.
    shortest: u32,
    shortest_now: u32,
}

impl Default for CnpBound {
    fn default() -> Self {
        Self::new()
    }
}

impl CnpBound {
    /// Looks of a period.
    pub const LOOKS: u32 = 128;
    /// The level of the highest floor, a quarter of the line.
    pub const MOST: u8 = 8;
    /// Round trips are at most this long; this one counts as none.
    pub const NONE: u32 = (1 << 24) - 1;
    /// The most periods after a sign of congestion before the next floor.
    const MOST_PERIODS: u8 = 64;

    /// A bound for a queue pair that is opened.
    pub const fn new() -> Self {
        Self { level: 0, held: 0, cnp: false, wait: 0, next_wait: 1, shortest: Self::NONE, shortest_now: Self::NONE }
    }

    /// The highest floor at this line rate.
    pub fn highest(line: CycleRate) -> CycleRate {
        CycleRate(line.0 >> 2)
    }

    /// What R_C does not fall below at a level: nothing at 0, else the line rate over 2^(10 - level).
    #[inline]
    pub fn floor(line: CycleRate, level: u8) -> CycleRate {
        match level {
            0 => CycleRate(0),
            1..Self::MOST => CycleRate(line.0 >> (10 - level)),
            _ => Self::highest(line),
        }
    }

    /// The level of the present floor.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// A packet was acknowledged this many cycles after it was sent.
    pub fn round_trip(&mut self, cycles: u32) {
        self.shortest = self.shortest.min(cycles);
        self.shortest_now = self.shortest_now.min(cycles);
    }

    /// A look; returns whether the floor was raised. Round trips vary by `jitter` cycles without any queue.
    pub fn look(&mut self, look: CnpLook, jitter: u32) -> bool {
        if look.congested {
            self.congested();
        }
        self.held += u8::from(look.held);
        self.cnp |= look.cnp;
        if !look.ends {
            return false;
        }
        let queued = self.shortest_now != Self::NONE && self.shortest_now > 2 * self.shortest + jitter;
        let is_held = u32::from(self.held) >= Self::LOOKS / 2;
        let mut raised = false;
        if queued {
            self.congested();
        } else if self.wait > 0 {
            self.wait -= 1;
        } else if !self.cnp {
            // The notifications are over.
            (self.level, self.next_wait) = (0, 1);
        } else if is_held && self.level < Self::MOST {
            self.level += 1;
            raised = true;
        }
        (self.held, self.cnp, self.shortest_now) = (0, false, Self::NONE);
        raised
    }

    /// The notifications are not alone.
    fn congested(&mut self) {
        if self.level > 0 {
            self.wait = self.next_wait;
            self.next_wait = (self.next_wait * 2).min(Self::MOST_PERIODS);
        }
        self.level = 0;
    }

    /// The row in the gateware's format: level, looks that held, flag and periods; the shortest round trips.
    pub fn words(&self) -> [u32; 3] {
        let row = u32::from(self.level)
            | u32::from(self.held) << 4
            | u32::from(self.cnp) << 12
            | u32::from(self.wait) << 13
            | u32::from(self.next_wait) << 20;
        [row, self.shortest, self.shortest_now]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const JITTER: u32 = 15_625;
    const LINE: CycleRate = CycleRate(8 << 24);

    /// A period in which notifications come and the rate is held at so many looks.
    fn period(bound: &mut CnpBound, held: u32, congested: bool, cnp: bool) -> u8 {
        for look in 0..CnpBound::LOOKS {
            let ends = look == CnpBound::LOOKS - 1;
            bound.look(CnpLook { held: look < held, cnp, congested: congested && look == 9, ends }, JITTER);
        }
        bound.level()
    }

    /// Levels after periods of notifications that hold the rate; `happens` says loss and round trip of each.
    fn levels(periods: u32, mut happens: impl FnMut(u32, u8) -> (bool, u32)) -> Vec<u8> {
        let mut bound = CnpBound::new();
        bound.round_trip(7_000);
        let mut found = Vec::new();
        for at in 1..=periods {
            let (lost, trip) = happens(at, bound.level());
            bound.round_trip(trip);
            found.push(period(&mut bound, 100, lost, true));
        }
        found
    }

    #[test]
    fn notifications_alone_hold_a_rate_for_eight_periods_only() {
        assert_eq!(levels(10, |_, _| (false, 18_000)), [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
        let mbps = |level| ((u64::from(CnpBound::floor(LINE, level).0) * 156_250_000 * 8) >> 24) / 1_000_000;
        assert_eq!([0, 1, 2, 7, 8].map(mbps), [0, 19, 39, 1250, 2500]);
    }

    #[test]
    fn a_loss_or_a_queue_takes_the_floor_away_and_the_next_one_comes_later() {
        let found = levels(12, |at, _| (at == 3, 18_000));
        assert_eq!(found, [1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
        // A queue as soon as the floor is above level 2: each time it lasts twice as long until there is a floor.
        let found = levels(100, |_, level| (false, if level > 2 { 140_000 } else { 18_000 }));
        assert_eq!(found[..9], [1, 2, 3, 0, 0, 1, 2, 3, 0]);
        assert!(found[50..].iter().filter(|level| **level > 0).count() < 15, "{found:?}");
    }

    #[test]
    fn a_rate_that_is_not_held_down_gets_no_floor() {
        let mut bound = CnpBound::new();
        assert_eq!(
            period(&mut bound, CnpBound::LOOKS / 2 - 1, false, true),
            0,
            "half of the time it was above or idle"
        );
        assert_eq!(period(&mut bound, CnpBound::LOOKS, false, false), 0, "no notification came");
        assert_eq!(period(&mut bound, CnpBound::LOOKS / 2, false, true), 1);
        assert_eq!(period(&mut bound, CnpBound::LOOKS, false, false), 0, "they are over");
    }
}
