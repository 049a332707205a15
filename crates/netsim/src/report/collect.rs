// SPDX-License-Identifier: Apache-2.0
//! Asks everyone for what they counted, at the end of a run.
//! Promise: nothing is counted twice, and nothing is measured here.

use penstock_cc::Law;
use penstock_transport::RequesterConfig;
use penstock_wire::{BthRepr, Opcode, Packet, Payload, Psn, RocePacket};

use super::path::{blocking, path_of, Blocking, Hop};
use super::summary::{
    EventSummary, FlowSummary, LabSummary, LinkSummary, PortSummary, Quantiles, SwitchSummary, Timing, SCHEMA,
};
use super::watch::End;
use crate::engine::LinkId;
use crate::lab::{FlowInfo, Lab, LabScenario};
use crate::ledger::{FlowRecord, Ledger};
use crate::node::{NodeId, PortId};
use crate::station::Station;
use crate::switch::Switch;
use crate::units::Time;

/// The summary of a run. `scenario_name` is what the user called the file.
pub fn summary(lab: &Lab, scenario_name: &str, scenario: &LabScenario, end: &End) -> LabSummary {
    let (ledger, now) = (lab.ledger.borrow(), lab.now());
    let delivered_bytes = ledger.flows().iter().map(|flow| flow.delivered_bytes).sum();
    let (events, traversals) = (lab.engine.events(), lab.engine.traversals());
    LabSummary {
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
        events: event_summary(&ledger),
        switches: lab.switches.iter().filter_map(|(_, id)| switch_summary(lab, *id, now)).collect(),
        links: lab.links.iter().map(|(name, id)| link_summary(lab, name, *id, now)).collect(),
        warnings: scenario.warnings.iter().map(ToString::to_string).collect(),
        settings: scenario.settings.iter().cloned().collect(),
        timing: Timing { events, traversals, ..Timing::default() },
    }
}

fn gbps(bytes: u64, span: Time) -> f64 {
    if span == Time::ZERO {
        return 0.0;
    }
    bytes as f64 * 8e-9 / span.as_secs_f64()
}

/// From the first message of any flow to the last delivery, or to now while something is outstanding.
fn span(ledger: &Ledger, now: Time) -> Time {
    let first = ledger.flows().iter().filter_map(|flow| flow.first_post).min();
    let last = match ledger.flows().iter().all(FlowRecord::is_idle) {
        true => ledger.flows().iter().filter_map(|flow| flow.last_delivery).max().unwrap_or_default(),
        false => now,
    };
    last.saturating_sub(first.unwrap_or_default())
}

/// The packet by which the switches' tables are asked for a flow's path: a request of the sender, empty.
fn probe(config: &RequesterConfig) -> Packet {
    RocePacket {
        eth_dst: config.peer.mac,
        eth_src: config.local.mac,
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

/// What a sender counted, whatever it speaks, and the packet by which its path is asked for, with its DSCP.
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
    probe: Option<(Packet, u8)>,
}

impl Sent {
    /// What is known of a flow that a board sends; its counters are the board's.
    fn by_board(flow: &FlowInfo, dscp: u8) -> Sent {
        let ends = &flow.ends;
        let mut config = RequesterConfig::new(ends.local, ends.peer, ends.first_psn, ends.mtu);
        (config.marking.dscp, config.marking.udp_sport) = (dscp, ends.udp_sport);
        Sent { probe: Some((probe(&config), dscp)), ..Sent::default() }
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
            probe: Some((Packet::Tcp(sender.config().empty_segment()), sender.config().dscp)),
            ..Sent::default()
        })
    }
}

fn flow_summary(lab: &Lab, scenario: &LabScenario, record: &FlowRecord, flow: &FlowInfo) -> FlowSummary {
    let (now, station) = (lab.now(), lab.engine.node::<Station>(flow.sender));
    let sent = match station.zip(flow.sender_index) {
        Some((station, index)) => Sent::of(station, index).unwrap_or_default(),
        None => Sent::by_board(flow, scenario.flows[flow.id.0 as usize].dscp),
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

/// From a flow's first message to its last delivery, or to now while something is outstanding.
fn active(record: &FlowRecord, now: Time) -> Time {
    let end = if record.is_idle() { record.last_delivery.unwrap_or_default() } else { now };
    end.saturating_sub(record.first_post.unwrap_or_default())
}

/// The nodes that a path passes, both ends included.
fn names(lab: &Lab, path: &[Hop]) -> Vec<String> {
    let last = path.last().and_then(|hop| lab.engine.peer(hop.node, hop.port)).map(|(node, _)| node);
    path.iter().map(|hop| hop.node).chain(last).map(|node| lab.engine.node_name(node).to_owned()).collect()
}

fn event_summary(ledger: &Ledger) -> Option<EventSummary> {
    let events = &ledger.events;
    let Quantiles { p50, p99, p999, max } = Quantiles::from(&events.completion);
    let (count, complete) = (events.begun, events.complete);
    (count > 0).then_some(EventSummary { count, complete, p50_us: p50, p99_us: p99, p999_us: p999, max_us: max })
}

fn switch_summary(lab: &Lab, id: NodeId, now: Time) -> Option<SwitchSummary> {
    let switch = lab.engine.node::<Switch>(id)?;
    let stats = switch.stats();
    Some(SwitchSummary {
        name: lab.engine.node_name(id).to_owned(),
        dropped_buffer: stats.dropped_buffer,
        dropped_threshold: stats.dropped_threshold,
        dropped_headroom: stats.dropped_headroom,
        no_route: stats.no_route,
        fcs_errors: stats.fcs_errors,
        cnm_sent: stats.cnm_sent,
        peak_buffer_bytes: stats.peak_buffer_bytes,
        ports: (0..switch.port_count()).map(|port| port_summary(lab, id, switch, PortId(port), now)).collect(),
    })
}

fn port_summary(lab: &Lab, id: NodeId, switch: &Switch, port: PortId, now: Time) -> PortSummary {
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
        peak_ingress_bytes: stats.peak_ingress_bytes,
        paused_s: stats.paused.as_secs_f64(),
        pausing_s: stats.pausing.as_secs_f64(),
        held_byte_s: stats.classes.iter().map(|class| class.held_byte_seconds()).sum(),
    }
}

fn link_summary(lab: &Lab, name: &str, id: LinkId, now: Time) -> LinkSummary {
    let (stats, params) = (lab.engine.link_stats(id), lab.engine.link_params(id));
    let rate_gbps = params.map(|params| params.rate.bits_per_second() as f64 * 1e-9);
    LinkSummary {
        name: name.to_owned(),
        rate_gbps,
        frames: stats.map(|stats| stats.frames),
        data_frames: stats.map(|stats| stats.data_frames),
        wire_bytes: stats.map(|stats| stats.wire_bytes),
        utilisation: stats.map(|stats| stats.busy.as_secs_f64() / now.as_secs_f64().max(f64::MIN_POSITIVE)),
        lost: stats.map(|stats| stats.lost),
    }
}
