// SPDX-License-Identifier: Apache-2.0
//! The memory layout of an AF_XDP socket: chunks for received frames.
//! Source: kernel documentation `networking/af_xdp`.

use crate::sys::Frames;

/// The kernel keeps this much of each chunk free before a frame (`XDP_PACKET_HEADROOM`).
pub(super) const HEADROOM: usize = 256;
/// Chunks that a queue has at least and at most.
const CHUNKS: std::ops::RangeInclusive<usize> = 2048..=65536;

/// How a socket's memory is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of a chunk; a frame that does not fit takes several.
    pub(super) chunk: usize,
    /// Chunks to receive into; a power of two.
    pub(super) chunks: u32,
    pub(super) several: bool,
}

impl Layout {
    pub(super) fn of(frames: Frames, queues: u32) -> Layout {
        // The kernel takes chunks of 2 KiB and of a page, and nothing larger.
        let chunk = if frames.longest + HEADROOM <= 2048 { 2048 } else { 4096 };
        let a_frame = frames.longest.div_ceil(chunk - HEADROOM);
        let chunks = (frames.count * a_frame).div_ceil(queues as usize).clamp(*CHUNKS.start(), *CHUNKS.end());
        Layout { chunk, chunks: chunks.next_power_of_two() as u32, several: a_frame > 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_mtu_4096_takes_two_chunks_and_one_of_1024_half_a_page() {
        let frames = |longest, count| Frames { longest, count };
        assert_eq!(Layout::of(frames(4177, 8192), 1), Layout { chunk: 4096, chunks: 16384, several: true });
        assert_eq!(Layout::of(frames(4177, 8192), 4), Layout { chunk: 4096, chunks: 4096, several: true });
        assert_eq!(Layout::of(frames(2129, 16384), 1), Layout { chunk: 4096, chunks: 16384, several: false });
        assert_eq!(Layout::of(frames(1105, 1 << 20), 1), Layout { chunk: 2048, chunks: 65536, several: false });
        assert_eq!(Layout::of(frames(1105, 100), 64).chunks, 2048);
    }
}
