// SPDX-License-Identifier: Apache-2.0
//! A port as the engine keeps it: what every frame touches in one cache line, the rest aside.
//! Promise: a frame that leaves a plain port touches one line here, whatever the link could do to it.
//! Source: measured (docs/results.md, growth with the number of senders).

use crate::link::{Direction, Wire};
use crate::node::{Frame, NodeId, PortId};
use crate::units::Time;

/// The interface of a port that is not captured.
pub(crate) const NO_TAP: u32 = u32::MAX;

/// One end of a link: the direction that leaves the port, and where it leads. One cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Port {
    pub(crate) out: Direction,
    pub(crate) peer: u32,
    pub(crate) wants_tx_done: bool,
    /// Nothing of `Side` matters to a frame that leaves.
    pub(crate) is_plain: bool,
    /// It renews a pause by itself.
    pub(crate) renews: bool,
}

/// Whose a port is: all that an event asks. Many to a cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) node: u32,
    pub(crate) number: PortId,
    /// Frames are handed over to this port before they are in.
    pub(crate) looks_ahead: bool,
    /// It forwards packets without a look at their ECN bits.
    pub(crate) is_switch: bool,
    /// `Node::takes_renewals`.
    pub(crate) takes_renewals: bool,
}

/// What few frames ask of a port.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) wire: Wire,
    pub(crate) peer_lookahead: Time,
    /// Interface of the capture, `NO_TAP` where frames are not captured.
    pub(crate) tap: u32,
}

impl Side {
    pub(crate) fn is_plain(&self) -> bool {
        self.wire.is_perfect && self.peer_lookahead == Time::ZERO && self.tap == NO_TAP
    }
}

/// A frame for `Node::on_control_ahead`.
pub(crate) struct Ahead {
    pub(crate) sender: NodeId,
    /// Of the receiver.
    pub(crate) port: u32,
    pub(crate) arrival: Time,
    pub(crate) frame: Frame,
}
