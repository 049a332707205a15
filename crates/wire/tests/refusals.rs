// SPDX-License-Identifier: Apache-2.0
//! Frames that a parser must refuse or ignore. Each case breaks one rule and has correct checksums, so that only the
//! check of this rule can find it. Etherparse makes the headers and their checksums.

use bytes::Bytes;
use etherparse::{Ipv4HeaderSlice, PacketBuilder, TcpOptionElement};
use penstock_wire::{
    BthRepr, CmInfo, CmMessage, CmRequest, Cnm, Ecn, EthernetView, FiveTuple, Ipv4Addr, MacAddr, MacControl, Opcode,
    Packet, ParseError, Payload, Psn, Qpn, ReprError, RethRepr, RocePacket, TcpFlags, TcpPacket, UdpView, CM_LEN,
    CM_REPLY_PORT, UDP_PORT_ROCE,
};
use std::cmp::Ordering;

const IP_AT: usize = 14;
const L4_AT: usize = 34;

fn send_only(payload: Payload) -> RocePacket {
    RocePacket {
        eth_dst: MacAddr([2, 0, 0, 0, 0, 1]),
        eth_src: MacAddr([2, 0, 0, 0, 0, 2]),
        cn_tag: None,
        ip_src: Ipv4Addr::new(10, 0, 0, 1),
        // Read as a port, the last two octets are RoCEv2's: a header length that lies finds them there.
        ip_dst: Ipv4Addr::new(10, 0, 0x12, 0xB7),
        dscp: 26,
        ecn: Ecn::Ect0,
        ttl: 64,
        udp_sport: 0xC000,
        bth: BthRepr::new(Opcode::SendOnly, Qpn::new(0x100), Psn::new(7)),
        reth: None,
        aeth: None,
        imm: None,
        payload,
    }
}

/// The frame of four bytes, changed; its IPv4 header is summed anew by etherparse.
fn changed(change: impl Fn(&mut Vec<u8>)) -> Bytes {
    let mut frame = send_only(Payload::Bytes(Bytes::from_static(b"data"))).emit().to_vec();
    change(&mut frame);
    let sum = Ipv4HeaderSlice::from_slice(&frame[IP_AT..]).map(|header| header.to_header().calc_header_checksum());
    if let Ok(sum) = sum {
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    frame.into()
}

fn stays_raw(frame: Bytes) -> bool {
    Packet::parse(frame.clone()) == Ok(Packet::Raw(frame))
}

#[test]
fn a_mac_control_frame_cut_short_is_refused_with_what_it_lacks() {
    let pause = MacControl::Pause { quanta: 9 };
    let pfc = MacControl::Pfc { enabled: 0x81, quanta: [7; 8] };
    for (control, whole) in [(pause, 4), (pfc, 20)] {
        let packet = Packet::MacControl { src: MacAddr([2; 6]), control };
        for available in 0..whole {
            let needed = if available < 2 { 2 } else { whole };
            let truncated = ParseError::Truncated { layer: "MAC control", needed, available };
            assert_eq!(Packet::parse(packet.emit().slice(..14 + available)), Err(truncated));
        }
        assert_eq!(Packet::parse(packet.emit().slice(..14 + whole)), Ok(packet));
    }
}

#[test]
fn a_mac_control_opcode_of_neither_kind_stays_raw() {
    let pause = Packet::MacControl { src: MacAddr([2; 6]), control: MacControl::Pause { quanta: 9 } };
    for opcode in [0u16, 2, 0x0100, 0x0102] {
        let mut frame = pause.emit().to_vec();
        frame[14..16].copy_from_slice(&opcode.to_be_bytes());
        assert!(stays_raw(frame.into()), "opcode {opcode:#06x}");
    }
}

#[test]
fn a_pause_for_a_single_station_stays_raw_and_keeps_its_address() {
    let mut frame =
        Packet::MacControl { src: MacAddr([2; 6]), control: MacControl::Pause { quanta: 9 } }.emit().to_vec();
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    assert!(stays_raw(frame.into()));
}

#[test]
fn only_the_first_fragment_of_version_4_udp_claims_to_be_roce() {
    assert!(stays_raw(changed(|frame| frame[IP_AT] = 0x65)), "version 6");
    assert!(stays_raw(changed(|frame| frame[IP_AT] = 0x44)), "a header of 16 bytes");
    assert!(stays_raw(changed(|frame| frame[IP_AT + 9] = 6)), "TCP to port 4791");
    assert!(stays_raw(changed(|frame| frame[IP_AT + 7] = 1)), "a later fragment");
    let first = changed(|frame| frame[IP_AT + 6] = 0x20);
    assert_eq!(Packet::parse(first), Err(ParseError::Fragmented { src: Ipv4Addr::new(10, 0, 0, 1) }));
}

#[test]
fn a_body_that_is_not_whole_words_is_refused_with_its_length() {
    let longer = changed(|frame| {
        frame.push(0);
        frame[IP_AT + 3] += 1;
        frame[L4_AT + 5] += 1;
    });
    assert_eq!(Packet::parse(longer), Err(ParseError::BadPadCount { pad: 0, body: 5 }));
}

#[test]
fn no_packet_has_more_payload_than_the_largest_mtu_and_some_have_none() {
    let refused = |packet: &RocePacket| match packet.validate() {
        Err(ReprError::PayloadTooLong { len, max, .. }) => Some((len, max)),
        _ => None,
    };
    let mut packet = send_only(Payload::Virtual(4096));
    assert_eq!(packet.validate(), Ok(()));
    packet.payload = Payload::Virtual(4097);
    assert_eq!(refused(&packet), Some((4097, 4096)));
    packet.payload = Payload::Virtual(1);
    packet.bth.opcode = Opcode::Cnp;
    assert_eq!(refused(&packet), Some((1, 0)));
    packet.bth.opcode = Opcode::ReadRequest;
    packet.reth = Some(RethRepr { va: 0, rkey: 0, dma_len: 1 });
    assert_eq!(refused(&packet), Some((1, 0)));
}

#[test]
fn a_frame_that_ends_in_its_ports_or_has_none_has_ports_zero() {
    let ports = |frame: Bytes| Packet::Raw(frame).five_tuple().map(|flow| (flow.sport, flow.dport));
    assert_eq!(ports(changed(|_| ())), Some((0xC000, UDP_PORT_ROCE)));
    assert_eq!(ports(changed(|frame| frame.truncate(L4_AT + 4))), Some((0xC000, UDP_PORT_ROCE)));
    assert_eq!(ports(changed(|frame| frame.truncate(L4_AT + 3))), Some((0, 0)));
    assert_eq!(ports(changed(|frame| frame[IP_AT] = 0x44)), Some((0, 0)), "a header of 16 bytes");
}

fn tcp(options: &[TcpOptionElement]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    let mut frame = Vec::new();
    builder.tcp(1, 2, 3, 4).options(options).unwrap().write(&mut frame, b"payload!").unwrap();
    frame
}

#[test]
fn a_tcp_header_shorter_than_its_fixed_part_is_refused_though_its_checksum_is_right() {
    let mut frame = tcp(&[]);
    assert_eq!(frame[L4_AT + 12], 0x50);
    frame[L4_AT + 12] = 0x40;
    // RFC 1624: the word fell by 0x1000, so the complement of the sum rises by it.
    let old = u16::from_be_bytes([frame[L4_AT + 16], frame[L4_AT + 17]]);
    let (sum, carry) = old.overflowing_add(0x1000);
    frame[L4_AT + 16..L4_AT + 18].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    let short = ParseError::BadLength { layer: "TCP", field: 16, actual: 28 };
    assert_eq!(TcpPacket::parse(&frame.into()), Err(short));
}

#[test]
fn options_other_than_sack_are_no_blocks() {
    let segment = TcpPacket::parse(&tcp(&[TcpOptionElement::Timestamp(0x0102_0304, 0x0506_0708)]).into()).unwrap();
    assert_eq!(segment.sack.as_slice(), []);
    let blocks = TcpOptionElement::SelectiveAcknowledgement((5, 9), [None; 3]);
    let segment = TcpPacket::parse(&tcp(&[TcpOptionElement::Timestamp(1, 2), blocks]).into()).unwrap();
    assert_eq!(segment.sack.as_slice(), [(5, 9)]);
}

fn notification(protocol: u8, dport: u16, dest_qpn: Option<Qpn>) -> Cnm {
    let (src, dst) = (Ipv4Addr::new(10, 0, 0, 7), Ipv4Addr::new(10, 0, 1, 9));
    Cnm {
        eth_dst: MacAddr([2, 0, 0, 0, 0, 1]),
        eth_src: MacAddr([2, 0, 0, 0, 0, 2]),
        flow: 5,
        feedback: 40,
        cpid: 1,
        q_offset: -1,
        q_delta: 1,
        priority: 3,
        encapsulated_dst: MacAddr([2, 0, 0, 0, 0, 3]),
        flow_tuple: FiveTuple { src, dst, protocol, sport: 0xC005, dport },
        dest_qpn,
    }
}

#[test]
fn a_notification_names_a_queue_pair_only_where_it_quotes_a_bth_of_roce() {
    let read = |cnm: Cnm| match Packet::parse(cnm.emit()) {
        Ok(Packet::Cnm(cnm)) => cnm.dest_qpn,
        other => panic!("{other:?}"),
    };
    let qpn = Some(Qpn::new(0x12_3456));
    assert_eq!(read(notification(17, UDP_PORT_ROCE, qpn)), qpn);
    assert_eq!(read(notification(6, UDP_PORT_ROCE, qpn)), None, "TCP");
    assert_eq!(read(notification(17, 53, qpn)), None, "another UDP");
    assert_eq!(read(notification(17, UDP_PORT_ROCE, None)), None, "a quote that ends behind the ports");
}

#[test]
fn a_notification_that_quotes_more_than_64_bytes_is_refused() {
    let mut frame = notification(17, UDP_PORT_ROCE, None).emit().to_vec();
    frame.resize(42 + 80, 0);
    frame[41] = 64;
    assert!(matches!(Packet::parse(frame.clone().into()), Ok(Packet::Cnm(_))));
    frame[41] = 65;
    let long = ParseError::BadLength { layer: "CNM", field: 65, actual: 64 };
    assert_eq!(Packet::parse(frame.into()), Err(long));
}

#[test]
fn a_connection_message_of_another_length_is_refused_with_its_length() {
    let short = ParseError::Truncated { layer: "connection manager", needed: CM_LEN, available: 63 };
    assert_eq!(CmMessage::parse(&[0; 63]), Err(short));
    let long = ParseError::BadLength { layer: "connection manager", field: CM_LEN, actual: 65 };
    assert_eq!(CmMessage::parse(&[0; 65]), Err(long));
}

#[test]
fn an_answer_goes_to_the_port_of_the_request_and_else_to_the_reply_port() {
    let request = CmMessage::request(CmRequest::OpenQp, CmInfo::default(), CmInfo::default());
    assert_eq!(CmMessage { port: 0, ..request }.reply_port(), CM_REPLY_PORT);
    assert_eq!(CmMessage { port: 5000, ..request }.reply_port(), 5000);
    assert_eq!(CmRequest::ModifyQpRts.to_string(), "MODIFY_QP_RTS");
    assert_eq!(CmRequest::Reserved(5).to_string(), "request 5");
}

#[test]
fn the_order_of_psns_holds_both_ways_and_across_the_wrap() {
    let (before, behind) = (Psn::new(0xFF_FFFF), Psn::new(1));
    assert_eq!(before.cmp_window(behind), Ordering::Less);
    assert_eq!(behind.cmp_window(before), Ordering::Greater);
    assert_eq!(behind.cmp_window(behind), Ordering::Equal);
}

#[test]
fn views_and_flags_separate_the_empty_the_group_and_the_whole_set() {
    let udp = |len: u8| UdpView::new_checked(&[0, 1, 0, 2, 0, len, 0, 0]).unwrap().is_empty();
    assert_eq!([udp(8), udp(9)], [true, false]);
    let frame = tcp(&[]);
    let eth = EthernetView::new_checked(&frame).unwrap();
    assert!(!eth.dst().is_multicast() && MacAddr::BROADCAST.is_multicast());
    let syn_ack = TcpFlags::SYN.with(TcpFlags::ACK);
    assert!(syn_ack.contains(TcpFlags::ACK) && !TcpFlags::ACK.contains(syn_ack));
}
