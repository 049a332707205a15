// SPDX-License-Identifier: Apache-2.0
//! The state of a simulation under construction: the ends of each flow, and the endpoint index of each at its station.
//! Promise: addresses, queue pairs, ports and first PSNs depend only on the order of the flows and the seed.

use std::net::Ipv4Addr;
use std::rc::Rc;

use penstock_cc::{CcParams, Law};
use penstock_netsim::{
    Endpoint as FlowEndpoint, FlowId, Fragments, Ledger, MessageSource, NodeId, SharedLedger, Stream,
};
use penstock_transport::{Endpoint, Mtu};
use penstock_wire::gateware::FIRST_UDP_SPORT;
use penstock_wire::{Psn, Qpn};

use crate::flow::{FlowInfo, QueuePair};
use crate::makers::LabError;
use crate::scenario::{mac_of, FlowSpec, LabScenario, Protocol, Workload};
use crate::workload::{EventAnnouncer, EventSource, SteadySource};

/// Queue pairs of a host are numbered from here.
const FIRST_QPN: u32 = 0x100;

/// The data of a flow before its endpoints are made.
pub(super) struct Ends {
    pub(super) sender: QueuePair,
    pub(super) receiver: QueuePair,
}

pub(super) struct Builder<'a> {
    pub(super) scenario: &'a LabScenario,
    pub(super) mtu: Mtu,
    pub(super) ledger: SharedLedger,
    pub(super) announcer: Rc<EventAnnouncer>,
    /// Addresses of all nodes; those of switches are unused.
    pub(super) addresses: Vec<Ipv4Addr>,
    /// One for each flow.
    pub(super) ends: Vec<Ends>,
    /// Flows by sending and by receiving host.
    pub(super) sent_by: Vec<Vec<usize>>,
    pub(super) received_by: Vec<Vec<usize>>,
    /// The parameters of the senders' laws, each distinct set once.
    pub(super) parameters: Vec<Rc<CcParams>>,
    /// Which endpoint of its station each flow is.
    pub(super) sender_index: Vec<Option<usize>>,
    pub(super) receiver_index: Vec<usize>,
    /// One for each flow, of those that go to the readout.
    pub(super) fragments: Vec<Option<Fragments>>,
    /// The endpoint until its station is made.
    pub(super) readout: Option<Box<dyn FlowEndpoint>>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(scenario: &'a LabScenario) -> Result<Self, LabError> {
        let nodes = scenario.topology.nodes.len();
        let mtu = Mtu::from_bytes(scenario.qp.mtu.into()).ok_or(LabError::Mtu(scenario.qp.mtu))?;
        let ledger = Ledger::shared(scenario.flows.len());
        let board = |flow: &&FlowSpec| matches!(flow.workload, Workload::Events { server: 0, .. });
        let boards = scenario.flows.iter().filter(board).count() as u32;
        let mut builder = Builder {
            scenario,
            mtu,
            announcer: EventAnnouncer::new(Rc::clone(&ledger), boards),
            ledger,
            addresses: scenario.addresses(),
            ends: Vec::new(),
            sent_by: vec![Vec::new(); nodes],
            received_by: vec![Vec::new(); nodes],
            parameters: Vec::new(),
            sender_index: vec![None; scenario.flows.len()],
            receiver_index: vec![0; scenario.flows.len()],
            fragments: vec![None; scenario.flows.len()],
            readout: None,
        };
        let mut psns = Stream::new(scenario.run.seed, "psn");
        for (number, flow) in scenario.flows.iter().enumerate() {
            let end = |node: usize| {
                let qpn = FIRST_QPN + (builder.sent_by[node].len() + builder.received_by[node].len()) as u32;
                let ip = builder.addresses[node];
                Endpoint { mac: mac_of(ip), ip, qpn: Qpn::new(qpn) }
            };
            let (local, peer) = (end(flow.from), end(flow.to));
            let read_out = scenario.readout.is_some_and(|readout| readout.host == flow.to);
            let psn = match read_out {
                true => {
                    Stream::new(scenario.run.seed, &format!("psn {}", scenario.topology.name(flow.from))).next_u32()
                }
                false => psns.next_u32(),
            };
            let first_psn = Psn::new(psn);
            // A flow under QCN is found by the flow ID that its port holds: at a board, the number of its queue pair.
            let found_by_port = flow.law == Law::Qcn && flow.protocol == Protocol::Rc;
            let flow_id = if found_by_port { builder.sent_by[flow.from].len() } else { number };
            let udp_sport = FIRST_UDP_SPORT | (flow_id & 0x3fff) as u16;
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

    pub(super) fn source(&self, number: usize) -> Box<dyn MessageSource> {
        let flow = &self.scenario.flows[number];
        match (&flow.workload, &self.scenario.events) {
            (Workload::Events { board, server, servers }, Some(events)) => {
                let source = EventSource::new(Rc::clone(events), *board, *server, *servers);
                Box::new(source.announcing(Rc::clone(&self.announcer)))
            }
            (Workload::Steady(params), _) => {
                let random = Stream::new(self.scenario.run.seed, &format!("flow {}", flow.name));
                Box::new(SteadySource::new(*params, random))
            }
            (Workload::Events { .. }, None) => unreachable!("event flows are made with their events"),
        }
    }

    pub(super) fn infos(&self, nodes: &[NodeId]) -> Vec<FlowInfo> {
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
