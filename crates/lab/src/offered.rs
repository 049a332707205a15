// SPDX-License-Identifier: Apache-2.0
//! The load that a scenario offers to each link, computed before the run from flows with a given rate and from events.
//! Promise: a flow without a rate limit counts as zero, since it takes the remaining capacity; headers are counted;
//! the load is split equally over paths of equal cost, as ECMP does with many flows.

use std::collections::BTreeSet;

use crate::scenario::{FlowSpec, LabScenario, LabVerb, Mode, Protocol, Workload};
use crate::topology::Routes;
use crate::units::{Rate, Time};
use crate::workload::{EventList, FragmentSizes, Pace};
use penstock_wire::WIRE_OVERHEAD;

/// Bytes around the payload of a RoCEv2 packet: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4; RETH and immediate come
/// with the first and the last packet of a message, or an AETH with each of the two.
const ROCE_HEADERS: u64 = 58;
const ROCE_MESSAGE: u64 = 20;
const AETH: u64 = 4;
/// What surrounds the payload of a READ response on the wire.
pub(crate) const READ_RESPONSE_OVERHEAD: u32 = (ROCE_HEADERS + AETH) as u32 + WIRE_OVERHEAD as u32;
/// Ethernet 14, IPv4 20, TCP 20.
const TCP_HEADERS: u64 = 54;
/// The maximum number of flow start times, and of fragments, that are evaluated.
const MOMENTS: usize = 32;
const FRAGMENTS: usize = 1 << 20;

/// The load offered to one direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedLoad {
    /// Number of the link in the topology; direction 0 leaves its first end.
    pub link: usize,
    pub direction: usize,
    pub from: String,
    pub to: String,
    /// The sending end is a host.
    pub is_sender: bool,
    /// The load with headers, preamble, FCS and gap; bit/s.
    pub wire_bps: f64,
    pub payload_bps: f64,
    pub capacity_bps: f64,
}

impl OfferedLoad {
    /// 1: as much as the link can carry.
    pub fn share(&self) -> f64 {
        self.wire_bps / self.capacity_bps.max(1.0)
    }
}

/// Bits per second, on the wire and of payload.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    wire: f64,
    payload: f64,
}

impl Rates {
    fn add(&mut self, other: Rates, share: f64) {
        self.wire += other.wire * share;
        self.payload += other.payload * share;
    }
}

/// Data from one host to another, while it lasts.
struct Demand {
    from: usize,
    to: usize,
    rates: Rates,
    start: Time,
    end: Time,
}

/// The greatest load of any moment for each direction of a link that carries some, the fullest first.
pub fn offered(scenario: &LabScenario, routes: &Routes) -> Vec<OfferedLoad> {
    greatest(scenario, routes, &scenario.flows.iter().filter_map(|flow| demand(scenario, flow)).collect::<Vec<_>>())
}

/// The greatest sum of the shares that `of` gives to flows, at any moment, for each direction of a link; the fullest
/// first. A flow has its share from its start to its stop, or until its bytes are sent at that rate.
pub(crate) fn shares(
    scenario: &LabScenario,
    routes: &Routes,
    of: impl Fn(&FlowSpec) -> Option<Rate>,
) -> Vec<OfferedLoad> {
    let demand = |flow: &FlowSpec| {
        let share = of(flow)?;
        let limit = scenario.run.time_limit;
        let end = match flow.workload {
            Workload::Steady(steady) => {
                let sent = steady.total_bytes.map_or(Time::MAX, |bytes| share.time_for(bytes));
                limit.min(steady.stop.unwrap_or(limit)).min(flow.start().saturating_add(sent))
            }
            Workload::Events { .. } => limit,
        };
        let bps = share.bits_per_second() as f64;
        let rates = Rates { wire: bps, payload: bps };
        Some(Demand { from: flow.from, to: flow.to, rates, start: flow.start(), end })
    };
    greatest(scenario, routes, &scenario.flows.iter().filter_map(demand).collect::<Vec<_>>())
}

fn greatest(scenario: &LabScenario, routes: &Routes, demands: &[Demand]) -> Vec<OfferedLoad> {
    let mut moments: Vec<Time> = demands.iter().map(|demand| demand.start).collect();
    moments.sort_unstable();
    moments.dedup();
    let step = moments.len().div_ceil(MOMENTS).max(1);
    let mut greatest = vec![[Rates::default(); 2]; scenario.topology.links.len()];
    for now in moments.into_iter().step_by(step) {
        let then = at(scenario, routes, demands.iter().filter(|demand| demand.start <= now && now < demand.end));
        for (most, loads) in greatest.iter_mut().zip(then) {
            for (most, load) in most.iter_mut().zip(loads) {
                if load.wire > most.wire {
                    *most = load;
                }
            }
        }
    }
    let mut loads = Vec::new();
    for (link, directions) in greatest.iter().enumerate() {
        for (direction, rates) in directions.iter().enumerate().filter(|(_, rates)| rates.wire > 0.0) {
            loads.push(load(scenario, link, direction, *rates));
        }
    }
    loads.sort_by(|a, b| b.share().total_cmp(&a.share()));
    loads
}

fn load(scenario: &LabScenario, link: usize, direction: usize, rates: Rates) -> OfferedLoad {
    let topology = &scenario.topology;
    let ends = topology.links[link].ends;
    let (from, to) = (ends[direction], ends[1 - direction]);
    OfferedLoad {
        link,
        direction,
        from: topology.name(from).to_owned(),
        to: topology.name(to).to_owned(),
        is_sender: topology.nodes[from].kind == crate::topology::NodeKind::Host,
        wire_bps: rates.wire,
        payload_bps: rates.payload,
        capacity_bps: topology.links[link].params.rate.bits_per_second() as f64,
    }
}

/// The loads of all links under these demands, by link and direction.
fn at<'a>(scenario: &LabScenario, routes: &Routes, demands: impl Iterator<Item = &'a Demand>) -> Vec<[Rates; 2]> {
    let topology = &scenario.topology;
    let mut loads = vec![[Rates::default(); 2]; topology.links.len()];
    let mut sorted: Vec<&Demand> = demands.collect();
    sorted.sort_by_key(|demand| demand.to);
    let mut waiting = vec![Rates::default(); topology.nodes.len()];
    for group in sorted.chunk_by(|a, b| a.to == b.to) {
        let to = group[0].to;
        let distance = |node: usize| routes.distance(node, to).map(|links| (links, node));
        // From far to near: a node has all forwarded load before it is processed.
        let mut open = BTreeSet::new();
        for (demand, from) in group.iter().filter_map(|demand| Some((demand, distance(demand.from)?))) {
            waiting[demand.from].add(demand.rates, 1.0);
            open.insert(from);
        }
        while let Some((_, node)) = open.pop_last() {
            let load = std::mem::take(&mut waiting[node]);
            if node == to || load.wire == 0.0 {
                continue;
            }
            let ports = routes.next_ports(topology, node, to);
            for port in &ports {
                let link = topology.nodes[node].ports[usize::from(*port)];
                let share = 1.0 / ports.len() as f64;
                let direction = usize::from(topology.links[link].ends[0] != node);
                let next = topology.links[link].peer(node);
                loads[link][direction].add(load, share);
                waiting[next].add(load, share);
                open.extend(distance(next));
            }
        }
    }
    loads
}

fn demand(scenario: &LabScenario, flow: &FlowSpec) -> Option<Demand> {
    let limit = scenario.run.time_limit;
    let (payload, message, start, end) = match flow.workload {
        Workload::Steady(steady) => {
            let bits = steady.message_bytes as f64 * 8.0;
            let payload = match steady.pace {
                Pace::Rate(rate) => rate.bits_per_second() as f64,
                Pace::Every(time) if time > Time::ZERO => bits / time.as_secs_f64(),
                Pace::Every(_) | Pace::Greedy => return None,
            };
            let lasts = steady.total_bytes.map_or(f64::INFINITY, |bytes| bytes as f64 * 8.0 / payload.max(1.0));
            let limit = limit.min(steady.stop.unwrap_or(limit));
            let end = steady.start.saturating_add(Time::from_secs_f64(lasts.min(1e6))).min(limit);
            (payload, steady.message_bytes as f64, steady.start, end)
        }
        Workload::Events { board, server, servers } => {
            let events = scenario.events.as_ref()?;
            let (bytes, fragments) = of_events(events, board, server, servers, scenario.flows.len());
            let span = span(&events.times)?;
            (bytes * 8.0 / span, bytes / fragments.max(1.0), Time::ZERO, limit)
        }
    };
    let wire = payload * wire_bytes(scenario, flow, message) / message.max(1.0);
    (payload > 0.0 && start < end).then_some(Demand {
        from: flow.from,
        to: flow.to,
        rates: Rates { wire, payload },
        start,
        end,
    })
}

/// How long events take, in s: the mean time between two, as often as there are events.
pub fn span(times: &[Time]) -> Option<f64> {
    let (first, last) = (times.first()?, times.last()?);
    let gaps = times.len().checked_sub(1).filter(|gaps| *gaps > 0)? as f64;
    let span = last.saturating_sub(*first).as_secs_f64();
    (span > 0.0).then(|| span * times.len() as f64 / gaps)
}

/// Bytes and fragments of a board to a server, by a part of the events where there are many.
fn of_events(events: &EventList, board: usize, server: usize, servers: usize, flows: usize) -> (f64, f64) {
    let of_server = (server..events.times.len()).step_by(servers.max(1));
    let all = of_server.len();
    let step = match events.sizes {
        FragmentSizes::Fixed(bytes) if events.loads.is_none() => return (bytes as f64 * all as f64, all as f64),
        _ => (all * flows).div_ceil(FRAGMENTS).max(1),
    };
    let (mut bytes, mut fragments, mut seen) = (0u64, 0u64, 0u64);
    for event in of_server.step_by(step) {
        let size = events.bytes(event, board);
        bytes += size;
        fragments += u64::from(size > 0);
        seen += 1;
    }
    let scale = all as f64 / (seen.max(1)) as f64;
    (bytes as f64 * scale, fragments as f64 * scale)
}

/// The wire length of a message of this number of bytes.
pub(crate) fn wire_bytes(scenario: &LabScenario, flow: &FlowSpec, message: f64) -> f64 {
    let around = WIRE_OVERHEAD as f64;
    match flow.protocol {
        Protocol::Rc => {
            let packets = (message / f64::from(scenario.qp.mtu)).ceil().max(1.0);
            let is_read = flow.mode == Mode::Pull || scenario.qp.verb == LabVerb::Read;
            let ends = if packets > 1.0 { 2 } else { 1 };
            let of_message = if is_read { AETH * ends } else { ROCE_MESSAGE };
            message + packets * (ROCE_HEADERS as f64 + around) + of_message as f64
        }
        // A stream fills its segments.
        Protocol::Tcp | Protocol::SimpleTcp => {
            message + message / f64::from(flow.tcp.mss) * (TCP_HEADERS as f64 + around)
        }
    }
}
