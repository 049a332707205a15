// SPDX-License-Identifier: Apache-2.0
//! Everything Penstock sends on the wire: RoCEv2 packets, TCP segments, MAC control frames, and the readout's own
//! fragment header and announcement, each as a checked view over bytes and a validated representation (`Repr`).
//! It does no I/O, reads no clock, and never copies a payload it parses.
//! Sources: IBTA specification vol. 1 clause 9 and annex A17 (RoCEv2), RFC 791, RFC 768, RFC 9293, IEEE 802.3
//! clause 31 and annex 31B (pause), IEEE 802.1Qbb (PFC).
//!
//! ```text
//! destination MAC .. EtherType | IPv4 | UDP 4791 | BTH [RETH] [ImmDt] [AETH] | payload | pad | ICRC
//!          14                    20      8          12   16      4       4      0..4096  0..3   4
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod aeth;
mod announcement;
mod arp;
mod bth;
mod bytesio;
mod cm;
mod cnm;
mod crc;
mod error;
mod ethernet;
mod five_tuple;
pub mod fragment;
mod frame_parts;
pub mod gateware;
mod ipv4;
mod mac_control;
mod opcode;
mod packet;
mod payload;
mod prbs31;
mod psn;
mod rdma_cm;
mod reth;
mod roce;
mod stream_frame;
mod tcp;
mod udp;

pub use aeth::{AethRepr, Credits, NakCode, RnrTimer, Syndrome};
pub use announcement::{
    announcement, announcement_len, successors_from_bytes, successors_to_bytes, Announced, Announcement,
    AnnouncementError, Entry, Successors, ANNOUNCEMENT_EVENTS, ANNOUNCEMENT_HEADER_LEN, ANNOUNCEMENT_SLOTS,
    ANNOUNCEMENT_SLOT_LEN, PULL_READS, SUCCESSORS, SUCCESSORS_LEN,
};
pub use arp::{Arp, ETHERTYPE_ARP};
pub use bth::BthRepr;
pub use cm::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, CM_LEN, CM_REPLY_PORT, CM_REQUEST_PORT};
pub use cnm::Cnm;
pub use core::net::Ipv4Addr;
pub use crc::{crc32c, fcs, icrc};
pub use error::{ParseError, ReprError};
pub use ethernet::{EthernetView, MacAddr, ETHERTYPE_IPV4};
pub use five_tuple::FiveTuple;
pub use fragment::{FragmentError, FragmentHeader, FragmentId, FragmentMessage, Part, PartFlags, Parts};
pub use frame_parts::FrameParts;
pub use ipv4::{Ecn, Ipv4View};
pub use mac_control::MacControl;
pub use opcode::{Opcode, Operation, Position};
pub use packet::Packet;
pub use payload::Payload;
pub use prbs31::Prbs31;
pub use psn::{Psn, Qpn};
pub use rdma_cm::{
    rdma_cm_port, rdma_cm_service, IpAddressing, MadError, MadIds, Mra, RdmaCmMad, RdmaCmMessage, Rej, RejReason,
    Rejected, Rep, Req, Service, ADDRESSING_LEN, GSI_QKEY, GSI_QPN, MAD_DATAGRAM_LEN, MAD_LEN, REP_PRIVATE_LEN,
    REQ_PRIVATE_LEN, UD_SEND_ONLY,
};
pub use reth::RethRepr;
pub use roce::RocePacket;
pub use stream_frame::{
    read_stream_header, read_stream_refusal, stream_header, stream_padding, stream_refusal, STREAM_HEADER_LEN,
    STREAM_REFUSAL_LEN,
};
pub use tcp::{SackBlocks, SynOptions, TcpFlags, TcpPacket};
pub use udp::{UdpView, UDP_PORT_ROCE};

/// Bytes that a frame needs on the wire in addition to its own: preamble and start delimiter (8), FCS (4)
/// and the average inter-packet gap (12). IEEE 802.3 clause 4A.4.2.
pub const WIRE_OVERHEAD: usize = 8 + 4 + 12;

/// The shortest Ethernet frame without its FCS (IEEE 802.3 clause 3.2.7).
pub const MIN_FRAME_LEN: usize = 60;

/// Octets of link time that a frame of `frame_len` bytes without its FCS costs: padded to the shortest, plus
/// [`WIRE_OVERHEAD`]; 84 at least.
#[inline]
pub const fn wire_len(frame_len: usize) -> usize {
    (if frame_len < MIN_FRAME_LEN { MIN_FRAME_LEN } else { frame_len }) + WIRE_OVERHEAD
}

/// The default partition key with full membership (IBTA 10.9.1.2).
pub const DEFAULT_PKEY: u16 = 0xFFFF;
