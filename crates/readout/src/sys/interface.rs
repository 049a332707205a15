// SPDX-License-Identifier: Apache-2.0
//! An Ethernet interface: its addresses, its MTU, whether it is up, its queues.
//! Promise: the values are those of the network namespace of this process.
//! Source: netdevice(7); linux/ethtool.h.

use std::ffi::CString;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use super::options::check;

/// An Ethernet interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number of it: another interface of the same name has another.
    pub index: u32,
    pub mac: [u8; 6],
    /// Its first address; none where it has none.
    pub ip: Option<Ipv4Addr>,
    /// Mask of that address's network.
    pub netmask: Option<Ipv4Addr>,
    /// Bytes of the largest IP packet.
    pub mtu: usize,
    pub is_up: bool,
}

impl Interface {
    /// Looks it up by name.
    ///
    /// # Errors
    /// The kernel's error; `ENODEV` if there is no such interface here.
    pub fn find(name: &str) -> io::Result<Interface> {
        let c_name = CString::new(name)?;
        // SAFETY: a NUL-terminated string that lives over the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let (socket, mut request) = request(name)?;
        let mut query = |what: libc::Ioctl| -> io::Result<libc::ifreq> {
            // SAFETY: these requests read the name and write the union of this ifreq.
            check(unsafe { libc::ioctl(socket.as_raw_fd(), what, &mut request) })?;
            Ok(request)
        };
        // SAFETY: after each of these requests the union holds the field that is read.
        let mac = unsafe { query(libc::SIOCGIFHWADDR)?.ifr_ifru.ifru_hwaddr.sa_data };
        // SAFETY: as above.
        let mtu = unsafe { query(libc::SIOCGIFMTU)?.ifr_ifru.ifru_mtu };
        // SAFETY: as above.
        let flags = unsafe { query(libc::SIOCGIFFLAGS)?.ifr_ifru.ifru_flags };
        // SAFETY: as above; both members are a sockaddr.
        let [ip, netmask] = [libc::SIOCGIFADDR, libc::SIOCGIFNETMASK]
            .map(|what| query(what).ok().map(|r| unsafe { r.ifr_ifru.ifru_addr }));
        // The bytes of a sockaddr_in after family and port are the address.
        let address = |of: libc::sockaddr| Ipv4Addr::from(std::array::from_fn(|i| of.sa_data[2 + i] as u8));
        Ok(Interface {
            index,
            mac: std::array::from_fn(|i| mac[i] as u8),
            ip: ip.map(address),
            netmask: netmask.map(address),
            mtu: usize::try_from(mtu).unwrap_or(1500),
            is_up: libc::c_int::from(flags) & libc::IFF_UP != 0,
        })
    }
}

/// Whether an interface of this machine has this address, the first or a further one. That a bind succeeds shows nothing
/// where `net.ipv4.ip_nonlocal_bind` is set.
///
/// # Errors
/// The interfaces cannot be listed.
pub fn has_address(ip: Ipv4Addr) -> io::Result<bool> {
    let mut addresses = nix::ifaddrs::getifaddrs()?.filter_map(|entry| entry.address);
    // All of 127.0.0.0/8 is local without being listed.
    Ok(ip.is_loopback() || addresses.any(|address| address.as_sockaddr_in().is_some_and(|of| of.ip() == ip)))
}

/// A socket to ask by, and what to ask of an interface.
fn request(name: &str) -> io::Result<(UdpSocket, libc::ifreq)> {
    Ok((UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?, named(name)))
}

fn named(name: &str) -> libc::ifreq {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()).take(libc::IFNAMSIZ - 1) {
        *to = *from as libc::c_char;
    }
    request
}

/// `ETHTOOL_GCHANNELS` and its answer (linux/ethtool.h).
const GET_CHANNELS: u32 = 0x3c;
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receiving: u32,
    sending: u32,
    other: u32,
    combined: u32,
}

/// An interface that is queried repeatedly, even by a process that cannot open more files.
#[derive(Debug)]
pub struct Watch {
    socket: UdpSocket,
    name: String,
    index: u32,
}

impl Watch {
    /// # Errors
    /// The kernel's error.
    pub fn open(name: &str, interface: &Interface) -> io::Result<Watch> {
        let (socket, _) = request(name)?;
        Ok(Watch { socket, name: name.to_owned(), index: interface.index })
    }

    /// Whether the interface is up.
    ///
    /// # Errors
    /// `ENODEV` if it is not there any more, or another of its name is.
    pub fn is_up(&self) -> io::Result<bool> {
        let mut request = named(&self.name);
        let mut query = |what: libc::Ioctl| -> io::Result<libc::ifreq> {
            // SAFETY: these requests read the name and write the union of this ifreq.
            check(unsafe { libc::ioctl(self.socket.as_raw_fd(), what, &mut request) })?;
            Ok(request)
        };
        // SAFETY: after each of these requests the union holds the field that is read.
        let index = unsafe { query(libc::SIOCGIFINDEX)?.ifr_ifru.ifru_ifindex };
        if u32::try_from(index) != Ok(self.index) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        // SAFETY: as above.
        Ok(libc::c_int::from(unsafe { query(libc::SIOCGIFFLAGS)?.ifr_ifru.ifru_flags }) & libc::IFF_UP != 0)
    }

    /// How many queues the interface receives by.
    ///
    /// # Errors
    /// Neither the driver nor sysfs provides it.
    pub fn queues(&self) -> io::Result<u32> {
        let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
        let mut request = named(&self.name);
        request.ifr_ifru.ifru_data = (&raw mut channels).cast();
        // SAFETY: the request reads the name and the command, and writes the answer, which lives over the call.
        let answered = check(unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL, &mut request) });
        match channels.receiving.saturating_add(channels.combined) {
            count if answered.is_ok() && count > 0 => Ok(count),
            // Drivers without channels: what the kernel keeps.
            _ => {
                let all = std::fs::read_dir(format!("/sys/class/net/{}/queues", self.name))?;
                let receiving = all.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-"));
                match receiving.count() {
                    0 => Err(io::Error::other("no receive queues in sysfs")),
                    count => Ok(count as u32),
                }
            }
        }
    }
}
