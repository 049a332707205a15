// SPDX-License-Identifier: Apache-2.0
//! Shared by the responder's tests: a connection, its packets, and a memory that checks every address it is given.

#![allow(dead_code)] // each test binary uses its own part

use bytes::Bytes;
use penstock_transport::{Access, Endpoint, Memory, MemoryRegion, Mtu, RecvWr, Responder, ResponderConfig, Unreadable};
use penstock_units::Time;
use penstock_wire::{BthRepr, Ecn, Ipv4Addr, MacAddr, Opcode, Payload, Psn, Qpn, RethRepr, RocePacket, Syndrome};

pub const RKEY: u32 = 0xCAFE_0001;
pub const BASE: u64 = 0x7F00_0000_1000;
pub const REGION: u64 = 1 << 18;

pub const LOCAL: Endpoint =
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 1), qpn: Qpn::new(0x11) };
pub const PEER: Endpoint =
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 2]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn: Qpn::new(0x22) };

pub fn config(psn: u32, mtu: Mtu) -> ResponderConfig {
    ResponderConfig::new(LOCAL, PEER, Psn::new(psn), mtu).with_region(MemoryRegion {
        va: BASE,
        rkey: RKEY,
        len: REGION,
        access: Access::RemoteWrite,
    })
}

/// The registered region as bytes; an access outside it is a failure of the responder.
pub struct TestMemory {
    pub bytes: Vec<u8>,
    pub writes: usize,
    pub reads: usize,
    /// Bytes from here on cannot be read.
    pub unreadable_from: u64,
    /// Messages that begin with this byte are another receiver's.
    pub foreign: Option<u8>,
}

impl TestMemory {
    pub fn new() -> Self {
        TestMemory { bytes: vec![0xEE; REGION as usize], writes: 0, reads: 0, unreadable_from: u64::MAX, foreign: None }
    }

    pub fn at(&self, va: u64, len: usize) -> &[u8] {
        let start = usize::try_from(va - BASE).unwrap();
        &self.bytes[start..start + len]
    }
}

impl Memory for TestMemory {
    fn write(&mut self, va: u64, data: &Payload) {
        self.writes += 1;
        let start = usize::try_from(va.checked_sub(BASE).expect("below the region")).unwrap();
        let room = self.bytes.get_mut(start..start + data.len()).expect("beyond the region");
        match data {
            Payload::Bytes(bytes) => room.copy_from_slice(bytes),
            Payload::Virtual(_) => room.fill(0),
        }
    }

    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        self.reads += 1;
        let start = usize::try_from(va.checked_sub(BASE).expect("below the region")).unwrap();
        let bytes = self.bytes.get(start..start + len as usize).expect("beyond the region");
        let readable = va + u64::from(len) <= self.unreadable_from;
        readable.then(|| Payload::Bytes(Bytes::copy_from_slice(bytes))).ok_or(Unreadable)
    }

    fn foreign(&self, begins: &Payload) -> Option<u64> {
        let Payload::Bytes(bytes) = begins else { return None };
        self.foreign.filter(|first| bytes.first() == Some(first)).map(u64::from)
    }
}

pub fn packet(opcode: Opcode, psn: u32, payload: impl Into<Bytes>) -> RocePacket {
    RocePacket {
        eth_dst: LOCAL.mac,
        eth_src: PEER.mac,
        cn_tag: None,
        ip_src: PEER.ip,
        ip_dst: LOCAL.ip,
        dscp: 26,
        ecn: Ecn::Ect0,
        ttl: 64,
        udp_sport: 0xC123,
        bth: BthRepr::new(opcode, LOCAL.qpn, Psn::new(psn)),
        reth: None,
        aeth: None,
        imm: opcode.has_imm().then_some(0xAABB_CCDD),
        payload: Payload::Bytes(payload.into()),
    }
}

pub fn with_reth(packet: RocePacket, va: u64, dma_len: u32) -> RocePacket {
    RocePacket { reth: Some(RethRepr { va, rkey: RKEY, dma_len }), ..packet }
}

/// A READ request of `dma_len` bytes at `va`.
pub fn read_request(psn: u32, va: u64, dma_len: u32) -> RocePacket {
    with_reth(packet(Opcode::ReadRequest, psn, vec![]), va, dma_len)
}

pub fn ack_requested(mut packet: RocePacket) -> RocePacket {
    packet.bth.ack_req = true;
    packet
}

pub fn receive(wr_id: u64, va: u64, len: u32) -> RecvWr {
    RecvWr { wr_id, va, len }
}

/// A responder, its memory, and short words for what the tests do with them.
pub struct Bench {
    pub responder: Responder,
    pub memory: TestMemory,
}

impl Bench {
    pub fn new(config: ResponderConfig) -> Self {
        Bench { responder: Responder::new(config), memory: TestMemory::new() }
    }

    pub fn handle(&mut self, packet: &RocePacket) -> &mut Self {
        self.responder.handle_packet(Time::ZERO, packet, &mut self.memory);
        self
    }

    /// All replies as PSN, syndrome byte and MSN.
    pub fn replies(&mut self) -> Vec<(u32, u8, u32)> {
        std::iter::from_fn(|| self.responder.poll_transmit(&mut self.memory)).map(|reply| read_reply(&reply)).collect()
    }
}

pub fn read_reply(reply: &RocePacket) -> (u32, u8, u32) {
    let aeth = reply.aeth.expect("an acknowledgement");
    (reply.bth.psn.value(), aeth.syndrome.into(), aeth.msn)
}

pub const ACK: u8 = 0x1F;
pub const NAK_SEQUENCE: u8 = 0x60;
pub const NAK_INVALID: u8 = 0x61;
pub const NAK_ACCESS: u8 = 0x62;
pub const NAK_OPERATIONAL: u8 = 0x63;

pub fn rnr(code: u8) -> u8 {
    Syndrome::RnrNak(penstock_wire::RnrTimer::from_code(code)).into()
}
