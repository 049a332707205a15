// SPDX-License-Identifier: Apache-2.0
//! Properties of the codec over arbitrary packets and arbitrary bytes: an emitted packet parses back,
//! every flipped bit is detected unless it may change in transit, and no input causes a panic.

use bytes::Bytes;
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::{
    AethRepr, BthRepr, Ecn, FragmentError, FragmentHeader, Ipv4Addr, MacAddr, MacControl, Opcode, Operation, Packet,
    ParseError, Payload, Psn, Qpn, ReprError, RethRepr, RocePacket, Syndrome,
};
use proptest::prelude::*;

fn bth() -> impl Strategy<Value = BthRepr> {
    let flags = any::<(bool, bool, bool, bool, bool)>();
    (any::<u8>(), flags, any::<(u16, u32, u32)>()).prop_map(|(opcode, flags, numbers)| BthRepr {
        opcode: Opcode::from(opcode),
        solicited: flags.0,
        mig_req: flags.1,
        pkey: numbers.0,
        fecn: flags.2,
        becn: flags.3,
        dest_qpn: Qpn::new(numbers.1),
        ack_req: flags.4,
        psn: Psn::new(numbers.2),
    })
}

fn payload(opcode: Opcode) -> BoxedStrategy<Bytes> {
    match opcode.operation() {
        Operation::Cnp | Operation::Acknowledge | Operation::ReadRequest => Just(Bytes::new()).boxed(),
        _ => prop::collection::vec(any::<u8>(), 0..=300).prop_map(Bytes::from).boxed(),
    }
}

prop_compose! {
    fn roce()(bth in bth())(
        macs in any::<([u8; 6], [u8; 6])>(),
        ips in any::<(u32, u32)>(),
        (dscp, ecn, ttl, udp_sport) in (0..64u8, 0..4u8, any::<u8>(), any::<u16>()),
        (va, rkey, dma_len) in any::<(u64, u32, u32)>(),
        (syndrome, msn, imm) in (any::<u8>(), 0..1u32 << 24, any::<u32>()),
        payload in payload(bth.opcode),
        bth in Just(bth),
    ) -> RocePacket {
        RocePacket {
            eth_dst: MacAddr(macs.0),
            eth_src: MacAddr(macs.1),
            cn_tag: None,
            ip_src: Ipv4Addr::from(ips.0),
            ip_dst: Ipv4Addr::from(ips.1),
            dscp,
            ecn: Ecn::from_bits(ecn),
            ttl,
            udp_sport,
            bth,
            reth: bth.opcode.has_reth().then_some(RethRepr { va, rkey, dma_len }),
            aeth: bth.opcode.has_aeth().then_some(AethRepr { syndrome: Syndrome::from(syndrome), msn }),
            imm: bth.opcode.has_imm().then_some(imm),
            payload: Payload::Bytes(payload),
        }
    }
}

/// Offsets of the bytes that a router may change without breaking the ICRC: MACs and EtherType,
/// TOS, TTL, both checksums, BTH byte 4.
const VARIANT: [usize; 7] = [15, 22, 24, 25, 40, 41, 46];

proptest! {
    #[test]
    fn what_is_emitted_whole_or_in_parts_parses_back(packet in roce(), padding in 0..32usize) {
        let parts = packet.emit_parts();
        let packet = Packet::Roce(packet);
        let frame = packet.emit();
        prop_assert_eq!(frame.len(), packet.frame_len());
        prop_assert_eq!(parts.pieces().concat(), frame.to_vec());
        let padded = [&frame[..], &vec![0xA5; padding]].concat();
        prop_assert_eq!(Packet::parse(Bytes::from(padded)), Ok(packet));
    }

    #[test]
    fn a_cn_tag_is_four_bytes_after_the_addresses(packet in roce(), flow: u16) {
        let plain = packet.emit();
        let tagged = RocePacket { cn_tag: Some(flow), ..packet };
        let tag = [0x22, 0xE9, (flow >> 8) as u8, flow as u8];
        let expected = [&plain[..12], &tag, &plain[12..]].concat();
        prop_assert_eq!(tagged.emit_parts().pieces().concat(), expected.clone());
        prop_assert_eq!(tagged.frame_len(), expected.len());
        let tagged = Packet::Roce(tagged);
        prop_assert_eq!(tagged.emit().to_vec(), expected.clone());
        prop_assert_eq!(Packet::parse(Bytes::from(expected)), Ok(tagged));
    }

    #[test]
    fn a_flipped_bit_behind_the_ethernet_header_never_passes_unseen(
        packet in roce(), position in any::<prop::sample::Index>(), bit in 0..8u8
    ) {
        let packet = Packet::Roce(packet);
        let mut frame = packet.emit().to_vec();
        let at = 14 + position.index(frame.len() - 14);
        frame[at] ^= 1 << bit;
        match Packet::parse(Bytes::from(frame)) {
            // Turned into something that does not claim to be RoCEv2.
            Ok(Packet::Raw(_)) => prop_assert!(at < 38, "byte {at}"),
            Ok(Packet::Roce(_)) => prop_assert!(VARIANT.contains(&at), "byte {at}"),
            Ok(other) => prop_assert!(false, "became {other:?}"),
            Err(_) => prop_assert!(!matches!(at, 40 | 41 | 46), "byte {at} is not covered"),
        }
    }

    #[test]
    fn a_switch_may_mark_and_route_without_breaking_the_icrc(
        packet in roce(), ttl in any::<u8>(), tos in any::<u8>()
    ) {
        let routed = RocePacket { ttl, dscp: tos >> 2, ecn: Ecn::from_bits(tos), ..packet.clone() };
        let (a, b) = (packet.emit(), routed.emit());
        prop_assert_eq!(&a[a.len() - 4..], &b[b.len() - 4..]);
    }

    #[test]
    fn a_frame_cut_short_is_refused(packet in roce(), cut in any::<prop::sample::Index>()) {
        let frame = packet.emit();
        let frame = frame.slice(..cut.index(frame.len()));
        // Below the UDP ports nothing claims to be RoCEv2.
        match Packet::parse(frame.clone()) {
            Ok(Packet::Raw(bytes)) => prop_assert!(bytes.len() < 38),
            other => prop_assert!(other.is_err(), "{other:?}"),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Packet::parse(Bytes::from(data.clone()));
        let _ = FragmentHeader::parse(&data);
    }

    #[test]
    fn arbitrary_bytes_behind_a_roce_port_never_panic(
        total in any::<u16>(), data in prop::collection::vec(any::<u8>(), 0..100)
    ) {
        let mut frame = vec![0u8; 38];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        frame[23] = 17;
        frame[36..38].copy_from_slice(&4791u16.to_be_bytes());
        let sum: u32 = frame[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
        let sum = (sum & 0xFFFF) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        frame.extend(data);
        let control = matches!(Packet::parse(Bytes::from(frame)), Ok(Packet::MacControl { .. }));
        prop_assert!(!control);
    }

    #[test]
    fn virtual_payload_is_zeros_of_the_same_length(packet in roce()) {
        let len = packet.payload.len();
        let zeros = RocePacket { payload: Payload::Bytes(vec![0; len].into()), ..packet.clone() };
        let imagined = RocePacket { payload: Payload::Virtual(len as u32), ..packet };
        prop_assert_eq!(imagined.frame_len(), zeros.frame_len());
        prop_assert_eq!(imagined.emit(), zeros.emit());
    }

    #[test]
    fn mac_control_parses_back(src in any::<[u8; 6]>(), enabled in any::<u8>(), quanta in any::<[u16; 8]>()) {
        for control in [MacControl::Pause { quanta: quanta[0] }, MacControl::Pfc { enabled, quanta }] {
            let packet = Packet::MacControl { src: MacAddr(src), control };
            prop_assert_eq!(packet.emit().len(), packet.frame_len());
            prop_assert_eq!(packet.wire_len(), 84);
            prop_assert_eq!(Packet::parse(packet.emit()), Ok(packet));
        }
    }

    #[test]
    fn psn_arithmetic_is_modulo_2_to_the_24(start in any::<u32>(), n in 0..1u32 << 23) {
        let psn = Psn::new(start);
        prop_assert_eq!(psn.add(n).sub(n), psn);
        prop_assert_eq!(psn.add(n).distance_from(psn), n as i32);
        prop_assert_eq!(psn.cmp_window(psn.add(n)).is_lt(), n != 0);
        prop_assert_eq!(psn.in_range(psn, psn.add(n)), n != 0);
    }

    #[test]
    fn fragment_header_parses_back_and_finds_any_flipped_bit(
        ids in any::<(u16, u64, u64)>(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        position in any::<prop::sample::Index>(),
        bit in 0..8u8,
    ) {
        let header = FragmentHeader::for_payload(ids.0, ids.1, ids.2, &payload);
        let mut message = [&header.to_bytes()[..], &payload].concat();
        prop_assert_eq!(FragmentHeader::parse(&message), Ok(header));
        prop_assert_eq!(header.check_payload(&message[HEADER_LEN..]), Ok(&payload[..]));
        message[position.index(HEADER_LEN + payload.len())] ^= 1 << bit;
        let read = FragmentHeader::parse(&message)
            .and_then(|header| header.check_payload(&message[HEADER_LEN..]).map(drop));
        prop_assert!(read.is_err());
    }
}

fn an_ack() -> RocePacket {
    RocePacket {
        eth_dst: MacAddr([2, 0, 0, 0, 0, 1]),
        eth_src: MacAddr([2, 0, 0, 0, 0, 2]),
        cn_tag: None,
        ip_src: Ipv4Addr::new(10, 0, 0, 1),
        ip_dst: Ipv4Addr::new(10, 0, 0, 2),
        dscp: 26,
        ecn: Ecn::NotEct,
        ttl: 64,
        udp_sport: 49152,
        bth: BthRepr::new(Opcode::Acknowledge, Qpn::new(0x100), Psn::new(7)),
        reth: None,
        aeth: Some(AethRepr { syndrome: Syndrome::from(0x1F), msn: 3 }),
        imm: None,
        payload: Payload::EMPTY,
    }
}

#[test]
fn wire_length_charges_preamble_fcs_and_gap() {
    let mut packet = an_ack();
    assert_eq!(Packet::Roce(packet.clone()).wire_len(), 14 + 20 + 8 + 12 + 4 + 4 + 24);
    packet.bth.opcode = Opcode::WriteMiddle;
    packet.aeth = None;
    packet.payload = Payload::Virtual(4096);
    // The physical limit: 4096 bytes of payload in 4178 on the wire.
    assert_eq!(Packet::Roce(packet).wire_len(), 4178);
    assert_eq!(Packet::Raw(Bytes::from_static(&[0; 10])).wire_len(), 84);
}

#[test]
fn a_packet_that_contradicts_its_opcode_is_named() {
    let packet = RocePacket { aeth: None, ..an_ack() };
    let missing = ReprError::Extension { opcode: 0x11, header: "aeth", required: true };
    assert_eq!(packet.validate(), Err(missing));
    assert!(missing.to_string().contains("aeth must be Some"));
    let packet = RocePacket { payload: Payload::Virtual(1), ..an_ack() };
    assert_eq!(packet.validate(), Err(ReprError::PayloadTooLong { opcode: 0x11, len: 1, max: 0 }));
}

#[test]
fn each_broken_layer_is_named_with_its_value() {
    let good = an_ack().emit();
    let broken = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.to_vec();
        change(&mut frame);
        Packet::parse(Bytes::from(frame)).unwrap_err()
    };
    let with_options = |f: &mut Vec<u8>| {
        f[14] = 0x46;
        f.splice(34..34, [1; 4]);
    };
    assert_eq!(broken(&with_options), ParseError::IpOptions { header_len: 24 });
    assert!(matches!(broken(&|f| f[22] ^= 1), ParseError::BadIpChecksum { .. }));
    assert!(matches!(broken(&|f| f[39] += 1), ParseError::BadLength { layer: "UDP", field: 29, actual: 28 }));
    assert!(matches!(broken(&|f| f[43] |= 1), ParseError::BthVersion { version: 1 }));
    assert!(matches!(broken(&|f| f[43] |= 0x10), ParseError::BadPadCount { pad: 1, body: 0 }));
    assert!(matches!(broken(&|f| f[53] ^= 1), ParseError::BadIcrc { .. }));
    assert!(matches!(broken(&|f| f.truncate(45)), ParseError::BadLength { layer: "IPv4", field: 48, actual: 31 }));
}

#[test]
fn what_is_not_roce_stays_raw() {
    let mut arp = vec![0xFF; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let mut dns = an_ack().emit().to_vec();
    dns[36..38].copy_from_slice(&53u16.to_be_bytes());
    for frame in [arp, dns] {
        let frame = Bytes::from(frame);
        assert_eq!(Packet::parse(frame.clone()), Ok(Packet::Raw(frame)));
    }
}

#[test]
fn parsing_slices_the_payload_out_of_the_frame() {
    let packet = RocePacket {
        bth: BthRepr::new(Opcode::SendOnly, Qpn::new(1), Psn::new(1)),
        aeth: None,
        payload: Payload::Bytes(Bytes::from_static(b"not copied")),
        ..an_ack()
    };
    let frame = packet.emit();
    let Ok(Packet::Roce(parsed)) = Packet::parse(frame.clone()) else { panic!("does not parse") };
    assert_eq!(parsed.payload.as_bytes().unwrap().as_ptr(), frame[54..].as_ptr());
}

#[test]
fn a_slot_that_holds_no_fragment_is_refused() {
    assert_eq!(FragmentHeader::parse(&[0; 39]), Err(FragmentError::Truncated { available: 39 }));
    assert_eq!(FragmentHeader::parse(&[0; 40]), Err(FragmentError::BadMagic { found: [0; 4] }));
    let mut header = FragmentHeader::for_payload(1, 2, 3, b"abc").to_bytes();
    header[4] = 2;
    assert_eq!(FragmentHeader::parse(&header), Err(FragmentError::BadVersion { found: 2 }));
}
