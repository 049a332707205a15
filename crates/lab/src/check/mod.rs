// SPDX-License-Identifier: Apache-2.0
//! Checks of a laboratory scenario that involve several keys: unreachable destinations, laws without feedback, buffers
//! that wait for each other.
//! Promise: a scenario that passes can be built and run; settings that are valid but probably harmful give a warning.

mod gateware_switch;
mod idle;
mod shares;

use std::collections::BTreeSet;

use penstock_cc::Law;
use penstock_transport::simple_tcp;
use penstock_wire::gateware::PULL_SLOTS;
use penstock_wire::PULL_READS;

use crate::language::document::Document;
use crate::language::Problem;
use crate::offered::{offered, READ_RESPONSE_OVERHEAD};
use crate::scenario::{FlowSpec, LabScenario, LabVerb, Mode, Protocol, SenderKind, Stop, Workload};
use crate::topology::{find_buffer_cycle, Demand, Routes};
use crate::units::{Rate, Time};
use crate::workload::Pace;
use shares::LISTED;

/// A stream's ring has 2^30 bytes at most, and holds a message more.
const MOST_SEND_BUFFER_MIB: u64 = 512;

pub(crate) fn scenario(scenario: &mut LabScenario, document: &Document, problems: &mut Vec<Problem>) {
    if scenario.flows.is_empty() {
        let message = "nothing is sent; add a [[flow]], [triggers] or [replay]".to_owned();
        problems.push(document.problem("flow", "", message));
        return;
    }
    names(scenario);
    let routes = Routes::shortest(&scenario.topology);
    reachable(scenario, &routes, document, problems);
    registers(scenario, document, problems);
    gateware(scenario, document, problems);
    reads(scenario, document, problems);
    pulls(scenario, document, problems);
    gateware_switch::check(scenario, &routes, document, problems);
    if scenario.readout.is_some() && scenario.qp.verb != LabVerb::WriteImm {
        let message = "fragments go into the slots of [readout] by \"write-imm\"; allowed is that".to_owned();
        problems.push(document.problem("qp.verb", "", message));
    }
    if scenario.readout.is_some() && scenario.qp.cnp_above.is_some() {
        let message = "the receiver of [readout] sends CNPs for marked packets only; omit this key".to_owned();
        problems.push(document.problem("qp.cnp_above", "", message));
    }
    if scenario.readout.is_some() && scenario.qp.cnp_port_interval.is_some() {
        let message =
            "the receiver of [readout] limits CNPs by queue pair only (qp.cnp_interval); omit this key".to_owned();
        problems.push(document.problem("qp.cnp_port_interval", "", message));
    }
    streams(scenario, document, problems);
    if problems.is_empty() {
        deadlock(scenario, &routes, document);
        warnings(scenario, &routes, document);
        let mut of_shares = shares::warnings(scenario, &routes, document);
        scenario.warnings.append(&mut of_shares);
        let mut idle = idle::warnings(scenario, document);
        scenario.warnings.append(&mut idle);
    }
}

/// Flows of one name get numbers.
fn names(scenario: &mut LabScenario) {
    let mut taken = BTreeSet::new();
    for flow in &mut scenario.flows {
        let mut name = flow.name.clone();
        let mut copy = 2;
        while !taken.insert(name.clone()) {
            name = format!("{}_{copy}", flow.name);
            copy += 1;
        }
        flow.name = name;
    }
}

fn reachable(scenario: &LabScenario, routes: &Routes, document: &Document, problems: &mut Vec<Problem>) {
    let mut pairs = BTreeSet::new();
    let mut missing = Vec::new();
    for flow in &scenario.flows {
        if pairs.insert((flow.from, flow.to)) {
            missing.extend(routes.hops(&scenario.topology, flow.from, flow.to).err());
        }
    }
    let more = missing.len().saturating_sub(LISTED);
    for (index, error) in missing.iter().take(LISTED).enumerate() {
        let suffix = if more > 0 && index + 1 == LISTED { format!(" ({more} more pairs)") } else { String::new() };
        problems.push(document.problem("topology", "", format!("{error}{suffix}")));
    }
}

/// Every number must fit the registers of the gateware at the clock of the link.
fn registers(scenario: &LabScenario, document: &Document, problems: &mut Vec<Problem>) {
    let mut reported = BTreeSet::new();
    for flow in &scenario.flows {
        let rate = flow.dcqcn.rate_line;
        let clock = scenario.qp.clock_hz(rate);
        let errors = match flow.law {
            Law::Off => [None, None],
            Law::Dcqcn => [flow.dcqcn.at_clock(clock).err(), None],
            Law::Qcn => [flow.dcqcn.at_clock(clock).err(), flow.qcn.at_clock(clock).err()],
        };
        for (section, error) in ["cc", "cc.qcn"].iter().zip(errors) {
            let message = error.map(|error| format!("{error} (flow {}, link of {rate})", flow.name));
            if let Some(message) = message.filter(|_| reported.insert((*section, rate))) {
                problems.push(document.problem(section, "", message));
            }
        }
    }
}

/// Flows that cannot be pulled.
fn pulls(scenario: &LabScenario, document: &Document, problems: &mut Vec<Problem>) {
    let Some(flow) = scenario.flows.iter().find(|flow| flow.mode == Mode::Pull) else { return };
    let name = |node: usize| scenario.topology.name(node);
    let mut refuse = |key: &str, message: String| problems.push(document.problem(key, "", message));
    let of_board = |flow: &&FlowSpec| flow.mode == Mode::Pull && flow.sender == SenderKind::Gateware;
    if let Some(flow) = scenario.flows.iter().find(of_board).filter(|_| scenario.pull.slots < PULL_SLOTS) {
        let message = format!(
            "{} is a board of gateware, which announces up to {PULL_SLOTS} fragments; allowed is that and more",
            name(flow.from)
        );
        refuse("pull.slots", message);
    }
    let is_pulled = scenario.readout.is_some_and(|readout| readout.mode == Mode::Pull);
    if is_pulled && scenario.qp.responder_resources != PULL_READS {
        let message =
            format!("the receiver of [readout] has up to {PULL_READS} READs of a board outstanding; allowed is that");
        refuse("qp.responder_resources", message);
    }
    if scenario.qp.consumer.is_some() {
        refuse("qp.consumer_rate", format!("{} takes at once what it pulls; omit this key", name(flow.to)));
    }
    let packet = u64::from(scenario.qp.mtu) + u64::from(READ_RESPONSE_OVERHEAD);
    if let Some(window) = scenario.pull.window.filter(|window| window.bytes() < packet) {
        let message = format!("{window} has no room for one packet; allowed is {packet}B and more");
        refuse("pull.window", message);
    }
}

/// Hosts that cannot answer RDMA READs.
fn reads(scenario: &LabScenario, document: &Document, problems: &mut Vec<Problem>) {
    let of_board = |flow: &&FlowSpec| {
        flow.sender == SenderKind::Gateware && flow.protocol == Protocol::Rc && flow.mode == Mode::Push
    };
    if let Some(flow) = scenario.flows.iter().find(of_board).filter(|_| scenario.qp.verb == LabVerb::Read) {
        let message = format!(
            "flow {}: {} is a board of gateware, whose messages are read where it announces them: set qp.mode = \
             \"pull\", or \"write-imm\", \"write\" or \"send\" here, or sender = \"software\"",
            flow.name,
            scenario.topology.name(flow.from)
        );
        problems.push(document.problem("qp.verb", "read", message));
    }
}

/// A verilated board has one port, one direction and its own line rate.
fn gateware(scenario: &LabScenario, document: &Document, problems: &mut Vec<Problem>) {
    let boards: BTreeSet<usize> =
        scenario.flows.iter().filter(|flow| flow.sender == SenderKind::Gateware).map(|flow| flow.from).collect();
    for flow in &scenario.flows {
        let name = |node: usize| scenario.topology.name(node);
        let accepts = scenario.readout.is_some_and(|readout| readout.host == flow.to);
        let wrong = if flow.sender == SenderKind::Gateware && flow.protocol != Protocol::Rc && !accepts {
            Some(format!(
                "flow {}: a board of gateware opens its TCP connection, which only a [readout] accepts; add one, or \
                 let software send",
                flow.name
            ))
        } else if boards.contains(&flow.to) {
            Some(format!("{} is a board of gateware and cannot receive flow {}", name(flow.to), flow.name))
        } else if boards.contains(&flow.from) && flow.sender != SenderKind::Gateware {
            Some(format!("{} is a board of gateware; flow {} must be sent by it too", name(flow.from), flow.name))
        } else {
            None
        };
        problems.extend(wrong.map(|message| document.problem("flow", "", message)));
    }
}

/// The readout's streams have real bytes in a ring, and segments that a front end can make.
fn streams(scenario: &LabScenario, document: &Document, problems: &mut Vec<Problem>) {
    let Some(readout) = scenario.readout else { return };
    let is_stream = |flow: &&FlowSpec| flow.to == readout.host && flow.protocol == Protocol::SimpleTcp;
    let Some(flow) = scenario.flows.iter().find(is_stream) else { return };
    let (least, most) = (u32::from(simple_tcp::MIN_MSS), u32::from(simple_tcp::MAX_MSS));
    if !(least..=most).contains(&flow.tcp.mss) {
        let message = format!("a front end sends segments of {least} to {most} bytes");
        problems.push(document.problem("tcp.mss", &flow.tcp.mss.to_string(), message));
    }
    if let Some(buffer) = flow.tcp.send_buffer.filter(|buffer| buffer.bytes() > MOST_SEND_BUFFER_MIB << 20) {
        let message =
            format!("allowed with a [readout] is up to {MOST_SEND_BUFFER_MIB}MiB: its senders have the bytes");
        problems.push(document.problem("tcp.send_buffer", &buffer.to_string(), message));
    }
}

/// Pauses that may wait for each other in a circle.
fn deadlock(scenario: &mut LabScenario, routes: &Routes, document: &Document) {
    if !scenario.switches.iter().any(|switch| switch.params.pfc.is_some()) {
        return;
    }
    let there = scenario.flows.iter().map(|flow| Demand { from: flow.from, to: flow.to });
    let back = scenario.flows.iter().map(|flow| Demand { from: flow.to, to: flow.from });
    let demands: Vec<Demand> = there.chain(back).collect();
    if let Some(cycle) = find_buffer_cycle(&scenario.topology, routes, &demands) {
        let message = format!(
            "a PFC deadlock is possible: each of these links can wait for room behind the next: {}; route around one of \
             them, or set switch.pfc = false",
            cycle.join(", ")
        );
        scenario.warnings.push(document.problem("topology", "", message));
    }
}

fn warnings(scenario: &mut LabScenario, routes: &Routes, document: &Document) {
    let mut warnings = without_feedback(scenario, document);
    warnings.extend(late(scenario, document));
    let interval = scenario.trace.interval;
    if interval >= scenario.run.time_limit {
        let message = format!("no sample before run.time_limit, {}: the trace will be empty", scenario.run.time_limit);
        warnings.push(document.problem("trace.interval", &interval.to_string(), message));
    }
    let of_sender = overload(scenario, document);
    warnings.extend(overfull(scenario, routes, document, of_sender.is_some()));
    warnings.extend(of_sender);
    let slowest = scenario.topology.links.iter().map(|link| link.params.delay).max().unwrap_or_default();
    let code = scenario.qp.ack_timeout_code;
    let timeout = Time::from_ns(4096) * (1 << code);
    let round_trip = slowest * 4 + scenario.qp.ack_delay;
    if code > 0 && timeout < round_trip {
        let message =
            format!("shorter than a round trip without queueing, {round_trip}: every packet will be repeated");
        warnings.push(document.problem("qp.ack_timeout", &timeout.to_string(), message));
    }
    if let Some(flow) = scenario.flows.iter().find(|flow| scenario.is_endless(flow)) {
        if scenario.run.stop == Stop::Done && scenario.run.time_limit >= Time::from_s(10) {
            let message = format!("flow {} is without end; the run lasts until this time", flow.name);
            warnings.push(document.problem("run.time_limit", &scenario.run.time_limit.to_string(), message));
        }
    }
    scenario.warnings.append(&mut warnings);
}

/// Laws that no switch gives feedback.
fn without_feedback(scenario: &LabScenario, document: &Document) -> Vec<Problem> {
    let marks = scenario.switches.iter().any(|switch| switch.params.ecn.iter().any(Option::is_some));
    let feedback = scenario.switches.iter().any(|switch| switch.params.qcn.is_some());
    let switched = !scenario.switches.is_empty();
    let uses = |law| switched && scenario.flows.iter().any(|flow| flow.protocol == Protocol::Rc && flow.law == law);
    let mut warnings = Vec::new();
    if uses(Law::Dcqcn) && !marks && scenario.qp.cnp_above.is_none() {
        let message = "DCQCN will never hear of congestion while switch.ecn = false".to_owned();
        warnings.push(document.problem("switch.ecn", "false", message));
    }
    if uses(Law::Qcn) && !feedback {
        let message =
            "QCN will never hear of congestion: no switch has a congestion point; add [switch.qcn]".to_owned();
        warnings.push(document.problem("switch.qcn", "", message));
    }
    warnings
}

/// Flows and events that begin when the run is over.
fn late(scenario: &LabScenario, document: &Document) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let late = scenario.flows.iter().filter(|flow| flow.start() >= scenario.run.time_limit).count();
    if late > 0 {
        let message = format!("flows that begin at or after this time, and send nothing: {late}");
        warnings.push(document.problem("run.time_limit", &scenario.run.time_limit.to_string(), message));
    }
    let table = if document.find("replay").is_some() { "replay" } else { "triggers" };
    match scenario.events.as_ref().map(|events| &events.times) {
        Some(times) if times.is_empty() => {
            let message = "no trigger comes before its stop: nothing is sent".to_owned();
            warnings.push(document.problem(table, "", message));
        }
        Some(times) => {
            let late = times.len() - times.partition_point(|at| *at < scenario.run.time_limit);
            if late > 0 {
                let message =
                    format!("events at or after this time, of which nothing is sent: {late} of {}", times.len());
                warnings.push(document.problem("run.time_limit", &scenario.run.time_limit.to_string(), message));
            }
        }
        None => {}
    }
    warnings
}

/// Overloaded links; those of senders have already been reported if `has_senders`.
fn overfull(scenario: &LabScenario, routes: &Routes, document: &Document, has_senders: bool) -> Vec<Problem> {
    // Few events at random times may come close together without being too many.
    let servers: BTreeSet<usize> = scenario.flows.iter().map(|flow| flow.to).collect();
    let events = scenario.events.as_ref().map_or(f64::INFINITY, |events| events.times.len() as f64);
    let margin = 2.0 / (events / servers.len().max(1) as f64).max(1.0).sqrt();
    let loads = offered(scenario, routes).into_iter().filter(|load| load.share() > 1.0 + margin);
    let mut full: Vec<_> = loads.filter(|load| !(has_senders && load.is_sender)).collect();
    let more = full.len().saturating_sub(LISTED);
    full.truncate(LISTED);
    let reported = full.iter().enumerate().map(|(index, load)| {
        let suffix = if more > 0 && index + 1 == LISTED { format!(" ({more} more links)") } else { String::new() };
        let message = format!(
            "the link from {} to {} is offered {:.2} Gb/s with headers ({:.2} Gb/s of payload) and carries {:.2} Gb/s: what is \
             too much waits at the senders{suffix}",
            load.from,
            load.to,
            load.wire_bps * 1e-9,
            load.payload_bps * 1e-9,
            load.capacity_bps * 1e-9
        );
        document.problem(if scenario.events.is_some() { "triggers" } else { "flow" }, "", message)
    });
    reported.collect()
}

/// The first flow whose rate exceeds its sender's link.
fn overload(scenario: &LabScenario, document: &Document) -> Option<Problem> {
    scenario.flows.iter().find_map(|flow| {
        let Workload::Steady(steady) = flow.workload else { return None };
        let offered = match steady.pace {
            Pace::Rate(rate) => u128::from(rate.bits_per_second()),
            Pace::Every(time) if time > Time::ZERO => {
                u128::from(steady.message_bytes) * 8_000_000_000_000 / u128::from(time.as_ps())
            }
            Pace::Every(_) | Pace::Greedy => return None,
        };
        let link = scenario.link_of(flow.from).rate;
        (offered > u128::from(link.bits_per_second())).then(|| {
            let offered = Rate(u64::try_from(offered).unwrap_or(u64::MAX));
            let message =
                format!("flow {} is offered {offered}, its sender's link has {link}: messages wait", flow.name);
            document.problem("flow", "", message)
        })
    })
}
