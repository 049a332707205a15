// SPDX-License-Identifier: Apache-2.0
//! Which endpoint of a station a queue-pair number means.
//! Promise: a look-up costs the same for one queue pair and for thousands.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use penstock_wire::Qpn;

/// What a packet is for: requests go to the receiver of a queue pair, answers and notifications to its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Sender = 0,
    Receiver = 1,
}

/// Numbers are dense or chosen by a generator: one multiplication spreads them well enough.
#[derive(Default)]
struct QpnHasher(u64);

impl Hasher for QpnHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// Endpoints by queue pair and role; only looked up, never listed, so that no order leaks.
#[derive(Default)]
pub(super) struct QpnTable(HashMap<u32, u32, BuildHasherDefault<QpnHasher>>);

impl QpnTable {
    fn key(qpn: Qpn, role: Role) -> u32 {
        qpn.value() << 1 | role as u32
    }

    /// Says whether the place was free.
    pub(super) fn insert(&mut self, qpn: Qpn, role: Role, index: u32) -> bool {
        let entry = self.0.entry(Self::key(qpn, role));
        let free = matches!(entry, std::collections::hash_map::Entry::Vacant(_));
        entry.or_insert(index);
        free
    }

    pub(super) fn get(&self, qpn: Qpn, role: Role) -> Option<u32> {
        self.0.get(&Self::key(qpn, role)).copied()
    }
}
