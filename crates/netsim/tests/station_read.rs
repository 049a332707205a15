// SPDX-License-Identifier: Apache-2.0
//! Flows that are read: exact timing on a clean link, READs outstanding, delivery through faults, CNPs that act on the
//! responses, a consumer that is too slow, and failure with a reason.

mod common;
#[path = "common/flows.rs"]
mod flows;

use common::{link, PORT};
use flows::*;
use penstock_cc::Law;
use penstock_netsim::{
    ByteSize, Consumer, EcnParams, Engine, Faults, FlowId, Ledger, LinkParams, NodeId, PortId, Probability, Rate,
    RcSender, ReadRequester, ReadRequesterConfig, ReadResponder, ReadResponderConfig, RunEnd, SharedLedger, Station,
    StationError, Stream, Switch, SwitchParams, Time,
};
use penstock_transport::{RequesterConfig, RetryLimits};
use penstock_wire::Ecn;

/// READs of station 1 from station 0, over one link, or for several boards through a switch.
struct Reading {
    source: Source,
    ledger: SharedLedger,
    engine: Engine,
    board: NodeId,
    server: NodeId,
}

fn requester_config(flow: u32, board: u16, server: u16, mtu: usize) -> ReadRequesterConfig {
    let responder = receiver_config_between(flow, server, board, mtu).responder;
    let (local, peer) = (responder.local, responder.peer);
    let request = RequesterConfig::new(local, peer, first_psn(flow), responder.mtu);
    let flow = FlowId(flow);
    ReadRequesterConfig { flow, request, responder, ack_delay: Time::ZERO, consumer: None, notify_above: None }
}

fn responder_config(flow: u32, board: u16, server: u16, mtu: usize, law: Law, gbps: u64) -> ReadResponderConfig {
    let sender = sender_config_between(flow, board, server, mtu).with_law(law, cc_at(gbps));
    let mut responder = receiver_config_between(flow, server, board, mtu).responder;
    std::mem::swap(&mut responder.local, &mut responder.peer);
    responder.responder_resources = 16;
    responder.marking.response_ecn = Ecn::Ect0;
    ReadResponderConfig { flow: FlowId(flow), responder, ack_delay: Time::ZERO, pacing: sender.pacing }
}

impl Reading {
    fn new(seed: u64, link: LinkParams, server: ReadRequesterConfig, board: ReadResponderConfig) -> Self {
        let (source, ledger, mut engine) = (Source::default(), Ledger::shared(1), Engine::new(seed));
        let (mut first, mut second) = (station(0), station(1));
        first.add_read_responder(ReadResponder::new(board)).unwrap();
        let requester = ReadRequester::new(server, Box::new(source.clone()), ledger.clone());
        second.add_read_requester(requester).unwrap();
        let board = engine.add_node("board", Box::new(first));
        let server = engine.add_node("server", Box::new(second));
        engine.connect((board, PORT), (server, PORT), link).unwrap();
        Reading { source, ledger, engine, board, server }
    }

    fn requester(&self) -> &ReadRequester {
        self.engine.node::<Station>(self.server).unwrap().read_requester(0).unwrap()
    }

    fn responder(&self) -> &ReadResponder {
        self.engine.node::<Station>(self.board).unwrap().read_responder(0).unwrap()
    }
}

#[test]
fn responses_fill_the_link_to_the_byte() {
    for (law, mtu, gbps) in [(Law::Off, 4096, 10), (Law::Dcqcn, 1024, 10), (Law::Qcn, 256, 100), (Law::Dcqcn, 4096, 25)]
    {
        let (packets, delay) = (1000, Time::from_us(3));
        let board = responder_config(0, 0, 1, mtu, law, gbps);
        let mut reading = Reading::new(1, link(gbps, delay), requester_config(0, 0, 1, mtu), board);
        reading.source.post(Time::ZERO, packets * mtu as u64);
        assert_eq!(reading.engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Idle);
        // A READ request: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, ICRC 4, and 24 of preamble, FCS and gap. Its
        // responses have no RETH; the first and the last have an AETH of 4.
        let byte = |bytes: u64| Rate::from_gbps(gbps).time_for(bytes);
        let request = byte(14 + 20 + 8 + 12 + 16 + 4 + 24) + delay;
        let responses = byte(packets * (mtu as u64 + 14 + 20 + 8 + 12 + 4 + 24) + 4 + 4) + delay;
        let record = reading.ledger.borrow().flow(FlowId(0)).clone();
        assert_eq!(record.last_delivery, Some(request + responses), "{law:?}, {mtu} bytes, {gbps} Gb/s");
        assert_eq!((record.delivered_bytes, record.delivered_messages), (packets * mtu as u64, 1));
        let stats = reading.responder().stats();
        assert_eq!((stats.packets, stats.retransmitted, reading.requester().counters().sent_pkts), (packets, 0, 1));
        assert!(record.is_over());
    }
}

#[test]
fn messages_are_read_in_order_with_at_most_the_agreed_number_outstanding() {
    for outstanding in [1, 4, 16] {
        let mut server = requester_config(0, 0, 1, 1024);
        server.request.initiator_depth = outstanding;
        let mut board = responder_config(0, 0, 1, 1024, Law::Off, 10);
        board.responder.responder_resources = outstanding;
        let delay = Time::from_us(100);
        let mut reading = Reading::new(1, link(10, delay), server, board);
        (0..64).for_each(|_| reading.source.post(Time::ZERO, 1024));
        reading.engine.run_until(Time::from_s(1)).unwrap();
        let record = reading.ledger.borrow().flow(FlowId(0)).clone();
        assert_eq!((record.delivered_messages, reading.responder().stats().packets), (64, 64));
        // a round trip of 200 us for each group of READs, which pass the line in a few of them
        let (took, groups) = (record.last_delivery.unwrap(), 64 / u64::from(outstanding));
        assert!((delay * (2 * groups)..delay * (2 * groups) + Time::from_us(100)).contains(&took), "{took}");
    }
}

#[test]
fn a_lossy_link_still_delivers_everything_once() {
    let (mut gaps, mut timeouts) = (0, 0);
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
        let mut server = requester_config(0, 0, 1, 1024);
        server.request.limits = RetryLimits { ack_timeout: 4, ..RetryLimits::default() };
        let mut reading = Reading::new(seed, link, server, responder_config(0, 0, 1, 1024, Law::Off, 10));
        (0..200).for_each(|k| reading.source.post(Time::ZERO, 1 + k * 100));
        reading.engine.run_until(Time::from_s(5)).unwrap();
        let record = reading.ledger.borrow().flow(FlowId(0)).clone();
        assert_eq!((record.delivered_messages, record.delivered_bytes), (200, record.posted_bytes), "seed {seed}");
        assert_eq!(record.failure, None);
        assert!(reading.responder().stats().retransmitted > 0);
        gaps += reading.requester().counters().implied_nak_seq_err;
        timeouts += reading.requester().counters().local_ack_timeout_err;
    }
    assert!(gaps > 0 && timeouts > 0, "{gaps} gaps, {timeouts} timeouts");
}

#[test]
fn marked_responses_slow_their_boards_by_cnps_of_the_server() {
    let (boards, mut engine, ledger) = (4, Engine::new(1), Ledger::shared(4));
    let ecn = EcnParams { kmin: ByteSize(5_000), kmax: ByteSize(200_000), pmax: Probability::new(1.0).unwrap() };
    let mut switch = Switch::new(SwitchParams::default().with_ecn(ecn), boards + 1, Stream::new(1, "switch"));
    (0..=boards).for_each(|n| route(&mut switch, n));
    let mut server = station(boards);
    let mut stations = Vec::new();
    for n in 0..boards {
        let mut config = responder_config(n.into(), n, boards, 4096, Law::Dcqcn, 10);
        config.pacing.cc = quick_cc();
        let mut station = station(n);
        station.add_read_responder(ReadResponder::new(config)).unwrap();
        stations.push(engine.add_node(format!("board{n}"), Box::new(station)));
        let source = Source::default();
        (0..200).for_each(|_| source.post(Time::ZERO, 100_000));
        let config = requester_config(n.into(), n, boards, 4096);
        server.add_read_requester(ReadRequester::new(config, Box::new(source), ledger.clone())).unwrap();
    }
    stations.push(engine.add_node("server", Box::new(server)));
    let switch = engine.add_node("switch", Box::new(switch));
    for (n, station) in stations.iter().enumerate() {
        engine.connect((*station, PORT), (switch, PortId(n as u16)), link(10, Time::from_us(1))).unwrap();
    }
    engine.run_until(Time::from_s(1)).unwrap();
    for n in 0..boards {
        let record = ledger.borrow().flow(FlowId(n.into())).clone();
        assert_eq!((record.delivered_bytes, record.is_over()), (20_000_000, true));
        let board = engine.node::<Station>(stations[usize::from(n)]).unwrap().read_responder(0).unwrap();
        assert!(board.stats().cnps > 0, "{:?}", board.stats());
    }
    let span = ledger.borrow().flows().iter().filter_map(|flow| flow.last_delivery).max().unwrap();
    assert!(span < Time::from_ms(80), "80 MB take 66 ms at 10 Gb/s, and took {span}");
}

#[test]
fn a_server_with_a_slow_consumer_reads_less() {
    let mut server = requester_config(0, 0, 1, 4096);
    server.consumer = Some(Consumer { slots: 4, rate: Rate::from_gbps(1) });
    let board = responder_config(0, 0, 1, 4096, Law::Off, 10);
    let mut reading = Reading::new(1, LinkParams::default(), server, board);
    (0..100).for_each(|_| reading.source.post(Time::ZERO, 100_000));
    reading.engine.run_until(Time::from_s(1)).unwrap();
    let record = reading.ledger.borrow().flow(FlowId(0)).clone();
    assert_eq!((record.delivered_messages, record.delivered_bytes), (100, 10_000_000));
    let consuming = Rate::from_gbps(1).time_for(100_000 * (100 - 5));
    assert!(record.last_delivery.unwrap() >= consuming, "read before there was room");
    assert_eq!((reading.requester().counters().rnr_nak, reading.responder().stats().retransmitted), (0, 0));
}

#[test]
fn a_board_that_serves_no_reads_fails_the_flow_with_its_reason() {
    let mut board = responder_config(0, 0, 1, 4096, Law::Off, 10);
    board.responder.responder_resources = 0;
    let mut reading = Reading::new(1, LinkParams::default(), requester_config(0, 0, 1, 4096), board);
    reading.source.post(Time::ZERO, 5000);
    reading.engine.run_until(Time::from_s(1)).unwrap();
    let record = reading.ledger.borrow().flow(FlowId(0)).clone();
    let (_, reason) = record.failure.clone().expect("a reason");
    assert!(reason.contains("the peer refused PSN") && record.is_over(), "{reason}");
}

#[test]
fn a_queue_pair_that_is_read_takes_its_cnps_and_has_no_sender() {
    let mut station = station(0);
    let board = || ReadResponder::new(responder_config(0, 0, 1, 4096, Law::Off, 10));
    station.add_read_responder(board()).unwrap();
    let refused = station.add_read_responder(board()).unwrap_err();
    assert!(matches!(refused, StationError::QpnTaken { what: "READ responder", .. }), "{refused}");
    let sender = RcSender::new(sender_config(0, 1, 4096), Box::new(Source::default()), Ledger::shared(1));
    assert!(matches!(station.add_rc_sender(sender), Err(StationError::QpnTaken { what: "sender", .. })));
}
