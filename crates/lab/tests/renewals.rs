// SPDX-License-Identifier: Apache-2.0
//! Pauses that ports renew in closed form: the run is equal, to the last counter, to one in which timers renew them.
//! A captured link uses timers, so the test compares the same scenario with and without captures.

use penstock_lab::{Lab, LabProgress, LabScenario, SoftwareOnly};
use penstock_netsim::{CaptureSink, LinkChange, LinkId, PortId, Probability, Rate, Station, Switch, Time, Way};

/// 192 senders behind leaves of 32 into 10 Gb/s: their pauses last for milliseconds.
const INCAST: &str = r#"
[topology]
kind = "tree"
boards_per_leaf = [32, 32, 32, 32, 32, 32]
[switch]
ecn = true
pfc = true
[cc]
law = "dcqcn"
profile = "advcam"
[[flow]]
from = "board*"
to = "server0"
size = "200KB"
"#;

/// What happens to all links at 20 ms.
#[derive(Clone, Copy)]
enum Change {
    None,
    /// So that frames could be lost, though none is.
    Loss,
    Rate,
}

struct Outcome {
    /// All counters of all links, stations and switches, and when the last flow was over.
    counters: Vec<String>,
    events: u64,
    pauses: u64,
}

fn run(change: Change, by_timers: bool) -> Outcome {
    let none = |_: &std::path::Path| Err(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"));
    let scenario = LabScenario::parse("scenarios/test.toml", INCAST, &[], &none).unwrap();
    let mut lab = Lab::build(&scenario, &mut SoftwareOnly).unwrap();
    let links: Vec<LinkId> = lab.links.iter().map(|(_, link)| *link).collect();
    let change = match change {
        Change::None => LinkChange::default(),
        Change::Loss => LinkChange { loss: Probability::new(1e-15), ..LinkChange::default() },
        Change::Rate => LinkChange { rate: Some(Rate::from_gbps(8)), ..LinkChange::default() },
    };
    links.iter().for_each(|link| lab.engine.change_link_at(Time::from_ms(20), *link, Way::Both, change).unwrap());
    let directory = tempfile::tempdir().unwrap();
    if by_timers {
        lab.engine.set_capture(CaptureSink::create(directory.path().join("all.pcapng"), 64).unwrap(), &links);
    }
    assert_eq!(lab.run().unwrap(), LabProgress::Done);
    let mut counters = vec![format!("{:?}", lab.ledger.borrow().completion.max())];
    counters.extend(links.iter().map(|link| format!("{link:?} {:?}", lab.engine.link_stats(*link))));
    let now = lab.now();
    for (name, id) in &lab.hosts {
        let stats = lab.engine.node::<Station>(*id).unwrap().stats(now);
        counters.push(format!("{name} {stats:?}"));
    }
    let mut pauses = 0;
    for (name, id) in &lab.switches {
        let switch: &Switch = lab.engine.node(*id).unwrap();
        for port in 0..switch.port_count() {
            let stats = switch.port_stats(PortId(port), now);
            pauses += stats.pause_frames_sent;
            counters.push(format!("{name} {port} {stats:?}"));
        }
    }
    Outcome { counters, events: lab.engine.events(), pauses }
}

#[test]
fn pauses_renewed_in_closed_form_leave_the_run_of_those_renewed_by_timers() {
    for change in [Change::None, Change::Loss, Change::Rate] {
        let (closed, timed) = (run(change, false), run(change, true));
        for (closed, timed) in closed.counters.iter().zip(&timed.counters) {
            assert_eq!(closed, timed);
        }
        assert!(closed.pauses > 4 * 192, "{} pause frames: each port renews its pause", closed.pauses);
        assert!(closed.events + 4 * 192 < timed.events, "{} against {}", closed.events, timed.events);
    }
}
