// SPDX-License-Identifier: Apache-2.0
//! The series of a trace: one for each node, channel and metric, numbered as they come.
//! Promise: samples come in the same order interval after interval, so a number costs a comparison and no hashing.

use std::collections::HashMap;

/// What a value belongs to, by the numbers of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Series {
    pub node: u16,
    pub channel: u16,
    pub metric: u16,
}

/// All series met so far.
#[derive(Debug, Default)]
pub struct SeriesTable {
    known: Vec<Series>,
    numbers: HashMap<Series, u32>,
    /// Of each series, which came after it the last time.
    next: Vec<u32>,
    last: usize,
}

impl SeriesTable {
    /// All series by number.
    pub fn known(&self) -> &[Series] {
        &self.known
    }

    #[inline]
    pub fn number(&mut self, series: Series) -> u32 {
        if let Some(guess) = self.next.get(self.last).copied() {
            if self.known[guess as usize] == series {
                self.last = guess as usize;
                return guess;
            }
        }
        self.look_up(series)
    }

    #[cold]
    fn look_up(&mut self, series: Series) -> u32 {
        let number = *self.numbers.entry(series).or_insert(self.known.len() as u32);
        if number as usize == self.known.len() {
            self.known.push(series);
            self.next.push(0);
        }
        self.next[self.last] = number;
        self.last = number as usize;
        number
    }
}
