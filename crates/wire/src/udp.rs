// SPDX-License-Identifier: Apache-2.0
//! UDP header before the BTH: port 4791, checksum 0 because the ICRC covers the packet.
//! A nonzero checksum is not verified: the ICRC is stronger and always present.
//! Sources: RFC 768; IBTA annex A17.3. Why no crate is used: `ethernet.rs`.

use crate::bytesio::{be16, put16};
use crate::error::ParseError;

/// Offsets of the fields, in bytes.
mod at {
    pub const SRC_PORT: usize = 0;
    pub const DST_PORT: usize = 2;
    pub const LENGTH: usize = 4;
    pub const CHECKSUM: usize = 6;
}

pub(crate) const LEN: usize = 8;
pub(crate) const PROTOCOL: u8 = 17;

/// Destination port of RoCEv2, as assigned by IANA.
pub const UDP_PORT_ROCE: u16 = 4791;

/// A UDP header over bytes known to be there.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a>(&'a [u8]);

impl<'a> UdpView<'a> {
    /// Checks that the header is there.
    ///
    /// # Errors
    /// `Truncated` below 8 bytes.
    pub fn new_checked(data: &'a [u8]) -> Result<Self, ParseError> {
        if data.len() < LEN {
            return Err(ParseError::Truncated { layer: "UDP", needed: LEN, available: data.len() });
        }
        Ok(UdpView(data))
    }

    /// Source port: the flow's label for equal-cost multipath.
    pub fn src_port(&self) -> u16 {
        be16(self.0, at::SRC_PORT)
    }

    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        be16(self.0, at::DST_PORT)
    }

    /// Length field: header and payload.
    pub fn len(&self) -> usize {
        usize::from(be16(self.0, at::LENGTH))
    }

    /// Whether the length field admits no payload.
    pub fn is_empty(&self) -> bool {
        self.len() <= LEN
    }
}

pub(crate) fn write(data: &mut [u8], src_port: u16, len: u16) {
    put16(data, at::SRC_PORT, src_port);
    put16(data, at::DST_PORT, UDP_PORT_ROCE);
    put16(data, at::LENGTH, len);
    put16(data, at::CHECKSUM, 0);
}
