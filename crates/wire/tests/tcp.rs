// SPDX-License-Identifier: Apache-2.0
//! TCP segments against etherparse, an independent codec.

use bytes::Bytes;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
use penstock_wire::{Ecn, MacAddr, Packet, Payload, SackBlocks, SynOptions, TcpFlags, TcpPacket};
use proptest::prelude::*;

fn sack(blocks: &[(u32, u32)]) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for (start, end) in blocks {
        assert!(sack.push(*start, *end));
    }
    sack
}

prop_compose! {
    fn segment()(
        addresses in any::<([u8; 4], [u8; 4])>(),
        ports in any::<(u16, u16)>(),
        (seq, ack, window, flags) in any::<(u32, u32, u16, u8)>(),
        dscp in 0..64u8,
        (syn, mss, scale) in any::<(bool, Option<u16>, Option<u8>)>(),
        blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=SackBlocks::MAX),
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) -> TcpPacket {
        TcpPacket {
            eth_dst: MacAddr([2, 0, 0, 0, 0, 1]),
            eth_src: MacAddr([2, 0, 0, 0, 0, 2]),
            ip_src: addresses.0.into(),
            ip_dst: addresses.1.into(),
            dscp,
            ecn: Ecn::NotEct,
            ttl: 64,
            src_port: ports.0,
            dst_port: ports.1,
            seq,
            ack,
            flags: TcpFlags(flags),
            window,
            options: if syn { SynOptions { mss, window_scale: scale, malformed: false } } else { SynOptions::default() },
            sack: if syn { SackBlocks::default() } else { sack(&blocks) },
            payload: Payload::Bytes(Bytes::from(payload)),
        }
    }
}

proptest! {
    #[test]
    fn another_codec_reads_every_field_and_agrees_on_the_checksum(segment in segment()) {
        let frame = segment.emit();
        prop_assert_eq!(frame.len(), segment.frame_len());
        let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (sliced.net, sliced.transport) else {
            panic!("no TCP over IPv4");
        };
        prop_assert_eq!(ip.header().source_addr(), segment.ip_src);
        prop_assert_eq!(tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).unwrap(), tcp.checksum());
        prop_assert_eq!((tcp.source_port(), tcp.destination_port()), (segment.src_port, segment.dst_port));
        prop_assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (segment.seq, segment.ack));
        prop_assert_eq!(tcp.window_size(), segment.window);
        prop_assert_eq!(Some(tcp.payload()), segment.payload.as_bytes());
        let blocks: Vec<(u32, u32)> = tcp
            .options_iterator()
            .filter_map(|option| match option.unwrap() {
                TcpOptionElement::SelectiveAcknowledgement(first, more) => {
                    Some(std::iter::once(first).chain(more.into_iter().flatten()).collect::<Vec<_>>())
                }
                _ => None,
            })
            .flatten()
            .collect();
        prop_assert_eq!(blocks, segment.sack.as_slice());
        let mut syn = SynOptions::default();
        for option in tcp.options_iterator() {
            match option.unwrap() {
                TcpOptionElement::MaximumSegmentSize(mss) => syn.mss = Some(mss),
                TcpOptionElement::WindowScale(shift) => syn.window_scale = Some(shift),
                _ => {}
            }
        }
        prop_assert_eq!(syn, segment.options);
    }

    #[test]
    fn what_is_emitted_parses_back_behind_any_padding(segment in segment(), padding in 0..20usize) {
        let mut frame = segment.emit().to_vec();
        frame.resize(frame.len() + padding, 0);
        prop_assert_eq!(TcpPacket::parse(&Bytes::from(frame)), Ok(segment));
    }

    #[test]
    fn a_flipped_bit_behind_the_ip_header_is_refused(segment in segment(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut frame = segment.emit().to_vec();
        let at = 34 + at.index(frame.len() - 34);
        frame[at] ^= 1 << bit;
        prop_assert!(TcpPacket::parse(&Bytes::from(frame)).is_err());
    }

    #[test]
    fn arbitrary_options_of_another_codec_never_panic(options in prop::collection::vec(any::<u8>(), 0..40)) {
        let builder = PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let builder = builder.tcp(1, 2, 3, 4).options_raw(&options).unwrap();
        let mut frame = Vec::new();
        builder.write(&mut frame, b"payload").unwrap();
        let segment = TcpPacket::parse(&Bytes::from(frame)).unwrap();
        prop_assert_eq!((segment.seq, segment.payload.as_bytes()), (3, Some(&b"payload"[..])));
    }
}

proptest! {
    /// What the card does: the sum over the rest of the segment, added to what the field holds, is the checksum.
    #[test]
    fn headers_for_a_card_carry_the_sum_over_the_pseudo_header(segment in segment()) {
        let (whole, mut headers) = (segment.emit(), [0; 114]);
        let len = segment.emit_headers(&mut headers);
        let mut frame = headers[..len].to_vec();
        frame.extend_from_slice(segment.payload.as_bytes().unwrap());
        prop_assert_eq!(TcpPacket::parse_offloaded(&Bytes::from(frame.clone())), Ok(segment));
        let mut padded = frame[34..].to_vec();
        padded.push(0);
        let mut sum: u32 = padded.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        frame[50..52].copy_from_slice(&(!sum as u16).to_be_bytes());
        prop_assert_eq!(&frame[..], &whole[..]);
    }
}

#[test]
fn options_of_a_wrong_length_are_reported_and_those_before_them_kept() {
    for (options, mss, scale, malformed) in [
        (&[2, 4, 5, 180, 1, 3, 3, 7][..], Some(1460), Some(7), false),
        (&[2, 4, 5, 180, 3, 0, 0, 0], Some(1460), None, true),
        (&[2, 3, 5, 1], None, None, true),
        (&[1, 1, 1, 3], None, None, true),
        (&[3, 3, 15, 2], None, Some(15), true),
        (&[4, 2, 8, 200, 1, 2, 3, 4], None, None, true),
        (&[0, 2, 9, 9], None, None, false),
    ] {
        let builder = PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let builder = builder.tcp(1, 2, 3, 4).options_raw(options).unwrap();
        let mut frame = Vec::new();
        builder.write(&mut frame, &[]).unwrap();
        let segment = TcpPacket::parse(&Bytes::from(frame)).unwrap();
        assert_eq!(segment.options, SynOptions { mss, window_scale: scale, malformed }, "{options:?}");
    }
}

#[test]
fn a_fifth_sack_block_has_no_room() {
    let mut blocks = sack(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    assert!(!blocks.push(9, 10));
    assert_eq!(blocks.as_slice().len(), 4);
}

#[test]
fn tcp_stays_raw_for_those_who_did_not_request_it() {
    let mut frame = Vec::new();
    let builder = PacketBuilder::ethernet2([2; 6], [2; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, 3, 4);
    builder.write(&mut frame, b"payload").unwrap();
    assert!(matches!(Packet::parse(Bytes::from(frame)), Ok(Packet::Raw(_))));
}
