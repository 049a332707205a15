// SPDX-License-Identifier: Apache-2.0
//! One test for each rule of the responder, with and without loss: PSN window, gaps,
//! duplicates, receives, messages, notification. The expected answers are those of `rdma_rxe`.

mod common;

use common::*;
use penstock_transport::{CreditPolicy, Mtu, QpState, RecvOpcode, RecvStatus, ResponderConfig};
use penstock_units::Time;
use penstock_wire::{Ecn, Opcode, Packet, Psn, RnrTimer};

fn bench() -> Bench {
    Bench::new(config(100, Mtu::B256))
}

/// A WRITE ONLY of eight bytes that asks for an ACK.
fn write_only(psn: u32) -> penstock_wire::RocePacket {
    ack_requested(with_reth(packet(Opcode::WriteOnly, psn, vec![psn as u8; 8]), BASE, 8))
}

#[test]
fn ack_comes_only_on_request_and_names_the_psn_and_msn() {
    let mut b = bench();
    let mut quiet = write_only(100);
    quiet.bth.ack_req = false;
    assert_eq!(b.handle(&quiet).replies(), []);
    assert_eq!(b.handle(&write_only(101)).replies(), [(101, ACK, 2)]);
    assert_eq!(b.memory.at(BASE, 8), [101; 8]);
}

#[test]
fn replies_go_to_the_peer_and_are_well_formed() {
    let mut b = bench();
    b.handle(&write_only(100));
    let reply = b.responder.poll_transmit(&mut b.memory).unwrap();
    assert_eq!((reply.eth_dst, reply.ip_dst, reply.bth.dest_qpn), (PEER.mac, PEER.ip, PEER.qpn));
    assert_eq!((reply.eth_src, reply.ip_src), (LOCAL.mac, LOCAL.ip));
    assert_eq!(reply.validate(), Ok(()));
    assert!(matches!(Packet::parse(reply.emit()), Ok(Packet::Roce(_))));
    assert_eq!(b.responder.counters().sent_pkts, 1);
}

#[test]
fn a_message_over_the_psn_wrap_lands_in_one_piece() {
    let mut b = Bench::new(config(0xFF_FFFF, Mtu::B256));
    b.responder.post_receive(receive(7, 0, 0));
    let dma_len = 256 + 256 + 3;
    b.handle(&with_reth(packet(Opcode::WriteFirst, 0xFF_FFFF, vec![1; 256]), BASE + 5, dma_len));
    b.handle(&packet(Opcode::WriteMiddle, 0, vec![2; 256]));
    let mut last = ack_requested(packet(Opcode::WriteLastImm, 1, vec![3; 3]));
    last.bth.solicited = true;
    assert_eq!(b.handle(&last).replies(), [(1, ACK, 1)]);
    let expected = [vec![1; 256], vec![2; 256], vec![3; 3]].concat();
    assert_eq!(b.memory.at(BASE + 5, dma_len as usize), expected);
    let done = b.responder.poll_completion().unwrap();
    assert_eq!((done.wr_id, done.status, done.opcode), (7, RecvStatus::Success, RecvOpcode::WriteImm));
    assert_eq!((done.imm, done.byte_len, done.va), (Some(0xAABB_CCDD), dma_len, BASE + 5));
    assert!(done.solicited && done.qpn == LOCAL.qpn);
    assert_eq!(b.responder.poll_completion(), None);
}

#[test]
fn a_gap_is_answered_by_one_nak_and_then_silence() {
    let mut b = bench();
    assert_eq!(b.handle(&write_only(102)).replies(), [(100, NAK_SEQUENCE, 0)]);
    assert_eq!(b.handle(&write_only(103)).handle(&write_only(101)).replies(), []);
    assert_eq!(b.handle(&write_only(100)).replies(), [(100, ACK, 1)]);
    // The next gap is a new one.
    assert_eq!(b.handle(&write_only(103)).replies(), [(101, NAK_SEQUENCE, 1)]);
    assert_eq!(b.responder.counters().out_of_sequence, 4);
    assert_eq!(b.responder.counters().nak_sequence_sent, 2);
    assert_eq!(b.memory.writes, 1);
}

#[test]
fn what_is_sent_again_and_lost_again_gets_another_nak_if_so_configured() {
    let mut b = Bench::new(ResponderConfig { nak_again: true, ..config(100, Mtu::B256) });
    assert_eq!(b.handle(&write_only(101)).replies(), [(100, NAK_SEQUENCE, 0)]);
    assert_eq!(b.handle(&write_only(102)).handle(&write_only(103)).replies(), []);
    // It has gone back, and 100 was lost on its way once more; then all is well.
    assert_eq!(b.handle(&write_only(101)).replies(), [(100, NAK_SEQUENCE, 0)]);
    assert_eq!(b.handle(&write_only(102)).replies(), []);
    assert_eq!(b.handle(&write_only(100)).replies(), [(100, ACK, 1)]);
    assert_eq!(b.handle(&write_only(102)).replies(), [(101, NAK_SEQUENCE, 1)]);

    // Behind an RNR NAK the peer waits and comes back by itself.
    let mut full = Bench::new(ResponderConfig { nak_again: true, ..config(100, Mtu::B256) });
    let send = packet(Opcode::SendOnly, 100, vec![1; 8]);
    for _ in 0..2 {
        assert_eq!(full.handle(&send).replies(), [(100, rnr(12), 0)]);
        assert_eq!(full.handle(&write_only(101)).handle(&write_only(102)).replies(), []);
    }
}

#[test]
fn duplicates_and_ghosts_are_acked_with_the_latest_psn_and_change_nothing() {
    let mut b = bench();
    b.responder.post_receive(receive(1, BASE, 64));
    b.responder.post_receive(receive(2, BASE, 64));
    let send = ack_requested(packet(Opcode::SendOnly, 100, vec![9; 8]));
    b.handle(&send).handle(&write_only(101)).replies();
    let mut again = send.clone();
    again.bth.ack_req = false;
    assert_eq!(b.handle(&again).replies(), [(101, ACK, 2)]);
    // Half the PSN circle behind: a ghost of another life of the connection.
    assert_eq!(b.handle(&write_only((102 + (1 << 23)) & 0xFF_FFFF)).replies(), [(101, ACK, 2)]);
    assert_eq!(b.responder.counters().duplicate_request, 2);
    assert_eq!((b.memory.writes, b.responder.posted_receives()), (2, 1));
    assert!(b.responder.poll_completion().is_some() && b.responder.poll_completion().is_none());
}

#[test]
fn the_last_psn_ahead_is_a_gap_and_the_first_behind_a_duplicate() {
    let mut b = bench();
    assert_eq!(b.handle(&write_only(100 + (1 << 23) - 1)).replies(), [(100, NAK_SEQUENCE, 0)]);
    assert_eq!(b.handle(&write_only(99)).replies(), [(99, ACK, 0)]);
}

#[test]
fn duplicates_are_acked_even_while_a_gap_is_open() {
    let mut b = bench();
    b.handle(&write_only(100)).handle(&write_only(105)).replies();
    assert_eq!(b.handle(&write_only(100)).replies(), [(100, ACK, 1)]);
    assert_eq!(b.handle(&write_only(106)).replies(), []);
}

#[test]
fn a_repeated_read_request_is_not_acked() {
    let mut b = bench();
    b.handle(&write_only(100)).replies();
    assert_eq!(b.handle(&with_reth(packet(Opcode::ReadRequest, 100, vec![]), BASE, 8)).replies(), []);
    assert_eq!(b.responder.state(), QpState::Ready);
}

#[test]
fn waiting_acks_become_one_but_never_overtake_a_nak() {
    let mut b = bench();
    b.handle(&write_only(100)).handle(&write_only(101));
    b.handle(&write_only(103)).handle(&write_only(101)).handle(&write_only(102));
    assert_eq!(b.replies(), [(101, ACK, 2), (102, NAK_SEQUENCE, 2), (102, ACK, 3)]);
}

#[test]
fn write_with_immediate_takes_a_receive_and_without_takes_none() {
    let mut b = bench();
    b.responder.post_receive(receive(1, 0, 0));
    b.handle(&write_only(100));
    assert_eq!((b.responder.posted_receives(), b.responder.poll_completion()), (1, None));
    b.handle(&with_reth(packet(Opcode::WriteOnlyImm, 101, vec![5; 4]), BASE, 4));
    assert_eq!(b.responder.posted_receives(), 0);
    assert_eq!(b.responder.poll_completion().unwrap().byte_len, 4);
    assert_eq!(b.responder.counters().rx_write_requests, 2);
}

#[test]
fn without_a_receive_the_answer_is_rnr_with_the_configured_timer() {
    let mut b =
        Bench::new(penstock_transport::ResponderConfig { rnr_timer: RnrTimer::from_code(9), ..config(100, Mtu::B256) });
    let dma_len = 256 + 8;
    b.handle(&with_reth(packet(Opcode::WriteFirst, 100, vec![1; 256]), BASE, dma_len));
    let last = ack_requested(packet(Opcode::WriteLastImm, 101, vec![2; 8]));
    assert_eq!(b.handle(&last).replies(), [(101, rnr(9), 0)]);
    // What was already behind it on the wire stays unanswered, without a NAK for a gap.
    assert_eq!(b.handle(&write_only(102)).replies(), []);
    // The request itself is asked again, and again refused.
    assert_eq!(b.handle(&last).replies(), [(101, rnr(9), 0)]);
    assert_eq!(b.memory.writes, 1);
    b.responder.post_receive(receive(3, 0, 0));
    assert_eq!(b.handle(&last).replies(), [(101, ACK, 1)]);
    assert_eq!(b.responder.poll_completion().unwrap().wr_id, 3);
    assert_eq!(b.responder.counters().out_of_buffer, 2);
}

#[test]
fn send_fills_the_receive_buffer_packet_after_packet() {
    let mut b = bench();
    assert_eq!(b.handle(&packet(Opcode::SendFirst, 100, vec![1; 256])).replies(), [(100, rnr(12), 0)]);
    b.responder.post_receive(receive(5, BASE + 64, 300));
    b.handle(&packet(Opcode::SendFirst, 100, vec![1; 256]));
    assert_eq!(b.responder.posted_receives(), 0, "held from the first packet on");
    b.handle(&ack_requested(packet(Opcode::SendLastImm, 101, vec![2; 44])));
    assert_eq!(b.replies(), [(101, ACK, 1)]);
    let done = b.responder.poll_completion().unwrap();
    assert_eq!((done.wr_id, done.opcode, done.byte_len), (5, RecvOpcode::Send, 300));
    assert_eq!((done.va, done.imm), (BASE + 64, Some(0xAABB_CCDD)));
    assert_eq!(b.memory.at(BASE + 64 + 256, 44), [2; 44]);
}

#[test]
fn messages_of_no_bytes_complete_and_name_no_memory() {
    let mut b = bench();
    b.responder.post_receive(receive(1, 0, 0));
    b.responder.post_receive(receive(2, 0, 0));
    // Neither key nor address of a write of no bytes is looked at (C9-88).
    let mut empty = with_reth(packet(Opcode::WriteOnlyImm, 100, vec![]), 1, 0);
    empty.reth.as_mut().unwrap().rkey = 0xBAD;
    b.handle(&empty).handle(&ack_requested(packet(Opcode::SendOnly, 101, vec![])));
    assert_eq!(b.replies(), [(101, ACK, 2)]);
    assert_eq!(b.responder.poll_completion().unwrap().byte_len, 0);
    assert_eq!(b.responder.poll_completion().unwrap().byte_len, 0);
    assert_eq!(b.memory.writes, 0);
}

#[test]
fn credits_follow_the_posted_receives_if_so_configured() {
    let mut b =
        Bench::new(penstock_transport::ResponderConfig { credits: CreditPolicy::Posted, ..config(100, Mtu::B256) });
    assert_eq!(b.handle(&write_only(100)).replies(), [(100, 0, 1)]);
    (0..13).for_each(|id| b.responder.post_receive(receive(id, 0, 0)));
    // Thirteen posted is code 7, twelve.
    assert_eq!(b.handle(&write_only(101)).replies(), [(101, 7, 2)]);
}

#[test]
fn marked_packets_make_one_cnp_in_an_interval_and_cnps_go_first() {
    let mut b = bench();
    let mut marked = write_only(100);
    marked.ecn = Ecn::Ce;
    for (now, due) in [(0, 1), (49, 0), (50, 1), (99, 0), (100, 1)] {
        b.responder.handle_packet(Time::from_us(now), &marked, &mut b.memory);
        let out: Vec<_> = std::iter::from_fn(|| b.responder.poll_transmit(&mut b.memory)).collect();
        let cnps = out.iter().filter(|reply| reply.bth.opcode == Opcode::Cnp).count();
        assert_eq!(cnps, due, "at {now} us");
        assert!(due == 0 || out[0].bth.opcode == Opcode::Cnp);
        marked.bth.psn = marked.bth.psn.next();
    }
    assert_eq!(b.responder.counters().np_ecn_marked_roce_packets, 5);
    assert_eq!(b.responder.counters().np_cnp_sent, 3);
}

#[test]
fn a_cnp_carries_becn_and_the_senders_queue_pair() {
    let mut b = bench();
    // A mark counts on any packet of the flow, in order or not.
    let mut marked = write_only(150);
    marked.ecn = Ecn::Ce;
    b.handle(&marked);
    let cnp = b.responder.poll_transmit(&mut b.memory).unwrap();
    assert!(cnp.bth.becn && cnp.bth.dest_qpn == PEER.qpn && cnp.validate().is_ok());
    assert_eq!((cnp.dscp, cnp.frame_len()), (48, 14 + 20 + 8 + 12 + 16 + 4));
    assert_eq!(b.replies(), [(100, NAK_SEQUENCE, 0)]);
}

#[test]
fn packets_of_others_are_dropped_and_counted() {
    let mut b =
        Bench::new(penstock_transport::ResponderConfig { peer_udp_sport: Some(0xC123), ..config(100, Mtu::B256) });
    let good = write_only(100);
    let changed = |change: &dyn Fn(&mut penstock_wire::RocePacket)| {
        let mut packet = good.clone();
        packet.ecn = Ecn::Ce;
        change(&mut packet);
        packet
    };
    b.handle(&changed(&|p| p.ip_src = LOCAL.ip)).handle(&changed(&|p| p.udp_sport = 1));
    b.handle(&changed(&|p| p.ip_dst = PEER.ip)).handle(&changed(&|p| p.bth.dest_qpn = PEER.qpn));
    b.handle(&changed(&|p| p.bth.pkey = 0x1234));
    b.handle(&changed(&|p| p.bth.opcode = Opcode::Acknowledge));
    b.handle(&changed(&|p| p.bth.opcode = Opcode::from(0x64)));
    let counters = *b.responder.counters();
    assert_eq!((counters.dropped_wrong_peer, counters.dropped_not_for_us), (2, 2));
    assert_eq!((counters.dropped_bad_pkey, counters.dropped_not_request), (1, 2));
    assert_eq!((counters.rcvd_pkts, counters.np_ecn_marked_roce_packets), (0, 0));
    assert_eq!((b.replies(), b.memory.writes), (vec![], 0));
    // MigReq may be either, and a limited member may talk to a full one.
    let mut real_nic = write_only(100);
    (real_nic.bth.mig_req, real_nic.bth.pkey) = (true, 0x7FFF);
    assert_eq!(b.handle(&real_nic).replies(), [(100, ACK, 1)]);
}

#[test]
fn any_source_port_is_taken_unless_one_is_configured() {
    let mut b = bench();
    let mut other = write_only(100);
    other.udp_sport = 7;
    assert_eq!(b.handle(&other).replies(), [(100, ACK, 1)]);
    assert_eq!(b.responder.expected_psn(), Psn::new(101));
}
