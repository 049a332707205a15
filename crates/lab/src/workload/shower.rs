// SPDX-License-Identifier: Apache-2.0
//! The light of an air shower on a camera: a Gaussian spot at a random position with a random brightness.
//! Promise: integers only, so that one seed gives the same bytes on every machine.
//! Source: AdvCam section III (showers, clusters of neighbouring modules); the profile is a choice, not a measurement.

use penstock_netsim::Stream;

use super::fixed_point::exp2_negative;
use crate::topology::Cell;
use crate::units::Time;

/// How light becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LightPool {
    /// The data of a dark module, in bytes.
    pub fragment: u64,
    /// The additional data of the module in the middle of an average shower, in bytes.
    pub peak: u64,
    /// Standard deviation of the spot, in thousandths of the distance of two modules.
    pub radius_milli: u64,
}

/// One shower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shower {
    /// Centre on the grid's axes, in 1/256 of the distance of two modules.
    q: i32,
    r: i32,
    /// Brightness, 2^32 is average.
    brightness: u64,
}

impl LightPool {
    /// A longest message of RDMA, 2 GiB.
    const LARGEST: u64 = 1 << 31;

    /// A shower somewhere on the camera; its brightness is drawn from an exponential distribution.
    pub fn shower(&self, cells: &[Cell], random: &mut Stream) -> Shower {
        let cell = cells[random.below(cells.len() as u64) as usize];
        let mut within = || random.below(256) as i32 - 128;
        let (q, r) = (cell.q * 256 + within(), cell.r * 256 + within());
        Shower { q, r, brightness: random.exponential(Time(1 << 32)).0 }
    }

    /// The data of the module at `cell` for a shower.
    pub fn bytes(&self, shower: &Shower, cell: Cell) -> u64 {
        /// log2(e) / 2 in Q16.
        const HALF_LOG2_E: u128 = 47_274;
        let (q, r) = (i64::from(cell.q * 256 - shower.q), i64::from(cell.r * 256 - shower.r));
        let squared = (q * q + q * r + r * r) as u128; // Q16
        let radius = u128::from(self.radius_milli.max(1));
        let exponent = (squared * 1_000_000 * HALF_LOG2_E / (radius * radius)) >> 16; // Q16
        let share = exp2_negative(u64::try_from(exponent).unwrap_or(u64::MAX));
        let centre = (u128::from(self.peak) * u128::from(shower.brightness)) >> 32;
        let light = (centre * u128::from(share)) >> 32;
        let light = u64::try_from(light).unwrap_or(Self::LARGEST);
        self.fragment.saturating_add(light).min(Self::LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_falls_off_as_a_gaussian() {
        let pool = LightPool { fragment: 0, peak: 1_000_000, radius_milli: 1_500 };
        let shower = Shower { q: 0, r: 0, brightness: 1 << 32 };
        for distance in 0..5 {
            let bytes = pool.bytes(&shower, Cell { q: distance, r: 0 }) as f64;
            let expected = 1e6 * (-f64::from(distance * distance) / (2.0 * 1.5 * 1.5)).exp();
            assert!((bytes - expected).abs() < 30.0, "{distance}: {bytes} against {expected}");
        }
    }
}
