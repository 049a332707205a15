// SPDX-License-Identifier: Apache-2.0
//! Runs a board on a separate thread, one window of clock cycles at a time.
//!
//! The boards of a run share nothing, so their windows run in parallel while the network simulator
//! continues; [`Worker::start`] and [`Worker::finish_window`] bracket one window. The result does not
//! depend on how the threads are scheduled.

use crate::axil::Answer;
use crate::board::Board;
use crate::config::{regs, stream_register};
use crate::detector::DetectorEvent;
use crate::message::{Completion, Message};
use crate::port::Received;
use bytes::Bytes;
use penstock_units::Time;
use penstock_wire::wire_len;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread::JoinHandle;

/// Where a board's messages come from; time is that of the simulation.
pub trait MessageSource: Send {
    /// When the next message is there to be sent; `None` when there will be no more.
    fn next_time(&self) -> Option<Time>;
    /// Takes a message that is due at this time.
    fn take(&mut self, now: Time) -> Option<Feed>;
    /// How long before its time a message may be taken: an event of a detector waits for its trigger at the board.
    fn lead(&self) -> Time {
        Time::ZERO
    }
    /// The TCP stream that must be open before anything is sent. Triggers do not wait for it, since an event's time is
    /// that of its trigger, the same at all boards of a run: the event waits in the board.
    fn awaits(&self) -> Option<Awaited> {
        None
    }
    /// A message that was taken has ended.
    fn completed(&mut self, _completion: &Completion) {}
    /// Whether the next message may be taken at this time.
    fn is_due(&self, now: Time) -> bool {
        self.next_time().is_some_and(|at| at.saturating_sub(self.lead()) <= now)
    }
}

/// A TCP stream that a source waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    pub stream: u8,
    /// Address and value of the write that lets the front end send its events: made when the stream is open.
    pub enable: (u32, u32),
}

/// The output of a source for a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// A message as it is to be sent.
    Message(Message),
    /// Raw samples, of which the gateware makes one message.
    Event(DetectorEvent),
}

impl From<Message> for Feed {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

impl From<DetectorEvent> for Feed {
    fn from(event: DetectorEvent) -> Self {
        Self::Event(event)
    }
}

impl Feed {
    pub(crate) fn into_board(self, board: &mut Board) {
        match self {
            Self::Message(message) => board.post(message),
            Self::Event(event) => board.detect(event),
        }
    }
}

/// Messages handed to the gateware ahead of its taking their data: the one under way and the next,
/// so that its input never runs dry between messages.
const POSTED_AHEAD: usize = 2;
/// Events of a detector handed over ahead of their triggers.
const TRIGGERS_AHEAD: usize = 64;

/// Messages that a source may have waiting at the board.
pub(crate) fn most_waiting(source: &dyn MessageSource) -> usize {
    if source.lead() == Time::ZERO {
        POSTED_AHEAD
    } else {
        TRIGGERS_AHEAD
    }
}

/// A frame on its way into the board: the cycle at which its first octet enters the receiver.
#[derive(Debug, Clone)]
pub struct Ingress {
    pub cycle: u64,
    pub frame: Bytes,
    pub fcs_ok: bool,
}

/// Registers read at one moment, in the order of [`Sampling::addresses`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Cycle in which the last register answered.
    pub cycle: u64,
    pub values: Vec<u32>,
    /// Octets on the wire since the run began, preamble, FCS and gap included.
    pub wire_octets: u64,
    /// Clock cycles since the run began in which PFC or pause held the transmitter.
    pub paused_cycles: u64,
}

/// Which registers are read over AXI-Lite while the board runs, and how often.
#[derive(Debug, Clone, Default)]
pub struct Sampling {
    pub addresses: Vec<u32>,
    /// Clock cycles between samples; 0 = never.
    pub interval_cycles: u64,
}

/// The results of a board's window.
#[derive(Debug, Default)]
pub struct Outcome {
    pub frames: Vec<Received>,
    pub completions: Vec<Completion>,
    pub samples: Vec<Sample>,
    /// Messages taken from the source in this window.
    pub posted: u64,
    /// The source has no more messages and all were handed to the gateware.
    pub source_done: bool,
}

struct Window {
    until: u64,
    ingress: Vec<Ingress>,
    /// Address and value of each register to be written in it.
    writes: Vec<(u32, u32)>,
}

/// A board and its thread.
pub struct Worker {
    windows: Sender<Window>,
    outcomes: Receiver<Outcome>,
    thread: JoinHandle<Board>,
}

/// The board's thread is gone: the model or a message source panicked.
#[derive(Debug, thiserror::Error)]
#[error("the thread of {name} has ended early; its panic message stands above")]
pub struct WorkerGone {
    pub name: String,
}

impl Worker {
    pub fn spawn(
        name: &str,
        board: Board,
        source: Box<dyn MessageSource>,
        sampling: Sampling,
    ) -> std::io::Result<Self> {
        let (windows, window_queue) = channel::<Window>();
        let (outcome_queue, outcomes) = channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut runner = Runner::new(board, source, sampling);
            while let Ok(window) = window_queue.recv() {
                if outcome_queue.send(runner.run(window)).is_err() {
                    break;
                }
            }
            runner.board
        })?;
        Ok(Self { windows, outcomes, thread })
    }

    /// Lets the clock run up to `until`; `ingress` holds every frame that enters before, in order; `writes` are made
    /// to registers (address, value) first, one after the other.
    pub fn start(&self, until: u64, ingress: Vec<Ingress>, writes: Vec<(u32, u32)>) -> Result<(), WorkerGone> {
        self.windows.send(Window { until, ingress, writes }).map_err(|_| self.gone())
    }

    /// Waits for the window that [`Worker::start`] began.
    pub fn finish_window(&self) -> Result<Outcome, WorkerGone> {
        self.outcomes.recv().map_err(|_| self.gone())
    }

    /// Ends the thread and gives the board back, for a last look at its registers.
    pub fn into_board(self) -> Result<Board, WorkerGone> {
        let gone = self.gone();
        drop(self.windows);
        self.thread.join().map_err(|_| gone)
    }

    fn gone(&self) -> WorkerGone {
        WorkerGone { name: self.thread.thread().name().unwrap_or("board").to_owned() }
    }
}

/// The thread's side: the board between windows.
struct Runner {
    board: Board,
    source: Box<dyn MessageSource>,
    sampling: Sampling,
    next_sample: u64,
    partial: Vec<u32>,
    wire_octets: u64,
    opening: Opening,
}

/// Tag of the reading of whether the stream is open; samples have those from 0 on.
const OPENING_TAG: u32 = u32::MAX;
/// How often a stream that is not open is looked at.
const OPENING_CYCLES: u64 = 64;

/// The stream that the source waits for.
enum Opening {
    /// None, or it has been open.
    Over,
    /// The address of its state; whether it is being read; the write that follows its opening.
    Waits { address: u32, is_requested: bool, enable: (u32, u32) },
}

impl Runner {
    fn new(board: Board, source: Box<dyn MessageSource>, sampling: Sampling) -> Self {
        let next_sample = if sampling.interval_cycles == 0 { u64::MAX } else { board.cycle() };
        let opening = source.awaits().map_or(Opening::Over, |Awaited { stream, enable }| Opening::Waits {
            address: stream_register(stream, regs::stream::STATE),
            is_requested: false,
            enable,
        });
        Self { board, source, sampling, next_sample, partial: Vec::new(), wire_octets: 0, opening }
    }

    fn run(&mut self, window: Window) -> Outcome {
        let mut outcome = Outcome::default();
        for frame in window.ingress {
            self.board.receive(frame.cycle, frame.frame, frame.fcs_ok);
        }
        for (address, value) in window.writes {
            self.board.queue_write(address, value);
        }
        while self.board.cycle() < window.until {
            let now = self.board.cycle();
            if let Opening::Waits { address, is_requested, .. } = &mut self.opening {
                if !std::mem::replace(is_requested, true) {
                    self.board.queue_read(*address, OPENING_TAG);
                }
            }
            // A message would be flushed; a trigger is accepted, and its event waits.
            if matches!(self.opening, Opening::Over) || self.source.lead() > Time::ZERO {
                outcome.posted += self.post_due(now);
            }
            if now >= self.next_sample {
                self.queue_sample();
            }
            let stop = self.next_stop(window.until);
            self.board.run_until(stop);
            self.collect(&mut outcome);
        }
        outcome.source_done = self.source.next_time().is_none() && self.board.pending_messages() == 0;
        outcome
    }

    /// Hands over the messages that are there, as many as the gateware should have in hand.
    fn post_due(&mut self, now: u64) -> u64 {
        let mut posted = 0;
        let (most, time) = (most_waiting(&*self.source), self.board.clock().time(now));
        while self.board.waiting_messages() < most && self.source.is_due(time) {
            let Some(feed) = self.source.take(time) else { break };
            feed.into_board(&mut self.board);
            posted += 1;
        }
        posted
    }

    /// The cycle at which this loop must look again: a message comes, a sample is due, the window ends.
    fn next_stop(&self, until: u64) -> u64 {
        /// While the source has a backlog, how often the gateware's input is looked at.
        const REFILL_CYCLES: u64 = 32;
        /// Time from a trigger to the next, at least (`DetectorPort::observe`).
        const TRIGGER_CYCLES: u64 = 4;
        let now = self.board.cycle();
        let message = match self.source.next_time() {
            _ if matches!(self.opening, Opening::Waits { .. }) => now + OPENING_CYCLES,
            // It has the board's triggers of the next cycles.
            Some(_) if self.source.lead() > Time::ZERO => now + TRIGGERS_AHEAD as u64 * TRIGGER_CYCLES,
            Some(at) => self.board.clock().cycle_from(at).max(now + REFILL_CYCLES),
            None => u64::MAX,
        };
        until.min(message).min(self.next_sample).max(now + 1)
    }

    fn queue_sample(&mut self) {
        for (tag, address) in self.sampling.addresses.iter().enumerate() {
            self.board.queue_read(*address, tag as u32);
        }
        self.next_sample += self.sampling.interval_cycles;
    }

    /// The stream's state has been read.
    fn opened(&mut self, state: u32) {
        const ESTABLISHED: u32 = 2;
        let Opening::Waits { is_requested, enable: (address, value), .. } = &mut self.opening else { return };
        if regs::stream::STATE_BITS.of(state) == ESTABLISHED {
            self.board.queue_write(*address, *value);
            self.opening = Opening::Over;
        } else {
            *is_requested = false;
        }
    }

    fn collect(&mut self, outcome: &mut Outcome) {
        while let Some(frame) = self.board.poll_transmit() {
            self.wire_octets += wire_len(frame.frame.len()) as u64;
            outcome.frames.push(frame);
        }
        while let Some(completion) = self.board.poll_completion() {
            self.source.completed(&completion);
            outcome.completions.push(completion);
        }
        while let Some(answer) = self.board.poll_register() {
            let Answer::Read { cycle, value, tag, .. } = answer else { continue };
            if tag == OPENING_TAG {
                self.opened(value);
                continue;
            }
            self.partial.push(value);
            if self.partial.len() == self.sampling.addresses.len() {
                outcome.samples.push(Sample {
                    cycle,
                    values: std::mem::take(&mut self.partial),
                    wire_octets: self.wire_octets,
                    paused_cycles: self.board.paused_cycles(),
                });
            }
        }
    }
}
