// SPDX-License-Identifier: Apache-2.0
//! Why a datagram to queue pair 1 is no message of the connection manager; each variant has the value.

/// Count the datagram and drop it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MadError {
    /// Not the length of a MAD.
    #[error("{len} bytes to queue pair 1 where {needed} are due")]
    Length {
        /// Bytes that came.
        len: usize,
        /// Bytes of a MAD, with its DETH where that was read.
        needed: usize,
    },
    /// A packet of another service.
    #[error("opcode {opcode:#04x} to queue pair 1: only unreliable datagrams in one packet, 0x64, are due there")]
    Opcode {
        /// BTH opcode.
        opcode: u8,
    },
    /// DETH of another service.
    #[error("Q_Key {qkey:#x} from queue pair {qpn:#x}: connection managers have 0x80010000 and queue pair 1")]
    Deth {
        /// Queue key.
        qkey: u32,
        /// Queue pair of the sender.
        qpn: u32,
    },
    /// A MAD of another class, version or method.
    #[error("MAD of version {base}, class {class:#x} version {class_version}, method {method}: no connection manager")]
    Header {
        /// Base version.
        base: u8,
        /// Management class.
        class: u8,
        /// Version of the class.
        class_version: u8,
        /// Method.
        method: u8,
    },
    /// A message that is not supported: alternate paths, service resolution.
    #[error("message {id:#x} of the connection manager is not supported")]
    Attribute {
        /// Attribute identifier.
        id: u16,
    },
}
