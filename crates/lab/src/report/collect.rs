// SPDX-License-Identifier: Apache-2.0
//! Collects the counters of all nodes at the end of a run.
//! Promise: nothing is counted twice, and nothing is measured here.

use penstock_cc::Law;
use penstock_netsim::{
    lossless_headroom, Distribution, FlowRecord, Headroom, Ledger, LinkId, NodeId, PfcThreshold, PortId, PullBoard,
    ReadRequester, ReadResponder, Station, SwitchView,
};
use penstock_transport::{RequesterConfig, RequesterCounters};
use penstock_wire::{BthRepr, Opcode, Packet, Payload, Psn, RocePacket};

use super::findings::Verdict;
use super::ideal::ideal;
use super::path::{blocking, path_of, Blocking, Hop};
use super::per::per;
use super::pull;
use super::quantiles::Quantiles;
use super::summary::{
    EventSummary, FlowSummary, LabSummary, LinkSummary, PhaseSummary, Phases, PortSummary, SwitchSummary, Timing,
    SCHEMA,
};
use super::verdict;
use super::watch::End;
use crate::flow::FlowInfo;
use crate::phases::Phase;
use crate::run::Lab;
use crate::scenario::{LabScenario, SwitchSpec, Workload};
use crate::topology::{NodeKind, TopologyLink, TopologyNode};
use crate::units::Time;
use crate::workload::EventList;

/// The summary of a run. `scenario_name` is what the user called the file.
pub fn summary(lab: &Lab, scenario_name: &str, scenario: &LabScenario, end: &End) -> LabSummary {
    let (ledger, now) = (lab.ledger.borrow(), lab.now());
    let delivered_bytes = ledger.flows().iter().map(|flow| flow.delivered_bytes).sum();
    let (events, traversals) = (lab.engine.events(), lab.engine.traversals());
    let mut summary = LabSummary {
        schema: SCHEMA,
        kind: "lab",
        scenario: scenario_name.to_owned(),
        seed: scenario.run.seed,
        simulated_s: now.as_secs_f64(),
        end: end.word(),
        deadlock: if let End::Deadlock(cycle) = end { Some(cycle.to_string()) } else { None },
        flows: lab.flows.iter().map(|flow| flow_summary(lab, scenario, ledger.flow(flow.id), flow)).collect(),
        jain: ledger.fairness.mean(),
        jain_min: ledger.fairness.min,
        aggregate_gbps: gbps(delivered_bytes, span(&ledger, now)),
        delivered_bytes,
        mct_us: Quantiles::from(&ledger.completion),
        events: event_summary(lab, &ledger, scenario),
        switches: switches(lab, scenario, now),
        links: links(lab, scenario, now),
        phases: phases(lab, &ledger, scenario),
        warnings: scenario.warnings.iter().map(ToString::to_string).collect(),
        settings: scenario.settings.iter().cloned().collect(),
        pull: None,
        timing: Timing { events, traversals, ..Timing::default() },
        ideal: None,
        verdict: Verdict::default(),
    };
    summary.pull = pull::summary(lab, scenario, &summary.switches);
    summary.verdict = verdict::of(scenario, &summary);
    summary
}

/// Start-up and steady state of a run with a warm-up.
fn phases(lab: &Lab, ledger: &Ledger, scenario: &LabScenario) -> Option<Phases> {
    let completion = if scenario.events.is_some() { &ledger.events.phases } else { &ledger.phases };
    let summary = |phase: Phase, completion: &Distribution| PhaseSummary {
        from_s: phase.from.as_secs_f64(),
        to_s: phase.to.as_secs_f64(),
        delivered_bytes: phase.counts.delivered_bytes,
        goodput_gbps: gbps(phase.counts.delivered_bytes, phase.to.saturating_sub(phase.from)),
        completion_us: Quantiles::from(completion),
        peak_queue_bytes: phase.peak_queue_bytes,
        ecn_marked: phase.counts.ecn_marked,
        pause_frames: phase.counts.pause_frames,
        pausing_s: phase.counts.pausing.as_secs_f64(),
        dropped: phase.counts.dropped,
    };
    let [start_up, steady] = lab.phases()?;
    let (start_up, steady) = (summary(start_up, &completion.start_up), summary(steady, &completion.steady));
    Some(Phases { start_up, steady })
}

/// Runs the same load in a network that holds nothing back, and compares the run with it.
pub fn compare_with_ideal(scenario: &LabScenario, summary: &mut LabSummary) {
    summary.ideal = ideal(scenario, summary.simulated_s);
    summary.verdict = verdict::of(scenario, summary);
}

fn gbps(bytes: u64, span: Time) -> f64 {
    per(bytes as f64 * 8e-9, span.as_secs_f64())
}

/// Time from the first message of any flow to the last delivery, or to now while something is outstanding.
fn span(ledger: &Ledger, now: Time) -> Time {
    let first = ledger.flows().iter().filter_map(|flow| flow.first_post).min();
    let last = match ledger.flows().iter().all(FlowRecord::is_idle) {
        true => ledger.flows().iter().filter_map(|flow| flow.last_delivery).max().unwrap_or_default(),
        false => now,
    };
    last.saturating_sub(first.unwrap_or_default())
}

/// The packet used to look up a flow's path in the switches' tables: an empty request of the sender.
fn probe(config: &RequesterConfig) -> Packet {
    RocePacket {
        eth_dst: config.peer.mac,
        eth_src: config.local.mac,
        cn_tag: config.marking.cn_tag,
        ip_src: config.local.ip,
        ip_dst: config.peer.ip,
        dscp: config.marking.dscp,
        ecn: config.marking.ecn,
        ttl: config.marking.ttl,
        udp_sport: config.marking.udp_sport,
        bth: BthRepr::new(Opcode::WriteOnly, config.peer.qpn, Psn::new(0)),
        reth: None,
        aeth: None,
        imm: None,
        payload: Payload::EMPTY,
    }
    .into()
}

/// The counters of a sender of any protocol, and the packet for looking up its path, with its DSCP.
#[derive(Default)]
struct Sent {
    packets: u64,
    retransmitted: u64,
    cnps: u64,
    feedbacks: u64,
    timeouts: u64,
    naks: u64,
    rnr_naks: u64,
    refused: u64,
    limiter_drops: u64,
    probe: Option<(Packet, u8)>,
}

impl Sent {
    /// The data of a flow that a board sends; the board has its counters, and the requester of its server if it is read.
    fn by_board(flow: &FlowInfo, dscp: u8, requested: RequesterCounters) -> Sent {
        let ends = &flow.ends;
        let mut config = RequesterConfig::new(ends.local, ends.peer, ends.first_psn, ends.mtu);
        (config.marking.dscp, config.marking.udp_sport) = (dscp, ends.udp_sport);
        Sent {
            timeouts: requested.local_ack_timeout_err,
            naks: requested.packet_seq_err + requested.implied_nak_seq_err,
            probe: Some((probe(&config), dscp)),
            ..Sent::default()
        }
    }

    /// The data of a flow that is read: its sender answers, its receiver has timers and finds gaps.
    fn read(flow: &FlowInfo, dscp: u8, station: &Station, index: usize, requested: RequesterCounters) -> Sent {
        let responder = station.read_responder(index).or(station.pull_board(index).map(PullBoard::responder));
        let answered = responder.map(ReadResponder::stats).unwrap_or_default();
        Sent {
            packets: answered.packets,
            retransmitted: answered.retransmitted,
            cnps: answered.cnps,
            feedbacks: answered.feedbacks,
            ..Sent::by_board(flow, dscp, requested)
        }
    }

    fn of(station: &Station, index: usize) -> Option<Sent> {
        if let Some(sender) = station.sender(index) {
            let (stats, config) = (sender.stats(), sender.requester().config());
            return Some(Sent {
                packets: stats.packets,
                retransmitted: stats.retransmitted,
                cnps: stats.cnps,
                feedbacks: stats.feedbacks,
                timeouts: stats.timeouts,
                naks: stats.naks,
                rnr_naks: stats.rnr_naks,
                refused: 0,
                limiter_drops: 0,
                probe: Some((probe(config), config.marking.dscp)),
            });
        }
        let sender = station.tcp_sender(index)?;
        let counters = sender.counters();
        Some(Sent {
            packets: counters.segments,
            retransmitted: counters.retransmitted,
            feedbacks: sender.feedbacks(),
            timeouts: counters.timeouts,
            refused: sender.refused(),
            limiter_drops: sender.limiter_drops(),
            probe: Some((Packet::Tcp(sender.config().empty_segment()), sender.config().dscp)),
            ..Sent::default()
        })
    }
}

/// The counters of the requester that reads a flow, if it is read. Those of a readout are in its part of the summary.
fn read_counters(sender: Option<&Station>, receiver: &Station, flow: &FlowInfo) -> Option<RequesterCounters> {
    let index = flow.receiver_index;
    let of_reader = receiver.read_requester(index).map(ReadRequester::counters);
    let of_reader = of_reader.or_else(|| receiver.pull_server(index)?.counters(flow.id)).copied();
    let is_pulled = || sender.and_then(|station| station.pull_board(flow.sender_index?)).is_some();
    of_reader.or_else(|| is_pulled().then(RequesterCounters::default))
}

fn flow_summary(lab: &Lab, scenario: &LabScenario, record: &FlowRecord, flow: &FlowInfo) -> FlowSummary {
    let (now, station) = (lab.now(), lab.engine.node::<Station>(flow.sender));
    let (receiver, dscp) = (lab.engine.node::<Station>(flow.receiver), scenario.flows[flow.id.0 as usize].dscp);
    let reader = receiver.and_then(|receiver| read_counters(station, receiver, flow));
    let sent = match (station.zip(flow.sender_index), reader) {
        (Some((station, index)), Some(reader)) => Sent::read(flow, dscp, station, index, reader),
        (Some((station, index)), None) => Sent::of(station, index).unwrap_or_default(),
        (None, reader) => Sent::by_board(flow, dscp, reader.unwrap_or_default()),
    };
    let (path, held) = match &sent.probe {
        Some((packet, dscp)) => {
            let path = path_of(&lab.engine, flow.sender, packet);
            let held = blocking(&lab.engine, &path, usize::from(dscp >> 3), now);
            (names(lab, &path), held)
        }
        None => (vec![flow.from.clone(), flow.to.clone()], Blocking::default()),
    };
    FlowSummary {
        id: flow.id.0,
        name: flow.name.clone(),
        from: flow.from.clone(),
        to: flow.to.clone(),
        protocol: flow.protocol.name().to_owned(),
        law: law_name(flow.law).to_owned(),
        posted_bytes: record.posted_bytes,
        delivered_bytes: record.delivered_bytes,
        start_s: record.first_post.map(Time::as_secs_f64),
        end_s: record.last_delivery.map(Time::as_secs_f64),
        complete: record.is_complete(),
        goodput_gbps: gbps(record.delivered_bytes, active(record, now)),
        messages: record.delivered_messages,
        mct_us: Quantiles::from(&record.completion),
        packets: sent.packets,
        retransmissions: sent.retransmitted,
        cnps: sent.cnps,
        feedbacks: sent.feedbacks,
        timeouts: sent.timeouts,
        naks: sent.naks,
        rnr_naks: sent.rnr_naks,
        refused: sent.refused,
        limiter_drops: sent.limiter_drops,
        cut_off_s: lab.cut_off().iter().find(|cut| cut.flow == flow.id).map(|cut| cut.at.as_secs_f64()),
        failed: record.failure.as_ref().map(|(at, why)| format!("{why} at {at}")),
        path,
        paused_s: held.paused.as_secs_f64(),
        hol_victim: held.is_victim,
    }
}

fn law_name(law: Law) -> &'static str {
    match law {
        Law::Off => "off",
        Law::Dcqcn => "dcqcn",
        Law::Qcn => "qcn",
    }
}

/// Time from a flow's first message to its last delivery, or to now while something is outstanding.
fn active(record: &FlowRecord, now: Time) -> Time {
    let end = if record.is_idle() { record.last_delivery.unwrap_or_default() } else { now };
    end.saturating_sub(record.first_post.unwrap_or_default())
}

/// The nodes that a path passes, both ends included.
fn names(lab: &Lab, path: &[Hop]) -> Vec<String> {
    let last = path.last().and_then(|hop| lab.engine.peer(hop.node, hop.port)).map(|(node, _)| node);
    path.iter().map(|hop| hop.node).chain(last).map(|node| lab.engine.node_name(node).to_owned()).collect()
}

/// None without events.
fn event_summary(lab: &Lab, ledger: &Ledger, scenario: &LabScenario) -> Option<EventSummary> {
    let now = lab.now();
    let list = scenario.events.as_ref()?;
    let events = &ledger.events;
    let Quantiles { p50, p99, p999, max } = Quantiles::from(&events.completion);
    let happened = list.times.partition_point(|at| *at <= now);
    let sent = (0..happened).filter(|event| list.is_sent(*event));
    let triggered = sent.clone().count() as u64;
    let (count, complete) = (events.begun, events.complete);
    // Events begin in their order.
    let never_begun = sent.skip(count as usize);
    let overdue = never_begun.filter(|event| now.saturating_sub(list.times[*event]) > now / 10).count() as u64;
    let lost = events.unfinished().filter(|event| is_lost(ledger, scenario, list, *event)).count() as u64;
    Some(EventSummary {
        triggered,
        count,
        complete,
        in_flight: count.saturating_sub(complete + lost),
        lost,
        never_begun: triggered.saturating_sub(count),
        overdue,
        backlog_per_s: backlog_per_s(lab, list),
        p50_us: p50,
        p99_us: p99,
        p999_us: p999,
        max_us: max,
    })
}

/// The growth of the backlog: the events that were triggered and not complete, at half, three quarters and all of the
/// time of the triggers. What rises from look to look, by more than a twentieth of what is triggered in that time, and by
/// more than chance makes of so few, goes on to rise.
fn backlog_per_s(lab: &Lab, list: &EventList) -> Option<f64> {
    const LEAST: u64 = 20;
    let end = lab.now().min(*list.times.last()?);
    let triggered = |at: Time| list.times.partition_point(|time| *time <= at) as u64;
    let backlog = |at: Time| triggered(at).saturating_sub(lab.completed_by(at));
    let [half, later, last] = [end / 2, end / 4 * 3, end].map(backlog);
    let grown = last.saturating_sub(half);
    let is_growing = half < later && later < last && grown > LEAST && grown * 20 > triggered(end) - triggered(end / 2);
    is_growing.then(|| per(grown as f64, (end - end / 2).as_secs_f64()))
}

/// Whether a sender that gave up has a fragment of this event that was not delivered.
fn is_lost(ledger: &Ledger, scenario: &LabScenario, list: &EventList, event: u64) -> bool {
    let failed = scenario.flows.iter().zip(ledger.flows()).filter(|(_, record)| record.failure.is_some());
    failed.into_iter().any(|(flow, record)| {
        let Workload::Events { board, server, servers } = flow.workload else { return false };
        let is_its = event as usize % servers.max(1) == server && list.bytes(event as usize, board) > 0;
        is_its && record.oldest_event().is_some_and(|oldest| event >= oldest)
    })
}

fn switches(lab: &Lab, scenario: &LabScenario, now: Time) -> Vec<SwitchSummary> {
    let one = |number| switch_summary(&Place { lab, scenario, now, number });
    (0..lab.switches.len()).filter_map(one).collect()
}

/// One switch of a run.
struct Place<'a> {
    lab: &'a Lab,
    scenario: &'a LabScenario,
    now: Time,
    /// Among the switches.
    number: usize,
}

fn switch_summary(place: &Place) -> Option<SwitchSummary> {
    let Place { lab, scenario, number, .. } = place;
    let (spec, id) = (scenario.switches.get(*number)?, lab.switches[*number].1);
    let switch = lab.engine.switch(id)?;
    let stats = switch.stats();
    let pfc = spec.params.pfc;
    let (mode, alpha) = match pfc.map(|pfc| pfc.threshold) {
        None => ("off", None),
        Some(PfcThreshold::Static { .. }) => ("static", None),
        Some(PfcThreshold::Dynamic { alpha, .. }) => ("dynamic", Some(alpha.as_f64())),
        Some(PfcThreshold::Queue { .. }) => ("queue", None),
    };
    let port = |port| port_summary(place, spec, id, switch, PortId(port));
    Some(SwitchSummary {
        name: lab.engine.node_name(id).to_owned(),
        gateware: spec.gateware,
        dropped_buffer: stats.dropped_buffer,
        dropped_threshold: stats.dropped_threshold,
        dropped_headroom: stats.dropped_headroom,
        no_route: stats.no_route,
        fcs_errors: stats.fcs_errors,
        cnm_sent: stats.cnm_sent,
        peak_buffer_bytes: stats.peak_buffer_bytes,
        buffer_bytes: spec.params.buffer.bytes(),
        pfc: mode,
        lossless_classes: (0..8).filter(|class| pfc.is_some_and(|pfc| pfc.covers(usize::from(*class)))).collect(),
        alpha,
        ports: (0..switch.port_count()).map(port).collect(),
    })
}

fn port_summary(place: &Place, spec: &SwitchSpec, id: NodeId, switch: &dyn SwitchView, port: PortId) -> PortSummary {
    let Place { lab, scenario, now, number } = *place;
    let link = scenario.topology.nodes[spec.node].ports[usize::from(port.0)];
    let link = &scenario.topology.links[link].params;
    let marking = spec.marking(link.rate)[usize::from(scenario.qp.class())];
    let (xoff, xon) = match spec.params.pfc.map(|pfc| pfc.threshold) {
        Some(PfcThreshold::Static { xoff, xon } | PfcThreshold::Queue { xoff, xon }) => {
            (Some(xoff.bytes()), Some(xon.bytes()))
        }
        _ => (None, None),
    };
    let headroom = spec.params.pfc.map(|pfc| match pfc.headroom {
        Headroom::Fixed(bytes) => bytes,
        Headroom::OfLink { mtu } => lossless_headroom(link, mtu),
    });
    let stats = switch.port_stats(port, now);
    let peer = lab.engine.peer(id, port).map(|(node, _)| lab.engine.node_name(node).to_owned());
    PortSummary {
        port: port.0,
        peer: peer.unwrap_or_default(),
        tx_frames: stats.tx_frames,
        tx_bytes: stats.tx_bytes,
        dropped: stats.dropped,
        ecn_marked: stats.ecn_marked,
        peak_queue_bytes: stats.peak_queue_bytes,
        mean_queue_bytes: lab.mean_queue(number, port),
        peak_ingress_bytes: stats.peak_ingress_bytes,
        paused_s: stats.paused.as_secs_f64(),
        pausing_s: stats.pausing.as_secs_f64(),
        pauses_sent: stats.pause_frames_sent,
        pauses_received: stats.pause_frames_received,
        kmin_bytes: marking.map(|ecn| ecn.kmin.bytes()),
        kmax_bytes: marking.map(|ecn| ecn.kmax.bytes()),
        xoff_bytes: xoff,
        xon_bytes: xon,
        headroom_bytes: headroom.map(|bytes| bytes.bytes()),
        held_byte_s: stats.classes.iter().map(|class| class.held_byte_seconds()).sum(),
    }
}

fn links(lab: &Lab, scenario: &LabScenario, now: Time) -> Vec<LinkSummary> {
    let (mut hosts, mut switches) = (lab.hosts.iter(), lab.switches.iter());
    let node = |node: &TopologyNode| match node.kind {
        NodeKind::Host => hosts.next(),
        NodeKind::Switch => switches.next(),
    };
    let nodes: Vec<Option<NodeId>> =
        scenario.topology.nodes.iter().map(node).map(|named| named.map(|(_, id)| *id)).collect();
    let summary = |((name, id), link): (&(String, LinkId), &TopologyLink)| {
        let end = |end: usize| nodes[link.ends[end]].map_or(Time::ZERO, |id| paused(lab, id, link.ports[end], now));
        link_summary(lab, name, *id, now, [end(0), end(1)].map(Time::as_secs_f64))
    };
    lab.links.iter().zip(&scenario.topology.links).map(summary).collect()
}

/// How long a port of a node was paused, summed over classes.
fn paused(lab: &Lab, node: NodeId, port: u16, now: Time) -> Time {
    let of_host = || lab.engine.node::<Station>(node).map(|host| host.stats(now).paused_for);
    match lab.engine.switch(node) {
        Some(switch) => switch.port_stats(PortId(port), now).paused,
        None => of_host().unwrap_or_default().into_iter().fold(Time::ZERO, Time::saturating_add),
    }
}

fn link_summary(lab: &Lab, name: &str, id: LinkId, now: Time, paused_s: [f64; 2]) -> LinkSummary {
    let (stats, params) = (lab.engine.link_stats(id), lab.engine.link_params(id));
    let rate_gbps = params.map(|params| params.rate.bits_per_second() as f64 * 1e-9);
    LinkSummary {
        name: name.to_owned(),
        rate_gbps,
        frames: stats.map(|stats| stats.frames),
        data_frames: stats.map(|stats| stats.data_frames),
        wire_bytes: stats.map(|stats| stats.wire_bytes),
        utilisation: stats.map(|stats| per(stats.busy.as_secs_f64(), now.as_secs_f64())),
        lost: stats.map(|stats| stats.lost),
        paused_s,
    }
}
