// SPDX-License-Identifier: Apache-2.0
//! Runs a case in pull mode and without anything that holds it back, and compares the two.

use penstock_lab::{Lab, LabProgress, LabScenario, SoftwareOnly};
use penstock_netsim::{Distribution, PortId, Time};

use crate::cases::{Case, Measure};

/// Time between two looks at the queues.
const LOOK: Time = Time::from_us(10);
/// What holds nothing back.
const IDEAL: [&str; 7] = [
    "qp.mode=push",
    "cc.law=off",
    "switch.ecn=false",
    "switch.pfc=false",
    "switch.buffer=400GB",
    "qp.ack_timeout=0us",
    "qp.window=4000000",
];

struct Outcome {
    /// The value, in the unit of the measure.
    value: f64,
    queue_p99: u64,
    queue_peak: u64,
    bound: Option<u64>,
    window: u64,
    drops: u64,
    pause_us: f64,
}

pub fn row(case: &Case) -> String {
    let pull = run(case, &["qp.mode=pull"]);
    let ideal = match case.measure {
        // Payload of packets of 4096 bytes.
        Measure::Goodput { carries, .. } => carries * 4096.0 / 4178.0,
        _ => run(case, &IDEAL).value,
    };
    let met = is_met(case, pull.value, ideal) && pull.drops == 0 && pull.pause_us == 0.0;
    let unit = match case.measure {
        Measure::Events => "event 99 % us",
        Measure::Messages => "message 99 % us",
        Measure::Goodput { .. } => "Gb/s",
    };
    let bound = pull.bound.map_or("-".to_owned(), |bound| bound.to_string());
    format!(
        "{},{unit},{:.2},{:.2},{},{},{bound},{},{},{:.1},{}",
        case.name,
        ideal,
        pull.value,
        pull.queue_p99,
        pull.queue_peak,
        pull.window,
        pull.drops,
        pull.pause_us,
        if met { "yes" } else { "no" }
    )
}

fn is_met(case: &Case, pull: f64, ideal: f64) -> bool {
    match case.measure {
        Measure::Events => pull <= (1.2 * ideal).max(ideal + 100.0),
        Measure::Messages => pull <= 2.0 * ideal,
        Measure::Goodput { least, .. } => pull >= least * ideal,
    }
}

fn run(case: &Case, mode: &[&str]) -> Outcome {
    let overrides: Vec<String> = mode.iter().map(|option| (*option).to_owned()).collect();
    let file = |_: &std::path::Path| Ok(case.table.clone().into_bytes());
    let scenario = LabScenario::parse("case.toml", &case.text, &overrides, &file)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let mut lab = Lab::build(&scenario, &mut SoftwareOnly).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let mut queues = Distribution::default();
    let (mut from, mut before) = (Time::ZERO, 0);
    if let Measure::Goodput { from: begin, .. } = case.measure {
        from = begin;
    }
    let mut is_begun = from == Time::ZERO;
    loop {
        let progress = lab.advance(lab.now() + LOOK).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        if !is_begun && lab.now() >= from {
            is_begun = true;
            before = delivered(&lab, case);
        }
        queues.record(Time(longest_queue(&lab)));
        if progress != LabProgress::Running {
            break;
        }
    }
    let ledger = lab.ledger.borrow();
    let us = |time: Option<Time>| time.map_or(f64::INFINITY, |time| time.as_ps() as f64 * 1e-6);
    let value = match case.measure {
        Measure::Events => us(ledger.events.completion.quantile(0.99)),
        Measure::Messages => us(ledger.completion.quantile(0.99)),
        Measure::Goodput { .. } => (delivered(&lab, case) - before) as f64 * 8e-9 / (lab.now() - from).as_secs_f64(),
    };
    drop(ledger);
    let results = penstock_lab::report::summary(&lab, &case.name, &scenario, &penstock_lab::report::End::Done);
    let ports = || results.switches.iter().flat_map(|switch| &switch.ports);
    Outcome {
        value,
        queue_p99: queues.quantile(0.99).map_or(0, Time::as_ps),
        queue_peak: ports().map(|port| port.peak_queue_bytes).max().unwrap_or(0),
        bound: results.pull.as_ref().and_then(|pull| pull.queue_bound_bytes),
        window: results.pull.iter().flat_map(|pull| &pull.hosts).map(|host| host.window_bytes).max().unwrap_or(0),
        drops: results.switches.iter().map(|switch| switch.dropped_buffer + switch.dropped_headroom).sum(),
        pause_us: ports().map(|port| port.pausing_s).sum::<f64>() * 1e6,
    }
}

/// Bytes of all flows whose names begin as the case says.
fn delivered(lab: &Lab, case: &Case) -> u64 {
    let Measure::Goodput { of, .. } = case.measure else { return 0 };
    let ledger = lab.ledger.borrow();
    let flows = lab.flows.iter().filter(|flow| flow.name.starts_with(of));
    flows.map(|flow| ledger.flow(flow.id).delivered_bytes).sum()
}

fn longest_queue(lab: &Lab) -> u64 {
    let switches = lab.switches.iter().filter_map(|(_, id)| lab.engine.switch(*id));
    let ports = switches.flat_map(|switch| (0..switch.port_count()).map(move |port| switch.queue_bytes(PortId(port))));
    ports.max().unwrap_or(0)
}
