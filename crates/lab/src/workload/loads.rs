// SPDX-License-Identifier: Apache-2.0
//! What single boards send of events, where it differs from their table: sizes by rank, by chance, or measured, and
//! boards that have a fragment of some events only.
//! Promise: a fragment depends on the seed, its event and its board alone, whatever is drawn before it; integers only.
//! Source: Zipf's law, with the size of rank r in proportion to 1 / r^exponent.

use std::rc::Rc;

use penstock_netsim::Stream;

use super::fixed_point::{exp2_negative, log2};
use crate::units::Probability;

/// What one board sends.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardLoad {
    /// That it has a fragment of an event.
    pub probability: Probability,
    pub bytes: FragmentBytes,
}

/// How long its fragments are.
#[derive(Debug, Clone, PartialEq)]
pub enum FragmentBytes {
    /// The size that the table gives.
    OfTable,
    Fixed(u64),
    /// Drawn for each fragment.
    Drawn(Rc<SizeTable>),
}

/// The loads of all boards.
#[derive(Debug, Clone, PartialEq)]
pub struct Loads {
    key: u64,
    boards: Vec<BoardLoad>,
}

impl Loads {
    pub fn new(seed: u64, boards: Vec<BoardLoad>) -> Self {
        Loads { key: Stream::new(seed, "fragments").next_u64(), boards }
    }

    pub fn boards(&self) -> usize {
        self.boards.len()
    }

    /// Bytes of a board's fragment of an event, 0 if it has none; `of_table` says how many its table gives.
    pub fn bytes(&self, event: usize, board: usize, of_table: impl FnOnce() -> u64) -> u64 {
        let load = &self.boards[board];
        let number = (event as u64).wrapping_mul(self.boards.len() as u64).wrapping_add(board as u64);
        let mut random = Stream::new(self.key.wrapping_add(number), "");
        if !random.happens(load.probability) {
            return 0;
        }
        match &load.bytes {
            FragmentBytes::OfTable => of_table(),
            FragmentBytes::Fixed(bytes) => *bytes,
            FragmentBytes::Drawn(sizes) => sizes.draw(&mut random),
        }
    }
}

/// Sizes, each as likely as it is frequent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeTable {
    bytes: Vec<u64>,
    /// How often this size and those before it were measured.
    counts: Vec<u64>,
}

/// A table of sizes that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeTableError {
    #[error("line 1 is `{0}`: allowed is bytes, or bytes,count")]
    Header(String),
    #[error("line {line} has {found} columns, the first line has {expected}")]
    Columns { line: usize, found: usize, expected: usize },
    #[error("line {line}: `{value}` is no whole number; allowed are 0 to {most}")]
    Number { line: usize, value: String, most: u64 },
    #[error("no size above 0 is there")]
    Empty,
}

impl SizeTable {
    /// The longest RDMA message.
    const LONGEST: u64 = 1 << 31;

    /// Sizes that are equally likely.
    pub fn uniform(bytes: Vec<u64>) -> Self {
        let counts = (1..=bytes.len() as u64).collect();
        SizeTable { bytes, counts }
    }

    /// Reads comma-separated values: a header `bytes` or `bytes,count`, then a size on each line, and how often it was
    /// measured. A size of 0 stands for a board without a fragment.
    pub fn from_csv(text: &str) -> Result<Self, SizeTableError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, header) = lines.next().ok_or(SizeTableError::Empty)?;
        let columns: Vec<&str> = header.split(',').map(str::trim).collect();
        if columns != ["bytes"] && columns != ["bytes", "count"] {
            return Err(SizeTableError::Header(header.to_owned()));
        }
        let mut table = SizeTable { bytes: Vec::new(), counts: Vec::new() };
        for (index, line) in lines {
            let (line, words) = (index + 1, line.split(',').map(str::trim).collect::<Vec<_>>());
            if words.len() != columns.len() {
                return Err(SizeTableError::Columns { line, found: words.len(), expected: columns.len() });
            }
            let number = |value: &str, most| {
                let number = value.parse::<u64>().ok().filter(|number| *number <= most);
                number.ok_or_else(|| SizeTableError::Number { line, value: value.to_owned(), most })
            };
            let count = words.get(1).map_or(Ok(1), |count| number(count, u32::MAX.into()))?;
            table.bytes.push(number(words[0], Self::LONGEST)?);
            table.counts.push(table.counts.last().unwrap_or(&0) + count);
        }
        let mut last = 0;
        let is_there = table.bytes.iter().zip(&table.counts).any(|(bytes, count)| {
            let is_counted = *count > last;
            last = *count;
            *bytes > 0 && is_counted
        });
        if is_there {
            Ok(table)
        } else {
            Err(SizeTableError::Empty)
        }
    }

    fn draw(&self, random: &mut Stream) -> u64 {
        let drawn = random.below(self.counts.last().copied().unwrap_or(0));
        self.bytes[self.counts.partition_point(|count| *count <= drawn)]
    }
}

/// The sizes of `ranks` ranks by Zipf's law, from the largest to the smallest, with this mean; none is below 1 byte.
pub fn zipf(ranks: usize, mean: u64, exponent_milli: u64) -> Vec<u64> {
    let weight = |rank: u64| u128::from(exp2_negative(log2(rank) * exponent_milli / 1000));
    let weights: Vec<u128> = (1..=ranks as u64).map(weight).collect();
    let (all, total) = (u128::from(mean) * ranks as u128, weights.iter().sum::<u128>().max(1));
    weights.iter().map(|weight| ((all * weight + total / 2) / total).max(1) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_sizes_in_proportion_to_their_power_and_the_given_mean() {
        for (ranks, exponent) in [(7, 0.5), (256, 0.8), (64, 1.0), (16, 2.0)] {
            let sizes = zipf(ranks, 20_000, (exponent * 1000.0) as u64);
            let mean = sizes.iter().sum::<u64>() as f64 / ranks as f64;
            assert!((mean - 20_000.0).abs() < 2.0, "{mean}");
            for (rank, size) in sizes.iter().enumerate() {
                let expected = sizes[0] as f64 * ((rank + 1) as f64).powf(-exponent);
                assert!((*size as f64 - expected).abs() < 1.0 + expected * 1e-4, "{rank}: {size} against {expected}");
            }
        }
        assert_eq!(zipf(3, 1, 4000), [3, 1, 1], "no fragment is empty");
    }

    #[test]
    fn fragments_are_drawn_as_often_as_they_were_measured() {
        let sizes = SizeTable::from_csv("bytes,count\n100,1\n0,2\n5000,0\n700,5\n").unwrap();
        let always = Probability::new(1.0).unwrap();
        let load = BoardLoad { probability: always, bytes: FragmentBytes::Drawn(Rc::new(sizes)) };
        let loads = Loads::new(3, vec![load; 4]);
        let drawn: Vec<u64> = (0..20_000).map(|n| loads.bytes(n / 4, n % 4, || unreachable!())).collect();
        for (bytes, expected) in [(100, 2_500), (0, 5_000), (5_000, 0), (700, 12_500)] {
            let count = drawn.iter().filter(|drawn| **drawn == bytes).count();
            assert!(count.abs_diff(expected) < 200, "{bytes}: {count}");
        }
    }

    #[test]
    fn boards_take_part_by_their_probability_and_replay_by_the_seed_in_any_order() {
        let load = |p| BoardLoad { probability: Probability::new(p).unwrap(), bytes: FragmentBytes::OfTable };
        let loads = |seed| Loads::new(seed, vec![load(1.0), load(0.25)]);
        let bytes = |loads: &Loads, board| (0..10_000).map(|event| loads.bytes(event, board, || 9)).collect::<Vec<_>>();
        let (one, other) = (loads(5), loads(6));
        assert!(bytes(&one, 0).iter().all(|bytes| *bytes == 9));
        let present = bytes(&one, 1).iter().filter(|bytes| **bytes == 9).count();
        assert!(present.abs_diff(2_500) < 150, "{present}");
        let backwards: Vec<u64> = (0..10_000).rev().map(|event| one.bytes(event, 1, || 9)).collect();
        assert_eq!(backwards.into_iter().rev().collect::<Vec<_>>(), bytes(&one, 1));
        assert_ne!(bytes(&one, 1), bytes(&other, 1));
    }

    #[test]
    fn tables_of_sizes_that_cannot_be_drawn_from_are_refused_with_the_line() {
        let cases = ["", "size\n1\n", "bytes\n1,2\n", "bytes\n1\nx\n", "bytes\n0\n", "bytes,count\n7,0\n0,3\n"];
        let more = ["bytes,count\n7\n", "bytes\n2147483649\n"];
        let refuse = |text: &&str| SizeTable::from_csv(text).unwrap_err().to_string();
        let report: Vec<String> = cases.iter().chain(&more).map(refuse).collect();
        insta::assert_snapshot!(report.join("\n"), @r"
        no size above 0 is there
        line 1 is `size`: allowed is bytes, or bytes,count
        line 2 has 2 columns, the first line has 1
        line 3: `x` is no whole number; allowed are 0 to 2147483648
        no size above 0 is there
        no size above 0 is there
        line 2 has 1 columns, the first line has 2
        line 2: `2147483649` is no whole number; allowed are 0 to 2147483648
        ");
    }
}
