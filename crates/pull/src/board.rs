// SPDX-License-Identifier: Apache-2.0
//! One board: what it has announced, and which READs of it are in flight.

use std::collections::VecDeque;

use penstock_units::Time;

/// A fragment in a board's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// The order of service, lowest first: the event's number, or the time of the announcement for messages without
    /// events. It never falls within a board.
    pub rank: u64,
    /// The event's number; it rises within a board.
    pub event: u64,
    /// Where it begins.
    pub address: u64,
    /// Bytes.
    pub length: u32,
}

/// A READ to post: a fragment, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The board's index.
    pub board: usize,
    /// The fragment's event.
    pub event: u64,
    /// Where the part begins in the board's memory.
    pub address: u64,
    /// Where the part begins in the fragment, bytes.
    pub offset: u32,
    /// Bytes of this part.
    pub length: u32,
    /// Whether the fragment ends with this part.
    pub is_last: bool,
}

/// A READ in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posted {
    pub(crate) read: Read,
    pub(crate) at: Time,
    pub(crate) wire: u64,
    /// The window had room when it was posted: the queues that it met were not all ours.
    pub(crate) was_quiet: bool,
    /// No further READ of the board might be posted after it, although the window had room.
    pub(crate) is_last_permitted: bool,
    /// Bytes on the wire that had arrived from all boards when it was posted.
    pub(crate) arrived: u64,
}

/// Whether a board's READs are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// They are, or nothing is in flight.
    Timely,
    /// They were not for the scheduler's patience. Nothing more is posted until all that is in flight has come.
    Late,
}

#[derive(Debug)]
pub(crate) struct Board {
    /// Not arrived whole, oldest first. The first `posted` of them are in flight whole.
    pub(crate) fragments: VecDeque<Fragment>,
    pub(crate) posted: usize,
    /// How much of the fragment after these is in flight, or has arrived.
    pub(crate) offset: u32,
    pub(crate) in_flight: VecDeque<Posted>,
    pub(crate) wire_in_flight: u64,
    /// Packets of a READ of a measured window: short on a slow line, where a long READ takes long.
    pub(crate) packets: u32,
    /// READs posted before this do not raise `packets`.
    pub(crate) raised_at: Time,
    /// The bytes on the wire that may be in flight from this board, but for one READ. It doubles with each round trip
    /// until it has been lowered.
    pub(crate) limit: u64,
    /// READs posted before this do not lower `limit`: they were posted before it was lowered last.
    pub(crate) lowered_at: Time,
    /// The shortest round trips of its READs: of less than a packet, and of others.
    pub(crate) shortest: [Time; 2],
    /// The shortest one in which the server's line was idle for three quarters of the time.
    pub(crate) way: Option<Time>,
    pub(crate) answers: Answers,
    /// The last sign of life, or the post that ended its rest.
    pub(crate) active_at: Time,
    pub(crate) last_event: Option<u64>,
    pub(crate) last_rank: u64,
    /// Whether the order of service holds it.
    pub(crate) is_queued: bool,
    /// Whether the queue of deadlines holds it.
    pub(crate) is_timed: bool,
}

impl Board {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            fragments: VecDeque::new(),
            posted: 0,
            offset: 0,
            in_flight: VecDeque::new(),
            wire_in_flight: 0,
            packets: 1,
            raised_at: Time::ZERO,
            limit,
            lowered_at: Time::ZERO,
            shortest: [Time::MAX; 2],
            way: None,
            answers: Answers::Timely,
            active_at: Time::ZERO,
            last_event: None,
            last_rank: 0,
            is_queued: false,
            is_timed: false,
        }
    }

    /// The fragment of which the next part would be read.
    #[inline]
    pub(crate) fn next(&self) -> Option<&Fragment> {
        self.fragments.get(self.posted)
    }

    /// Whether another READ may be posted, if the window has room.
    #[inline]
    pub(crate) fn is_ready(&self, outstanding: u8, share: u64) -> bool {
        self.answers == Answers::Timely
            && self.in_flight.len() < usize::from(outstanding)
            && self.wire_in_flight < self.limit_with(share)
            && self.posted < self.fragments.len()
    }

    /// The bytes that may be in flight, where all boards have equal shares of the window: that share, unless less was
    /// found to be enough.
    #[inline]
    pub(crate) fn limit_with(&self, share: u64) -> u64 {
        match self.lowered_at {
            Time::ZERO => self.limit.max(share),
            _ => self.limit,
        }
    }

    /// The next part of `size` bytes; all of the rest if it is no longer than `longest`.
    #[inline]
    pub(crate) fn part(&self, board: usize, (size, longest): (u32, u32)) -> Option<Read> {
        let fragment = self.next()?;
        let rest = fragment.length - self.offset;
        let length = if rest <= longest { rest } else { size };
        Some(Read {
            board,
            event: fragment.event,
            address: fragment.address + u64::from(self.offset),
            offset: self.offset,
            length,
            is_last: length == rest,
        })
    }

    #[inline]
    pub(crate) fn post(&mut self, posted: Posted) {
        let read = posted.read;
        if self.in_flight.is_empty() {
            self.active_at = posted.at;
        }
        self.in_flight.push_back(posted);
        self.wire_in_flight += posted.wire;
        if read.is_last {
            self.posted += 1;
            self.offset = 0;
        } else {
            self.offset += read.length;
        }
    }

    /// Takes the oldest READ in flight, which has arrived.
    #[inline]
    pub(crate) fn take_arrived(&mut self, now: Time) -> Option<Posted> {
        let posted = self.in_flight.pop_front()?;
        self.wire_in_flight -= posted.wire;
        self.active_at = now;
        if posted.read.is_last {
            self.fragments.pop_front();
            self.posted -= 1;
        }
        Some(posted)
    }
}
