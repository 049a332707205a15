// SPDX-License-Identifier: Apache-2.0
//! Interfaces by their addresses; next hops of an interface and their MAC addresses, from the kernel's tables.
//! Source: getifaddrs(3); arp(7), `/proc/net/arp`; `/proc/net/route`.

use penstock_wire::MacAddr;
use std::io;
use std::net::Ipv4Addr;

/// The name of the interface that has this address, the first or a further one.
///
/// # Errors
/// The interfaces cannot be listed.
pub fn interface_of(ip: Ipv4Addr) -> io::Result<Option<String>> {
    let is_it = |address: nix::sys::socket::SockaddrStorage| address.as_sockaddr_in().is_some_and(|of| of.ip() == ip);
    let mut entries = nix::ifaddrs::getifaddrs()?;
    Ok(entries.find(|entry| entry.address.is_some_and(is_it)).map(|entry| entry.interface_name))
}

/// MAC of the next hop to `ip`, as the kernel knows it: the neighbour itself, or the gateway.
pub fn next_hop(ip: Ipv4Addr, iface: &str) -> Option<MacAddr> {
    neighbour(ip, iface).or_else(|| neighbour(gateway(iface)?, iface))
}

/// MAC of a host on the interface's link, as the kernel knows it.
pub fn neighbour(ip: Ipv4Addr, iface: &str) -> Option<MacAddr> {
    let table = std::fs::read_to_string("/proc/net/arp").ok()?;
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let fits = words.first()?.parse() == Ok(ip) && words.get(5) == Some(&iface);
        let octets: Vec<u8> = words.get(3)?.split(':').filter_map(|o| u8::from_str_radix(o, 16).ok()).collect();
        fits.then_some(MacAddr(octets.try_into().ok()?)).filter(|mac| mac.0 != [0; 6])
    })
}

/// The default gateway of an interface.
fn gateway(iface: &str) -> Option<Ipv4Addr> {
    let routes = std::fs::read_to_string("/proc/net/route").ok()?;
    routes.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let hex = |i: usize| u32::from_str_radix(words.get(i)?, 16).ok();
        let is_default = words.first() == Some(&iface) && hex(1)? == 0 && hex(2)? != 0;
        is_default.then_some(Ipv4Addr::from(hex(2)?.to_ne_bytes()))
    })
}
