// SPDX-License-Identifier: Apache-2.0
//! Replaces `gpu.rs` in a build without the feature `gpu`.
//! Promise: `--gpu` is refused; the error names the build that supports it.

use super::plan::Plan;
use crate::no_gpu_check::WITHOUT_GPU;
use penstock_readout::backend::{Backend, SessionClock, WritesDevice};
use penstock_readout::{EventSink, PatternReport};
use serde::Serialize;
use std::path::Path;

/// None is there.
pub enum Opened {}
pub enum Report {}
#[derive(Serialize)]
pub enum Done {}

/// Refuses the GPU that the plan names.
pub fn open(plan: &Plan) -> Result<Option<Opened>, String> {
    match &plan.gpu {
        None => Ok(None),
        Some(planned) => Err(format!("--gpu {}: {WITHOUT_GPU}", planned.index)),
    }
}

impl Opened {
    pub fn under<B>(&mut self, _nic: B, _plan: &Plan, _clock: SessionClock) -> Result<Box<dyn Backend>, String>
    where
        B: WritesDevice + 'static,
    {
        match *self {}
    }

    pub fn beside(self, _sink: impl EventSink + 'static, _plan: &Plan) -> Result<(Box<dyn EventSink>, Report), String> {
        match self {}
    }
}

pub fn now(report: &Report) -> Done {
    match *report {}
}

pub fn take_pattern(done: &mut Done) -> Option<Vec<PatternReport>> {
    match *done {}
}

pub fn line(done: &Done, _charges: Option<&Path>) -> String {
    match *done {}
}

pub fn faults(done: &Done) -> Vec<String> {
    match *done {}
}
