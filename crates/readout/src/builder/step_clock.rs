// SPDX-License-Identifier: Apache-2.0
//! Waiting time that a clock's leaps do not spend.
//! Promise: the time shown never goes back, and goes on only as long as its owner is asked at least every `limit`.
//! A machine that slept, or a clock that was set, must not time out what is on its way.

/// Turns the caller's time into time that can be waited by. Both are in ps.
#[derive(Debug, Clone)]
pub(crate) struct StepClock {
    /// Longest step that is believed; after a longer one nobody was there to take what came.
    limit_ps: u64,
    /// The caller's time of the last step; none before the first.
    outside_ps: Option<u64>,
    inside_ps: u64,
}

impl StepClock {
    pub fn new(limit_ps: u64) -> StepClock {
        StepClock { limit_ps, outside_ps: None, inside_ps: 0 }
    }

    /// The caller's clock shows `outside_ps` now. Returns the time to wait by.
    pub fn step(&mut self, outside_ps: u64) -> u64 {
        let last = self.outside_ps.replace(outside_ps).unwrap_or(outside_ps);
        let step = outside_ps.saturating_sub(last);
        if step <= self.limit_ps {
            self.inside_ps = self.inside_ps.saturating_add(step);
        }
        self.inside_ps
    }

    /// When the caller's clock will show that `inside_ps` has come, if it goes on without a leap.
    pub fn outside(&self, inside_ps: u64) -> u64 {
        self.outside_ps.unwrap_or(0).saturating_add(inside_ps.saturating_sub(self.inside_ps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_count_and_leaps_do_not() {
        let mut clock = StepClock::new(100);
        assert_eq!([5000, 5100, 5050, 5060, 9000, 9001].map(|now| clock.step(now)), [0, 100, 100, 110, 110, 111]);
        assert_eq!(clock.outside(111 + 50), 9051);
    }
}
