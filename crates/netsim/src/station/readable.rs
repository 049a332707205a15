// SPDX-License-Identifier: Apache-2.0
//! The memory that a host answers READs from: any address by its length only, or the messages of a board that is pulled.
//! Promise: a READ within one message that is kept gets its bytes, if it has some, and the same successors each time.

use std::collections::VecDeque;

use bytes::Bytes;
use penstock_pull::Announcements;
use penstock_transport::{Memory, Unreadable};
use penstock_wire::{Payload, SUCCESSORS_LEN};

/// What may be read.
pub(super) enum Readable {
    /// Only lengths: any address may be read.
    Lengths,
    /// The messages of a board.
    Messages(Messages),
}

/// Messages one after the other, each with its successors after it.
pub(super) struct Messages {
    kept: VecDeque<Kept>,
    pub(super) announcements: Announcements,
}

/// A message in memory.
struct Kept {
    first: u64,
    length: u64,
    /// None: only its length.
    bytes: Option<Bytes>,
    /// Once they have been read.
    successors: Option<[u8; SUCCESSORS_LEN]>,
}

impl Messages {
    pub(super) fn new(announcements: Announcements) -> Self {
        Messages { kept: VecDeque::new(), announcements }
    }

    /// A message is there from `va` on; addresses rise.
    pub(super) fn keep(&mut self, va: u64, length: u64, bytes: Option<Bytes>) {
        self.kept.push_back(Kept { first: va, length, bytes, successors: None });
    }

    /// No message before `va` is read any more.
    pub(super) fn release_before(&mut self, va: u64) {
        self.kept.drain(..self.kept.partition_point(|kept| kept.first < va));
    }

    fn read(&mut self, va: u64, len: u32) -> Option<Payload> {
        let after = self.kept.partition_point(|kept| kept.first <= va);
        let kept = self.kept.get_mut(after.checked_sub(1)?)?;
        let begin = va - kept.first;
        let end = begin.checked_add(len.into()).filter(|end| *end <= kept.length + SUCCESSORS_LEN as u64)?;
        let bytes = kept.bytes.as_ref();
        let part = |begin: u64, end: u64| bytes.map(|bytes| bytes.slice(begin as usize..end as usize));
        if end <= kept.length {
            return Some(part(begin, end).map_or(Payload::Virtual(len), Payload::Bytes));
        }
        let split = begin.min(kept.length);
        let mut whole = part(split, kept.length).map_or_else(|| vec![0; (kept.length - split) as usize], Vec::from);
        let successors = kept.successors.get_or_insert_with(|| self.announcements.poll_successors());
        whole.extend_from_slice(
            &successors[(begin.max(kept.length) - kept.length) as usize..(end - kept.length) as usize],
        );
        Some(Payload::Bytes(whole.into()))
    }
}

impl Memory for Readable {
    fn write(&mut self, _va: u64, _data: &Payload) {}

    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        match self {
            Readable::Lengths => Ok(Payload::Virtual(len)),
            Readable::Messages(messages) => messages.read(va, len).ok_or(Unreadable),
        }
    }
}
