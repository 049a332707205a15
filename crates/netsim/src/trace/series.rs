// SPDX-License-Identifier: Apache-2.0
//! The series of a trace: one for each node, channel and metric, numbered as they come.
//! Promise: samples come in the same order in every interval, so a lookup is one comparison and no hashing.

use std::collections::HashMap;

/// The owner of a value, by the numbers of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Series {
    pub node: u16,
    pub channel: u16,
    pub metric: u16,
}

/// Which series came after another one the last time, as a node names it: a name is a literal, so its place stands for
/// it.
#[derive(Debug, Clone, Copy, Default)]
struct Follower {
    node: u16,
    channel: u16,
    len: u16,
    number: u32,
    address: usize,
}

/// All series met so far.
#[derive(Debug, Default)]
pub struct SeriesTable {
    all: Vec<Series>,
    numbers: HashMap<Series, u32>,
    /// A follower for each series.
    followers: Vec<Follower>,
    last: usize,
}

impl SeriesTable {
    /// All series by number.
    pub fn all(&self) -> &[Series] {
        &self.all
    }

    /// The series that came after the one before it the last time, if it is this one.
    #[inline]
    pub fn following(&mut self, node: u16, channel: u16, metric: &'static str) -> Option<u32> {
        let next = self.followers.get(self.last)?;
        let same = next.address == metric.as_ptr() as usize
            && usize::from(next.len) == metric.len()
            && (next.node, next.channel) == (node, channel);
        same.then(|| {
            self.last = next.number as usize;
            next.number
        })
    }

    /// Any series; it will be expected where it came.
    pub fn look_up(&mut self, series: Series, metric: &'static str) -> u32 {
        let number = *self.numbers.entry(series).or_insert(self.all.len() as u32);
        if number as usize == self.all.len() {
            self.all.push(series);
            self.followers.push(Follower::default());
        }
        self.followers[self.last] = Follower {
            node: series.node,
            channel: series.channel,
            // No metric has a name as long; one that had would only never be expected.
            len: metric.len() as u16,
            number,
            address: metric.as_ptr() as usize,
        };
        self.last = number as usize;
        number
    }
}
