// SPDX-License-Identifier: Apache-2.0
//! Completion times as a summary has them.

use penstock_netsim::Distribution;
use serde::Serialize;

use crate::units::Time;

/// Completion times in microseconds; `None` if there were none.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Quantiles {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

impl From<&Distribution> for Quantiles {
    fn from(times: &Distribution) -> Self {
        let us = |time: Option<Time>| time.map(|time| time.0 as f64 * 1e-6);
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| us(times.quantile(quantile)));
        Quantiles { p50, p99, p999, max: us(times.max()) }
    }
}
