// SPDX-License-Identifier: Apache-2.0
//! A verilated front end keeps the messages of its rings and announces them, and a server READs them, by the rules of
//! `penstock-pull` and with the requester of `penstock-transport`: every byte, once and in order, whatever the network does
//! to announcements, READs and answers, of boards that always have more and of those that wait.
//!
//! `PENSTOCK_SEED` sets the seed, which is printed.

mod common;
#[path = "reads/network.rs"]
mod network;

use bytes::Bytes;
use common::{endpoint_config, local, peer, qp_config, FIRST_PSN};
use network::Way;
use penstock_board::regs::{self, counters};
use penstock_board::{qp_register, Board, Completion, Message, PullConfig, Top, Verb, WcStatus, CYCLE};
use penstock_netsim::{PullConfig as Reading, PullWindow, Rate, Stream, Time};
use penstock_pull::{Fragment, Intake, Offer, Scheduler};
use penstock_transport::{
    Access, Memory, MemoryRegion, Mtu, RecvWr, Requester, RequesterConfig, Responder, ResponderConfig, Response,
    RetryLimits, SendStatus, SendWr, VirtualPayload,
};
use penstock_wire::{
    Operation, Packet, Payload, Psn, RocePacket, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN, SUCCESSORS_LEN,
};
use std::collections::VecDeque;

/// The PSNs of READs pass through 0.
const READ_PSN: Psn = Psn::new(0xff_fff0);
const LONGEST: u64 = 20_000;
/// How long the board runs before what it has sent is looked at; shorter than any packet takes.
const CHUNK_CYCLES: u64 = 50;
/// No run takes as long.
const LATEST: u64 = 20_000_000;
/// Code of an ACK timer of 65 us.
const US_65: u8 = 4;
/// The ring of announcements at the server.
const RING: MemoryRegion = MemoryRegion {
    va: 0x7000,
    rkey: common::REGION.rkey,
    len: ANNOUNCEMENT_SLOTS as u64 * ANNOUNCEMENT_SLOT_LEN as u64,
    access: Access::RemoteWrite,
};
/// Messages that a busy board is given ahead.
const AHEAD: usize = 8;
/// Fragments that each queue pair keeps (`PULL_SLOTS` of `build.rs`).
const SLOTS: usize = 256;

fn seed() -> u64 {
    let seed = std::env::var("PENSTOCK_SEED").map_or(1, |text| text.parse().expect("PENSTOCK_SEED is a number"));
    println!("PENSTOCK_SEED={seed}");
    seed
}

fn rkey(index: u8) -> u32 {
    0xfeed_0000 + u32::from(index)
}

/// The server's ring of a queue pair.
struct Ring(Vec<u8>);

impl Memory for Ring {
    fn write(&mut self, va: u64, data: &Payload) {
        let at = (va - RING.va) as usize;
        self.0[at..at + data.len()].copy_from_slice(data.as_bytes().expect("a board sends bytes"));
    }
}

/// The server's end of a queue pair.
struct Server {
    requester: Requester,
    responder: Responder,
    ring: Ring,
    intake: Intake,
    /// Bytes of the fragment that is being read.
    bytes: Vec<u8>,
    announcements: u32,
}

const RECEIVE: RecvWr = RecvWr { wr_id: 0, va: 0, len: ANNOUNCEMENT_SLOT_LEN as u32 };

impl Server {
    fn new(index: u8, mtu: Mtu) -> Self {
        let limits = RetryLimits { ack_timeout: US_65, ..RetryLimits::default() };
        let config = RequesterConfig::new(peer(index), local(index), READ_PSN, mtu);
        let responder = ResponderConfig::new(peer(index), local(index), FIRST_PSN, mtu);
        let mut responder = Responder::new(responder.with_region(RING));
        (0..ANNOUNCEMENT_SLOTS).for_each(|_| responder.post_receive(RECEIVE));
        Server {
            requester: Requester::new(RequesterConfig { limits, window: 1 << 22, initiator_depth: 16, ..config }),
            responder,
            ring: Ring(vec![0; RING.len as usize]),
            intake: Intake::default(),
            bytes: Vec::new(),
            announcements: 0,
        }
    }

    /// A packet of the board; what may be read then is added to `offers`. How many READs have ended.
    fn take(&mut self, now: Time, packet: &RocePacket, offers: &mut Vec<Offer>) -> usize {
        match packet.bth.opcode.operation() {
            Operation::ReadResponse | Operation::Acknowledge => {
                if let Response::ReadData { .. } = self.requester.handle_packet(now, packet) {
                    self.bytes.extend(packet.payload.as_bytes().expect("a board sends bytes"));
                }
            }
            _ => {
                self.responder.handle_packet(now, packet, &mut self.ring);
            }
        }
        while let Some(message) = self.responder.poll_completion() {
            let slot = self.announcements % ANNOUNCEMENT_SLOTS;
            assert_eq!(message.imm, Some(slot), "announcement {}", self.announcements);
            let at = slot as usize * ANNOUNCEMENT_SLOT_LEN;
            self.intake.take_message(&self.ring.0[at..at + message.byte_len as usize], offers).unwrap();
            self.responder.post_receive(RECEIVE);
            self.announcements += 1;
        }
        let ended = std::iter::from_fn(|| self.requester.poll_completion());
        ended.inspect(|read| assert_eq!(read.status, SendStatus::Success)).count()
    }
}

/// When messages come.
#[derive(Clone, Copy)]
enum Load {
    /// There is always another one.
    Busy,
    /// One comes so many cycles after all before it have been read.
    Idle(u64),
}

/// A board, its server, and the network between them.
struct Station {
    board: Board,
    servers: Vec<Server>,
    scheduler: Scheduler,
    to_board: Way<Bytes>,
    to_servers: Way<RocePacket>,
    random: Stream,
    /// Messages of each queue pair that were given to the board and have not been read: event and bytes.
    kept: Vec<VecDeque<(u64, Bytes)>>,
    /// The last event of each queue pair.
    events: Vec<u64>,
    given: usize,
    read: usize,
    offers: Vec<Offer>,
    completions: Vec<Completion>,
    /// Whether the server posts READs.
    reads: bool,
}

impl Station {
    fn open(seed: u64, queue_pairs: u8, mtu: Mtu, percent: u64) -> Self {
        let mut board = Board::of(Top::Gbps10Reads);
        board.configure(&endpoint_config()).unwrap();
        board.keep_fragments(LONGEST).unwrap();
        let reading = Reading {
            window: PullWindow::Measured { line: Rate::from_gbps(10) },
            outstanding: 16,
            mtu: mtu.bytes() as u32,
            packet_overhead: 82,
            slots: SLOTS as u32,
            longest: LONGEST as u32 + SUCCESSORS_LEN as u32,
            patience: Time::from_ms(1),
        };
        let mut station = Station {
            board,
            servers: (0..queue_pairs).map(|index| Server::new(index, mtu)).collect(),
            scheduler: Scheduler::new(reading, queue_pairs.into()).unwrap(),
            to_board: Way::new(seed, "to the board", percent),
            to_servers: Way::new(seed, "to the servers", percent),
            random: Stream::new(seed, "messages"),
            kept: vec![VecDeque::new(); queue_pairs.into()],
            events: vec![0; queue_pairs.into()],
            given: 0,
            read: 0,
            offers: Vec::new(),
            completions: Vec::new(),
            reads: true,
        };
        (0..queue_pairs).for_each(|index| station.open_qp(index, mtu));
        station
    }

    fn open_qp(&mut self, index: u8, mtu: Mtu) {
        self.board.set_pull(index, &PullConfig { psn: READ_PSN, rkey: rkey(index), ring: RING.va }).unwrap();
        self.board.open_qp(index, &qp_config(index, mtu.bytes() as u16, US_65)).unwrap();
    }

    /// Gives the board a message of a queue pair: most are short, and few events are skipped.
    fn give(&mut self, index: u8) {
        let most = [60, 3_000, LONGEST][self.random.below(6).saturating_sub(3) as usize];
        let length = [1, LONGEST, 1 + self.random.below(most)][self.random.below(32).min(2) as usize];
        let words = std::iter::repeat_with(|| self.random.next_u64().to_le_bytes());
        let payload: Bytes = words.take(length.div_ceil(8) as usize).flatten().take(length as usize).collect();
        let skipped = [0, self.random.below(300)][usize::from(self.random.below(8) == 0)];
        let event = self.events[usize::from(index)] + 1 + skipped;
        self.events[usize::from(index)] = event;
        let (verb, tag, payload) = (Verb::RingWrite, self.given as u32, payload);
        self.kept[usize::from(index)].push_back((event, payload.clone()));
        self.board.post(Message { qp: index, verb, imm: None, remote_address: event, tag, payload });
        self.given += 1;
    }

    /// Until all of `messages` messages, of all queue pairs in turn, have been read.
    fn run(&mut self, messages: usize, load: Load) {
        let mut next = 0;
        while self.read < messages {
            let is_due = match load {
                Load::Busy => self.board.pending_messages() < AHEAD,
                Load::Idle(_) => self.read == self.given && self.board.cycle() >= next,
            };
            if is_due && self.given < messages {
                self.give((self.given % self.servers.len()) as u8);
            }
            self.step();
            if let (Load::Idle(cycles), true) = (load, self.read < self.given) {
                next = self.board.cycle() + cycles;
            }
        }
    }

    fn step(&mut self) {
        let until = self.board.cycle() + CHUNK_CYCLES;
        assert!(until < LATEST, "{} of {} messages have been read", self.read, self.given);
        for (cycle, frame) in self.to_board.arrived(until) {
            self.board.receive(cycle, frame, true);
        }
        self.board.run_until(until);
        while let Some(received) = self.board.poll_transmit() {
            assert!(received.fcs_ok, "{received:?}");
            let Ok(Packet::Roce(packet)) = Packet::parse(received.frame.clone()) else { panic!("{received:?}") };
            self.to_servers.send(until, packet);
        }
        let now = CYCLE * until;
        for (_, packet) in self.to_servers.arrived(until) {
            let index = (packet.bth.dest_qpn.value() - peer(0).qpn.value()) as usize;
            let ended = self.servers[index].take(now, &packet, &mut self.offers);
            self.announced(index);
            (0..ended).for_each(|_| self.arrived(now, index));
        }
        self.answer(now, until);
        self.completions.extend(std::iter::from_fn(|| self.board.poll_completion()));
    }

    /// Has what was announced read.
    fn announced(&mut self, index: usize) {
        for Offer { fragment, rkey: key } in self.offers.drain(..) {
            assert_eq!(key, rkey(index as u8));
            let length = fragment.length + SUCCESSORS_LEN as u32;
            let (event, address) = (fragment.event, fragment.address);
            self.scheduler.announce(index, Fragment { rank: event, event, address, length }).unwrap();
        }
    }

    /// A READ has ended. With its last part a fragment is whole: it is the oldest one, byte by byte.
    fn arrived(&mut self, now: Time, index: usize) {
        let read = self.scheduler.arrive(now, index).expect("READs that were posted");
        if !read.is_last {
            return;
        }
        let bytes = std::mem::take(&mut self.servers[index].bytes);
        let (fragment, successors) = bytes.split_at(bytes.len() - SUCCESSORS_LEN);
        let (event, payload) = self.kept[index].pop_front().expect("fragments that the board was given");
        assert_eq!((read.event, fragment.len()), (event, payload.len()), "queue pair {index}");
        assert!(fragment == payload, "bytes of event {event} of queue pair {index}");
        self.read += 1;
        self.servers[index].intake.take_successors(successors.try_into().unwrap(), &mut self.offers).unwrap();
        self.announced(index);
    }

    /// What the server sends now.
    fn answer(&mut self, now: Time, cycle: u64) {
        self.scheduler.handle_timeout(now);
        while let Some(read) = self.reads.then(|| self.scheduler.poll_read(now)).flatten() {
            let (len, remote_va, rkey) = (read.length, read.address, rkey(read.board as u8));
            let verb = penstock_transport::Verb::Read;
            let wr = SendWr { wr_id: 0, verb, va: 0, len, remote_va, rkey, solicited: false };
            self.servers[read.board].requester.post_send(wr).unwrap();
        }
        for server in &mut self.servers {
            if server.requester.next_timeout().is_some_and(|due| due <= now) {
                server.requester.handle_timeout(now);
            }
            while let Some(request) = server.requester.poll_transmit(now, &mut VirtualPayload) {
                self.to_board.send(cycle, request.emit());
            }
            while let Some(reply) = server.responder.poll_transmit(&mut server.ring) {
                self.to_board.send(cycle, reply.emit());
            }
        }
    }

    /// Everything was read, nothing was lost or sent as before, and every announcement was acknowledged.
    fn check(&mut self, percent: u64) {
        let read = |board: &mut Board, counter| board.read(counter).unwrap();
        let announced: u32 = self.servers.iter().map(|server| server.announcements).sum();
        while self.completions.len() < announced as usize {
            self.step();
        }
        assert!(self.completions.iter().all(|ended| ended.status == WcStatus::Success), "{:?}", self.completions);
        assert_eq!(read(&mut self.board, counters::ANNOUNCEMENTS), announced);
        assert_eq!(read(&mut self.board, counters::FRAGMENTS_DROPPED), 0);
        assert_eq!(read(&mut self.board, counters::STORE_WRITE_ERRORS), 0);
        let fates = [self.to_board.fates, self.to_servers.fates];
        assert_eq!(fates.iter().all(|fates| fates.lost > 0 && fates.repeated > 0 && fates.late > 0), percent > 0);
        let retransmitted = |server: &Server| server.requester.counters().retransmitted_pkts > 0;
        assert_eq!(self.servers.iter().any(retransmitted), percent > 0);
        println!("{} messages, {announced} announcements, {} cycles, {fates:?}", self.read, self.board.cycle());
    }
}

#[test]
fn every_byte_of_a_busy_board_is_read() {
    for mtu in [Mtu::B1024, Mtu::B4096] {
        let mut station = Station::open(seed(), 4, mtu, 0);
        station.run(1500, Load::Busy);
        station.check(0);
        let announced: u32 = station.servers.iter().map(|server| server.announcements).sum();
        assert!(announced < 750, "{announced} announcements: READs bring most");
    }
}

#[test]
fn every_byte_of_a_busy_board_is_read_through_loss_repetition_and_reordering() {
    for (queue_pairs, mtu) in [(4, Mtu::B1024), (1, Mtu::B4096)] {
        let mut station = Station::open(seed(), queue_pairs, mtu, 1);
        station.run(1500, Load::Busy);
        station.check(1);
    }
}

#[test]
fn an_idle_board_announces_each_message_at_once() {
    let mut station = Station::open(seed(), 2, Mtu::B4096, 0);
    station.run(150, Load::Idle(500));
    station.check(0);
    let announced: u32 = station.servers.iter().map(|server| server.announcements).sum();
    assert_eq!(announced, 150);
}

#[test]
fn every_byte_of_an_idle_board_is_read_through_loss_repetition_and_reordering() {
    let mut station = Station::open(seed(), 2, Mtu::B1024, 1);
    station.run(150, Load::Idle(500));
    station.check(1);
}

#[test]
fn a_queue_pair_that_is_closed_counts_what_was_not_read_and_opens_again() {
    const KEPT: u32 = 40;
    let mut station = Station::open(seed(), 2, Mtu::B4096, 0);
    station.run(100, Load::Busy);
    station.reads = false;
    for _ in 0..KEPT {
        station.give(0);
    }
    // All are in the board's memory, and what may be announced has been.
    for _ in 0..1000 {
        station.step();
    }
    station.board.write(qp_register(0, regs::qp::STATE), 0).unwrap();
    for _ in 0..100 {
        station.step();
    }
    assert_eq!(station.board.read(counters::FRAGMENTS_DROPPED).unwrap(), KEPT);

    let unread = station.kept[0].len();
    station.kept[0].clear();
    station.scheduler.forget(0);
    station.servers[0] = Server::new(0, Mtu::B4096);
    station.reads = true;
    station.open_qp(0, Mtu::B4096);
    station.read += unread;
    station.run(400, Load::Busy);
    assert_eq!(station.board.read(counters::FRAGMENTS_DROPPED).unwrap(), KEPT);
}

#[test]
fn a_board_that_is_not_read_keeps_its_slots_full_and_loses_nothing() {
    let mut station = Station::open(seed(), 1, Mtu::B4096, 0);
    station.reads = false;
    while station.given < SLOTS + AHEAD {
        station.give(0);
    }
    for _ in 0..4_000 {
        station.step();
    }
    assert_eq!(station.board.pending_messages(), AHEAD, "{SLOTS} are kept");
    station.reads = true;
    station.run(SLOTS + 100, Load::Busy);
    station.check(0);
}
