// SPDX-License-Identifier: Apache-2.0
//! Ethernet II header: destination, source, EtherType. Frames carry no preamble and no FCS here.
//! Source: IEEE 802.3 clause 3.2.
//! This file, `ipv4.rs`, `udp.rs` and `tcp.rs` do not use the crate `etherparse`, because the tests need it as an
//! independent reference. `zerocopy` would only replace the offsets of a few fields by a derive macro; all checks would
//! remain.

use crate::bytesio::{be16, put16};
use crate::error::ParseError;
use core::fmt;

pub(crate) const LEN: usize = 14;
pub(crate) const CN_TAG_LEN: usize = 4;

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of the CN-TAG (IEEE 802.1Qau clause 33.2): flow ID, then the EtherType of what follows.
pub const ETHERTYPE_CN_TAG: u16 = 0x22E9;
/// EtherType of MAC control: pause and PFC.
pub const ETHERTYPE_MAC_CONTROL: u16 = 0x8808;

/// A MAC address, first octet on the wire first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddr = MacAddr([0xFF; 6]);

    /// Whether the group bit is set.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An Ethernet header over bytes known to be there.
#[derive(Clone, Copy, Debug)]
pub struct EthernetView<'a>(&'a [u8]);

impl<'a> EthernetView<'a> {
    /// Checks the length.
    ///
    /// # Errors
    /// `Truncated` below 14 bytes.
    pub fn new_checked(frame: &'a [u8]) -> Result<Self, ParseError> {
        if frame.len() < LEN {
            return Err(ParseError::Truncated { layer: "Ethernet", needed: LEN, available: frame.len() });
        }
        Ok(EthernetView(frame))
    }

    /// Destination address.
    pub fn dst(&self) -> MacAddr {
        mac_at(self.0, 0)
    }

    /// Source address.
    pub fn src(&self) -> MacAddr {
        mac_at(self.0, 6)
    }

    /// EtherType, or the length below 1536.
    pub fn ethertype(&self) -> u16 {
        be16(self.0, 12)
    }

    /// The bytes after the header.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[LEN..]
    }
}

/// The flow ID of a frame's CN-TAG, and where the payload begins; the frame has a whole header.
pub(crate) fn cn_tag(frame: &[u8]) -> (Option<u16>, usize) {
    match be16(frame, 12) == ETHERTYPE_CN_TAG && frame.len() >= LEN + CN_TAG_LEN {
        true => (Some(be16(frame, LEN)), LEN + CN_TAG_LEN),
        false => (None, LEN),
    }
}

fn mac_at(frame: &[u8], at: usize) -> MacAddr {
    let mut octets = [0; 6];
    octets.copy_from_slice(&frame[at..at + 6]);
    MacAddr(octets)
}

pub(crate) fn write(frame: &mut [u8], dst: MacAddr, src: MacAddr, ethertype: u16) {
    frame[..6].copy_from_slice(&dst.0);
    frame[6..12].copy_from_slice(&src.0);
    put16(frame, 12, ethertype);
}
