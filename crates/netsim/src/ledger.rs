// SPDX-License-Identifier: Apache-2.0
//! The book of all flows: what was posted, what arrived, when.
//! Promise: messages are delivered in the order they were posted; every byte is counted once, where it arrived.

use std::cell::RefCell;
use std::rc::Rc;

use crate::flow::{FlowId, Message};
use crate::units::Time;

/// The ledger as all endpoints of one simulation share it.
pub type SharedLedger = Rc<RefCell<Ledger>>;

/// What one flow has done.
#[derive(Debug, Clone, Default)]
pub struct FlowRecord {
    pub posted_messages: u64,
    pub posted_bytes: u64,
    /// Payload that arrived in order at the receiver.
    pub delivered_bytes: u64,
    pub delivered_messages: u64,
    pub last_delivery: Option<Time>,
}

/// What all flows have done.
#[derive(Debug, Default)]
pub struct Ledger {
    flows: Vec<FlowRecord>,
}

impl Ledger {
    /// A book with flows 0 .. `flows`.
    pub fn shared(flows: usize) -> SharedLedger {
        Rc::new(RefCell::new(Ledger { flows: vec![FlowRecord::default(); flows] }))
    }

    pub fn flow(&self, flow: FlowId) -> &FlowRecord {
        &self.flows[flow.0 as usize]
    }

    /// The sender has taken a message up.
    pub fn posted(&mut self, flow: FlowId, message: &Message) {
        let record = &mut self.flows[flow.0 as usize];
        record.posted_messages += 1;
        record.posted_bytes += message.bytes;
    }

    /// Payload has arrived, in order and for the first time.
    pub fn arrived(&mut self, flow: FlowId, _now: Time, bytes: u64) {
        self.flows[flow.0 as usize].delivered_bytes += bytes;
    }

    /// The oldest message that was not yet delivered is whole at the receiver.
    pub fn delivered(&mut self, flow: FlowId, now: Time) {
        let record = &mut self.flows[flow.0 as usize];
        record.delivered_messages += 1;
        record.last_delivery = Some(now);
    }
}
