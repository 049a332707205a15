// SPDX-License-Identifier: Apache-2.0
//! One pool of slots for many boards, some of which are far ahead of others.
//! Promise checked: with a pool of any size every event is complete, and the boards are held back together; copies let
//! boards run ahead as far as the memory for copies allows.

use std::num::NonZeroU16;

use bytes::Bytes;
use penstock_readout::backend::*;
use penstock_readout::*;
use penstock_transport::{
    Endpoint, Mtu, PayloadSource, RecvStatus, Requester, RequesterConfig, SendStatus, SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Ipv4Addr, MacAddr, Payload, Psn, Qpn, RnrTimer};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const BOARDS: u16 = 16;
const SLOT_BYTES: u32 = 4096;
const LEN: u32 = 3040;
const TICK: Time = Time::from_us(20);
/// Messages that a board has under way at most.
const UNDER_WAY: u64 = 8;

fn message(board: u16, event: u64) -> Bytes {
    let payload: Vec<u8> = (0..LEN - 40).map(|i| (u64::from(i) * 7 + event + u64::from(board) * 3) as u8).collect();
    let mut bytes = FragmentHeader::for_payload(board, event, event, &payload).to_bytes().to_vec();
    bytes.extend_from_slice(&payload);
    bytes.into()
}

/// A board as fast as its credit of ticks: board b may do something in one tick of so many.
struct Board {
    requester: Requester,
    number: u16,
    every: u64,
    posted: u64,
    done: u64,
}

/// Message n lies at address n << 16, and is made when it is asked for.
struct Messages(u16);

impl PayloadSource for Messages {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let at = (va & 0xFFFF) as usize;
        Payload::Bytes(message(self.0, va >> 16).slice(at..at + len))
    }
}

/// Compares what is stored with what was sent.
#[derive(Default)]
struct Exact {
    events: u64,
}

impl EventSink for Exact {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        assert!(event.complete, "event {}: {:?} are missing", event.number, event.missing);
        assert_eq!(event.number, self.events);
        for part in event.fragments {
            assert_eq!(part.payload, &message(part.source, event.number)[40..], "event {}", event.number);
        }
        self.events += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Bench {
    backend: InProcess,
    receiver: Receiver<Exact>,
    boards: Vec<Board>,
    done: Vec<Completion>,
    now: Time,
}

impl Bench {
    /// `every` is the period of a board in ticks.
    fn new(slots: u32, copies: u32, every: impl Fn(u16) -> u64) -> Bench {
        let mut state = 7u32;
        let entropy = Box::new(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        });
        let mut backend = InProcess::new(OURS, OUR_MAC, entropy);
        let shape = RingConfig { slots, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let memory = RingMemory::allocate(shape.len(), Pages::Normal).unwrap();
        let (mapping, len) = (memory.mapping().clone(), shape.len());
        let pool = PoolSpec { memory: mapping.clone(), len, max_receives: slots, low: slots / 8, boards: BOARDS };
        let base = backend.share_receives(&pool).unwrap();
        let boards = (0..BOARDS).map(|number| {
            let spec = QpSpec { board: number, memory: mapping.clone(), len, max_receives: slots };
            let local = backend.create_qp(&spec).unwrap();
            let (ip, mac) = (Ipv4Addr::new(10, 0, 1, number as u8), MacAddr([2, 0, 0, 0, 1, number as u8]));
            let (qpn, psn, mtu) = (Qpn::new(0x200), Psn::new(0xFF_FFFE), Mtu::B1024);
            backend.connect(number, &PeerQp { qpn, psn, ip, mtu, rnr_timer: RnrTimer::from_code(8) }).unwrap();
            let server = Endpoint { mac: OUR_MAC, ip: OURS, qpn: local.qpn };
            let config = RequesterConfig::new(Endpoint { mac, ip, qpn }, server, psn, mtu);
            Board { requester: Requester::new(config), number, every: every(number), posted: 0, done: 0 }
        });
        let boards = boards.collect();
        let builder = BuilderConfig { sources: NonZeroU16::new(BOARDS).unwrap(), ..BuilderConfig::default() };
        let rings = vec![RingConfig { va: base, rkey: 0, ..shape }];
        let config = ReceiverConfig { rings, builder, consumer_rate: None };
        let pool = PoolConfig { copies };
        let receiver = Receiver::with_pool(config, pool, memory, Exact::default()).unwrap();
        Bench { backend, receiver, boards, done: Vec::new(), now: Time::ZERO }
    }

    fn tick(&mut self, events: u64) {
        let tick = self.now / TICK;
        self.now += TICK;
        for board in &mut self.boards {
            board.requester.handle_timeout(self.now);
            if !tick.is_multiple_of(board.every) {
                continue;
            }
            while board.posted < events.min(board.done + UNDER_WAY) {
                let (wr_id, va) = (board.posted, board.posted << 16);
                let wr = SendWr { wr_id, verb: Verb::Send, va, len: LEN, remote_va: 0, rkey: 0, solicited: false };
                board.requester.post_send(wr).unwrap();
                board.posted += 1;
            }
            // A packet each turn: boards are served in turn, as on a wire.
            for _ in 0..3 {
                let Some(packet) = board.requester.poll_transmit(self.now, &mut Messages(board.number)) else { break };
                self.backend.arrive(self.now, packet);
            }
        }
        self.receive();
        while let Some(reply) = self.backend.take_reply() {
            let board = &mut self.boards[usize::from(reply.ip_dst.octets()[3])];
            board.requester.handle_packet(self.now, &reply);
            while let Some(end) = board.requester.poll_completion() {
                assert_eq!(end.status, SendStatus::Success);
                board.done += 1;
            }
        }
    }

    fn receive(&mut self) {
        self.backend.poll(&mut self.receiver, PollMode::Busy, Time::ZERO, &mut self.done).unwrap();
        for done in self.done.drain(..) {
            assert_eq!(done.status, RecvStatus::Success);
            self.receiver.on_completion(self.now, done.board, done.receive(), done.byte_len).unwrap();
        }
        self.receiver.handle_timeout(self.now).unwrap();
        let mut receives = Vec::new();
        self.receiver.take_receives(0, |wr| receives.push(wr));
        self.backend.post_shared(&receives).unwrap();
    }

    /// Ticks until all events are stored.
    fn run(&mut self, events: u64, limit: u64) -> u64 {
        self.receive();
        while self.receiver.events_stored() < events {
            self.tick(events);
            let (tick, stored) = (self.now / TICK, self.receiver.events_stored());
            assert!(tick < limit, "{stored} of {events} events after {tick} ticks");
        }
        self.now / TICK
    }

    fn counter(&self, name: &str) -> u64 {
        let of = |board: &Board| self.backend.board_counters(board.number);
        self.boards.iter().flat_map(of).filter(|(n, _)| n == name).map(|(_, value)| value).sum()
    }
}

#[test]
fn every_event_is_complete_when_boards_at_full_speed_overrun_a_small_pool() {
    // Boards in step, one that is forty times slower than the others, and all of them different.
    let speeds: [fn(u16) -> u64; 3] =
        [|_| 1, |board| if board == 5 { 40 } else { 1 }, |board| 1 + u64::from(board) * 2];
    for (of, every) in speeds.into_iter().enumerate() {
        for (slots, copies) in [(32, 0), (64, 0), (32, 40), (64, 256)] {
            let mut bench = Bench::new(slots, copies, every);
            let slowest = (0..BOARDS).map(every).max().unwrap();
            let ticks = bench.run(150, 150 * 40 * slowest);
            let report = bench.receiver.report();
            let name = format!("speeds {of}, {slots} slots, {copies} copies: {ticks} ticks, {report:?}");
            assert_eq!((report.builder.events_complete, report.builder.events_incomplete), (150, 0), "{name}");
            assert_eq!(report.builder.strays() + report.builder.duplicates, 0, "{name}");
            assert_eq!(report.receiver.fragments_copied > 0, copies > 0 && slowest > 1, "{name}");
            if slowest > 1 {
                assert!(bench.counter("out_of_buffer") > 0, "boards were held back: {name}");
            }
        }
    }
}

#[test]
fn a_board_that_is_dead_costs_its_fragments_and_nothing_else() {
    let mut bench = Bench::new(32, 16, |_| 1);
    bench.receive();
    bench.boards[3].every = u64::MAX; // it sends in the first tick and never again
    for _ in 0..200 {
        bench.tick(1000);
    }
    let ahead: Vec<u64> = bench.boards.iter().map(|board| board.done).collect();
    let most = u64::from(32u32 + 16);
    assert!(ahead.iter().sum::<u64>() <= bench.receiver.events_stored() * u64::from(BOARDS) + most, "{ahead:?}");
    assert!(bench.boards.iter().filter(|board| board.number != 3).all(|board| board.done > ahead[3]), "{ahead:?}");
}
