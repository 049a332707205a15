// SPDX-License-Identifier: Apache-2.0
//! Finds the destination MAC of the frames, the server's or a router's, and keeps it up to date.
//! Promise: the ARP request is repeated until it is answered. A MAC is asked for again when nothing has confirmed it for
//! a minute, when no stream gets an answer, and when another host claims the address: such a claim alone changes
//! nothing, and the MAC in use stays if it answers.
//! The kernel's ARP is not used, because streams have other addresses than the kernel. Source: RFC 826; RFC 1122 section
//! 2.3.2.1 (age, and the advice of higher layers); the kernel's routing table decides between server and router.

use penstock_units::Time;
use penstock_wire::{Arp, MacAddr};
use std::net::Ipv4Addr;

/// Time from one request to the next; later requests about a MAC in use that nothing speaks against are rarer.
const AGAIN: Time = Time::from_s(1);
/// After this time without a confirmation a MAC is asked for.
const AGE: Time = Time::from_s(60);

/// Why a MAC in use is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProbeReason {
    /// Nothing has confirmed it for a while.
    Aged,
    /// Another host claims the address.
    Claimed,
    /// Streams get no answer.
    Unanswered,
}

/// The MAC in use.
#[derive(Clone, Copy, Debug)]
struct Entry {
    mac: MacAddr,
    confirmed: Time,
    probing: Option<ProbeReason>,
    /// Another one that has answered the last request.
    other: Option<MacAddr>,
}

pub struct Resolver {
    hop: Ipv4Addr,
    entry: Option<Entry>,
    /// Requests since the last answer, when the last one was made, and when the next one is due.
    requests: u32,
    requested_at: Option<Time>,
    due: Time,
    moves: u64,
    claims: u64,
}

impl Resolver {
    pub fn new(server: Ipv4Addr, iface: &str) -> Resolver {
        let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
        let hop = next_hop(&routes, iface, server);
        Resolver { hop, entry: None, requests: 0, requested_at: None, due: Time::ZERO, moves: 0, claims: 0 }
    }

    pub fn hop(&self) -> Ipv4Addr {
        self.hop
    }

    pub fn mac(&self) -> Option<MacAddr> {
        self.entry.map(|entry| entry.mac)
    }

    /// How often the hop has moved to another MAC.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// ARP frames of other hosts with the hop's address that were not asked for.
    pub fn claims(&self) -> u64 {
        self.claims
    }

    /// Processes an ARP frame. `is_for_us`: it answers our request, or asks for an address of ours.
    pub fn learn(&mut self, now: Time, arp: &Arp, is_for_us: bool) {
        let (mac, ip) = arp.sender;
        if ip != self.hop || mac.is_multicast() {
            return;
        }
        let Some(entry) = &mut self.entry else {
            if is_for_us {
                self.confirm_at(now, mac);
            }
            return;
        };
        match entry.probing {
            // Streams that get no answer speak against it, whatever it answers to ARP.
            Some(ProbeReason::Unanswered) if entry.mac == mac => {}
            _ if entry.mac == mac => {
                if is_for_us {
                    self.confirm_at(now, mac);
                }
            }
            Some(ProbeReason::Unanswered) if is_for_us => self.move_to(now, mac),
            Some(_) if is_for_us && self.requests > 0 => {
                entry.other = Some(mac);
                self.due = self.due.min(now.saturating_add(AGAIN));
            }
            Some(_) => self.claims += 1,
            None => {
                self.claims += 1;
                self.probe(now, ProbeReason::Claimed);
            }
        }
    }

    /// Data that was sent to the MAC in use has been acknowledged.
    pub fn confirm(&mut self, now: Time) {
        if let Some(entry) = self.entry {
            self.confirm_at(now, entry.mac);
        }
    }

    /// Streams get no answer.
    pub fn advise(&mut self, now: Time) {
        let is_old = |entry: &Entry| now >= entry.confirmed.saturating_add(AGAIN);
        if self.entry.as_ref().is_some_and(|entry| entry.probing != Some(ProbeReason::Unanswered) && is_old(entry)) {
            self.probe(now, ProbeReason::Unanswered);
        }
    }

    /// A request that is due. What the last one has brought counts from then on.
    pub fn request(&mut self, now: Time, sender: (MacAddr, Ipv4Addr)) -> Option<Arp> {
        if now < self.due() {
            return None;
        }
        match self.entry {
            Some(Entry { other: Some(mac), .. }) => {
                self.move_to(now, mac);
                return None;
            }
            Some(Entry { probing: None, .. }) => self.probe(now, ProbeReason::Aged),
            _ => {}
        }
        let rarer = match self.entry {
            Some(Entry { probing: Some(ProbeReason::Aged | ProbeReason::Claimed), .. }) => self.requests.min(5),
            _ => 0,
        };
        self.due = now.saturating_add(AGAIN.saturating_mul(1 << rarer));
        (self.requests, self.requested_at) = (self.requests.saturating_add(1), Some(now));
        Some(Arp { is_reply: false, sender, target: (MacAddr::default(), self.hop) })
    }

    /// When `request` has something to do.
    pub fn due(&self) -> Time {
        match &self.entry {
            Some(Entry { probing: None, confirmed, .. }) => confirmed.saturating_add(AGE),
            _ => self.due,
        }
    }

    fn probe(&mut self, now: Time, reason: ProbeReason) {
        if let Some(entry) = &mut self.entry {
            (entry.probing, entry.other) = (Some(reason), None);
            self.requests = 0;
            // Another host that answers whenever it is asked must not make requests follow each other without a pause.
            self.due = self.requested_at.map_or(now, |requested_at| now.max(requested_at.saturating_add(AGAIN)));
        }
    }

    fn move_to(&mut self, now: Time, mac: MacAddr) {
        self.moves += 1;
        self.confirm_at(now, mac);
    }

    fn confirm_at(&mut self, now: Time, mac: MacAddr) {
        self.entry = Some(Entry { mac, confirmed: now, probing: None, other: None });
        self.requests = 0;
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

    const HOP: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const LOCAL: (MacAddr, Ipv4Addr) = (MacAddr([2; 6]), Ipv4Addr::new(192, 0, 2, 9));
    const SERVER: MacAddr = MacAddr([6; 6]);
    const OTHER: MacAddr = MacAddr([10; 6]);

    /// Answers our requests from `macs`, in this order, and learns from the answers: from 0 s to `until`, in steps of a
    /// millisecond. How many requests there were.
    fn answered(resolver: &mut Resolver, from: Time, until: Time, macs: &[MacAddr]) -> usize {
        let (mut now, mut requests) = (from, 0);
        while now < until {
            if let Some(request) = resolver.request(now, LOCAL) {
                requests += 1;
                macs.iter().for_each(|mac| resolver.learn(now, &request.answer(*mac), true));
            }
            now += Time::from_ms(1);
        }
        requests
    }

    fn resolved() -> Resolver {
        let mut resolver = Resolver::new(HOP, "no such interface");
        answered(&mut resolver, Time::ZERO, Time::from_ms(1), &[SERVER]);
        assert_eq!(resolver.mac(), Some(SERVER));
        resolver
    }

    fn claim(mac: MacAddr) -> Arp {
        Arp { is_reply: true, sender: (mac, HOP), target: (mac, HOP) }
    }

    #[test]
    fn the_longest_route_decides_whether_there_is_a_router() {
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
    fn it_requests_every_second_until_the_hop_answers_and_takes_no_claim_before() {
        let mut resolver = Resolver::new(HOP, "no such interface");
        let request = resolver.request(Time::ZERO, LOCAL).unwrap();
        assert_eq!(resolver.request(Time::from_ms(999), LOCAL), None);
        assert_eq!(resolver.request(AGAIN, LOCAL), Some(request));
        resolver.learn(AGAIN, &request, true); // our own says nothing of it
        resolver.learn(AGAIN, &claim(OTHER), false);
        assert_eq!(resolver.mac(), None);
        resolver.learn(AGAIN, &request.answer(SERVER), true);
        assert_eq!((resolver.mac(), resolver.due()), (Some(SERVER), AGAIN.saturating_add(AGE)));
    }

    #[test]
    fn a_claim_changes_nothing_as_long_as_the_mac_in_use_answers() {
        let mut resolver = resolved();
        for second in 1..10 {
            resolver.learn(Time::from_s(second), &claim(OTHER), false);
            let requests = answered(&mut resolver, Time::from_s(second), Time::from_s(second + 1), &[SERVER, OTHER]);
            assert!(requests <= 1, "{requests} requests in a second");
        }
        assert_eq!((resolver.mac(), resolver.moves()), (Some(SERVER), 0));
        assert!(resolver.claims() >= 9);
        // And if data is acknowledged, nobody is asked at all.
        let mut resolver = resolved();
        resolver.learn(Time::from_s(1), &claim(OTHER), false);
        resolver.confirm(Time::from_s(1));
        assert_eq!(answered(&mut resolver, Time::from_s(1), Time::from_s(50), &[OTHER]), 0);
        assert_eq!(resolver.mac(), Some(SERVER));
    }

    #[test]
    fn a_hop_that_announces_its_new_mac_is_found_there_if_nothing_answers_at_the_old_one() {
        let mut resolver = resolved();
        resolver.learn(Time::from_s(1), &claim(OTHER), false);
        answered(&mut resolver, Time::from_s(1), Time::from_ms(2_002), &[OTHER]);
        assert_eq!((resolver.mac(), resolver.moves()), (Some(OTHER), 1));
    }

    #[test]
    fn streams_without_an_answer_have_the_hop_resolved_and_its_new_mac_is_used_at_once() {
        let mut resolver = resolved();
        resolver.advise(Time::from_ms(500)); // it was confirmed just now
        assert_eq!(answered(&mut resolver, Time::from_ms(500), Time::from_s(2), &[]), 0);
        resolver.advise(Time::from_s(2));
        assert_eq!(answered(&mut resolver, Time::from_s(2), Time::from_ms(2_001), &[SERVER, OTHER]), 1);
        assert_eq!((resolver.mac(), resolver.moves()), (Some(OTHER), 1));
    }

    #[test]
    fn a_host_that_answers_arp_and_no_stream_does_not_keep_the_address_for_ever() {
        let mut resolver = Resolver::new(HOP, "no such interface");
        answered(&mut resolver, Time::ZERO, Time::from_ms(1), &[OTHER, SERVER]);
        assert_eq!(resolver.mac(), Some(OTHER), "the first to answer");
        for second in 1..5 {
            resolver.advise(Time::from_s(second));
            answered(&mut resolver, Time::from_s(second), Time::from_s(second + 1), &[OTHER, SERVER]);
            if resolver.mac() == Some(SERVER) {
                return;
            }
        }
        panic!("never at the server: {:?}", resolver.entry);
    }

    #[test]
    fn a_mac_that_nothing_has_confirmed_for_a_minute_is_requested_ever_more_rarely() {
        let mut resolver = resolved();
        assert_eq!(answered(&mut resolver, Time::from_ms(1), AGE, &[]), 0);
        // 1, 2, 4, 8, 16, 32, 32 s
        assert_eq!(answered(&mut resolver, AGE, AGE + Time::from_s(100), &[]), 8);
        assert_eq!(resolver.mac(), Some(SERVER));
        answered(&mut resolver, AGE + Time::from_s(100), AGE + Time::from_s(140), &[OTHER]);
        assert_eq!((resolver.mac(), resolver.moves()), (Some(OTHER), 1));
    }
}
