// SPDX-License-Identifier: Apache-2.0
//! Every parser of `penstock-wire` with arbitrary bytes, and with bytes whose checksums are right.
//! Promise: no panic; reading, writing and reading again gives the same result.

use crate::input::Input;
use bytes::Bytes;
use penstock_wire::fragment::{message_2_len, HEADER_2_LEN, TRAILER_LEN};
use penstock_wire::{
    announcement, announcement_len, crc32c, icrc, Announced, Announcement, FragmentHeader, FragmentId, FragmentMessage,
    Packet, RocePacket, TcpPacket, ANNOUNCEMENT_HEADER_LEN,
};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: u8 = 17;
const TCP: u8 = 6;
const ROCE_PORT: [u8; 2] = 4791u16.to_be_bytes();

/// The first byte chooses the parser and whether checksums are put right.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mode = input.u8();
    match mode % 7 {
        0 => frame(Bytes::copy_from_slice(input.0)),
        1 => frame(roce(input.0)),
        2 => frame(Bytes::from([&[0; 12], input.0].concat())),
        3 => tcp(&Bytes::copy_from_slice(input.0)),
        4 => tcp(&with_tcp_checksum(input.0)),
        5 => {
            fragment(input.0, mode >= 0x80);
            announced(input.0, mode >= 0x80);
        }
        _ => message_2(input.0, mode >= 0x80),
    }
}

fn frame(bytes: Bytes) {
    let len = bytes.len();
    let Ok(packet) = Packet::parse(bytes) else { return };
    if matches!(&packet, Packet::Roce(roce) if roce.validate().is_err()) {
        return;
    }
    assert!(packet.wire_len() >= 84 && packet.frame_len() <= len.max(64));
    let again = packet.emit();
    assert_eq!(again.len(), packet.frame_len());
    assert_eq!(Packet::parse(again).as_ref(), Ok(&packet));
}

/// An Ethernet frame around IPv4 of `protocol` whose fixed fields and header checksum are right.
fn ipv4(protocol: u8, body: &[u8], tos_and_ttl: [u8; 2]) -> Vec<u8> {
    let mut frame = vec![2; ETHERNET - 2];
    frame.extend([0x08, 0x00]);
    let len = u16::try_from(IPV4 + body.len()).unwrap_or(u16::MAX).to_be_bytes();
    let [tos, ttl] = tos_and_ttl;
    let mut header = [0x45, tos, len[0], len[1], 0, 0, 0x40, 0, ttl, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let sum = internet_checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend(body);
    frame
}

/// RFC 1071.
fn internet_checksum(data: &[u8]) -> u16 {
    let words = data.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)));
    let mut sum: u64 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// A RoCEv2 frame of the bytes from the BTH on, its ICRC computed.
fn roce(body: &[u8]) -> Bytes {
    let mut input = Input(body);
    let marks = [input.u8(), input.u8()];
    let body = &input.0[..input.0.len().min(9000)];
    let len = (8 + body.len() as u16 + 4).to_be_bytes();
    let datagram = [&[0xC0, 0x00], &ROCE_PORT[..], &len[..], &[0, 0], body, &[0; 4]].concat();
    let mut frame = ipv4(UDP, &datagram, marks);
    let icrc_at = frame.len() - 4;
    if icrc_at - ETHERNET >= 40 {
        let icrc = icrc(&frame[ETHERNET..icrc_at]);
        frame[icrc_at..].copy_from_slice(&icrc.to_le_bytes());
    }
    let frame = Bytes::from(frame);
    if let Err(error) = RocePacket::parse(&frame) {
        assert!(!matches!(error, penstock_wire::ParseError::BadIcrc { .. }), "the ICRC was right: {error}");
    }
    frame
}

fn tcp(bytes: &Bytes) {
    if let Ok(packet) = TcpPacket::parse(bytes) {
        let again = packet.emit();
        assert_eq!(again.len(), packet.frame_len());
        // Options that could not be read are not sent again.
        let mut kept = packet.clone();
        kept.options.malformed = false;
        assert_eq!(TcpPacket::parse(&again).as_ref(), Ok(&kept));
    }
}

/// A TCP frame of a segment, its checksum computed.
fn with_tcp_checksum(segment: &[u8]) -> Bytes {
    let mut segment = segment[..segment.len().min(9000)].to_vec();
    if let Some(field) = segment.get_mut(16..18) {
        field.fill(0);
        let len = (segment.len() as u16).to_be_bytes();
        let pseudo = [&[10, 0, 0, 1, 10, 0, 0, 2, 0, TCP], &len[..], &segment].concat();
        let sum = internet_checksum(&pseudo);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
    }
    Bytes::from(ipv4(TCP, &segment, [0, 64]))
}

fn fragment(data: &[u8], make_right: bool) {
    let mut data = data.to_vec();
    if make_right && data.len() >= 40 {
        data[..6].copy_from_slice(b"PSTF\x01\0");
        let payload_crc = crc32c(&data[40..]);
        data[12..16].copy_from_slice(&payload_crc.to_le_bytes());
        let header_crc = crc32c(&data[..36]);
        data[36..40].copy_from_slice(&header_crc.to_le_bytes());
    }
    let parsed = FragmentHeader::parse(&data);
    assert!(!make_right || data.len() < 40 || parsed.is_ok());
    if let Ok(header) = parsed {
        if let Ok(payload) = header.check_payload(&data[40..]) {
            assert_eq!(payload.len(), header.payload_len as usize);
        }
    }
}

/// A fragment of version 2. Put right: magics, version, lengths and CRC-32C, so that its table of parts is what is
/// left.
fn message_2(data: &[u8], make_right: bool) {
    let mut data = data.to_vec();
    let around = HEADER_2_LEN + TRAILER_LEN;
    if make_right && data.len() >= around {
        let parts = usize::from(data[0] % 18).min((data.len() - around) / 16);
        let payload = (data.len() - around - 16 * parts) / 8 * 8;
        data.truncate(around + 16 * parts + payload);
        let at = data.len() - TRAILER_LEN;
        data[..6].copy_from_slice(b"PSTF\x02\0");
        data[at..at + 4].copy_from_slice(&(payload as u32).to_le_bytes());
        data[at + 4] = parts as u8;
        data[at + 8..at + 12].copy_from_slice(b"PSTE");
        let crc = crc32c(&data[..at + 12]);
        data[at + 12..].copy_from_slice(&crc.to_le_bytes());
    }
    let whole = data.len() >= around;
    match FragmentMessage::parse(&data) {
        Ok(found) => {
            assert_eq!(Ok(found.id), FragmentId::peek(&data));
            assert_eq!(found.payload_crc, crc32c(found.payload));
            let end = found.parts.iter().map(|part| part.offset as usize + part.len as usize).max().unwrap_or(0);
            assert!(end <= found.payload.len(), "a part ends at {end}");
            if make_right && whole {
                assert_eq!(message_2_len(found.payload.len(), found.parts.len()), data.len());
            }
        }
        Err(error) => {
            let of_table = error.to_string().contains("parts");
            assert!(!make_right || !whole || of_table, "{error}");
        }
    }
}

/// An announcement. Put right: magic, version and number of events, so that lengths and addresses are what is left.
fn announced(data: &[u8], make_right: bool) {
    let mut data = data.to_vec();
    if make_right && data.len() > ANNOUNCEMENT_HEADER_LEN {
        let events = (data.len() - ANNOUNCEMENT_HEADER_LEN) / 5;
        data.truncate(announcement_len(events));
        data[..6].copy_from_slice(b"PSTA\x02\0");
        data[6] = events as u8;
    }
    let Ok(read) = Announcement::parse(&data) else { return };
    let all: Vec<Announced> = read.iter().collect();
    for one in &all {
        assert!(one.length < read.stride && one.address.checked_add(one.length.into()).is_some());
        assert!(one.event != u64::MAX);
    }
    let rest: Vec<_> = all.windows(2).map(|pair| pair[0].entry_of(&pair[1], read.stride).unwrap()).collect();
    let again = announcement(read.carried, (read.rkey, read.stride), all[0], &rest);
    assert_eq!(Announcement::parse(&again).unwrap().iter().collect::<Vec<_>>(), all);
}
