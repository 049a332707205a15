// SPDX-License-Identifier: Apache-2.0
//! Shares of profile "penstock" that do not fit their network or their load: more than a link carries, a whole one for
//! each of several queue pairs of a board, or less than boards that send unequally need; and too few CNPs for them.
//! Promise: the warnings have both numbers and the key to change; loads that are as equal as their shares have none.
//! Source: docs/congestion-control.md, "The rule of thumb".

use std::collections::BTreeMap;

use crate::language::document::Document;
use crate::language::Problem;
use crate::offered::{shares, span, wire_bytes, OfferedLoad};
use crate::scenario::{limited_pairs, FlowSpec, LabScenario, Workload};
use crate::topology::Routes;
use crate::units::{Rate, Time};
use crate::workload::{EventList, Pace};

/// The maximum number of problems of one kind that are reported one by one.
pub(super) const LISTED: usize = 5;
/// Shares are rounded down; what exceeds a link by less than this is none of theirs.
const ROUNDING: f64 = 1.001;
/// The part of what a receiver could get below which shares leave its link idle.
const USED: f64 = 0.9;
/// Events that take this much longer than in the ideal, and by `LATE_S` at least, are late.
const LATE: f64 = 1.5;
const LATE_S: f64 = 100e-6;
/// A board that offers more than this times its share is held back: random events may come close together.
const EXCESS: f64 = 1.2;
/// Increases between two CNPs of a queue pair that a cut makes up for: the queue settles with 2.7 and not with 3.6.
const STEPS_BETWEEN_CNPS: u64 = 3;
/// The maximum number of events that are looked at.
const EVENTS: usize = 256;

pub(super) fn warnings(scenario: &LabScenario, routes: &Routes, document: &Document) -> Vec<Problem> {
    if scenario.flows.iter().all(|flow| flow.limit().is_none()) {
        return Vec::new();
    }
    let mut warnings = overbooked(scenario, routes, document);
    if warnings.is_empty() {
        warnings.extend(idle(scenario, routes, document));
        warnings.extend(unequal(scenario, document));
    }
    warnings.extend(unnotified(scenario, document));
    warnings
}

/// The end of a warning: flows can be pulled instead.
const OR_PULL: &str = ", or qp.mode = \"pull\"";

fn gbps(bps: f64) -> String {
    format!("{:.2} Gb/s", bps * 1e-9)
}

/// The share of all flows with one, if it is the same.
fn common(scenario: &LabScenario) -> Option<Rate> {
    let mut limits = scenario.flows.iter().filter_map(FlowSpec::limit);
    let first = limits.next()?;
    limits.all(|other| other == first).then_some(first)
}

/// What to set so that shares are `factor` times as large.
fn remedy(scenario: &LabScenario, factor: f64) -> String {
    match common(scenario) {
        Some(share) => format!("set cc.share = \"{}\"", Rate((share.bits_per_second() as f64 * factor) as u64)),
        None => format!("set {factor:.3} times these values as cc.share"),
    }
}

/// Links that carry less than the shares of the boards that send over them. A sender's link is none: its queue is in
/// the sender.
fn overbooked(scenario: &LabScenario, routes: &Routes, document: &Document) -> Vec<Problem> {
    let pairs = limited_pairs(&scenario.flows);
    let beyond = |load: &OfferedLoad| !load.is_sender && load.share() > ROUNDING;
    let mut full: Vec<OfferedLoad> = shares(scenario, routes, FlowSpec::limit).into_iter().filter(beyond).collect();
    if full.is_empty() {
        return Vec::new();
    }
    // What they would be if the queue pairs of two hosts had one share together.
    let divided =
        |flow: &FlowSpec| Some(Rate(flow.limit()?.0 / pairs.get(&(flow.from, flow.to)).copied().unwrap_or(1)));
    let divided: Vec<OfferedLoad> = shares(scenario, routes, divided).into_iter().filter(beyond).collect();
    let more = full.len().saturating_sub(LISTED);
    full.truncate(LISTED);
    let last = full.len() - 1;
    let warned = full.iter().enumerate().map(|(index, load)| {
        let is_full = divided.iter().any(|other| (other.link, other.direction) == (load.link, load.direction));
        let suffix = if more > 0 && index == last { format!(" ({more} more links)") } else { String::new() };
        let share = common(scenario).map_or(String::new(), |share| share.to_string());
        let message = match pairs.iter().rev().max_by_key(|(_, count)| **count).filter(|_| !is_full) {
            Some(((from, to), count)) => {
                let (from, to) = (scenario.topology.name(*from), scenario.topology.name(*to));
                let of_all = pairs.values().sum::<u64>();
                format!(
                    "{from} has {count} queue pairs to {to}, each with a whole share: {of_all} limiters of {} boards add up to \
                     {} on the link from {} to {}, which carries {}; {}",
                    pairs.len(),
                    gbps(load.wire_bps),
                    load.from,
                    load.to,
                    gbps(load.capacity_bps),
                    remedy(scenario, 1.0 / *count as f64)
                )
            }
            None => format!(
                "shares add up to {} on the link from {} to {}, which carries {}: boards are paused or lose frames; {}",
                gbps(load.wire_bps),
                load.from,
                load.to,
                gbps(load.capacity_bps),
                remedy(scenario, 1.0 / load.share())
            ),
        };
        document.problem("cc.share", &share, format!("{message}{}{suffix}", OR_PULL))
    });
    warned.collect()
}

/// Receivers to which flows that always have data send, with shares that leave the link idle. Such flows take what is
/// left within seconds only.
fn idle(scenario: &LabScenario, routes: &Routes, document: &Document) -> Option<Problem> {
    let greedy = |flow: &FlowSpec| matches!(flow.workload, Workload::Steady(steady) if steady.pace == Pace::Greedy);
    let limit = |flow: &FlowSpec| flow.limit().filter(|_| greedy(flow));
    // Receivers, and whether all their flows are such.
    let mut receivers: BTreeMap<&str, bool> = BTreeMap::new();
    for flow in &scenario.flows {
        *receivers.entry(scenario.topology.name(flow.to)).or_insert(true) &= limit(flow).is_some();
    }
    let could = |flow: &FlowSpec| limit(flow).map(|_| scenario.link_of(flow.from).rate);
    let lines = shares(scenario, routes, could).into_iter();
    let lines: BTreeMap<(usize, usize), f64> =
        lines.map(|line| ((line.link, line.direction), line.wire_bps.min(line.capacity_bps))).collect();
    let mut held: Vec<(OfferedLoad, f64)> = Vec::new();
    for load in shares(scenario, routes, limit) {
        let most = lines.get(&(load.link, load.direction)).copied().unwrap_or(0.0);
        if load.wire_bps < USED * most && receivers.get(load.to.as_str()) == Some(&true) {
            held.push((load, most));
        }
    }
    let (load, most) = held.iter().max_by(|a, b| (a.1 / a.0.wire_bps).total_cmp(&(b.1 / b.0.wire_bps)))?;
    let suffix = if held.len() > 1 { format!(" ({} more receivers)", held.len() - 1) } else { String::new() };
    let share = common(scenario).map_or(String::new(), |share| share.to_string());
    let message = format!(
        "the flows to {} have shares of {} in sum and could send {}: they take what is left within seconds only; {}{}{suffix}",
        load.to,
        gbps(load.wire_bps),
        gbps(*most),
        remedy(scenario, most / load.wire_bps),
        OR_PULL
    );
    Some(document.problem("cc.share", &share, message))
}

/// Receivers whose port sends each queue pair so few CNPs that rates rise by more than a CNP cuts them.
fn unnotified(scenario: &LabScenario, document: &Document) -> Option<Problem> {
    let interval = scenario.qp.cnp_port_interval?;
    let mut receivers: BTreeMap<usize, (u64, Time)> = BTreeMap::new();
    let has_timer = |flow: &&FlowSpec| flow.limit().is_some() && flow.dcqcn.increase_interval > Time::ZERO;
    for flow in scenario.flows.iter().filter(has_timer) {
        let (count, shortest) = receivers.entry(flow.to).or_insert((0, Time::MAX));
        (*count, *shortest) = (*count + 1, (*shortest).min(flow.dcqcn.increase_interval));
    }
    let between = |count: u64| Time(interval.0.saturating_mul(count));
    let mut receivers = receivers.into_iter();
    let (to, (count, shortest)) = receivers
        .find(|(_, (count, shortest))| between(*count) > Time(shortest.0.saturating_mul(STEPS_BETWEEN_CNPS)))?;
    let message = format!(
        "{count} queue pairs to {} have one CNP each in {}, and raise their rates every {shortest}: the queue grows without \
         end; set cc.increase_interval = \"{}\"",
        scenario.topology.name(to),
        between(count),
        Time(between(count).0 / 2)
    );
    Some(document.problem("qp.cnp_port_interval", &interval.to_string(), message))
}

/// What a server's events take and offer, by a part of them.
#[derive(Default)]
struct Took {
    /// Until the slowest board has sent its fragment at its share, in s, summed over events.
    limited: f64,
    /// Until the receiver's link has carried all fragments.
    carried: f64,
    /// Events that were looked at, and those of them with a fragment.
    seen: usize,
    sent: usize,
    /// How often a flow was the slowest, by its number.
    slowest: BTreeMap<usize, usize>,
    /// Bits of each flow on the wire.
    bits: BTreeMap<usize, f64>,
}

/// Boards whose fragments are so unequal that equal shares hold them back.
fn unequal(scenario: &LabScenario, document: &Document) -> Option<Problem> {
    let list = scenario.events.as_ref()?;
    let mut servers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        if matches!(flow.workload, Workload::Events { .. }) && flow.limit().is_some() {
            servers.entry(flow.to).or_default().push(number);
        }
    }
    let table = if document.find("replay").is_some() { "replay" } else { "triggers" };
    let found = servers.into_iter().find_map(|(to, flows)| {
        let took = took(scenario, list, to, &flows);
        late(scenario, &took, to).or_else(|| short(scenario, list, &took, to))
    })?;
    let advice = format!("where sizes differ by board alone, weights in [[{table}.group]]");
    let message = format!("{found}; set qp.mode = \"pull\", or, {advice}");
    Some(document.problem(table, "", message))
}

/// Events of which the slowest fragment takes longer at its share than all fragments on the receiver's link.
fn late(scenario: &LabScenario, took: &Took, to: usize) -> Option<String> {
    let (limited, carried) = (took.limited / took.sent as f64, took.carried / took.sent as f64);
    let is_late = limited > LATE * carried && limited - carried > LATE_S;
    let (number, _) = took.slowest.iter().max_by_key(|(_, often)| **often).filter(|_| is_late)?;
    let flow = &scenario.flows[*number];
    Some(format!(
        "fragments are unequal: the slowest of an event takes {:.1} us on average at its share, for {} {}, and all take \
         {:.1} us on the link to {}",
        limited * 1e6,
        scenario.topology.name(flow.from),
        flow.limit().unwrap_or_default(),
        carried * 1e6,
        scenario.topology.name(to)
    ))
}

/// A board that offers more than its share of a link that could carry all.
fn short(scenario: &LabScenario, list: &EventList, took: &Took, to: usize) -> Option<String> {
    let servers = match scenario.flows[*took.bits.keys().next()?].workload {
        Workload::Events { servers, .. } => servers,
        Workload::Steady(_) => return None,
    };
    let per_s = list.times.len() as f64 / span(&list.times)? / servers as f64 / took.seen as f64;
    let line = scenario.link_of(to).rate.bits_per_second() as f64;
    if took.bits.values().sum::<f64>() * per_s > line {
        return None;
    }
    let share = |number: &usize| scenario.flows[*number].limit().unwrap_or_default().bits_per_second().max(1) as f64;
    let of = |(number, bits): (&usize, &f64)| (*number, bits * per_s, bits * per_s / share(number));
    let (number, offered, _) =
        took.bits.iter().map(of).max_by(|a, b| a.2.total_cmp(&b.2)).filter(|it| it.2 > EXCESS)?;
    let flow = &scenario.flows[number];
    Some(format!(
        "fragments are unequal: {} offers {} to {} and has a share of {}",
        scenario.topology.name(flow.from),
        gbps(offered),
        scenario.topology.name(to),
        flow.limit().unwrap_or_default()
    ))
}

fn took(scenario: &LabScenario, list: &EventList, to: usize, flows: &[usize]) -> Took {
    let line = scenario.link_of(to).rate.bits_per_second() as f64;
    let mtu = f64::from(scenario.qp.mtu);
    let mut took = Took::default();
    let (first, every) = match scenario.flows[flows[0]].workload {
        Workload::Events { server, servers, .. } => (server, servers),
        Workload::Steady(_) => return took,
    };
    let count = list.times.len().saturating_sub(first).div_ceil(every);
    for event in (first..list.times.len()).step_by(every * count.div_ceil(EVENTS).max(1)) {
        took.seen += 1;
        let (mut all, mut slowest) = (0.0, None);
        for number in flows {
            let flow = &scenario.flows[*number];
            let Workload::Events { board, .. } = flow.workload else { continue };
            let bytes = list.bytes(event, board) as f64;
            if bytes == 0.0 {
                continue;
            }
            let bits = wire_bytes(scenario, flow, bytes) * 8.0;
            all += bits;
            *took.bits.entry(*number).or_default() += bits;
            // A limiter delays the packets after the first.
            let delayed = bits * (1.0 - 1.0 / (bytes / mtu).ceil());
            let seconds = delayed / flow.limit().unwrap_or_default().bits_per_second().max(1) as f64;
            if slowest.is_none_or(|(most, _)| seconds > most) {
                slowest = Some((seconds, *number));
            }
        }
        let Some((seconds, number)) = slowest else { continue };
        took.sent += 1;
        took.limited += seconds;
        took.carried += all / line;
        *took.slowest.entry(number).or_default() += 1;
    }
    took
}
