// SPDX-License-Identifier: Apache-2.0
//! The forwarding table, and the choice between ports of equal cost.
//! Promise: a lookup costs the same for ten hosts and for ten thousand; a flow keeps its port; each switch has its
//! own seed and therefore chooses independently (no polarisation).
//! Source: RFC 2992 (hash of the flow, so that its packets stay in order); finaliser of SplitMix64 (Steele et al.
//! 2014).

use std::net::Ipv4Addr;

use penstock_wire::FiveTuple;

use crate::port::PortId;

/// Ports of equal cost: a range of `Routes::hops`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hops {
    first: u32,
    count: u32,
}

/// Addresses of a page: those that differ in their last byte.
const PAGE: usize = 256;

/// Where an address leads: nowhere, to a port below `SETS`, or to one of the ports of a set.
const NOWHERE: u16 = u16::MAX;
const SETS: u16 = 1 << 15;

/// Pages are found by open addressing with linear probing, at most half full.
#[derive(Debug)]
pub(super) struct Routes {
    /// (what the addresses of a page have in common, the page's number and 1); a number of 0 is a free place.
    table: Vec<(u32, u32)>,
    pages: Vec<[u16; PAGE]>,
    sets: Vec<Hops>,
    hops: Vec<PortId>,
    seed: u64,
}

impl Routes {
    pub(super) fn new(seed: u64) -> Self {
        Routes { table: vec![(0, 0); 16], pages: Vec::new(), sets: Vec::new(), hops: Vec::new(), seed }
    }

    /// Frames to `destination` leave by one of `ports`; takes the place of an earlier route. No ports: no route.
    pub(super) fn set(&mut self, destination: Ipv4Addr, ports: &[PortId]) {
        let (common, at) = split(destination);
        let entry = match ports {
            [] => NOWHERE,
            [port] if port.0 < SETS => port.0,
            ports => self.intern(ports),
        };
        let page = self.page(common);
        self.pages[page][at] = entry;
    }

    /// The entry of a set of ports; many destinations share few.
    fn intern(&mut self, ports: &[PortId]) -> u16 {
        let found = self.hops.windows(ports.len()).position(|window| window == ports);
        let first = found.unwrap_or_else(|| {
            self.hops.extend_from_slice(ports);
            self.hops.len() - ports.len()
        });
        let hops = Hops { first: first as u32, count: ports.len() as u32 };
        let set = self.sets.iter().position(|set| *set == hops).unwrap_or_else(|| {
            self.sets.push(hops);
            self.sets.len() - 1
        });
        assert!(set < usize::from(NOWHERE - SETS), "more different sets of ports than a switch has ports");
        SETS + set as u16
    }

    /// The number of a page, which is made if there is none.
    fn page(&mut self, common: u32) -> usize {
        if 2 * (self.pages.len() + 1) > self.table.len() {
            self.grow();
        }
        let at = self.place(common);
        if self.table[at].1 == 0 {
            self.pages.push([NOWHERE; PAGE]);
            self.table[at] = (common, self.pages.len() as u32);
        }
        self.table[at].1 as usize - 1
    }

    /// Where the page of `common` is or would be put.
    #[inline]
    fn place(&self, common: u32) -> usize {
        let mask = self.table.len() - 1;
        // multiplicative hashing (Knuth 6.4); its high bits are the good ones
        let hash = u64::from(common).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut at = hash as usize & mask;
        while self.table[at].1 > 0 && self.table[at].0 != common {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let bigger = vec![(0, 0); 2 * self.table.len()];
        let old = std::mem::replace(&mut self.table, bigger);
        for (common, page) in old.into_iter().filter(|entry| entry.1 > 0) {
            let at = self.place(common);
            self.table[at] = (common, page);
        }
    }

    /// The port for a packet to `destination`. The flow is needed only if there is a choice.
    #[inline]
    pub(super) fn port(&self, destination: Ipv4Addr, flow: impl FnOnce() -> Option<FiveTuple>) -> Option<PortId> {
        let (common, at) = split(destination);
        let page = self.table[self.place(common)].1.checked_sub(1)?;
        match self.pages[page as usize][at] {
            NOWHERE => None,
            port if port < SETS => Some(PortId(port)),
            set => {
                let Hops { first, count } = self.sets[usize::from(set - SETS)];
                let choice = flow().map_or(0, |flow| choose(hash(&flow, self.seed), count));
                Some(self.hops[first as usize + choice])
            }
        }
    }
}

/// An address as the page that it is in and its place there.
#[inline]
fn split(address: Ipv4Addr) -> (u32, usize) {
    let address = address.to_bits();
    (address / PAGE as u32, address as usize % PAGE)
}

fn choose(hash: u64, count: u32) -> usize {
    (((hash >> 32) * u64::from(count)) >> 32) as usize
}

/// A hash of all fields of a flow, of which every bit depends on every bit of flow and seed. Switch chips use a CRC;
/// CRCs of two seeds differ by a constant only, so that two tiers of switches would choose alike.
fn hash(flow: &FiveTuple, seed: u64) -> u64 {
    let addresses = u64::from(flow.src.to_bits()) << 32 | u64::from(flow.dst.to_bits());
    let rest = u64::from(flow.protocol) << 32 | u64::from(flow.sport) << 16 | u64::from(flow.dport);
    mix(mix(addresses ^ seed) ^ rest)
}

fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn none() -> Option<FiveTuple> {
        None
    }

    /// A few addresses to a page.
    const SPREAD: u32 = 77;

    proptest! {
        #[test]
        fn the_table_answers_as_a_map_does(sets in proptest::collection::vec((0u32..400, 0u16..20), 0..600)) {
            let (mut routes, mut model) = (Routes::new(1), HashMap::new());
            for (host, port) in sets {
                let ports = if port == 0 { vec![] } else { vec![PortId(port)] };
                routes.set(Ipv4Addr::from_bits(host * SPREAD), &ports);
                model.insert(host, port);
            }
            for host in 0..400 {
                let port = routes.port(Ipv4Addr::from_bits(host * SPREAD), none);
                let expected = model.get(&host).copied().filter(|port| *port > 0);
                prop_assert_eq!(port.map(|port| port.0), expected);
            }
        }
    }

    fn flow(k: u32) -> FiveTuple {
        let (src, dst) = (Ipv4Addr::from_bits(0x0A00_0000 | (k % 64)), Ipv4Addr::new(10, 1, 0, 1));
        FiveTuple { src, dst, protocol: 17, sport: 0xC000 + (k / 64) as u16, dport: 4791 }
    }

    #[test]
    fn flows_spread_evenly_and_independently_of_the_switch_before() {
        let chosen = |seed, k, count| choose(hash(&flow(k), seed), count);
        for count in [2, 3, 4, 7, 16] {
            let (flows, mut hits) = (16_000, vec![0u32; count as usize * count as usize]);
            (0..flows).for_each(|k| hits[chosen(1, k, count) * count as usize + chosen(2, k, count)] += 1);
            // each pair of choices of two switches is as likely as any other: chi squared with n - 1 degrees of
            // freedom stays within five standard deviations
            let mean = f64::from(flows) / hits.len() as f64;
            let chi2: f64 = hits.iter().map(|hit| (f64::from(*hit) - mean).powi(2) / mean).sum();
            let freedom = hits.len() as f64 - 1.0;
            assert!((chi2 - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{count} ports: chi2 {chi2} of {freedom}");
        }
    }
}
