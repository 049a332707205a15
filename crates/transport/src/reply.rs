// SPDX-License-Identifier: Apache-2.0
//! A reply of a responder and its packet.
//! Source: IBTA vol. 1, clauses 9.4.4 (READ responses) and 9.7.5.1 (acknowledgements); annex A17.9 (CNP).

use crate::config::ResponderConfig;
use penstock_wire::{AethRepr, BthRepr, Ecn, Opcode, Payload, Position, Psn, RocePacket, Syndrome};

/// A reply of a responder in compact form, without payload: less than an eighth of the packet, for owners that store
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// A congestion notification.
    Cnp,
    /// An ACK, NAK or RNR NAK.
    Acknowledgement {
        /// Up to or at which packet.
        psn: Psn,
        /// Its contents.
        aeth: AethRepr,
    },
    /// One packet of the answer to a READ.
    ReadResponse {
        /// Its PSN, of the request's range.
        psn: Psn,
        /// Its place in the answer.
        position: Position,
        /// Address of its first byte.
        va: u64,
        /// Its bytes.
        len: u32,
        /// Acknowledgement; a packet in the middle does not carry it.
        aeth: AethRepr,
    },
}

impl Reply {
    /// Whether it is a positive ACK, which includes all earlier ones.
    pub fn is_ack(&self) -> bool {
        matches!(self, Reply::Acknowledgement { aeth, .. } if matches!(aeth.syndrome, Syndrome::Ack(_)))
    }

    /// The packet for it; `payload` is that of a READ response.
    #[inline]
    pub(crate) fn packet(self, config: &ResponderConfig, payload: Payload) -> RocePacket {
        let (qpn, marking) = (config.peer.qpn, &config.marking);
        match self {
            Reply::Cnp => {
                let bth = BthRepr { becn: true, ..BthRepr::new(Opcode::Cnp, qpn, Psn::new(0)) };
                address(config, bth, marking.cnp_dscp, None, payload)
            }
            Reply::Acknowledgement { psn, aeth } => {
                let bth = BthRepr::new(Opcode::Acknowledge, qpn, psn);
                address(config, bth, marking.ack_dscp, Some(aeth), payload)
            }
            Reply::ReadResponse { psn, position, aeth, .. } => {
                let opcode = match position {
                    Position::First => Opcode::ReadResponseFirst,
                    Position::Middle => Opcode::ReadResponseMiddle,
                    Position::Last => Opcode::ReadResponseLast,
                    Position::Only => Opcode::ReadResponseOnly,
                };
                let bth = BthRepr::new(opcode, qpn, psn);
                let aeth = opcode.has_aeth().then_some(aeth);
                RocePacket { ecn: marking.response_ecn, ..address(config, bth, marking.ack_dscp, aeth, payload) }
            }
        }
    }
}

#[inline]
fn address(config: &ResponderConfig, bth: BthRepr, dscp: u8, aeth: Option<AethRepr>, payload: Payload) -> RocePacket {
    RocePacket {
        eth_dst: config.peer.mac,
        eth_src: config.local.mac,
        cn_tag: None,
        ip_src: config.local.ip,
        ip_dst: config.peer.ip,
        dscp,
        // These replies are not rate-limited, so a mark on them would have no effect.
        ecn: Ecn::NotEct,
        ttl: config.marking.ttl,
        udp_sport: config.marking.udp_sport,
        bth: BthRepr { pkey: config.pkey, ..bth },
        reth: None,
        aeth,
        imm: None,
        payload,
    }
}
