// SPDX-License-Identifier: Apache-2.0
//! Identifiers of a connection, and the answers MRA and REJ.
//! Source: IBTA vol. 1, tables 107 and 108 (clauses 12.6.6, 12.6.7); reasons: clause 12.6.7.2.

use super::parts::{array, bits, put_bits};
use crate::bytesio::{be16, be32, put16, put32};
use core::fmt;

mod at {
    pub const LOCAL_ID: usize = 0;
    pub const REMOTE_ID: usize = 4;
    /// Which message 2, -.
    pub const MESSAGE: usize = 8;
    /// MRA: service timeout 5, -. REJ: length of the information 7, -.
    pub const TIMEOUT: usize = 9;
    pub const REASON: usize = 10;
    pub const INFORMATION: usize = 12;
}

/// Bytes of a REJ's additional information.
const INFORMATION_LEN: usize = 72;
/// Bytes of it that are kept: a GUID, or less.
const KEPT: usize = 8;

/// The identifiers that both ends have given a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MadIds {
    /// The sender's identifier; 0: it has none.
    pub local: u32,
    /// The addressee's identifier; 0: not received yet.
    pub remote: u32,
}

impl MadIds {
    /// The identifiers in the order in which the other end writes them.
    pub const fn swapped(self) -> Self {
        MadIds { local: self.remote, remote: self.local }
    }

    pub(super) fn read(data: &[u8]) -> Self {
        MadIds { local: be32(data, at::LOCAL_ID), remote: be32(data, at::REMOTE_ID) }
    }

    pub(super) fn write(self, data: &mut [u8]) {
        put32(data, at::LOCAL_ID, self.local);
        put32(data, at::REMOTE_ID, self.remote);
    }
}

/// The message that an MRA or a REJ answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// 0.
    Req,
    /// 1.
    Rep,
    /// 2, 3: none, or another one.
    Other(u8),
}

impl Rejected {
    const fn from_code(code: u8) -> Self {
        match code {
            0 => Rejected::Req,
            1 => Rejected::Rep,
            code => Rejected::Other(code),
        }
    }

    const fn code(self) -> u8 {
        match self {
            Rejected::Req => 0,
            Rejected::Rep => 1,
            Rejected::Other(code) => code,
        }
    }
}

/// The answer to a message takes longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mra {
    /// Identifiers of the connection.
    pub ids: MadIds,
    /// The message that it answers.
    pub message: Rejected,
    /// Code of the time until the answer, 4.096 us * 2^code, 5 bits.
    pub service_timeout: u8,
}

impl Mra {
    pub(super) fn read(data: &[u8]) -> Self {
        Mra {
            ids: MadIds::read(data),
            message: Rejected::from_code(bits(data, at::MESSAGE, 0, 2)),
            service_timeout: bits(data, at::TIMEOUT, 0, 5),
        }
    }

    pub(super) fn write(&self, data: &mut [u8]) {
        self.ids.write(data);
        put_bits(data, at::MESSAGE, 0, 2, self.message.code());
        put_bits(data, at::TIMEOUT, 0, 5, self.service_timeout);
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why a message is rejected (IBTA 12.6.7.2).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum RejReason {
            $($(#[$doc])* $name,)*
            /// Any other code.
            Other(u16),
        }

        impl From<u16> for RejReason {
            fn from(code: u16) -> Self {
                match code { $($code => RejReason::$name,)* code => RejReason::Other(code) }
            }
        }

        impl From<RejReason> for u16 {
            fn from(reason: RejReason) -> u16 {
                match reason { $(RejReason::$name => $code,)* RejReason::Other(code) => code }
            }
        }

        impl fmt::Display for RejReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(RejReason::$name => f.write_str($text),)*
                    RejReason::Other(code) => write!(f, "reason {code}"),
                }
            }
        }
    };
}

reasons! {
    /// No queue pair is available.
    NoQp = 1, "no queue pair is available";
    /// Resources of another kind.
    NoResources = 3, "no resources are available";
    /// An answer did not come in time.
    Timeout = 4, "timeout";
    /// The request is not supported.
    Unsupported = 5, "unsupported request";
    /// Identifiers of no connection.
    InvalidCommId = 6, "no connection has these identifiers";
    /// The service does not exist.
    InvalidServiceId = 8, "nothing listens at this port";
    /// Another transport service.
    InvalidTransportType = 9, "transport service other than RC";
    /// The queue pair belongs to an earlier connection.
    StaleConn = 10, "stale connection";
    /// An address that does not exist, or is not the sender's.
    InvalidGid = 12, "invalid address";
    /// The path MTU is not supported; the information has the one that is.
    InvalidMtu = 26, "invalid path MTU";
    /// Not enough responder resources.
    InsufficientResources = 27, "insufficient responder resources";
    /// The application refuses.
    Consumer = 28, "refused by the application";
    /// The identifier is in use.
    DuplicateCommId = 30, "duplicate identifier";
}

/// A message is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rej {
    /// Identifiers of the connection.
    pub ids: MadIds,
    /// The message that it answers.
    pub message: Rejected,
    /// Why.
    pub reason: RejReason,
    /// Bytes of additional information, at most 8 of them kept.
    pub information_len: u8,
    /// Additional information: the path MTU's code for [`RejReason::InvalidMtu`], the sender's GUID for
    /// [`RejReason::Timeout`].
    pub information: [u8; KEPT],
}

impl Rej {
    pub(super) fn read(data: &[u8]) -> Self {
        let len = (bits(data, at::TIMEOUT, 0, 7) as usize).min(INFORMATION_LEN).min(KEPT);
        let mut information = array(data, at::INFORMATION);
        information[len..].fill(0);
        Rej {
            ids: MadIds::read(data),
            message: Rejected::from_code(bits(data, at::MESSAGE, 0, 2)),
            reason: RejReason::from(be16(data, at::REASON)),
            information_len: len as u8,
            information,
        }
    }

    pub(super) fn write(&self, data: &mut [u8]) {
        self.ids.write(data);
        put_bits(data, at::MESSAGE, 0, 2, self.message.code());
        let len = usize::from(self.information_len).min(KEPT);
        put_bits(data, at::TIMEOUT, 0, 7, len as u8);
        put16(data, at::REASON, self.reason.into());
        data[at::INFORMATION..at::INFORMATION + len].copy_from_slice(&self.information[..len]);
    }
}
