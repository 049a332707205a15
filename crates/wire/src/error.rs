// SPDX-License-Identifier: Apache-2.0
//! Why a frame is invalid; each variant carries the offending value.
//! A frame of another protocol (ARP, TCP, IPv6) is not an error: it parses as `Packet::Raw`.

use core::net::Ipv4Addr;

/// A frame that claims to be RoCEv2 or MAC control and breaks its rules. Count it and drop it, or
/// carry its bytes on as `Packet::Raw`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// The frame ends inside a header.
    #[error("{layer} header needs {needed} bytes but the frame has {available} left: it was cut short")]
    Truncated {
        /// Header that did not fit.
        layer: &'static str,
        /// Bytes the header needs.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// A length field disagrees with the frame or with the field around it.
    #[error("{layer} length field says {field} bytes where {actual} are possible")]
    BadLength {
        /// Header with the field.
        layer: &'static str,
        /// What it says.
        field: usize,
        /// What the surroundings allow or require.
        actual: usize,
    },
    /// RFC 791 header checksum.
    #[error("IPv4 header checksum is {found:#06x}, computed {computed:#06x}")]
    BadIpChecksum {
        /// Value found in the header.
        found: u16,
        /// The checksum over the header.
        computed: u16,
    },
    /// RFC 9293 checksum over pseudo-header and segment.
    #[error("TCP checksum is {found:#06x}, computed {computed:#06x}")]
    BadTcpChecksum {
        /// Value found in the header.
        found: u16,
        /// The checksum over the segment.
        computed: u16,
    },
    /// An EtherType of IPv4 over another version (RFC 791 3.1).
    #[error("IP version {version} in a frame of IPv4")]
    IpVersion {
        /// Version field.
        version: u8,
    },
    /// RoCEv2 allows no IPv4 options (annex A17.3), and no sender here uses any.
    #[error("IPv4 header of {header_len} bytes: options are not allowed")]
    IpOptions {
        /// Header length in bytes.
        header_len: usize,
    },
    /// RoCEv2 packets are never fragmented (annex A17.3).
    #[error("IPv4 fragment from {src}: set the path MTU so that packets fit")]
    Fragmented {
        /// Sender.
        src: Ipv4Addr,
    },
    /// BTH transport header version other than 0 (IBTA 9.2).
    #[error("BTH version {version}: only version 0 exists")]
    BthVersion {
        /// TVer field.
        version: u8,
    },
    /// PadCnt does not fit the payload (IBTA 9.2).
    #[error("BTH pad count {pad} with {body} bytes behind the headers: not a whole number of words")]
    BadPadCount {
        /// PadCnt field.
        pad: u8,
        /// Payload and pad bytes.
        body: usize,
    },
    /// Invariant CRC (annex A17.3): the packet was damaged after the last FCS check.
    #[error("ICRC is {found:#010x}, computed {computed:#010x}")]
    BadIcrc {
        /// Value found in the packet.
        found: u32,
        /// The ICRC over the packet.
        computed: u32,
    },
}

/// A `RocePacket` whose fields contradict each other and that therefore has no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReprError {
    /// The opcode calls for an extension header that is `None`, or forbids one that is `Some`.
    #[error("opcode {opcode:#04x} and the {header} field disagree: {header} must be {}", if *.required {"Some"} else {"None"})]
    Extension {
        /// Opcode in the BTH.
        opcode: u8,
        /// Which header.
        header: &'static str,
        /// Whether the opcode carries it.
        required: bool,
    },
    /// More payload than any path MTU, or any payload in a CNP or ACK.
    #[error("payload of {len} bytes where opcode {opcode:#04x} allows {max}")]
    PayloadTooLong {
        /// Opcode in the BTH.
        opcode: u8,
        /// Payload bytes.
        len: usize,
        /// Most that fits.
        max: usize,
    },
}
