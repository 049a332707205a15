// SPDX-License-Identifier: Apache-2.0
//! The engine: time, order, faults, windowed nodes, and refused settings.

mod common;

use std::collections::VecDeque;

use common::{ip, link, packet, Seen, Sender, Sink, PORT};
use penstock_netsim::{
    ByteSize, EcnParams, Engine, Faults, Frame, LinkParams, LinkStats, Node, NodeTerms, Outbox, PortId, Probability,
    RunEnd, SimError, Stream, Switch, SwitchParams, Time,
};
use penstock_wire::{Packet, ParseError};
use proptest::prelude::*;

fn probability(p: f64) -> Probability {
    Probability::new(p).unwrap()
}

/// A sender and a sink on one link; the sink's log and the link's counters.
fn over(link: LinkParams, seed: u64, packets: u32, payload: u32) -> (Vec<Seen>, LinkStats) {
    let mut engine = Engine::new(seed);
    let sender = engine.add_node("sender", Box::new(Sender::new(1, 2, packets, payload, Time::ZERO)));
    let sink = engine.add_node("sink", Box::new(Sink::default()));
    let id = engine.connect((sender, PORT), (sink, PORT), link).unwrap();
    assert_eq!(engine.run_until(Time::from_s(10)).unwrap(), RunEnd::Idle);
    (std::mem::take(&mut engine.node_mut::<Sink>(sink).unwrap().log), engine.link_stats(id)[0])
}

#[test]
fn a_link_charges_wire_bytes_and_delay() {
    let (log, stats) = over(link(10, Time::from_us(3)), 1, 3, 4096);
    // 14 Ethernet + 20 IPv4 + 8 UDP + 12 BTH + 4 ICRC, 24 for preamble, FCS and gap
    let frame = Time((4096 + 58 + 24) * 800);
    let times: Vec<Time> = log.iter().map(|seen| seen.at).collect();
    assert_eq!(times, [1, 2, 3].map(|n| frame * n + Time::from_us(3)));
    assert_eq!(stats.wire_bytes, 3 * 4178);
}

#[test]
fn faults_come_at_their_rate_and_are_counted() {
    let faults = Faults {
        loss: probability(0.05),
        duplicate: probability(0.02),
        reorder: probability(0.03),
        corrupt: probability(0.04),
        corrupt_undetected: probability(0.01),
        jitter: Time::from_us(1),
        ..Faults::default()
    };
    let n = 20_000;
    let (log, stats) = over(LinkParams { faults, ..link(10, Time::from_us(1)) }, 3, n, 256);
    assert_eq!(log.len() as u64, u64::from(n) - stats.lost + stats.duplicated);
    let bad = log.iter().filter(|seen| !seen.fcs_ok).count() as u64;
    assert!(bad >= stats.corrupted && bad <= stats.corrupted + stats.duplicated);
    let near = |count: u64, p: f64| (count as f64 / (f64::from(n) * p) - 1.0).abs() < 0.2;
    assert!(near(stats.lost, 0.05) && near(stats.duplicated, 0.02) && near(stats.reordered, 0.03), "{stats:?}");
    assert!(near(stats.corrupted, 0.04) && near(stats.corrupted_undetected, 0.01), "{stats:?}");
    let psns: Vec<u32> = log.iter().filter_map(|seen| seen.psn).collect();
    assert!(psns.windows(2).any(|pair| pair[1] < pair[0]), "some frames are overtaken");
}

#[test]
fn jitter_alone_keeps_the_order() {
    let faults = Faults { jitter: Time::from_us(50), ..Faults::default() };
    let (log, _) = over(LinkParams { faults, ..link(10, Time::from_us(1)) }, 3, 2000, 64);
    assert!(log.iter().map(|seen| seen.psn.unwrap()).eq(0..2000));
}

#[test]
fn an_undetected_error_is_one_bit_and_the_icrc_finds_it() {
    struct IcrcCheck(u32, u32);
    impl Node for IcrcCheck {
        fn on_frame(&mut self, _at: Time, _port: PortId, frame: Frame, _out: &mut Outbox) {
            assert!(frame.fcs_ok());
            let Packet::Raw(bytes) = frame.into_packet() else { panic!("still trusted") };
            let clean = Packet::from(packet(1, 2, self.0, 512)).emit();
            let bits: u32 = bytes.iter().zip(&clean).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!((bytes.len(), bits), (clean.len(), 1));
            match Packet::parse(bytes) {
                Err(ParseError::BadIcrc { .. }) => self.1 += 1,
                Err(_) => {}
                // Fields that the ICRC leaves out change no byte of the payload.
                Ok(Packet::Roce(parsed)) => assert_eq!(parsed.payload.len(), 512),
                Ok(_) => {}
            }
            self.0 += 1;
        }
        fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
    }
    let faults = Faults { corrupt_undetected: probability(1.0), ..Faults::default() };
    let mut engine = Engine::new(5);
    let sender = engine.add_node("sender", Box::new(Sender::new(1, 2, 500, 512, Time::ZERO)));
    let check = engine.add_node("judge", Box::new(IcrcCheck(0, 0)));
    engine.connect((sender, PORT), (check, PORT), LinkParams { faults, ..link(10, Time::from_us(1)) }).unwrap();
    engine.run_until(Time::from_s(1)).unwrap();
    let check: &IcrcCheck = engine.node(check).unwrap();
    assert_eq!(check.0, 500);
    assert!(check.1 > 420, "{} of 500 caught by the ICRC alone", check.1);
}

#[test]
fn one_seed_replays_one_run_and_another_does_not() {
    let faults = Faults { loss: probability(0.1), jitter: Time::from_us(1), ..Faults::default() };
    let run = |seed| over(LinkParams { faults, ..link(10, Time::from_us(1)) }, seed, 1000, 256);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn running_in_slices_changes_nothing() {
    let run = |slice: Option<Time>| {
        let mut engine = Engine::new(1);
        let sender = engine.add_node("sender", Box::new(Sender::new(1, 2, 100, 256, Time::ZERO)));
        let sink = engine.add_node("sink", Box::new(Sink::default()));
        engine.connect((sender, PORT), (sink, PORT), LinkParams::default()).unwrap();
        let mut limit = slice.unwrap_or(Time::from_s(1));
        while engine.run_until(limit).unwrap() == RunEnd::Limit {
            assert_eq!(engine.now(), limit);
            limit += slice.unwrap();
        }
        (engine.events(), engine.node::<Sink>(sink).unwrap().log.clone())
    };
    assert_eq!(run(None), run(Some(Time::from_ns(777))));
}

const TURNAROUND: Time = Time::from_ns(1_234);

/// Answers each frame after a fixed time, acting at every instant.
struct Reflector {
    me: u16,
}

fn answer(me: u16, mut frame: Frame) -> Option<Frame> {
    let Packet::Roce(request) = frame.packet() else { return None };
    let peer = u16::from_be_bytes([request.ip_src.octets()[2], request.ip_src.octets()[3]]);
    let psn = request.bth.psn.value();
    frame.fcs_ok().then(|| Frame::new(packet(me, peer, psn, 64 * (psn % 40)).into()))
}

impl Node for Reflector {
    fn on_frame(&mut self, at: Time, _port: PortId, frame: Frame, out: &mut Outbox) {
        if let Some(frame) = answer(self.me, frame) {
            out.transmit_at(at + TURNAROUND, PORT, frame);
        }
    }
    fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
    fn terms(&self) -> NodeTerms {
        NodeTerms::on_request()
    }
}

/// The same, simulated in windows as a verilated board is: it learns of frames before they arrive, works a whole
/// window off when the next one begins, and hands frames over when they have ended.
struct WindowedReflector {
    me: u16,
    window: Time,
    arriving: VecDeque<(Time, Frame)>,
    mac_free: Time,
    /// Start, end, frame.
    sending: VecDeque<(Time, Time, Frame)>,
}

impl Node for WindowedReflector {
    fn on_start(&mut self, out: &mut Outbox) {
        out.timer_at(Time::ZERO, 0);
    }

    fn on_frame(&mut self, at: Time, _port: PortId, frame: Frame, out: &mut Outbox) {
        let first_bit = at - Time(frame.wire_len() as u64 * 800);
        assert!(out.now() <= first_bit, "known before its first bit");
        assert!(out.now() + self.window >= first_bit, "and not earlier than agreed");
        self.arriving.push_back((at, frame));
        self.arriving.make_contiguous().sort_by_key(|(at, _)| *at);
    }

    fn on_timer(&mut self, now: Time, _token: u64, out: &mut Outbox) {
        while self.arriving.front().is_some_and(|(at, _)| *at < now) {
            let (at, frame) = self.arriving.pop_front().unwrap();
            if let Some(frame) = answer(self.me, frame) {
                let start = (at + TURNAROUND).max(self.mac_free);
                self.mac_free = start + Time(frame.wire_len() as u64 * 800);
                self.sending.push_back((start, self.mac_free, frame));
            }
        }
        while self.sending.front().is_some_and(|(_, end, _)| *end < now) {
            let (start, end, frame) = self.sending.pop_front().unwrap();
            assert_eq!(out.transmit_at(start, PORT, frame), end);
        }
        out.timer_at(now + self.window, 0);
    }

    fn terms(&self) -> NodeTerms {
        NodeTerms::windowed(self.window)
    }
}

/// Two senders ask two reflectors over a switch with ECN; everything a sink on a third port and the senders' side sees.
fn reflected(window: Option<Time>, delay: Time, faults: Faults, starts: [u64; 2]) -> (Vec<Vec<Seen>>, Vec<LinkStats>) {
    let link = LinkParams { faults, ..link(10, delay) };
    let ecn = EcnParams { kmin: ByteSize(3_000), kmax: ByteSize(30_000), pmax: probability(0.5) };
    let params = SwitchParams { buffer: ByteSize(60_000), ..SwitchParams::default() }.with_ecn(ecn);
    let mut engine = Engine::new(11);
    let mut switch = Switch::new(params, 6, Stream::new(11, "switch"));
    let mut stats = Vec::new();
    (0..6).for_each(|port| switch.add_route(ip(port), &[PortId(port)]));
    let switch = engine.add_node("switch", Box::new(switch));
    // Requests name the sink of their sender as their source, so that answers go there.
    for k in 0..2 {
        let sender = Sender::new(k, 4 + k, 150, 700, Time(starts[usize::from(k)]));
        let sender = engine.add_node(format!("sender{k}"), Box::new(Asker(sender)));
        engine.connect((sender, PORT), (switch, PortId(2 + k)), link).unwrap();
    }
    let sinks: Vec<_> = (0..2)
        .map(|k| {
            let sink = engine.add_node(format!("sink{k}"), Box::new(Sink::default()));
            engine.connect((sink, PORT), (switch, PortId(k)), link).unwrap();
            sink
        })
        .collect();
    for k in 4..6u16 {
        let node: Box<dyn Node> = match window {
            None => Box::new(Reflector { me: k }),
            Some(window) => Box::new(WindowedReflector {
                me: k,
                window,
                arriving: VecDeque::new(),
                mac_free: Time::ZERO,
                sending: VecDeque::new(),
            }),
        };
        let node = engine.add_node(format!("reflector{k}"), node);
        stats.push(engine.connect((node, PORT), (switch, PortId(k)), link).unwrap());
    }
    engine.run_until(Time::from_ms(2)).unwrap();
    let logs = sinks.iter().map(|sink| engine.node::<Sink>(*sink).unwrap().log.clone()).collect();
    (logs, stats.iter().flat_map(|link| engine.link_stats(*link)).collect())
}

/// A sender that does not listen.
struct Asker(Sender);

impl Node for Asker {
    fn on_start(&mut self, out: &mut Outbox) {
        self.0.on_start(out);
    }
    fn on_frame(&mut self, _at: Time, _port: PortId, _frame: Frame, _out: &mut Outbox) {}
    fn on_timer(&mut self, now: Time, token: u64, out: &mut Outbox) {
        self.0.on_timer(now, token, out);
    }
    fn on_tx_done(&mut self, now: Time, port: PortId, out: &mut Outbox) {
        self.0.on_tx_done(now, port, out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_windowed_node_gives_the_same_run_as_one_that_acts_at_every_instant(
        delay_ns in 200u64..3_000,
        share in 1u64..=8,
        starts in [0u64..3_000_000, 0u64..3_000_000],
        loss in 0.0..0.1,
        reorder in 0.0..0.1,
        jitter_ns in 0u64..500,
    ) {
        let delay = Time::from_ns(delay_ns);
        let faults = Faults {
            loss: probability(loss),
            reorder: probability(reorder),
            duplicate: probability(loss / 2.0),
            corrupt: probability(loss / 3.0),
            jitter: Time::from_ns(jitter_ns),
            ..Faults::default()
        };
        let plain = reflected(None, delay, faults, starts);
        prop_assert!(plain.0.iter().all(|log| log.len() > 50), "the answers arrive");
        let window = Time(delay.as_ps() * share / 8);
        prop_assert_eq!(&reflected(Some(window), delay, faults, starts), &plain);
    }

    #[test]
    fn equal_times_on_perfect_links_are_ordered_alike_with_and_without_windows(share in 1u64..=8) {
        let delay = Time::from_us(1);
        let plain = reflected(None, delay, Faults::default(), [0, 0]);
        let window = Time(delay.as_ps() * share / 8);
        prop_assert_eq!(&reflected(Some(window), delay, Faults::default(), [0, 0]), &plain);
    }
}

#[test]
fn links_that_cannot_work_are_refused_with_what_is_needed() {
    let mut engine = Engine::new(1);
    let window = Time::from_us(2);
    let windowed =
        WindowedReflector { me: 1, window, arriving: VecDeque::new(), mac_free: Time::ZERO, sending: VecDeque::new() };
    let a = engine.add_node("board0", Box::new(windowed));
    let b = engine.add_node("sink", Box::new(Sink::default()));
    let short = engine.connect((a, PORT), (b, PORT), link(10, Time::from_us(1))).unwrap_err().to_string();
    let stopped = engine.connect((a, PORT), (b, PORT), link(0, Time::from_us(2))).unwrap_err().to_string();
    engine.connect((a, PORT), (b, PORT), link(10, window)).unwrap();
    let taken = engine.connect((a, PORT), (b, PortId(1)), link(10, window)).unwrap_err().to_string();
    insta::assert_snapshot!([short, stopped, taken].join("\n"));
}

/// Does one wrong thing at 5 us.
struct Wrong(fn(&mut Outbox));

impl Node for Wrong {
    fn on_start(&mut self, out: &mut Outbox) {
        out.timer_at(Time::from_us(5), 0);
    }
    fn on_frame(&mut self, _at: Time, _port: PortId, _frame: Frame, _out: &mut Outbox) {}
    fn on_timer(&mut self, _now: Time, _token: u64, out: &mut Outbox) {
        self.0(out);
    }
}

#[test]
fn a_node_that_breaks_the_rules_ends_the_run_with_an_error() {
    let fails = |act: fn(&mut Outbox)| {
        let mut engine = Engine::new(1);
        let a = engine.add_node("wrong", Box::new(Wrong(act)));
        let b = engine.add_node("sink", Box::new(Sink::default()));
        engine.connect((a, PORT), (b, PORT), LinkParams::default()).unwrap();
        engine.run_until(Time::from_s(1)).unwrap_err()
    };
    fn frame() -> Frame {
        Frame::new(packet(1, 2, 0, 64).into())
    }
    let errors = [
        fails(|out| {
            out.transmit_at(Time::from_us(1), PORT, frame());
        }),
        fails(|out| {
            out.transmit(PortId(9), frame());
        }),
        fails(|out| out.fail("the worker thread is gone")),
    ];
    assert!(matches!(errors[0], SimError::LateFrame { .. }));
    insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"));
}

#[test]
fn a_node_can_stop_the_run() {
    let mut engine = Engine::new(1);
    engine.add_node("stopper", Box::new(Wrong(|out| out.stop())));
    assert_eq!(engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Stopped);
    assert_eq!(engine.now(), Time::from_us(5));
    assert_eq!(engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Idle);
}
