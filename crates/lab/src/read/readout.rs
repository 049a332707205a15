// SPDX-License-Identifier: Apache-2.0
//! `[readout]`: the host whose endpoint is the real receiver: rings of slots, event builder, storage.
//! Promise: the scenario has recorded events, and all of them go to this host.

use penstock_cc::Law;

use super::transport::MODES;
use crate::language::reader::Section;
use crate::scenario::{FlowSpec, Mode, Protocol, Readout, SenderKind, Workload};
use crate::topology::{NodeKind, Topology};
use crate::units::{ByteSize, Rate, Time};

/// A fragment's header and one byte (`penstock_wire::fragment`).
const SMALLEST_SLOT: u64 = penstock_wire::fragment::HEADER_LEN as u64 + 1;

/// The mode of events, which all go to the readout if there is one.
pub(super) fn mode(section: &mut Section, default: Mode) -> Mode {
    match section.exists() {
        true => section.choice("mode", default, &MODES),
        false => default,
    }
}

/// `None` without the table, or when there was a problem, which is noted.
pub(super) fn readout(
    mut section: Section,
    mode: Mode,
    topology: &Topology,
    flows: &[FlowSpec],
    longest_fragment: Option<u64>,
) -> Option<Readout> {
    if !section.exists() {
        return None;
    }
    let name = section.read("host", "server0".to_owned());
    let slots = section.integer("slots", 64, 2..=65_536) as u32;
    let slot_size = section.read("slot_size", ByteSize(128 << 10));
    let event_timeout = section.read("event_timeout", Time::from_ms(100));
    let consumer_rate = section.optional::<Rate>("consumer_rate");
    let vanish_at = section.optional::<Time>("vanish_at");
    if consumer_rate.is_some_and(|rate| rate.bits_per_second() < 8) {
        section.refuse("consumer_rate", "allowed is 1B/s and more; without the key events are taken at once");
    }
    if !(SMALLEST_SLOT..=u64::from(u32::MAX)).contains(&slot_size.bytes()) {
        section.refuse("slot_size", format!("allowed is {SMALLEST_SLOT}B to {}B", u32::MAX));
    }
    let host = topology.node(&name).filter(|node| topology.nodes[*node].kind == NodeKind::Host);
    if host.is_none() && !topology.nodes.is_empty() {
        let names = topology.names(|node| node.kind == NodeKind::Host);
        section.refuse("host", format!("there is no host {name}; {names}"));
    }
    if let (Some(host), false) = (host, topology.nodes.is_empty()) {
        events_alone(&section, host, topology, flows, longest_fragment.is_some());
    }
    if let Some(longest) = longest_fragment.filter(|longest| *longest > slot_size.bytes()) {
        section.refuse("slot_size", format!("a fragment with its header has {longest}B; allowed is that and more"));
    }
    let is_rc = flows.iter().all(|flow| !is_fragment(&flow) || flow.protocol == Protocol::Rc);
    if section.has("mode") && mode == Mode::Pull && !is_rc {
        section.refuse("mode", "a server pulls over \"rc\"; allowed with another replay.protocol is \"push\"");
    }
    let mode = if is_rc { mode } else { Mode::Push };
    section.finish();
    Some(Readout { host: host?, mode, slots, slot_size, event_timeout, consumer_rate, vanish_at })
}

fn is_fragment(flow: &&FlowSpec) -> bool {
    matches!(flow.workload, Workload::Events { .. })
}

/// Whether this host takes all recorded events, and nothing else.
fn events_alone(section: &Section, host: usize, topology: &Topology, flows: &[FlowSpec], recorded: bool) {
    let mut fragments = flows.iter().filter(is_fragment).peekable();
    if !recorded || fragments.peek().is_none() {
        section.refuse_whole("it takes recorded events; add [replay] with the name of an .npz file");
        return;
    }
    if let Some(flow) = fragments.find(|flow| flow.to != host) {
        let (other, server) = (topology.name(flow.to), topology.name(host));
        section.refuse("host", format!("events go to {other} too; set replay.to = \"{server}\""));
    }
    let of_board = |flow: &FlowSpec| flow.sender == SenderKind::Gateware && flow.protocol != Protocol::Rc;
    if flows.iter().any(|flow| is_fragment(&flow) && of_board(flow) && flow.law != Law::Off) {
        section.refuse_whole("no law limits the streams of verilated boards; set cc.law = \"off\"");
    }
    let stranger = flows.iter().find(|flow| !is_fragment(flow) && (flow.to == host || flow.from == host));
    if let Some(flow) = stranger {
        section
            .refuse("host", format!("it takes the events of [replay] alone; let flow {} use another host", flow.name));
    }
}
