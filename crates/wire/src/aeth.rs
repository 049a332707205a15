// SPDX-License-Identifier: Apache-2.0
//! ACK extended transport header: the result of a request, and the number of completed messages.
//! The syndrome byte is an enum; reserved codes survive a round trip.
//! Source: IBTA vol. 1, clauses 9.3.5 and 9.7.5.

use crate::bytesio::{be24, put24};

/// Offsets of the fields, in bytes.
mod at {
    pub const SYNDROME: usize = 0;
    pub const MSN: usize = 1;
}

pub(crate) const LEN: usize = 4;

/// Five-bit credit count of an ACK (IBTA 9.7.7.2): receives posted, rounded down to
/// 0, 1, 2, 3, 4, 6, 8, 12, 16, 24 .. 32768.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Credits(u8);

impl Credits {
    /// Code 31: the responder counts no credits, and the requester may send without limit.
    pub const UNLIMITED: Credits = Credits(31);

    /// Takes the low five bits of a syndrome.
    pub const fn from_code(code: u8) -> Self {
        Credits(code & 31)
    }

    /// The five-bit code.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The largest code that promises no more than `receives`.
    pub fn from_receives(receives: usize) -> Self {
        let fits = |code: &u8| Credits(*code).receives().is_some_and(|n| n as usize <= receives);
        Credits((0..31).rev().find(fits).unwrap_or(0))
    }

    /// Receives promised; `None` when unlimited.
    pub const fn receives(self) -> Option<u32> {
        match self.0 {
            31 => None,
            0..=3 => Some(self.0 as u32),
            // From 2 on the codes go 2, 3, 4, 6, 8, 12: a power of two and one and a half times it.
            code => Some((2 + (code as u32 & 1)) << (code / 2 - 1)),
        }
    }
}

/// Five-bit RNR NAK timer (IBTA 9.7.5.2.8): the least time before the request may be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RnrTimer(u8);

impl RnrTimer {
    const MICROSECONDS: [u32; 32] = [
        655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920, 2_560, 3_840, 5_120, 7_680,
        10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
    ];

    /// Takes the low five bits of a syndrome. Code 0 is the longest wait, 655.36 ms.
    pub const fn from_code(code: u8) -> Self {
        RnrTimer(code & 31)
    }

    /// The five-bit code.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The wait in microseconds, 10 .. 655360.
    pub const fn microseconds(self) -> u32 {
        Self::MICROSECONDS[self.0 as usize]
    }

    /// The shortest timer of at least `microseconds`; the longest there is when none is.
    pub fn at_least(microseconds: u32) -> Self {
        let long_enough = |code: &u8| Self::MICROSECONDS[usize::from(*code)] >= microseconds;
        RnrTimer((1..32).find(long_enough).unwrap_or(0))
    }
}

/// Reason of a NAK (IBTA 9.7.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NakCode {
    /// 0: the PSN in the BTH is the one expected; send again from there.
    PsnSequenceError,
    /// 1: opcode, sequence or length was wrong; fatal.
    InvalidRequest,
    /// 2: rkey, bounds or permission was wrong; fatal.
    RemoteAccessError,
    /// 3: the responder could not do it; fatal.
    RemoteOperationalError,
    /// 4: invalid RD request; not of this service.
    InvalidRdRequest,
    /// 5 .. 31, reserved.
    Reserved(u8),
}

/// AETH syndrome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Syndrome {
    /// 000ccccc: all up to the PSN in the BTH is done.
    Ack(Credits),
    /// 001ttttt: no receive was posted; wait, then send again from the PSN in the BTH.
    RnrNak(RnrTimer),
    /// 011nnnnn: refused.
    Nak(NakCode),
    /// Any other byte.
    Reserved(u8),
}

impl From<u8> for Syndrome {
    fn from(byte: u8) -> Self {
        match (byte >> 5, byte & 31) {
            (0b000, credits) => Syndrome::Ack(Credits::from_code(credits)),
            (0b001, timer) => Syndrome::RnrNak(RnrTimer::from_code(timer)),
            (0b011, code) => Syndrome::Nak(match code {
                0 => NakCode::PsnSequenceError,
                1 => NakCode::InvalidRequest,
                2 => NakCode::RemoteAccessError,
                3 => NakCode::RemoteOperationalError,
                4 => NakCode::InvalidRdRequest,
                other => NakCode::Reserved(other),
            }),
            _ => Syndrome::Reserved(byte),
        }
    }
}

impl From<Syndrome> for u8 {
    fn from(syndrome: Syndrome) -> u8 {
        match syndrome {
            Syndrome::Ack(credits) => credits.code(),
            Syndrome::RnrNak(timer) => 0b001 << 5 | timer.code(),
            Syndrome::Nak(code) => {
                0b011 << 5
                    | match code {
                        NakCode::PsnSequenceError => 0,
                        NakCode::InvalidRequest => 1,
                        NakCode::RemoteAccessError => 2,
                        NakCode::RemoteOperationalError => 3,
                        NakCode::InvalidRdRequest => 4,
                        NakCode::Reserved(other) => other & 31,
                    }
            }
            Syndrome::Reserved(byte) => byte,
        }
    }
}

/// AETH: syndrome and message sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AethRepr {
    /// ACK, RNR NAK or NAK.
    pub syndrome: Syndrome,
    /// Messages the responder has completed, modulo 2^24 (IBTA 9.7.7).
    pub msn: u32,
}

impl AethRepr {
    /// Reads 4 bytes; the caller has checked that they are there.
    pub(crate) fn read(data: &[u8]) -> Self {
        AethRepr { syndrome: Syndrome::from(data[at::SYNDROME]), msn: be24(data, at::MSN) }
    }

    pub(crate) fn write(&self, data: &mut [u8]) {
        data[at::SYNDROME] = self.syndrome.into();
        put24(data, at::MSN, self.msn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_syndrome_byte_survives_a_round_trip() {
        for byte in 0..=255u8 {
            assert_eq!(u8::from(Syndrome::from(byte)), byte);
        }
    }

    #[test]
    fn credit_codes_follow_the_table() {
        let counts = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
        for (code, count) in counts.iter().enumerate() {
            assert_eq!(Credits::from_code(code as u8).receives(), Some(*count));
            assert_eq!(Credits::from_receives(*count as usize).code(), code as u8);
        }
        assert_eq!(Credits::from_code(30).receives(), Some(32768));
        assert_eq!(Credits::from_receives(usize::MAX).code(), 30);
        assert_eq!(Credits::from_receives(7).receives(), Some(6));
        assert_eq!(Credits::UNLIMITED.receives(), None);
    }

    #[test]
    fn rnr_timer_rounds_up_and_code_zero_is_the_longest() {
        assert_eq!(RnrTimer::from_code(0).microseconds(), 655_360);
        assert_eq!(RnrTimer::at_least(0).microseconds(), 10);
        assert_eq!(RnrTimer::at_least(11).microseconds(), 20);
        assert_eq!(RnrTimer::at_least(500_000).code(), 0);
    }
}
