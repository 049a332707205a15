// SPDX-License-Identifier: Apache-2.0
//! A bound on how long and how far congestion notifications alone hold the rate of a front end down.
//! Promise: while data waits and nothing else tells of congestion, a rate that notifications keep below a quarter of the
//! line gets a floor, which doubles every second up to that quarter: from 10 Mb/s at 10 Gb/s in eight seconds. A lost
//! packet, an RNR NAK or round trips that a queue makes longer take the floor away, and the next one comes later.
//! Source: a CNP has no number that its sender must know but that of the queue pair (IBTA A17.9.3), so anybody who can
//! send with the server's address can forge it.

use penstock_units::{Rate, Time};

/// From one judgement to the next.
const PERIOD: Time = Time::from_s(1);
/// Notifications may hold a rate above this part of the line for ever.
const PART: u64 = 4;
/// The most periods after a sign of congestion before the next floor.
const MOST_PERIODS: u32 = 64;
/// Round trips of a program vary by this without any queue.
const JITTER: Time = Time::from_us(100);

/// What happened since the last call.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// R_C.
    pub rate: Rate,
    /// Something waits that could be sent but for the rate.
    pub waits: bool,
    /// Notifications of the connection so far.
    pub cnps: u64,
    /// Losses of any kind and RNR NAKs so far.
    pub losses: u64,
}

/// The bound of one connection.
#[derive(Debug)]
pub struct CnpBound {
    line: Rate,
    /// R_min of the parameters, and what it is raised to.
    least: Rate,
    floor: Rate,
    due: Time,
    /// The last look; how long data waited in this period up to it, and the rate's integral over that time.
    last: Time,
    waited: Time,
    area: u128,
    /// Of the last period.
    mean: Rate,
    cnps: u64,
    losses: u64,
    /// The shortest round trips ever, and of this period.
    shortest: Time,
    shortest_now: Time,
    /// Periods to wait before the next raise, and after the next sign of congestion.
    wait: u32,
    next_wait: u32,
    raises: u64,
    /// A packet that asked for an acknowledgement: packets up to it that are not acknowledged, and when it was sent.
    timed: Option<(u64, Time)>,
}

impl CnpBound {
    pub fn new(line: Rate, least: Rate, now: Time) -> CnpBound {
        CnpBound {
            line,
            least,
            floor: least,
            due: now + PERIOD,
            last: now,
            waited: Time::ZERO,
            area: 0,
            mean: line,
            cnps: 0,
            losses: 0,
            shortest: Time::MAX,
            shortest_now: Time::MAX,
            wait: 0,
            next_wait: 1,
            raises: 0,
            timed: None,
        }
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
                let time = now.saturating_sub(*at);
                self.timed = None;
                self.round_trip(time);
            }
        }
    }

    fn round_trip(&mut self, time: Time) {
        self.shortest = self.shortest.min(time);
        self.shortest_now = self.shortest_now.min(time);
    }

    /// The mean rate of the last period, while data waited.
    pub fn mean(&self) -> Rate {
        self.mean
    }

    /// Judges what has happened; the floor, if it is another one now.
    pub fn judge(&mut self, now: Time, seen: Seen) -> Option<Rate> {
        let before = self.floor;
        let highest = Rate(self.line.bits_per_second() / PART).max(self.least);
        let span = now.saturating_sub(self.last);
        self.last = now;
        if seen.waits {
            self.waited += span;
            self.area += u128::from(seen.rate.bits_per_second()) * u128::from(span.as_ps());
        }
        let lost = seen.losses != self.losses;
        self.losses = seen.losses;
        if lost {
            // What is sent again is not timed (Karn).
            self.timed = None;
            self.congested();
        }
        if now >= self.due {
            let time = now.saturating_sub(self.due) + PERIOD;
            self.mean = Rate((self.area / u128::from(self.waited.as_ps().max(1))) as u64);
            let held = self.waited >= time / 2 && self.mean <= highest;
            let queued = self.shortest_now != Time::MAX
                && self.shortest_now > self.shortest.saturating_mul(2).saturating_add(JITTER);
            if queued {
                self.congested();
            } else if self.wait > 0 {
                self.wait -= 1;
            } else if held && seen.cnps != self.cnps && self.floor < highest {
                self.floor = Rate(self.floor.bits_per_second() * 2).min(highest);
                self.raises += 1;
            } else if seen.cnps == self.cnps {
                // The notifications are over.
                (self.floor, self.next_wait) = (self.least, 1);
            }
            (self.due, self.waited, self.area) = (now + PERIOD, Time::ZERO, 0);
            (self.cnps, self.shortest_now) = (seen.cnps, Time::MAX);
        }
        (self.floor != before).then_some(self.floor)
    }

    /// The notifications are not alone.
    fn congested(&mut self) {
        if self.floor > self.least {
            self.wait = self.next_wait;
            self.next_wait = (self.next_wait * 2).min(MOST_PERIODS);
        }
        self.floor = self.least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate::from_gbps(10);
    const LEAST: Rate = Rate::from_mbps(40);

    /// Seconds of notifications that hold the rate at the floor; `happens` says losses and round trip of each.
    fn floors(seconds: u64, mut happens: impl FnMut(u64, Rate) -> (u64, Time)) -> Vec<u64> {
        let mut bound = CnpBound::new(LINE, LEAST, Time::ZERO);
        let (mut floor, mut found) = (LEAST, Vec::new());
        bound.round_trip(Time::from_us(50));
        for second in 1..=seconds {
            let (losses, trip) = happens(second, floor);
            bound.round_trip(trip);
            let seen = Seen { rate: floor, waits: true, cnps: second * 1000, losses };
            floor = bound.judge(Time::from_s(second), seen).unwrap_or(floor);
            found.push(floor.bits_per_second() / 1_000_000);
        }
        found
    }

    #[test]
    fn notifications_alone_hold_a_rate_for_seconds_only() {
        let found = floors(9, |_, _| (0, Time::from_us(120)));
        assert_eq!(found, [80, 160, 320, 640, 1280, 2500, 2500, 2500, 2500]);
    }

    #[test]
    fn a_loss_or_a_queue_takes_the_floor_away_and_the_next_one_comes_later() {
        let found = floors(12, |second, _| (u64::from(second >= 3), Time::from_us(120)));
        assert_eq!(found, [80, 160, 40, 80, 160, 320, 640, 1280, 2500, 2500, 2500, 2500]);
        // A queue as soon as the floor is above 200 Mb/s: each time it lasts twice as long until there is a floor.
        let trip = |_, floor| (0, Time::from_us(if floor > Rate::from_mbps(200) { 900 } else { 120 }));
        let found = floors(100, trip);
        assert_eq!(found[..9], [80, 160, 320, 40, 40, 80, 160, 320, 40]);
        let raised = found[50..].iter().filter(|floor| **floor > 40).count();
        assert!(raised < 15, "{found:?}");
    }

    #[test]
    fn a_rate_that_is_not_held_down_gets_no_floor() {
        let mut bound = CnpBound::new(LINE, LEAST, Time::ZERO);
        let seen = |rate, cnps| Seen { rate, waits: true, cnps, losses: 0 };
        assert_eq!(bound.judge(Time::from_ms(500), seen(Rate::from_gbps(6), 5)), None);
        assert_eq!(bound.judge(Time::from_s(1), seen(LEAST, 9)), None, "its mean was above a quarter");
        let idle = Seen { waits: false, ..seen(LEAST, 12) };
        assert_eq!(bound.judge(Time::from_s(2), idle), None, "it was idle");
        assert_eq!(bound.judge(Time::from_s(3), seen(LEAST, 12)), None, "no notification came");
        assert_eq!(bound.judge(Time::from_s(4), seen(LEAST, 13)), Some(Rate::from_mbps(80)));
        assert_eq!(bound.judge(Time::from_s(5), seen(LEAST, 13)), Some(LEAST), "they are over");
        assert_eq!(bound.raises(), 1);
    }
}
