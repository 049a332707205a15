// SPDX-License-Identifier: Apache-2.0
//! The back-end interface in its in-process implementation, with our requester as the board: WRITE and SEND write the
//! right memory, foreign packets change nothing, a queue pair is recreated on the same ring, a full ring stalls the
//! board.

use std::num::NonZeroU16;

use bytes::Bytes;
use penstock_readout::backend::*;
use penstock_readout::*;
use penstock_transport::{Endpoint, Mtu, PayloadSource, Requester, RequesterConfig, SendWr, Verb};
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Ipv4Addr, MacAddr, Payload, Psn, Qpn, RnrTimer, RocePacket};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BOARD_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const SLOTS: u32 = 4;
const SLOT_BYTES: u32 = 4096;

/// Message n lies at address n << 16, and is made when it is asked for.
struct Messages;

fn message(event: u64) -> Bytes {
    let payload: Vec<u8> = (0..3000u64).map(|i| (i * 7 + event) as u8).collect();
    let mut bytes = FragmentHeader::for_payload(0, event, event, &payload).to_bytes().to_vec();
    bytes.extend_from_slice(&payload);
    bytes.into()
}

impl PayloadSource for Messages {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let at = (va & 0xFFFF) as usize;
        Payload::Bytes(message(va >> 16).slice(at..at + len))
    }
}

/// A server with one board's ring, and the board.
struct Bench {
    backend: InProcess,
    receiver: Receiver<Discard>,
    spec: QpSpec,
    local: LocalQp,
    board: Requester,
    next_slot: u32,
    now: Time,
}

fn seeded() -> Box<dyn FnMut() -> u32 + Send> {
    let mut state = 7u32;
    Box::new(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    })
}

fn peer() -> PeerQp {
    let (qpn, psn, rnr_timer) = (Qpn::new(0x200), Psn::new(0xFF_FFFE), RnrTimer::from_code(1));
    PeerQp { qpn, psn, ip: BOARD, mtu: Mtu::B1024, rnr_timer }
}

fn requester(local: &LocalQp) -> Requester {
    let board = Endpoint { mac: BOARD_MAC, ip: BOARD, qpn: peer().qpn };
    let server = Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: OURS, qpn: local.qpn };
    Requester::new(RequesterConfig::new(board, server, peer().psn, peer().mtu))
}

impl Bench {
    fn new() -> Bench {
        let mut backend = InProcess::new(OURS, MacAddr([2, 0, 0, 0, 0, 1]), seeded());
        let shape = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let memory = RingMemory::allocate(shape.len(), Pages::Normal).unwrap();
        let spec = QpSpec { board: 0, memory: memory.mapping().clone(), len: shape.len(), max_receives: SLOTS };
        let local = backend.create_qp(&spec).unwrap();
        let ring = RingConfig { va: local.base, rkey: local.rkey, ..shape };
        let builder = BuilderConfig { sources: NonZeroU16::MIN, ..BuilderConfig::default() };
        let config = ReceiverConfig { rings: vec![ring], builder, consumer_rate: None };
        let receiver = Receiver::with_memories(config, vec![memory], Discard::default()).unwrap();
        let mut bench =
            Bench { backend, receiver, spec, board: requester(&local), local, next_slot: 0, now: Time::ZERO };
        bench.post();
        bench.backend.connect(0, &peer()).unwrap();
        bench
    }

    fn post(&mut self) {
        let mut receives = Vec::new();
        self.receiver.take_receives(0, |wr| receives.push(wr));
        self.backend.post_receives(0, &receives).unwrap();
    }

    /// The board sends `event` by `verb` to the next slot; true if a message was acknowledged meanwhile.
    fn send(&mut self, event: u64, verb: fn(u32) -> Verb, key: u32) -> bool {
        let slot = self.next_slot;
        self.next_slot = (slot + 1) % SLOTS;
        let remote_va = self.local.base + u64::from(slot * SLOT_BYTES);
        let (va, len) = (event << 16, 3040);
        let wr = SendWr { wr_id: event, verb: verb(slot), va, len, remote_va, rkey: key, solicited: false };
        self.board.post_send(wr).unwrap();
        for _ in 0..20 {
            self.now += Time::from_us(20);
            self.board.handle_timeout(self.now);
            while let Some(packet) = self.board.poll_transmit(self.now, &mut Messages) {
                self.backend.arrive(self.now, packet);
            }
            self.poll();
            while let Some(reply) = self.backend.take_reply() {
                assert_eq!(reply.eth_dst, BOARD_MAC, "replies go where the peer sends from");
                self.board.handle_packet(self.now, &reply);
            }
        }
        self.board.poll_completion().is_some_and(|done| done.status == penstock_transport::SendStatus::Success)
    }

    fn poll(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.backend.poll(&mut self.receiver, PollMode::Busy, Time::ZERO, &mut done).unwrap();
        for completion in done.iter().filter(|c| c.status == penstock_transport::RecvStatus::Success) {
            self.receiver.on_completion(self.now, 0, completion.slot(), completion.byte_len).unwrap();
        }
        done
    }

    fn counter(&self, name: &str) -> u64 {
        self.backend.board_counters(0).iter().find(|(n, _)| n == name).expect("a counter's name").1
    }
}

#[test]
fn writes_and_sends_reach_the_slots_in_turn() {
    for verb in [(|slot| Verb::WriteImm(slot)) as fn(u32) -> Verb, |_| Verb::Send] {
        let mut bench = Bench::new();
        for event in 0..11 {
            assert!(bench.send(event, verb, bench.local.rkey), "event {event}");
            bench.post();
        }
        let report = bench.receiver.report();
        assert_eq!((report.builder.events_complete, report.receiver.fragments_crc_error), (11, 0));
    }
}

#[test]
fn a_board_without_receives_waits_and_loses_nothing() {
    let mut bench = Bench::new();
    for event in 0..3 {
        assert!(bench.send(event, Verb::WriteImm, bench.local.rkey));
    }
    assert!(!bench.send(3, Verb::WriteImm, bench.local.rkey), "no receive is posted");
    assert!(bench.counter("out_of_buffer") > 0);
    bench.post();
    assert!(bench.send(4, Verb::WriteImm, bench.local.rkey), "event 3, delivered late");
    assert_eq!(bench.receiver.report().builder.events_complete, 5);
}

#[test]
fn what_a_stranger_sends_changes_no_state() {
    let mut bench = Bench::new();
    assert!(bench.send(0, Verb::WriteImm, bench.local.rkey));
    let mut copy = Bench::new();
    copy.send(0, Verb::WriteImm, copy.local.rkey);
    let packets = forged(&copy);
    let before = bench.receiver.report();
    for packet in &packets {
        bench.backend.arrive(bench.now, packet.clone());
        assert_eq!(bench.poll(), []);
        assert_eq!(bench.backend.take_reply(), None);
    }
    assert_eq!(bench.receiver.report(), before);
    assert_eq!(bench.counter("dropped_wrong_peer"), packets.len() as u64);
    assert!(bench.send(1, Verb::WriteImm, bench.local.rkey), "the connection lives");
}

/// Event 1 as the board would send it, from another address.
fn forged(copy: &Bench) -> Vec<RocePacket> {
    let mut board = copy.board.clone();
    let wr = SendWr {
        wr_id: 0,
        verb: Verb::WriteImm(1),
        va: 1 << 16,
        len: 3040,
        remote_va: copy.local.base + u64::from(SLOT_BYTES),
        rkey: copy.local.rkey,
        solicited: false,
    };
    board.post_send(wr).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = board.poll_transmit(Time::ZERO, &mut Messages) {
        packets.push(RocePacket { ip_src: Ipv4Addr::new(10, 0, 0, 66), ..packet });
    }
    packets
}

#[test]
fn a_board_begins_again_over_the_same_ring_under_other_numbers() {
    let mut bench = Bench::new();
    assert!(bench.send(0, Verb::WriteImm, bench.local.rkey));
    assert!(!bench.send(1, Verb::WriteImm, bench.local.rkey ^ 1), "a wrong key ends the queue pair");
    assert!(bench.backend.fault(0).unwrap().contains("rkey"));

    bench.backend.close_qp(0, &mut Vec::new()).unwrap();
    let local = bench.backend.create_qp(&bench.spec).unwrap();
    assert_eq!(local.base, bench.local.base);
    assert!(local.qpn != bench.local.qpn && local.rkey != bench.local.rkey && local.psn != bench.local.psn);
    assert!(bench.receiver.restart_ring(0, local.rkey));
    (bench.local, bench.board, bench.next_slot) = (local, requester(&local), 0);
    bench.post();
    bench.backend.connect(0, &peer()).unwrap();
    assert_eq!(bench.backend.fault(0), None);
    for event in 1..9 {
        assert!(bench.send(event, Verb::WriteImm, local.rkey), "event {event}");
        bench.post();
    }
    assert_eq!(bench.counter("resp_remote_access_errors"), 1, "counters outlive the queue pair");
}

/// A WRITE WITH IMMEDIATE and what comes in the same poll batch after it, before its completion is seen.
#[test]
fn a_write_behind_a_message_cannot_reach_the_slot_that_the_message_lies_in() {
    let slot = |n: u32| u64::from(n * SLOT_BYTES);
    let refused =
        [("the message's slot", slot(0)), ("a later slot", slot(2)), ("past the end of the next slot", slot(1) + 2000)];
    for (what, at) in refused {
        let mut bench = Bench::new();
        let write = |event: u64, verb, remote_va| SendWr {
            wr_id: event,
            verb,
            va: event << 16,
            len: 3040,
            remote_va: bench.local.base + remote_va,
            rkey: bench.local.rkey,
            solicited: false,
        };
        let writes = [write(0, Verb::WriteImm(0), 0), write(1, Verb::Write, at)];
        writes.into_iter().for_each(|wr| bench.board.post_send(wr).unwrap());
        while let Some(packet) = bench.board.poll_transmit(bench.now, &mut Messages) {
            bench.backend.arrive(bench.now, packet);
        }
        bench.poll();
        let report = bench.receiver.report();
        assert_eq!((report.builder.events_complete, report.receiver.fragments_crc_error), (1, 0), "{what}");
        let fault = bench.backend.fault(0).expect(what);
        assert!(fault.contains("not in the next slot") && fault.contains("same size and number"), "{what}: {fault}");
        assert_eq!(bench.counter("resp_remote_access_errors"), 1, "{what}");
        assert_eq!(report.rings[0].writes_refused, 0, "{what}: none was acknowledged and not done");
    }
}

#[test]
fn a_ring_with_a_held_slot_does_not_begin_again() {
    let shape = RingConfig { slots: 3, slot_bytes: 8, ..RingConfig::default() };
    let mut ring = Ring::new(shape).unwrap();
    let mut receives = Vec::new();
    ring.take_receives(|wr| receives.push((wr.wr_id, wr.va - shape.va, wr.len)));
    assert_eq!(receives, [(0, 0, 8), (1, 8, 8)]);
    ring.complete(0, 8).unwrap();
    assert!(!ring.restart(9));
    ring.release(0);
    assert!(ring.restart(9));
    assert_eq!((ring.region().rkey, ring.take_credits()), (9, 2));
    ring.complete(0, 8).unwrap();
}
