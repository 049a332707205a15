// SPDX-License-Identifier: Apache-2.0
//! The three CRCs on the wire: Ethernet FCS, RoCEv2 invariant CRC, and CRC-32C of fragments.
//! The first two share the polynomial 0x04C11DB7; the third is Castagnoli's, 0x1EDC6F41.
//! Sources: IEEE 802.3 clause 3.2.9; IBTA annex A17.3; RFC 3720 section 12.1.

use crc32fast::Hasher;

/// Frame check sequence over a frame from its destination MAC to its last byte. It is sent least
/// significant byte first: append `fcs(frame).to_le_bytes()`.
pub fn fcs(frame: &[u8]) -> u32 {
    crc32fast::hash(frame)
}

const IPV4_LEN: usize = 20;
const MASKED_LEN: usize = 8 + IPV4_LEN + 8 + 12;

/// Invariant CRC of a RoCEv2 packet given from the first byte of its IPv4 header (20 bytes, no
/// options) to the last byte in front of the ICRC. It is sent least significant byte first.
///
/// Eight bytes of ones stand for the link header of InfiniBand, and the fields a router may change
/// count as ones: TOS, TTL, both checksums and BTH byte 4.
///
/// # Panics
/// When `packet` is shorter than the 40 bytes of IPv4, UDP and BTH.
pub fn icrc(packet: &[u8]) -> u32 {
    let (headers, rest) = packet.split_at(MASKED_LEN - 8);
    let mut hasher = icrc_start(headers);
    hasher.update(rest);
    hasher.finalize()
}

/// Starts the invariant CRC with the 40 bytes of IPv4, UDP and BTH.
pub(crate) fn icrc_start(headers: &[u8]) -> Hasher {
    let mut masked = [0xFFu8; MASKED_LEN];
    masked[8..].copy_from_slice(headers);
    for offset in [1, 8, 10, 11, IPV4_LEN + 6, IPV4_LEN + 7, IPV4_LEN + 8 + 4] {
        masked[8 + offset] = 0xFF;
    }
    let mut hasher = Hasher::new();
    hasher.update(&masked);
    hasher
}

/// CRC-32C (Castagnoli) of `data`, by the processor's instruction where there is one.
#[cfg(feature = "std")]
pub fn crc32c(data: &[u8]) -> u32 {
    ::crc32c::crc32c(data)
}

/// CRC-32C (Castagnoli) of `data`, by table.
#[cfg(not(feature = "std"))]
pub fn crc32c(data: &[u8]) -> u32 {
    crc32c_table(data)
}

/// CRC-32C of two byte strings in a row, from that of each and the length of the second: the first one's is moved on by
/// as many zero bytes, by squaring (Knuth 4.6.3).
pub(crate) fn crc32c_combine(first: u32, second: u32, second_len: usize) -> u32 {
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    let times_x = |word: u32| word >> 1 ^ if word & 1 == 1 { POLYNOMIAL } else { 0 };
    let product = |a: u32, b: u32| {
        let shifted = core::iter::successors(Some(b), |b| Some(times_x(*b)));
        (0..32).zip(shifted).fold(0, |sum, (bit, b)| if a << bit >> 31 != 0 { sum ^ b } else { sum })
    };
    let byte = (0..8).fold(1 << 31, |word, _| times_x(word));
    let powers = core::iter::successors(Some(byte), |power| Some(product(*power, *power)));
    let bits = (0..usize::BITS).take_while(|bit| second_len >> bit != 0);
    bits.zip(powers).filter(|(bit, _)| second_len >> bit & 1 == 1).fold(first, |crc, (_, power)| product(crc, power))
        ^ second
}

#[cfg(any(test, not(feature = "std")))]
fn crc32c_table(data: &[u8]) -> u32 {
    const TABLE: [u32; 256] = castagnoli_table();
    !data.iter().fold(!0u32, |crc, byte| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(any(test, not(feature = "std")))]
const fn castagnoli_table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_crc_catalogue() {
        assert_eq!(fcs(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c_table(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn crcs_of_two_pieces_make_that_of_both() {
        let data: [u8; 300] = core::array::from_fn(|i| (i * 37) as u8);
        for cut in 0..=data.len() {
            let (first, second) = data.split_at(cut);
            let (a, b) = (crc32c(first), crc32c(second));
            assert_eq!(crc32c_combine(a, b, second.len()), crc32c(&data));
            assert_eq!(crc32c_combine(a, b, second.len()), ::crc32c::crc32c_combine(a, b, second.len()));
        }
    }
}
