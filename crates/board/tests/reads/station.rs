// SPDX-License-Identifier: Apache-2.0
//! A board whose memory peers READ and WRITE, and that they SEND to, while it writes into theirs; and the network
//! between them.

use crate::common::{endpoint_config, local, peer, qp_config, FIRST_PSN, REGION};
use crate::network::Way;
use bytes::Bytes;
use penstock_board::{qp_register, regs, Board, Completion, Message, ReadWindow, ReceivedMessage, Top, Verb, CYCLE};
use penstock_netsim::Stream;
use penstock_transport::{
    Memory, Mtu, PayloadSource, Requester, RequesterConfig, Responder, ResponderConfig, Response, RetryLimits,
    SendStatus, SendWr,
};
use penstock_wire::{Operation, Packet, Payload, Psn, RocePacket};

/// The window of every queue pair: all that the rings leave.
pub const WINDOW: u64 = 1 << 20;
pub const WINDOW_BYTES: usize = 3 << 20;
/// Code of 10 us.
const RNR_TIMER: u8 = 1;
/// The PSNs of requests pass through 0.
pub const READ_PSN: Psn = Psn::new(0xff_fff0);
/// How long the board runs before what it has sent is looked at; shorter than any packet takes.
const CHUNK_CYCLES: u64 = 50;
/// No run takes as long.
const LATEST: u64 = 20_000_000;
/// Where the messages of a queue pair go, one after another, and how long they may be. Fewer are under way at a time.
const SLOTS: usize = 16;
const SLOT_BYTES: u64 = REGION.len / SLOTS as u64;
const MESSAGES_AHEAD: usize = 6;
const LONGEST_MESSAGE: u64 = 20_000;

/// Queue pairs, and the network between them.
pub struct Setup {
    pub queue_pairs: u8,
    pub mtu: Mtu,
    /// The part of all packets that is lost; as many are repeated, and as many are overtaken.
    pub percent: u64,
    /// READs that the board lets a peer have outstanding, and those that it has at most.
    pub depth: u8,
    pub outstanding: u8,
    /// Packets that a peer may have outstanding, answers to READs among them.
    pub window: u32,
    /// Code of the ACK timers at both ends: longer than all that is outstanding takes.
    pub ack_timeout: u8,
}

pub fn rkey(index: u8) -> u32 {
    0xfeed_0000 + u32::from(index)
}

/// A request: a READ and what has come of it, or the bytes of a WRITE or SEND.
struct Request {
    va: u64,
    bytes: Vec<u8>,
    len: u32,
    is_read: bool,
}

/// Bits of a message's address in its peer: above them the number of its request.
const OFFSET_BITS: u32 = 32;

/// The bytes of a peer's messages.
struct Posted<'a>(&'a [Request]);

impl PayloadSource for Posted<'_> {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let (number, from) = ((va >> OFFSET_BITS) as usize, (va & ((1 << OFFSET_BITS) - 1)) as usize);
        Payload::Bytes(Bytes::copy_from_slice(&self.0[number].bytes[from..from + len]))
    }
}

/// A server's memory.
struct Store(Vec<u8>);

impl Memory for Store {
    fn write(&mut self, va: u64, data: &Payload) {
        let at = (va - REGION.va) as usize;
        self.0[at..at + data.len()].copy_from_slice(data.as_bytes().expect("a board sends bytes"));
    }
}

pub struct Peer {
    pub requester: Requester,
    server: Responder,
    store: Store,
    requests: Vec<Request>,
    pub statuses: Vec<SendStatus>,
}

/// A message of the board that has not ended.
struct Written {
    message: Message,
    number: usize,
}

pub struct Station {
    pub board: Board,
    pub peers: Vec<Peer>,
    pub to_board: Way<Bytes>,
    pub to_peers: Way<RocePacket>,
    random: Stream,
    /// What the windows hold once all that was posted has ended.
    pub window: Vec<u8>,
    under_way: Vec<Written>,
    /// Messages that the board has been given, of each queue pair.
    posted: Vec<usize>,
    pub ended: Vec<Completion>,
    /// Messages of peers, in the order in which they came.
    pub received: Vec<ReceivedMessage>,
}

impl Station {
    pub fn open(seed: u64, setup: &Setup) -> Self {
        let Setup { queue_pairs, mtu, percent, depth, ack_timeout, .. } = *setup;
        let mut random = Stream::new(seed, "memory");
        let window: Vec<u8> = (0..WINDOW_BYTES / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        let mut board = Board::of(Top::Gbps10Reads);
        board.put_memory(WINDOW, &window);
        board.configure(&endpoint_config()).unwrap();
        for index in 0..queue_pairs {
            let (psn, rkey, base, len) = (READ_PSN, rkey(index), WINDOW, WINDOW_BYTES as u64);
            board.set_read_window(index, &ReadWindow { psn, rkey, base, len, depth }).unwrap();
            board.permit_writes(index, RNR_TIMER).unwrap();
            board.open_qp(index, &qp_config(index, mtu.bytes() as u16, ack_timeout)).unwrap();
        }
        Self {
            board,
            peers: (0..queue_pairs).map(|index| Peer::new(index, setup)).collect(),
            to_board: Way::new(seed, "to the board", percent),
            to_peers: Way::new(seed, "to the peers", percent),
            random,
            window,
            under_way: Vec::new(),
            posted: vec![0; queue_pairs.into()],
            ended: Vec::new(),
            received: Vec::new(),
        }
    }

    /// Has the peer of a queue pair READ this.
    pub fn read(&mut self, index: u8, va: u64, len: u32, rkey: u32) {
        let request = Request { va, bytes: Vec::new(), len, is_read: true };
        self.peers[usize::from(index)].post(penstock_transport::Verb::Read, request, rkey);
    }

    /// Has the peer of a queue pair WRITE these bytes, or SEND them.
    pub fn send(&mut self, index: u8, verb: penstock_transport::Verb, va: u64, bytes: Vec<u8>, rkey: u32) {
        let request = Request { va, len: bytes.len() as u32, bytes, is_read: false };
        self.peers[usize::from(index)].post(verb, request, rkey);
    }

    /// Gives the board a message of random length and content.
    pub fn write(&mut self, index: u8) {
        let number: usize = self.posted.iter().sum();
        let place = self.posted[usize::from(index)] % SLOTS;
        self.posted[usize::from(index)] += 1;
        let payload: Vec<u8> =
            (0..1 + self.random.below(LONGEST_MESSAGE)).map(|_| self.random.next_u32() as u8).collect();
        let remote_address = REGION.va + place as u64 * SLOT_BYTES;
        let (qp, tag, payload) = (index, number as u32, Bytes::from(payload));
        let message = Message { qp, verb: Verb::Write, imm: None, remote_address, tag, payload };
        self.board.post(message.clone());
        self.under_way.push(Written { message, number });
    }

    /// Keeps the board writing, by its queue pairs in turn, until all requests have ended; then until its messages have.
    pub fn run_while_writing(&mut self) {
        while !self.peers.iter().all(Peer::is_done) {
            while self.under_way.len() < MESSAGES_AHEAD {
                let number: usize = self.posted.iter().sum();
                self.write((number % self.peers.len()) as u8);
            }
            self.step();
        }
        self.run();
    }

    /// Until all requests and messages have ended.
    pub fn run(&mut self) {
        while !self.peers.iter().all(Peer::is_done) || !self.under_way.is_empty() {
            self.step();
        }
    }

    /// Until all requests have ended, and the board's user has taken so many messages: an acknowledged one may still wait in
    /// the stream's buffer.
    pub fn run_until_received(&mut self, messages: usize) {
        self.run();
        while self.received.len() < messages {
            self.step();
        }
    }

    /// The board's state of a queue pair, as `enum ibv_qp_state`.
    pub fn state(&mut self, index: u8) -> u32 {
        use regs::qp as q;
        q::STATE_BITS.of(self.board.read(qp_register(index, q::STATE)).unwrap())
    }

    pub fn step(&mut self) {
        let until = self.board.cycle() + CHUNK_CYCLES;
        assert!(until < LATEST, "requests and messages that do not end");
        for (cycle, frame) in self.to_board.arrived(until) {
            self.board.receive(cycle, frame, true);
        }
        self.board.run_until(until);
        while let Some(received) = self.board.poll_transmit() {
            assert!(received.fcs_ok, "{received:?}");
            let Ok(Packet::Roce(packet)) = Packet::parse(received.frame.clone()) else { panic!("{received:?}") };
            self.to_peers.send(until, packet);
        }
        for (_, packet) in self.to_peers.arrived(until) {
            let index = packet.bth.dest_qpn.value() - peer(0).qpn.value();
            self.peers[index as usize].take(until, &packet, &self.window);
        }
        for peer in &mut self.peers {
            peer.answer(until, |frame| self.to_board.send(until, frame));
        }
        while let Some(completion) = self.board.poll_completion() {
            self.end(completion);
        }
        while let Some(message) = self.board.poll_received() {
            self.received.push(message);
        }
    }

    /// A message of the board has ended: what succeeded is at its place, byte by byte.
    fn end(&mut self, completion: Completion) {
        let at = self.under_way.iter().position(|written| written.number as u32 == completion.tag);
        let Written { message, .. } = self.under_way.remove(at.expect("one of its messages, once"));
        if completion.status == penstock_board::WcStatus::Success {
            let (from, len) = ((message.remote_address - REGION.va) as usize, message.payload.len());
            let store = &self.peers[usize::from(message.qp)].store.0;
            assert!(store[from..from + len] == message.payload, "bytes of {completion:?}");
        }
        self.ended.push(completion);
    }
}

impl Peer {
    fn new(index: u8, setup: &Setup) -> Self {
        let Setup { mtu, outstanding: initiator_depth, window, ack_timeout, .. } = *setup;
        let limits = RetryLimits { ack_timeout, ..RetryLimits::default() };
        let config = RequesterConfig::new(peer(index), local(index), READ_PSN, mtu);
        let server = ResponderConfig::new(peer(index), local(index), FIRST_PSN, mtu);
        Self {
            requester: Requester::new(RequesterConfig { limits, window, initiator_depth, ..config }),
            server: Responder::new(server.with_region(REGION)),
            store: Store(vec![0; REGION.len as usize]),
            requests: Vec::new(),
            statuses: Vec::new(),
        }
    }

    fn post(&mut self, verb: penstock_transport::Verb, request: Request, rkey: u32) {
        let wr_id = self.requests.len() as u64;
        let va = if request.is_read { 0 } else { wr_id << OFFSET_BITS };
        let (len, remote_va) = (request.len, request.va);
        self.requester.post_send(SendWr { wr_id, verb, va, len, remote_va, rkey, solicited: false }).unwrap();
        self.requests.push(request);
    }

    fn is_done(&self) -> bool {
        self.statuses.len() == self.requests.len()
    }

    /// A packet of the board: an answer to a READ, or one of its messages.
    fn take(&mut self, cycle: u64, packet: &RocePacket, window: &[u8]) {
        let now = CYCLE * cycle;
        match packet.bth.opcode.operation() {
            Operation::ReadResponse | Operation::Acknowledge => {
                if let Response::ReadData { wr_id, va } = self.requester.handle_packet(now, packet) {
                    let read = &mut self.requests[wr_id as usize];
                    assert_eq!(va, read.bytes.len() as u64, "bytes of READ {wr_id} out of order");
                    read.bytes.extend(packet.payload.as_bytes().expect("a board sends bytes"));
                }
            }
            _ => {
                self.server.handle_packet(now, packet, &mut self.store);
            }
        }
        while let Some(ended) = self.requester.poll_completion() {
            assert_eq!(ended.wr_id, self.statuses.len() as u64, "requests end in their order");
            let read = &mut self.requests[ended.wr_id as usize];
            if ended.status == SendStatus::Success && read.is_read {
                let from = (read.va - WINDOW) as usize;
                assert!(
                    read.bytes == window[from..from + read.len as usize],
                    "bytes of READ {}: {} at {:#x}",
                    ended.wr_id,
                    read.len,
                    read.va
                );
            }
            read.bytes = Vec::new();
            self.statuses.push(ended.status);
        }
    }

    /// What it sends now.
    fn answer(&mut self, cycle: u64, mut send: impl FnMut(Bytes)) {
        let now = CYCLE * cycle;
        if self.requester.next_timeout().is_some_and(|due| due <= now) {
            self.requester.handle_timeout(now);
        }
        while let Some(request) = self.requester.poll_transmit(now, &mut Posted(&self.requests)) {
            send(request.emit());
        }
        while let Some(reply) = self.server.poll_transmit(&mut self.store) {
            send(reply.emit());
        }
    }
}
