// SPDX-License-Identifier: Apache-2.0
//! The page of `penstock board`: one live board, the threshold of its emulated switch, and its controls.
//! Promise: a control is checked as the scenario's keys are, and becomes writes to the board's registers or a
//! threshold.

use super::session::Session;
use penstock_board::{qp_register, regs, LineClock, RegisterError};
use penstock_cli_common::live::{Page, PARAMETERS};
use penstock_dashboard::{
    Applied, ControlError, Manifest, Parameter, Recorder, Request, Scope, Sender, Series, Settings, Shared,
};
use penstock_ipbus::dcqcn::dcqcn_words;
use penstock_lab::{ScenarioError, SwitchScenario};
use penstock_netsim::{Rate, Time};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Time from one row to the next.
const ROW: Time = Time::from_us(10);
/// The key of a threshold that takes the place of the scenario's steps.
const THRESHOLD: &str = "switch.threshold";

// Columns of the recording.
const THROUGHPUT: usize = 0;
const CURRENT: usize = 1;
const TARGET: usize = 2;
const ALPHA: usize = 3;
const CNPS: usize = 4;
const PAUSED: usize = 5;
const MESSAGES_OK: usize = 6;
const MESSAGES_FAILED: usize = 7;
const SENT: usize = 8;
const RETRANSMITTED: usize = 9;
const COLUMNS: usize = 10;

/// What the page's controls change: `[cc]` of a scenario, or of none, with what pages have set.
pub struct BoardPage {
    path: PathBuf,
    text: String,
    given: Vec<String>,
    qp: u8,
    steerable: bool,
    recorder: Option<Recorder>,
    /// The next row, counted from the board's beginning.
    row: u64,
    /// Octets sent and cycles paused at the row before.
    octets: u64,
    paused_cycles: u64,
}

impl BoardPage {
    /// `scenario`: file and text of the emulated switch's, `given`: what the command line lays over it. A board under
    /// QCN has no parameters to steer here.
    pub fn new(scenario: Option<(&Path, String)>, given: Vec<String>, qp: u8, steerable: bool) -> Self {
        let (path, text) = scenario.map_or_else(no_scenario, |(p, t)| (p.into(), t));
        let (row, octets, paused_cycles) = (0, 0, 0);
        Self { path, text, given, qp, steerable, recorder: None, row, octets, paused_cycles }
    }

    /// The contents of the page of a board with this clock. `switched`: there is an emulated switch, with its threshold as a control.
    pub fn manifest(&self, name: &str, clock: LineClock, switched: bool) -> Manifest {
        let series: Series = [
            ("throughput", THROUGHPUT),
            ("rate_current", CURRENT),
            ("rate_target", TARGET),
            ("alpha", ALPHA),
            ("cnp_handled", CNPS),
            ("paused", PAUSED),
        ]
        .into();
        let counters: Series = [
            ("messages_ok", MESSAGES_OK),
            ("messages_failed", MESSAGES_FAILED),
            ("packets_sent", SENT),
            ("packets_retransmitted", RETRANSMITTED),
        ]
        .into();
        let threshold = Parameter {
            key: THRESHOLD,
            label: "Threshold",
            help:
                "Payload that the emulated switch lets pass without a CNP: 5Gbps, or none; in the place of its script",
            scope: Scope::Run,
            choices: &[],
        };
        let of_board = PARAMETERS.iter().filter(|parameter| self.steerable && parameter.scope == Scope::Sender);
        let mut notes = vec!["Time is the board's own, made as fast as this machine can.".to_owned()];
        notes.push(match switched {
            true => "Throughput is payload over the emulated switch's window.".to_owned(),
            false => "Throughput is all that is on the wire, as a mean of 10 us.".to_owned(),
        });
        let link_bps = clock.rate().bits_per_second() as f64;
        Manifest {
            title: self.path.display().to_string(),
            kind: "board",
            interval_ps: ROW.as_ps(),
            senders: vec![Sender { name: name.to_owned(), series, counters, link_bps, share_bps: link_bps }],
            all_senders: 1,
            throughput: if switched { "payload" } else { "wire" },
            parameters: of_board.cloned().chain(switched.then_some(threshold)).collect(),
            notes,
            columns: COLUMNS,
            ..Manifest::default()
        }
    }

    /// The settings in force.
    ///
    /// # Errors
    /// The scenario, or what was laid over it, is wrong.
    pub fn settings(&self, threshold: Option<Option<Rate>>) -> Result<Settings, ScenarioError> {
        let scenario = self.parse(&self.given)?;
        let mine = |key: &str| PARAMETERS.iter().any(|parameter| parameter.key == key);
        let of_board = scenario.settings.into_iter().filter(|(key, _)| self.steerable && mine(key)).collect();
        let run =
            threshold.map(|limit| (THRESHOLD.to_owned(), limit.map_or("none".to_owned(), |rate| rate.to_string())));
        Ok(Settings {
            senders: vec![of_board],
            run: run.into_iter().collect(),
            threshold_bps: threshold.flatten().map(|rate| rate.bits_per_second() as f64),
            ..Settings::default()
        })
    }

    /// Records into the page's recording from here on.
    pub fn record_into(&mut self, recording: Shared) {
        self.recorder = Some(Recorder::new(recording, 0));
    }

    /// Records the rows that are due, and reports the switch's present threshold to the page.
    ///
    /// # Errors
    /// The board does not answer.
    pub fn look(&mut self, session: &mut Session, page: &Page) -> Result<(), RegisterError> {
        let now = session.board.now();
        if now < ROW * self.row {
            return Ok(());
        }
        let values = self.values(session, now)?;
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        // Rows that the clock skipped in one turn get the values found after them.
        while ROW * self.row <= now {
            for (column, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                recorder.record((ROW * self.row).as_ps(), column, *value);
            }
            self.row += 1;
        }
        let threshold = threshold(session);
        let mut recording = page.recording().lock().unwrap_or_else(PoisonError::into_inner);
        let bps = threshold.flatten().map(|rate| rate.bits_per_second() as f64);
        if recording.settings.threshold_bps != bps {
            if let Ok(settings) = self.settings(threshold) {
                recording.set(settings);
            }
        }
        Ok(())
    }

    /// One row.
    fn values(&mut self, session: &mut Session, now: Time) -> Result<[f64; COLUMNS], RegisterError> {
        use regs::qp as q;
        let read = |session: &mut Session, at| session.board.read(qp_register(self.qp, at)).map(f64::from);
        let clock = session.board.clock();
        let mut values = [f64::NAN; COLUMNS];
        values[CNPS] = read(session, q::RP_CNP_HANDLED)?;
        values[SENT] = read(session, q::PACKETS_SENT)?;
        values[RETRANSMITTED] = read(session, q::PACKETS_RETRANSMITTED)?;
        values[MESSAGES_OK] = session.board.stats().messages.ok as f64;
        values[MESSAGES_FAILED] = session.board.stats().messages.failed() as f64;
        if let Some(sample) = session.rates.last() {
            values[CURRENT] = sample.current.to_rate(clock.hz).bits_per_second() as f64;
            values[TARGET] = sample.target.to_rate(clock.hz).bits_per_second() as f64;
            values[ALPHA] = f64::from(sample.alpha) / 65536.0;
        }
        let octets = session.board.stats().tx_octets;
        let paused = session.board.board().paused_cycles();
        let passed = (now - ROW * self.row.saturating_sub(1)).as_ps();
        if self.row > 0 && passed > 0 {
            values[PAUSED] = (paused - self.paused_cycles) as f64 * clock.picoseconds(1.0) / passed as f64;
            let busy = clock.octet * (octets - self.octets);
            values[THROUGHPUT] = busy.as_ps() as f64 / passed as f64 * clock.rate().bits_per_second() as f64;
        }
        (self.octets, self.paused_cycles) = (octets, paused);
        if let Some(switch) = session.board.switch() {
            values[THROUGHPUT] = switch.measured_until(now).bits_per_second() as f64;
        }
        Ok(values)
    }

    /// Applies a page's control and answers it.
    pub fn handle(&mut self, request: Request, session: &mut Session, page: &Page) {
        let answer = self.apply(&request, session).and_then(|applied| {
            let settings = self.settings(threshold(session)).map_err(refused)?;
            page.recording().lock().unwrap_or_else(PoisonError::into_inner).steer(settings, applied);
            Ok(())
        });
        request.answer(answer);
    }

    fn apply(&mut self, request: &Request, session: &mut Session) -> Result<Applied, ControlError> {
        let control = &request.control;
        let at_ps = session.board.now().as_ps();
        let (mut given, mut limit) = (self.given.clone(), None);
        for (key, value) in &control.set {
            let value = value.trim();
            if key == THRESHOLD && session.board.switch().is_some() {
                let wrong = |error| ControlError::Refused(format!("{THRESHOLD} = {value:?}: {error}, or none"));
                limit = Some(if value == "none" { None } else { Some(value.parse::<Rate>().map_err(wrong)?) });
            } else if self.steerable && PARAMETERS.iter().any(|p| p.key == key && p.scope == Scope::Sender) {
                given.push(format!("{key}={value}"));
            } else {
                return Err(ControlError::Refused(format!("{key}: this cannot be changed here")));
            }
        }
        // Everything is checked before anything is written.
        let mut registers = Vec::new();
        if given.len() > self.given.len() {
            let settings = self.parse(&given).map_err(refused)?.cc;
            registers = dcqcn_words(0, &settings.at_clock(session.board.clock().hz).map_err(refused)?).to_vec();
        }
        for (address, value) in &registers {
            session.board.write(*address, *value).map_err(refused)?;
        }
        self.given = given;
        if let (Some(limit), Some(switch)) = (limit, session.board.switch_mut()) {
            switch.set_threshold(limit);
        }
        let set: BTreeMap<String, String> = control.set.clone();
        Ok(Applied { at_ps, senders: control.senders.clone(), set, registers })
    }

    fn parse(&self, given: &[String]) -> Result<SwitchScenario, ScenarioError> {
        SwitchScenario::parse(&self.path, &self.text, given)
    }
}

/// Replaces the scenario of a board without one: the defaults.
fn no_scenario() -> (PathBuf, String) {
    (PathBuf::from("penstock board"), "[run]\nkind = \"emulated-switch\"\n".to_owned())
}

/// The present threshold of the emulated switch; `None`: there is no switch.
pub fn threshold(session: &Session) -> Option<Option<Rate>> {
    let now = session.board.now();
    session.board.switch().map(|switch| switch.params().threshold(now))
}

fn refused(error: impl std::fmt::Display) -> ControlError {
    ControlError::Refused(error.to_string())
}
