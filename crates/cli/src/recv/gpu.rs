// SPDX-License-Identifier: Apache-2.0
//! The GPU beside a run's storage: opened as the command line says, and what it has done, for people and for JSON.
//! Promise: without `--gpu` nothing of NVIDIA's is looked for; a GPU that fails is a fault of the run and not its end.
//! Source: `penstock_readout::gpu`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::Arguments;
use super::options::GpuDirectChoice;
use super::sink::{run_options, Sink};
use crate::pattern::PatternName;
use crate::screen::say;
use penstock_readout::backend::{Backend, GpuDirect, SessionClock, WritesDevice};
use penstock_readout::gpu::{BatchSize, DeviceRings, Gpu, GpuConfig, GpuReport, GpuWork, OnGpu};
use penstock_readout::{Pattern, RunOptions, RunWriter, WriterOptions};

/// Batches: one is filled, one is copied, one is worked on.
const BATCHES: usize = 3;
/// An event waits so long for a batch to become full.
const PATIENCE_PS: u64 = 10_000_000_000;

/// A report that stays up to date.
pub type Report = Arc<Mutex<GpuReport>>;

/// An open GPU, and the rings that lie on it if its memory is written by the NIC.
pub struct Opened {
    gpu: Arc<Gpu>,
    rings: Option<Arc<DeviceRings>>,
}

/// The GPU that the command line names.
pub fn open(arguments: &Arguments) -> Result<Option<Opened>, String> {
    let Some(index) = arguments.gpu.index else { return Ok(None) };
    let gpu = Gpu::open(index).map_err(|error| error.to_string())?;
    if !arguments.report.json {
        say(gpu.description().map_err(|error| error.to_string())?);
    }
    Ok(Some(Opened { gpu, rings: None }))
}

impl Opened {
    /// The NIC with its rings on the GPU; as it is where that is not asked for, or only if it can be and it cannot.
    pub fn under<B>(&mut self, nic: B, arguments: &Arguments, clock: SessionClock) -> Result<Box<dyn Backend>, String>
    where
        B: WritesDevice + 'static,
    {
        let choice = arguments.gpu.gpu_direct;
        if choice == GpuDirectChoice::Off {
            return Ok(Box::new(nic));
        }
        match GpuDirect::new(nic, &self.gpu, arguments.memory.slot_bytes, clock) {
            Ok(direct) => {
                self.rings = Some(direct.rings());
                if !arguments.report.json {
                    let device = direct.inner().device();
                    say(format_args!("GPUDirect: {device} writes to the memory of GPU {}", self.gpu.index()));
                }
                Ok(Box::new(direct))
            }
            Err(refused) => {
                let (nic, error) = *refused;
                if choice == GpuDirectChoice::On {
                    return Err(format!("--gpu-direct on: {error}; without it fragments go through pinned memory"));
                }
                say(format_args!("WARNING: no GPUDirect, fragments go through pinned memory: {error}"));
                Ok(Box::new(nic))
            }
        }
    }
}

/// `sink` with the GPU beside it, for so many boards.
pub fn beside(sink: Sink, opened: Opened, arguments: &Arguments, boards: usize) -> Result<(Sink, Report), String> {
    let work = work(arguments, boards)?;
    let Opened { gpu, rings } = opened;
    let index = gpu.index();
    let bytes = arguments.gpu.gpu_batch_mb.get().saturating_mul(1_000_000);
    let batch = BatchSize::holding(boards, arguments.memory.slot_bytes as usize, bytes);
    let config = GpuConfig { batch, batches: BATCHES, patience_ps: PATIENCE_PS };
    let on_gpu = match rings {
        Some(rings) => OnGpu::over(rings, sink, &gpu, work, config),
        None => OnGpu::new(sink, &gpu, work, config),
    };
    let on_gpu =
        on_gpu.map_err(|error| format!("GPU {index}: {error}; try a smaller --gpu-batch-mb or --slot-bytes"))?;
    let report = on_gpu.report();
    Ok((Sink::of(on_gpu), report))
}

fn work(arguments: &Arguments, boards: usize) -> Result<GpuWork, String> {
    match (arguments.check.payload.map(PatternName::pattern), &arguments.gpu.gpu_charges) {
        (Some(Pattern::Prbs31 { invert }), _) => Ok(GpuWork::Prbs31 { invert, boards }),
        (Some(Pattern::Counter), _) => Err("--gpu compares PRBS-31 only: --payload prbs or prbs-plain".to_owned()),
        (None, Some(folder)) => {
            let writer = RunWriter::open(folder, charge_options(arguments)).map_err(|error| error.to_string())?;
            Ok(GpuWork::Charges(Box::new(writer)))
        }
        (None, None) => Err("--gpu has nothing to do: add --payload prbs, or --gpu-charges FOLDER".to_owned()),
    }
}

fn charge_options(arguments: &Arguments) -> RunOptions {
    let options = run_options(arguments);
    let what = ("penstock.payload".to_owned(), "charges: int32, modules x 2 gains x 7 pixels".to_owned());
    RunOptions { writer: WriterOptions { metadata: vec![what], ..options.writer }, ..options }
}

/// The report as it is now.
pub fn now(report: &Report) -> GpuReport {
    report.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// One line for people.
pub fn line(report: &GpuReport, charges: Option<&Path>) -> String {
    let GpuReport { batches, events, bytes, waits, compared_again, .. } = report;
    let what = match charges {
        Some(folder) => format!("charges in {}", folder.display()),
        None => format!("{compared_again} payloads compared again by the processor"),
    };
    let megabytes = *bytes as f64 / 1e6;
    format!("GPU: {events} events, {megabytes:.1} MB in {batches} batches, waited for {waits} times; {what}")
}

/// What keeps a run from being good.
pub fn faults(report: &GpuReport) -> Vec<String> {
    let failure = report.failure.iter().map(|reason| match report.first_event_without {
        Some(event) => format!("the GPU's work ended before event {event}: {reason}"),
        None => format!("the GPU's work ended: {reason}"),
    });
    let other = report.not_of_the_camera;
    let other = (other > 0).then(|| format!("{other} fragments are no modules of the camera: they have no charges"));
    failure.chain(other).collect()
}
