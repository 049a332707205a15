// SPDX-License-Identifier: Apache-2.0
//! The advice of a verdict: the most severe cause, and a value to start with.

use super::super::per::per;
use super::super::summary::{FlowSummary, SwitchSummary};
use super::facts::{bytes, Facts};
use crate::offered::span;

/// Share of a link that is left free for bursts.
const RESERVE: f64 = 0.95;
/// Below this share of the busiest link, flows that could fill it were held back.
const USED: f64 = 0.9;

/// Causes from the most severe on; the first that applies is reported.
pub(super) fn first(facts: &Facts) -> String {
    let causes = [
        deadlock,
        headroom,
        overload,
        no_way,
        failed,
        drops,
        lost,
        unfinished,
        burst,
        backlog,
        late,
        pauses,
        repeated,
        small_buffer,
        unused,
    ];
    causes.iter().find_map(|cause| cause(facts)).unwrap_or_else(|| match facts.bottleneck {
        Some(busiest) => format!(
            "nothing has to change; the busiest link, {} to {}, has {:.1} % left",
            busiest.from,
            busiest.to,
            100.0 * (1.0 - busiest.utilisation)
        ),
        None => "let something be sent; 0 bytes went over any link".to_owned(),
    })
}

fn deadlock(facts: &Facts) -> Option<String> {
    facts.summary.deadlock.as_ref().map(|_| {
        format!(
            "route around one of the links of the circle, or set switch.pfc = false: {} ports waited",
            facts.summary.switches.len()
        )
    })
}

fn headroom(facts: &Facts) -> Option<String> {
    let switch = facts.summary.switches.iter().find(|switch| switch.dropped_headroom > 0)?;
    let headroom = switch.ports.iter().filter_map(|port| port.headroom_bytes).max().unwrap_or(0);
    Some(format!(
        "give {} more switch.headroom than {}; {} lossless frames were dropped",
        switch.name,
        bytes(headroom),
        switch.dropped_headroom
    ))
}

fn overload(facts: &Facts) -> Option<String> {
    let load = facts.offered.first().filter(|load| load.share() > 1.0)?;
    let needed = load.wire_gbps / RESERVE;
    let least = match facts.scenario.events.as_ref().and_then(|events| Some((events.times.len(), span(&events.times)?)))
    {
        Some((events, span)) => {
            let khz = events as f64 / span / load.share() * RESERVE * 1e-3;
            format!("trigger at {khz:.2} kHz at most")
        }
        None => format!("offer {:.2} Gb/s of payload at most", load.payload_gbps / load.share() * RESERVE),
    };
    Some(format!("give {} to {} {needed:.1} Gb/s instead of {:.1}, or {least}", load.from, load.to, load.capacity_gbps))
}

fn no_way(facts: &Facts) -> Option<String> {
    let cut = facts.summary.flows.iter().filter(|flow| flow.cut_off_s.is_some());
    let since = |flow: &FlowSummary| flow.cut_off_s.unwrap_or(f64::INFINITY);
    let first = cut.clone().min_by(|a, b| since(a).total_cmp(&since(b)))?;
    Some(format!(
        "give {} a second way to {}: {} of {} flows had none from {:.2} ms on",
        first.from,
        first.to,
        cut.count(),
        facts.summary.flows.len(),
        since(first) * 1e3
    ))
}

fn failed(facts: &Facts) -> Option<String> {
    let count = facts.summary.flows.iter().filter(|flow| flow.failed.is_some()).count();
    let flow = facts.summary.flows.iter().find(|flow| flow.failed.is_some())?;
    let why = flow.failed.as_deref().unwrap_or_default();
    Some(format!("find out why {} gave up ({why}); {count} of {} flows did", flow.name, facts.summary.flows.len()))
}

fn drops(facts: &Facts) -> Option<String> {
    let drops = |switch: &&SwitchSummary| switch.dropped_buffer + switch.dropped_threshold;
    let switch = facts.summary.switches.iter().max_by_key(drops).filter(|switch| drops(switch) > 0)?;
    let lossless = if switch.pfc == "off" { ", or set switch.pfc = true" } else { "" };
    let ideal = facts.summary.ideal.iter().flat_map(|ideal| &ideal.buffers);
    let needed = ideal.filter(|buffer| buffer.switch == switch.name).map(|buffer| buffer.needed_bytes).next();
    let more = needed.unwrap_or(0).max(2 * switch.buffer_bytes);
    Some(format!(
        "give {} a switch.buffer of {} instead of {}{lossless}; {} frames were dropped",
        switch.name,
        bytes(more),
        bytes(switch.buffer_bytes),
        drops(&switch)
    ))
}

fn unfinished(facts: &Facts) -> Option<String> {
    if facts.summary.end != "time limit" {
        return None;
    }
    let open = facts.summary.flows.iter().filter(|flow| !flow.complete).count();
    let rest = facts.outstanding_bytes as f64 * 8e-9 / facts.summary.aggregate_gbps.max(1e-3);
    Some(format!(
        "raise run.time_limit; {open} flows were not done, what is outstanding takes {:.2} ms more at the present rate",
        rest * 1e3
    ))
}

fn lost(facts: &Facts) -> Option<String> {
    let (most, all) = facts.lost()?;
    let here = most.lost.iter().sum::<u64>();
    Some(format!("mend {}: it lost {here} frames, all links together {all}", most.name))
}

fn burst(facts: &Facts) -> Option<String> {
    let port = facts.overloaded_port()?;
    // Only where events wait for a good part of the overload: random events wait for each other at any load.
    let (_, ideal) = facts.completion_us().filter(|(_, ideal)| *ideal > 1e6 * port.overloaded_s / 4.0)?;
    Some(format!(
        "give {} to {} more than its rate, or accept that {} wait for {:.2} ms: bursts of up to {:.0} % of what it carries \
         overload it for up to {:.2} ms",
        port.from,
        port.to,
        facts.unit(),
        ideal * 1e-3,
        100.0 * port.worst_share,
        port.overloaded_s * 1e3
    ))
}

fn backlog(facts: &Facts) -> Option<String> {
    let rate = facts.summary.events?.backlog_per_s?;
    Some(format!("{}: this load cannot be read out, the backlog rises by {rate:.0} events a second", let_go(facts)))
}

fn late(facts: &Facts) -> Option<String> {
    let (here, ideal) = facts.late_us()?;
    Some(format!(
        "{}: 99 % of the {} were complete within {here:.1} us, {:.1} times the {ideal:.1} us without what holds boards back",
        let_go(facts),
        facts.unit(),
        here / ideal
    ))
}

/// What holds the boards back, and a comparison that shows it.
fn let_go(facts: &Facts) -> &'static str {
    let is_limited = facts.summary.flows.iter().any(|flow| flow.law != "off");
    if is_limited {
        "compare with cc.law = \"off\""
    } else {
        "look for what holds the senders back"
    }
}

fn pauses(facts: &Facts) -> Option<String> {
    let (longest, ports) = facts.paused();
    let marks = facts.sum(|port| port.ecn_marked as f64) > 0.0;
    let how = if marks { "lower switch.kmin and kmax" } else { "set switch.ecn = true and cc.law = \"dcqcn\"" };
    (longest > 0.0 && facts.has_steady_pauses()).then(|| {
        format!(
            "{how}, so that marks come before pauses: {ports} ports were paused, one for {:.3} ms, {:.1} % of the run",
            longest * 1e3,
            100.0 * per(longest, facts.summary.simulated_s)
        )
    })
}

fn repeated(facts: &Facts) -> Option<String> {
    let again = facts.sent_again();
    (again > 0).then(|| format!("raise qp.ack_timeout: {again} packets were sent again, and no frame was lost"))
}

fn small_buffer(facts: &Facts) -> Option<String> {
    let buffer = facts.small_buffer()?;
    let is_limited = facts.summary.flows.iter().all(|flow| flow.law != "off");
    let how = if is_limited { "keep the rate limiter, or give" } else { "give" };
    let (needed, has) = (bytes(buffer.needed_bytes), bytes(buffer.buffer_bytes));
    Some(format!(
        "{how} {} a switch.buffer of {needed} instead of {has}: without a limiter so much can wait there",
        buffer.switch
    ))
}

fn unused(facts: &Facts) -> Option<String> {
    let busiest = facts.bottleneck.filter(|busiest| facts.is_greedy && busiest.utilisation < USED)?;
    let left = 100.0 * (1.0 - busiest.utilisation);
    let marks = facts.sum(|port| port.ecn_marked as f64) > 0.0;
    let how =
        if marks { "search with `penstock tune --objective goodput`" } else { "look for what holds the senders back" };
    Some(format!("{how}: {} to {} was idle {left:.1} % of the run", busiest.from, busiest.to))
}
