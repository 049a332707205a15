// SPDX-License-Identifier: Apache-2.0
//! The reliable connection of RoCEv2 as two state machines without sockets, clock or threads: packets
//! and the time enter through `handle_*`, packets and completions leave through `poll_*`.
//! The simulator, the receiver and the tests run the same code.
//! Source: IBTA specification vol. 1, clause 9.7; annex A17 (RoCEv2); behaviour compared
//! with that of `rdma_rxe`.
//!
//! [`Requester`] sends messages, [`Responder`] takes them:
//!
//! ```text
//!                     in order                      end of message
//! handle_packet --> PSN check --> sequence, receive, --> memory --> completion --> poll_completion
//!                     |   |       length, rkey            |
//!                old: |   | ahead:     | refused          | AckReq
//!                 ACK |   | one NAK    | NAK, RNR NAK     | ACK
//!                     +---+------------+------------------+--> poll_transmit <-- CNP <-- CE mark
//! ```
//!
//! [`CmOpener`] and [`CmListener`] open and close connections; [`RdmaCm`] is the standard connection manager. The
//! crate also contains TCP for mixed networks ([`TcpSender`], [`TcpReceiver`]) and the simplified TCP of front ends
//! ([`simple_tcp`]), which any host can receive.
//! [`Refusals`] decides what becomes of frames that a device does not take.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod by_name;
mod cm;
mod config;
mod counters;
mod fault;
mod memory;
mod rdma_cm;
mod read;
mod receive;
mod refusals;
mod replies;
mod reply;
mod requester;
mod responder;
pub mod simple_tcp;
mod tcp;

pub use cm::{
    CmAddress, CmEvent, CmFailure, CmHost, CmListener, CmListenerConfig, CmListenerCounters, CmOpener, CmOpenerConfig,
    CmReason, CmState, Ending, LifeSign, Refusal,
};
pub use config::{CreditPolicy, Endpoint, Mtu, ReplyMarking, ResponderConfig};
pub use counters::ResponderCounters;
pub use fault::Fault;
pub use memory::{Access, Memory, MemoryRegion, Unreadable, Window};
pub use rdma_cm::{
    Entropy, RdmaCm, RdmaCmAgreed, RdmaCmArrival, RdmaCmBridge, RdmaCmBridgeConfig, RdmaCmConfig, RdmaCmCounters,
    RdmaCmEnd, RdmaCmEvent, RdmaCmFailure, RdmaCmInbox, RdmaCmInboxCounters, RdmaCmOffer, RdmaCmPath,
    RDMA_CM_OFFER_LEN, RDMA_CM_PRIVATE_LEN,
};
pub use receive::{RecvCompletion, RecvOpcode, RecvStatus, RecvWr};
pub use refusals::{FrameRefusal, Refusals};
pub use reply::Reply;
pub use requester::{
    PayloadSource, PostError, RequestFault, RequestMarking, Requester, RequesterConfig, RequesterCounters,
    RequesterState, Response, RetryLimits, SendCompletion, SendStatus, SendWr, Verb, VirtualPayload,
};
pub use responder::{QpState, Responder};
pub use simple_tcp::{BackOff, SimpleTcpSender};
pub use tcp::{
    PassiveChange, TcpConfig, TcpCounters, TcpEndpoint, TcpPassive, TcpReceiver, TcpReceiverCounters, TcpSender,
    TcpStall, TcpVariant,
};
