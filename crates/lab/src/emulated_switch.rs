// SPDX-License-Identifier: Apache-2.0
//! A scenario of the emulated switch in TOML: its threshold over time, its cooldown, the board's parameters.
//! Promise: all errors are reported at once with file, line, key, value and allowed values. Keys: `docs/board.md`.
//! Source: AdvCam section VI.

use std::path::Path;

use penstock_cc::DcqcnSettings;
use penstock_netsim::{EmulatedSwitchParams, ThresholdStep};
use penstock_wire::gateware::CYCLE;

use crate::language::document::Document;
use crate::language::keys::board_congestion_control;
use crate::language::reader::{Findings, Section};
use crate::language::{ScenarioError, ScenarioKind};
use crate::units::{Rate, Time};

/// A checked scenario.
#[derive(Debug, Clone)]
pub struct SwitchScenario {
    pub switch: EmulatedSwitchParams,
    /// `[cc]`: congestion control of the board.
    pub cc: DcqcnSettings,
    /// Time from one sample of R_C, R_T and alpha to the next.
    pub sample_interval: Time,
    /// Every key with the value in force.
    pub settings: Vec<(String, String)>,
}

impl SwitchScenario {
    /// Reads and checks a file, `overrides` ("switch.window=64us") laid over it.
    ///
    /// # Errors
    /// It cannot be read, or something in it is wrong.
    pub fn load(path: impl AsRef<Path>, overrides: &[String]) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).map_err(|source| ScenarioError::Io { path: path.to_owned(), source })?;
        Self::parse(path, &text, overrides)
    }

    /// Like `load`, for a text that is in memory; `path` is used in messages.
    ///
    /// # Errors
    /// Something in it is wrong.
    pub fn parse(path: impl AsRef<Path>, text: &str, overrides: &[String]) -> Result<Self, ScenarioError> {
        let mut document = Document::parse(path.as_ref(), text)?;
        for option in overrides {
            document.set(option)?;
        }
        let findings = Findings { origin: document.root.origin.clone(), ..Findings::default() };
        let mut root = Section::root(&document, &findings);
        let mut run = root.section("run");
        ScenarioKind::EmulatedSwitch.expect(&mut run);
        run.finish();
        let mut switch = root.section("switch");
        let advcam = EmulatedSwitchParams::advcam();
        let window = switch.read("window", advcam.window);
        let repeat = switch.read("repeat", advcam.repeat);
        if window == Time::ZERO {
            switch.refuse("window", "allowed is more than 0");
        }
        let cooldown = switch.read("cooldown", advcam.cooldown);
        switch.finish();
        let steps = steps(&mut root, repeat, advcam.steps);
        let cc = board_congestion_control(root.section("cc"), advcam.line);
        let mut sampling = root.section("sampling");
        let sample_interval = sampling.read("interval", Time::from_ps(409_600));
        if sample_interval < CYCLE {
            sampling.refuse("interval", "allowed is 6.4ns or more, a cycle of the board");
        }
        sampling.finish();
        root.finish();
        match findings.problems.take() {
            problems if !problems.is_empty() => Err(ScenarioError::Invalid(problems)),
            _ => Ok(Self {
                switch: EmulatedSwitchParams { window, steps, repeat, cooldown, line: advcam.line },
                cc,
                sample_interval,
                settings: findings.settings.take(),
            }),
        }
    }
}

/// `[[step]]`s in the order of time.
fn steps(root: &mut Section, repeat: Time, default: Vec<ThresholdStep>) -> Vec<ThresholdStep> {
    let mut steps: Vec<ThresholdStep> = Vec::new();
    for mut section in root.sections("step") {
        let at = section.read("at", Time::ZERO);
        let threshold = section.optional::<Rate>("threshold");
        if steps.last().is_some_and(|before| before.at >= at) {
            section.refuse("at", "allowed is a time behind that of the step before");
        }
        if repeat > Time::ZERO && at >= repeat {
            section.refuse("at", format!("allowed is a time before switch.repeat, {repeat}"));
        }
        section.finish();
        steps.push(ThresholdStep { at, threshold });
    }
    match steps.is_empty() {
        true => default,
        false => steps,
    }
}
