// SPDX-License-Identifier: Apache-2.0
//! A scenario as a simulation that can run: stations with their endpoints, switches with their routes, links with what
//! happens to them.
//! Promise: nodes, links and flows have the numbers of the scenario; one scenario builds one simulation.

use std::net::Ipv4Addr;
use std::rc::Rc;

use penstock_cc::{CcParams, Law, ParamError};
use penstock_transport::{
    BackOff, Endpoint, Mtu, RequesterConfig, ResponderConfig, RetryLimits, TcpConfig, TcpEndpoint,
};
use penstock_wire::{Psn, Qpn, RnrTimer};

use super::read_switch::scaled;
use super::run::Lab;
use super::{FlowSpec, LabScenario, LabVerb, Protocol, SenderKind, SwitchSpec, Workload};
use crate::agenda::{LinkChange, Way};
use crate::engine::{Engine, LinkId, SimError};
use crate::flow::{FlowId, MessageSource};
use crate::ledger::{Ledger, SharedLedger};
use crate::link::LinkParams;
use crate::node::{Node, NodeId, PortId};
use crate::rng::Stream;
use crate::scenario::Scenario;
use crate::station::{
    Consumer, PacingConfig, RcReceiver, RcReceiverConfig, RcSender, RcSenderConfig, SenderVerb, Station, StationConfig,
    StationError, TcpFlowConfig, TcpFlowReceiver, TcpFlowSender, TcpStack,
};
use crate::switch::Switch;
use crate::topology::{NodeKind, Routes};
use crate::units::{ByteSize, Time};
use crate::workload::{EventSource, EventTeller, Pace, SteadyParams, SteadySource};

/// UDP source ports of queue pairs begin here (IBTA A17.9.2: the dynamic range).
const FIRST_UDP_SPORT: u16 = 0xc000;
/// Queue pairs of a host are numbered from here.
const FIRST_QPN: u32 = 0x100;
/// Where servers listen for TCP, in the range of registered ports; flows are told apart by the senders' ports.
const FIRST_TCP_PORT: u16 = 10_000;

/// Why a scenario cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error(transparent)]
    Simulation(#[from] SimError),
    #[error(transparent)]
    Station(#[from] StationError),
    #[error("flow {flow}: {source}")]
    Law { flow: String, source: ParamError },
    #[error("qp.mtu = {0}: allowed are 256, 512, 1024, 2048, 4096")]
    Mtu(u16),
    #[error("{host}: {source}")]
    Board { host: String, source: Box<dyn std::error::Error + Send + Sync> },
}

/// One end of an RC flow with all that its queue pair must know.
#[derive(Debug, Clone)]
pub struct QueuePair {
    pub local: Endpoint,
    pub peer: Endpoint,
    pub mtu: Mtu,
    pub first_psn: Psn,
    pub udp_sport: u16,
}

/// A flow that a verilated board shall send.
pub struct BoardFlow<'a> {
    pub id: FlowId,
    pub spec: &'a FlowSpec,
    pub queue_pair: QueuePair,
    pub source: Box<dyn MessageSource>,
}

/// A host whose flows are `sender = "gateware"`: the caller of [`Lab::build`] makes its node.
pub struct BoardRequest<'a> {
    pub scenario: &'a LabScenario,
    /// Its name in the topology.
    pub name: &'a str,
    pub link: LinkParams,
    pub flows: Vec<BoardFlow<'a>>,
    pub ledger: SharedLedger,
}

/// Makes the nodes of verilated boards.
pub type BoardMaker<'m> =
    dyn FnMut(BoardRequest) -> Result<Box<dyn Node>, Box<dyn std::error::Error + Send + Sync>> + 'm;

/// A flow in a simulation.
#[derive(Debug, Clone)]
pub struct FlowInfo {
    pub id: FlowId,
    pub name: String,
    /// Names of the hosts.
    pub from: String,
    pub to: String,
    pub protocol: Protocol,
    pub law: Law,
    pub start: Time,
    /// The sender's end of the connection; of an RC flow its queue pair.
    pub ends: QueuePair,
    pub sender: NodeId,
    /// Which endpoint of the sending station it is, its channel in traces; `None`: the sender is a board.
    pub sender_index: Option<usize>,
    pub receiver: NodeId,
    /// Which endpoint of the receiving station it is.
    pub receiver_index: usize,
}

/// What is known of a flow before its endpoints are made.
struct Ends {
    sender: QueuePair,
    receiver: QueuePair,
}

struct Builder<'a> {
    scenario: &'a LabScenario,
    mtu: Mtu,
    ledger: SharedLedger,
    teller: Rc<EventTeller>,
    /// Addresses of all nodes; those of switches are nobody's.
    addresses: Vec<Ipv4Addr>,
    /// By flow.
    ends: Vec<Ends>,
    /// Flows by sending and by receiving host.
    sent_by: Vec<Vec<usize>>,
    received_by: Vec<Vec<usize>>,
    /// What the senders' laws are told, each different one once.
    parameters: Vec<Rc<CcParams>>,
    /// Which endpoint of its station each flow is.
    sender_index: Vec<Option<usize>>,
    receiver_index: Vec<usize>,
}

impl Lab {
    /// Builds the simulation of a scenario. `boards` makes the nodes of hosts whose flows are sent by gateware.
    ///
    /// # Errors
    /// What the checks of the scenario cannot know: errors of `boards`, and links shorter than a board's window.
    pub fn build(scenario: &LabScenario, boards: &mut BoardMaker) -> Result<Lab, LabError> {
        let mut builder = Builder::new(scenario)?;
        let mut engine = Engine::new(scenario.run.seed);
        let routes = Routes::shortest(&scenario.topology);
        let mut nodes = Vec::new();
        for (number, node) in scenario.topology.nodes.iter().enumerate() {
            let made: Box<dyn Node> = match node.kind {
                NodeKind::Host => builder.host(number, boards)?,
                NodeKind::Switch => Box::new(builder.switch(number, &routes)),
            };
            nodes.push(engine.add_node(node.name.clone(), made));
        }
        let (mut links, mut names) = (Vec::new(), scenario.topology.link_names());
        engine.expect_links(scenario.topology.links.len());
        for (number, link) in scenario.topology.links.iter().enumerate() {
            let end = |side: usize| (nodes[link.ends[side]], PortId(link.ports[side]));
            let id = engine.connect(end(0), end(1), link.params)?;
            links.push((std::mem::take(&mut names[number]), id));
        }
        changes(scenario, &mut engine, &links)?;
        let flows = builder.infos(&nodes);
        let named = |kind| {
            let of_kind = scenario.topology.of_kind(kind);
            of_kind.map(|node| (scenario.topology.name(node).to_owned(), nodes[node])).collect::<Vec<_>>()
        };
        let (hosts, switches) = (named(NodeKind::Host), named(NodeKind::Switch));
        Ok(Lab::new(scenario, engine, builder.ledger, flows, hosts, switches, links))
    }
}

/// `[[change]]`
fn changes(scenario: &LabScenario, engine: &mut Engine, links: &[(String, LinkId)]) -> Result<(), SimError> {
    for change in &scenario.changes {
        let link = &scenario.topology.links[change.link];
        let way = match change.from_end {
            None => Way::Both,
            Some(end) if end == link.ends[0] => Way::Forward,
            Some(_) => Way::Back,
        };
        let id = links[change.link].1;
        engine.change_link_at(change.at, id, way, LinkChange { rate: change.rate, loss: change.loss })?;
        if let Some(until) = change.until {
            let back = LinkChange {
                rate: change.rate.map(|_| link.params.rate),
                loss: change.loss.map(|_| link.params.faults.loss),
            };
            engine.change_link_at(until, id, way, back)?;
        }
    }
    Ok(())
}

impl<'a> Builder<'a> {
    fn new(scenario: &'a LabScenario) -> Result<Self, LabError> {
        let nodes = scenario.topology.nodes.len();
        let mtu = Mtu::from_bytes(scenario.qp.mtu.into()).ok_or(LabError::Mtu(scenario.qp.mtu))?;
        let ledger = Ledger::shared(scenario.flows.len());
        let board = |flow: &&FlowSpec| matches!(flow.workload, Workload::Events { server: 0, .. });
        let boards = scenario.flows.iter().filter(board).count() as u32;
        let mut builder = Builder {
            scenario,
            mtu,
            teller: EventTeller::new(Rc::clone(&ledger), boards),
            ledger,
            addresses: scenario.addresses(),
            ends: Vec::new(),
            sent_by: vec![Vec::new(); nodes],
            received_by: vec![Vec::new(); nodes],
            parameters: Vec::new(),
            sender_index: vec![None; scenario.flows.len()],
            receiver_index: vec![0; scenario.flows.len()],
        };
        let mut psns = Stream::new(scenario.run.seed, "psn");
        for (number, flow) in scenario.flows.iter().enumerate() {
            let end = |node: usize| {
                let qpn = FIRST_QPN + (builder.sent_by[node].len() + builder.received_by[node].len()) as u32;
                let ip = builder.addresses[node];
                Endpoint { mac: Scenario::mac_of(ip), ip, qpn: Qpn::new(qpn) }
            };
            let (local, peer) = (end(flow.from), end(flow.to));
            let first_psn = Psn::new(psns.next_u32());
            let udp_sport = FIRST_UDP_SPORT | (number & 0x3fff) as u16;
            let sender = QueuePair { local, peer, mtu, first_psn, udp_sport };
            let receiver = QueuePair { local: peer, peer: local, ..sender.clone() };
            builder.ends.push(Ends { sender, receiver });
            builder.sent_by[flow.from].push(number);
            builder.received_by[flow.to].push(number);
            if matches!(flow.workload, Workload::Events { .. }) {
                builder.ledger.borrow_mut().carries_events(FlowId(number as u32));
            }
        }
        Ok(builder)
    }

    fn source(&self, number: usize) -> Box<dyn MessageSource> {
        let flow = &self.scenario.flows[number];
        match (&flow.workload, &self.scenario.events) {
            (Workload::Events { board, server, servers }, Some(events)) => {
                let source = EventSource::new(Rc::clone(events), *board, *server, *servers);
                Box::new(source.telling(Rc::clone(&self.teller)))
            }
            (Workload::Steady(params), _) => {
                let random = Stream::new(self.scenario.run.seed, &format!("flow {}", flow.name));
                Box::new(SteadySource::new(*params, random))
            }
            (Workload::Events { .. }, None) => unreachable!("event flows are made with their events"),
        }
    }

    fn host(&mut self, node: usize, boards: &mut BoardMaker) -> Result<Box<dyn Node>, LabError> {
        let gateware = |flow: &usize| self.scenario.flows[*flow].sender == SenderKind::Gateware;
        if self.sent_by[node].iter().any(gateware) {
            return self.board(node, boards);
        }
        let scenario = self.scenario;
        let ip = self.addresses[node];
        let mac = Scenario::mac_of(ip);
        let mut station = Station::new(StationConfig { mac, ip });
        station.expect_endpoints(self.sent_by[node].len() + self.received_by[node].len());
        let own = std::mem::take(&mut self.sent_by[node]);
        for (index, number) in own.iter().enumerate() {
            let (source, ledger) = (self.source(*number), Rc::clone(&self.ledger));
            let pacing = self.pacing(*number, index, own.len())?;
            let added = match scenario.flows[*number].protocol {
                Protocol::Rc => {
                    let mut sender = RcSender::new(self.sender_config(*number, pacing), source, ledger);
                    sender.share_parameters(&mut self.parameters);
                    station.add_rc_sender(sender)
                }
                Protocol::Tcp | Protocol::SimpleTcp => {
                    station.add_tcp_sender(TcpFlowSender::new(self.tcp_config(*number, pacing), source, ledger))
                }
            };
            self.sender_index[*number] = Some(added?);
        }
        for number in std::mem::take(&mut self.received_by[node]) {
            let ledger = Rc::clone(&self.ledger);
            let added = match scenario.flows[number].protocol {
                Protocol::Rc => station.add_rc_receiver(RcReceiver::new(self.receiver_config(number), ledger)),
                Protocol::Tcp | Protocol::SimpleTcp => {
                    let config = self.tcp_settings(number).reversed();
                    station.add_tcp_receiver(TcpFlowReceiver::new(FlowId(number as u32), config, ledger))
                }
            };
            self.receiver_index[number] = added?;
        }
        Ok(Box::new(station))
    }

    fn board(&mut self, node: usize, boards: &mut BoardMaker) -> Result<Box<dyn Node>, LabError> {
        let scenario = self.scenario;
        let flow = |number: &usize| BoardFlow {
            id: FlowId(*number as u32),
            spec: &scenario.flows[*number],
            queue_pair: self.ends[*number].sender.clone(),
            source: self.source(*number),
        };
        let name = scenario.topology.name(node);
        let request = BoardRequest {
            scenario,
            name,
            link: scenario.link_of(node),
            flows: self.sent_by[node].iter().map(flow).collect(),
            ledger: Rc::clone(&self.ledger),
        };
        boards(request).map_err(|source| LabError::Board { host: name.to_owned(), source })
    }

    /// The rate limiter of a flow, one of `of` of its host.
    fn pacing(&self, number: usize, index: usize, of: usize) -> Result<PacingConfig, LabError> {
        let flow = &self.scenario.flows[number];
        let law = |source| LabError::Law { flow: flow.name.clone(), source };
        let clock_hz = self.scenario.qp.clock_hz(self.scenario.link_of(flow.from).rate);
        let cc = match flow.law {
            Law::Off => CcParams::default(),
            Law::Dcqcn => CcParams { dcqcn: flow.dcqcn.at_clock(clock_hz).map_err(law)?, ..CcParams::default() },
            Law::Qcn => CcParams {
                dcqcn: flow.dcqcn.at_clock(clock_hz).map_err(law)?,
                qcn: flow.qcn.at_clock(clock_hz).map_err(law)?,
            },
        };
        Ok(PacingConfig { law: flow.law, cc, clock_hz, n_qp: of as u32, index: index as u8 })
    }

    fn sender_config(&self, number: usize, pacing: PacingConfig) -> RcSenderConfig {
        let (qp, ends) = (&self.scenario.qp, &self.ends[number].sender);
        let mut request = RequesterConfig::new(ends.local, ends.peer, ends.first_psn, self.mtu);
        request.limits =
            RetryLimits { ack_timeout: qp.ack_timeout_code, retry_cnt: qp.retry_cnt, rnr_retry: qp.rnr_retry };
        (request.ack_every, request.window) = (qp.ack_every, qp.window);
        (request.marking.dscp, request.marking.udp_sport) = (self.scenario.flows[number].dscp, ends.udp_sport);
        let verb = match qp.verb {
            LabVerb::WriteImm => SenderVerb::WriteImm,
            LabVerb::Write => SenderVerb::Write,
            LabVerb::Send => SenderVerb::Send,
        };
        RcSenderConfig { pacing, verb, ..RcSenderConfig::new(FlowId(number as u32), request) }
    }

    /// The connection of a TCP flow, as its sender sees it.
    fn tcp_settings(&self, number: usize) -> TcpConfig {
        let (tcp, ends) = (&self.scenario.flows[number].tcp, &self.ends[number].sender);
        let end = |end: Endpoint, port| TcpEndpoint { mac: end.mac, ip: end.ip, port };
        let port = FIRST_TCP_PORT + (number >> 14) as u16;
        TcpConfig {
            iss: ends.first_psn.value(),
            mss: tcp.mss,
            variant: tcp.variant,
            sack: tcp.sack,
            initial_window: tcp.initial_window,
            receive_buffer: tcp.receive_buffer.bytes(),
            min_rto_ps: tcp.min_rto.as_ps(),
            delayed_ack_ps: tcp.delayed_ack.as_ps(),
            dscp: tcp.dscp,
            ..TcpConfig::new(end(ends.local, ends.udp_sport), end(ends.peer, port))
        }
    }

    fn tcp_config(&self, number: usize, pacing: PacingConfig) -> TcpFlowConfig {
        let flow = &self.scenario.flows[number];
        let stack = match flow.protocol {
            Protocol::SimpleTcp if flow.tcp.back_off => TcpStack::Simple(BackOff::Exponential),
            Protocol::SimpleTcp => TcpStack::Simple(BackOff::Off),
            _ => TcpStack::Standard,
        };
        // A source without a pace of its own waits for the network.
        let paced = !matches!(flow.workload, Workload::Steady(SteadyParams { pace: Pace::Greedy, .. }));
        let send_buffer = flow.tcp.send_buffer.filter(|_| paced).map(ByteSize::bytes);
        TcpFlowConfig { flow: FlowId(number as u32), stack, tcp: self.tcp_settings(number), send_buffer, pacing }
    }

    fn receiver_config(&self, number: usize) -> RcReceiverConfig {
        let (qp, ends) = (&self.scenario.qp, &self.ends[number].receiver);
        let mut responder = ResponderConfig::new(ends.local, ends.peer, ends.first_psn, self.mtu);
        responder.cnp_interval_ps = qp.cnp_interval.as_ps();
        responder.rnr_timer = RnrTimer::at_least((qp.rnr_delay.as_ps() / 1_000_000) as u32);
        (responder.marking.ack_dscp, responder.marking.cnp_dscp) = (self.scenario.flows[number].dscp, qp.cnp_dscp);
        responder.marking.udp_sport = ends.udp_sport;
        let mut config = RcReceiverConfig::new(FlowId(number as u32), responder);
        config.ack_delay = qp.ack_delay;
        config.consumer = qp.consumer.map(|(rate, slots)| Consumer { slots, rate });
        config
    }

    fn switch(&self, node: usize, routes: &Routes) -> Switch {
        let scenario = self.scenario;
        let topology = &scenario.topology;
        let SwitchSpec { params, ecn_rate, .. } =
            scenario.switches.iter().find(|switch| switch.node == node).expect("every switch has its parameters");
        let ports = &topology.nodes[node].ports;
        let random = Stream::new(scenario.run.seed, topology.name(node));
        let mut switch = Switch::new(*params, ports.len() as u16, random);
        switch.set_mac(switch_mac(node));
        for (port, link) in ports.iter().enumerate() {
            let rate = topology.links[*link].params.rate;
            if let Some(reference) = ecn_rate.filter(|reference| *reference != rate) {
                let ecn = params.ecn.map(|ecn| ecn.map(|ecn| scaled(ecn, rate, reference)));
                switch.set_ecn(PortId(port as u16), ecn);
            }
        }
        let mut last: Option<(usize, Vec<PortId>)> = None;
        for host in topology.of_kind(NodeKind::Host) {
            let known = last.take().filter(|(before, _)| routes.share_ways(node, *before, host));
            let found = || routes.next_ports(topology, node, host).into_iter().map(PortId).collect();
            let ports = known.map_or_else(found, |(_, ports)| ports);
            switch.add_route(self.addresses[host], &ports);
            last = Some((host, ports));
        }
        switch
    }

    fn infos(&self, nodes: &[NodeId]) -> Vec<FlowInfo> {
        let info = |(number, flow): (usize, &FlowSpec)| FlowInfo {
            id: FlowId(number as u32),
            name: flow.name.clone(),
            from: self.scenario.topology.name(flow.from).to_owned(),
            to: self.scenario.topology.name(flow.to).to_owned(),
            protocol: flow.protocol,
            law: flow.law,
            start: flow.start(),
            ends: self.ends[number].sender.clone(),
            sender: nodes[flow.from],
            sender_index: self.sender_index[number],
            receiver: nodes[flow.to],
            receiver_index: self.receiver_index[number],
        };
        self.scenario.flows.iter().enumerate().map(info).collect()
    }
}

/// A locally administered address that no host has.
fn switch_mac(node: usize) -> penstock_wire::MacAddr {
    let [_, b, c, d] = (node as u32).to_be_bytes();
    penstock_wire::MacAddr([0x02, 0x50, 0x54, b, c, d])
}
