// SPDX-License-Identifier: Apache-2.0
//! A scenario of the laboratory as plain values: any topology, any number of flows.
//! Promise: a scenario returned by `read` can be built; numbers of nodes, links and flows are indices into these lists.
//! `docs/lab.md` documents every key.

mod flow;
mod mode;
mod readout;
mod switch;
mod transport;

use std::net::Ipv4Addr;
use std::rc::Rc;

use penstock_netsim::LinkParams;
use penstock_wire::MacAddr;

use crate::language::Problem;
use crate::topology::{NodeKind, Topology, TopologyNode};
use crate::units::{ByteSize, Probability, Rate, Time};
use crate::workload::EventList;
pub(crate) use flow::limited_pairs;
pub use flow::{FlowSpec, Protocol, SenderKind, Workload};
pub use mode::Mode;
pub use readout::{CameraEvents, Readout};
pub(crate) use switch::scaled;
pub use switch::SwitchSpec;
pub use transport::{LabPull, LabQp, LabTcp, LabVerb};

/// A checked scenario of the laboratory.
#[derive(Debug, Clone)]
pub struct LabScenario {
    pub run: LabRun,
    /// Links carry their parameters.
    pub topology: Topology,
    /// One for each switch of the topology, in its order.
    pub switches: Vec<SwitchSpec>,
    pub qp: LabQp,
    pub pull: LabPull,
    /// The flows in the order of their numbers.
    pub flows: Vec<FlowSpec>,
    /// The events of `[triggers]` or `[replay]`.
    pub events: Option<Rc<EventList>>,
    /// Triggers come as long as the run lasts.
    pub endless_triggers: bool,
    /// The boards' data of the events, if `[replay]` has camera events.
    pub recorded: Option<CameraEvents>,
    pub readout: Option<Readout>,
    pub changes: Vec<Change>,
    pub trace: LabTrace,
    pub capture: Capture,
    /// Every key with the value in force, in the order of reading: `("switch.kmin", "50KB")`.
    pub settings: Vec<(String, String)>,
    /// Settings that are valid but probably harmful.
    pub warnings: Vec<Problem>,
}

/// `[run]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabRun {
    /// One seed replays one run.
    pub seed: u64,
    /// Simulated time after which the run ends in any case.
    pub time_limit: Time,
    pub stop: Stop,
    /// The time that is the start-up and not the steady state; 0: nothing is start-up.
    pub warm_up: Time,
}

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// When every flow has ended, or at the time limit, which ends flows without an end of their own.
    Done,
    /// It ends at the time limit.
    Time,
}

/// `[[change]]`: a link is different for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Number of the link in the topology.
    pub link: usize,
    /// The end of the link that sends: the first, the second, or both (`None`).
    pub from_end: Option<usize>,
    pub at: Time,
    /// `None`: to the end of the run.
    pub until: Option<Time>,
    pub rate: Option<Rate>,
    pub loss: Option<Probability>,
    /// The link is down: it loses all, and this long afterwards every switch sends around it; `None`: it is up.
    pub down: Option<Time>,
}

/// `[trace]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabTrace {
    /// Zero: no trace.
    pub interval: Time,
    /// Only these are recorded; empty: all.
    pub metrics: Vec<String>,
    /// Queues and pauses of switches class by class, in place of whole ports.
    pub classes: bool,
}

/// `[capture]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Numbers of links in the topology; empty: no capture.
    pub links: Vec<usize>,
    /// Bytes kept of each frame.
    pub snap: ByteSize,
}

impl LabScenario {
    /// Whether a flow has no end of its own: the time limit of the run is its end.
    pub fn is_endless(&self, flow: &FlowSpec) -> bool {
        match flow.workload {
            Workload::Steady(steady) => steady.total_bytes.is_none() && steady.stop.is_none(),
            Workload::Events { .. } => self.endless_triggers,
        }
    }

    /// The parameters of a host's link.
    pub fn link_of(&self, host: usize) -> LinkParams {
        self.topology.links[self.topology.nodes[host].ports[0]].params
    }

    /// The address of a host: 10.0.0.1 on, in the order of the hosts.
    pub fn ip_of(&self, host: usize) -> Ipv4Addr {
        let number = self.topology.nodes[..host].iter().filter(|node| node.kind == NodeKind::Host).count() as u32;
        Ipv4Addr::from_bits(0x0a00_0001 + number)
    }

    /// The addresses of all nodes, those of hosts as `ip_of` gives them.
    pub(crate) fn addresses(&self) -> Vec<Ipv4Addr> {
        let mut next = 0x0a00_0001;
        let address = |node: &TopologyNode| {
            let address = next;
            next += u32::from(node.kind == NodeKind::Host);
            Ipv4Addr::from_bits(address)
        };
        self.topology.nodes.iter().map(address).collect()
    }

    /// The MAC address of a host.
    pub fn mac_of(&self, host: usize) -> MacAddr {
        mac_of(self.ip_of(host))
    }
}

/// The locally administered MAC address that goes with an IP address of a scenario.
pub(crate) fn mac_of(ip: Ipv4Addr) -> MacAddr {
    let [_, b, c, d] = ip.octets();
    MacAddr([0x02, 0x50, 0x53, b, c, d])
}
