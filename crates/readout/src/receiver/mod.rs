// SPDX-License-Identifier: Apache-2.0
//! The receiver: connects rings, checks, event builder, storage and credits. Any back end that writes into memory and
//! reports completions can drive it: in process, verbs, a packet socket or TCP.
//! Promise: a slot is posted again only after its bytes have been stored or refused; a slow consumer stops the boards.
//! Source: ARCHITECTURE.md, "The way of a fragment". Sans-IO except for the sink; the caller passes in the time (ps).
//!
//! ```text
//! Memory::write -> ring slot -> on_completion: header, length, CRC-32C -> builder -> compare -> sink -> release
//!                  ^ take_credits <------------------------------------------------------------------+
//! ```

mod connections;
mod consumer;
mod error;
mod fragment;
mod lent;
mod memory;
mod opening;
mod report;
mod slots;
mod storing;

pub use error::ReceiverError;
pub use report::{ReceiverCounters, ReceiverReport};
pub use slots::PoolConfig;

use penstock_transport::RecvWr;
use penstock_units::{Rate, Time};
use penstock_wire::FragmentId as SentId;

use crate::builder::{
    BuilderConfig, BuilderCounters, EventBuilder, FragmentId, Notice, Pushed, Share, ShareError, SourceCounters,
};
use crate::check::Reference;
use crate::monitor::PatternMonitor;
use crate::pattern::Pattern;
use crate::ring::{Region, Ring, RingConfig};
use crate::sink::{EventSink, Kept, StoreError};
use crate::sys::{Pages, RingMemory};
use fragment::{read_fragment, Refused};
use opening::Opening;
use slots::{Place, Slots};
use storing::{Held, Storing};

/// The settings of a receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// The ring of every board; board `i` is source `i` of the builder.
    pub rings: Vec<RingConfig>,
    pub builder: BuilderConfig,
    /// Payload bytes per second that the consumer of events can take; none is unlimited. Slots wait for it.
    pub consumer_rate: Option<Rate>,
}

/// Receives fragments of all boards, and stores the events they make in `S`.
pub struct Receiver<S> {
    slots: Slots,
    builder: EventBuilder<Held>,
    storing: Storing<S>,
    counters: ReceiverCounters,
    /// Messages are nothing but the pattern: no fragments, no events.
    bare: bool,
    /// While the first event is searched for: each source.
    opening: Option<Vec<Opening>>,
}

impl<S: EventSink> Receiver<S> {
    /// A receiver with all its memory; post the receives of [`Self::take_credits`] before the first fragment.
    ///
    /// # Errors
    /// [`ReceiverError`] if rings and sources do not fit together.
    pub fn new(config: ReceiverConfig, sink: S) -> Result<Receiver<S>, ReceiverError> {
        let memory = |(board, ring): (usize, &RingConfig)| {
            let memory = RingMemory::allocate(ring.len(), Pages::Normal);
            memory.map_err(|reason| ReceiverError::Ring { board, reason: reason.into() })
        };
        let memories = config.rings.iter().enumerate().map(memory).collect::<Result<_, _>>()?;
        Receiver::with_memories(config, memories, sink)
    }

    /// The same over memory that is there already, one for each ring, as a NIC has registered it.
    ///
    /// # Errors
    /// As [`Self::new`]; or a memory is too small for its ring.
    pub fn with_memories(
        config: ReceiverConfig,
        memories: Vec<RingMemory>,
        sink: S,
    ) -> Result<Receiver<S>, ReceiverError> {
        Receiver::make(config, memories, sink, None)
    }

    /// Boards SEND into the slots of one pool, whose memory this is; `config` has one ring.
    ///
    /// # Errors
    /// As [`Self::with_memories`].
    pub fn with_pool(
        config: ReceiverConfig,
        pool: PoolConfig,
        memory: RingMemory,
        sink: S,
    ) -> Result<Receiver<S>, ReceiverError> {
        Receiver::make(config, vec![memory], sink, Some(pool))
    }

    fn make(
        config: ReceiverConfig,
        memories: Vec<RingMemory>,
        sink: S,
        pool: Option<PoolConfig>,
    ) -> Result<Receiver<S>, ReceiverError> {
        let sources = config.builder.sources.get();
        let expected = if pool.is_some() { 1 } else { usize::from(sources) };
        if config.rings.len() != expected || memories.len() != expected {
            return Err(ReceiverError::RingCount { rings: config.rings.len().min(memories.len()), sources });
        }
        // Boards that keep to their credits never run ahead of the window; nor can one fill a pool and all copies.
        let most = config.rings.iter().map(|ring| ring.slots as usize).max().unwrap_or(0);
        let most = most + pool.map_or(0, |pool| pool.copies as usize);
        let slots = Slots::new(&config.rings, memories, pool)?;
        let builder = BuilderConfig { window: config.builder.window.max(most), ..config.builder };
        Ok(Receiver {
            slots,
            builder: EventBuilder::new(builder),
            storing: Storing::new(sink, config.consumer_rate),
            counters: ReceiverCounters::default(),
            bare: false,
            opening: None,
        })
    }

    /// Compares every fragment with `reference` before it is stored.
    #[must_use]
    pub fn with_reference(mut self, reference: impl Reference + Send + 'static) -> Self {
        self.storing.reference = Some(Box::new(reference));
        self
    }

    /// Compares the payloads of every board with a test pattern, in order of event, when they are stored.
    #[must_use]
    pub fn with_pattern(mut self, pattern: Pattern) -> Self {
        let sources = usize::from(self.builder.config().sources.get());
        self.storing.pattern = Some(PatternMonitor::new(pattern, sources));
        self
    }

    /// Messages are no fragments but nothing but a test pattern, as the gateware's message source makes them: they are
    /// compared with it, and their slots are free again at once. There are no events.
    #[must_use]
    pub fn with_bare_pattern(self, pattern: Pattern) -> Self {
        Receiver { bare: true, ..self.with_pattern(pattern) }
    }

    /// The memory region of `board`; none if there is no such board.
    pub fn region(&self, board: u16) -> Option<Region> {
        self.slots.ring(board).map(Ring::region)
    }

    /// Receives that must be posted now on the queue pair of `board`.
    pub fn take_credits(&mut self, board: u16) -> u32 {
        let mut credits = 0;
        self.take_receives(board, |_| credits += 1);
        credits
    }

    /// The same receives with their slots, for boards that SEND: see [`Ring::take_receives`].
    pub fn take_receives(&mut self, board: u16, post: impl FnMut(RecvWr)) {
        if self.storing.error().is_some() {
            return; // what is posted may still come and is held; nothing is added to it
        }
        // What a board sends after the end is not this run's: it keeps it.
        let most = if self.slots.is_pool() { u64::MAX } else { self.short_of_end(board) };
        if let Some(ring) = self.slots.ring_mut(board).filter(|_| most > 0) {
            ring.take_receives_up_to(u32::try_from(most).unwrap_or(u32::MAX), post);
        }
    }

    /// Messages that a board may still send before the run's end.
    pub fn short_of_end(&self, board: u16) -> u64 {
        if self.bare {
            u64::MAX
        } else {
            self.builder.short_of_end(board)
        }
    }

    /// A receive of the pool has ended without a message.
    pub fn unfilled(&mut self, slot: u32) {
        self.slots.unfilled(slot);
    }

    /// Receives of `board` that are posted now; 0 if there is no such board.
    pub fn credits(&self, board: u16) -> u32 {
        self.slots.ring(board).map_or(0, Ring::posted)
    }

    /// Slots of the ring of `board`, or of the pool; 0 if there is no such board.
    pub fn slots(&self, board: u16) -> u32 {
        self.slots.ring(board).map_or(0, |ring| ring.config().slots)
    }

    /// The ring of `board` begins again for a new queue pair: see [`Ring::restart`].
    #[must_use = "a ring that holds fragments has not begun again"]
    pub fn restart_ring(&mut self, board: u16, rkey: u32) -> bool {
        // Of a pool nothing is this board's alone.
        let again = self.slots.is_pool() || self.slots.ring_mut(board).is_some_and(|ring| ring.restart(rkey));
        if again {
            self.reconnected(board);
        }
        again
    }

    /// See [`EventBuilder::leap`].
    pub fn leap(&mut self, now: Time) {
        self.builder.leap(now);
    }

    /// See [`EventBuilder::out_of_reach`].
    pub fn out_of_reach(&self) -> &[u16] {
        self.builder.out_of_reach()
    }

    /// See [`EventBuilder::suspects`].
    pub fn suspects(&self) -> &[u16] {
        self.builder.suspects()
    }

    /// The event of the fragment that lies in a slot, whose completion has not been reported yet; none if it is no
    /// fragment.
    pub fn event_in(&self, board: u16, slot: u32) -> Option<u64> {
        let slot = self.slots.ring(board)?.slot(slot)?;
        SentId::peek(slot).ok().map(|id| id.event_number)
    }

    /// The next board of which it has changed whether events wait for it; see [`EventBuilder::poll_notice`].
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.builder.poll_notice()
    }

    /// The counters of each board: see [`EventBuilder::source_counters`].
    pub fn source_counters(&self) -> &[SourceCounters] {
        self.builder.source_counters()
    }

    /// The first event is searched for: no board may deliver more than one fragment before [`Self::begin_at`].
    pub fn search(&mut self) {
        self.opening = Some(vec![Opening::default(); usize::from(self.builder.config().sources.get())]);
    }

    /// While the first event is searched for: events of the fragments that boards have for us after their first ones.
    pub fn following(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let each = self.opening.iter().flatten().zip(0..);
        each.filter_map(|(source, board)| source.next.map(|event| (board, event)))
    }

    /// A board has a fragment of this event for us: see [`EventBuilder::offered`].
    pub fn offered(&mut self, board: u16, event: u64) {
        self.builder.offered(board, event);
    }

    /// See [`EventBuilder::begin_at`].
    pub fn begin_at(&mut self, event: u64) {
        self.opening = None;
        self.builder.begin_at(event);
    }

    /// A receive of `board` has completed: a message of `byte_len` bytes is in the slot that its immediate names.
    ///
    /// # Errors
    /// [`StoreError`] if an event that became due cannot be stored, now or later; the run should end. An error that can
    /// be retried is not returned: the event stays, see [`Self::stalled`].
    pub fn on_completion(&mut self, now: Time, board: u16, imm: u32, byte_len: u32) -> Result<(), StoreError> {
        self.on_checked(now, board, imm, byte_len, None)
    }

    /// The same for a message whose CRC-32C after the header may be known already: see
    /// [`Completion::payload_crc`](crate::backend::Completion::payload_crc).
    ///
    /// # Errors
    /// As [`Self::on_completion`].
    pub fn on_checked(
        &mut self,
        now: Time,
        board: u16,
        imm: u32,
        byte_len: u32,
        payload_crc: Option<u32>,
    ) -> Result<(), StoreError> {
        let Some(ring) = self.slots.ring_mut(board) else {
            self.counters.fragments_wrong_source += 1;
            return Ok(());
        };
        if let Err(error) = ring.complete(imm, byte_len) {
            // All of a board that counts its slots in another way: the first says enough.
            match ring.counters().completions_refused {
                1 => tracing::warn!(board, %error, "message refused; further ones are only counted"),
                _ => tracing::debug!(board, %error, "message refused"),
            }
            return Ok(());
        }
        if let Some(pattern) = self.storing.pattern.as_mut().filter(|_| self.bare) {
            pattern.payload(board, None, ring.message(imm));
            ring.release(imm);
            return Ok(());
        }
        let Some(id) = self.take_fragment(now, board, imm, byte_len, payload_crc) else {
            self.slots.release(board, Place::Slot(imm));
            return self.store_events(now);
        };
        self.store_events(now)?;
        if self.slots.is_low() {
            self.copy_out(id, imm);
        }
        Ok(())
    }

    /// Call at [`Self::poll_timeout`]: gives up waiting for missing fragments, and for a consumer.
    ///
    /// # Errors
    /// As [`Self::on_completion`].
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), StoreError> {
        self.storing.release_taken(now, &mut self.slots);
        self.store_events(now)?;
        self.storing.take_back(now, &mut self.slots);
        Ok(())
    }

    /// When [`Self::handle_timeout`] has something to do, in ps.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.storing.poll_timeout(self.builder.poll_timeout())
    }

    /// The run is over (or interrupted): stores what is there, as incomplete events where need be, and closes the sink.
    /// Waits for a sink that is slow.
    ///
    /// # Errors
    /// As [`Self::on_completion`]; or the sink cannot be closed. If the error is retriable nothing is lost yet: call it
    /// again when there is room.
    pub fn finish(&mut self, now: Time) -> Result<(), StoreError> {
        self.builder.flush();
        loop {
            self.storing.end_stall();
            self.store_events(now)?;
            match self.storing.end_stall() {
                Some(error) if error.is_busy() => self.storing.sink.wait()?,
                Some(error) => return Err(error),
                None => return self.storing.sink.close(),
            }
        }
    }

    /// Why storage has to be waited for now: a full disk, a slow consumer. Boards get no credits meanwhile.
    pub fn stalled(&self) -> Option<&StoreError> {
        self.storing.error()
    }

    /// The destination table changes at an announced event.
    ///
    /// # Errors
    /// [`ShareError`] if events that have begun would move, or changes are not announced in order.
    pub fn change_share(&mut self, share: Share) -> Result<(), ShareError> {
        self.builder.change_share(share)
    }

    /// See [`EventBuilder::end_after`].
    pub fn end_after(&mut self, events: u64) {
        self.builder.end_after(events);
    }

    /// See [`EventBuilder::end_before`].
    pub fn end_before(&mut self, event: u64) {
        self.builder.end_before(event);
    }

    /// See [`EventBuilder::end_now`].
    pub fn end_now(&mut self) {
        self.builder.end_now();
    }

    /// See [`EventBuilder::newest_event`].
    pub fn newest_event(&self) -> Option<u64> {
        self.builder.newest_event()
    }

    /// Whether more of a board can be taken than what it may still send before this event, or without one up to the
    /// latest that has begun.
    pub fn takes_more(&self, board: u16, before: Option<u64>) -> bool {
        !self.bare && u64::from(self.credits(board)) > self.builder.short_of(board, before)
    }

    /// Whether a board may still send something before the run's end.
    pub fn expects(&self, board: u16) -> bool {
        self.bare || self.builder.expects(board)
    }

    /// Every event before the run's end was handed to the sink.
    pub fn is_over(&self) -> bool {
        self.builder.is_over()
    }

    /// Payloads compared with a test pattern so far.
    pub fn messages_compared(&self) -> u64 {
        self.storing.pattern.as_ref().map_or(0, |pattern| pattern.reports().iter().map(|board| board.messages).sum())
    }

    /// Number of the next event that will be handed to the sink.
    pub fn next_event(&self) -> u64 {
        self.builder.next_event()
    }

    /// Events that have begun and were not handed to the sink.
    pub fn open_events(&self) -> usize {
        self.builder.open_events()
    }

    /// Events handed to the sink so far, complete or not.
    pub fn events_stored(&self) -> u64 {
        let BuilderCounters { events_complete, events_incomplete, .. } = self.builder.counters();
        events_complete + events_incomplete
    }

    /// Gives up the events that are not on disk: see [`EventSink::give_up`].
    pub fn give_up(&mut self) {
        self.storing.sink.give_up();
    }

    /// What is on disk; of a sink without one, what was handed to it.
    pub fn kept(&self) -> Kept {
        let taken = || Kept { events: self.events_stored(), bytes: self.counters.bytes_stored, unclosed: 0 };
        self.storing.sink.kept().unwrap_or_else(taken)
    }

    /// All counters.
    pub fn report(&self) -> ReceiverReport {
        let Kept { events: events_stored, bytes: bytes_stored, .. } = self.kept();
        ReceiverReport {
            receiver: ReceiverCounters { events_stored, bytes_stored, ..self.counters.clone() },
            builder: self.builder.counters().clone(),
            rings: self.slots.counters(),
            check: self.storing.reference.is_some().then(|| self.storing.check.clone()),
            pattern: self.storing.pattern.as_ref().map(|pattern| pattern.reports().to_vec()),
        }
    }

    pub fn sink(&self) -> &S {
        &self.storing.sink
    }

    /// Stores what is ready, unless storage has to be waited for.
    fn store_events(&mut self, now: Time) -> Result<(), StoreError> {
        self.storing.store_events(now, &mut self.builder, &mut self.slots, &mut self.counters)
    }

    /// Checks the message in `slot` and gives it to the builder. None if the slot is not needed.
    fn take_fragment(
        &mut self,
        now: Time,
        board: u16,
        slot: u32,
        byte_len: u32,
        payload_crc: Option<u32>,
    ) -> Option<FragmentId> {
        let place = Place::Slot(slot);
        let (id, held) = match read_fragment(self.slots.message(board, place), place, byte_len, payload_crc) {
            Ok(read) => read,
            Err(Refused::Malformed(error)) => {
                self.counters.fragments_malformed += 1;
                self.of_source(board, |source| source.fragments_malformed += 1);
                if self.counters.fragments_malformed == 1 {
                    tracing::warn!(
                        board,
                        bytes = byte_len,
                        %error,
                        "message is no fragment; further ones are only counted; bare patterns need --bare"
                    );
                }
                return None;
            }
            Err(Refused::Crc) => {
                self.counters.fragments_crc_error += 1;
                self.of_source(board, |source| source.fragments_crc_error += 1);
                if self.counters.fragments_crc_error == 1 {
                    tracing::warn!(board, "fragment with a wrong CRC-32C; further ones are only counted");
                }
                return None;
            }
        };
        if id.source != board {
            self.counters.fragments_wrong_source += 1;
            self.of_source(board, |source| source.fragments_wrong_source += 1);
            if self.counters.fragments_wrong_source == 1 {
                let named = id.source;
                tracing::warn!(board, named, "fragment names another source; further ones are only counted");
            }
            return None;
        }
        self.counters.fragments_good += 1;
        self.counters.bytes_good += u64::from(held.len);
        (self.builder.push(now, id, held) == Pushed::Accepted).then_some(id)
    }

    fn of_source(&mut self, board: u16, count: impl FnOnce(&mut SourceCounters)) {
        if let Some(counters) = self.builder.source_counters_mut(board) {
            count(counters);
        }
    }

    /// A fragment in a pool's slot that waits for others is copied, so that these can come. What waits for storage or a
    /// consumer stays: boards are to wait for them, too.
    fn copy_out(&mut self, id: FragmentId, slot: u32) {
        if self.storing.error().is_some() || self.storing.is_behind() {
            return;
        }
        let Some(held) = self.builder.handle_mut(id) else { return }; // its event was handed out
        match self.slots.copy_out(slot) {
            Some(copy) => {
                held.place = copy;
                self.counters.fragments_copied += 1;
            }
            None => self.counters.copies_refused += 1,
        }
    }
}
