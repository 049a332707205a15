// SPDX-License-Identifier: Apache-2.0
//! A simulation of the laboratory and its progress.
//! Promise: a run ends when its scenario says so, and with an error when switches wait for each other in a circle.

use super::build::FlowInfo;
use super::{LabScenario, Stop};
use crate::engine::{Engine, LinkId, RunEnd, SimError};
use crate::ledger::SharedLedger;
use crate::node::NodeId;
use crate::switch::{find_pause_cycle, PauseCycle};
use crate::units::Time;

/// A simulation, ready to run.
pub struct Lab {
    pub engine: Engine,
    pub ledger: SharedLedger,
    /// By number.
    pub flows: Vec<FlowInfo>,
    /// Hosts and switches by name, in the order of the topology.
    pub hosts: Vec<(String, NodeId)>,
    pub switches: Vec<(String, NodeId)>,
    /// By name, in the order of the topology; direction 0 leaves the node that is named first.
    pub links: Vec<(String, LinkId)>,
    time_limit: Time,
    stop: Stop,
    next_look: Time,
}

/// Where a simulation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabProgress {
    Running,
    /// Every flow has ended, well or not.
    Done,
    /// The time limit has come first, or the scenario runs to it.
    TimeLimit,
    /// Nothing is left to happen, although not every flow has ended.
    Idle,
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Simulation(#[from] SimError),
    #[error("at {at}: {cycle}; route around one of these links, or set switch.pfc = false")]
    Deadlock { at: Time, cycle: PauseCycle },
}

impl Lab {
    /// Pauses that last longer than this and wait for each other are a deadlock: congestion that dissolves has done so.
    const DEADLOCK_HELD: Time = Time::from_ms(10);

    pub(super) fn new(
        scenario: &LabScenario,
        engine: Engine,
        ledger: SharedLedger,
        flows: Vec<FlowInfo>,
        hosts: Vec<(String, NodeId)>,
        switches: Vec<(String, NodeId)>,
        links: Vec<(String, LinkId)>,
    ) -> Self {
        let (time_limit, stop) = (scenario.run.time_limit, scenario.run.stop);
        let next_look = Self::DEADLOCK_HELD;
        Lab { engine, ledger, flows, hosts, switches, links, time_limit, stop, next_look }
    }

    pub fn now(&self) -> Time {
        self.engine.now()
    }

    pub fn time_limit(&self) -> Time {
        self.time_limit
    }

    /// Lets the simulation run up to `until`, at most to its end. To be called again and again with later times: the end
    /// is seen only when a call returns.
    pub fn advance(&mut self, until: Time) -> Result<LabProgress, RunError> {
        let until = until.min(self.time_limit);
        let mut idle = false;
        while self.now() < until && !idle {
            idle = self.engine.run_on(until.min(self.next_look))? == RunEnd::Idle;
            if self.now() >= self.next_look {
                self.next_look = self.now() + Self::DEADLOCK_HELD;
                self.look_for_deadlock()?;
            }
        }
        let done = self.ledger.borrow().all_done();
        let progress = match idle {
            _ if done && (idle || self.stop == Stop::Done) => LabProgress::Done,
            true => LabProgress::Idle,
            false if until == self.time_limit => LabProgress::TimeLimit,
            false => LabProgress::Running,
        };
        if progress != LabProgress::Running {
            self.settle();
        }
        Ok(progress)
    }

    /// Completes the counters of pause frames, for whoever looks at them before `advance` has come to an end.
    pub fn settle(&mut self) {
        self.engine.settle_renewals();
    }

    fn look_for_deadlock(&mut self) -> Result<(), RunError> {
        let switches: Vec<NodeId> = self.switches.iter().map(|(_, id)| *id).collect();
        match find_pause_cycle(&self.engine, &switches, Self::DEADLOCK_HELD) {
            Some(cycle) => {
                self.settle();
                Err(RunError::Deadlock { at: self.now(), cycle })
            }
            None => Ok(()),
        }
    }

    /// Runs to the end.
    pub fn run(&mut self) -> Result<LabProgress, RunError> {
        let step = Time::from_us(100);
        loop {
            let progress = self.advance(self.now() + step)?;
            if progress != LabProgress::Running {
                return Ok(progress);
            }
        }
    }
}
