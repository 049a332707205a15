// SPDX-License-Identifier: Apache-2.0
//! Every fatal error of a request: the NAK that answers it is right, nothing is written to memory, and
//! the queue pair is in the error state afterwards with its receives flushed.

mod common;

use common::*;
use penstock_transport::{Access, Fault, MemoryRegion, Mtu, QpState, RecvStatus, ResponderConfig};
use penstock_wire::{Opcode, RocePacket};

fn closed_region() -> MemoryRegion {
    MemoryRegion { va: BASE, rkey: 0xC105ED, len: 64, access: Access::LocalOnly }
}

/// Sends `before`, which must be fine, then `packet`, and checks all that must follow a fatal fault.
fn refused(before: &[RocePacket], packet: &RocePacket, nak: u8) -> Fault {
    let mut b = Bench::new(config(100, Mtu::B256).with_region(closed_region()));
    b.responder.post_receive(receive(1, BASE, 300));
    b.responder.post_receive(receive(2, BASE, 300));
    for packet in before {
        b.handle(packet);
    }
    assert_eq!(b.responder.state(), QpState::Ready);
    let writes = b.memory.writes;
    b.handle(packet);
    assert_eq!(b.replies(), [(100 + before.len() as u32, nak, 0)]);
    assert_eq!(b.memory.writes, writes, "nothing of a refused packet is written");
    let QpState::Error(fault) = b.responder.state() else { panic!("not in error") };
    assert_flushed(&mut b, fault);
    assert_silent(&mut b, packet);
    assert!(!fault.to_string().is_empty());
    fault
}

fn assert_flushed(b: &mut Bench, fault: Fault) {
    let ends: Vec<_> = std::iter::from_fn(|| b.responder.poll_completion()).collect();
    assert_eq!(ends.iter().map(|end| end.wr_id).collect::<Vec<_>>(), [1, 2], "{fault}");
    assert_eq!(ends[1].status, RecvStatus::WrFlushErr);
    assert!(ends.iter().all(|end| end.status != RecvStatus::Success));
}

/// Every packet is dropped and every new receive flushed in the state of error.
fn assert_silent(b: &mut Bench, packet: &RocePacket) {
    b.handle(packet);
    assert_eq!((b.replies(), b.responder.counters().dropped_in_error), (vec![], 1));
    b.responder.post_receive(receive(3, BASE, 300));
    let end = b.responder.poll_completion().unwrap();
    assert_eq!((end.wr_id, end.status), (3, RecvStatus::WrFlushErr));
}

fn write_first(dma_len: u32) -> RocePacket {
    with_reth(packet(Opcode::WriteFirst, 100, vec![1; 256]), BASE, dma_len)
}

fn send_first() -> RocePacket {
    packet(Opcode::SendFirst, 100, vec![1; 256])
}

#[test]
fn opcodes_out_of_sequence_are_invalid_requests() {
    for opcode in [Opcode::WriteMiddle, Opcode::WriteLast, Opcode::SendMiddle, Opcode::SendLastImm] {
        let fault = refused(&[], &packet(opcode, 100, vec![0; 256]), NAK_INVALID);
        assert_eq!(fault, Fault::OpcodeSequence { opcode: opcode.into(), in_message: false });
    }
    let inside = [
        (write_first(600), Opcode::SendMiddle),
        (write_first(600), Opcode::SendOnly),
        (send_first(), Opcode::WriteLast),
        (send_first(), Opcode::SendFirst),
    ];
    for (first, opcode) in inside {
        let fault = refused(&[first], &packet(opcode, 101, vec![0; 256]), NAK_INVALID);
        assert_eq!(fault, Fault::OpcodeSequence { opcode: opcode.into(), in_message: true });
    }
    let restart = with_reth(packet(Opcode::WriteOnly, 101, vec![0; 8]), BASE, 8);
    assert!(matches!(refused(&[write_first(600)], &restart, NAK_INVALID), Fault::OpcodeSequence { .. }));
}

#[test]
fn read_atomics_and_reserved_opcodes_are_not_served() {
    for code in [0x0C, 0x13, 0x14, 0x16, 0x1F] {
        let request = with_reth(packet(Opcode::from(code), 100, vec![]), BASE, 8);
        assert_eq!(refused(&[], &request, NAK_INVALID), Fault::UnsupportedOpcode { opcode: code });
    }
}

#[test]
fn payloads_that_break_the_mtu_are_invalid_requests() {
    let broken = [
        (vec![], with_reth(packet(Opcode::WriteFirst, 100, vec![0; 255]), BASE, 600)),
        (vec![], with_reth(packet(Opcode::WriteOnly, 100, vec![0; 257]), BASE, 257)),
        (vec![], packet(Opcode::SendOnly, 100, vec![0; 257])),
        (vec![write_first(600)], packet(Opcode::WriteMiddle, 101, vec![0; 100])),
        (vec![write_first(256 + 257)], packet(Opcode::WriteLast, 101, vec![0; 257])),
        (vec![send_first()], packet(Opcode::SendLast, 101, vec![])),
    ];
    for (before, request) in broken {
        let fault = refused(&before, &request, NAK_INVALID);
        let (opcode, len) = (request.bth.opcode.into(), request.payload.len());
        assert_eq!(fault, Fault::PayloadLength { opcode, len, mtu: 256 });
    }
}

#[test]
fn payloads_that_miss_the_dma_length_are_invalid_requests() {
    let broken = [
        (vec![], with_reth(packet(Opcode::WriteOnly, 100, vec![0; 8]), BASE, 9)),
        (vec![], with_reth(packet(Opcode::WriteOnly, 100, vec![0; 8]), BASE, 7)),
        (vec![], with_reth(packet(Opcode::WriteOnly, 100, vec![]), BASE, 1)),
        (vec![], write_first(256)),
        (vec![], write_first(0)),
        (vec![], write_first((1 << 31) + 1)),
        (vec![write_first(512)], packet(Opcode::WriteMiddle, 101, vec![0; 256])),
        (vec![write_first(300)], packet(Opcode::WriteMiddle, 101, vec![0; 256])),
        (vec![write_first(300)], packet(Opcode::WriteLast, 101, vec![0; 43])),
        (vec![write_first(300)], packet(Opcode::WriteLastImm, 101, vec![0; 45])),
    ];
    for (before, request) in broken {
        let fault = refused(&before, &request, NAK_INVALID);
        assert!(matches!(fault, Fault::DmaLength { .. }), "{fault}");
    }
}

#[test]
fn wrong_key_permission_or_range_is_an_access_error() {
    let write = |va, rkey, dma_len| {
        let mut first = with_reth(packet(Opcode::WriteFirst, 100, vec![0; 256]), va, dma_len);
        first.reth.as_mut().unwrap().rkey = rkey;
        first
    };
    let fault = refused(&[], &write(BASE, 0xBAD, 600), NAK_ACCESS);
    assert_eq!(fault, Fault::UnknownRkey { rkey: 0xBAD });
    let fault = refused(&[], &write(BASE, closed_region().rkey, 600), NAK_ACCESS);
    assert_eq!(fault, Fault::AccessDenied { rkey: closed_region().rkey });
    // The whole message is checked at its first packet, also where the first packet would fit.
    let end = BASE + REGION;
    for (va, len) in [(BASE - 1, 600), (end - 599, 600), (end, 600), (u64::MAX - 300, 600), (0, 1 << 31)] {
        let fault = refused(&[], &write(va, RKEY, len), NAK_ACCESS);
        assert!(matches!(fault, Fault::OutOfBounds { va: v, len: l, .. } if (v, l) == (va, len)));
    }
}

#[test]
fn the_last_byte_of_a_region_may_be_written() {
    let mut b = Bench::new(config(100, Mtu::B256));
    b.handle(&with_reth(packet(Opcode::WriteOnly, 100, vec![7; 16]), BASE + REGION - 16, 16));
    assert_eq!(b.memory.at(BASE + REGION - 16, 16), [7; 16]);
}

#[test]
fn a_send_longer_than_its_receive_ends_it_with_a_length_error() {
    let request = packet(Opcode::SendLast, 101, vec![0; 45]);
    let fault = refused(&[send_first()], &request, NAK_INVALID);
    assert_eq!(fault, Fault::ReceiveTooSmall { wr_id: 1, len: 301, buffer_len: 300 });
    let mut b = Bench::new(config(100, Mtu::B256));
    b.responder.post_receive(receive(1, BASE, 10));
    b.handle(&packet(Opcode::SendOnly, 100, vec![0; 11]));
    assert_eq!(b.responder.poll_completion().unwrap().status, RecvStatus::LocLenErr);
    assert_eq!((b.responder.counters().resp_local_length_error, b.memory.writes), (1, 0));
}

#[test]
fn the_receive_of_a_broken_send_ends_as_an_invalid_request() {
    let mut b = Bench::new(config(100, Mtu::B256));
    b.responder.post_receive(receive(1, BASE, 1000));
    b.responder.post_receive(receive(2, BASE, 1000));
    b.handle(&send_first()).handle(&packet(Opcode::WriteMiddle, 101, vec![0; 256]));
    let ends = [b.responder.poll_completion(), b.responder.poll_completion()].map(Option::unwrap);
    assert_eq!(ends.map(|end| (end.wr_id, end.status)), [(1, RecvStatus::RemInvReqErr), (2, RecvStatus::WrFlushErr)]);
}

#[test]
fn a_packet_built_without_its_headers_is_refused_not_trusted() {
    let request = packet(Opcode::WriteOnly, 100, vec![0; 8]);
    assert_eq!(refused(&[], &request, NAK_INVALID), Fault::MissingHeader { opcode: 0x0A });
    let mut request = packet(Opcode::SendOnlyImm, 100, vec![0; 8]);
    request.imm = None;
    assert_eq!(refused(&[], &request, NAK_INVALID), Fault::MissingHeader { opcode: 0x05 });
}

#[test]
fn a_fatal_packet_out_of_its_turn_is_processed_when_its_turn_comes() {
    let mut b = Bench::new(config(100, Mtu::B256));
    let bad = packet(Opcode::WriteMiddle, 101, vec![0; 256]);
    assert_eq!(b.handle(&bad).replies(), [(100, NAK_SEQUENCE, 0)]);
    assert_eq!(b.responder.state(), QpState::Ready);
}

#[test]
fn closing_flushes_receives_and_sends_the_peer_nothing() {
    let mut b = Bench::new(ResponderConfig { ..config(100, Mtu::B256) });
    b.responder.post_receive(receive(1, BASE, 1000));
    b.handle(&send_first());
    b.responder.post_receive(receive(2, BASE, 1000));
    b.responder.close();
    b.responder.close();
    assert_eq!((b.replies(), b.responder.state()), (vec![], QpState::Error(Fault::Closed)));
    let ends: Vec<_> = std::iter::from_fn(|| b.responder.poll_completion()).collect();
    assert_eq!(ends.iter().map(|end| end.wr_id).collect::<Vec<_>>(), [1, 2]);
    assert!(ends.iter().all(|end| end.status == RecvStatus::WrFlushErr));
}

#[test]
fn a_message_of_another_server_is_refused_and_not_acknowledged() {
    let ours = packet(Opcode::SendOnlyImm, 100, vec![7; 40]);
    let theirs = |opcode, bytes: usize| packet(opcode, 101, vec![8; bytes]);
    let write = with_reth(theirs(Opcode::WriteOnlyImm, 40), BASE, 40);
    for theirs in [theirs(Opcode::SendOnlyImm, 40), theirs(Opcode::SendFirst, 256), write] {
        let mut b = Bench::new(config(100, Mtu::B256));
        b.memory.foreign = Some(8);
        b.responder.post_receive(receive(1, BASE, 300));
        b.responder.post_receive(receive(2, BASE, 300));
        b.handle(&ack_requested(ours.clone()));
        b.replies();
        let writes = b.memory.writes;
        b.handle(&ack_requested(theirs));
        assert_eq!(b.responder.state(), QpState::Error(Fault::NotOurs { event: 8 }));
        let replies = b.replies();
        assert_eq!((replies.len(), replies[0].0), (1, 101), "a NAK, and no acknowledgement");
        assert_eq!(b.memory.writes, writes, "nothing of it is written");
        let ends: Vec<_> = std::iter::from_fn(|| b.responder.poll_completion()).collect();
        assert_eq!(ends.iter().map(|end| end.status == RecvStatus::Success).collect::<Vec<_>>(), [true, false]);
    }
}
