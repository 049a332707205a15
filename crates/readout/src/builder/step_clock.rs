// SPDX-License-Identifier: Apache-2.0
//! Waiting time that is not affected by jumps of the clock.
//! Promise: the time never goes back, and advances only while it is read at least every `limit`.
//! A machine that slept, or a clock that was set, must not time out fragments in transit.
use penstock_units::Time;

/// Turns the caller's time into time that can be waited by.
#[derive(Debug, Clone)]
pub(crate) struct StepClock {
    /// The longest step that counts; during a longer one no messages were taken.
    limit: Time,
    /// The caller's time of the last step; none before the first.
    outside: Option<Time>,
    inside: Time,
}

impl StepClock {
    pub fn new(limit: Time) -> StepClock {
        StepClock { limit, outside: None, inside: Time::ZERO }
    }

    /// The caller's clock shows `outside` now. Returns the time to wait by.
    pub fn step(&mut self, outside: Time) -> Time {
        let last = self.outside.replace(outside).unwrap_or(outside);
        let step = outside.saturating_sub(last);
        if step <= self.limit {
            self.inside = self.inside.saturating_add(step);
        }
        self.inside
    }

    /// The caller's clock shows `outside` now; no messages were taken since the last step, which does not count.
    pub fn leap(&mut self, outside: Time) {
        self.outside = self.outside.max(Some(outside));
    }

    /// The reading of the caller's clock at which `inside` is reached, if it runs without a jump.
    pub fn outside(&self, inside: Time) -> Time {
        self.outside.unwrap_or_default().saturating_add(inside.saturating_sub(self.inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_count_and_leaps_do_not() {
        let mut clock = StepClock::new(Time(100));
        assert_eq!(
            [5000, 5100, 5050, 5060, 9000, 9001].map(|now| clock.step(Time(now)).as_ps()),
            [0, 100, 100, 110, 110, 111]
        );
        assert_eq!(clock.outside(Time(111 + 50)), Time(9051));
        clock.leap(Time(9090));
        assert_eq!((clock.step(Time(9091)), clock.outside(Time(113))), (Time(112), Time(9092)));
    }
}
