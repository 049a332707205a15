// SPDX-License-Identifier: Apache-2.0
//! The bound on congestion notifications (`penstock_cc::CnpBound`) of one connection, driven by the wall clock.
//! Promise: its looks are those of the gateware, 128 a second; round trips are those of packets that were sent once.

use penstock_cc::{CnpBound, CnpLook};
use penstock_units::Time;
use penstock_wire::gateware::{CLOCK_HZ, CYCLE};

/// Time from one look to the next.
const LOOK: Time = Time(Time::from_s(1).0 / CnpBound::LOOKS as u64);
/// Round trips of a program vary by this many cycles without any queue: 0.1 ms.
const JITTER: u32 = (CLOCK_HZ / 10_000) as u32;

/// What a connection shows.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Something waits that could be sent but for the rate, which is at a quarter of the line or below.
    pub held: bool,
    /// Notifications of the connection so far.
    pub cnps: u64,
    /// Losses of any kind and RNR NAKs so far.
    pub losses: u64,
}

/// The bound of one connection.
#[derive(Debug)]
pub struct CnpWatch {
    bound: CnpBound,
    due: Time,
    looks: u32,
    cnps: u64,
    losses: u64,
    raises: u64,
    /// A packet that asked for an acknowledgement: packets up to it that are not acknowledged, and when it was sent.
    timed: Option<(u64, Time)>,
}

impl CnpWatch {
    pub fn new(now: Time) -> CnpWatch {
        CnpWatch { bound: CnpBound::new(), due: now + LOOK, looks: 0, cnps: 0, losses: 0, raises: 0, timed: None }
    }

    /// How often the floor was raised.
    pub fn raises(&self) -> u64 {
        self.raises
    }

    /// A packet was sent that asks for an acknowledgement; it is the last of `outstanding` ones.
    pub fn sent(&mut self, now: Time, outstanding: u64) {
        self.timed.get_or_insert((outstanding, now));
    }

    /// So many packets were acknowledged.
    pub fn acknowledged(&mut self, now: Time, packets: u64) {
        if let Some((outstanding, at)) = &mut self.timed {
            *outstanding = outstanding.saturating_sub(packets);
            if *outstanding == 0 {
                let cycles = now.saturating_sub(*at) / CYCLE;
                self.timed = None;
                self.bound.round_trip(u32::try_from(cycles).unwrap_or(u32::MAX).min(CnpBound::NONE));
            }
        }
    }

    /// Makes the looks that are due; the level of the floor, if it is another one now.
    pub fn look(&mut self, now: Time, seen: Seen) -> Option<u8> {
        let before = self.bound.level();
        if seen.losses != self.losses {
            self.timed = None; // what is sent again is not timed (Karn)
        }
        while self.due <= now {
            self.due += LOOK;
            self.looks += 1;
            let (cnp, congested) = (seen.cnps != self.cnps, seen.losses != self.losses);
            (self.cnps, self.losses) = (seen.cnps, seen.losses);
            let ends = self.looks.is_multiple_of(CnpBound::LOOKS);
            self.raises += u64::from(self.bound.look(CnpLook { held: seen.held, cnp, congested, ends }, JITTER));
        }
        (self.bound.level() != before).then(|| self.bound.level())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The level after each second of notifications that hold the rate; `happens` says losses and round trip of each.
    fn levels(seconds: u64, happens: impl Fn(u64) -> (u64, Time)) -> Vec<u8> {
        let mut watch = CnpWatch::new(Time::ZERO);
        let (mut level, mut found) = (0, Vec::new());
        for second in 0..seconds {
            let (losses, trip) = happens(second);
            let begins = Time::from_s(second);
            watch.sent(begins, 1);
            watch.acknowledged(begins + trip, 1);
            let seen = Seen { held: true, cnps: second + 1, losses };
            level = watch.look(begins + LOOK * 64, seen).unwrap_or(level);
            level = watch.look(begins + Time::from_s(1), seen).unwrap_or(level);
            found.push(level);
        }
        found
    }

    #[test]
    fn the_seconds_of_the_wall_clock_are_the_bound_s_periods() {
        assert_eq!(levels(10, |_| (0, Time::from_us(120))), [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
        assert_eq!(levels(4, |second| (u64::from(second >= 2), Time::from_us(50))), [1, 2, 0, 1]);
        let queue = |second| (0, Time::from_us(if second == 2 { 250 } else { 50 }));
        assert_eq!(levels(4, queue), [1, 2, 0, 0]);
    }

    #[test]
    fn what_was_sent_again_is_not_timed() {
        let mut watch = CnpWatch::new(Time::ZERO);
        watch.sent(Time::ZERO, 1);
        watch.look(LOOK, Seen { held: false, cnps: 0, losses: 1 });
        watch.acknowledged(LOOK, 1);
        assert_eq!(watch.bound.words()[1], CnpBound::NONE);
    }
}
