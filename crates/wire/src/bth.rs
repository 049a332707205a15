// SPDX-License-Identifier: Apache-2.0
//! Base transport header, the twelve bytes after the UDP header of every RoCEv2 packet.
//! Reserved bits are ignored on reception and sent as zeros; the pad count belongs to the payload.
//! Source: IBTA vol. 1, clause 9.2; annex A17.9 (FECN, BECN).
//!
//! ```text
//! | opcode 8 | SE 1 | M 1 | pad 2 | TVer 4 | P_Key 16 |
//! | F 1 | B 1 | rsvd 6 | destination QP 24            |
//! | A 1 | rsvd 7 | PSN 24                             |
//! ```

use crate::bytesio::{be16, be24, put16, put24};
use crate::error::ParseError;
use crate::opcode::Opcode;
use crate::psn::{Psn, Qpn};

/// Offsets of the fields, in bytes.
mod at {
    pub const OPCODE: usize = 0;
    pub const FLAGS_PAD_VERSION: usize = 1;
    pub const PKEY: usize = 2;
    pub const FECN_BECN: usize = 4;
    pub const DEST_QPN: usize = 5;
    pub const ACK_REQ: usize = 8;
    pub const PSN: usize = 9;
}

pub(crate) const LEN: usize = 12;

/// A BTH over bytes known to be there.
#[derive(Clone, Copy, Debug)]
pub struct BthView<'a>(&'a [u8]);

impl<'a> BthView<'a> {
    /// Checks length and version.
    ///
    /// # Errors
    /// `Truncated` below 12 bytes, `BthVersion` for TVer other than 0.
    pub fn new_checked(data: &'a [u8]) -> Result<Self, ParseError> {
        if data.len() < LEN {
            return Err(ParseError::Truncated { layer: "BTH", needed: LEN, available: data.len() });
        }
        match data[at::FLAGS_PAD_VERSION] & 0x0F {
            0 => Ok(BthView(data)),
            version => Err(ParseError::BthVersion { version }),
        }
    }

    /// Opcode.
    pub fn opcode(&self) -> Opcode {
        Opcode::from(self.0[at::OPCODE])
    }

    /// Pad bytes after the payload, 0 .. 3.
    pub fn pad_count(&self) -> u8 {
        self.0[at::FLAGS_PAD_VERSION] >> 4 & 3
    }

    /// All the fields.
    pub fn repr(&self) -> BthRepr {
        let data = self.0;
        BthRepr {
            opcode: self.opcode(),
            solicited: data[at::FLAGS_PAD_VERSION] & 0x80 != 0,
            mig_req: data[at::FLAGS_PAD_VERSION] & 0x40 != 0,
            pkey: be16(data, at::PKEY),
            fecn: data[at::FECN_BECN] & 0x80 != 0,
            becn: data[at::FECN_BECN] & 0x40 != 0,
            dest_qpn: Qpn::new(be24(data, at::DEST_QPN)),
            ack_req: data[at::ACK_REQ] & 0x80 != 0,
            psn: Psn::new(be24(data, at::PSN)),
        }
    }
}

/// BTH without the pad count, which the payload's length gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BthRepr {
    /// Operation and place in the message.
    pub opcode: Opcode,
    /// Solicited event.
    pub solicited: bool,
    /// Migration state; NICs set it, Soft-RoCE does not, both are right here.
    pub mig_req: bool,
    /// Partition key.
    pub pkey: u16,
    /// Forward congestion notification.
    pub fecn: bool,
    /// Backward congestion notification: set in a CNP.
    pub becn: bool,
    /// Queue pair the packet is for.
    pub dest_qpn: Qpn,
    /// Acknowledge request.
    pub ack_req: bool,
    /// Packet sequence number.
    pub psn: Psn,
}

impl BthRepr {
    /// A header with the default partition key and every flag clear.
    pub const fn new(opcode: Opcode, dest_qpn: Qpn, psn: Psn) -> Self {
        BthRepr {
            opcode,
            solicited: false,
            mig_req: false,
            pkey: crate::DEFAULT_PKEY,
            fecn: false,
            becn: false,
            dest_qpn,
            ack_req: false,
            psn,
        }
    }

    pub(crate) fn write(&self, data: &mut [u8], pad: u8) {
        data[at::OPCODE] = self.opcode.into();
        data[at::FLAGS_PAD_VERSION] = u8::from(self.solicited) << 7 | u8::from(self.mig_req) << 6 | (pad & 3) << 4;
        put16(data, at::PKEY, self.pkey);
        data[at::FECN_BECN] = u8::from(self.fecn) << 7 | u8::from(self.becn) << 6;
        put24(data, at::DEST_QPN, self.dest_qpn.value());
        data[at::ACK_REQ] = u8::from(self.ack_req) << 7;
        put24(data, at::PSN, self.psn.value());
    }
}
