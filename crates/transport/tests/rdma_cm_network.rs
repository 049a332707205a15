// SPDX-License-Identifier: Apache-2.0
//! Two connection managers over a network that loses, repeats, delays and reorders messages, and owners that accept,
//! reject, hesitate and disconnect at random. In the end both have the same connections with the same parameters, and
//! once these are closed, nothing is left. A failing seed is printed and replays.

use penstock_transport::*;
use penstock_units::Time;
use penstock_wire::*;
use std::collections::{BTreeMap, BinaryHeap};

const IPS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const PORT: u16 = 4791;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A manager and what its owner has been given.
struct Host {
    cm: RdmaCm,
    undecided: Vec<u32>,
    up: BTreeMap<u32, RdmaCmAgreed>,
    ended: Vec<u32>,
    came_up: usize,
}

type Flight = (std::cmp::Reverse<Time>, u64, usize, Vec<u8>);

struct World {
    random: Random,
    now: Time,
    hosts: [Host; 2],
    flying: BinaryHeap<Flight>,
    /// Percent of messages that are lost, repeated; the longest delay.
    faults: (u64, u64, u64),
    sent: u64,
    qpn: u32,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let faults = (random.below(30), random.below(30), 1 + random.below(600));
        let host = |n: usize| {
            let config = RdmaCmConfig { port: Some(PORT), ..RdmaCmConfig::new(IPS[n], n as u64 + 1, 16) };
            let mut words = Random(seed ^ (n as u64 + 1) << 40 | 1);
            let cm = RdmaCm::new(config, Box::new(move || words.next() as u32));
            Host { cm, undecided: Vec::new(), up: BTreeMap::new(), ended: Vec::new(), came_up: 0 }
        };
        let hosts = [host(0), host(1)];
        World { random, now: Time::ZERO, hosts, flying: BinaryHeap::new(), faults, sent: 0, qpn: 2 }
    }

    fn end(&mut self) -> RdmaCmEnd {
        self.qpn += 1;
        RdmaCmEnd {
            qpn: Qpn::new(self.qpn),
            psn: Psn::new(self.random.next() as u32),
            responder_resources: self.random.below(17) as u8,
            initiator_depth: self.random.below(17) as u8,
            rnr_retry: self.random.below(8) as u8,
            private: [self.random.next() as u8; RDMA_CM_PRIVATE_LEN],
        }
    }

    /// Sends what waits, and takes what has happened.
    fn settle(&mut self) {
        for n in 0..2 {
            while let Some((to, mad)) = self.hosts[n].cm.poll_transmit() {
                assert_eq!(to, IPS[1 - n]);
                let copies = match () {
                    () if self.random.chance(self.faults.0) => 0,
                    () if self.random.chance(self.faults.1) => 2,
                    () => 1,
                };
                for _ in 0..copies {
                    let due = self.now + Time::from_us(1 + 1000 * self.random.below(self.faults.2));
                    self.sent += 1;
                    self.flying.push((std::cmp::Reverse(due), self.sent, 1 - n, mad.to_datagram().to_vec()));
                }
            }
            while let Some(event) = self.hosts[n].cm.poll_event() {
                self.hosts[n].take(event);
            }
        }
    }

    fn owner_acts(&mut self) {
        let n = self.random.below(2) as usize;
        match self.random.below(6) {
            0 => {
                let path = RdmaCmPath {
                    mtu: Mtu::ALL[self.random.below(5) as usize],
                    retry_count: self.random.below(8) as u8,
                    ack_timeout: self.random.below(32) as u8,
                };
                let local = self.end();
                self.hosts[n].cm.connect(self.now, IPS[1 - n], PORT, local, path);
            }
            1..=3 => {
                let Some(connection) = self.hosts[n].undecided.pop() else { return };
                let local = self.end();
                if self.random.chance(80) {
                    self.hosts[n].cm.accept(self.now, connection, local);
                } else {
                    self.hosts[n].cm.reject(connection, RejReason::Consumer);
                }
            }
            _ => {
                let up: Vec<u32> = self.hosts[n].up.keys().copied().collect();
                if !up.is_empty() && self.random.chance(60) {
                    let connection = up[self.random.below(up.len() as u64) as usize];
                    self.hosts[n].cm.disconnect(self.now, connection);
                }
            }
        }
    }

    /// The next message arrives or the next timer expires; false: nothing is left to happen before `until`.
    fn step(&mut self, until: Time) -> bool {
        let arrival = self.flying.peek().map(|flight| flight.0 .0);
        let timers = self.hosts.iter().filter_map(|host| host.cm.next_timeout());
        let Some(due) = timers.chain(arrival).min().filter(|due| *due <= until) else { return false };
        self.now = self.now.max(due);
        if arrival == Some(due) {
            let (_, _, to, bytes) = self.flying.pop().unwrap();
            let mad = RdmaCmMad::parse_datagram(&bytes).unwrap();
            self.hosts[to].cm.handle_mad(self.now, IPS[1 - to], &mad);
        }
        for host in &mut self.hosts {
            host.cm.handle_timeout(self.now);
        }
        self.settle();
        true
    }

    /// From here on nothing is lost, and owners answer.
    fn calm(&mut self) {
        self.faults = (0, 0, 1);
        loop {
            for n in 0..2 {
                for connection in std::mem::take(&mut self.hosts[n].undecided) {
                    let local = self.end();
                    self.hosts[n].cm.accept(self.now, connection, local);
                }
            }
            self.settle();
            if !self.step(Time::MAX) {
                return;
            }
        }
    }
}

impl Host {
    fn take(&mut self, event: RdmaCmEvent) {
        match event {
            RdmaCmEvent::Requested { connection, .. } => self.undecided.push(connection),
            RdmaCmEvent::Established { connection, agreed } => {
                self.came_up += 1;
                assert!(!self.ended.contains(&connection));
                assert!(self.up.insert(connection, agreed).is_none(), "it came up twice");
            }
            RdmaCmEvent::Failed { connection, .. } => {
                self.undecided.retain(|other| *other != connection);
                assert!(!self.up.contains_key(&connection), "it was up");
                assert!(!self.ended.contains(&connection), "it ended twice");
                self.ended.push(connection);
            }
            RdmaCmEvent::Disconnected { connection } => {
                self.up.remove(&connection);
                assert!(!self.ended.contains(&connection), "it ended twice");
                self.ended.push(connection);
            }
        }
    }

    fn ends(&self) -> Vec<(RdmaCmEnd, RdmaCmEnd, RdmaCmPath)> {
        let mut ends: Vec<_> = self.up.values().map(|up| (up.local, up.peer, up.path)).collect();
        ends.sort_by_key(|(local, peer, _)| (local.qpn.value().min(peer.qpn.value()), local.qpn.value()));
        ends
    }
}

fn run(seed: u64) -> usize {
    let mut world = World::new(seed);
    for _ in 0..200 {
        world.owner_acts();
        world.settle();
        let until = world.now + Time::from_ms(world.random.below(400));
        while world.step(until) {}
        world.now = until;
    }
    world.calm();
    let swapped: Vec<_> = world.hosts[1].ends().into_iter().map(|(local, peer, path)| (peer, local, path)).collect();
    let mut first = world.hosts[0].ends();
    let mut second = swapped;
    let key = |end: &(RdmaCmEnd, RdmaCmEnd, RdmaCmPath)| end.0.qpn.value();
    first.sort_by_key(key);
    second.sort_by_key(key);
    assert_eq!(first, second, "both have the same connections");
    for n in 0..2 {
        let up: Vec<u32> = world.hosts[n].up.keys().copied().collect();
        up.iter().for_each(|connection| world.hosts[n].cm.disconnect(world.now, *connection));
    }
    world.calm();
    for host in &world.hosts {
        assert!(host.up.is_empty());
        assert_eq!((host.cm.connections(), host.cm.next_timeout()), (0, None), "nothing is left");
    }
    world.hosts.iter().map(|host| host.came_up).sum()
}

#[test]
fn both_ends_agree_whatever_the_network_does() {
    let seeds = std::env::var("PENSTOCK_SEED").ok().and_then(|seed| seed.parse().ok()).map_or(0..2000, |s| s..s + 1);
    let mut came_up = 0;
    for seed in seeds {
        println!("PENSTOCK_SEED={seed}");
        came_up += run(seed);
    }
    println!("{came_up} connections came up");
    assert!(came_up > 10);
}

#[path = "../../../fuzz/src/input.rs"]
#[allow(dead_code, reason = "each target takes its own part")]
mod input;
#[path = "../../../fuzz/src/rdma_cm.rs"]
mod rdma_cm;

/// The fuzz target's promises with random inputs, which need no search.
#[test]
fn random_messages_break_no_promise() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    for n in 0..20_000 {
        let len = random.below(600) as usize;
        let bytes: Vec<u8> = std::iter::once((n % 3) as u8).chain((0..len).map(|_| random.next() as u8)).collect();
        rdma_cm::run(&bytes);
    }
}
