// SPDX-License-Identifier: Apache-2.0
//! Scenarios of the laboratory: the documented keys are those that are read; errors are refused with place, key, value
//! and remedy; the scenarios of the papers are valid.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use penstock_lab::{LabScenario, SwitchScenario, Workload};
use penstock_netsim::{Rate, Time};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files that test scenarios name.
fn file(path: &Path) -> io::Result<Vec<u8>> {
    if path.extension().is_some_and(|end| end == "npz") && path != Path::new("damaged.npz") {
        return std::fs::read(path);
    }
    let text = match path.to_str() {
        Some("scenarios/topology.txt") => "4 1 3\n3\n0 3 10Gbps 1us 0\n1 3 10Gbps 1us 0\n2 3 10Gbps 1us 0\n",
        Some("scenarios/flow.txt") => "2\n0 2 3 100 200000 0\n1 2 3 100 5000 0.5\n",
        Some("scenarios/config.txt") => "RATE_AI 7Mb/s\nRATE_HAI 8Mb/s\nFANCY 1\n",
        Some("damaged.npz") => "no archive",
        Some("twice.csv") => "time_us,board0,board0\n10,100,200\n",
        Some("silent.csv") => "time_us,board0,board1\n10,0,0\n20,0,0\n",
        Some("sparse.csv") => "time_us,board0,board1,board2\n10,9000,0,100\n20,0,0,0\n2000000,0,5,0\n",
        Some("scenarios/events.csv") => "time_us,board0,board2\n10,100,200\n20,300,400\n",
        _ => return Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    };
    Ok(text.as_bytes().to_vec())
}

fn parse(text: &str, overrides: &[&str]) -> Result<LabScenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    LabScenario::parse("scenarios/test.toml", text, &overrides, &file).map_err(|error| error.to_string())
}

const STAR: &str = "[topology]\nkind = \"star\"\n[[flow]]\nsize = \"1MB\"\n";

fn scenarios() -> Vec<PathBuf> {
    let files = std::fs::read_dir(root().join("scenarios")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    // advcam-9 and its variants are of emulated switches
    files.retain(|path| std::fs::read_to_string(path).unwrap().contains("kind = \"network\""));
    files
}

#[test]
fn every_scenario_of_the_papers_is_sound_and_unwarned() {
    let files = scenarios();
    assert!(files.len() >= 12, "{files:?}");
    let mut report = String::new();
    for path in files {
        let scenario = LabScenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        // Some show what happens when more is offered than a link carries.
        let warnings: Vec<String> = scenario.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings.iter().all(|one| one.contains(" is offered ")), "{warnings:?}");
        let events = scenario.events.as_ref().map_or(0, |events| events.times.len());
        let nodes = scenario.topology.nodes.len();
        let name = path.file_stem().unwrap().to_string_lossy();
        let full = if warnings.is_empty() { "" } else { ", more than a link carries" };
        report += &format!("{name}: {nodes} nodes, {} flows, {events} events{full}\n", scenario.flows.len());
    }
    insta::assert_snapshot!(report);
}

/// The keys that the reader allows in a section, from its own words about a key that is none.
fn allowed(text: &str, section: &str) -> BTreeSet<String> {
    let key = format!("{section}.zzz");
    let key = key.trim_start_matches('.');
    let error = parse(text, &[&format!("{key}=1")]).err().unwrap_or_else(|| panic!("accepted: {key}"));
    let line = error.lines().find(|line| line.contains(&format!(" {key} = 1: "))).unwrap_or_else(|| panic!("{error}"));
    let (_, keys) = line.split_once(" allows ").unwrap_or_else(|| panic!("{line}"));
    keys.split(", ").map(str::to_owned).collect()
}

fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("docs/lab.md")).unwrap();
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines().take_while(|line| *line != "## What a run writes") {
        if line.starts_with('#') {
            section = line.split('`').nth(1).unwrap_or_default().trim_matches(['[', ']']).to_owned();
        } else if let Some(key) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) {
            keys.entry(section.clone()).or_default().insert(key.to_owned());
        }
    }
    keys
}

#[test]
fn the_documented_keys_are_those_that_the_reader_accepts() {
    let documented = documented();
    let mut read: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |name: &str, text: &str, section: &str| {
        read.entry(name.to_owned()).or_default().extend(allowed(text, section));
    };
    for section in
        ["run", "link", "switch", "switch.qcn", "qp", "pull", "cc", "cc.qcn", "tcp", "trace", "capture", "readout"]
    {
        let text = if section == "readout" { format!("{STAR}[readout]\n") } else { STAR.to_owned() };
        add(section, &text, section);
    }
    for (kind, more) in [
        ("star", ""),
        ("tree", ""),
        ("leaf-spine", ""),
        ("fat-tree", ""),
        ("camera", ""),
        ("nodes", ""),
        ("ns3", "file = \"topology.txt\""),
    ] {
        add("topology", &format!("[topology]\nkind = \"{kind}\"\n{more}\n"), "topology");
    }
    let nodes =
        "[topology]\nkind = \"nodes\"\n[[topology.node]]\nname = \"a\"\n[[topology.link]]\na = \"a\"\nb = \"a\"\n";
    add("topology.node", nodes, "topology.node.0");
    add("topology.link", nodes, "topology.link.0");
    add("flow", STAR, "flow.0");
    for kind in ["poisson", "periodic", "burst", "shower"] {
        add("triggers", &format!("{STAR}[triggers]\nkind = \"{kind}\"\n"), "triggers");
    }
    for sizes in ["fixed", "zipf", "measured"] {
        let text = format!("{STAR}[triggers]\n[[triggers.group]]\nsizes = \"{sizes}\"\n");
        add("triggers.group", &text, "triggers.group.0");
    }
    add("replay", &format!("{STAR}[replay]\n"), "replay");
    add("change", &format!("{STAR}[[change]]\nlink = \"board0-switch\"\n"), "change.0");
    let of_links = read["link"].clone();
    read.get_mut("topology.link").unwrap().retain(|key| !of_links.contains(key));
    assert_eq!(documented, read);

    let sections: BTreeSet<String> = allowed(STAR, "").into_iter().collect();
    let headed = |section: &String| documented.contains_key(section);
    assert!(sections.iter().all(headed), "{sections:?}");
}

#[test]
fn a_documented_default_is_the_default() {
    let page = std::fs::read_to_string(root().join("docs/lab.md")).unwrap();
    let text = format!("{STAR}[switch.qcn]\n[triggers]\n");
    // The page's numbers of DCQCN are those of this profile, and say so: those of the default follow from the share.
    let scenario = parse(&text, &["cc.profile=advcam"]).unwrap();
    let by_itself = parse(&text, &[]).unwrap().settings;
    let profile = by_itself.iter().find(|(key, _)| key == "cc.profile").unwrap();
    assert!(page.contains(&format!("\n| `profile` | \"{}\" |", profile.1)));
    let mut section = String::new();
    let mut compared = 0;
    for line in page.lines() {
        if line.starts_with('#') {
            section = line.split('`').nth(1).unwrap_or_default().trim_matches(['[', ']']).to_owned();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, key, default, ..] = cells[..] else { continue };
        let path = format!("{section}.{}", key.trim_matches('`'));
        let Some((_, value)) = scenario.settings.iter().find(|(setting, _)| *setting == path) else { continue };
        if section.contains("topology") || ["triggers.stop", "cc.share", "cc.profile"].contains(&path.as_str()) {
            continue;
        }
        assert_eq!(default.trim_matches('"'), value, "{path}");
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn mistakes_are_refused_with_place_key_value_and_what_is_allowed() {
    let cases = [
        ("[topology]\n", &[][..]),
        ("[topology]\nkind = \"ring\"\nboards = -1\n", &[]),
        ("[topology]\nkind = \"star\"\nboards = 0\nservers = 0\n", &[]),
        ("[topology]\nkind = \"fat-tree\"\nk = 5\n", &[]),
        ("[topology]\nkind = \"fat-tree\"\ncores = 5\n", &[]),
        ("[topology]\nkind = \"tree\"\nboards_per_leaf = [2, \"four\"]\n", &[]),
        ("[topology]\nkind = \"camera\"\nmodules = 3\nleaves = 4\n", &[]),
        ("[topology]\nkind = \"ns3\"\n", &[]),
        ("[topology]\nkind = \"ns3\"\nfile = \"no.txt\"\n", &[]),
        ("[topology]\nkind = \"star\"\n", &[]),
        (STAR, &["flow.0.from=bord*", "flow.0.message=3GB", "flow.0.rate=0bps", "flow.1.size=1MB"]),
        (STAR, &["flow.0.from=server0"]),
        (STAR, &["flow.0.from=[\"board0\", \"board1\"]", "flow.0.to=[\"board0\", \"board1\"]", "flow.0.pairs=zip"]),
        (STAR, &["change.0.link=board0-switch"]),
        (STAR, &["replay.file=twice.csv"]),
        (STAR, &["flow.0.rate=1Gbps", "flow.0.interval=1us", "flow.0.messages=3", "flow.0.stop=0s"]),
        (STAR, &["flow.0.random=true", "flow.0.pairs=ring", "flow.0.cc.law=timely", "flow.0.cc.g=0.1"]),
        (STAR, &["switch.kmin=300KB", "switch.xoff=20KB", "switch.xon=30KB", "switch.weights=[1, 2]"]),
        (STAR, &["switch.lossless=[9]", "switch.alpha=0", "switch.qcn.q_eq=1B", "switch.ecn_rate=1bps"]),
        (STAR, &["switch.buffer=20KB"]),
        (STAR, &["switch.xon=2MB"]),
        (STAR, &["switch.buffer=18000000000GB", "switch.headroom=9000000000GB", "switch.xoff=9000000000GB"]),
        (STAR, &["switch.at.swich.pfc=false", "link.at.board0-board1.delay=2us", "link.uplink.rate=1kbps"]),
        (STAR, &["link.delay=1ns", "link.at.board0-switch.loss=2", "qp.mtu=9000", "qp.clock=1Hz"]),
        (STAR, &["qp.cnp_dscp=26", "cc.rate_min=20Gbps"]),
        (STAR, &["qp.cnp_port_interval=0us", "triggers.stagger=soon"]),
        (STAR, &["cc.increase_interval=100s"]),
        (STAR, &["cc.qcn.gd=1/1", "cc.qcn.jitter=0.9", "cc.increase_interval=0s", "cc.byte_threshold=0B"]),
        (STAR, &["run.time_limit=0s", "run.stop=never", "trace.interval=1ns", "capture.links=[\"a-b\"]"]),
        (STAR, &["trace.metrics=[\"jian\", \"pfc_paused_class3\"]"]),
        (STAR, &["trace.classes=true", "trace.metrics=queue_bytes"]),
        (STAR, &["triggers.rate=0Hz", "triggers.burst=4", "triggers.fragment=0B", "triggers.from=server0"]),
        (STAR, &["triggers.rate=1GHz"]),
        (STAR, &["triggers.events=0", "triggers.start=2ms", "triggers.stop=1ms", "flow.0.to=[]"]),
        (STAR, &["triggers.start=5s"]),
        (STAR, &["switch.lossless=[]", "switch.weights=[-1, 0]", "run={ seed = 1.5 }"]),
        (STAR, &["replay.file=silent.csv"]),
        (STAR, &["replay.file=none.csv"]),
        (STAR, &["replay.file=none.npz"]),
        (STAR, &["replay.file=none.npz", "replay.events=3"]),
        (STAR, &["replay.file=damaged.npz"]),
        (STAR, &["replay.from=board0"]),
        (STAR, &["triggers.rate=1kHz", "replay.to=server0"]),
        (
            "[topology]\nkind = \"star\"\n[[change]]\nlink = \"board0-switch\"\ndown = true\nloss = 1.0\nrate = \"1Gbps\"\n\
            [[change]]\nlink = \"board1-switch\"\nloss = 0.5\ndetection = \"1ms\"\n",
            &[],
        ),
        ("[topology]\nkind = \"star\"\n[[change]]\nrate = \"1kbps\"\n[[change]]\nlink = \"a-b\"\nat = \"2s\"\nuntil = \"1s\"\n", &[]),
        (STAR, &["topology.kind.deep=1", "flow.zero.size=1MB", "flow=3"]),
    ];
    let mut report = String::new();
    for (text, overrides) in cases {
        let error = parse(text, overrides).err().unwrap_or_else(|| panic!("accepted: {text}{overrides:?}"));
        report += &format!("{error}\n\n");
    }
    insta::assert_snapshot!(report);
}

const NODES: &str = r#"
[topology]
kind = "nodes"
[[topology.node]]
name = "a"
[[topology.node]]
name = "b"
[[topology.node]]
name = "s"
kind = "switch"
[[topology.node]]
name = "t"
kind = "switch"
[[topology.link]]
a = "a"
b = "s"
[[topology.link]]
a = "t"
b = "b"
rate = "1Gbps"
[[flow]]
from = "a"
to = "b"
size = "1MB"
"#;

#[test]
fn networks_that_cannot_carry_their_flows_are_refused() {
    let joined = NODES.replace("[[flow]]", "[[topology.link]]\na = \"s\"\nb = \"t\"\n[[flow]]");
    let lonely = NODES.replace("[[flow]]", "[[topology.node]]\nname = \"c\"\n[[flow]]");
    let second = joined.replace("[[flow]]", "[[topology.link]]\na = \"a\"\nb = \"t\"\n[[flow]]");
    let unnamed = NODES.replace("name = \"s\"\n", "");
    assert_eq!(parse(&joined, &[]).unwrap().topology.links[1].params.rate, Rate::from_gbps(1));
    let report = [NODES, &lonely, &second, &unnamed].map(|text| parse(text, &[]).unwrap_err());
    insta::assert_snapshot!(report.join("\n\n"));
}

/// Five switches in a ring, each with a host that sends two switches on.
fn ring() -> String {
    let mut text = "[topology]\nkind = \"nodes\"\n".to_owned();
    for k in 0..5 {
        text += &format!("[[topology.node]]\nname = \"s{k}\"\nkind = \"switch\"\n[[topology.node]]\nname = \"h{k}\"\n");
    }
    for k in 0..5 {
        text += &format!("[[topology.link]]\na = \"s{k}\"\nb = \"s{}\"\n", (k + 1) % 5);
        text += &format!("[[topology.link]]\na = \"h{k}\"\nb = \"s{k}\"\n");
        text += &format!("[[flow]]\nfrom = \"h{k}\"\nto = \"h{}\"\nsize = \"1MB\"\n", (k + 2) % 5);
    }
    text + "[cc]\nlaw = \"off\"\n"
}

#[test]
fn what_is_allowed_but_hurts_is_a_warning() {
    let mut report = String::new();
    let ring = ring();
    for (text, overrides) in [
        (STAR, &["switch.buffer=90KB", "switch.kmax=80KB", "switch.kmin=1KB"][..]),
        (STAR, &["switch.headroom=10KB", "switch.xoff=900KB", "switch.buffer=2MB"]),
        (STAR, &["switch.ecn=false"]),
        (STAR, &["cc.law=qcn", "qp.ack_timeout=8us", "link.server.delay=9us", "flow.0.start=2s"]),
        (STAR, &["link.server.rate=400Gbps", "switch.buffer=1MB"]),
        (STAR, &["flow.0.rate=20Gbps", "trace.interval=1s", "switch.hysteresis=9KB"]),
        (STAR, &["flow.0.interval=1us", "flow.0.message=1MB", "switch.threshold=dynamic", "switch.xoff=20KB"]),
        (STAR, &["triggers.rate=1Hz", "triggers.stop=1ns"]),
        (STAR, &["replay.file=sparse.csv"]),
        (&ring, &[]),
        ("[topology]\nkind = \"ns3\"\nfile = \"topology.txt\"\nflows = \"flow.txt\"\nconfig = \"config.txt\"\n", &[]),
    ] {
        let warnings = parse(text, overrides).unwrap().warnings;
        let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        report += &format!("{}\n\n", lines.join("\n"));
    }
    insta::assert_snapshot!(report);
    assert_eq!(parse(&ring, &["switch.pfc=false"]).unwrap().warnings, [], "without PFC there is no deadlock");
}

#[test]
fn links_that_are_offered_more_than_they_carry_are_named_with_both_numbers() {
    let events = "[topology]\nkind = \"star\"\nboards = 4\n[triggers]\nkind = \"periodic\"\nfragment = \"50KB\"\n";
    let warnings = |text: &str, sets: &[&str]| -> Vec<String> {
        parse(text, sets).unwrap().warnings.iter().map(ToString::to_string).collect()
    };
    let [one] = &warnings(events, &["triggers.stop=100ms"])[..] else { panic!("one link") };
    assert!(one.contains("from switch to server0 is offered 16.35 Gb/s with headers (16.00 Gb/s of payload)"), "{one}");
    // two servers take half of the events each, and two senders at half of the rate share one link
    assert_eq!(warnings(events, &["triggers.stop=100ms", "topology.servers=2"]), [""; 0]);
    assert_eq!(warnings(events, &["triggers.stop=100ms", "link.at.server0-switch.rate=25Gbps"]), [""; 0]);
    let paced = format!("{STAR}rate = \"4Gbps\"\n");
    assert!(warnings(&paced, &["flow.0.size=100MB"])[0].contains("is offered 12."), "three of 4 Gb/s at once");
    assert_eq!(warnings(&paced, &["flow.0.size=100MB", "flow.0.stagger=250ms"]), [""; 0], "one after the other");
}

#[test]
fn the_computed_buffer_is_the_same_with_and_without_marks_and_pauses() {
    let text = format!("{STAR}[link]\nrate = \"100Gbps\"\n");
    let buffer = |sets: &[&str]| parse(&text, sets).unwrap().switches[0].params.buffer;
    let default = buffer(&[]);
    assert!(default.bytes() >= 4_000_000, "twice K_max of 100 Gb/s: {default}");
    for sets in [&["switch.ecn=false"][..], &["switch.pfc=false"], &["switch.ecn=false", "switch.pfc=false"]] {
        assert_eq!(buffer(sets), default, "{sets:?}");
    }
}

/// Two TCP flows beside the RC flows of the star.
const MIXED: &str = "[topology]\nkind = \"star\"\n[cc]\ng = \"1/64\"\n[cc.qcn]\ngd = \"1/64\"\n[tcp]\nsack = false\n\
    back_off = false\n[[flow]]\nsize = \"1MB\"\n[[flow]]\nprotocol = \"tcp\"\nfrom = \"board0\"\nsize = \"1MB\"\n";

#[test]
fn keys_without_effect_are_warned_of_with_the_reason() {
    let mut report = String::new();
    let direct = "[topology]\nkind = \"nodes\"\n[[topology.node]]\nname = \"a\"\n[[topology.node]]\nname = \"b\"\n\
        [[topology.link]]\na = \"a\"\nb = \"b\"\n[[flow]]\nfrom = \"a\"\nto = \"b\"\nsize = \"1MB\"\n";
    let off = format!(
        "{STAR}[cc]\nlaw = \"off\"\nrate_ai = \"9Mbps\"\nclamp_target = false\n[switch]\necn = false\nkmin = \"9KB\"\n"
    );
    let dynamic = format!(
        "{STAR}[switch]\nthreshold = \"dynamic\"\nxon = \"9KB\"\nalpha = 0.5\n[switch.at.switch]\npfc = false\n"
    );
    for (text, overrides) in [
        (STAR, &["switch.alpha=0.5", "switch.hysteresis=9KB"][..]),
        (STAR, &["switch.threshold=dynamic", "switch.alpha=0.5", "switch.xoff=90KB", "switch.xon=80KB"]),
        (STAR, &["switch.pfc=false", "switch.xoff=90KB", "switch.lossless=[3]"]),
        (STAR, &["switch.ecn=false", "switch.pmax=0.5", "cc.law=off", "switch.qcn.enabled=false", "switch.qcn.w=3"]),
        (STAR, &["flow.0.tcp.sack=false", "tcp.mss=8960"]),
        (
            STAR,
            &[
                "flow.0.protocol=tcp",
                "tcp.back_off=false",
                "tcp.send_buffer=1MB",
                "cc.g=1/64",
                "flow.0.cc.rate_ai=9Mbps",
            ],
        ),
        (STAR, &["flow.0.protocol=simple-tcp", "tcp.variant=bic", "flow.0.tcp.initial_window=4"]),
        (STAR, &["cc.law=off", "cc.qcn.gd=1/64", "flow.0.cc.g=1/64"]),
        (STAR, &["cc.g=1/64", "flow.0.cc.g=1/32"]),
        (STAR, &["cc.profile=advcam", "cc.share=1Gbps"]),
        (STAR, &["cc.share=1Gbps", "flow.0.cc.profile=penstock"]),
        (STAR, &["cc.law=off", "cc.profile=penstock", "cc.share=1Gbps"]),
        (
            STAR,
            &[
                "qp.consumer_slots=9",
                "qp.rnr_delay=20us",
                "link.at.board0-switch.reorder_by=3us",
                "link.reorder_by=3us",
            ],
        ),
        (STAR, &["qp.responder_resources=4"]),
        (STAR, &["qp.verb=read", "qp.responder_resources=4", "qp.rnr_delay=20us", "qp.ack_every=4"]),
        (STAR, &["qp.cnp_port_interval=4us", "qp.mode=pull"]),
        (STAR, &["qp.cn_tag=true"]),
        (STAR, &["qp.cn_tag=true", "cc.law=qcn", "switch.qcn.enabled=true"]),
        (STAR, &["qp.rings=memory"]),
        (STAR, &["qp.rings=memory", "flow.0.sender=gateware"]),
        (STAR, &["trace.interval=0ps", "trace.metrics=jain", "capture.snap=99B"]),
        (
            "[topology]\nkind = \"star\"\n[[flow]]\nsize = \"1MB\"\n[[change]]\nlink = \"board0-switch\"\nloss = 1.0\n",
            &["change.0.at=3s"],
        ),
        (direct, &["switch.kmin=9KB"]),
        (STAR, &["link.uplink.rate=40Gbps", "link.uplink.reorder_by=3us", "link.server.delay=2us"]),
        (direct, &["link.server.delay=2us"]),
        (&off, &[]),
        (&dynamic, &[]),
        (MIXED, &[]),
    ] {
        let warnings = parse(text, overrides).unwrap().warnings;
        let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        report += &format!("{overrides:?}\n{}\n\n", lines.join("\n"));
    }
    insta::assert_snapshot!(report);
}

#[test]
fn keys_of_a_file_that_an_option_leaves_without_effect_are_not_warned_of() {
    let text = format!(
        "{STAR}[cc]\ng = \"1/64\"\n[cc.qcn]\ngd = \"1/64\"\n[switch]\nkmin = \"9KB\"\nxoff = \"90KB\"\nqcn = {{ w = 3 }}\n\
         [link]\nreorder = 0.1\nreorder_by = \"2us\"\n[trace]\nmetrics = [\"jain\"]\n[qp]\nconsumer_rate = \"1Gbps\"\n"
    );
    let file = parse(&text, &[]).unwrap().warnings;
    assert_eq!(file.iter().map(|problem| problem.key.as_str()).collect::<Vec<_>>(), ["cc.qcn.gd"]);
    let off = ["cc.law=off", "switch.pfc=false", "switch.ecn=false", "switch.qcn.enabled=false", "link.reorder=0"];
    assert_eq!(parse(&text, &[&off[..], &["trace.interval=0ps"]].concat()).unwrap().warnings, []);
    let law = ["cc.law=qcn", "switch.threshold=dynamic"];
    assert_eq!(parse(&text, &law).unwrap().warnings, [], "another law, another threshold");
    let set = parse(&text, &[&off[..], &["switch.kmin=8KB"]].concat()).unwrap().warnings;
    assert_eq!(set.iter().map(|problem| problem.key.as_str()).collect::<Vec<_>>(), ["switch.kmin"]);
}

#[test]
fn overrides_reach_every_key_and_array_tables_by_index() {
    let text = format!("{STAR}[[flow]]\nfrom = \"board1\"\nmessages = 3\n");
    let overrides = ["flow.1.start=1ms", "flow.1.cc.law=off", "link.at.switch-board2.delay=7us", "topology.boards=4"];
    let scenario = parse(&text, &overrides).unwrap();
    assert_eq!(scenario.flows.len(), 5);
    assert_eq!(scenario.flows[4].name, "board1>server0_2", "names differ");
    assert_eq!(scenario.flows[4].start(), Time::from_ms(1));
    assert_eq!(scenario.flows[4].law, penstock_cc::Law::Off);
    assert_eq!(scenario.flows[3].law, penstock_cc::Law::Dcqcn);
    assert_eq!(scenario.link_of(scenario.topology.node("board2").unwrap()).delay, Time::from_us(7));
    assert!(scenario.settings.contains(&("flow.1.start".to_owned(), "1ms".to_owned())));
}

#[test]
fn what_is_not_given_is_computed_for_each_switch() {
    let text = "[topology]\nkind = \"camera\"\n[link.uplink]\nrate = \"400Gbps\"\n[triggers]\n";
    let scenario = parse(text, &["run.time_limit=1ms"]).unwrap();
    let computed = scenario.settings.iter().filter(|(key, _)| key.starts_with("computed."));
    let lines: Vec<String> = computed.map(|(key, value)| format!("{key} = {value}")).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(scenario.warnings, []);
}

#[test]
fn the_files_of_ns3_set_what_the_scenario_does_not() {
    let text = "[topology]\nkind = \"ns3\"\nfile = \"topology.txt\"\nflows = \"flow.txt\"\nconfig = \"config.txt\"\n";
    let scenario = parse(text, &["cc.rate_hai=9Mbps", "link.at.n0-n3.delay=3us"]).unwrap();
    let flow = &scenario.flows[1];
    assert_eq!((flow.dcqcn.rate_ai, flow.dcqcn.rate_hai), (Rate::from_mbps(7), Rate::from_mbps(9)));
    assert_eq!((flow.name.as_str(), flow.start()), ("n1>n2", Time::from_ms(500)));
    assert_eq!(scenario.topology.links[0].params.delay, Time::from_us(3));
    let wrong = parse(text, &["topology.config=scenarios/flow.txt", "cc.rate_ai=fast"]).unwrap_err();
    insta::assert_snapshot!(wrong);
}

#[test]
fn recorded_events_are_flows_of_their_boards() {
    let scenario = parse("[topology]\nkind = \"star\"\nservers = 2\n[replay]\n", &[]).unwrap();
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["board0>server0", "board0>server1", "board2>server0", "board2>server1"]);
    assert_eq!(scenario.flows[3].workload, Workload::Events { board: 1, server: 1, servers: 2 });
    assert_eq!(scenario.events.unwrap().bytes(1, 1), 400);
}

#[test]
fn recorded_camera_events_are_flows_of_the_hosts_that_they_are_dealt_to() {
    let text = "[topology]\nkind = \"star\"\nboards = 4\n[replay]\nfile = \"../data/lst1_run2008/modules.npz\"\n";
    let run = |from: &str| {
        let path = root().join("scenarios/test.toml");
        let overrides = [format!("replay.from={from}")];
        LabScenario::parse(path, text, &overrides, &file).map_err(|error| error.to_string())
    };
    let scenario = run("board{1..2}").unwrap();
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["board1>server0", "board2>server0"]);
    let events = scenario.events.unwrap();
    assert_eq!((events.times.len(), events.times[49]), (50, Time::from_ns(18_709_800)));
    assert_eq!((events.bytes(7, 0), events.bytes(7, 1)), (40 + 133 * 1142, 40 + 132 * 1142));
    let error =
        parse(&text.replace("boards = 4", "boards = 266"), &["replay.file=../../data/lst1_run2008/modules.npz"]);
    assert!(error.unwrap_err().ends_with("265 modules cannot be dealt out to 266 hosts; name 1 to 265"));
}

#[test]
fn a_network_of_ten_thousand_hosts_has_a_flow_of_each_in_pairs() {
    let text = "[topology]\nkind = \"fat-tree\"\nk = 34\n[[flow]]\nfrom = \"*\"\nto = \"*\"\nsize = \"1MB\"\n";
    for pairs in ["zip", "permutation"] {
        let scenario = parse(text, &[&format!("flow.0.pairs={pairs}"), "flow.0.to=host{1..9825}"]).unwrap();
        assert!((9_800..=9_826).contains(&scenario.flows.len()), "{pairs}: {}", scenario.flows.len());
    }
    let refused = parse(text, &[]).unwrap_err();
    assert!(refused.contains("9826 x 9826 hosts are too many; allowed are up to 200000 flows"), "{refused}");
}

#[test]
fn one_seed_gives_one_workload() {
    let text = "[topology]\nkind = \"leaf-spine\"\n[[flow]]\nfrom = \"*\"\nto = \"*\"\npairs = \"permutation\"\n\
        [triggers]\nkind = \"shower\"\nfrom = \"host{0..9}\"\nto = \"host{10..15}\"\n";
    let of = |seed: &str| {
        let scenario = parse(text, &[seed, "run.time_limit=50ms"]).unwrap();
        (scenario.flows, scenario.events)
    };
    assert_eq!(of("run.seed=3"), of("run.seed=3"));
    let (first, other) = (of("run.seed=3"), of("run.seed=4"));
    assert!(first.0 != other.0 && first.1 != other.1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_and_no_override_makes_the_reader_panic(
        line in "[a-z]{1,6}(\\.[a-z]{1,6})? ?= ?[\"0-9a-z\\[\\]{}.-]{0,12}",
        option in "(flow|topology|link|switch|cc|qp)\\.[a-z0-9.]{0,8}=?.{0,12}",
    ) {
        let _ = parse(&format!("{line}\n{STAR}"), &[]);
        let _ = parse(STAR, &[&option]);
    }
}

/// Values for any key: of its kind or of another, in order, none, absurd.
const VALUES: &str = "0 1 3 -1 200 70000 1e18 0.5 true off \"\" [] [0,7] [\"board0\"] 0Hz 1kHz 1THz 0s 1ps 2us 1h \
                      0B 1B 4KiB 1TB 0bps 10Gbps 1Tbps board0 board* server0 none.npz sparse.csv periodic";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]
    #[test]
    fn no_value_behind_documented_keys_makes_the_reader_panic(
        picks in vec((any::<Index>(), vec((any::<Index>(), any::<Index>()), 1..5)), 1..3),
        kind in prop::sample::select(vec!["star", "tree", "leaf-spine", "fat-tree", "camera"]),
    ) {
        let values: Vec<&str> = VALUES.split_whitespace().collect();
        let documented: Vec<_> = documented().into_iter().collect();
        let mut options = Vec::new();
        for (section, keys) in picks {
            let (section, names) = section.get(&documented);
            let names: Vec<_> = names.iter().collect();
            let place = if STAR.contains(&format!("[[{section}]]")) || section == "change" { ".0" } else { "" };
            let option = |(key, value): &(Index, Index)| {
                format!("{section}{place}.{}={}", key.get(&names), value.get(&values))
            };
            options.extend(keys.iter().map(option));
        }
        let _ = parse(&STAR.replace("star", kind), &options.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_key_that_it_resembles() {
    for (option, meant) in [("cc.lew=off", Some("law")), ("run.sead=3", Some("seed")), ("run.colour=3", None)] {
        let error = parse(STAR, &[option]).expect_err(option);
        assert!(error.contains("unknown key"), "{error}");
        match meant {
            Some(key) => assert!(error.contains(&format!("unknown key, is {key} meant? [")), "{error}"),
            None => assert!(error.contains("unknown key; [run] allows ") && !error.contains("meant"), "{error}"),
        }
    }
    let error = parse(STAR, &["link.at.board0.delay=5us"]).unwrap_err();
    assert!(error.contains("board0-switch"), "{error}");
}

#[test]
fn the_default_interval_gives_a_long_run_no_more_than_131072_samples() {
    let interval = |options: &[&str]| parse(STAR, options).unwrap().trace.interval;
    for (limit, expected) in [("1s", 100), ("13107.2ms", 100), ("13107201us", 200), ("1302s", 12_800)] {
        assert_eq!(interval(&[&format!("run.time_limit={limit}")]), Time::from_us(expected), "{limit}");
    }
    assert_eq!(interval(&["run.time_limit=1302s", "trace.interval=100us"]), Time::from_us(100));
}

#[test]
fn a_file_names_what_it_is_a_scenario_of() {
    let switch = "[run]\nkind = \"emulated-switch\"\n[topology]\nkind = \"star\"\n[[flow]]\n";
    let error = parse(switch, &[]).unwrap_err();
    assert!(error.contains("run.kind = \"emulated-switch\"") && error.contains("penstock board --switch"), "{error}");
    let error = parse(STAR, &["run.kind=lab"]).unwrap_err();
    assert!(error.contains("allowed are \"network\", \"emulated-switch\""), "{error}");
    let path = root().join("scenarios/advcam-9.toml");
    assert!(LabScenario::load(&path, &[]).unwrap_err().to_string().contains("penstock board --switch"));
    assert!(SwitchScenario::load(&path, &[]).is_ok());
    let error = SwitchScenario::load(&path, &["run.kind=network".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("run.kind") && error.contains("penstock run"), "{error}");
}

#[test]
fn a_gain_may_be_the_decimal_fraction_that_its_quotient_is() {
    let quotient = parse(STAR, &["cc.g=1/64"]).unwrap();
    assert_eq!(parse(STAR, &["cc.g=0.015625"]).unwrap().settings, quotient.settings);
    for (same, quotient) in
        [("cc.g=0.0048828125", "cc.g=5/1024"), ("cc.g=6/1024", "cc.g=3/512"), ("cc.g=4/4", "cc.g=1/1")]
    {
        let settings = |text: &str| parse(STAR, &[text]).unwrap().settings;
        assert_eq!(settings(same), settings(quotient), "{same}");
        assert_ne!(settings(same), parse(STAR, &["cc.g=1/64"]).unwrap().settings);
    }
    for wrong in
        ["cc.g=0.01", "cc.g=0.0", "cc.g=2.0", "cc.g=nan", "cc.g=-0.5", "cc.g=9/1024", "cc.g=7/8", "cc.g=1/65536"]
    {
        assert!(parse(STAR, &[wrong]).unwrap_err().contains("divided by a power of two"), "{wrong}");
    }
    assert!(parse(STAR, &["cc.g=1/200"]).unwrap_err().contains("near it 3/512 and 5/1024"));
}
