// SPDX-License-Identifier: Apache-2.0
//! IPv4 header as RoCEv2 and TCP use it: 20 bytes, no options, never fragmented.
//! Sources: RFC 791; RFC 3168 (ECN); IBTA annex A17.3. Why no crate is used: `ethernet.rs`.

use crate::bytesio::{be16, put16};
use crate::error::ParseError;
use core::net::Ipv4Addr;

/// Offsets of the fields, in bytes.
mod at {
    pub const VERSION_IHL: usize = 0;
    pub const DSCP_ECN: usize = 1;
    pub const TOTAL_LENGTH: usize = 2;
    pub const IDENTIFICATION: usize = 4;
    pub const FLAGS_OFFSET: usize = 6;
    pub const TTL: usize = 8;
    pub const PROTOCOL: usize = 9;
    pub const CHECKSUM: usize = 10;
}

pub(crate) const LEN: usize = 20;
const FLAG_DF: u16 = 0x4000;
const FLAG_MF_AND_OFFSET: u16 = 0x3FFF;

/// Explicit congestion notification (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// 00: not capable; a congested switch may drop it, never mark it.
    #[default]
    NotEct,
    /// 01: capable.
    Ect1,
    /// 10: capable; what RoCEv2 senders use.
    Ect0,
    /// 11: congestion experienced.
    Ce,
}

impl Ecn {
    /// Takes the low two bits of TOS.
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a switch may mark the packet (or already has).
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// The IPv4 fields that are left open; id 0, DF set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv4Repr {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Differentiated services code point, 0 .. 63.
    pub dscp: u8,
    /// Congestion notification.
    pub ecn: Ecn,
    /// Time to live.
    pub ttl: u8,
}

/// An IPv4 header over bytes known to be there.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a>(&'a [u8]);

impl<'a> Ipv4View<'a> {
    /// Checks that 20 bytes are there; nothing else.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn new_checked(data: &'a [u8]) -> Result<Self, ParseError> {
        if data.len() < LEN {
            return Err(ParseError::Truncated { layer: "IPv4", needed: LEN, available: data.len() });
        }
        Ok(Ipv4View(data))
    }

    /// Version field.
    pub fn version(&self) -> u8 {
        self.0[at::VERSION_IHL] >> 4
    }

    /// Header length in bytes, 0 .. 60, as the header claims.
    pub fn header_len(&self) -> usize {
        usize::from(self.0[at::VERSION_IHL] & 15) * 4
    }

    /// Protocol after the header.
    pub fn protocol(&self) -> u8 {
        self.0[at::PROTOCOL]
    }

    /// Offset of this fragment in the datagram, in units of 8 bytes.
    pub fn fragment_offset(&self) -> u16 {
        be16(self.0, at::FLAGS_OFFSET) & 0x1FFF
    }

    /// Total length field.
    pub fn total_len(&self) -> usize {
        usize::from(be16(self.0, at::TOTAL_LENGTH))
    }

    /// Checks everything that is demanded of the header and returns its open fields.
    ///
    /// # Errors
    /// `IpVersion`, `IpOptions`, `BadIpChecksum`, `Fragmented`, or `BadLength` when the packet is longer than the
    /// frame.
    pub fn checked_repr(&self) -> Result<Ipv4Repr, ParseError> {
        let data = self.0;
        if self.version() != 4 {
            return Err(ParseError::IpVersion { version: self.version() });
        }
        if self.header_len() != LEN {
            return Err(ParseError::IpOptions { header_len: self.header_len() });
        }
        let (found, computed) = (be16(data, at::CHECKSUM), checksum(&data[..LEN]));
        if found != computed {
            return Err(ParseError::BadIpChecksum { found, computed });
        }
        if be16(data, at::FLAGS_OFFSET) & FLAG_MF_AND_OFFSET != 0 {
            return Err(ParseError::Fragmented { src: addr_at(data, 12) });
        }
        if self.total_len() > data.len() {
            return Err(ParseError::BadLength { layer: "IPv4", field: self.total_len(), actual: data.len() });
        }
        Ok(Ipv4Repr {
            src: addr_at(data, 12),
            dst: addr_at(data, 16),
            dscp: data[at::DSCP_ECN] >> 2,
            ecn: Ecn::from_bits(data[at::DSCP_ECN]),
            ttl: data[at::TTL],
        })
    }
}

impl Ipv4Repr {
    pub(crate) fn write(&self, data: &mut [u8], protocol: u8, total_len: u16) {
        data[at::VERSION_IHL] = 0x45;
        data[at::DSCP_ECN] = self.dscp << 2 | self.ecn.bits();
        put16(data, at::TOTAL_LENGTH, total_len);
        put16(data, at::IDENTIFICATION, 0);
        put16(data, at::FLAGS_OFFSET, FLAG_DF);
        data[at::TTL] = self.ttl;
        data[at::PROTOCOL] = protocol;
        data[12..16].copy_from_slice(&self.src.octets());
        data[16..20].copy_from_slice(&self.dst.octets());
        let sum = checksum(&data[..LEN]);
        put16(data, at::CHECKSUM, sum);
    }
}

fn addr_at(data: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(data[at], data[at + 1], data[at + 2], data[at + 3])
}

/// RFC 791 checksum of a header, its checksum field counted as zero.
fn checksum(header: &[u8]) -> u16 {
    let words = (0..header.len() / 2).filter(|word| *word != 5);
    let sum: u32 = words.map(|word| u32::from(be16(header, word * 2))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}
