// SPDX-License-Identifier: Apache-2.0
//! The packets between front ends, server and strangers, and a link that loses, repeats, delays and damages them.
//! Promise: the same seed gives the same faults. Times are in ticks of the field.

use std::collections::VecDeque;

use bytes::Bytes;
use penstock_wire::{CmMessage, Ipv4Addr, MacAddr, RocePacket};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn happens(&mut self, per_million: u64) -> bool {
        self.below(1_000_000) < per_million
    }
}

/// A packet of the data path, or a message of the connection manager.
#[derive(Clone, Debug)]
pub enum Parcel {
    Data(RocePacket),
    Message { from: Ipv4Addr, to: Ipv4Addr, message: CmMessage },
}

impl Parcel {
    pub fn to(&self) -> Ipv4Addr {
        match self {
            Parcel::Data(packet) => packet.ip_dst,
            Parcel::Message { to, .. } => *to,
        }
    }
}

/// The MAC address of whoever has this address.
pub fn mac(ip: Ipv4Addr) -> MacAddr {
    let [a, b, c, d] = ip.octets();
    MacAddr([2, 0, a, b, c, d])
}

/// Chances per million parcels, in both directions.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    pub corrupt: u64,
}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct WireCounts {
    pub packets: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub damaged: u64,
    /// Frames refused by the device of the board that sends them.
    pub refused: u64,
}

/// Parcels by the tick of their arrival.
pub struct Wire {
    buckets: VecDeque<Vec<Parcel>>,
    faults: Faults,
    pub counts: WireCounts,
    /// The last packet of data, for strangers to look at.
    pub seen: Option<RocePacket>,
    /// The device at this address refuses packets with a payload: they are too long for what is behind it.
    pub refuses: Option<Ipv4Addr>,
}

impl Wire {
    const DELAY: usize = 2;
    const LATEST: usize = 32;

    pub fn new(faults: Faults) -> Self {
        let buckets = vec![Vec::new(); Self::LATEST + 1].into();
        Wire { buckets, faults, counts: WireCounts::default(), seen: None, refuses: None }
    }

    pub fn send(&mut self, parcel: Parcel, random: &mut Random) {
        let Faults { loss, duplicate, reorder, corrupt } = self.faults;
        self.counts.packets += 1;
        if let Parcel::Data(packet) = &parcel {
            if self.refuses == Some(packet.ip_src) && !packet.payload.is_empty() {
                self.counts.refused += 1;
                return;
            }
            if self.counts.packets.is_multiple_of(64) {
                self.seen = Some(packet.clone());
            }
        }
        let copies = if random.happens(duplicate) { 2 } else { 1 };
        self.counts.duplicated += copies - 1;
        for _ in 0..copies {
            if random.happens(loss) {
                self.counts.lost += 1;
                continue;
            }
            let late = random.happens(reorder);
            self.counts.reordered += u64::from(late);
            let extra = if late { 1 + random.below((Self::LATEST - Self::DELAY) as u64) as usize } else { 0 };
            let arrives = if random.happens(corrupt) { self.damage(&parcel, random) } else { Some(parcel.clone()) };
            self.buckets[Self::DELAY + extra].extend(arrives);
        }
    }

    /// One bit flips, and the receiving end reads what is left; UDP's checksum finds a message's damage.
    fn damage(&mut self, parcel: &Parcel, random: &mut Random) -> Option<Parcel> {
        self.counts.damaged += 1;
        let Parcel::Data(packet) = parcel else { return None };
        let mut frame = packet.emit().to_vec();
        let at = random.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << random.below(8);
        RocePacket::parse(&Bytes::from(frame)).ok().map(Parcel::Data)
    }

    pub fn arrived(&mut self) -> Vec<Parcel> {
        self.buckets.push_back(Vec::new());
        self.buckets.pop_front().unwrap_or_default()
    }
}
