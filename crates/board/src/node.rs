// SPDX-License-Identifier: Apache-2.0
//! A verilated board as a node of the simulated network: one port, windowed time (see
//! `penstock_netsim::Node`), message source inside.

use crate::board::{Board, RegisterError};
use crate::config::{qp_register, regs};
use crate::message::{Completion, WcStatus};
use crate::worker::{Ingress, MessageSource, Outcome, Sample, Sampling, Worker, WorkerGone};
use penstock_netsim::{Frame, Node, NodeTerms, Outbox, PortId, Time, TraceSink};
use penstock_wire::gateware::{CYCLE, OCTET};
use penstock_wire::{wire_len, Packet};
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

/// The registers that a trace follows, in the order of [`Sample::values`].
const TRACED: [u32; 4] = [regs::qp::RATE_CURRENT, regs::qp::RATE_TARGET, regs::qp::ALPHA, regs::qp::RP_CNP_HANDLED];

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
        self.ok + self.failed() == self.posted
    }

    pub(crate) fn add(&mut self, completion: Completion) {
        self.last = cycle_time(completion.cycle);
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
/// The board's cycle 0 is the engine's time 0. Queue pair 0 is traced: `rate_current_bps`,
/// `rate_target_bps` and `wire_throughput_bps`, all three on the wire, `alpha` (1 = 1.0), `cnp_handled`, `paused_fraction`
/// (of the time).
pub struct BoardNode {
    worker: Option<Worker>,
    /// Clock cycles a window lasts.
    window_cycles: u64,
    /// A window is under way up to this cycle.
    running: Option<u64>,
    /// Frames whose time has not come, in the order of arrival.
    ingress: VecDeque<Ingress>,
    /// Register writes for the next window.
    writes: Vec<(u32, u32)>,
    samples: Vec<Sample>,
    previous: Option<Sample>,
    tally: MessageTally,
    source_done: bool,
    /// Waits for the last message to end.
    at_end: Option<AtEnd>,
}

/// Told when the last message has ended, and what became of all.
type AtEnd = Box<dyn FnOnce(&MessageTally)>;

impl BoardNode {
    /// Puts a configured board on its thread. `link_delay` bounds the window in which it runs alone;
    /// `trace_interval` is that of its register samples (zero: none).
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
    ) -> Result<Self, NodeError> {
        let window_cycles = link_delay / CYCLE;
        assert!(window_cycles > 0, "a board's link needs a delay of at least {CYCLE}, got {link_delay}");
        board.restart_time()?;
        let sampling = Sampling {
            addresses: TRACED.iter().map(|offset| qp_register(0, *offset)).collect(),
            interval_cycles: trace_interval / CYCLE,
        };
        Ok(Self {
            worker: Some(Worker::spawn(name, board, source, sampling)?),
            window_cycles,
            running: None,
            ingress: VecDeque::new(),
            writes: Vec::new(),
            samples: Vec::new(),
            previous: None,
            tally: MessageTally::default(),
            source_done: false,
            at_end: None,
        })
    }

    /// Shortest link delay that a board can have: one clock cycle.
    pub const MIN_LINK_DELAY: Time = CYCLE;

    /// Writes a register when the next window begins; writes keep their order.
    pub fn queue_write(&mut self, address: u32, value: u32) {
        self.writes.push((address, value));
    }

    /// Calls `told` once, when every message has ended, well or not, with what became of them.
    pub fn at_end(&mut self, told: impl FnOnce(&MessageTally) + 'static) {
        self.at_end = Some(Box::new(told));
    }

    pub fn tally(&self) -> &MessageTally {
        &self.tally
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
        CYCLE * self.window_cycles
    }

    fn worker(&self) -> &Worker {
        self.worker.as_ref().expect("present until into_board")
    }

    /// Sends what the last window emitted, counts what it completed.
    fn collect(&mut self, outcome: Outcome, out: &mut Outbox) {
        for received in outcome.frames {
            let start = OCTET * received.start_octet;
            // A frame that does not parse still travels: the far end will count what is wrong with it.
            let packet = match received.fcs_ok {
                true => Packet::parse(received.frame.clone()).unwrap_or(Packet::Raw(received.frame)),
                false => Packet::Raw(received.frame),
            };
            out.transmit_at(start, PORT, Frame::new(packet).with_fcs(received.fcs_ok));
        }
        for completion in outcome.completions {
            self.tally.add(completion);
        }
        self.tally.posted += outcome.posted;
        self.source_done = outcome.source_done;
        self.samples.extend(outcome.samples);
        if let Some(told) = self.at_end.take_if(|_| self.source_done && self.tally.all_ended()) {
            told(&self.tally);
        }
    }

    /// Starts the window that begins now, with every frame that enters the board in it.
    fn start_window(&mut self, begin: u64) -> Result<(), WorkerGone> {
        let until = begin + self.window_cycles;
        let count = self.ingress.iter().take_while(|frame| frame.cycle < until).count();
        let ingress = self.ingress.drain(..count).collect();
        let writes = std::mem::take(&mut self.writes);
        self.worker().start(until, ingress, writes)?;
        self.running = Some(until);
        Ok(())
    }

    fn record(&self, before: Option<&Sample>, sample: &Sample, trace: &mut TraceSink) {
        let time = cycle_time(sample.cycle);
        let [current, target, alpha, cnps] = sample.values[..] else { return };
        trace.record_at(time, 0, "rate_current_bps", rate_bps(current));
        trace.record_at(time, 0, "rate_target_bps", rate_bps(target));
        trace.record_at(time, 0, "alpha", f64::from(alpha) / 65536.0);
        trace.record_at(time, 0, "cnp_handled", f64::from(cnps));
        if let Some(before) = before {
            let cycles = (sample.cycle - before.cycle) as f64;
            let octets = (sample.wire_octets - before.wire_octets) as f64;
            let paused = (sample.paused_cycles - before.paused_cycles) as f64;
            trace.record_at(time, 0, "wire_throughput_bps", octets * 8.0 / (cycles * CYCLE.as_ps() as f64 * 1e-12));
            trace.record_at(time, 0, "paused_fraction", paused / cycles);
        }
    }
}

impl Node for BoardNode {
    fn on_start(&mut self, out: &mut Outbox) {
        out.timer_at(Time::ZERO, 0);
    }

    fn on_frame(&mut self, at: Time, _port: PortId, mut frame: Frame, _out: &mut Outbox) {
        let frame_bytes = frame.packet().emit();
        let first_octet = at.saturating_sub(OCTET * wire_len(frame_bytes.len()) as u64);
        // Frames on one link arrive in order but for those that a fault delayed: those go behind.
        let earliest = self.ingress.back().map_or(0, |last| last.cycle);
        let cycle = first_octet.div_ceil(CYCLE).max(earliest);
        self.ingress.push_back(Ingress { cycle, frame: frame_bytes, fcs_ok: frame.fcs_ok() });
    }

    fn on_timer(&mut self, now: Time, _token: u64, out: &mut Outbox) {
        if self.running.take().is_some() {
            match self.worker().finish_window() {
                Ok(outcome) => self.collect(outcome, out),
                Err(gone) => return out.fail(gone),
            }
        }
        if let Err(gone) = self.start_window(now / CYCLE) {
            return out.fail(gone);
        }
        out.timer_at(now + self.window(), 0);
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

fn cycle_time(cycle: u64) -> Time {
    CYCLE * cycle
}

/// Q8.24 bytes per cycle in bit/s.
fn rate_bps(rate: u32) -> f64 {
    f64::from(rate) / f64::from(1u32 << 24) * 8.0 / (CYCLE.as_ps() as f64 * 1e-12)
}
