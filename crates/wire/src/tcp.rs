// SPDX-License-Identifier: Apache-2.0
//! A TCP segment over IPv4: addressing, sequence numbers, options of a SYN, SACK blocks, payload.
//! Emitting computes the real checksums; parsing checks both checksums and every length. Options other than MSS, window
//! scale and SACK are skipped, because they were never negotiated.
//! Sources: RFC 9293 (segment, checksum, MSS), RFC 2018 (SACK), RFC 7323 (window scale, which the endpoints apply).
//! Why no crate is used: `ethernet.rs`.

use crate::bytesio::{be16, be32, put16, put32};
use crate::error::ParseError;
use crate::ethernet;
use crate::ethernet::{EthernetView, MacAddr};
use crate::ipv4::Ecn;
use crate::ipv4::{self, Ipv4Repr, Ipv4View};
use crate::payload::Payload;
use bytes::{Bytes, BytesMut};
use core::net::Ipv4Addr;

/// Offsets of the fields, in bytes.
mod at {
    pub const SRC_PORT: usize = 0;
    pub const DST_PORT: usize = 2;
    pub const SEQ: usize = 4;
    pub const ACK: usize = 8;
    pub const DATA_OFFSET: usize = 12;
    pub const FLAGS: usize = 13;
    pub const WINDOW: usize = 14;
}

pub(crate) const PROTOCOL: u8 = 6;
const LEN: usize = 20;
const TCP_AT: usize = ethernet::LEN + ipv4::LEN;
const CHECKSUM_AT: usize = 16;
const KIND_END: u8 = 0;
const KIND_NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK: u8 = 5;

/// The control bits (RFC 9293 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Abort.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// Give the data to the user at once.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement number counts.
    pub const ACK: TcpFlags = TcpFlags(0x10);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    pub const fn with(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

/// Up to four ranges that arrived out of order, the newest first (RFC 2018 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// The number that fits after a header without other options.
    pub const MAX: usize = 4;

    /// Adds a block from its first sequence number to the one after its last; false if there are already four.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        let Some(block) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *block = (start, end);
        self.len += 1;
        true
    }

    /// The blocks, the newest first.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Bytes of the option with the two NOPs that align it.
    fn option_len(&self) -> usize {
        match self.len {
            0 => 0,
            len => 4 + 8 * usize::from(len),
        }
    }
}

/// The options that a SYN negotiates with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SynOptions {
    /// Payload bytes of a segment that its sender takes at most (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Shift of the windows in its sender's later headers, as in the option: 0 to 255 (RFC 7323 section 2.2).
    pub window_scale: Option<u8>,
    /// An option had a length that it cannot have; those after it were not read (RFC 9293 section 3.1, MUST-7).
    pub malformed: bool,
}

impl SynOptions {
    fn len(&self) -> usize {
        4 * usize::from(self.mss.is_some()) + 4 * usize::from(self.window_scale.is_some())
    }

    fn write(&self, options: &mut [u8]) {
        let mut at = 0;
        if let Some(mss) = self.mss {
            options[..2].copy_from_slice(&[KIND_MSS, 4]);
            put16(options, 2, mss);
            at = 4;
        }
        if let Some(shift) = self.window_scale {
            options[at..at + 4].copy_from_slice(&[KIND_NOP, KIND_WINDOW_SCALE, 3, shift]);
        }
    }
}

/// A TCP segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpPacket {
    /// Destination MAC.
    pub eth_dst: MacAddr,
    /// Source MAC.
    pub eth_src: MacAddr,
    /// Source address.
    pub ip_src: Ipv4Addr,
    /// Destination address.
    pub ip_dst: Ipv4Addr,
    /// Differentiated services code point, 0 .. 63.
    pub dscp: u8,
    /// Congestion notification.
    pub ecn: Ecn,
    /// Time to live.
    pub ttl: u8,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte of payload.
    pub seq: u32,
    /// Next sequence number expected of the other side.
    pub ack: u32,
    /// Control bits.
    pub flags: TcpFlags,
    /// Receive window as in the header, not scaled.
    pub window: u16,
    /// Options of a SYN.
    pub options: SynOptions,
    /// The blocks that arrived out of order; not written together with the options of a SYN, which has no blocks.
    pub sack: SackBlocks,
    /// Payload.
    pub payload: Payload,
}

impl TcpPacket {
    /// Parses an Ethernet frame that carries TCP over IPv4; the payload is a slice of `frame`.
    /// Bytes after the IP packet (Ethernet padding) are ignored.
    ///
    /// # Errors
    /// `Truncated`, `BadLength`, `BadIpChecksum`, `IpOptions`, `Fragmented`, or `BadTcpChecksum`, the last one checked.
    pub fn parse(frame: &Bytes) -> Result<Self, ParseError> {
        Self::parse_with(frame, true)
    }

    /// The same of a frame whose TCP checksum is not computed yet: one from this machine, which leaves that to the
    /// network card (`TP_STATUS_CSUMNOTREADY`).
    ///
    /// # Errors
    /// As [`TcpPacket::parse`], without `BadTcpChecksum`.
    pub fn parse_offloaded(frame: &Bytes) -> Result<Self, ParseError> {
        Self::parse_with(frame, false)
    }

    fn parse_with(frame: &Bytes, checked: bool) -> Result<Self, ParseError> {
        let eth = EthernetView::new_checked(frame)?;
        let ip = Ipv4View::new_checked(eth.payload())?;
        let repr = ip.checked_repr()?;
        let end = ethernet::LEN + ip.total_len();
        let segment = frame.get(TCP_AT..end).unwrap_or(&[]);
        if segment.len() < LEN {
            return Err(ParseError::Truncated { layer: "TCP", needed: LEN, available: segment.len() });
        }
        let header_len = usize::from(segment[at::DATA_OFFSET] >> 4) * 4;
        if header_len < LEN || header_len > segment.len() {
            return Err(ParseError::BadLength { layer: "TCP", field: header_len, actual: segment.len() });
        }
        let (found, computed) = (be16(segment, CHECKSUM_AT), checksum(repr.src, repr.dst, segment));
        if checked && found != computed {
            return Err(ParseError::BadTcpChecksum { found, computed });
        }
        let (options, sack) = read_options(&segment[LEN..header_len]);
        Ok(TcpPacket {
            eth_dst: eth.dst(),
            eth_src: eth.src(),
            ip_src: repr.src,
            ip_dst: repr.dst,
            dscp: repr.dscp,
            ecn: repr.ecn,
            ttl: repr.ttl,
            src_port: be16(segment, at::SRC_PORT),
            dst_port: be16(segment, at::DST_PORT),
            seq: be32(segment, at::SEQ),
            ack: be32(segment, at::ACK),
            flags: TcpFlags(segment[at::FLAGS]),
            window: be16(segment, at::WINDOW),
            options,
            sack,
            payload: Payload::Bytes(frame.slice(TCP_AT + header_len..end)),
        })
    }

    fn header_len(&self) -> usize {
        LEN + match self.options.len() {
            0 => self.sack.option_len(),
            len => len,
        }
    }

    /// Bytes from the destination MAC to the last byte of payload.
    pub fn frame_len(&self) -> usize {
        TCP_AT + self.header_len() + self.payload.len()
    }

    /// The frame as bytes, without FCS and padding, with its real checksums; a virtual payload becomes zeros.
    pub fn emit(&self) -> Bytes {
        let mut frame = BytesMut::zeroed(self.frame_len());
        let ip_len = frame.len() - ethernet::LEN;
        self.write_headers(&mut frame, ip_len as u16);
        let segment = &mut frame[TCP_AT..];
        if let Payload::Bytes(bytes) = &self.payload {
            segment[self.header_len()..].copy_from_slice(bytes);
        }
        let sum = checksum(self.ip_src, self.ip_dst, segment);
        put16(segment, CHECKSUM_AT, sum);
        frame.freeze()
    }

    /// The headers alone, written to the front of `frame`, for a card that computes the checksum and cuts the payload
    /// into segments; returns their length. The checksum field holds the sum over the pseudo-header, from which the
    /// card goes on.
    ///
    /// # Panics
    /// `frame` has less than 114 bytes, or the packet is longer than IPv4 allows.
    pub fn emit_headers(&self, frame: &mut [u8]) -> usize {
        let ip_len = self.frame_len() - ethernet::LEN;
        self.write_headers(frame, u16::try_from(ip_len).expect("an IPv4 packet has less than 2^16 bytes"));
        let sum = pseudo_sum(self.ip_src, self.ip_dst, ip_len - ipv4::LEN);
        put16(&mut frame[TCP_AT..], CHECKSUM_AT, fold(sum));
        TCP_AT + self.header_len()
    }

    fn write_headers(&self, frame: &mut [u8], ip_len: u16) {
        ethernet::write(frame, self.eth_dst, self.eth_src, ethernet::ETHERTYPE_IPV4);
        let ip = Ipv4Repr { src: self.ip_src, dst: self.ip_dst, dscp: self.dscp, ecn: self.ecn, ttl: self.ttl };
        ip.write(&mut frame[ethernet::LEN..], PROTOCOL, ip_len);
        let segment = &mut frame[TCP_AT..];
        put16(segment, at::SRC_PORT, self.src_port);
        put16(segment, at::DST_PORT, self.dst_port);
        put32(segment, at::SEQ, self.seq);
        put32(segment, at::ACK, self.ack);
        segment[at::DATA_OFFSET] = (self.header_len() as u8 / 4) << 4;
        segment[at::FLAGS] = self.flags.0;
        put16(segment, at::WINDOW, self.window);
        match self.options.len() {
            0 => self.write_sack(&mut segment[LEN..]),
            _ => self.options.write(&mut segment[LEN..]),
        }
    }

    fn write_sack(&self, options: &mut [u8]) {
        let blocks = self.sack.as_slice();
        if blocks.is_empty() {
            return;
        }
        options[..4].copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_SACK, 2 + 8 * blocks.len() as u8]);
        for (n, (start, end)) in blocks.iter().enumerate() {
            put32(options, 4 + 8 * n, *start);
            put32(options, 8 + 8 * n, *end);
        }
    }
}

/// The options; those after one with an invalid length are not read.
fn read_options(mut options: &[u8]) -> (SynOptions, SackBlocks) {
    let (mut syn, mut sack) = (SynOptions::default(), SackBlocks::default());
    while let [kind, rest @ ..] = options {
        let len = match (*kind, rest) {
            (KIND_END, _) => break,
            (KIND_NOP, _) => 1,
            (_, [len, ..]) => usize::from(*len),
            (_, []) => 0,
        };
        let fits = (1..=options.len()).contains(&len) && (len >= 2 || *kind == KIND_NOP);
        let right = match *kind {
            KIND_MSS => len == 4,
            KIND_WINDOW_SCALE => len == 3,
            _ => true,
        };
        if !(fits && right) {
            syn.malformed = true;
            break;
        }
        match *kind {
            KIND_MSS => syn.mss = Some(be16(options, 2)),
            KIND_WINDOW_SCALE => syn.window_scale = Some(options[2]),
            KIND_SACK => {
                for block in options[2..len].chunks_exact(8) {
                    sack.push(be32(block, 0), be32(block, 4));
                }
            }
            _ => {}
        }
        options = &options[len..];
    }
    (syn, sack)
}

/// The checksum over pseudo-header and segment, its own field counted as zero (RFC 9293 section 3.1).
fn checksum(src: Ipv4Addr, dst: Ipv4Addr, segment: &[u8]) -> u16 {
    // Four bytes at a time: a sum of ones' complement may be folded at its end (RFC 1071 section 2).
    let (words, rest) = segment.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let word = |bytes: &[u8; 4]| u64::from(u32::from_be_bytes(*bytes));
    let sum: u64 = words.iter().map(word).sum::<u64>() + word(&last);
    !fold(pseudo_sum(src, dst, segment.len()) + sum - u64::from(be16(segment, CHECKSUM_AT)))
}

fn pseudo_sum(src: Ipv4Addr, dst: Ipv4Addr, len: usize) -> u64 {
    u64::from(src.to_bits()) + u64::from(dst.to_bits()) + u64::from(PROTOCOL) + len as u64
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}
