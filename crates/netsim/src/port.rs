// SPDX-License-Identifier: Apache-2.0
//! Nodes and ports by number, and a port as the engine keeps it.
//! Promise: a frame that leaves a plain port touches one cache line here, independent of the faults of the link.

use crate::link::{Direction, Wire};
use crate::renewal::Renewal;
use crate::units::Time;

/// A node of one engine, in the order of `Engine::add_node`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Its place among the nodes, as in `Engine::into_nodes`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A port of one node, numbered from 0 by the node itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// The interface of a port that is not captured.
pub(crate) const NO_TAP: u32 = u32::MAX;

/// One end of a link: the direction that leaves the port, and where it leads. One cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Port {
    pub(crate) out: Direction,
    pub(crate) peer: u32,
    pub(crate) reports_tx_done: bool,
    /// Nothing of `Side` matters to a frame that leaves.
    pub(crate) is_plain: bool,
}

/// The node that a port belongs to. Each event reads it, so it is kept small, many to a cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) node: NodeId,
    pub(crate) number: PortId,
    /// Frames are handed over to this port before they are in.
    pub(crate) looks_ahead: bool,
}

/// The parts of a port that few frames need.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) wire: Wire,
    pub(crate) peer_lookahead: Time,
    /// Interface of the capture, `NO_TAP` where frames are not captured.
    pub(crate) tap: u32,
    /// The pause that the port's owner keeps up at the other end.
    pub(crate) renewal: Renewal,
}

impl Side {
    pub(crate) fn is_plain(&self) -> bool {
        self.wire.is_perfect && self.peer_lookahead == Time::ZERO && self.tap == NO_TAP
    }
}
