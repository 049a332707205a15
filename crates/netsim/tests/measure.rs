// SPDX-License-Identifier: Apache-2.0
//! Scheduled actions and measurements: changes of links, observers, captures, data packets over links.

mod common;

use std::cell::RefCell;
use std::fs::File;
use std::rc::Rc;

use common::{link, Sender, Sink, PORT};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use penstock_netsim::{
    CaptureSink, Engine, LinkChange, LinkId, NodeId, Probability, Rate, RunEnd, SimError, Time, TraceSink, Way,
};
use penstock_wire::Packet;

/// A payload that takes 1 us at 10 Gb/s with its headers (58 bytes) and the link's 24.
const PAYLOAD: u32 = 1250 - 58 - 24;

/// A sender and a sink 1 us apart.
fn pair(packets: u32) -> (Engine, NodeId, LinkId) {
    let mut engine = Engine::new(1);
    let sender = engine.add_node("sender", Box::new(Sender::new(1, 2, packets, PAYLOAD, Time::ZERO)));
    let sink = engine.add_node("sink", Box::new(Sink::default()));
    let id = engine.connect((sender, PORT), (sink, PORT), link(10, Time::from_us(1))).unwrap();
    (engine, sink, id)
}

fn arrivals_us(engine: &Engine, sink: NodeId) -> Vec<u64> {
    let log = &engine.node::<Sink>(sink).unwrap().log;
    log.iter().map(|seen| seen.at.as_ps() / 1_000_000).collect()
}

#[test]
fn a_link_changes_its_rate_for_the_frames_that_begin_after() {
    let (mut engine, sink, link) = pair(7);
    let rate = |gbps| LinkChange { rate: Some(Rate::from_gbps(gbps)), loss: None };
    engine.change_link_at(Time::from_ns(2500), link, Way::Forward, rate(5)).unwrap();
    engine.change_link_at(Time::from_ns(6100), link, Way::Both, rate(10)).unwrap();
    assert_eq!(engine.run_until(Time::from_ms(1)).unwrap(), RunEnd::Idle);
    assert_eq!(arrivals_us(&engine, sink), [2, 3, 4, 6, 8, 9, 10]);
    assert_eq!(engine.traversals(), 7);
    let error = engine.change_link_at(Time::from_ms(2), link, Way::Both, rate(0)).unwrap_err();
    assert!(matches!(error, SimError::NoRate { .. }), "{error}");
    assert_eq!(error.to_string(), "link sender:0>sink:0: rate is 0");
}

#[test]
fn a_link_that_is_down_for_a_while_loses_what_begins_meanwhile() {
    let (mut engine, sink, link) = pair(7);
    let loss = |p| LinkChange { loss: Probability::new(p), rate: None };
    engine.change_link_at(Time::from_us(3), link, Way::Forward, loss(1.0)).unwrap();
    engine.change_link_at(Time::from_us(5), link, Way::Forward, loss(0.0)).unwrap();
    engine.change_link_at(Time::from_us(5), link, Way::Back, loss(1.0)).unwrap();
    engine.run_until(Time::from_ms(1)).unwrap();
    assert_eq!(arrivals_us(&engine, sink), [2, 3, 4, 7, 8]);
    assert_eq!(engine.link_stats(link)[0].lost, 2);
    let [forward, back] = engine.link_params(link);
    assert!(forward.faults.loss.is_never() && !back.faults.loss.is_never());
}

#[test]
fn an_observer_sees_every_interval_and_the_trace_and_keeps_nothing_alive() {
    let folder = tempfile::tempdir().unwrap();
    let (mut engine, _, _) = pair(5);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = seen.clone();
    engine.set_trace(TraceSink::create(folder.path().join("trace.parquet"), &[]).unwrap(), Time::from_us(3));
    engine.observe(
        Time::from_us(2),
        Box::new(move |now, trace| {
            trace.unwrap().record(0, "observed", 1.0);
            log.borrow_mut().push(now.as_ps() / 1_000_000);
        }),
    );
    assert_eq!(engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Idle);
    assert_eq!(*seen.borrow(), [2, 4], "the last packet arrives at 6 us and nothing happens after");
    assert_eq!(engine.take_trace().unwrap().finish().unwrap(), 2);
}

#[test]
fn a_capture_holds_every_frame_in_order_with_its_time_and_cut_to_the_snap_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcapng");
    let mut engine = Engine::new(1);
    let [a, b] = [(1, 2, 3), (2, 1, 4)].map(|(src, dst, packets)| {
        let start = Time::from_ns(u64::from(src) * 300);
        engine.add_node(format!("host{src}"), Box::new(Sender::new(src, dst, packets, PAYLOAD, start)))
    });
    let captured = engine.connect((a, PORT), (b, PORT), link(10, Time::from_us(1))).unwrap();
    engine.set_capture(CaptureSink::create(&path, 100).unwrap(), &[captured]);
    engine.run_until(Time::from_ms(1)).unwrap();
    assert!(!path.exists(), "the name appears when the file is whole");
    assert_eq!(engine.take_capture().unwrap().finish().unwrap(), 7);

    let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
    let (mut names, mut frames) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.snaplen, 100);
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfSpeed(10_000_000_000)));
                names.extend(interface.options.into_iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.into_owned()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                assert_eq!((packet.data.len(), packet.original_len), (100, PAYLOAD + 58));
                frames.push((packet.timestamp.as_nanos(), packet.interface_id, packet.data.into_owned()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["host1:0>host2:0", "host2:0>host1:0"]);
    let times: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(times, [(1300, 0), (1600, 1), (2300, 0), (2600, 1), (3300, 0), (3600, 1), (4600, 1)]);
    let sent = Packet::from(common::packet(1, 2, 2, PAYLOAD)).emit();
    assert_eq!(frames[4].2, sent[..100]);
}
