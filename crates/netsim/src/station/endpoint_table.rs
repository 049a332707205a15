// SPDX-License-Identifier: Apache-2.0
//! Finds the endpoint of a station for a received packet.
//! Promise: a lookup costs the same for one endpoint and for thousands.

use std::collections::hash_map::{Entry, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::Ipv4Addr;

use penstock_wire::Qpn;

/// Numbers are dense or chosen by a generator: one multiplication each spreads them well enough.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        // The table takes its places from the low bits and its tags from the high ones.
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// The key of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Requests go to the receiver of a queue pair.
    Receiver(Qpn),
    /// Answers and CNPs go to its sender.
    Sender(Qpn),
    /// A switch knows only the destination of a sender's packets.
    SenderTo(Ipv4Addr, Qpn),
    /// A sender with CN-TAGs is found by its flow ID instead.
    Flow(u16),
    /// Segments go to the end of a connection: peer, its port, ours.
    Tcp(Ipv4Addr, u16, u16),
}

/// Endpoints by key; only looked up, never listed, so that no order leaks.
#[derive(Default)]
pub(super) struct EndpointTable(HashMap<Key, u32, BuildHasherDefault<KeyHasher>>);

impl EndpointTable {
    /// Returns whether the place was free.
    pub(super) fn insert(&mut self, key: Key, index: u32) -> bool {
        match self.0.entry(key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(index);
                true
            }
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<u32> {
        self.0.get(&key).copied()
    }
}
