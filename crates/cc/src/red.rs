// SPDX-License-Identifier: Apache-2.0
//! The congestion point: decides which packets a switch marks (RED).

/// RED marking of an egress queue (Zhu et al. figure 5): never up to `k_min`, always from
/// `k_max`, between them with a probability that grows linearly to `p_max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedMarker {
    k_min: u64,
    k_max: u64,
    p_max_ppm: u32,
}

impl RedMarker {
    /// Thresholds in bytes, `p_max` in parts per million (1 % is 10_000; above 10^6 is 10^6).
    ///
    /// With `k_max <= k_min` everything above `k_min` is marked, as in DCTCP.
    pub fn new(k_min: u64, k_max: u64, p_max_ppm: u32) -> Self {
        Self { k_min, k_max, p_max_ppm: p_max_ppm.min(1_000_000) }
    }

    /// Whether to mark a packet that finds `queue_bytes` in the queue; `random` is uniform.
    pub fn mark(&self, queue_bytes: u64, random: u32) -> bool {
        if queue_bytes <= self.k_min {
            return false;
        }
        if queue_bytes >= self.k_max {
            return true;
        }
        // random / 2^32 < p_max * (queue - k_min) / (k_max - k_min), without a division
        let above = u128::from(queue_bytes - self.k_min) * u128::from(self.p_max_ppm);
        let range = u128::from(self.k_max - self.k_min) * 1_000_000;
        u128::from(random) * range < above << 32
    }
}
