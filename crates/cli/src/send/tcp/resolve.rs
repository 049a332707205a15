// SPDX-License-Identifier: Apache-2.0
//! Finds the destination MAC of the frames: the server's, or a router's.
//! Promise: the ARP request is repeated every second until it is answered. The kernel's ARP is not used, because
//! streams have other addresses than the kernel. Source: RFC 826; the kernel's routing table decides between server and
//! router.

use penstock_units::Time;
use penstock_wire::{Arp, MacAddr};
use std::net::Ipv4Addr;

/// Time from one request to the next.
const AGAIN: Time = Time::from_s(1);

pub struct Resolver {
    hop: Ipv4Addr,
    mac: Option<MacAddr>,
    due: Time,
}

impl Resolver {
    pub fn new(server: Ipv4Addr, iface: &str) -> Resolver {
        let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
        Resolver { hop: next_hop(&routes, iface, server), mac: None, due: Time::ZERO }
    }

    pub fn hop(&self) -> Ipv4Addr {
        self.hop
    }

    pub fn mac(&self) -> Option<MacAddr> {
        self.mac
    }

    /// Processes an ARP frame: any ARP frame of the hop gives its MAC.
    pub fn learn(&mut self, arp: &Arp) {
        if arp.sender.1 == self.hop {
            self.mac = Some(arp.sender.0);
        }
    }

    /// A request that is due.
    pub fn request(&mut self, now: Time, sender: (MacAddr, Ipv4Addr)) -> Option<Arp> {
        if self.mac.is_some() || now < self.due {
            return None;
        }
        self.due = now + AGAIN;
        Some(Arp { is_reply: false, sender, target: (MacAddr::default(), self.hop) })
    }

    pub fn due(&self) -> Time {
        if self.mac.is_some() {
            Time::MAX
        } else {
            self.due
        }
    }
}

/// The gateway of the longest route to `server` on `iface`; the server itself where there is none.
fn next_hop(routes: &str, iface: &str, server: Ipv4Addr) -> Ipv4Addr {
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The numbers are those of memory in network order, read as the machine's own.
        let hex = |i: usize| Some(u32::from_be(u32::from_str_radix(words.get(i)?, 16).ok()?));
        let (destination, gateway, mask) = (hex(1)?, hex(2)?, hex(7)?);
        let fits = words.first() == Some(&iface) && server.to_bits() & mask == destination;
        fits.then_some((mask, gateway))
    };
    match routes.lines().skip(1).filter_map(route).max() {
        Some((_, gateway)) if gateway != 0 => Ipv4Addr::from_bits(gateway),
        _ => server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_route_says_whether_there_is_a_router() {
        let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask\n\
                      v0 00000000 FE00000A 0003 0 0 0 00000000\n\
                      v0 0000000A 00000000 0001 0 0 0 00FFFFFF\n\
                      v1 0000010A 01000009 0003 0 0 0 00FFFFFF\n";
        let hop = |iface: &str, ip: [u8; 4]| next_hop(routes, iface, Ipv4Addr::from(ip)).octets();
        assert_eq!(hop("v0", [10, 0, 0, 7]), [10, 0, 0, 7]);
        assert_eq!(hop("v0", [10, 1, 0, 7]), [10, 0, 0, 254]);
        assert_eq!(hop("v1", [10, 1, 0, 7]), [9, 0, 0, 1]);
        assert_eq!(hop("v2", [10, 1, 0, 7]), [10, 1, 0, 7]);
    }

    #[test]
    fn it_asks_until_the_hop_says_anything() {
        let mut resolver = Resolver::new(Ipv4Addr::new(192, 0, 2, 1), "no such interface");
        let own = (MacAddr([2; 6]), Ipv4Addr::new(192, 0, 2, 9));
        let request = resolver.request(Time::ZERO, own).unwrap();
        assert_eq!(resolver.request(Time::from_ms(999), own), None);
        assert_eq!(resolver.request(AGAIN, own), Some(request));
        resolver.learn(&request); // our own says nothing of it
        assert_eq!(resolver.mac(), None);
        resolver.learn(&request.answer(MacAddr([6; 6])));
        assert_eq!((resolver.mac(), resolver.due()), (Some(MacAddr([6; 6])), Time::MAX));
    }
}
