// SPDX-License-Identifier: Apache-2.0
//! Receives: posted by the owner, consumed by SENDs and by WRITEs with immediate, reported once.
//! Source: IBTA vol. 1, clause 10.8 (work requests) and 11.4.2 (completions).

use penstock_wire::Qpn;

/// A posted receive. A WRITE with immediate consumes one without touching its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RecvWr {
    /// Returned with the completion.
    pub wr_id: u64,
    /// Where a SEND goes.
    pub va: u64,
    /// Most bytes of a SEND.
    pub len: u32,
}

/// What consumed a receive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RecvOpcode {
    /// A SEND.
    Send,
    /// A WRITE with immediate.
    WriteImm,
}

/// How a receive ended, named as in `enum ibv_wc_status`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RecvStatus {
    /// The message is in memory.
    Success,
    /// The SEND was longer than the buffer.
    LocLenErr,
    /// The request that was using it was refused.
    RemInvReqErr,
    /// The queue pair fell into error first.
    WrFlushErr,
}

/// The end of one receive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecvCompletion {
    /// Our queue pair.
    pub qpn: Qpn,
    /// Number of the receive.
    pub wr_id: u64,
    /// How it ended; the fields below hold only on success.
    pub status: RecvStatus,
    /// What consumed it.
    pub opcode: RecvOpcode,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Bytes of the whole message.
    pub byte_len: u32,
    /// First byte of the message: of the WRITE's destination, or of the receive buffer.
    pub va: u64,
    /// The sender requested an event.
    pub solicited: bool,
}

impl RecvCompletion {
    /// A receive that ended without a message.
    pub(crate) fn failed(qpn: Qpn, wr: &RecvWr, status: RecvStatus) -> Self {
        let opcode = RecvOpcode::Send;
        RecvCompletion { qpn, wr_id: wr.wr_id, status, opcode, imm: None, byte_len: 0, va: wr.va, solicited: false }
    }
}
