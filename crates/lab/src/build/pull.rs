// SPDX-License-Identifier: Apache-2.0
//! The ends of flows that their receivers pull: a board for each flow, one scheduler for each receiving host.
//! Promise: a host's window follows from its line, unless it is given; responses are neither limited nor marked.

use std::rc::Rc;

use penstock_netsim::{
    FlowId, PacingConfig, PullBoard, PullBoardConfig, PullConfig, PullServer, PullWindow, PulledFlowConfig,
};
use penstock_wire::{Ecn, SUCCESSORS_LEN};

use super::builder::Builder;
use crate::makers::LabError;
use crate::offered::READ_RESPONSE_OVERHEAD;
use crate::scenario::{FlowSpec, LabScenario, Mode, Workload};
use crate::units::{ByteSize, Time};
use crate::workload::{Pace, SteadyParams};

/// The longest message, with its successors.
const LONGEST: u32 = (1 << 31) + SUCCESSORS_LEN as u32;
/// The least patience with a board that does not answer.
const PATIENCE: Time = Time::from_ms(1);

impl Builder<'_> {
    /// The sending host's end of a flow that is pulled.
    pub(super) fn pull_board(&self, number: usize, pacing: PacingConfig) -> PullBoard {
        let (scenario, flow) = (self.scenario, &self.scenario.flows[number]);
        let mut read = self.read_responder_config(number, pacing);
        read.responder.marking.response_ecn = Ecn::NotEct;
        let mut request = self.requester_config(number, &self.ends[number].sender);
        request.marking.ecn = Ecn::NotEct;
        let servers = match flow.workload {
            Workload::Events { servers, .. } => servers as u64,
            Workload::Steady(_) => 1,
        };
        // A readout numbers its requests by itself.
        read.responder.expected_psn = self.ends[number].receiver.first_psn;
        let (slots, ahead, fragments) = (scenario.pull.slots, ahead(scenario, flow), self.fragments[number].clone());
        let config = PullBoardConfig { read, request, slots, ahead, servers, fragments };
        PullBoard::new(config, self.source(number), Rc::clone(&self.ledger))
    }

    /// The end of all flows that a host pulls, if there are any.
    pub(super) fn pull_server(&self, node: usize, flows: &[usize]) -> Result<Option<PullServer>, LabError> {
        let is_pulled = |number: &&usize| self.scenario.flows[**number].mode == Mode::Pull;
        let pulled: Vec<PulledFlowConfig> =
            flows.iter().filter(is_pulled).map(|number| self.pulled_flow(*number)).collect();
        if pulled.is_empty() {
            return Ok(None);
        }
        let (config, host) = (self.pull_config(node), self.scenario.topology.name(node).to_owned());
        let server = PullServer::new(config, pulled, self.scenario.qp.ack_delay, Rc::clone(&self.ledger));
        server.map(Some).map_err(|source| LabError::Pull { host, source })
    }

    /// How a host reads.
    pub(super) fn pull_config(&self, node: usize) -> PullConfig {
        let scenario = self.scenario;
        let line = scenario.link_of(node).rate;
        PullConfig {
            window: match scenario.pull.window {
                Some(window) => PullWindow::Given(window.bytes()),
                None => PullWindow::Measured { line },
            },
            outstanding: scenario.qp.responder_resources,
            mtu: scenario.qp.mtu.into(),
            packet_overhead: READ_RESPONSE_OVERHEAD,
            slots: scenario.pull.slots,
            longest: LONGEST,
            patience: scenario.pull.patience.unwrap_or_else(|| PATIENCE.max(round_trip(scenario) * 4)),
        }
    }

    fn pulled_flow(&self, number: usize) -> PulledFlowConfig {
        let ends = &self.ends[number].receiver;
        let mut request = self.requester_config(number, ends);
        request.marking.ecn = Ecn::NotEct;
        let responder = self.responder_config(number, ends);
        let carries_events = matches!(self.scenario.flows[number].workload, Workload::Events { .. });
        PulledFlowConfig { flow: FlowId(number as u32), request, responder, carries_events }
    }
}

/// A round trip over the longest path of a tree, without queueing.
fn round_trip(scenario: &LabScenario) -> Time {
    let slowest = scenario.topology.links.iter().map(|link| link.params.delay).max().unwrap_or_default();
    slowest * 8 + scenario.qp.ack_delay
}

/// A flow that always has more announces what its line carries in the round trips of an announcement and of a READ.
fn ahead(scenario: &LabScenario, flow: &FlowSpec) -> Option<u64> {
    const LEAST: ByteSize = ByteSize(65_536);
    let Workload::Steady(SteadyParams { pace: Pace::Greedy, .. }) = flow.workload else { return None };
    let line = scenario.link_of(flow.from).rate;
    Some(line.bytes_in(round_trip(scenario) * 2).bytes() + LEAST.bytes())
}
