// SPDX-License-Identifier: Apache-2.0
//! The payload's rate over a window that slides with the packets.
//! Promise: integers only; a packet's payload is spread evenly over its time on the line.
//! Source: AdvCam section VI A (the emulated switch measures over 5000 cycles).

use std::collections::VecDeque;

use crate::units::{Rate, Time};

/// One packet in the window: the first and the last bit on the wire, and its payload.
#[derive(Debug, Clone, Copy)]
struct Passed {
    start: u64,
    end: u64,
    payload: u64,
}

impl Passed {
    /// Its payload after `begin`.
    fn behind(&self, begin: u64) -> u64 {
        match self.end.checked_sub(self.start.max(begin)) {
            Some(inside) if inside > 0 => {
                (u128::from(self.payload) * u128::from(inside) / u128::from(self.end - self.start)) as u64
            }
            _ => 0,
        }
    }
}

/// The packets of the last `length`.
#[derive(Debug, Clone)]
pub(crate) struct RateWindow {
    length: Time,
    packets: VecDeque<Passed>,
}

impl RateWindow {
    pub(crate) fn new(length: Time) -> Self {
        Self { length, packets: VecDeque::new() }
    }

    /// A packet with `payload` bytes was on the line from `start` to `end`, later than those before. Returns the rate
    /// over the window that ends with it.
    pub(crate) fn pass(&mut self, start: Time, end: Time, payload: usize) -> Rate {
        let begin = end.saturating_sub(self.length).as_ps();
        self.packets.push_back(Passed { start: start.as_ps(), end: end.as_ps(), payload: payload as u64 });
        while self.packets.front().is_some_and(|first| first.end <= begin) {
            self.packets.pop_front();
        }
        self.since(begin)
    }

    /// The rate over the window that ends at `now`: 0 when nothing has passed for as long.
    pub(crate) fn until(&self, now: Time) -> Rate {
        self.since(now.saturating_sub(self.length).as_ps())
    }

    fn since(&self, begin: u64) -> Rate {
        let payload: u64 = self.packets.iter().map(|packet| packet.behind(begin)).sum();
        let bits = u128::from(payload) * 8 * 1_000_000_000_000;
        Rate((bits / u128::from(self.length.as_ps().max(1))) as u64)
    }
}
