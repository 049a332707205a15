// SPDX-License-Identifier: Apache-2.0
//! Messages of one size: as fast as the network takes them, at a constant rate, or at random with a mean rate.
//! Promise: at a constant rate, message n is posted at exactly start + n * size / rate; none is posted at or after
//! `stop`.

use penstock_netsim::{Message, MessageSource, Stream};

use crate::units::{Rate, Time};

/// How messages follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The next message is available at once.
    Greedy,
    /// One in each such time, on average one if `SteadyParams::random`.
    Every(Time),
    /// So that the payload comes at this rate.
    Rate(Rate),
}

/// A steady workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SteadyParams {
    pub message_bytes: u64,
    /// Bytes in all, the last message being shorter; `None`: without end.
    pub total_bytes: Option<u64>,
    pub pace: Pace,
    /// Intervals are exponential with the pace as their mean, instead of constant.
    pub random: bool,
    pub start: Time,
    pub stop: Option<Time>,
}

/// The messages of a steady workload.
#[derive(Debug, Clone)]
pub struct SteadySource {
    params: SteadyParams,
    random: Stream,
    sent_messages: u64,
    sent_bytes: u64,
    last: Time,
}

impl SteadySource {
    /// `random` is used by a random pace only.
    pub fn new(params: SteadyParams, random: Stream) -> Self {
        SteadySource { params, random, sent_messages: 0, sent_bytes: 0, last: params.start }
    }

    /// Time of the next message; a random pace draws for it.
    fn next_time(&mut self, now: Time) -> Time {
        let SteadyParams { start, message_bytes, random, .. } = self.params;
        let mean = match self.params.pace {
            Pace::Greedy => return now.max(start),
            Pace::Every(interval) => interval,
            Pace::Rate(rate) => rate.time_for(message_bytes),
        };
        if random {
            return self.last.saturating_add(self.random.exponential(mean));
        }
        let n = self.sent_messages;
        let after_start = match self.params.pace {
            // not n times a rounded interval: the rate is exact in the long run
            Pace::Rate(rate) => {
                let bits = u128::from(n) * u128::from(message_bytes) * 8_000_000_000_000;
                u64::try_from(bits / u128::from(rate.bits_per_second().max(1))).unwrap_or(u64::MAX)
            }
            _ => mean.0.saturating_mul(n),
        };
        start.saturating_add(Time(after_start))
    }
}

impl MessageSource for SteadySource {
    fn next_message(&mut self, now: Time) -> Option<Message> {
        let left = self.params.total_bytes.map_or(u64::MAX, |total| total - self.sent_bytes);
        if left == 0 {
            return None;
        }
        let at = self.next_time(now);
        if self.params.stop.is_some_and(|stop| at >= stop) {
            return None;
        }
        let message = Message { at, bytes: self.params.message_bytes.min(left), event: self.sent_messages };
        self.sent_messages += 1;
        self.sent_bytes += message.bytes;
        self.last = at;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(params: SteadyParams) -> SteadySource {
        SteadySource::new(params, Stream::new(3, "steady"))
    }

    const PARAMS: SteadyParams = SteadyParams {
        message_bytes: 1000,
        total_bytes: None,
        pace: Pace::Greedy,
        random: false,
        start: Time::from_us(5),
        stop: None,
    };

    #[test]
    fn a_greedy_flow_always_has_data_and_ends_at_its_size_or_stop() {
        let mut greedy = source(SteadyParams { total_bytes: Some(2500), ..PARAMS });
        let mut sizes = Vec::new();
        while let Some(message) = greedy.next_message(Time::from_us(9)) {
            assert_eq!(message.at, Time::from_us(9));
            sizes.push(message.bytes);
        }
        assert_eq!(sizes, [1000, 1000, 500]);
        let mut stopped = source(SteadyParams { stop: Some(Time::from_us(10)), ..PARAMS });
        assert_eq!(stopped.next_message(Time::ZERO).unwrap().at, Time::from_us(5), "the first waits for the start");
        assert!(stopped.next_message(Time(9_999_999)).is_some());
        assert!(stopped.next_message(Time::from_us(10)).is_none());
    }

    #[test]
    fn a_rate_is_exact_in_the_long_run() {
        let pace = Pace::Rate(Rate(3_000_000_000));
        let mut source = source(SteadyParams { pace, ..PARAMS });
        let messages: Vec<Message> = (0..3_001).map(|_| source.next_message(Time::ZERO).unwrap()).collect();
        assert_eq!(messages[1].at, Time::from_us(5) + Time(2_666_666));
        assert_eq!(messages[3000].at, Time::from_us(5) + Time::from_ms(8), "3 MB at 3 Gb/s");
    }

    #[test]
    fn a_random_pace_has_its_mean_and_replays_by_its_seed() {
        let params = SteadyParams { pace: Pace::Every(Time::from_us(10)), random: true, ..PARAMS };
        let times = || {
            let mut source = source(params);
            (0..10_000).map(|_| source.next_message(Time::ZERO).unwrap().at).collect::<Vec<_>>()
        };
        let first = times();
        assert!(first.is_sorted());
        assert!((97_000..103_000).contains(&(first[9_999].0 / 1_000_000)), "{}", first[9_999]);
        assert_eq!(first, times());
    }
}
