// SPDX-License-Identifier: Apache-2.0
//! A verilated board as a node of the simulated network: one port, windowed time (see
//! `penstock_netsim::Node`), message source inside.

use crate::board::{Board, RegisterError};
use crate::config::{qp_register, regs, stream_register};
use crate::message::{Completion, WcStatus};
use crate::worker::{Ingress, MessageSource, Outcome, Sample, Sampling, Worker, WorkerGone};
use penstock_netsim::{Frame, Node, NodeTerms, Outbox, PortId, Time, TraceSink};
use penstock_wire::gateware::LineClock;
use penstock_wire::{wire_len, Opcode, Operation, Packet, TcpPacket};
use std::collections::{BTreeMap, VecDeque};

/// Why a board cannot join a network.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("the operating system gives no thread: {0}")]
    Thread(#[from] std::io::Error),
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// The board's only port.
pub const PORT: PortId = PortId(0);

/// The registers of a queue pair that a trace follows, in the order of [`Sample::values`].
const TRACED: [u32; 5] =
    [regs::qp::RATE_CURRENT, regs::qp::RATE_TARGET, regs::qp::ALPHA, regs::qp::RP_CNP_HANDLED, regs::qp::STAGE];

/// The same of a TCP stream.
const TRACED_OF_STREAM: [u32; 3] = [regs::stream::RING_FILL, regs::stream::WINDOW, regs::stream::ROUND_TRIP];

/// How a board's messages have ended so far.
#[derive(Debug, Clone, Default)]
pub struct MessageTally {
    /// Messages handed to the gateware.
    pub posted: u64,
    pub ok: u64,
    /// Failed messages by reason.
    pub errors: BTreeMap<WcStatus, u64>,
    /// The first failure and its time: what later flushes followed from.
    pub first_error: Option<(Time, Completion)>,
    /// When the latest message ended.
    pub last: Time,
}

impl MessageTally {
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Everything that was posted has ended.
    fn all_ended(&self) -> bool {
        self.ended() == self.posted
    }

    /// Messages that have ended.
    fn ended(&self) -> u64 {
        self.ok + self.failed()
    }

    pub(crate) fn add(&mut self, clock: LineClock, completion: Completion) {
        self.last = clock.time(completion.cycle);
        if completion.status == WcStatus::Success {
            self.ok += 1;
            return;
        }
        *self.errors.entry(completion.status).or_default() += 1;
        self.first_error.get_or_insert((self.last, completion));
    }
}

/// A board in the simulated network.
///
/// The board's cycle 0 is the engine's time 0. The queue pairs in use are traced, each on the channel of its number:
/// `rate_current_bps` and `rate_target_bps` on the wire, `alpha` (1 = 1.0), `cnp_handled`, `stage_timer`,
/// `stage_bytes`, `feedback` (|F_b|); of a board whose source awaits a TCP stream instead `ring_fill_bytes`, `window_bytes`,
/// `smoothed_rtt_us` of each stream;
/// and on channel 0 the board's `wire_throughput_bps` and `paused_fraction` (of the time).
pub struct BoardNode {
    worker: Option<Worker>,
    clock: LineClock,
    /// Clock cycles a window lasts.
    window_cycles: u64,
    /// A window is under way up to this cycle.
    running: Option<u64>,
    /// Frames that are not yet due, in the order of arrival.
    ingress: VecDeque<Ingress>,
    /// Register writes for the next window.
    writes: Vec<(u32, u32)>,
    samples: Vec<Sample>,
    previous: Option<Sample>,
    tally: MessageTally,
    source_done: bool,
    queue_pairs: Vec<QueuePair>,
    /// Packets that answer READs, by the source port of their queue pair.
    answers: BTreeMap<u16, u64>,
    /// They are streams of TCP.
    of_streams: bool,
}

/// A queue pair of the board that sends, as the node knows it.
#[derive(Default)]
struct QueuePair {
    tally: MessageTally,
    notifications: Notifications,
    at_end: Option<AtEnd>,
    at_failure: Option<AtEnd>,
}

/// Notifications that came for a queue pair in good frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Notifications {
    pub cnps: u64,
    /// QCN's messages.
    pub feedbacks: u64,
    /// |F_b| of the last of these.
    pub last_feedback: u8,
}

/// Called when the last message of a queue pair has ended, or one has failed, with the outcomes of all.
type AtEnd = Box<dyn FnOnce(&MessageTally)>;

impl BoardNode {
    /// Puts a configured board on its thread. `link_delay` bounds the window in which it runs alone;
    /// `trace_interval` is that of its register samples (zero: none); queue pairs 0 .. `queue_pairs` send.
    ///
    /// # Errors
    /// The operating system refuses a thread, or the board to set its clock.
    ///
    /// # Panics
    /// When `link_delay` is shorter than one clock cycle: scenario checks refuse such links before.
    pub fn new(
        name: &str,
        mut board: Board,
        source: Box<dyn MessageSource>,
        link_delay: Time,
        trace_interval: Time,
        queue_pairs: u8,
    ) -> Result<Self, NodeError> {
        let clock = board.clock();
        let window_cycles = clock.cycles(link_delay);
        assert!(window_cycles > 0, "a board's link needs a delay of a clock cycle at least, got {link_delay}");
        board.restart_time()?;
        let of_streams = source.awaits().is_some();
        let traced = |index| -> Vec<u32> {
            match of_streams {
                true => TRACED_OF_STREAM.iter().map(|offset| stream_register(index, *offset)).collect(),
                false => TRACED.iter().map(|offset| qp_register(index, *offset)).collect(),
            }
        };
        let sampling = Sampling {
            addresses: (0..queue_pairs).flat_map(traced).collect(),
            interval_cycles: clock.cycles(trace_interval),
        };
        Ok(Self {
            worker: Some(Worker::spawn(name, board, source, sampling)?),
            clock,
            window_cycles,
            running: None,
            ingress: VecDeque::new(),
            writes: Vec::new(),
            samples: Vec::new(),
            previous: None,
            tally: MessageTally::default(),
            source_done: false,
            queue_pairs: (0..queue_pairs).map(|_| QueuePair::default()).collect(),
            answers: BTreeMap::new(),
            of_streams,
        })
    }

    /// Shortest link delay that a board with this clock can have: one cycle.
    pub fn min_link_delay(clock: LineClock) -> Time {
        clock.span(1)
    }

    /// The clock of the board.
    pub fn clock(&self) -> LineClock {
        self.clock
    }

    /// Writes a register when the next window begins; writes keep their order.
    pub fn queue_write(&mut self, address: u32, value: u32) {
        self.writes.push((address, value));
    }

    /// Calls `report` once, when all `messages` of queue pair `index` have ended, with or without success, with their
    /// outcomes.
    pub fn at_end(&mut self, index: u8, messages: u64, report: impl FnOnce(&MessageTally) + 'static) {
        let queue_pair = &mut self.queue_pairs[usize::from(index)];
        queue_pair.tally.posted = messages;
        queue_pair.at_end = Some(Box::new(report));
    }

    /// Calls `report` once, when a message of queue pair `index` has failed, with the outcomes of all. For a board whose
    /// server READs: its completions are those of announcements, and none comes when the last message has been read.
    pub fn at_failure(&mut self, index: u8, report: impl FnOnce(&MessageTally) + 'static) {
        self.queue_pairs[usize::from(index)].at_failure = Some(Box::new(report));
    }

    pub fn tally(&self) -> &MessageTally {
        &self.tally
    }

    /// The results of the messages of queue pair `index`; `posted` is the argument of [`Self::at_end`].
    pub fn tally_of(&self, index: u8) -> &MessageTally {
        &self.queue_pairs[usize::from(index)].tally
    }

    /// Packets with which the queue pair of this source port has answered READs.
    pub fn answers(&self, udp_sport: u16) -> u64 {
        self.answers.get(&udp_sport).copied().unwrap_or_default()
    }

    /// What has come for queue pair `index`.
    pub fn notifications(&self, index: u8) -> Notifications {
        self.queue_pairs[usize::from(index)].notifications
    }

    /// Every message of the source has been sent and has ended, well or not.
    pub fn is_done(&self) -> bool {
        self.source_done && self.tally.all_ended()
    }

    /// Ends the board's thread and gives the board back, for a last look at its registers.
    pub fn into_board(mut self) -> Result<Board, WorkerGone> {
        let worker = self.worker.take().expect("taken only here");
        if self.running.take().is_some() {
            worker.finish_window()?;
        }
        worker.into_board()
    }

    fn window(&self) -> Time {
        self.clock.span(self.window_cycles)
    }

    fn worker(&self) -> &Worker {
        self.worker.as_ref().expect("present until into_board")
    }

    /// Sends what the last window emitted, counts what it completed.
    fn collect(&mut self, outcome: Outcome, out: &mut Outbox) {
        for received in outcome.frames {
            let start = self.clock.octet * received.start_octet;
            // A frame that does not parse still travels: the far end will count what is wrong with it.
            let packet = match received.fcs_ok {
                true => packet_of(received.frame),
                false => Packet::Raw(received.frame),
            };
            if let Packet::Roce(answer) = &packet {
                if answer.bth.opcode.operation() == Operation::ReadResponse {
                    *self.answers.entry(answer.udp_sport).or_default() += 1;
                }
            }
            out.transmit_at(start, PORT, Frame::new(packet).with_fcs(received.fcs_ok));
        }
        for completion in outcome.completions {
            if let Some(queue_pair) = self.queue_pairs.get_mut(usize::from(completion.qp)) {
                queue_pair.tally.add(self.clock, completion);
            }
            self.tally.add(self.clock, completion);
        }
        self.tally.posted += outcome.posted;
        self.source_done = outcome.source_done;
        self.samples.extend(outcome.samples);
        for queue_pair in &mut self.queue_pairs {
            let QueuePair { tally, at_end, at_failure, .. } = queue_pair;
            let ended = at_end.take_if(|_| tally.all_ended());
            let failed = at_failure.take_if(|_| tally.failed() > 0);
            ended.into_iter().chain(failed).for_each(|report| report(tally));
        }
    }

    /// Starts the window that begins in this cycle, with every frame that enters the board in it; returns its end.
    fn start_window(&mut self, begin: u64) -> Result<u64, WorkerGone> {
        let until = begin + self.window_cycles;
        let count = self.ingress.iter().take_while(|frame| frame.cycle < until).count();
        let ingress = self.ingress.drain(..count).collect();
        let writes = std::mem::take(&mut self.writes);
        self.worker().start(until, ingress, writes)?;
        self.running = Some(until);
        Ok(until)
    }

    /// Counts a notification for the queue pair that the gateware will find: by number, and by the flow of a CN-TAG.
    fn count_notification(&mut self, packet: &Packet) {
        let index = match packet {
            Packet::Roce(packet) if packet.bth.opcode == Opcode::Cnp => packet.bth.dest_qpn.value() & 0xff,
            Packet::Cnm(cnm) => u32::from(cnm.flow),
            _ => return,
        };
        let Some(queue_pair) = self.queue_pairs.get_mut(index as usize) else { return };
        match packet {
            Packet::Cnm(cnm) => {
                queue_pair.notifications.feedbacks += 1;
                queue_pair.notifications.last_feedback = cnm.feedback;
            }
            _ => queue_pair.notifications.cnps += 1,
        }
    }

    fn record(&self, before: Option<&Sample>, sample: &Sample, trace: &mut TraceSink) {
        use regs::qp as q;
        let time = self.clock.time(sample.cycle);
        if self.of_streams {
            for (channel, values) in (0u16..).zip(sample.values.chunks_exact(TRACED_OF_STREAM.len())) {
                let names = ["ring_fill_bytes", "window_bytes", "smoothed_rtt_us"];
                for (name, value) in names.into_iter().zip(values) {
                    trace.record_at(time, channel, name, f64::from(*value));
                }
            }
        }
        let of_queue_pairs = if self.of_streams { &[][..] } else { &sample.values };
        for (channel, values) in (0u16..).zip(of_queue_pairs.chunks_exact(TRACED.len())) {
            let [current, target, alpha, cnps, stage] = values[..] else { return };
            trace.record_at(time, channel, "rate_current_bps", rate_bps(self.clock, current));
            trace.record_at(time, channel, "rate_target_bps", rate_bps(self.clock, target));
            trace.record_at(time, channel, "alpha", f64::from(alpha) / 65536.0);
            trace.record_at(time, channel, "cnp_handled", f64::from(cnps));
            trace.record_at(time, channel, "stage_timer", f64::from(q::STAGE_TIMER_BITS.of(stage)));
            trace.record_at(time, channel, "stage_bytes", f64::from(q::STAGE_BYTES_BITS.of(stage)));
            trace.record_at(time, channel, "feedback", self.notifications(channel as u8).last_feedback.into());
        }
        if let Some(before) = before {
            let cycles = (sample.cycle - before.cycle) as f64;
            let octets = (sample.wire_octets - before.wire_octets) as f64;
            let paused = (sample.paused_cycles - before.paused_cycles) as f64;
            trace.record_at(time, 0, "wire_throughput_bps", octets * 8.0 / (self.clock.picoseconds(cycles) * 1e-12));
            trace.record_at(time, 0, "paused_fraction", paused / cycles);
        }
    }
}

impl Node for BoardNode {
    fn on_start(&mut self, out: &mut Outbox) {
        out.timer_at(Time::ZERO, 0);
    }

    fn on_frame(&mut self, at: Time, _port: PortId, mut frame: Frame, _out: &mut Outbox) {
        if frame.fcs_ok() {
            self.count_notification(frame.packet());
        }
        let frame_bytes = frame.packet().emit();
        let first_octet = at.saturating_sub(self.clock.octet * wire_len(frame_bytes.len()) as u64);
        // Frames on one link arrive in order except those delayed by a fault: these go after later ones.
        let earliest = self.ingress.back().map_or(0, |last| last.cycle);
        let cycle = self.clock.cycle_from(first_octet).max(earliest);
        self.ingress.push_back(Ingress { cycle, frame: frame_bytes, fcs_ok: frame.fcs_ok() });
    }

    fn on_timer(&mut self, _now: Time, _token: u64, out: &mut Outbox) {
        let begin = self.running.take();
        if begin.is_some() {
            match self.worker().finish_window() {
                Ok(outcome) => self.collect(outcome, out),
                Err(gone) => return out.fail(gone),
            }
        }
        match self.start_window(begin.unwrap_or(0)) {
            Ok(until) => out.timer_at(self.clock.time(until), 0),
            Err(gone) => out.fail(gone),
        }
    }

    fn terms(&self) -> NodeTerms {
        NodeTerms::windowed(self.window())
    }

    fn sample(&mut self, _now: Time, trace: &mut TraceSink) {
        for sample in std::mem::take(&mut self.samples) {
            self.record(self.previous.as_ref(), &sample, trace);
            self.previous = Some(sample);
        }
    }
}

/// A frame as stations take it.
fn packet_of(frame: bytes::Bytes) -> Packet {
    match Packet::parse(frame.clone()) {
        Ok(Packet::Raw(frame)) => TcpPacket::parse(&frame).map_or(Packet::Raw(frame), Packet::Tcp),
        parsed => parsed.unwrap_or(Packet::Raw(frame)),
    }
}

/// Q8.24 bytes per cycle in bit/s.
fn rate_bps(clock: LineClock, rate: u32) -> f64 {
    f64::from(rate) / f64::from(1u32 << 24) * 8.0 / (clock.picoseconds(1.0) * 1e-12)
}
