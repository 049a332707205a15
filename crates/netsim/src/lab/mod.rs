// SPDX-License-Identifier: Apache-2.0
//! Scenarios of the network laboratory: any topology, any number of flows, in TOML, every key checked.
//! Promise: what is returned can be built; everything wrong is reported at once with file, line, key, value and what is
//! allowed; every key of every section can be set from outside.
//! `docs/lab.md` documents every key.
//!
//! A file is a scenario of the laboratory when it has a `[topology]`; otherwise it is one of the readout demo
//! ([`crate::Scenario`]).

mod build;
mod check;
mod idle;
mod read;
mod read_links;
mod read_switch;
mod read_topology;
mod read_traffic;
mod read_transport;
mod run;

use std::io;
use std::path::Path;
use std::rc::Rc;

use penstock_cc::{DcqcnSettings, Law, QcnSettings};
use penstock_transport::TcpVariant;

use crate::link::LinkParams;
use crate::scenario::document::Document;
use crate::scenario::{Problem, Scenario, ScenarioError};
use crate::switch::SwitchParams;
use crate::topology::{NodeKind, Topology};
use crate::units::{ByteSize, Frequency, Probability, Rate, Time};
use crate::workload::{EventList, SteadyParams};
pub use build::{BoardFlow, BoardMaker, BoardRequest, FlowInfo, LabError, QueuePair};
pub use run::{Lab, LabProgress, RunError};

/// A checked scenario of the laboratory.
#[derive(Debug, Clone)]
pub struct LabScenario {
    pub run: LabRun,
    /// Links carry their parameters.
    pub topology: Topology,
    /// One for each switch of the topology, in its order.
    pub switches: Vec<SwitchSpec>,
    pub qp: LabQp,
    /// In the order of their numbers.
    pub flows: Vec<FlowSpec>,
    /// What `[triggers]` or `[replay]` give.
    pub events: Option<Rc<EventList>>,
    pub changes: Vec<Change>,
    pub trace: LabTrace,
    pub capture: Capture,
    /// Every key with the value in force, in the order of reading: `("switch.kmin", "50KB")`.
    pub settings: Vec<(String, String)>,
    /// What is allowed but will probably hurt.
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
}

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// When every flow has ended, or at the time limit.
    Done,
    /// At the time limit.
    Time,
}

/// A switch and its settings.
#[derive(Debug, Clone)]
pub struct SwitchSpec {
    /// Its number in the topology.
    pub node: usize,
    pub params: SwitchParams,
    /// Marking thresholds hold for ports of this rate and grow with the rate of the port; `None`: the same for all.
    pub ecn_rate: Option<Rate>,
}

/// `[qp]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabQp {
    /// 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Code of the local ACK timer, 4.096 us * 2^code; 0: never.
    pub ack_timeout_code: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub dscp: u8,
    pub cnp_dscp: u8,
    /// A packet in so many asks for an acknowledgement, beside those that end a message.
    pub ack_every: u32,
    /// Most packets without an acknowledgement.
    pub window: u32,
    pub verb: LabVerb,
    /// Clock of the senders' rate limiters; `None`: by the rate of the link.
    pub clock: Option<Frequency>,
    /// From a packet's last bit to the first of its answer.
    pub ack_delay: Time,
    /// At most one CNP per queue pair in this time.
    pub cnp_interval: Time,
    /// How long a sender is asked to wait when no receive is posted.
    pub rnr_delay: Time,
    /// A receiver that takes messages at this rate out of so many slots; `None`: at once.
    pub consumer: Option<(Rate, u32)>,
}

/// What carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabVerb {
    WriteImm,
    Write,
    Send,
}

impl LabQp {
    /// The traffic class of data.
    pub fn class(&self) -> u8 {
        self.dscp >> 3
    }

    /// The clock of a sender's rate limiter on a link of this rate: those of the gateware.
    pub fn clock_hz(&self, rate: Rate) -> u64 {
        match self.clock {
            Some(clock) => clock.0 / 1_000,
            None if rate <= Rate::from_gbps(10) => 156_250_000,
            None if rate <= Rate::from_gbps(25) => 390_625_000,
            None => 322_265_625,
        }
    }
}

/// `[tcp]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabTcp {
    pub variant: TcpVariant,
    pub sack: bool,
    /// Payload of a full segment.
    pub mss: u32,
    /// Segments before the first ACK.
    pub initial_window: u32,
    pub receive_buffer: ByteSize,
    /// The smallest timeout; of the simplified sender the only one, before it backs off.
    pub min_rto: Time,
    /// What a source with a pace of its own may have unacknowledged; a message that finds no room is lost.
    pub send_buffer: Option<ByteSize>,
    pub delayed_ack: Time,
    /// Whether the simplified sender has its congestion control.
    pub back_off: bool,
    pub dscp: u8,
}

/// Who makes a flow's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderKind {
    Software,
    /// A verilated board, which the caller of `Lab::build` provides.
    Gateware,
}

/// What carries a flow.
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

/// What a flow sends.
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
    /// Of data and acknowledgements; the traffic class is `dscp / 8`.
    pub dscp: u8,
    pub law: Law,
    /// With the rate of the sender's link as line rate.
    pub dcqcn: DcqcnSettings,
    /// With the rate of the sender's link as line rate.
    pub qcn: QcnSettings,
    /// Of flows over TCP.
    pub tcp: LabTcp,
    pub workload: Workload,
}

impl FlowSpec {
    /// When its first message may be there.
    pub fn start(&self) -> Time {
        match &self.workload {
            Workload::Steady(steady) => steady.start,
            Workload::Events { .. } => Time::ZERO,
        }
    }
}

/// `[[change]]`: a link is different for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Number of the link in the topology.
    pub link: usize,
    /// Of which direction: from the first end of the link, from the second, or both (`None`).
    pub from_end: Option<usize>,
    pub at: Time,
    /// `None`: to the end of the run.
    pub until: Option<Time>,
    pub rate: Option<Rate>,
    pub loss: Option<Probability>,
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
    /// Whether a text is a scenario of the laboratory.
    pub fn is_lab(text: &str) -> bool {
        Document::parse(Path::new(""), text).is_ok_and(|document| document.root.get("topology").is_some())
    }

    /// Reads and checks a scenario file and the files that it names, `overrides` ("flow.0.start=1ms") laid over it.
    pub fn load(path: impl AsRef<Path>, overrides: &[String]) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let read = |path: &Path| std::fs::read(path);
        let text =
            read::read_text(&read, path).map_err(|source| ScenarioError::Io { path: path.to_owned(), source })?;
        Self::parse(path, &text, overrides, &read)
    }

    /// Like `load`, for a text that is in memory; `path` is used in messages and to resolve relative paths, `read_file`
    /// gives the bytes of the files that the scenario names.
    pub fn parse(
        path: impl AsRef<Path>,
        text: &str,
        overrides: &[String],
        read_file: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let mut document = Document::parse(path, text)?;
        for option in overrides {
            document.set(option)?;
        }
        read::scenario(document, path.parent().unwrap_or(Path::new("")), read_file)
    }

    /// The parameters of a host's link.
    pub fn link_of(&self, host: usize) -> LinkParams {
        self.topology.links[self.topology.nodes[host].ports[0]].params
    }

    /// The address of a host: 10.0.0.1 on, in the order of the hosts.
    pub fn ip_of(&self, host: usize) -> std::net::Ipv4Addr {
        let number = self.topology.nodes[..host].iter().filter(|node| node.kind == NodeKind::Host).count() as u32;
        std::net::Ipv4Addr::from_bits(0x0a00_0001 + number)
    }

    /// The addresses of all nodes, those of hosts as `ip_of` gives them.
    pub(crate) fn addresses(&self) -> Vec<std::net::Ipv4Addr> {
        let mut next = 0x0a00_0001;
        let address = |node: &crate::topology::TopologyNode| {
            let own = next;
            next += u32::from(node.kind == NodeKind::Host);
            std::net::Ipv4Addr::from_bits(own)
        };
        self.topology.nodes.iter().map(address).collect()
    }

    /// The MAC address of a host.
    pub fn mac_of(&self, host: usize) -> penstock_wire::MacAddr {
        Scenario::mac_of(self.ip_of(host))
    }
}
