// SPDX-License-Identifier: Apache-2.0
//! Why a queue pair entered the error state: the invalid request, with its values.
//! The peer receives only a NAK code; this text is for the operator.
//! Source: IBTA vol. 1, clause 9.7.4 (responder checks) and 9.9.3 (error classes).

use penstock_wire::NakCode;

/// A fatal fault of a request, or the owner's wish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// An opcode this responder does not serve: atomics, reserved codes, READ without responder resources.
    #[error(
        "opcode {opcode:#04x} is not served: the peer may WRITE and SEND, and READ only if responder resources are set"
    )]
    UnsupportedOpcode {
        /// BTH opcode.
        opcode: u8,
    },
    /// An opcode out of its place: MIDDLE or LAST without a FIRST, FIRST or ONLY inside a message,
    /// or a WRITE going on as a SEND.
    #[error("opcode {opcode:#04x} {}: the peer's message sequence is broken",
        if *.in_message {"does not continue the message in progress"} else {"continues no message"})]
    OpcodeSequence {
        /// BTH opcode.
        opcode: u8,
        /// Whether a message was in progress.
        in_message: bool,
    },
    /// The packet lacks a header its opcode calls for.
    #[error("opcode {opcode:#04x} came without its RETH or immediate")]
    MissingHeader {
        /// BTH opcode.
        opcode: u8,
    },
    /// FIRST and MIDDLE must fill the MTU, LAST must not be empty, none may be longer than the MTU.
    #[error("opcode {opcode:#04x} with {len} bytes of payload at MTU {mtu}: do both ends use the same path MTU?")]
    PayloadLength {
        /// BTH opcode.
        opcode: u8,
        /// Payload bytes.
        len: usize,
        /// Path MTU in bytes.
        mtu: usize,
    },
    /// The DMA length of the RETH and the sum of the payloads differ, or it is above 2^31.
    #[error("opcode {opcode:#04x} with {len} bytes where {remaining} of the RETH's {dma_len} were left")]
    DmaLength {
        /// BTH opcode.
        opcode: u8,
        /// Payload bytes.
        len: usize,
        /// Bytes of the RETH length left for this packet and later ones.
        remaining: u32,
        /// Length in the RETH.
        dma_len: u32,
    },
    /// No region has this key.
    #[error("rkey {rkey:#010x} names no memory region: compare with the key the receiver announced")]
    UnknownRkey {
        /// Key in the RETH.
        rkey: u32,
    },
    /// The region may not be written from afar.
    #[error("region {rkey:#010x} is not open to remote writes")]
    AccessDenied {
        /// Key in the RETH.
        rkey: u32,
    },
    /// The region may not be read from afar.
    #[error("region {rkey:#010x} is not open to remote reads")]
    ReadDenied {
        /// Key in the RETH.
        rkey: u32,
    },
    /// A READ request carries a payload.
    #[error("READ request with {len} bytes of payload: it has none")]
    ReadPayload {
        /// Payload bytes.
        len: usize,
    },
    /// A READ of more than a message may have.
    #[error("READ of {len} bytes: a message has at most 2^31 bytes; request it in parts")]
    ReadTooLong {
        /// Length in the RETH.
        len: u32,
    },
    /// More READs than the responder has resources for.
    #[error(
        "READ with {resources} READs unanswered: the peer's initiator depth must not exceed the responder resources"
    )]
    TooManyReads {
        /// Responder resources.
        resources: u8,
    },
    /// The memory of a READ, which is inside its region, cannot be read.
    #[error("{len} bytes at {va:#x} cannot be read: is the region of this memory rightly open to remote reads?")]
    Unreadable {
        /// First byte.
        va: u64,
        /// Bytes of the response.
        len: u32,
    },
    /// The access leaves its region.
    #[error(
        "access of {len} bytes at {va:#x} leaves its region ({region_va:#x}, {region_len} bytes): do both ends have \
             slots of the same size and number?"
    )]
    OutOfBounds {
        /// Key in the RETH.
        rkey: u32,
        /// First byte.
        va: u64,
        /// Bytes of the message.
        len: u32,
        /// First byte of the region.
        region_va: u64,
        /// Bytes of the region.
        region_len: u64,
    },
    /// The access is inside the region, but not at the address of the peer's next message.
    #[error(
        "write of {len} bytes at {va:#x} is not in the next slot ({slot_va:#x}, {slot_bytes} bytes): do both ends \
             have slots of the same size and number?"
    )]
    NotTheNextSlot {
        /// First byte.
        va: u64,
        /// Bytes of the message.
        len: u32,
        /// First byte of the slot.
        slot_va: u64,
        /// Bytes of the slot.
        slot_bytes: u32,
    },
    /// A SEND does not fit its receive buffer.
    #[error("SEND of at least {len} bytes into receive {wr_id} of {buffer_len}: post larger receives")]
    ReceiveTooSmall {
        /// Receive in line.
        wr_id: u64,
        /// Bytes so far, with this packet.
        len: u64,
        /// Bytes of the buffer.
        buffer_len: u32,
    },
    /// The message is of an event that is not for this receiver.
    #[error("event {event} is another server's: refused and not acknowledged; which server has the queue pair?")]
    NotOurs {
        /// Its number.
        event: u64,
    },
    /// The owner closed the queue pair.
    #[error("closed by its owner")]
    Closed,
}

impl Fault {
    /// The NAK code sent to the peer; none if the owner closed the queue pair.
    pub const fn nak_code(&self) -> Option<NakCode> {
        match self {
            Fault::UnknownRkey { .. }
            | Fault::AccessDenied { .. }
            | Fault::ReadDenied { .. }
            | Fault::OutOfBounds { .. }
            | Fault::NotTheNextSlot { .. } => Some(NakCode::RemoteAccessError),
            Fault::Unreadable { .. } => Some(NakCode::RemoteOperationalError),
            Fault::Closed => None,
            _ => Some(NakCode::InvalidRequest),
        }
    }
}
