// SPDX-License-Identifier: Apache-2.0
//! A packet socket on an interface as a wire: the network of that interface is at the far end.
//! Promise: receives the frames that arrive on the interface (not those that this host sends), in promiscuous mode if
//! the caller requests it; completes UDP and TCP checksums that a virtual interface has left to absent hardware.
//! Source: packet(7).

use super::checksum::finish_checksum;
use super::losses::Losses;
use super::wire::{wait_fd, Sent, Wire, WireError, MAX_FRAME};
use bytes::Bytes;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    bind, recvfrom, send, socket, AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
};
use penstock_units::Time;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// `sll_pkttype` of a frame that this host sends (linux/if_packet.h).
const PACKET_OUTGOING: u8 = 4;

/// A packet socket that is bound to one interface.
pub struct PacketSocket {
    socket: OwnedFd,
    name: String,
    index: usize,
    buffer: Vec<u8>,
    losses: Losses,
}

impl PacketSocket {
    /// Opens a packet socket on interface `name`.
    ///
    /// # Errors
    /// No such interface, or no right.
    pub fn open(name: &str) -> Result<Self, WireError> {
        let failed = |error: Errno| match error {
            Errno::EPERM | Errno::EACCES => WireError::PacketPermission { name: name.into() },
            other => WireError::Packet { name: name.into(), source: other.into() },
        };
        let address = link_address(name)?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, Some(SockProtocol::EthAll)).map_err(failed)?;
        // The address names no protocol, so the socket keeps its own: all of them.
        bind(socket.as_raw_fd(), &address).map_err(failed)?;
        Ok(Self {
            socket,
            name: name.into(),
            index: address.ifindex(),
            buffer: vec![0; MAX_FRAME],
            losses: Losses::new(),
        })
    }

    fn broken(&self, error: Errno) -> WireError {
        WireError::Packet { name: self.name.clone(), source: error.into() }
    }
}

/// The link-layer address of an interface; it carries the interface's number.
fn link_address(name: &str) -> Result<LinkAddr, WireError> {
    let all = getifaddrs().map_err(|error| WireError::Packet { name: name.into(), source: error.into() })?;
    let mut there = Vec::new();
    for interface in all {
        let Some(link) = interface.address.as_ref().and_then(|address| address.as_link_addr()) else { continue };
        if interface.interface_name == name {
            return Ok(*link);
        }
        there.push(interface.interface_name);
    }
    Err(WireError::NoInterface { name: name.into(), there: there.join(", ") })
}

impl Wire for PacketSocket {
    fn send(&mut self, _now: Time, frame: &Bytes) -> Result<Sent, WireError> {
        match send(self.socket.as_raw_fd(), frame, MsgFlags::empty()) {
            Ok(_) => Ok(self.losses.accepted()),
            Err(Errno::EINTR) => Ok(Sent::Full),
            Err(error) => Ok(self.losses.refused(&self.name, error, frame.len())),
        }
    }

    fn receive(&mut self, _now: Time) -> Result<Option<Bytes>, WireError> {
        loop {
            match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut self.buffer) {
                Ok((len, Some(from))) if from.ifindex() == self.index && from.pkttype() != PACKET_OUTGOING => {
                    let frame = &mut self.buffer[..len];
                    finish_checksum(frame);
                    return Ok(Some(Bytes::copy_from_slice(frame)));
                }
                Ok(_) | Err(Errno::ENETDOWN) => {}
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn wait(&mut self, timeout: Duration, room: bool) -> Result<(), WireError> {
        wait_fd(self.socket.as_fd(), timeout, room)
    }
}
