// SPDX-License-Identifier: Apache-2.0
//! The events of a stream; each one is a call of [`step`](super::step).

use penstock_wire::{SynOptions, TcpFlags, TcpPacket};

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// The user opens the connection; `iss` is the sequence number of its SYN (RFC 9293 section 3.4.1: not to be
    /// guessed). Only in CLOSED.
    Open {
        /// Initial sequence number.
        iss: u32,
    },
    /// The user ends it: an RST, as this TCP has no other end.
    Abort,
    /// The user has written that many bytes more; at most 2^30 may be without an acknowledgement.
    Written {
        /// How many.
        bytes: u32,
    },
    /// A segment with the stream's addresses and ports and a right checksum.
    Segment(Arrival),
    /// A router could not forward a segment that began at `seq`: its next link takes `mss` bytes of payload (ICMP type 3
    /// code 4, RFC 1191). Without effect while data is acknowledged; otherwise from the next timeout on, for ten
    /// minutes.
    PathMtu {
        /// Sequence number in the returned header.
        seq: u32,
        /// Payload bytes that fit.
        mss: u16,
    },
    /// Time has passed.
    Tick,
    /// The line is free: the step may send one segment.
    Transmit,
}

/// The fields of a segment that count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Arrival {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Control bits.
    pub flags: TcpFlags,
    /// The window as in the header.
    pub window: u16,
    /// Bytes of payload.
    pub len: u16,
    /// Options, which count in a SYN only.
    pub options: SynOptions,
}

impl Arrival {
    /// Those of a packet.
    pub fn of(packet: &TcpPacket) -> Arrival {
        Arrival {
            seq: packet.seq,
            ack: packet.ack,
            flags: packet.flags,
            window: packet.window,
            // A packet of IPv4 has less than 2^16 bytes.
            len: packet.payload.len() as u16,
            options: packet.options,
        }
    }

    /// Whether all bits of `flags` are set.
    pub(super) fn has(&self, flags: TcpFlags) -> bool {
        self.flags.contains(flags)
    }

    /// SEG.LEN: SYN and FIN count one each (RFC 9293 section 3.4).
    pub(super) fn seq_len(&self) -> u32 {
        u32::from(self.len) + u32::from(self.has(TcpFlags::SYN)) + u32::from(self.has(TcpFlags::FIN))
    }
}
