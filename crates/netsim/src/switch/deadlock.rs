// SPDX-License-Identifier: Apache-2.0
//! Finds a PFC deadlock: a cycle of paused ports, each of which waits for the next one.
//! Promise: a cycle is found if and only if every port of it has been paused for the given time and holds frames
//! for which the port before it is paused; its ports are listed in the order in which they wait.
//! Source: Guo et al., SIGCOMM 2016, section 4.2 (cyclic buffer dependency).

use std::collections::BTreeMap;
use std::fmt;

use super::Switch;
use crate::engine::Engine;
use crate::port::{NodeId, PortId};
use crate::units::Time;

/// An egress port and class of a switch that cannot send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedPort {
    pub switch: NodeId,
    pub name: String,
    pub port: PortId,
    pub class: usize,
    /// Time since when it has been paused without a gap.
    pub since: Time,
    /// Bytes that wait there.
    pub queue_bytes: u64,
}

/// Ports of which each waits for the next and the last for the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseCycle(pub Vec<PausedPort>);

impl fmt::Display for PauseCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.0.first().map_or(0, |port| port.class);
        write!(f, "PFC deadlock in class {class}: ")?;
        for port in &self.0 {
            write!(f, "{} port {} ({} waiting since {}) waits for ", port.name, port.port.0, bytes(port), port.since)?;
        }
        match self.0.first() {
            Some(first) => write!(f, "{} port {}", first.name, first.port.0),
            None => Ok(()),
        }
    }
}

fn bytes(port: &PausedPort) -> crate::units::ByteSize {
    crate::units::ByteSize(port.queue_bytes)
}

type Key = (NodeId, PortId, usize);

/// A port that has been paused for long, and the ingress ports of the frames waiting there.
struct Stuck {
    since: Time,
    sources: Vec<u16>,
}

/// A circle of ports of these switches, each paused for at least `held`; `None`: there is none. A pause that a host
/// keeps up is no circle, however long.
pub fn find_pause_cycle(engine: &Engine, switches: &[NodeId], held: Time) -> Option<PauseCycle> {
    let mut stuck = BTreeMap::new();
    for id in switches {
        if let Some(switch) = engine.node::<Switch>(*id) {
            collect(switch, *id, engine.now(), held, &mut stuck);
        }
    }
    let keys: Vec<Key> = stuck.keys().copied().collect();
    let mut done = std::collections::BTreeSet::new();
    keys.into_iter().find_map(|key| walk(engine, &stuck, key, &mut done)).map(|cycle| name(engine, &stuck, cycle))
}

fn collect(switch: &Switch, id: NodeId, now: Time, held: Time, stuck: &mut BTreeMap<Key, Stuck>) {
    for (index, port) in switch.ports.iter().enumerate() {
        for class in 0..crate::pause::CLASSES {
            let since = port.pause.paused_since(class, now).filter(|since| now - *since >= held);
            let Some(since) = since else { continue };
            let mut sources: Vec<u16> = port.queue(&switch.pool, class).map(|held| held.ingress).collect();
            sources.sort_unstable();
            sources.dedup();
            if !sources.is_empty() {
                stuck.insert((id, PortId(index as u16), class), Stuck { since, sources });
            }
        }
    }
}

/// The stuck ports because of which this one is paused: those at the other end where its frames wait.
fn waits_for(engine: &Engine, stuck: &BTreeMap<Key, Stuck>, (switch, port, class): Key) -> Vec<Key> {
    let Some((peer, entry)) = engine.peer(switch, port) else { return Vec::new() };
    let of_peer = stuck.range((peer, PortId(0), 0)..=(peer, PortId(u16::MAX), usize::MAX));
    of_peer.filter(|(key, at)| key.2 == class && at.sources.contains(&entry.0)).map(|(key, _)| *key).collect()
}

/// Depth first from `start`; the part of the path that closes, if one does.
fn walk(
    engine: &Engine,
    stuck: &BTreeMap<Key, Stuck>,
    start: Key,
    done: &mut std::collections::BTreeSet<Key>,
) -> Option<Vec<Key>> {
    if done.contains(&start) {
        return None;
    }
    let mut path = vec![start];
    let mut open = vec![waits_for(engine, stuck, start)];
    while let Some(next) = open.last_mut() {
        let Some(key) = next.pop() else {
            open.pop();
            done.extend(path.pop());
            continue;
        };
        if let Some(at) = path.iter().position(|other| *other == key) {
            return Some(path.split_off(at));
        }
        if !done.contains(&key) {
            path.push(key);
            open.push(waits_for(engine, stuck, key));
        }
    }
    None
}

fn name(engine: &Engine, stuck: &BTreeMap<Key, Stuck>, cycle: Vec<Key>) -> PauseCycle {
    let named = cycle.into_iter().map(|(switch, port, class)| PausedPort {
        switch,
        name: engine.node_name(switch).to_owned(),
        port,
        class,
        since: stuck[&(switch, port, class)].since,
        queue_bytes: engine.node::<Switch>(switch).map_or(0, |switch| switch.class_queue_bytes(port, class)),
    });
    PauseCycle(named.collect())
}
