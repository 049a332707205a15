// SPDX-License-Identifier: Apache-2.0
//! Stations with RC flows: exact timing on a clean link, fair shares under DCQCN, silence under PFC, delivery through
//! faults, and failure with a reason.

mod common;
#[path = "common/flows.rs"]
mod flows;

use common::{link, PORT};
use flows::*;
use penstock_cc::Law;
use penstock_netsim::{
    lossless_headroom, ByteSize, Consumer, EcnParams, Engine, Faults, FlowId, Ledger, LinkParams, NodeId, PfcParams,
    PortId, Probability, Rate, RcReceiver, RcSender, RcSenderConfig, RunEnd, SenderVerb, Station, Stream, Switch,
    SwitchParams, Time,
};
use penstock_transport::{RequestFault, RetryLimits};

/// Frames of a WRITE WITH IMMEDIATE of `packets` full packets, as IBTA and IEEE 802.3 have them: Ethernet 14, IPv4
/// 20, UDP 8, BTH 12, ICRC 4, around them 24 of preamble, FCS and gap; RETH 16 in the first, immediate 4 in the last.
fn wire_bytes(packets: u64, mtu: u64) -> u64 {
    packets * (mtu + 14 + 20 + 8 + 12 + 4 + 24) + 16 + 4
}

#[test]
fn one_flow_fills_the_link_to_the_byte() {
    for (law, mtu, gbps) in [(Law::Off, 4096, 10), (Law::Dcqcn, 1024, 10), (Law::Qcn, 256, 100), (Law::Dcqcn, 4096, 25)]
    {
        let packets = 1000;
        let mut pair = Pair::new(link(gbps, Time::from_us(3)), mtu, |config| config.with_law(law, cc_at(gbps)));
        pair.source.post(Time::ZERO, packets * mtu as u64);
        assert_eq!(pair.run(Time::from_s(1)), RunEnd::Idle);
        let on_wire = Rate::from_gbps(gbps).time_for(wire_bytes(packets, mtu as u64));
        let record = pair.ledger.borrow().flow(FlowId(0)).clone();
        assert_eq!(record.last_delivery, Some(on_wire + Time::from_us(3)), "{law:?}, {mtu} bytes, {gbps} Gb/s");
        assert_eq!((record.delivered_bytes, record.delivered_messages), (packets * mtu as u64, 1));
        let stats = pair.sender().stats();
        assert_eq!((stats.packets, stats.retransmitted, stats.completed_messages), (packets, 0, 1));
        assert!(pair.sender().is_done());
    }
}

#[test]
fn a_message_leaves_at_its_time_and_the_next_behind_it() {
    let mut pair = Pair::new(link(10, Time::from_us(1)), 1024, |config| config);
    pair.source.post(Time::from_us(50), 1024);
    pair.source.post(Time::from_us(50), 100);
    pair.source.post(Time::from_ms(2), 1);
    let byte = Rate::from_gbps(10).time_for(1);
    let only = |payload: u64| byte * (payload.next_multiple_of(4) + 14 + 20 + 8 + 12 + 16 + 4 + 4 + 24);
    let first = Time::from_us(51) + only(1024);
    for at in [first, first + only(100), Time::from_us(2001) + only(1)] {
        pair.run(at);
        assert_eq!(pair.ledger.borrow().flow(FlowId(0)).last_delivery, Some(at));
    }
}

#[test]
fn a_message_longer_than_the_transport_allows_arrives_as_one() {
    for verb in [SenderVerb::WriteImm, SenderVerb::Write, SenderVerb::Send] {
        let mut pair = Pair::new(link(400, Time::from_us(1)), 4096, |config| RcSenderConfig { verb, ..config });
        let bytes = (1 << 30) + 5000;
        pair.source.post(Time::ZERO, bytes);
        pair.source.post(Time::ZERO, 7);
        pair.run(Time::from_s(10));
        let record = pair.ledger.borrow().flow(FlowId(0)).clone();
        assert_eq!((record.posted_messages, record.delivered_messages, record.delivered_bytes), (2, 2, bytes + 7));
        assert_eq!(pair.sender().stats().completed_messages, 2, "{verb:?}");
    }
}

#[test]
fn a_lossy_link_still_delivers_everything_once() {
    let mut timeouts = 0;
    for seed in 1..=5 {
        println!("seed {seed}");
        let chance = |percent: f64| Probability::new(percent / 100.0).unwrap();
        let faults = Faults {
            loss: chance(1.0),
            duplicate: chance(1.0),
            reorder: chance(0.5),
            corrupt: chance(0.5),
            corrupt_undetected: chance(0.2),
            ..Faults::default()
        };
        let link = LinkParams { faults, ..LinkParams::default() };
        let limits = RetryLimits { ack_timeout: 4, ..RetryLimits::default() };
        let mut pair = Pair::with_seed(seed, link, 1024, |config| config.with_limits(limits));
        (0..200).for_each(|k| pair.source.post(Time::ZERO, 1 + k * 100));
        pair.run(Time::from_s(5));
        let record = pair.ledger.borrow().flow(FlowId(0)).clone();
        assert_eq!((record.delivered_messages, record.delivered_bytes), (200, record.posted_bytes), "seed {seed}");
        let stats = pair.sender().stats();
        assert!(stats.retransmitted > 0 && stats.naks > 0, "{stats:?}");
        timeouts += stats.timeouts;
        assert_eq!((stats.completed_messages, stats.failed), (200, None));
        assert!(pair.receiver_station().stats(Time::ZERO).fcs_errors > 0);
        assert!(pair.receiver_station().stats(Time::ZERO).icrc_errors > 0);
    }
    assert!(timeouts > 0, "no last packet was ever lost");
}

#[test]
fn a_peer_that_is_not_there_fails_the_flow_after_its_retries() {
    let mut engine = Engine::new(1);
    let ledger = Ledger::shared(1);
    let source = Source::default();
    source.post(Time::ZERO, 4096);
    let limits = RetryLimits { ack_timeout: 4, retry_cnt: 3, rnr_retry: 7 };
    let config = sender_config(0, 1, 4096).with_limits(limits);
    let mut station = station(0);
    station.add_rc_sender(RcSender::new(config, Box::new(source), ledger)).unwrap();
    let station = engine.add_node("station", Box::new(station));
    let nobody = engine.add_node("nobody", Box::new(Probe::default()));
    engine.connect((station, PORT), (nobody, PORT), LinkParams::default()).unwrap();
    assert_eq!(engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Idle);
    let sender = engine.node::<Station>(station).unwrap().sender(0).unwrap();
    let stats = sender.stats();
    assert_eq!((stats.packets, stats.timeouts, stats.completed_messages), (4, 4, 0));
    let failed = stats.failed.expect("a reason");
    assert!(matches!(failed, RequestFault::RetriesSpent { retries: 3, .. }), "{failed}");
    let starts = &engine.node::<Probe>(nobody).unwrap().starts(Rate::from_gbps(10), Time::from_us(1));
    let timeout = Time::from_ns(4096) * 16;
    assert_eq!(*starts, [Time::ZERO, timeout, timeout * 2, timeout * 3]);
    assert!(sender.is_done());
}

#[test]
fn a_slow_consumer_slows_its_sender_by_rnr_and_loses_nothing() {
    let consumer = Consumer { slots: 4, rate: Rate::from_gbps(1) };
    let mut pair = Pair::new(LinkParams::default(), 4096, |config| config);
    pair.receiver_config(|config| config.consumer = Some(consumer));
    (0..100).for_each(|_| pair.source.post(Time::ZERO, 100_000));
    pair.run(Time::from_s(1));
    let record = pair.ledger.borrow().flow(FlowId(0)).clone();
    assert_eq!((record.delivered_messages, record.delivered_bytes), (100, 10_000_000));
    let consuming = Rate::from_gbps(1).time_for(100_000 * (100 - 5));
    assert!(record.last_delivery.unwrap() >= consuming, "delivered before there was room");
    assert!(pair.sender().stats().rnr_naks > 0);
    assert_eq!(pair.sender().stats().failed, None);
}

#[test]
fn a_paused_class_sends_nothing_and_its_timers_stand_still() {
    let mut engine = Engine::new(1);
    let ledger = Ledger::shared(2);
    let mut first = station(0);
    for (flow, dscp) in [(0u32, 26), (1, 8)] {
        let source = Source::default();
        (0..200).for_each(|k| source.post(Time::from_us(k * 5), 4096));
        let limits = RetryLimits { ack_timeout: 4, ..RetryLimits::default() };
        let mut config = sender_config(flow, 1, 4096).with_limits(limits);
        config.request.marking.dscp = dscp;
        first.add_rc_sender(RcSender::new(config, Box::new(source), ledger.clone())).unwrap();
    }
    let station = engine.add_node("station", Box::new(first));
    let probe = engine.add_node("probe", Box::new(Probe::default()));
    let link = LinkParams::default();
    engine.connect((station, PORT), (probe, PORT), link).unwrap();
    let (begin, quanta) = (Time::from_us(100), 6000);
    engine.node_mut::<Probe>(probe).unwrap().pauses = vec![(begin, 3, quanta)];
    engine.run_until(Time::from_us(500)).unwrap();
    let paused_at = begin + link.rate.time_for(84) + link.delay;
    let until = paused_at + link.rate.time_for(u64::from(quanta) * 64);
    let log = &engine.node::<Probe>(probe).unwrap().log;
    let starts = |class: usize| {
        log.iter()
            .filter(move |seen| seen.class == class)
            .map(|seen| seen.at - link.delay - link.rate.time_for(seen.wire))
    };
    let frame = link.rate.time_for(4096 + 200);
    assert!(!starts(3).any(|at| at > paused_at && at < until), "class 3 is paused until {until}");
    assert!(starts(3).any(|at| at >= until && at <= until + frame), "class 3 goes on");
    assert!(starts(1).filter(|at| *at > paused_at && *at < until).count() > 20, "class 1 is not paused");
    let first = engine.node::<Station>(station).unwrap();
    // 65.5 us of silence are a timeout, but for the flow that could not send.
    let (paused, free) = (first.sender(0).unwrap().stats(), first.sender(1).unwrap().stats());
    assert!(paused.timeouts < free.timeouts, "{paused:?} {free:?}");
    assert_eq!(first.stats(engine.now()).paused_for[3], until - paused_at);
}

/// Station 0 .. `senders`, each with one flow to the last, through one switch.
fn incast(senders: u16, bytes: u64, law: Law) -> (Engine, flows::Book, NodeId, Vec<NodeId>) {
    let link = LinkParams::default();
    let ledger = Ledger::shared(senders.into());
    let buffer = ByteSize(2_000_000);
    let headroom = lossless_headroom(&link, 4096);
    let pfc = PfcParams::lossless(1 << 3, buffer, u64::from(senders) + 1, headroom, 4096).unwrap();
    let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() }.with_ecn(EcnParams::default());
    let mut engine = Engine::new(1);
    let mut switch = Switch::new(params, senders + 1, Stream::new(1, "switch"));
    for k in 0..=senders {
        route(&mut switch, k);
    }
    let switch = engine.add_node("switch", Box::new(switch));
    let mut server = station(senders);
    let mut stations = Vec::new();
    for k in 0..senders {
        let source = Source::default();
        source.post(Time::ZERO, bytes);
        let config = sender_config_between(u32::from(k), k, senders, 4096).with_law(law, quick_cc());
        let mut station = station(k);
        station.add_rc_sender(RcSender::new(config, Box::new(source), ledger.clone())).unwrap();
        let receiver = receiver_config_between(u32::from(k), senders, k, 4096);
        server.add_rc_receiver(RcReceiver::new(receiver, ledger.clone())).unwrap();
        stations.push(engine.add_node(format!("station{k}"), Box::new(station)));
        engine.connect((stations[usize::from(k)], PORT), (switch, PortId(k)), link).unwrap();
    }
    let server = engine.add_node("server", Box::new(server));
    engine.connect((server, PORT), (switch, PortId(senders)), link).unwrap();
    (engine, flows::Book(ledger), switch, stations)
}

#[test]
fn eight_senders_under_dcqcn_share_the_link_and_lose_nothing() {
    let bytes = 20_000_000;
    let (mut engine, book, switch, stations) = incast(8, bytes, Law::Dcqcn);
    let delivered =
        |book: &flows::Book| -> Vec<f64> { (0..8).map(|flow| book.flow(flow).delivered_bytes as f64).collect() };
    engine.run_until(Time::from_ms(60)).unwrap();
    let before = delivered(&book);
    engine.run_until(Time::from_ms(120)).unwrap();
    let shares: Vec<f64> =
        delivered(&book).iter().zip(before).map(|(after, before)| (after - before) / 60e-3).collect();
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    assert!(sum * 8.0 > 0.8 * 10e9, "{} bit/s in all", sum * 8.0);
    assert!(sum * sum / (8.0 * squares) > 0.98, "shares in byte/s: {shares:?}");
    assert_eq!(engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Idle);
    assert!((0..8).all(|flow| book.flow(flow).delivered_bytes == bytes));
    assert_eq!(engine.node::<Switch>(switch).unwrap().stats().dropped(), 0);
    for id in stations {
        let stats = engine.node::<Station>(id).unwrap().sender(0).unwrap().stats();
        assert!(stats.cnps > 0 && stats.retransmitted == 0, "{stats:?}");
    }
}
