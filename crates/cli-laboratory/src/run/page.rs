// SPDX-License-Identifier: Apache-2.0
//! The contents of the page of a run: senders, the queues on their paths, totals; and controls if boards are verilated.

use penstock_cli_common::live::{Plan, PARAMETERS};
use penstock_dashboard::{ControlError, Manifest, Queue, Sender, Series, Settings, Total};
use penstock_lab::{FlowInfo, FlowSpec, Lab, LabScenario, Mode, NodeKind, Protocol, SenderKind, Workload};
use penstock_netsim::CLASS_METRICS;
use std::collections::{BTreeMap, BTreeSet};

/// More flows and queues than these are in trace.parquet only.
const SENDERS: usize = 128;
const QUEUES: usize = 64;

/// The manifest and plan of a run without a viewer.
pub fn none() -> (Manifest, Plan) {
    (Manifest::default(), Plan::default())
}

/// Whether a run has controls: a board obeys its registers, and no flow has settings of its own.
pub fn is_steerable(scenario: &LabScenario) -> bool {
    let is_of_flow = |key: &str| key.starts_with("flow.") && key.contains(".cc.");
    let is_controlled = |flow: &FlowSpec| flow.sender == SenderKind::Gateware && flow.protocol == Protocol::Rc;
    let boards = scenario.flows.iter().all(is_controlled);
    boards && !scenario.settings.iter().any(|(key, _)| is_of_flow(key))
}

/// The answer to a control of a run that has none.
pub fn no_controls() -> ControlError {
    ControlError::NoControls
}

/// The settings of a run without controls.
pub fn settings(scenario: &LabScenario) -> Settings {
    Settings { ecn: thresholds(scenario), ..Settings::default() }
}

/// K_min and K_max in force at each queue that is shown, in the class that is shown or that of data, bytes.
pub fn thresholds(scenario: &LabScenario) -> Vec<Option<(u64, u64)>> {
    let of_port = |port: &Port| {
        let spec = scenario.switches.iter().find(|spec| spec.node == port.switch)?;
        let link = scenario.topology.nodes[port.switch].ports[usize::from(port.port)];
        let class = port.class.unwrap_or(usize::from(scenario.qp.class()));
        let ecn = spec.marking(scenario.topology.links[link].params.rate)[class]?;
        Some((ecn.kmin.bytes(), ecn.kmax.bytes()))
    };
    queues(scenario).iter().take(QUEUES).map(of_port).collect()
}

/// The contents of a run's page; `steered`: it has controls.
pub fn of_run(path: &str, scenario: &LabScenario, lab: &Lab, steered: bool) -> (Manifest, Plan) {
    let mut plan = Plan::default();
    let mut sharing = BTreeMap::<usize, f64>::new();
    scenario.flows.iter().for_each(|flow| *sharing.entry(flow.to).or_default() += 1.0);
    let senders: Vec<_> = lab
        .flows
        .iter()
        .zip(&scenario.flows)
        .take(SENDERS)
        .map(|(info, spec)| {
            let receiver = scenario.link_of(spec.to).rate.bits_per_second() as f64;
            let sender = scenario.link_of(spec.from).rate.bits_per_second() as f64;
            flow(info, (sender, receiver / sharing[&spec.to]), scenario, &mut plan)
        })
        .collect();
    let ports = queues(scenario);
    let mut pausing = BTreeMap::new();
    let queues: Vec<_> = ports.iter().take(QUEUES).map(|port| queue(scenario, port, &mut pausing, &mut plan)).collect();
    let events = scenario.readout.map(|readout| {
        let host = scenario.topology.name(readout.host);
        Total { name: "events built", unit: "", column: plan.column(host, 0, "events_built") }
    });
    let totals = vec![
        Total { name: "all flows", unit: "bit/s", column: plan.column("network", 0, "throughput_bps") },
        Total { name: "Jain's index", unit: "", column: plan.column("network", 0, "jain") },
    ];
    let totals = events.into_iter().chain(totals).chain(pulled(scenario, lab, &mut plan)).collect();
    let mut notes = Vec::new();
    for (what, shown, all) in [("flows", senders.len(), lab.flows.len()), ("queues", queues.len(), ports.len())] {
        if shown < all {
            notes.push(format!("The first {shown} of {all} {what} are shown; trace.parquet has all."));
        }
    }
    if scenario.trace.interval.as_ps() == 0 {
        notes.push("This scenario records no trace: set trace.interval to see its charts.".to_owned());
    }
    let manifest = Manifest {
        title: path.to_owned(),
        kind: if scenario.readout.is_some() { "boards" } else { "lab" },
        interval_ps: scenario.trace.interval.as_ps(),
        senders,
        all_senders: lab.flows.len(),
        throughput: if lab.flows.iter().any(|flow| flow.sender_index.is_none()) { "wire" } else { "payload" },
        queues,
        totals,
        parameters: if steered { PARAMETERS.to_vec() } else { Vec::new() },
        notes,
        columns: plan.count(),
    };
    (manifest, plan)
}

/// What the first host that pulls has requested.
fn pulled(scenario: &LabScenario, lab: &Lab, plan: &mut Plan) -> Vec<Total> {
    let flows = lab.flows.iter().zip(&scenario.flows);
    let Some((info, _)) = flows.clone().find(|(_, spec)| spec.mode == Mode::Pull) else { return Vec::new() };
    let is_read_out = scenario.readout.is_some_and(|readout| scenario.topology.name(readout.host) == info.to);
    let channel = if is_read_out { 0 } else { info.receiver_index as u16 };
    let totals = [
        ("window W", "B", "window_bytes"),
        ("requested, not arrived", "B", "requested_bytes"),
        ("READs", "", "reads"),
        ("part of announcements", "", "announcement_share"),
    ];
    let total = |(name, unit, metric)| Total { name, unit, column: plan.column(&info.to, channel, metric) };
    totals.map(total).into()
}

/// `rates`: of the sender's link, and an equal share of the receiver's, bit/s.
fn flow(info: &FlowInfo, rates: (f64, f64), scenario: &LabScenario, plan: &mut Plan) -> Sender {
    let (mut series, mut counters) = (Series::new(), Series::new());
    match info.sender_index {
        Some(index) => {
            series.insert("throughput", plan.column(&info.name, 0, "throughput_bps"));
            let channel = index as u16;
            let mut column = |metric| plan.column(&info.from, channel, metric);
            if info.protocol == Protocol::Rc {
                series.insert("rate_current", column("rate_current_bps"));
                series.insert("rate_target", column("rate_target_bps"));
                series.insert("alpha", column("alpha"));
                series.insert("cnp_handled", column("cnp_handled"));
            }
            counters.insert("tx_payload_bytes", column("tx_payload_bytes"));
            counters.insert("retransmissions", column("retransmissions"));
        }
        None => {
            let metrics = [
                ("throughput", "wire_throughput_bps"),
                ("rate_current", "rate_current_bps"),
                ("rate_target", "rate_target_bps"),
                ("alpha", "alpha"),
                ("cnp_handled", "cnp_handled"),
                ("paused", "paused_fraction"),
            ];
            // The port is the board's, the rates are the queue pair's.
            let of_board = ["wire_throughput_bps", "paused_fraction"];
            let channel =
                |metric| if of_board.contains(&metric) { 0 } else { (info.ends.local.qpn.value() & 0xff) as u16 };
            series.extend(metrics.map(|(series, metric)| (series, plan.column(&info.from, channel(metric), metric))));
        }
    }
    let fragments = scenario.flows[info.id.0 as usize].workload;
    if let (Some(_), Workload::Events { board, .. }) = (scenario.readout, fragments) {
        let at_server = ["rx_payload_bytes", "np_ecn_marked_roce_packets", "np_cnp_sent"];
        counters.extend(at_server.map(|metric| (metric, plan.column(&info.to, board as u16, metric))));
    }
    let name = if info.sender_index.is_some() { info.name.clone() } else { info.from.clone() };
    Sender { name, series, counters, link_bps: rates.0, share_bps: rates.1 }
}

/// A port of a switch.
#[derive(Clone, Copy)]
struct Port {
    /// Numbers in the topology: of the switch, and of the node at the port.
    switch: usize,
    other: usize,
    port: u16,
    /// The class, where the trace has one series for each.
    class: Option<usize>,
}

/// The classes of the flows, if the trace distinguishes classes.
fn classes(scenario: &LabScenario) -> Vec<Option<usize>> {
    if !scenario.trace.classes {
        return vec![None];
    }
    let classes: BTreeSet<usize> = scenario.flows.iter().map(|flow| usize::from(flow.dscp / 8)).collect();
    classes.into_iter().rev().map(Some).collect()
}

/// Ports of switches: first those to receivers, then those to other switches, then the rest.
fn queues(scenario: &LabScenario) -> Vec<Port> {
    let topology = &scenario.topology;
    let receivers: BTreeSet<usize> = scenario.flows.iter().map(|flow| flow.to).collect();
    let mut ports: Vec<Port> = Vec::new();
    for (number, node) in topology.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Switch) {
        for (port, link) in node.ports.iter().enumerate() {
            let other = topology.links[*link].peer(number);
            let port = |class| Port { switch: number, other, port: port as u16, class };
            ports.extend(classes(scenario).into_iter().map(port));
        }
    }
    ports.sort_by_key(|port| match topology.nodes[port.other].kind {
        _ if receivers.contains(&port.other) => 0,
        NodeKind::Switch => 1,
        NodeKind::Host => 2,
    });
    ports
}

/// `pausing`: the columns that say whether a switch pauses anyone, by switch and class.
fn queue(
    scenario: &LabScenario,
    &Port { switch, other, port, class }: &Port,
    pausing: &mut BTreeMap<(usize, Option<usize>), usize>,
    plan: &mut Plan,
) -> Queue {
    let nodes = &scenario.topology.nodes;
    let (switch_name, other) = (&nodes[switch].name, &nodes[other].name);
    let ports = 0..nodes[switch].ports.len() as u16;
    let metric = class.map_or("pfc_pausing", |class| CLASS_METRICS[class][2]);
    let pausing = *pausing.entry((switch, class)).or_insert_with(|| plan.greatest(switch_name, ports, metric));
    let name = match class {
        None => format!("{switch_name} > {other}"),
        Some(class) => format!("{switch_name} > {other}, class {class}"),
    };
    Queue { name, series: plan.queue(switch_name, port, class, pausing) }
}

#[cfg(test)]
mod tests {
    use super::super::parts::Parts;
    use super::*;
    use penstock_dashboard::Recording;
    use penstock_netsim::{Time, TraceSink};
    use std::path::Path;

    #[test]
    fn queues_are_drawn_whether_or_not_the_trace_has_classes() {
        for (classes, first) in [("false", "root > server0"), ("true", "root > server0, class 3")] {
            let overrides = [format!("trace.classes={classes}")];
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/advcam-5.toml");
            let scenario = LabScenario::load(path, &overrides).unwrap();
            let mut lab = Lab::build(&scenario, &mut Parts::new(Path::new("unused"))).unwrap();
            let (manifest, plan) = of_run(path, &scenario, &lab, false);
            assert_eq!(manifest.queues[0].name, first);
            let depth = manifest.queues[0].series["depth"];
            let recording = Recording::new(manifest, settings(&scenario)).shared();
            let mut sink = TraceSink::in_memory();
            sink.set_tee(plan.tee(recording.clone(), Time::ZERO));
            lab.engine.set_trace(sink, scenario.trace.interval);
            lab.advance(Time::from_ms(1)).unwrap();
            let recording = recording.lock().unwrap();
            let columns = recording.slice(0, recording.rows());
            assert!(columns[depth].iter().any(|bytes| *bytes > 100e3), "{first}: eight senders fill it at once");
        }
    }
}
