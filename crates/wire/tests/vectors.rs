// SPDX-License-Identifier: Apache-2.0
//! The codec against independent ones: frames made by scapy (`make_vectors.py`) are parsed to the
//! fields that scapy was given and reproduced byte for byte, and etherparse reads our frames.

use bytes::Bytes;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use penstock_wire::{
    fcs, AethRepr, BthRepr, Ecn, MacAddr, MacControl, Opcode, Packet, Payload, Psn, Qpn, RethRepr, RocePacket,
    Syndrome, UDP_PORT_ROCE,
};
use std::collections::HashMap;
use std::net::Ipv4Addr;

struct Vector {
    kind: &'static str,
    fields: HashMap<&'static str, u64>,
    frame: Bytes,
}

impl Vector {
    fn get(&self, name: &str) -> u64 {
        *self.fields.get(name).unwrap_or_else(|| panic!("vector has no {name}"))
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name) == 1
    }

    fn mac(&self, name: &str) -> MacAddr {
        MacAddr(self.get(name).to_be_bytes()[2..].try_into().unwrap())
    }

    fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn word(&self, name: &str) -> u32 {
        u32::try_from(self.get(name)).unwrap()
    }
}

fn vectors() -> Vec<Vector> {
    include_str!("vectors.txt").lines().map(read_line).collect()
}

fn read_line(line: &'static str) -> Vector {
    let mut words = line.split(' ');
    let kind = words.next().unwrap();
    let hex = words.next_back().unwrap();
    let fields =
        words.map(|pair| pair.split_once('=').unwrap()).map(|(name, value)| (name, value.parse().unwrap())).collect();
    let frame = (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
    Vector { kind, fields, frame }
}

fn expected_bth(v: &Vector) -> BthRepr {
    BthRepr {
        opcode: Opcode::from(v.get("opcode") as u8),
        solicited: v.flag("solicited"),
        mig_req: v.flag("migreq"),
        pkey: v.get("pkey") as u16,
        fecn: v.flag("fecn"),
        becn: v.flag("becn"),
        dest_qpn: Qpn::new(v.word("dqpn")),
        ack_req: v.flag("ackreq"),
        psn: Psn::new(v.word("psn")),
    }
}

fn expected_roce(v: &Vector) -> RocePacket {
    let (bth, len) = match v.kind {
        "cnp" => {
            let cnp = BthRepr::new(Opcode::Cnp, Qpn::new(v.word("dqpn")), Psn::new(0));
            (BthRepr { becn: true, ..cnp }, 0)
        }
        _ => (expected_bth(v), v.get("len")),
    };
    RocePacket {
        eth_dst: v.mac("dst"),
        eth_src: v.mac("src"),
        cn_tag: None,
        ip_src: Ipv4Addr::from(v.word("sip")),
        ip_dst: Ipv4Addr::from(v.word("dip")),
        dscp: v.get("tos") as u8 >> 2,
        ecn: Ecn::from_bits(v.get("tos") as u8),
        ttl: v.get("ttl") as u8,
        udp_sport: v.get("sport") as u16,
        bth,
        reth: v.has("va").then(|| RethRepr { va: v.get("va"), rkey: v.word("rkey"), dma_len: v.word("dmalen") }),
        aeth: v.has("msn").then(|| AethRepr { syndrome: Syndrome::from(v.get("syndrome") as u8), msn: v.word("msn") }),
        imm: v.has("imm").then(|| v.word("imm")),
        payload: Payload::Bytes((0..len).map(|i| (7 * i + len) as u8).collect()),
    }
}

fn expected(v: &Vector) -> Packet {
    match v.kind {
        "pause" => {
            Packet::MacControl { src: v.mac("src"), control: MacControl::Pause { quanta: v.get("quanta") as u16 } }
        }
        "pfc" => Packet::MacControl {
            src: v.mac("src"),
            control: MacControl::Pfc {
                enabled: v.get("enabled") as u8,
                quanta: std::array::from_fn(|i| v.get(&format!("q{i}")) as u16),
            },
        },
        _ => Packet::Roce(expected_roce(v)),
    }
}

#[test]
fn scapy_frames_parse_to_the_fields_scapy_was_given() {
    for v in vectors() {
        assert_eq!(Packet::parse(v.frame.clone()).unwrap(), expected(&v), "{} {:?}", v.kind, v.fields);
    }
}

#[test]
fn emit_reproduces_scapy_frames_byte_for_byte() {
    for v in vectors() {
        let packet = expected(&v);
        assert_eq!(packet.emit(), v.frame, "{} {:?}", v.kind, v.fields);
        assert_eq!(packet.frame_len(), v.frame.len());
        assert_eq!(u64::from(fcs(&v.frame)), v.get("fcs"));
    }
}

#[test]
fn etherparse_reads_the_frames_we_make() {
    for packet in vectors().iter().map(expected) {
        let Packet::Roce(roce) = &packet else {
            continue;
        };
        let frame = packet.emit();
        let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("not IPv4: {packet:?}") };
        let header = ip.header();
        assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
        assert_eq!((header.source_addr(), header.destination_addr()), (roce.ip_src, roce.ip_dst));
        assert_eq!((header.dcp().value(), header.ecn().value()), (roce.dscp, roce.ecn.bits()));
        assert!(header.dont_fragment() && !header.is_fragmenting_payload());
        assert_eq!(header.ttl(), roce.ttl);
        let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("not UDP: {packet:?}") };
        assert_eq!((udp.source_port(), udp.destination_port()), (roce.udp_sport, UDP_PORT_ROCE));
        assert_eq!(udp.slice().len(), usize::from(udp.length()));
        assert_eq!(usize::from(udp.length()) + 14 + 20, frame.len());
    }
}
