// SPDX-License-Identifier: Apache-2.0
//! Packets that wait for `poll_transmit`: CNPs first, then acknowledgements in order.
//! Positive ACKs that meet in the queue become one, the latest, as ACKs are cumulative.
//! Source: IBTA vol. 1, clause 9.7.5.1 (responses, coalescing); annex A17.9 (CNP).

use crate::{ResponderConfig, ResponderCounters};
use penstock_wire::{AethRepr, BthRepr, Ecn, Opcode, Payload, Psn, RocePacket, Syndrome};
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reply {
    psn: Psn,
    aeth: AethRepr,
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

    pub(crate) fn push(&mut self, psn: Psn, aeth: AethRepr) {
        let is_ack = |aeth: &AethRepr| matches!(aeth.syndrome, Syndrome::Ack(_));
        let reply = Reply { psn, aeth };
        match self.acknowledgements.back_mut() {
            Some(last) if is_ack(&last.aeth) && is_ack(&aeth) => *last = reply,
            _ => self.acknowledgements.push_back(reply),
        }
    }

    pub(crate) fn pop(&mut self, config: &ResponderConfig, counters: &mut ResponderCounters) -> Option<RocePacket> {
        let qpn = config.peer.qpn;
        let packet = if self.cnps > 0 {
            self.cnps -= 1;
            counters.np_cnp_sent += 1;
            let bth = BthRepr { becn: true, ..BthRepr::new(Opcode::Cnp, qpn, Psn::new(0)) };
            address(config, bth, config.marking.cnp_dscp, None)
        } else {
            let Reply { psn, aeth } = self.acknowledgements.pop_front()?;
            let bth = BthRepr::new(Opcode::Acknowledge, qpn, psn);
            address(config, bth, config.marking.ack_dscp, Some(aeth))
        };
        counters.sent_pkts += 1;
        Some(packet)
    }
}

fn address(config: &ResponderConfig, bth: BthRepr, dscp: u8, aeth: Option<AethRepr>) -> RocePacket {
    RocePacket {
        eth_dst: config.peer.mac,
        eth_src: config.local.mac,
        ip_src: config.local.ip,
        ip_dst: config.peer.ip,
        dscp,
        // A reply has no reaction point behind it, so a mark on it would tell nobody anything.
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
