// SPDX-License-Identifier: Apache-2.0
//! A flow of a simulation: its queue pairs and its endpoints.

use penstock_cc::Law;
use penstock_netsim::{FlowId, NodeId};
use penstock_transport::{Endpoint, Mtu};
use penstock_wire::Psn;

use crate::scenario::Protocol;
use crate::units::Time;

/// One end of an RC flow with all that its queue pair must know.
#[derive(Debug, Clone)]
pub struct QueuePair {
    pub local: Endpoint,
    pub peer: Endpoint,
    pub mtu: Mtu,
    pub first_psn: Psn,
    pub udp_sport: u16,
}

/// A flow in a simulation.
#[derive(Debug, Clone)]
pub struct FlowInfo {
    pub id: FlowId,
    pub name: String,
    /// Names of the hosts.
    pub from: String,
    pub to: String,
    pub protocol: Protocol,
    pub law: Law,
    pub start: Time,
    /// The sender's end of the connection; of an RC flow its queue pair.
    pub ends: QueuePair,
    pub sender: NodeId,
    /// Which endpoint of the sending station it is, its channel in traces; `None`: the sender is a board.
    pub sender_index: Option<usize>,
    pub receiver: NodeId,
    /// Which endpoint of the receiving station it is.
    pub receiver_index: usize,
}
