// SPDX-License-Identifier: Apache-2.0
//! Scenarios of the laboratory as simulations: the simulation matches the scenario, and it runs.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt64Type};
use penstock_cc::{FlowState, ALPHA_ONE};
use penstock_lab::report::{summary, watch, End};
use penstock_lab::{
    BoardRequest, Lab, LabProgress, LabScenario, MakerError, Makers, ReadoutBoard, ReadoutEnd, ReadoutRequest,
    RunError, SoftwareOnly, SwitchRequest, METRICS,
};
use penstock_netsim::{FlowId, Node, PortId, Rate, Station, Switch, Time, TraceSink, CLASS_METRICS};

fn scenario(text: &str, overrides: &[&str]) -> LabScenario {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    let none = |_: &std::path::Path| Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"));
    LabScenario::parse("scenarios/test.toml", text, &overrides, &none).unwrap_or_else(|error| panic!("{error}"))
}

/// Notes what is asked for, and has none of it.
#[derive(Default)]
struct Requests(Vec<String>);

impl Makers for Requests {
    fn board(&mut self, request: BoardRequest) -> Result<Box<dyn Node>, MakerError> {
        for flow in &request.flows {
            self.0.push(format!("{} {} {}", request.name, flow.spec.name, flow.queue_pair.peer.ip));
        }
        Err(format!("no gateware here for {}", request.name).into())
    }

    fn switch(&mut self, request: SwitchRequest) -> Result<Box<dyn Node>, MakerError> {
        self.0.push(format!("{} ports, {} hosts, {}", request.ports, request.table.len(), request.params.buffer));
        Err("no switch here".into())
    }

    fn readout(&mut self, request: ReadoutRequest) -> Result<ReadoutEnd, MakerError> {
        let of_board = |board: &ReadoutBoard| format!("{} {}", request.name, board.sender.local.ip);
        self.0.extend(request.boards.iter().map(of_board));
        Err("no receiver here".into())
    }
}

fn build(scenario: &LabScenario) -> Lab {
    Lab::build(scenario, &mut SoftwareOnly).unwrap_or_else(|error| panic!("{error}"))
}

fn dropped(lab: &Lab) -> u64 {
    lab.switches.iter().map(|(_, id)| lab.engine.node::<Switch>(*id).unwrap().stats().dropped()).sum()
}

const TREE: &str = "[topology]\nkind = \"tree\"\n[[flow]]\nsize = \"200KB\"\n";

#[test]
fn a_tree_of_rc_flows_delivers_all_that_was_posted() {
    let scenario = scenario(TREE, &[]);
    let mut lab = build(&scenario);
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    let ledger = lab.ledger.borrow();
    assert!(ledger.flows().iter().all(|flow| flow.delivered_bytes == 200_000 && flow.delivered_messages == 1));
    // 1.6 MB through one link of 10 Gb/s, of which 98 % is payload
    assert!((Time::from_us(1_306)..Time::from_us(1_700)).contains(&lab.now()), "{}", lab.now());
    assert_eq!(dropped(&lab), 0);
    let info = &lab.flows[3];
    let station: &Station = lab.engine.node(info.sender).unwrap();
    assert_eq!(station.sender(info.sender_index.unwrap()).unwrap().flow(), FlowId(3));
    let receiver: &Station = lab.engine.node(info.receiver).unwrap();
    assert!(receiver.receiver(info.receiver_index).is_some());
}

#[test]
fn software_senders_with_cn_tags_are_notified_by_their_flow_ids() {
    let text = "[topology]\nkind = \"star\"\nboards = 2\n[link]\nrate = \"1Gbps\"\n[switch]\necn = false\n\
                [switch.qcn]\nsample = \"20KB\"\n[cc]\nlaw = \"qcn\"\n[qp]\nverb = \"send\"\n\
                [[flow]]\nsize = \"2MB\"\n[[flow]]\nsize = \"3MB\"\n";
    let run = |cn_tag: &str| {
        let scenario = scenario(text, &[cn_tag]);
        let mut lab = build(&scenario);
        assert_eq!(lab.run().unwrap(), LabProgress::Done);
        let results = summary(&lab, "test", &scenario, &End::Done);
        assert!(results.is_verified() && results.flows.iter().all(|flow| flow.feedbacks > 0), "{:?}", results.flows);
        [("board0-switch", 0), ("server0-switch", 1)].map(|(name, way): (_, usize)| {
            let link = results.links.iter().find(|link| link.name == name).unwrap();
            (link.frames[way], link.wire_bytes[way])
        })
    };
    let ([plain, out], [tagged, out_of_tagged]) = (run("qp.cn_tag=false"), run("qp.cn_tag=true"));
    assert_eq!(tagged, (plain.0, plain.1 + 4 * plain.0));
    assert_eq!(out_of_tagged, out, "the switch takes the tags off");
}

#[test]
fn one_seed_gives_one_run() {
    let run = |seed: &str| {
        let scenario =
            scenario(TREE, &[seed, "link.loss=1e-3", "flow.0.random=true", "flow.0.rate=1Gbps", "flow.0.message=10KB"]);
        let mut lab = build(&scenario);
        lab.run().unwrap();
        let ends: Vec<_> = lab.ledger.borrow().flows().iter().map(|flow| flow.last_delivery).collect();
        (lab.engine.events(), ends)
    };
    assert_eq!(run("run.seed=1"), run("run.seed=1"));
    assert_ne!(run("run.seed=1"), run("run.seed=2"));
}

#[test]
fn a_server_reads_what_its_boards_have_and_the_law_limits_the_responses() {
    let run = |overrides: &[&str]| {
        let scenario = scenario(TREE, &[&["qp.verb=read", "flow.0.message=50KB"], overrides].concat());
        let mut lab = build(&scenario);
        assert_eq!(lab.run().unwrap(), LabProgress::Done);
        let results = summary(&lab, "test", &scenario, &End::Done);
        let ends: Vec<_> = lab.ledger.borrow().flows().iter().map(|flow| flow.last_delivery).collect();
        assert!(results.flows.iter().all(|flow| flow.delivered_bytes == 200_000 && flow.messages == 4));
        (results, ends)
    };
    let (clean, ends) = run(&[]);
    assert!(clean.is_verified() && clean.flows.iter().all(|flow| flow.packets == 4 * 13 && flow.retransmissions == 0));
    assert_eq!(
        clean.flows[0].path.first().zip(clean.flows[0].path.last()),
        Some((&"board0".into(), &"server0".into()))
    );
    // 1.6 MB through one link of 10 Gb/s, of which 98 % is payload, and a request before the first
    assert!((Time::from_us(1_306)..Time::from_us(1_800)).contains(ends.iter().flatten().max().unwrap()), "{ends:?}");
    assert_eq!(run(&[]).1, ends, "one seed, one run");
    let (marked, _) = run(&["switch.kmin=5KB", "switch.pmax=1.0", "cc.profile=advcam", "flow.0.message=50KB"]);
    assert!(marked.flows.iter().map(|flow| flow.cnps).sum::<u64>() > 0);
    let (lossy, _) = run(&["link.loss=1e-3", "link.reorder=1e-3", "link.duplicate=1e-3", "qp.ack_timeout=100us"]);
    assert!(lossy.flows.iter().map(|flow| flow.retransmissions).sum::<u64>() > 0);
    assert!(lossy.flows.iter().map(|flow| flow.naks + flow.timeouts).sum::<u64>() > 0);
}

#[test]
fn events_are_read_by_the_server_that_each_belongs_to() {
    let text = "[topology]\nkind = \"star\"\nservers = 2\nboards = 5\n[triggers]\nevents = 40\n";
    let mut lab = build(&scenario(text, &["qp.verb=read"]));
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    let ledger = lab.ledger.borrow();
    assert_eq!((ledger.events.begun, ledger.events.complete), (40, 40));
    assert!(ledger.flows().iter().all(|flow| flow.delivered_messages == 20 && flow.delivered_bytes == 20_000));
}

#[test]
fn a_verilated_board_is_read_in_pull_mode_alone() {
    let text = format!("{TREE}sender = \"gateware\"\n[qp]\nverb = \"read\"\n");
    let none = |_: &std::path::Path| Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"));
    let read = |overrides: &[String]| LabScenario::parse("scenarios/test.toml", &text, overrides, &none);
    let refused = read(&[]).unwrap_err().to_string();
    assert!(refused.contains("board0 is a board of gateware, whose messages are read where it announces"), "{refused}");
    assert!(read(&["qp.mode=pull".to_owned()]).is_ok());
}

#[test]
fn a_replayed_event_is_whole_with_the_fragments_that_were_recorded() {
    let table =
        "time_us,board0,board1,board2\n1000,40000,0,0\n2000,0,0,0\n3000,0,30000,0\n4000,900,20000,0\n5000,0,0,0\n";
    let text = "[topology]\nkind = \"star\"\nservers = 2\n[cc]\nprofile = \"advcam\"\n[replay]\n";
    let read = |_: &std::path::Path| Ok(table.as_bytes().to_vec());
    let scenario =
        LabScenario::parse("scenarios/test.toml", text, &[], &read).unwrap_or_else(|error| panic!("{error}"));
    let mut lab = build(&scenario);
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    let ledger = lab.ledger.borrow();
    let delivered: Vec<u64> = ledger.flows().iter().map(|flow| flow.delivered_bytes).collect();
    // events 0, 2, 4 go to server0, 1 and 3 to server1; board2 never sends
    assert_eq!(delivered, [40_000, 900, 30_000, 20_000, 0, 0]);
    assert_eq!((ledger.events.begun, ledger.events.complete), (3, 3));
    assert_eq!((ledger.completion.count(), ledger.events.completion.count()), (4, 3));
    let slowest = |flow: usize| ledger.flows()[flow].completion.max().unwrap();
    assert_eq!(ledger.events.completion.max(), Some(slowest(0)), "each fragment had its link to itself");
    // 40.8 kB of frames at 10 Gb/s, two delays of 1 us, and at the second link the last packet behind a full one
    assert!((Time::from_ns(37_500)..Time::from_ns(38_500)).contains(&slowest(0)), "{}", slowest(0));
}

#[test]
fn flows_spread_over_paths_of_equal_cost() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 32\n\
        [[flow]]\nfrom = \"host{0..31}\"\nto = \"host{32..63}\"\npairs = \"zip\"\nsize = \"8KB\"\n";
    let mut lab = build(&scenario(text, &[]));
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    let used = lab.links.iter().filter(|(name, _)| name.starts_with("leaf0-spine"));
    let frames: Vec<u64> = used.map(|(_, id)| lab.engine.link_stats(*id)[0].frames).collect();
    assert!(frames.len() == 4 && frames.iter().all(|frames| *frames > 0), "{frames:?}");
}

#[test]
fn a_hotspot_slows_its_flow_for_as_long_as_it_lasts() {
    let text = "[topology]\nkind = \"star\"\nboards = 1\n[[flow]]\n[[change]]\nlink = \"switch-server0\"\n\
        direction = \"forward\"\nat = \"1ms\"\nuntil = \"2ms\"\nrate = \"1Gbps\"\n";
    let mut lab = build(&scenario(text, &["cc.law=off", "flow.0.message=10KB", "run.time_limit=3ms"]));
    let mut delivered = vec![0];
    for ms in 1..=3 {
        lab.advance(Time::from_ms(ms)).unwrap();
        delivered.push(lab.ledger.borrow().flow(FlowId(0)).delivered_bytes);
    }
    let per_ms: Vec<u64> = delivered.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    // in KB: 1225 at 10 Gb/s, 122 at 1 Gb/s
    assert!(per_ms[0] > 1_190 && (118..140).contains(&per_ms[1]) && per_ms[2] > 1_190, "{per_ms:?}");
    let link = lab.links.iter().find(|(name, _)| name == "server0-switch").unwrap().1;
    assert_eq!(lab.engine.link_params(link).map(|params| params.rate), [Rate::from_gbps(10); 2]);
}

#[test]
fn a_camera_builds_every_event_in_its_server() {
    let text =
        "[topology]\nkind = \"camera\"\nmodules = 37\nleaves = 3\nservers = 2\n[link.uplink]\nrate = \"100Gbps\"\n\
        [link.server]\nrate = \"100Gbps\"\n[triggers]\nkind = \"shower\"\nevents = 50\n";
    let mut lab = build(&scenario(text, &[]));
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    let ledger = lab.ledger.borrow();
    assert_eq!((ledger.events.begun, ledger.events.complete), (50, 50));
    let per_server = |server: &str| -> u64 {
        let flows = lab.flows.iter().filter(|flow| flow.to == server);
        flows.map(|flow| ledger.flow(flow.id).delivered_messages).sum()
    };
    assert_eq!((per_server("server0"), per_server("server1")), (37 * 25, 37 * 25));
    assert_eq!(dropped(&lab), 0);
}

#[test]
fn a_circle_of_pauses_ends_the_run_with_its_ports() {
    let mut text = "[topology]\nkind = \"nodes\"\n".to_owned();
    for k in 0..5 {
        text += &format!("[[topology.node]]\nname = \"s{k}\"\nkind = \"switch\"\n[[topology.node]]\nname = \"h{k}\"\n");
    }
    for k in 0..5 {
        text += &format!("[[topology.link]]\na = \"s{k}\"\nb = \"s{}\"\n", (k + 1) % 5);
        text += &format!("[[topology.link]]\na = \"h{k}\"\nb = \"s{k}\"\n");
        text += &format!("[[flow]]\nfrom = \"h{k}\"\nto = \"h{}\"\n", (k + 2) % 5);
    }
    let mut lab = build(&scenario(&text, &["cc.law=off", "switch.ecn=false"]));
    match lab.run() {
        Err(RunError::Deadlock { cycle, .. }) => {
            let mut names: Vec<&str> = cycle.0.iter().map(|port| port.name.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, ["s0", "s1", "s2", "s3", "s4"], "{cycle}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn gateware_is_requested_by_host_with_its_flows() {
    let text =
        "[topology]\nkind = \"star\"\nboards = 2\nservers = 2\n[[flow]]\nfrom = \"board1\"\nsender = \"gateware\"\n\
        [[flow]]\nfrom = \"board0\"\n";
    let mut requests = Requests::default();
    let error = Lab::build(&scenario(text, &[]), &mut requests).err().unwrap().to_string();
    assert_eq!(requests.0, ["board1 board1>server0 10.0.0.3", "board1 board1>server1 10.0.0.4"]);
    assert_eq!(error, "board1: no gateware here for board1");
}

#[test]
fn a_readout_is_requested_with_its_boards_and_refused_where_there_is_none() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/incast-3.toml");
    let overrides = ["topology.boards=2", "readout.slot_size=1MiB"].map(str::to_owned);
    let scenario = LabScenario::load(path, &overrides).unwrap();
    let mut requests = Requests::default();
    let error = Lab::build(&scenario, &mut requests).err().unwrap().to_string();
    assert_eq!(requests.0, ["server0 10.0.0.1", "server0 10.0.0.2"]);
    assert_eq!(error, "readout: no receiver here");
    let error = Lab::build(&scenario, &mut SoftwareOnly).err().unwrap().to_string();
    assert!(error.contains("server0") && error.contains("`penstock run`"), "{error}");
}

#[test]
fn tcp_flows_of_both_kinds_deliver_all_that_was_posted() {
    let text = "[topology]\nkind = \"star\"\nboards = 3\n[tcp]\nsack = true\n\
        [[flow]]\nfrom = \"board0\"\nprotocol = \"tcp\"\nsize = \"2MB\"\ntcp = { variant = \"cubic\" }\n\
        [[flow]]\nfrom = \"board1\"\nprotocol = \"simple-tcp\"\nsize = \"2MB\"\nmessage = \"2048B\"\n\
        [[flow]]\nfrom = \"board2\"\nsize = \"2MB\"\n";
    let mut lab = build(&scenario(text, &[]));
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    assert!(lab.ledger.borrow().flows().iter().all(|flow| flow.delivered_bytes == 2_000_000));
    let names: Vec<&str> = lab.flows.iter().map(|flow| flow.protocol.name()).collect();
    assert_eq!(names, ["tcp", "simple-tcp", "rc"]);
    let sender: &Station = lab.engine.node(lab.flows[0].sender).unwrap();
    assert!(sender.tcp_sender(lab.flows[0].sender_index.unwrap()).unwrap().counters().segments >= 1370);
}

#[test]
fn a_flow_of_a_class_of_its_own_is_lossless_and_waits_for_no_other_class() {
    let text = "[topology]\nkind = \"star\"\nboards = 4\n[cc]\nlaw = \"off\"\n[switch]\nbuffer = \"600KB\"\n\
                [[flow]]\nfrom = \"board{0..2}\"\nsize = \"1MB\"\n\
                [[flow]]\nname = \"urgent\"\nfrom = \"board3\"\nsize = \"40KB\"\nstart = \"300us\"\ndscp = 32\n";
    let scenario = scenario(text, &[]);
    assert_eq!(scenario.switches[0].params.pfc.unwrap().classes, 1 << 3 | 1 << 4);
    let mut lab = build(&scenario);
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    assert_eq!(dropped(&lab), 0);
    let stats = lab.engine.node::<Switch>(lab.switches[0].1).unwrap().port_stats(PortId(4), lab.now());
    assert!(stats.classes[3].tx_frames >= 3 * 245 && stats.classes[4].tx_frames >= 10);
    let ledger = lab.ledger.borrow();
    let urgent = ledger.flow(FlowId(3));
    // ten packets of 3.3 us by strict priority over the incast of class 3, of which one frame may be on the wire
    assert!(urgent.last_delivery.unwrap() < Time::from_us(300 + 33 + 15), "{:?}", urgent.last_delivery);
}

/// What the server's port of the switch shows: times in ps, metrics and values.
fn samples_of_the_server_port(overrides: &[&str]) -> Vec<(u64, String, f64)> {
    let text = "[topology]\nkind = \"star\"\nboards = 4\n[[flow]]\nfrom = \"board{0..1}\"\nsize = \"1MB\"\n\
                [[flow]]\nname = \"urgent\"\nfrom = \"board{2..3}\"\nsize = \"200KB\"\nstart = \"300us\"\ndscp = 32\n";
    let mut lab = build(&scenario(text, overrides));
    lab.engine.set_trace(TraceSink::in_memory(), Time::from_us(20));
    lab.run().unwrap();
    let mut samples = Vec::new();
    for batch in lab.engine.take_trace().unwrap().into_batches().unwrap() {
        let names = |column: usize, row: usize| {
            let keys = batch.column(column).as_dictionary::<UInt16Type>();
            keys.values().as_string::<i32>().value(usize::from(keys.keys().value(row))).to_owned()
        };
        for row in 0..batch.num_rows() {
            if names(1, row) == "switch" && batch.column(2).as_primitive::<UInt16Type>().value(row) == 4 {
                let time = batch.column(0).as_primitive::<UInt64Type>().value(row);
                samples.push((time, names(3, row), batch.column(4).as_primitive::<Float64Type>().value(row)));
            }
        }
    }
    samples
}

#[test]
fn queues_and_pauses_are_traced_by_port_or_by_class_of_each_port() {
    let by_port = samples_of_the_server_port(&[]);
    let by_class = samples_of_the_server_port(&["trace.classes=true"]);
    let queue = |samples: &[(u64, String, f64)], time: u64, name: &str| -> f64 {
        let mine = samples.iter().filter(|(at, metric, _)| *at == time && metric.starts_with(name));
        mine.map(|(_, _, value)| value).sum()
    };
    let mut both = 0;
    for (time, _, bytes) in by_port.iter().filter(|(_, metric, _)| metric == "queue_bytes") {
        assert_eq!(queue(&by_class, *time, "queue_bytes_class"), *bytes, "at {time} ps");
        let [low, high] = ["queue_bytes_class3", "queue_bytes_class4"].map(|class| queue(&by_class, *time, class));
        both += usize::from(low > 0.0 && high > 0.0);
    }
    assert!(both > 3, "both classes wait in {both} samples");
    assert!(!by_port.iter().any(|(_, metric, _)| metric.contains("class")));
    assert!(!by_class.iter().any(|(_, metric, _)| metric == "queue_bytes"));
    assert!(by_class.iter().any(|(_, metric, _)| metric == "pfc_paused_class4"));
}

#[test]
fn a_front_end_whose_memory_is_full_loses_what_comes() {
    let text = "[run]\ntime_limit = \"20ms\"\nstop = \"time\"\n[topology]\nkind = \"star\"\nboards = 1\n\
                [link.server]\nrate = \"1Gbps\"\n[[flow]]\nprotocol = \"simple-tcp\"\nmessage = \"2500B\"\n\
                interval = \"10us\"\n[switch]\nbuffer = \"2MB\"\npfc = false\necn = false\n";
    // twice the link's rate for 20 ms is 2.5 MB too much
    for (buffer, refused) in [("100KB", 900..1100), ("1MB", 550..750)] {
        let scenario = scenario(text, &[&format!("tcp.send_buffer={buffer}")]);
        let mut lab = build(&scenario);
        lab.run().unwrap();
        let info = &lab.flows[0];
        let sender = lab.engine.node::<Station>(info.sender).unwrap().tcp_sender(info.sender_index.unwrap()).unwrap();
        assert!(refused.contains(&sender.refused()), "{buffer}: {}", sender.refused());
        let posted = lab.ledger.borrow().flow(FlowId(0)).posted_bytes;
        assert_eq!(posted, (2001 - sender.refused()) * 2500, "one message every 10 us, at 0 and at 20 ms too");
    }
}

/// What a host sees of the queue between it and its rate limiter: the longest smoothed round trip in us, the most bytes
/// in the queue, segments dropped there, segments sent again, and its share of the line.
fn behind_a_limiter_queue(overrides: &[&str]) -> (f64, f64, u64, u64, f64) {
    let text = "[run]\ntime_limit = \"400ms\"\nstop = \"time\"\n[topology]\nkind = \"star\"\nboards = 1\n\
                [link]\nrate = \"1Gbps\"\n[link.server]\nrate = \"10Gbps\"\n[tcp]\nmin_rto = \"10ms\"\ndelayed_ack = \"1ms\"\n\
                [[flow]]\nprotocol = \"tcp\"\n";
    let scenario = scenario(text, overrides);
    let mut lab = build(&scenario);
    lab.engine.set_trace(TraceSink::in_memory(), Time::from_ms(1));
    lab.run().unwrap();
    let most = samples(lab.engine.take_trace().unwrap(), &["smoothed_rtt_us", "limiter_queue_bytes"]);
    let info = &lab.flows[0];
    let sender = lab.engine.node::<Station>(info.sender).unwrap().tcp_sender(info.sender_index.unwrap()).unwrap();
    let share = lab.ledger.borrow().flow(FlowId(0)).delivered_bytes as f64 * 8.0 / 0.4e9;
    (most[0], most[1], sender.limiter_drops(), sender.counters().retransmitted, share)
}

/// The highest sample of each metric.
fn samples(trace: TraceSink, metrics: &[&str]) -> Vec<f64> {
    let mut most = vec![0.0f64; metrics.len()];
    for batch in trace.into_batches().unwrap() {
        let keys = batch.column(3).as_dictionary::<UInt16Type>();
        let words = keys.values().as_string::<i32>();
        let values = batch.column(4).as_primitive::<Float64Type>();
        for (key, value) in keys.keys().values().iter().zip(values.values()) {
            if let Some(at) = metrics.iter().position(|metric| *metric == words.value(usize::from(*key))) {
                most[at] = most[at].max(*value);
            }
        }
    }
    most
}

#[test]
fn a_host_sees_the_queue_of_its_rate_limiter_in_its_round_trips_and_its_end_as_a_stop_or_a_loss() {
    let (rtt, queue, drops, again, share) = behind_a_limiter_queue(&[]);
    assert!(rtt < 200.0 && queue < 2000.0 && (drops, again) == (0, 0) && share > 0.9, "{rtt} {queue} {share}");
    let (rtt, queue, drops, again, share) = behind_a_limiter_queue(&["tcp.limiter_queue=200KB"]);
    // 200 KB at 1 Gb/s are 1600 us
    assert!((1500.0..2000.0).contains(&rtt), "{rtt}");
    assert!((195e3..200e3).contains(&queue) && (drops, again) == (0, 0) && share > 0.9, "{queue} {drops} {share}");
    let (rtt, queue, drops, again, share) =
        behind_a_limiter_queue(&["tcp.limiter_queue=200KB", "tcp.limiter_full=drop"]);
    assert!(rtt < 2000.0 && queue <= 200e3, "{rtt} {queue}");
    assert!(drops > 0 && again >= drops && share > 0.85, "{drops} {again} {share}");
}

/// One sender of 10 Gb/s whose receiver sends CNPs for payload above 5 Gb/s: alpha and R_C in Gb/s before each cut.
fn cuts_above_a_rate(overrides: &[&str]) -> Vec<(f64, f64)> {
    let text = include_str!("../../../scenarios/advcam-9-network.toml");
    let scenario = scenario(text, &[&["flow.0.sender=software"], overrides].concat());
    let mut lab = build(&scenario);
    let mut cuts = Vec::new();
    let mut before = (1.0, 10.0);
    for us in (1..).take_while(|us| Time::from_us(*us) < scenario.run.time_limit) {
        lab.engine.run_until(Time::from_us(us)).unwrap();
        let (now, info) = (Time::from_us(us), &lab.flows[0]);
        let (node, index) = (info.sender, info.sender_index.unwrap());
        let sender = lab.engine.node_mut::<Station>(node).unwrap().sender_mut(index).unwrap();
        let FlowState::Dcqcn(state) = sender.reaction_point(now) else { panic!("the law is DCQCN") };
        let rate = state.rate_current.to_rate(penstock_wire::gateware::CLOCK_HZ).bits_per_second() as f64 / 1e9;
        if rate < before.1 {
            cuts.push(before);
        }
        before = (f64::from(state.alpha()) / f64::from(ALPHA_ONE), rate);
    }
    cuts
}

#[test]
fn a_receiver_that_measures_sends_cnps_at_alpha_1_0_8_and_0_3_with_one_cooldown() {
    let cuts = cuts_above_a_rate(&[]);
    let [first, second, third] = cuts[..] else { panic!("three CNPs, not {cuts:?}") };
    assert_eq!(first, (1.0, 10.0));
    assert!((0.75..0.85).contains(&second.0) && (second.1 - 5.0).abs() < 0.01, "{second:?}");
    assert!((0.25..0.35).contains(&third.0) && (4.5..5.0).contains(&third.1), "{third:?}");
    assert!(cuts_above_a_rate(&["qp.cnp_above=9.9Gbps"]).is_empty(), "no payload is above the line's");
}

#[test]
fn the_rate_of_all_flows_counts_messages_that_are_under_way() {
    let text =
        "[run]\nstop = \"time\"\ntime_limit = \"2ms\"\n[topology]\nkind = \"star\"\n[cc]\nlaw = \"off\"\n[[flow]]\n";
    let scenario = scenario(text, &[]);
    let mut lab = build(&scenario);
    lab.run().unwrap();
    let summary = summary(&lab, "test", &scenario, &End::Done);
    let line = 10.0 * 4096.0 / 4178.0; // a packet of 4096 bytes takes 82 bytes more on the wire
    assert!((0.98 * line..line).contains(&summary.aggregate_gbps), "{} of {line} Gb/s", summary.aggregate_gbps);
    let sum: f64 = summary.flows.iter().map(|flow| flow.goodput_gbps).sum();
    assert!((sum - summary.aggregate_gbps).abs() < 1e-9);
}

/// Names of the metrics that a run of all kinds of flows records.
fn metrics_recorded(overrides: &[&str]) -> BTreeSet<String> {
    let text = "[topology]\nkind = \"star\"\nboards = 3\n[[flow]]\nfrom = \"board{0..1}\"\nsize = \"200KB\"\n\
                [[flow]]\nfrom = \"board2\"\nprotocol = \"tcp\"\nsize = \"200KB\"\n\
                [[flow]]\nfrom = \"board2\"\nsize = \"200KB\"\ncc = { law = \"qcn\" }\n\
                [[flow]]\nfrom = \"board1\"\nmode = \"pull\"\nsize = \"200KB\"\n";
    let scenario = scenario(text, overrides);
    let mut lab = build(&scenario);
    watch(&mut lab, &scenario);
    lab.engine.set_trace(TraceSink::in_memory(), Time::from_us(20));
    lab.run().unwrap();
    let mut names = BTreeSet::new();
    for batch in lab.engine.take_trace().unwrap().into_batches().unwrap() {
        let keys = batch.column(3).as_dictionary::<UInt16Type>();
        let words = keys.values().as_string::<i32>();
        names.extend(keys.keys().values().iter().map(|key| words.value(usize::from(*key)).to_owned()));
    }
    names
}

#[test]
fn a_trace_may_select_what_is_recorded_and_documented_and_nothing_else() {
    let by_port = metrics_recorded(&[]);
    let metrics: BTreeSet<String> = METRICS.iter().map(|name| (*name).to_owned()).collect();
    let missing: Vec<&str> = metrics.iter().map(String::as_str).filter(|name| !by_port.contains(*name)).collect();
    assert_eq!(
        missing,
        [
            "cnm_sent",
            "events_built",
            "paused_fraction",
            "ring_fill_bytes",
            "segments",
            "segments_out_of_order",
            "wire_throughput_bps",
        ],
        "of congestion points, a readout, also over TCP, and verilated boards, also with TCP"
    );
    assert!(by_port.is_subset(&metrics), "{by_port:?}");
    let by_class = metrics_recorded(&["trace.classes=true"]);
    let of_classes = CLASS_METRICS.as_flattened();
    assert!(by_class.iter().all(|name| metrics.contains(name) || of_classes.contains(&name.as_str())), "{by_class:?}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab.md")).unwrap();
    assert!(METRICS.iter().all(|name| page.contains(&format!("`{name}`"))));
}

/// 64 boards into one link, all from the same moment on.
const INCAST: &str = include_str!("../../../scenarios/incast-64.toml");

/// Time for which its switch has paused boards, in sum.
fn pausing(overrides: &[&str]) -> Time {
    let mut lab = build(&scenario(INCAST, overrides));
    lab.run().unwrap();
    let (_, id) = lab.switches[0];
    let (switch, now): (&Switch, _) = (lab.engine.node(id).unwrap(), lab.now());
    let of_port = |port| switch.port_stats(PortId(port), now).pausing.0;
    Time((0..switch.port_count()).map(of_port).sum())
}

#[test]
fn boards_that_start_at_their_share_are_never_paused() {
    for boards in ["topology.boards=64", "topology.boards=256"] {
        assert_eq!(pausing(&["run.time_limit=60ms", boards]), Time::ZERO);
    }
}

#[test]
fn boards_that_start_at_the_line_and_whose_timers_pauses_hold_are_paused_by_the_start_alone() {
    let line = "cc.rate_start=10Gbps";
    let (start, held) = (pausing(&["run.time_limit=20ms", line]), pausing(&["run.time_limit=60ms", line]));
    assert_eq!(start, held, "no pause after the burst of the start");
    let running = ["run.time_limit=60ms", line, "cc.hold_timer=false"];
    assert!(pausing(&running) > Time(5 * held.0), "timers that run on raise rates that PFC then holds");
}

#[test]
fn the_share_of_a_board_follows_from_the_topology() {
    for (overrides, share, least) in [
        (vec![], "156.25Mbps", "146.484375Mbps"),
        (vec!["topology.boards=10", "topology.servers=2"], "1Gbps", "937.5Mbps"),
        (vec!["topology.boards=4", "link.server.rate=100Gbps"], "10Gbps", "9.375Gbps"),
        (vec!["cc.share=40Mbps"], "40Mbps", "37.5Mbps"),
        (vec!["cc.rate_min=1Mbps"], "156.25Mbps", "1Mbps"),
    ] {
        let settings = scenario(INCAST, &overrides).settings;
        let value = |key: &str| settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        assert_eq!((value("cc.share"), value("cc.rate_min")), (Some(share), Some(least)), "{overrides:?}");
    }
}

#[test]
fn triggers_without_an_end_are_ended_by_the_time_limit_and_what_is_under_way_then_is_no_fault() {
    let text = "[topology]\nkind = \"star\"\nboards = 4\n[triggers]\nrate = \"10kHz\"\nfragment = \"10KB\"\n";
    let ended = |overrides: &[&str]| {
        let scenario = scenario(text, overrides);
        let mut lab = build(&scenario);
        watch(&mut lab, &scenario);
        let end = End::of(lab.run().unwrap(), &scenario).unwrap();
        let found = summary(&lab, "test", &scenario, &end);
        (found.end, found.is_verified(), found.events.unwrap())
    };
    // Periodic triggers: from one that has just come to one whose event is whole.
    let mut under_way = (0, 0);
    for stop in ["run.stop=done", "run.stop=time"] {
        for limit in (5_000..5_100).step_by(4).map(|us| format!("run.time_limit={us}us")) {
            let (end, is_verified, events) = ended(&["triggers.kind=periodic", &limit, stop]);
            assert!(end == "done" && is_verified, "{limit}, {stop}: {end}, {events:?}");
            under_way = (under_way.0 + events.in_flight, under_way.1 + events.never_begun);
        }
    }
    assert!(under_way.0 > 0 && under_way.1 > 0, "{under_way:?}");
    // Triggers with an end have to come to it, and the network has to keep up with those that have none.
    let finite = ["triggers.kind=periodic", "triggers.events=40", "run.time_limit=3910us"];
    let (end, is_verified, _) = ended(&finite);
    assert_eq!((end, is_verified), ("time limit", false));
    let (end, is_verified, events) = ended(&["run.time_limit=20ms", "triggers.fragment=50KB"]);
    assert!(end == "done" && !is_verified && events.overdue > 0, "{end}, {events:?}");
}
