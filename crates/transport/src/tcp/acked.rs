// SPDX-License-Identifier: Apache-2.0
//! The part of an acknowledgement that congestion control uses.

use penstock_units::Time;

/// New data was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Time,
    pub(crate) bytes: u64,
    /// Smoothed round-trip time.
    pub(crate) srtt: Time,
}
