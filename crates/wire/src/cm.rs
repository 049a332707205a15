// SPDX-License-Identifier: Apache-2.0
//! The connection manager's message: one UDP payload of 64 bytes, big-endian, that opens and closes queue pairs.
//! Promise: reading and writing a message reproduces it, except for its reserved bits, which are written as 0.
//! Source: the FEROCE connection manager; `rtl/ctrl/cm_pkg.sv` and `tb/lib/connection.py` read the same table.
//!
//! ```text
//!  0            1  2..24          25  26..48            49..50  51        52..55  56..59  60..63
//! | ack/request | | sender's info |  | other side's info | port | transmit | length | count  | interval |
//!
//!  info:  qpn 0..2, -, psn 4..6, rkey 7..10, base address 11..18, IPv4 19..22
//!  byte 0: info valid, request (3), ack valid, ack (3), from bit 0 up
//!  transmit: valid, start, with immediate, WRITE, from bit 0 up
//! ```

use crate::bytesio::{be16, be24, be32, be64, put16, put24, put32, put64};
use crate::error::ParseError;
use crate::psn::{Psn, Qpn};
use core::fmt;
use core::net::Ipv4Addr;

/// Bytes of a message.
pub const CM_LEN: usize = 64;
/// UDP port that requests go to, and that a message names unless its sender listens elsewhere.
pub const CM_REQUEST_PORT: u16 = 0x4321;
/// UDP port that the answer to a request goes to that names no port.
pub const CM_REPLY_PORT: u16 = 0x4322;

/// Offsets of the message's fields, in bytes.
mod at {
    pub const FLAGS: usize = 0;
    pub const SENDER: usize = 2;
    pub const OTHER: usize = 26;
    pub const PORT: usize = 49;
    pub const TRANSMIT: usize = 51;
    pub const LENGTH: usize = 52;
    pub const COUNT: usize = 56;
    pub const INTERVAL_CYCLES: usize = 60;
}

/// Offsets in the description of a queue pair, in bytes.
mod info {
    pub const QPN: usize = 0;
    pub const PSN: usize = 4;
    pub const RKEY: usize = 7;
    pub const BASE: usize = 11;
    pub const IP: usize = 19;
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CmRequest {
    /// 0: only the request in the transmit field.
    None,
    /// 1: take a queue pair and, if the message has the sender's information, open it completely.
    OpenQp,
    /// 2: here is the peer. Only our own programs answer it.
    SendQpInfo,
    /// 3: begin; or, where it is open, a question whether it is. Only our own programs answer it.
    ModifyQpRts,
    /// 4: the queue pair is free for another.
    CloseQp,
    /// 7: the peer has failed.
    Error,
    /// 5, 6: without meaning.
    Reserved(u8),
}

impl CmRequest {
    const fn from_code(code: u8) -> Self {
        match code & 7 {
            0 => CmRequest::None,
            1 => CmRequest::OpenQp,
            2 => CmRequest::SendQpInfo,
            3 => CmRequest::ModifyQpRts,
            4 => CmRequest::CloseQp,
            7 => CmRequest::Error,
            code => CmRequest::Reserved(code),
        }
    }

    const fn code(self) -> u8 {
        match self {
            CmRequest::None => 0,
            CmRequest::OpenQp => 1,
            CmRequest::SendQpInfo => 2,
            CmRequest::ModifyQpRts => 3,
            CmRequest::CloseQp => 4,
            CmRequest::Error => 7,
            CmRequest::Reserved(code) => code & 7,
        }
    }
}

impl fmt::Display for CmRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CmRequest::None => f.write_str("transmit request"),
            CmRequest::OpenQp => f.write_str("OPEN_QP"),
            CmRequest::SendQpInfo => f.write_str("SEND_QP_INFO"),
            CmRequest::ModifyQpRts => f.write_str("MODIFY_QP_RTS"),
            CmRequest::CloseQp => f.write_str("CLOSE_QP"),
            CmRequest::Error => f.write_str("ERROR"),
            CmRequest::Reserved(code) => write!(f, "request {code}"),
        }
    }
}

/// The answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CmAnswer {
    /// 1: done.
    Ack,
    /// 2: no queue pair is free, or there is none of that number.
    NoQp,
    /// 3: not yours, or not now.
    Nak,
    /// 7: the request means nothing, or a step of it failed.
    Error,
    /// 0, 4, 5, 6: without meaning.
    Reserved(u8),
}

impl CmAnswer {
    const fn from_code(code: u8) -> Self {
        match code & 7 {
            1 => CmAnswer::Ack,
            2 => CmAnswer::NoQp,
            3 => CmAnswer::Nak,
            7 => CmAnswer::Error,
            code => CmAnswer::Reserved(code),
        }
    }

    const fn code(self) -> u8 {
        match self {
            CmAnswer::Ack => 1,
            CmAnswer::NoQp => 2,
            CmAnswer::Nak => 3,
            CmAnswer::Error => 7,
            CmAnswer::Reserved(code) => code & 7,
        }
    }
}

/// One side of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CmInfo {
    /// Queue pair.
    pub qpn: Qpn,
    /// PSN of its first packet.
    pub psn: Psn,
    /// Key of the ring that may be written.
    pub rkey: u32,
    /// Its first address.
    pub base: u64,
    /// Address that its data come from and go to.
    pub ip: Ipv4Addr,
}

impl Default for CmInfo {
    /// All zero: no information.
    fn default() -> Self {
        CmInfo { qpn: Qpn::new(0), psn: Psn::new(0), rkey: 0, base: 0, ip: Ipv4Addr::UNSPECIFIED }
    }
}

impl CmInfo {
    fn read(data: &[u8]) -> Self {
        CmInfo {
            qpn: Qpn::new(be24(data, info::QPN)),
            psn: Psn::new(be24(data, info::PSN)),
            rkey: be32(data, info::RKEY),
            base: be64(data, info::BASE),
            ip: Ipv4Addr::from_bits(be32(data, info::IP)),
        }
    }

    fn write(&self, data: &mut [u8]) {
        put24(data, info::QPN, self.qpn.value());
        put24(data, info::PSN, self.psn.value());
        put32(data, info::RKEY, self.rkey);
        put64(data, info::BASE, self.base);
        put32(data, info::IP, self.ip.to_bits());
    }
}

/// The command to the board's source of messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CmTransmit {
    /// Begin; else stop.
    pub start: bool,
    /// Whether messages have immediate data: the ring's receives are used.
    pub with_imm: bool,
    /// WRITE; else SEND.
    pub is_write: bool,
    /// Bytes of a message.
    pub length: u32,
    /// Messages; 0 requests none.
    pub count: u32,
    /// Clock cycles of the board from one message to the next; 0 is as fast as they go.
    pub interval_cycles: u32,
}

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CmMessage {
    /// The request, or the request that an answer belongs to.
    pub request: CmRequest,
    /// `Some` in an answer.
    pub answer: Option<CmAnswer>,
    /// Whether `sender` is valid.
    pub info_valid: bool,
    /// Who sends it.
    pub sender: CmInfo,
    /// The addressee.
    pub other: CmInfo,
    /// Where the sender takes answers and requests; 0: answers at [`CM_REPLY_PORT`].
    pub port: u16,
    /// The messages to transmit.
    pub transmit: Option<CmTransmit>,
}

impl CmMessage {
    /// A request of `sender` to `other`, whose connection manager is at [`CM_REQUEST_PORT`].
    pub const fn request(request: CmRequest, sender: CmInfo, other: CmInfo) -> Self {
        CmMessage { request, answer: None, info_valid: true, sender, other, port: CM_REQUEST_PORT, transmit: None }
    }

    /// The answer to this request; `sender` has the answering side's information, which only an ACK contains.
    pub fn answered(&self, answer: CmAnswer, sender: Option<CmInfo>) -> Self {
        CmMessage {
            request: self.request,
            answer: Some(answer),
            info_valid: sender.is_some(),
            sender: sender.unwrap_or_default(),
            other: self.sender,
            port: CM_REQUEST_PORT,
            transmit: None,
        }
    }

    /// UDP port that the answer goes to.
    pub const fn reply_port(&self) -> u16 {
        match self.port {
            0 => CM_REPLY_PORT,
            port => port,
        }
    }

    /// Reads a UDP payload.
    ///
    /// # Errors
    /// `Truncated` or `BadLength` if it has not 64 bytes. Codes without a meaning are kept as such.
    pub fn parse(data: &[u8]) -> Result<Self, ParseError> {
        const LAYER: &str = "connection manager";
        match data.len() {
            CM_LEN => {}
            len if len < CM_LEN => {
                return Err(ParseError::Truncated { layer: LAYER, needed: CM_LEN, available: len });
            }
            len => return Err(ParseError::BadLength { layer: LAYER, field: CM_LEN, actual: len }),
        }
        let (flags, transmit) = (data[at::FLAGS], data[at::TRANSMIT]);
        Ok(CmMessage {
            request: CmRequest::from_code(flags >> 1),
            answer: (flags & 0x10 != 0).then(|| CmAnswer::from_code(flags >> 5)),
            info_valid: flags & 1 != 0,
            sender: CmInfo::read(&data[at::SENDER..]),
            other: CmInfo::read(&data[at::OTHER..]),
            port: be16(data, at::PORT),
            transmit: (transmit & 1 != 0).then(|| CmTransmit {
                start: transmit & 2 != 0,
                with_imm: transmit & 4 != 0,
                is_write: transmit & 8 != 0,
                length: be32(data, at::LENGTH),
                count: be32(data, at::COUNT),
                interval_cycles: be32(data, at::INTERVAL_CYCLES),
            }),
        })
    }

    /// The UDP payload.
    pub fn to_bytes(&self) -> [u8; CM_LEN] {
        let mut data = [0; CM_LEN];
        let answer = self.answer.map_or(0, |answer| 0x10 | answer.code() << 5);
        data[at::FLAGS] = u8::from(self.info_valid) | self.request.code() << 1 | answer;
        self.sender.write(&mut data[at::SENDER..]);
        self.other.write(&mut data[at::OTHER..]);
        put16(&mut data, at::PORT, self.port);
        if let Some(transmit) = &self.transmit {
            let CmTransmit { start, with_imm, is_write, length, count, interval_cycles } = *transmit;
            data[at::TRANSMIT] = 1 | u8::from(start) << 1 | u8::from(with_imm) << 2 | u8::from(is_write) << 3;
            put32(&mut data, at::LENGTH, length);
            put32(&mut data, at::COUNT, count);
            put32(&mut data, at::INTERVAL_CYCLES, interval_cycles);
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> [u8; CM_LEN] {
        core::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
    }

    const PEER: CmInfo = CmInfo {
        qpn: Qpn::new(0x12_3456),
        psn: Psn::new(0xAB_CDEF),
        rkey: 0xC0FF_EE01,
        base: 0x7F00_1234_5000,
        ip: Ipv4Addr::new(10, 0, 0, 1),
    };
    const BOARD: CmInfo =
        CmInfo { qpn: Qpn::new(0xBE_EF02), psn: Psn::new(7), rkey: 0, base: 0, ip: Ipv4Addr::new(10, 0, 0, 2) };

    /// The bytes are those that tb/lib/connection.py makes of the same fields, which the gateware is tested with.
    #[test]
    fn messages_are_those_of_the_gateware_benches() {
        let open =
            CmMessage { info_valid: false, port: 0, ..CmMessage::request(CmRequest::OpenQp, PEER, CmInfo::default()) };
        let start = CmTransmit {
            start: true,
            with_imm: true,
            is_write: false,
            length: 4096,
            count: 1000,
            interval_cycles: 250,
        };
        let stop = CmTransmit { start: false, is_write: true, ..CmTransmit::default() };
        let cases = [
            (
                open,
                "020012345600abcdefc0ffee0100007f00123450000a000001000000000000000000000000000000000000000000000000000000000000000000000000000000",
            ),
            (
                CmMessage::request(CmRequest::SendQpInfo, PEER, BOARD),
                "050012345600abcdefc0ffee0100007f00123450000a00000100beef02000000070000000000000000000000000a000002432100000000000000000000000000",
            ),
            (
                CmMessage::request(CmRequest::ModifyQpRts, PEER, BOARD),
                "070012345600abcdefc0ffee0100007f00123450000a00000100beef02000000070000000000000000000000000a000002432100000000000000000000000000",
            ),
            (
                CmMessage::request(CmRequest::CloseQp, PEER, BOARD),
                "090012345600abcdefc0ffee0100007f00123450000a00000100beef02000000070000000000000000000000000a000002432100000000000000000000000000",
            ),
            (
                CmMessage::request(CmRequest::Error, PEER, BOARD),
                "0f0012345600abcdefc0ffee0100007f00123450000a00000100beef02000000070000000000000000000000000a000002432100000000000000000000000000",
            ),
            (
                open.answered(CmAnswer::Ack, Some(BOARD)),
                "3300beef02000000070000000000000000000000000a0000020012345600abcdefc0ffee0100007f00123450000a000001432100000000000000000000000000",
            ),
            (
                open.answered(CmAnswer::NoQp, None),
                "520000000000000000000000000000000000000000000000000012345600abcdefc0ffee0100007f00123450000a000001432100000000000000000000000000",
            ),
            (
                open.answered(CmAnswer::Nak, None),
                "720000000000000000000000000000000000000000000000000012345600abcdefc0ffee0100007f00123450000a000001432100000000000000000000000000",
            ),
            (
                open.answered(CmAnswer::Error, None),
                "f20000000000000000000000000000000000000000000000000012345600abcdefc0ffee0100007f00123450000a000001432100000000000000000000000000",
            ),
            (
                CmMessage { transmit: Some(start), ..CmMessage::request(CmRequest::None, PEER, BOARD) },
                "010012345600abcdefc0ffee0100007f00123450000a00000100beef02000000070000000000000000000000000a00000243210700001000000003e8000000fa",
            ),
            (
                CmMessage { transmit: Some(stop), ..CmMessage::request(CmRequest::None, PEER, BOARD) },
                "010012345600abcdefc0ffee0100007f00123450000a00000100beef02000000070000000000000000000000000a000002432109000000000000000000000000",
            ),
        ];
        for (message, bytes) in cases {
            assert_eq!(message.to_bytes(), hex(bytes), "{message:?}");
            assert_eq!(CmMessage::parse(&hex(bytes)), Ok(message));
        }
    }

    #[test]
    fn a_payload_of_another_length_is_refused() {
        for len in [0, 63, 65, 1500] {
            assert!(CmMessage::parse(&alloc::vec![0; len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn whatever_bytes_come_they_are_read_and_read_the_same_when_written_again(
            data in proptest::collection::vec(any::<u8>(), CM_LEN),
        ) {
            let message = CmMessage::parse(&data).unwrap();
            prop_assert_eq!(CmMessage::parse(&message.to_bytes()), Ok(message));
        }
    }
}
