// SPDX-License-Identifier: Apache-2.0
//! Writes a table by RDMA WRITE, reads it back by RDMA READ, and compares; over a packet socket of the interface to the
//! board, so no RDMA NIC is needed.
//! Promise: what is lost on the way is sent or requested again; a board that falls silent or refuses ends the transfer with
//! the reason.

use crate::neighbour::{interface_of, neighbour};
use bytes::{Bytes, BytesMut};
use penstock_readout::link::{drop_all, Frames, Interface, PacketSocket};
use penstock_transport::{
    Endpoint, Mtu, PayloadSource, Requester, RequesterConfig, RequesterState, Response, RetryLimits, SendStatus,
    SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, Payload, Psn, Qpn, RocePacket, UDP_PORT_ROCE};
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Headers of a packet above IP's payload, with room.
const HEADERS: usize = 80;
/// Received frames that may wait.
const FRAMES: usize = 512;
/// Frames that are handed to the interface at once.
const BATCH: usize = 32;
/// WRITE packets without an acknowledgement: as many as wait in a board for its memory. One in four requests one, so that
/// a lost acknowledgement stops nothing.
const WINDOW: u32 = 16;
const ACK_EVERY: u32 = 4;
/// The longest message of a table.
const WRITE_BYTES: usize = 1 << 30;
/// Bytes of a READ. Two are outstanding, so that a socket's ring holds all that may come.
const READ_BYTES: usize = 64 << 10;
const READS: u8 = 2;
/// Code of the ACK timer: 1.07 s, above what a verilated board on a busy machine takes for its answers.
const ACK_TIMEOUT: u8 = 18;
/// A signal is noticed within this time.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Wait before frames that the interface has not taken are offered again.
const REFUSED: Duration = Duration::from_micros(50);

/// Why a table is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("{verb}: {why}")]
    Failed { verb: &'static str, why: String },
    #[error("{0}: the interface is gone")]
    Gone(io::Error),
    #[error("byte {at} reads {read:#04x} where the file has {written:#04x}; {count} bytes differ")]
    Differs { at: usize, read: u8, written: u8, count: usize },
    #[error("interrupted")]
    Interrupted,
}

/// The interface to a board, and the addresses at both ends.
pub struct Path {
    name: String,
    interface: Interface,
    pub mtu: Mtu,
    pub local: (MacAddr, Ipv4Addr),
    pub board: (MacAddr, Ipv4Addr),
}

impl Path {
    /// The way to a board that this host has exchanged packets with.
    ///
    /// # Errors
    /// It is not on a link of this host, or the link's MTU is too small.
    pub fn to(board: Ipv4Addr, local: Ipv4Addr) -> Result<Path, String> {
        let name = interface_of(local).map_err(|error| format!("interfaces of this host: {error}"))?;
        let name = name.ok_or_else(|| format!("no interface of this host has its address {local} any more"))?;
        let interface = Interface::find(&name).map_err(|error| format!("{name}: {error}"))?;
        let mac = neighbour(board, &name).ok_or_else(|| {
            format!("it is not a neighbour on {name}: load tables from a host in the board's own network")
        })?;
        let fits = |mtu: &Mtu| mtu.bytes() + HEADERS <= interface.mtu;
        let mtu = Mtu::ALL.into_iter().rev().find(fits).ok_or_else(|| {
            format!("{name} has MTU {}, and {} are needed: ip link set {name} mtu 1500", interface.mtu, 256 + HEADERS)
        })?;
        Ok(Path { mtu, local: (MacAddr(interface.mac), local), board: (mac, board), name, interface })
    }
}

/// Both ends of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    pub local_qpn: Qpn,
    pub board_qpn: Qpn,
    /// PSN of the first request.
    pub psn: Psn,
}

/// A table's place in a window.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub address: u64,
    pub rkey: u32,
}

/// The bytes of the messages.
struct Source<'a>(&'a Bytes);

impl PayloadSource for Source<'_> {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        Payload::Bytes(self.0.slice(va as usize..va as usize + len))
    }
}

/// A queue pair of this host over the interface to a board.
pub struct Transfer {
    socket: PacketSocket,
    /// Keeps the kernel from refusing the port; none where another program has it.
    _port: Option<UdpSocket>,
    requester: Requester,
    begun: Instant,
    out: Vec<Bytes>,
}

impl Transfer {
    /// # Errors
    /// The packet socket cannot be opened.
    pub fn open(path: &Path, connection: Connection) -> Result<Transfer, String> {
        let frames = Frames { longest: path.mtu.bytes() + HEADERS, count: FRAMES };
        let (name, local) = (&path.name, path.local.1);
        let socket = PacketSocket::open((name, &path.interface), UDP_PORT_ROCE, Some(local), frames)
            .map_err(|error| format!("{name}: packet socket (it needs root or CAP_NET_RAW): {error}"))?;
        let port = UdpSocket::bind((local, UDP_PORT_ROCE)).and_then(|socket| drop_all(&socket).map(|()| socket));
        let ends = [(path.local, connection.local_qpn), (path.board, connection.board_qpn)];
        let [local, peer] = ends.map(|((mac, ip), qpn)| Endpoint { mac, ip, qpn });
        let config = RequesterConfig {
            limits: RetryLimits { ack_timeout: ACK_TIMEOUT, ..RetryLimits::default() },
            window: WINDOW,
            ack_every: ACK_EVERY,
            initiator_depth: READS,
            ..RequesterConfig::new(local, peer, connection.psn, path.mtu)
        };
        let requester = Requester::new(config);
        Ok(Transfer { socket, _port: port.ok(), requester, begun: Instant::now(), out: Vec::new() })
    }

    /// Packets that were sent more than once.
    pub fn retransmitted(&self) -> u64 {
        self.requester.counters().retransmitted_pkts
    }

    /// Writes a table.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub fn write(&mut self, table: &Bytes, target: Target, interrupted: &AtomicBool) -> Result<(), TransferError> {
        self.post(table, target, Verb::Write, WRITE_BYTES);
        self.run("WRITE", table, &mut BytesMut::new(), interrupted)
    }

    /// Reads as many bytes as a table has, and compares.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub fn verify(&mut self, table: &Bytes, target: Target, interrupted: &AtomicBool) -> Result<(), TransferError> {
        self.post(table, target, Verb::Read, READ_BYTES);
        let mut read = BytesMut::zeroed(table.len());
        self.run("READ", table, &mut read, interrupted)?;
        compare(table, &read)
    }

    /// Posts a table's bytes in messages of at most `longest`.
    fn post(&mut self, table: &Bytes, target: Target, verb: Verb, longest: usize) {
        for va in (0..table.len()).step_by(longest) {
            let len = longest.min(table.len() - va) as u32;
            let (va, rkey) = (va as u64, target.rkey);
            let wr =
                SendWr { wr_id: va, verb, va, len, remote_va: target.address.wrapping_add(va), rkey, solicited: false };
            self.requester.post_send(wr).expect("shorter than a message may be, and READs are served");
        }
    }

    /// Runs until all that was posted has ended.
    fn run(
        &mut self,
        verb: &'static str,
        table: &Bytes,
        read: &mut BytesMut,
        interrupted: &AtomicBool,
    ) -> Result<(), TransferError> {
        while self.requester.outstanding_messages() > 0 {
            if interrupted.load(Ordering::Relaxed) {
                return Err(TransferError::Interrupted);
            }
            let now = Time::from_duration(self.begun.elapsed());
            self.take_in(now, read);
            self.requester.handle_timeout(now);
            while self.out.len() < BATCH {
                let Some(packet) = self.requester.poll_transmit(now, &mut Source(table)) else { break };
                self.out.push(packet.emit());
            }
            let sent = self.socket.send(now, &self.out).map_err(TransferError::Gone)?;
            self.out.drain(..sent);
            self.wait(now).map_err(TransferError::Gone)?;
        }
        let failed =
            std::iter::from_fn(|| self.requester.poll_completion()).any(|end| end.status != SendStatus::Success);
        match self.requester.state() {
            RequesterState::Error(fault) => Err(TransferError::Failed { verb, why: fault.to_string() }),
            RequesterState::Ready => {
                assert!(!failed, "a request that fails ends its queue pair");
                Ok(())
            }
        }
    }

    fn take_in(&mut self, now: Time, read: &mut BytesMut) {
        let requester = &mut self.requester;
        self.socket.receive(FRAMES, |frame, _| {
            // What is damaged on the way comes again.
            if let Ok(packet) = RocePacket::parse(&Bytes::copy_from_slice(frame)) {
                if let Response::ReadData { va, .. } = requester.handle_packet(now, &packet) {
                    let bytes = packet.payload.as_bytes().expect("packets of a wire have bytes");
                    read[va as usize..][..bytes.len()].copy_from_slice(bytes);
                }
            }
            true
        });
    }

    /// Sleeps until an answer comes, a timer is due, or frames may be offered again.
    fn wait(&self, now: Time) -> io::Result<()> {
        if self.out.is_empty() && self.requester.can_transmit() {
            return Ok(());
        }
        let limit = match self.requester.next_timeout() {
            _ if !self.out.is_empty() => REFUSED,
            Some(due) => Duration::from_secs_f64(due.saturating_sub(now).as_secs_f64()).min(LONGEST_SLEEP),
            None => LONGEST_SLEEP,
        };
        self.socket.wait(limit)
    }
}

fn compare(written: &[u8], read: &[u8]) -> Result<(), TransferError> {
    let mut differing = written.iter().zip(read).enumerate().filter(|(_, (written, read))| written != read);
    match differing.next() {
        None => Ok(()),
        Some((at, (written, read))) => {
            Err(TransferError::Differs { at, read: *read, written: *written, count: 1 + differing.count() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_differs_is_named() {
        assert!(compare(&[1, 2, 3], &[1, 2, 3]).is_ok());
        let error = compare(&[1, 2, 3, 4], &[1, 7, 3, 0]).unwrap_err();
        assert_eq!(error.to_string(), "byte 1 reads 0x07 where the file has 0x02; 2 bytes differ");
    }
}
