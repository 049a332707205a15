// SPDX-License-Identifier: Apache-2.0
//! Messages with real bytes: their contents, and the ring at the receiver that they fill.
//! Promise: bytes are kept until the peer has acknowledged them, because a packet may have to be sent again.
//! Source: ARCHITECTURE.md, "The way of a fragment" (message n goes to slot n modulo the ring).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use penstock_transport::PayloadSource;
use penstock_wire::Payload;

use crate::flow::Message;
use crate::units::Time;

/// The memory of a receiver that a flow may write: slots side by side, filled in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteRing {
    /// First virtual address.
    pub va: u64,
    pub rkey: u32,
    pub slots: u32,
    pub slot_bytes: u32,
}

impl RemoteRing {
    /// The slot of message `number` of a flow, counted from 0, which is its immediate, and the slot's first address.
    pub fn place(&self, number: u64) -> (u32, u64) {
        let slot = (number % u64::from(self.slots)) as u32;
        (slot, self.va + u64::from(slot) * u64::from(self.slot_bytes))
    }
}

/// The contents of the messages of one flow, byte for byte.
pub trait Contents: Send + Sync {
    /// The message of event number `event`, which happened at `at`.
    fn message(&self, event: u64, at: Time) -> Bytes;

    /// The source of the fragments.
    fn source_id(&self) -> u16;

    /// The same as a detector gives it: the raw bytes for each input of a board that makes the message by itself.
    fn streams(&self, event: u64) -> Vec<Bytes>;

    /// The trigger type of event number `event`, as the detector gives it.
    fn trigger_type(&self, event: u64) -> u16;
}

/// Contents and where they go.
#[derive(Clone)]
pub struct Fragments {
    pub ring: RemoteRing,
    pub contents: Arc<dyn Contents>,
}

impl fmt::Debug for Fragments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fragments").field("ring", &self.ring).finish_non_exhaustive()
    }
}

/// The messages of a sender that are not acknowledged yet. Their local addresses are numbered on, byte by byte.
pub(crate) struct Outgoing {
    fragments: Fragments,
    /// First address and bytes.
    kept: VecDeque<(u64, Bytes)>,
    next_va: u64,
    taken: u64,
}

/// Addresses of a message that is about to be posted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posted {
    pub(crate) va: u64,
    pub(crate) remote_va: u64,
    pub(crate) slot: u32,
}

impl Outgoing {
    pub(crate) fn new(fragments: Fragments) -> Self {
        Outgoing { fragments, kept: VecDeque::new(), next_va: 0, taken: 0 }
    }

    pub(crate) fn rkey(&self) -> u32 {
        self.fragments.ring.rkey
    }

    /// Takes the bytes of a message.
    pub(crate) fn take(&mut self, message: &Message) {
        let bytes = self.fragments.contents.message(message.event, message.at);
        debug_assert_eq!(bytes.len() as u64, message.bytes);
        self.next_va += self.kept.back().map_or(0, |(_, last)| last.len() as u64);
        self.kept.push_back((self.next_va, bytes));
        self.taken += 1;
    }

    /// Source and destination address of the message taken last.
    pub(crate) fn place(&self) -> Posted {
        let (slot, remote_va) = self.fragments.ring.place(self.taken.saturating_sub(1));
        Posted { va: self.next_va, remote_va, slot }
    }

    /// The oldest message is acknowledged.
    pub(crate) fn acknowledged(&mut self) {
        if self.kept.len() > 1 {
            self.kept.pop_front();
        }
    }
}

impl PayloadSource for Outgoing {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let after = self.kept.partition_point(|(first, _)| *first <= va);
        let Some((first, bytes)) = after.checked_sub(1).and_then(|at| self.kept.get(at)) else {
            return Payload::Virtual(len as u32);
        };
        let begin = (va - first) as usize;
        Payload::Bytes(bytes.slice(begin..begin + len))
    }
}
