// SPDX-License-Identifier: Apache-2.0
//! The interface to parts of a simulation that this crate does not contain: verilated boards and switches, and the
//! readout's receiver. The caller makes them. Promise: a scenario that needs a part for which the caller gives no maker is
//! refused.

use std::net::Ipv4Addr;

use penstock_cc::ParamError;
use penstock_netsim::{
    Endpoint, FlowId, Fragments, LinkParams, MessageSource, Node, PortId, PullConfig, PullConfigError, SharedLedger,
    SimError, StationError, SwitchParams,
};
use penstock_transport::simple_tcp::ParametersError;
use penstock_transport::TcpConfig;
use penstock_wire::{MacAddr, Psn, Qpn};

use crate::flow::QueuePair;
use crate::scenario::{FlowSpec, LabScenario, Readout};
use crate::units::{Rate, Time};

/// Why a scenario cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error(transparent)]
    Simulation(#[from] SimError),
    #[error(transparent)]
    Station(#[from] StationError),
    #[error("flow {flow}: {source}")]
    Law { flow: String, source: ParamError },
    #[error("flow {flow}: {source}")]
    Segments { flow: String, source: ParametersError },
    #[error("{host} cannot pull: {source}")]
    Pull { host: String, source: PullConfigError },
    #[error("qp.mtu = {0}: allowed are 256, 512, 1024, 2048, 4096")]
    Mtu(u16),
    #[error("{host}: {source}")]
    Board { host: String, source: MakerError },
    #[error("{switch}: {source}")]
    Switch { switch: String, source: MakerError },
    #[error("readout: {0}")]
    Readout(MakerError),
}

/// A flow that a verilated board shall send.
pub struct BoardFlow<'a> {
    pub id: FlowId,
    pub spec: &'a FlowSpec,
    pub queue_pair: QueuePair,
    /// The connection as its sender sees it, of a flow over TCP.
    pub tcp: Option<TcpConfig>,
    pub source: Box<dyn MessageSource>,
    /// The PSN of its server's first READ, if it is pulled.
    pub first_read_psn: Psn,
    /// The contents and destinations of its messages; `None`: arbitrary bytes to address 0 with key 0.
    pub fragments: Option<Fragments>,
}

/// A host whose flows are `sender = "gateware"`: [`Makers::board`] makes its node.
pub struct BoardRequest<'a> {
    pub scenario: &'a LabScenario,
    /// Its name in the topology.
    pub name: &'a str,
    pub link: LinkParams,
    pub flows: Vec<BoardFlow<'a>>,
    pub ledger: SharedLedger,
}

/// A switch with `gateware = true`: [`Makers::switch`] makes its node.
pub struct SwitchRequest<'a> {
    pub scenario: &'a LabScenario,
    /// Those that the gateware has; `buffer` is the longest output queue.
    pub params: SwitchParams,
    pub mac: MacAddr,
    /// The number of ports in use.
    pub ports: usize,
    /// Rate of each of its links.
    pub rate: Rate,
    /// The shortest of its links'.
    pub link_delay: Time,
    /// The hosts, and the ports towards them.
    pub table: Vec<(MacAddr, PortId)>,
    /// Seed of the congestion points' jitter.
    pub seed: u32,
}

/// One board of a readout: the flow that carries its fragments.
#[derive(Debug, Clone)]
pub struct ReadoutBoard {
    pub flow: FlowId,
    /// The board's end; the number of the peer's queue pair is not known yet.
    pub sender: QueuePair,
    /// The connection as the board sees it, if its flow goes over TCP.
    pub tcp: Option<TcpConfig>,
}

/// The host with the real receiver: [`Makers::readout`] makes its endpoint.
pub struct ReadoutRequest<'a> {
    pub scenario: &'a LabScenario,
    pub spec: &'a Readout,
    /// The host's name in the topology.
    pub name: &'a str,
    pub ip: Ipv4Addr,
    pub mac: MacAddr,
    /// Board i is source i of the events.
    pub boards: Vec<ReadoutBoard>,
    /// How it reads what boards announce; `None`: boards send.
    pub pull: Option<PullConfig>,
    pub ledger: SharedLedger,
}

/// A receiver that is ready for its boards.
pub struct ReadoutEnd {
    pub endpoint: Box<dyn Endpoint>,
    /// One for each board.
    pub boards: Vec<ReadoutQueuePair>,
}

/// The receiver's end of a board's connection, and what the board sends; over TCP numbers and ring have no meaning.
#[derive(Debug, Clone)]
pub struct ReadoutQueuePair {
    pub qpn: Qpn,
    /// The PSN of its first request, if it reads.
    pub first_psn: Psn,
    pub fragments: Fragments,
}

/// Why a part cannot be made.
pub type MakerError = Box<dyn std::error::Error + Send + Sync>;

/// Makes the parts that the laboratory does not know: verilated boards and switches, and the readout's receiver.
pub trait Makers {
    /// The node of a host whose flows are `sender = "gateware"`.
    fn board(&mut self, request: BoardRequest) -> Result<Box<dyn Node>, MakerError>;

    /// The node of a switch with `gateware = true`.
    fn switch(&mut self, request: SwitchRequest) -> Result<Box<dyn Node>, MakerError>;

    /// The endpoint of `[readout]`.
    fn readout(&mut self, request: ReadoutRequest) -> Result<ReadoutEnd, MakerError>;
}

/// The makers of callers that have neither boards nor a receiver: a scenario that needs them is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct SoftwareOnly;

impl Makers for SoftwareOnly {
    fn board(&mut self, request: BoardRequest) -> Result<Box<dyn Node>, MakerError> {
        let flow = request.flows.first().map_or(request.name, |flow| flow.spec.name.as_str());
        let message = "sender = \"gateware\" is a verilated board, which only the command has: `penstock run`, or \
                       \"software\" here";
        Err(format!("flow {flow}: {message}").into())
    }

    fn switch(&mut self, _request: SwitchRequest) -> Result<Box<dyn Node>, MakerError> {
        Err("gateware = true is a verilated switch, which only the command has: `penstock run`, or false here".into())
    }

    fn readout(&mut self, request: ReadoutRequest) -> Result<ReadoutEnd, MakerError> {
        let message = "is the real receiver, which only the command has: `penstock run`, or no [readout] here";
        Err(format!("{} {message}", request.name).into())
    }
}
