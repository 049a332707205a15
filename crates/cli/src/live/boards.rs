// SPDX-License-Identifier: Apache-2.0
//! The page of a run of boards: what it shows, and its controls.
//! Promise: a control is checked as `--set` is, becomes writes to the registers of the boards it names, and is noted.

use super::Plan;
use crate::simulation::{Simulation, BOARD_CLOCK_HZ};
use penstock_board::dcqcn_words;
use penstock_dashboard::{
    Applied, ControlError, Manifest, Parameter, Queue, Request, Scope, Sender, Series, Settings, Shared, Total,
};
use penstock_netsim::{Scenario, ScenarioError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::PoisonError;

const fn of_board(key: &'static str, label: &'static str, help: &'static str) -> Parameter {
    Parameter { key, label, help, scope: Scope::Sender, choices: &[] }
}

const fn of_switch(key: &'static str, label: &'static str, help: &'static str) -> Parameter {
    Parameter { key, label, help, scope: Scope::Run, choices: &[] }
}

const fn choice(parameter: Parameter, choices: &'static [&'static str]) -> Parameter {
    Parameter { choices, ..parameter }
}

/// What can be changed while boards run: what their registers hold, and the switch's marking.
pub(super) const PARAMETERS: [Parameter; 17] = [
    choice(of_board("cc.law", "Law", "Who decides the rate: DCQCN, or nobody"), &["dcqcn", "off"]),
    of_board("cc.g", "g", "Weight of a new CNP in alpha, an inverse power of two: 1/256"),
    of_board("cc.rate_ai", "R_AI", "Additive increase of R_T: 40Mbps"),
    of_board("cc.rate_hai", "R_HAI", "Hyper increase of R_T: 100Mbps"),
    of_board("cc.rate_min", "R_min", "R_C never falls below this: 10Mbps"),
    of_board("cc.decrease_interval", "Decrease interval", "At most one cut in this time: 3us"),
    of_board("cc.alpha_interval", "Alpha interval", "Alpha decays after each such time without a CNP: 40us"),
    of_board("cc.increase_interval", "Increase interval", "Recovery events by time: 55us; 0us: none"),
    of_board("cc.byte_threshold", "Byte counter", "Recovery events by bytes sent: 10MB; 0B: none"),
    of_board("cc.stage_threshold", "F", "Recovery events before additive increase, 0 to 15"),
    of_board("cc.hyper_threshold", "Hyper after", "Recovery events before hyper increase (single counter)"),
    choice(
        of_board("cc.stage_counting", "Stage counting", "One counter (AdvCam) or one a trigger (Zhu et al.)"),
        &["single", "per-trigger"],
    ),
    choice(of_board("cc.clamp_target", "Clamp R_T", "A cut lowers the target rate too"), &["true", "false"]),
    choice(of_board("cc.restart_timer", "Restart timer", "A cut restarts the increase interval"), &["true", "false"]),
    of_switch("switch.kmin", "K_min", "The switch never marks below this queue: 50KB"),
    of_switch("switch.kmax", "K_max", "It marks every packet above this queue: 200KB"),
    of_switch("switch.pmax", "P_max", "Between them with a probability up to this, 0 to 1"),
];

/// Values by key, as after `--set`.
type Values = BTreeMap<String, String>;

/// Controls of a run of boards.
pub struct BoardHelm {
    path: PathBuf,
    text: String,
    /// `--set` of the command line, then of every board and of the switch what pages have set.
    given: Vec<String>,
    boards: Vec<Values>,
    switch: Values,
}

impl BoardHelm {
    pub fn new(path: PathBuf, text: String, given: Vec<String>, boards: u16) -> Self {
        Self { path, text, given, boards: vec![BTreeMap::new(); boards.into()], switch: BTreeMap::new() }
    }

    /// What a page shows of a run of boards; steerable when it is served.
    pub fn manifest(&self, scenario: &Scenario, served: bool) -> (Manifest, Plan) {
        let mut plan = Plan::default();
        let count = scenario.boards.count;
        let senders = (0..count).map(|k| sender(scenario, k, &mut plan)).collect();
        let pausing = plan.greatest(Scenario::SWITCH, 0..count, "pfc_pausing");
        let queues = (0..=count).rev().map(|port| queue(scenario, port, pausing, &mut plan)).collect();
        let totals = vec![
            Total { name: "events built", unit: "", column: plan.column(Scenario::SERVER, 0, "events_built") },
            Total { name: "switch buffer in use", unit: "B", column: plan.column(Scenario::SWITCH, 0, "buffer_bytes") },
        ];
        let mut notes = Vec::new();
        if scenario.trace.interval.as_ps() == 0 {
            notes.push("This scenario records no trace: set trace.interval to see its charts.".to_owned());
        }
        let manifest = Manifest {
            title: self.path.display().to_string(),
            kind: "boards",
            interval_ps: scenario.trace.interval.as_ps(),
            senders,
            queues,
            totals,
            parameters: if served { PARAMETERS.to_vec() } else { Vec::new() },
            notes,
            columns: plan.count(),
        };
        (manifest, plan)
    }

    /// The settings in force.
    pub fn settings(&self, scenario: &Scenario) -> Settings {
        let mut settings = Settings::default();
        let mut seen: Vec<(&Values, Values)> = Vec::new();
        for board in &self.boards {
            let known = seen.iter().find(|(overrides, _)| *overrides == board).map(|(_, values)| values.clone());
            let values = known.unwrap_or_else(|| match board.is_empty() {
                true => in_force(scenario, Scope::Sender),
                false => self.parse(board).map(|own| in_force(&own, Scope::Sender)).unwrap_or_default(),
            });
            seen.push((board, values.clone()));
            settings.senders.push(values);
        }
        let switch = self.parse(&self.switch);
        let switch = switch.as_ref().unwrap_or(scenario);
        settings.run = in_force(switch, Scope::Run);
        settings.ecn =
            switch.switch.ecn[usize::from(scenario.qp.class())].map(|ecn| (ecn.kmin.bytes(), ecn.kmax.bytes()));
        settings
    }

    /// Applies a page's control and answers it.
    pub fn handle(&mut self, request: Request, simulation: &mut Simulation, scenario: &Scenario, recording: &Shared) {
        let applied = self.apply(&request, simulation);
        let answer = applied.map(|all| {
            let settings = self.settings(scenario);
            let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
            for one in all {
                recording.steer(settings.clone(), one);
            }
        });
        request.answer(answer);
    }

    fn apply(&mut self, request: &Request, simulation: &mut Simulation) -> Result<Vec<Applied>, ControlError> {
        let refused = |error: &dyn std::fmt::Display| ControlError::Refused(error.to_string());
        let control = &request.control;
        let boards = self.boards_of(&control.senders)?;
        let (mut of_boards, mut of_switch) = (BTreeMap::new(), BTreeMap::new());
        for (key, value) in &control.set {
            let parameter = PARAMETERS.iter().find(|parameter| parameter.key == key);
            let parameter = parameter.ok_or_else(|| refused(&format!("{key}: this cannot be changed in a run")))?;
            let target = if parameter.scope == Scope::Run { &mut of_switch } else { &mut of_boards };
            target.insert(key.clone(), value.trim().to_owned());
        }
        let at_ps = simulation.now().as_ps();
        let mut applied: Vec<Applied> = Vec::new();
        let mut changed = Vec::new();
        // Everything is checked before anything is written.
        for k in boards.into_iter().filter(|_| !of_boards.is_empty()) {
            let mut own = self.boards[k].clone();
            own.extend(of_boards.clone());
            let scenario = self.parse(&own).map_err(|error| refused(&error))?;
            let words =
                dcqcn_words(0, &scenario.cc.at_clock(BOARD_CLOCK_HZ).map_err(|error| refused(&error))?).to_vec();
            let name = Scenario::board_name(k as u16);
            match applied.iter_mut().find(|one| one.registers == words) {
                Some(same) => same.senders.push(name),
                None => {
                    let set = of_boards.clone();
                    applied.push(Applied { at_ps, senders: vec![name], set, registers: words.clone() });
                }
            }
            changed.push((k, own, words));
        }
        if !of_switch.is_empty() {
            let mut own = self.switch.clone();
            own.extend(of_switch.clone());
            let scenario = self.parse(&own).map_err(|error| refused(&error))?;
            simulation.set_ecn(scenario.switch.ecn);
            self.switch = own;
            applied.push(Applied { at_ps, senders: Vec::new(), set: of_switch, registers: Vec::new() });
        }
        for (k, own, words) in changed {
            simulation.write_registers(k as u16, &words);
            self.boards[k] = own;
        }
        Ok(applied)
    }

    /// Numbers of the boards that a control names; all, if it names none.
    fn boards_of(&self, names: &[String]) -> Result<Vec<usize>, ControlError> {
        let all = 0..self.boards.len();
        if names.is_empty() {
            return Ok(all.collect());
        }
        let number = |name: &String| {
            let found = all.clone().find(|k| Scenario::board_name(*k as u16) == *name);
            found.ok_or_else(|| ControlError::UnknownSender(name.clone()))
        };
        names.iter().map(number).collect()
    }

    /// The scenario with some more `--set`.
    fn parse(&self, overrides: &Values) -> Result<Scenario, ScenarioError> {
        let more = overrides.iter().map(|(key, value)| format!("{key}={value}"));
        let sets: Vec<String> = self.given.iter().cloned().chain(more).collect();
        Scenario::parse(&self.path, &self.text, &sets)
    }
}

fn in_force(scenario: &Scenario, scope: Scope) -> Values {
    let steerable = |key: &str| PARAMETERS.iter().any(|parameter| parameter.key == key && parameter.scope == scope);
    scenario.settings.iter().filter(|(key, _)| steerable(key)).cloned().collect()
}

fn sender(scenario: &Scenario, k: u16, plan: &mut Plan) -> Sender {
    let name = Scenario::board_name(k);
    let metrics = ["throughput", "rate_current", "rate_target", "alpha", "cnp_handled", "paused"];
    let series: Series = metrics.map(|metric| (metric, plan.column(&name, 0, metric))).into();
    let at_server = ["rx_payload_bytes", "np_ecn_marked_roce_packets", "np_cnp_sent"];
    let counters: Series = at_server.map(|metric| (metric, plan.column(Scenario::SERVER, k, metric))).into();
    let rate = |link: &str| scenario.link_of(link).rate.bits_per_second() as f64;
    Sender { link_bps: rate(&name), limit_bps: rate(Scenario::SERVER), name, series, counters }
}

/// `pausing`: the column that says whether the switch pauses a board.
fn queue(scenario: &Scenario, port: u16, pausing: usize, plan: &mut Plan) -> Queue {
    let count = scenario.boards.count;
    let to = if port == count { Scenario::SERVER.to_owned() } else { Scenario::board_name(port) };
    Queue { name: format!("{} > {to}", Scenario::SWITCH), series: plan.queue(Scenario::SWITCH, port, None, pausing) }
}
