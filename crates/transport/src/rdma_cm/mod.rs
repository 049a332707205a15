// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager in both roles, sans-IO: [`RdmaCm`] holds the connections of one address.
//! Promise: a repeated message gets the same answer and changes nothing; both ends connect with the same parameters;
//! memory is fixed by [`RdmaCmConfig::connections`]; an end that does not answer is given up after a bounded time.
//! Source: IBTA vol. 1, clauses 12.6 to 12.10 (messages, states, timeouts); annex A11 (addresses).
//!
//! ```text
//! active                                   passive
//!   | REQ (queue pair, PSN, path)  --------->  Requested: the owner accepts or rejects
//!   |          <---------  MRA (later) to a repeated REQ
//!   | Established  <------  REP (queue pair, PSN)
//!   | RTU                  --------->  Established
//!   :
//!   | DREQ  <------------------------> Disconnected, from either side
//!   | TimeWait <----------  DREP
//! ```
//!
//! [`RdmaCmBridge`] gives it the messages of FEROCE's protocol, for owners that are made for those.

mod bridge;
mod counters;
mod entry;
mod inbox;
mod manager;
mod offer;
mod requests;

pub use bridge::{RdmaCmBridge, RdmaCmBridgeConfig};
pub use counters::RdmaCmCounters;
pub use inbox::{RdmaCmArrival, RdmaCmInbox, RdmaCmInboxCounters};
pub use manager::{Entropy, RdmaCm};
pub use offer::{RdmaCmOffer, RDMA_CM_OFFER_LEN};

use crate::config::Mtu;
use crate::requester::RetryLimits;
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, Psn, Qpn, RejReason, ADDRESSING_LEN, REQ_PRIVATE_LEN};

/// Bytes of private data that the owner has in REQ, after the addresses; REP has more, which are zeros.
pub const RDMA_CM_PRIVATE_LEN: usize = REQ_PRIVATE_LEN - ADDRESSING_LEN;

/// The settings of a connection manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RdmaCmConfig {
    /// Our address.
    pub ip: Ipv4Addr,
    /// Number of our channel adapter, another one for each host: peers recognise connections by it.
    pub ca_guid: u64,
    /// The port at which it listens; none: REQs are rejected.
    pub port: Option<u16>,
    /// Connections, those that end included.
    pub connections: usize,
    /// Connections that one address may open; 0: as many as there are.
    pub per_address: usize,
    /// Addresses that may open connections; none: all. Others get REJ.
    pub allow: Option<Vec<Ipv4Addr>>,
    /// Path MTUs above this are rejected.
    pub mtu: Mtu,
    /// Code of the time that one answer of the peer may take, 4.096 us * 2^code, and of ours.
    pub response_timeout: u8,
    /// Repetitions of a message without an answer, 0 to 15.
    pub retries: u8,
    /// Longest wait for one answer, whatever time the peer requests.
    pub longest_wait: Time,
    /// The owner's time to accept or reject.
    pub half_open: Time,
    /// How long the identifiers of an ended connection are kept.
    pub time_wait: Time,
}

impl RdmaCmConfig {
    /// No port; 268 ms for an answer and 15 retries, at most 5 s; 5 s for the owner; ends are kept for 1 s.
    pub const fn new(ip: Ipv4Addr, ca_guid: u64, connections: usize) -> Self {
        RdmaCmConfig {
            ip,
            ca_guid,
            port: None,
            connections,
            per_address: 0,
            allow: None,
            mtu: Mtu::B4096,
            response_timeout: 16,
            retries: 15,
            longest_wait: Time::from_s(5),
            half_open: Time::from_s(5),
            time_wait: Time::from_s(1),
        }
    }
}

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaCmEnd {
    /// Its queue pair.
    pub qpn: Qpn,
    /// PSN of the first packet that it expects: the other end begins with it (IBTA 12.7.31).
    pub psn: Psn,
    /// READs that it takes at a time.
    pub responder_resources: u8,
    /// READs that it may have outstanding.
    pub initiator_depth: u8,
    /// How often the other end retries after its RNR NAK, 0 to 7; 7: without end.
    pub rnr_retry: u8,
    /// Private data.
    pub private: [u8; RDMA_CM_PRIVATE_LEN],
}

/// What the active side sets for both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaCmPath {
    /// Path MTU.
    pub mtu: Mtu,
    /// Retries of the queue pairs, 0 to 7.
    pub retry_count: u8,
    /// Code of their ACK timeout.
    pub ack_timeout: u8,
}

impl RdmaCmPath {
    /// After how long a packet is sent again that was not acknowledged; none: it never is.
    pub fn ack_timeout(&self) -> Option<Time> {
        RetryLimits { ack_timeout: self.ack_timeout, ..RetryLimits::default() }.ack_timeout()
    }
}

/// A connection as both ends have agreed: READ limits are those of the smaller side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaCmAgreed {
    /// Our end.
    pub local: RdmaCmEnd,
    /// The peer's end.
    pub peer: RdmaCmEnd,
    /// The path.
    pub path: RdmaCmPath,
}

/// Why a connection did not come up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RdmaCmFailure {
    /// No answer, retries spent.
    #[error("no answer to {message} in {tries} tries")]
    Silent {
        /// REQ or REP.
        message: &'static str,
        /// How often it was sent.
        tries: u8,
    },
    /// The peer has rejected it.
    #[error("rejected: {reason}{}", limit(self))]
    Rejected {
        /// Why.
        reason: RejReason,
        /// The first byte of additional information.
        information: u8,
    },
    /// The peer's REP cannot be agreed to.
    #[error("the peer's REP does not fit the request: {reason}")]
    Unfit {
        /// What the peer was answered.
        reason: RejReason,
    },
    /// The owner has neither accepted nor rejected it in time.
    #[error("a request was not answered in time")]
    Undecided,
}

fn limit(failure: &RdmaCmFailure) -> String {
    let RdmaCmFailure::Rejected { reason: RejReason::InvalidMtu, information } = failure else { return String::new() };
    let mtu = Mtu::ALL.into_iter().find(|mtu| mtu.code() == *information);
    mtu.map_or_else(String::new, |mtu| format!("; the peer has path MTU {}", mtu.bytes()))
}

/// What the owner must do. `connection` is our identifier of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RdmaCmEvent {
    /// A peer requests a connection: [`RdmaCm::accept`] or [`RdmaCm::reject`] it.
    Requested {
        /// Its identifier.
        connection: u32,
        /// Who requests it.
        from: Ipv4Addr,
        /// The peer's end.
        peer: RdmaCmEnd,
        /// The path that it sets.
        path: RdmaCmPath,
    },
    /// Both ends may send.
    Established {
        /// Its identifier.
        connection: u32,
        /// What was agreed.
        agreed: RdmaCmAgreed,
    },
    /// It did not come up.
    Failed {
        /// Its identifier.
        connection: u32,
        /// The reason.
        why: RdmaCmFailure,
    },
    /// It is over.
    Disconnected {
        /// Its identifier.
        connection: u32,
    },
}
