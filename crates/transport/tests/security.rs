// SPDX-License-Identifier: Apache-2.0
//! Attacks from the network on either end: frames from strangers, forged acknowledgements and CNPs, replays,
//! keys and addresses of other connections. Each attack is counted, and affects at most the queue pair it may affect.
//! RoCEv2 has no signatures: a host that sends with the peer's address and knows queue pair, PSN and key is
//! indistinguishable from the peer. Protection rests on these values being hard to guess; IBTA 9.6 (validation), 9.7.4
//! and 9.7.5.

#[path = "common/channel.rs"]
#[allow(dead_code, reason = "only the random numbers are used")]
mod channel;
mod common;

use channel::Random;
use common::*;
use penstock_transport::{
    Access, MemoryRegion, Mtu, QpState, Requester, RequesterConfig, RequesterState, Responder, ResponderConfig,
    Response, SendStatus, SendWr, Verb, VirtualPayload,
};
use penstock_units::Time;
use penstock_wire::{AethRepr, Credits, Ipv4Addr, NakCode, Opcode, Psn, Qpn, RocePacket, Syndrome};

const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
const FIRST: u32 = 100;

/// A WRITE that only its peer may send: the right PSN, key, address and length.
fn in_window_write() -> RocePacket {
    let write = with_reth(packet(Opcode::WriteOnlyImm, FIRST, vec![0xAB; 64]), BASE, 64);
    ack_requested(write)
}

type Forge = fn(&mut RocePacket);
type Counter = fn(&Requester) -> u64;

#[test]
fn an_in_window_write_that_is_not_the_peers_is_counted_and_changes_nothing() {
    let forgeries: [(Forge, &str); 4] = [
        (|packet| packet.ip_src = STRANGER, "dropped_wrong_peer"),
        (|packet| packet.ip_dst = STRANGER, "dropped_not_for_us"),
        (|packet| packet.bth.dest_qpn = Qpn::new(LOCAL.qpn.value() + 1), "dropped_not_for_us"),
        (|packet| packet.bth.pkey = 0x8001, "dropped_bad_pkey"),
    ];
    for (forge, counter) in forgeries {
        let mut b = Bench::new(config(FIRST, Mtu::B256));
        b.responder.post_receive(receive(0, BASE, 64));
        let mut forged = in_window_write();
        forge(&mut forged);
        b.handle(&forged);
        assert_eq!((b.replies(), b.memory.writes, b.responder.posted_receives()), (vec![], 0, 1));
        assert_eq!((b.responder.state(), b.responder.expected_psn()), (QpState::Ready, Psn::new(FIRST)));
        assert!(b.responder.poll_completion().is_none());
        let counted: Vec<_> = b.responder.counters().named().into_iter().filter(|(_, value)| *value > 0).collect();
        assert_eq!(counted, [(counter, 1)]);
        b.handle(&in_window_write());
        assert_eq!(b.responder.poll_completion().map(|end| end.byte_len), Some(64), "the peer's own is taken");
    }
}

#[test]
fn a_strangers_bad_packet_does_not_end_the_queue_pair() {
    let mut b = Bench::new(config(FIRST, Mtu::B256));
    let mut fatal = with_reth(packet(Opcode::WriteOnly, FIRST, vec![0; 8]), BASE + REGION, 8);
    fatal.ip_src = STRANGER;
    b.handle(&fatal);
    assert_eq!((b.responder.state(), b.replies()), (QpState::Ready, vec![]), "not even a NAK tells of the queue pair");
}

#[test]
fn a_udp_source_port_that_was_agreed_on_is_part_of_the_peer() {
    let mut b = Bench::new(ResponderConfig { peer_udp_sport: Some(0xC124), ..config(FIRST, Mtu::B256) });
    b.handle(&in_window_write());
    assert_eq!((b.responder.counters().dropped_wrong_peer, b.memory.writes), (1, 0));
}

/// Two boards, each with a queue pair and a region of its own, over one memory.
fn two_boards() -> [Bench; 2] {
    [(0, RKEY), (1, RKEY + 1)].map(|(board, rkey)| {
        let half = REGION / 2;
        let region = MemoryRegion { va: BASE + board * half, rkey, len: half, access: Access::RemoteWrite };
        Bench::new(ResponderConfig::new(LOCAL, PEER, Psn::new(FIRST), Mtu::B256).with_region(region))
    })
}

#[test]
fn a_board_cannot_write_the_ring_of_another_with_its_own_key_or_with_the_others() {
    let other_ring = BASE + REGION / 2;
    for rkey in [RKEY, RKEY + 1] {
        let [mut board, other] = two_boards();
        let mut write = with_reth(packet(Opcode::WriteOnly, FIRST, vec![1; 64]), other_ring, 64);
        write.reth.as_mut().unwrap().rkey = rkey;
        board.handle(&write);
        assert_eq!((board.replies(), board.memory.writes), (vec![(FIRST, NAK_ACCESS, 0)], 0));
        assert!(matches!(board.responder.state(), QpState::Error(_)), "the board that tried is out");
        assert_eq!(other.responder.state(), QpState::Ready, "the other goes on");
    }
    // A write that begins in the own ring and ends in the other's.
    let [mut board, _] = two_boards();
    board.handle(&with_reth(packet(Opcode::WriteFirst, FIRST, vec![1; 256]), other_ring - 256, 512));
    assert_eq!((board.replies(), board.memory.writes), (vec![(FIRST, NAK_ACCESS, 0)], 0), "not even its first half");
}

#[test]
fn replayed_packets_write_nothing_and_complete_nothing_in_this_life_and_the_next() {
    let seed = 0x5EC;
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut b = Bench::new(config(0xFF_FFE0, Mtu::B256));
    let mut recorded = Vec::new();
    for n in 0..64 {
        b.responder.post_receive(receive(n, BASE, 64));
        let psn = b.responder.expected_psn().value();
        let mut write = in_window_write();
        write.bth.psn = Psn::new(psn);
        b.handle(&write);
        recorded.push(write);
    }
    while b.responder.poll_completion().is_some() {}
    b.responder.post_receive(receive(64, BASE, 64));
    let (writes, expected) = (b.memory.writes, b.responder.expected_psn());
    b.replies();
    for _ in 0..1000 {
        let old = &recorded[random.below(64) as usize];
        b.handle(old);
        assert_eq!(b.replies(), [(expected.sub(1).value(), ACK, 64)], "the latest acknowledgement again, no more");
    }
    assert_eq!((b.memory.writes, b.responder.expected_psn()), (writes, expected));
    assert!(b.responder.poll_completion().is_none());
    assert_eq!(b.responder.counters().duplicate_request, 1000);

    let mut next = config(0xFF_FFE0, Mtu::B256);
    next.local.qpn = Qpn::new(0x77);
    let mut next = Bench::new(next);
    for old in &recorded {
        next.handle(old);
    }
    assert_eq!((next.memory.writes, next.responder.counters().dropped_not_for_us), (0, 64));
}

/// A requester with three messages of one packet each on their way.
fn sender() -> Requester {
    let mut requester = Requester::new(RequesterConfig::new(PEER, LOCAL, Psn::new(FIRST), Mtu::B256));
    for wr_id in 0..3 {
        let wr = SendWr { wr_id, verb: Verb::Write, va: 0, len: 256, remote_va: BASE, rkey: RKEY, solicited: false };
        requester.post_send(wr).unwrap();
    }
    while requester.poll_transmit(Time::ZERO, &mut VirtualPayload).is_some() {}
    requester
}

fn answer(psn: u32, syndrome: Syndrome) -> RocePacket {
    let mut answer = packet(Opcode::Acknowledge, psn, Vec::new());
    (answer.ip_src, answer.ip_dst, answer.bth.dest_qpn) = (LOCAL.ip, PEER.ip, PEER.qpn);
    RocePacket { aeth: Some(AethRepr { syndrome, msn: 3 }), ..answer }
}

const ALL_SYNDROMES: [Syndrome; 4] = [
    Syndrome::Ack(Credits::UNLIMITED),
    Syndrome::Nak(NakCode::PsnSequenceError),
    Syndrome::Nak(NakCode::RemoteAccessError),
    Syndrome::Nak(NakCode::RemoteOperationalError),
];

#[test]
fn a_forged_acknowledgement_of_a_stranger_completes_nothing() {
    let forgeries: [(Forge, Counter); 3] = [
        (|packet| packet.ip_src = STRANGER, |r| r.counters().dropped_wrong_peer),
        (|packet| packet.ip_dst = STRANGER, |r| r.counters().dropped_not_for_us),
        (|packet| packet.bth.dest_qpn = Qpn::new(0x99), |r| r.counters().dropped_not_for_us),
    ];
    for (forge, counter) in forgeries {
        for syndrome in ALL_SYNDROMES {
            let mut requester = sender();
            let mut forged = answer(FIRST + 2, syndrome);
            forge(&mut forged);
            assert_eq!(requester.handle_packet(Time(1), &forged), Response::Dropped);
            assert_unmoved(&mut requester);
            assert_eq!(counter(&requester), 1);
        }
    }
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_or_long_ago_completes_nothing_and_kills_nothing() {
    for psn in [FIRST + 3, FIRST + 1000, FIRST.wrapping_sub(2) & 0xFF_FFFF, (FIRST + (1 << 23)) & 0xFF_FFFF] {
        for syndrome in ALL_SYNDROMES {
            let mut requester = sender();
            requester.handle_packet(Time(1), &answer(psn, syndrome));
            assert_eq!((requester.counters().stale_acks, requester.counters().rcvd_acks), (1, 0), "{psn:#x}");
            assert_unmoved(&mut requester);
        }
    }
}

fn assert_unmoved(requester: &mut Requester) {
    assert_eq!((requester.una(), requester.state()), (Psn::new(FIRST), RequesterState::Ready));
    assert!(requester.poll_completion().is_none() && requester.outstanding_messages() == 3);
    requester.handle_packet(Time(2), &answer(FIRST + 2, Syndrome::Ack(Credits::UNLIMITED)));
    let ends: Vec<_> = std::iter::from_fn(|| requester.poll_completion()).map(|end| end.status).collect();
    assert_eq!(ends, [SendStatus::Success; 3], "the peer's own is taken");
}

#[test]
fn a_forged_cnp_slows_nobody_down() {
    let cnp = |forge: Forge| {
        let mut cnp = packet(Opcode::Cnp, 0, Vec::new());
        (cnp.ip_src, cnp.ip_dst, cnp.bth.dest_qpn) = (LOCAL.ip, PEER.ip, PEER.qpn);
        forge(&mut cnp);
        cnp
    };
    let mut requester = sender();
    for forge in [(|packet| packet.ip_src = STRANGER) as Forge, |packet| packet.bth.dest_qpn = Qpn::new(9)] {
        assert_eq!(requester.handle_packet(Time(1), &cnp(forge)), Response::Dropped);
    }
    assert_eq!(requester.counters().rp_cnp_received, 0);
    assert_eq!(requester.handle_packet(Time(1), &cnp(|_| ())), Response::Cnp, "the peer's own is obeyed");
    let mut b = Bench::new(config(FIRST, Mtu::B256));
    b.handle(&packet(Opcode::Cnp, FIRST, Vec::new()));
    assert_eq!((b.responder.counters().dropped_not_request, b.replies()), (1, vec![]), "a responder has no rate");
}

#[test]
fn marked_packets_of_strangers_make_no_cnps() {
    let mut responder = Responder::new(config(FIRST, Mtu::B256));
    let mut memory = TestMemory::new();
    let marked = RocePacket { ip_src: STRANGER, ecn: penstock_wire::Ecn::Ce, ..in_window_write() };
    responder.handle_packet(Time::ZERO, &marked, &mut memory);
    assert!(responder.poll_transmit(&mut memory).is_none());
    assert_eq!(responder.counters().np_ecn_marked_roce_packets, 0);
}
