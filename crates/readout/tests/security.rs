// SPDX-License-Identifier: Apache-2.0
//! Isolation of boards in a readout: a region for each, numbers and keys that cannot be guessed, and fragments that are
//! accepted only from the ring of the board they name. Source: RFC 4086 for the cost of guessing.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use bytes::Bytes;
use penstock_readout::backend::*;
use penstock_readout::*;
use penstock_transport::{Memory, Mtu};
use penstock_units::Time;
use penstock_wire::{
    BthRepr, Ecn, FragmentHeader, Ipv4Addr, MacAddr, Opcode, Payload, Psn, Qpn, RethRepr, RnrTimer, RocePacket,
};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const BOARDS: u16 = 2;
const SLOT_BYTES: u32 = 4096;
const FIRST: Psn = Psn::new(5);

struct Bench {
    backend: InProcess,
    receiver: Receiver<Discard>,
    locals: Vec<LocalQp>,
}

fn board_ip(board: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, board as u8)
}

/// A word that depends on all that came before, for runs that repeat themselves.
fn seeded() -> Box<dyn FnMut() -> u32 + Send> {
    let mut state = 1u64;
    Box::new(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    })
}

impl Bench {
    fn new() -> Bench {
        let mut backend = InProcess::new(OURS, OUR_MAC, seeded());
        let shape = RingConfig { slots: 4, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let (mut rings, mut memories, mut locals) = (Vec::new(), Vec::new(), Vec::new());
        for board in 0..BOARDS {
            let memory = RingMemory::allocate(shape.len(), Pages::Normal).unwrap();
            let spec = QpSpec { board, memory: memory.mapping().clone(), len: shape.len(), max_receives: 4 };
            let local = backend.create_qp(&spec).unwrap();
            let (mtu, rnr_timer) = (Mtu::B4096, RnrTimer::from_code(1));
            let peer = PeerQp { qpn: Qpn::new(0x200), psn: FIRST, ip: board_ip(board), mtu, rnr_timer };
            backend.connect(board, &peer).unwrap();
            rings.push(RingConfig { va: local.base, rkey: local.rkey, ..shape });
            memories.push(memory);
            locals.push(local);
        }
        let builder = BuilderConfig { sources: NonZeroU16::new(BOARDS).unwrap(), ..BuilderConfig::default() };
        let config = ReceiverConfig { rings, builder, consumer_rate: None };
        let receiver = Receiver::with_memories(config, memories, Discard::default()).unwrap();
        let mut bench = Bench { backend, receiver, locals };
        for board in 0..BOARDS {
            let mut receives = Vec::new();
            bench.receiver.take_receives(board, |wr| receives.push(wr));
            bench.backend.post_receives(board, &receives).unwrap();
        }
        bench
    }

    /// One WRITE WITH IMMEDIATE from `board`, on its queue pair, to any address with any key.
    fn write(&mut self, board: u16, va: u64, rkey: u32, data: &Bytes) -> Vec<Completion> {
        let mut bth = BthRepr::new(Opcode::WriteOnlyImm, self.locals[usize::from(board)].qpn, FIRST);
        bth.ack_req = true;
        self.backend.arrive(
            Time::ZERO,
            RocePacket {
                eth_dst: OUR_MAC,
                eth_src: MacAddr([2, 0, 0, 0, 1, board as u8]),
                cn_tag: None,
                ip_src: board_ip(board),
                ip_dst: OURS,
                dscp: 26,
                ecn: Ecn::Ect0,
                ttl: 64,
                udp_sport: 0xC000,
                bth,
                reth: Some(RethRepr { va, rkey, dma_len: data.len() as u32 }),
                aeth: None,
                imm: Some(0),
                payload: Payload::Bytes(data.clone()),
            },
        );
        let mut done = Vec::new();
        self.backend.poll(&mut self.receiver, PollMode::Busy, Time::ZERO, &mut done).unwrap();
        for end in &done {
            self.receiver.on_completion(Time::ZERO, end.board, end.slot(), end.byte_len).unwrap();
        }
        done
    }
}

fn fragment(source: u16) -> Bytes {
    let payload = [7; 100];
    let header = FragmentHeader::for_payload(source, 0, 0, &payload);
    [&header.to_bytes()[..], &payload].concat().into()
}

#[test]
fn a_board_cannot_write_into_the_ring_of_another() {
    let keys: [fn(&[LocalQp]) -> u32; 2] = [|locals| locals[0].rkey, |locals| locals[1].rkey];
    for key in keys {
        let mut bench = Bench::new();
        let (other_base, rkey) = (bench.locals[1].base, key(&bench.locals));
        assert_eq!(bench.write(0, other_base, rkey, &fragment(1)).len(), 3, "only the flushed receives of its own");
        assert!(bench.backend.fault(0).is_some(), "the board that tried is out");
        assert_eq!(bench.backend.fault(1), None, "the other goes on");
        let report = bench.receiver.report();
        assert_eq!(report.rings[1].bytes_written, 0, "nothing was written");
        let (base, rkey) = (bench.locals[1].base, bench.locals[1].rkey);
        assert_eq!(bench.write(1, base, rkey, &fragment(1)).len(), 1);
        assert_eq!(bench.receiver.report().receiver.fragments_good, 1);
    }
}

#[test]
fn a_board_cannot_send_fragments_of_another() {
    let mut bench = Bench::new();
    let (base, rkey) = (bench.locals[0].base, bench.locals[0].rkey);
    bench.write(0, base, rkey, &fragment(1));
    let report = bench.receiver.report();
    assert_eq!((report.receiver.fragments_wrong_source, report.builder.fragments_accepted), (1, 0));
}

#[test]
fn a_completion_never_reaches_beyond_the_ring_whatever_a_board_sends() {
    let mut bench = Bench::new();
    for (imm, len) in [(4, 140), (u32::MAX, 140), (0, u32::MAX), (1, 140)] {
        bench.receiver.on_completion(Time::ZERO, 0, imm, len).unwrap();
        bench.receiver.on_completion(Time::ZERO, BOARDS, imm, len).unwrap();
    }
    let report = bench.receiver.report();
    assert_eq!((report.rings[0].completions_refused, report.builder.fragments_accepted), (2, 0));
    for va in [bench.locals[0].base - 1, bench.locals[0].base + 4 * u64::from(SLOT_BYTES), 0, u64::MAX] {
        bench.receiver.write(va, &Payload::Bytes(fragment(0)));
    }
    assert_eq!(bench.receiver.report().rings.iter().map(|ring| ring.bytes_written).sum::<u64>(), 0);
}

#[test]
fn numbers_keys_and_rings_of_many_boards_are_all_different_and_far_from_counting() {
    const MANY: u16 = 500;
    let mut backend = InProcess::new(OURS, OUR_MAC, seeded());
    let memory = RingMemory::allocate(8192, Pages::Normal).unwrap();
    let spec = |board| QpSpec { board, memory: memory.mapping().clone(), len: 8192, max_receives: 2 };
    let locals: Vec<LocalQp> = (0..MANY).map(|board| backend.create_qp(&spec(board)).unwrap()).collect();
    let distinct = |of: fn(&LocalQp) -> u64| locals.iter().map(of).collect::<BTreeSet<u64>>().len();
    assert_eq!(distinct(|local| local.qpn.value().into()), usize::from(MANY));
    assert_eq!(distinct(|local| local.base), usize::from(MANY));
    assert!(distinct(|local| local.rkey.into()) > usize::from(MANY) - 2);
    let steps = locals.windows(2).map(|pair| pair[1].rkey.wrapping_sub(pair[0].rkey)).collect::<BTreeSet<u32>>();
    assert!(steps.len() > usize::from(MANY) - 5, "keys do not count up");
}
