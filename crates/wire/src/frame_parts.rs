// SPDX-License-Identifier: Apache-2.0
//! A frame as the pieces of a gathering send: headers, payload in place, padding with ICRC.
//! Promise: joined, the pieces are equal to the result of `RocePacket::emit`; the payload is not copied.
//! Source: IBTA vol. 1, annex A17.3; sendmsg(2).

use bytes::Bytes;
use crc32fast::Hasher;

pub(crate) const ICRC_LEN: usize = 4;
/// Ethernet with a CN-TAG, IPv4, UDP, BTH, RETH and immediate: the longest headers before a payload.
pub(crate) const HEAD_MAX: usize = 78;
const PAD_MAX: usize = 3;

/// One frame, without FCS.
#[derive(Clone, Debug)]
pub struct FrameParts {
    head: [u8; HEAD_MAX],
    head_len: u8,
    payload: Bytes,
    tail: [u8; PAD_MAX + ICRC_LEN],
    tail_len: u8,
}

impl FrameParts {
    /// `icrc` has seen headers and payload.
    pub(crate) fn new(head: [u8; HEAD_MAX], head_len: usize, payload: Bytes, pad: usize, mut icrc: Hasher) -> Self {
        let mut tail = [0; PAD_MAX + ICRC_LEN];
        icrc.update(&tail[..pad]);
        tail[pad..pad + ICRC_LEN].copy_from_slice(&icrc.finalize().to_le_bytes());
        FrameParts { head, head_len: head_len as u8, payload, tail, tail_len: (pad + ICRC_LEN) as u8 }
    }

    /// The pieces in order; a payload may be empty.
    pub fn pieces(&self) -> [&[u8]; 3] {
        [&self.head[..self.head_len.into()], &self.payload, &self.tail[..self.tail_len.into()]]
    }
}
