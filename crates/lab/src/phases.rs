// SPDX-License-Identifier: Apache-2.0
//! A run's start-up and steady state: what was counted up to the end of the warm-up, and what came after it.
//! Promise: observation does not change the run.

use penstock_netsim::{Engine, Ledger, NodeId, PortId, SharedLedger};

use crate::units::Time;

/// Sums over all flows and all ports of switches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) delivered_bytes: u64,
    pub(crate) ecn_marked: u64,
    pub(crate) pause_frames: u64,
    /// Time in which ports had the other side paused.
    pub(crate) pausing: Time,
    pub(crate) dropped: u64,
}

impl Counts {
    fn now(engine: &Engine, ledger: &Ledger, switches: &[(String, NodeId)]) -> Counts {
        let delivered_bytes = ledger.flows().iter().map(|flow| flow.delivered_bytes).sum();
        let mut counts = Counts { delivered_bytes, ..Counts::default() };
        for switch in switches.iter().filter_map(|(_, id)| engine.switch(*id)) {
            counts.dropped += switch.stats().dropped();
            for port in 0..switch.port_count() {
                let stats = switch.port_stats(PortId(port), engine.now());
                counts.ecn_marked += stats.ecn_marked;
                counts.pause_frames += stats.pause_frames_sent;
                counts.pausing = counts.pausing.saturating_add(stats.pausing);
            }
        }
        counts
    }

    fn since(self, before: Counts) -> Counts {
        Counts {
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
            ecn_marked: self.ecn_marked - before.ecn_marked,
            pause_frames: self.pause_frames - before.pause_frames,
            pausing: self.pausing.saturating_sub(before.pausing),
            dropped: self.dropped - before.dropped,
        }
    }
}

/// A phase of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Phase {
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) counts: Counts,
    /// The longest queue at any look.
    pub(crate) peak_queue_bytes: u64,
}

/// Observes the phases of a run.
#[derive(Debug)]
pub(crate) struct Phases {
    warm_up: Time,
    start_up: Phase,
    steady: Phase,
}

impl Phases {
    /// `None` without a warm-up.
    pub(crate) fn new(warm_up: Time) -> Option<Phases> {
        let steady = Phase { from: warm_up, ..Phase::default() };
        (warm_up > Time::ZERO).then(|| Phases { warm_up, start_up: Phase::default(), steady })
    }

    /// When the start-up ends, until it has ended.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        (now < self.warm_up).then_some(self.warm_up)
    }

    /// A queue was seen.
    pub(crate) fn see_queue(&mut self, now: Time, bytes: u64) {
        let phase = if now <= self.warm_up { &mut self.start_up } else { &mut self.steady };
        phase.peak_queue_bytes = phase.peak_queue_bytes.max(bytes);
    }

    /// Counts up to now for the phase that lasts.
    pub(crate) fn count(&mut self, engine: &Engine, ledger: &SharedLedger, switches: &[(String, NodeId)]) {
        let (now, counts) = (engine.now(), Counts::now(engine, &ledger.borrow(), switches));
        if now <= self.warm_up {
            (self.start_up.to, self.start_up.counts) = (now, counts);
        } else {
            (self.steady.to, self.steady.counts) = (now, counts.since(self.start_up.counts));
        }
    }

    /// Start-up and steady state; `None` if the run ended before that.
    pub(crate) fn both(&self) -> Option<[Phase; 2]> {
        (self.steady.to > Time::ZERO).then_some([self.start_up, self.steady])
    }
}
