// SPDX-License-Identifier: Apache-2.0
//! A verilated board on a wire: the loop that runs the model in steps and moves frames, messages and samples between
//! them.
//! Promise: the caller owns the thread, calls [`LiveBoard::turn`] repeatedly, and may access the registers in between.
//! On a wire of simulated time every run is the same.
//! Source: AdvCam section VI (figure 8).

use super::pace::{Activity, Pace, PaceConfig, Step};
use super::stats::LiveStats;
use super::wire::{Sent, Wire, WireError, WireTime};
use crate::board::{Board, RegisterError};
use crate::config::{qp_register, regs, stream_register};
use crate::message::{Completion, Message};
use crate::port::Received;
use crate::rates::RateSample;
use crate::worker::{most_waiting, MessageSource};
use bytes::Bytes;
use penstock_netsim::{CaptureError, CaptureSink, EmulatedSwitch, Rate, Time};
use penstock_transport::{RdmaCmArrival, RdmaCmInbox, RdmaCmInboxCounters};
use penstock_wire::gateware::LineClock;
use penstock_wire::{wire_len, Ipv4Addr, RocePacket, GSI_QPN, UDP_PORT_ROCE};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Why a live board cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Register(#[from] RegisterError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// Cycles without a frame either way after which a board is checked more closely: 105 us. The longest IPbus packet,
/// 367 words at 16 bits, is answered within it; a board that fell idle in between would answer after half a second.
const QUIET_CYCLES: u64 = 16_384;
/// Frames that wait to enter the board; more stay on the wire, which then has to hold or drop them.
const INBOX_FRAMES: usize = 64;
/// The same while the wire has no room for what the board sends.
const INBOX_BLOCKED: usize = 4_096;

/// The interfaces of a capture: what the board sends, and what it receives.
struct Capture {
    sink: CaptureSink,
    sent: u32,
    received: u32,
}

/// Where frames without a VLAN tag have the port of UDP and the destination of the BTH.
const UDP_DPORT_AT: usize = 36;
const DEST_QPN_AT: usize = 47;

/// The processor beside a front end: it gets the packets to queue pair 1.
struct Beside {
    ip: Ipv4Addr,
    inbox: RdmaCmInbox,
}

impl Beside {
    /// Takes a frame, if it is for queue pair 1 of the board.
    fn takes(&mut self, frame: &Bytes) -> bool {
        let holds = |at: usize, bytes: &[u8]| frame.get(at..at + bytes.len()) == Some(bytes);
        if !holds(UDP_DPORT_AT, &UDP_PORT_ROCE.to_be_bytes())
            || !holds(DEST_QPN_AT, &GSI_QPN.value().to_be_bytes()[1..])
        {
            return false;
        }
        let packet = RocePacket::parse(frame).ok().filter(|packet| packet.ip_dst == self.ip);
        packet.map(|packet| self.inbox.push(&packet)).is_some()
    }
}

/// A board and its wire.
pub struct LiveBoard {
    board: Board,
    wire: Box<dyn Wire>,
    source: Option<Box<dyn MessageSource>>,
    switch: Option<EmulatedSwitch>,
    capture: Option<Capture>,
    beside: Option<Beside>,
    pace: Pace,
    n_qp: u8,
    n_streams: u8,
    /// Sent by the board and not yet taken by the wire.
    egress: VecDeque<(Time, Bytes)>,
    completions: VecDeque<Completion>,
    /// Cycle of the last frame either way.
    last_frame: u64,
    last_turn: Instant,
    stats: LiveStats,
}

impl LiveBoard {
    /// Plugs a board that is set up into a wire; its time begins now.
    ///
    /// # Errors
    /// The board has no number of its queue pairs, or does not set its clock.
    pub fn new(mut board: Board, wire: Box<dyn Wire>, pace: PaceConfig) -> Result<Self, LiveError> {
        use regs::global as g;
        use regs::tcp as t;
        let n_qp = g::BUILD_N_QP_BITS.of(board.read(g::BUILD)?);
        let n_streams = t::BUILD_N_STREAMS_BITS.of(board.read(t::BUILD)?);
        board.restart_time()?;
        let clock = board.clock();
        Ok(Self {
            board,
            wire,
            source: None,
            switch: None,
            capture: None,
            beside: None,
            pace: Pace::new(pace, clock),
            n_qp: n_qp as u8,
            n_streams: n_streams as u8,
            egress: VecDeque::new(),
            completions: VecDeque::new(),
            last_frame: 0,
            last_turn: Instant::now(),
            stats: LiveStats::default(),
        })
    }

    /// Has the board send the messages of `source`, each at its time.
    pub fn set_source(&mut self, source: Box<dyn MessageSource>) {
        self.source = Some(source);
    }

    /// Has it send no more of them. Those that the gateware has end; events of accepted triggers end without samples.
    pub fn clear_source(&mut self) {
        self.source = None;
        self.stats.messages.posted -= self.board.forget_events() as u64;
    }

    /// Resets the front end ([`Board::reset`]), which then has to be set up again. Messages under way get no completion.
    pub fn reset(&mut self) {
        self.collect();
        self.source = None;
        self.board.reset();
        let messages = &mut self.stats.messages;
        messages.posted = messages.ok + messages.failed();
    }

    /// Puts an emulated switch between board and wire.
    pub fn set_switch(&mut self, switch: EmulatedSwitch) {
        self.switch = Some(switch);
    }

    /// Captures both directions of the board's port, in the board's time.
    pub fn set_capture(&mut self, mut sink: CaptureSink) {
        let line = Rate::from_gbps(10);
        let (sent, received) = (sink.add_interface("board sends", line), sink.add_interface("board receives", line));
        self.capture = Some(Capture { sink, sent, received });
    }

    /// Gives messages to queue pair 1 of `ip`, the board's address, to the caller ([`Self::poll_management`]) instead of
    /// the front end, which drops them.
    pub fn set_management(&mut self, ip: Ipv4Addr) {
        self.beside = Some(Beside { ip, inbox: RdmaCmInbox::new(Vec::new()) });
    }

    /// The next message to queue pair 1.
    pub fn poll_management(&mut self) -> Option<RdmaCmArrival> {
        self.beside.as_mut().and_then(|beside| beside.inbox.pop())
    }

    /// Counts of the packets to queue pair 1.
    pub fn management_counters(&self) -> RdmaCmInboxCounters {
        self.beside.as_ref().map_or_else(Default::default, |beside| *beside.inbox.counters())
    }

    /// Sends a packet that the front end has not made, after those that wait for the wire.
    pub fn send_beside(&mut self, packet: &RocePacket) {
        self.egress.push_back((self.now(), packet.emit()));
    }

    /// One turn: frames in, a piece of the model's time or a sleep of at most `longest`, frames out.
    ///
    /// # Errors
    /// The wire is broken.
    pub fn turn(&mut self, longest: Duration) -> Result<Activity, LiveError> {
        let elapsed = self.last_turn.elapsed();
        self.last_turn = Instant::now();
        if !self.flush()? {
            // The wire is full: the clock stops until it has room. Arriving frames are taken meanwhile, or two ends
            // that each wait for the other would wait for ever.
            self.take_in(INBOX_BLOCKED)?;
            self.wire.wait(longest, true)?;
            self.stats.blocked += self.last_turn.elapsed();
            self.last_turn = Instant::now();
            return Ok(Activity::Waiting);
        }
        self.take_in(INBOX_FRAMES)?;
        self.post_due();
        let activity = self.activity()?;
        let simulated = self.wire.time() != WireTime::Wall;
        let step = if simulated { Activity::Running } else { activity };
        match self.pace.step(step, elapsed) {
            Step::Run(cycles) => self.run(cycles, step),
            Step::Sleep(time) => {
                self.wire.wait(time.min(longest), false)?;
                self.stats.slept += self.last_turn.elapsed();
            }
        }
        self.flush()?;
        Ok(activity)
    }

    /// The activity of the board.
    fn activity(&mut self) -> Result<Activity, LiveError> {
        use regs::{connection as c, qp as q, source as s, stream as t};
        let now = self.board.cycle();
        let moving = self.board.waiting_frames() > 0 || self.board.pending_messages() > 0;
        let later = self.source.as_ref().is_some_and(|source| source.next_time().is_some());
        let messages = &self.stats.messages;
        let open = messages.ok + messages.failed() < messages.posted;
        let arriving = matches!(self.wire.time(), WireTime::Simulated(Some(_)));
        if now < self.last_frame + QUIET_CYCLES {
            return Ok(Activity::Running);
        }
        let (mut unsent, mut unacknowledged) = (false, false);
        for index in 0..self.n_qp {
            let [una, next, write] =
                [q::UNA_PSN, q::NXT_PSN, q::WR_PSN].map(|at| self.board.read(qp_register(index, at)));
            let (next, una, write) = (next?, una?, write?);
            // Where a queue pair that has failed or was closed stood says nothing.
            if (next != una || next != write) && is_live(self.board.read(qp_register(index, q::STATE))?) {
                unsent |= write != next;
                unacknowledged |= una != next;
            }
        }
        let mut opening = false;
        for index in 0..self.n_streams {
            let state = self.board.read(stream_register(index, t::STATE))?;
            opening |= t::STATE_OPENING_BITS.of(state) != 0 || t::STATE_BITS.of(state) == SYN_SENT;
            if self.board.read(stream_register(index, t::RING_FILL))? != 0 {
                let [next, written, window] =
                    [t::NXT, t::WRITTEN, t::WINDOW].map(|at| self.board.read(stream_register(index, at)));
                unacknowledged = true;
                // What the window or Nagle's algorithm holds waits for the peer, too.
                unsent |= next? != written? && window? != 0;
            }
        }
        let running = s::STATUS_RUNNING_BITS.of(self.board.read(s::STATUS)?) != 0;
        opening |= c::STATUS_BUSY_BITS.of(self.board.read(c::STATUS)?) != 0;
        Ok(match () {
            () if unsent || arriving => Activity::Running,
            () if unacknowledged || opening => Activity::Waiting,
            // What is neither sent nor still to come is inside the gateware.
            () if running || moving || later || open => Activity::Running,
            () => Activity::Idle,
        })
    }

    /// Frames that have arrived, as long as fewer than `most` wait to enter the board.
    fn take_in(&mut self, most: usize) -> Result<(), LiveError> {
        let now = self.board.cycle();
        while self.board.waiting_frames() < most {
            let Some(frame) = self.wire.receive(self.board.clock().time(now))? else { break };
            if !self.beside.as_mut().is_some_and(|beside| beside.takes(&frame)) {
                self.enter(now, frame);
            }
        }
        Ok(())
    }

    /// A frame begins to enter the board, or waits its turn.
    fn enter(&mut self, now: u64, frame: Bytes) {
        if let Some(switch) = &mut self.switch {
            switch.on_reply(&frame);
        }
        if let Some(capture) = &mut self.capture {
            let at = self.board.clock().time(now);
            capture.sink.record(capture.received, at, at, frame.clone());
        }
        self.stats.rx_frames += 1;
        self.stats.rx_bytes += frame.len() as u64;
        // The services work on 16 bits a cycle: for an echo it is read, checked and sent again.
        self.last_frame = now + frame.len() as u64 * 3 / 2;
        self.board.receive(now, frame, true);
    }

    /// Passes on the messages that are due.
    fn post_due(&mut self) {
        let now = self.now();
        let Some(source) = &mut self.source else { return };
        let most = most_waiting(&**source);
        while self.board.waiting_messages() < most && source.is_due(now) {
            let Some(feed) = source.take(now) else { break };
            self.stats.messages.posted += 1;
            feed.into_board(&mut self.board);
        }
    }

    fn run(&mut self, cycles: u64, activity: Activity) {
        let (begun, first) = (Instant::now(), self.board.cycle());
        self.board.run_until(first + cycles);
        self.stats.ran(activity, self.board.cycle() - first, begun.elapsed());
        self.collect();
    }

    /// Takes what the board has made since the last look.
    fn collect(&mut self) {
        let lost = self.board.take_lost_events() as u64;
        self.stats.messages.posted -= lost;
        self.stats.lost_events += lost;
        while let Some(sent) = self.board.poll_transmit() {
            self.leave(sent);
        }
        while let Some(completion) = self.board.poll_completion() {
            self.stats.messages.add(self.board.clock(), completion);
            self.completions.push_back(completion);
        }
    }

    /// A frame has left the board: through the emulated switch, if there is one, to the wire.
    fn leave(&mut self, sent: Received) {
        let octets = wire_len(sent.frame.len()) as u64;
        let end = self.board.clock().octet * (sent.start_octet + octets);
        self.last_frame = self.last_frame.max(self.board.cycle());
        self.stats.tx_frames += 1;
        self.stats.tx_bytes += sent.frame.len() as u64;
        self.stats.tx_octets += octets;
        if !sent.fcs_ok {
            self.stats.tx_bad_fcs += 1; // a switch drops it
            return;
        }
        if let Some(capture) = &mut self.capture {
            capture.sink.record(capture.sent, end, end, sent.frame.clone());
        }
        if let Some(switch) = &mut self.switch {
            if let Some(notification) = switch.on_frame(self.board.clock().octet * sent.start_octet, &sent.frame) {
                self.enter(self.board.cycle(), notification);
            }
        }
        self.egress.push_back((end, sent.frame));
    }

    /// Gives the wire what waits for it; whether all of it has gone.
    fn flush(&mut self) -> Result<bool, LiveError> {
        while let Some((at, frame)) = self.egress.front() {
            match self.wire.send(*at, frame)? {
                Sent::Full => return Ok(false),
                Sent::Lost => self.stats.lost_frames += 1,
                Sent::Done => {}
            }
            self.egress.pop_front();
        }
        Ok(true)
    }

    /// Posts a message after those of the source.
    pub fn post(&mut self, message: Message) {
        self.stats.messages.posted += 1;
        self.board.post(message);
    }

    /// The next message that has ended.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// The next sample of the sampling port, once [`LiveBoard::sample_rates`] has been called.
    pub fn poll_rates(&mut self) -> Option<RateSample> {
        self.board.poll_rates()
    }

    /// See [`Board::sample_rates`].
    ///
    /// # Errors
    /// The board refuses.
    pub fn sample_rates(&mut self, first: u8, last: u8, interval_cycles: u32) -> Result<(), RegisterError> {
        self.board.sample_rates(first, last, interval_cycles)
    }

    /// Reads a register; the clock runs for it.
    ///
    /// # Errors
    /// There is no such register.
    pub fn read(&mut self, address: u32) -> Result<u32, RegisterError> {
        self.board.read(address)
    }

    /// Writes a register; the clock runs for it.
    ///
    /// # Errors
    /// There is no such register, or it is read-only.
    pub fn write(&mut self, address: u32, value: u32) -> Result<(), RegisterError> {
        self.board.write(address, value)
    }

    /// The board, for set-up by its own methods ([`Board::set_dcqcn`], [`Board::open_qp`]).
    pub fn board(&mut self) -> &mut Board {
        &mut self.board
    }

    /// Queue pairs of the build.
    pub fn queue_pairs(&self) -> u8 {
        self.n_qp
    }

    /// TCP streams of the build.
    pub fn streams(&self) -> u8 {
        self.n_streams
    }

    /// The time base of the wire, and its pending frames.
    pub fn wire_time(&self) -> WireTime {
        self.wire.time()
    }

    pub fn switch(&self) -> Option<&EmulatedSwitch> {
        self.switch.as_ref()
    }

    pub fn switch_mut(&mut self) -> Option<&mut EmulatedSwitch> {
        self.switch.as_mut()
    }

    /// Clock cycles since the board was plugged in.
    pub fn cycle(&self) -> u64 {
        self.board.cycle()
    }

    /// The clock of the board.
    pub fn clock(&self) -> LineClock {
        self.board.clock()
    }

    /// The board's time.
    pub fn now(&self) -> Time {
        self.board.clock().time(self.board.cycle())
    }

    pub fn stats(&self) -> &LiveStats {
        &self.stats
    }

    /// The source has no more messages, and every message has ended.
    pub fn is_done(&self) -> bool {
        let messages = &self.stats.messages;
        let over = self.source.as_ref().is_none_or(|source| source.next_time().is_none());
        over && messages.ok + messages.failed() >= messages.posted
    }

    /// Closes the capture; gives the number of frames in it.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish_capture(&mut self) -> Result<Option<u64>, LiveError> {
        Ok(self.capture.take().map(|capture| capture.sink.finish()).transpose()?)
    }
}

/// `stream.state`: a SYN is sent.
const SYN_SENT: u32 = 1;

/// Whether a queue pair in this state, as its register shows it, sends and hears its peer.
fn is_live(state: u32) -> bool {
    const READY_TO_SEND: u32 = 3;
    const DRAINING: u32 = 4;
    matches!(regs::qp::STATE_BITS.of(state), READY_TO_SEND | DRAINING)
}
