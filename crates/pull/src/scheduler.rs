// SPDX-License-Identifier: Apache-2.0
//! Which READ is posted next.
//! Promise: among boards that may be read, the lowest rank is first; the bytes in flight never exceed the window when
//! a READ is posted; a board that does not answer, or whose way is slower than the others', does not hold the window.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use penstock_units::Time;
use thiserror::Error;

use crate::board::{Answers, Board, Fragment, Posted, Read};
use crate::config::{Config, ConfigError};
use crate::meter::Meter;
use crate::window::Window;

/// Why an announcement is refused. Each is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No board has this index.
    #[error("board {0} does not exist")]
    UnknownBoard(usize),
    /// The event is not after the board's last one.
    #[error("event {event} was announced after event {last}")]
    Repeated {
        /// The event's number.
        event: u64,
        /// That of the board's last fragment.
        last: u64,
    },
    /// The rank is below that of the board's last fragment.
    #[error("rank {rank} comes after rank {last}")]
    RankFell {
        /// The fragment's rank.
        rank: u64,
        /// That of the board's last fragment.
        last: u64,
    },
    /// Every slot of the board holds a fragment that has not arrived.
    #[error("the board has {0} slots, and each holds a fragment that has not been read")]
    TooMany(u32),
    /// The fragment is longer than a slot.
    #[error("{length} bytes do not fit into {longest}")]
    TooLong {
        /// The fragment's length, bytes.
        length: u32,
        /// The length of a slot, bytes.
        longest: u32,
    },
    /// The fragment ends beyond the address space.
    #[error("{length} bytes at {address:#x} end beyond the address space")]
    Address {
        /// The fragment's address.
        address: u64,
        /// The fragment's length, bytes.
        length: u32,
    },
}

/// What has happened since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Fragments announced, those without data included.
    pub announced: u64,
    /// Announcements refused.
    pub refused: u64,
    /// READs posted.
    pub reads: u64,
    /// READs arrived.
    pub arrivals: u64,
    /// Bytes of payload arrived.
    pub bytes: u64,
    /// Times that a board fell silent with READs in flight.
    pub silences: u64,
    /// The highest number of bytes on the wire that were in flight, those of silent boards apart.
    pub highest_in_flight: u64,
}

/// The order of service: rank, then the board with the fewest bytes in flight, then its index.
type Turn = Reverse<(u64, u64, usize)>;

/// The READs of one server. See the [crate](crate) for what it promises.
#[derive(Debug)]
pub struct Scheduler {
    config: Config,
    boards: Vec<Board>,
    order: BinaryHeap<Turn>,
    /// Boards with READs in flight, by the time at which they were looked at last.
    timed: VecDeque<(Time, usize)>,
    /// Boards with fragments that have not arrived.
    active: u64,
    meter: Meter,
    in_flight: u64,
    unanswered: u64,
    /// Bytes on the wire that have arrived.
    arrived: u64,
    /// Ranks from here on are not read: the server has no room for them.
    held_from: u64,
    counters: Counters,
}

impl Scheduler {
    /// A scheduler for boards 0 to `boards` - 1.
    ///
    /// # Errors
    /// A [`ConfigError`] names the setting with which nothing could be read.
    pub fn new(config: Config, boards: usize) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            meter: Meter::new(&config),
            boards: (0..boards).map(|_| Board::new(first_limit(&config))).collect(),
            order: BinaryHeap::with_capacity(boards),
            timed: VecDeque::new(),
            active: 0,
            in_flight: 0,
            unanswered: 0,
            arrived: 0,
            held_from: u64::MAX,
            counters: Counters::default(),
            config,
        })
    }

    /// A board has data. A fragment of 0 bytes is none: the board has nothing of this event.
    ///
    /// # Errors
    /// A [`Refusal`]: nothing of it will be read.
    #[inline]
    pub fn announce(&mut self, board: usize, fragment: Fragment) -> Result<(), Refusal> {
        let outcome = self.admit(board, fragment);
        match outcome {
            Ok(()) => self.counters.announced += 1,
            Err(_) => self.counters.refused += 1,
        }
        outcome
    }

    fn admit(&mut self, index: usize, fragment: Fragment) -> Result<(), Refusal> {
        let Fragment { rank, event, address, length } = fragment;
        let Some(board) = self.boards.get_mut(index) else {
            return Err(Refusal::UnknownBoard(index));
        };
        if let Some(last) = board.last_event.filter(|&last| event <= last) {
            return Err(Refusal::Repeated { event, last });
        }
        if rank < board.last_rank {
            return Err(Refusal::RankFell { rank, last: board.last_rank });
        }
        if length > self.config.longest {
            return Err(Refusal::TooLong { length, longest: self.config.longest });
        }
        if address.checked_add(u64::from(length)).is_none() {
            return Err(Refusal::Address { address, length });
        }
        if length > 0 {
            if board.fragments.len() >= self.config.slots as usize {
                return Err(Refusal::TooMany(self.config.slots));
            }
            self.active += u64::from(board.fragments.is_empty());
            board.fragments.push_back(fragment);
        }
        board.last_event = Some(event);
        board.last_rank = rank;
        self.enqueue(index);
        Ok(())
    }

    /// The READ to post now; `None` while nothing is announced or the window has no room for the next one.
    #[inline]
    pub fn poll_read(&mut self, now: Time) -> Option<Read> {
        let share = self.share();
        loop {
            let &Reverse((rank, _, index)) = self.order.peek()?;
            if rank >= self.held_from {
                return None;
            }
            let board = &mut self.boards[index];
            if !board.is_ready(self.config.outstanding, share) {
                self.order.pop();
                board.is_queued = false;
                continue;
            }
            let packets = board.packets.max(self.meter.packets_of(board.limit_with(share).min(share)));
            let read = board.part(index, self.meter.read_sizes(packets))?;
            let wire = self.config.wire_bytes(read.length);
            let in_flight = self.in_flight + wire;
            if in_flight > self.meter.bytes() {
                return None;
            }
            self.order.pop();
            board.is_queued = false;
            let is_last_permitted = board.in_flight.len() + 1 == usize::from(self.config.outstanding)
                && in_flight <= self.meter.bytes() / 4 * 3;
            let was_quiet = self.in_flight <= self.meter.bytes() / 4 * 3;
            board.post(Posted { read, at: now, wire, was_quiet, is_last_permitted, arrived: self.arrived });
            if !board.is_timed {
                board.is_timed = true;
                self.timed.push_back((now, index));
            }
            self.in_flight = in_flight;
            self.counters.reads += 1;
            self.counters.highest_in_flight = self.counters.highest_in_flight.max(in_flight);
            self.enqueue(index);
            return Some(read);
        }
    }

    /// The oldest READ in flight of `board` has arrived whole (a queue pair's READs are answered in order). Returns it;
    /// `None` if none was in flight.
    #[inline]
    pub fn arrive(&mut self, now: Time, index: usize) -> Option<Read> {
        let board = self.boards.get_mut(index)?;
        let posted = board.take_arrived(now)?;
        match board.answers {
            Answers::Timely => self.in_flight -= posted.wire,
            Answers::Late => {
                self.unanswered -= posted.wire;
                if board.in_flight.is_empty() {
                    board.answers = Answers::Timely;
                }
            }
        }
        self.active -= u64::from(board.fragments.is_empty());
        self.arrived += posted.wire;
        self.counters.arrivals += 1;
        self.counters.bytes += u64::from(posted.read.length);
        self.measure(now, index, &posted);
        self.enqueue(index);
        Some(posted.read)
    }

    /// Adapts the board's limit and the window. READs of one board that take twice as long as they could, and twice as
    /// long as those of the fastest board of late, wait behind each other on a narrow part of their way. There, more
    /// of them in flight bring nothing, and the room is given to boards whose way is free.
    #[inline]
    fn measure(&mut self, now: Time, index: usize, posted: &Posted) {
        let share = self.share();
        let board = &mut self.boards[index];
        let round_trip = now.saturating_sub(posted.at);
        let shortest = &mut board.shortest[usize::from(posted.read.length >= self.config.mtu)];
        *shortest = round_trip.min(*shortest);
        let usual = self.meter.fastest().max(*shortest);
        let carried = self.arrived - posted.arrived - posted.wire;
        let way = self.meter.way(round_trip, posted.wire, carried).filter(|_| posted.was_quiet);
        board.way = board.way.into_iter().chain(way).min();
        let way = self.meter.likely_way(board.way, *shortest);
        self.meter.measure(&self.config, posted.wire, round_trip, way);
        if round_trip > usual.saturating_add(usual / 2) {
            if posted.at >= board.lowered_at {
                board.limit = (board.limit_with(share).min(self.meter.bytes()) / 2).max(posted.wire);
                board.lowered_at = now;
                board.packets = (board.packets / 2).max(1);
            }
            return;
        }
        if posted.is_last_permitted && posted.at >= board.raised_at {
            // So many READs are in flight as there may be, and none waits: longer ones bring more.
            board.packets = board.packets.saturating_mul(2).min(self.meter.longest_packets());
            board.raised_at = now;
        }
        if board.limit >= self.meter.bytes() {
            return;
        }
        if board.lowered_at == Time::ZERO {
            board.limit += posted.wire;
        } else {
            board.limit += (posted.wire * posted.wire / board.limit).max(1);
        }
    }

    /// The window in equal parts for all boards that have something to be read, if such a part is large: over long ways a
    /// board that began with little would need many round trips to get it. Over short ways little is enough.
    #[inline]
    fn share(&self) -> u64 {
        let share = self.meter.bytes() / self.active.max(1);
        if share >= self.meter.large_share() {
            share
        } else {
            0
        }
    }

    /// When to call [`Scheduler::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timed.front().map(|&(since, _)| since.saturating_add(self.config.patience))
    }

    /// Gives the part of the window that silent boards hold to the others.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(&(since, index)) = self.timed.front() {
            if since.saturating_add(self.config.patience) > now {
                return;
            }
            self.timed.pop_front();
            let board = &mut self.boards[index];
            board.is_timed = false;
            if board.in_flight.is_empty() || board.answers == Answers::Late {
                continue;
            }
            if board.active_at.saturating_add(self.config.patience) > now {
                board.is_timed = true;
                // The queue stays in order for the price of a deadline that is found up to `patience` late.
                self.timed
                    .push_back((self.timed.back().map_or(board.active_at, |back| back.0.max(board.active_at)), index));
            } else {
                board.answers = Answers::Late;
                self.in_flight -= board.wire_in_flight;
                self.unanswered += board.wire_in_flight;
                self.counters.silences += 1;
            }
        }
    }

    /// The board's connection has ended. Returns the fragments that had been announced and have not arrived whole,
    /// oldest first; the board may announce them again.
    pub fn forget(&mut self, index: usize) -> Vec<Fragment> {
        let Some(board) = self.boards.get_mut(index) else {
            return Vec::new();
        };
        match board.answers {
            Answers::Timely => self.in_flight -= board.wire_in_flight,
            Answers::Late => self.unanswered -= board.wire_in_flight,
        }
        let is_timed = board.is_timed;
        let forgotten = std::mem::replace(board, Board { is_timed, ..Board::new(first_limit(&self.config)) });
        self.active -= u64::from(!forgotten.fragments.is_empty());
        if forgotten.is_queued {
            self.order.retain(|&Reverse((_, _, queued))| queued != index);
        }
        forgotten.fragments.into()
    }

    /// From now on nothing of this rank or above is read, until this is called again with a higher one.
    pub fn hold_from(&mut self, rank: u64) {
        self.held_from = rank;
    }

    fn enqueue(&mut self, index: usize) {
        let share = self.share();
        let board = &mut self.boards[index];
        if !board.is_queued && board.is_ready(self.config.outstanding, share) {
            if let Some(fragment) = board.next() {
                self.order.push(Reverse((fragment.rank, board.wire_in_flight, index)));
                board.is_queued = true;
            }
        }
    }

    /// Bytes on the wire in flight, those of silent boards apart.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes on the wire that were requested from boards which do not answer.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.unanswered
    }

    /// W, bytes on the wire.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.meter.bytes()
    }

    /// Whether READs of this board are in flight and were not answered for the scheduler's patience.
    #[must_use]
    pub fn is_silent(&self, board: usize) -> bool {
        self.boards.get(board).is_some_and(|board| board.answers == Answers::Late)
    }

    /// Fragments of this board that were announced and have not arrived whole.
    #[must_use]
    pub fn waiting(&self, board: usize) -> usize {
        self.boards.get(board).map_or(0, |board| board.fragments.len())
    }

    /// What has happened.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// What a board may have in flight at first. A measured window begins with little, since a board with much data on a slow
/// line would hold it before that is known.
fn first_limit(config: &Config) -> u64 {
    match config.window {
        Window::Given(_) => u64::MAX,
        Window::Measured { .. } => 2 * config.wire_bytes(config.mtu),
    }
}
