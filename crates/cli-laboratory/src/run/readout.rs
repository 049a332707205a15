// SPDX-License-Identifier: Apache-2.0
//! The real receiver as an endpoint of a simulated host: in-process back end, event builder and writer.
//! Promise: it handles packets like `penstock recv`; it uses simulated time, and one seed stores the same bytes. Its
//! counters are read after the run.
//! Source: ARCHITECTURE.md, "The way of a fragment".

use super::pull;
use penstock_cli_common::output::results;
use penstock_lab::{MakerError, ReadoutEnd, ReadoutQueuePair, ReadoutRequest};
use penstock_netsim::{
    CameBytes, Contents, Endpoint, FlowId, Fragments, PullStats, RemoteRing, SharedLedger, Stream, Time, TraceSink,
};
use penstock_readout::backend::{
    Backend, Completion, Counters, InProcess, PeerQp, PollMode, QpSpec, ResponderSettings, TcpInProcess,
};
use penstock_readout::{
    BuilderConfig, EventSource, EventWriter, Pages, Receiver, ReceiverConfig, ReceiverReport, RingConfig, RingMemory,
    StoreError, WriterOptions,
};
use penstock_transport::{CreditPolicy, Memory, RecvStatus, ReplyMarking, TcpConfig, Window};
use penstock_wire::{Ipv4Addr, Packet, Payload, Psn, Qpn, RnrTimer, RocePacket, TcpPacket};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU16;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Traffic classes of a port (IEEE 802.1Q).
const CLASSES: usize = 8;

/// One board, as the receiver knows it.
struct Board {
    qpn: Qpn,
    /// Address and port of its end, over TCP.
    peer: Option<(Ipv4Addr, u16)>,
    flow: FlowId,
}

/// What the boards send to.
enum Ends {
    QueuePairs(Box<InProcess>),
    /// Connections of TCP.
    Streams(TcpInProcess),
}

/// The receiver and its queue pairs; the simulation has one handle of it, the command the other.
pub struct Readout {
    ends: Ends,
    receiver: Receiver<EventWriter>,
    boards: Vec<Board>,
    ledger: SharedLedger,
    ack_delay: Time,
    vanish_at: Option<Time>,
    completions: Vec<Completion>,
    /// Delayed replies, in order.
    delayed: VecDeque<(Time, Packet)>,
    /// Replies that may leave, by class.
    queues: [VecDeque<Packet>; CLASSES],
    /// Packets that came after the host had vanished.
    ignored: u64,
    received: Option<Received>,
    /// What has come from boards that it reads; `None`: boards send.
    came: Option<CameBytes>,
    /// Storage failed: nothing more is taken.
    failed: Option<StoreError>,
}

/// A handle of a readout.
pub type SharedReadout = Rc<RefCell<Readout>>;

/// The counters of a finished readout.
pub struct ReadoutCounts {
    pub report: ReceiverReport,
    /// Counters of the responders, by board.
    pub queue_pairs: Vec<BTreeMap<String, u64>>,
    pub ignored: u64,
    /// None before the first packet with payload.
    pub received: Option<Received>,
}

/// When payload came.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// The end of the first packet, and its payload.
    pub first: Time,
    pub first_bytes: u64,
    /// The end of the last packet.
    pub last: Time,
}

impl Received {
    /// `bytes` in all, over the time from the first packet to the last; none where there is no such time. The first
    /// packet does not count: it came before.
    pub fn gbps(&self, bytes: u64) -> Option<f64> {
        let span = (self.last - self.first).as_secs_f64();
        (span > 0.0).then(|| bytes.saturating_sub(self.first_bytes) as f64 * 8e-9 / span)
    }
}

/// The messages of one board.
struct BoardContents {
    events: Arc<EventSource>,
    board: u16,
}

impl Contents for BoardContents {
    fn message(&self, event: u64, at: Time) -> bytes::Bytes {
        self.events.message(event, self.board, at.as_ps() / 1000)
    }

    fn source_id(&self) -> u16 {
        self.board
    }

    fn streams(&self, event: u64) -> Vec<bytes::Bytes> {
        self.events.streams(event, self.board)
    }

    fn trigger_type(&self, event: u64) -> u16 {
        self.events.trigger_type(event)
    }
}

/// Makes the receiver of a scenario, which writes into the folder `out`.
pub fn readout(request: ReadoutRequest, out: &Path) -> Result<(SharedReadout, ReadoutEnd), MakerError> {
    let recorded = request.scenario.recorded.as_ref().ok_or("there are no recorded events: add [replay]")?;
    let count = u16::try_from(request.boards.len())?;
    let events = Arc::new(EventSource::new(&recorded.dataset, count)?);
    let (spec, qp) = (request.spec, &request.scenario.qp);
    let streams: Vec<TcpConfig> =
        request.boards.iter().filter_map(|board| board.tcp).map(TcpConfig::reversed).collect();
    let mut backend = back_end(&request)?;

    let shape =
        RingConfig { slots: spec.slots, slot_bytes: u32::try_from(spec.slot_size.bytes())?, ..RingConfig::default() };
    let Rings { configs, memories, remote } = Rings::make(count, shape, streams.is_empty().then_some(&mut backend))?;
    connect(&request, &mut backend)?;
    let ends = match streams.is_empty() {
        true => Ends::QueuePairs(Box::new(backend)),
        false => Ends::Streams(TcpInProcess::new(&streams, shape.slot_bytes)),
    };
    results::prepare(out)?;
    let writer = EventWriter::create(out.join(results::EVENTS), &WriterOptions::default())?;
    let builder = BuilderConfig {
        sources: NonZeroU16::new(count).ok_or("there is no board")?,
        window: (spec.slots as usize).max(BuilderConfig::default().window),
        timeout: spec.event_timeout,
        ..BuilderConfig::default()
    };
    let config = ReceiverConfig { rings: configs, builder, consumer_rate: spec.consumer_rate };
    let receiver = Receiver::with_memories(config, memories, writer)?.with_reference((*events).clone());

    let boards = remote.iter().zip(&request.boards).map(|(end, board)| Board {
        qpn: end.qpn,
        peer: board.tcp.map(|tcp| (tcp.local.ip, tcp.local.port)),
        flow: board.flow,
    });
    let mut readout = Readout {
        ends,
        receiver,
        boards: boards.collect(),
        ledger: request.ledger,
        ack_delay: qp.ack_delay,
        vanish_at: spec.vanish_at,
        completions: Vec::new(),
        delayed: VecDeque::new(),
        queues: Default::default(),
        ignored: 0,
        received: None,
        came: request.pull.map(|_| CameBytes::default()),
        failed: None,
    };
    readout.post_receives();
    let shared = Rc::new(RefCell::new(readout));
    let endpoint = Box::new(ReadoutEndpoint(shared.clone()));
    let of_board = |(board, RemoteEnd { qpn, first_psn, ring })| {
        let contents = Arc::new(BoardContents { events: events.clone(), board });
        ReadoutQueuePair { qpn, first_psn, fragments: Fragments { ring, contents } }
    };
    Ok((shared, ReadoutEnd { endpoint, boards: (0..).zip(remote).map(of_board).collect() }))
}

/// The back end in this process, with the settings of the scenario.
fn back_end(request: &ReadoutRequest) -> Result<InProcess, MakerError> {
    let qp = &request.scenario.qp;
    let settings = ResponderSettings {
        credits: CreditPolicy::Unlimited,
        nak_again: false,
        cnp_interval: Some(qp.cnp_interval),
        marking: ReplyMarking { ack_dscp: qp.dscp, cnp_dscp: qp.cnp_dscp, ..ReplyMarking::default() },
    };
    let mut random = Stream::new(request.scenario.run.seed, &format!("readout {}", request.name));
    let entropy = Box::new(move || random.next_u32());
    let backend = InProcess::new(request.ip, request.mac, entropy).with_settings(settings);
    match pull::settings(request)? {
        Some(pull) => Ok(backend.with_pull(&pull)?),
        None => Ok(backend),
    }
}

/// The rings of all boards, and where the boards write to.
struct Rings {
    configs: Vec<RingConfig>,
    memories: Vec<RingMemory>,
    remote: Vec<RemoteEnd>,
}

/// What a board's end is connected to.
struct RemoteEnd {
    qpn: Qpn,
    /// The PSN of the first request to the board.
    first_psn: Psn,
    /// Where the board's fragments go, or its announcements if it is read.
    ring: RemoteRing,
}

impl Rings {
    /// Allocates them; `backend` makes a queue pair for each. Without one boards send over TCP.
    fn make(count: u16, shape: RingConfig, mut backend: Option<&mut InProcess>) -> Result<Rings, MakerError> {
        let mut rings = Rings { configs: Vec::new(), memories: Vec::new(), remote: Vec::new() };
        for board in 0..count {
            let ring = RingMemory::allocate(shape.len(), Pages::Normal)?;
            let (qpn, first_psn, va, rkey) = match &mut backend {
                Some(backend) => {
                    let memory = ring.mapping().clone();
                    let qp = QpSpec { board, memory, len: shape.len(), max_receives: shape.slots };
                    let local = backend.create_qp(&qp)?;
                    (local.qpn, local.psn, local.base, local.rkey)
                }
                None => (Qpn::new(0), Psn::new(0), ring.mapping().addr(), 0),
            };
            rings.configs.push(RingConfig { va, rkey, ..shape });
            rings.memories.push(ring);
            let ring = RemoteRing { va, rkey, slots: shape.slots, slot_bytes: shape.slot_bytes };
            rings.remote.push(RemoteEnd { qpn, first_psn, ring });
        }
        Ok(rings)
    }
}

/// Connects the queue pairs of the boards that do not send over TCP.
fn connect(request: &ReadoutRequest, backend: &mut InProcess) -> Result<(), MakerError> {
    let rnr_timer = RnrTimer::at_least((request.scenario.qp.rnr_delay.as_ps() / 1_000_000) as u32);
    for (board, of_board) in (0..).zip(&request.boards).filter(|(_, of_board)| of_board.tcp.is_none()) {
        let sender = &of_board.sender;
        let (qpn, psn, ip, mtu) = (sender.local.qpn, sender.first_psn, sender.local.ip, sender.mtu);
        backend.connect(board, &PeerQp { qpn, psn, ip, mtu, rnr_timer })?;
    }
    Ok(())
}

/// Counts what a packet puts into memory.
struct Counted<'a> {
    memory: &'a mut dyn Memory,
    bytes: u64,
}

impl Memory for Counted<'_> {
    fn write(&mut self, va: u64, data: &Payload) {
        self.bytes += data.len() as u64;
        self.memory.write(va, data);
    }

    fn refuses(&self, va: u64, len: u32) -> Option<Window> {
        self.memory.refuses(va, len)
    }

    fn admit(&mut self, va: u64, only: Option<&Payload>) -> bool {
        self.memory.admit(va, only)
    }

    fn message_ended(&mut self, region: u64) {
        self.memory.message_ended(region);
    }
}

impl Readout {
    /// Events stored so far, complete or not.
    pub fn events_stored(&self) -> u64 {
        self.receiver.events_stored()
    }

    /// Whether storage has failed; [`Self::finish`] gives the reason.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Stores what is there and closes the file.
    ///
    /// # Errors
    /// Why storage failed, now or before.
    pub fn finish(&mut self, now: Time) -> Result<(), StoreError> {
        let failed = self.failed.take();
        let closed = self.receiver.finish(now);
        failed.map_or(closed, Err)
    }

    pub fn counts(&self) -> ReadoutCounts {
        let of_board = |board| {
            let counters = self.board_counters(board);
            counters.into_iter().map(|(name, value)| (name.into_owned(), value)).collect()
        };
        ReadoutCounts {
            report: self.receiver.report(),
            queue_pairs: (0..self.boards.len() as u16).map(of_board).collect(),
            ignored: self.ignored,
            received: self.received,
        }
    }

    fn board_counters(&self, board: u16) -> Counters {
        match &self.ends {
            Ends::QueuePairs(backend) => backend.board_counters(board),
            Ends::Streams(streams) => streams.board_counters(board),
        }
    }

    fn note(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    fn has_vanished(&self, now: Time) -> bool {
        self.vanish_at.is_some_and(|at| now >= at)
    }

    fn post_receives(&mut self) {
        let mut receives = Vec::new();
        for board in 0..self.boards.len() as u16 {
            self.receiver.take_receives(board, |receive| receives.push(receive));
            match &mut self.ends {
                _ if receives.is_empty() => {}
                Ends::QueuePairs(backend) => {
                    backend.post_receives(board, &receives).expect("the queue pair was made with the readout");
                }
                Ends::Streams(streams) => streams.post_receives(board, &receives),
            }
            receives.clear();
        }
    }

    fn take(&mut self, now: Time, packet: &RocePacket) {
        let Ends::QueuePairs(backend) = &mut self.ends else { return };
        if let Some(came) = &mut self.came {
            came.count(packet);
        }
        backend.arrive(now, packet.clone());
        let bytes = self.poll(now);
        let of_packet = self.boards.iter().find(|board| board.qpn == packet.bth.dest_qpn).map(|board| board.flow);
        if let Some(flow) = of_packet {
            self.arrived(now, flow, bytes);
        }
        self.settle(now);
    }

    /// Lets the back end handle what has arrived, and read what there is room for. Returns the bytes written.
    fn poll(&mut self, now: Time) -> u64 {
        let Ends::QueuePairs(backend) = &mut self.ends else { return 0 };
        let mut memory = Counted { memory: &mut self.receiver, bytes: 0 };
        backend.advance(now);
        let polled = backend.poll(&mut memory, PollMode::Busy, now, &mut self.completions);
        polled.expect("a back end in process has no device that could be gone");
        memory.bytes
    }

    /// Passes on what is complete, and sends what the back end has to send.
    fn settle(&mut self, now: Time) {
        while self.complete(now) {
            // A message may free receives of other queue pairs too: the last fragment of an event frees all its slots.
            self.post_receives();
            if self.came.is_some() {
                self.poll(now);
            }
        }
        let Ends::QueuePairs(backend) = &mut self.ends else { return };
        while let Some(packet) = backend.take_reply() {
            // An answer takes its time; a request leaves when there is room for what it requests.
            let delay = if packet.bth.opcode.is_rc_request() { Time::ZERO } else { self.ack_delay };
            let at = self.delayed.partition_point(|(ready, _)| *ready <= now + delay);
            self.delayed.insert(at, (now + delay, Packet::Roce(packet)));
        }
        self.release(now);
    }

    fn take_segment(&mut self, now: Time, segment: &TcpPacket) {
        let from = Some((segment.ip_src, segment.src_port));
        let (Some(board), Ends::Streams(streams)) =
            (self.boards.iter().position(|board| board.peer == from), &mut self.ends)
        else {
            return;
        };
        let bytes = streams.arrive(now, board as u16, segment, &mut self.receiver, &mut self.completions);
        self.arrived(now, self.boards[board].flow, bytes);
        self.complete(now);
        self.settle_streams(now);
    }

    /// Gives free slots to the streams that wait for them, and sends what is to be acknowledged.
    fn settle_streams(&mut self, now: Time) {
        loop {
            self.post_receives();
            let Ends::Streams(streams) = &mut self.ends else { return };
            let mut bytes = Vec::new();
            for (number, board) in (0u16..).zip(&self.boards) {
                bytes.push((board.flow, streams.turn(now, number, &mut self.receiver, &mut self.completions)));
            }
            bytes.into_iter().for_each(|(flow, bytes)| self.arrived(now, flow, bytes));
            if !self.complete(now) {
                break;
            }
        }
        let Ends::Streams(streams) = &mut self.ends else { return };
        while let Some(reply) = streams.take_reply() {
            self.delayed.push_back((now, Packet::Tcp(reply)));
        }
        self.release(now);
    }

    /// Payload of a flow has come.
    fn arrived(&mut self, now: Time, flow: FlowId, bytes: u64) {
        if bytes > 0 {
            self.ledger.borrow_mut().arrived(flow, now, bytes);
            self.received.get_or_insert(Received { first: now, first_bytes: bytes, last: now }).last = now;
        }
    }

    /// Passes on the messages that are whole. Whether there were any.
    fn complete(&mut self, now: Time) -> bool {
        let mut completions = std::mem::take(&mut self.completions);
        let completed = !completions.is_empty();
        for done in completions.drain(..) {
            // Flushed receives of a queue pair in error are passed over; its counters say why.
            if done.status == RecvStatus::Success {
                self.ledger.borrow_mut().delivered(self.boards[usize::from(done.board)].flow, now);
                let taken = self.receiver.on_checked(now, done.board, done.slot(), done.byte_len, done.payload_crc);
                self.note(taken);
            }
        }
        self.completions = completions;
        completed
    }

    /// Releases replies whose delay has passed.
    fn release(&mut self, now: Time) {
        while self.delayed.front().is_some_and(|(ready, _)| *ready <= now) {
            if let Some((_, reply)) = self.delayed.pop_front() {
                let dscp = match &reply {
                    Packet::Roce(reply) => reply.dscp,
                    Packet::Tcp(reply) => reply.dscp,
                    _ => 0,
                };
                self.queues[usize::from(dscp >> 3) % CLASSES].push_back(reply);
            }
        }
    }

    fn timeout(&mut self, now: Time) {
        self.release(now);
        if self.receiver.poll_timeout().is_some_and(|at| at <= now) {
            let done = self.receiver.handle_timeout(now);
            self.note(done);
            self.post_receives();
        }
        match &mut self.ends {
            Ends::Streams(streams) => {
                streams.handle_timeout(now);
                self.settle_streams(now);
            }
            Ends::QueuePairs(_) if self.came.is_some() => {
                self.poll(now);
                self.settle(now);
            }
            Ends::QueuePairs(_) => {}
        }
    }

    /// What it has pulled, if it pulls.
    fn pulled(&mut self) -> Option<PullStats> {
        let (came, boards) = (self.came?, self.boards.len() as u16);
        match &mut self.ends {
            Ends::QueuePairs(backend) => Some(pull::stats(backend, boards, came)),
            Ends::Streams(_) => None,
        }
    }

    /// The highest class that has a reply.
    fn highest(&self) -> Option<usize> {
        (0..CLASSES).rev().find(|class| !self.queues[*class].is_empty())
    }
}

/// The simulation's handle.
struct ReadoutEndpoint(SharedReadout);

impl Endpoint for ReadoutEndpoint {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        let mut readout = self.0.borrow_mut();
        match packet {
            _ if readout.has_vanished(now) => readout.ignored += 1,
            Packet::Roce(packet) => readout.take(now, packet),
            Packet::Tcp(segment) => readout.take_segment(now, segment),
            _ => {}
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let readout = self.0.borrow();
        let reply = readout.delayed.front().map(|(ready, _)| *ready);
        let receiver = readout.receiver.poll_timeout();
        let acknowledgement = match &readout.ends {
            Ends::Streams(streams) => streams.next_timeout(),
            Ends::QueuePairs(backend) => Some(backend.due()).filter(|due| *due < Time::MAX && readout.came.is_some()),
        };
        reply.into_iter().chain(receiver).chain(acknowledgement).min()
    }

    fn on_timeout(&mut self, now: Time) {
        self.0.borrow_mut().timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let mut readout = self.0.borrow_mut();
        if readout.has_vanished(now) {
            readout.queues.iter_mut().for_each(VecDeque::clear);
        }
        let class = readout.highest()?;
        readout.queues[class].pop_front()
    }

    fn is_ready(&self) -> bool {
        self.0.borrow().highest().is_some()
    }

    fn class(&self) -> usize {
        self.0.borrow().highest().unwrap_or(0)
    }

    /// Board k is channel k.
    fn sample(&mut self, _now: Time, _channel: u16, trace: &mut TraceSink) {
        let readout = self.0.borrow();
        for board in 0..readout.boards.len() as u16 {
            let counters = readout.board_counters(board);
            let metrics: &[&str] = match &readout.ends {
                Ends::QueuePairs(_) => &["rx_payload_bytes", "np_cnp_sent", "np_ecn_marked_roce_packets"],
                Ends::Streams(_) => &["segments", "segments_out_of_order"],
            };
            for metric in metrics {
                let value = counters.iter().find(|(name, _)| name == *metric).map_or(0, |(_, value)| *value);
                trace.record(board, metric, value as f64);
            }
        }
        trace.record(0, "events_built", readout.receiver.events_stored() as f64);
        drop(readout);
        if let Some(pulled) = self.pulled() {
            pulled.record(0, trace);
        }
    }

    fn pulled(&self) -> Option<PullStats> {
        self.0.borrow_mut().pulled()
    }
}
