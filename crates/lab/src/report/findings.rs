// SPDX-License-Identifier: Apache-2.0
//! The verdict on a run, in the layout of summary.json: the offered load, the busiest link, the first thing to change.
//! Promise: units are in the names, as in the rest of the summary.
//! Source: docs/lab.md, "The verdict".

use serde::Serialize;

use super::per::per;
use crate::offered::OfferedLoad;

/// The verdict on a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Verdict {
    /// The links that are offered most, in proportion to what they carry; none if all flows send as fast as they can.
    pub offered: Vec<Offered>,
    pub bottleneck: Option<Bottleneck>,
    /// Posted and not delivered at the end.
    pub outstanding_bytes: u64,
    pub sentences: Vec<String>,
    /// The first thing to change.
    pub advice: String,
}

/// The load offered to one direction of a link.
#[derive(Debug, Clone, Serialize)]
pub struct Offered {
    pub from: String,
    pub to: String,
    /// The load with headers, preamble, FCS and gap.
    pub wire_gbps: f64,
    pub payload_gbps: f64,
    pub capacity_gbps: f64,
}

impl From<&OfferedLoad> for Offered {
    fn from(load: &OfferedLoad) -> Self {
        Offered {
            from: load.from.clone(),
            to: load.to.clone(),
            wire_gbps: load.wire_bps * 1e-9,
            payload_gbps: load.payload_bps * 1e-9,
            capacity_gbps: load.capacity_bps * 1e-9,
        }
    }
}

impl Offered {
    /// 1: as much as the link can carry.
    pub(super) fn share(&self) -> f64 {
        per(self.wire_gbps, self.capacity_gbps)
    }
}

/// The direction of a link that was busiest.
#[derive(Debug, Clone, Serialize)]
pub struct Bottleneck {
    pub from: String,
    pub to: String,
    pub rate_gbps: f64,
    /// Share of the run in which the wire was busy.
    pub utilisation: f64,
    /// The peak queue before it, if it leaves a switch.
    pub peak_queue_bytes: Option<u64>,
}
