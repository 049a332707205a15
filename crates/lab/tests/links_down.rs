// SPDX-License-Identifier: Apache-2.0
//! Links that go down: switches send around them after the detection, and flows without a way are named.

use penstock_lab::report::{summary, End};
use penstock_lab::{Lab, LabProgress, LabScenario, SoftwareOnly};
use penstock_netsim::Time;

fn scenario(text: &str) -> LabScenario {
    let none = |_: &std::path::Path| Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"));
    LabScenario::parse("scenarios/test.toml", text, &[], &none).unwrap_or_else(|error| panic!("{error}"))
}

fn build(scenario: &LabScenario) -> Lab {
    Lab::build(scenario, &mut SoftwareOnly).unwrap_or_else(|error| panic!("{error}"))
}

/// Eight hosts of a leaf send to eight of another through two spines, at 1 Gb/s each.
const TWO_WAYS: &str = "[run]\ntime_limit = \"40ms\"\n[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\n\
    hosts_per_leaf = 8\n[[flow]]\nfrom = \"host{0..7}\"\nto = \"host{8..15}\"\npairs = \"permutation\"\nrate = \"1Gbps\"\n\
    message = \"10KB\"\nstop = \"30ms\"\n[qp]\nack_timeout = \"262us\"\nretry_cnt = 7\n[[change]]\n\
    link = \"leaf0-spine0\"\nat = \"5ms\"\n";

fn frames_lost(lab: &Lab) -> u64 {
    lab.links.iter().flat_map(|(_, id)| lab.engine.link_stats(*id)).map(|direction| direction.lost).sum()
}

#[test]
fn switches_send_around_a_link_that_is_down_after_its_detection() {
    let run = |change: &str| {
        let scenario = scenario(&format!("{TWO_WAYS}{change}"));
        let mut lab = build(&scenario);
        lab.advance(Time::from_us(6_500)).unwrap();
        let early = frames_lost(&lab);
        let progress = lab.run().unwrap();
        (scenario, progress, early, frames_lost(&lab) - early, lab)
    };
    let (_, progress, early, late, lab) = run("down = true\ndetection = \"1ms\"\nuntil = \"15ms\"\n");
    assert!(early > 0 && late == 0, "{early} frames were lost before, {late} after the detection");
    assert_eq!((progress, lab.ledger.borrow().flows_over()), (LabProgress::Done, 8));
    assert!(lab.ledger.borrow().flows().iter().all(|flow| flow.failure.is_none()));
    assert!(lab.cut_off().is_empty());
    // Without a detection in time, the senders on this way give up.
    for change in ["loss = 1.0\n", "down = true\ndetection = \"30ms\"\n"] {
        let (_, _, _, late, lab) = run(change);
        assert!(late > 0);
        assert!(lab.ledger.borrow().flows().iter().any(|flow| flow.failure.is_some()));
    }
}

#[test]
fn a_link_that_comes_back_is_used_again_and_flows_without_a_way_are_named() {
    let text = format!("{TWO_WAYS}down = true\ndetection = \"1ms\"\nuntil = \"15ms\"\n");
    let scenario = scenario(&text);
    let mut lab = build(&scenario);
    let frames = |lab: &Lab| {
        let (_, id) = lab.links.iter().find(|(name, _)| name == "leaf0-spine0").unwrap();
        lab.engine.link_stats(*id)[0].data_frames
    };
    let at = |lab: &mut Lab, ms: u64| {
        lab.advance(Time::from_ms(ms)).unwrap();
        frames(lab)
    };
    let [before, down, still, back] = [5, 8, 15, 25].map(|ms| at(&mut lab, ms));
    assert!(before > 0 && down == still && back > still, "{before} {down} {still} {back}");

    let star = "[topology]\nkind = \"star\"\nboards = 2\n[[flow]]\nfrom = \"*\"\nrate = \"1Gbps\"\nstop = \"9ms\"\n\
        [[change]]\nlink = \"board1-switch\"\nat = \"2ms\"\ndown = true\ndetection = \"500us\"\n";
    let scenario = self::scenario(star);
    let mut lab = build(&scenario);
    lab.run().unwrap();
    let of_run = summary(&lab, "star", &scenario, &End::Done);
    let cut: Vec<_> = of_run.flows.iter().map(|flow| flow.cut_off_s).collect();
    assert_eq!(cut, [None, Some(0.0025)]);
    assert!(of_run.verdict.advice.starts_with("give board1 a second way to server0: 1 of 2 flows"));
    assert!(of_run.verdict.sentences.iter().any(|sentence| sentence.contains("had none: board1>server0.")));
}
