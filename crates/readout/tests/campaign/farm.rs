// SPDX-License-Identifier: Apache-2.0
//! Many boards, a wire that loses, repeats, delays and damages packets, and a server: all in process, with one seed.
//! Promise: a tick is a microsecond of simulated time; all randomness comes from the seed.
//! The parts under test are the requester, the in-process back end and the receiver.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use bytes::Bytes;
use penstock_readout::backend::*;
use penstock_readout::*;
use penstock_transport::{
    Endpoint, Mtu, PayloadSource, RecvStatus, Requester, RequesterConfig, RequesterState, RetryLimits, SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Ipv4Addr, MacAddr, Payload, Psn, Qpn, RnrTimer, RocePacket};

pub const TICK: Time = Time::from_us(1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const MTU: Mtu = Mtu::B256;
const SLOTS: u32 = 16;
const SLOT_BYTES: u32 = 768;
/// Messages that a board has under way at a time.
const UNDER_WAY: usize = 8;
/// Ticks between events at a board.
const TIMESTAMP_STEP_NS: u64 = 1_000;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn happens(&mut self, per_million: u64) -> bool {
        self.next() % 1_000_000 < per_million
    }
}

/// Chances per million packets, in both directions.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    pub corrupt: u64,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct WireCounts {
    pub packets: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub damaged: u64,
    /// Those of them that no checksum gave away, since the damage is where routers may write.
    pub damaged_accepted: u64,
}

/// Packets by the tick of their arrival.
struct Wire {
    buckets: VecDeque<Vec<RocePacket>>,
    faults: Faults,
    counts: WireCounts,
}

impl Wire {
    const DELAY: usize = 2;
    const LATEST: usize = 32;

    fn new(faults: Faults) -> Self {
        Wire { buckets: vec![Vec::new(); Self::LATEST + 1].into(), faults, counts: WireCounts::default() }
    }

    fn send(&mut self, packet: RocePacket, random: &mut Random) {
        let Faults { loss, duplicate, reorder, corrupt } = self.faults;
        self.counts.packets += 1;
        let copies = if random.happens(duplicate) { 2 } else { 1 };
        self.counts.duplicated += copies - 1;
        for _ in 0..copies {
            if random.happens(loss) {
                self.counts.lost += 1;
                continue;
            }
            let late = random.happens(reorder);
            self.counts.reordered += u64::from(late);
            let extra = if late { 1 + random.next() as usize % (Self::LATEST - Self::DELAY) } else { 0 };
            let arrives = if random.happens(corrupt) { self.damage(&packet, random) } else { Some(packet.clone()) };
            self.buckets[Self::DELAY + extra].extend(arrives);
        }
    }

    /// One bit flips, and the receiving end reads what is left.
    fn damage(&mut self, packet: &RocePacket, random: &mut Random) -> Option<RocePacket> {
        self.counts.damaged += 1;
        let mut frame = packet.emit().to_vec();
        let at = random.next() as usize % frame.len();
        frame[at] ^= 1 << (random.next() % 8);
        let read = RocePacket::parse(&Bytes::from(frame)).ok();
        self.counts.damaged_accepted += u64::from(read.is_some());
        read
    }

    fn arrived(&mut self) -> Vec<RocePacket> {
        self.buckets.push_back(Vec::new());
        self.buckets.pop_front().unwrap_or_default()
    }
}

/// The payload of a fragment, 0 to 699 bytes: every pair of event and source has its own.
pub fn payload(event: u64, source: u16) -> Vec<u8> {
    let mut random = Random(event << 16 | u64::from(source));
    let len = random.next() as usize % 700;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Checks every event against what the boards sent, and remembers which were not whole.
#[derive(Default)]
pub struct Checker {
    pub first: Option<u64>,
    pub next: u64,
    pub complete: u64,
    pub fragments: u64,
    /// Number and missing sources of the others.
    pub incomplete: Vec<(u64, Vec<u16>)>,
}

impl EventSink for Checker {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.first.replace(self.first.unwrap_or(event.number)).is_some() {
            assert_eq!(event.number, self.next, "events come in order");
        }
        self.next = event.number + 1;
        for fragment in event.fragments {
            let sent = payload(event.number, fragment.source);
            assert!(fragment.payload == sent, "event {} of board {}", event.number, fragment.source);
            self.fragments += 1;
        }
        if event.complete {
            self.complete += 1;
        } else {
            self.incomplete.push((event.number, event.missing.to_vec()));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What a board sends: messages from `first` on that are not acknowledged.
#[derive(Default)]
struct Messages {
    first: u64,
    bytes: VecDeque<Bytes>,
}

impl PayloadSource for Messages {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let at = (va & 0xFFFF) as usize;
        Payload::Bytes(self.bytes[((va >> 16) - self.first) as usize].slice(at..at + len))
    }
}

pub struct BoardEnd {
    id: u16,
    local: LocalQp,
    requester: Requester,
    messages: Messages,
    /// Messages posted in its life.
    posted: u64,
    pub next_event: u64,
    /// Its clock, against everybody's.
    pub clock_offset_ns: u64,
}

fn board_ip(id: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, id as u8)
}

fn peer(id: u16, psn: Psn) -> PeerQp {
    let rnr_timer = RnrTimer::from_code(1);
    PeerQp { qpn: Qpn::new(0x200 + u32::from(id)), psn, ip: board_ip(id), mtu: MTU, rnr_timer }
}

impl BoardEnd {
    fn new(id: u16, local: LocalQp, psn: Psn, next_event: u64) -> Self {
        let mac = MacAddr([2, 0, 0, 0, 1, id as u8]);
        let board = Endpoint { mac, ip: board_ip(id), qpn: peer(id, psn).qpn };
        let server = Endpoint { mac: OUR_MAC, ip: OURS, qpn: local.qpn };
        let mut config = RequesterConfig::new(board, server, psn, MTU);
        config.limits = RetryLimits { ack_timeout: 6, ..RetryLimits::default() };
        let requester = Requester::new(config);
        let (messages, clock_offset_ns) = (Messages::default(), 0);
        BoardEnd { id, local, requester, messages, posted: 0, next_event, clock_offset_ns }
    }

    pub fn is_dead(&self) -> bool {
        matches!(self.requester.state(), RequesterState::Error(_))
    }

    /// The first event whose fragment has not been acknowledged.
    pub fn first_unacknowledged(&self) -> u64 {
        self.next_event - self.messages.bytes.len() as u64
    }

    fn fill(&mut self, until: u64) {
        while self.next_event < until && self.messages.bytes.len() < UNDER_WAY {
            let (event, n) = (self.next_event, self.posted);
            let payload = payload(event, self.id);
            let timestamp = event * TIMESTAMP_STEP_NS + self.clock_offset_ns;
            let header = FragmentHeader::for_payload(self.id, event, timestamp, &payload);
            let message = Bytes::from([&header.to_bytes()[..], &payload].concat());
            let slot = (n % u64::from(SLOTS)) as u32;
            let (len, remote_va) = (message.len() as u32, self.local.base + u64::from(slot * SLOT_BYTES));
            let (verb, rkey) = (Verb::WriteImm(slot), self.local.rkey);
            let wr = SendWr { wr_id: n, verb, va: n << 16, len, remote_va, rkey, solicited: false };
            self.requester.post_send(wr).expect("short messages are taken");
            self.messages.bytes.push_back(message);
            (self.next_event, self.posted) = (event + 1, n + 1);
        }
    }

    fn tick(&mut self, now: Time, until: u64) {
        self.requester.handle_timeout(now);
        while let Some(end) = self.requester.poll_completion() {
            if end.status == penstock_transport::SendStatus::Success {
                assert_eq!(end.wr_id, self.messages.first, "each message once, in order");
                self.messages.bytes.pop_front();
                self.messages.first += 1;
            }
        }
        if !self.is_dead() {
            self.fill(until);
        }
    }
}

/// One life of the server's process.
pub struct Server {
    backend: InProcess,
    pub receiver: Receiver<Checker>,
    specs: Vec<QpSpec>,
    done: Vec<Completion>,
    /// A board without a queue pair, whose ring must not be posted.
    closed: Option<u16>,
}

impl Server {
    fn new(boards: u16, seed: u64) -> (Server, Vec<LocalQp>) {
        let mut random = Random(seed);
        let entropy = Box::new(move || random.next() as u32);
        let mut backend = InProcess::new(OURS, OUR_MAC, entropy);
        let shape = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let (mut specs, mut memories, mut rings, mut locals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for board in 0..boards {
            let memory = RingMemory::allocate(shape.len(), Pages::Normal).expect("memory");
            let spec = QpSpec { board, memory: memory.mapping().clone(), len: shape.len(), max_receives: SLOTS };
            let local = backend.create_qp(&spec).expect("a first queue pair");
            rings.push(RingConfig { va: local.base, rkey: local.rkey, ..shape });
            specs.push(spec);
            memories.push(memory);
            locals.push(local);
        }
        let builder = BuilderConfig {
            sources: NonZeroU16::new(boards).expect("boards"),
            timeout: TICK * 20_000,
            ..BuilderConfig::default()
        };
        let config = ReceiverConfig { rings, builder, consumer_rate: None };
        let receiver = Receiver::with_memories(config, memories, Checker::default()).expect("rings that fit");
        (Server { backend, receiver, specs, done: Vec::new(), closed: None }, locals)
    }

    fn tick(&mut self, now: Time) {
        let Server { backend, receiver, done, .. } = self;
        backend.poll(receiver, PollMode::Busy, Time::ZERO, done).expect("nothing can fail");
        for end in done.drain(..).filter(|end| end.status == RecvStatus::Success) {
            receiver.on_completion(now, end.board, end.slot(), end.byte_len).expect("the sink takes all");
        }
        if receiver.poll_timeout().is_some_and(|at| at <= now) {
            receiver.handle_timeout(now).expect("the sink takes all");
        }
        for spec in self.specs.iter().filter(|spec| self.closed != Some(spec.board)) {
            let mut receives = Vec::new();
            receiver.take_receives(spec.board, |wr| receives.push(wr));
            if !receives.is_empty() {
                backend.post_receives(spec.board, &receives).expect("the queue pair is there");
            }
        }
    }

    /// A counter of all boards together.
    pub fn counter(&self, name: &str) -> u64 {
        let of_board = |spec: &QpSpec| self.backend.board_counters(spec.board);
        self.specs.iter().flat_map(of_board).filter(|(n, _)| n == name).map(|(_, value)| value).sum()
    }
}

/// All of it.
pub struct Farm {
    pub server: Server,
    pub boards: Vec<BoardEnd>,
    wire: Wire,
    random: Random,
    pub now: Time,
    /// Added to what the server's clock shows.
    pub server_clock_ps: i64,
    seed: u64,
}

impl Farm {
    pub fn new(boards: u16, faults: Faults, seed: u64) -> Farm {
        println!("seed {seed}");
        let (mut server, locals) = Server::new(boards, seed);
        let mut random = Random(seed);
        let join = |(board, local): (u16, LocalQp)| {
            let psn = Psn::new(random.next() as u32);
            server.backend.connect(board, &peer(board, psn)).expect("the queue pair is there");
            BoardEnd::new(board, local, psn, 0)
        };
        let boards = (0..).zip(locals).map(join).collect();
        Farm { server, boards, wire: Wire::new(faults), random, now: Time::ZERO, server_clock_ps: 0, seed }
    }

    /// A microsecond; boards send fragments of events before `until`.
    pub fn tick(&mut self, until: u64) {
        self.now += TICK;
        for packet in self.wire.arrived() {
            match packet.ip_dst == OURS {
                true => self.server.backend.arrive(self.now, packet),
                false => {
                    let board = &mut self.boards[usize::from(packet.ip_dst.octets()[3])];
                    board.requester.handle_packet(self.now, &packet);
                }
            }
        }
        self.server.tick(self.server_now());
        while let Some(reply) = self.server.backend.take_reply() {
            self.wire.send(reply, &mut self.random);
        }
        for board in &mut self.boards {
            board.tick(self.now, until);
            let BoardEnd { requester, messages, .. } = board;
            if let Some(packet) = requester.poll_transmit(self.now, messages) {
                self.wire.send(packet, &mut self.random);
            }
        }
    }

    /// Runs until every fragment of the events before `until` has been acknowledged.
    pub fn run(&mut self, until: u64) {
        let limit = self.now + TICK * ((until + 1000) * 1000);
        while self.boards.iter().any(|board| board.first_unacknowledged() < until) {
            self.tick(until);
            assert!(self.boards.iter().all(|board| !board.is_dead()), "a queue pair gave up");
            assert!(self.now < limit, "the boards are stuck");
        }
    }

    /// What the clock of the server's machine shows.
    fn server_now(&self) -> Time {
        Time(self.now.as_ps().saturating_add_signed(self.server_clock_ps))
    }

    /// Ends the run, with a look at what has come out.
    pub fn finish(&mut self) -> &Checker {
        self.server.receiver.finish(self.server_now()).expect("the sink takes all");
        self.server.receiver.sink()
    }

    /// The process dies and another one takes its place; boards find out by themselves. Returns the first server.
    pub fn replace_server(&mut self) -> Server {
        let (mut server, locals) = Server::new(self.boards.len() as u16, self.seed + 1);
        std::mem::swap(&mut self.server, &mut server);
        let mut waited = 0;
        while self.boards.iter().any(|board| !board.is_dead()) {
            self.tick(u64::MAX);
            waited += 1;
            assert!(waited < 20_000, "a board goes on sending to a server that is dead");
        }
        // Only now: what the dead server had acknowledged was still on its way.
        let first_event = self.boards.iter().map(BoardEnd::first_unacknowledged).min().unwrap_or(0);
        self.server.receiver.begin_at(first_event);
        for (id, local) in (0..).zip(locals) {
            self.reopen(id, local, self.boards[usize::from(id)].first_unacknowledged());
        }
        server
    }

    /// A board loses power in the middle of what it is doing, and begins again with event `next_event`.
    pub fn restart_board(&mut self, id: u16, next_event: u64, until: u64) {
        self.server.backend.close_qp(id, &mut Vec::new()).expect("it closes");
        self.server.closed = Some(id);
        let spec = self.server.specs[usize::from(id)].clone();
        // Its ring is needed until the events that its fragments are part of are stored; the others go on meanwhile.
        self.boards[usize::from(id)].requester.close();
        let limit = self.now + TICK * 100_000;
        let local = loop {
            let local = self.server.backend.create_qp(&spec).expect("a next life");
            if self.server.receiver.restart_ring(id, local.rkey) {
                break local;
            }
            self.server.backend.close_qp(id, &mut Vec::new()).expect("it closes");
            self.tick(until);
            assert!(self.now < limit, "the ring never comes free");
        };
        self.server.closed = None;
        self.reopen(id, local, next_event);
    }

    fn reopen(&mut self, id: u16, local: LocalQp, next_event: u64) {
        let psn = Psn::new(self.random.next() as u32);
        self.server.backend.connect(id, &peer(id, psn)).expect("the queue pair is there");
        let old = &self.boards[usize::from(id)];
        let offset = old.clock_offset_ns;
        let mut board = BoardEnd::new(id, local, psn, next_event);
        board.clock_offset_ns = offset;
        self.boards[usize::from(id)] = board;
    }

    pub fn wire(&self) -> WireCounts {
        self.wire.counts
    }

    pub fn retransmitted(&self) -> u64 {
        self.boards.iter().map(|board| board.requester.counters().retransmitted_pkts).sum()
    }
}
