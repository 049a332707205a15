// SPDX-License-Identifier: Apache-2.0
//! A PFC deadlock is found and named; pauses that only resemble one are not reported.

use penstock_netsim::{
    find_pause_cycle, lossless_headroom, ByteSize, Engine, LinkParams, NodeId, PfcParams, PortId, Stream, Switch,
    SwitchParams, Time,
};

use crate::common::{ip, Sender, PORT};
use crate::{Blocker, SINK};

/// Three switches in a ring, a host at port 0 of each, port 1 to the next switch, port 2 to the one before. Host k
/// sends to host k + `distance`, always clockwise.
fn ring(distance: u16) -> (Engine, Vec<NodeId>) {
    let link = LinkParams::default();
    let buffer = ByteSize(400_000);
    let pfc = PfcParams::lossless(8, buffer, 3, lossless_headroom(&link, 1024), 1024).unwrap();
    let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() };
    let mut engine = Engine::new(1);
    let switches: Vec<NodeId> = (0..3u16)
        .map(|k| {
            let mut switch = Switch::new(params, 3, Stream::new(1, "ring"));
            (0..3).for_each(|to| switch.add_route(ip(to), &[PortId(u16::from(to != k))]));
            engine.add_node(format!("s{k}"), Box::new(switch))
        })
        .collect();
    for k in 0..3u16 {
        let here = switches[usize::from(k)];
        let next = switches[usize::from(k + 1) % 3];
        let sender = Sender::new(k, (k + distance) % 3, 100_000, 1024, Time::ZERO);
        let host = engine.add_node(format!("host{k}"), Box::new(sender));
        engine.connect((host, PORT), (here, PortId(0)), link).unwrap();
        engine.connect((here, PortId(1)), (next, PortId(2)), link).unwrap();
    }
    (engine, switches)
}

fn sent(engine: &Engine, switches: &[NodeId]) -> u64 {
    let frames = |id: &NodeId| engine.node::<Switch>(*id).unwrap().port_stats(PortId(0), engine.now()).tx_frames;
    switches.iter().map(frames).sum()
}

#[test]
fn a_ring_of_three_switches_that_stands_still_is_named_port_by_port() {
    let (mut engine, switches) = ring(2);
    engine.run_until(Time::from_ms(20)).unwrap();
    let before = sent(&engine, &switches);
    engine.run_until(Time::from_ms(40)).unwrap();
    assert_eq!(sent(&engine, &switches), before, "nothing moves");
    let cycle = find_pause_cycle(&engine, &switches, Time::from_ms(10)).expect("a deadlock");
    let mut ports: Vec<_> = cycle.0.iter().map(|port| (port.name.as_str(), port.port.0, port.class)).collect();
    // it may begin anywhere in the circle, but each waits for the next
    let first = ports.iter().position(|port| port.0 == "s0").unwrap();
    ports.rotate_left(first);
    assert_eq!(ports, [("s0", 1, 3), ("s1", 1, 3), ("s2", 1, 3)]);
    assert!(cycle.0.iter().all(|port| port.queue_bytes > 0 && port.since < Time::from_ms(20)));
    let text = cycle.to_string();
    assert!(text.starts_with("PFC deadlock in class 3: s") && text.contains("s1 port 1"), "{text}");
    assert_eq!(text.matches("waits for").count(), 3, "{text}");
    assert_eq!(find_pause_cycle(&engine, &switches, Time::from_s(1)), None, "not held for that long");
}

#[test]
fn a_ring_whose_flows_end_at_the_next_switch_goes_on() {
    let (mut engine, switches) = ring(1);
    engine.run_until(Time::from_ms(20)).unwrap();
    assert_eq!(find_pause_cycle(&engine, &switches, Time::ZERO), None);
    let before = sent(&engine, &switches);
    engine.run_until(Time::from_ms(21)).unwrap();
    assert!(sent(&engine, &switches) > before);
}

#[test]
fn a_chain_of_pauses_that_ends_at_a_host_is_no_deadlock() {
    let link = LinkParams::default();
    let buffer = ByteSize(400_000);
    let pfc = PfcParams::lossless(8, buffer, 2, lossless_headroom(&link, 1024), 1024).unwrap();
    let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() };
    let mut engine = Engine::new(1);
    let switches: Vec<NodeId> = (0..2)
        .map(|k| {
            let mut switch = Switch::new(params, 2, Stream::new(1, "chain"));
            switch.add_route(ip(SINK), &[PortId(1)]);
            engine.add_node(format!("s{k}"), Box::new(switch))
        })
        .collect();
    let host = engine.add_node("host", Box::new(Sender::new(0, SINK, 5_000, 1024, Time::ZERO)));
    let blocker = engine.add_node("blocker", Box::new(Blocker));
    engine.connect((host, PORT), (switches[0], PortId(0)), link).unwrap();
    engine.connect((switches[0], PortId(1)), (switches[1], PortId(0)), link).unwrap();
    engine.connect((switches[1], PortId(1)), (blocker, PORT), link).unwrap();
    engine.run_until(Time::from_ms(7)).unwrap();
    let first = engine.node::<Switch>(switches[0]).unwrap().port_stats(PortId(1), engine.now());
    assert!(first.paused > Time::from_ms(5), "both switches are paused: {}", first.paused);
    assert_eq!(find_pause_cycle(&engine, &switches, Time::from_ms(1)), None);
}
