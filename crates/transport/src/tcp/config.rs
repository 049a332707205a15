// SPDX-License-Identifier: Apache-2.0
//! The settings of one direction of a TCP connection.

use penstock_units::Time;
use penstock_wire::{Ecn, MacAddr, Payload, SackBlocks, SynOptions, TcpFlags, TcpPacket};
use std::net::Ipv4Addr;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TcpEndpoint {
    /// MAC address.
    pub mac: MacAddr,
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// Port.
    pub port: u16,
}

/// How the window grows and shrinks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TcpVariant {
    /// RFC 5681 and 6582.
    #[default]
    NewReno,
    /// Binary search for the window at which packets were lost.
    Bic,
    /// RFC 9438.
    Cubic,
}

/// A program that reads nothing for a while: Linux is no real-time system (CMS-TCP section 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpStall {
    /// The beginning.
    pub start: Time,
    /// The duration.
    pub time: Time,
}

impl TcpStall {
    /// When the program reads again, if it does not at `now`.
    pub fn end_at(&self, now: Time) -> Option<Time> {
        let end = self.start.saturating_add(self.time);
        (self.start <= now && now < end).then_some(end)
    }
}

/// Settings of a connection; `TcpConfig::new` has those of RFC 5681, 6298 and 6928 and of a present-day Linux where
/// they leave a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpConfig {
    /// This side.
    pub local: TcpEndpoint,
    /// The other side.
    pub peer: TcpEndpoint,
    /// Initial sequence number of the data.
    pub iss: u32,
    /// Payload bytes of a full segment; 1460 fills a 1500-byte MTU.
    pub mss: u32,
    /// Congestion control.
    pub variant: TcpVariant,
    /// Whether the receiver reports what arrived out of order and the sender uses it.
    pub sack: bool,
    /// Segments that may be sent before the first ACK (RFC 6928: 10).
    pub initial_window: u32,
    /// Slow start ends at this many bytes at the latest; `u64::MAX`: at the first loss.
    pub initial_ssthresh: u64,
    /// Bytes that the receiver buffers, and so the largest window.
    pub receive_buffer: u64,
    /// When the receiver's program reads nothing; `None`: it reads at once.
    pub stall: Option<TcpStall>,
    /// Smallest retransmission timeout. RFC 6298 says 1 s, Linux uses 200 ms.
    pub min_rto: Time,
    /// An ACK is held back for a second segment at most so long; 0: every segment is acknowledged.
    pub delayed_ack: Time,
    /// Window scale of RFC 7323.
    pub window_shift: u8,
    /// Whether the simplified sender has Nagle's algorithm: while something is under way a short segment waits for more
    /// data, or for the acknowledgement of all (RFC 9293 section 3.7.4). The standard sender never waits.
    pub nagle: bool,
    /// Differentiated services code point of data and ACKs.
    pub dscp: u8,
}

impl TcpConfig {
    /// The defaults, for a sender at `local`; the receiver's is [`TcpConfig::reversed`].
    pub fn new(local: TcpEndpoint, peer: TcpEndpoint) -> Self {
        TcpConfig {
            local,
            peer,
            iss: 0,
            mss: 1460,
            variant: TcpVariant::default(),
            sack: false,
            initial_window: 10,
            initial_ssthresh: u64::MAX,
            receive_buffer: 4 << 20,
            stall: None,
            min_rto: Time::from_ms(200),
            delayed_ack: Time::from_ms(40),
            window_shift: 8,
            nagle: true,
            dscp: 0,
        }
    }

    /// The same connection seen from the other side.
    pub fn reversed(self) -> Self {
        TcpConfig { local: self.peer, peer: self.local, ..self }
    }

    /// What every packet from `local` to `peer` has in common: an ACK without data.
    pub fn empty_segment(&self) -> TcpPacket {
        TcpPacket {
            eth_dst: self.peer.mac,
            eth_src: self.local.mac,
            ip_src: self.local.ip,
            ip_dst: self.peer.ip,
            dscp: self.dscp,
            ecn: Ecn::NotEct,
            ttl: 64,
            src_port: self.local.port,
            dst_port: self.peer.port,
            seq: 0,
            ack: 0,
            flags: TcpFlags::ACK,
            window: u16::MAX,
            options: SynOptions::default(),
            sack: SackBlocks::default(),
            payload: Payload::EMPTY,
        }
    }

    /// A segment of `len` virtual bytes from offset `start`.
    pub(crate) fn segment(&self, start: u64, len: u64, push: bool) -> TcpPacket {
        let push = if push { TcpFlags::PSH } else { TcpFlags::default() };
        TcpPacket {
            seq: self.iss.wrapping_add(start as u32),
            flags: TcpFlags::ACK.with(push),
            payload: Payload::Virtual(len as u32),
            ..self.empty_segment()
        }
    }

    /// An ACK of everything below `ack`, as the receiver with this configuration sends it.
    pub(crate) fn acknowledgement(&self, ack: u64, window: u16, sack: SackBlocks) -> TcpPacket {
        TcpPacket { ack: self.iss.wrapping_add(ack as u32), window, sack, ..self.empty_segment() }
    }
}
