// SPDX-License-Identifier: Apache-2.0
//! QCN's congestion notification message, from a switch's congestion point to the source of a frame it sampled.
//! Promise: the first 20 bytes are those that `rtl/cc/cnm_receiver.sv` reads; a written message reads back unchanged.
//! Source: IEEE 802.1Qau clauses 33.2 (CN-TAG) and 33.4 (CNM).
//!
//! ```text
//!  0 destination MAC | 6 source MAC | 12 0x22E9 | 14 flow ID | 16 0x22E7
//! 18 version 4, reserved 6, quantised feedback 6 | 20 CPID 8 | 28 QOffset 2 | 30 QDelta 2
//! 32 encapsulated priority 3, 0 13 | 34 encapsulated destination MAC 6 | 40 length 2 | 42 encapsulated MSDU
//! ```
//!
//! The MSDU (at most 64 bytes, starting at the EtherType) identifies the flow that must slow down: EtherType, IPv4
//! header, ports and, for RoCEv2, the BTH with the destination queue pair.

use core::net::Ipv4Addr;

use bytes::{Bytes, BytesMut};

use crate::bytesio::{be16, put16};
use crate::error::ParseError;
use crate::ethernet::MacAddr;
use crate::ethernet::{self, EthernetView, CN_TAG_LEN, ETHERTYPE_CN_TAG, ETHERTYPE_IPV4};
use crate::five_tuple::FiveTuple;
use crate::psn::Qpn;
use crate::udp::UDP_PORT_ROCE;
use crate::{ipv4, udp, MIN_FRAME_LEN};

/// Offsets in the frame, in bytes.
mod at {
    pub const FLOW: usize = 14;
    pub const ETHERTYPE: usize = 16;
    pub const VERSION_FEEDBACK: usize = 18;
    pub const Q_OFFSET: usize = 28;
    pub const Q_DELTA: usize = 30;
    pub const PRIORITY: usize = 32;
    pub const MSDU_LENGTH: usize = 40;
}

/// EtherType of the message after the CN-TAG.
pub const ETHERTYPE_CNM: u16 = 0x22E7;

/// Bytes from the destination MAC to the encapsulated MSDU.
const HEAD: usize = ethernet::LEN + CN_TAG_LEN + 24;
const MSDU_IP: usize = HEAD + 2;
const MSDU_L4: usize = MSDU_IP + ipv4::LEN;
const MSDU_BTH: usize = MSDU_L4 + udp::LEN;
const MAX_MSDU: usize = 64;

/// A congestion notification message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cnm {
    /// The source of the sampled frame: the reaction point.
    pub eth_dst: MacAddr,
    /// The switch.
    pub eth_src: MacAddr,
    /// Flow ID, by which the reaction point finds its queue pair: that of the sampled frame's CN-TAG, or
    /// [`Cnm::flow_of`] its port.
    pub flow: u16,
    /// |F_b|, 6 bits.
    pub feedback: u8,
    /// The congestion point: switch MAC, port and class.
    pub cpid: u64,
    /// Q_eq - q, in units of 64 bytes.
    pub q_offset: i16,
    /// q - q_old, in units of 64 bytes.
    pub q_delta: i16,
    /// Class of the sampled frame, 0 to 7.
    pub priority: u8,
    /// Destination of the sampled frame.
    pub encapsulated_dst: MacAddr,
    /// The flow of the sampled frame.
    pub flow_tuple: FiveTuple,
    /// The queue pair the sampled RoCEv2 packet was for (the receiver's number); `None` for other protocols.
    pub dest_qpn: Option<Qpn>,
}

impl Cnm {
    /// The flow ID a sender without CN-TAGs has put into the low bits of its source port, 0xC000 + flow ID.
    ///
    /// A sender under QCN that is identified by its flow ID alone (the gateware, whose flow ID is its own queue pair)
    /// sets its UDP source port so, or sends CN-TAGs. Others may look at `flow_tuple` and `dest_qpn`, which are always unambiguous.
    pub const fn flow_of(source_port: u16) -> u16 {
        source_port & 0x3FFF
    }

    /// Bytes from the destination MAC to the last one before the FCS, including padding.
    pub fn frame_len(&self) -> usize {
        (HEAD + self.msdu_len()).max(MIN_FRAME_LEN)
    }

    fn msdu_len(&self) -> usize {
        let transport = if self.dest_qpn.is_some() { udp::LEN + crate::bth::LEN } else { 4 };
        2 + ipv4::LEN + transport
    }

    /// The frame as bytes, without FCS.
    pub fn emit(&self) -> Bytes {
        let mut frame = BytesMut::zeroed(self.frame_len());
        ethernet::write(&mut frame, self.eth_dst, self.eth_src, ETHERTYPE_CN_TAG);
        put16(&mut frame, at::FLOW, self.flow);
        put16(&mut frame, at::ETHERTYPE, ETHERTYPE_CNM);
        put16(&mut frame, at::VERSION_FEEDBACK, u16::from(self.feedback & 0x3F));
        frame[20..28].copy_from_slice(&self.cpid.to_be_bytes());
        put16(&mut frame, at::Q_OFFSET, self.q_offset as u16);
        put16(&mut frame, at::Q_DELTA, self.q_delta as u16);
        put16(&mut frame, at::PRIORITY, u16::from(self.priority & 7) << 13);
        frame[34..40].copy_from_slice(&self.encapsulated_dst.0);
        put16(&mut frame, at::MSDU_LENGTH, self.msdu_len() as u16);
        put16(&mut frame, HEAD, ETHERTYPE_IPV4);
        self.write_flow(&mut frame);
        frame.freeze()
    }

    /// The headers that identify the flow; unused fields are 0.
    fn write_flow(&self, frame: &mut [u8]) {
        let flow = &self.flow_tuple;
        frame[MSDU_IP] = 0x45;
        frame[MSDU_IP + 9] = flow.protocol;
        frame[MSDU_IP + 12..MSDU_IP + 16].copy_from_slice(&flow.src.octets());
        frame[MSDU_IP + 16..MSDU_IP + 20].copy_from_slice(&flow.dst.octets());
        put16(frame, MSDU_L4, flow.sport);
        put16(frame, MSDU_L4 + 2, flow.dport);
        if let Some(qpn) = self.dest_qpn {
            frame[MSDU_BTH + 5..MSDU_BTH + 8].copy_from_slice(&qpn.value().to_be_bytes()[1..]);
        }
    }

    /// Reads a frame whose EtherType is the CN-TAG's. `None`: a tag in front of something else, another version, or a
    /// message that does not quote enough of an IPv4 packet to identify the flow.
    ///
    /// # Errors
    /// `Truncated`, and `BadLength` of an MSDU that is longer than the frame or than 64 bytes.
    pub fn parse(frame: &[u8]) -> Result<Option<Cnm>, ParseError> {
        let eth = EthernetView::new_checked(frame)?;
        if frame.len() < HEAD {
            return Err(ParseError::Truncated { layer: "CNM", needed: HEAD, available: frame.len() });
        }
        let head = be16(frame, at::VERSION_FEEDBACK);
        if be16(frame, at::ETHERTYPE) != ETHERTYPE_CNM || head >> 12 != 0 {
            return Ok(None);
        }
        let (field, actual) = (usize::from(be16(frame, at::MSDU_LENGTH)), (frame.len() - HEAD).min(MAX_MSDU));
        if field > actual {
            return Err(ParseError::BadLength { layer: "CNM", field, actual });
        }
        let msdu = &frame[HEAD..HEAD + field];
        if msdu.len() < 2 || be16(msdu, 0) != ETHERTYPE_IPV4 {
            return Ok(None);
        }
        let Some(flow_tuple) = FiveTuple::read(&msdu[2..]) else { return Ok(None) };
        let roce = flow_tuple.protocol == udp::PROTOCOL && flow_tuple.dport == UDP_PORT_ROCE;
        let dest_qpn =
            (roce && msdu.len() >= MSDU_BTH - HEAD + 8).then(|| Qpn::new(crate::bytesio::be24(frame, MSDU_BTH + 5)));
        let mut cpid = [0; 8];
        cpid.copy_from_slice(&frame[20..28]);
        let mut encapsulated_dst = [0; 6];
        encapsulated_dst.copy_from_slice(&frame[34..40]);
        Ok(Some(Cnm {
            eth_dst: eth.dst(),
            eth_src: eth.src(),
            flow: be16(frame, at::FLOW),
            feedback: (head & 0x3F) as u8,
            cpid: u64::from_be_bytes(cpid),
            q_offset: be16(frame, at::Q_OFFSET) as i16,
            q_delta: be16(frame, at::Q_DELTA) as i16,
            priority: frame[at::PRIORITY] >> 5,
            encapsulated_dst: MacAddr(encapsulated_dst),
            flow_tuple,
            dest_qpn,
        }))
    }

    /// The address of the host to notify: the source of the sampled packet.
    pub fn ip_dst(&self) -> Ipv4Addr {
        self.flow_tuple.src
    }
}
