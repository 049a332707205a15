// SPDX-License-Identifier: Apache-2.0
//! The speed of the laboratory: data packets over links per CPU second, and memory, for the cases with a target.
//! Prints JSON rows for `make bench`. Run: `cargo run --release -p penstock-lab --example lab_speed [case]` from the
//! repository. Without a case all run, each in a separate process so that memory is measured per case. Short cases run
//! forty times in turn and the least time counts, so that a slow period of the machine affects all of them alike.
//! Cases: advcam-5, senders-8 to senders-1024, fat-tree-320, camera, and traced-NAME and untraced-NAME of fat-tree-320
//! and leaves-128 (128 senders over 10 Gb/s).

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;
use penstock_lab::report::{self, End};
use penstock_lab::{Lab, LabScenario, SoftwareOnly};
use penstock_netsim::{Time, TraceSink};

/// That of `penstock`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What one case took.
#[derive(Debug, Clone, Copy)]
struct Measured {
    traversals: u64,
    cpu_s: f64,
    wall_s: f64,
    peak_mb: f64,
}

impl Measured {
    fn traversals_per_s(&self) -> f64 {
        self.traversals as f64 / self.cpu_s
    }
}

/// CPU time of this process in seconds; `None` where the system does not say. That of /proc is up to a clock tick old,
/// which is a twentieth of a short case.
fn cpu_seconds() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 * 1e-6)
}

/// Most memory ever resident, 10^6 bytes.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? * 1024e-6)
}

/// Runs a scenario with its trace and takes its measure.
fn measure(path: &str, overrides: &[String]) -> Result<Measured, Box<dyn Error>> {
    let scenario = LabScenario::load(path, overrides)?;
    let trace = std::env::temp_dir().join(format!("penstock-lab-speed-{}.parquet", std::process::id()));
    let (begin, before) = (Instant::now(), cpu_seconds());
    let mut lab = Lab::build(&scenario, &mut SoftwareOnly)?;
    report::watch(&mut lab, &scenario);
    if scenario.trace.interval > Time::ZERO {
        let mut sink = TraceSink::create(&trace, &[])?;
        sink.select(&scenario.trace.metrics);
        lab.engine.set_trace(sink, scenario.trace.interval);
    }
    let mut until = Time::ZERO;
    let end = loop {
        until += Time::from_us(100);
        if let Some(end) = End::of(lab.advance(until)?, &scenario) {
            break end;
        }
    };
    if let Some(sink) = lab.engine.take_trace() {
        sink.finish()?;
        std::fs::remove_file(&trace)?;
    }
    let wall_s = begin.elapsed().as_secs_f64();
    let cpu_s = before.and_then(|before| Some(cpu_seconds()? - before)).unwrap_or(wall_s);
    let found = report::summary(&lab, path, &scenario, &end);
    let dropped: u64 = found.switches.iter().map(|switch| switch.dropped_headroom).sum();
    if end != End::Done || dropped > 0 {
        return Err(format!("{path}: ended as {end:?} with {dropped} drops of lossless classes").into());
    }
    eprintln!(
        "{path} {overrides:?}: {:.3} ms, {} events, {} traversals, {:.1} ns each, {:.3} Gb/s",
        found.simulated_s * 1e3,
        found.timing.events,
        found.timing.traversals,
        cpu_s * 1e9 / found.timing.traversals as f64,
        found.aggregate_gbps
    );
    Ok(Measured { traversals: found.timing.traversals, cpu_s, wall_s, peak_mb: peak_mb().unwrap_or(0.0) })
}

/// Measures so many senders, 320 MB in all, by leaves of 32 into one 10 Gb/s link.
fn leaves(senders: u64, trace: &str) -> Result<Measured, Box<dyn Error>> {
    let leaves: Vec<String> = (0..senders.div_ceil(32)).map(|_| senders.min(32).to_string()).collect();
    let overrides = [
        trace.to_owned(),
        format!("topology.boards_per_leaf=[{}]", leaves.join(",")),
        format!("flow.0.size=\"{}B\"", 320_000_000 / senders),
        "run.time_limit=\"10s\"".to_owned(),
    ];
    measure("scenarios/advcam-5.toml", &overrides)
}

/// Throughput and rates, every 100 us.
const AS_THE_TARGET_TRACES: &str = "trace.metrics=[\"throughput_bps\", \"rate_current_bps\", \"rate_target_bps\"]";

const UNTRACED: &str = "trace.interval=\"0us\"";
/// Every metric, as often as without the key.
const TRACED: &str = "trace.interval=\"100us\"";

fn case(name: &str) -> Result<Measured, Box<dyn Error>> {
    // How it grows is not traced, since what a trace costs grows with flows and time, not with packets.
    if let Some(senders) = name.strip_prefix("senders-") {
        return leaves(senders.parse()?, UNTRACED);
    }
    let (name, trace) = match (name.strip_prefix("traced-"), name.strip_prefix("untraced-")) {
        (Some(name), _) => (name, TRACED),
        (_, Some(name)) => (name, UNTRACED),
        _ => (name, AS_THE_TARGET_TRACES),
    };
    match name {
        "leaves-128" => leaves(128, trace),
        "camera" => measure("scenarios/camera.toml", &[]),
        name => measure(&format!("scenarios/{name}.toml"), &[trace.to_owned()]),
    }
}

/// Runs a case in a process of its own.
fn apart(name: &str) -> Result<Measured, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).arg(name).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [traversals, cpu_s, wall_s, peak_mb] = numbers[..] else { return Err(text.into()) };
    Ok(Measured { traversals: traversals as u64, cpu_s, wall_s, peak_mb })
}

/// The least CPU time and the least wall time of each case's runs.
fn least<const N: usize>(names: [&str; N]) -> Result<[Measured; N], Box<dyn Error>> {
    const RUNS: usize = 40;
    let mut best = [None::<Measured>; N];
    for _ in 0..RUNS {
        for (best, name) in best.iter_mut().zip(names) {
            let found = apart(name)?;
            let before = best.unwrap_or(found);
            let (cpu_s, wall_s) = (before.cpu_s.min(found.cpu_s), before.wall_s.min(found.wall_s));
            *best = Some(Measured { cpu_s, wall_s, ..found });
        }
    }
    best.iter()
        .copied()
        .collect::<Option<Vec<_>>>()
        .and_then(|best| best.try_into().ok())
        .ok_or_else(|| "no run".into())
}

fn row(name: &str, value: f64, unit: &str, target: Option<f64>, better: &str) -> String {
    let target = target.map_or("null".to_owned(), |target| target.to_string());
    format!(r#"{{"name": "{name}", "value": {value}, "unit": "{unit}", "target": {target}, "better": "{better}"}}"#)
}

fn all() -> Result<Vec<String>, Box<dyn Error>> {
    const RATE: &str = "packets over links/CPU s";
    let [advcam, tree, eight, some, many] =
        least(["advcam-5", "fat-tree-320", "senders-8", "senders-64", "senders-1024"])?;
    let mut rows = vec![
        row("laboratory, AdvCam figure 5", advcam.traversals_per_s(), RATE, Some(5e6), "higher"),
        row("laboratory, AdvCam figure 5, memory", advcam.peak_mb, "MB", Some(50.0), "lower"),
    ];
    for (senders, found) in [(8, eight), (64, some), (1024, many)] {
        let cost = eight.traversals_per_s() / found.traversals_per_s();
        let target = (senders == 1024).then_some(2.0);
        rows.push(row(&format!("laboratory, cost at {senders} senders over 8"), cost, "", target, "lower"));
        rows.push(row(&format!("laboratory, {senders} senders, memory"), found.peak_mb, "MB", None, "lower"));
    }
    rows.push(row("laboratory, 128 senders in a fat-tree", tree.traversals_per_s(), RATE, Some(5e6), "higher"));
    let [traced_tree, untraced_tree, traced_leaves, untraced_leaves] =
        least(["traced-fat-tree-320", "untraced-fat-tree-320", "traced-leaves-128", "untraced-leaves-128"])?;
    let pairs = [
        ("128 senders in a fat-tree", traced_tree, untraced_tree),
        ("128 senders behind 10 Gb/s", traced_leaves, untraced_leaves),
    ];
    for (network, traced, untraced) in pairs {
        // A thread of its own writes the trace.
        let over = traced.wall_s / untraced.wall_s;
        rows.push(row(&format!("laboratory, {network}, traced over untraced"), over, "", Some(2.0), "lower"));
        let over = traced.cpu_s / untraced.cpu_s;
        rows.push(row(&format!("laboratory, {network}, traced over untraced, CPU"), over, "", None, "lower"));
    }
    let camera = apart("camera")?;
    rows.push(row("laboratory, one second of the whole camera", camera.wall_s, "s", Some(10.0), "lower"));
    rows.push(row("laboratory, whole camera", camera.traversals_per_s(), RATE, None, "higher"));
    rows.push(row("laboratory, whole camera, memory", camera.peak_mb, "MB", None, "lower"));
    Ok(rows)
}

fn main() -> Result<(), Box<dyn Error>> {
    if !Path::new("scenarios").is_dir() {
        return Err("run this from the repository: it reads scenarios/".into());
    }
    match std::env::args().nth(1) {
        Some(name) => {
            let Measured { traversals, cpu_s, wall_s, peak_mb } = case(&name)?;
            println!("{traversals} {cpu_s} {wall_s} {peak_mb}");
        }
        None => println!("[{}]", all()?.join(",\n ")),
    }
    Ok(())
}
