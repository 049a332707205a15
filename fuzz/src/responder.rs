// SPDX-License-Identifier: Apache-2.0
//! The responder with arbitrary sequences of packets, from its peer and from others, well-formed or not.
//! Promise: no panic; nothing is written outside of what was registered or posted; each receive completes at most once
//! and in order; the expected PSN moves by one packet at a time; a stranger's packet changes nothing.

use crate::input::Input;
use bytes::Bytes;
use penstock_transport::{
    Access, CreditPolicy, Endpoint, Memory, MemoryRegion, Mtu, QpState, RecvStatus, RecvWr, Responder, ResponderConfig,
};
use penstock_units::Time;
use penstock_wire::{BthRepr, Ecn, Ipv4Addr, MacAddr, Opcode, Payload, Psn, Qpn, RethRepr, RocePacket};

const BASE: u64 = 0x7F00_0000_0000;
const LEN: u64 = 4096;
const LOCAL_BASE: u64 = BASE + 3 * LEN;
/// Where receives may lie, beside the region.
const POSTED_BASE: u64 = BASE + 5 * LEN;
const RKEY: u32 = 0x2A;
const LOCAL_RKEY: u32 = 0x2B;
const LOCAL: Endpoint = end(1);
const PEER: Endpoint = end(2);

const fn end(n: u8) -> Endpoint {
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(10, 0, 0, n), qpn: Qpn::new(n as u32) }
}

/// Looks at every address it is given.
#[derive(Default)]
struct Watched {
    posted: Vec<RecvWr>,
    writes: u64,
}

impl Memory for Watched {
    fn write(&mut self, va: u64, data: &Payload) {
        let inside = |first: u64, len: u64| va >= first && va + data.len() as u64 <= first + len;
        let in_region = inside(BASE, LEN);
        let in_receive = self.posted.iter().any(|wr| inside(wr.va, wr.len.into()));
        assert!(in_region || in_receive, "{} bytes at {va:#x}", data.len());
        self.writes += 1;
    }
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut memory = Watched::default();
    let mut responder = Responder::new(config(&mut input));
    let (mut completed, mut now) = (0u64, Time::ZERO);
    while !input.is_empty() {
        match input.u8() % 16 {
            0 => {
                let wr_id = memory.posted.len() as u64;
                let wr = RecvWr { wr_id, va: POSTED_BASE + wr_id * LEN, len: u32::from(input.u16()) % 3000 };
                memory.posted.push(wr);
                responder.post_receive(wr);
            }
            1 if input.u8() == 0 => responder.close(),
            2 => stranger(&mut responder, &mut input, &mut memory, now),
            _ => {
                let packet = packet(&mut input, responder.expected_psn());
                handle(&mut responder, &packet, &mut memory, now);
            }
        }
        now += Time::from_us(input.u8().into());
        while let Some(reply) = responder.poll_transmit() {
            assert_eq!(reply.validate(), Ok(()));
            assert_eq!((reply.ip_dst, reply.bth.dest_qpn), (PEER.ip, PEER.qpn));
        }
        while let Some(end) = responder.poll_completion() {
            assert_eq!(end.wr_id, completed, "each receive once, in order");
            assert!(end.status == RecvStatus::Success || responder.state() != QpState::Ready);
            completed += 1;
        }
    }
    let open = memory.posted.len() as u64 - completed - responder.posted_receives() as u64;
    assert!(open <= 1, "{open} receives are neither posted nor completed");
}

fn config(input: &mut Input) -> ResponderConfig {
    let (mtu, flags) = (input.u8(), input.u8());
    let mtu = Mtu::ALL[usize::from(mtu) % 2];
    let mut config = ResponderConfig::new(LOCAL, PEER, Psn::new(input.u32()), mtu);
    let region = |va, rkey, access| MemoryRegion { va, rkey, len: LEN, access };
    config.regions = vec![region(LOCAL_BASE, LOCAL_RKEY, Access::LocalOnly), region(BASE, RKEY, Access::RemoteWrite)];
    if flags & 1 == 1 {
        config.credits = CreditPolicy::Posted;
    }
    config
}

fn handle(responder: &mut Responder, packet: &RocePacket, memory: &mut Watched, now: Time) {
    let (before, writes, ready) = (responder.expected_psn(), memory.writes, responder.state() == QpState::Ready);
    responder.handle_packet(now, packet, memory);
    let moved = responder.expected_psn().distance_from(before);
    assert!(moved == 0 || (moved == 1 && packet.bth.psn == before && ready), "PSN moved by {moved}");
    assert!(memory.writes == writes || moved == 1, "only a packet that is accepted is written");
}

/// A packet that is right but for who sends it or whom it is for.
fn stranger(responder: &mut Responder, input: &mut Input, memory: &mut Watched, now: Time) {
    let mut packet = packet(input, responder.expected_psn());
    match input.u8() % 4 {
        0 => packet.ip_src = Ipv4Addr::from(input.u32()),
        1 => packet.ip_dst = Ipv4Addr::from(input.u32()),
        2 => packet.bth.dest_qpn = Qpn::new(input.u32()),
        _ => packet.bth.pkey = input.u16(),
    }
    let pkey = packet.bth.pkey & 0x7FFF == 0x7FFF;
    let ours = packet.ip_src == PEER.ip && packet.ip_dst == LOCAL.ip && packet.bth.dest_qpn == LOCAL.qpn && pkey;
    if ours {
        return handle(responder, &packet, memory, now);
    }
    let before = (responder.expected_psn(), responder.state(), responder.posted_receives(), memory.writes);
    let counters = *responder.counters();
    responder.handle_packet(now, &packet, memory);
    let after = (responder.expected_psn(), responder.state(), responder.posted_receives(), memory.writes);
    assert_eq!(before, after, "a stranger's packet changed something");
    assert_eq!(responder.counters().rcvd_pkts, counters.rcvd_pkts);
    assert_ne!(responder.counters(), &counters, "it is counted");
    assert!(responder.poll_transmit().is_none() && responder.poll_completion().is_none());
}

/// Mostly plausible, so that the deep rules are reached.
fn packet(input: &mut Input, expected: Psn) -> RocePacket {
    let (code, flags) = (input.u8(), input.u8());
    let opcode = Opcode::from(if flags & 0x80 == 0 { code % 12 } else { code });
    let psn = if flags & 0x40 == 0 { expected } else { expected.add(i32::from(input.near()) as u32) };
    let mut len = if flags & 0x20 == 0 { 256 } else { usize::from(input.u16()) % 600 };
    if flags & 0x10 != 0 {
        len %= 8;
    }
    let reth = (opcode.has_reth() || flags & 0x0F == 0x0F).then(|| reth(input));
    let mut bth = BthRepr::new(opcode, LOCAL.qpn, psn);
    bth.ack_req = flags & 1 == 1;
    RocePacket {
        eth_dst: LOCAL.mac,
        eth_src: PEER.mac,
        ip_src: PEER.ip,
        ip_dst: LOCAL.ip,
        dscp: 26,
        ecn: if flags & 2 == 0 { Ecn::Ect0 } else { Ecn::Ce },
        ttl: 64,
        udp_sport: 0xC000,
        bth,
        reth,
        aeth: None,
        imm: (opcode.has_imm() && flags & 0x0C != 0x0C).then_some(7),
        payload: Payload::Bytes(Bytes::from(vec![code; len])),
    }
}

fn reth(input: &mut Input) -> RethRepr {
    let kind = input.u8();
    let va = match kind % 4 {
        0 => BASE,
        1 => BASE.wrapping_add_signed(i64::from(input.near())),
        2 => (BASE + LEN).wrapping_add_signed(i64::from(input.near()) * 64),
        _ => input.u64(),
    };
    let rkey = match kind >> 4 {
        0..=12 => RKEY,
        13 => LOCAL_RKEY,
        _ => input.u32(),
    };
    let dma_len = if kind & 8 == 0 { u32::from(input.u16()) % 1200 } else { input.u32() };
    RethRepr { va, rkey, dma_len }
}
