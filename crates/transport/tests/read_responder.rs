// SPDX-License-Identifier: Apache-2.0
//! One test for each rule of a responder that serves READs: responses, their order, repetitions, and every request
//! that is refused. Expectations are IBTA 9.4.4, 9.7.4 and 9.7.5.

mod common;

use bytes::Bytes;
use common::*;
use penstock_transport::{Access, Fault, Memory, MemoryRegion, Mtu, QpState, ResponderConfig, Unreadable};
use penstock_units::Time;
use penstock_wire::{Ecn, NakCode, Opcode, Packet, Payload, RocePacket, Syndrome};
use Opcode::{
    Acknowledge, ReadResponseFirst as First, ReadResponseLast as Last, ReadResponseMiddle as Middle,
    ReadResponseOnly as Only,
};

const RESOURCES: u8 = 16;
const WRITE_ONLY: u32 = 0xA;
const LOCAL_ONLY: u32 = 0xB;

fn config_of(psn: u32) -> ResponderConfig {
    let region = |rkey, access| MemoryRegion { va: BASE, rkey, len: REGION, access };
    let mut config = config(psn, Mtu::B256);
    config.regions = vec![
        region(RKEY, Access::RemoteReadWrite),
        region(WRITE_ONLY, Access::RemoteWrite),
        region(LOCAL_ONLY, Access::LocalOnly),
    ];
    ResponderConfig { responder_resources: RESOURCES, ..config }
}

/// A responder with memory in which every byte depends on its address.
fn bench(psn: u32) -> Bench {
    let mut b = Bench::new(config_of(psn));
    let bytes = (0..REGION as u32).map(|at| (at.wrapping_mul(0x9E37_79B1) >> 24) as u8);
    b.memory.bytes = bytes.collect();
    b
}

/// All packets that wait.
fn packets(b: &mut Bench) -> Vec<RocePacket> {
    std::iter::from_fn(|| b.responder.poll_transmit(&mut b.memory)).collect()
}

/// All packets that wait, as opcode and PSN.
fn psns(b: &mut Bench) -> Vec<(Opcode, u32)> {
    packets(b).iter().map(|packet| (packet.bth.opcode, packet.bth.psn.value())).collect()
}

#[test]
fn response_packets_equal_memory_and_take_the_psns_of_the_request() {
    for (len, opcodes) in [
        (0, vec![Only]),
        (1, vec![Only]),
        (256, vec![Only]),
        (257, vec![First, Last]),
        (512, vec![First, Last]),
        (1001, vec![First, Middle, Middle, Last]),
    ] {
        let mut b = bench(0xFF_FFFE);
        b.handle(&read_request(0xFF_FFFE, BASE + 77, len));
        let sent = packets(&mut b);
        assert_eq!(sent.iter().map(|packet| packet.bth.opcode).collect::<Vec<_>>(), opcodes);
        let mut bytes = Vec::new();
        for (i, packet) in sent.iter().enumerate() {
            assert_eq!(Packet::parse(packet.emit()).unwrap(), Packet::Roce(packet_with_bytes(packet)));
            assert_eq!(packet.bth.psn.value(), (0xFF_FFFE + i as u32) & 0xFF_FFFF);
            assert_eq!((packet.bth.dest_qpn, packet.ip_dst), (PEER.qpn, PEER.ip));
            assert_eq!(packet.aeth.is_some(), packet.bth.opcode != Middle);
            if packet.aeth.is_some() {
                assert_eq!(read_reply(packet), (packet.bth.psn.value(), ACK, 1));
            }
            bytes.extend_from_slice(packet.payload.as_bytes().unwrap_or_default());
        }
        assert_eq!(bytes, b.memory.at(BASE + 77, len as usize));
        assert_eq!(b.responder.expected_psn().value(), (0xFF_FFFE + sent.len() as u32) & 0xFF_FFFF);
        let counters = b.responder.counters();
        assert_eq!((counters.rx_read_requests, counters.tx_payload_bytes), (1, u64::from(len)));
    }
}

/// The packet as it is parsed: an empty payload is a slice of the frame.
fn packet_with_bytes(packet: &RocePacket) -> RocePacket {
    let bytes = Bytes::copy_from_slice(packet.payload.as_bytes().unwrap_or_default());
    RocePacket { payload: Payload::Bytes(bytes), ..packet.clone() }
}

#[test]
fn only_responses_may_be_marked_and_only_where_their_owner_paces_them() {
    for response_ecn in [Ecn::NotEct, Ecn::Ect0] {
        let mut config = config_of(0);
        config.marking.response_ecn = response_ecn;
        let mut b = Bench::new(config);
        b.handle(&read_request(0, BASE, 300));
        b.handle(&ack_requested(with_reth(packet(Opcode::WriteOnly, 2, Bytes::new()), BASE, 0)));
        b.responder.notify(Time::ZERO);
        let marks: Vec<(Opcode, Ecn)> = packets(&mut b).iter().map(|packet| (packet.bth.opcode, packet.ecn)).collect();
        let unpaced = |opcode| (opcode, Ecn::NotEct);
        assert_eq!(marks, [unpaced(Opcode::Cnp), (First, response_ecn), (Last, response_ecn), unpaced(Acknowledge)]);
    }
}

#[test]
fn a_read_returns_what_an_earlier_write_has_written() {
    let mut b = bench(100);
    b.handle(&with_reth(packet(Opcode::WriteOnly, 100, vec![9; 16]), BASE + 8, 16));
    b.handle(&read_request(101, BASE + 8, 16));
    assert_eq!(packets(&mut b)[0].payload.as_bytes(), Some(&[9u8; 16][..]));
}

#[test]
fn no_acknowledgement_overtakes_the_responses_of_an_earlier_read() {
    let mut b = bench(100);
    let write = |psn| ack_requested(with_reth(packet(Opcode::WriteOnly, psn, vec![1; 8]), BASE, 8));
    b.handle(&write(100)).handle(&read_request(101, BASE, 600)).handle(&write(104)).handle(&write(105));
    b.handle(&read_request(106, BASE, 1)).handle(&write(109));
    let sent = packets(&mut b);
    let order: Vec<_> = sent.iter().map(|packet| (packet.bth.opcode, packet.bth.psn.value())).collect();
    let expected = [
        (Acknowledge, 100),
        (First, 101),
        (Middle, 102),
        (Last, 103),
        (Acknowledge, 105),
        (Only, 106),
        (Acknowledge, 107),
    ];
    assert_eq!(order, expected, "the NAK for 107 comes last");
    let msns: Vec<_> = sent.iter().filter_map(|packet| packet.aeth).map(|aeth| aeth.msn).collect();
    assert_eq!(msns, [1, 2, 2, 4, 5, 5], "a READ counts as one message");
    assert_eq!(sent[6].aeth.unwrap().syndrome, Syndrome::Nak(NakCode::PsnSequenceError));
}

#[test]
fn a_repeated_read_is_answered_again_from_any_of_its_packets_on() {
    let mut b = bench(100);
    b.handle(&read_request(100, BASE + 5, 1000));
    let first = packets(&mut b);
    b.handle(&read_request(100, BASE + 5, 1000));
    assert_eq!(packets(&mut b), first);
    for (k, opcodes) in [(1, vec![First, Middle, Last]), (2, vec![First, Last]), (3, vec![Only])] {
        let offset = k as u32 * 256;
        b.handle(&read_request(100 + k as u32, BASE + 5 + u64::from(offset), 1000 - offset));
        let again = packets(&mut b);
        assert_eq!(again.iter().map(|packet| packet.bth.opcode).collect::<Vec<_>>(), opcodes);
        for (packet, earlier) in again.iter().zip(&first[k..]) {
            assert_eq!((packet.bth.psn, &packet.payload), (earlier.bth.psn, &earlier.payload));
        }
    }
    b.handle(&read_request(101, BASE + 5 + 256, 256));
    assert_eq!(psns(&mut b), [(Only, 101)], "a part of it");
    let counters = b.responder.counters();
    assert_eq!((counters.rx_read_requests, counters.duplicate_request, counters.dropped_stale_reads), (1, 5, 0));
    assert_eq!(b.responder.expected_psn().value(), 104);
}

#[test]
fn a_repeated_read_replaces_what_is_left_of_its_answer_and_keeps_later_replies() {
    let mut b = bench(100);
    b.handle(&read_request(100, BASE, 1000)).handle(&read_request(104, BASE, 300));
    b.handle(&ack_requested(with_reth(packet(Opcode::WriteOnly, 106, vec![1; 8]), BASE, 8)));
    assert_eq!(b.responder.poll_transmit(&mut b.memory).unwrap().bth.psn.value(), 100);
    // The peer has not received it.
    b.handle(&read_request(100, BASE, 1000)).handle(&read_request(104, BASE, 300));
    let second = [(First, 104), (Last, 105), (Acknowledge, 106)];
    assert_eq!(psns(&mut b), [&[(First, 100), (Middle, 101), (Middle, 102), (Last, 103)][..], &second].concat());
    // All is sent, all is lost: the peer goes back to the second packet.
    b.handle(&read_request(101, BASE + 256, 744)).handle(&read_request(104, BASE, 300));
    b.handle(&ack_requested(with_reth(packet(Opcode::WriteOnly, 106, vec![1; 8]), BASE, 8)));
    assert_eq!(psns(&mut b), [&[(First, 101), (Middle, 102), (Last, 103)][..], &second].concat());
}

#[test]
fn a_repeated_write_is_not_acknowledged_beyond_a_read_that_may_have_to_be_answered_again() {
    let mut b = bench(100);
    let write = |psn| with_reth(packet(Opcode::WriteOnly, psn, vec![1; 8]), BASE, 8);
    b.handle(&write(100)).handle(&read_request(101, BASE, 300)).handle(&write(103));
    assert_eq!(psns(&mut b), [(First, 101), (Last, 102)]);
    b.handle(&write(100)).handle(&read_request(101, BASE, 300)).handle(&write(103));
    assert_eq!(psns(&mut b), [(Acknowledge, 100), (First, 101), (Last, 102), (Acknowledge, 103)]);
    b.handle(&ack_requested(write(104))).handle(&write(100));
    assert_eq!(psns(&mut b), [(Acknowledge, 104)], "an ACK that waits goes further");
}

#[test]
fn a_request_that_repeats_no_recent_read_has_no_answer_and_is_counted() {
    let mut b = bench(100);
    b.handle(&read_request(100, BASE + 512, 1000));
    packets(&mut b);
    let mut wrong = vec![
        read_request(99, BASE + 256, 1256),
        read_request(101, BASE + 512, 744),
        read_request(101, BASE + 768, 745),
        read_request(100, BASE, 1000),
        read_request(100, BASE + 512, 0),
        read_request(100, BASE + 512, u32::MAX),
    ];
    wrong.push(read_request(100, BASE + 512, 1000));
    wrong.last_mut().unwrap().reth.as_mut().unwrap().rkey = WRITE_ONLY;
    wrong.push(RocePacket { reth: None, ..read_request(100, BASE + 512, 1000) });
    let reads = b.memory.reads;
    for (k, request) in wrong.iter().enumerate() {
        b.handle(request);
        assert_eq!((psns(&mut b), b.responder.counters().dropped_stale_reads), (vec![], k as u64 + 1));
    }
    assert_eq!((b.memory.reads, b.responder.state()), (reads, QpState::Ready));
    // As many READs later as may be outstanding, the peer cannot need it.
    for k in 0..u32::from(RESOURCES) {
        b.handle(&read_request(104 + k, BASE, 1));
        packets(&mut b);
    }
    b.handle(&read_request(100, BASE + 512, 1000));
    assert_eq!(psns(&mut b), []);
    b.handle(&read_request(104, BASE, 1));
    assert_eq!(psns(&mut b), [(Only, 104)]);
}

/// Sends a request that is refused, and checks the NAK, the state and that no memory was touched.
fn refused(b: &mut Bench, request: &RocePacket, nak: u8) -> Fault {
    let (psn, reads) = (b.responder.expected_psn().value(), b.memory.reads);
    b.handle(request);
    let QpState::Error(fault) = b.responder.state() else { panic!("not in error") };
    assert!(!fault.to_string().is_empty());
    let reply = b.responder.poll_transmit(&mut b.memory).expect("a NAK");
    assert_eq!((reply.bth.opcode, read_reply(&reply).0, read_reply(&reply).1), (Acknowledge, psn, nak), "{fault}");
    assert_eq!((b.responder.poll_transmit(&mut b.memory), b.memory.reads), (None, reads));
    b.handle(request);
    assert_eq!((psns(b), b.responder.counters().dropped_in_error), (vec![], 1));
    let counters = b.responder.counters();
    let invalid = u64::from(nak == NAK_INVALID);
    assert_eq!((counters.resp_invalid_requests, counters.resp_remote_access_errors), (invalid, 1 - invalid));
    fault
}

#[test]
fn wrong_key_permission_or_range_is_an_access_error() {
    let with_key = |rkey| {
        let mut request = read_request(100, BASE, 8);
        request.reth.as_mut().unwrap().rkey = rkey;
        request
    };
    assert_eq!(refused(&mut bench(100), &with_key(0xBAD), NAK_ACCESS), Fault::UnknownRkey { rkey: 0xBAD });
    for rkey in [WRITE_ONLY, LOCAL_ONLY] {
        assert_eq!(refused(&mut bench(100), &with_key(rkey), NAK_ACCESS), Fault::ReadDenied { rkey });
    }
    let end = BASE + REGION;
    for (va, len) in [(BASE - 1, 600), (end - 599, 600), (end, 1), (u64::MAX - 300, 600), (BASE, 1 << 31)] {
        let fault = refused(&mut bench(100), &read_request(100, va, len), NAK_ACCESS);
        assert!(matches!(fault, Fault::OutOfBounds { va: v, len: l, .. } if (v, l) == (va, len)), "{fault}");
    }
    let mut b = bench(100);
    b.handle(&read_request(100, end - 16, 16));
    assert_eq!(packets(&mut b)[0].payload.as_bytes(), Some(b.memory.at(end - 16, 16)), "the last byte may be read");
}

#[test]
fn a_region_that_may_only_be_read_is_not_written() {
    let mut config = config_of(100);
    config.regions[0].access = Access::RemoteRead;
    let mut b = Bench::new(config);
    b.handle(&read_request(100, BASE, 4));
    assert_eq!(psns(&mut b), [(Only, 100)]);
    let write = with_reth(packet(Opcode::WriteOnly, 101, vec![0; 8]), BASE, 8);
    assert_eq!(refused(&mut b, &write, NAK_ACCESS), Fault::AccessDenied { rkey: RKEY });
    assert_eq!(b.memory.writes, 0);
}

#[test]
fn malformed_reads_are_invalid_requests() {
    let fault = refused(&mut bench(100), &read_request(100, BASE, (1 << 31) + 1), NAK_INVALID);
    assert_eq!(fault, Fault::ReadTooLong { len: (1 << 31) + 1 });
    let loaded = with_reth(packet(Opcode::ReadRequest, 100, vec![0; 4]), BASE, 8);
    assert_eq!(refused(&mut bench(100), &loaded, NAK_INVALID), Fault::ReadPayload { len: 4 });
    let bare = packet(Opcode::ReadRequest, 100, vec![]);
    assert_eq!(refused(&mut bench(100), &bare, NAK_INVALID), Fault::MissingHeader { opcode: 0x0C });
    let mut b = bench(100);
    b.handle(&with_reth(packet(Opcode::WriteFirst, 100, vec![0; 256]), BASE, 600));
    let fault = refused(&mut b, &read_request(101, BASE, 8), NAK_INVALID);
    assert_eq!(fault, Fault::OpcodeSequence { opcode: 0x0C, in_message: true });
}

#[test]
fn a_queue_pair_without_resources_serves_no_read() {
    let mut b = Bench::new(ResponderConfig { responder_resources: 0, ..config_of(100) });
    let fault = refused(&mut b, &read_request(100, BASE, 8), NAK_INVALID);
    assert_eq!(fault, Fault::UnsupportedOpcode { opcode: 0x0C });
}

#[test]
fn one_read_more_than_the_resources_is_an_invalid_request() {
    let mut b = bench(100);
    for k in 0..u32::from(RESOURCES) {
        b.handle(&read_request(100 + 2 * k, BASE, 300));
    }
    // The first is answered: there is room for one.
    assert_eq!(b.responder.poll_transmit(&mut b.memory).unwrap().bth.opcode, First);
    assert_eq!(b.responder.poll_transmit(&mut b.memory).unwrap().bth.opcode, Last);
    b.handle(&read_request(132, BASE, 300));
    assert_eq!(b.responder.state(), QpState::Ready);
    b.handle(&read_request(134, BASE, 300));
    assert_eq!(b.responder.state(), QpState::Error(Fault::TooManyReads { resources: RESOURCES }));
    let sent = psns(&mut b);
    assert_eq!(sent.len(), 2 * usize::from(RESOURCES) + 1, "the others are answered");
    assert_eq!((sent[0], *sent.last().unwrap()), ((First, 102), (Acknowledge, 134)));
    assert_eq!(b.responder.counters().resp_invalid_requests, 1);
}

#[test]
fn repeated_reads_take_no_resources() {
    let mut b = bench(100);
    for k in 0..u32::from(RESOURCES) {
        b.handle(&read_request(100 + k, BASE, 1));
    }
    packets(&mut b);
    for k in 0..u32::from(RESOURCES) {
        b.handle(&read_request(100 + k, BASE, 1));
    }
    b.handle(&read_request(116, BASE, 1));
    let expected: Vec<_> = (101..117).map(|psn| (Only, psn)).collect();
    assert_eq!(psns(&mut b), expected, "the answer to the oldest is no longer needed");
    assert_eq!(b.responder.state(), QpState::Ready);
}

#[test]
fn a_read_ahead_of_its_turn_makes_one_nak() {
    let mut b = bench(100);
    b.handle(&read_request(101, BASE, 8)).handle(&read_request(102, BASE, 8));
    assert_eq!(b.replies(), [(100, NAK_SEQUENCE, 0)]);
    assert_eq!((b.memory.reads, b.responder.counters().rx_read_requests), (0, 0));
    b.handle(&read_request(100, BASE, 8));
    assert_eq!(psns(&mut b), [(Only, 100)]);
}

#[test]
fn a_read_of_no_bytes_names_no_memory() {
    let mut b = bench(100);
    let mut request = read_request(100, 0, 0);
    request.reth.as_mut().unwrap().rkey = 0xBAD;
    b.handle(&request).handle(&request);
    let sent = packets(&mut b);
    assert_eq!((sent.len(), sent[0].bth.opcode, sent[0].payload.len()), (1, Only, 0));
    assert_eq!((b.memory.reads, b.responder.expected_psn().value()), (0, 101));
}

#[test]
fn the_longest_read_takes_half_of_all_psns_and_is_read_as_it_is_sent() {
    struct Endless(u64);
    impl Memory for Endless {
        fn write(&mut self, _va: u64, _data: &Payload) {}
        fn read(&mut self, _va: u64, len: u32) -> Result<Payload, Unreadable> {
            self.0 += u64::from(len);
            Ok(Payload::Virtual(len))
        }
    }
    let mut config = config_of(7);
    config.regions[0].len = 1 << 31;
    let (mut b, mut memory) = (Bench::new(config), Endless(0));
    b.responder.handle_packet(Time::ZERO, &read_request(7, BASE, 1 << 31), &mut memory);
    assert_eq!(b.responder.expected_psn().value(), 7 + (1 << 23));
    for psn in 7..10 {
        assert_eq!(b.responder.poll_transmit(&mut memory).unwrap().bth.psn.value(), psn);
    }
    assert_eq!(memory.0, 3 * 256);
    let last = read_request(6 + (1 << 23), BASE + (1 << 31) - 256, 256);
    b.responder.handle_packet(Time::ZERO, &last, &mut memory);
    let reply = b.responder.poll_transmit(&mut memory).unwrap();
    assert_eq!((reply.bth.opcode, reply.bth.psn.value()), (Only, 6 + (1 << 23)));
    assert_eq!(b.responder.poll_transmit(&mut memory), None);
}

#[test]
fn memory_that_cannot_be_read_ends_the_queue_pair_at_its_response() {
    let mut b = bench(100);
    b.responder.post_receive(receive(1, BASE, 300));
    b.memory.unreadable_from = BASE + 600;
    b.handle(&read_request(100, BASE, 1000)).handle(&read_request(104, BASE, 8));
    let sent = packets(&mut b);
    let order: Vec<_> = sent.iter().map(|packet| (packet.bth.opcode, packet.bth.psn.value())).collect();
    assert_eq!(order, [(First, 100), (Middle, 101), (Acknowledge, 102)]);
    assert_eq!(read_reply(&sent[2]).1, NAK_OPERATIONAL);
    assert_eq!(b.responder.state(), QpState::Error(Fault::Unreadable { va: BASE + 512, len: 256 }));
    assert_eq!(b.responder.counters().resp_remote_operational_errors, 1);
    assert_eq!(b.responder.poll_completion().map(|end| end.wr_id), Some(1), "its receives are flushed");
}

#[test]
fn memory_that_only_receives_cannot_be_read() {
    struct Sink;
    impl Memory for Sink {
        fn write(&mut self, _va: u64, _data: &Payload) {}
    }
    let mut b = bench(100);
    b.handle(&read_request(100, BASE, 8));
    assert_eq!(read_reply(&b.responder.poll_transmit(&mut Sink).unwrap()), (100, NAK_OPERATIONAL, 1));
}

#[test]
fn earlier_reads_are_answered_before_a_fatal_nak_and_none_after_a_close() {
    let mut b = bench(100);
    b.handle(&read_request(100, BASE, 300)).handle(&packet(Opcode::WriteMiddle, 102, vec![0; 256]));
    assert_eq!(psns(&mut b), [(First, 100), (Last, 101), (Acknowledge, 102)]);
    let mut b = bench(100);
    b.handle(&read_request(100, BASE, 300));
    b.responder.close();
    assert_eq!((psns(&mut b), b.memory.reads), (vec![], 0));
}
