// SPDX-License-Identifier: Apache-2.0
//! The page of a laboratory run: flows, the queues on their ways, totals. It has no controls: its senders are software.

use super::Plan;
use penstock_dashboard::{Manifest, Queue, Sender, Series, Settings, Total};
use penstock_netsim::lab::{FlowInfo, Lab, LabScenario, Protocol};
use penstock_netsim::topology::NodeKind;
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
    let queues: Vec<_> =
        ports.iter().take(QUEUES).map(|port| queue(scenario, *port, &mut pausing, &mut plan)).collect();
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

/// A port of a switch: numbers of the switch in the topology, of the port, and of the node behind it.
type Port = (usize, usize, usize);

/// Ports of switches: first those to receivers, then those to other switches, then the rest.
fn queues(scenario: &LabScenario) -> Vec<Port> {
    let topology = &scenario.topology;
    let receivers: BTreeSet<usize> = scenario.flows.iter().map(|flow| flow.to).collect();
    let mut ports: Vec<Port> = Vec::new();
    for (number, node) in topology.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Switch) {
        for (port, link) in node.ports.iter().enumerate() {
            ports.push((number, port, topology.links[*link].peer(number)));
        }
    }
    ports.sort_by_key(|(_, _, other)| match topology.nodes[*other].kind {
        _ if receivers.contains(other) => 0,
        NodeKind::Switch => 1,
        NodeKind::Host => 2,
    });
    ports
}

/// `pausing`: the columns that say whether a switch pauses anyone.
fn queue(
    scenario: &LabScenario,
    (switch, port, other): Port,
    pausing: &mut BTreeMap<usize, usize>,
    plan: &mut Plan,
) -> Queue {
    let nodes = &scenario.topology.nodes;
    let (name, port) = (&nodes[switch].name, port as u16);
    let ports = 0..nodes[switch].ports.len() as u16;
    let pausing = *pausing.entry(switch).or_insert_with(|| plan.greatest(name, ports, "pfc_pausing"));
    Queue { name: format!("{name} > {}", nodes[other].name), series: plan.queue(name, port, pausing) }
}
