// SPDX-License-Identifier: Apache-2.0
//! A simulation of the laboratory and its progress.
//! Promise: a run ends as its scenario specifies, or with an error if switches wait for each other in a cycle.

use penstock_netsim::{
    find_pause_cycle, Engine, LinkId, NodeId, PauseCycle, PortId, RunEnd, SharedLedger, SimError, Switch,
};

use crate::flow::FlowInfo;
use crate::phases::{Phase, Phases};
use crate::reroute::{CutOff, Reroutes};
use crate::scenario::{LabScenario, Stop};
use crate::units::Time;

/// A simulation, ready to run.
pub struct Lab {
    pub engine: Engine,
    pub ledger: SharedLedger,
    /// The flows by number.
    pub flows: Vec<FlowInfo>,
    /// Hosts and switches by name, in the order of the topology.
    pub hosts: Vec<(String, NodeId)>,
    pub switches: Vec<(String, NodeId)>,
    /// The links by name, in the order of the topology; direction 0 leaves the node that is named first.
    pub links: Vec<(String, LinkId)>,
    time_limit: Time,
    stop: Stop,
    /// Whether a flow has no end but the time limit, by number.
    endless: Vec<bool>,
    next_look: Time,
    next_sample: Time,
    /// Bytes that waited at each port of each switch, summed over the samples.
    queues: Vec<Vec<u64>>,
    samples: u64,
    /// Events complete at each sample.
    completed: Vec<u64>,
    reroutes: Reroutes,
    phases: Option<Phases>,
}

/// The progress of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabProgress {
    Running,
    /// Every flow has ended, well or not, or has no end but the time limit that has come.
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
    /// Time from one look at the queues to the next.
    const SAMPLE: Time = Time::from_us(100);

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
        let (next_sample, samples) = (Self::SAMPLE, 0);
        let queues = vec![Vec::new(); switches.len()];
        ledger.borrow_mut().set_warm_up(scenario.run.warm_up);
        let endless = scenario.flows.iter().map(|flow| scenario.is_endless(flow)).collect();
        Lab {
            engine,
            ledger,
            flows,
            hosts,
            switches,
            links,
            time_limit,
            stop,
            endless,
            next_look,
            next_sample,
            queues,
            samples,
            completed: Vec::new(),
            reroutes: Reroutes::default(),
            phases: Phases::new(scenario.run.warm_up),
        }
    }

    /// The changes of routes by links that go down and come back.
    pub(super) fn set_reroutes(&mut self, reroutes: Reroutes) {
        self.reroutes = reroutes;
    }

    pub fn now(&self) -> Time {
        self.engine.now()
    }

    pub fn time_limit(&self) -> Time {
        self.time_limit
    }

    /// Lets the simulation run up to `until`, at most to its end. To be called again and again with later times: the
    /// end is seen only when a call returns.
    pub fn advance(&mut self, until: Time) -> Result<LabProgress, RunError> {
        let until = until.min(self.time_limit);
        let mut idle = false;
        while self.now() < until && !idle {
            let reroute = self.reroutes.next().unwrap_or(Time::MAX);
            let phase = self.phases.as_ref().and_then(|phases| phases.next(self.now())).unwrap_or(Time::MAX);
            let next = until.min(self.next_look).min(self.next_sample).min(reroute).min(phase);
            idle = self.engine.run_on(next)? == RunEnd::Idle;
            if self.now() == phase {
                self.count_phase();
            }
            if self.now() >= reroute {
                self.reroutes.apply(self.now(), &mut self.engine, &self.switches);
            }
            if self.now() >= self.next_sample {
                self.next_sample = self.now() + Self::SAMPLE;
                self.sample_queues();
            }
            if self.now() >= self.next_look {
                self.next_look = self.now() + Self::DEADLOCK_HELD;
                self.look_for_deadlock()?;
            }
        }
        let done = self.ledger.borrow().all_done();
        let progress = match idle {
            _ if done && (idle || self.stop == Stop::Done) => LabProgress::Done,
            true => LabProgress::Idle,
            false if until == self.time_limit && self.only_endless_are_left() => LabProgress::Done,
            false if until == self.time_limit => LabProgress::TimeLimit,
            false => LabProgress::Running,
        };
        if progress != LabProgress::Running {
            self.settle();
        }
        Ok(progress)
    }

    /// Whether every flow is over but those that the time limit ends.
    fn only_endless_are_left(&self) -> bool {
        self.ledger.borrow().flows().iter().zip(&self.endless).all(|(record, endless)| *endless || record.is_over())
    }

    fn sample_queues(&mut self) {
        self.samples += 1;
        self.completed.push(self.ledger.borrow().events.complete);
        for ((_, id), sums) in self.switches.iter().zip(&mut self.queues) {
            let Some(switch) = self.engine.switch(*id) else { continue };
            sums.resize(usize::from(switch.port_count()), 0);
            for (port, sum) in sums.iter_mut().enumerate() {
                let bytes = switch.queue_bytes(PortId(port as u16));
                *sum += bytes;
                self.phases.iter_mut().for_each(|phases| phases.see_queue(self.engine.now(), bytes));
            }
        }
    }

    /// Mean of the bytes that waited at a port of switch `switch`, over samples of 100 us; 0 before the first.
    pub fn mean_queue(&self, switch: usize, port: PortId) -> f64 {
        let sum = self.queues[switch].get(usize::from(port.0)).copied().unwrap_or(0);
        sum as f64 / self.samples.max(1) as f64
    }

    /// The flows to whose destination no way led at some time.
    pub fn cut_off(&self) -> &[CutOff] {
        self.reroutes.cut_off()
    }

    /// Events that were complete at the last sample up to `time`; samples are 100 us apart.
    pub fn completed_by(&self, time: Time) -> u64 {
        let sample = (time.as_ps() / Self::SAMPLE.as_ps()) as usize;
        sample.checked_sub(1).and_then(|sample| self.completed.get(sample)).copied().unwrap_or(0)
    }

    /// Completes the counters of pause frames, for callers that read them before `advance` has ended.
    pub fn settle(&mut self) {
        self.engine.settle_renewals();
        self.count_phase();
    }

    fn count_phase(&mut self) {
        let Lab { engine, ledger, switches, phases, .. } = self;
        phases.iter_mut().for_each(|phases| phases.count(engine, ledger, switches));
    }

    /// The start-up and the steady state; `None` without a warm-up, and for a run that ended in it.
    pub(crate) fn phases(&self) -> Option<[Phase; 2]> {
        self.phases.as_ref()?.both()
    }

    /// Lets the switches mark as in this scenario from now on; it must not differ from the lab's own in other settings.
    pub fn set_marking(&mut self, scenario: &LabScenario) {
        for (spec, (_, id)) in scenario.switches.iter().zip(&self.switches) {
            let Some(switch) = self.engine.node_mut::<Switch>(*id) else { continue };
            for (port, link) in scenario.topology.nodes[spec.node].ports.iter().enumerate() {
                switch.set_ecn(PortId(port as u16), spec.marking(scenario.topology.links[*link].params.rate));
            }
        }
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
