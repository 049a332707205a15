// SPDX-License-Identifier: Apache-2.0
//! TCP flows between stations: alone, against each other at a switch, with QCN's rate limiter, and through faults;
//! the simplified sender's congestion collapse, and its recovery with back-off.

mod common;
#[path = "common/flows.rs"]
mod flows;

use common::{ip, link, PORT};
use flows::*;
use penstock_cc::{Law, QcnMarking};
use penstock_netsim::{
    ByteSize, Engine, Faults, FlowId, Ledger, LinkParams, MessageSource, NodeId, PacingConfig, PortId, Probability,
    QcnPoints, RunEnd, SharedLedger, Station, Stream, Switch, SwitchParams, TcpFlowConfig, TcpFlowReceiver,
    TcpFlowSender, TcpStack, Time,
};
use penstock_transport::{BackOff, TcpConfig, TcpEndpoint};

fn end(station: u16, port: u16) -> TcpEndpoint {
    TcpEndpoint { mac: mac(station), ip: ip(station), port }
}

fn tcp_config(flow: u16, from: u16, to: u16) -> TcpConfig {
    TcpConfig::new(end(from, 40_000 + flow), end(to, 5_000 + flow))
}

fn unpaced() -> PacingConfig {
    PacingConfig { law: Law::Off, ..PacingConfig::default() }
}

/// Stations 1 to n send to station 0 through one switch.
struct Incast {
    engine: Engine,
    ledger: SharedLedger,
    switch: NodeId,
    stations: Vec<NodeId>,
}

impl Incast {
    fn new(flows: Vec<(TcpFlowConfig, Box<dyn MessageSource>)>, link: LinkParams, params: SwitchParams) -> Self {
        let mut engine = Engine::new(1);
        let count = flows.len() as u16;
        let ledger = Ledger::shared(flows.len());
        let mut switch = Switch::new(params, count + 1, Stream::new(1, "switch"));
        (0..=count).for_each(|n| switch.add_route(ip(n), &[PortId(n)]));
        let mut server = station(0);
        let mut stations = Vec::new();
        for (flow, (config, source)) in flows.into_iter().enumerate() {
            let receiver = TcpFlowReceiver::new(config.flow, config.tcp.reversed(), ledger.clone());
            server.add_tcp_receiver(receiver).unwrap();
            let mut sender = station(flow as u16 + 1);
            sender.add_tcp_sender(TcpFlowSender::new(config, source, ledger.clone()).unwrap()).unwrap();
            stations.push(sender);
        }
        let switch = engine.add_node("switch", Box::new(switch));
        let stations: Vec<NodeId> = std::iter::once(server)
            .chain(stations)
            .enumerate()
            .map(|(n, station)| engine.add_node(format!("station{n}"), Box::new(station)))
            .collect();
        for (n, id) in stations.iter().enumerate() {
            engine.connect((*id, PORT), (switch, PortId(n as u16)), link).unwrap();
        }
        Incast { engine, ledger, switch, stations }
    }

    fn sender(&self, n: usize) -> &TcpFlowSender {
        self.engine.node::<Station>(self.stations[n + 1]).unwrap().tcp_sender(0).unwrap()
    }

    fn delivered(&self, flow: u32) -> u64 {
        self.ledger.borrow().flow(FlowId(flow)).delivered_bytes
    }
}

fn standard(flow: u16) -> TcpFlowConfig {
    let tcp = TcpConfig { sack: true, ..tcp_config(flow, flow + 1, 0) };
    TcpFlowConfig {
        flow: FlowId(flow.into()),
        stack: TcpStack::Standard,
        tcp,
        send_buffer: None,
        limiter_queue: None,
        pacing: unpaced(),
    }
}

fn posted(bytes: u64) -> Box<dyn MessageSource> {
    let source = Source::default();
    source.post(Time::ZERO, bytes);
    Box::new(source)
}

fn lossy_switch(buffer: ByteSize) -> SwitchParams {
    SwitchParams { buffer, ecn: [None; 8], pfc: None, ..SwitchParams::default() }
}

#[test]
fn messages_of_a_stream_are_delivered_one_by_one() {
    let source = Source::default();
    (0..20).for_each(|n| source.post(Time::from_us(10 * n), 700));
    let flows: Vec<(TcpFlowConfig, Box<dyn MessageSource>)> = vec![(standard(0), Box::new(source))];
    let mut run = Incast::new(flows, link(10, Time::from_us(1)), lossy_switch(ByteSize(1_000_000)));
    assert_eq!(run.engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Idle);
    let record = run.ledger.borrow().flow(FlowId(0)).clone();
    assert_eq!((record.delivered_messages, record.delivered_bytes), (20, 14_000));
    assert!(record.is_complete());
    let frame = 700 + 14 + 20 + 20 + 24;
    let alone = link(10, Time::ZERO).rate.time_for(2 * frame) + Time::from_us(2);
    assert_eq!(record.completion.quantile(0.0), Some(alone));
}

#[test]
fn three_flows_share_a_link_and_waste_little_of_it() {
    let flows = (0..3).map(|flow| (standard(flow), posted(1 << 40))).collect();
    // Without jitter a full buffer always has room for the same flow, as in no network.
    let jitter = Faults { jitter: Time::from_us(20), ..Faults::default() };
    let link = LinkParams { faults: jitter, ..link(1, Time::from_us(50)) };
    let mut run = Incast::new(flows, link, lossy_switch(ByteSize(150_000)));
    run.engine.run_until(Time::from_s(1)).unwrap();
    let shares: Vec<u64> = (0..3).map(|flow| run.delivered(flow)).collect();
    let total = shares.iter().sum::<u64>() as f64 * 8.0;
    assert!(total > 0.85e9, "{shares:?}");
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    assert!((total / 8.0).powi(2) / (3.0 * squares) > 0.7, "{shares:?}");
    assert!((0..3).all(|n| run.sender(n).counters().recoveries > 0), "never met the buffer's end");
}

#[test]
fn every_byte_arrives_through_loss_reordering_and_damage() {
    let chance = |p| Probability::new(p).unwrap();
    let faults = Faults {
        loss: chance(0.01),
        reorder: chance(0.01),
        corrupt: chance(0.01),
        corrupt_undetected: chance(0.01),
        ..Faults::default()
    };
    let flows = (0..2).map(|flow| (standard(flow), posted(3_000_000))).collect();
    let link = LinkParams { faults, ..link(10, Time::from_us(5)) };
    let mut run = Incast::new(flows, link, lossy_switch(ByteSize(1_000_000)));
    assert_eq!(run.engine.run_until(Time::from_s(600)).unwrap(), RunEnd::Idle);
    assert!(run.ledger.borrow().all_done());
    assert_eq!((run.delivered(0), run.delivered(1)), (3_000_000, 3_000_000));
}

#[test]
fn behind_qcn_the_queue_stays_short_and_nothing_is_lost() {
    let run = |law| {
        let pacing = PacingConfig { law, cc: cc_at(1), ..PacingConfig::default() };
        let flows = (0..2).map(|flow| (TcpFlowConfig { pacing, ..standard(flow) }, posted(1 << 40))).collect();
        let params = SwitchParams {
            qcn: Some(QcnPoints { classes: 1, marking: QcnMarking::default() }),
            ..lossy_switch(ByteSize(300_000))
        };
        let mut run = Incast::new(flows, link(1, Time::from_us(20)), params);
        run.engine.run_until(Time::from_ms(400)).unwrap();
        let bytes = run.delivered(0) + run.delivered(1);
        let dropped = run.engine.node::<Switch>(run.switch).unwrap().stats().dropped();
        (bytes, dropped, run.sender(0).feedbacks())
    };
    let (bytes, dropped, feedbacks) = run(Law::Qcn);
    assert!(bytes * 8 > 350_000_000, "{bytes} bytes in 0.4 s");
    assert_eq!(dropped, 0);
    assert!(feedbacks > 0);
    assert!(run(Law::Off).1 > 0, "without QCN the buffer overflows");
}

/// CMS-TCP figures 5 and 6 in small: what the first of five senders brings through after the fifth has stopped, as a
/// share of what it wants to send, and what share of its segments is sent again.
fn after_a_disturbance(back_off: BackOff) -> (f64, f64) {
    let until = [Time::from_ms(400), Time::from_ms(200)];
    let flows = (0..5u16).map(|flow| {
        let tcp = TcpConfig { mss: 8960, min_rto: Time::from_ms(10), ..tcp_config(flow, flow + 1, 0) };
        let stack = TcpStack::Simple(back_off);
        let source = Source::default();
        let (start, end) = if flow == 4 { (Time::from_ms(50), until[1]) } else { (Time::ZERO, until[0]) };
        let mut at = start + Time::from_us(flow.into());
        while at < end {
            source.post(at, 2048);
            at += Time::from_us(8);
        }
        let config = TcpFlowConfig {
            flow: FlowId(flow.into()),
            stack,
            tcp,
            send_buffer: None,
            limiter_queue: None,
            pacing: unpaced(),
        };
        (config, Box::new(source) as Box<dyn MessageSource>)
    });
    let mut run = Incast::new(flows.collect(), link(10, Time::from_us(5)), lossy_switch(ByteSize(200_000)));
    run.engine.run_until(Time::from_ms(350)).unwrap();
    let (before, counters) = (run.delivered(0), *run.sender(0).counters());
    run.engine.run_until(until[0]).unwrap();
    let useful = (run.delivered(0) - before) as f64 * 8.0 / 0.05 / 2.048e9;
    let now = run.sender(0).counters();
    let again = (now.retransmitted - counters.retransmitted) as f64 / (now.segments - counters.segments) as f64;
    (useful, again)
}

#[test]
fn without_back_off_the_collapse_stays_with_it_the_flows_recover() {
    let (_, again) = after_a_disturbance(BackOff::Off);
    assert!(again > 0.3, "{again} of the segments are still sent again");
    let (useful, again) = after_a_disturbance(BackOff::Exponential);
    assert!(useful > 0.99 && again < 0.05, "{useful} of the wanted rate, {again} of the segments sent again");
}
