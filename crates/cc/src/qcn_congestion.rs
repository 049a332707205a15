// SPDX-License-Identifier: Apache-2.0
//! QCN's congestion point: selects the frames that a switch samples, and computes the feedback to their sources.

use crate::lfsr::{jittered, Lfsr};

/// Settings of a congestion point; `Default` is the QCN hardware evaluation's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnMarking {
    /// Q_eq, bytes: the equilibrium length of the queue.
    pub q_eq: u32,
    /// Weight of the queue's growth relative to its length.
    pub w: u32,
    /// Bytes from one sample to the next, by eighths of the feedback.
    pub sample_bytes: [u32; 8],
    /// Jitter of these bytes, in 1/256.
    pub jitter: u8,
}

impl Default for QcnMarking {
    fn default() -> Self {
        Self {
            q_eq: 33_000,
            w: 2,
            sample_bytes: [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500],
            jitter: 77,
        }
    }
}

/// One queue of a switch (802.1Qau clause 30.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnCongestionPoint {
    marking: QcnMarking,
    queue_old: u64,
    until_sample: i64,
    lfsr: Lfsr,
}

impl QcnCongestionPoint {
    /// An empty queue; `index` sets the jitter of one switch's queues apart.
    pub fn new(marking: QcnMarking, seed: u32, index: u8) -> Self {
        let first = i64::from(marking.sample_bytes[0]);
        Self { marking, queue_old: 0, until_sample: first, lfsr: Lfsr::new(seed, index) }
    }

    /// A frame arrives, after which the queue holds `queue_bytes`. `Some(|F_b|)`, 1 to 63: send this feedback to the
    /// frame's source.
    pub fn on_arrival(&mut self, frame_bytes: u32, queue_bytes: u64) -> Option<u8> {
        self.until_sample -= i64::from(frame_bytes);
        if self.until_sample > 0 {
            return None;
        }
        let feedback = self.feedback(queue_bytes);
        self.queue_old = queue_bytes;
        let base = self.marking.sample_bytes[usize::from(feedback / 8)];
        self.until_sample = i64::from(jittered(base, self.marking.jitter, self.lfsr.draw(), false));
        (feedback > 0).then_some(feedback)
    }

    /// Length of the queue at the last sample, bytes.
    pub fn queue_at_sample(&self) -> u64 {
        self.queue_old
    }

    /// F_b = (Q_eq - q) - w (q - q_old), clipped to [-Q_eq (2w + 1), 0] and quantised to 6 bits.
    fn feedback(&self, queue_bytes: u64) -> u8 {
        let (q, q_eq, w) = (i128::from(queue_bytes), i128::from(self.marking.q_eq), i128::from(self.marking.w));
        let lowest = (q_eq * (2 * w + 1)).max(1);
        let congestion = (w * (q - i128::from(self.queue_old)) - (q_eq - q)).clamp(0, lowest);
        (congestion * 63 / lowest) as u8
    }
}
