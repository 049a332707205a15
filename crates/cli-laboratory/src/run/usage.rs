// SPDX-License-Identifier: Apache-2.0
//! The CPU time and memory that this process has used.

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;

/// CPU time and memory of the process so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// User and system time of all threads, s.
    pub cpu_s: f64,
    /// Most memory ever resident, 10^6 bytes.
    pub peak_rss_mb: f64,
}

impl Usage {
    /// Zeros where the operating system does not say.
    pub fn now() -> Self {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Self::default() };
        let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        // Linux counts in KiB, macOS in bytes
        let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
        Self { cpu_s: cpu_us as f64 * 1e-6, peak_rss_mb: usage.max_rss() as f64 * unit * 1e-6 }
    }
}
