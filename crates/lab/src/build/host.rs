// SPDX-License-Identifier: Apache-2.0
//! The node of a host: a station with the endpoints of its flows, or a node made by the caller.

use std::rc::Rc;

use penstock_netsim::{
    CnpLimit, FlowId, Node, RcReceiver, RcReceiverConfig, RcSender, ReadRequester, ReadResponder, Station,
    StationConfig, TcpFlowReceiver, TcpFlowSender,
};
use penstock_transport::TcpConfig;
use penstock_wire::Qpn;

use super::builder::Builder;
use crate::makers::{BoardFlow, BoardRequest, LabError, Makers, ReadoutBoard, ReadoutRequest};
use crate::scenario::{mac_of, LabVerb, Mode, Protocol, SenderKind};

impl Builder<'_> {
    /// Makes the receiver of `[readout]`, and passes its queue pairs to the flows' senders.
    pub(super) fn readout(&mut self, makers: &mut dyn Makers) -> Result<(), LabError> {
        let scenario = self.scenario;
        let Some(spec) = &scenario.readout else { return Ok(()) };
        let flows = self.received_by[spec.host].clone();
        let (name, ip) = (scenario.topology.name(spec.host), self.addresses[spec.host]);
        let board = |number: &usize| ReadoutBoard {
            flow: FlowId(*number as u32),
            sender: self.ends[*number].sender.clone(),
            tcp: self.tcp_of(*number),
        };
        let boards = flows.iter().map(board).collect();
        let (mac, ledger) = (mac_of(ip), Rc::clone(&self.ledger));
        let pull = (spec.mode == Mode::Pull).then(|| self.pull_config(spec.host));
        let request = ReadoutRequest { scenario, spec, name, ip, mac, boards, pull, ledger };
        let end = makers.readout(request).map_err(LabError::Readout)?;
        for (number, end) in flows.into_iter().zip(end.boards) {
            let ends = &mut self.ends[number];
            (ends.sender.peer.qpn, ends.receiver.local.qpn) = (end.qpn, end.qpn);
            if spec.mode == Mode::Pull {
                ends.receiver.first_psn = end.first_psn;
            }
            self.fragments[number] = Some(end.fragments);
        }
        self.readout = Some(end.endpoint);
        Ok(())
    }

    /// The receiving ends of a host's flows: one of its own for each, or the readout for all.
    fn receivers(&mut self, node: usize, station: &mut Station) -> Result<(), LabError> {
        let flows = std::mem::take(&mut self.received_by[node]);
        if self.scenario.readout.is_some_and(|readout| readout.host == node) {
            if let Some(endpoint) = self.readout.take() {
                let streams: Vec<TcpConfig> =
                    flows.iter().filter_map(|flow| self.tcp_of(*flow)).map(TcpConfig::reversed).collect();
                let queue_pairs: Vec<Qpn> = flows.iter().map(|flow| self.ends[*flow].receiver.local.qpn).collect();
                let index = match streams.is_empty() {
                    true => station.add_application(endpoint, &queue_pairs)?,
                    false => station.add_tcp_application(endpoint, &streams)?,
                };
                flows.iter().for_each(|flow| self.receiver_index[*flow] = index);
            }
            return Ok(());
        }
        if let Some(server) = self.pull_server(node, &flows)? {
            let index = station.add_pull_server(server)?;
            flows.iter().for_each(|flow| self.receiver_index[*flow] = index);
        }
        let cnp_limit = self.scenario.qp.cnp_port_interval.map(|interval| Rc::new(CnpLimit::new(interval)));
        for number in flows {
            if self.scenario.flows[number].mode == Mode::Pull {
                continue;
            }
            let ledger = Rc::clone(&self.ledger);
            let added = match self.scenario.flows[number].protocol {
                Protocol::Rc if self.scenario.qp.verb == LabVerb::Read => {
                    let config = self.read_requester_config(number);
                    station.add_read_requester(ReadRequester::new(config, self.source(number), ledger))
                }
                Protocol::Rc => {
                    let config = RcReceiverConfig { cnp_limit: cnp_limit.clone(), ..self.receiver_config(number) };
                    station.add_rc_receiver(RcReceiver::new(config, ledger))
                }
                Protocol::Tcp | Protocol::SimpleTcp => {
                    let config = self.tcp_settings(number).reversed();
                    station.add_tcp_receiver(TcpFlowReceiver::new(FlowId(number as u32), config, ledger))
                }
            };
            self.receiver_index[number] = added?;
        }
        Ok(())
    }

    pub(super) fn host(&mut self, node: usize, makers: &mut dyn Makers) -> Result<Box<dyn Node>, LabError> {
        let gateware = |flow: &usize| self.scenario.flows[*flow].sender == SenderKind::Gateware;
        if self.sent_by[node].iter().any(gateware) {
            return self.board(node, makers);
        }
        let scenario = self.scenario;
        let ip = self.addresses[node];
        let mut station = Station::new(StationConfig { mac: mac_of(ip), ip });
        station.expect_endpoints(self.sent_by[node].len() + self.received_by[node].len());
        let sent = std::mem::take(&mut self.sent_by[node]);
        for (index, number) in sent.iter().enumerate() {
            let ledger = Rc::clone(&self.ledger);
            let pacing = self.pacing(*number, index, sent.len())?;
            let added = match scenario.flows[*number].protocol {
                Protocol::Rc if scenario.flows[*number].mode == Mode::Pull => {
                    station.add_pull_board(self.pull_board(*number, pacing))
                }
                Protocol::Rc if scenario.qp.verb == LabVerb::Read => {
                    let mut responder = ReadResponder::new(self.read_responder_config(*number, pacing));
                    responder.share_parameters(&mut self.parameters);
                    station.add_read_responder(responder)
                }
                Protocol::Rc => {
                    let mut sender =
                        RcSender::new(self.sender_config(*number, index, pacing), self.source(*number), ledger);
                    sender.share_parameters(&mut self.parameters);
                    station.add_rc_sender(sender)
                }
                Protocol::Tcp | Protocol::SimpleTcp => {
                    let sender = TcpFlowSender::new(self.tcp_config(*number, pacing), self.source(*number), ledger);
                    let segments = |source| LabError::Segments { flow: scenario.flows[*number].name.clone(), source };
                    station.add_tcp_sender(sender.map_err(segments)?)
                }
            };
            self.sender_index[*number] = Some(added?);
        }
        self.receivers(node, &mut station)?;
        Ok(Box::new(station))
    }

    fn board(&mut self, node: usize, makers: &mut dyn Makers) -> Result<Box<dyn Node>, LabError> {
        let scenario = self.scenario;
        let flow = |number: &usize| BoardFlow {
            id: FlowId(*number as u32),
            spec: &scenario.flows[*number],
            queue_pair: self.ends[*number].sender.clone(),
            tcp: self.tcp_of(*number),
            source: self.source(*number),
            first_read_psn: self.ends[*number].receiver.first_psn,
            fragments: self.fragments[*number].clone(),
        };
        let name = scenario.topology.name(node);
        let request = BoardRequest {
            scenario,
            name,
            link: scenario.link_of(node),
            flows: self.sent_by[node].iter().map(flow).collect(),
            ledger: Rc::clone(&self.ledger),
        };
        makers.board(request).map_err(|source| LabError::Board { host: name.to_owned(), source })
    }
}
