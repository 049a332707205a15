// SPDX-License-Identifier: Apache-2.0
//! A whole RoCEv2 packet over IPv4: addressing, transport headers, payload.
//! Parsing checks every layer and the ICRC and slices the payload out without copying it; emitting
//! computes the real ICRC. The opcode determines which extension headers exist.
//! Source: IBTA vol. 1, clause 9 and annex A17.

use crate::aeth::AethRepr;
use crate::bth::BthRepr;
use crate::bth::BthView;
use crate::bytesio::put16;
use crate::error::{ParseError, ReprError};
use crate::ethernet::{EthernetView, MacAddr};
use crate::ethernet::{CN_TAG_LEN, ETHERTYPE_CN_TAG};
use crate::frame_parts::{FrameParts, HEAD_MAX, ICRC_LEN};
use crate::ipv4::Ecn;
use crate::ipv4::{Ipv4Repr, Ipv4View};
use crate::opcode::CNP_RESERVED_LEN;
use crate::opcode::{Opcode, Operation};
use crate::payload::Payload;
use crate::reth::RethRepr;
use crate::udp::UdpView;
use crate::{aeth, bth, crc, ethernet, ipv4, reth, udp};
use bytes::{Bytes, BytesMut};
use core::net::Ipv4Addr;

const BTH_AT: usize = ethernet::LEN + ipv4::LEN + udp::LEN;

/// The largest payload of one packet: path MTU 4096 (IBTA 9.4).
pub const MAX_PAYLOAD: usize = 4096;

/// A RoCEv2 packet. The fields `reth`, `aeth` and `imm` are `Some` exactly when the opcode carries
/// them ([`RocePacket::validate`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RocePacket {
    /// Destination MAC.
    pub eth_dst: MacAddr,
    /// Source MAC.
    pub eth_src: MacAddr,
    /// Flow ID of the CN-TAG after the addresses; `None`: no tag.
    pub cn_tag: Option<u16>,
    /// Source address.
    pub ip_src: Ipv4Addr,
    /// Destination address.
    pub ip_dst: Ipv4Addr,
    /// Differentiated services code point, 0 .. 63.
    pub dscp: u8,
    /// Congestion notification; switches write it.
    pub ecn: Ecn,
    /// Time to live.
    pub ttl: u8,
    /// UDP source port, the flow's ECMP label.
    pub udp_sport: u16,
    /// Base transport header.
    pub bth: BthRepr,
    /// Address, key and length, in the first packet of a WRITE.
    pub reth: Option<RethRepr>,
    /// Acknowledgement.
    pub aeth: Option<AethRepr>,
    /// Immediate data, first octet on the wire in the high byte.
    pub imm: Option<u32>,
    /// Payload without padding.
    pub payload: Payload,
}

impl RocePacket {
    /// Parses an Ethernet frame, with or without a CN-TAG, that carries UDP to port 4791; the payload is a slice of
    /// `frame`.
    /// Bytes after the IP packet (Ethernet padding) are ignored.
    ///
    /// # Errors
    /// Any [`ParseError`]; the ICRC is checked last, so a bad ICRC means well-formed headers.
    pub fn parse(frame: &Bytes) -> Result<Self, ParseError> {
        let eth = EthernetView::new_checked(frame)?;
        let (cn_tag, ip_at) = ethernet::cn_tag(frame);
        let ip = Ipv4View::new_checked(&frame[ip_at..])?;
        let ip_repr = ip.checked_repr()?;
        let packet = &frame[ip_at..ip_at + ip.total_len()];
        let udp = UdpView::new_checked(packet.get(ipv4::LEN..).unwrap_or(&[]))?;
        if udp.len() != packet.len() - ipv4::LEN {
            return Err(ParseError::BadLength { layer: "UDP", field: udp.len(), actual: packet.len() - ipv4::LEN });
        }
        let bth_at = BTH_AT - ethernet::LEN;
        let bth = BthView::new_checked(&packet[bth_at..])?;
        let body = body_range(&bth, packet.len() - bth_at)?;
        check_icrc(packet)?;
        let ext = &packet[bth_at + bth::LEN..];
        let opcode = bth.opcode();
        // No opcode carries an AETH together with a RETH or immediate.
        let reth = opcode.has_reth().then(|| RethRepr::read(ext));
        let aeth = opcode.has_aeth().then(|| AethRepr::read(ext));
        let imm_at = if opcode.has_reth() { reth::LEN } else { 0 };
        let imm = opcode.has_imm().then(|| crate::bytesio::be32(ext, imm_at));
        Ok(RocePacket {
            eth_dst: eth.dst(),
            eth_src: eth.src(),
            cn_tag,
            ip_src: ip_repr.src,
            ip_dst: ip_repr.dst,
            dscp: ip_repr.dscp,
            ecn: ip_repr.ecn,
            ttl: ip_repr.ttl,
            udp_sport: udp.src_port(),
            bth: bth.repr(),
            reth,
            aeth,
            imm,
            payload: Payload::Bytes(frame.slice(ip_at + bth_at + body.start..ip_at + bth_at + body.end)),
        })
    }

    /// Checks that opcode, extension headers and payload agree.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn validate(&self) -> Result<(), ReprError> {
        let code = self.bth.opcode;
        let headers = [
            ("reth", code.has_reth(), self.reth.is_some()),
            ("aeth", code.has_aeth(), self.aeth.is_some()),
            ("imm", code.has_imm(), self.imm.is_some()),
        ];
        for (header, required, present) in headers {
            if required != present {
                return Err(ReprError::Extension { opcode: code.into(), header, required });
            }
        }
        let max = match code.operation() {
            Operation::Cnp | Operation::Acknowledge | Operation::ReadRequest => 0,
            _ => MAX_PAYLOAD,
        };
        match self.payload.len() {
            len if len > max => Err(ReprError::PayloadTooLong { opcode: code.into(), len, max }),
            _ => Ok(()),
        }
    }

    /// Pad bytes that bring the payload to whole words.
    fn pad(&self) -> usize {
        self.payload.len().wrapping_neg() & 3
    }

    /// Bytes of the Ethernet header with its tag.
    #[inline]
    fn ip_at(&self) -> usize {
        ethernet::LEN + if self.cn_tag.is_some() { CN_TAG_LEN } else { 0 }
    }

    /// Bytes from the destination MAC to the ICRC.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.ip_at() + BTH_AT - ethernet::LEN
            + bth::LEN
            + self.bth.opcode.extension_len()
            + self.payload.len()
            + self.pad()
            + ICRC_LEN
    }

    /// The frame as bytes, without FCS, with its real ICRC; a virtual payload becomes zeros.
    ///
    /// The opcode decides which extension headers appear. An invalid packet ([`Self::validate`]) is a
    /// bug of the caller: it stops a debug build; otherwise a missing header is sent as zeros.
    pub fn emit(&self) -> Bytes {
        let mut frame = BytesMut::zeroed(self.frame_len());
        let icrc_at = frame.len() - ICRC_LEN;
        self.write_headers(&mut frame);
        if let Payload::Bytes(bytes) = &self.payload {
            let at = icrc_at - self.pad() - bytes.len();
            frame[at..at + bytes.len()].copy_from_slice(bytes);
        }
        let icrc = crc::icrc(&frame[self.ip_at()..icrc_at]);
        frame[icrc_at..].copy_from_slice(&icrc.to_le_bytes());
        frame.freeze()
    }

    /// The same frame in pieces, the payload not copied: for a send that gathers.
    pub fn emit_parts(&self) -> FrameParts {
        let mut head = [0; HEAD_MAX];
        let ip_at = self.ip_at();
        let head_len = ip_at + BTH_AT - ethernet::LEN + bth::LEN + self.bth.opcode.extension_len();
        self.write_headers(&mut head[..head_len]);
        let payload = match &self.payload {
            Payload::Bytes(bytes) => bytes.clone(),
            Payload::Virtual(len) => Bytes::from(alloc::vec![0; *len as usize]),
        };
        let (covered, rest) = head[ip_at..head_len].split_at(ipv4::LEN + udp::LEN + bth::LEN);
        let mut icrc = crc::icrc_start(covered);
        icrc.update(rest);
        icrc.update(&payload);
        FrameParts::new(head, head_len, payload, self.pad(), icrc)
    }

    /// Everything before the payload, over zeros.
    fn write_headers(&self, frame: &mut [u8]) {
        debug_assert_eq!(self.validate(), Ok(()));
        match self.cn_tag {
            Some(flow) => {
                ethernet::write(frame, self.eth_dst, self.eth_src, ETHERTYPE_CN_TAG);
                put16(frame, ethernet::LEN, flow);
                put16(frame, ethernet::LEN + 2, ethernet::ETHERTYPE_IPV4);
            }
            None => ethernet::write(frame, self.eth_dst, self.eth_src, ethernet::ETHERTYPE_IPV4),
        }
        let frame = &mut frame[self.ip_at()..];
        let ip_len = self.frame_len() - self.ip_at();
        let bth_at = BTH_AT - ethernet::LEN;
        let ip = Ipv4Repr { src: self.ip_src, dst: self.ip_dst, dscp: self.dscp, ecn: self.ecn, ttl: self.ttl };
        ip.write(frame, udp::PROTOCOL, ip_len as u16);
        udp::write(&mut frame[ipv4::LEN..], self.udp_sport, (ip_len - ipv4::LEN) as u16);
        self.bth.write(&mut frame[bth_at..], self.pad() as u8);
        self.write_extensions(&mut frame[bth_at + bth::LEN..]);
    }

    fn write_extensions(&self, ext: &mut [u8]) {
        let opcode = self.bth.opcode;
        if let (true, Some(reth)) = (opcode.has_reth(), &self.reth) {
            reth.write(ext);
        }
        if let (true, Some(aeth)) = (opcode.has_aeth(), &self.aeth) {
            aeth.write(ext);
        }
        if let (true, Some(imm)) = (opcode.has_imm(), self.imm) {
            let at = if opcode.has_reth() { reth::LEN } else { 0 };
            crate::bytesio::put32(ext, at, imm);
        }
    }
}

/// The offset of the payload from the start of the BTH, given all bytes from there to the ICRC's end.
fn body_range(bth: &BthView<'_>, len: usize) -> Result<core::ops::Range<usize>, ParseError> {
    let start = bth::LEN + bth.opcode().extension_len();
    let needed = start + ICRC_LEN;
    if len < needed {
        return Err(ParseError::Truncated { layer: "transport", needed, available: len });
    }
    let (body, pad) = (len - needed, bth.pad_count());
    if body % 4 != 0 || usize::from(pad) > body {
        return Err(ParseError::BadPadCount { pad, body });
    }
    Ok(start..start + body - usize::from(pad))
}

/// Checks the ICRC of a packet given from its IPv4 header to the ICRC's end.
fn check_icrc(packet: &[u8]) -> Result<(), ParseError> {
    let (covered, trailer) = packet.split_at(packet.len() - ICRC_LEN);
    let found = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
    match crc::icrc(covered) {
        computed if computed == found => Ok(()),
        computed => Err(ParseError::BadIcrc { found, computed }),
    }
}

const _: () = assert!(Opcode::Cnp.extension_len() == CNP_RESERVED_LEN && aeth::LEN == 4);
const _: () = assert!(BTH_AT + CN_TAG_LEN + bth::LEN + Opcode::WriteOnlyImm.extension_len() == HEAD_MAX);
