// SPDX-License-Identifier: Apache-2.0
//! The GPU next to a run's storage: opened as the command line says; its results as text and JSON.
//! Promise: without `--gpu` no NVIDIA library is loaded; a GPU that fails is a fault of the run but does not end it.
//! Source: `penstock_gpu`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::choices::GpuDirectChoice;
use super::plan::{GpuPlan, GpuTask, Plan};
use penstock_cli_common::output::screen::notify;
use penstock_gpu::{BatchSize, DeviceRings, Gpu, GpuConfig, GpuDirect, GpuReport, GpuWork, OnGpu};
use penstock_readout::backend::{Backend, SessionClock, WritesDevice};
use penstock_readout::{EventSink, PatternReport, RunOptions, RunWriter, WriterOptions};
use penstock_units::Time;

/// Batches: one is filled, one is copied, one is worked on.
const BATCHES: usize = 3;
/// An event waits so long for a batch to become full.
const PATIENCE: Time = Time::from_ms(10);

/// A report that stays up to date, and one that does not.
pub type Report = Arc<Mutex<GpuReport>>;
pub type Done = GpuReport;

/// An open GPU, and the rings in its memory if the NIC writes there.
pub struct Opened {
    gpu: Arc<Gpu>,
    rings: Option<Arc<DeviceRings>>,
    planned: GpuPlan,
}

/// The GPU that the plan names.
pub fn open(plan: &Plan) -> Result<Option<Opened>, String> {
    let Some(planned) = plan.gpu.clone() else { return Ok(None) };
    let gpu = Gpu::open(planned.index).map_err(|error| error.to_string())?;
    if !plan.json {
        notify(gpu.description().map_err(|error| error.to_string())?);
    }
    Ok(Some(Opened { gpu, rings: None, planned }))
}

impl Opened {
    /// The NIC with its rings on the GPU; as it is where that is not asked for, or only if it can be and it cannot.
    pub fn under<B>(&mut self, nic: B, plan: &Plan, clock: SessionClock) -> Result<Box<dyn Backend>, String>
    where
        B: WritesDevice + 'static,
    {
        let choice = self.planned.direct;
        if choice == GpuDirectChoice::Off {
            return Ok(Box::new(nic));
        }
        match GpuDirect::new(nic, &self.gpu, plan.session.slot_bytes, clock) {
            Ok(direct) => {
                self.rings = Some(direct.rings());
                if !plan.json {
                    let device = direct.inner().device();
                    notify(format_args!("GPUDirect: {device} writes to the memory of GPU {}", self.gpu.index()));
                }
                Ok(Box::new(direct))
            }
            Err(refused) => {
                let (nic, error) = *refused;
                if choice == GpuDirectChoice::On {
                    return Err(format!("--gpu-direct on: {error}; without it fragments go through pinned memory"));
                }
                notify(format_args!("WARNING: no GPUDirect, fragments go through pinned memory: {error}"));
                Ok(Box::new(nic))
            }
        }
    }

    /// `sink` combined with the GPU, and the GPU's task.
    pub fn beside(self, sink: impl EventSink + 'static, plan: &Plan) -> Result<(Box<dyn EventSink>, Report), String> {
        let Opened { gpu, rings, planned } = self;
        let (boards, slot_bytes, index) = (plan.session.boards.len(), plan.session.slot_bytes as usize, gpu.index());
        let work = match &planned.task {
            GpuTask::Prbs31 { invert } => GpuWork::Prbs31 { invert: *invert, boards },
            GpuTask::Charges(folder) => {
                let writer = RunWriter::open(folder, charge_options(&plan.files)).map_err(|error| error.to_string())?;
                GpuWork::Charges(Box::new(writer))
            }
        };
        let batch = BatchSize::holding(boards, slot_bytes, planned.batch_bytes);
        let config = GpuConfig { batch, batches: BATCHES, patience: PATIENCE };
        let on_gpu = match rings {
            Some(rings) => OnGpu::over(rings, sink, &gpu, work, config),
            None => OnGpu::new(sink, &gpu, work, config),
        };
        let on_gpu =
            on_gpu.map_err(|error| format!("GPU {index}: {error}; try a smaller --gpu-batch or --slot-size"))?;
        let report = on_gpu.report();
        Ok((Box::new(on_gpu), report))
    }
}

fn charge_options(options: &RunOptions) -> RunOptions {
    let what = ("penstock.payload".to_owned(), "charges: int32, modules x 2 gains x 7 pixels".to_owned());
    RunOptions { writer: WriterOptions { metadata: vec![what], ..options.writer.clone() }, ..options.clone() }
}

/// The report as it is now.
pub fn now(report: &Report) -> Done {
    report.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The result for a pattern, reported in the same place for processor and GPU.
pub fn take_pattern(report: &mut Done) -> Option<Vec<PatternReport>> {
    report.pattern.take()
}

/// One line for people.
pub fn line(report: &Done, charges: Option<&Path>) -> String {
    let GpuReport { batches, events, bytes, waits, compared_again, .. } = report;
    let what = match charges {
        Some(folder) => format!("charges in {}", folder.display()),
        None => format!("{compared_again} payloads compared again by the processor"),
    };
    let megabytes = *bytes as f64 / 1e6;
    format!("GPU: {events} events, {megabytes:.1} MB in {batches} batches, waited for {waits} times; {what}")
}

/// The faults of a run.
pub fn faults(report: &Done) -> Vec<String> {
    let failure = report.failure.iter().map(|reason| match report.first_event_without {
        Some(event) => format!("the GPU's work ended before event {event}: {reason}"),
        None => format!("the GPU's work ended: {reason}"),
    });
    let other = report.not_of_the_camera;
    let other = (other > 0).then(|| format!("{other} fragments are no modules of the camera: they have no charges"));
    failure.chain(other).collect()
}
