// SPDX-License-Identifier: Apache-2.0
//! The ranges that the receiver has reported by SACK, and the lost and in-flight data that follow from them.
//! Source: RFC 6675 section 4 (IsLost, SetPipe, NextSeg), on ranges instead of single octets.

/// Ranges of offsets, sorted, apart from each other, above the cumulative acknowledgement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    ranges: Vec<(u64, u64)>,
    /// Everything below was sent again in this recovery (HighRxt).
    pub(crate) high_rxt: u64,
}

/// DupThresh of RFC 6675.
const DUP_THRESHOLD: usize = 3;

impl Scoreboard {
    /// Notes a block; false if all of it was known.
    pub(crate) fn add(&mut self, start: u64, end: u64) -> bool {
        if start >= end || self.ranges.iter().any(|(from, to)| *from <= start && end <= *to) {
            return false;
        }
        let first = self.ranges.partition_point(|(_, to)| *to < start);
        let past = self.ranges.partition_point(|(from, _)| *from <= end);
        let merged =
            self.ranges[first..past].iter().fold((start, end), |(a, b), (from, to)| (a.min(*from), b.max(*to)));
        self.ranges.splice(first..past, [merged]);
        true
    }

    /// Discards ranges below the cumulative acknowledgement.
    pub(crate) fn acknowledge(&mut self, una: u64) {
        let gone = self.ranges.partition_point(|(_, to)| *to <= una);
        self.ranges.drain(..gone);
        if let Some((from, _)) = self.ranges.first_mut() {
            *from = (*from).max(una);
        }
        self.high_rxt = self.high_rxt.max(una);
    }

    /// The first offset at or above `at` that was not reported.
    pub(crate) fn skip_reported(&self, at: u64) -> u64 {
        self.ranges.iter().find(|(from, to)| *from <= at && at < *to).map_or(at, |(_, to)| *to)
    }

    /// Where the next reported range above `at` begins.
    pub(crate) fn next_reported(&self, at: u64) -> Option<u64> {
        self.ranges.iter().map(|(from, _)| *from).find(|from| *from > at)
    }

    /// Everything unreported below this offset is lost: three ranges, or more than two segments, lie above it.
    fn lost_below(&self, mss: u64) -> u64 {
        let count = self.ranges.len();
        let by_ranges = count.checked_sub(DUP_THRESHOLD).map_or(0, |at| self.ranges[at].0);
        let mut above = 0;
        let mut by_bytes = 0;
        for (from, to) in self.ranges.iter().rev() {
            above += to - from;
            if above > (DUP_THRESHOLD as u64 - 1) * mss {
                by_bytes = *from;
                break;
            }
        }
        by_ranges.max(by_bytes)
    }

    pub(crate) fn is_lost(&self, at: u64, mss: u64) -> bool {
        at < self.lost_below(mss) && self.skip_reported(at) == at
    }

    /// The next lost range that was not sent again yet: at most one segment of it.
    pub(crate) fn next_lost(&self, una: u64, mss: u64) -> Option<(u64, u64)> {
        let start = self.skip_reported(self.high_rxt.max(una));
        let end = self.lost_below(mss).min(self.next_reported(start)?);
        (start < end).then(|| (start, (end - start).min(mss)))
    }

    /// Bytes that are still in the network: sent, neither reported nor lost; and those sent again.
    pub(crate) fn pipe(&self, una: u64, sent: u64, mss: u64) -> u64 {
        let lost_below = self.lost_below(mss).max(una);
        let unreported = |from: u64, to: u64| -> u64 {
            let covered: u64 = self.ranges.iter().map(|(a, b)| (*b).min(to).saturating_sub((*a).max(from))).sum();
            to.saturating_sub(from) - covered
        };
        unreported(lost_below.min(sent), sent) + unreported(una, self.high_rxt.clamp(una, lost_below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_merge_and_are_forgotten_below_the_acknowledgement() {
        let mut board = Scoreboard::default();
        assert!(board.add(20, 30) && board.add(40, 50) && board.add(60, 70));
        assert!(!board.add(22, 28));
        assert!(board.add(30, 40));
        assert_eq!(board.ranges, [(20, 50), (60, 70)]);
        board.acknowledge(25);
        assert_eq!(board.ranges, [(25, 50), (60, 70)]);
        assert_eq!((board.skip_reported(30), board.skip_reported(50)), (50, 50));
    }

    #[test]
    fn three_ranges_or_more_than_two_segments_above_make_a_loss() {
        let mut board = Scoreboard::default();
        board.add(20, 40);
        assert!(!board.is_lost(10, 10));
        board.add(50, 60);
        assert!(board.is_lost(10, 10)); // 30 bytes above, more than two segments of 10
        assert!(!board.is_lost(45, 10));
        let mut single = Scoreboard::default();
        [(20, 21), (30, 31), (40, 41)].iter().for_each(|(a, b)| assert!(single.add(*a, *b)));
        assert!(single.is_lost(10, 10) && !single.is_lost(25, 10));
    }

    #[test]
    fn the_pipe_holds_what_is_neither_reported_nor_lost_and_what_was_sent_again() {
        let mut board = Scoreboard::default();
        board.add(20, 50); // of 0 .. 100, segments of 10
        assert_eq!(board.pipe(0, 100, 10), 50); // 0..20 lost
        assert_eq!(board.next_lost(0, 10), Some((0, 10)));
        board.high_rxt = 10;
        assert_eq!(board.pipe(0, 100, 10), 60);
        assert_eq!(board.next_lost(0, 10), Some((10, 10)));
        board.high_rxt = 20;
        assert_eq!(board.next_lost(0, 10), None);
    }
}
