// SPDX-License-Identifier: Apache-2.0
//! Pauses that a port renews by itself, in closed form: a frame each time half the pause has passed, without an event.
//! Promise: frames leave, and the wire is busy, as if a timer had sent each; whoever looks at either end of the link is told
//! what has happened up to then. Where a frame could be lost, captured or changed, timers do it after all.
//! Source: IEEE 802.1Qbb; measured: at a thousand senders such timers took a quarter of the time (docs/results.md).

use penstock_wire::{MIN_FRAME_LEN, WIRE_OVERHEAD};

use crate::engine::{Core, Kind};
use crate::node::{NodeId, PortId};
use crate::switch::SwitchParams;
use crate::units::Time;

/// A PFC frame is as short as a frame can be.
const WIRE_BYTES: u64 = (MIN_FRAME_LEN + WIRE_OVERHEAD) as u64;

/// What a port renews. One cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Renewal {
    /// When the next frame leaves, if the wire is free then.
    due: Time,
    /// Bytes in whose time the pause passes.
    pause_bytes: u64,
    /// Of the node's timer that does it where this cannot go on, and of one of the receiving node that must know then.
    token: u64,
    receiver_token: Option<u64>,
    /// When the last frame arrives.
    last_arrival: Time,
    /// Frames of which the sending node has not been told, and the receiving one.
    untold: [u64; 2],
}

/// What a port has sent by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renewed {
    pub(crate) frames: u64,
    /// Until when its wire has the last of them.
    pub(crate) busy_until: Time,
    /// Another would be due, but has to wait for the wire: the port has ceased to renew.
    pub(crate) is_overdue: bool,
}

/// What the other end has sent by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    /// Since this was last asked.
    pub(crate) frames: u64,
    /// When the last one arrives.
    pub(crate) last: Time,
    /// Bytes in whose time the pause passes from there.
    pub(crate) pause_bytes: u64,
    /// There will be more: the pause ends with a frame, or when a timer says that this has changed.
    pub(crate) goes_on: bool,
}

impl Core {
    /// See `Outbox::renew_pause`.
    pub(crate) fn renew_pause(&mut self, node: NodeId, port: PortId, due: Time, pause_bytes: u64, token: u64) -> bool {
        let Some(index) = self.port_index(node, port) else { return false };
        let sender = &mut self.ports[index as usize];
        if !sender.is_plain || !self.owners[sender.peer as usize].takes_renewals {
            return false;
        }
        sender.renews = true;
        if self.renewals.len() < self.owners.len() {
            self.renewals.resize(self.owners.len(), Renewal::default());
        }
        let renewal = &mut self.renewals[index as usize];
        *renewal = Renewal { due, pause_bytes, token, ..*renewal };
        true
    }

    /// See `Outbox::cease_renewing`.
    pub(crate) fn cease_renewing(&mut self, node: NodeId, port: PortId) {
        if let Some(index) = self.port_index(node, port) {
            self.ports[index as usize].renews = false;
        }
    }

    /// See `Outbox::renewed`.
    pub(crate) fn renewed(&mut self, node: NodeId, port: PortId) -> Option<Renewed> {
        let index = self.port_index(node, port)?;
        let is_overdue = self.settle_renewals(index, self.now);
        let renewal = self.renewals.get_mut(index as usize)?;
        let [frames, _] = &mut renewal.untold;
        let port = &mut self.ports[index as usize];
        port.renews &= !is_overdue;
        Some(Renewed { frames: std::mem::take(frames), busy_until: port.out.busy_until, is_overdue })
    }

    /// See `Outbox::arrived`.
    pub(crate) fn arrived(&mut self, node: NodeId, port: PortId, token: u64) -> Option<Arrived> {
        let index = self.ports[self.port_index(node, port)? as usize].peer;
        self.settle_renewals(index, self.now);
        let renewal = self.renewals.get_mut(index as usize)?;
        let Renewal { last_arrival: last, pause_bytes, .. } = *renewal;
        let [_, frames] = &mut renewal.untold;
        let frames = std::mem::take(frames);
        let goes_on = self.ports[index as usize].renews;
        renewal.receiver_token = goes_on.then_some(token);
        Some(Arrived { frames, last, pause_bytes, goes_on })
    }

    /// Sends what a port has to send by itself before a time. True: the next one is due before and waits for the wire.
    pub(crate) fn settle_renewals(&mut self, port: u32, before: Time) -> bool {
        let (sender, side) = (&mut self.ports[port as usize], &mut self.sides[port as usize]);
        if !sender.renews {
            return false;
        }
        let renewal = &mut self.renewals[port as usize];
        while renewal.due < before {
            let begin = renewal.due.max(sender.out.busy_until);
            if begin >= before {
                return true;
            }
            sender.out.occupy_for(&mut side.wire, begin, WIRE_BYTES);
            renewal.last_arrival = sender.out.arrival();
            renewal.untold = renewal.untold.map(|frames| frames + 1);
            let pause = sender.out.time_for(&side.wire, renewal.pause_bytes);
            renewal.due = begin + SwitchParams::refresh_after(pause);
        }
        false
    }

    /// Leaves the renewals of a port to its node's timer from now on.
    pub(crate) fn renew_by_timer(&mut self, port: u32) {
        if std::mem::take(&mut self.ports[port as usize].renews) {
            let Renewal { due, token, receiver_token, .. } = self.renewals[port as usize];
            let node = self.owners[port as usize].node;
            self.schedule(due.max(self.now), Kind::Timer, node, token);
            if let Some(token) = receiver_token {
                let receiver = self.owners[self.ports[port as usize].peer as usize].node;
                self.schedule(self.now, Kind::Timer, receiver, token);
            }
        }
    }
}
