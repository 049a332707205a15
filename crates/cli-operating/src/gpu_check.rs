// SPDX-License-Identifier: Apache-2.0
//! `penstock gpu-check`: checks whether a GPU gives the same results as the processor, measures its event rate, and
//! lists the RDMA devices that can write to its memory.
//! Promise: exit status 0 only if every result equals the processor's, to the bit; 2 if there is no GPU.
//! Source: `penstock_gpu`; the rates are those of one thread that stores events as `penstock recv` does.

use std::time::{Duration, Instant};

use comfy_table::{presets, CellAlignment, Table};
use penstock_gpu::{
    devices_that_write, exported, prove, BatchSize, DirectError, Gpu, GpuConfig, GpuError, GpuWork, OnGpu, Proof,
    Visibility,
};
use penstock_readout::{Discard, Event, EventSink, Fragment, StoreError, MODULE_BYTES};
use penstock_units::Time;
use penstock_wire::Prbs31;
use serde::Serialize;

use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::print;
use penstock_cli_common::output::screen::notify;

#[derive(clap::Args)]
pub struct Arguments {
    /// Which one, as the driver counts
    #[arg(long, default_value_t = 0, value_name = "N")]
    gpu: u32,
    /// Seed of the payloads that are compared
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds for each rate
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    seconds: f64,
    /// Megabytes that go to the GPU at a time
    #[arg(long, default_value_t = 16, value_name = "MB")]
    batch_mb: usize,
    /// Print JSON instead of a table
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Serialize)]
struct Rate {
    work: &'static str,
    fragment_bytes: usize,
    sources: usize,
    gigabytes_per_s: f64,
    /// How often all batches were under way: 0 if the processor's copy into pinned memory is what limits.
    waits: u64,
}

/// The available parts of GPUDirect.
#[derive(Serialize)]
struct Direct {
    /// Memory of the GPU can be given to others.
    exports: bool,
    /// Data written by NICs has to be flushed before kernels see it.
    flushed: Option<bool>,
    /// Why no GPU or device is available.
    reason: Option<String>,
    nics: Vec<Nic>,
}

#[derive(Serialize)]
struct Nic {
    device: String,
    writes: bool,
    refusal: Option<String>,
}

#[derive(Serialize)]
struct Report {
    gpu: String,
    verified: bool,
    proof: Proof,
    direct: Direct,
    rates: Vec<Rate>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Verdict {
    let gpu = match Gpu::open(arguments.gpu) {
        Ok(gpu) => gpu,
        Err(error) => {
            notify(format_args!("error: {error}"));
            return if matches!(error, GpuError::Driver(_)) { Verdict::Fault } else { Verdict::Refused };
        }
    };
    let report = match check(&gpu, arguments) {
        Ok(report) => report,
        Err(error) => {
            notify(format_args!("error: GPU {}: {error}", arguments.gpu));
            return Verdict::Fault;
        }
    };
    let verdict = if report.verified { Verdict::Verified } else { Verdict::Fault };
    let json = || serde_json::to_string_pretty(&report).expect("a report has only plain keys");
    print(if arguments.json { json() } else { text(&report) }, verdict)
}

fn check(gpu: &std::sync::Arc<Gpu>, arguments: &Arguments) -> Result<Report, Box<dyn std::error::Error>> {
    let proof = prove(gpu, arguments.seed)?;
    let mut rates = Vec::new();
    for (sources, fragment_bytes) in [(265, MODULE_BYTES), (3, 88 * MODULE_BYTES)] {
        for prbs in [true, false] {
            let work = match prbs {
                true => GpuWork::Prbs31 { invert: true, boards: sources },
                false => GpuWork::Charges(Box::new(Discard::default())),
            };
            let batch = BatchSize::holding(sources, fragment_bytes, arguments.batch_mb.saturating_mul(1_000_000));
            let config = GpuConfig { batch, batches: 3, patience: Time::ZERO };
            let sink = OnGpu::new(Discard::default(), gpu, work, config)?;
            let (gigabytes_per_s, waits) = rate(sink, sources, fragment_bytes, arguments.seconds)?;
            let work = if prbs { "PRBS-31 compared" } else { "charges" };
            rates.push(Rate { work, fragment_bytes, sources, gigabytes_per_s, waits });
        }
    }
    Ok(Report { gpu: gpu.description()?, verified: proof.holds(), proof, direct: direct(gpu), rates })
}

/// Nothing of this is needed without `recv --gpu-direct`, so nothing of it is a fault.
fn direct(gpu: &std::sync::Arc<Gpu>) -> Direct {
    let (memory, visibility) = match exported(gpu) {
        Ok(exported) => exported,
        Err(error) => {
            return Direct { exports: false, flushed: None, reason: Some(error.to_string()), nics: Vec::new() }
        }
    };
    let (nics, reason) = match devices_that_write(gpu, &memory) {
        Ok(devices) if devices.is_empty() => (devices, Some("there is no RDMA device".to_owned())),
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(format!("no RDMA device can be opened: {error}"))),
    };
    let nic = |(device, refusal): (String, Option<DirectError>)| Nic {
        device,
        writes: refusal.is_none(),
        refusal: refusal.map(|error| error.to_string()),
    };
    let nics = nics.into_iter().map(nic).collect();
    Direct { exports: true, flushed: Some(visibility == Visibility::Flushed), reason, nics }
}

/// GB/s of payload, and how often the GPU was waited for.
fn rate(
    mut sink: OnGpu<Discard>,
    sources: usize,
    fragment_bytes: usize,
    seconds: f64,
) -> Result<(f64, u64), StoreError> {
    const EVENTS: usize = 40;
    let sources = sources as u16;
    let mut sequences: Vec<Prbs31> = (0..sources).map(|source| Prbs31::new(u32::from(source) + 1, true)).collect();
    let mut payload = |source: usize| {
        let mut payload = vec![0; fragment_bytes];
        sequences[source].fill(&mut payload);
        payload
    };
    let events: Vec<Vec<Vec<u8>>> =
        (0..EVENTS).map(|_| (0..usize::from(sources)).map(&mut payload).collect()).collect();
    let of = |(source, payload)| Fragment { source, timestamp_ns: 0, crc32c: 0, payload, trigger_type: 0, parts: &[] };
    let events: Vec<Vec<Fragment<'_>>> =
        events.iter().map(|payloads| (0..).zip(payloads.iter().map(|p| &p[..])).map(of).collect()).collect();
    let (begun, limit, mut number) = (Instant::now(), Duration::from_secs_f64(seconds.clamp(0.0, 3600.0)), 0);
    while number == 0 || begun.elapsed() < limit {
        // The same payloads again: every board restarts.
        (0..sources).for_each(|source| sink.reconnected(source));
        for fragments in &events {
            sink.store_waiting(&Event { number, timestamp_ns: None, complete: true, fragments, missing: &[] })?;
            number += 1;
        }
    }
    sink.close()?;
    let bytes = number as f64 * f64::from(sources) * fragment_bytes as f64;
    let report = sink.report();
    let waits = report.lock().map_or(0, |report| report.waits);
    Ok((bytes / begun.elapsed().as_secs_f64() * 1e-9, waits))
}

fn text(report: &Report) -> String {
    let Proof { payloads, payload_bytes, payloads_damaged, payloads_differing, .. } = report.proof;
    let Proof { waveforms, charges_differing, fragments, fragments_differing, .. } = report.proof;
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["work", "fragments", "[GB/s]", "waited for the GPU"]);
    for Rate { work, fragment_bytes, sources, gigabytes_per_s, waits } in &report.rates {
        let fragments = format!("{sources} x {fragment_bytes} B");
        table.add_row([(*work).to_owned(), fragments, format!("{gigabytes_per_s:.2}"), waits.to_string()]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{}\nPRBS-31: {payloads} payloads, {:.1} MB, errors in {payloads_damaged}: {payloads_differing} differ from the \
         processor's\ncharges: {waveforms} waveforms: {charges_differing} differ from the processor's\nfragments read in \
         place: {fragments}: {fragments_differing} differ from the processor's\n{}{table}\n{}",
        report.gpu,
        payload_bytes as f64 / 1e6,
        direct_text(&report.direct),
        if report.verified { "verified" } else { "NOT verified" },
    )
}

fn direct_text(direct: &Direct) -> String {
    let visible = match direct.flushed {
        Some(true) => "memory is exported, what NICs write is flushed before it is read\n",
        Some(false) => "memory is exported, what NICs write is seen in order\n",
        None => "",
    };
    let reason = direct.reason.iter().map(|reason| format!("{reason}\n"));
    let nic = |Nic { device, refusal, .. }: &Nic| match refusal {
        None => format!("{device} can write to it: recv --gpu-direct on --device {device}\n"),
        Some(refusal) => format!("{refusal}\n"),
    };
    let lines = std::iter::once(visible.to_owned()).chain(reason).chain(direct.nics.iter().map(nic));
    lines.filter(|line| !line.is_empty()).map(|line| format!("GPUDirect: {line}")).collect()
}
