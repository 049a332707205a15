// SPDX-License-Identifier: Apache-2.0
//! The notification point: when the receiver of marked packets sends a CNP.

/// Decides for one flow which CE-marked packets are answered with a CNP: the first, and then
/// at most one in any interval (Zhu et al. section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationPoint {
    interval_ps: u64,
    last_cnp_ps: Option<u64>,
}

impl NotificationPoint {
    /// Zhu et al.: N = 50 us.
    pub const DEFAULT_INTERVAL_PS: u64 = 50_000_000;

    /// A flow that has not been answered yet.
    pub const fn new(interval_ps: u64) -> Self {
        Self { interval_ps, last_cnp_ps: None }
    }

    /// A CE-marked packet arrived; `true`: send a CNP now.
    pub fn on_marked(&mut self, now_ps: u64) -> bool {
        let due = self.last_cnp_ps.is_none_or(|last| now_ps.saturating_sub(last) >= self.interval_ps);
        if due {
            self.last_cnp_ps = Some(now_ps);
        }
        due
    }
}

impl Default for NotificationPoint {
    fn default() -> Self {
        Self::new(Self::DEFAULT_INTERVAL_PS)
    }
}
