// SPDX-License-Identifier: Apache-2.0
//! The three checksums of the wire: Ethernet FCS, RoCEv2 invariant CRC, and CRC-32C of fragments.
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
}
