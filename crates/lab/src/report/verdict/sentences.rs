// SPDX-License-Identifier: Apache-2.0
//! The verdict in words, from the offered load to the mechanism that carried it.

use super::super::findings::Offered;
use super::super::ideal::IdealBuffer;
use super::super::summary::{PhaseSummary, Phases};
use super::facts::{bytes, Facts};

/// One after the other, each with its number.
pub(super) fn all(facts: &Facts) -> Vec<String> {
    let parts = [
        offered(facts),
        worst(facts),
        bottleneck(facts),
        events(facts),
        ideal(facts),
        start_up(facts),
        backlog(facts),
        waiting(facts),
        buffer(facts),
        lost(facts),
        cut_off(facts),
        carried(facts),
        pulled(facts),
    ];
    parts.into_iter().flatten().collect()
}

fn offered(facts: &Facts) -> Option<String> {
    let greedy = "flows without a pace take what is left";
    let Some(Offered { from, to, wire_gbps, payload_gbps, capacity_gbps }) = facts.offered.first() else {
        let goodput = facts.summary.aggregate_gbps;
        return Some(format!("Offered: {greedy}; {goodput:.2} Gb/s of payload were carried."));
    };
    let share = 100.0 * facts.offered[0].share();
    let more = if facts.is_greedy { format!("; {greedy}") } else { String::new() };
    let full = facts.offered.iter().filter(|load| load.share() > 1.0).count();
    let suffix = if full > 1 { format!(", and {} more links too much", full - 1) } else { String::new() };
    Some(format!(
        "Offered: {wire_gbps:.2} Gb/s with headers ({payload_gbps:.2} of payload) to the {capacity_gbps:.2} Gb/s from {from} to \
         {to}, {share:.0} %{suffix}{more}."
    ))
}

fn bottleneck(facts: &Facts) -> Option<String> {
    let busiest = facts.bottleneck?;
    let (from, to, share) = (&busiest.from, &busiest.to, 100.0 * busiest.utilisation);
    let queue =
        busiest.peak_queue_bytes.map_or(String::new(), |peak| format!("; at most {} waited there", bytes(peak)));
    let has_demand = facts.is_greedy || facts.offered.iter().any(|load| load.share() > 1.0);
    let left = 100.0 * (1.0 - busiest.utilisation);
    let unused = match has_demand && busiest.utilisation < 0.9 && facts.sum(|port| port.ecn_marked as f64) > 0.0 {
        true => format!("; congestion control left {left:.1} % of it unused"),
        false => String::new(),
    };
    let name = if busiest.utilisation >= 0.8 { "Bottleneck" } else { "No link was full; busiest" };
    Some(format!("{name}: {from} to {to}, busy {share:.1} % of the run{queue}{unused}."))
}

fn events(facts: &Facts) -> Option<String> {
    let events = facts.summary.events?;
    let late = events.triggered - events.complete.min(events.triggered);
    if late == 0 {
        let p99 = events.p99_us.map_or(String::new(), |us| format!(", 99 % within {us:.1} us"));
        return Some(format!("Events: all {} were complete{p99}.", events.triggered));
    }
    Some(format!(
        "Events: {} of {} were complete; {} were in flight at the end, {} never begun, {} lost.",
        events.complete, events.triggered, events.in_flight, events.never_begun, events.lost
    ))
}

/// Where it waited.
fn waiting(facts: &Facts) -> Option<String> {
    let (paused, _) = facts.paused();
    let in_switch = facts.summary.switches.iter().map(|switch| switch.peak_buffer_bytes).max().unwrap_or(0);
    if facts.outstanding_bytes == 0 && paused == 0.0 {
        return None;
    }
    let outstanding = match facts.outstanding_bytes {
        0 => "nothing was outstanding at the end".to_owned(),
        rest => format!("{} were posted and not delivered at the end", bytes(rest)),
    };
    Some(format!(
        "Waiting: {outstanding}; no switch held more than {}, all else waited at the senders, paused up to {:.2} ms.",
        bytes(in_switch),
        paused * 1e3
    ))
}

/// The most that came to a port in a short time.
fn worst(facts: &Facts) -> Option<String> {
    let ports = &facts.summary.ideal.as_ref()?.ports;
    let port = facts.overloaded_port().or_else(|| {
        ports.iter().max_by(|a, b| a.worst_share.total_cmp(&b.worst_share)).filter(|port| port.worst_share > 1.0)
    })?;
    let drained = match port.overloaded_s > 0.0 {
        true => format!(
            "; its longest overload took {:.2} ms and had drained at {:.2} ms",
            port.overloaded_s * 1e3,
            port.drained_at_s * 1e3
        ),
        false => String::new(),
    };
    Some(format!(
        "Worst millisecond: from {:.2} ms on {} to {} was offered {:.0} % of what it carries{drained}.",
        port.worst_at_s * 1e3,
        port.from,
        port.to,
        100.0 * port.worst_share
    ))
}

fn ideal(facts: &Facts) -> Option<String> {
    let (here, ideal) = facts.completion_us()?;
    Some(format!(
        "Ideal: without limiter, pauses and full buffers 99 % of the {} take {ideal:.1} us; here {here:.1} us, {:.2} \
         times as long.",
        facts.unit(),
        here / ideal.max(1e-3)
    ))
}

/// The start-up beside the steady state.
fn start_up(facts: &Facts) -> Option<String> {
    let Phases { start_up, steady } = facts.summary.phases.as_ref()?;
    let within = |phase: &PhaseSummary| phase.completion_us.p99.map_or("none".to_owned(), |us| format!("{us:.1} us"));
    Some(format!(
        "Start-up: up to {:.2} ms 99 % of the {} took {}, and {} after it; at most {} and {} waited at a port, {:.2} and \
         {:.2} ms of pauses.",
        start_up.to_s * 1e3,
        facts.unit(),
        within(start_up),
        within(steady),
        bytes(start_up.peak_queue_bytes),
        bytes(steady.peak_queue_bytes),
        start_up.pausing_s * 1e3,
        steady.pausing_s * 1e3
    ))
}

fn backlog(facts: &Facts) -> Option<String> {
    let rate = facts.summary.events?.backlog_per_s?;
    Some(format!("Backlog: it rises by {rate:.0} events a second; this load cannot be read out."))
}

fn buffer(facts: &Facts) -> Option<String> {
    let most = facts.summary.ideal.as_ref()?.buffers.iter();
    let fullest = most.max_by(|a, b| {
        let share = |buffer: &IdealBuffer| buffer.needed_bytes as f64 / buffer.buffer_bytes.max(1) as f64;
        share(a).total_cmp(&share(b))
    });
    let buffer = fullest.filter(|buffer| buffer.needed_bytes > 0)?;
    Some(format!(
        "Buffer: {} in {} would have held all that waits there without a limiter; it has {}.",
        bytes(buffer.needed_bytes),
        buffer.switch,
        bytes(buffer.buffer_bytes)
    ))
}

fn lost(facts: &Facts) -> Option<String> {
    let (most, all) = facts.lost()?;
    Some(format!("Lost on links: {all} frames, {} of them on {}.", most.lost.iter().sum::<u64>(), most.name))
}

/// Flows without a way are named.
fn cut_off(facts: &Facts) -> Option<String> {
    const NAMED: usize = 8;
    let cut: Vec<_> = facts.summary.flows.iter().filter(|flow| flow.cut_off_s.is_some()).collect();
    let first = cut.iter().filter_map(|flow| flow.cut_off_s).reduce(f64::min)?;
    let names: Vec<_> = cut.iter().take(NAMED).map(|flow| flow.name.as_str()).collect();
    let more = if cut.len() > NAMED { ", ..." } else { "" };
    Some(format!("No way: from {:.2} ms on {} flows had none: {}{more}.", first * 1e3, cut.len(), names.join(", ")))
}

/// The longest queue beside what could wait there at most.
fn pulled(facts: &Facts) -> Option<String> {
    let pull = facts.summary.pull.as_ref()?;
    let host = pull.hosts.iter().max_by_key(|host| host.window_bytes)?;
    let bound = match pull.queue_bound_bytes {
        Some(bound) if pull.is_within_bound() => format!("at most {} could have", bytes(bound)),
        Some(bound) => format!("more than the {} that were requested and announced", bytes(bound)),
        None => "other traffic, faults and silent boards leave no bound".to_owned(),
    };
    let reads: u64 = pull.hosts.iter().map(|host| host.reads).sum();
    let (window, peak) = (bytes(host.window_bytes), bytes(pull.peak_queue_bytes));
    Some(format!(
        "Pulled: {reads} READs; {} requests {window} at a time, {:.2} % of what comes to it is announcements; {peak} waited \
         at a port, {bound}.",
        host.host,
        100.0 * host.announcement_share
    ))
}

fn carried(facts: &Facts) -> Option<String> {
    if facts.summary.switches.is_empty() {
        return None;
    }
    let cnps: u64 = facts.summary.flows.iter().map(|flow| flow.cnps).sum();
    let feedbacks: u64 = facts.summary.flows.iter().map(|flow| flow.feedbacks).sum();
    let again = facts.sent_again();
    let marked = facts.sum(|port| port.ecn_marked as f64);
    let (pauses, pausing) = (facts.sum(|port| port.pauses_sent as f64), facts.sum(|port| port.pausing_s) * 1e3);
    let notifications = if feedbacks > 0 { format!("{feedbacks} QCN messages") } else { format!("{cnps} CNPs") };
    Some(format!(
        "Carried by: {marked} marks and {notifications}, {pauses} pause frames ({pausing:.2} ms), {} drops, {again} packets sent \
         again.",
        facts.dropped()
    ))
}
