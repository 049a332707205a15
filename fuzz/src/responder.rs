// SPDX-License-Identifier: Apache-2.0
//! The responder with arbitrary sequences of packets, from its peer and from others, well-formed or not.
//! Promise: no panic; nothing is written outside of what was registered or posted, nothing is read outside of what is
//! open to READs; each receive completes at most once and in order; the expected PSN moves by one packet at a time, by
//! the responses of a READ; each response has the bytes that the READ with its PSN requested; a stranger's packet
//! changes nothing.

use crate::input::Input;
use bytes::Bytes;
use penstock_transport::{
    Access, CreditPolicy, Endpoint, Memory, MemoryRegion, Mtu, QpState, RecvStatus, RecvWr, Responder, ResponderConfig,
    Unreadable,
};
use penstock_units::Time;
use penstock_wire::{BthRepr, Ecn, Ipv4Addr, MacAddr, Opcode, Operation, Payload, Psn, Qpn, RethRepr, RocePacket};
use std::collections::BTreeMap;

const BASE: u64 = 0x7F00_0000_0000;
const LEN: u64 = 4096;
const LOCAL_BASE: u64 = BASE + 3 * LEN;
const READ_BASE: u64 = BASE + 8 * LEN;
/// Where receives may lie, beside the region.
const POSTED_BASE: u64 = BASE + 5 * LEN;
const RKEY: u32 = 0x2A;
const LOCAL_RKEY: u32 = 0x2B;
const READ_RKEY: u32 = 0x2C;
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
    unreadable: bool,
    /// What the responses of accepted READs must have, by their PSN: address of the message's byte, bytes.
    due: BTreeMap<u32, (u64, u32)>,
}

/// Every byte of a region that is open to READs depends on its address.
fn byte_at(va: u64) -> u8 {
    (va ^ va >> 8) as u8
}

fn bytes_at(va: u64, len: u32) -> Vec<u8> {
    (va..va + u64::from(len)).map(byte_at).collect()
}

impl Memory for Watched {
    fn write(&mut self, va: u64, data: &Payload) {
        let inside = |first: u64, len: u64| va >= first && va + data.len() as u64 <= first + len;
        let in_region = inside(BASE, LEN);
        let in_receive = self.posted.iter().any(|wr| inside(wr.va, wr.len.into()));
        assert!(in_region || in_receive, "{} bytes at {va:#x}", data.len());
        self.writes += 1;
    }

    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        let inside = |first: u64| va >= first && va + u64::from(len) <= first + LEN;
        assert!(inside(BASE) || inside(READ_BASE), "{len} bytes at {va:#x}");
        assert!(len > 0);
        let readable = !self.unreadable;
        readable.then(|| Payload::Bytes(bytes_at(va, len).into())).ok_or(Unreadable)
    }
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut memory = Watched::default();
    let mut responder = Responder::new(config(&mut input));
    memory.unreadable = input.u8() == 0xFF;
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
        let pace = input.u8();
        now += Time::from_us(pace.into());
        // Some replies may have to wait, so that repeated requests find them.
        transmit(&mut responder, &mut memory, if pace & 0x80 == 0 { usize::MAX } else { usize::from(pace & 7) });
        while let Some(end) = responder.poll_completion() {
            assert_eq!(end.wr_id, completed, "each receive once, in order");
            assert!(end.status == RecvStatus::Success || responder.state() != QpState::Ready);
            completed += 1;
        }
    }
    let open = memory.posted.len() as u64 - completed - responder.posted_receives() as u64;
    assert!(open <= 1, "{open} receives are neither posted nor completed");
}

fn transmit(responder: &mut Responder, memory: &mut Watched, most: usize) {
    for _ in 0..most {
        let Some(reply) = responder.poll_transmit(memory) else { break };
        assert_eq!(reply.validate(), Ok(()));
        assert_eq!((reply.ip_dst, reply.bth.dest_qpn), (PEER.ip, PEER.qpn));
        if reply.bth.opcode.operation() == Operation::ReadResponse {
            let (va, len) = memory.due[&reply.bth.psn.value()];
            let most = responder.config().mtu.bytes() as u32;
            assert!(reply.payload.len() as u32 <= most.min(len));
            let bytes = reply.payload.as_bytes().unwrap_or_default();
            assert_eq!(bytes, bytes_at(va, bytes.len() as u32));
        }
    }
}

fn config(input: &mut Input) -> ResponderConfig {
    let (mtu, flags) = (input.u8(), input.u8());
    let mtu = Mtu::ALL[usize::from(mtu) % 2];
    let mut config = ResponderConfig::new(LOCAL, PEER, Psn::new(input.u32()), mtu);
    let region = |va, rkey, access| MemoryRegion { va, rkey, len: LEN, access };
    let access = if flags & 2 == 0 { Access::RemoteReadWrite } else { Access::RemoteWrite };
    config.regions = vec![
        region(LOCAL_BASE, LOCAL_RKEY, Access::LocalOnly),
        region(BASE, RKEY, access),
        region(READ_BASE, READ_RKEY, Access::RemoteRead),
    ];
    config.responder_resources = (flags >> 4).saturating_sub(1);
    if flags & 1 == 1 {
        config.credits = CreditPolicy::Posted;
    }
    config
}

fn handle(responder: &mut Responder, packet: &RocePacket, memory: &mut Watched, now: Time) {
    let (before, writes, ready) = (responder.expected_psn(), memory.writes, responder.state() == QpState::Ready);
    responder.handle_packet(now, packet, memory);
    let moved = responder.expected_psn().distance_from(before);
    let read = packet.reth.filter(|_| packet.bth.opcode == Opcode::ReadRequest);
    let mtu = responder.config().mtu.bytes() as u32;
    let step = read.map_or(1, |reth| reth.dma_len.div_ceil(mtu).max(1) as i32);
    assert!(moved == 0 || (moved == step && packet.bth.psn == before && ready), "PSN moved by {moved}");
    assert!(memory.writes == writes || (moved == 1 && read.is_none()), "only a packet that is accepted is written");
    if let (Some(RethRepr { va, dma_len, .. }), true) = (read, moved > 0) {
        for k in 0..step as u32 {
            memory.due.insert(before.add(k).value(), (va.wrapping_add((k * mtu).into()), dma_len - k * mtu));
        }
    }
}

/// A packet that is right but for who sends it or whom it is for.
fn stranger(responder: &mut Responder, input: &mut Input, memory: &mut Watched, now: Time) {
    transmit(responder, memory, usize::MAX);
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
    assert!(responder.poll_transmit(memory).is_none() && responder.poll_completion().is_none());
}

/// Mostly plausible, so that the deep rules are reached.
fn packet(input: &mut Input, expected: Psn) -> RocePacket {
    let (code, flags) = (input.u8(), input.u8());
    let opcode = Opcode::from(if flags & 0x80 == 0 { code % 13 } else { code });
    let psn = if flags & 0x40 == 0 { expected } else { expected.add(i32::from(input.near()) as u32) };
    let mut len = if flags & 0x20 == 0 { 256 } else { usize::from(input.u16()) % 600 };
    if flags & 0x10 != 0 {
        len %= 8;
    }
    if opcode == Opcode::ReadRequest && flags & 0x20 == 0 {
        len = 0;
    }
    let reth = (opcode.has_reth() || flags & 0x0F == 0x0F).then(|| reth(input));
    let mut bth = BthRepr::new(opcode, LOCAL.qpn, psn);
    bth.ack_req = flags & 1 == 1;
    RocePacket {
        eth_dst: LOCAL.mac,
        eth_src: PEER.mac,
        cn_tag: None,
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
        2 if kind & 4 != 0 => READ_BASE.wrapping_add_signed(i64::from(input.near()) * 256),
        2 => (BASE + LEN).wrapping_add_signed(i64::from(input.near()) * 64),
        _ => input.u64(),
    };
    let rkey = match kind >> 4 {
        0..=12 => RKEY,
        13 => LOCAL_RKEY,
        14 => READ_RKEY,
        _ => input.u32(),
    };
    let dma_len = if kind & 8 == 0 { u32::from(input.u16()) % 1200 } else { input.u32() };
    RethRepr { va, rkey, dma_len }
}
