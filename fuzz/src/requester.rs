// SPDX-License-Identifier: Apache-2.0
//! The requester with arbitrary acknowledgements and READ responses, from its peer and forged, and arbitrary timing.
//! Promise: no panic; messages end once and in the order they were posted; a message succeeds only when its last packet
//! was sent; a READ succeeds only when each of its bytes has come, and they come once and in order; no more READs are
//! outstanding than allowed; nothing leaves outside the window; a stranger's packet changes nothing.

use crate::input::Input;
use penstock_transport::{
    Endpoint, Mtu, Requester, RequesterConfig, RequesterState, Response, RetryLimits, SendStatus, SendWr, Verb,
    VirtualPayload,
};
use penstock_units::Time;
use penstock_wire::{AethRepr, BthRepr, Ecn, Ipv4Addr, MacAddr, Opcode, Payload, Psn, Qpn, RocePacket, Syndrome};

const LOCAL: Endpoint = end(1);
const PEER: Endpoint = end(2);
const MTU: Mtu = Mtu::B256;

const fn end(n: u8) -> Endpoint {
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(10, 0, 0, n), qpn: Qpn::new(n as u32) }
}

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut bench = Bench::new(&mut input);
    while !input.is_empty() {
        match input.u8() % 8 {
            0 | 1 => bench.post(&mut input),
            2 | 3 => bench.send(1 + input.u8() % 8),
            4 => {
                bench.now += Time(u64::from(input.u16()) << (input.u8() % 24));
                bench.requester.handle_timeout(bench.now);
            }
            5 => bench.stranger(&mut input),
            _ => {
                let packet = bench.answer(&mut input);
                bench.handle(&packet);
            }
        }
        bench.check();
    }
}

struct Bench {
    requester: Requester,
    window: u32,
    now: Time,
    /// Number of packets up to the end of each message that was posted.
    ends: Vec<u64>,
    /// PSNs are numbered from 0 without wrapping.
    sent: u64,
    init: Psn,
    completed: usize,
    wrs: Vec<SendWr>,
    /// Bytes that have come of each READ.
    delivered: Vec<u64>,
}

impl Bench {
    fn new(input: &mut Input) -> Self {
        let (init, window) = (Psn::new(input.u32()), 1 + u32::from(input.u8()));
        let mut config = RequesterConfig::new(LOCAL, PEER, init, MTU);
        config.limits = RetryLimits { ack_timeout: input.u8(), retry_cnt: input.u8(), rnr_retry: input.u8() };
        config.ack_every = u32::from(input.u8() % 20);
        config.window = window;
        config.initiator_depth = 1 + input.u8() % 20;
        Bench {
            requester: Requester::new(config),
            window,
            now: Time::ZERO,
            ends: Vec::new(),
            sent: 0,
            init,
            completed: 0,
            wrs: Vec::new(),
            delivered: Vec::new(),
        }
    }

    fn post(&mut self, input: &mut Input) {
        let (kind, len) = (input.u8(), u32::from(input.u16()) % 2000);
        let verb = [Verb::Write, Verb::WriteImm(1), Verb::Send, Verb::SendImm(2), Verb::Read][usize::from(kind) % 5];
        let wr_id = self.ends.len() as u64;
        let wr = SendWr { wr_id, verb, va: wr_id << 32, len, remote_va: 0, rkey: 1, solicited: false };
        self.requester.post_send(wr).expect("short messages are taken");
        self.wrs.push(wr);
        self.delivered.push(0);
        let packets = u64::from(len).div_ceil(MTU.bytes() as u64).max(1);
        self.ends.push(self.ends.last().copied().unwrap_or(0) + packets);
    }

    fn send(&mut self, most: u8) {
        for _ in 0..most {
            let una = self.requester.una();
            let Some(packet) = self.requester.poll_transmit(self.now, &mut VirtualPayload) else { break };
            assert_eq!(packet.validate(), Ok(()));
            let ahead = packet.bth.psn.distance_from(una);
            assert!((0..self.window as i32).contains(&ahead), "{ahead} ahead of the first without an ACK");
            let number = self.number(packet.bth.psn);
            assert!(number <= self.sent, "packets are sent in order");
            let read = packet.reth.filter(|_| packet.bth.opcode == Opcode::ReadRequest);
            let packets = read.map_or(1, |reth| u64::from(reth.dma_len).div_ceil(MTU.bytes() as u64).max(1));
            self.sent = self.sent.max(number + packets);
            self.check_depth(number + packets);
        }
    }

    /// READs before packet `sent` that have not completed are as many as allowed.
    fn check_depth(&self, sent: u64) {
        let begun = self.ends.iter().zip(&self.wrs).skip(self.completed).filter(|(end, _)| **end <= sent);
        let reads = begun.filter(|(end, wr)| wr.verb == Verb::Read && **end > self.number(self.requester.una()));
        assert!(reads.count() <= self.requester.config().initiator_depth.into());
    }

    fn handle(&mut self, packet: &RocePacket) {
        if let Response::ReadData { wr_id, va } = self.requester.handle_packet(self.now, packet) {
            let (wr, delivered) = (&self.wrs[wr_id as usize], &mut self.delivered[wr_id as usize]);
            assert_eq!((wr.verb, va), (Verb::Read, wr.va + *delivered), "each byte once, in order");
            *delivered += packet.payload.len() as u64;
            assert!(*delivered <= wr.len.into());
        }
    }

    /// The response to the first packet without an ACK, if that is a READ's.
    fn next_response(&self) -> Option<(Opcode, usize)> {
        let una = self.number(self.requester.una());
        let at = self.ends.iter().position(|end| *end > una)?;
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        let rest = u64::from(self.wrs[at].len) - (una - begin) * MTU.bytes() as u64;
        let opcode = match (una == begin, una + 1 == self.ends[at]) {
            (true, true) => Opcode::ReadResponseOnly,
            (true, false) => Opcode::ReadResponseFirst,
            (false, true) => Opcode::ReadResponseLast,
            (false, false) => Opcode::ReadResponseMiddle,
        };
        (self.wrs[at].verb == Verb::Read).then_some((opcode, rest.min(MTU.bytes() as u64) as usize))
    }

    /// Inputs are too short for 2^23 packets.
    fn number(&self, psn: Psn) -> u64 {
        u64::try_from(psn.distance_from(self.init)).expect("PSNs move forward")
    }

    fn answer(&self, input: &mut Input) -> RocePacket {
        let (kind, flags) = (input.u8(), input.u8());
        let psn = if flags & 1 == 0 {
            self.requester.una().add(i32::from(input.near()) as u32)
        } else {
            Psn::new(input.u32())
        };
        let (opcode, len) = match (flags & 0x70, self.next_response()) {
            (0, _) => (Opcode::from(input.u8()), usize::from(input.u8()) * 2),
            (0x10..=0x30, Some(next)) => next,
            _ => (Opcode::Acknowledge, 0),
        };
        let aeth = AethRepr { syndrome: Syndrome::from(kind), msn: u32::from(input.u8()) };
        RocePacket {
            eth_dst: LOCAL.mac,
            eth_src: PEER.mac,
            cn_tag: None,
            ip_src: PEER.ip,
            ip_dst: LOCAL.ip,
            dscp: 26,
            ecn: Ecn::Ect0,
            ttl: 64,
            udp_sport: 0xC000,
            bth: BthRepr::new(opcode, LOCAL.qpn, psn),
            reth: None,
            aeth: (flags & 2 == 0).then_some(aeth),
            imm: None,
            payload: Payload::Virtual(len as u32),
        }
    }

    /// An answer that is right but for who sends it or whom it is for.
    fn stranger(&mut self, input: &mut Input) {
        let mut packet = self.answer(input);
        match input.u8() % 3 {
            0 => packet.ip_src = Ipv4Addr::from(!u32::from(PEER.ip)),
            1 => packet.ip_dst = Ipv4Addr::from(!u32::from(LOCAL.ip)),
            _ => packet.bth.dest_qpn = PEER.qpn,
        }
        let before = (self.requester.una(), self.requester.state(), self.requester.next_timeout());
        let open = self.requester.outstanding_messages();
        let counters = *self.requester.counters();
        assert_eq!(self.requester.handle_packet(self.now, &packet), Response::Dropped);
        let after = (self.requester.una(), self.requester.state(), self.requester.next_timeout());
        assert_eq!((before, open), (after, self.requester.outstanding_messages()));
        assert_ne!(self.requester.counters(), &counters, "it is counted");
    }

    fn check(&mut self) {
        let una = self.number(self.requester.una());
        assert!(una <= self.sent, "only what was sent is acknowledged");
        while let Some(end) = self.requester.poll_completion() {
            assert_eq!(end.wr_id, self.completed as u64, "each message once, in order");
            let done = self.ends[self.completed] <= una;
            match end.status {
                SendStatus::Success if self.wrs[self.completed].verb == Verb::Read => {
                    assert_eq!(self.delivered[self.completed], self.wrs[self.completed].len.into());
                }
                SendStatus::Success => assert!(done),
                _ => assert!(matches!(self.requester.state(), RequesterState::Error(_))),
            }
            self.completed += 1;
        }
        assert_eq!(self.ends.len() - self.completed, self.requester.outstanding_messages());
    }
}
