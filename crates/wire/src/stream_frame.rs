// SPDX-License-Identifier: Apache-2.0
//! The framing of messages in a TCP stream: an 8-byte header before each, zeros after it up to a multiple of 8.
//! Promise: a damaged header is detected, and the reader finds the next intact one.
//! Source: ours; docs/fragments.md, "In a TCP stream".
//!
//! ```text
//! length 4 | length xor "PSTL" 4 | message `length` | zeros 0..7
//! ```

/// Bytes of the header, and what everything is a multiple of.
pub const STREAM_HEADER_LEN: usize = 8;
const MAGIC: u32 = u32::from_le_bytes(*b"PSTL");

/// The header of a message of `len` bytes.
pub fn stream_header(len: u32) -> [u8; STREAM_HEADER_LEN] {
    let mut header = [0; STREAM_HEADER_LEN];
    header[..4].copy_from_slice(&len.to_le_bytes());
    header[4..].copy_from_slice(&(len ^ MAGIC).to_le_bytes());
    header
}

/// The length in a header; none if it is not a valid header.
pub fn read_stream_header(header: [u8; STREAM_HEADER_LEN]) -> Option<u32> {
    let [a, b, c, d, e, f, g, h] = header;
    let len = u32::from_le_bytes([a, b, c, d]);
    (u32::from_le_bytes([e, f, g, h]) == len ^ MAGIC).then_some(len)
}

/// The first bytes of a [refusal](stream_refusal).
const REFUSAL: &[u8; 4] = b"PSTR";
/// Bytes of a refusal at most: one short segment.
pub const STREAM_REFUSAL_LEN: usize = 400;

/// What a receiver writes before it ends a stream by RST because it cannot take a message: four letters and a sentence
/// with the reason. It writes nothing else.
pub fn stream_refusal(why: &str) -> impl Iterator<Item = u8> + '_ {
    REFUSAL.iter().copied().chain(why.bytes()).take(STREAM_REFUSAL_LEN)
}

/// The reason in what a receiver has written; none if that is something else.
pub fn read_stream_refusal(data: &[u8]) -> Option<&str> {
    let why = data.strip_prefix(REFUSAL)?;
    core::str::from_utf8(why).ok().filter(|why| !why.is_empty() && !why.contains(char::is_control))
}

/// Zeros after a message of `len` bytes.
pub fn stream_padding(len: usize) -> usize {
    len.wrapping_neg() % STREAM_HEADER_LEN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_its_length_and_no_flipped_bit_is_taken_for_one() {
        for len in [0, 1, 40, 65_576, u32::MAX] {
            let header = stream_header(len);
            assert_eq!(read_stream_header(header), Some(len));
            for bit in 0..64 {
                let mut damaged = header;
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read_stream_header(damaged), None);
            }
        }
        let long = "x".repeat(1000);
        for (why, read) in [("slots of 64 bytes", "slots of 64 bytes"), (&long, &long[..STREAM_REFUSAL_LEN - 4])] {
            let refusal: std::vec::Vec<u8> = stream_refusal(why).collect();
            assert_eq!(read_stream_refusal(&refusal), Some(read));
        }
        for other in [&b"PSTR"[..], b"PSTLabc", b"PSTRa\x1b[2J", b"PSTR\xff"] {
            assert_eq!(read_stream_refusal(other), None);
        }
        assert_eq!(read_stream_header([0; 8]), None);
        assert_eq!([0, 1, 7, 8, 9].map(stream_padding), [0, 7, 1, 0, 7]);
    }
}
