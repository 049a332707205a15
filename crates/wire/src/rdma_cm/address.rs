// SPDX-License-Identifier: Apache-2.0
//! Addresses in the private data of a REQ, and ports as service identifiers: how hosts that have IP addresses use the
//! connection manager. Source: IBTA vol. 1 annex A11; the port space is that of TCP, as `RDMA_PS_TCP` of librdmacm.
//!
//! ```text
//!  0         1              2..3          4..19           20..35
//! | version | IP version 4 | source port | source address | destination address |
//! ```

use crate::bytesio::{be16, be32, put16, put32};
use core::net::Ipv4Addr;

/// Bytes of the addresses at the start of a REQ's private data.
pub const ADDRESSING_LEN: usize = 36;

/// Service identifiers of TCP's port space, without the port.
const TCP_SPACE: u64 = 0x0106_0000;

mod at {
    pub const VERSION: usize = 0;
    pub const IP_VERSION: usize = 1;
    pub const PORT: usize = 2;
    /// An IPv4 address takes the last 4 of 16 bytes.
    pub const SRC: usize = 4 + 12;
    pub const DST: usize = 20 + 12;
}

const IPV4: u8 = 4;

/// Service identifier of a port.
pub const fn rdma_cm_service(port: u16) -> u64 {
    TCP_SPACE | port as u64
}

/// Port of a service identifier; none if it is not in TCP's port space.
pub const fn rdma_cm_port(service: u64) -> Option<u16> {
    match service & !0xFFFF {
        TCP_SPACE => Some(service as u16),
        _ => None,
    }
}

/// Addresses of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpAddressing {
    /// Port of the active side; the passive side's is in the service identifier.
    pub port: u16,
    /// Address of the active side.
    pub src: Ipv4Addr,
    /// Address of the passive side.
    pub dst: Ipv4Addr,
}

impl IpAddressing {
    /// Reads the start of a REQ's private data; none if it has another version or IPv6 addresses.
    pub fn read(private: &[u8]) -> Option<Self> {
        if private.len() < ADDRESSING_LEN || private[at::VERSION] != 0 || private[at::IP_VERSION] >> 4 != IPV4 {
            return None;
        }
        Some(IpAddressing {
            port: be16(private, at::PORT),
            src: Ipv4Addr::from_bits(be32(private, at::SRC)),
            dst: Ipv4Addr::from_bits(be32(private, at::DST)),
        })
    }

    /// Writes it over zeros, of which there must be [`ADDRESSING_LEN`].
    pub fn write(&self, private: &mut [u8]) {
        private[at::IP_VERSION] = IPV4 << 4;
        put16(private, at::PORT, self.port);
        put32(private, at::SRC, self.src.to_bits());
        put32(private, at::DST, self.dst.to_bits());
    }
}
