// SPDX-License-Identifier: Apache-2.0
//! The page of a laboratory run: flows, the queues on their ways, totals. It has no controls: its senders are software.

use super::Plan;
use penstock_dashboard::{Manifest, Queue, Sender, Series, Settings, Total};
use penstock_netsim::lab::{FlowInfo, Lab, LabScenario, Protocol};
use penstock_netsim::topology::NodeKind;
use penstock_netsim::CLASS_METRICS;
use std::collections::{BTreeMap, BTreeSet};

/// More flows and queues than these are in trace.parquet only.
const SENDERS: usize = 128;
const QUEUES: usize = 64;

/// What a page shows of a laboratory run.
pub fn of_lab(path: &str, scenario: &LabScenario, lab: &Lab) -> (Manifest, Settings, Plan) {
    let mut plan = Plan::default();
    let senders: Vec<_> = lab
        .flows
        .iter()
        .zip(&scenario.flows)
        .take(SENDERS)
        .map(|(info, spec)| {
            let receiver = scenario.link_of(spec.to).rate.bits_per_second() as f64;
            let sender = scenario.link_of(spec.from).rate.bits_per_second() as f64;
            flow(info, (sender, receiver), &mut plan)
        })
        .collect();
    let ports = queues(scenario);
    let mut pausing = BTreeMap::new();
    let queues: Vec<_> = ports.iter().take(QUEUES).map(|port| queue(scenario, port, &mut pausing, &mut plan)).collect();
    let totals = vec![
        Total { name: "all flows", unit: "bit/s", column: plan.column("network", 0, "throughput_bps") },
        Total { name: "Jain's index", unit: "", column: plan.column("network", 0, "jain") },
    ];
    let mut notes = Vec::new();
    for (what, shown, all) in [("flows", senders.len(), lab.flows.len()), ("queues", queues.len(), ports.len())] {
        if shown < all {
            notes.push(format!("The first {shown} of {all} {what} are shown; trace.parquet has all."));
        }
    }
    if scenario.trace.interval.as_ps() == 0 {
        notes.push("This scenario records no trace: set trace.interval to see its charts.".to_owned());
    }
    let ecn = scenario.switches.first().and_then(|switch| switch.params.ecn[usize::from(scenario.qp.class())]);
    let settings = Settings { ecn: ecn.map(|ecn| (ecn.kmin.bytes(), ecn.kmax.bytes())), ..Settings::default() };
    let manifest = Manifest {
        title: path.to_owned(),
        kind: "lab",
        interval_ps: scenario.trace.interval.as_ps(),
        senders,
        queues,
        totals,
        parameters: Vec::new(),
        notes,
        columns: plan.count(),
    };
    (manifest, settings, plan)
}

/// `rates`: of the links of sender and receiver, bit/s.
fn flow(info: &FlowInfo, rates: (f64, f64), plan: &mut Plan) -> Sender {
    let mut series: Series = [("throughput", plan.column(&info.name, 0, "throughput_bps"))].into();
    let mut counters = Series::new();
    match info.sender_index {
        Some(index) => {
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
            for metric in ["rate_current", "rate_target", "alpha", "cnp_handled", "paused"] {
                series.insert(metric, plan.column(&info.from, 0, metric));
            }
        }
    }
    Sender { name: info.name.clone(), series, counters, link_bps: rates.0, limit_bps: rates.1 }
}

/// A port of a switch.
#[derive(Clone, Copy)]
struct Port {
    /// Numbers in the topology: of the switch, and of the node behind the port.
    switch: usize,
    other: usize,
    port: u16,
    /// Where the trace tells class from class.
    class: Option<usize>,
}

/// The classes of the flows, where the trace tells class from class.
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
    use super::*;
    use penstock_dashboard::Recording;
    use penstock_netsim::{Time, TraceSink};

    #[test]
    fn queues_are_drawn_whether_or_not_the_trace_tells_class_from_class() {
        for (classes, first) in [("false", "root > server0"), ("true", "root > server0, class 3")] {
            let overrides = [format!("trace.classes={classes}")];
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/advcam-5.toml");
            let scenario = LabScenario::load(path, &overrides).unwrap();
            let mut lab = Lab::build(&scenario, &mut |_| Err("no boards".into())).unwrap();
            let (manifest, settings, plan) = of_lab(path, &scenario, &lab);
            assert_eq!(manifest.queues[0].name, first);
            let depth = manifest.queues[0].series["depth"];
            let recording = Recording::new(manifest, settings).shared();
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
