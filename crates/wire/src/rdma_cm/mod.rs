// SPDX-License-Identifier: Apache-2.0
//! Messages of the standard connection manager: management datagrams (MADs) between queue pairs 1 of two hosts.
//! Promise: reading and writing a message reproduces the fields that have a name here; reserved fields, alternate
//! paths and private data other than of REQ and REP are ignored on reception and sent as zeros.
//! Source: IBTA vol. 1, clauses 9.8.3 (DETH), 12.6 to 12.11 (messages), 13.4.3 (MAD header); annex A11 (addresses).
//!
//! ```text
//! BTH, opcode 0x64, to queue pair 1 | DETH: Q_Key, source queue pair | MAD header | message | ICRC
//!                12                 |              8                 |     24     |   232   |  4
//!  MAD header: base version, class, class version, method, -, transaction 8..15, attribute 16..17, -
//! ```

mod address;
mod answers;
mod error;
mod parts;
mod rep;
mod req;

pub use address::{rdma_cm_port, rdma_cm_service, IpAddressing, ADDRESSING_LEN};
pub use answers::{MadIds, Mra, Rej, RejReason, Rejected};
pub use error::MadError;
pub use rep::{Rep, REP_PRIVATE_LEN};
pub use req::{Req, Service, REQ_PRIVATE_LEN};

use crate::bth::BthRepr;
use crate::bytesio::{be16, be24, be32, be64, put16, put24, put32, put64};
use crate::ethernet::MacAddr;
use crate::gateware::FIRST_UDP_SPORT;
use crate::ipv4::Ecn;
use crate::opcode::Opcode;
use crate::payload::Payload;
use crate::psn::{Psn, Qpn};
use crate::roce::RocePacket;
use bytes::Bytes;
use core::net::Ipv4Addr;

/// Bytes of a MAD.
pub const MAD_LEN: usize = 256;
/// Bytes from the BTH to the ICRC of a packet with a MAD: DETH and MAD.
pub const MAD_DATAGRAM_LEN: usize = DETH_LEN + MAD_LEN;
/// BTH opcode of an unreliable datagram in one packet. The DETH counts as payload of the
/// [`RocePacket`](crate::RocePacket).
pub const UD_SEND_ONLY: u8 = 0x64;
/// The queue pair of connection managers.
pub const GSI_QPN: Qpn = Qpn::new(1);
/// Q_Key of queue pair 1 (IBTA 10.2.5).
pub const GSI_QKEY: u32 = 0x8001_0000;

const DETH_LEN: usize = 8;
/// Bytes before the message.
const HEADER_LEN: usize = 24;
const _: () = assert!(HEADER_LEN + parts::MESSAGE_LEN == MAD_LEN);

/// Offsets of the DETH and of the MAD header, in bytes.
mod at {
    pub const QKEY: usize = 0;
    pub const SOURCE_QPN: usize = 5;
    pub const BASE_VERSION: usize = 0;
    pub const CLASS: usize = 1;
    pub const CLASS_VERSION: usize = 2;
    pub const METHOD: usize = 3;
    pub const TRANSACTION: usize = 8;
    pub const ATTRIBUTE: usize = 16;
}

const BASE_VERSION: u8 = 1;
/// Communication management (IBTA 13.4.4).
const CLASS: u8 = 7;
const CLASS_VERSION: u8 = 2;
/// ComMgtSend, the only method of the class (IBTA 12.6.1).
const METHOD: u8 = 3;

/// Attribute of each message (IBTA 16.7.1).
mod attribute {
    pub const REQ: u16 = 0x10;
    pub const MRA: u16 = 0x11;
    pub const REJ: u16 = 0x12;
    pub const REP: u16 = 0x13;
    pub const RTU: u16 = 0x14;
    pub const DREQ: u16 = 0x15;
    pub const DREP: u16 = 0x16;
}

/// A message of the connection manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RdmaCmMessage {
    /// Request for a connection.
    Req(Req),
    /// Message receipt acknowledgement: an answer follows, later.
    Mra(Mra),
    /// Reject.
    Rej(Rej),
    /// Reply to a request.
    Rep(Rep),
    /// Ready to use.
    Rtu(MadIds),
    /// Request for disconnection.
    Dreq {
        /// Identifiers of the connection.
        ids: MadIds,
        /// Queue pair of the addressee.
        qpn: Qpn,
    },
    /// Reply to a request for disconnection.
    Drep(MadIds),
}

impl RdmaCmMessage {
    /// Its name in the standard.
    pub const fn name(&self) -> &'static str {
        match self {
            RdmaCmMessage::Req(_) => "REQ",
            RdmaCmMessage::Mra(_) => "MRA",
            RdmaCmMessage::Rej(_) => "REJ",
            RdmaCmMessage::Rep(_) => "REP",
            RdmaCmMessage::Rtu(_) => "RTU",
            RdmaCmMessage::Dreq { .. } => "DREQ",
            RdmaCmMessage::Drep(_) => "DREP",
        }
    }

    const fn attribute(&self) -> u16 {
        match self {
            RdmaCmMessage::Req(_) => attribute::REQ,
            RdmaCmMessage::Mra(_) => attribute::MRA,
            RdmaCmMessage::Rej(_) => attribute::REJ,
            RdmaCmMessage::Rep(_) => attribute::REP,
            RdmaCmMessage::Rtu(_) => attribute::RTU,
            RdmaCmMessage::Dreq { .. } => attribute::DREQ,
            RdmaCmMessage::Drep(_) => attribute::DREP,
        }
    }
}

/// A message with its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaCmMad {
    /// The same in a message and in its answer.
    pub transaction: u64,
    /// The message.
    pub message: RdmaCmMessage,
}

impl RdmaCmMad {
    /// Reads a MAD of the connection manager.
    ///
    /// # Errors
    /// [`MadError`]: another length, class, version or method, or a message without a name here (LAP, APR, SIDR).
    pub fn parse(mad: &[u8]) -> Result<Self, MadError> {
        if mad.len() != MAD_LEN {
            return Err(MadError::Length { len: mad.len(), needed: MAD_LEN });
        }
        let version = (mad[at::BASE_VERSION], mad[at::CLASS], mad[at::CLASS_VERSION], mad[at::METHOD]);
        if version != (BASE_VERSION, CLASS, CLASS_VERSION, METHOD) {
            let (base, class, class_version, method) = version;
            return Err(MadError::Header { base, class, class_version, method });
        }
        let data = &mad[HEADER_LEN..];
        let message = match be16(mad, at::ATTRIBUTE) {
            attribute::REQ => RdmaCmMessage::Req(Req::read(data)),
            attribute::MRA => RdmaCmMessage::Mra(Mra::read(data)),
            attribute::REJ => RdmaCmMessage::Rej(Rej::read(data)),
            attribute::REP => RdmaCmMessage::Rep(Rep::read(data)),
            attribute::RTU => RdmaCmMessage::Rtu(MadIds::read(data)),
            attribute::DREQ => RdmaCmMessage::Dreq { ids: MadIds::read(data), qpn: Qpn::new(be24(data, DREQ_QPN_AT)) },
            attribute::DREP => RdmaCmMessage::Drep(MadIds::read(data)),
            id => return Err(MadError::Attribute { id }),
        };
        Ok(RdmaCmMad { transaction: be64(mad, at::TRANSACTION), message })
    }

    /// The MAD.
    pub fn to_bytes(&self) -> [u8; MAD_LEN] {
        let mut mad = [0; MAD_LEN];
        mad[at::BASE_VERSION] = BASE_VERSION;
        mad[at::CLASS] = CLASS;
        mad[at::CLASS_VERSION] = CLASS_VERSION;
        mad[at::METHOD] = METHOD;
        put64(&mut mad, at::TRANSACTION, self.transaction);
        put16(&mut mad, at::ATTRIBUTE, self.message.attribute());
        let data = &mut mad[HEADER_LEN..];
        match &self.message {
            RdmaCmMessage::Req(req) => req.write(data),
            RdmaCmMessage::Mra(mra) => mra.write(data),
            RdmaCmMessage::Rej(rej) => rej.write(data),
            RdmaCmMessage::Rep(rep) => rep.write(data),
            RdmaCmMessage::Rtu(ids) | RdmaCmMessage::Drep(ids) => ids.write(data),
            RdmaCmMessage::Dreq { ids, qpn } => {
                ids.write(data);
                put24(data, DREQ_QPN_AT, qpn.value());
            }
        }
        mad
    }

    /// Reads DETH and MAD: the payload of a packet with opcode [`UD_SEND_ONLY`] to [`GSI_QPN`].
    ///
    /// # Errors
    /// Those of [`Self::parse`]; or the Q_Key or the sender's queue pair is not that of connection managers.
    pub fn parse_datagram(payload: &[u8]) -> Result<Self, MadError> {
        if payload.len() != MAD_DATAGRAM_LEN {
            return Err(MadError::Length { len: payload.len(), needed: MAD_DATAGRAM_LEN });
        }
        let (qkey, qpn) = (be32(payload, at::QKEY), be24(payload, at::SOURCE_QPN));
        if (qkey, qpn) != (GSI_QKEY, GSI_QPN.value()) {
            return Err(MadError::Deth { qkey, qpn });
        }
        RdmaCmMad::parse(&payload[DETH_LEN..])
    }

    /// Reads the MAD of a packet; none if the packet is not for queue pair 1.
    ///
    /// # Errors
    /// Those of [`Self::parse_datagram`]; or another service than unreliable datagrams.
    pub fn of_packet(packet: &RocePacket) -> Option<Result<Self, MadError>> {
        if packet.bth.dest_qpn != GSI_QPN {
            return None;
        }
        if u8::from(packet.bth.opcode) != UD_SEND_ONLY {
            return Some(Err(MadError::Opcode { opcode: packet.bth.opcode.into() }));
        }
        Some(RdmaCmMad::parse_datagram(packet.payload.as_bytes().unwrap_or(&[])))
    }

    /// The packet from `src` to `dst`, each with the MAC of its interface or of the next hop.
    pub fn to_packet(&self, src: (MacAddr, Ipv4Addr), dst: (MacAddr, Ipv4Addr)) -> RocePacket {
        RocePacket {
            eth_dst: dst.0,
            eth_src: src.0,
            cn_tag: None,
            ip_src: src.1,
            ip_dst: dst.1,
            dscp: 0,
            ecn: Ecn::NotEct,
            ttl: 64,
            udp_sport: FIRST_UDP_SPORT,
            bth: BthRepr::new(Opcode::from(UD_SEND_ONLY), GSI_QPN, Psn::new(0)),
            reth: None,
            aeth: None,
            imm: None,
            payload: Payload::Bytes(Bytes::copy_from_slice(&self.to_datagram())),
        }
    }

    /// DETH and MAD.
    pub fn to_datagram(&self) -> [u8; MAD_DATAGRAM_LEN] {
        let mut payload = [0; MAD_DATAGRAM_LEN];
        put32(&mut payload, at::QKEY, GSI_QKEY);
        put24(&mut payload, at::SOURCE_QPN, GSI_QPN.value());
        payload[DETH_LEN..].copy_from_slice(&self.to_bytes());
        payload
    }
}

const DREQ_QPN_AT: usize = 8;
