// SPDX-License-Identifier: Apache-2.0
//! The run time of this program: CPU time if the kernel reports it, so that other programs do not count.

use std::time::Instant;

pub struct Stopwatch {
    started: Instant,
    cpu_ns: Option<u64>,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { started: Instant::now(), cpu_ns: cpu_ns() }
    }

    pub fn seconds(&self) -> f64 {
        let cpu = self.cpu_ns.and_then(|before| Some((cpu_ns()? - before) as f64 * 1e-9));
        cpu.unwrap_or_else(|| self.started.elapsed().as_secs_f64())
    }
}

/// The CPU time of this thread, by Linux.
fn cpu_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}
