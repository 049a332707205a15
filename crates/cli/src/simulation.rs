// SPDX-License-Identifier: Apache-2.0
//! Builds the network of a scenario, with verilated boards and the readout on its ends, and runs it.

use crate::app::{ReadoutApp, FIRST_QPN};
use crate::output::{self, OutputError};
use crate::source::BoardSource;
use penstock_board::{regs, Board, BoardNode, EndpointConfig, QpConfig, SetupError, WorkerGone};
use penstock_netsim::scenario::Trigger;
use penstock_netsim::{
    CaptureError, CaptureSink, EcnParams, Host, HostConfig, HostStats, Node, PortStats, RunEnd, Scenario, SimError,
    Star, Stream, Switch, SwitchStats, Time, TraceError, TraceSink, TraceTee,
};
use penstock_readout::{
    BuilderConfig, Dataset, DatasetError, EventSource, EventWriter, Receiver, ReceiverConfig, ReceiverError,
    ReceiverReport, RingConfig, SourceError, StoreError, Triggers, WriterOptions,
};
use penstock_transport::{Access, Endpoint, MemoryRegion, Mtu, Responder, ResponderConfig, ResponderCounters};
use penstock_wire::{Psn, Qpn, RnrTimer};
use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU64};
use std::path::Path;
use std::sync::Arc;

/// Clock of the boards.
pub const BOARD_CLOCK_HZ: u64 = 156_250_000;
/// Queue pair 0 of every board answers to this number.
const BOARD_QPN: Qpn = Qpn::new(0x200);
/// RFC 6335: source ports of dynamic use begin here; IBTA A17.9.2 asks for one of them.
const FIRST_UDP_SPORT: u16 = 0xc000;
/// IP ECN codepoint ECT(0): the flow may be marked instead of dropped (RFC 3168).
pub const ECT0: u8 = 0b10;

type App = ReadoutApp<EventWriter>;

/// Why a run could not be set up or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error("boards.count: {0}")]
    Source(#[from] SourceError),
    #[error("server.slot_size = {slot_size} bytes: a fragment with its header has {needed}; make the slots larger")]
    SlotTooSmall { slot_size: u64, needed: usize },
    #[error("server.slot_size = {0} bytes: at most 4294967295 are allowed")]
    SlotTooLarge(u64),
    #[error("cc: {0}")]
    Congestion(penstock_cc::ParamError),
    #[error("link.at.{board}.delay = {delay}: a board's link needs at least one clock cycle, 6.4ns")]
    ShortLink { board: String, delay: Time },
    #[error("qp.mtu = {0}: allowed are 256, 512, 1024, 2048, 4096")]
    Mtu(u16),
    #[error("{board}: {source}")]
    Setup { board: String, source: SetupError },
    #[error("cannot start the thread of {board}: {source}")]
    Thread { board: String, source: std::io::Error },
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Simulation(#[from] SimError),
    #[error(transparent)]
    Worker(#[from] WorkerGone),
}

impl SimulationError {
    /// Of an error of [`Simulation::build`]: another request, or another folder for the results, would do.
    pub fn is_request(&self) -> bool {
        !matches!(self, Self::Simulation(_) | Self::Worker(_) | Self::Thread { .. } | Self::Setup { .. })
    }
}

/// A run under way.
pub struct Simulation {
    star: Star,
    boards: u16,
    events: u64,
    time_limit: Time,
    /// Payload bytes that each queue pair of the server had received at the end of each step.
    received: Vec<Vec<u64>>,
}

/// Where a run stands after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Running,
    /// Every message of every board has ended, well or not.
    Done,
    /// The scenario's time limit has come first.
    TimeLimit,
    /// Storage failed; the error comes from `Simulation::finish`.
    Stopped,
}

/// What one board did.
pub struct BoardResult {
    pub tally: penstock_board::MessageTally,
    /// Counters of the gateware, read from its registers.
    pub counters: GatewareCounters,
    pub responder: ResponderCounters,
}

/// Everything a finished run has to tell.
pub struct RunResult {
    pub boards: Vec<BoardResult>,
    pub switch: SwitchStats,
    /// The port to the server, then those to the boards.
    pub server_port: PortStats,
    pub board_ports: Vec<PortStats>,
    pub host: HostStats,
    pub readout: ReceiverReport,
    pub simulated: Time,
    pub engine_events: u64,
    /// Payload bytes received per step and board, for fairness over time.
    pub received: Vec<Vec<u64>>,
}

impl Simulation {
    /// Time between two looks at a run's progress; also the resolution of fairness.
    pub const STEP: Time = Time::from_us(100);

    /// Reads the data, sets the boards up by their registers and joins everything by the scenario's network.
    /// `tee` is told what the trace records.
    pub fn build(scenario: &Scenario, out: &Path, tee: TraceTee) -> Result<Self, SimulationError> {
        let count = scenario.boards.count;
        let dataset = Dataset::load(&scenario.data.file)?;
        let events = Arc::new(EventSource::new(&dataset, count)?);
        let rings = ring_configs(scenario, &events)?;
        let triggers = trigger_times(scenario);

        let mut boards: Vec<Box<dyn Node>> = Vec::new();
        let mut responders = Vec::new();
        for (k, ring) in (0..count).zip(&rings) {
            let init_psn = Psn::new(Stream::new(scenario.run.seed, &format!("psn board{k}")).next_u32());
            let source = BoardSource::new(events.clone(), k, *ring, triggers.clone());
            boards.push(Box::new(board_node(scenario, k, *ring, init_psn, source)?));
            responders.push(Responder::new(responder_config(scenario, k, *ring, init_psn)?));
        }

        output::prepare(out)?;
        let writer = EventWriter::create(out.join(output::EVENTS), &WriterOptions::default())?;
        let receiver = Receiver::new(receiver_config(scenario, rings), writer)?.with_reference((*events).clone());
        let config = HostConfig { ack_delay: scenario.server.ack_delay, vanish_at: scenario.server.vanish_at };
        let host: Host<App> = Host::new(config, ReadoutApp::new(receiver), responders);

        let mut star = Star::build(scenario, boards, Box::new(host))?;
        if scenario.trace.interval > Time::ZERO {
            let mut sink = TraceSink::create(out.join(output::TRACE), &[])?;
            sink.set_tee(tee);
            star.engine.set_trace(sink, scenario.trace.interval);
        }
        let capture = &scenario.capture;
        if !capture.links.is_empty() {
            let snap = capture.snap.bytes() as u32;
            let links: Vec<_> = capture.links.iter().filter_map(|node| star.link(node)).collect();
            star.engine.set_capture(CaptureSink::create(out.join(output::CAPTURE), snap)?, &links);
        }
        let (events, time_limit) = (scenario.data.events, scenario.run.time_limit);
        Ok(Self { star, boards: count, events, time_limit, received: Vec::new() })
    }

    /// Lets `STEP` of simulated time pass.
    pub fn step(&mut self) -> Result<Progress, SimulationError> {
        let now = self.now();
        if now >= self.time_limit {
            return Ok(Progress::TimeLimit);
        }
        let end = self.star.engine.run_until((now + Self::STEP).min(self.time_limit))?;
        self.received.push(self.host().responders().map(|r| r.counters().rx_payload_bytes).collect());
        let done = self.star.boards.iter().all(|id| self.board(*id).is_done());
        Ok(match end {
            RunEnd::Stopped => Progress::Stopped,
            _ if done => Progress::Done,
            _ => Progress::Running,
        })
    }

    pub fn now(&self) -> Time {
        self.star.engine.now()
    }

    pub fn events_built(&self) -> u64 {
        self.host().app().receiver().events_stored()
    }

    pub fn events_wanted(&self) -> u64 {
        self.events
    }

    /// Writes registers (address, value) of board `k` when its next window begins.
    pub fn write_registers(&mut self, k: u16, words: &[(u32, u32)]) {
        let node: Option<&mut BoardNode> = self.star.engine.node_mut(self.star.boards[usize::from(k)]);
        let node = node.expect("boards are board nodes");
        for (address, value) in words {
            node.queue_write(*address, *value);
        }
    }

    /// Has the switch mark by other thresholds from now on.
    pub fn set_ecn(&mut self, ecn: [Option<EcnParams>; 8]) {
        let switch: Option<&mut Switch> = self.star.engine.node_mut(self.star.switch);
        switch.expect("the switch is a switch").set_marking(ecn);
    }

    fn host(&self) -> &Host<App> {
        self.star.engine.node(self.star.server).expect("the server is a host")
    }

    fn board(&self, id: penstock_netsim::NodeId) -> &BoardNode {
        self.star.engine.node(id).expect("boards are board nodes")
    }

    /// Closes the files, whatever has been reached, and asks everyone for their counters.
    pub fn finish(mut self) -> Result<RunResult, SimulationError> {
        let now = self.now();
        let host: &mut Host<App> = self.star.engine.node_mut(self.star.server).expect("the server is a host");
        let app = host.app_mut();
        let failure = app.take_failure();
        let closed = app.receiver_mut().finish(now.as_ps());
        if let Some(trace) = self.star.engine.take_trace() {
            trace.finish()?;
        }
        if let Some(capture) = self.star.engine.take_capture() {
            capture.finish()?;
        }
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        closed?;
        let tallies: Vec<_> = self.star.boards.iter().map(|id| self.board(*id).tally().clone()).collect();
        let responders: Vec<_> = self.host().responders().map(|r| *r.counters()).collect();
        let switch: &Switch = self.star.engine.node(self.star.switch).expect("the switch is a switch");
        let mut result = RunResult {
            boards: Vec::new(),
            switch: switch.stats(),
            server_port: switch.port_stats(self.star.server_port(), now),
            board_ports: (0..self.boards).map(|k| switch.port_stats(Star::board_port(k), now)).collect(),
            host: self.host().stats(),
            readout: self.host().app().receiver().report(),
            simulated: now,
            engine_events: self.star.engine.events(),
            received: std::mem::take(&mut self.received),
        };
        let nodes = self.star.engine.into_nodes().into_iter().map(|node| node as Box<dyn std::any::Any>);
        let boards = nodes.filter_map(|node| node.downcast::<BoardNode>().ok());
        for ((board, tally), responder) in boards.zip(tallies).zip(responders) {
            let counters =
                GatewareCounters::read(&Scenario::board_name(result.boards.len() as u16), board.into_board()?)?;
            result.boards.push(BoardResult { tally, counters, responder });
        }
        Ok(result)
    }
}

/// Every counter of the register map: name, address, value.
pub struct GatewareCounters(Vec<(&'static str, u32, u32)>);

impl GatewareCounters {
    /// Reads them all; `board` is its name, for errors.
    pub fn read(board: &str, mut gateware: Board) -> Result<Self, SimulationError> {
        let setup = |source| SimulationError::Setup { board: board.to_owned(), source };
        let read = |&(name, address)| Ok((name, address, gateware.read(address).map_err(|e| setup(e.into()))?));
        regs::counters::ALL.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// The counter at an address of `regs::counters`.
    pub fn at(&self, address: u32) -> u32 {
        self.0.iter().find(|counter| counter.1 == address).expect("an address of regs::counters").2
    }

    pub fn by_name(&self) -> BTreeMap<&'static str, u32> {
        self.0.iter().map(|&(name, _, value)| (name, value)).collect()
    }
}

fn ring_configs(scenario: &Scenario, events: &EventSource) -> Result<Vec<RingConfig>, SimulationError> {
    let slot_size = scenario.server.slot_size.bytes();
    let needed = events.max_message_len();
    if slot_size < needed as u64 {
        return Err(SimulationError::SlotTooSmall { slot_size, needed });
    }
    let slot_bytes = u32::try_from(slot_size).map_err(|_| SimulationError::SlotTooLarge(slot_size))?;
    let shape = RingConfig { slots: scenario.server.slots, slot_bytes, ..RingConfig::default() };
    Ok((0..scenario.boards.count).map(|k| shape.for_board(k)).collect())
}

/// One time per event; the boards of a camera are triggered together.
fn trigger_times(scenario: &Scenario) -> Arc<[u64]> {
    let interval = NonZeroU64::new(scenario.data.trigger_rate.period().as_ps()).unwrap_or(NonZeroU64::MIN);
    let events = scenario.data.events as usize;
    match scenario.data.trigger {
        Trigger::Poisson => Triggers::new(scenario.run.seed, interval).take(events).collect(),
        Trigger::Periodic => (0..events as u64).map(|n| n * interval.get()).collect(),
    }
}

fn receiver_config(scenario: &Scenario, rings: Vec<RingConfig>) -> ReceiverConfig {
    let server = &scenario.server;
    let builder = BuilderConfig {
        sources: NonZeroU16::new(scenario.boards.count).expect("a scenario has at least one board"),
        window: (server.slots as usize).max(BuilderConfig::default().window),
        timeout_ps: server.event_timeout.as_ps(),
        ..BuilderConfig::default()
    };
    let consumer = server.consumer_rate.map(|rate| rate.bits_per_second() / 8);
    ReceiverConfig { rings, builder, consumer_bytes_per_s: consumer.and_then(NonZeroU64::new) }
}

/// The server's end of the connection of board `k`.
fn server_endpoint(k: u16) -> Endpoint {
    let ip = Scenario::server_ip();
    Endpoint { mac: Scenario::mac_of(ip), ip, qpn: Qpn::new(FIRST_QPN + u32::from(k)) }
}

fn board_endpoint(k: u16) -> Endpoint {
    let ip = Scenario::board_ip(k);
    Endpoint { mac: Scenario::mac_of(ip), ip, qpn: BOARD_QPN }
}

fn responder_config(
    scenario: &Scenario,
    k: u16,
    ring: RingConfig,
    init_psn: Psn,
) -> Result<ResponderConfig, SimulationError> {
    let qp = &scenario.qp;
    let mtu = Mtu::from_bytes(usize::from(qp.mtu)).ok_or(SimulationError::Mtu(qp.mtu))?;
    let mut config = ResponderConfig::new(server_endpoint(k), board_endpoint(k), init_psn, mtu);
    config.rnr_timer = RnrTimer::at_least((scenario.server.rnr_delay.as_ps() / 1_000_000) as u32);
    config.cnp_interval_ps = scenario.server.cnp_interval.as_ps();
    config.marking.ack_dscp = qp.dscp;
    config.marking.cnp_dscp = qp.cnp_dscp;
    let len = u64::from(ring.slots) * u64::from(ring.slot_bytes);
    Ok(config.with_region(MemoryRegion { va: ring.va, rkey: ring.rkey, len, access: Access::RemoteWrite }))
}

/// A verilated board, set up by its registers as software would do it, with its queue pair ready to send.
fn board_node(
    scenario: &Scenario,
    k: u16,
    ring: RingConfig,
    init_psn: Psn,
    source: BoardSource,
) -> Result<BoardNode, SimulationError> {
    let name = Scenario::board_name(k);
    let delay = scenario.link_of(&name).delay;
    if delay < BoardNode::MIN_LINK_DELAY {
        return Err(SimulationError::ShortLink { board: name, delay });
    }
    let (own, peer, qp) = (board_endpoint(k), server_endpoint(k), &scenario.qp);
    let endpoint = EndpointConfig {
        mac: own.mac,
        ip: own.ip,
        ttl: 64,
        qpn_base: BOARD_QPN,
        obey_pause: true,
        obey_pfc: true,
        traffic_class: qp.class(),
        congestion: scenario.cc.at_clock(BOARD_CLOCK_HZ).map_err(SimulationError::Congestion)?,
    };
    let connection = QpConfig {
        dst_mac: peer.mac,
        dst_ip: peer.ip,
        udp_sport: FIRST_UDP_SPORT + k,
        tos: qp.dscp << 2 | ECT0,
        dest_qpn: peer.qpn,
        rkey: ring.rkey,
        mtu: qp.mtu,
        ack_timeout: qp.ack_timeout_code(),
        retry_cnt: qp.retry_cnt,
        rnr_retry: qp.rnr_retry,
        init_psn,
    };
    let mut board = Board::new();
    let ready = board.configure(&endpoint).and_then(|()| board.open_qp(0, &connection));
    ready.map_err(|source| SimulationError::Setup { board: name.clone(), source })?;
    BoardNode::new(&name, board, Box::new(source), delay, scenario.trace.interval)
        .map_err(|source| SimulationError::Thread { board: name, source })
}
