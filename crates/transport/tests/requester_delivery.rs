// SPDX-License-Identifier: Apache-2.0
//! The promise of both ends together: over a link that loses, repeats, reorders and damages frames, requester and
//! responder deliver every message byte for byte and complete it once and in order, or fail with a reason.

#[path = "common/channel.rs"]
mod channel;
mod common;

use bytes::Bytes;
use channel::{Channel, Faults, Random};
use common::*;
use penstock_transport::{
    CreditPolicy, Mtu, PayloadSource, RecvStatus, RequestFault, Requester, RequesterConfig, RequesterState,
    ResponderConfig, RetryLimits, SendCompletion, SendStatus, SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::{Packet, Payload, Psn, RnrTimer};
use proptest::prelude::*;

/// WRITEs go into the lower half of the region, receive buffers lie in the upper.
const RECEIVES: u64 = BASE + REGION / 2;
const RECEIVE_LEN: u32 = 2048;
const LIMIT_TICKS: u64 = 3_000_000;

/// The sender's memory: what is sent lies at its `va`.
struct Memory(Vec<u8>);

impl PayloadSource for Memory {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        Payload::Bytes(Bytes::copy_from_slice(&self.0[va as usize..][..len]))
    }
}

#[derive(Clone, Copy, Debug)]
struct Setup {
    start: u32,
    window: u32,
    ack_every: u32,
    rnr_retry: u8,
    credits: CreditPolicy,
    faults: Faults,
    seed: u64,
}

/// Both ends, what lies between them, and what came out. Ticks are microseconds.
struct Run {
    requester: Requester,
    memory: Memory,
    bench: Bench,
    wrs: Vec<SendWr>,
    completions: Vec<SendCompletion>,
    posted: u64,
}

impl Run {
    fn new(specs: &[(Verb, u32)], setup: &Setup, random: &mut Random) -> Self {
        let mut memory = Memory(Vec::new());
        let mut wrs = Vec::new();
        for (verb, len) in specs {
            let va = memory.0.len() as u64;
            memory.0.extend((0..*len).map(|_| random.next() as u8));
            let (wr_id, remote_va) = (wrs.len() as u64, BASE + va);
            wrs.push(SendWr { wr_id, verb: *verb, va, len: *len, remote_va, rkey: RKEY, solicited: false });
        }
        let limits = RetryLimits { ack_timeout: 5, retry_cnt: 7, rnr_retry: setup.rnr_retry };
        let config = RequesterConfig {
            limits,
            window: setup.window,
            ack_every: setup.ack_every,
            ..RequesterConfig::new(PEER, LOCAL, Psn::new(setup.start), Mtu::B256)
        };
        let mut requester = Requester::new(config);
        wrs.iter().for_each(|wr| requester.post_send(*wr).unwrap());
        let responder = ResponderConfig {
            rnr_timer: RnrTimer::from_code(1),
            credits: setup.credits,
            ..config_of_responder(setup.start)
        };
        Run { requester, memory, bench: Bench::new(responder), wrs, completions: Vec::new(), posted: 0 }
    }

    fn run(&mut self, faults: &Faults, random: &mut Random) {
        let (mut there, mut back) = (Channel::default(), Channel::default());
        let needed = self.wrs.iter().filter(|wr| wr.verb.consumes_receive()).count() as u64;
        for now in 0..LIMIT_TICKS {
            let time = Time::from_us(now);
            self.post_receive(needed, random);
            self.requester.handle_timeout(time);
            assert!(self.requester.next_timeout().is_none_or(|at| at > time), "a timeout handled is over");
            if let Some(packet) = self.requester.poll_transmit(time, &mut self.memory) {
                assert_eq!(packet.validate(), Ok(()));
                there.send(now, &packet.emit(), faults, random);
            }
            for frame in there.arrived(now) {
                if let Ok(Packet::Roce(packet)) = Packet::parse(frame) {
                    self.bench.responder.handle_packet(time, &packet, &mut self.bench.memory);
                }
            }
            while let Some(reply) = self.bench.responder.poll_transmit(&mut self.bench.memory) {
                back.send(now, &reply.emit(), faults, random);
            }
            for frame in back.arrived(now) {
                if let Ok(Packet::Roce(reply)) = Packet::parse(frame) {
                    self.requester.handle_packet(time, &reply);
                }
            }
            self.completions.extend(std::iter::from_fn(|| self.requester.poll_completion()));
            if self.requester.outstanding_messages() == 0 {
                return;
            }
            assert!(
                self.requester.can_transmit() || self.requester.next_timeout().is_some(),
                "messages are left, and neither a packet nor a timer: nothing would ever happen"
            );
        }
        panic!("not delivered after {LIMIT_TICKS} ticks: {:?}", self.requester.counters());
    }

    fn post_receive(&mut self, needed: u64, random: &mut Random) {
        if self.posted < needed && self.bench.responder.posted_receives() < 3 && random.percent(5) {
            let va = RECEIVES + self.posted * u64::from(RECEIVE_LEN);
            self.bench.responder.post_receive(receive(self.posted, va, RECEIVE_LEN));
            self.posted += 1;
        }
    }

    /// Messages that completed well lie at the peer byte for byte; completions are in order, and behind the first
    /// that failed there are only flushed ones.
    fn check(&mut self) {
        let ids = self.completions.iter().map(|done| done.wr_id);
        assert!(ids.eq(0..self.wrs.len() as u64), "each message once and in order");
        let good = self.completions.iter().take_while(|done| done.status == SendStatus::Success).count();
        if let RequesterState::Error(fault) = self.requester.state() {
            assert_eq!(self.completions[good].status, fault.status(), "{fault}");
            assert!(self.completions[good + 1..].iter().all(|done| done.status == SendStatus::WrFlushErr));
        } else {
            assert_eq!(good, self.wrs.len());
        }
        let mut received = std::iter::from_fn(|| self.bench.responder.poll_completion());
        for wr in &self.wrs[..good] {
            let mut va = wr.remote_va;
            if wr.verb.consumes_receive() {
                let done = received.next().expect("a completion for each");
                assert_eq!((done.status, done.byte_len), (RecvStatus::Success, wr.len));
                let imm = match wr.verb {
                    Verb::WriteImm(imm) | Verb::SendImm(imm) => Some(imm),
                    _ => None,
                };
                assert_eq!(done.imm, imm);
                if matches!(wr.verb, Verb::Send | Verb::SendImm(_)) {
                    va = RECEIVES + done.wr_id * u64::from(RECEIVE_LEN);
                }
                assert_eq!(done.va, va);
            }
            let sent = &self.memory.0[wr.va as usize..][..wr.len as usize];
            assert!(self.bench.memory.at(va, wr.len as usize) == sent, "message {} differs", wr.wr_id);
        }
    }
}

fn config_of_responder(start: u32) -> ResponderConfig {
    config(start, Mtu::B256)
}

fn deliver(specs: &[(Verb, u32)], setup: Setup) -> Run {
    let mut random = Random(setup.seed);
    let mut run = Run::new(specs, &setup, &mut random);
    run.run(&setup.faults, &mut random);
    run.check();
    run
}

fn messages() -> impl Strategy<Value = Vec<(Verb, u32)>> {
    let verb = prop_oneof![
        Just(Verb::Write),
        any::<u32>().prop_map(Verb::WriteImm),
        Just(Verb::Send),
        any::<u32>().prop_map(Verb::SendImm)
    ];
    let len = prop_oneof![Just(0), Just(256), Just(512), 1..1300u32];
    prop::collection::vec((verb, len), 1..24)
}

prop_compose! {
    /// `worst` percent of frames are lost at most.
    fn setup(worst: u8)(
        start in prop_oneof![0..0xFF_FFFFu32, 0xFF_FFF0..=0xFF_FFFFu32],
        window in prop_oneof![Just(4096u32), 1..24u32],
        ack_every in prop_oneof![Just(0u32), Just(16), 1..8u32],
        rnr_retry in prop_oneof![Just(7u8), Just(if worst > 10 { 1 } else { 7 })],
        credits in prop_oneof![Just(CreditPolicy::Unlimited), Just(CreditPolicy::Posted)],
        (loss, duplicate, corrupt, max_delay) in (0..worst, 0..30u8, 0..=worst / 3, 1..40u64),
        seed in any::<u64>(),
    ) -> Setup {
        Setup {
            start, window, ack_every, rnr_retry, credits, seed,
            faults: Faults { loss, duplicate, corrupt, max_delay },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_message_arrives_once_and_whole_through_bad_weather(specs in messages(), setup in setup(4)) {
        let run = deliver(&specs, setup);
        prop_assert_eq!(run.requester.state(), RequesterState::Ready);
    }

    #[test]
    fn in_a_storm_messages_arrive_whole_or_fail_with_a_reason(specs in messages(), setup in setup(60)) {
        let run = deliver(&specs, setup);
        let allowed = match run.requester.state() {
            RequesterState::Ready => true,
            RequesterState::Error(fault) => match fault {
                RequestFault::RetriesSpent { retries, .. } => retries == 7,
                RequestFault::RnrRetriesSpent { retries, .. } => retries == 1 && setup.rnr_retry == 1,
                RequestFault::Refused { .. } | RequestFault::BadResponse { .. } | RequestFault::Closed => false,
            },
        };
        prop_assert!(allowed, "{:?}", run.requester.state());
    }
}

#[test]
fn on_a_clean_link_nothing_is_sent_twice_and_every_message_requests_one_ack() {
    let specs = [(Verb::WriteImm(1), 1000), (Verb::Send, 700), (Verb::Write, 0)];
    let faults = Faults { loss: 0, duplicate: 0, corrupt: 0, max_delay: 1 };
    let credits = CreditPolicy::Unlimited;
    let setup = Setup { start: 0xFF_FFFE, window: 64, ack_every: 0, rnr_retry: 7, credits, faults, seed: 1 };
    let mut random = Random(setup.seed);
    let mut run = Run::new(&specs, &setup, &mut random);
    for id in 0..2 {
        run.bench.responder.post_receive(receive(id, RECEIVES + id * u64::from(RECEIVE_LEN), RECEIVE_LEN));
    }
    run.posted = 2;
    run.run(&faults, &mut random);
    run.check();
    let counters = *run.requester.counters();
    assert_eq!((counters.sent_pkts, counters.retransmitted_pkts, counters.rcvd_acks), (8, 0, 3));
    assert_eq!((counters.tx_payload_bytes, counters.messages_ok, counters.stale_acks), (1700, 3, 0));
}
