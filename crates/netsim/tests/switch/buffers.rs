// SPDX-License-Identifier: Apache-2.0
//! The shared buffer under load: lossless as configured, and every frame delivered or counted once.

use penstock_netsim::{
    lossless_buffer, lossless_headroom, max_frame, Alpha, ByteSize, Engine, Headroom, LinkParams, NodeId, PauseFrame,
    PfcParams, PfcThreshold, PortId, QcnPoints, Scheduling, Stream, Switch, SwitchParams, Time,
};
use penstock_wire::RocePacket;
use proptest::prelude::*;

use crate::common::{ip, link, packet, Flood, Sender, Sink, PORT};
use crate::{plain, SINK};

/// Senders on ports 0 .. n by links of their own, into one sink on port n.
struct Funnel {
    engine: Engine,
    switch: NodeId,
    sink: NodeId,
}

impl Funnel {
    fn new(params: SwitchParams, senders: Vec<(Box<dyn penstock_netsim::Node>, LinkParams)>, out: LinkParams) -> Self {
        let mut engine = Engine::new(1);
        let ports = senders.len() as u16;
        let mut switch = Switch::new(params, ports + 1, Stream::new(1, "switch"));
        switch.add_route(ip(SINK), &[PortId(ports)]);
        let switch = engine.add_node("switch", Box::new(switch));
        let sink = engine.add_node("sink", Box::new(Sink::default()));
        engine.connect((sink, PORT), (switch, PortId(ports)), out).unwrap();
        for (k, (sender, link)) in (0..ports).zip(senders) {
            let id = engine.add_node(format!("sender{k}"), sender);
            engine.connect((id, PORT), (switch, PortId(k)), link).unwrap();
        }
        engine.run_until(Time::from_s(1)).unwrap();
        Funnel { engine, switch, sink }
    }

    fn switch(&self) -> &Switch {
        self.engine.node(self.switch).unwrap()
    }

    fn delivered(&self) -> u64 {
        self.engine.node::<Sink>(self.sink).unwrap().log.len() as u64
    }
}

prop_compose! {
    fn any_link()(gbps in prop_oneof![Just(1u64), Just(10), Just(25), Just(100), Just(400)], delay_ns in 100u64..20_000)
        -> LinkParams {
        link(gbps, Time::from_ns(delay_ns))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn headroom_of_each_ports_own_link_is_lossless_at_every_rate_delay_and_mtu(
        links in proptest::collection::vec(any_link(), 2..6), out in any_link(),
        mtu in prop_oneof![Just(256u16), Just(1024), Just(4096)],
        alpha in proptest::option::of(0.1f64..8.0), of_queue: bool, by_port: bool, spare in 0u64..100_000,
    ) {
        let all: Vec<LinkParams> = links.iter().copied().chain([out]).collect();
        let buffer = ByteSize(lossless_buffer(1 << 3, &all, mtu).bytes() + spare);
        let frame = max_frame(mtu).bytes();
        let threshold = match alpha {
            Some(alpha) => {
                PfcThreshold::Dynamic { alpha: Alpha::new(alpha).unwrap(), hysteresis: ByteSize(2 * frame) }
            }
            None if of_queue => PfcThreshold::Queue { xoff: ByteSize(4 * frame), xon: ByteSize(2 * frame) },
            None => PfcThreshold::Static { xoff: ByteSize(4 * frame), xon: ByteSize(2 * frame) },
        };
        let kind = if by_port { PauseFrame::Port } else { PauseFrame::Pfc };
        let pfc = PfcParams { classes: 1 << 3, threshold, headroom: Headroom::OfLink { mtu }, frame: kind };
        let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() };
        let senders = (0..).zip(&links).map(|(k, link)| -> (Box<dyn penstock_netsim::Node>, LinkParams) {
            (Box::new(Sender::new(k, SINK, 200, u32::from(mtu), Time::ZERO)), *link)
        });
        let funnel = Funnel::new(params, senders.collect(), out);
        let switch = funnel.switch();
        prop_assert_eq!(switch.stats().dropped(), 0);
        prop_assert_eq!(funnel.delivered(), 200 * links.len() as u64);
        prop_assert_eq!(switch.buffer_bytes(), 0);
        if alpha.is_some() {
            let aside: u64 = all.iter().map(|link| lossless_headroom(link, mtu).bytes()).sum();
            prop_assert_eq!(switch.shared_bytes(), buffer.bytes() - aside);
        }
    }

    #[test]
    fn every_frame_is_delivered_or_counted_once_whatever_the_settings(
        senders in 2u16..5, buffer in 20_000u64..300_000, classes: u8, kind in 0..3, headroom in 0u64..9_000,
        alpha in 0.05f64..4.0, lossy in proptest::option::of(0.05f64..4.0), weights in proptest::array::uniform8(0u16..4),
        qcn: bool,
    ) {
        let alpha = Alpha::new(alpha).unwrap();
        let (xoff, xon) = (ByteSize(buffer / 9), ByteSize(buffer / 20));
        let threshold = match kind {
            0 => PfcThreshold::Dynamic { alpha, hysteresis: ByteSize(2_000) },
            1 => PfcThreshold::Static { xoff, xon },
            _ => PfcThreshold::Queue { xoff, xon },
        };
        let pfc = PfcParams { classes, threshold, headroom: Headroom::Fixed(ByteSize(headroom)), frame: PauseFrame::Pfc };
        let params = SwitchParams {
            pfc: Some(pfc),
            lossy_alpha: lossy.and_then(Alpha::new),
            scheduling: Scheduling::weighted(weights),
            qcn: qcn.then(QcnPoints::default),
            ..plain(buffer)
        };
        // no sender obeys, so that the headroom is spent as well
        let of = |k: u16| (0..240).map(move |n| RocePacket { dscp: (n % 64) as u8, ..packet(k, SINK, n, 1024) });
        let nodes = (0..senders).map(|k| -> (Box<dyn penstock_netsim::Node>, LinkParams) {
            (Box::new(Flood::new(of(k))), LinkParams::default())
        });
        let funnel = Funnel::new(params, nodes.collect(), LinkParams::default());
        let (switch, now) = (funnel.switch(), funnel.engine.now());
        let stats = switch.stats();
        // messages of the congestion points find no route back and are counted there
        prop_assert_eq!(stats.no_route, stats.cnm_sent);
        prop_assert_eq!(funnel.delivered() + stats.dropped(), 240 * u64::from(senders));
        let of_classes = |port: u16| switch.port_stats(PortId(port), now).classes.map(|class| class.dropped);
        let by_class: u64 = (0..=senders).flat_map(of_classes).sum();
        prop_assert_eq!(by_class, stats.dropped());
        prop_assert!(stats.peak_buffer_bytes <= buffer);
        prop_assert_eq!(switch.buffer_bytes(), 0);
        prop_assert_eq!(switch.port_stats(PortId(senders), now).tx_frames, funnel.delivered());
    }
}

/// 8 ports share one queue: each holds an eighth of it and would pause at 8 times the watermark by thresholds of ports.
#[test]
fn a_queue_above_its_watermark_pauses_all_that_send_into_it_and_stays_near_it() {
    let (mtu, ports) = (1024, 8);
    let link = link(1, Time::from_us(1));
    let (xoff, xon) = (ByteSize(130_000), ByteSize(110_000));
    for frame in [PauseFrame::Pfc, PauseFrame::Port] {
        let threshold = PfcThreshold::Queue { xoff, xon };
        let pfc = PfcParams { classes: 1 << 3, threshold, headroom: Headroom::OfLink { mtu }, frame };
        let params = SwitchParams { pfc: Some(pfc), ..plain(1_000_000) };
        let sender = |k| -> (Box<dyn penstock_netsim::Node>, LinkParams) {
            (Box::new(Sender::new(k, SINK, 500, u32::from(mtu), Time::ZERO)), link)
        };
        let funnel = Funnel::new(params, (0..ports).map(sender).collect(), link);
        let (switch, now) = (funnel.switch(), funnel.engine.now());
        assert_eq!((switch.stats().dropped(), funnel.delivered()), (0, 500 * u64::from(ports)));
        let peak = switch.port_stats(PortId(ports), now).peak_queue_bytes;
        let room = u64::from(ports) * lossless_headroom(&link, mtu).bytes();
        assert!((xoff.bytes()..xoff.bytes() + room).contains(&peak), "{peak}");
        for port in 0..ports {
            let stats = switch.port_stats(PortId(port), now);
            assert!(stats.pause_frames_sent >= 2 && stats.pausing > Time::ZERO, "{port}: {stats:?}");
            assert!(stats.peak_ingress_bytes < xoff.bytes(), "{}", stats.peak_ingress_bytes);
        }
    }
}

#[test]
fn a_lossy_flood_leaves_a_dynamic_switch_lossless_for_the_other_class() {
    let mtu = 4096;
    let pfc = PfcParams::dynamic(1 << 3, Alpha::ONE, mtu);
    let params = SwitchParams { pfc: Some(pfc), lossy_alpha: Some(Alpha::ONE), ..plain(500_000) };
    let lossy = |k: u16| Flood::new((0..1000).map(move |n| RocePacket { dscp: 0, ..packet(k, SINK, n, 4096) }));
    let mut nodes: Vec<(Box<dyn penstock_netsim::Node>, LinkParams)> = Vec::new();
    for k in 0..4 {
        nodes.push((Box::new(lossy(k)), LinkParams::default()));
        nodes.push((Box::new(Sender::new(4 + k, SINK, 500, 4096, Time::ZERO)), LinkParams::default()));
    }
    let funnel = Funnel::new(params, nodes, LinkParams::default());
    let (switch, now) = (funnel.switch(), funnel.engine.now());
    let egress = switch.port_stats(PortId(8), now);
    assert_eq!((egress.classes[3].dropped, egress.classes[3].tx_frames), (0, 2000));
    assert!(egress.classes[0].dropped > 500, "{}", egress.classes[0].dropped);
    assert_eq!(switch.stats().dropped(), egress.classes[0].dropped);
    let pausing: Vec<Time> = (0..8).map(|port| switch.port_stats(PortId(port), now).pausing).collect();
    assert!((0..8).all(|port| (pausing[port] > Time::ZERO) == (port % 2 == 1)), "{pausing:?}");
}
