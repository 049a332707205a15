// SPDX-License-Identifier: Apache-2.0
//! The software sender paces as the gateware does: packet for packet and bit for bit as a model that visits
//! `cc::Flow` and `cc::Pacer` round by round, like `rtl/cc/cc_engine.sv` (`tb/cc_equality` compares those two).

mod common;
#[path = "common/flows.rs"]
mod flows;

use common::PORT;
use flows::*;
use penstock_cc::{CcParams, DcqcnSettings, Flow, Happened, Law, Pacer, QcnSettings, Transmitter};
use penstock_netsim::{
    ByteSize, Engine, Ledger, LinkParams, PacingConfig, QcnPoints, Rate, RcReceiver, RcSender, Station, Stream, Switch,
    SwitchParams, Time,
};
use proptest::prelude::*;

const MTU: u64 = 4096;
const ROUND: u32 = 16;
/// 16 cycles of 6.4 ns.
const ROUND_PS: u64 = 102_400;
/// 512 cycles of 8 bytes for each of four queue pairs, in rounds.
const TURN: u32 = 128;
const DELAY: Time = Time::from_us(1);

/// Everything runs in half a millisecond what takes seconds in the field.
fn lively() -> CcParams {
    let dcqcn = DcqcnSettings {
        g_shift: 4,
        alpha_interval: Time::from_us(5),
        increase_interval: Time::from_us(20),
        byte_threshold: ByteSize(60_000),
        rate_ai: Rate::from_mbps(400),
        rate_hai: Rate::from_mbps(900),
        ..DcqcnSettings::default()
    };
    let qcn = QcnSettings {
        timer_period: Time::from_us(30),
        byte_limit: ByteSize(40_000),
        rate_ai: Rate::from_mbps(300),
        rate_hai: Rate::from_mbps(800),
        ..QcnSettings::default()
    };
    CcParams { dcqcn: dcqcn.at_clock(CLOCK_HZ).unwrap(), qcn: qcn.at_clock(CLOCK_HZ).unwrap() }
}

/// What the world does to the sender, by the time at which it reaches it.
struct World {
    notices: Vec<(Time, u8)>,
    pause: (Time, Time),
}

/// Start times of packets and the state word after `until`, visit by visit.
fn model(law: Law, cc: &CcParams, world: &World, until: Time) -> (Vec<Time>, [u32; 9]) {
    let (mut flow, mut pacer) = (Flow::new(law, 0, cc), Pacer::new(TURN));
    let (mut starts, mut free, mut bytes) = (Vec::new(), Time::ZERO, 0);
    let mut notices = world.notices.iter().peekable();
    let mut happened = Happened { cycles: ROUND, ..Happened::default() };
    for round in 0.. {
        let (begin, end) = (Time(round * ROUND_PS), Time((round + 1) * ROUND_PS));
        let paused = begin > world.pause.0 && begin <= world.pause.1;
        happened.transmitter = Transmitter::new(paused, true);
        flow.visit(Happened { bytes: std::mem::take(&mut bytes), ..happened }, law, cc);
        pacer.grant(flow.rate_current(), ROUND, flow.unlimited(cc), true);
        happened = Happened { cycles: ROUND, ..Happened::default() };
        if end > until {
            return (starts, flow.words());
        }
        while pacer.eligible() {
            let at = free.max(begin);
            let at = if at >= world.pause.0 && at < world.pause.1 { world.pause.1 } else { at };
            if at >= end {
                break;
            }
            let wire = 82 + MTU + if starts.is_empty() { 16 } else { 0 };
            starts.push(at);
            pacer.charge(wire as u32);
            bytes += wire as u32;
            free = at + Time(wire * 800);
        }
        while let Some((_, feedback)) = notices.next_if(|(at, _)| *at < end) {
            match feedback {
                0 => happened.cnp = true,
                feedback => happened.feedback = *feedback,
            }
        }
    }
    unreachable!("time ends")
}

/// The same with a station and a probe that plays the world.
fn simulate(law: Law, cc: &CcParams, mut world: World, quanta: u16, until: Time) -> (Vec<Time>, [u32; 9], World) {
    let link = LinkParams { delay: DELAY, ..LinkParams::default() };
    let mut config = sender_config(0, 1, MTU as usize);
    config.pacing = PacingConfig { law, cc: *cc, ..PacingConfig::default() };
    config.request.limits.ack_timeout = 0;
    let source = Source::default();
    source.post(Time::ZERO, 1 << 30);
    let mut station = station(0);
    station.add_rc_sender(RcSender::new(config, Box::new(source), Ledger::shared(1))).unwrap();
    let pauses = vec![(world.pause.0, 3, quanta)];
    let probe = Probe { pauses, notices: world.notices.clone(), ..Probe::default() };
    let mut engine = Engine::new(1);
    let station = engine.add_node("station", Box::new(station));
    let probe = engine.add_node("probe", Box::new(probe));
    engine.connect((station, PORT), (probe, PORT), link).unwrap();
    engine.run_until(until).unwrap();
    let probe = engine.node::<Probe>(probe).unwrap();
    let starts = probe.starts(Rate::from_gbps(10), DELAY);
    // When what the probe sent reached the station.
    let mut free = Time::ZERO;
    let mut sent: Vec<(Time, u64, Option<u8>)> =
        world.notices.iter().map(|(at, feedback)| (*at, wire_of(*feedback), Some(*feedback))).collect();
    sent.push((world.pause.0, 84, None));
    sent.sort_by_key(|(at, _, feedback)| (*at, feedback.is_some()));
    world.notices.clear();
    for (at, wire, feedback) in sent {
        free = free.max(at) + Time(wire * 800);
        match feedback {
            Some(feedback) => world.notices.push((free + DELAY, feedback)),
            None => world.pause = (free + DELAY, free + DELAY + Time(u64::from(quanta) * 51_200)),
        }
    }
    let station = engine.node_mut::<Station>(station).unwrap();
    let words = station.sender_mut(0).unwrap().reaction_point_words(until);
    (starts, words, world)
}

fn wire_of(feedback: u8) -> u64 {
    let packet = if feedback == 0 { cnp() } else { cnm(feedback) };
    packet.wire_len() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn packets_start_when_the_gateware_would_start_them(
        law in prop_oneof![Just(Law::Dcqcn), Just(Law::Qcn), Just(Law::Off)],
        mut notices in prop::collection::vec((0u64..400_000_000, 1u8..64), 0..25),
        begin in 0u64..500_000_000,
        quanta in 0u16..2000,
    ) {
        notices.iter_mut().for_each(|notice| if law != Law::Qcn { notice.1 = 0 });
        notices.sort();
        notices.dedup_by_key(|(at, _)| *at);
        let notices = notices.into_iter().map(|(at, feedback)| (Time(at), feedback)).collect();
        let world = World { notices, pause: (Time(begin), Time(begin)) };
        let (cc, until) = (lively(), Time::from_ms(2));
        let (starts, words, world) = simulate(law, &cc, world, quanta, until);
        let (mut expected_starts, expected_words) = model(law, &cc, &world, until);
        prop_assert!(expected_starts.len() - starts.len() <= 2, "the last are still on the wire");
        expected_starts.truncate(starts.len());
        prop_assert_eq!(starts, expected_starts);
        prop_assert_eq!(words, expected_words);
    }
}

/// The rest of the file: a switch's QCN messages find their sender, and time does not depend on the number of flows.
fn incast(senders: u16, bytes: u64, law: Law, params: SwitchParams) -> (Engine, Book, Vec<penstock_netsim::NodeId>) {
    let link = LinkParams::default();
    let ledger = Ledger::shared(senders.into());
    let mut engine = Engine::new(1);
    let mut switch = Switch::new(params, senders + 1, Stream::new(1, "switch"));
    (0..=senders).for_each(|k| route(&mut switch, k));
    let switch = engine.add_node("switch", Box::new(switch));
    let mut server = station(senders);
    let mut stations = Vec::new();
    for k in 0..senders {
        let source = Source::default();
        source.post(Time::ZERO, bytes);
        let config = sender_config_between(u32::from(k), k, senders, 1024).with_law(law, quick_cc());
        let mut host = station(k);
        host.add_rc_sender(RcSender::new(config, Box::new(source), ledger.clone())).unwrap();
        let receiver = receiver_config_between(u32::from(k), senders, k, 1024);
        server.add_rc_receiver(RcReceiver::new(receiver, ledger.clone())).unwrap();
        let host = engine.add_node(format!("host{k}"), Box::new(host));
        engine.connect((host, PORT), (switch, penstock_netsim::PortId(k)), link).unwrap();
        stations.push(host);
    }
    let server = engine.add_node("server", Box::new(server));
    engine.connect((server, PORT), (switch, penstock_netsim::PortId(senders)), link).unwrap();
    (engine, Book(ledger), stations)
}

#[test]
fn a_congestion_point_slows_the_senders_it_names() {
    let params = SwitchParams { qcn: Some(QcnPoints::default()), ..SwitchParams::default() };
    let (mut engine, book, stations) = incast(4, 2_000_000, Law::Qcn, params);
    engine.run_until(Time::from_s(10)).unwrap();
    assert!((0..4).all(|flow| book.flow(flow).delivered_bytes == 2_000_000));
    for id in stations {
        let station = engine.node_mut::<Station>(id).unwrap();
        let stats = station.sender(0).unwrap().stats();
        assert!(stats.feedbacks > 0, "{stats:?}");
        assert_eq!(station.stats(Time::ZERO).unknown_qpn, 0);
    }
}

#[test]
fn a_packet_causes_as_many_events_among_a_thousand_flows_as_among_eight() {
    let events_per_packet = |senders: u16| {
        let bytes = 4_000_000 / u64::from(senders);
        let params = SwitchParams { buffer: penstock_netsim::ByteSize(1 << 30), ..SwitchParams::default() };
        let (mut engine, book, _) = incast(senders, bytes, Law::Dcqcn, params);
        engine.run_until(Time::from_s(10)).unwrap();
        let packets: u64 = (0..senders).map(|flow| book.flow(flow.into()).delivered_bytes.div_ceil(1024)).sum();
        assert_eq!(packets, u64::from(senders) * bytes.div_ceil(1024), "all is delivered");
        engine.events() as f64 / packets as f64
    };
    let (few, many) = (events_per_packet(8), events_per_packet(1000));
    assert!(many < 1.5 * few && many < 10.0, "{few} events a packet of 8 flows, {many} of 1000");
}
