// SPDX-License-Identifier: Apache-2.0
//! A distribution of times in bounded memory: exact while small, then a histogram.
//! Promise: quantiles are exact up to 1,024 values and at most 0.1 % off above that; the largest value is always exact.
//! Source: the layout of HDR histograms (G. Tene): linear buckets in each power of two.

use crate::units::Time;

/// Times, and their quantiles.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    exact: Vec<Time>,
    /// Takes over when `exact` is full.
    histogram: Option<Histogram>,
    count: u64,
    sum_ps: u128,
    max: Time,
}

/// Counts of values by their leading `DIGITS` binary digits.
#[derive(Debug, Clone, Default)]
struct Histogram {
    counts: Vec<u32>,
}

impl Histogram {
    /// Leading digits kept: two values in one bucket differ by less than 2^-10 of themselves.
    const DIGITS: u32 = 11;
    const HALF: u64 = 1 << (Self::DIGITS - 1);

    /// Values below 2^DIGITS have a bucket each; above, each doubling of the value has `HALF` of them.
    fn bucket(value: u64) -> usize {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(Self::DIGITS);
        (u64::from(shift) * Self::HALF + (value >> shift)) as usize
    }

    /// The largest value of a bucket.
    fn value(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        let shift = (bucket / Self::HALF).saturating_sub(1);
        let leading = bucket - shift * Self::HALF;
        ((leading + 1) << shift) - 1
    }

    fn record(&mut self, value: u64) {
        let bucket = Self::bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    /// The value of this rank, counted from 1.
    fn ranked(&self, rank: u64) -> u64 {
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        });
        Self::value(found.unwrap_or(self.counts.len()))
    }
}

impl Distribution {
    const EXACT: usize = 1024;
    /// The histogram counts in nanoseconds: that is as fine as a thousandth of a microsecond.
    const UNIT_PS: u64 = 1000;

    pub fn record(&mut self, value: Time) {
        self.count += 1;
        self.sum_ps += u128::from(value.0);
        self.max = self.max.max(value);
        if let Some(histogram) = &mut self.histogram {
            histogram.record(value.0 / Self::UNIT_PS);
        } else if self.exact.len() < Self::EXACT {
            self.exact.push(value);
        } else {
            let mut histogram = Histogram::default();
            let values = std::mem::take(&mut self.exact);
            values.iter().chain([&value]).for_each(|value| histogram.record(value.0 / Self::UNIT_PS));
            self.histogram = Some(histogram);
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Option<Time> {
        (self.count > 0).then_some(self.max)
    }

    pub fn mean(&self) -> Option<Time> {
        (self.count > 0).then(|| Time((self.sum_ps / u128::from(self.count)) as u64))
    }

    /// The smallest value that at least the fraction `quantile` of all values does not exceed (nearest rank).
    pub fn quantile(&self, quantile: f64) -> Option<Time> {
        let rank = |count: u64| ((quantile * count as f64).ceil() as u64).clamp(1, count.max(1));
        if let Some(histogram) = &self.histogram {
            return Some(Time(histogram.ranked(rank(self.count)) * Self::UNIT_PS).min(self.max));
        }
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        sorted.get(rank(self.count) as usize - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_values_are_exact() {
        let mut times = Distribution::default();
        assert_eq!((times.quantile(0.5), times.max(), times.mean()), (None, None, None));
        (1..=1000).rev().for_each(|n| times.record(Time(n)));
        let quantiles = [0.0, 0.5, 0.99, 0.999, 1.0].map(|quantile| times.quantile(quantile).unwrap().0);
        assert_eq!(quantiles, [1, 500, 990, 999, 1000]);
        assert_eq!(times.mean(), Some(Time(500)));
    }

    #[test]
    fn quantiles_of_many_values_are_off_by_a_thousandth_at_most() {
        let mut times = Distribution::default();
        (1..=1_000_000).for_each(|n| times.record(Time::from_ns(n * 7)));
        for (quantile, exact) in [(0.5, 3_500_000.0), (0.99, 6_930_000.0), (0.999, 6_993_000.0)] {
            let found = times.quantile(quantile).unwrap().0 as f64 / 1000.0;
            assert!((found / exact - 1.0).abs() < 1e-3, "{quantile}: {found} ns, exact {exact} ns");
        }
        assert_eq!(times.max(), Some(Time::from_ns(7_000_000)));
        assert!(times.histogram.unwrap().counts.len() < 16 * 1024);
    }

    #[test]
    fn buckets_are_fine_and_leave_no_gap() {
        for value in (0..5000).chain((12..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 7])) {
            let bucket = Histogram::bucket(value);
            let last = Histogram::value(bucket);
            assert!(last >= value && last - value <= value / 1024, "{value} is in the bucket that ends at {last}");
            assert_eq!(Histogram::bucket(last + 1), bucket + 1);
        }
    }
}
