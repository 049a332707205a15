// SPDX-License-Identifier: Apache-2.0
//! Tracks which ports are paused because of which queue, for per-queue thresholds.
//! Promise: a port resumes when the last queue that paused it is back below its threshold, and not earlier.
//! Source: QCN hardware evaluation (link-level pausing).

use crate::pause::CLASSES;

/// The ingress ports that the queue holds, each once, for each egress port and class.
#[derive(Debug)]
pub(super) struct QueuePauses {
    xon: u64,
    holds: Vec<Vec<u16>>,
}

impl QueuePauses {
    pub(super) fn new(xon: u64, ports: usize) -> Self {
        QueuePauses { xon, holds: vec![Vec::new(); ports * CLASSES] }
    }

    /// A frame from `ingress` has put a queue, which now has `queue_bytes`, above its threshold. False: the queue is
    /// under it again, as its frames have left at once.
    pub(super) fn hold(&mut self, egress: u16, class: usize, queue_bytes: u64, ingress: u16) -> bool {
        let held = &mut self.holds[usize::from(egress) * CLASSES + class];
        if queue_bytes > self.xon && !held.contains(&ingress) {
            held.push(ingress);
        }
        queue_bytes > self.xon
    }

    /// A frame has left a queue, which now has `queue_bytes`: the ports that no queue of this class holds any more.
    pub(super) fn let_go(&mut self, egress: u16, class: usize, queue_bytes: u64) -> Vec<u16> {
        let at = usize::from(egress) * CLASSES + class;
        if queue_bytes > self.xon || self.holds[at].is_empty() {
            return Vec::new();
        }
        let mut free = std::mem::take(&mut self.holds[at]);
        free.retain(|port| !self.holds.iter().skip(class).step_by(CLASSES).any(|held| held.contains(port)));
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_two_queues_hold_goes_on_with_the_second() {
        let mut pauses = QueuePauses::new(1_000, 3);
        assert!(pauses.hold(0, 3, 1_500, 2) && pauses.hold(1, 3, 1_500, 2) && pauses.hold(0, 3, 2_000, 1));
        assert_eq!(pauses.let_go(0, 3, 1_001), [0; 0], "still above");
        assert_eq!(pauses.let_go(0, 3, 1_000), [1], "port 2 is held by queue 1");
        assert_eq!(pauses.let_go(0, 3, 0), [0; 0], "told once");
        assert_eq!(pauses.let_go(1, 3, 0), [2]);
    }

    #[test]
    fn a_queue_that_is_empty_again_holds_no_port() {
        let mut pauses = QueuePauses::new(1_000, 2);
        assert!(!pauses.hold(0, 0, 0, 1));
        assert_eq!(pauses.let_go(0, 0, 0), [0; 0]);
    }
}
