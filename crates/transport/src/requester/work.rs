// SPDX-License-Identifier: Apache-2.0
//! Work requests of a send queue, their completions, and why a send queue fails.
//! Source: IBTA vol. 1, clauses 10.8 (work requests), 9.9.2 (requester errors) and 11.4.2 (completions).

use penstock_wire::{NakCode, Opcode, Payload, Psn, Qpn};

/// What a message does at the peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verb {
    /// RDMA WRITE: the peer gets no completion.
    Write,
    /// RDMA WRITE that ends with a completion at the peer.
    WriteImm(u32),
    /// SEND, into the peer's next receive.
    Send,
    /// SEND with immediate data.
    SendImm(u32),
    /// RDMA READ of the peer's memory: its bytes come with [`Response::ReadData`](super::Response::ReadData).
    Read,
}

impl Verb {
    /// Whether the request names memory of the peer, in a RETH.
    pub(crate) fn has_reth(self) -> bool {
        matches!(self, Verb::Write | Verb::WriteImm(_) | Verb::Read)
    }

    pub(crate) fn imm(self) -> Option<u32> {
        match self {
            Verb::WriteImm(imm) | Verb::SendImm(imm) => Some(imm),
            Verb::Write | Verb::Send | Verb::Read => None,
        }
    }

    /// Whether a message of this verb takes a receive of the peer.
    pub fn consumes_receive(self) -> bool {
        !matches!(self, Verb::Write | Verb::Read)
    }
}

/// A message to be sent, or a READ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SendWr {
    /// Returned with the completion.
    pub wr_id: u64,
    /// Its effect at the peer.
    pub verb: Verb,
    /// Local address of the first byte: for [`PayloadSource::read`], or where the bytes of a READ belong.
    pub va: u64,
    /// Bytes; at most 2^31, none is allowed.
    pub len: u32,
    /// Where a WRITE goes, or the first byte that a READ reads.
    pub remote_va: u64,
    /// Key of the region at the peer.
    pub rkey: u32,
    /// Requests an event at the peer; not of a READ.
    pub solicited: bool,
}

/// Where the payload of messages comes from.
pub trait PayloadSource {
    /// `len` bytes (at most one MTU) at `va`, which lie wholly inside a posted message. They must stay the
    /// same until the message completes, as a packet may have to be sent again.
    fn read(&mut self, va: u64, len: usize) -> Payload;
}

/// Payloads of no interest: only their length travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VirtualPayload;

impl PayloadSource for VirtualPayload {
    fn read(&mut self, _va: u64, len: usize) -> Payload {
        Payload::Virtual(len as u32)
    }
}

/// How a message ended, named as in `enum ibv_wc_status`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SendStatus {
    /// The peer has acknowledged all of it; all bytes of a READ have come.
    Success,
    /// The peer did not answer.
    RetryExcErr,
    /// The peer never had a receive for it.
    RnrRetryExcErr,
    /// The peer found the request invalid.
    RemInvReqErr,
    /// The peer denied the access.
    RemAccessErr,
    /// The peer could not complete it.
    RemOpErr,
    /// A response to a READ was not the expected one.
    BadRespErr,
    /// The queue pair fell into error first, or was closed.
    WrFlushErr,
}

/// The end of one message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SendCompletion {
    /// Our queue pair.
    pub qpn: Qpn,
    /// Number of the work request.
    pub wr_id: u64,
    /// How it ended.
    pub status: SendStatus,
    /// Bytes of the message.
    pub byte_len: u32,
}

/// A work request that cannot be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PostError {
    /// Longer than a message may be.
    #[error("message {wr_id} of {len} bytes: a message has at most 2^31 bytes; post it in parts")]
    TooLong {
        /// Work request.
        wr_id: u64,
        /// Its bytes.
        len: u32,
    },
    /// A READ where the peer takes none.
    #[error("READ {wr_id}: the initiator depth of this queue pair is 0, its peer serves no READ")]
    NoReads {
        /// Work request.
        wr_id: u64,
    },
}

/// Why a send queue fell into error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestFault {
    /// Timeouts and sequence NAKs used up the retries.
    #[error("PSN {psn} was not acknowledged after {retries} retries: is the peer alive, the network not losing all?")]
    RetriesSpent {
        /// First packet without an ACK.
        psn: Psn,
        /// Retries allowed.
        retries: u8,
    },
    /// RNR NAKs used up their retries.
    #[error("no receive was posted for PSN {psn} in {retries} RNR retries: post receives faster or allow more")]
    RnrRetriesSpent {
        /// First packet without an ACK.
        psn: Psn,
        /// Retries allowed.
        retries: u8,
    },
    /// The peer refused a request for good.
    #[error("the peer refused PSN {psn}: {}", reason(*.code))]
    Refused {
        /// The packet refused.
        psn: Psn,
        /// Why.
        code: NakCode,
    },
    /// A READ response does not continue the READ that waits for this PSN.
    #[error(
        "READ response {psn}, opcode {:#04x}, has {len} bytes where {expected} were due: do both ends use the same path MTU?",
        u8::from(*.opcode)
    )]
    BadResponse {
        /// PSN of the response.
        psn: Psn,
        /// Its opcode.
        opcode: Opcode,
        /// Its payload bytes.
        len: usize,
        /// Payload bytes of the response with this PSN.
        expected: usize,
    },
    /// The owner closed the queue pair.
    #[error("closed by its owner")]
    Closed,
}

fn reason(code: NakCode) -> &'static str {
    match code {
        NakCode::RemoteAccessError => "wrong key, range or permission; compare with what the receiver announced",
        NakCode::RemoteOperationalError => "it could not complete the request",
        _ => "invalid request; do both ends use the same path MTU?",
    }
}

impl RequestFault {
    /// The status of the message at fault; all others are flushed.
    pub const fn status(&self) -> SendStatus {
        match self {
            RequestFault::RetriesSpent { .. } => SendStatus::RetryExcErr,
            RequestFault::RnrRetriesSpent { .. } => SendStatus::RnrRetryExcErr,
            RequestFault::Refused { code: NakCode::RemoteAccessError, .. } => SendStatus::RemAccessErr,
            RequestFault::Refused { code: NakCode::RemoteOperationalError, .. } => SendStatus::RemOpErr,
            RequestFault::Refused { .. } => SendStatus::RemInvReqErr,
            RequestFault::BadResponse { .. } => SendStatus::BadRespErr,
            RequestFault::Closed => SendStatus::WrFlushErr,
        }
    }
}
