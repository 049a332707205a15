// SPDX-License-Identifier: Apache-2.0
//! `[[flow]]`, `[triggers]`, `[[change]]`, `[capture]`: the traffic on the network, and changes during the run.
//! Promise: flows are numbered in the order of the file, and by sender within a group; names of flows are unique.
//! Source: QCN hardware evaluation for the hotspot, AdvCam section III for triggers.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::files::ReadFile;
use super::links::{links_like, some_links};
use super::transport::{self, rederived, Laws, MODES};
use crate::language::document::Item;
use crate::language::keys::snap;
use crate::language::reader::{FromItem, Section};
use crate::scenario::{
    limited_pairs, CameraEvents, Capture, Change, FlowSpec, LabQp, LabTcp, Mode, Protocol, SenderKind, Workload,
};
use crate::topology::{hexagonal_camera, NodeKind, Ns3Import, Topology};
use crate::units::{ByteSize, Frequency, Probability, Rate, Time};
use crate::workload::{
    expand_names, pairs, EventList, FragmentSizes, LightPool, Loads, Pace, Pairing, SteadyParams, TriggerKind,
    TriggerParams,
};
use penstock_cc::Law;
use penstock_netsim::Stream;

/// Most flows a scenario may have.
const MOST_FLOWS: usize = 200_000;
/// Most events; each costs up to 32 bytes of memory.
pub(super) const MOST_EVENTS: u64 = 20_000_000;
pub(super) const SENDERS: [(&str, SenderKind); 2] =
    [("software", SenderKind::Software), ("gateware", SenderKind::Gateware)];
/// The longest RDMA message.
pub(super) const LONGEST: u64 = 1 << 31;

/// Everything that flows, as it is read.
pub(super) struct Traffic<'a> {
    pub(super) seed: u64,
    pub(super) time_limit: Time,
    pub(super) topology: &'a Topology,
    pub(super) read_file: ReadFile<'a>,
    pub(super) laws: &'a Laws,
    pub(super) qp: &'a LabQp,
    /// The mode of `[triggers]` and `[replay]`.
    pub(super) events_mode: Mode,
    pub(super) tcp: LabTcp,
    pub(super) flows: Vec<FlowSpec>,
    /// Flows whose share follows from the topology.
    pub(super) derived: Vec<usize>,
    pub(super) events: Option<Rc<EventList>>,
    /// Triggers come as long as the run lasts.
    pub(super) endless_triggers: bool,
    /// The payloads of the events.
    pub(super) recorded: Option<CameraEvents>,
}

/// The boards of a table of events.
pub(super) struct Boards {
    /// Numbers in the topology.
    pub(super) hosts: Vec<usize>,
    /// The law of each.
    pub(super) laws: Vec<Laws>,
    /// What each sends, where it differs from the table.
    pub(super) loads: Option<Loads>,
    /// Board n has its fragments this much later than board n - 1.
    pub(super) stagger: Time,
}

/// A whole number of thousandths, written as a decimal number.
pub(super) struct Milli(pub(super) u64);

impl std::fmt::Display for Milli {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0 as f64 / 1000.0)
    }
}

impl FromItem for Milli {
    fn from_item(item: &Item) -> Result<Self, String> {
        let number = item.text.replace('_', "").parse::<f64>().ok().filter(|number| (0.001..=1000.0).contains(number));
        let number = number.ok_or_else(|| "allowed is a number from 0.001 to 1000".to_owned())?;
        Ok(Milli((number * 1000.0).round() as u64))
    }
}

/// The law of a flow, and its mode. No CNP ever reaches a TCP sender: DCQCN is for queue pairs. What a server has
/// requested needs no limit.
fn in_force(law: Law, protocol: Protocol, mode: Mode) -> (Law, Mode) {
    match (protocol, mode) {
        (Protocol::Rc, Mode::Push) => (law, mode),
        (Protocol::Rc, Mode::Pull) => (Law::Off, mode),
        _ => (if law == Law::Dcqcn { Law::Off } else { law }, Mode::Push),
    }
}

impl Traffic<'_> {
    /// The hosts of `from` or `to`; every host of the kind that `default` is a prefix of, if the key is absent.
    pub(super) fn hosts(&self, section: &mut Section, key: &str, default: &str) -> Vec<usize> {
        let mut patterns: Vec<String> = section.list_or(key, "allowed is at least one host");
        if !section.has(key) {
            patterns = vec![default.to_owned()];
            section.note_default(key, default);
        }
        if self.topology.nodes.is_empty() {
            return Vec::new();
        }
        match expand_names(self.topology, &patterns) {
            Ok(hosts) => hosts,
            Err(error) => {
                section.refuse(key, error.to_string());
                Vec::new()
            }
        }
    }

    /// `[[flow]]`
    pub(super) fn flows(&mut self, sections: Vec<Section>) {
        for (index, section) in sections.into_iter().enumerate() {
            self.flow(index, section);
        }
    }

    fn flow(&mut self, index: usize, mut section: Section) {
        let name = section.optional::<String>("name");
        if name.as_ref().is_some_and(|name| name.is_empty() || name.contains([' ', ',', '"'])) {
            section.refuse("name", "allowed is a name without spaces, commas and quotes");
        }
        let from = self.hosts(&mut section, "from", "board*");
        let to = self.hosts(&mut section, "to", "server*");
        let pairings = [("all", Pairing::All), ("zip", Pairing::Zip), ("permutation", Pairing::Permutation)];
        let pairing = section.choice("pairs", Pairing::All, &pairings);
        let protocols = [("rc", Protocol::Rc), ("tcp", Protocol::Tcp), ("simple-tcp", Protocol::SimpleTcp)];
        let protocol = section.choice("protocol", Protocol::Rc, &protocols);
        let sender = section.choice("sender", SenderKind::Software, &SENDERS);
        let mode = section.choice("mode", self.qp.mode, &MODES);
        if section.has("mode") && mode == Mode::Pull && protocol != Protocol::Rc {
            section.refuse("mode", format!("a server pulls over \"rc\"; allowed with {} is \"push\"", protocol.name()));
        }
        let laws = match section.has("cc") {
            true => self.laws.overlaid(section.section("cc")),
            false => {
                section.section("cc");
                *self.laws
            }
        };
        let tcp = match section.has("tcp") {
            true => transport::tcp(section.section("tcp"), self.tcp),
            false => {
                section.section("tcp");
                self.tcp
            }
        };
        if sender == SenderKind::Gateware && protocol != Protocol::Rc {
            section.refuse(
                "sender",
                format!("the gateware speaks \"rc\" only; allowed with {} is \"software\"", protocol.name()),
            );
        }
        let (dscp, tcp) = self.marked(&mut section, protocol, tcp);
        let steady = steady(&mut section);
        let stagger = section.read("stagger", Time::ZERO);
        let mut random = Stream::new(self.seed, &format!("pairs {index}"));
        let joined = self.joined(&mut section, pairing, (&from, &to), &mut random);
        let alone = joined.len() == 1;
        for (number, (from, to)) in joined.into_iter().enumerate() {
            let name = match &name {
                Some(name) if alone => name.clone(),
                Some(name) => format!("{name}{number}"),
                None => format!("{}>{}", self.topology.name(from), self.topology.name(to)),
            };
            let start = steady.start.saturating_add(Time(stagger.0.saturating_mul(number as u64)));
            let workload = Workload::Steady(SteadyParams { start, ..steady });
            self.push(name, (from, to), (sender, protocol), &laws, (mode, dscp, tcp), workload);
        }
        section.finish();
    }

    /// Sender and receiver of each flow of a section; none if they are refused.
    fn joined(
        &self,
        section: &mut Section,
        pairing: Pairing,
        (from, to): (&[usize], &[usize]),
        random: &mut Stream,
    ) -> Vec<(usize, usize)> {
        let countless = pairing == Pairing::All && from.len().saturating_mul(to.len()) > 64 * MOST_FLOWS;
        let joined = if countless { Vec::new() } else { pairs(pairing, from, to, random) };
        if countless || joined.len() + self.flows.len() > MOST_FLOWS {
            section.refuse(
                "from",
                format!("{} x {} hosts are too many; allowed are up to {MOST_FLOWS} flows", from.len(), to.len()),
            );
            return Vec::new();
        }
        if joined.is_empty() && !from.is_empty() && !to.is_empty() {
            let host = self.topology.name(from[0]);
            section.refuse("to", format!("{host} would send to itself only; allowed is another host"));
        }
        joined
    }

    /// `dscp` of a flow, which for TCP is that of its `tcp`.
    fn marked(&self, section: &mut Section, protocol: Protocol, tcp: LabTcp) -> (u8, LabTcp) {
        let default = if protocol == Protocol::Rc { self.qp.dscp } else { tcp.dscp };
        let dscp = section.integer("dscp", default.into(), 0..=63) as u8;
        if protocol == Protocol::Rc && section.has("dscp") && dscp >> 3 == self.qp.cnp_dscp >> 3 {
            let message = format!("allowed is a class (DSCP / 8) other than that of CNPs, {}", self.qp.cnp_dscp >> 3);
            section.refuse("dscp", message);
        }
        (dscp, LabTcp { dscp, ..tcp })
    }

    /// The laws of a flow from this host, whose link is the line.
    fn governed(&self, from: usize, laws: &Laws) -> Laws {
        let port = self.topology.nodes[from].ports.first();
        laws.at_line_rate(port.map_or(Rate::default(), |link| self.topology.links[*link].params.rate))
    }

    /// A flow under these laws, or with the settings of `[tcp]`.
    fn plain(
        &mut self,
        (from, to): (usize, usize),
        (sender, protocol): (SenderKind, Protocol),
        laws: &Laws,
        workload: Workload,
    ) {
        let name = format!("{}>{}", self.topology.name(from), self.topology.name(to));
        let (dscp, tcp) = (if protocol == Protocol::Rc { self.qp.dscp } else { self.tcp.dscp }, self.tcp);
        let mode = if matches!(workload, Workload::Events { .. }) { self.events_mode } else { self.qp.mode };
        self.push(name, (from, to), (sender, protocol), laws, (mode, dscp, tcp), workload);
    }

    /// A flow whose laws are those of its sender's line.
    fn push(
        &mut self,
        name: String,
        (from, to): (usize, usize),
        (sender, protocol): (SenderKind, Protocol),
        laws: &Laws,
        (mode, dscp, tcp): (Mode, u8, LabTcp),
        workload: Workload,
    ) {
        let laws = self.governed(from, laws);
        let (law, mode) = in_force(laws.law, protocol, mode);
        let (share, Laws { dcqcn, qcn, .. }) = (laws.share(), laws);
        self.derived.extend((!laws.is_share_given).then_some(self.flows.len()));
        self.flows.push(FlowSpec {
            name,
            from,
            to,
            protocol,
            sender,
            mode,
            dscp,
            law,
            share,
            dcqcn,
            qcn,
            tcp,
            workload,
        });
    }

    /// The flows of an ns-3 flow file.
    pub(super) fn imported(&mut self, import: &Ns3Import) {
        for flow in &import.flows {
            let steady = SteadyParams {
                message_bytes: flow.bytes.min(LONGEST),
                total_bytes: Some(flow.bytes),
                pace: Pace::Greedy,
                random: false,
                start: flow.start,
                stop: None,
            };
            let by = (SenderKind::Software, Protocol::Rc);
            self.plain((flow.from, flow.to), by, self.laws, Workload::Steady(steady));
        }
    }

    /// `[triggers]`
    pub(super) fn triggers(&mut self, mut section: Section) {
        if !section.exists() {
            return;
        }
        let words = [("poisson", 0), ("periodic", 1), ("burst", 2), ("shower", 3)];
        let kind = section.choice("kind", 0, &words);
        let rate = section.read("rate", Frequency::from_hz(10_000));
        let limit = section.optional::<u64>("events");
        let events = limit.unwrap_or(MOST_EVENTS + 1);
        let start = section.read("start", Time::ZERO);
        let stop = section.read("stop", self.time_limit);
        let fragment = section.read("fragment", ByteSize(1_000)).bytes();
        let (mut size, mut spacing, mut peak, mut radius) = (1, Time::ZERO, ByteSize(0), Milli(1_500));
        if kind == 2 {
            size = section.integer("burst", 10, 1..=1_000_000);
            spacing = section.read("spacing", Time::from_us(1));
        }
        if kind == 3 {
            peak = section.read("peak", ByteSize(20_000));
            radius = section.read("radius", radius);
        }
        if rate.0 == 0 {
            section.refuse("rate", "allowed is more than 0Hz");
        }
        if events == 0 {
            section.refuse("events", "allowed is 1 and more; without the key there is no limit");
        }
        if stop <= start {
            section.refuse("stop", format!("allowed is more than start, {start}"));
        }
        if !(1..=LONGEST).contains(&fragment) {
            section.refuse("fragment", "allowed is 1B to 2GiB, the longest RDMA message");
        }
        let from = self.hosts(&mut section, "from", "board*");
        let to = self.hosts(&mut section, "to", "server*");
        let sender = section.choice("sender", SenderKind::Software, &SENDERS);
        let stagger = section.read("stagger", Time::ZERO);
        let boards = Boards { stagger, ..self.boards(section.sections("group"), from, false) };
        let trigger = match kind {
            1 => TriggerKind::Periodic,
            2 => TriggerKind::Burst { size, spacing },
            _ => TriggerKind::Poisson,
        };
        let params = TriggerParams { kind: trigger, rate, start, stop, events };
        let expected = (stop.saturating_sub(start).as_secs_f64() * rate.as_hz_f64()) as u64;
        if expected.min(events) > MOST_EVENTS {
            let key = if limit.is_some() { "events" } else { "rate" };
            section.refuse(key, format!("that makes {} events; allowed are up to {MOST_EVENTS}", expected.min(events)));
        } else if rate.0 > 0 {
            let times = params.times(&mut Stream::new(self.seed, "triggers"));
            self.endless_triggers = stop >= self.time_limit && (times.len() as u64) < events;
            let list = if kind == 3 && !boards.hosts.is_empty() {
                let pool = LightPool { fragment, peak: peak.bytes(), radius_milli: radius.0 };
                let cells = hexagonal_camera(boards.hosts.len());
                EventList::showers(times, pool, cells, &mut Stream::new(self.seed, "showers"))
            } else {
                EventList { times, sizes: FragmentSizes::Fixed(fragment), loads: None, stagger: Time::ZERO }
            };
            self.event_flows(&section, list, boards, &to, (sender, Protocol::Rc));
        }
        section.finish();
    }

    /// One flow from every board to every server; event n belongs to server n modulo the servers.
    pub(super) fn event_flows(
        &mut self,
        section: &Section,
        list: EventList,
        boards: Boards,
        to: &[usize],
        by: (SenderKind, Protocol),
    ) {
        let Boards { hosts: from, laws, loads, stagger } = boards;
        if let Some(host) = from.iter().find(|host| to.contains(host)) {
            let host = self.topology.name(*host);
            section.refuse("to", format!("{host} would send to itself; allowed are hosts that are not in from"));
            return;
        }
        let switch = from.iter().find(|node| self.topology.nodes[**node].kind == NodeKind::Switch);
        if let Some(switch) = switch {
            section.refuse("file", format!("{} is a switch; allowed are hosts", self.topology.name(*switch)));
            return;
        }
        if from.len() * to.len() + self.flows.len() > MOST_FLOWS {
            let message = format!("{} x {} hosts: allowed are up to {MOST_FLOWS} flows", from.len(), to.len());
            section.refuse("from", message);
            return;
        }
        for (board, (from, laws)) in from.iter().zip(&laws).enumerate() {
            for (server, node) in to.iter().enumerate() {
                let workload = Workload::Events { board, server, servers: to.len() };
                self.plain((*from, *node), by, laws, workload);
            }
        }
        self.events = Some(Rc::new(EventList { loads, stagger, ..list }));
    }

    /// The queue pairs of a board and a server divide a share that follows from the topology, as with `penstock recv`.
    pub(super) fn divide_shares(&mut self) {
        let pairs = limited_pairs(&self.flows);
        for number in &self.derived {
            let flow = &mut self.flows[*number];
            let Some(share) = flow.limit() else { continue };
            let divided = Rate(share.0 / pairs[&(flow.from, flow.to)]);
            (flow.share, flow.dcqcn) = (Some(divided), rederived(flow.dcqcn, share, divided));
        }
    }

    /// The link of a key, and the end it was named from.
    fn link(&self, section: &Section, key: &str, name: &str) -> Option<(usize, usize)> {
        match self.topology.link(name) {
            Some((link, backwards)) => Some((link, self.topology.links[link].ends[usize::from(backwards)])),
            None => {
                if !self.topology.nodes.is_empty() {
                    section.refuse(key, format!("there is no link {name}; {}", links_like(self.topology, name)));
                }
                None
            }
        }
    }

    /// `[[change]]`
    pub(super) fn changes(&self, sections: Vec<Section>) -> Vec<Change> {
        let mut changes = Vec::new();
        for mut section in sections {
            let name = section.optional::<String>("link");
            let directions = [("both", false), ("forward", true)];
            let one_way = section.choice("direction", false, &directions);
            let at = section.read("at", Time::ZERO);
            let until = section.optional::<Time>("until");
            let rate = section.optional::<Rate>("rate");
            let loss = section.optional::<Probability>("loss");
            if until.is_some_and(|until| until <= at) {
                section.refuse("until", format!("allowed is more than at, {at}"));
            }
            if rate.is_some_and(|rate| rate < Rate(1_000_000)) {
                section.refuse("rate", "allowed is 1Mbps and more; for a link that is down set down = true");
            }
            let down = section.read("down", false);
            let detection = section.read("detection", Time::from_ms(10));
            if down {
                for key in ["rate", "loss", "direction"].into_iter().filter(|key| section.has(key)) {
                    section.refuse(key, "a link that is down carries nothing either way; leave it out, or down = true");
                }
            } else if section.has("detection") {
                section.refuse("detection", "only links with down = true are detected");
            } else if !section.has("rate") && !section.has("loss") {
                section.refuse_whole("nothing changes; allowed are rate, loss and down");
            }
            let link = match &name {
                Some(name) => self.link(&section, "link", name),
                None => {
                    section.refuse("link", format!("which link changes? {}", some_links(self.topology)));
                    None
                }
            };
            if let Some((link, end)) = link {
                changes.push(Change {
                    link,
                    from_end: one_way.then_some(end),
                    at,
                    until,
                    rate,
                    loss,
                    down: down.then_some(detection),
                });
            }
            section.finish();
        }
        changes
    }

    /// `[capture]`
    pub(super) fn capture(&self, mut section: Section) -> Capture {
        let names: Vec<String> = section.list("links");
        let snap = snap(&mut section);
        let links: BTreeSet<usize> =
            names.iter().filter_map(|name| self.link(&section, "links", name)).map(|(link, _)| link).collect();
        section.finish();
        Capture { links: links.into_iter().collect(), snap }
    }
}

/// The keys of a steady workload.
fn steady(section: &mut Section) -> SteadyParams {
    let total = section.optional::<ByteSize>("size").map(ByteSize::bytes);
    let messages = section.optional::<u64>("messages");
    let usual = total.unwrap_or(u64::MAX).min(1_000_000);
    let message = section.read("message", ByteSize(usual)).bytes();
    let rate = section.optional::<Rate>("rate");
    let interval = section.optional::<Time>("interval");
    let random = section.read("random", false);
    let start = section.read("start", Time::ZERO);
    let stop = section.optional::<Time>("stop");
    if !(1..=LONGEST).contains(&message) {
        section.refuse("message", "allowed is 1B to 2GiB, the longest RDMA message");
    }
    if total == Some(0) {
        section.refuse("size", "allowed is 1B and more; without the key a flow is without end");
    }
    if messages == Some(0) {
        section.refuse("messages", "allowed is 1 and more; without the key a flow is without end");
    }
    if total.is_some() && messages.is_some() {
        section.refuse("messages", "allowed is one of size and messages");
    }
    if rate.is_some() && interval.is_some() {
        section.refuse("interval", "allowed is one of rate and interval");
    }
    if rate == Some(Rate(0)) {
        section.refuse("rate", "allowed is more than 0; without the key a flow sends as fast as it can");
    }
    if interval == Some(Time::ZERO) {
        section.refuse("interval", "allowed is more than 0; without the key a flow sends as fast as it can");
    }
    if random && rate.is_none() && interval.is_none() {
        section.refuse("random", "allowed with rate or interval, whose mean it keeps");
    }
    if stop.is_some_and(|stop| stop <= start) {
        section.refuse("stop", format!("allowed is more than start, {start}"));
    }
    let pace = match (rate, interval) {
        (Some(rate), _) => Pace::Rate(rate),
        (None, Some(interval)) => Pace::Every(interval),
        (None, None) => Pace::Greedy,
    };
    let total_bytes = total.or_else(|| messages.map(|count| count.saturating_mul(message)));
    SteadyParams { message_bytes: message, total_bytes, pace, random, start, stop }
}
