// SPDX-License-Identifier: Apache-2.0
//! The parameters of a stream. The caller defines the tick: 1 us in software, a number of cycles in gateware.

use super::{MAX_MSS, MIN_MSS};

/// Settings of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Payload bytes of a full segment at most, 64 to 8960; also the option of the SYN. 14 bits.
    pub mss: u16,
    /// The window in our headers: bytes of the peer that are taken (and dropped). 16 bits.
    pub receive_window: u16,
    /// Nagle's algorithm (RFC 9293 section 3.7.4). 1 bit.
    pub nagle: bool,
    /// The simplified congestion control (CMS-TCP section 3.1): after a loss one segment at a time, and each timeout
    /// doubles the next. Without it, new data continues, and a timeout sends all outstanding data again. 1 bit.
    pub back_off: bool,
    /// The timeout follows the round trip (RFC 6298); otherwise it is `rto_initial`. 1 bit.
    pub adaptive: bool,
    /// Ticks of the timeout, before anything is measured if it is adaptive. 27 bits.
    pub rto_initial: u32,
    /// Least and most of a timeout in ticks. 27 bits each.
    pub rto_min: u32,
    /// The most.
    pub rto_max: u32,
    /// Timeouts in a row without an answer that end the stream; 0: none does. 8 bits.
    pub give_up: u8,
    /// Least ticks from one challenge ACK to the next (RFC 5961 section 7). 27 bits.
    pub challenge_interval: u32,
}

/// The longest span of ticks: a tick of 1 us makes it 134 s.
pub const MAX_TICKS: u32 = (1 << 27) - 1;

/// A parameter outside its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name} {value}: allowed are {least} to {most}")]
pub struct ParametersError {
    /// Which.
    pub name: &'static str,
    /// What it was.
    pub value: u32,
    /// The range.
    pub least: u32,
    /// The range.
    pub most: u32,
}

impl Default for Parameters {
    /// Ticks of 1 us: a timeout of 200 ms at least (as Linux has it), of 60 s at most (RFC 6298 section 2), 1 s at
    /// first (2.1), 15 tries (`tcp_retries2` of Linux), challenge ACKs 500 ms apart (`tcp_invalid_ratelimit` of Linux).
    fn default() -> Self {
        Parameters {
            mss: 1460,
            receive_window: 65_535,
            nagle: true,
            back_off: true,
            adaptive: true,
            rto_initial: 1_000_000,
            rto_min: 200_000,
            rto_max: 60_000_000,
            give_up: 15,
            challenge_interval: 500_000,
        }
    }
}

impl Parameters {
    /// The same if every number fits its range.
    ///
    /// # Errors
    /// The first that does not.
    pub fn checked(self) -> Result<Parameters, ParametersError> {
        let ranges = [
            ("mss", u32::from(self.mss), u32::from(MIN_MSS), u32::from(MAX_MSS)),
            ("receive_window", u32::from(self.receive_window), 1, 65_535),
            ("rto_min", self.rto_min, 1, MAX_TICKS),
            ("rto_max", self.rto_max, self.rto_min, MAX_TICKS),
            ("rto_initial", self.rto_initial, self.rto_min, self.rto_max),
            ("challenge_interval", self.challenge_interval, 0, MAX_TICKS),
        ];
        match ranges.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value)) {
            Some((name, value, least, most)) => Err(ParametersError { name, value, least, most }),
            None => Ok(self),
        }
    }
}
