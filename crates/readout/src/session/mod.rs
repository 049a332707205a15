// SPDX-License-Identifier: Apache-2.0
//! A readout session: a back end, the connection manager and the receiver, driven by one loop.
//! Promise: after a failure of a board or of the server, connections recover without manual action at the board; every
//! board that is not up has a message with the reason. A full ring stalls only its board.
//! The loop is `step`, the only place that reads the clock.

mod board;
mod config;
mod core;
mod error;
mod exchange_port;
mod first_event;
#[cfg(feature = "verbs")]
mod kernel_port;
mod listening;
mod pool;
mod rdma_port;
mod report;
mod rings;
mod sockets;

use std::collections::BTreeMap;

use penstock_transport::{CmListener, CmListenerConfig};
use penstock_units::Time;
use penstock_wire::{CmMessage, Ipv4Addr};

pub use board::{BoardSpec, BoardState, Opens, Remembered, IN_ERROR};
pub use config::{Manager, SessionConfig};
pub use error::SessionError;
pub use pool::PoolSize;
pub use report::{BoardReport, SessionReport};
pub use sockets::CmPort;

use crate::backend::{Backend, PollMode, SessionClock};
use crate::builder::{BuilderConfig, Share, ShareError};
use crate::check::Reference;
use crate::pattern::Pattern;
use crate::receiver::{Receiver, ReceiverConfig};
use crate::ring::RingConfig;
use crate::sink::EventSink;
use crate::sys::thread_cpu_time;
use board::Board;
use core::Core;
use exchange_port::ExchangePort;
use first_event::{FirstEvent, Patience};
#[cfg(feature = "verbs")]
use kernel_port::KernelPort;
use pool::Pool;
use rdma_port::RdmaPort;
use rings::Rings;
use sockets::{CmSocket, NoPort};

/// Strangers' messages that are answered in one turn.
const COURTESY: u32 = 4;

/// Boards answer the end of their streams at once, unless they cannot be reached.
const STREAMS: Time = Time::from_ms(500);

/// Time between two looks at the connection manager while something is awaited.
const SOON: Time = Time::from_ms(2);

/// How often a board whose last ACK was lost may repeat its packets before its queue pair is closed, and for how long at
/// most.
const REPEATS: u64 = 4;
const REPEATING: Time = Time::from_s(5);

/// A session under way.
pub struct Session<S> {
    core: Core<S>,
    listener: CmListener,
    socket: Box<dyn CmPort>,
    /// Boards by their address: only their messages are accepted.
    by_ip: BTreeMap<Ipv4Addr, Vec<usize>>,
    /// Messages of others, and how many of them are still answered in this turn.
    strangers: u64,
    courtesy: u32,
    poll: PollMode,
    linger: Time,
    /// When the socket of the connection manager is looked at next.
    cm_due: Time,
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
        let socket: Box<dyn CmPort> = match config.manager {
            #[cfg(feature = "verbs")]
            Manager::Rdma(port) if backend.has_kernel_manager() => {
                Box::new(KernelPort::open(&*backend, port, &config)?)
            }
            Manager::Rdma(port) => Box::new(RdmaPort::open(&mut *backend, port, &config)?),
            Manager::Exchange(port) => Box::new(ExchangePort::open(backend.address(), port, &config)?),
            Manager::Feroce if backend.connects_itself() => Box::new(NoPort),
            Manager::Feroce => Box::new(CmSocket::bind(backend.address().ip)?),
        };
        Session::with_port(config, backend, socket, clock, sink)
    }

    /// The same with messages of the connection manager by another way than a UDP socket.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_port(
        mut config: SessionConfig,
        mut backend: Box<dyn Backend>,
        socket: Box<dyn CmPort>,
        clock: SessionClock,
        sink: S,
    ) -> Result<Session<S>, SessionError> {
        let count = u16::try_from(config.boards.len()).ok().and_then(std::num::NonZeroU16::new);
        let sources = count.ok_or(SessionError::Boards(config.boards.len()))?;
        let slots = config.pool.map_or(config.slots, |pool| pool.slots);
        let shape = RingConfig { slots, slot_bytes: config.slot_bytes, ..RingConfig::default() };
        let mut by_ip = BTreeMap::<Ipv4Addr, Vec<usize>>::new();
        config.boards.iter().enumerate().for_each(|(i, board)| by_ip.entry(board.ip).or_default().push(i));
        let shared = config.pool.is_some();
        // What is copied out of a pool is copied on the host.
        backend.fetch_payloads(sink.needs_payloads() || shared);
        let Rings { rings, mut memories, boards, specs, pool } =
            Rings::make(&mut *backend, shape, &mut config, sources)?;
        let window = config.builder.window.max(shape.slots as usize);
        let first_event = config.find_first_event.then(|| search(&config, boards.len(), window));
        let first_number = config.builder.first_event;
        let builder = BuilderConfig { sources, window, ..config.builder };
        let receiver_config = ReceiverConfig { rings, builder, consumer_rate: config.consumer_rate };
        let mut receiver = match &pool {
            Some(pool) => Receiver::with_pool(receiver_config, pool.config, memories.remove(0), sink)?,
            None => Receiver::with_memories(receiver_config, memories, sink)?,
        };
        config.shares.into_iter().try_for_each(|share| receiver.change_share(share))?;
        receiver.begin_at(first_number);
        if first_event.is_some() {
            receiver.search();
        }
        let listener =
            CmListener::new(CmListenerConfig { half_open: config.half_open, ..CmListenerConfig::new(boards.len()) });
        let (mtu, rnr_timer, reopen) = (config.mtu, config.rnr_timer, config.reopen);
        let now = clock.now();
        let core = Core {
            backend,
            receiver,
            boards,
            memory: specs,
            clock,
            now,
            mtu,
            rnr_timer,
            reopen,
            bring_up: config.bring_up,
            shared,
            ending: false,
            completions: Vec::new(),
            first_event,
            first_at: None,
            last_at: Time::ZERO,
        };
        Ok(Session {
            core,
            listener,
            socket,
            by_ip,
            strangers: 0,
            courtesy: COURTESY,
            poll: config.poll,
            linger: config.linger,
            cm_due: Time::ZERO,
            pool,
            cpu_at_start: thread_cpu_time(),
        })
    }

    /// Compares every fragment with `reference` before it is stored.
    #[must_use]
    pub fn with_reference(mut self, reference: impl Reference + Send + 'static) -> Self {
        self.core.backend.fetch_payloads(true);
        self.core.receiver = self.core.receiver.with_reference(reference);
        self
    }

    /// Compares payloads with a test pattern; `bare` messages are nothing but the pattern, and there are no events.
    #[must_use]
    pub fn with_pattern(mut self, pattern: Pattern, bare: bool) -> Self {
        self.core.backend.fetch_payloads(true);
        self.core.receiver = match bare {
            true => self.core.receiver.with_bare_pattern(pattern),
            false => self.core.receiver.with_pattern(pattern),
        };
        if bare {
            self.core.first_event = None;
            self.core.receiver.begin_at(0);
        }
        self
    }

    /// Connections of an earlier session on this address that was killed: their boards get an answer that they are over
    /// before they are opened again. Those of boards that are not in this session are left alone.
    pub fn forget_earlier(&mut self, earlier: &[Remembered]) {
        for old in earlier {
            let same = |b: &&mut Board| b.spec.ip == old.peer.ip && b.opens() == Opens::We && b.is_waiting();
            if let Some(board) = self.core.boards.iter_mut().find(same) {
                board.close_earlier(self.core.now, old);
            }
        }
    }

    /// One turn: connections, messages, events. Returns after at most `limit`.
    ///
    /// # Errors
    /// The device, the sockets or the sink fail for good.
    pub fn step(&mut self, limit: Time) -> Result<(), SessionError> {
        let core = &mut self.core;
        core.advance(core.now);
        if core.now >= self.cm_due {
            self.connections()?;
        }
        let core = &mut self.core;
        let due = core.receiver.poll_timeout().unwrap_or(Time::MAX);
        let due = due.min(core.first_event.as_ref().map_or(Time::MAX, FirstEvent::due));
        let deadline = due.min(self.cm_due).min(core.now.saturating_add(limit));
        // What a queue pair that was closed has left is here already.
        let deadline = if core.completions.is_empty() { deadline } else { Time::ZERO };
        core.backend.poll(&mut core.receiver, self.poll, deadline, &mut core.completions)?;
        core.advance(deadline.max(core.now));
        let failed = core.deliver()?;
        while let Some((board, change)) = core.backend.poll_link() {
            core.link_changed(board, change);
        }
        core.receiver.handle_timeout(core.now)?;
        core.note_standings();
        core.post_receives()?;
        if failed {
            self.cm_due = Time::ZERO; // a queue pair is in error: look after it at once
        } else if !core.receiver.suspects().is_empty() {
            self.cm_due = self.cm_due.min(core.now + SOON); // events wait for an answer
        }
        Ok(())
    }

    /// The destination table changes at an announced event. A session that has begun with [`SessionConfig::shares`]
    /// goes on so from there.
    ///
    /// # Errors
    /// [`ShareError`] if events that have begun would move, or changes are not announced in order.
    pub fn change_share(&mut self, share: Share) -> Result<(), ShareError> {
        self.core.receiver.change_share(share)
    }

    /// Sets the number of events of the run; what boards have after the last of them they keep.
    pub fn end_after(&mut self, events: u64) {
        self.core.receiver.end_after(events);
    }

    /// The run ends before this event, which was announced as no server's: step on until [`Self::is_over`]. What has
    /// begun is finished none the less, and nothing after it is acknowledged.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn end_before(&mut self, event: u64) -> Result<(), SessionError> {
        self.core.end(Some(event), &mut self.listener)
    }

    /// The run begins with this event, as was announced before any of it could come.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn begin_at(&mut self, event: u64) -> Result<(), SessionError> {
        Ok(self.core.begin_at(event)?)
    }

    /// Whether each board has no connection, and nothing of it can be on its way.
    pub fn away(&self) -> Vec<bool> {
        (0..self.core.boards.len()).map(|board| self.core.is_away(board)).collect()
    }

    /// Whether the event that a board has passed can be read while it has no connection ([`Self::passed`]): then it is
    /// opened again once that is done. Events wait for it for `outage`, and its connection no longer for that.
    pub fn expect_passed(&mut self, board: usize, is_expected: bool, outage: Time) {
        self.core.boards[board].expect_passed(is_expected);
        self.core.receiver.set_outage(board as u16, outage);
    }

    /// A board that is [`Self::away`] has passed this event, or none yet: of events up to it nothing comes any more, and
    /// they are not waited for. Others may wait for these events, and hold up what the board has to send.
    pub fn passed(&mut self, board: usize, event: Option<u64>) {
        if self.core.is_away(board) {
            let missing = event.map_or(0, |event| self.core.receiver.passed(board as u16, event));
            self.core.boards[board].passed(event, missing);
        }
    }

    /// The run ends with the last event that has begun: step on until [`Self::is_over`]. Nothing of a later event is
    /// acknowledged from here on: its boards keep it for the next run. What the kernel has acknowledged over TCP
    /// [`Self::hang_up`] keeps.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn end_now(&mut self) -> Result<(), SessionError> {
        self.core.end(None, &mut self.listener)
    }

    /// The latest event of which something has come, and was acknowledged; none if nothing has, or the first event is
    /// not yet known.
    pub fn newest_event(&self) -> Option<u64> {
        self.core.receiver.newest_event()
    }

    /// The run has an end, and all its events are stored.
    pub fn is_over(&self) -> bool {
        self.core.receiver.is_over()
    }

    /// The run is over: waits for boards that have not heard the last acknowledgement, closes the queue pairs, for at
    /// most `limit` each (boards that repeat slowly are waited for longer) and for none once `is_hurried`, and stores what is
    /// there.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(&mut self, limit: Time, is_hurried: impl Fn() -> bool) -> Result<(), SessionError> {
        self.end_now()?;
        self.linger(limit, &is_hurried)?;
        self.hang_up(limit, &is_hurried)?;
        let core = &mut self.core;
        for board in 0..core.boards.len() {
            core.backend.close_qp(board as u16, &mut core.completions)?;
        }
        core.deliver()?;
        core.end_search()?;
        core.receiver.finish(core.now)?;
        Ok(())
    }

    /// Notifies the boards that their queue pairs are closed, and waits for their answers, at most for `limit` and not
    /// once `is_hurried`. Keeps what their streams have delivered after the run's end.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn hang_up(&mut self, limit: Time, is_hurried: impl Fn() -> bool) -> Result<(), SessionError> {
        self.core.now = self.core.clock.now();
        let (now, end) = (self.core.now, self.core.now.saturating_add(limit));
        self.core.ending = true;
        self.core.boards.iter_mut().for_each(|board| board.end(now));
        while self.core.boards.iter().any(Board::is_ending) && self.core.now < end && !is_hurried() {
            self.cm_due = Time::ZERO;
            self.step(Time::from_ms(1))?;
        }
        let limit = if is_hurried() { Time::ZERO } else { limit.min(STREAMS) };
        let core = &mut self.core;
        Ok(core.backend.hang_up(&mut core.receiver, limit)?)
    }

    /// The back end has failed for good: stores what is there, as incomplete events where need be.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn store_rest(&mut self) -> Result<(), SessionError> {
        self.core.end_search()?;
        self.core.receiver.finish(self.core.now)?;
        Ok(())
    }

    /// Gives up the events that are not on disk: see [`Receiver::give_up`].
    pub fn give_up(&mut self) {
        self.core.receiver.give_up();
    }

    /// Continues to answer until no packet has been repeated for a while, during which a board whose ACK timeout is
    /// known repeats several times. It does not wait for boards that continue with new messages: they have the
    /// acknowledgements of earlier ones.
    fn linger(&mut self, limit: Time, is_hurried: impl Fn() -> bool) -> Result<(), SessionError> {
        let begun = self.core.clock.now();
        let repeats = self.socket.ack_timeout().map_or(Time::ZERO, |timeout| timeout.saturating_mul(REPEATS));
        let linger = self.linger.max(repeats.min(REPEATING));
        let end = begun.saturating_add(limit.max(linger.saturating_mul(2)));
        let messages: Vec<u64> = self.core.boards.iter().map(|board| board.messages).collect();
        let (mut request_sent, mut silent_since) = (self.core.retries(), begun);
        self.core.ending = true;
        loop {
            let now = self.core.clock.now();
            let rests = |(board, before): (&Board, &u64)| board.is_up() && board.messages == *before;
            let waits = self.core.boards.iter().zip(&messages).any(rests);
            let is_silent = now >= silent_since.saturating_add(linger) && self.core.backend.is_settled();
            if !waits || is_silent || now >= end || is_hurried() {
                return Ok(());
            }
            self.step(Time::from_ms(1))?;
            let still = self.core.retries();
            if still != request_sent {
                (request_sent, silent_since) = (still, now);
            }
        }
    }

    /// Connections to pass to the next session if this one is killed.
    pub fn remembered(&self) -> Vec<Remembered> {
        self.core.boards.iter().filter_map(Board::remembered).collect()
    }

    /// Boards that may send.
    pub fn boards_up(&self) -> usize {
        self.core.boards.iter().filter(|board| board.is_up()).count()
    }

    /// Boards that the next event waits for and that cannot be reached.
    pub fn out_of_reach(&self) -> Vec<&str> {
        let boards = self.core.receiver.out_of_reach();
        boards.iter().map(|board| self.core.boards[usize::from(*board)].spec.name.as_str()).collect()
    }

    /// Whether each board has had a request refused that it cannot have meant (a wrong slot or key, another path MTU),
    /// and none has sent a message for so long: they do not agree with this end, and what they would send is not to be
    /// had.
    pub fn is_refused(&self, patience: Time) -> bool {
        self.core.boards.iter().all(|board| board.is_refused(self.core.now, patience))
    }

    /// Messages that have come, of all boards.
    pub fn messages(&self) -> u64 {
        self.core.boards.iter().map(|board| board.messages).sum()
    }

    /// Events stored so far, complete or not.
    pub fn events_stored(&self) -> u64 {
        self.core.receiver.events_stored()
    }

    /// Time since the clock was started.
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// The receiver and what it stores in.
    pub fn receiver(&self) -> &Receiver<S> {
        &self.core.receiver
    }

    /// The whole report.
    pub fn report(&mut self) -> SessionReport {
        let cpu = thread_cpu_time().saturating_sub(self.cpu_at_start);
        let mut report =
            report::of(&mut self.core, self.pool.as_ref(), self.poll, cpu, *self.listener.counters(), &*self.socket);
        report.cm_strangers += self.strangers;
        report
    }

    /// Takes and sends what the connection manager has, and looks after queue pairs in error.
    fn connections(&mut self) -> Result<(), SessionError> {
        self.courtesy = COURTESY;
        self.exchange();
        while let Some((from, message)) = self.socket.receive() {
            self.message(from, &message);
        }
        let core = &mut self.core;
        let now = core.now;
        self.listener.handle_timeout(now, core);
        let mut all_up = true;
        for i in 0..core.boards.len() {
            if let Some(event) = core.boards[i].opener.handle_timeout(now) {
                core.event(i, event, &mut self.listener);
            }
            core.look_after(i, &mut self.listener)?;
            let board = &mut core.boards[i];
            while let Some(request) = board.opener.poll_transmit() {
                let sent = self.socket.send(board.spec.ip, board.opener.port(), &request);
                board.request_sent(&request, sent);
            }
            all_up &= board.is_up();
        }
        self.exchange();
        let core = &mut self.core;
        core.look_for_life();
        if let Some(pool) = &mut self.pool {
            pool.listen(core);
        }
        let is_calm = all_up && core.receiver.suspects().is_empty();
        self.cm_due = now + if is_calm { Time::from_ms(20) } else { SOON };
        Ok(())
    }

    fn exchange(&mut self) {
        let Core { backend, boards, now, .. } = &mut self.core;
        let has_qp = |qpn| boards.iter().any(|board| board.local_info().qpn == qpn);
        self.socket.exchange(*now, &mut **backend, &has_qp);
    }

    fn message(&mut self, from: Ipv4Addr, message: &CmMessage) {
        let core = &mut self.core;
        let boards = self.by_ip.get(&from);
        if boards.is_none() {
            // A board that is not in the list gets an answer. A flood gets none: each costs the receiving thread's time.
            self.strangers += 1;
            if self.courtesy == 0 {
                return;
            }
            self.courtesy -= 1;
        }
        if message.answer.is_none() {
            if let Some(reply) = self.listener.handle_message(core.now, from, message, core) {
                // The peer repeats its request if a message cannot be sent.
                let _ = self.socket.send(from, message.reply_port(), &reply);
            }
            return;
        }
        for &i in boards.into_iter().flatten() {
            if let Some(event) = core.boards[i].opener.handle_message(core.now, from, message) {
                core.event(i, event, &mut self.listener);
            }
        }
    }
}

/// The search for the first event, of this number of boards and with this window.
fn search(config: &SessionConfig, boards: usize, window: usize) -> FirstEvent {
    let reach = (window.next_power_of_two() as u64).saturating_mul(config.builder.stride.get());
    let settle = config.reopen.saturating_mul(2);
    FirstEvent::new(boards, reach, Patience { silent: config.builder.timeout, bring_up: config.bring_up, settle })
}
