// SPDX-License-Identifier: Apache-2.0
//! Groups of boards in `[triggers]` and `[replay]`: shares by weight, laws, sizes and part in the events.

use std::io;
use std::path::Path;

use penstock_cc::Law;
use penstock_lab::report::{summary, End, LabSummary};
use penstock_lab::{Lab, LabProgress, LabScenario, SoftwareOnly};
use penstock_netsim::{Rate, Time};

/// Files that test scenarios name.
fn file(path: &Path) -> io::Result<Vec<u8>> {
    let text = match path.to_str() {
        Some("scenarios/events.csv") => "time_us,board0,board1,board2,board3\n10,1,2,3,4\n20,50,60,70,0\n",
        Some("scenarios/sizes.csv") => "bytes,count\n100,1\n900,3\n",
        Some("scenarios/wrong.csv") => "bytes\n100\nmany\n",
        _ => return Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    };
    Ok(text.as_bytes().to_vec())
}

fn parse(text: &str, overrides: &[&str]) -> Result<LabScenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    let text = format!("[topology]\nkind = \"star\"\nboards = 4\n{text}");
    LabScenario::parse("scenarios/test.toml", &text, &overrides, &file).map_err(|error| error.to_string())
}

fn sound(text: &str, overrides: &[&str]) -> LabScenario {
    parse(text, overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &LabScenario) -> LabSummary {
    let mut lab = Lab::build(scenario, &mut SoftwareOnly).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    summary(&lab, "test", scenario, &End::Done)
}

/// The rate at which each board's flow starts, in Mb/s.
fn starts(scenario: &LabScenario) -> Vec<u64> {
    scenario.flows.iter().map(|flow| flow.dcqcn.rate_start.unwrap_or_default().bits_per_second() / 1_000_000).collect()
}

#[test]
fn shares_are_in_proportion_to_weights_in_both_tables() {
    for table in ["triggers", "replay"] {
        let text = format!("[{table}]\n[[{table}.group]]\nfrom = \"board1\"\nweight = 5\n");
        let groups = sound(&text, &[]);
        assert_eq!(starts(&groups), [1250, 6250, 1250, 1250], "{table}: an eighth and five eighths of 10 Gb/s");
        let half = sound(&text, &["cc.share=1Gbps"]);
        assert_eq!(starts(&half), [500, 2500, 500, 500], "{table}: around the share that is given");
        let none = sound(&format!("[{table}]\n"), &[]);
        assert_eq!(starts(&none), [2500; 4], "{table}");
    }
}

#[test]
fn queue_pairs_of_a_board_divide_the_share_of_its_weight() {
    let text = "[[flow]]\nfrom = \"board1\"\nrate = \"1Mbps\"\n[triggers]\n[[triggers.group]]\nfrom = \"board1\"\nweight = 5\n";
    // board1's flow has half a share of 2.5 Gb/s, its events half of five eighths of the line
    assert_eq!(starts(&sound(text, &[])), [1250, 1250, 3125, 1250, 1250]);
}

#[test]
fn a_group_has_its_share_and_its_law_and_the_others_those_of_all() {
    let text = "[cc]\nrate_hai = \"77Mbps\"\n[triggers]\n\
        [[triggers.group]]\nfrom = \"board0\"\n[triggers.group.cc]\nshare = \"3Gbps\"\n\
        [[triggers.group]]\nfrom = \"board{1..2}\"\n[triggers.group.cc]\nlaw = \"off\"\n";
    let scenario = sound(text, &[]);
    assert_eq!(starts(&scenario)[0], 3000);
    let laws: Vec<Law> = scenario.flows.iter().map(|flow| flow.law).collect();
    assert_eq!(laws, [Law::Dcqcn, Law::Off, Law::Off, Law::Dcqcn]);
    assert_eq!(scenario.flows[3].dcqcn.rate_hai, Rate::from_mbps(77));
    let weighted =
        sound("[cc]\nrate_hai = \"77Mbps\"\n[triggers]\n[[triggers.group]]\nfrom = \"board0\"\nweight = 2\n", &[]);
    assert!(weighted.flows.iter().all(|flow| flow.dcqcn.rate_hai == Rate::from_mbps(77)), "a key of all stays");
    assert_eq!(scenario.warnings, []);
}

#[test]
fn boards_take_part_by_their_probability_and_an_event_needs_their_fragments_only() {
    let text = "[triggers]\nkind = \"periodic\"\nevents = 2000\nfragment = \"500B\"\n\
        [[triggers.group]]\nprobability = 0.1\n";
    let scenario = sound(text, &[]);
    let events = scenario.events.clone().unwrap();
    let sent: Vec<usize> = (0..2000).filter(|event| events.is_sent(*event)).collect();
    // 1 - 0.9^4 = 0.344 of the events have a fragment
    assert!((600..780).contains(&sent.len()), "{}", sent.len());
    let results = run(&scenario);
    let of_run = results.events.unwrap();
    assert_eq!((of_run.triggered, of_run.complete), (sent.len() as u64, sent.len() as u64));
    let fragments: usize =
        sent.iter().map(|event| (0..4).filter(|board| events.bytes(*event, *board) > 0).count()).sum();
    assert!((700..900).contains(&fragments), "{fragments} of 8000");
    assert_eq!(results.delivered_bytes, 500 * fragments as u64);
}

#[test]
fn sizes_are_those_of_the_group_and_all_are_delivered() {
    for (sizes, least, most, mean) in [
        ("fragment = \"700B\"", 700, 700, 700.0),
        ("sizes = \"zipf\"\nfragment = \"700B\"\nranks = \"board\"", 336, 1344, 700.0),
        ("sizes = \"zipf\"\nfragment = \"700B\"", 336, 1344, 700.0),
        ("sizes = \"measured\"", 100, 900, 700.0),
    ] {
        let text = format!("[triggers]\nkind = \"periodic\"\nevents = 500\n[[triggers.group]]\n{sizes}\n");
        let scenario = sound(&text, &[]);
        let events = scenario.events.clone().unwrap();
        let all: Vec<u64> = (0..2000).map(|n| events.bytes(n / 4, n % 4)).collect();
        assert_eq!((*all.iter().min().unwrap(), *all.iter().max().unwrap()), (least, most), "{sizes}");
        let found = all.iter().sum::<u64>() as f64 / 2000.0;
        assert!((found - mean).abs() < 30.0, "{sizes}: {found}");
        let is_fixed = (0..4).all(|board| (1..500).all(|event| events.bytes(event, board) == events.bytes(0, board)));
        assert_eq!(is_fixed, sizes.contains("board") || !sizes.contains("sizes"), "{sizes}");
        assert_eq!(run(&scenario).delivered_bytes, all.iter().sum::<u64>(), "{sizes}");
    }
}

#[test]
fn a_table_comes_at_random_times_and_repeats() {
    let text = "[replay]\ntrigger = \"poisson\"\nrate = \"50kHz\"\nevents = 301\n\
        [[replay.group]]\nfrom = \"board3\"\nfragment = \"9KB\"\n";
    let scenario = sound(text, &["run.seed=4"]);
    let events = scenario.events.clone().unwrap();
    assert_eq!(
        [0, 1, 300].map(|event| [0, 1, 2, 3].map(|board| events.bytes(event, board))),
        [[1, 2, 3, 9000], [50, 60, 70, 9000], [1, 2, 3, 9000]]
    );
    // 301 events at 50 kHz take 6.0 ms, and 0.35 ms more or less
    let last = *events.times.last().unwrap();
    assert!((Time::from_us(4_600)..Time::from_us(7_400)).contains(&last), "{last}");
    assert_ne!(events.times, sound(text, &["run.seed=5"]).events.unwrap().times);
    assert_eq!(run(&scenario).events.unwrap().complete, 301);
}

#[test]
fn weights_that_match_the_loads_shorten_events() {
    let text = "[triggers]\nkind = \"periodic\"\nrate = \"5kHz\"\nevents = 100\nfragment = \"20KB\"\n\
        [[triggers.group]]\nfrom = \"board0\"\nfragment = \"140KB\"\n";
    let p99 = |weight: &str| run(&sound(text, &[weight])).events.unwrap().p99_us.unwrap();
    let (equal, weighted) = (p99("triggers.group.0.weight=1"), p99("triggers.group.0.weight=7"));
    // 200 kB take 164 us on the line; 140 kB take 457 us at a quarter of it
    assert!(equal > 400.0 && weighted < 230.0, "{equal} us, weighted {weighted} us");
}

#[test]
fn groups_that_cannot_be_are_refused_with_key_value_and_what_is_allowed() {
    let group = |keys: &str| format!("[triggers]\n[[triggers.group]]\n{keys}\n");
    let cases = [
        group("weight = 0"),
        group("weight = 2\ncc = { share = \"1Gbps\" }"),
        group("from = \"server0\""),
        group("from = \"board9\""),
        group("from = \"board0\"\n[[triggers.group]]\nfrom = \"board{0..1}\""),
        group("[[triggers.group]]"),
        group("probability = 0"),
        group("probability = 1.5"),
        group("sizes = \"pareto\"\nfragment = \"0B\""),
        group("sizes = \"zipf\"\nexponent = 9"),
        group("sizes = \"zipf\"\nfragment = \"2GB\"\nranks = \"board\""),
        group("sizes = \"measured\"\nsizes_file = \"wrong.csv\""),
        group("sizes = \"measured\"\nsizes_file = \"none.csv\""),
        group("exponent = 1\nranks = \"event\""),
        "[replay]\n[[replay.group]]\nfrom = \"server0\"\n".to_owned(),
        "[replay]\nevents = 3\n".to_owned(),
    ];
    let report = cases.map(|text| parse(&text, &[]).err().unwrap_or_else(|| panic!("accepted: {text}")));
    insta::assert_snapshot!(report.join("\n\n"));
}

#[test]
fn weights_without_effect_are_warned_of() {
    let text = "[triggers]\n[[triggers.group]]\nfrom = \"board0\"\nweight = 2\n";
    let report = ["cc.law=qcn", "qp.mode=pull", "cc.profile=advcam", "run.seed=2"].map(|option| {
        let shown = [option, "triggers.group.0.weight=2", "switch.qcn.enabled=true"];
        let warnings = sound(text, &shown).warnings;
        let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        format!("{option}\n{}", lines.join("\n"))
    });
    insta::assert_snapshot!(report.join("\n\n"));
}
