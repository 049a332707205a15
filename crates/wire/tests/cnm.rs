// SPDX-License-Identifier: Apache-2.0
//! The notification message is byte for byte the one that the gateware's bench sends (`tb/lib/cnm.py`); etherparse and
//! scapy can parse the headers of the flow that it quotes.

use bytes::Bytes;
use etherparse::Ipv4HeaderSlice;
use penstock_wire::{Cnm, FiveTuple, MacAddr, Packet, ParseError, Qpn, UDP_PORT_ROCE};
use proptest::prelude::*;
use std::net::Ipv4Addr;

/// `cnm(5, 40)` and `cnm(300, 63, dst="0a:1b:2c:3d:4e:5f")` of `tb/lib/cnm.py`, which `tb/cnm_receiver` feeds to the
/// gateware.
const OF_THE_BENCH: [&str; 2] = [
    "025053544b01020000005a0122e9000522e700280200000000070003fb2e023760000250535409fe0000\
     000000000000000000000000000000000000",
    "0a1b2c3d4e5f020000005a0122e9012c22e7003f0200000000070003fb2e023760000250535409fe0000\
     000000000000000000000000000000000000",
];
/// Where the length of the quoted frame stands; the bench quotes nothing.
const LENGTH_AT: usize = 40;
const QUOTE_AT: usize = 42;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn message(flow: u16, feedback: u8) -> Cnm {
    Cnm {
        eth_dst: MacAddr([0x02, 0x50, 0x53, 0x54, 0x4b, 0x01]),
        eth_src: MacAddr([0x02, 0, 0, 0, 0x5a, 0x01]),
        flow,
        feedback,
        cpid: 0x0200_0000_0007_0003,
        q_offset: -1234,
        q_delta: 567,
        priority: 3,
        encapsulated_dst: MacAddr([0x02, 0x50, 0x53, 0x54, 0x09, 0xfe]),
        flow_tuple: FiveTuple {
            src: Ipv4Addr::new(10, 0, 0, 7),
            dst: Ipv4Addr::new(10, 0, 1, 9),
            protocol: 17,
            sport: 0xC005,
            dport: UDP_PORT_ROCE,
        },
        dest_qpn: Some(Qpn::new(0x12_3456)),
    }
}

#[test]
fn the_message_is_the_one_of_the_gatewares_bench() {
    let other = Cnm { eth_dst: MacAddr([0x0a, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f]), ..message(300, 63) };
    for (ours, theirs) in [message(5, 40), other].into_iter().zip(OF_THE_BENCH) {
        assert_eq!(ours.emit()[..LENGTH_AT], bytes(theirs)[..LENGTH_AT]);
        assert_eq!(ours.emit()[LENGTH_AT..QUOTE_AT], [0, 42], "EtherType, IPv4, UDP, BTH");
    }
}

#[test]
fn the_quote_names_the_flow_in_real_headers() {
    let frame = message(5, 40).emit();
    let quote = &frame[QUOTE_AT..];
    assert_eq!(quote[..2], [0x08, 0x00]);
    let ip = Ipv4HeaderSlice::from_slice(&quote[2..]).unwrap();
    assert_eq!((ip.source_addr(), ip.destination_addr()), (Ipv4Addr::new(10, 0, 0, 7), Ipv4Addr::new(10, 0, 1, 9)));
    assert_eq!((ip.protocol().0, ip.slice().len()), (17, 20));
    // scapy: IP(src="10.0.0.7", dst="10.0.1.9")/UDP(sport=0xC005, dport=4791)/BTH(dqpn=0x123456)
    let scapy = bytes("4500002c00010000401165b10a0000070a000109c00512b70018f68c0000ffff0012345600000000");
    assert_eq!(quote[2 + 12..2 + 24], scapy[12..24], "addresses and ports");
    assert_eq!(quote[2 + 32..2 + 36], scapy[32..36], "destination queue pair");
}

#[test]
fn what_quotes_no_flow_or_has_another_version_stays_raw() {
    let raw = |frame: Vec<u8>| assert!(matches!(Packet::parse(frame.into()), Ok(Packet::Raw(_))));
    OF_THE_BENCH.iter().for_each(|frame| raw(bytes(frame)));
    let changed = |at: usize, value: u8| {
        let mut frame = message(5, 40).emit().to_vec();
        frame[at] = value;
        frame
    };
    raw(changed(18, 0x10)); // version 1
    raw(changed(17, 0xE8)); // another EtherType behind the tag
    raw(changed(QUOTE_AT, 0x86)); // a quote that is not IPv4
    let too_long = Packet::parse(changed(LENGTH_AT + 1, 65).into());
    assert_eq!(too_long, Err(ParseError::BadLength { layer: "CNM", field: 65, actual: 42 }));
    let cut = Packet::parse(message(5, 40).emit().slice(..41));
    assert_eq!(cut, Err(ParseError::Truncated { layer: "CNM", needed: 42, available: 41 }));
}

prop_compose! {
    fn any_message()(
        flow: u16, feedback in 0u8..64, cpid: u64, q_offset: i16, q_delta: i16, priority in 0u8..8, mac: [u8; 6],
        src: u32, dst: u32, sport: u16, dport: u16, qpn in proptest::option::of(0u32..1 << 24)
    ) -> Cnm {
        let (protocol, dport) = if qpn.is_some() { (17, UDP_PORT_ROCE) } else { (6, dport) };
        let flow_tuple = FiveTuple { src: src.into(), dst: dst.into(), protocol, sport, dport };
        let dest_qpn = qpn.map(Qpn::new);
        Cnm { eth_src: MacAddr(mac), cpid, q_offset, q_delta, priority, flow_tuple, dest_qpn, ..message(flow, feedback) }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(message in any_message()) {
        let packet = Packet::Cnm(message);
        let frame = packet.emit();
        prop_assert_eq!(frame.len(), packet.frame_len());
        prop_assert!(frame.len() >= 60);
        prop_assert_eq!(Packet::parse(frame), Ok(packet));
    }

    #[test]
    fn no_bytes_behind_the_tag_make_it_panic(mut frame in proptest::collection::vec(any::<u8>(), 14..120)) {
        frame[12..14].copy_from_slice(&[0x22, 0xE9]);
        let _ = Packet::parse(Bytes::from(frame));
    }
}
