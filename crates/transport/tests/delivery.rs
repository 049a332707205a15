// SPDX-License-Identifier: Apache-2.0
//! The promise of the reliable connection over a network that loses, repeats, reorders and damages packets:
//! every message arrives byte for byte, every receive completes once and in order, and no gap gets
//! two NAKs. A reference requester drives the responder through the real codec.

#[path = "common/channel.rs"]
mod channel;
mod common;
#[path = "common/requester.rs"]
mod requester;

use bytes::Bytes;
use channel::{Channel, Faults, Random};
use common::*;
use penstock_transport::{Mtu, RecvCompletion, RecvOpcode, RecvStatus, ResponderConfig};
use penstock_units::Time;
use penstock_wire::{Packet, Psn, RnrTimer, RocePacket};
use proptest::prelude::*;
use requester::{MessageSpec, Requester, Sent};
use std::collections::HashMap;

/// WRITEs go into the lower half of the region, receive buffers lie in the upper.
const RECEIVES: u64 = BASE + REGION / 2;
const RECEIVE_LEN: u32 = 2048;
const LIMIT_TICKS: u64 = 2_000_000;

fn messages(specs: &[MessageSpec], random: &mut Random) -> Vec<Sent> {
    let mut va = BASE;
    let place = |spec: &MessageSpec| {
        let payload: Bytes = (0..spec.len).map(|_| random.next() as u8).collect();
        let sent = Sent { spec: spec.clone(), va, imm: random.next() as u32, payload };
        va += spec.len as u64 + 3;
        sent
    };
    specs.iter().map(place).collect()
}

struct Run {
    bench: Bench,
    completions: Vec<RecvCompletion>,
    posted: u64,
    /// Sequence NAKs seen for each PSN.
    naks: HashMap<u32, u32>,
}

impl Run {
    /// Hands over one frame as it came off the wire; a damaged one must be recognised as such.
    fn receive(&mut self, now: u64, frame: Bytes) {
        if let Ok(Packet::Roce(packet)) = Packet::parse(frame) {
            self.bench.responder.handle_packet(Time::from_us(now), &packet, &mut self.bench.memory);
        }
    }

    fn reply(&mut self) -> Option<RocePacket> {
        let reply = self.bench.responder.poll_transmit(&mut self.bench.memory)?;
        let (psn, syndrome, _) = read_reply(&reply);
        let expected = self.bench.responder.expected_psn();
        match syndrome {
            NAK_SEQUENCE => *self.naks.entry(psn).or_default() += 1,
            ACK => assert_eq!(Psn::new(psn).cmp_window(expected), std::cmp::Ordering::Less),
            _ => {}
        }
        Some(reply)
    }

    fn serve_receiver(&mut self, needed: u64, random: &mut Random) {
        if self.posted < needed && self.bench.responder.posted_receives() < 3 && random.percent(20) {
            let va = RECEIVES + self.posted * u64::from(RECEIVE_LEN);
            self.bench.responder.post_receive(receive(self.posted, va, RECEIVE_LEN));
            self.posted += 1;
        }
        self.completions.extend(std::iter::from_fn(|| self.bench.responder.poll_completion()));
    }
}

fn run(specs: &[MessageSpec], start: u32, faults: Faults, seed: u64) -> (Run, Vec<Sent>) {
    let mut random = Random(seed);
    let sent = messages(specs, &mut random);
    let timeout = 3 * faults.max_delay + 20;
    let mut requester = Requester::new(&sent, start, Mtu::B256.bytes(), 24, timeout);
    let config = ResponderConfig { rnr_timer: RnrTimer::from_code(1), ..config(start, Mtu::B256) };
    let bench = Bench::new(config);
    let mut run = Run { bench, completions: Vec::new(), posted: 0, naks: HashMap::new() };
    let needed = specs.iter().filter(|spec| spec.consumes_receive()).count() as u64;
    let (mut there, mut back) = (Channel::default(), Channel::default());
    for now in 0..LIMIT_TICKS {
        if requester.done() {
            return (run, sent);
        }
        run.serve_receiver(needed, &mut random);
        if let Some(packet) = requester.poll_transmit(now) {
            there.send(now, &packet.emit(), &faults, &mut random);
        }
        for frame in there.arrived(now) {
            run.receive(now, frame);
        }
        while let Some(reply) = run.reply() {
            back.send(now, &reply.emit(), &faults, &mut random);
        }
        for frame in back.arrived(now) {
            if let Ok(Packet::Roce(reply)) = Packet::parse(frame) {
                requester.handle_reply(now, &reply);
            }
        }
        assert_eq!(requester.fatal, None, "no request was wrong");
    }
    panic!("not delivered after {LIMIT_TICKS} ticks: {:?}", run.bench.responder.counters());
}

fn check(mut run: Run, sent: &[Sent]) {
    run.serve_receiver(0, &mut Random(0));
    let mut image = TestMemory::new().bytes;
    let mut completions = run.completions.iter();
    for message in sent {
        let mut va = message.va;
        if message.spec.consumes_receive() {
            let done = completions.next().expect("a completion for each");
            assert_eq!(done.status, RecvStatus::Success);
            assert_eq!(done.byte_len as usize, message.payload.len());
            assert_eq!(done.imm, message.spec.with_imm.then_some(message.imm));
            assert_eq!(done.opcode == RecvOpcode::Send, message.spec.send);
            if message.spec.send {
                va = RECEIVES + done.wr_id * u64::from(RECEIVE_LEN);
            }
            assert_eq!(done.va, va);
        }
        let start = (va - BASE) as usize;
        image[start..start + message.payload.len()].copy_from_slice(&message.payload);
    }
    assert_eq!(completions.next(), None, "no completion twice");
    assert!(run.completions.iter().map(|done| done.wr_id).eq(0..run.completions.len() as u64));
    assert!(run.bench.memory.bytes == image, "memory differs");
    assert!(run.naks.values().all(|count| *count == 1), "two NAKs for one gap: {:?}", run.naks);
    let counters = run.bench.responder.counters();
    assert_eq!(counters.rx_write_requests + counters.rx_send_requests, sent.len() as u64);
    let payload: usize = sent.iter().map(|message| message.payload.len()).sum();
    assert_eq!(counters.rx_payload_bytes, payload as u64, "every byte written once");
}

fn message() -> impl Strategy<Value = MessageSpec> {
    let len = prop_oneof![Just(0), Just(256), Just(512), 1..1300usize];
    (any::<bool>(), any::<bool>(), len).prop_map(|(send, with_imm, len)| MessageSpec { send, with_imm, len })
}

fn faults() -> impl Strategy<Value = Faults> {
    (0..30u8, 0..30u8, 0..10u8, 1..40u64).prop_map(|(loss, duplicate, corrupt, max_delay)| Faults {
        loss,
        duplicate,
        corrupt,
        max_delay,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_message_arrives_once_and_whole_through_any_weather(
        specs in prop::collection::vec(message(), 1..24),
        start in prop_oneof![any::<u32>(), 0xFF_FFF0..=0xFF_FFFFu32],
        faults in faults(),
        seed in any::<u64>(),
    ) {
        let (run, sent) = run(&specs, start & 0xFF_FFFF, faults, seed);
        check(run, &sent);
    }
}

#[test]
fn on_a_clean_link_nothing_is_sent_twice_and_nothing_refused_for_its_order() {
    let spec = |send, with_imm, len| MessageSpec { send, with_imm, len };
    let specs = [spec(false, true, 1000), spec(true, false, 700), spec(false, false, 0)];
    let faults = Faults { loss: 0, duplicate: 0, corrupt: 0, max_delay: 1 };
    let (run, sent) = run(&specs, 0xFF_FFFE, faults, 1);
    assert!(run.naks.is_empty());
    assert_eq!(run.bench.responder.expected_psn(), Psn::new(0xFF_FFFE + 4 + 3 + 1));
    check(run, &sent);
}
