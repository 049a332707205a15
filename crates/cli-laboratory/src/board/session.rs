// SPDX-License-Identifier: Apache-2.0
//! The main loop of `penstock board`: waits for the queue pair, starts the messages, waits for their end; when the
//! server is gone, waits for the next one and continues with the unacknowledged messages.

use super::arguments::{Series, Share, VerbChoice};
use super::connections::Connections;
use super::destinations::Destinations;
use super::plan::{MessagePlan, Plan, Start};
use super::slices::{self, Slicing};
use super::target::{Opening, Target};
use crate::gateware::{postpone_late, BoardSource, BEFORE_TRIGGERS, LATE};
use penstock_board::live::{Activity, LiveBoard, WireTime};
use penstock_board::{qp_register, regs, EventsConfig, RateSample, RegisterError, WhileBusy};
use penstock_cli_common::outcome::Failure;
use penstock_netsim::{Rate, SwitchedFlow, Time};
use penstock_readout::{EventSource, RingConfig};
use penstock_wire::{Ipv4Addr, Qpn};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Going,
    /// All messages have ended, or the capture has been played.
    Done,
    /// No other server has come for what is left.
    Abandoned,
    /// The server ends each connection without taking a message.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The board opens its queue pair by itself.
    Opening,
    /// A server is to open it.
    Awaiting,
    /// The number of messages to wait for; `None`: no limit.
    Sending(Option<u64>),
    /// A stream is cut into slices until it ends.
    Slicing(Slicing),
    /// The server is gone: what was handed to the gateware ends before another server gets the queue pair, so that none
    /// of it goes there before what comes first. `busy`: the last cycle in which something was left.
    Draining { busy: u64 },
    /// They have ended; the server is to close the queue pair.
    Parting(Parting),
    /// Nothing of our own to do.
    Serving,
}

/// Messages that have ended, and when the server was heard of last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parting {
    messages: u64,
    rx_frames: u64,
    last_frame: Instant,
}

/// A server that has been silent for so long is not waited for when all messages have ended: `penstock recv` asks
/// boards that are silent every second whether they live.
const SILENCE: Duration = Duration::from_secs(3);

/// A live board and what it is to do.
pub struct Session {
    pub board: LiveBoard,
    start: Start,
    phase: Phase,
    target: Target,
    /// The board opens its queue pair or stream by itself.
    opens: bool,
    /// A server over the network closes the queue pair in the end.
    is_opened: bool,
    slots: u32,
    slot_size: u32,
    verb: VerbChoice,
    interval: Time,
    share: Share,
    /// The destination table selects the server of each event, and several servers share them.
    by_event: bool,
    while_busy: WhileBusy,
    pub destinations: Destinations,
    pub connections: Connections,
    /// The number of [`Target::connection`].
    connection: u32,
    /// When the board last began to open it.
    requested_at: Instant,
    /// Turns until the queue pair is looked at again, and whether another one or none was found at the last look.
    look_in: u32,
    was_gone: bool,
    /// Times of all triggers from the first one on, and when that was, in the board's time less all the time without a
    /// server.
    triggers: Option<Arc<[Time]>>,
    origin: Time,
    /// Messages that failed with their connection and were sent again over the next one.
    pub again: u64,
    /// Time since when there is no server, and how long one is waited for.
    lost: Option<Instant>,
    wait: Option<Duration>,
    /// All messages have ended, or what was to be sent has no end.
    is_done: bool,
    /// R_C, R_T and alpha wherever they changed.
    pub rates: Vec<RateSample>,
    /// The measured rate and the threshold of the emulated switch, every `MEASURED`.
    pub measured: Vec<Measured>,
}

/// One look at the emulated switch.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub at: Time,
    pub throughput: Rate,
    pub threshold: Option<Rate>,
}

/// Time from one look at the emulated switch to the next.
const MEASURED: Time = Time::from_us(10);

/// Cycles in which nothing is left before the next server is let in: a descriptor on its way to the ring shows nowhere.
const DRAINED_CYCLES: u64 = 1024;

/// Streams that a receiver has reset in a row without acknowledging a message of theirs, until it is taken that it wants
/// none of them: one that is restarted resets the first, one that has just begun to listen maybe another.
const RESETS: usize = 3;

/// How long a server that could not be reached again is left alone.
const AGAIN: Duration = Duration::from_millis(200);

/// Turns from one look at the queue pair to the next: 26 us of a clock that runs, and less than a percent of its time.
const LOOK_TURNS: u32 = 16;

impl Session {
    pub fn new(board: LiveBoard, plan: &Plan) -> Self {
        let MessagePlan { start, share, by_event, while_busy, verb, slots, slot_size, interval } = &plan.messages;
        let phase = match (plan.open, start) {
            (true, _) => Phase::Opening,
            (false, Start::Nothing) => Phase::Serving,
            (false, _) => Phase::Awaiting,
        };
        let mut session = Self {
            board,
            start: start.clone(),
            phase,
            target: plan.target(),
            opens: plan.open,
            is_opened: plan.connect.is_none(),
            slots: *slots,
            slot_size: *slot_size,
            verb: *verb,
            interval: *interval,
            share: *share,
            by_event: *by_event,
            while_busy: *while_busy,
            destinations: Destinations::default(),
            connections: Connections::default(),
            connection: 0,
            requested_at: Instant::now(),
            look_in: LOOK_TURNS,
            was_gone: false,
            triggers: None,
            origin: Time::ZERO,
            again: 0,
            lost: None,
            wait: (!plan.end.stay).then_some(plan.end.wait),
            is_done: !start.has_end(),
            rates: Vec::new(),
            measured: Vec::new(),
        };
        if phase == Phase::Opening {
            session.command_open();
        }
        session
    }

    fn command_open(&mut self) {
        self.requested_at = Instant::now();
        self.target.open(&mut self.board).expect("its command is a register");
    }

    /// One turn of the board and what follows from it.
    pub fn turn(&mut self, longest: Duration) -> Result<Progress, Failure> {
        let activity = self.board.turn(longest)?;
        self.look()?;
        if self.lost.zip(self.wait).is_some_and(|(since, limit)| since.elapsed() >= limit) {
            return Ok(Progress::Abandoned);
        }
        let phase = self.phase;
        match phase {
            Phase::Opening | Phase::Awaiting if self.may_begin()? => self.begin()?,
            Phase::Opening => self.check_open()?,
            Phase::Sending(expected) => {
                let lost = self.board.stats().lost_events;
                let is_left = expected.is_none_or(|expected| self.connections.next() + lost < expected);
                if !self.by_event && is_left && self.loses_connection()? {
                    if self.connections.resets() >= RESETS {
                        return Ok(Progress::Refused);
                    }
                    if self.while_busy != WhileBusy::Wait {
                        // The triggers without a server have gone by.
                        return Ok(Progress::Abandoned);
                    }
                    self.drain()?;
                } else if expected.is_some_and(|expected| self.ended() + lost >= expected) {
                    return self.finish(self.ended());
                }
            }
            // What a server misses of a stream has gone by: no other one gets it.
            Phase::Slicing(slicing) if !self.by_event && self.loses_connection()? => {
                let ended = self.ended();
                return match slicing.is_complete(&mut self.board, ended)? {
                    true => self.finish(ended),
                    false => Ok(Progress::Abandoned),
                };
            }
            Phase::Slicing(mut slicing) => {
                let ended = self.ended();
                if let Some(messages) = slicing.turn(&mut self.board, ended)? {
                    return self.finish(messages);
                }
                self.phase = Phase::Slicing(slicing);
            }
            Phase::Draining { .. } if activity == Activity::Idle => self.await_server()?,
            Phase::Draining { busy } => {
                let now = self.board.cycle();
                match self.has_drained()? {
                    false => self.phase = Phase::Draining { busy: now },
                    true if now >= busy + DRAINED_CYCLES => self.await_server()?,
                    true => {}
                }
            }
            Phase::Parting(parting) => return self.part(parting, activity),
            Phase::Serving if activity == Activity::Idle && self.board.wire_time() == WireTime::Simulated(None) => {
                return Ok(Progress::Done);
            }
            _ => {}
        }
        Ok(Progress::Going)
    }

    /// All messages have ended.
    fn finish(&mut self, messages: u64) -> Result<Progress, Failure> {
        self.is_done = true;
        let rx_frames = self.board.stats().rx_frames;
        let parts = self.is_opened && self.board.wire_time() == WireTime::Wall;
        if !parts {
            return Ok(Progress::Done);
        }
        self.engage(false)?;
        self.phase = Phase::Parting(Parting { messages, rx_frames, last_frame: Instant::now() });
        Ok(Progress::Going)
    }

    /// Whether the board cuts streams into slices.
    pub fn has_slices(&self) -> bool {
        matches!(self.start, Start::Slices { .. })
    }

    /// The board stays until its server has closed the queue pair and has been answered, or is silent: a device that
    /// went earlier would end the server's run.
    fn part(&mut self, mut parting: Parting, activity: Activity) -> Result<Progress, Failure> {
        let rx_frames = self.board.stats().rx_frames;
        if rx_frames != parting.rx_frames {
            (parting.rx_frames, parting.last_frame) = (rx_frames, Instant::now());
            self.phase = Phase::Parting(parting);
        }
        let is_closed = activity == Activity::Idle && !self.has_server()?;
        if is_closed && self.target.is_reset(&mut self.board)? {
            return Ok(Progress::Refused);
        }
        let is_over = is_closed || parting.last_frame.elapsed() >= SILENCE;
        Ok(if is_over { Progress::Done } else { Progress::Going })
    }

    /// What identifies a server that refuses the messages; a stream has nothing of that kind.
    pub fn refused(&self) -> String {
        self.connections.refusal(self.slot_size)
    }

    /// Why not all messages have ended, if there is a number that had to.
    pub fn unfinished(&self) -> Option<String> {
        let why = match self.phase {
            _ if self.is_done => return None,
            Phase::Opening | Phase::Awaiting | Phase::Draining { .. } if self.lost.is_some() => {
                "no server has come for the rest"
            }
            Phase::Opening => "the connection was not opened",
            Phase::Awaiting => "no server has opened the queue pair",
            _ => "the rest was not acknowledged",
        };
        let total = match &self.start {
            Start::Generator { series: Series { count: Some(count), .. }, .. } => format!("{count} messages"),
            Start::Events { count, .. } => format!("{count} events"),
            // How many slices they become is not known.
            Start::Slices { count, .. } => format!("the slices of {count} events"),
            Start::Nothing | Start::Generator { .. } => return None,
        };
        Some(format!("{} of {total} had ended: {why}", self.ended()))
    }

    /// Ended messages, and their total number; 0 while it is unknown.
    pub fn progress(&self) -> (u64, u64) {
        let total = match self.phase {
            Phase::Sending(Some(total)) | Phase::Parting(Parting { messages: total, .. }) => total,
            _ => 0,
        };
        (self.ended(), total)
    }

    /// Whether the messages have somewhere to go.
    fn may_begin(&mut self) -> Result<bool, RegisterError> {
        match self.by_event {
            true => Ok(self.table()?.is_some()),
            false => self.target.is_ready(&mut self.board),
        }
    }

    /// Whether a server may still close a queue pair.
    fn has_server(&mut self) -> Result<bool, RegisterError> {
        let shared = (0..self.board.queue_pairs()).map(Target::QueuePair).collect();
        for target in if self.by_event { shared } else { vec![self.target] } {
            if target.is_ready(&mut self.board)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// First event and servers of the destination table in force; none before a coordinator has written it, or while it
    /// changes.
    fn table(&mut self) -> Result<Option<(u64, Vec<Ipv4Addr>)>, RegisterError> {
        use regs::{destination as d, qp as q, server as s};
        let status = self.board.read(d::STATUS)?;
        let live = d::STATUS_LIVE_BITS.of(status);
        if live == 0 || status & (d::STATUS_BUSY_BITS.mask | d::STATUS_PREPARED_BITS.mask) != 0 {
            return Ok(None);
        }
        let [low, high] = [d::ANNOUNCED_LO, d::ANNOUNCED_HI].map(|at| self.board.read(at));
        let first = u64::from(high?) << 32 | u64::from(low?);
        let mut servers = Vec::new();
        for row in 0..live {
            let entry = self.board.read(s::BASE + row * s::STRIDE + s::ENTRY)?;
            if s::ENTRY_LIVE_BITS.of(entry) == 0 {
                return Ok(None); // the next table is being written
            }
            let qp = s::ENTRY_QP_BITS.of(entry);
            if qp < u32::from(self.board.queue_pairs()) {
                servers.push(Ipv4Addr::from_bits(self.board.read(qp_register(qp as u8, q::DST_IP))?));
            }
        }
        Ok(Some((first, servers)))
    }

    /// Messages that have ended and will not be sent again.
    fn ended(&self) -> u64 {
        let messages = &self.board.stats().messages;
        messages.ok + messages.failed() - self.again
    }

    /// Whether the connection has ended and another server may go on.
    fn loses_connection(&mut self) -> Result<bool, RegisterError> {
        // One that was set up by registers is opened by nothing again; a capture brings no other server.
        if !self.is_opened || self.board.wire_time() != WireTime::Wall {
            return Ok(false);
        }
        self.look_in -= 1;
        if self.look_in == 0 {
            self.look_in = LOOK_TURNS;
            let connection = self.target.connection(&mut self.board)?;
            let is_gone = connection != self.connection || !self.target.is_live(&mut self.board)?;
            // The completion of a failed message has the reason, and may not have arrived yet at the first poll.
            if is_gone && self.was_gone {
                let (why, by_server) = self.target.end(&mut self.board)?;
                self.connections.closed(self.board.now(), why, by_server);
            }
            self.was_gone = is_gone;
        }
        Ok(self.connections.is_lost())
    }

    /// No message is begun until those that were have ended.
    fn drain(&mut self) -> Result<(), RegisterError> {
        self.board.clear_source();
        self.board.write(regs::source::COMMAND, regs::source::COMMAND_STOP_BITS.mask)?;
        (self.phase, self.lost) = (Phase::Draining { busy: self.board.cycle() }, Some(Instant::now()));
        Ok(())
    }

    /// Nothing is posted, begun or in the send ring, as far as registers show it.
    fn has_drained(&mut self) -> Result<bool, RegisterError> {
        use regs::source as s;
        let messages = &self.board.stats().messages;
        if messages.ok + messages.failed() < messages.posted || self.board.board().pending_messages() > 0 {
            return Ok(false);
        }
        Ok(self.target.is_empty(&mut self.board)? && s::STATUS_RUNNING_BITS.of(self.board.read(s::STATUS)?) == 0)
    }

    /// All started work has ended: the next server may connect, or is contacted.
    fn await_server(&mut self) -> Result<(), Failure> {
        self.again = self.board.stats().messages.failed();
        self.engage(false)?;
        self.phase = match self.opens {
            true => Phase::Opening,
            false => Phase::Awaiting,
        };
        if self.opens && !self.target.is_ready(&mut self.board)? {
            self.command_open();
        }
        Ok(())
    }

    /// Whether the gateware has messages, so that no server is to be given the queue pair. The gateware has to know it
    /// before the queue pair fails: a server that asks then is answered before software looks.
    fn engage(&mut self, has_messages: bool) -> Result<(), RegisterError> {
        use regs::connection as c;
        let kept = self.board.read(c::CONTROL)? & !c::CONTROL_ENGAGED_BITS.mask;
        self.board.write(c::CONTROL, kept | c::CONTROL_ENGAGED_BITS.at(has_messages))
    }

    /// Takes what has been sampled and measured meanwhile.
    fn look(&mut self) -> Result<(), RegisterError> {
        postpone_late(&mut self.board, &mut self.origin)?;
        while let Some(completion) = self.board.poll_completion() {
            match self.by_event {
                true => {
                    let server = self.board.read(qp_register(completion.qp, regs::qp::DST_IP))?;
                    self.destinations.completed(self.board.clock(), &completion, Ipv4Addr::from_bits(server));
                }
                false => self.connections.completed(self.board.clock(), &completion),
            }
        }
        if self.destinations.waits_for_table() {
            self.look_in = self.look_in.checked_sub(1).unwrap_or(LOOK_TURNS);
            if let Some((first, servers)) = if self.look_in == 0 { self.table()? } else { None } {
                self.destinations.in_force(first, &servers);
            }
        }
        while let Some(sample) = self.board.poll_rates() {
            let same = |last: &RateSample| {
                last.qp == sample.qp
                    && (last.current, last.target, last.alpha) == (sample.current, sample.target, sample.alpha)
            };
            if !self.rates.last().is_some_and(same) {
                self.rates.push(sample);
            }
        }
        let at = self.board.now();
        let due = self.measured.last().is_none_or(|last| at >= last.at + MEASURED);
        if let (Some(switch), true) = (self.board.switch(), due) {
            let (throughput, threshold) = (switch.measured(), switch.params().threshold(at));
            self.measured.push(Measured { at, throughput, threshold });
        }
        Ok(())
    }

    /// Sets the queue pair that gets the emulated switch's CNPs.
    fn introduce(&mut self) -> Result<(), RegisterError> {
        use regs::{global as g, qp as q};
        let Target::QueuePair(qp) = self.target else { return Ok(()) };
        let [to, to_qpn] = [q::DST_IP, q::DEST_QPN].map(|at| self.board.read(qp_register(qp, at)));
        let (to, to_qpn) = (Ipv4Addr::from_bits(to?), Qpn::new(to_qpn?));
        let from = Ipv4Addr::from_bits(self.board.read(g::LOCAL_IP)?);
        let local = Qpn::new(self.board.read(g::QPN_BASE)? + u32::from(qp));
        if let Some(switch) = self.board.switch_mut() {
            switch.connect(SwitchedFlow { from, to, to_qpn }, local);
        }
        Ok(())
    }

    /// How far the board's own opening came.
    fn check_open(&mut self) -> Result<(), Failure> {
        match self.target.opening(&mut self.board)? {
            Opening::Waiting => Ok(()),
            Opening::Open => self.begin(),
            // Until the server is there again, or another one comes.
            Opening::Failed(_) if self.lost.is_some() => {
                if self.requested_at.elapsed() >= AGAIN {
                    self.command_open();
                }
                Ok(())
            }
            Opening::Failed(why) => Err(Failure::Fault(format!("the connection was not opened: {why}"))),
        }
    }

    /// The queue pair is ready: the messages begin, or go on.
    fn begin(&mut self) -> Result<(), Failure> {
        if !self.by_event {
            self.introduce()?;
            let server = self.target.server(&mut self.board)?;
            self.connection = self.target.connection(&mut self.board)?;
            self.connections.opened(Ipv4Addr::from_bits(server), self.board.now());
        }
        let next = self.connections.next();
        (self.lost, self.was_gone) = (None, false);
        // Events that another server is to have again would need the queue pair; those of a table do not.
        self.engage(!self.by_event && !matches!(self.start, Start::Nothing))?;
        self.phase = match self.start.clone() {
            Start::Nothing => Phase::Serving,
            Start::Generator { kind, series, replay } => {
                let total = series.count.map(u64::from);
                let rest = Series { count: total.map(|total| total.saturating_sub(next) as u32), ..series };
                self.generate(kind, rest, &replay)?;
                Phase::Sending(total)
            }
            Start::Events { count, source } => {
                let board = self.share.board;
                self.set_events(&source)?;
                let interval = self.interval;
                let times = self.triggers.get_or_insert_with(|| (0..count).map(|n| interval * n).collect()).clone();
                // The first trigger of this connection: now, or later if it had not come when the last one ended.
                let first = times.get(next as usize).copied().unwrap_or_default();
                self.origin = self.origin.max((self.board.now() + BEFORE_TRIGGERS).saturating_sub(first));
                self.board.board().set_clock(self.origin)?;
                if self.by_event {
                    let most = self.board.clock().cycle_from(LATE);
                    self.board.board().hold_late_triggers(most);
                }
                self.board.set_source(Box::new(BoardSource::new(
                    self.board.clock(),
                    source,
                    board,
                    times,
                    self.origin,
                    next,
                )));
                Phase::Sending(Some(count))
            }
            Start::Slices { count, source, slice } => {
                self.set_events(&source)?;
                let Self { slot_size, interval, share: Share { board, .. }, .. } = *self;
                let plan = slices::Plan { source, board, count, interval, slice, slot_size };
                Phase::Slicing(Slicing::begin(&mut self.board, &plan)?)
            }
        };
        Ok(())
    }

    /// Has the gateware make messages of what its inputs get.
    fn set_events(&mut self, source: &EventSource) -> Result<(), Failure> {
        let board = self.share.board;
        Ok(self.board.board().set_events(&EventsConfig {
            qp: self.target.index(),
            by_event: self.by_event,
            send: self.verb.is_send(),
            source_id: board,
            inputs: source.inputs(board),
            while_busy: self.while_busy,
        })?)
    }

    /// The ring as the registers have it: the connection manager writes its base.
    fn ring(&mut self) -> Result<RingConfig, RegisterError> {
        use regs::ring as r;
        let row = r::BASE + u32::from(self.target.index()) * r::STRIDE;
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
        // A message of the ring has the slot for its immediate; one without goes to the same slots by its own address.
        let control = (s::CONTROL_RESET & !s::CONTROL_GENERATOR_BITS.mask)
            | s::CONTROL_GENERATOR_BITS.at(kind)
            | s::CONTROL_VERB_BITS.at(self.verb.is_send())
            | (u32::from(self.verb.with_imm()) * (s::CONTROL_WITH_IMM_BITS.mask | s::CONTROL_IN_RING_BITS.mask));
        let ring = self.ring()?;
        let target = u32::from(self.target.index());
        let interval = u32::try_from(self.board.clock().cycles(self.interval)).unwrap_or(u32::MAX);
        for (address, value) in [
            (s::CONTROL, control),
            (s::QP_RANGE, s::QP_RANGE_QP_FIRST_BITS.at(target) | s::QP_RANGE_QP_LAST_BITS.at(target)),
            (s::RADDR_LO, ring.va as u32),
            (s::RADDR_HI, (ring.va >> 32) as u32),
            (s::RADDR_STRIDE, ring.slot_bytes),
            (s::RADDR_SLOTS, ring.slots),
            (s::LENGTH_MIN, series.len),
            (s::LENGTH_MAX, 0),
            (s::COUNT, series.count.unwrap_or(0)),
            (s::INTERVAL, interval),
            (s::REPLAY_BLOCKS, (replay.len() as u32 / b::STRIDE).max(1)),
            (s::COMMAND, s::COMMAND_START_BITS.mask),
        ] {
            self.board.write(address, value)?;
        }
        Ok(())
    }
}
