// SPDX-License-Identifier: Apache-2.0
//! A packet socket on an interface as a wire: the network of that interface is at the far end.
//! Promise: receives the frames that arrive on the interface (not those that this host sends), in promiscuous mode if
//! the caller requests it; completes UDP and TCP checksums that a virtual interface has left to absent hardware; each
//! VLAN tag is where it was on the wire, though the kernel hands it over beside the frame.
//! Source: packet(7); linux/if_packet.h (`tpacket_auxdata`); IEEE 802.1Q-2018 9.5.

use super::checksum::finish_checksum;
use super::losses::Losses;
use super::wire::{wait_fd, Sent, Wire, WireError, MAX_FRAME};
use bytes::Bytes;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    bind, recvmsg, send, setsockopt, socket, AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag,
    SockProtocol, SockType,
};
use nix::{cmsg_space, libc, setsockopt_impl, sockopt_impl};
use penstock_units::Time;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// `sll_pkttype` of a frame that this host sends (linux/if_packet.h).
const PACKET_OUTGOING: u8 = 4;

/// Bytes of a `tpacket_auxdata`; where its status, tag and the tag's EtherType are.
const AUXDATA_LEN: usize = 20;
const STATUS_AT: usize = 0;
const TCI_AT: usize = 16;
const TPID_AT: usize = 18;
/// EtherType of a tag, for a kernel that does not say it.
const ETHERTYPE_VLAN: u16 = 0x8100;
/// Bytes of the two addresses, which a tag follows, and of a tag.
const ADDRESSES_LEN: usize = 12;
const TAG_LEN: usize = 4;

sockopt_impl!(
    /// Received frames come with a `tpacket_auxdata`.
    PacketAuxdata,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_AUXDATA,
    bool,
    nix::sys::socket::sockopt::SetBool
);

/// A packet socket that is bound to one interface.
pub struct PacketSocket {
    socket: OwnedFd,
    name: String,
    index: usize,
    /// A frame as it comes from the kernel, behind room for a tag; and what comes beside it.
    buffer: Vec<u8>,
    beside: Vec<u8>,
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
        setsockopt(&socket, PacketAuxdata, &true).map_err(failed)?;
        Ok(Self {
            socket,
            name: name.into(),
            index: address.ifindex(),
            buffer: vec![0; TAG_LEN + MAX_FRAME],
            beside: cmsg_space!([u8; AUXDATA_LEN]),
            losses: Losses::new(),
        })
    }

    fn broken(&self, error: Errno) -> WireError {
        WireError::Packet { name: self.name.clone(), source: error.into() }
    }
}

/// EtherType and content of the tag that the kernel has taken from a frame.
fn tag_of(auxdata: &[u8]) -> Option<[u8; TAG_LEN]> {
    let half = |at: usize| Some(u16::from_ne_bytes(auxdata.get(at..at + 2)?.try_into().ok()?));
    let status = u32::from_ne_bytes(auxdata.get(STATUS_AT..STATUS_AT + 4)?.try_into().ok()?);
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 { ETHERTYPE_VLAN } else { half(TPID_AT)? };
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), half(TCI_AT)?.to_be_bytes());
    Some([a, b, c, d])
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
            let (socket, beside) = (self.socket.as_raw_fd(), Some(&mut self.beside[..]));
            let mut pieces = [IoSliceMut::new(&mut self.buffer[TAG_LEN..])];
            let (len, tag) = match recvmsg::<LinkAddr>(socket, &mut pieces, beside, MsgFlags::empty()) {
                Ok(message) => match message.address {
                    Some(from) if from.ifindex() == self.index && from.pkttype() != PACKET_OUTGOING => {
                        let tag = message.cmsgs().into_iter().flatten().find_map(|beside| match beside {
                            ControlMessageOwned::Unknown(beside) => tag_of(&beside.data_bytes),
                            _ => None,
                        });
                        (message.bytes, tag)
                    }
                    _ => continue,
                },
                Err(Errno::ENETDOWN) => continue,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(self.broken(error)),
            };
            finish_checksum(&mut self.buffer[TAG_LEN..TAG_LEN + len]);
            let frame = match tag {
                Some(tag) if len >= ADDRESSES_LEN => {
                    self.buffer.copy_within(TAG_LEN..TAG_LEN + ADDRESSES_LEN, 0);
                    self.buffer[ADDRESSES_LEN..ADDRESSES_LEN + TAG_LEN].copy_from_slice(&tag);
                    &self.buffer[..TAG_LEN + len]
                }
                _ => &self.buffer[TAG_LEN..TAG_LEN + len],
            };
            return Ok(Some(Bytes::copy_from_slice(frame)));
        }
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn wait(&mut self, timeout: Duration, room: bool) -> Result<(), WireError> {
        wait_fd(self.socket.as_fd(), timeout, room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auxdata(status: u32, tci: u16, tpid: u16) -> Vec<u8> {
        let mut data = status.to_ne_bytes().to_vec();
        data.resize(TCI_AT, 0);
        data.extend([tci, tpid].into_iter().flat_map(u16::to_ne_bytes));
        data
    }

    #[test]
    fn a_tag_is_the_one_that_the_kernel_took() {
        let both = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(tag_of(&auxdata(both, 0xA005, 0x88A8)), Some([0x88, 0xA8, 0xA0, 0x05]));
        assert_eq!(tag_of(&auxdata(libc::TP_STATUS_VLAN_VALID, 0, 0)), Some([0x81, 0, 0, 0]), "a priority tag");
        assert_eq!(tag_of(&auxdata(libc::TP_STATUS_VLAN_TPID_VALID, 5, 0x8100)), None);
        assert_eq!(tag_of(&auxdata(both, 5, 0x8100)[..AUXDATA_LEN - 1]), None, "cut short");
    }
}
