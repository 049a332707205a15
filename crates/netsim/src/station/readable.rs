// SPDX-License-Identifier: Apache-2.0
//! The memory that a host answers READs from: only lengths, or messages with real bytes.
//! Promise: a READ within one message that is kept gets its bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use penstock_transport::{Memory, Unreadable};
use penstock_wire::Payload;

/// Messages side by side, oldest first.
pub(super) enum Readable {
    /// Only lengths: any address may be read.
    Lengths,
    /// First address and bytes of each message.
    Messages(VecDeque<(u64, Bytes)>),
}

impl Readable {
    /// A message is there from `va` on; addresses rise.
    pub(super) fn keep(&mut self, va: u64, bytes: Bytes) {
        if let Readable::Messages(kept) = self {
            kept.push_back((va, bytes));
        }
    }

    /// No message before `va` is read any more.
    pub(super) fn release_before(&mut self, va: u64) {
        if let Readable::Messages(kept) = self {
            kept.drain(..kept.partition_point(|(first, _)| *first < va));
        }
    }
}

impl Memory for Readable {
    fn write(&mut self, _va: u64, _data: &Payload) {}

    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        let Readable::Messages(kept) = self else { return Ok(Payload::Virtual(len)) };
        let after = kept.partition_point(|(first, _)| *first <= va);
        let (first, bytes) = after.checked_sub(1).and_then(|at| kept.get(at)).ok_or(Unreadable)?;
        let begin = usize::try_from(va - first).map_err(|_| Unreadable)?;
        let end = begin.checked_add(len as usize).filter(|end| *end <= bytes.len()).ok_or(Unreadable)?;
        Ok(Payload::Bytes(bytes.slice(begin..end)))
    }
}
