// SPDX-License-Identifier: Apache-2.0
//! The pace of a live board's clock: the number of cycles to run, from the board's activity and the elapsed real time.
//! Promise: simulated time is the number of cycles run. While the board has work, the clock runs as fast as the model
//! can; while it waits for the peer, one cycle takes the time of `patience` real cycles, so that a timer of 4 ms gives
//! the peer at least 4 s with a patience of 1000; while it is idle, the clock runs so slowly that it needs no CPU time.

use penstock_wire::gateware::LineClock;
use std::time::Duration;

/// The activity of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Frames move, or something inside waits for the clock alone: packets for their pacer, the source for its
    /// interval.
    Running,
    /// Only the peer can go on: it owes an acknowledgement or an answer.
    Waiting,
    /// Neither side has pending work.
    Idle,
}

/// How the clock relates to the time of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaceConfig {
    /// Real cycles to one of the board's while it waits for its peer; at least 1.
    pub patience: u32,
    /// The same while it is idle.
    pub idle: u32,
}

impl Default for PaceConfig {
    /// 1000 and 100 000: a timer of 4.2 ms (acknowledgement timeout 10) takes 4.2 s; an idle board takes a hundredth of
    /// a core.
    fn default() -> Self {
        Self { patience: 1_000, idle: 100_000 }
    }
}

/// Cycles that run in one piece: at 10 Gb/s half a packet of MTU 4096.
pub const CHUNK_CYCLES: u64 = 256;

/// The next action of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Run this number of cycles.
    Run(u64),
    /// Sleep for so long, or until a frame comes.
    Sleep(Duration),
}

/// Grants cycles.
#[derive(Debug)]
pub struct Pace {
    config: PaceConfig,
    clock: LineClock,
    /// Wall time that has been paid in and not yet run, in ps; less than a chunk's worth.
    saved_ps: u128,
}

impl Pace {
    pub fn new(config: PaceConfig, clock: LineClock) -> Self {
        Self { config, clock, saved_ps: 0 }
    }

    /// The next step of a board with `activity`, `elapsed` wall time after the last call.
    pub fn step(&mut self, activity: Activity, elapsed: Duration) -> Step {
        let factor = match activity {
            Activity::Running => {
                self.saved_ps = 0;
                return Step::Run(CHUNK_CYCLES);
            }
            Activity::Waiting => self.config.patience,
            Activity::Idle => self.config.idle,
        };
        let price = u128::from(self.clock.span(CHUNK_CYCLES).as_ps()) * u128::from(factor.max(1));
        // After a long sleep of the machine one chunk runs, not many: nothing may time out because of the sleep.
        self.saved_ps = (self.saved_ps + elapsed.as_nanos() * 1000).min(price);
        if self.saved_ps < price {
            return Step::Sleep(Duration::from_nanos(((price - self.saved_ps) / 1000 + 1) as u64));
        }
        self.saved_ps = 0;
        Step::Run(CHUNK_CYCLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_wire::gateware::CLOCK_HZ;

    /// Cycles that a minute of wall time grants in steps of `tick`.
    fn cycles_in_a_minute(activity: Activity, tick: Duration) -> u64 {
        let mut pace = Pace::new(PaceConfig::default(), LineClock::GBPS_10);
        let ticks = Duration::from_secs(60).as_micros() / tick.as_micros();
        let granted = |_| match pace.step(activity, tick) {
            Step::Run(cycles) => cycles,
            Step::Sleep(_) => 0,
        };
        (0..ticks).map(granted).sum()
    }

    #[test]
    fn a_waiting_clock_is_a_thousandth_of_real_time_and_an_idle_one_a_hundred_thousandth() {
        let real = 60 * CLOCK_HZ;
        for (activity, factor) in [(Activity::Waiting, 1_000), (Activity::Idle, 100_000)] {
            let cycles = cycles_in_a_minute(activity, Duration::from_micros(100));
            assert!(cycles <= real / factor, "{activity:?}: {cycles}");
            assert!(cycles >= real / factor * 9 / 10, "{activity:?}: {cycles}");
        }
    }

    #[test]
    fn a_machine_that_slept_for_an_hour_grants_one_chunk() {
        let mut pace = Pace::new(PaceConfig::default(), LineClock::GBPS_10);
        assert_eq!(pace.step(Activity::Waiting, Duration::from_secs(3600)), Step::Run(CHUNK_CYCLES));
        assert!(matches!(pace.step(Activity::Waiting, Duration::ZERO), Step::Sleep(_)));
    }

    #[test]
    fn a_sleep_is_as_long_as_the_next_chunk_needs() {
        let mut pace = Pace::new(PaceConfig::default(), LineClock::GBPS_10);
        let Step::Sleep(time) = pace.step(Activity::Waiting, Duration::ZERO) else { panic!("nothing is saved yet") };
        assert_eq!(pace.step(Activity::Waiting, time), Step::Run(CHUNK_CYCLES));
    }
}
