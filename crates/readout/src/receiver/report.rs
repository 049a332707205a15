// SPDX-License-Identifier: Apache-2.0
//! The counters of a receiver, in addition to those of its parts.
//! Promise: every completed message is counted once: as a fragment, or by the reason why it is not one.

use serde::Serialize;

use crate::builder::BuilderCounters;
use crate::check::CheckReport;
use crate::monitor::PatternReport;
use crate::ring::RingCounters;

/// Fragments that reached no event, by reason, in addition to [`BuilderCounters`] and [`RingCounters`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReceiverCounters {
    /// Fragments of which header, length and CRC-32C are right.
    pub fragments_good: u64,
    /// Payload bytes of these.
    pub bytes_good: u64,
    /// No fragment header, a damaged one, or a length that is not the message's.
    pub fragments_malformed: u64,
    pub fragments_crc_error: u64,
    /// The header names another board than that of the ring.
    pub fragments_wrong_source: u64,
    /// Events on disk, and their payload bytes; of a sink without a disk those handed to it.
    pub events_stored: u64,
    pub bytes_stored: u64,
    /// How often storage could not go on, and had to be waited for.
    pub store_stalls: u64,
    /// How often storage or a consumer was slower than the boards, and was waited for.
    pub store_waits: u64,
    /// Copied out of a pool that ran low, to wait for the rest of their events.
    pub fragments_copied: u64,
    /// That should have been, when there was no room for a copy.
    pub copies_refused: u64,
}

/// Everything a receiver can say about a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReceiverReport {
    pub receiver: ReceiverCounters,
    pub builder: BuilderCounters,
    /// One for each board.
    pub rings: Vec<RingCounters>,
    /// None if there is no reference to compare with.
    pub check: Option<CheckReport>,
    /// One for each board; none if no pattern is looked for.
    pub pattern: Option<Vec<PatternReport>>,
}
