// SPDX-License-Identifier: Apache-2.0
//! Which endpoint of a station a queue-pair number means.
//! Promise: a look-up costs the same for one queue pair and for thousands.

use std::collections::hash_map::{Entry, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::Ipv4Addr;

use penstock_wire::Qpn;

/// Numbers are dense or chosen by a generator: one multiplication spreads them well enough.
#[derive(Default)]
struct QpnHasher(u64);

impl Hasher for QpnHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        // The table takes its places from the low bits and its tags from the high ones.
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// By what an endpoint is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Requests go to the receiver of a queue pair.
    Receiver(Qpn),
    /// Answers and CNPs go to its sender.
    Sender(Qpn),
    /// A switch knows of a sender only where its packets go.
    SenderTo(Ipv4Addr, Qpn),
}

impl Key {
    fn number(self) -> u64 {
        match self {
            Key::Receiver(qpn) => u64::from(qpn.value()) << 2,
            Key::Sender(qpn) => u64::from(qpn.value()) << 2 | 1,
            Key::SenderTo(ip, qpn) => u64::from(ip.to_bits()) << 32 | u64::from(qpn.value()) << 2 | 2,
        }
    }
}

/// Endpoints by key; only looked up, never listed, so that no order leaks.
#[derive(Default)]
pub(super) struct QpnTable(HashMap<u64, u32, BuildHasherDefault<QpnHasher>>);

impl QpnTable {
    /// Says whether the place was free.
    pub(super) fn insert(&mut self, key: Key, index: u32) -> bool {
        match self.0.entry(key.number()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(index);
                true
            }
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<u32> {
        self.0.get(&key.number()).copied()
    }
}
