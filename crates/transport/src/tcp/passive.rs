// SPDX-License-Identifier: Apache-2.0
//! The side of a connection that waits for the other to open it, and gets its payload: an ordinary host's socket.
//! Promise: every byte of a connection is given out once, in order; while the program does not read, the window closes
//! to what the buffer still takes; a segment of no connection is answered by RST; another connection of the same peer
//! begins only after the end of the one before.
//! Source: RFC 9293 sections 3.10.7.2 to 3.10.7.4 (LISTEN, SYN-RECEIVED, ESTABLISHED), RFC 7323 section 2.2 (window
//! scale), RFC 5961 sections 3.2 and 4.2 (RST, SYN).

use super::{TcpConfig, TcpReceiver, TcpReceiverCounters};
use bytes::Bytes;
use penstock_units::Time;
use penstock_wire::{Payload, SynOptions, TcpFlags, TcpPacket};
use std::collections::BTreeMap;

/// What a segment did to the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassiveChange {
    /// The handshake is complete.
    Opened,
    /// The peer has ended it by RST.
    Reset,
}

/// One peer's connections to one port, one after the other.
#[derive(Clone, Debug)]
pub struct TcpPassive {
    /// The configuration as seen from this side; `iss` is this side's initial sequence number.
    config: TcpConfig,
    connection: Option<Connection>,
    /// RST for a segment of no connection.
    reset: Option<TcpPacket>,
    /// Counts of closed connections.
    before: TcpReceiverCounters,
}

#[derive(Clone, Debug)]
struct Connection {
    /// Initial sequence number of the peer.
    irs: u32,
    receiver: TcpReceiver,
    options: SynOptions,
    established: bool,
    syn_due: bool,
    /// Payload by its offset; not given out yet.
    pieces: BTreeMap<u64, Bytes>,
    /// Bytes given out.
    taken: u64,
}

impl TcpPassive {
    /// Listens for `config.peer` at `config.local`.
    pub fn new(config: TcpConfig) -> Self {
        TcpPassive { config, connection: None, reset: None, before: TcpReceiverCounters::default() }
    }

    /// Takes a segment at `now`.
    pub fn handle_packet(&mut self, now: Time, packet: &TcpPacket) -> Option<PassiveChange> {
        if packet.ip_src != self.config.peer.ip || packet.src_port != self.config.peer.port {
            return None;
        }
        let (is_syn, is_reset) = (packet.flags.contains(TcpFlags::SYN), packet.flags.contains(TcpFlags::RST));
        let Some(connection) = &mut self.connection else {
            match (is_syn, is_reset) {
                (_, true) => {}
                (true, _) => self.connection = Some(Connection::accept(&self.config, packet)),
                _ => self.reset = Some(self.reset_of(packet)),
            }
            return None;
        };
        if is_reset {
            if packet.seq != connection.expected() {
                return None;
            }
            self.before = sum(self.before, *connection.receiver.counters());
            self.connection = None;
            return Some(PassiveChange::Reset);
        }
        if is_syn {
            // The answer was lost; or a challenge: a peer that began again answers it by RST.
            let again = packet.seq == connection.irs && !connection.established;
            connection.syn_due |= again;
            if !again {
                connection.receiver.acknowledge();
            }
            return None;
        }
        if !packet.flags.contains(TcpFlags::ACK) || packet.ack != self.config.iss.wrapping_add(1) {
            return None;
        }
        let opens = !std::mem::replace(&mut connection.established, true);
        connection.keep(packet);
        connection.receiver.handle_packet(now, packet);
        opens.then_some(PassiveChange::Opened)
    }

    /// The next payload in order, if the program reads.
    pub fn take(&mut self) -> Option<Bytes> {
        self.connection.as_mut()?.take()
    }

    /// Whether the program reads from now on: a sender learns at once that it does again.
    pub fn set_reading(&mut self, now: Time, reads: bool) {
        if let Some(connection) = &mut self.connection {
            connection.receiver.set_reading(now, reads);
        }
    }

    /// Lets what has come be acknowledged at once.
    pub fn acknowledge(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.receiver.acknowledge_any();
        }
    }

    /// When [`Self::handle_timeout`] is wanted.
    pub fn next_timeout(&self) -> Option<Time> {
        self.connection.as_ref().and_then(|connection| connection.receiver.next_timeout())
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(connection) = &mut self.connection {
            connection.receiver.handle_timeout(now);
        }
    }

    /// The next answer.
    pub fn poll_transmit(&mut self) -> Option<TcpPacket> {
        if let Some(reset) = self.reset.take() {
            return Some(reset);
        }
        let connection = self.connection.as_mut()?;
        if std::mem::take(&mut connection.syn_due) {
            let window = self.config.receive_buffer.min(u64::from(u16::MAX)) as u16;
            return Some(TcpPacket {
                seq: self.config.iss,
                ack: connection.irs.wrapping_add(1),
                flags: TcpFlags::SYN.with(TcpFlags::ACK),
                window,
                options: connection.options,
                ..self.config.empty_segment()
            });
        }
        let ack = connection.receiver.poll_transmit().filter(|_| connection.established)?;
        Some(TcpPacket { seq: self.config.iss.wrapping_add(1), ..ack })
    }

    /// The counters of all connections together.
    pub fn counters(&self) -> TcpReceiverCounters {
        match &self.connection {
            Some(connection) => sum(self.before, *connection.receiver.counters()),
            None => self.before,
        }
    }

    /// RFC 9293 section 3.10.7.1.
    fn reset_of(&self, packet: &TcpPacket) -> TcpPacket {
        TcpPacket { seq: packet.ack, flags: TcpFlags::RST, window: 0, ..self.config.empty_segment() }
    }
}

impl Connection {
    fn accept(config: &TcpConfig, syn: &TcpPacket) -> Self {
        // A shift counts only if both sides have one.
        let window_shift = if syn.options.window_scale.is_some() { config.window_shift } else { 0 };
        let options = SynOptions {
            mss: u16::try_from(config.mss).ok(),
            window_scale: syn.options.window_scale.map(|_| window_shift),
            malformed: false,
        };
        let config = TcpConfig { iss: syn.seq.wrapping_add(1), window_shift, ..*config };
        Connection {
            irs: syn.seq,
            receiver: TcpReceiver::new(config),
            options,
            established: false,
            syn_due: true,
            pieces: BTreeMap::new(),
            taken: 0,
        }
    }

    /// The next sequence number of the peer.
    fn expected(&self) -> u32 {
        self.irs.wrapping_add(1).wrapping_add(self.receiver.next() as u32)
    }

    /// Stores the payload of a segment if the window takes it.
    fn keep(&mut self, packet: &TcpPacket) {
        let bytes = match &packet.payload {
            Payload::Bytes(bytes) => bytes.clone(),
            Payload::Virtual(len) => vec![0; *len as usize].into(),
        };
        let start = self.receiver.offset(packet.seq);
        let end = start + bytes.len() as u64;
        if bytes.is_empty() || end <= self.taken || !self.receiver.takes(end) {
            return;
        }
        let longest = self.pieces.get(&start).is_none_or(|piece| piece.len() < bytes.len());
        if longest {
            self.pieces.insert(start, bytes);
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        while self.taken < self.receiver.delivered() {
            let (start, mut bytes) = self.pieces.pop_first()?;
            let overlap = self.taken.saturating_sub(start);
            if overlap >= bytes.len() as u64 {
                continue;
            }
            let new = bytes.split_off(overlap as usize);
            self.taken += new.len() as u64;
            return Some(new);
        }
        None
    }
}

fn sum(a: TcpReceiverCounters, b: TcpReceiverCounters) -> TcpReceiverCounters {
    TcpReceiverCounters {
        segments: a.segments + b.segments,
        duplicates: a.duplicates + b.duplicates,
        out_of_order: a.out_of_order + b.out_of_order,
        beyond_window: a.beyond_window + b.beyond_window,
        acks: a.acks + b.acks,
    }
}
