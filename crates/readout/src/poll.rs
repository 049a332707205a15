// SPDX-License-Identifier: Apache-2.0
//! How to wait for messages, and the clock that waiting is measured by.
//! Promise: `busy` answers first, `event` costs nothing while nothing comes, `hybrid` spins for so long and then sleeps.
//! Source: FEROCE (polling of completion queues in DAQ); the words are those of perftest's `--events`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollMode {
    /// Looks again and again; costs a core.
    Busy,
    /// Sleeps until the kernel says that something came.
    Event,
    /// Looks for `spin` after the last message, then sleeps.
    Hybrid { spin: Duration },
}

impl PollMode {
    /// As long as a wake-up costs: spinning longer saves nothing, if messages come at random.
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

/// The monotonic clock, in picoseconds since it was made. The only clock of a session; copies show the same time.
#[derive(Debug, Clone, Copy)]
pub struct SessionClock(Instant);

impl SessionClock {
    /// Begins at 0.
    pub fn start() -> Self {
        SessionClock(Instant::now())
    }

    /// Picoseconds since [`Self::start`].
    pub fn now_ps(&self) -> u64 {
        let since = self.0.elapsed();
        since.as_secs() * 1_000_000_000_000 + u64::from(since.subsec_nanos()) * 1000
    }

    /// How long until the clock shows `at_ps`; zero if it has.
    pub fn until(&self, at_ps: u64) -> Duration {
        Duration::from_nanos(at_ps.saturating_sub(self.now_ps()).div_ceil(1000))
    }
}

/// Sorted into buckets that are an eighth of their value wide; memory is fixed.
#[derive(Debug, Clone)]
pub struct Latencies {
    counts: Box<[u64; 64 * 8]>,
    samples: u64,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { counts: Box::new([0; 64 * 8]), samples: 0, max_ns: 0 }
    }
}

impl Latencies {
    /// Counts one.
    pub fn record(&mut self, ns: u64) {
        self.counts[Self::bucket(ns)] += 1;
        self.samples += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    fn bucket(ns: u64) -> usize {
        if ns < 8 {
            return ns as usize;
        }
        let power = ns.ilog2();
        ((power as usize - 2) << 3) + ((ns >> (power - 3)) & 7) as usize
    }

    /// The middle of the bucket below which a share of `q` lies; none if nothing was counted.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let rank = ((self.samples as f64 * q).ceil() as u64).max(1);
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        if at < 8 {
            return Some(at as u64);
        }
        let width = 1u64 << (at / 8 - 1);
        Some((8 + (at % 8) as u64) * width + width / 2)
    }

    pub fn samples(&self) -> u64 {
        self.samples
    }

    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }
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
    fn quantiles_are_right_to_an_eighth() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile_ns(0.5), None);
        (1..=100_000).for_each(|ns| latencies.record(ns));
        for (q, exact) in [(0.00001, 1.0), (0.5, 50_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let found = latencies.quantile_ns(q).unwrap() as f64;
            assert!((found - exact).abs() <= exact / 8.0, "{q}: {found}, expected {exact}");
        }
        assert_eq!((latencies.samples(), latencies.max_ns()), (100_000, 100_000));
        latencies.record(u64::MAX);
    }
}
