// SPDX-License-Identifier: Apache-2.0
//! Flows that their receivers pull: few boards of many fill the line at once, events complete, queues stay below the
//! bound whatever the topology, losses recover, and what cannot be pulled is refused by name.

use penstock_lab::report::{compare_with_ideal, summary, End, LabSummary};
use penstock_lab::{Lab, LabProgress, LabScenario, SoftwareOnly};
use penstock_netsim::{FlowId, Time};

fn read(text: &str, overrides: &[&str]) -> Result<LabScenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    let none = |_: &std::path::Path| Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"));
    LabScenario::parse("scenarios/test.toml", text, &overrides, &none).map_err(|error| error.to_string())
}

fn build(text: &str, overrides: &[&str]) -> (LabScenario, Lab) {
    let scenario = read(text, overrides).unwrap_or_else(|error| panic!("{error}"));
    let lab = Lab::build(&scenario, &mut SoftwareOnly).unwrap_or_else(|error| panic!("{error}"));
    (scenario, lab)
}

fn run(text: &str, overrides: &[&str]) -> LabSummary {
    let (scenario, mut lab) = build(text, overrides);
    let progress = lab.run().unwrap();
    summary(&lab, "test", &scenario, &End::of(progress, &scenario).unwrap())
}

const STAR: &str = "[topology]\nkind = \"star\"\n[qp]\nmode = \"pull\"\n";

#[test]
fn one_board_of_many_has_the_whole_line_at_once() {
    let text = format!("{STAR}[[flow]]\nfrom = \"board0\"\nmessage = \"100KB\"\n");
    let (_, mut lab) = build(&text, &["topology.boards=64", "run.time_limit=2ms"]);
    let mut delivered = vec![0];
    for ms in 1..=2 {
        lab.advance(Time::from_ms(ms)).unwrap();
        delivered.push(lab.ledger.borrow().flow(FlowId(0)).delivered_bytes);
    }
    let per_ms: Vec<u64> = delivered.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    // in KB: 1224 at 10 Gb/s with headers
    assert!(per_ms[0] > 1_170 && per_ms[1] > 1_215, "{per_ms:?}");
}

#[test]
fn all_boards_at_once_fill_the_line_with_a_short_queue() {
    let results = run(&format!("{STAR}[[flow]]\nsize = \"1MB\"\nmessage = \"50KB\"\n"), &["topology.boards=64"]);
    let pull = results.pull.as_ref().expect("flows are pulled");
    assert!(results.is_verified() && results.aggregate_gbps > 9.7, "{}", results.aggregate_gbps);
    assert!(pull.peak_queue_bytes <= pull.queue_bound_bytes.unwrap(), "{pull:?}");
    assert!(pull.peak_queue_bytes < 50_000, "{pull:?}");
    let paused: f64 = results.switches[0].ports.iter().map(|port| port.pausing_s).sum();
    assert_eq!((paused, results.switches[0].dropped_buffer), (0.0, 0));
}

#[test]
fn events_complete_in_their_order_at_their_servers() {
    for servers in ["topology.servers=1", "topology.servers=4"] {
        let text = format!("{STAR}[triggers]\nevents = 400\nfragment = \"2KB\"\n");
        let overrides = [servers, "topology.boards=20", "triggers.rate=20kHz"];
        let mut results = run(&text, &overrides);
        compare_with_ideal(&read(&text, &overrides).unwrap(), &mut results);
        let (events, ideal) = (results.events.unwrap(), results.ideal.unwrap().completion_us.p99.unwrap());
        assert_eq!((events.triggered, events.complete, events.lost), (400, 400, 0));
        assert!(events.p99_us.unwrap() < (1.2 * ideal).max(ideal + 100.0), "{events:?}, {ideal} us at best");
        let pull = results.pull.unwrap();
        assert!(pull.hosts.iter().all(|host| host.refused == 0 && host.silences == 0));
        assert!(pull.peak_queue_bytes <= pull.queue_bound_bytes.unwrap(), "{pull:?}");
    }
}

#[test]
fn no_queue_is_longer_than_what_was_requested_and_announced_whatever_the_network() {
    let flow = "[[flow]]\nsize = \"400KB\"\nmessage = \"20KB\"\n";
    let tree = "[topology]\nkind = \"tree\"\nboards_per_leaf = [12, 3]\n[qp]\nmode = \"pull\"\n";
    let camera = "[topology]\nkind = \"camera\"\nmodules = 37\nleaves = 3\nservers = 2\n[qp]\nmode = \"pull\"\n\
                  [triggers]\nkind = \"shower\"\nevents = 100\nrate = \"2kHz\"\n";
    let star = format!("{STAR}{flow}");
    let tree = format!("{tree}{flow}");
    let cases: [(&str, &[&str]); 10] = [
        (&star, &["topology.boards=3"]),
        (&star, &["topology.boards=48", "link.server.rate=5Gbps"]),
        (&star, &["topology.boards=12", "link.at.board0-switch.rate=1Gbps", "link.server.rate=25Gbps"]),
        (&star, &["topology.boards=8", "link.delay=50us", "qp.mtu=1024"]),
        (&star, &["topology.boards=8", "switch.pfc=false", "switch.buffer=512KB", "pull.window=30KB"]),
        (&star, &["topology.boards=8", "topology.servers=3", "flow.0.message=3KB"]),
        (&star, &["topology.boards=16", "flow.0.rate=600Mbps", "flow.0.random=true", "flow.0.message=700B"]),
        (&tree, &["link.server.rate=40Gbps"]),
        (&tree, &["link.uplink.rate=2Gbps", "flow.0.stagger=100us"]),
        (camera, &["link.uplink.rate=100Gbps", "link.server.rate=100Gbps"]),
    ];
    for (text, overrides) in cases {
        println!("{overrides:?}");
        let results = run(text, overrides);
        let pull = results.pull.as_ref().unwrap();
        assert!(results.is_verified(), "{overrides:?}: {}", results.end);
        println!("{pull:?}");
        assert!(pull.peak_queue_bytes <= pull.queue_bound_bytes.unwrap(), "{overrides:?}: {pull:?}");
        assert!(pull.hosts.iter().all(|host| host.refused == 0), "{overrides:?}: {pull:?}");
        assert!(results.flows.iter().all(|flow| flow.retransmissions == 0 && flow.cnps == 0), "{overrides:?}");
    }
}

#[test]
fn lost_repeated_and_reordered_packets_cost_no_byte() {
    let text = format!("{STAR}[[flow]]\nsize = \"300KB\"\nmessage = \"7KB\"\n");
    let faults = ["link.loss=5e-3", "link.duplicate=5e-3", "link.reorder=5e-3", "qp.ack_timeout=100us"];
    for seed in ["run.seed=1", "run.seed=2", "run.seed=3"] {
        println!("{seed}");
        let overrides = [&faults[..], &["topology.boards=6", seed]].concat();
        let results = run(&text, &overrides);
        assert!(results.is_verified(), "{}", results.end);
        assert!(results.flows.iter().all(|flow| flow.delivered_bytes == 300_000 && flow.messages == 43));
        assert!(results.flows.iter().map(|flow| flow.retransmissions).sum::<u64>() > 0);
        assert_eq!(results.pull.as_ref().unwrap().queue_bound_bytes, None, "what is repeated was requested once");
        assert_eq!(
            serde_json::to_string(&results.flows).unwrap(),
            serde_json::to_string(&run(&text, &overrides).flows).unwrap()
        );
    }
}

#[test]
fn other_traffic_passes_beside_what_is_pulled() {
    let text = format!(
        "{STAR}[[flow]]\nfrom = \"board{{0..2}}\"\nmessage = \"50KB\"\n\
         [[flow]]\nname = \"other\"\nfrom = \"board3\"\nmode = \"push\"\nrate = \"3Gbps\"\nmessage = \"10KB\"\n[flow.cc]\nlaw = \"off\"\n"
    );
    let results = run(&text, &["topology.boards=4", "run.time_limit=20ms"]);
    let rate = |name: &str| -> f64 {
        results.flows.iter().filter(|flow| flow.name.starts_with(name)).map(|flow| flow.goodput_gbps).sum()
    };
    let (other, pulled) = (rate("other"), rate("board"));
    assert!(other > 2.9 && other + pulled > 9.3, "{other} and {pulled} Gb/s");
    assert_eq!(results.pull.unwrap().queue_bound_bytes, None, "not all of it was requested");
}

#[test]
fn a_host_that_leaves_is_skipped_and_its_flow_fails_with_a_reason() {
    let text = format!(
        "{STAR}[[flow]]\nsize = \"2MB\"\nmessage = \"20KB\"\n[[change]]\nlink = \"board0-switch\"\nat = \"300us\"\nloss = 1.0\n"
    );
    let (scenario, mut lab) = build(&text, &["topology.boards=4", "qp.ack_timeout=2ms"]);
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    let results = summary(&lab, "test", &scenario, &End::Done);
    let failed: Vec<bool> = results.flows.iter().map(|flow| flow.failed.is_some()).collect();
    assert_eq!(failed, [true, false, false, false]);
    assert!(results.flows[1..].iter().all(|flow| flow.complete && flow.end_s.unwrap() < 8e-3), "three have the line");
    assert!(results.pull.unwrap().hosts[0].silences > 0);
}

#[test]
fn what_cannot_be_pulled_is_refused_by_name() {
    let flow = "[[flow]]\nsize = \"1MB\"\n";
    for (overrides, key, reason) in [
        (&["flow.0.sender=gateware", "pull.slots=64"][..], "pull.slots", "which announces up to 256 fragments"),
        (&["qp.consumer_rate=1Gbps"], "qp.consumer_rate", "server0 takes at once what it pulls"),
        (&["pull.window=4KB"], "pull.window", "has no room for one packet; allowed is 4182B and more"),
        (&["pull.slots=16"], "pull.slots", "32"),
        (&["pull.patience=0us"], "pull.patience", "more than 0"),
        (&["flow.0.protocol=tcp", "flow.0.mode=pull"], "mode", "a server pulls over \"rc\""),
        (&["qp.mode=drag"], "qp.mode", "\"push\""),
    ] {
        let refused = read(&format!("{STAR}{flow}"), overrides).expect_err("refused");
        assert!(refused.contains(key) && refused.contains(reason), "{overrides:?}: {refused}");
    }
    let warnings = read(&format!("{STAR}{flow}"), &["qp.mode=push", "pull.slots=64"]).unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.to_string().contains("no flow is pulled")), "{warnings:?}");
    let warnings = read(&format!("{STAR}{flow}"), &["cc.g=1/64"]).unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.to_string().contains("no flow is under cc.law")), "{warnings:?}");
}
