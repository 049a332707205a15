// SPDX-License-Identifier: Apache-2.0
//! A verilated front end in the field: the gateware answers ARP and the connection manager's messages itself, and sends
//! the given messages. Its clock runs slower than the field's, `CYCLES` per tick; otherwise a run would take hours.
//! Source: docs/integration.md (handling of completed messages by user logic).

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use penstock_board::{qp_register, regs, Board, EndpointConfig, Message, Verb, WcStatus};
use penstock_cc::{DcqcnParams, Law};
use penstock_units::Time;
use penstock_wire::{Arp, CmMessage, Ipv4Addr, MacAddr, Packet, Qpn, CM_LEN, CM_REQUEST_PORT};

use super::field::{FrontEnd, SLOTS, SLOT_BYTES};
use super::production::Production;
use super::wire::{mac, Parcel};

/// Cycles of the board's clock in a tick: a fifteenth of what a tick is, so its timers are fifteen times as long.
const CYCLES: u64 = 1_000;
/// 66 us of its own, 1 ms of the field's.
const ACK_TIMEOUT: u32 = 4;
/// Its queue pair that is in use.
const QP: u8 = 0;
const READY_TO_SEND: u32 = 3;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const UDP: u8 = 17;

pub struct Gateware {
    board: Board,
    ip: Ipv4Addr,
    /// The server whose MAC is not that of its address.
    neighbour: Option<(Ipv4Addr, MacAddr)>,
    production: Production,
    /// The peer of the connection that is in use; none while there is none. And of the last one.
    peer: Option<u32>,
    last_peer: Option<u32>,
    /// Messages of this connection that were handed over, and those of them that were acknowledged.
    posted: u64,
    acknowledged: u64,
    /// Messages of whatever connection that have not ended.
    under_way: u64,
}

impl Gateware {
    pub fn new(board: u16, ip: Ipv4Addr) -> Gateware {
        let production = Production::new(board);
        let (board, peer, last_peer) = (powered(ip), None, None);
        Gateware { board, ip, neighbour: None, production, peer, last_peer, posted: 0, acknowledged: 0, under_way: 0 }
    }

    /// Whether the queue pair may send, and to which peer.
    fn look(&mut self) -> Option<u32> {
        let [state, peer] = [regs::qp::STATE, regs::qp::DEST_QPN]
            .map(|at| self.board.read(qp_register(QP, at)).expect("a register of the map"));
        (state & regs::qp::STATE_BITS.mask == READY_TO_SEND).then_some(peer)
    }

    /// Takes the ends of messages. With the first that failed the connection is over.
    fn completions(&mut self) {
        while let Some(end) = self.board.poll_completion() {
            self.under_way -= 1;
            if end.status == WcStatus::Success {
                self.acknowledged += 1;
                self.production.acknowledged();
            } else {
                self.peer = None;
            }
        }
    }

    /// Hands over what is not under way. A new connection begins when the last one's messages have all ended, with slot
    /// 0.
    fn post(&mut self) {
        let peer = self.look();
        if peer != self.peer {
            self.peer = None;
            if peer.is_some() && peer != self.last_peer && self.under_way == 0 {
                (self.peer, self.last_peer, self.posted, self.acknowledged) = (peer, peer, 0, 0);
            }
        }
        if self.peer.is_none() {
            return;
        }
        while self.posted - self.acknowledged < self.production.messages().len() as u64 {
            let (event, payload) = self.production.messages()[(self.posted - self.acknowledged) as usize].clone();
            let (verb, imm, remote_address) = (Verb::RingWrite, None, 0);
            self.board.post(Message { qp: QP, verb, imm, remote_address, tag: event as u32, payload });
            self.posted += 1;
            self.under_way += 1;
        }
    }

    /// A frame that the board has sent.
    fn sent(&mut self, frame: Bytes, out: &mut Vec<Parcel>) {
        let ethertype = u16::from_be_bytes([frame[12], frame[13]]);
        if ethertype == ETHERTYPE_ARP {
            // Everybody answers.
            if let Some(reply) = arp_reply(&frame, self.neighbour) {
                self.board.receive(self.board.cycle(), reply, true);
            }
            return;
        }
        match Packet::parse(frame).expect("the board sends what can be read") {
            Packet::Roce(packet) => out.push(Parcel::Data(packet)),
            Packet::Raw(frame) => out.extend(read_message(&frame)),
            other => panic!("the board sends {other:?}"),
        }
    }
}

/// A board after its power came, set up by its registers.
fn powered(ip: Ipv4Addr) -> Board {
    use regs::{connection as c, ring as r, services as s};
    let mut board = Board::new();
    let endpoint = EndpointConfig {
        mac: mac(ip),
        ip,
        ttl: 64,
        qpn_base: Qpn::new(0x200),
        obey_pause: false,
        obey_pfc: false,
        traffic_class: 3,
        congestion: DcqcnParams { law: Law::Off, ..DcqcnParams::default() },
    };
    board.configure(&endpoint).expect("a Penstock board");
    const MTU_256: u32 = 1;
    let transport = MTU_256
        | c::TRANSPORT_ACK_TIMEOUT_BITS.at(ACK_TIMEOUT)
        | c::TRANSPORT_RETRY_CNT_BITS.at(7u32)
        | c::TRANSPORT_RNR_RETRY_BITS.at(7u32);
    let ring = r::BASE + u32::from(QP) * r::STRIDE;
    let resolution = s::RESOLUTION_ARP_RETRY_BITS.at(1u32) | s::RESOLUTION_ARP_TRIES_BITS.at(15u32);
    for (address, value) in [
        (s::NETMASK, 0xFF00_0000),
        (s::RESOLUTION, resolution),
        (s::CONTROL, s::CONTROL_RESET),
        (c::TRANSPORT, transport),
        (c::CONTROL, c::CONTROL_RESET | c::CONTROL_OFFERED_BITS.at(1u32)),
        (ring + r::SLOTS, SLOTS),
        (ring + r::SLOT_SIZE, SLOT_BYTES),
    ] {
        board.write(address, value).expect("a register of the map");
    }
    board
}

impl FrontEnd for Gateware {
    fn production(&mut self) -> &mut Production {
        &mut self.production
    }

    fn power_cycle(&mut self, _server: Ipv4Addr) {
        (self.board, self.peer, self.last_peer) = (powered(self.ip), None, None);
        (self.posted, self.acknowledged, self.under_way) = (0, 0, 0);
    }

    /// The server asks it.
    fn move_server(&mut self, _server: Ipv4Addr) {}

    /// A gratuitous ARP reply (RFC 5227 section 3) refreshes the entry that the board has.
    fn learn_mac(&mut self, server: Ipv4Addr, mac: MacAddr) {
        self.neighbour = Some((server, mac));
        let announced = Arp { is_reply: true, sender: (mac, server), target: (MacAddr::BROADCAST, server) };
        let mut frame = announced.emit().to_vec();
        frame.resize(60, 0);
        self.board.receive(self.board.cycle(), frame.into(), true);
    }

    fn receive(&mut self, _now: Time, parcel: Parcel, _out: &mut Vec<Parcel>) {
        let frame = match parcel {
            Parcel::Data(packet) => packet.emit(),
            Parcel::Message { from, to, message } => message_frame(from, to, &message),
        };
        self.board.receive(self.board.cycle(), frame, true);
    }

    fn turn(&mut self, now: Time, out: &mut Vec<Parcel>) {
        self.production.make(now);
        self.completions();
        self.post();
        self.board.run_until(self.board.cycle() + CYCLES);
        self.completions();
        let frames: VecDeque<Bytes> =
            std::iter::from_fn(|| self.board.poll_transmit()).map(|sent| sent.frame).collect();
        frames.into_iter().for_each(|frame| self.sent(frame, out));
    }
}

/// The answer to an ARP request (RFC 826): the address asked for has the MAC that the field gives it.
fn arp_reply(request: &[u8], neighbour: Option<(Ipv4Addr, MacAddr)>) -> Option<Bytes> {
    let request = Arp::parse(request).filter(|arp| !arp.is_reply)?;
    let target = request.target.1;
    let resolved = neighbour.filter(|(ip, _)| *ip == target).map(|(_, mac)| mac);
    let mut frame = request.answer(resolved.unwrap_or_else(|| mac(target))).emit().to_vec();
    frame.resize(60, 0);
    Some(frame.into())
}

/// A message of the connection manager as a frame (RFC 768, RFC 791); a UDP checksum of 0 says that there is none.
fn message_frame(from: Ipv4Addr, to: Ipv4Addr, message: &CmMessage) -> Bytes {
    let (udp_len, mut frame) = (8 + CM_LEN as u16, BytesMut::with_capacity(128));
    frame.put_slice(&mac(to).0);
    frame.put_slice(&mac(from).0);
    frame.put_u16(ETHERTYPE_IPV4);
    let mut ip = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    ip[2..4].copy_from_slice(&(20 + udp_len).to_be_bytes());
    ip[12..16].copy_from_slice(&from.octets());
    ip[16..20].copy_from_slice(&to.octets());
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.put_slice(&ip);
    for word in [CM_REQUEST_PORT, CM_REQUEST_PORT, udp_len, 0] {
        frame.put_u16(word);
    }
    frame.put_slice(&message.to_bytes());
    frame.freeze()
}

/// A message of the connection manager in a frame that the board has sent.
fn read_message(frame: &[u8]) -> Option<Parcel> {
    let ip = frame.get(14..34)?;
    let address = |at: usize| <[u8; 4]>::try_from(&ip[at..at + 4]).map(Ipv4Addr::from).ok();
    let is_message = ip[0] == 0x45 && ip[9] == UDP && u16::from_be_bytes([frame[38], frame[39]]) == 8 + CM_LEN as u16;
    let message = CmMessage::parse(frame.get(42..42 + CM_LEN)?).ok()?;
    is_message.then_some(Parcel::Message { from: address(12)?, to: address(16)?, message })
}
