// SPDX-License-Identifier: Apache-2.0
//! Tables of flows, as iperf3 and perftest show them, and of the network.

use comfy_table::Table;
use penstock_cli_common::output::table;
use penstock_lab::report::{EventSummary, FlowSummary, LabSummary, PortSummary, Quantiles, SwitchSummary};

/// Flows that are listed; of more only the first and the totals are shown; summary.json has all.
const FLOWS_SHOWN: usize = 32;

/// One row a flow, and their sum.
pub fn flows(summary: &LabSummary) -> String {
    let header =
        ["flow", "interval\n[ms]", "transfer\n[MB]", "goodput\n[Gb/s]", "retr", "CNPs", "t_p50\n[us]", "t_p99\n[us]"];
    let mut rows: Vec<Vec<String>> = summary.flows.iter().take(FLOWS_SHOWN).map(flow_row).collect();
    if let Some(hidden) = summary.flows.len().checked_sub(FLOWS_SHOWN + 1) {
        rows.push(vec![format!("... {} more in summary.json", hidden + 1)]);
    }
    rows.push(sum_row(summary));
    table::columns(&header, &rows, 1, table::terminal_width())
}

fn flow_row(flow: &FlowSummary) -> Vec<String> {
    let ms = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{:.3}", time * 1e3));
    vec![
        flow.name.clone(),
        format!("{}-{}", ms(flow.start_s), ms(flow.end_s)),
        format!("{:.2}", flow.delivered_bytes as f64 / 1e6),
        format!("{:.3}", flow.goodput_gbps),
        flow.retransmissions.to_string(),
        flow.cnps.to_string(),
        us(flow.mct_us.p50),
        us(flow.mct_us.p99),
    ]
}

fn sum_row(summary: &LabSummary) -> Vec<String> {
    let sum = |count: fn(&FlowSummary) -> u64| summary.flows.iter().map(count).sum::<u64>().to_string();
    let Quantiles { p50, p99, .. } = summary.mct_us;
    vec![
        format!("SUM of {}", summary.flows.len()),
        format!("0-{:.3}", summary.simulated_s * 1e3),
        format!("{:.2}", summary.delivered_bytes as f64 / 1e6),
        format!("{:.3}", summary.aggregate_gbps),
        sum(|flow| flow.retransmissions),
        sum(|flow| flow.cnps),
        us(p50),
        us(p99),
    ]
}

fn us(time: Option<f64>) -> String {
    time.map_or("-".to_owned(), |time| format!("{time:.1}"))
}

/// Fairness, events, switches, speed.
pub fn totals(summary: &LabSummary) -> Table {
    let mut rows = vec![("Jain's index", jain(summary))];
    if let Some(events) = &summary.events {
        let times = format!(
            "t_p50 {} us, t_p99 {} us, t_p99.9 {} us",
            us(events.p50_us),
            us(events.p99_us),
            us(events.p999_us)
        );
        let EventSummary { triggered, complete, in_flight, never_begun, lost, .. } = events;
        let rest = format!("{in_flight} in flight at the end, {never_begun} never begun, {lost} lost");
        rows.push(("events", format!("{complete} complete of {triggered} triggered: {rest}; {times}")));
    }
    for switch in &summary.switches {
        let marked: u64 = switch.ports.iter().map(|port| port.ecn_marked).sum();
        let pausing: f64 = switch.ports.iter().map(|port| port.pausing_s).sum();
        let dropped = switch.dropped_buffer + switch.dropped_threshold + switch.dropped_headroom;
        if marked + dropped + switch.cnm_sent > 0 || pausing > 0.0 || summary.switches.len() == 1 {
            let peak = switch.peak_buffer_bytes as f64 / 1e3;
            let text =
                format!("peak buffer {peak:.1} kB, {marked} marks, {dropped} drops, pausing {:.1} us", pausing * 1e6);
            rows.push(("switch", format!("{}: {text}", switch.name)));
            rows.push(("", in_force(switch)));
        }
    }
    for link in summary.links.iter().filter(|link| link.lost != [0, 0]) {
        let [there, back] = link.lost;
        rows.push(("link", format!("{}: {there} frames lost there, {back} back", link.name)));
    }
    let victims: Vec<_> = summary.flows.iter().filter(|flow| flow.hol_victim).map(|flow| flow.name.as_str()).collect();
    if !victims.is_empty() {
        let more = if victims.len() > 8 { ", ..." } else { "" };
        let named = victims.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        rows.push(("blocked", format!("{} flows behind the congestion of others: {named}{more}", victims.len())));
    }
    let timing = &summary.timing;
    let speed = format!(
        "{:.3} ms simulated in {:.2} s; {:.2} million packets over links per CPU second, {:.1} MB",
        summary.simulated_s * 1e3,
        timing.wall_s,
        timing.traversals_per_cpu_s / 1e6,
        timing.peak_rss_mb
    );
    rows.push(("time", speed));
    let rows = rows.into_iter().map(|(what, value)| (what.to_owned(), value)).collect();
    table::statements(rows, table::terminal_width())
}

/// Buffer and thresholds of a switch, those that were computed too; a range where ports differ.
pub fn in_force(switch: &SwitchSummary) -> String {
    let ports = |of: fn(&PortSummary) -> Option<u64>| {
        let values = switch.ports.iter().filter_map(of);
        let (least, most) = (values.clone().min()?, values.max()?);
        let kb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e3);
        Some(if least == most { kb(least) } else { format!("{} to {}", kb(least), kb(most)) })
    };
    let mut text = format!("in force: buffer {:.1} kB", switch.buffer_bytes as f64 / 1e3);
    match (ports(|port| port.kmin_bytes), ports(|port| port.kmax_bytes)) {
        (Some(kmin), Some(kmax)) => text += &format!(", K_min {kmin} kB, K_max {kmax} kB"),
        _ => text += ", no ECN",
    }
    match (switch.pfc, switch.alpha, ports(|port| port.xoff_bytes), ports(|port| port.xon_bytes)) {
        ("off", ..) => text += ", no PFC",
        (_, Some(alpha), ..) => text += &format!(", PFC by alpha {alpha}"),
        (_, _, xoff, xon) => {
            text += &format!(", X_off {} kB, X_on {} kB", xoff.unwrap_or_default(), xon.unwrap_or_default());
        }
    }
    match ports(|port| port.headroom_bytes) {
        Some(headroom) => format!("{text}, headroom {headroom} kB"),
        None => text,
    }
}

/// The verdict of the run, one sentence per line.
pub fn verdict(summary: &LabSummary) -> Table {
    let sentences = summary.verdict.sentences.iter().enumerate();
    let named = |(n, sentence): (usize, &String)| (if n == 0 { "verdict" } else { "" }.to_owned(), sentence.clone());
    table::statements(sentences.map(named).collect(), table::terminal_width())
}

fn jain(summary: &LabSummary) -> String {
    match (summary.jain, summary.jain_min) {
        (Some(mean), Some(min)) => format!("{mean:.4} (least {min:.4})"),
        _ => "never two flows in one window".to_owned(),
    }
}

/// The reasons for exit status 1, one line each.
pub fn faults(summary: &LabSummary) -> String {
    let mut lines: Vec<String> = summary.deadlock.iter().map(|cycle| format!("fault: {cycle}")).collect();
    if summary.end != "done" && summary.deadlock.is_none() {
        let open = summary.flows.iter().filter(|flow| !flow.complete).count();
        lines.push(format!("fault: the run ended early ({}) with {open} flows not done", summary.end));
    }
    if let Some(events) = summary.events.filter(|events| events.lost + events.overdue > 0) {
        lines.push(format!(
            "fault: {} of {} events were not complete: {} in flight at the end, {} never begun \
             ({} overdue), {} lost",
            events.triggered.saturating_sub(events.complete),
            events.triggered,
            events.in_flight,
            events.never_begun,
            events.overdue,
            events.lost
        ));
    }
    if summary.pull.as_ref().is_some_and(|pull| !pull.is_within_bound()) {
        lines.push("fault: a queue was longer than what was requested and announced".to_owned());
    }
    let dropped = summary.switches.iter().filter(|switch| switch.dropped_headroom > 0);
    lines.extend(dropped.map(|switch| {
        format!("fault: {} dropped {} frames of lossless classes", switch.name, switch.dropped_headroom)
    }));
    let failed = summary.flows.iter().filter_map(|flow| Some((flow, flow.failed.as_ref()?)));
    lines.extend(failed.map(|(flow, why)| format!("fault: {}: {why}", flow.name)));
    lines.join("\n")
}
