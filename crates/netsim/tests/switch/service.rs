// SPDX-License-Identifier: Apache-2.0
//! The order of service: strict and weighted classes, paths of equal cost, effects of a pause.

use penstock_netsim::{
    ByteSize, Engine, Faults, LinkParams, NodeId, PortId, Rate, Scheduling, Stream, Switch, SwitchParams, Time,
};
use penstock_wire::{Packet, RocePacket};

use crate::common::{ip, link, packet, Flood, Seen, Sender, Sink, PORT};
use crate::{plain, Pauser, SINK};

const FRAME: u64 = 1024 + 58;

fn of_class(class: u8, src: u16, count: u32) -> impl Iterator<Item = RocePacket> {
    (0..count).map(move |psn| RocePacket { dscp: class << 3, ..packet(src, SINK, psn, 1024) })
}

/// Host k floods from source address k; all go to the sink on the last port.
fn into_one_port(params: SwitchParams, floods: impl ExactSizeIterator<Item = Flood>) -> Vec<Seen> {
    let mut engine = Engine::new(1);
    let ports = floods.len() as u16;
    let mut switch = Switch::new(params, ports + 1, Stream::new(1, "switch"));
    switch.add_route(ip(SINK), &[PortId(ports)]);
    let switch = engine.add_node("switch", Box::new(switch));
    for (k, flood) in (0..ports).zip(floods) {
        let host = engine.add_node(format!("host{k}"), Box::new(flood));
        engine.connect((host, PORT), (switch, PortId(k)), LinkParams::default()).unwrap();
    }
    let sink = engine.add_node("sink", Box::new(Sink::default()));
    engine.connect((sink, PORT), (switch, PortId(ports)), LinkParams::default()).unwrap();
    engine.run_until(Time::from_s(1)).unwrap();
    engine.node::<Sink>(sink).unwrap().log.clone()
}

fn times_of(log: &[Seen], src: u16) -> Vec<Time> {
    log.iter().filter(|seen| seen.src == Some(ip(src))).map(|seen| seen.at).collect()
}

#[test]
fn a_higher_class_waits_for_one_frame_at_most() {
    let alone = into_one_port(plain(10_000_000), [Flood::new([]), Flood::new(of_class(5, 1, 300))].into_iter());
    let both = into_one_port(
        plain(10_000_000),
        [Flood::new(of_class(1, 0, 300)), Flood::new(of_class(5, 1, 300))].into_iter(),
    );
    assert_eq!(both.len(), 600);
    let frame_time = Rate::from_gbps(10).time_for(FRAME + 24);
    let (alone, beside) = (times_of(&alone, 1), times_of(&both, 1));
    assert_eq!(alone.len(), 300);
    assert!(alone.iter().zip(&beside).all(|(alone, beside)| *beside <= *alone + frame_time));
    let last_low = times_of(&both, 0)[299];
    assert!(last_low > beside[299] + frame_time * 200, "the lower class got what was left");
}

#[test]
fn weighted_classes_share_the_wire_within_a_quantum() {
    let weights = [0, 1, 0, 2, 0, 3, 0, 0];
    let quantum = ByteSize(2_000);
    let params = SwitchParams { scheduling: Scheduling::Weighted { weights, quantum }, ..plain(10_000_000) };
    let floods = [(1, 0), (3, 1), (5, 2)].map(|(class, src)| Flood::new(of_class(class, src, 1200)));
    let log = into_one_port(params, floods.into_iter());
    let mut sent = [0u64; 3];
    for seen in &log {
        let src = (0..3).find(|src| seen.src == Some(ip(*src))).unwrap();
        sent[usize::from(src)] += FRAME;
        if sent[2] == 1200 * FRAME {
            break;
        }
        // bytes by weight: each class is at most a quantum and a frame away from each other
        let rounds = [sent[0], sent[1] / 2, sent[2] / 3];
        let spread = rounds.iter().max().unwrap() - rounds.iter().min().unwrap();
        assert!(spread <= quantum.bytes() + FRAME, "{sent:?}");
    }
    assert_eq!(log.len(), 3600);
}

#[test]
fn class_of_weight_zero_goes_before_the_weighted() {
    let params = SwitchParams { scheduling: Scheduling::weighted([1, 9, 1, 1, 1, 1, 0, 1]), ..plain(10_000_000) };
    let control = Flood::new(of_class(6, 1, 200));
    let log = into_one_port(params, [Flood::new(of_class(1, 0, 400)), control].into_iter());
    let beside = times_of(&log, 1);
    let alone =
        times_of(&into_one_port(plain(10_000_000), [Flood::new([]), Flood::new(of_class(6, 1, 200))].into_iter()), 1);
    let frame_time = Rate::from_gbps(10).time_for(FRAME + 24);
    assert!(alone.iter().zip(&beside).all(|(alone, beside)| *beside <= *alone + frame_time));
}

/// Two switches with four links between them, each of another length; flows 0 .. `flows` from one host to one other.
fn over_four_paths(seed: u64, flows: u16, per_flow: u32) -> (Engine, NodeId, Vec<(u16, u32)>) {
    let mut engine = Engine::new(seed);
    let leaf = |name: &str| {
        let mut switch = Switch::new(plain(50_000_000), 5, Stream::new(seed, name));
        switch.add_route(ip(SINK), &[1, 2, 3, 4].map(PortId));
        switch
    };
    let (first, mut second) = (leaf("first"), leaf("second"));
    second.add_route(ip(SINK), &[PortId(0)]);
    let first = engine.add_node("first", Box::new(first));
    let second = engine.add_node("second", Box::new(second));
    let packets = (0..per_flow).flat_map(|psn| (0..flows).map(move |flow| packet(flow, SINK, psn, 256)));
    let host = engine.add_node("host", Box::new(Flood::new(packets)));
    let sink = engine.add_node("sink", Box::<Flood>::default());
    engine.connect((host, PORT), (first, PortId(0)), link(100, Time::from_us(1))).unwrap();
    engine.connect((sink, PORT), (second, PortId(0)), link(100, Time::from_us(1))).unwrap();
    for port in 1..5 {
        let length = link(40, Time::from_us(3 * u64::from(port)));
        engine.connect((first, PortId(port)), (second, PortId(port)), length).unwrap();
    }
    engine.run_until(Time::from_s(1)).unwrap();
    let sink = engine.node::<Flood>(sink).unwrap();
    let seen = sink.received.iter().map(|(_, packet)| {
        let Packet::Roce(packet) = packet else { panic!("only RoCE was sent") };
        (packet.udp_sport - 0xC000, packet.bth.psn.value())
    });
    let seen = seen.collect();
    (engine, first, seen)
}

#[test]
fn ecmp_spreads_flows_and_keeps_each_on_its_path() {
    let (engine, first, seen) = over_four_paths(3, 400, 20);
    assert_eq!(seen.len(), 400 * 20);
    let mut next = [0; 400];
    for (flow, psn) in seen {
        assert_eq!(psn, next[usize::from(flow)], "flow {flow} kept its order over paths of other lengths");
        next[usize::from(flow)] += 1;
    }
    let switch = engine.node::<Switch>(first).unwrap();
    let frames: Vec<u64> = (1..5).map(|port| switch.port_stats(PortId(port), engine.now()).tx_frames).collect();
    assert!(frames.iter().all(|frames| frames % 20 == 0), "whole flows: {frames:?}");
    // 100 flows a path expected; the standard deviation is sqrt(400 x 1/4 x 3/4) = 8.7
    assert!(frames.iter().all(|frames| (60..140).contains(&(frames / 20))), "{frames:?}");
}

#[test]
fn the_choice_of_paths_depends_on_the_switch_and_its_seed_alone() {
    let frames = |seed| {
        let (engine, first, _) = over_four_paths(seed, 64, 1);
        let switch = engine.node::<Switch>(first).unwrap();
        [1, 2, 3, 4].map(|port| switch.port_stats(PortId(port), engine.now()).tx_frames)
    };
    assert_eq!(frames(1), frames(1));
    assert_ne!(frames(1), frames(2));
}

#[test]
fn bytes_held_by_a_pause_are_counted_for_as_long_as_they_are_held() {
    let link = LinkParams { faults: Faults::default(), ..link(10, Time::from_us(1)) };
    let mut engine = Engine::new(1);
    let mut switch = Switch::new(plain(10_000_000), 2, Stream::new(1, "switch"));
    switch.add_route(ip(SINK), &[PortId(1)]);
    let switch = engine.add_node("switch", Box::new(switch));
    let sender = engine.add_node("sender", Box::new(Sender::new(0, SINK, 200, 1024, Time::ZERO)));
    let pauser = engine.add_node("pauser", Box::new(Pauser { at: Time::from_us(20), quanta: 1000, log: Vec::new() }));
    engine.connect((sender, PORT), (switch, PortId(0)), link).unwrap();
    engine.connect((pauser, PORT), (switch, PortId(1)), link).unwrap();
    let begin = Time::from_us(21) + Time::from_ps(84 * 800);
    let end = begin + Time::from_ns(51_200);
    let frame_time = (FRAME + 24) * 800;
    let arrivals = (1..=200).map(|k| Time::from_us(1) + Time(k * frame_time));
    let held = |until: Time| -> u128 {
        let waiting = arrivals.clone().filter(|at| (begin..until).contains(at));
        waiting.map(|at| u128::from((until - at).0) * u128::from(FRAME)).sum()
    };
    for at in [Time::from_us(40), Time::from_ms(1)] {
        engine.run_until(at).unwrap();
        let stats = engine.node::<Switch>(switch).unwrap().port_stats(PortId(1), at);
        assert_eq!(stats.classes[3].held_byte_ps, held(end.min(at)));
        assert_eq!(stats.classes[3].paused, end.min(at) - begin);
        assert_eq!(stats.classes[2].held_byte_ps, 0, "nothing waited in this class");
    }
}

#[test]
fn a_queue_that_is_there_before_a_pause_is_held_from_its_beginning_only() {
    let faults = Faults::default;
    let (fast, slow) = (link(10, Time::from_us(1)), link(1, Time::from_us(1)));
    let mut engine = Engine::new(1);
    let mut switch = Switch::new(plain(10_000_000), 2, Stream::new(1, "switch"));
    switch.add_route(ip(SINK), &[PortId(1)]);
    let switch = engine.add_node("switch", Box::new(switch));
    let sender = engine.add_node("sender", Box::new(Sender::new(0, SINK, 20, 1024, Time::ZERO)));
    let pauser = engine.add_node("pauser", Box::new(Pauser { at: Time::from_us(100), quanta: 1000, log: Vec::new() }));
    engine.connect((sender, PORT), (switch, PortId(0)), LinkParams { faults: faults(), ..fast }).unwrap();
    engine.connect((pauser, PORT), (switch, PortId(1)), LinkParams { faults: faults(), ..slow }).unwrap();
    let begin = Time::from_us(101) + Time::from_ps(84 * 8000);
    let end = begin + Time::from_us(512);
    // Frames leave one behind the other from the first arrival on; all 20 are there long before the pause.
    let (arrival, leaving) = ((FRAME + 24) * 800, (FRAME + 24) * 8000);
    let first = Time::from_us(1) + Time(arrival);
    let gone = (begin - first).0.div_ceil(leaving);
    let waiting = u128::from((20 - gone) * FRAME);
    assert!(Time::from_us(1) + Time(20 * arrival) < begin && waiting > 0);
    for at in [Time::from_us(200), Time::from_ms(10)] {
        engine.run_until(at).unwrap();
        let stats = engine.node::<Switch>(switch).unwrap().port_stats(PortId(1), at);
        assert_eq!(stats.classes[3].held_byte_ps, waiting * u128::from((end.min(at) - begin).0));
    }
}
