// SPDX-License-Identifier: Apache-2.0
//! The ways to wait for messages, and the clock that measures the waiting.
//! Promise: `busy` has the lowest latency, `event` uses no CPU time while no message arrives, `hybrid` spins for a
//! given time and then sleeps.
//! Source: FEROCE (polling of completion queues in DAQ); the words are those of perftest's `--events`.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use penstock_units::Time;

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollMode {
    /// Looks again and again; costs a core.
    Busy,
    /// Sleeps until the kernel reports arrived data.
    Event,
    /// Looks for `spin` after the last message, then sleeps.
    Hybrid { spin: Duration },
}

impl PollMode {
    /// The time that a wake-up costs: spinning longer saves nothing, if messages come at random.
    pub const DEFAULT_SPIN: Duration = Duration::from_micros(50);

    /// How long to look before sleeping; none: for ever.
    pub fn spin(self) -> Option<Duration> {
        match self {
            PollMode::Busy => None,
            PollMode::Event => Some(Duration::ZERO),
            PollMode::Hybrid { spin } => Some(spin),
        }
    }
}

impl Default for PollMode {
    fn default() -> Self {
        PollMode::Hybrid { spin: Self::DEFAULT_SPIN }
    }
}

impl fmt::Display for PollMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PollMode::Busy => f.write_str("busy"),
            PollMode::Event => f.write_str("event"),
            PollMode::Hybrid { spin } => write!(f, "hybrid:{}", spin.as_micros()),
        }
    }
}

impl FromStr for PollMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "busy" => Ok(PollMode::Busy),
            None if text == "event" => Ok(PollMode::Event),
            None if text == "hybrid" => Ok(PollMode::default()),
            Some(("hybrid", spin)) => match spin.parse() {
                Ok(spin) => Ok(PollMode::Hybrid { spin: Duration::from_micros(spin) }),
                Err(_) => Err(format!("hybrid:{spin}: the time to spin is a whole number of microseconds")),
            },
            _ => Err(format!("{text}: allowed are busy, event, hybrid and hybrid:<microseconds>")),
        }
    }
}

/// The only clock of a session; clones show the same time, which never goes back.
#[derive(Debug, Clone)]
pub struct SessionClock(Source);

#[derive(Debug, Clone)]
enum Source {
    /// The machine's monotonic clock, from here on.
    Machine(Instant),
    /// The time in ps that [`ClockHand`] has set.
    Hand(Arc<AtomicU64>),
}

/// Moves a [`SessionClock`] of simulated time.
#[derive(Debug, Default)]
pub struct ClockHand(Arc<AtomicU64>);

impl ClockHand {
    /// The clock shows `now` from here on; an earlier time than it shows already changes nothing.
    pub fn set(&self, now: Time) {
        self.0.fetch_max(now.as_ps(), Ordering::Relaxed);
    }

    /// The clock that it moves; it shows 0 at first.
    pub fn clock(&self) -> SessionClock {
        SessionClock(Source::Hand(self.0.clone()))
    }
}

impl SessionClock {
    /// The machine's monotonic clock, which begins at 0.
    pub fn start() -> Self {
        SessionClock(Source::Machine(Instant::now()))
    }

    /// The time since the clock began.
    pub fn now(&self) -> Time {
        match &self.0 {
            Source::Machine(begun) => Time::from_duration(begun.elapsed()),
            Source::Hand(ps) => Time(ps.load(Ordering::Relaxed)),
        }
    }

    /// How long until the clock shows `at`; zero if it has.
    pub fn until(&self, at: Time) -> Duration {
        at.saturating_sub(self.now()).to_duration()
    }
}

/// How long messages have waited, in ns: three digits of each, so that the largest are right to a thousandth.
pub type Latencies = Histogram<u64>;

/// An empty one, for waits of up to an hour; longer ones count as that.
pub(crate) fn no_latencies() -> Latencies {
    const AN_HOUR_NS: u64 = 3_600_000_000_000;
    Latencies::new_with_bounds(1, AN_HOUR_NS, 3).expect("constants within what the library allows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for text in ["busy", "event", "hybrid:0", "hybrid:250"] {
            assert_eq!(text.parse::<PollMode>().unwrap().to_string(), text);
        }
        assert_eq!("hybrid".parse(), Ok(PollMode::default()));
        for (text, part) in [("fast", "allowed are busy"), ("hybrid:x", "whole number"), ("busy:1", "allowed are")] {
            assert!(text.parse::<PollMode>().unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn quantiles_are_right_to_a_thousandth_and_no_wait_is_too_long() {
        let mut latencies = no_latencies();
        (1..=100_000).for_each(|ns| latencies.saturating_record(ns));
        for (q, exact) in [(0.00001, 1.0), (0.5, 50_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let found = latencies.value_at_quantile(q) as f64;
            assert!((found - exact).abs() <= exact / 1000.0, "{q}: {found}, expected {exact}");
        }
        latencies.saturating_record(u64::MAX);
        assert_eq!((latencies.len(), latencies.value_at_quantile(0.5)), (100_001, 50_015));
    }
}
