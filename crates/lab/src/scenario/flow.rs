// SPDX-License-Identifier: Apache-2.0
//! A flow of a scenario: sender, messages, destination, protocol, and law of congestion control.

use std::collections::BTreeMap;

use penstock_cc::{DcqcnSettings, Law, QcnSettings};

use super::mode::Mode;
use super::LabTcp;
use crate::units::{Rate, Time};
use crate::workload::SteadyParams;

/// Who makes a flow's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderKind {
    Software,
    /// A verilated board, which the caller of `Lab::build` provides.
    Gateware,
}

/// The protocol that carries a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// RoCEv2 reliable connection.
    Rc,
    /// A host's TCP.
    Tcp,
    /// The simplified TCP of a front end.
    SimpleTcp,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Rc => "rc",
            Protocol::Tcp => "tcp",
            Protocol::SimpleTcp => "simple-tcp",
        }
    }
}

/// The messages of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Steady(SteadyParams),
    /// Fragments of column `board` of the events `server`, `server + servers`, ....
    Events {
        board: usize,
        server: usize,
        servers: usize,
    },
}

/// One flow: messages from one host to another.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    pub name: String,
    /// Numbers in the topology.
    pub from: usize,
    pub to: usize,
    pub protocol: Protocol,
    pub sender: SenderKind,
    pub mode: Mode,
    /// DSCP of data and acknowledgements; the traffic class is `dscp / 8`.
    pub dscp: u8,
    pub law: Law,
    /// What profile "penstock" takes for its share of the receiver's line; `None`: it has another profile.
    pub share: Option<Rate>,
    /// The settings with the rate of the sender's link as line rate.
    pub dcqcn: DcqcnSettings,
    /// The settings with the rate of the sender's link as line rate.
    pub qcn: QcnSettings,
    /// Settings of flows over TCP.
    pub tcp: LabTcp,
    pub workload: Workload,
}

impl FlowSpec {
    /// The share that its rate limiter holds; `None`: there is no limiter, or none that has a share.
    pub fn limit(&self) -> Option<Rate> {
        self.share.filter(|_| self.law == Law::Dcqcn && self.protocol == Protocol::Rc && self.mode == Mode::Push)
    }

    /// When its first message may be there.
    pub fn start(&self) -> Time {
        match &self.workload {
            Workload::Steady(steady) => steady.start,
            Workload::Events { .. } => Time::ZERO,
        }
    }
}

/// How many limited queue pairs each two hosts have: sender, receiver, number.
pub(crate) fn limited_pairs(flows: &[FlowSpec]) -> BTreeMap<(usize, usize), u64> {
    let mut pairs = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.limit().is_some()) {
        *pairs.entry((flow.from, flow.to)).or_default() += 1;
    }
    pairs
}
