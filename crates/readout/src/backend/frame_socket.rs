// SPDX-License-Identifier: Apache-2.0
//! The frame source of the packet back end: AF_XDP, or a packet socket with a ring.
//! Promise: reports which of the two is used, and why not the other; a socket requested by name is opened or refused.
//! Source: kernel documentation `networking/af_xdp`; packet(7); which is faster is measured in docs/measurements.md.

use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, UDP_PORT_ROCE};

use super::Counters;
use crate::sys::{Frames, Interface, PacketSocket, XdpError, XdpMode, XdpSocket};

/// Counts frames of a VLAN other than 0.
pub(super) const FOREIGN_VLAN: &str = "rx_foreign_vlan";

/// How long AF_XDP waits for a receiver before it to end, where it was asked for by name, and where the ring will do.
const PATIENT: Duration = Duration::from_secs(5);
const BRIEF: Duration = Duration::from_millis(500);

/// Which socket to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SocketChoice {
    /// The faster one: AF_XDP if the driver runs XDP programs, else the ring.
    #[default]
    Auto,
    /// AF_XDP, or nothing.
    Xdp,
    /// A packet socket with a ring.
    Ring,
}

/// An open one.
#[derive(Debug)]
pub(super) enum FrameSocket {
    Ring(PacketSocket),
    Xdp(XdpSocket),
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum OpenError {
    Ring(io::Error),
    Xdp(XdpError),
}

impl FrameSocket {
    /// Opens the selected socket, and describes it. `path_mtu_frame`: bytes of the longest frame of the path MTU.
    pub(super) fn open(
        choice: SocketChoice,
        (name, interface): (&str, &Interface),
        ip: Ipv4Addr,
        frames: Frames,
        path_mtu_frame: usize,
    ) -> Result<(FrameSocket, String), OpenError> {
        // Kernels before 6.6 take no frames longer than a page: there those of the path MTU must do, and longer ones
        // are dropped.
        let xdp = |generic, patience| {
            let open = |frames| XdpSocket::open(name, interface, UDP_PORT_ROCE, ip, frames, generic, patience);
            open(frames).or_else(|error| match path_mtu_frame < frames.longest && !error.is_busy() {
                true => open(Frames { longest: path_mtu_frame, ..frames }),
                false => Err(error),
            })
        };
        let why = match choice {
            SocketChoice::Ring => None,
            SocketChoice::Xdp => {
                let socket = xdp(true, PATIENT).map_err(OpenError::Xdp)?;
                let description = description(&socket);
                return Ok((FrameSocket::Xdp(socket), description));
            }
            SocketChoice::Auto => match xdp(false, BRIEF) {
                Ok(socket) => {
                    let description = description(&socket);
                    return Ok((FrameSocket::Xdp(socket), description));
                }
                Err(error) => Some(error),
            },
        };
        let mut socket =
            PacketSocket::open((name, interface), UDP_PORT_ROCE, Some(ip), frames).map_err(OpenError::Ring)?;
        // One that is longer than any path MTU is answered: NAK, invalid request (IBTA 9.7.4.1).
        socket.take_long_frames().map_err(OpenError::Ring)?;
        let why = why.map_or_else(String::new, |why| format!("; no AF_XDP: {why}"));
        Ok((FrameSocket::Ring(socket), format!("packet socket with a ring{why}")))
    }

    /// Hands the next frames, in pieces, about `most` at a time, and when each came, if that is known, to `take`, as
    /// long as it answers true. Returns how many there were.
    pub(super) fn receive(&mut self, most: usize, mut take: impl FnMut(&[&[u8]], Option<SystemTime>) -> bool) -> usize {
        match self {
            FrameSocket::Ring(socket) => socket.receive(most, |frame, arrived| take(&[frame], Some(arrived))),
            FrameSocket::Xdp(socket) => socket.receive(most, take),
        }
    }

    /// Sends frames, those that go now; returns how many are lost.
    pub(super) fn send(&mut self, now: Time, frames: &[Bytes]) -> u64 {
        match self {
            FrameSocket::Ring(socket) => {
                let (refused, mut skipped, mut rest) = (socket.refused(), 0, frames);
                // Nothing is tried again here, and a frame that is refused keeps no later one back.
                while let Ok(done) = socket.send(now, rest) {
                    if done == rest.len() {
                        rest = &[];
                        break;
                    }
                    (rest, skipped) = (&rest[done + 1..], skipped + 1);
                }
                socket.refused() - refused + skipped + rest.len() as u64
            }
            FrameSocket::Xdp(socket) => (frames.len() - socket.send(frames)) as u64,
        }
    }

    /// Sleeps until a frame is there, at most for `limit`.
    ///
    /// # Errors
    /// As [`Self::take_error`].
    pub(super) fn wait(&self, limit: Duration) -> io::Result<()> {
        match self {
            FrameSocket::Ring(socket) => socket.wait(limit),
            FrameSocket::Xdp(socket) => socket.wait(limit),
        }
    }

    /// The errors since the last call.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface was taken down; that or another one when it is gone.
    pub(super) fn take_error(&mut self) -> io::Result<()> {
        match self {
            FrameSocket::Ring(socket) => socket.take_error(),
            FrameSocket::Xdp(socket) => socket.take_error(),
        }
    }

    /// Frames that the kernel could not hand over, under its names.
    pub(super) fn counters(&mut self) -> Counters {
        match self {
            FrameSocket::Ring(socket) => {
                vec![("rx_dropped".into(), socket.dropped()), (FOREIGN_VLAN.into(), socket.foreign_vlan())]
            }
            FrameSocket::Xdp(socket) => {
                let found = socket.statistics();
                vec![
                    ("rx_dropped".into(), found.rx_dropped),
                    ("rx_ring_full".into(), found.rx_ring_full),
                    ("rx_fill_ring_empty_descs".into(), found.rx_fill_ring_empty_descs),
                    ("rx_invalid_descs".into(), found.rx_invalid_descs),
                    ("tx_invalid_descs".into(), found.tx_invalid_descs),
                ]
            }
        }
    }
}

fn description(socket: &XdpSocket) -> String {
    let mode = match socket.mode() {
        XdpMode::Native => "native",
        XdpMode::Generic => "generic",
    };
    let copy = if socket.is_zero_copy() { "zero-copy" } else { "copy" };
    let queues = socket.queues();
    format!("AF_XDP, {mode} mode, {copy}, {queues} queue{}", if queues == 1 { "" } else { "s" })
}
