// SPDX-License-Identifier: Apache-2.0
//! A host's limit of CNPs over all its queue pairs, as network adapters have one for a port.
//! Promise: two CNPs of a host are at least the interval apart.
//! Source: `min_time_between_cnps` of adapters that follow Zhu et al. 2015.

use std::cell::Cell;

use crate::units::Time;

/// Which CNPs a host may send.
#[derive(Debug)]
pub struct CnpLimit {
    interval: Time,
    last: Cell<Option<Time>>,
}

impl CnpLimit {
    /// A host with this limit sends at most one CNP in `interval`.
    pub fn new(interval: Time) -> Self {
        CnpLimit { interval, last: Cell::new(None) }
    }

    /// Whether a CNP may be sent at `now`.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.last.get().is_none_or(|last| now.saturating_sub(last) >= self.interval)
    }

    /// A CNP is sent at `now`.
    pub(super) fn sent(&self, now: Time) {
        self.last.set(Some(now));
    }
}
