// SPDX-License-Identifier: Apache-2.0
//! The controls of a run with verilated boards.
//! Promise: a control is checked like `--set`, becomes writes to the registers of the boards it names, and is logged.

use super::arguments::Arguments;
use super::board::dcqcn_of;
use super::page::thresholds;
use penstock_board::{BoardNode, LineClock};
use penstock_cli_common::live::PARAMETERS;
use penstock_dashboard::{Applied, ControlError, Request, Scope, Settings, Shared};
use penstock_ipbus::dcqcn::dcqcn_words;
use penstock_lab::{Lab, LabScenario, ScenarioError, SenderKind};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::PoisonError;

/// Values by key, as after `--set`.
type Values = BTreeMap<String, String>;

/// Writes to registers: addresses and values.
type Words = Vec<(u32, u32)>;

/// Controls of a run with boards as senders.
pub struct Helm {
    path: PathBuf,
    text: String,
    /// `--set` of the command line, then of every board and of the switches what pages have set.
    given: Vec<String>,
    /// The board's name, the flow's number and what pages have set, for each flow that a board sends.
    boards: Vec<(String, usize, Values)>,
    switches: Values,
}

fn refused(error: impl std::fmt::Display) -> ControlError {
    ControlError::Refused(error.to_string())
}

impl Helm {
    /// Controls of all boards of a scenario.
    ///
    /// # Errors
    /// Its file cannot be read any more.
    pub fn new(arguments: &Arguments, scenario: &LabScenario) -> std::io::Result<Self> {
        let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.sender == SenderKind::Gateware);
        let board = |(number, flow): (usize, &penstock_lab::FlowSpec)| {
            (scenario.topology.name(flow.from).to_owned(), number, Values::new())
        };
        Ok(Helm {
            path: arguments.scenario.clone(),
            text: std::fs::read_to_string(&arguments.scenario)?,
            given: arguments.set.clone(),
            boards: flows.map(board).collect(),
            switches: Values::new(),
        })
    }

    /// The settings in force.
    pub fn settings(&self, scenario: &LabScenario) -> Settings {
        let mut seen: Vec<(&Values, Values)> = vec![];
        let mut senders = Vec::new();
        for (_, _, chosen) in &self.boards {
            let found = seen.iter().find(|(overrides, _)| *overrides == chosen).map(|(_, values)| values.clone());
            let values = found.unwrap_or_else(|| match chosen.is_empty() {
                true => in_force(scenario, Scope::Sender),
                false => self.parse(chosen).map(|chosen| in_force(&chosen, Scope::Sender)).unwrap_or_default(),
            });
            seen.push((chosen, values.clone()));
            senders.push(values);
        }
        let switched = if self.switches.is_empty() { None } else { self.parse(&self.switches).ok() };
        let switched = switched.as_ref().unwrap_or(scenario);
        Settings { senders, run: in_force(switched, Scope::Run), ecn: thresholds(switched), ..Settings::default() }
    }

    /// Applies a page's control and answers it.
    pub fn handle(&mut self, request: Request, lab: &mut Lab, scenario: &LabScenario, recording: &Shared) {
        let answer = self.apply(&request, lab).map(|all| {
            let settings = self.settings(scenario);
            let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
            for one in all {
                recording.steer(settings.clone(), one);
            }
        });
        request.answer(answer);
    }

    fn apply(&mut self, request: &Request, lab: &mut Lab) -> Result<Vec<Applied>, ControlError> {
        let control = &request.control;
        let boards = self.boards_of(&control.senders)?;
        let (mut of_boards, mut of_switches) = (BTreeMap::new(), BTreeMap::new());
        for (key, value) in &control.set {
            let parameter = PARAMETERS.iter().find(|parameter| parameter.key == key);
            let parameter = parameter.ok_or_else(|| refused(format!("{key}: this cannot be changed in a run")))?;
            let target = if parameter.scope == Scope::Run { &mut of_switches } else { &mut of_boards };
            target.insert(key.clone(), value.trim().to_owned());
        }
        let at_ps = lab.now().as_ps();
        let mut applied: Vec<Applied> = Vec::new();
        let mut changed: Vec<(usize, Values, Words)> = Vec::new();
        // Everything is checked before anything is written.
        for k in boards.into_iter().filter(|_| !of_boards.is_empty()) {
            let (name, flow, chosen) = &self.boards[k];
            let node: &mut BoardNode =
                lab.engine.node_mut(lab.flows[*flow].sender).expect("senders of gateware are boards");
            let clock = node.clock();
            let mut chosen = chosen.clone();
            chosen.extend(of_boards.clone());
            let found = changed.iter().find(|(_, values, _)| *values == chosen).map(|(_, _, words)| words.clone());
            let words = found.map_or_else(|| self.registers(&chosen, *flow, clock), Ok)?;
            match applied.iter_mut().find(|one| one.registers == words) {
                Some(same) => same.senders.push(name.clone()),
                None => {
                    let (senders, set) = (vec![name.clone()], of_boards.clone());
                    applied.push(Applied { at_ps, senders, set, registers: words.clone() });
                }
            }
            changed.push((k, chosen, words));
        }
        if !of_switches.is_empty() {
            let mut chosen = self.switches.clone();
            chosen.extend(of_switches.clone());
            lab.set_marking(&self.parse(&chosen).map_err(refused)?);
            self.switches = chosen;
            applied.push(Applied { at_ps, senders: Vec::new(), set: of_switches, registers: Vec::new() });
        }
        for (k, chosen, words) in changed {
            let sender = lab.flows[self.boards[k].1].sender;
            let node: &mut BoardNode = lab.engine.node_mut(sender).expect("senders of gateware are boards");
            words.iter().for_each(|(address, value)| node.queue_write(*address, *value));
            self.boards[k].2 = chosen;
        }
        Ok(applied)
    }

    /// The registers of a flow's board, with this clock, with these settings.
    fn registers(&self, chosen: &Values, flow: usize, clock: LineClock) -> Result<Words, ControlError> {
        let scenario = self.parse(chosen).map_err(refused)?;
        let group = scenario.flows[..flow].iter().filter(|other| other.from == scenario.flows[flow].from).count();
        Ok(dcqcn_words(group as u8, &dcqcn_of(&scenario.flows[flow], clock).map_err(refused)?).to_vec())
    }

    /// Which flows of boards a control names, by the boards' names; all, if it names none.
    fn boards_of(&self, names: &[String]) -> Result<Vec<usize>, ControlError> {
        if let Some(unknown) = names.iter().find(|name| self.boards.iter().all(|(board, ..)| board != *name)) {
            return Err(ControlError::UnknownSender(unknown.clone()));
        }
        let named = |k: &usize| names.is_empty() || names.contains(&self.boards[*k].0);
        Ok((0..self.boards.len()).filter(named).collect())
    }

    /// The scenario with some more `--set`.
    fn parse(&self, overrides: &Values) -> Result<LabScenario, ScenarioError> {
        let more = overrides.iter().map(|(key, value)| format!("{key}={value}"));
        let sets: Vec<String> = self.given.iter().cloned().chain(more).collect();
        LabScenario::parse(&self.path, &self.text, &sets, &|path| std::fs::read(path))
    }
}

fn in_force(scenario: &LabScenario, scope: Scope) -> Values {
    let steerable = |key: &str| PARAMETERS.iter().any(|parameter| parameter.key == key && parameter.scope == scope);
    scenario.settings.iter().filter(|(key, _)| steerable(key)).cloned().collect()
}
