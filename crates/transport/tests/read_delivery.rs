// SPDX-License-Identifier: Apache-2.0
//! Two endpoints that READ, WRITE and SEND in both directions over links that lose, repeat and reorder frames: every
//! byte of every message is right, and each completion comes once and in order.

#[path = "common/channel.rs"]
mod channel;
mod common;

use bytes::Bytes;
use channel::{Channel, Faults, Random};
use common::*;
use penstock_transport::{
    Access, CreditPolicy, Endpoint, MemoryRegion, Mtu, PayloadSource, RecvStatus, Requester, RequesterConfig,
    RequesterState, Responder, ResponderConfig, Response, RetryLimits, SendCompletion, SendStatus, SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::{Operation, Packet, Payload, Psn, RnrTimer, RocePacket};

/// READs take the first quarter of the region, WRITEs the second, receives lie in the rest.
const WRITES: u64 = BASE + REGION / 4;
const RECEIVES: u64 = BASE + REGION / 2;
const RECEIVE_LEN: u32 = 1024;
const MESSAGES: usize = 100;
const LONGEST: u64 = 3000;
const LIMIT_TICKS: u64 = 1_000_000;

/// Chances in percent that a frame is lost, repeated, and delayed behind up to 40 others.
#[derive(Clone, Copy, Debug)]
struct Weather {
    loss: u8,
    duplicate: u8,
    reorder: u8,
}

/// What messages send, and where READs put their bytes.
struct Local(Vec<u8>);

impl PayloadSource for Local {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        Payload::Bytes(Bytes::copy_from_slice(&self.0[va as usize..][..len]))
    }
}

struct End {
    requester: Requester,
    responder: Responder,
    memory: TestMemory,
    local: Local,
    wrs: Vec<SendWr>,
    /// The READ whose bytes are coming: its number, and how many have come.
    reading: (u64, u64),
    completions: Vec<SendCompletion>,
    posted: u64,
    incoming: Channel,
}

impl End {
    fn new(near: Endpoint, far: Endpoint, starts: (u32, u32), depth: u8, random: &mut Random) -> Self {
        let limits = RetryLimits { ack_timeout: 8, retry_cnt: 7, rnr_retry: 7 };
        let requester = RequesterConfig {
            limits,
            initiator_depth: depth,
            ..RequesterConfig::new(near, far, Psn::new(starts.0), Mtu::B256)
        };
        let region = MemoryRegion { va: BASE, rkey: RKEY, len: REGION, access: Access::RemoteReadWrite };
        let responder = ResponderConfig {
            responder_resources: depth,
            rnr_timer: RnrTimer::from_code(1),
            credits: if random.percent(50) { CreditPolicy::Posted } else { CreditPolicy::Unlimited },
            ..ResponderConfig::new(near, far, Psn::new(starts.1), Mtu::B256).with_region(region)
        };
        let mut memory = TestMemory::new();
        memory.bytes[..REGION as usize / 4].fill_with(|| random.next() as u8);
        End {
            requester: Requester::new(requester),
            responder: Responder::new(responder),
            memory,
            local: Local(Vec::new()),
            wrs: Vec::new(),
            reading: (0, 0),
            completions: Vec::new(),
            posted: 0,
            incoming: Channel::default(),
        }
    }

    fn post(&mut self, random: &mut Random) {
        let mut written = 0;
        for wr_id in 0..MESSAGES as u64 {
            let verb = match random.below(8) {
                0..4 => Verb::Read,
                4..6 => Verb::Write,
                6 => Verb::WriteImm(wr_id as u32),
                _ => Verb::Send,
            };
            let longest = if verb == Verb::Read { LONGEST } else { RECEIVE_LEN.into() };
            let len = [random.below(longest + 1), 0, 256, 1][random.below(4) as usize] as u32;
            let va = self.local.0.len() as u64;
            self.local.0.extend((0..len).map(|_| random.next() as u8));
            let remote_va = match verb {
                Verb::Read => BASE + random.below(REGION / 4 - LONGEST),
                _ => WRITES + written,
            };
            written += if verb == Verb::Read { 0 } else { u64::from(len) };
            assert!(written <= REGION / 4);
            let wr = SendWr { wr_id, verb, va, len, remote_va, rkey: RKEY, solicited: false };
            self.requester.post_send(wr).unwrap();
            self.wrs.push(wr);
        }
    }

    fn post_receive(&mut self, random: &mut Random) {
        if self.responder.posted_receives() < 3 && self.posted < MESSAGES as u64 && random.percent(5) {
            let va = RECEIVES + self.posted * u64::from(RECEIVE_LEN);
            self.responder.post_receive(receive(self.posted, va, RECEIVE_LEN));
            self.posted += 1;
        }
    }

    fn handle(&mut self, now: Time, packet: &RocePacket) {
        if packet.bth.opcode.is_rc_request() {
            return self.responder.handle_packet(now, packet, &mut self.memory);
        }
        let is_data = packet.bth.opcode.operation() == Operation::ReadResponse;
        if let Response::ReadData { wr_id, va } = self.requester.handle_packet(now, packet) {
            assert!(is_data);
            let wr = &self.wrs[wr_id as usize];
            if self.reading.0 != wr_id {
                self.reading = (wr_id, 0);
            }
            assert_eq!(va, wr.va + self.reading.1, "bytes of READ {wr_id} in order and once");
            let bytes = packet.payload.as_bytes().unwrap();
            self.reading.1 += bytes.len() as u64;
            assert!(self.reading.1 <= wr.len.into());
            self.local.0[va as usize..][..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// A reply and a request in each tick: neither holds up the other.
    fn transmit(&mut self, now: Time) -> impl Iterator<Item = RocePacket> {
        let reply = self.responder.poll_transmit(&mut self.memory);
        let request = self.requester.poll_transmit(now, &mut self.local);
        reply.into_iter().chain(request)
    }

    fn is_done(&self) -> bool {
        self.completions.len() == MESSAGES
    }
}

/// What one message has left at the other end, or brought from there.
fn check(end: &End, other: &mut End) {
    assert_eq!(end.requester.state(), RequesterState::Ready);
    assert!(end.completions.iter().map(|done| done.wr_id).eq(0..MESSAGES as u64), "each once and in order");
    assert!(end.completions.iter().all(|done| done.status == SendStatus::Success));
    let mut received = std::iter::from_fn(|| other.responder.poll_completion());
    for wr in &end.wrs {
        let mut va = wr.remote_va;
        if wr.verb.consumes_receive() {
            let done = received.next().expect("a completion for each");
            assert_eq!((done.status, done.byte_len), (RecvStatus::Success, wr.len));
            va = done.va;
        }
        let local = &end.local.0[wr.va as usize..][..wr.len as usize];
        assert!(other.memory.at(va, wr.len as usize) == local, "message {} differs: {wr:?}", wr.wr_id);
    }
    assert_eq!(received.next(), None, "no completion twice");
    let of = |verb| end.wrs.iter().filter(|wr| wr.verb == verb).count() as u64;
    let counters = other.responder.counters();
    assert_eq!((counters.rx_read_requests, counters.rx_send_requests), (of(Verb::Read), of(Verb::Send)));
    assert_eq!(counters.resp_invalid_requests + counters.resp_remote_access_errors, 0);
    let read: u64 = end.wrs.iter().filter(|wr| wr.verb == Verb::Read).map(|wr| u64::from(wr.len)).sum();
    assert_eq!(end.requester.counters().rx_payload_bytes, read);
    assert!(counters.tx_payload_bytes >= read);
}

fn deliver(weather: Weather, seed: u64) -> [End; 2] {
    let mut random = Random(seed);
    let starts = [random.next() as u32, 0xFF_FFFF - random.below(200) as u32].map(|start| start & 0xFF_FFFF);
    let depth = 1 + random.below(16) as u8;
    let mut ends = [
        End::new(PEER, LOCAL, (starts[0], starts[1]), depth, &mut random),
        End::new(LOCAL, PEER, (starts[1], starts[0]), depth, &mut random),
    ];
    ends.iter_mut().for_each(|end| end.post(&mut random));
    for now in 0..LIMIT_TICKS {
        let time = Time::from_us(now);
        for k in 0..2 {
            ends[k].post_receive(&mut random);
            ends[k].requester.handle_timeout(time);
            for frame in ends[k].incoming.arrived(now) {
                let Ok(Packet::Roce(packet)) = Packet::parse(frame) else { panic!("a damaged frame") };
                ends[k].handle(time, &packet);
            }
            let sent: Vec<_> = ends[k].transmit(time).collect();
            for packet in sent {
                assert_eq!(packet.validate(), Ok(()));
                let max_delay = if random.percent(weather.reorder) { 40 } else { 1 };
                let faults = Faults { loss: weather.loss, duplicate: weather.duplicate, corrupt: 0, max_delay };
                ends[1 - k].incoming.send(now + 5, &packet.emit(), &faults, &mut random);
            }
            let end = &mut ends[k];
            end.completions.extend(std::iter::from_fn(|| end.requester.poll_completion()));
            let alive = end.requester.can_transmit() || end.requester.next_timeout().is_some();
            assert!(alive || end.is_done(), "messages are left, and neither a packet nor a timer");
        }
        if ends.iter().all(End::is_done) {
            let [a, b] = &mut ends;
            check(a, b);
            check(b, a);
            return ends;
        }
    }
    panic!("not delivered: {:#?} {:#?}", ends[0].requester.counters(), ends[1].responder.counters());
}

/// Runs 40 seeds; the last one printed is the one that failed.
fn sweep(weather: Weather) {
    let (mut repeated, mut implied, mut dropped) = (0, 0, 0);
    for seed in 0..40 {
        println!("seed {seed}");
        for end in &deliver(weather, seed) {
            repeated += end.responder.counters().duplicate_request;
            implied += end.requester.counters().implied_nak_seq_err;
            dropped += end.requester.counters().dropped_read_responses;
        }
    }
    assert!(repeated > 100 && implied > 20 && dropped > 100, "{repeated} {implied} {dropped}");
}

#[test]
fn every_byte_is_right_with_one_percent_of_loss_repetition_and_reordering() {
    sweep(Weather { loss: 1, duplicate: 1, reorder: 1 });
}

#[test]
fn every_byte_is_right_with_ten_percent_of_loss_repetition_and_reordering() {
    sweep(Weather { loss: 10, duplicate: 10, reorder: 10 });
}

#[test]
fn on_a_clean_link_nothing_is_requested_or_answered_twice() {
    for seed in 0..40 {
        println!("seed {seed}");
        for end in &deliver(Weather { loss: 0, duplicate: 0, reorder: 0 }, seed) {
            let (sent, answered) = (end.requester.counters(), end.responder.counters());
            assert_eq!((sent.implied_nak_seq_err, sent.local_ack_timeout_err, sent.packet_seq_err), (0, 0, 0));
            assert_eq!((sent.dropped_read_responses, answered.dropped_stale_reads), (0, 0));
        }
    }
}
