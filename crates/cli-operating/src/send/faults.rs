// SPDX-License-Identifier: Apache-2.0
//! Injects faults into our own frames, for tests on kernels without `tc netem`.
//! Promise: one seed gives one sequence of faults.
//! Source: the generator is SplitMix64 (Steele, Lea, Flood 2014).

use bytes::{Bytes, BytesMut};

/// Shares of frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultRates {
    pub loss: f64,
    pub duplicate: f64,
    pub reorder: f64,
    pub corrupt: f64,
}

impl FaultRates {
    /// `prefix` is that of the options: "" or "ack-".
    pub fn checked(self, prefix: &str) -> Result<FaultRates, String> {
        let all =
            [("loss", self.loss), ("duplicate", self.duplicate), ("reorder", self.reorder), ("corrupt", self.corrupt)];
        match all.into_iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
            Some((name, rate)) => Err(format!("--{prefix}{name} {rate}: allowed are 0 to below 1, as in 1e-3")),
            None => Ok(self),
        }
    }

    pub fn any(&self) -> bool {
        self.loss + self.duplicate + self.reorder + self.corrupt > 0.0
    }
}

pub struct Faults {
    rates: FaultRates,
    state: u64,
    /// Waits for the next frame to go first.
    held: Option<Bytes>,
}

impl Faults {
    pub fn new(rates: FaultRates, seed: u64) -> Faults {
        Faults { rates, state: seed, held: None }
    }

    fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && (self.word() >> 11) as f64 * (0.5f64).powi(53) < share
    }

    /// Hands to `out` what becomes of a frame.
    pub fn pass(&mut self, frame: Bytes, mut out: impl FnMut(Bytes)) {
        let FaultRates { loss, duplicate, reorder, corrupt } = self.rates;
        if self.happens(loss) {
            return;
        }
        let frame = if self.happens(corrupt) { self.damaged(&frame) } else { frame };
        if self.held.is_none() && self.happens(reorder) {
            self.held = Some(frame);
            return;
        }
        if self.happens(duplicate) {
            out(frame.clone());
        }
        out(frame);
        self.held.take().into_iter().for_each(out);
    }

    /// One bit after the Ethernet header is flipped.
    fn damaged(&mut self, frame: &[u8]) -> Bytes {
        let mut copy = BytesMut::from(frame);
        let bits = (frame.len().saturating_sub(14) * 8).max(1) as u64;
        let at = self.word() % bits;
        if let Some(byte) = copy.get_mut(14 + (at / 8) as usize) {
            *byte ^= 1 << (at % 8);
        }
        copy.freeze()
    }
}
