// SPDX-License-Identifier: Apache-2.0
//! The payload of a packet: real bytes, or only their number.
//! Software nodes of the simulator move millions of packets; a virtual payload costs them nothing
//! and is written as zeros where bytes are required.

use bytes::Bytes;

/// Payload of one packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// These bytes.
    Bytes(Bytes),
    /// This many bytes of no interest; zeros on a wire.
    Virtual(u32),
}

impl Payload {
    /// No payload.
    pub const EMPTY: Payload = Payload::Virtual(0);

    /// Bytes of payload, without padding.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Virtual(len) => *len as usize,
        }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The real bytes, if there are any.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Payload::Bytes(bytes) => Some(bytes),
            Payload::Virtual(_) => None,
        }
    }
}

impl Default for Payload {
    fn default() -> Self {
        Payload::EMPTY
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Payload::Bytes(bytes)
    }
}
