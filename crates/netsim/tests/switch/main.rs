// SPDX-License-Identifier: Apache-2.0
//! The switch under incast: lossless with the computed PFC thresholds; without them every loss is counted.

mod buffers;
#[path = "../common/mod.rs"]
mod common;
mod deadlock;
mod qcn;
mod service;

use common::{ip, link, Sender, Sink, PORT};
use penstock_netsim::{
    lossless_headroom, ByteSize, EcnParams, Engine, Frame, Headroom, LinkParams, Node, NodeId, Outbox, PauseFrame,
    PfcParams, PfcThreshold, PortId, Probability, Stream, Switch, SwitchParams, Time,
};
use penstock_wire::{Ecn, MacAddr, MacControl, Packet};
use proptest::prelude::*;

const SINK: u16 = 1000;

struct Incast {
    engine: Engine,
    switch: NodeId,
    sink: NodeId,
    senders: Vec<NodeId>,
}

impl Incast {
    /// Senders 0 .. n, all to one sink on port n.
    fn new(seed: u64, params: SwitchParams, senders: Vec<Sender>, link: LinkParams) -> Self {
        let mut engine = Engine::new(seed);
        let count = senders.len() as u16;
        let mut switch = Switch::new(params, count + 1, Stream::new(seed, "switch"));
        switch.add_route(ip(SINK), &[PortId(count)]);
        let switch = engine.add_node("switch", Box::new(switch));
        let sink = engine.add_node("sink", Box::new(Sink::default()));
        engine.connect((sink, PORT), (switch, PortId(count)), link).unwrap();
        let senders = (0..count).zip(senders).map(|(k, sender)| {
            let id = engine.add_node(format!("sender{k}"), Box::new(sender));
            engine.connect((id, PORT), (switch, PortId(k)), link).unwrap();
            id
        });
        let senders = senders.collect();
        Incast { engine, switch, sink, senders }
    }

    fn run(&mut self) {
        self.engine.run_until(Time::from_s(1)).unwrap();
    }

    fn switch(&self) -> &Switch {
        self.engine.node(self.switch).unwrap()
    }

    fn log(&self) -> &[common::Seen] {
        &self.engine.node::<Sink>(self.sink).unwrap().log
    }
}

fn plain(buffer: u64) -> SwitchParams {
    SwitchParams { buffer: ByteSize(buffer), ..SwitchParams::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn with_computed_thresholds_nothing_is_dropped(
        senders in 2u16..7,
        mtu in prop_oneof![Just(256u16), Just(1024), Just(4096)],
        delay_ns in 100u64..5_000,
        gbps in prop_oneof![Just(10u64), Just(25), Just(100)],
        starts in proptest::collection::vec(0u64..20_000_000, 7),
        spare in 0u64..50_000,
    ) {
        let link = link(gbps, Time::from_ns(delay_ns));
        let headroom = lossless_headroom(&link, mtu);
        let needed = PfcParams::lossless(8, ByteSize(0), u64::from(senders) + 1, headroom, mtu).unwrap_err().needed;
        let buffer = ByteSize(needed.bytes() + spare);
        let pfc = PfcParams::lossless(8, buffer, u64::from(senders) + 1, headroom, mtu).unwrap();
        let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() };
        let packets = 300;
        let nodes = (0..senders)
            .map(|k| Sender::new(k, SINK, packets, u32::from(mtu), Time(starts[usize::from(k)])))
            .collect();
        let mut incast = Incast::new(1, params, nodes, link);
        incast.run();
        let switch = incast.switch();
        prop_assert_eq!(switch.stats().dropped(), 0);
        prop_assert_eq!(incast.log().len(), usize::from(senders) * packets as usize);
        prop_assert_eq!(switch.buffer_bytes(), 0);
        let PfcThreshold::Static { xoff, .. } = pfc.threshold else { panic!("computed thresholds are static") };
        let limit = xoff.bytes() + headroom.bytes();
        for k in 0..senders {
            let stats = switch.port_stats(PortId(k), incast.engine.now());
            prop_assert!(stats.peak_ingress_bytes <= limit, "{} of {limit}", stats.peak_ingress_bytes);
            let of_sender = incast.log().iter().filter(|seen| seen.src == Some(ip(k)));
            let psns: Vec<u32> = of_sender.filter_map(|seen| seen.psn).collect();
            prop_assert!(psns.into_iter().eq(0..packets), "all there and in order");
        }
    }

    #[test]
    fn every_frame_is_delivered_or_counted(
        senders in 2u16..6, buffer in 5_000u64..100_000, headroom in 0u64..3_000, with_pfc: bool
    ) {
        let link = link(10, Time::from_us(1));
        let xoff = ByteSize(buffer / 8);
        let pfc = PfcParams {
            classes: 8,
            threshold: PfcThreshold::Static { xoff, xon: ByteSize(buffer / 16) },
            headroom: Headroom::Fixed(ByteSize(headroom)),
            frame: PauseFrame::Pfc,
        };
        let params = SwitchParams { pfc: with_pfc.then_some(pfc), ..plain(buffer) };
        let nodes = (0..senders).map(|k| Sender::new(k, SINK, 200, 4096, Time::ZERO)).collect();
        let mut incast = Incast::new(1, params, nodes, link);
        incast.run();
        let dropped = incast.switch().stats().dropped();
        prop_assert_eq!(incast.log().len() as u64 + dropped, 200 * u64::from(senders));
        prop_assert!(incast.switch().stats().peak_buffer_bytes <= buffer);
        let port = incast.switch().port_stats(PortId(senders), incast.engine.now());
        prop_assert_eq!(port.dropped, dropped);
    }
}

#[test]
fn without_pfc_a_small_buffer_drops_and_the_bottleneck_stays_full() {
    let nodes = (0..3).map(|k| Sender::new(k, SINK, 1000, 4096, Time::ZERO)).collect();
    let mut incast = Incast::new(1, plain(100_000), nodes, link(10, Time::from_us(1)));
    incast.run();
    let delivered = incast.log().len() as u64;
    assert!(incast.switch().stats().dropped_buffer > 1000);
    let last = incast.log().last().unwrap().at;
    let busy = Time(delivered * (4096 + 58 + 4 + 24) * 800);
    assert!(last < busy + Time::from_us(20), "{last} for {busy} of frames");
}

#[test]
fn pfc_alone_shares_the_bottleneck_by_port_and_counts_its_pauses() {
    let link = link(10, Time::from_us(1));
    let pfc = PfcParams::lossless(8, ByteSize(400_000), 4, lossless_headroom(&link, 4096), 4096).unwrap();
    let nodes = (0..3).map(|k| Sender::new(k, SINK, 2000, 4096, Time::ZERO)).collect();
    let params = SwitchParams { pfc: Some(pfc), ..plain(400_000) };
    let mut incast = Incast::new(1, params, nodes, link);
    incast.engine.run_until(Time::from_ms(5)).unwrap();
    for k in 0..3 {
        let count = incast.log().iter().filter(|seen| seen.src == Some(ip(k))).count() as f64;
        assert!((count * 3.0 / incast.log().len() as f64 - 1.0).abs() < 0.05, "sender {k}: {count}");
        let stats = incast.switch().port_stats(PortId(k), incast.engine.now());
        let share = stats.pausing.as_secs_f64() / 5e-3;
        assert!((0.55..0.75).contains(&share), "port {k} pauses {share} of the time");
        assert_eq!(stats.dropped, 0);
        let sender: &Sender = incast.engine.node(incast.senders[usize::from(k)]).unwrap();
        assert!(sender.pauses > 0);
    }
}

#[test]
fn ecn_marks_begin_at_kmin_and_are_certain_from_kmax() {
    let ecn = EcnParams { kmin: ByteSize(40_000), kmax: ByteSize(120_000), pmax: Probability::new(0.5).unwrap() };
    let params = plain(10_000_000).with_ecn(ecn);
    let nodes = (0..2).map(|k| Sender::new(k, SINK, 500, 4096, Time::ZERO)).collect();
    let mut incast = Incast::new(7, params, nodes, link(10, Time::from_us(1)));
    incast.run();
    // The queue grows by one frame for every two that arrive and holds no more than half of what was sent.
    let marked =
        |range: std::ops::Range<usize>| incast.log()[range].iter().filter(|seen| seen.ecn == Some(Ecn::Ce)).count();
    let kmin_at = 40_000 / 4154;
    assert_eq!(marked(0..2 * kmin_at), 0);
    let between = marked(2 * kmin_at + 2..56);
    assert!((1..30).contains(&between), "{between} of about 36 marked between kmin and kmax");
    assert_eq!(marked(64..1000), 1000 - 64);
    let port = incast.switch().port_stats(PortId(2), incast.engine.now());
    assert_eq!(port.ecn_marked as usize, marked(0..1000));
}

/// Sends one PFC frame that pauses the class for `quanta`, and nothing else.
struct Pauser {
    at: Time,
    quanta: u16,
    log: Vec<Time>,
}

impl Node for Pauser {
    fn on_start(&mut self, out: &mut Outbox) {
        out.timer_at(self.at, 0);
    }

    fn on_frame(&mut self, at: Time, _port: PortId, _frame: Frame, _out: &mut Outbox) {
        self.log.push(at);
    }

    fn on_timer(&mut self, _now: Time, _token: u64, out: &mut Outbox) {
        let control = MacControl::Pfc { enabled: 0xFF, quanta: [self.quanta; 8] };
        out.transmit(PORT, Frame::new(Packet::MacControl { src: MacAddr::default(), control }));
    }
}

#[test]
fn the_switch_honours_a_received_pause_and_resumes_by_itself() {
    let link = link(10, Time::from_us(1));
    let mut engine = Engine::new(1);
    let mut switch = Switch::new(plain(10_000_000), 2, Stream::new(1, "switch"));
    switch.add_route(ip(SINK), &[PortId(1)]);
    let switch = engine.add_node("switch", Box::new(switch));
    let sender = engine.add_node("sender", Box::new(Sender::new(0, SINK, 100, 1024, Time::ZERO)));
    let pauser = Pauser { at: Time::from_us(20), quanta: 1000, log: Vec::new() };
    let pauser = engine.add_node("pauser", Box::new(pauser));
    engine.connect((sender, PORT), (switch, PortId(0)), link).unwrap();
    engine.connect((pauser, PORT), (switch, PortId(1)), link).unwrap();
    engine.run_until(Time::from_ms(1)).unwrap();
    let log = &engine.node::<Pauser>(pauser).unwrap().log;
    assert_eq!(log.len(), 100);
    let longest = log.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    let pause = Time::from_ns(51_200);
    assert!(longest > pause - Time::from_us(1) && longest < pause + Time::from_us(2), "{longest}");
    let stats = engine.node::<Switch>(switch).unwrap().port_stats(PortId(1), engine.now());
    assert_eq!((stats.pause_frames_received, stats.paused), (1, pause * 8));
}

#[test]
fn a_pause_is_repeated_before_it_runs_out() {
    // The bottleneck is blocked for 8 ms, longer than the longest pause of 3.36 ms: no sender may start again
    // meanwhile.
    let link = link(10, Time::from_us(1));
    let pfc = PfcParams::lossless(8, ByteSize(300_000), 2, lossless_headroom(&link, 4096), 4096).unwrap();
    let mut engine = Engine::new(1);
    let params = SwitchParams { pfc: Some(pfc), ..plain(300_000) };
    let mut switch = Switch::new(params, 2, Stream::new(1, "switch"));
    switch.add_route(ip(SINK), &[PortId(1)]);
    let switch = engine.add_node("switch", Box::new(switch));
    let sender = engine.add_node("sender", Box::new(Sender::new(0, SINK, 1000, 4096, Time::ZERO)));
    engine.connect((sender, PORT), (switch, PortId(0)), link).unwrap();
    let blocker = engine.add_node("blocker", Box::new(Blocker));
    engine.connect((blocker, PORT), (switch, PortId(1)), link).unwrap();
    engine.run_until(Time::from_ms(8)).unwrap();
    let stats = engine.node::<Switch>(switch).unwrap();
    assert_eq!(stats.stats().dropped(), 0);
    assert!(stats.port_stats(PortId(0), engine.now()).pause_frames_sent >= 4);
    engine.run_until(Time::from_ms(30)).unwrap();
    assert_eq!(engine.node::<Switch>(switch).unwrap().port_stats(PortId(1), engine.now()).tx_frames, 1000);
}

/// Keeps its neighbour paused for 8 ms.
struct Blocker;

impl Node for Blocker {
    fn on_start(&mut self, out: &mut Outbox) {
        (0..4).for_each(|n| out.timer_at(Time::from_ms(2 * n), 0));
        out.timer_at(Time::from_ms(8), 1);
    }

    fn on_frame(&mut self, _at: Time, _port: PortId, _frame: Frame, _out: &mut Outbox) {}

    fn on_timer(&mut self, _now: Time, token: u64, out: &mut Outbox) {
        let quanta = if token == 0 { 0xFFFF } else { 0 };
        let control = MacControl::Pause { quanta };
        out.transmit(PORT, Frame::new(Packet::MacControl { src: MacAddr::default(), control }));
    }
}

#[test]
fn what_cannot_be_forwarded_is_counted() {
    let nodes = vec![Sender::new(0, 7, 5, 64, Time::ZERO)];
    let mut incast = Incast::new(1, plain(100_000), nodes, link(10, Time::from_us(1)));
    incast.run();
    assert_eq!(incast.switch().stats().no_route, 5);
}
