// SPDX-License-Identifier: Apache-2.0
//! The meters and latencies of TCP streams, for metrics.
//! Source: docs/integration.md, "Meters".

use super::super::streams::halves;
use penstock_ipbus::regs::{latency, meter};
use penstock_ipbus::Access;

/// A stream's last series of messages, and the latencies of its segments since they were cleared; times in cycles.
#[derive(Debug, Clone)]
pub struct StreamMeters {
    pub bytes: u64,
    /// Time from the first byte sent to the last acknowledgement.
    pub transfer_time: u64,
    pub latency_last: u32,
    /// 0: none was measured.
    pub latency_shortest: u32,
    pub latency_longest: u32,
}

/// Accesses for one stream.
pub const ACCESSES: usize = 3;

/// Time and bytes, the high halves again; latencies.
fn of_row(row: u32) -> [Access; ACCESSES] {
    let (meters, latencies) = (meter::BASE + row * meter::STRIDE, latency::BASE + row * latency::STRIDE);
    let count = (meter::BYTES_HI - meter::TRANSFER_TIME_TOT_LO) as usize / 4 + 1;
    [
        Access::Read { address: meters + meter::TRANSFER_TIME_TOT_LO, count },
        Access::Read { address: meters + meter::TRANSFER_TIME_TOT_LO, count },
        Access::Read { address: latencies + latency::LAST, count: 3 },
    ]
}

/// Reads those of all streams of a board.
pub fn accesses(queue_pairs: u32, streams: u32) -> impl Iterator<Item = Access> {
    (queue_pairs..queue_pairs + streams).flat_map(of_row)
}

/// Those in the words that `accesses` reads.
pub fn of_words(words: &[Vec<u32>]) -> Vec<StreamMeters> {
    words.chunks_exact(ACCESSES).map(meters).collect()
}

fn meters(words: &[Vec<u32>]) -> StreamMeters {
    // The low half of the second reading lies between both readings of the high one.
    let long = |low: usize| halves(words[0][low + 1], words[1][low], words[1][low + 1]);
    let [latency_last, latency_shortest, latency_longest] = [0, 1, 2].map(|word| words[2][word]);
    StreamMeters { transfer_time: long(0), bytes: long(2), latency_last, latency_shortest, latency_longest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_stream_are_read_behind_those_of_the_queue_pairs() {
        let all: Vec<_> = accesses(2, 3).collect();
        assert_eq!(all.len(), 3 * ACCESSES);
        let first = meter::BASE + 2 * meter::STRIDE + meter::TRANSFER_TIME_TOT_LO;
        assert_eq!(all[0], Access::Read { address: first, count: 4 });
        let words = [vec![u32::MAX, 0, 5, 7], vec![3, 1, 6, 7], vec![40, 30, 50]];
        let [meters] = &of_words(&words)[..] else { panic!("one stream") };
        assert_eq!((meters.transfer_time, meters.bytes), ((1 << 32) + 3, (7 << 32) + 6));
        assert_eq!((meters.latency_last, meters.latency_shortest, meters.latency_longest), (40, 30, 50));
    }
}
