// SPDX-License-Identifier: Apache-2.0
//! One board: a verilated top with models of everything connected to its ports: a transceiver or
//! hard MAC, a message source, a detector, a completion sink, a register master and a memory.

use crate::axil::{Answer, Master};
use crate::detector::{DetectorEvent, DetectorPort};
use crate::ffi::{Model, Pins};
use crate::memory::Memory;
use crate::message::{Completion, Message, MessagePort};
use crate::port::{Port, Received};
use crate::rates::RateSample;
use crate::receive::{ReceivePort, ReceivedMessage};
use crate::stream::{Marks, Pieces, StreamPort};
use crate::top::Top;
use bytes::Bytes;
use penstock_wire::gateware::LineClock;
use std::collections::VecDeque;

const RESET_CYCLES: u64 = 16;

/// Why a register access failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RegisterError {
    #[error("register {address:#07x}: the board refused the access; see the map made by `make regs`")]
    Refused { address: u32 },
    #[error("register {address:#07x}: no answer within {cycles} cycles")]
    NoAnswer { address: u32, cycles: u64 },
}

/// A verilated front end with its pins in use. Time is counted in clock cycles since reset ended.
pub struct Board {
    top: Top,
    model: Model,
    pins: Pins,
    cycle: u64,
    port: Box<dyn Port>,
    inbox: VecDeque<(u64, Bytes, bool)>,
    outbox: VecDeque<Received>,
    messages: MessagePort,
    detector: DetectorPort,
    /// The port that replaces the detector's triggers and fragments.
    stream: Option<StreamPort>,
    completions: VecDeque<Completion>,
    rates: VecDeque<RateSample>,
    receive: ReceivePort,
    registers: Master,
    /// Memory of the rings, or of windows of peers; none: the rings are on chip, and there are no windows.
    memory: Option<Memory>,
    paused_cycles: u64,
    /// The gateware's clock has been set.
    pub(crate) has_time: bool,
}

impl Default for Board {
    fn default() -> Self {
        Self::new()
    }
}

impl Board {
    /// The 10G front end, after its reset.
    pub fn new() -> Self {
        Self::of(Top::Gbps10)
    }

    /// Instantiates the model of a top and takes it through its reset.
    pub fn of(top: Top) -> Self {
        let mut board = Self {
            top,
            model: Model::new(top as u32),
            pins: Pins { rst: 1, axi_rst: 1, event_rst: u8::MAX, cpl_tready: 1, sample_tready: 1, ..Pins::default() },
            cycle: 0,
            port: top.port(),
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            messages: MessagePort::new(top.lanes()),
            detector: DetectorPort::new(top.lanes()),
            stream: None,
            completions: VecDeque::new(),
            rates: VecDeque::new(),
            receive: ReceivePort::default(),
            registers: Master::default(),
            memory: top.memory_bytes().map(Memory::new),
            paused_cycles: 0,
            has_time: false,
        };
        board.port.drive(&mut board.pins.line);
        for _ in 0..RESET_CYCLES {
            board.model.cycle(&mut board.pins);
        }
        (board.pins.rst, board.pins.axi_rst, board.pins.event_rst) = (0, 0, 0);
        board
    }

    /// Its clock and its line.
    pub fn clock(&self) -> LineClock {
        self.top.clock()
    }

    /// Bytes of a payload beat.
    pub(crate) fn lanes(&self) -> usize {
        self.top.lanes()
    }

    /// Its build.
    pub(crate) fn top(&self) -> Top {
        self.top
    }

    /// Cycles since the end of reset, or since [`Board::restart_time`].
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Counts cycles from here on.
    pub(crate) fn begin_cycles(&mut self) {
        self.cycle = 0;
        self.paused_cycles = 0;
    }

    /// The gateware's clock in the last cycle, ns.
    pub fn tai_ns(&self) -> u64 {
        self.pins.tai_ns
    }

    /// Cycles so far in which PFC or pause held the transmitter.
    pub fn paused_cycles(&self) -> u64 {
        self.paused_cycles
    }

    /// Hands over a frame whose first octet enters the receiver at `cycle` (or when the receiver is
    /// free); calls must come in the order of time. `fcs_ok = false` arrives with a wrong FCS.
    pub fn receive(&mut self, cycle: u64, frame: Bytes, fcs_ok: bool) {
        debug_assert!(self.inbox.back().is_none_or(|(last, ..)| *last <= cycle));
        self.inbox.push_back((cycle, frame, fcs_ok));
    }

    /// Frames handed over that have not begun to enter the receiver.
    pub fn waiting_frames(&self) -> usize {
        self.inbox.len()
    }

    /// The next frame that the board has sent completely.
    pub fn poll_transmit(&mut self) -> Option<Received> {
        self.outbox.pop_front()
    }

    /// Puts bytes into the memory beside the front end, at once.
    ///
    /// # Panics
    /// When it has none, or the bytes are not all inside.
    pub fn put_memory(&mut self, address: u64, data: &[u8]) {
        self.memory.as_mut().expect("a top with a memory").put(address, data);
    }

    /// Bytes of the memory beside the front end, as they are now.
    ///
    /// # Panics
    /// When it has none, or the bytes are not all inside.
    pub fn memory(&self, address: u64, len: usize) -> Vec<u8> {
        self.memory.as_ref().expect("a top with a memory").bytes(address, len)
    }

    /// The next message of a peer: a SEND, or a WRITE with immediate.
    pub fn poll_received(&mut self) -> Option<ReceivedMessage> {
        self.receive.poll()
    }

    /// Whether messages of peers wait in the front end, as its user takes none; they are taken from the beginning.
    pub fn hold_received(&mut self, holds: bool) {
        self.receive.hold(holds);
    }

    /// Queues a message after those already posted.
    pub fn post(&mut self, message: Message) {
        self.messages.post(message);
    }

    /// Queues an event of the detector after earlier ones: its trigger comes at its cycle, or, unless events are lost
    /// meanwhile, when the gateware is not busy; its samples come once the trigger is accepted. The gateware makes the
    /// message; see [`Board::set_events`].
    ///
    /// # Panics
    /// When there are more streams than inputs.
    pub fn detect(&mut self, event: DetectorEvent) {
        self.detector.push(event);
    }

    /// Has streams without end at the inputs from here on, and marks at the trigger input: see [`Board::set_streaming`].
    pub fn stream(&mut self, pieces: Pieces, marks: Option<Marks>) {
        self.stream = Some(StreamPort::new(self.lanes(), pieces, marks));
    }

    /// Whether a stream has begun of which nothing is left to be taken.
    pub fn is_stream_over(&self) -> bool {
        self.stream.as_ref().is_some_and(StreamPort::is_over)
    }

    /// The inputs belong to triggers again.
    pub fn end_stream(&mut self) {
        self.stream = None;
    }

    /// Whether the trigger system waits while the gateware is busy, or goes on and loses events: see
    /// [`Board::set_events`].
    pub(crate) fn honour_busy(&mut self, honours_busy: bool) {
        self.detector.honour_busy(honours_busy);
    }

    /// Triggers that the gateware has held up by more than `most` cycles are held until [`Board::shift_triggers`]: its
    /// clock can be set back by as much before, so that events keep their times.
    pub fn hold_late_triggers(&mut self, most: u64) {
        self.detector.hold_late(most);
    }

    /// The cycles by which the next trigger is late, if it is held for that and the gateware would take it.
    pub fn late_trigger(&self) -> Option<u64> {
        self.detector.late(self.cycle)
    }

    /// All triggers that have not come yet come so many cycles later.
    pub fn shift_triggers(&mut self, cycles: u64) {
        self.detector.shift(cycles);
    }

    /// Events that were lost since the last call, as their triggers came while the gateware was busy.
    pub fn take_lost_events(&mut self) -> usize {
        self.detector.take_lost()
    }

    /// Forgets the events whose triggers have not come, and gives their number; those of accepted triggers become
    /// empty.
    pub fn forget_events(&mut self) -> usize {
        self.detector.forget()
    }

    /// Resets the front end for a cycle, amid whatever goes on: neither the memory of its rings nor the digitisers, which
    /// go on with what they have begun. Its registers are those after power-up; messages and triggers that were handed
    /// to it are forgotten.
    pub fn reset(&mut self) {
        self.messages = MessagePort::new(self.lanes());
        self.detector.forget_all();
        self.pins.rst = 1;
        self.step();
        self.pins.rst = 0;
    }

    /// Resets one detector input and its digitiser, for a cycle: amid whatever goes on there. Gives the number of
    /// fragments that the digitiser has lost, one of which may be under way.
    ///
    /// # Panics
    /// When there is no such input.
    pub fn reset_input(&mut self, input: usize) -> usize {
        let lost = self.detector.reset(input);
        self.pins.event_rst = 1 << input;
        self.step();
        self.pins.event_rst = 0;
        lost
    }

    /// Messages posted, and events detected, whose data the gateware has not yet taken in full.
    pub fn pending_messages(&self) -> usize {
        self.messages.pending() + self.detector.pending() + usize::from(self.stream.is_some())
    }

    /// Messages of these whose data it has not taken in full, and events that are not triggered yet.
    pub fn waiting_messages(&self) -> usize {
        self.messages.pending() + self.detector.waiting()
    }

    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// The next sample of the sampling port, see [`Board::sample_rates`].
    pub fn poll_rates(&mut self) -> Option<RateSample> {
        self.rates.pop_front()
    }

    /// Queues a register read; [`Board::poll_register`] returns its answer under `tag`.
    pub fn queue_read(&mut self, address: u32, tag: u32) {
        self.registers.read(address, tag);
    }

    /// Queues a register write after the accesses already queued; [`Board::poll_register`] reports its end.
    pub fn queue_write(&mut self, address: u32, value: u32) {
        self.registers.write(address, value);
    }

    pub fn poll_register(&mut self) -> Option<Answer> {
        self.registers.poll_answer()
    }

    pub fn registers_idle(&self) -> bool {
        self.registers.is_idle()
    }

    /// Reads a register at once; the clock runs until it answers.
    pub fn read(&mut self, address: u32) -> Result<u32, RegisterError> {
        self.registers.read(address, 0);
        match self.await_answer(address)? {
            Answer::Read { value, .. } => Ok(value),
            _ => Err(RegisterError::Refused { address }),
        }
    }

    /// Writes a register at once; the clock runs until it is done.
    pub fn write(&mut self, address: u32, value: u32) -> Result<(), RegisterError> {
        self.registers.write(address, value);
        match self.await_answer(address)? {
            Answer::Write { .. } => Ok(()),
            _ => Err(RegisterError::Refused { address }),
        }
    }

    /// Runs the clock until the access that was requested last has ended; the answers of those queued before it stay.
    fn await_answer(&mut self, address: u32) -> Result<Answer, RegisterError> {
        const PATIENCE: u64 = 1000;
        for _ in 0..PATIENCE {
            self.step();
            if self.registers.is_idle() {
                return Ok(self.registers.take_latest().expect("an access that ended has an answer"));
            }
        }
        Err(RegisterError::NoAnswer { address, cycles: PATIENCE })
    }

    /// Runs the clock up to, not including, `cycle`.
    pub fn run_until(&mut self, cycle: u64) {
        while self.cycle < cycle {
            self.step();
        }
    }

    /// One clock cycle.
    fn step(&mut self) {
        if self.port.is_idle() && self.inbox.front().is_some_and(|(at, ..)| *at <= self.cycle) {
            let (_, frame, fcs_ok) = self.inbox.pop_front().expect("front was there");
            self.port.push(&frame, fcs_ok);
        }
        self.port.drive(&mut self.pins.line);
        self.messages.drive(&mut self.pins);
        match &mut self.stream {
            Some(stream) => stream.drive(self.cycle, &mut self.pins),
            None => self.detector.drive(self.cycle, &mut self.pins),
        }
        self.registers.drive(&mut self.pins.axil);
        if let Some(memory) = &self.memory {
            memory.drive(&mut self.pins.axi);
        }
        self.receive.drive(&mut self.pins.receive);

        self.model.cycle(&mut self.pins);

        self.outbox.extend(self.port.observe(self.cycle, &self.pins.line));
        self.messages.observe(&self.pins);
        match &mut self.stream {
            Some(stream) => stream.observe(&self.pins),
            None => self.detector.observe(&self.pins),
        }
        self.registers.observe(self.cycle, &mut self.pins.axil);
        if let Some(memory) = &mut self.memory {
            memory.observe(&self.pins.axi);
        }
        self.receive.observe(&self.pins.receive);
        if self.pins.cpl_tvalid != 0 {
            self.completions.push_back(Completion::from_bits(self.cycle, self.pins.cpl_tdata));
        }
        if self.pins.sample_tvalid != 0 {
            self.rates.push_back(RateSample::from_words(self.cycle, self.pins.sample_tdata));
        }
        self.paused_cycles += u64::from(self.pins.tx_paused);
        self.cycle += 1;
    }
}
