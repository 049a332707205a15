// SPDX-License-Identifier: Apache-2.0
//! The notification point: when the receiver of marked packets sends a CNP.

use penstock_units::Time;

/// Decides for one flow which CE-marked packets are answered with a CNP: the first, and then
/// at most one in any interval (Zhu et al. section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationPoint {
    interval: Time,
    last_cnp: Option<Time>,
}

impl NotificationPoint {
    /// Zhu et al.: N = 50 us.
    pub const DEFAULT_INTERVAL: Time = Time::from_us(50);

    /// A flow without any CNP so far.
    pub const fn new(interval: Time) -> Self {
        Self { interval, last_cnp: None }
    }

    /// A CE-marked packet arrived; `true`: send a CNP now.
    pub fn on_marked(&mut self, now: Time) -> bool {
        let due = self.last_cnp.is_none_or(|last| now.saturating_sub(last) >= self.interval);
        if due {
            self.last_cnp = Some(now);
        }
        due
    }
}

impl Default for NotificationPoint {
    fn default() -> Self {
        Self::new(Self::DEFAULT_INTERVAL)
    }
}
