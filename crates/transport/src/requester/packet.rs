// SPDX-License-Identifier: Apache-2.0
//! Makes the request packet at a given position of a message.
//! Source: IBTA vol. 1, clauses 9.2 (BTH), 9.3 (extended headers) and table 38 (opcodes).

use super::queue::Place;
use super::{PayloadSource, RequesterConfig, Verb};
use penstock_wire::{BthRepr, Opcode, Payload, Position, Psn, RethRepr, RocePacket};

#[inline]
pub(super) fn request(
    config: &RequesterConfig,
    place: &Place<'_>,
    psn: Psn,
    ack_req: bool,
    source: &mut (impl PayloadSource + ?Sized),
) -> RocePacket {
    let wr = place.wr;
    let is_end = place.position.is_end();
    let opcode = opcode(wr.verb, place.position);
    // A READ that is requested again begins at its first missing packet; a WRITE has its RETH at its start only.
    let reth = (wr.verb.has_reth() && place.position.is_start()).then(|| RethRepr {
        va: wr.remote_va.wrapping_add(place.offset.into()),
        rkey: wr.rkey,
        dma_len: wr.len - place.offset,
    });
    let payload = match place.len {
        0 => Payload::EMPTY,
        _ if wr.verb == Verb::Read => Payload::EMPTY,
        len => source.read(wr.va.wrapping_add(place.offset.into()), len as usize),
    };
    RocePacket {
        eth_dst: config.peer.mac,
        eth_src: config.local.mac,
        cn_tag: config.marking.cn_tag,
        ip_src: config.local.ip,
        ip_dst: config.peer.ip,
        dscp: config.marking.dscp,
        ecn: config.marking.ecn,
        ttl: config.marking.ttl,
        udp_sport: config.marking.udp_sport,
        bth: BthRepr {
            pkey: config.pkey,
            solicited: wr.solicited && is_end && wr.verb != Verb::Read,
            ack_req,
            ..BthRepr::new(opcode, config.peer.qpn, psn)
        },
        reth,
        aeth: None,
        imm: wr.verb.imm().filter(|_| is_end),
        payload,
    }
}

#[inline]
fn opcode(verb: Verb, position: Position) -> Opcode {
    match (verb, position) {
        (Verb::Read, _) => Opcode::ReadRequest,
        (Verb::Write | Verb::WriteImm(_), Position::First) => Opcode::WriteFirst,
        (Verb::Write | Verb::WriteImm(_), Position::Middle) => Opcode::WriteMiddle,
        (Verb::Write, Position::Last) => Opcode::WriteLast,
        (Verb::Write, Position::Only) => Opcode::WriteOnly,
        (Verb::WriteImm(_), Position::Last) => Opcode::WriteLastImm,
        (Verb::WriteImm(_), Position::Only) => Opcode::WriteOnlyImm,
        (Verb::Send | Verb::SendImm(_), Position::First) => Opcode::SendFirst,
        (Verb::Send | Verb::SendImm(_), Position::Middle) => Opcode::SendMiddle,
        (Verb::Send, Position::Last) => Opcode::SendLast,
        (Verb::Send, Position::Only) => Opcode::SendOnly,
        (Verb::SendImm(_), Position::Last) => Opcode::SendLastImm,
        (Verb::SendImm(_), Position::Only) => Opcode::SendOnlyImm,
    }
}
