// SPDX-License-Identifier: Apache-2.0
//! Congestion points: the feedback follows the formulas of the QCN hardware evaluation and reaches its source.

use penstock_cc::QcnMarking;
use penstock_netsim::{Engine, LinkParams, NodeId, PortId, QcnPoints, Stream, Switch, SwitchParams, Time};
use penstock_wire::{Cnm, MacAddr, Packet, Qpn, RocePacket};

use crate::common::{ip, packet, Flood, Sink, PORT};
use crate::{plain, SINK};

/// Ethernet, IPv4, UDP, BTH, 944 of payload, ICRC.
const FRAME: u32 = 14 + 20 + 8 + 12 + 944 + 4;

/// A sample every ten frames, without jitter; Q_eq is eight frames, w is 2.
fn every_ten_frames() -> SwitchParams {
    let marking = QcnMarking { q_eq: 8 * FRAME, w: 2, sample_bytes: [10 * FRAME; 8], jitter: 0 };
    SwitchParams { qcn: Some(QcnPoints { marking, ..QcnPoints::default() }), ..plain(10_000_000) }
}

fn messages(engine: &Engine, host: NodeId) -> Vec<Cnm> {
    let received = &engine.node::<Flood>(host).unwrap().received;
    let of = received.iter().map(|(_, packet)| match packet {
        Packet::Cnm(message) => *message,
        other => panic!("only messages come back: {other:?}"),
    });
    of.collect()
}

/// Two hosts behind a leaf send 45 frames each at once to a sink behind the root, over two links between the switches,
/// so that they meet at the root only. Returns the engine, the hosts and the root.
fn two_into_one(root: SwitchParams) -> (Engine, [NodeId; 2], NodeId) {
    let mut engine = Engine::new(5);
    let mut leaf = Switch::new(plain(10_000_000), 4, Stream::new(5, "leaf"));
    let mut root = Switch::new(root, 3, Stream::new(5, "root"));
    root.set_mac(MacAddr([2, 0, 0, 0, 0, 0x77]));
    for k in 0..2 {
        leaf.add_route(ip(k), &[PortId(k)]);
        root.add_route(ip(k), &[PortId(k)]);
        leaf.add_route(ip(SINK + k), &[PortId(2 + k)]);
        root.add_route(ip(SINK + k), &[PortId(2)]);
    }
    let leaf = engine.add_node("leaf", Box::new(leaf));
    let root = engine.add_node("root", Box::new(root));
    let hosts = [0, 1].map(|k| {
        let packets = (0..45).map(|psn| packet(k, SINK + k, psn, 944));
        let host = engine.add_node(format!("host{k}"), Box::new(Flood::new(packets)));
        engine.connect((host, PORT), (leaf, PortId(k)), LinkParams::default()).unwrap();
        engine.connect((leaf, PortId(2 + k)), (root, PortId(k)), LinkParams::default()).unwrap();
        host
    });
    let sink = engine.add_node("sink", Box::new(Sink::default()));
    engine.connect((sink, PORT), (root, PortId(2)), LinkParams::default()).unwrap();
    engine.run_until(Time::from_s(1)).unwrap();
    assert_eq!(engine.node::<Sink>(sink).unwrap().log.len(), 90);
    (engine, hosts, root)
}

#[test]
fn feedback_is_what_the_seeds_formula_gives_by_hand() {
    let (engine, hosts, root) = two_into_one(every_ten_frames());
    // Frames come two at a time and leave one at a time: the second of round k makes the queue k + 1 frames long. Every
    // fifth round is sampled: q = 6, 11, 16, ... frames, each 5 more than the last.
    // F_b = (8 - q) - 2 (q - q_old): -10, -13, -18, -23, -28, -33, -38, -43, -48; the range is 8 (2 x 2 + 1) = 40.
    // 63 |F_b| / 40 rounded down, the last two held at 63.
    let expected = [15, 20, 28, 36, 44, 51, 59, 63, 63];
    assert_eq!(messages(&engine, hosts[0]), []);
    let got = messages(&engine, hosts[1]);
    assert_eq!(got.iter().map(|message| message.feedback).collect::<Vec<_>>(), expected);
    let frames = |count: i32| (count * FRAME as i32 / 64) as i16;
    let offsets: Vec<_> = got.iter().take(3).map(|message| (message.q_offset, message.q_delta)).collect();
    assert_eq!(offsets, [(frames(2), frames(6)), (frames(-3), frames(5)), (frames(-8), frames(5))]);
    let root = engine.node::<Switch>(root).unwrap();
    let of_class = root.port_stats(PortId(2), engine.now()).classes[3];
    assert_eq!((root.stats().cnm_sent, of_class.cnm_sent), (9, 9));
    assert_eq!(root.buffer_bytes(), 0);
}

#[test]
fn a_message_names_the_flow_and_the_congestion_point() {
    let (engine, hosts, _) = two_into_one(every_ten_frames());
    let sampled = packet(1, SINK + 1, 0, 944);
    let message = messages(&engine, hosts[1])[0];
    assert_eq!((message.eth_dst, message.encapsulated_dst), (sampled.eth_src, sampled.eth_dst));
    assert_eq!(message.eth_src, MacAddr([2, 0, 0, 0, 0, 0x77]));
    assert_eq!(message.flow_tuple, Packet::from(sampled).five_tuple().unwrap());
    assert_eq!((message.flow, message.dest_qpn, message.priority), (1, Some(Qpn::new(1)), 3));
    assert_eq!(message.cpid, 0x0200_0000_0077 << 16 | 2 << 3 | 3);
}

/// Two hosts send frames with CN-TAGs to a third. Returns the flow IDs of the messages, and the tags of the frames that the
/// third receives.
fn cn_tagged(is_edge: bool) -> (Vec<u16>, Vec<Option<u16>>) {
    let mut engine = Engine::new(5);
    let mut switch = Switch::new(every_ten_frames(), 3, Stream::new(5, "switch"));
    (0..3).for_each(|k| switch.add_route(ip(k), &[PortId(k)]));
    if is_edge {
        switch.set_edge(PortId(2));
    }
    let switch = engine.add_node("switch", Box::new(switch));
    let hosts = [0, 1, 2].map(|k| {
        let count = if k == 2 { 0 } else { 45 };
        let packets = (0..count).map(|psn| RocePacket { cn_tag: Some(0xBEE0 + k), ..packet(k, 2, psn, 944) });
        let host = engine.add_node(format!("host{k}"), Box::new(Flood::new(packets)));
        engine.connect((host, PORT), (switch, PortId(k)), LinkParams::default()).unwrap();
        host
    });
    engine.run_until(Time::from_s(1)).unwrap();
    let flows = hosts[..2].iter().flat_map(|host| messages(&engine, *host)).map(|message| message.flow);
    let received = &engine.node::<Flood>(hosts[2]).unwrap().received;
    let tags = received.iter().map(|(_, packet)| match packet {
        Packet::Roce(packet) => packet.cn_tag,
        other => panic!("only data goes there: {other:?}"),
    });
    (flows.collect(), tags.collect())
}

#[test]
fn a_message_has_the_flow_id_of_the_tag_which_ends_at_the_edge() {
    let (flows, tags) = cn_tagged(true);
    assert!(flows.len() > 5 && flows.iter().all(|flow| [0xBEE0, 0xBEE1].contains(flow)), "{flows:x?}");
    assert_eq!(tags, [None; 90]);
    let (inside, tags) = cn_tagged(false);
    assert_eq!(inside, flows);
    assert_eq!(tags.iter().filter(|tag| **tag == Some(0xBEE1)).count(), 45);
    assert!(tags.iter().all(Option::is_some));
}

#[test]
fn a_class_without_a_congestion_point_and_a_short_queue_send_nothing() {
    let qcn = every_ten_frames().qcn.map(|qcn| QcnPoints { classes: !(1 << 3), ..qcn });
    let (engine, hosts, _) = two_into_one(SwitchParams { qcn, ..every_ten_frames() });
    assert_eq!(messages(&engine, hosts[1]), []);
    let marking = QcnMarking { q_eq: 200 * FRAME, w: 2, sample_bytes: [10 * FRAME; 8], jitter: 0 };
    let qcn = Some(QcnPoints { marking, ..QcnPoints::default() });
    let (engine, hosts, _) = two_into_one(SwitchParams { qcn, ..every_ten_frames() });
    assert_eq!(messages(&engine, hosts[1]), [], "the queue is below Q_eq and grows slowly");
}
