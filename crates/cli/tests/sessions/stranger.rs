// SPDX-License-Identifier: Apache-2.0
//! Strangers, hosts outside the run: packets and messages from unknown addresses, and forged ones from known addresses.
//! A stranger has seen earlier packets; it does not know the secrets of an end: the next PSN, a key, the queue pair's
//! number of a future connection.

use bytes::Bytes;
use penstock_wire::{CmInfo, CmMessage, CmRequest, Ipv4Addr, Opcode, Payload, Psn, Qpn, RocePacket};

use super::wire::{mac, Parcel, Random};

pub fn address(random: &mut Random) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, random.next() as u8)
}

/// Whom a stranger may speak to or pretend to be.
pub struct Targets<'a> {
    pub server: Ipv4Addr,
    pub boards: &'a [Ipv4Addr],
    /// Nobody forges messages of the server to boards.
    pub spares_server: bool,
    /// A packet that went by.
    pub seen: Option<&'a RocePacket>,
}

impl Targets<'_> {
    fn board(&self, random: &mut Random) -> Ipv4Addr {
        self.boards[random.below(self.boards.len() as u64) as usize]
    }
}

fn info(random: &mut Random, ip: Ipv4Addr) -> CmInfo {
    let (qpn, psn) = (Qpn::new(random.next() as u32 | 2), Psn::new(random.next() as u32));
    CmInfo { qpn, psn, rkey: random.next() as u32, base: random.next(), ip }
}

/// One packet or message.
pub fn act(random: &mut Random, targets: &Targets<'_>) -> Parcel {
    match targets.seen {
        Some(seen) if random.happens(500_000) => Parcel::Data(forged(random, seen)),
        _ => message(random, targets),
    }
}

/// A packet that went by with something of it wrong, and a payload of the stranger's own.
fn forged(random: &mut Random, seen: &RocePacket) -> RocePacket {
    let mut packet = seen.clone();
    let len = packet.payload.len();
    packet.payload = Payload::Bytes(Bytes::from((0..len).map(|_| random.next() as u8).collect::<Vec<u8>>()));
    match random.below(4) {
        0 => (packet.ip_src, packet.eth_src) = (address(random), mac(address(random))),
        1 => packet.bth.dest_qpn = Qpn::new(random.next() as u32),
        // What is long over, as if it came late.
        2 => packet.bth.psn = packet.bth.psn.sub(1 << 20 | random.below(1 << 22) as u32),
        _ => packet.bth.opcode = Opcode::from(random.next() as u8),
    }
    if packet.validate().is_err() {
        packet = RocePacket { bth: seen.bth, ..packet };
        packet.bth.dest_qpn = Qpn::new(random.next() as u32);
    }
    packet
}

/// A message of the connection manager: a stranger's own, or in another's name.
fn message(random: &mut Random, targets: &Targets<'_>) -> Parcel {
    let board = targets.board(random);
    let (from, to) = match random.below(if targets.spares_server { 3 } else { 4 }) {
        0 => (address(random), targets.server),
        1 => (address(random), board),
        2 => (board, targets.server),
        _ => (targets.server, board),
    };
    let (sender, other) = (info(random, from), info(random, to));
    let mut bytes = CmMessage::request(CmRequest::OpenQp, sender, other).to_bytes();
    // The first byte has request, answer and what is valid: half of the messages are those that open, with all of the
    // sender.
    if random.happens(500_000) {
        bytes[0] = random.next() as u8;
    }
    let message = CmMessage::parse(&bytes).expect("any 64 bytes are a message");
    Parcel::Message { from, to, message }
}

/// A second board with the address of one that is in the run asks the server for a connection of its own.
pub fn twin(random: &mut Random, board: Ipv4Addr, server: Ipv4Addr, qpn: Qpn) -> Parcel {
    let sender = CmInfo { qpn, ..info(random, board) };
    let message = CmMessage::request(CmRequest::OpenQp, sender, CmInfo::default());
    Parcel::Message { from: board, to: server, message }
}
