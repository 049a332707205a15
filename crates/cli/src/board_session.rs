// SPDX-License-Identifier: Apache-2.0
//! What `penstock board` does while it runs: wait for the queue pair, start the messages, wait for their end.

use crate::board::{Arguments, Series};
use crate::board_setup::{cycles, is_ready};
use crate::run::Failure;
use crate::source::BoardSource;
use penstock_board::live::{Activity, LiveBoard, LiveError, WireTime};
use penstock_board::{qp_register, regs, RateSample, RegisterError};
use penstock_netsim::{Rate, SwitchedFlow, Time};
use penstock_readout::{EventSource, RingConfig};
use penstock_wire::{Ipv4Addr, Qpn};
use std::sync::Arc;
use std::time::Duration;

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        Self::Fault(error.to_string())
    }
}

/// What is sent once the queue pair is ready.
pub enum Start {
    Nothing,
    /// The gateware's own source; `kind` as in `source.control.generator`.
    Generator {
        kind: u32,
        series: Series,
        replay: Vec<u8>,
    },
    Events {
        count: u64,
        source: Arc<EventSource>,
    },
}

impl Start {
    /// Bytes of the longest message.
    pub fn longest(&self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Generator { series, .. } => series.len,
            Self::Events { source, .. } => source.max_message_len() as u32,
        }
    }
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Going,
    /// All messages have ended, or the capture has been played.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The board opens its queue pair by itself.
    Opening,
    /// A server is to open it.
    Awaiting,
    /// So many messages are to end; `None`: no end.
    Sending(Option<u64>),
    /// Nothing of our own to do.
    Serving,
}

/// A live board and what it is to do.
pub struct Session {
    pub board: LiveBoard,
    start: Start,
    phase: Phase,
    qp: u8,
    slots: u32,
    verb: crate::board::VerbChoice,
    interval: Time,
    share: crate::board::Share,
    /// R_C, R_T and alpha wherever they changed.
    pub rates: Vec<RateSample>,
    /// What the emulated switch measured and allowed, every `MEASURED_PS`.
    pub measured: Vec<Measured>,
}

/// One look at the emulated switch.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub at_ps: u64,
    pub throughput: Rate,
    pub threshold: Option<Rate>,
}

/// From one look at the emulated switch to the next.
const MEASURED_PS: u64 = 10_000_000;

impl Session {
    pub fn new(board: LiveBoard, start: Start, arguments: &Arguments) -> Self {
        let messages = &arguments.messages;
        let phase = match (arguments.open, &start) {
            (true, _) => Phase::Opening,
            (false, Start::Nothing) => Phase::Serving,
            (false, _) => Phase::Awaiting,
        };
        let mut session = Self {
            board,
            start,
            phase,
            qp: arguments.transport.qp,
            slots: messages.slots,
            verb: messages.verb,
            interval: messages.interval,
            share: messages.share,
            rates: Vec::new(),
            measured: Vec::new(),
        };
        if phase == Phase::Opening {
            session.command_open();
        }
        session
    }

    fn command_open(&mut self) {
        use regs::connection as c;
        let word = c::COMMAND_OPEN_MASK | u32::from(self.qp) << c::COMMAND_QP_SHIFT;
        self.board.write(c::COMMAND, word).expect("connection.command is a register");
    }

    /// One turn of the board and what follows from it.
    pub fn turn(&mut self, longest: Duration) -> Result<Progress, Failure> {
        let activity = self.board.turn(longest)?;
        self.look();
        match self.phase {
            Phase::Opening => self.check_open()?,
            Phase::Awaiting if is_ready(&mut self.board, self.qp)? => self.begin()?,
            Phase::Sending(Some(expected)) => {
                let messages = &self.board.stats().messages;
                if messages.ok + messages.failed() >= expected {
                    return Ok(Progress::Done);
                }
            }
            Phase::Serving if activity == Activity::Idle && self.board.wire_time() == WireTime::Simulated(None) => {
                return Ok(Progress::Done);
            }
            _ => {}
        }
        Ok(Progress::Going)
    }

    /// Messages that have ended, and how many there are to be; 0 while nobody knows.
    pub fn progress(&self) -> (u64, u64) {
        let messages = &self.board.stats().messages;
        let total = if let Phase::Sending(Some(total)) = self.phase { total } else { 0 };
        (messages.ok + messages.failed(), total)
    }

    /// Takes what has been sampled and measured meanwhile.
    fn look(&mut self) {
        while self.board.poll_completion().is_some() {} // counted by the board
        while let Some(sample) = self.board.poll_rates() {
            let same = |last: &RateSample| {
                last.qp == sample.qp
                    && (last.current, last.target, last.alpha) == (sample.current, sample.target, sample.alpha)
            };
            if !self.rates.last().is_some_and(same) {
                self.rates.push(sample);
            }
        }
        let at_ps = self.board.now_ps();
        let due = self.measured.last().is_none_or(|last| at_ps >= last.at_ps + MEASURED_PS);
        if let (Some(switch), true) = (self.board.switch(), due) {
            let (throughput, threshold) = (switch.measured(), switch.params().threshold(Time::from_ps(at_ps)));
            self.measured.push(Measured { at_ps, throughput, threshold });
        }
    }

    /// Tells the emulated switch which queue pair its CNPs go to.
    fn introduce(&mut self) -> Result<(), RegisterError> {
        use regs::{global as g, qp as q};
        let [to, to_qpn] = [q::DST_IP, q::DEST_QPN].map(|at| self.board.read(qp_register(self.qp, at)));
        let (to, to_qpn) = (Ipv4Addr::from_bits(to?), Qpn::new(to_qpn?));
        let from = Ipv4Addr::from_bits(self.board.read(g::LOCAL_IP)?);
        let own = Qpn::new(self.board.read(g::QPN_BASE)? + u32::from(self.qp));
        if let Some(switch) = self.board.switch_mut() {
            switch.connect(SwitchedFlow { from, to, to_qpn }, own);
        }
        Ok(())
    }

    /// How far the board's own opening came.
    fn check_open(&mut self) -> Result<(), Failure> {
        use regs::connection as c;
        const OPEN: u32 = 4;
        let status = self.board.read(c::STATUS)?;
        let step = (status & c::STATUS_STEP_MASK) >> c::STATUS_STEP_SHIFT;
        let fail = (status & c::STATUS_FAIL_MASK) >> c::STATUS_FAIL_SHIFT;
        if fail != 0 {
            let step =
                ["nothing", "OPEN_QP", "SEND_QP_INFO", "MODIFY_QP_RTS"].get(step as usize).unwrap_or(&"CLOSE_QP");
            return Err(Failure::Fault(format!("the connection was not opened, at {step}: {}", open_failure(fail))));
        }
        if step == OPEN && status & c::STATUS_BUSY_MASK == 0 {
            self.begin()?;
        }
        Ok(())
    }

    /// The queue pair is ready: the messages begin.
    fn begin(&mut self) -> Result<(), Failure> {
        self.introduce()?;
        self.phase = match std::mem::replace(&mut self.start, Start::Nothing) {
            Start::Nothing => Phase::Serving,
            Start::Generator { kind, series, replay } => {
                self.generate(kind, series, &replay)?;
                Phase::Sending(series.count.map(u64::from))
            }
            Start::Events { count, source } => {
                let ring = self.ring()?;
                let step = self.interval.as_ps();
                let now = self.board.now_ps();
                let times: Arc<[u64]> = (0..count).map(|n| now + n * step).collect();
                let source = BoardSource::new(source, self.share.board, ring, times).with_verb(self.qp, self.verb);
                self.board.set_source(Box::new(source));
                Phase::Sending(Some(count))
            }
        };
        Ok(())
    }

    /// The ring as the registers have it: the connection manager writes its base.
    fn ring(&mut self) -> Result<RingConfig, RegisterError> {
        use regs::ring as r;
        let row = r::BASE + u32::from(self.qp) * r::STRIDE;
        let [low, high, slot_bytes] = [r::BASE_LO, r::BASE_HI, r::SLOT_SIZE].map(|at| self.board.read(row + at));
        let va = u64::from(high?) << 32 | u64::from(low?);
        Ok(RingConfig { va, slots: self.slots, slot_bytes: slot_bytes?, ..RingConfig::default() })
    }

    /// Starts the gateware's own source.
    fn generate(&mut self, kind: u32, series: Series, replay: &[u8]) -> Result<(), RegisterError> {
        use regs::{replay_block as b, source as s};
        for (address, word) in (b::BASE..).step_by(4).zip(replay.chunks_exact(4)) {
            self.board.write(address, u32::from_le_bytes(word.try_into().expect("four bytes")))?;
        }
        let control = s::CONTROL_RESET & !s::CONTROL_GENERATOR_MASK
            | kind << s::CONTROL_GENERATOR_SHIFT
            | u32::from(self.verb.is_send()) << s::CONTROL_VERB_SHIFT
            | u32::from(self.verb.with_imm()) << s::CONTROL_WITH_IMM_SHIFT
            | s::CONTROL_IN_RING_MASK;
        let interval = u32::try_from(cycles(self.interval)).unwrap_or(u32::MAX);
        for (address, value) in [
            (s::CONTROL, control),
            (
                s::QP_RANGE,
                u32::from(self.qp) << s::QP_RANGE_QP_FIRST_SHIFT | u32::from(self.qp) << s::QP_RANGE_QP_LAST_SHIFT,
            ),
            (s::LENGTH_MIN, series.len),
            (s::LENGTH_MAX, 0),
            (s::COUNT, series.count.unwrap_or(0)),
            (s::INTERVAL, interval),
            (s::REPLAY_BLOCKS, (replay.len() as u32 / b::STRIDE).max(1)),
            (s::COMMAND, s::COMMAND_START_MASK),
        ] {
            self.board.write(address, value)?;
        }
        Ok(())
    }
}

/// The words for `connection.status.fail`.
fn open_failure(fail: u32) -> &'static str {
    match fail {
        1 => "the server does not answer; is its connection manager at UDP port 0x4321?",
        2 => "the server has no queue pair left",
        3 => "the server refused",
        4 => "the server is in error",
        5 => "nobody answers ARP for the server's address; is it on this wire?",
        _ => "the board's own queue pair did not follow",
    }
}
