// SPDX-License-Identifier: Apache-2.0
//! Work requests into the gateware and completions out of it; the layouts of `desc_t` and `cpl_t`
//! in `rtl/lib/penstock_pkg.sv`.

use crate::ffi::Pins;
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;

/// RDMA operation of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Write,
    Send,
    /// WRITE WITH IMMEDIATE into the next slot of the queue pair's ring: address and immediate are the gateware's to fill in.
    /// The ring begins again at slot 0 with each connection that the connection manager opens.
    RingWrite,
}

/// One message for the board to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Queue-pair index on the board.
    pub qp: u8,
    pub verb: Verb,
    /// Immediate data, delivered with the receiver's completion. Not of a [`Verb::RingWrite`].
    pub imm: Option<u32>,
    /// Remote virtual address of the first byte (WRITE only). Of a [`Verb::RingWrite`] that a board keeps
    /// ([`crate::Board::keep_fragments`]) the number of its event, which rises.
    pub remote_address: u64,
    /// The caller's mark, returned with the completion.
    pub tag: u32,
    /// 1 byte to 2^31 bytes.
    pub payload: Bytes,
}

impl Message {
    /// The 176 bits of `desc_t`, least significant word first.
    fn descriptor(&self) -> [u32; 6] {
        let in_ring = u32::from(self.verb == Verb::RingWrite);
        let flags = u32::from(self.verb == Verb::Send) | u32::from(self.imm.is_some()) << 1 | in_ring << 2;
        let low = u128::from(self.qp)
            | u128::from(flags) << 8
            | (self.payload.len() as u128) << 16
            | u128::from(self.remote_address) << 48
            | u128::from(self.imm.unwrap_or(0) & 0xffff) << 112;
        let high = u64::from(self.imm.unwrap_or(0) >> 16) | u64::from(self.tag) << 16;
        let mut words = [0; 6];
        for (i, word) in words.iter_mut().enumerate() {
            *word = if i < 4 { (low >> (32 * i)) as u32 } else { (high >> (32 * (i - 4))) as u32 };
        }
        words
    }
}

/// How a message ended, numbered as `enum ibv_wc_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WcStatus {
    Success,
    LocalLength,
    Flushed,
    RemoteInvalidRequest,
    RemoteAccess,
    RemoteOperation,
    RetryExceeded,
    RnrRetryExceeded,
    RemoteAborted,
    Unknown(u8),
}

impl From<u8> for WcStatus {
    fn from(code: u8) -> Self {
        match code {
            0 => Self::Success,
            1 => Self::LocalLength,
            5 => Self::Flushed,
            9 => Self::RemoteInvalidRequest,
            10 => Self::RemoteAccess,
            11 => Self::RemoteOperation,
            12 => Self::RetryExceeded,
            13 => Self::RnrRetryExceeded,
            16 => Self::RemoteAborted,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::LocalLength => "local length error: descriptor and data disagree",
            Self::Flushed => "flushed: the queue pair was already in error",
            Self::RemoteInvalidRequest => "remote invalid request (NAK 1)",
            Self::RemoteAccess => "remote access error (NAK 2): rkey or address refused by the server",
            Self::RemoteOperation => "remote operation error (NAK 3)",
            Self::RetryExceeded => "transport retry count exceeded: the server does not answer",
            Self::RnrRetryExceeded => "RNR retry count exceeded: the server posts no receives",
            Self::RemoteAborted => "aborted: the server has refused, reset or closed the stream",
            Self::Unknown(code) => return write!(f, "unknown status {code}"),
        })
    }
}

/// The end of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub cycle: u64,
    pub qp: u8,
    pub status: WcStatus,
    pub tag: u32,
}

impl Completion {
    pub(crate) fn from_bits(cycle: u64, bits: u64) -> Self {
        Self { cycle, qp: bits as u8, status: WcStatus::from((bits >> 8) as u8), tag: (bits >> 32) as u32 }
    }
}

/// Drives the descriptor and data streams; data of a message follows its descriptor in order.
pub(crate) struct MessagePort {
    /// Bytes of a beat.
    lanes: usize,
    descriptors: VecDeque<[u32; 6]>,
    payloads: VecDeque<Bytes>,
    offset: usize,
}

impl MessagePort {
    pub fn new(lanes: usize) -> Self {
        Self { lanes, descriptors: VecDeque::new(), payloads: VecDeque::new(), offset: 0 }
    }

    pub fn post(&mut self, message: Message) {
        self.descriptors.push_back(message.descriptor());
        self.payloads.push_back(message.payload);
    }

    /// Messages whose last data beat has not been taken.
    pub fn pending(&self) -> usize {
        self.payloads.len()
    }

    pub fn drive(&self, pins: &mut Pins) {
        pins.desc_tvalid = u8::from(!self.descriptors.is_empty());
        if let Some(descriptor) = self.descriptors.front() {
            pins.desc_tdata = *descriptor;
        }
        pins.data_tvalid = u8::from(!self.payloads.is_empty());
        let Some(payload) = self.payloads.front() else { return };
        let rest = &payload[self.offset..];
        let beat = &rest[..rest.len().min(self.lanes)];
        for (word, bytes) in pins.data_tdata.iter_mut().zip(beat.chunks(8)) {
            *word = word_of(bytes);
        }
        pins.data_tkeep = u64::MAX.checked_shr(64 - beat.len() as u32).unwrap_or(0);
        pins.data_tlast = u8::from(beat.len() == rest.len());
    }

    pub fn observe(&mut self, pins: &Pins) {
        if pins.desc_tvalid & pins.desc_tready != 0 {
            self.descriptors.pop_front();
        }
        if pins.data_tvalid & pins.data_tready != 0 {
            self.offset += self.lanes;
            if pins.data_tlast != 0 {
                self.offset = 0;
                self.payloads.pop_front();
            }
        }
    }
}

/// A word of at most eight bytes, filled up with zeros.
pub(crate) fn word_of(bytes: &[u8]) -> u64 {
    if let Some(whole) = bytes.first_chunk() {
        return u64::from_le_bytes(*whole);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_fields_lie_where_desc_t_has_them() {
        let message = Message {
            qp: 0x12,
            verb: Verb::Send,
            imm: Some(0xa1b2_c3d4),
            remote_address: 0x0102_0304_0506_0708,
            tag: 0xdead_beef,
            payload: Bytes::from_static(&[0; 0x456]),
        };
        let w = message.descriptor();
        let field = |low: usize, bits: usize| -> u64 {
            (0..bits).map(|i| u64::from(w[(low + i) / 32] >> ((low + i) % 32) & 1) << i).sum()
        };
        // Offsets summed by hand from penstock_pkg::desc_t, last member lowest.
        assert_eq!(field(0, 8), 0x12);
        assert_eq!(field(8, 1), 1);
        assert_eq!(field(9, 1), 1);
        assert_eq!(field(10, 6), 0);
        assert_eq!(field(16, 32), 0x456);
        assert_eq!(field(48, 64), 0x0102_0304_0506_0708);
        assert_eq!(field(112, 32), 0xa1b2_c3d4);
        assert_eq!(field(144, 32), 0xdead_beef);
        let in_ring = Message { verb: Verb::RingWrite, imm: None, ..message };
        assert_eq!((in_ring.descriptor()[0] >> 8) & 0xff, 0b100, "desc_t.in_ring");
    }
}
