// SPDX-License-Identifier: Apache-2.0
//! A readout session: a back end, the connection manager and the receiver, driven by one loop.
//! Promise: boards that fail, or a server that was killed, come back without a hand at the board; every board that is
//! not up has a sentence that says why. A ring that is full stalls its board and nothing else.
//! The loop is `step`, the only place that reads the clock.

mod board;
mod core;
mod first_event;
mod pool;
mod report;
mod sockets;

use std::num::NonZeroU64;

use penstock_transport::{CmListener, CmOpenerConfig, Mtu};
use penstock_wire::{CmMessage, Ipv4Addr, RnrTimer};

pub use board::{BoardSpec, BoardState, Opens, Remembered};
pub use pool::PoolSize;
pub use report::{BoardReport, SessionReport, IN_ERROR};

use crate::backend::{Backend, BackendError, PollMode, QpSpec, SessionClock};
use crate::sys::{thread_cpu_time, Pages, RingMemory};
use crate::{
    BuilderConfig, EventSink, MemoryError, Pattern, Receiver, ReceiverConfig, ReceiverError, Reference, RingConfig,
    Share, ShareError, StoreError,
};
use board::Board;
use core::Core;
use first_event::FirstEvent;
use pool::Pool;
use sockets::CmSockets;

const PS_PER_MS: u64 = 1_000_000_000;

/// What a session is made of.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Board `i` is source `i` of the event builder.
    pub boards: Vec<BoardSpec>,
    /// Slots of each board's ring, and bytes of a slot.
    pub slots: u32,
    pub slot_bytes: u32,
    /// Boards SEND into one pool, and have no rings: memory for what is under way and not for what might be.
    pub pool: Option<PoolSize>,
    pub pages: Pages,
    /// `sources` is set to the number of boards, `window` to at least the slots.
    pub builder: BuilderConfig,
    /// The first event is the first that any board sends, and not that of `builder`: for a run that is under way.
    pub find_first_event: bool,
    /// This server's part of the events, as announced until now; none: all events are its own.
    pub shares: Vec<Share>,
    pub consumer_bytes_per_s: Option<NonZeroU64>,
    pub poll: PollMode,
    pub mtu: Mtu,
    /// Wait that our RNR NAKs ask for.
    pub rnr_timer: RnrTimer,
    pub cm: CmOpenerConfig,
    /// Wait before a board that failed is opened again, ps.
    pub reopen_ps: u64,
    /// How long events wait for a board that has not come up yet, ps; one that was up is waited for as long as an event.
    pub bring_up_ps: u64,
    /// How long boards must have been silent at the end, ps: the last acknowledgement may be lost, and a board asks for
    /// it again when its ACK timer expires.
    pub linger_ps: u64,
}

impl Default for SessionConfig {
    /// No boards; rings of 64 slots of 128 KiB, hybrid polling, MTU 4096, RNR after 0.64 ms, boards opened every second,
    /// waited for during 5 s, and 0.3 s of silence at the end (ACK timers of 268 ms, code 16).
    fn default() -> Self {
        let RingConfig { slots, slot_bytes, .. } = RingConfig::default();
        SessionConfig {
            boards: Vec::new(),
            slots,
            slot_bytes,
            pool: None,
            pages: Pages::Normal,
            builder: BuilderConfig::default(),
            find_first_event: true,
            shares: Vec::new(),
            consumer_bytes_per_s: None,
            poll: PollMode::default(),
            mtu: Mtu::B4096,
            rnr_timer: RnrTimer::from_code(12),
            cm: CmOpenerConfig::default(),
            reopen_ps: 1000 * PS_PER_MS,
            bring_up_ps: 5000 * PS_PER_MS,
            linger_ps: 300 * PS_PER_MS,
        }
    }
}

/// Why a session cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("a session needs 1 to 65535 boards, not {0}")]
    Boards(usize),
    #[error("board {board}: {source}")]
    Memory { board: String, source: MemoryError },
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    #[error(transparent)]
    Share(#[from] ShareError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("UDP port {port} of {ip}: {source}; {}", port_hint(source))]
    Port { ip: Ipv4Addr, port: u16, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What to do about a port that cannot be had.
fn port_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "another receiver has it: `ss -ulnp`",
        std::io::ErrorKind::AddrNotAvailable => "this machine has no such address: `ip addr`",
        _ if error.raw_os_error() == Some(libc::EMFILE) => "the process may open no more files: `ulimit -n 1024`",
        _ => "is the interface up?",
    }
}

/// A session under way.
pub struct Session<S> {
    core: Core<S>,
    listener: CmListener,
    sockets: CmSockets,
    poll: PollMode,
    linger_ps: u64,
    /// When the sockets of the connection manager are looked at next.
    cm_due_ps: u64,
    /// None: each board has a ring.
    pool: Option<Pool>,
    cpu_at_start: std::time::Duration,
}

impl<S: EventSink> Session<S> {
    /// Makes rings and queue pairs and begins to open the boards. `backend` was made with `clock`.
    ///
    /// # Errors
    /// [`SessionError`], with what to do.
    pub fn new(
        config: SessionConfig,
        mut backend: Box<dyn Backend>,
        clock: SessionClock,
        sink: S,
    ) -> Result<Session<S>, SessionError> {
        let count = u16::try_from(config.boards.len()).ok().and_then(std::num::NonZeroU16::new);
        let sources = count.ok_or(SessionError::Boards(config.boards.len()))?;
        let slots = config.pool.map_or(config.slots, |pool| pool.slots);
        let shape = RingConfig { slots, slot_bytes: config.slot_bytes, ..RingConfig::default() };
        let (mut rings, mut memories, mut boards, mut specs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let shared = config.pool.is_some();
        // What is copied out of a pool is copied on the host.
        backend.want_payloads(sink.wants_payloads() || shared);
        let mut pool = None;
        if let Some(size) = config.pool {
            let (ring, memory, made) = Pool::make(&mut *backend, shape, config.pages, size.copies, sources)?;
            rings.push(ring);
            memories.push(memory);
            pool = Some(made);
        }
        for (spec, board) in config.boards.into_iter().zip(0..) {
            if !shared {
                let memory = RingMemory::allocate(shape.len(), config.pages);
                memories.push(memory.map_err(|source| SessionError::Memory { board: spec.name.clone(), source })?);
            }
            let memory = memories[memories.len() - 1].mapping().clone();
            let qp = QpSpec { board, memory, len: shape.len(), max_receives: shape.slots };
            let local = backend.create_qp(&qp)?;
            if !shared {
                rings.push(RingConfig { va: local.base, rkey: local.rkey, ..shape });
            }
            specs.push(qp);
            boards.push(Board::new(spec, config.cm, local));
        }
        let window = config.builder.window.max(shape.slots as usize);
        let first_event = FirstEvent::new(boards.len(), config.builder.timeout_ps);
        let first_event = config.find_first_event.then_some(first_event);
        let first_number = config.builder.first_event;
        let builder = BuilderConfig { sources, window, ..config.builder };
        let receiver_config = ReceiverConfig { rings, builder, consumer_bytes_per_s: config.consumer_bytes_per_s };
        let mut receiver = match &pool {
            Some(pool) => Receiver::with_pool(receiver_config, pool.config, memories.remove(0), sink)?,
            None => Receiver::with_memories(receiver_config, memories, sink)?,
        };
        config.shares.into_iter().try_for_each(|share| receiver.change_share(share))?;
        receiver.begin_at(first_number);
        let sockets = CmSockets::bind(backend.address().ip)?;
        let listener = CmListener::new(boards.len());
        let (mtu, rnr_timer, reopen_ps) = (config.mtu, config.rnr_timer, config.reopen_ps);
        let now_ps = clock.now_ps();
        let core = Core {
            backend,
            receiver,
            boards,
            memory: specs,
            clock,
            now_ps,
            mtu,
            rnr_timer,
            reopen_ps,
            bring_up_ps: config.bring_up_ps,
            shared,
            ending: false,
            completions: Vec::new(),
            first_event,
            first_ps: None,
            last_ps: 0,
        };
        Ok(Session {
            core,
            listener,
            sockets,
            poll: config.poll,
            linger_ps: config.linger_ps,
            cm_due_ps: 0,
            pool,
            cpu_at_start: thread_cpu_time(),
        })
    }

    /// Compares every fragment with `reference` before it is stored.
    #[must_use]
    pub fn with_reference(mut self, reference: impl Reference + Send + 'static) -> Self {
        self.core.backend.want_payloads(true);
        self.core.receiver = self.core.receiver.with_reference(reference);
        self
    }

    /// Compares payloads with a test pattern; `bare` messages are nothing but the pattern, and there are no events.
    #[must_use]
    pub fn with_pattern(mut self, pattern: Pattern, bare: bool) -> Self {
        self.core.backend.want_payloads(true);
        self.core.receiver = match bare {
            true => self.core.receiver.with_bare_pattern(pattern),
            false => self.core.receiver.with_pattern(pattern),
        };
        if bare {
            self.core.first_event = None;
        }
        self
    }

    /// Connections of an earlier session on this address that was killed: their boards are told that they are over
    /// before they are opened again. Those of boards that are not in this session are left alone.
    pub fn forget_earlier(&mut self, earlier: &[Remembered]) {
        for old in earlier {
            let same = |b: &&mut Board| b.spec.ip == old.peer.ip && b.opens() == Opens::We && b.is_waiting();
            if let Some(board) = self.core.boards.iter_mut().find(same) {
                board.close_earlier(self.core.now_ps, old);
            }
        }
    }

    /// One turn: connections, messages, events. Returns after at most `limit_ps`.
    ///
    /// # Errors
    /// The device, the sockets or the sink fail for good.
    pub fn step(&mut self, limit_ps: u64) -> Result<(), SessionError> {
        let core = &mut self.core;
        core.now_ps = core.clock.now_ps();
        if core.now_ps >= self.cm_due_ps {
            self.connections()?;
        }
        let core = &mut self.core;
        let due = core.receiver.poll_timeout().unwrap_or(u64::MAX);
        let due = due.min(core.first_event.as_ref().map_or(u64::MAX, FirstEvent::due_ps));
        let deadline = due.min(self.cm_due_ps).min(core.now_ps.saturating_add(limit_ps));
        // What a queue pair that was closed has left is here already.
        let deadline = if core.completions.is_empty() { deadline } else { 0 };
        core.backend.poll(&mut core.receiver, self.poll, deadline, &mut core.completions)?;
        core.now_ps = core.clock.now_ps();
        let failed = core.deliver()?;
        core.receiver.handle_timeout(core.now_ps)?;
        core.post_receives()?;
        if failed {
            self.cm_due_ps = 0; // a queue pair is in error: look after it at once
        }
        Ok(())
    }

    /// The destination table changes at an announced event. A session that has begun with [`SessionConfig::shares`] goes on
    /// so from there.
    ///
    /// # Errors
    /// [`ShareError`] if events that have begun would move, or changes are not announced in order.
    pub fn change_share(&mut self, share: Share) -> Result<(), ShareError> {
        self.core.receiver.change_share(share)
    }

    /// The run has so many events; boards that have sent theirs get no more credits.
    pub fn end_after(&mut self, events: u64) {
        self.core.receiver.end_after(events);
    }

    /// The run ends with the last event that has begun: step on until [`Self::is_over`].
    ///
    /// # Errors
    /// Those of the sink.
    pub fn end_now(&mut self) -> Result<(), SessionError> {
        self.core.end_search()?;
        self.core.receiver.end_now();
        Ok(())
    }

    /// The run has an end, and all its events are stored.
    pub fn is_over(&self) -> bool {
        self.core.receiver.is_over()
    }

    /// The run is over: waits for boards that have not heard the last acknowledgement, closes the queue pairs, for at
    /// most `limit_ps` each, and stores what is there.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(&mut self, limit_ps: u64) -> Result<(), SessionError> {
        self.linger(limit_ps)?;
        let end = self.core.clock.now_ps().saturating_add(limit_ps);
        self.core.now_ps = self.core.clock.now_ps();
        let now_ps = self.core.now_ps;
        self.core.boards.iter_mut().for_each(|board| board.end(now_ps));
        while self.core.boards.iter().any(Board::is_ending) && self.core.now_ps < end {
            self.cm_due_ps = 0;
            self.step(PS_PER_MS)?;
        }
        let core = &mut self.core;
        for board in 0..core.boards.len() {
            core.backend.close_qp(board as u16, &mut core.completions)?;
        }
        core.deliver()?;
        core.end_search()?;
        core.receiver.finish(core.now_ps)?;
        Ok(())
    }

    /// The back end has failed for good: stores what is there, as incomplete events where need be.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn store_rest(&mut self) -> Result<(), SessionError> {
        self.core.end_search()?;
        self.core.receiver.finish(self.core.now_ps)?;
        Ok(())
    }

    /// Goes on answering until nobody has asked again for a while. Boards that go on with new messages are not waited
    /// for: they have heard of the ones before.
    fn linger(&mut self, limit_ps: u64) -> Result<(), SessionError> {
        let begun = self.core.clock.now_ps();
        let messages: Vec<u64> = self.core.boards.iter().map(|board| board.messages).collect();
        let (mut asked, mut silent_since) = (self.core.asked_again(), begun);
        self.core.ending = true;
        loop {
            let now = self.core.clock.now_ps();
            let rests = |(board, before): (&Board, &u64)| board.is_up() && board.messages == *before;
            let waits = self.core.boards.iter().zip(&messages).any(rests);
            if !waits || now >= silent_since + self.linger_ps || now >= begun + limit_ps {
                return Ok(());
            }
            self.step(PS_PER_MS)?;
            let still = self.core.asked_again();
            if still != asked {
                (asked, silent_since) = (still, now);
            }
        }
    }

    /// Connections to be told of to the next session, should this one be killed.
    pub fn remembered(&self) -> Vec<Remembered> {
        self.core.boards.iter().filter_map(Board::remembered).collect()
    }

    /// Boards that may send.
    pub fn boards_up(&self) -> usize {
        self.core.boards.iter().filter(|board| board.is_up()).count()
    }

    /// Events stored so far, complete or not.
    pub fn events_stored(&self) -> u64 {
        self.core.receiver.events_stored()
    }

    /// Time since the clock was started.
    pub fn now_ps(&self) -> u64 {
        self.core.now_ps
    }

    /// The receiver and what it stores in.
    pub fn receiver(&self) -> &Receiver<S> {
        &self.core.receiver
    }

    /// Everything that can be told.
    pub fn report(&mut self) -> SessionReport {
        let cpu = thread_cpu_time().saturating_sub(self.cpu_at_start);
        report::of(&mut self.core, self.pool.as_ref(), self.poll, cpu, *self.listener.counters())
    }

    /// Takes and sends what the connection manager has, and looks after queue pairs in error.
    fn connections(&mut self) -> Result<(), SessionError> {
        while let Some((from, message, at)) = self.sockets.receive() {
            self.message(from, &message, at);
        }
        let core = &mut self.core;
        let now_ps = core.now_ps;
        let mut all_up = true;
        for i in 0..core.boards.len() {
            if let Some(event) = core.boards[i].opener.handle_timeout(now_ps) {
                core.event(i, event, &mut self.listener);
            }
            core.look_after(i, &mut self.listener)?;
            let board = &mut core.boards[i];
            while let Some(request) = board.opener.poll_transmit() {
                board.asked(&request, self.sockets.ask(board.spec.ip, &request));
            }
            all_up &= board.is_up();
        }
        if let Some(pool) = &mut self.pool {
            pool.listen(core);
        }
        self.cm_due_ps = now_ps + if all_up { 20 * PS_PER_MS } else { 2 * PS_PER_MS };
        Ok(())
    }

    fn message(&mut self, from: Ipv4Addr, message: &CmMessage, at: sockets::Port) {
        let core = &mut self.core;
        if message.answer.is_none() {
            if at == sockets::Port::Request {
                if let Some(reply) = self.listener.handle_message(from, message, core) {
                    self.sockets.answer(from, message.reply_port(), &reply);
                }
            }
            return;
        }
        for i in 0..core.boards.len() {
            if let Some(event) = core.boards[i].opener.handle_message(core.now_ps, from, message) {
                core.event(i, event, &mut self.listener);
            }
        }
    }
}
