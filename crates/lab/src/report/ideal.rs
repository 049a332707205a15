// SPDX-License-Identifier: Apache-2.0
//! The same load in a network that holds nothing back: no rate limiter, no marks, no pauses, no faults, and switches
//! whose buffers never end. What is late there is late in any network of these links; what waits at a port there is the
//! buffer that the port would have needed.
//! Promise: the run it is compared with is not changed, and the same seed gives the same result.

use penstock_cc::Law;
use penstock_netsim::{Faults, PortId, Scheduling, SwitchParams};
use serde::Serialize;

use super::quantiles::Quantiles;
use crate::makers::SoftwareOnly;
use crate::offered::{offered, OfferedLoad};
use crate::run::{Lab, LabProgress};
use crate::scenario::{LabScenario, LabVerb, Mode, Protocol, SenderKind, Workload};
use crate::topology::Routes;
use crate::units::{ByteSize, Time};
use crate::workload::Pace;

/// One look at all ports in this time: a port's load is that of a window.
const WINDOW: Time = Time::from_ms(1);
/// A load that leaves more than this at a link is not simulated: each packet that waits takes memory.
const MOST_WAITING: f64 = 256e6;
/// The maximum number of ports that are listed.
const MAX_LISTED: usize = 16;
/// A port is overloaded while more waits there than the link carries in this part of a window.
const OVERLOADED: u64 = 10;

/// The same load in a network that holds nothing back.
#[derive(Debug, Clone, Serialize)]
pub struct Ideal {
    /// Completion of the events, of the messages of all flows without events; of those after a warm-up.
    pub completion_us: Quantiles,
    /// The bytes that waited at most in each switch, and those that it has.
    pub buffers: Vec<IdealBuffer>,
    /// Ports of switches at which most waited, in proportion to their rate.
    pub ports: Vec<IdealPort>,
}

/// What a switch would have needed to hold all that waited.
#[derive(Debug, Clone, Serialize)]
pub struct IdealBuffer {
    pub switch: String,
    pub needed_bytes: u64,
    /// The buffer in force.
    pub buffer_bytes: u64,
}

/// The load of a port of a switch over time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct IdealPort {
    pub from: String,
    pub to: String,
    pub needed_bytes: u64,
    /// The most that came in a millisecond after the warm-up, 1 being what the link carries, and when that began.
    pub worst_share: f64,
    pub worst_at_s: f64,
    /// The longest time in which more waited than the link carries in 0.1 ms, with its end; 0 if that never happened.
    pub overloaded_s: f64,
    pub drained_at_s: f64,
}

/// Runs the load of `scenario` without what holds it back. `None` if a flow has no pace, since it then sends as much as
/// any network takes, or if a link is offered so much more than it carries over `lasted_s` that the backlog would not fit
/// into memory.
pub fn ideal(scenario: &LabScenario, lasted_s: f64) -> Option<Ideal> {
    let greedy = |workload: &Workload| matches!(workload, Workload::Steady(steady) if steady.pace == Pace::Greedy);
    if scenario.flows.is_empty() || scenario.flows.iter().any(|flow| greedy(&flow.workload)) {
        return None;
    }
    let loads = offered(scenario, &Routes::shortest(&scenario.topology));
    let beyond = |load: &OfferedLoad| (load.wire_bps - load.capacity_bps).max(0.0) / 8.0;
    let waiting: f64 = loads.iter().map(beyond).sum::<f64>() * lasted_s;
    if waiting > MOST_WAITING {
        return None;
    }
    let free = unhindered(scenario);
    let mut lab = Lab::build(&free, &mut SoftwareOnly).ok()?;
    let mut ports = Ports::new(scenario, &lab);
    while lab.advance(lab.now() + WINDOW).ok()? == LabProgress::Running {
        ports.look(&lab);
    }
    ports.look(&lab);
    let ledger = lab.ledger.borrow();
    let (all, phases) = match scenario.events.is_some() {
        true => (&ledger.events.completion, &ledger.events.phases),
        false => (&ledger.completion, &ledger.phases),
    };
    let completion = if scenario.run.warm_up > Time::ZERO { &phases.steady } else { all };
    let buffer = |((name, id), spec): (&(String, _), &crate::scenario::SwitchSpec)| {
        let stats = lab.engine.switch(*id).map(|switch| switch.stats());
        IdealBuffer {
            switch: name.clone(),
            needed_bytes: stats.map_or(0, |stats| stats.peak_buffer_bytes),
            buffer_bytes: spec.params.buffer.bytes(),
        }
    };
    Some(Ideal {
        completion_us: Quantiles::from(completion),
        buffers: lab.switches.iter().zip(&scenario.switches).map(buffer).collect(),
        ports: ports.fullest(&lab),
    })
}

fn unhindered(scenario: &LabScenario) -> LabScenario {
    let mut free = scenario.clone();
    free.readout = None;
    free.recorded = None;
    free.changes.clear();
    free.capture.links.clear();
    free.trace.interval = Time::ZERO;
    free.topology.links.iter_mut().for_each(|link| link.params.faults = Faults::default());
    for switch in &mut free.switches {
        switch.gateware = false;
        let buffer = ByteSize(u64::MAX / 4);
        switch.params = SwitchParams { buffer, scheduling: Scheduling::Strict, ..SwitchParams::default() };
    }
    for flow in &mut free.flows {
        flow.sender = SenderKind::Software;
        flow.protocol = Protocol::Rc;
        flow.law = Law::Off;
        flow.mode = Mode::Push;
    }
    free.qp.verb = LabVerb::WriteImm;
    free.qp.ack_timeout_code = 0;
    free.qp.window = 1 << 22;
    free.qp.cnp_above = None;
    free.qp.consumer = None;
    free
}

/// Observes the ports of all switches, window by window.
struct Ports {
    /// The ports of each switch.
    loads: Vec<Vec<Watched>>,
    since: Time,
    /// What happens up to then is the start-up's.
    warm_up: Time,
}

struct Watched {
    load: IdealPort,
    /// Bytes that the link carries in a window.
    carries: u64,
    tx_bytes: u64,
    queue: u64,
    overloaded_since: Option<Time>,
}

impl Ports {
    fn new(scenario: &LabScenario, lab: &Lab) -> Self {
        let name = |node| scenario.topology.name(node).to_owned();
        let loads = lab.switches.iter().zip(&scenario.switches).map(|(_, spec)| {
            let links = scenario.topology.nodes[spec.node].ports.iter().map(|link| &scenario.topology.links[*link]);
            let watched = |link: &crate::topology::TopologyLink| Watched {
                load: IdealPort { from: name(spec.node), to: name(link.peer(spec.node)), ..IdealPort::default() },
                carries: link.params.rate.bytes_in(WINDOW).bytes(),
                tx_bytes: 0,
                queue: 0,
                overloaded_since: None,
            };
            links.map(watched).collect()
        });
        Ports { loads: loads.collect(), since: Time::ZERO, warm_up: scenario.run.warm_up }
    }

    fn look(&mut self, lab: &Lab) {
        let (now, since) = (lab.now(), self.since);
        if now == since {
            return;
        }
        for ((_, id), ports) in lab.switches.iter().zip(&mut self.loads) {
            let Some(switch) = lab.engine.switch(*id) else { continue };
            for (number, port) in ports.iter_mut().enumerate() {
                let number = PortId(number as u16);
                let (tx_bytes, queue) = (switch.port_stats(number, now).tx_bytes, switch.queue_bytes(number));
                match since < self.warm_up {
                    true => (port.tx_bytes, port.queue) = (tx_bytes, queue),
                    false => port.close(since, now, tx_bytes, queue),
                }
            }
        }
        self.since = now;
    }

    /// The ports that would have needed most in proportion to their rate.
    fn fullest(mut self, lab: &Lab) -> Vec<IdealPort> {
        let mut all = Vec::new();
        for ((_, id), ports) in lab.switches.iter().zip(&mut self.loads) {
            let Some(switch) = lab.engine.switch(*id) else { continue };
            for (number, mut port) in ports.drain(..).enumerate() {
                port.end_overload(lab.now());
                port.load.needed_bytes = switch.port_stats(PortId(number as u16), lab.now()).peak_queue_bytes;
                all.push((port.load.needed_bytes as f64 / port.carries.max(1) as f64, port.load));
            }
        }
        all.retain(|(_, load)| load.worst_share > 0.0);
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(MAX_LISTED);
        all.into_iter().map(|(_, load)| load).collect()
    }
}

impl Watched {
    /// Ends a window: what came is what left and what waits more than before.
    fn close(&mut self, since: Time, now: Time, tx_bytes: u64, queue: u64) {
        let came = (tx_bytes - self.tx_bytes + queue).saturating_sub(self.queue);
        let share = came as f64 / self.carries.max(1) as f64;
        if share > self.load.worst_share {
            (self.load.worst_share, self.load.worst_at_s) = (share, since.as_secs_f64());
        }
        if queue > self.carries / OVERLOADED {
            self.overloaded_since.get_or_insert(since);
        } else {
            self.end_overload(now);
        }
        (self.tx_bytes, self.queue) = (tx_bytes, queue);
    }

    fn end_overload(&mut self, now: Time) {
        let Some(since) = self.overloaded_since.take() else { return };
        let lasted = now.saturating_sub(since).as_secs_f64();
        if lasted > self.load.overloaded_s {
            (self.load.overloaded_s, self.load.drained_at_s) = (lasted, now.as_secs_f64());
        }
    }
}
