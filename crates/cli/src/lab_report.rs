// SPDX-License-Identifier: Apache-2.0
//! The tables that a laboratory run ends with: flows as iperf3 and perftest show them, then the network.

use comfy_table::{presets, CellAlignment, Table};
use penstock_netsim::report::{FlowSummary, LabSummary, Quantiles};

/// With more flows than these only the first and the totals are shown; summary.json has all.
const FLOWS_SHOWN: usize = 32;

/// The tables of a summary, ready to print.
pub fn tables(summary: &LabSummary) -> String {
    let sections = [flows(summary).to_string(), totals(summary).to_string(), faults(summary)];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn flows(summary: &LabSummary) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    let header =
        ["flow", "interval [ms]", "transfer [MB]", "goodput [Gb/s]", "retr", "CNPs", "t_p50 [us]", "t_p99 [us]"];
    table.set_header(header);
    for flow in summary.flows.iter().take(FLOWS_SHOWN) {
        table.add_row(flow_row(flow));
    }
    if let Some(hidden) = summary.flows.len().checked_sub(FLOWS_SHOWN + 1) {
        table.add_row([format!("... {} more in summary.json", hidden + 1)]);
    }
    table.add_row(sum_row(summary));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn flow_row(flow: &FlowSummary) -> [String; 8] {
    let ms = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{:.3}", time * 1e3));
    [
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

fn sum_row(summary: &LabSummary) -> [String; 8] {
    let sum = |count: fn(&FlowSummary) -> u64| summary.flows.iter().map(count).sum::<u64>().to_string();
    let Quantiles { p50, p99, .. } = summary.mct_us;
    [
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

fn totals(summary: &LabSummary) -> Table {
    let mut rows = vec![("Jain's index", jain(summary))];
    if let Some(events) = &summary.events {
        let times = format!(
            "t_p50 {} us, t_p99 {} us, t_p99.9 {} us",
            us(events.p50_us),
            us(events.p99_us),
            us(events.p999_us)
        );
        rows.push(("events", format!("{} complete of {}; {times}", events.complete, events.count)));
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
        }
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
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    rows.into_iter().for_each(|(what, value)| {
        table.add_row([what.to_owned(), value]);
    });
    table
}

fn jain(summary: &LabSummary) -> String {
    match (summary.jain, summary.jain_min) {
        (Some(mean), Some(min)) => format!("{mean:.4} (least {min:.4})"),
        _ => "never two flows in one window".to_owned(),
    }
}

/// What makes the exit status 1, a line each.
fn faults(summary: &LabSummary) -> String {
    let mut lines: Vec<String> = summary.deadlock.iter().map(|cycle| format!("fault: {cycle}")).collect();
    if summary.end != "done" && summary.deadlock.is_none() {
        let open = summary.flows.iter().filter(|flow| !flow.complete).count();
        lines.push(format!("fault: the run ended early ({}) with {open} flows not done", summary.end));
    }
    let dropped = summary.switches.iter().filter(|switch| switch.dropped_headroom > 0);
    lines.extend(dropped.map(|switch| {
        format!("fault: {} dropped {} frames of lossless classes", switch.name, switch.dropped_headroom)
    }));
    let failed = summary.flows.iter().filter_map(|flow| Some((flow, flow.failed.as_ref()?)));
    lines.extend(failed.map(|(flow, why)| format!("fault: {}: {why}", flow.name)));
    lines.join("\n")
}
