// SPDX-License-Identifier: Apache-2.0
//! A reference requester, as simple as clauses 9.7.2 and 9.7.6 of the IBTA specification allow: all
//! packets are made in advance, and go-back-N moves an index back.

use crate::common::{packet, with_reth};
use bytes::Bytes;
use penstock_wire::{NakCode, Opcode, Position, Psn, RocePacket, Syndrome};

#[derive(Clone, Debug)]
pub struct MessageSpec {
    pub send: bool,
    pub with_imm: bool,
    pub len: usize,
}

impl MessageSpec {
    pub fn consumes_receive(&self) -> bool {
        self.send || self.with_imm
    }
}

/// A message cut into packets, its payload, and where it goes (WRITE).
pub struct Sent {
    pub spec: MessageSpec,
    pub va: u64,
    pub imm: u32,
    pub payload: Bytes,
}

pub struct Requester {
    packets: Vec<RocePacket>,
    start: Psn,
    window: usize,
    /// Oldest packet without an ACK.
    una: usize,
    /// Next packet to send.
    next: usize,
    /// One past the newest packet ever sent.
    highest: usize,
    silent_until: u64,
    progress_at: u64,
    timeout: u64,
    pub fatal: Option<NakCode>,
}

impl Requester {
    pub fn new(messages: &[Sent], start: u32, mtu: usize, window: usize, timeout: u64) -> Self {
        let mut packets = Vec::new();
        for message in messages {
            segment(message, start, mtu, &mut packets);
        }
        Requester {
            packets,
            start: Psn::new(start),
            window,
            una: 0,
            next: 0,
            highest: 0,
            silent_until: 0,
            progress_at: 0,
            timeout,
            fatal: None,
        }
    }

    pub fn done(&self) -> bool {
        self.una == self.packets.len()
    }

    pub fn poll_transmit(&mut self, now: u64) -> Option<RocePacket> {
        if self.una < self.highest && now > self.progress_at + self.timeout {
            (self.next, self.progress_at) = (self.una, now);
        }
        let limit = self.packets.len().min(self.una + self.window);
        if now < self.silent_until || self.next >= limit {
            return None;
        }
        let mut packet = self.packets[self.next].clone();
        packet.bth.ack_req |= self.next + 1 == limit;
        self.next += 1;
        if self.next > self.highest {
            (self.highest, self.progress_at) = (self.next, now);
        }
        Some(packet)
    }

    /// Ticks are microseconds.
    pub fn handle_reply(&mut self, now: u64, reply: &RocePacket) {
        let Some(aeth) = reply.aeth else { return };
        let ahead = reply.bth.psn.distance_from(self.start.add(self.una as u32));
        // Answers to packets long acknowledged, or never sent, say nothing.
        if ahead < 0 || self.una + ahead as usize >= self.highest {
            return;
        }
        let at = self.una + ahead as usize;
        match aeth.syndrome {
            Syndrome::Ack(_) => self.acknowledged(now, at + 1),
            Syndrome::Nak(NakCode::PsnSequenceError) => {
                self.acknowledged(now, at);
                self.next = at;
            }
            Syndrome::RnrNak(timer) => {
                self.acknowledged(now, at);
                self.next = at;
                self.silent_until = now + u64::from(timer.microseconds());
            }
            Syndrome::Nak(code) => self.fatal = Some(code),
            Syndrome::Reserved(byte) => panic!("reserved syndrome {byte:#x}"),
        }
    }

    fn acknowledged(&mut self, now: u64, una: usize) {
        if una > self.una {
            (self.una, self.progress_at) = (una, now);
        }
        self.next = self.next.max(self.una);
    }
}

fn segment(message: &Sent, start: u32, mtu: usize, packets: &mut Vec<RocePacket>) {
    let count = message.payload.len().div_ceil(mtu).max(1);
    for i in 0..count {
        let position = match (i == 0, i + 1 == count) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, true) => Position::Last,
            (false, false) => Position::Middle,
        };
        let data = message.payload.slice(i * mtu..message.payload.len().min((i + 1) * mtu));
        let psn = start.wrapping_add(packets.len() as u32);
        let mut packet = packet(opcode(&message.spec, position), psn, data);
        packet.imm = packet.imm.map(|_| message.imm);
        packet.bth.ack_req = position.is_end() || packets.len() % 8 == 7;
        if packet.bth.opcode.has_reth() {
            packet = with_reth(packet, message.va, message.payload.len() as u32);
        }
        packets.push(packet);
    }
}

fn opcode(spec: &MessageSpec, position: Position) -> Opcode {
    match (spec.send, position, spec.with_imm) {
        (true, Position::First, _) => Opcode::SendFirst,
        (true, Position::Middle, _) => Opcode::SendMiddle,
        (true, Position::Last, false) => Opcode::SendLast,
        (true, Position::Last, true) => Opcode::SendLastImm,
        (true, Position::Only, false) => Opcode::SendOnly,
        (true, Position::Only, true) => Opcode::SendOnlyImm,
        (false, Position::First, _) => Opcode::WriteFirst,
        (false, Position::Middle, _) => Opcode::WriteMiddle,
        (false, Position::Last, false) => Opcode::WriteLast,
        (false, Position::Last, true) => Opcode::WriteLastImm,
        (false, Position::Only, false) => Opcode::WriteOnly,
        (false, Position::Only, true) => Opcode::WriteOnlyImm,
    }
}
