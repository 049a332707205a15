// SPDX-License-Identifier: Apache-2.0
//! Derives the settings of a flow's endpoints from the scenario.

use penstock_cc::{CcParams, Law};
use penstock_netsim::{
    Consumer, FlowId, NotifyAbove, PacingConfig, RcReceiverConfig, RcSenderConfig, ReadRequesterConfig,
    ReadResponderConfig, SenderVerb, TcpFlowConfig, TcpStack,
};
use penstock_transport::{BackOff, Endpoint, RequesterConfig, ResponderConfig, RetryLimits, TcpConfig, TcpEndpoint};
use penstock_wire::{Ecn, RnrTimer};

use super::builder::Builder;
use crate::flow::QueuePair;
use crate::makers::LabError;
use crate::scenario::{LabVerb, Protocol, Workload};
use crate::units::ByteSize;
use crate::workload::{Pace, SteadyParams};

/// The servers' TCP port, in the range of registered ports; the senders' ports distinguish flows.
const FIRST_TCP_PORT: u16 = 10_000;

impl Builder<'_> {
    /// The rate limiter of a flow, one of `of` of its host.
    pub(super) fn pacing(&self, number: usize, index: usize, of: usize) -> Result<PacingConfig, LabError> {
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

    /// A sender, number `index` of its host.
    pub(super) fn sender_config(&self, number: usize, index: usize, pacing: PacingConfig) -> RcSenderConfig {
        let mut request = self.requester_config(number, &self.ends[number].sender);
        request.marking.cn_tag = (self.scenario.qp.cn_tag && pacing.law == Law::Qcn).then_some(index as u16);
        let verb = match self.scenario.qp.verb {
            LabVerb::Write => SenderVerb::Write,
            LabVerb::Send => SenderVerb::Send,
            // Fragments of a [readout] are written, whatever other flows do.
            LabVerb::WriteImm | LabVerb::Read => SenderVerb::WriteImm,
        };
        let fragments = self.fragments[number].clone();
        RcSenderConfig { pacing, verb, fragments, ..RcSenderConfig::new(FlowId(number as u32), request) }
    }

    /// The requester at this end of a flow.
    pub(super) fn requester_config(&self, number: usize, ends: &QueuePair) -> RequesterConfig {
        let qp = &self.scenario.qp;
        let mut request = RequesterConfig::new(ends.local, ends.peer, ends.first_psn, self.mtu);
        request.limits =
            RetryLimits { ack_timeout: qp.ack_timeout_code, retry_cnt: qp.retry_cnt, rnr_retry: qp.rnr_retry };
        (request.ack_every, request.window) = (qp.ack_every, qp.window);
        request.initiator_depth = qp.responder_resources;
        (request.marking.dscp, request.marking.udp_sport) = (self.scenario.flows[number].dscp, ends.udp_sport);
        request
    }

    /// The responder at this end of a flow.
    pub(super) fn responder_config(&self, number: usize, ends: &QueuePair) -> ResponderConfig {
        let qp = &self.scenario.qp;
        let mut responder = ResponderConfig::new(ends.local, ends.peer, ends.first_psn, self.mtu);
        responder.cnp_interval = qp.cnp_interval;
        responder.rnr_timer = RnrTimer::at_least((qp.rnr_delay.as_ps() / 1_000_000) as u32);
        (responder.marking.ack_dscp, responder.marking.cnp_dscp) = (self.scenario.flows[number].dscp, qp.cnp_dscp);
        responder.marking.udp_sport = ends.udp_sport;
        responder
    }

    /// The sending host's end of a flow that is read.
    pub(super) fn read_responder_config(&self, number: usize, pacing: PacingConfig) -> ReadResponderConfig {
        let qp = &self.scenario.qp;
        let mut responder = self.responder_config(number, &self.ends[number].sender);
        responder.responder_resources = qp.responder_resources;
        responder.marking.response_ecn = Ecn::Ect0;
        ReadResponderConfig { flow: FlowId(number as u32), responder, ack_delay: qp.ack_delay, pacing }
    }

    /// The receiving host's end of a flow that is read.
    pub(super) fn read_requester_config(&self, number: usize) -> ReadRequesterConfig {
        let ends = &self.ends[number].receiver;
        let mut request = self.requester_config(number, ends);
        // No law limits requests.
        request.marking.ecn = Ecn::NotEct;
        let RcReceiverConfig { flow, responder, ack_delay, consumer, notify_above, .. } = self.receiver_config(number);
        ReadRequesterConfig { flow, request, responder, ack_delay, consumer, notify_above }
    }

    /// The connection of a TCP flow, as its sender sees it.
    pub(super) fn tcp_settings(&self, number: usize) -> TcpConfig {
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
            stall: tcp.stall,
            nagle: tcp.nagle,
            min_rto: tcp.min_rto,
            delayed_ack: tcp.delayed_ack,
            dscp: tcp.dscp,
            ..TcpConfig::new(end(ends.local, ends.udp_sport), end(ends.peer, port))
        }
    }

    /// The same, if it is one.
    pub(super) fn tcp_of(&self, number: usize) -> Option<TcpConfig> {
        (self.scenario.flows[number].protocol != Protocol::Rc).then(|| self.tcp_settings(number))
    }

    pub(super) fn tcp_config(&self, number: usize, pacing: PacingConfig) -> TcpFlowConfig {
        let flow = &self.scenario.flows[number];
        let back_off = if flow.tcp.back_off { BackOff::Exponential } else { BackOff::Off };
        let stack = match (flow.protocol, self.fragments[number].clone()) {
            (Protocol::SimpleTcp, Some(fragments)) => TcpStack::Fragments(back_off, fragments),
            (Protocol::SimpleTcp, None) => TcpStack::Simple(back_off),
            _ => TcpStack::Standard,
        };
        // A source without a pace of its own waits for the network.
        let paced = !matches!(flow.workload, Workload::Steady(SteadyParams { pace: Pace::Greedy, .. }));
        let send_buffer = flow.tcp.send_buffer.filter(|_| paced).map(ByteSize::bytes);
        let (tcp, limiter_queue) = (self.tcp_settings(number), flow.tcp.limiter_queue);
        TcpFlowConfig { flow: FlowId(number as u32), stack, tcp, send_buffer, limiter_queue, pacing }
    }

    pub(super) fn receiver_config(&self, number: usize) -> RcReceiverConfig {
        let qp = &self.scenario.qp;
        let responder = self.responder_config(number, &self.ends[number].receiver);
        let mut config = RcReceiverConfig::new(FlowId(number as u32), responder);
        config.ack_delay = qp.ack_delay;
        config.consumer = qp.consumer.map(|(rate, slots)| Consumer { slots, rate });
        let line = self.scenario.link_of(self.scenario.flows[number].to).rate;
        config.notify_above = qp.cnp_above.map(|(threshold, window)| NotifyAbove { threshold, window, line });
        config
    }
}
