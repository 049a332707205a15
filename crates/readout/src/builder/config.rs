// SPDX-License-Identifier: Apache-2.0
//! The event builder's settings, its verdict on each fragment, and its counters.
//! Promise: every pushed fragment is counted once, by its outcome.
//! Missing fragments, duplicates and strays are distinguished. Source: ARCHITECTURE.md, "The way of a fragment".

use std::num::{NonZeroU16, NonZeroU64};

use penstock_transport::RetryLimits;
use penstock_units::Time;
use serde::Serialize;

/// What the builder expects. The default is one server, three boards, every event; an event waits for 537 ms, until a
/// board with [`RetryLimits::default`] has delivered its fragment or its queue pair has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuilderConfig {
    /// Sources carry ids `0..sources`; an event with a fragment of each is complete.
    pub sources: NonZeroU16,
    /// Number of the first event.
    pub first_event: u64,
    /// Distance between the numbers of consecutive events; the number of servers when they share a run.
    pub stride: NonZeroU64,
    /// Events open at a time, rounded up to a power of two. At least the slots of a ring, so that no board that keeps
    /// to its credits can run ahead of it.
    pub window: usize,
    /// How long an event waits for its missing fragments: from its first one, or from when an event before it was
    /// complete, if a source has sent nothing later: until then it was sending, in order. No source is waited for at
    /// events before the first that it sends over a new connection.
    pub timeout: Time,
    /// How long events wait in addition for a source that cannot be reached, from its last sign of life on: its
    /// connection is lost ([`EventBuilder::lost`](super::EventBuilder::lost)), or it has not answered
    /// ([`EventBuilder::suspects`](super::EventBuilder::suspects)).
    pub outage: Time,
    /// Largest difference of a fragment's timestamp from that of the event, in ns. The event's is the median of its
    /// fragments', or that of the one that came first where there are only two.
    pub timestamp_window_ns: u64,
}

/// When a queue pair with these limits has delivered a packet or failed, however often the packet was lost: the ACK
/// timer runs once for it and once for each retry. Without a timer nothing is sent again, so nothing is waited for.
fn last_retry(limits: RetryLimits) -> Time {
    limits.ack_timeout().unwrap_or_default().saturating_mul(u64::from(limits.retry_cnt) + 1)
}

impl Default for BuilderConfig {
    fn default() -> Self {
        BuilderConfig {
            sources: const { NonZeroU16::new(3).unwrap() },
            first_event: 0,
            stride: NonZeroU64::MIN,
            window: 1024,
            timeout: last_retry(RetryLimits::default()),
            // Half a minute, and the time in which a board is found again after it.
            outage: Time::from_s(45),
            timestamp_window_ns: 1_000,
        }
    }
}

/// Where a fragment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentId {
    pub event: u64,
    pub source: u16,
    pub timestamp_ns: u64,
}

/// Why a fragment belongs to no event that is being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// Its source is not one of the configured ones.
    UnknownSource,
    /// Its event was already delivered, or precedes the first one by far.
    Late,
    /// Its event precedes the run's first one, and by no more than events can be open at a time.
    BeforeBegin,
    /// Its event is beyond the window.
    Ahead,
    /// Its event is another server's.
    OffSequence,
    /// The run ends with an earlier event.
    AfterEnd,
}

/// The outcome of a pushed fragment. The builder has kept the handle only if `Accepted`.
#[must_use = "the handle of a fragment that was not accepted is still the caller's"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    Accepted,
    /// The event has this source's fragment already.
    Duplicate,
    Stray(Stray),
}

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BuilderCounters {
    pub fragments_accepted: u64,
    pub duplicates: u64,
    /// Had come before the source connected again: it had not heard the acknowledgement. No fault.
    pub resent_after_reconnect: u64,
    pub strays_unknown_source: u64,
    pub strays_late: u64,
    pub strays_ahead: u64,
    pub strays_off_sequence: u64,
    /// Accepted first, and then rejected because its timestamp contradicts that of the event's other fragments.
    pub strays_timestamp: u64,
    /// Fragments of events shortly before the first one of the run. Not a fault: not all sources had them.
    pub before_begin: u64,
    /// Fragments of events after the last one of the run. Not a fault.
    pub after_end: u64,
    pub events_complete: u64,
    /// Handed out with some, but not all fragments, or with none.
    pub events_incomplete: u64,
    /// Not handed out, as all sources went on behind them, further than events can be open at a time.
    pub events_skipped: u64,
}

/// The outcomes of one source's fragments outside events, and the events that lack it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SourceCounters {
    /// Events handed out without its fragment.
    pub events_missing: u64,
    /// Fragments of events that were over, or far before the run's first.
    pub strays_late: u64,
    /// Fragments further ahead than events can be open at a time.
    pub strays_ahead: u64,
    /// Fragments of another server's events.
    pub strays_off_sequence: u64,
    /// Fragments whose timestamp contradicts that of the event.
    pub strays_timestamp: u64,
    pub duplicates: u64,
    /// Messages that no event can take: no fragment, a wrong CRC-32C, or the fragment of another source.
    pub fragments_malformed: u64,
    pub fragments_crc_error: u64,
    pub fragments_wrong_source: u64,
}

impl SourceCounters {
    /// Fragments that were acknowledged and are in no event, duplicates apart.
    pub fn strays(&self) -> u64 {
        self.strays_late + self.strays_ahead + self.strays_off_sequence + self.strays_timestamp
    }

    /// Acknowledged messages that cannot be assigned to an event.
    pub fn unreadable(&self) -> u64 {
        self.fragments_malformed + self.fragments_crc_error + self.fragments_wrong_source
    }
}

impl BuilderCounters {
    /// Strays of every kind.
    pub fn strays(&self) -> u64 {
        let by_place = self.strays_late + self.strays_ahead + self.strays_off_sequence;
        self.strays_unknown_source + by_place + self.strays_timestamp
    }

    pub(super) fn duplicate(&mut self) -> Pushed {
        self.duplicates += 1;
        Pushed::Duplicate
    }

    pub(super) fn resent(&mut self) -> Pushed {
        self.resent_after_reconnect += 1;
        Pushed::Duplicate
    }

    pub(super) fn stray(&mut self, stray: Stray) -> Pushed {
        let counter = match stray {
            Stray::UnknownSource => &mut self.strays_unknown_source,
            Stray::Late => &mut self.strays_late,
            Stray::Ahead => &mut self.strays_ahead,
            Stray::OffSequence => &mut self.strays_off_sequence,
            Stray::BeforeBegin => &mut self.before_begin,
            Stray::AfterEnd => &mut self.after_end,
        };
        *counter += 1;
        Pushed::Stray(stray)
    }
}
