// SPDX-License-Identifier: Apache-2.0
//! The announcements of a board: messages, and lists of successors that READs bring.
//! Promise: every fragment is announced once, in order. An idle board announces at once, in a message, and so does one
//! whose only unread fragment is long: its successors come with its end, a round trip too late, and a message costs less
//! than a hundredth of it. Of any other board that has announced more than the server has read, the READs bring what
//! follows.
//! Source: `penstock_wire::Announcement`.

use std::collections::VecDeque;

use penstock_wire::{
    announcement, successors_to_bytes, Announced, Entry, ANNOUNCEMENT_EVENTS, ANNOUNCEMENT_HEADER_LEN, SUCCESSORS_LEN,
};

/// A fragment of this many bytes is long: a message is a hundredth of it on the wire.
const LONG: u32 = 10_000;

/// What a board announces over one connection.
#[derive(Debug)]
pub struct Announcements {
    rkey: u32,
    stride: u32,
    /// Fragments of one message: it is one packet, and fits into a slot.
    most: usize,
    /// Not announced.
    waiting: VecDeque<Announced>,
    last: Option<Announced>,
    /// Fragments that are announced and whose successors have not been read.
    unread: usize,
    /// A message is not acknowledged. Until then nothing else is announced, so that it cannot be overtaken.
    is_outstanding: bool,
    /// Fragments that were named as successors, modulo 256.
    carried: u8,
}

impl Announcements {
    /// `rkey`: key of the memory that holds the fragments; `stride`: bytes from one to the next; `mtu`: bytes.
    #[must_use]
    pub fn new(rkey: u32, stride: u32, mtu: usize) -> Self {
        let most = announcement_events(mtu);
        Self { rkey, stride, most, waiting: VecDeque::new(), last: None, unread: 0, is_outstanding: false, carried: 0 }
    }

    /// A fragment is there. Events rise.
    pub fn push(&mut self, fragment: Announced) {
        self.waiting.push_back(fragment);
    }

    /// Fragments that are not announced.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The message to send now.
    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        let first = *self.waiting.front()?;
        let is_last = self.unread == 1 && self.last.is_some_and(|last| last.length >= LONG);
        let is_brought = self.unread > 0 && !is_last && self.entry_of(&first).is_some();
        if self.is_outstanding || is_brought {
            return None;
        }
        let mut rest = Vec::new();
        self.take(first);
        while let Some(entry) = self.waiting.front().and_then(|next| self.entry_of(next)) {
            if rest.len() + 1 == self.most {
                break;
            }
            rest.push(entry);
            self.take_first();
        }
        self.is_outstanding = true;
        Some(announcement(self.carried, (self.rkey, self.stride), first, &rest))
    }

    /// The message has been acknowledged.
    pub fn acknowledged(&mut self) {
        self.is_outstanding = false;
    }

    /// The bytes after the fragment that is read now, the oldest one whose successors have not been read. They stay the
    /// same if that READ is repeated.
    pub fn poll_successors(&mut self) -> [u8; SUCCESSORS_LEN] {
        self.unread = self.unread.saturating_sub(1);
        successors_to_bytes(std::array::from_fn(|_| {
            let next = self.waiting.front().filter(|_| !self.is_outstanding);
            let Some(entry) = next.and_then(|next| self.entry_of(next)) else { return Entry::default() };
            self.carried = self.carried.wrapping_add(1);
            self.take_first();
            entry
        }))
    }

    /// The entry that names a fragment after the last one.
    fn entry_of(&self, next: &Announced) -> Option<Entry> {
        self.last?.entry_of(next, self.stride)
    }

    fn take_first(&mut self) {
        if let Some(first) = self.waiting.front().copied() {
            self.take(first);
        }
    }

    fn take(&mut self, first: Announced) {
        self.waiting.pop_front();
        self.last = Some(first);
        self.unread += 1;
    }
}

/// Fragments of one message in one packet.
fn announcement_events(mtu: usize) -> usize {
    const ENTRY_LEN: usize = SUCCESSORS_LEN / penstock_wire::SUCCESSORS;
    (mtu.saturating_sub(ANNOUNCEMENT_HEADER_LEN) / ENTRY_LEN).clamp(1, ANNOUNCEMENT_EVENTS)
}
