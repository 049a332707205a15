// SPDX-License-Identifier: Apache-2.0
//! Packets that wait for `poll_transmit`: CNPs first, then acknowledgements in order.
//! ACKs are cumulative, so of several positive ACKs in the queue only the latest is kept.
//! Source: IBTA vol. 1, clause 9.7.5.1 (responses, coalescing); annex A17.9 (CNP).

use crate::config::ResponderConfig;
use crate::counters::ResponderCounters;
use penstock_wire::{AethRepr, BthRepr, Ecn, Opcode, Payload, Psn, RocePacket, Syndrome};
use std::collections::VecDeque;

/// A reply of a responder in compact form: less than a twentieth of the packet, for owners that store it.
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
}

impl Reply {
    /// Whether it is a positive ACK, which includes all earlier ones.
    pub fn is_ack(&self) -> bool {
        matches!(self, Reply::Acknowledgement { aeth, .. } if matches!(aeth.syndrome, Syndrome::Ack(_)))
    }

    /// The packet for it.
    #[inline]
    pub(crate) fn packet(self, config: &ResponderConfig) -> RocePacket {
        let qpn = config.peer.qpn;
        match self {
            Reply::Cnp => {
                let bth = BthRepr { becn: true, ..BthRepr::new(Opcode::Cnp, qpn, Psn::new(0)) };
                address(config, bth, config.marking.cnp_dscp, None)
            }
            Reply::Acknowledgement { psn, aeth } => {
                let bth = BthRepr::new(Opcode::Acknowledge, qpn, psn);
                address(config, bth, config.marking.ack_dscp, Some(aeth))
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    cnps: usize,
    acknowledgements: VecDeque<Reply>,
}

impl Replies {
    pub(crate) fn push_cnp(&mut self) {
        self.cnps += 1;
    }

    #[inline]
    pub(crate) fn push(&mut self, psn: Psn, aeth: AethRepr) {
        let reply = Reply::Acknowledgement { psn, aeth };
        match self.acknowledgements.back_mut() {
            Some(last) if last.is_ack() && reply.is_ack() => *last = reply,
            _ => self.acknowledgements.push_back(reply),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self, counters: &mut ResponderCounters) -> Option<Reply> {
        let reply = if self.cnps > 0 {
            self.cnps -= 1;
            counters.np_cnp_sent += 1;
            Reply::Cnp
        } else {
            self.acknowledgements.pop_front()?
        };
        counters.sent_pkts += 1;
        Some(reply)
    }
}

#[inline]
fn address(config: &ResponderConfig, bth: BthRepr, dscp: u8, aeth: Option<AethRepr>) -> RocePacket {
    RocePacket {
        eth_dst: config.peer.mac,
        eth_src: config.local.mac,
        ip_src: config.local.ip,
        ip_dst: config.peer.ip,
        dscp,
        // Replies are not rate-limited, so a mark on them would have no effect.
        ecn: Ecn::NotEct,
        ttl: config.marking.ttl,
        udp_sport: config.marking.udp_sport,
        bth: BthRepr { pkey: config.pkey, ..bth },
        reth: None,
        aeth,
        imm: None,
        payload: Payload::EMPTY,
    }
}
