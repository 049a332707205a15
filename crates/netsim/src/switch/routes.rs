// SPDX-License-Identifier: Apache-2.0
//! The forwarding table, and the choice between ports of equal cost.
//! Promise: a look-up costs the same for ten hosts and for ten thousand; a flow keeps its port; another switch, having
//! another seed, chooses independently (no polarisation).
//! Source: RFC 2992 (hash of the flow, so that its packets stay in order); finaliser of SplitMix64 (Steele et al. 2014).

use std::net::Ipv4Addr;

use penstock_wire::FiveTuple;

use crate::node::PortId;

/// Ports of equal cost: a range of `Routes::hops`.
#[derive(Debug, Clone, Copy, Default)]
struct Hops {
    first: u32,
    count: u32,
}

/// Open addressing with linear probing, at most half full.
#[derive(Debug)]
pub(super) struct Routes {
    /// (address, where to); a count of 0 is a free place.
    table: Vec<(u32, Hops)>,
    used: usize,
    hops: Vec<PortId>,
    seed: u64,
}

impl Routes {
    pub(super) fn new(seed: u64) -> Self {
        Routes { table: vec![(0, Hops::default()); 16], used: 0, hops: Vec::new(), seed }
    }

    /// Frames to `destination` leave by one of `ports`; takes the place of an earlier route. No ports: no route.
    pub(super) fn set(&mut self, destination: Ipv4Addr, ports: &[PortId]) {
        if 2 * (self.used + 1) > self.table.len() {
            self.grow();
        }
        let hops = self.intern(ports);
        let at = self.place(destination.to_bits());
        // an entry is never taken out, as that would break the probing: without ports it stays, leading nowhere
        let known = self.table[at].1.count > 0;
        if hops.count == 0 && !known {
            return;
        }
        self.used += usize::from(!known);
        self.table[at] = (destination.to_bits(), hops);
    }

    /// Many destinations share few sets of ports.
    fn intern(&mut self, ports: &[PortId]) -> Hops {
        let nowhere = &[PortId(u16::MAX)][..];
        let ports = if ports.is_empty() { nowhere } else { ports };
        let known = self.hops.windows(ports.len()).position(|window| window == ports);
        let first = known.unwrap_or_else(|| {
            self.hops.extend_from_slice(ports);
            self.hops.len() - ports.len()
        });
        Hops { first: first as u32, count: ports.len() as u32 }
    }

    /// Where `address` is or would be put.
    fn place(&self, address: u32) -> usize {
        let mask = self.table.len() - 1;
        // multiplicative hashing (Knuth 6.4); its high bits are the good ones
        let hash = u64::from(address).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut at = hash as usize & mask;
        while self.table[at].1.count > 0 && self.table[at].0 != address {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let bigger = vec![(0, Hops::default()); 2 * self.table.len()];
        let old = std::mem::replace(&mut self.table, bigger);
        for (address, hops) in old.into_iter().filter(|entry| entry.1.count > 0) {
            let at = self.place(address);
            self.table[at] = (address, hops);
        }
    }

    /// The port for a packet to `destination`. The flow is only asked for where there is a choice.
    pub(super) fn port(&self, destination: Ipv4Addr, flow: impl FnOnce() -> Option<FiveTuple>) -> Option<PortId> {
        let hops = self.table[self.place(destination.to_bits())].1;
        let choice = match hops.count {
            0 => return None,
            1 => 0,
            count => flow().map_or(0, |flow| choose(hash(&flow, self.seed), count)),
        };
        Some(self.hops[hops.first as usize + choice])
    }
}

fn choose(hash: u64, count: u32) -> usize {
    (((hash >> 32) * u64::from(count)) >> 32) as usize
}

/// A hash of all fields of a flow, of which every bit depends on every bit of flow and seed. Switch chips use a CRC;
/// CRCs of two seeds differ by a constant only, so that two tiers of switches would choose alike.
pub fn hash(flow: &FiveTuple, seed: u64) -> u64 {
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

    proptest! {
        #[test]
        fn the_table_answers_as_a_map_does(sets in proptest::collection::vec((0u32..400, 0u16..20), 0..600)) {
            let (mut routes, mut model) = (Routes::new(1), HashMap::new());
            for (host, port) in sets {
                let ports = if port == 0 { vec![] } else { vec![PortId(port)] };
                routes.set(Ipv4Addr::from_bits(host << 8), &ports);
                model.insert(host, port);
            }
            for host in 0..400 {
                let port = routes.port(Ipv4Addr::from_bits(host << 8), none).filter(|port| port.0 != u16::MAX);
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
