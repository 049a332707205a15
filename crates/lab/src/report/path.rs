// SPDX-License-Identifier: Apache-2.0
//! The path of a flow through the network, and whether congestion elsewhere held the flow up (victim flow).
//! Promise: the path is the one that the flow's packets take, by the switches' own tables and hash.
//! Source: Zhu et al., SIGCOMM 2015, section 2.2 (victim flows of PFC).

use penstock_netsim::{ClassStats, Engine, NodeId, PortId, Station};
use penstock_wire::Packet;

use crate::units::Time;

/// A port by which packets of a flow leave a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    pub node: NodeId,
    pub port: PortId,
}

/// No sane network is deeper; a loop of routes ends here.
const MAX_HOPS: usize = 64;

/// The ports by which packets like `probe` leave: that of host `from`, then one of each switch.
pub fn path_of(engine: &Engine, from: NodeId, probe: &Packet) -> Vec<Hop> {
    let mut path = vec![Hop { node: from, port: PortId(0) }];
    while let Some(last) = path.last().filter(|_| path.len() < MAX_HOPS) {
        let Some((node, _)) = engine.peer(last.node, last.port) else { break };
        let Some(port) = engine.switch(node).and_then(|switch| switch.egress(probe)) else { break };
        path.push(Hop { node, port });
    }
    path
}

/// How a flow was held up by pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocking {
    /// The longest time that one port of its path was paused in its class.
    pub paused: Time,
    /// A port of its path was paused, and no port after the last such one was congested: the congestion was on the
    /// path of other flows.
    pub is_victim: bool,
}

/// How pauses held up the packets of one class on this path, up to `now`. It looks at the whole run: a port counts that
/// was paused before the flow began.
pub fn blocking(engine: &Engine, path: &[Hop], class: usize, now: Time) -> Blocking {
    let mut blocking = Blocking::default();
    for hop in path {
        let (paused, congested) = match engine.switch(hop.node) {
            Some(switch) => {
                let stats = switch.port_stats(hop.port, now).classes[class];
                (stats.paused, is_congested(&stats))
            }
            None => {
                let station = engine.node::<Station>(hop.node);
                (station.map_or(Time::ZERO, |station| station.stats(now).paused_for[class]), false)
            }
        };
        blocking.paused = blocking.paused.max(paused);
        if paused > Time::ZERO {
            blocking.is_victim = true;
        } else if congested {
            blocking.is_victim = false;
        }
    }
    blocking
}

/// More was to leave here than could: packets were marked, notified or dropped, or, where nothing marks, many waited.
fn is_congested(stats: &ClassStats) -> bool {
    const STANDING_QUEUE: u64 = 64 * 1024;
    stats.ecn_marked + stats.cnm_sent + stats.dropped > 0 || stats.peak_queue_bytes > STANDING_QUEUE
}
