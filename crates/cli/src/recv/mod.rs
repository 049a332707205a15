// SPDX-License-Identifier: Apache-2.0
//! `penstock recv`: opens boards, receives, builds events, stores them; on an RDMA NIC or on none.
//! Promise: exit status 0 only if every board came up, every fragment was right and every event whole.
//! The loop is `penstock_readout::session`.

mod arguments;
mod boards;
mod gpu;
mod metrics;
mod options;
mod sharing;
mod sink;
mod state;
mod tables;
mod view;

use crate::run::{on_interrupt, told, Failure};
use crate::screen::say;
use crate::{output, Verdict};
use options::{NumaChoice, Settings};
use penstock_readout::backend::{Backend, GidChoice, PacketBackend, PacketConfig, SessionClock, Verbs, VerbsConfig};
use penstock_readout::gpu::GpuReport;
use penstock_readout::session::{Session, SessionError, SessionReport};
use penstock_readout::{node_of_device, stay_on_node, Dataset, EventSource, NumaError, StoreError};
use sharing::Sharing;
use sink::Sink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use view::View;

pub use arguments::Arguments;
pub use options::positive;

const PS_PER_S: u64 = 1_000_000_000_000;
/// Time between two looks at progress, metrics and what was asked for.
const TURN_PS: u64 = PS_PER_S / 10;

/// Receives; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    told(receive(arguments))
}

/// Of errors before the first message: another request would do.
fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::Fault(error.to_string())
}

fn receive(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut settings = Settings::read(arguments).map_err(Failure::Refused)?;
    let mut sharing = Sharing::open(&arguments.run).map_err(Failure::Refused)?;
    settings.session.shares = sharing.as_ref().map(Sharing::shares).unwrap_or_default();
    let interrupted = on_interrupt()?;
    stay(arguments).map_err(refused)?;
    let clock = SessionClock::start();
    let mut gpu = gpu::open(arguments).map_err(refused)?;
    let backend = open_backend(arguments, &settings, clock, gpu.as_mut())?;
    if let Some(notice) = backend.notice() {
        say(notice);
    }
    if let Some(warning) = backend.warning() {
        say(format_args!("WARNING: {warning}"));
    }
    let address = backend.address();
    options::no_board_is_here(&settings.session.boards, address.ip).map_err(Failure::Refused)?;
    let told = settings.session.clone();
    let sink = Sink::open(arguments, told.boards.len(), gpu).map_err(refused)?;
    let mut session = Session::new(settings.session, backend, clock, sink).map_err(refused)?;
    if let Some(file) = &arguments.check.reference {
        let dataset = Dataset::load(file).map_err(refused)?;
        let boards = u16::try_from(told.boards.len()).map_err(refused)?;
        session = session.with_reference(EventSource::new(&dataset, boards).map_err(refused)?);
    }
    if let Some(name) = arguments.check.payload.filter(|_| arguments.gpu.index.is_none()) {
        session = session.with_pattern(name.pattern(), arguments.check.bare);
    }
    let mut memory = state::State::open(arguments.boards.state.as_deref(), address.ip);
    session.forget_earlier(&memory.earlier());
    let metrics = arguments.report.metrics.map(metrics::Metrics::serve).transpose().map_err(Failure::Refused)?;
    let title = tables::opening(arguments, &told, &address);
    if !arguments.report.json {
        say(&title);
    }
    let mut view =
        (!arguments.report.json).then(|| View::open(title, arguments.run.events.or(arguments.run.messages))).flatten();

    let (mut told_of_boards, mut next_turn, count) = (false, 0, told.boards.len());
    let bring_up_ps = u64::from(arguments.boards.bring_up) * PS_PER_S;
    arguments.run.events.iter().for_each(|events| session.end_after(*events));
    let (mut waiting, mut end) = (Waiting::default(), End::new(arguments, interrupted));
    let mut broken = None;
    while !end.has_come(&mut session)? {
        match session.step(TURN_PS) {
            Ok(()) => {}
            Err(error @ SessionError::Store(_)) => return Err(fault(error)),
            Err(error) => {
                // Events are stored in order: all before it are as they would have been.
                let next = session.receiver().next_event();
                broken = Some(format!("{error}; this concerns events from {next} on"));
                break;
            }
        }
        let now = session.now_ps();
        if now < next_turn {
            continue;
        }
        if let Some(error) = session.receiver().stalled().filter(|error| end.is_near && !error.is_busy()) {
            waiting.tell(error);
        }
        next_turn = now + TURN_PS;
        if let Some(sharing) = &mut sharing {
            sharing.look(&mut session);
        }
        memory.keep(&session.remembered());
        if let Some(view) = view.as_mut().filter(|view| view.is_due()) {
            let stalled = session.receiver().stalled().map(ToString::to_string);
            view.draw(session.report(), stalled);
        }
        if let Some(metrics) = &metrics {
            metrics.tell(&session.report());
        }
        if !told_of_boards && (now > bring_up_ps || session.boards_up() == count) {
            told_of_boards = true;
            tables::brought_up(&session.report()).iter().for_each(say);
        }
    }
    let report = session.report();
    drop(view);
    match &broken {
        None => finish(&mut session, &mut waiting)?,
        Some(_) => session.store_rest().map_err(fault)?,
    }
    memory.keep(&session.remembered());
    let gpu = session.receiver().sink().gpu.as_ref().map(gpu::now);
    let faults = broken.into_iter().chain(sharing.into_iter().flat_map(|sharing| sharing.faults)).collect();
    Ok(conclude(arguments, report, session.report(), gpu, faults))
}

/// When a run is over. What has begun is finished: an event of which some fragments are here waits for the others.
struct End<'a> {
    arguments: &'a Arguments,
    interrupted: Arc<AtomicBool>,
    /// The run goes on only for events that have begun.
    is_near: bool,
}

impl<'a> End<'a> {
    fn new(arguments: &'a Arguments, interrupted: Arc<AtomicBool>) -> Self {
        End { arguments, interrupted, is_near: false }
    }

    fn has_come(&mut self, session: &mut Session<Sink>) -> Result<bool, Failure> {
        let deadline_ps = self.arguments.run.seconds.map_or(u64::MAX, |s| (s * PS_PER_S as f64) as u64);
        let is_time = session.now_ps() >= deadline_ps || self.interrupted.load(Ordering::Relaxed);
        if is_time && !self.is_near {
            self.is_near = true;
            session.end_now().map_err(fault)?;
        }
        let messages = session.receiver().messages_compared();
        let enough =
            self.arguments.run.messages.is_some_and(|n| messages >= n) || (self.arguments.check.bare && is_time);
        Ok(enough || session.is_over())
    }
}

/// Events that wait for a disk at the end of a run.
#[derive(Default)]
struct Waiting {
    told: bool,
}

impl Waiting {
    fn tell(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.told, true) {
            say(format_args!("waiting: {error}; events are held until they can be stored, Ctrl-C twice gives them up"));
        }
    }
}

/// Closes all. What was acknowledged is not given up for a full disk or want of file descriptors: it waits for them.
fn finish(session: &mut Session<Sink>, waiting: &mut Waiting) -> Result<(), Failure> {
    loop {
        match session.finish(2 * PS_PER_S) {
            Err(SessionError::Store(error)) if error.is_retriable() => {
                waiting.tell(&error);
                std::thread::sleep(Duration::from_millis(100));
            }
            result => return result.map_err(fault),
        }
    }
}

/// Before any memory is touched and any thread started.
fn stay(arguments: &Arguments) -> Result<(), NumaError> {
    let nic =
        || arguments.backend.device.as_deref().or(arguments.backend.iface.as_deref()).unwrap_or("the RDMA device");
    match arguments.backend.numa {
        None => Ok(()),
        Some(NumaChoice::Node(node)) => stay_on_node(node),
        Some(NumaChoice::Nic) => stay_on_node(node_of_device(nic())?),
    }
}

/// Boards as they were before they were closed, all else as it is now.
fn conclude(
    arguments: &Arguments,
    before: SessionReport,
    mut after: SessionReport,
    mut gpu: Option<GpuReport>,
    mut faults: Vec<String>,
) -> Verdict {
    // A pattern is reported in the same place whoever has compared it.
    after.readout.pattern = gpu.as_mut().and_then(|gpu| gpu.pattern.take()).or(after.readout.pattern);
    let states = before.boards.into_iter().zip(after.boards).map(|(before, mut after)| {
        (after.state, after.step, after.trouble) = (before.state, before.step, before.trouble);
        after
    });
    let boards = states.collect();
    let report = SessionReport { boards, seconds: before.seconds, cpu_seconds: before.cpu_seconds, ..after };
    faults.extend(tables::faults(&report));
    faults.extend(gpu.iter().flat_map(gpu::faults));
    let verdict = if faults.is_empty() { Verdict::Verified } else { Verdict::Fault };
    match arguments.report.json {
        true => {
            let mut json = serde_json::to_value(&report).expect("a report has only plain keys");
            json["faults"] = serde_json::json!(faults);
            if let Some(gpu) = &gpu {
                json["gpu"] = serde_json::json!(gpu);
            }
            output::print(format_args!("{json:#}"), verdict)
        }
        false => {
            let gpu = gpu.as_ref().map(|gpu| gpu::line(gpu, arguments.gpu.gpu_charges.as_deref()));
            output::print(tables::closing(&report, gpu, &faults), verdict)
        }
    }
}

fn open_backend(
    arguments: &Arguments,
    settings: &Settings,
    clock: SessionClock,
    gpu: Option<&mut gpu::Opened>,
) -> Result<Box<dyn Backend>, Failure> {
    let mtu = settings.session.mtu;
    match arguments.backend.name {
        options::BackendName::Verbs => {
            let by_ip = arguments.backend.ip.map(GidChoice::Address);
            let gid = arguments.backend.gid.or(by_ip).unwrap_or_default();
            let config = VerbsConfig { device: arguments.backend.device.clone(), gid, mtu: Some(mtu) };
            let verbs = Verbs::open(&config, clock).map_err(refused)?;
            if !arguments.report.json {
                say(verbs.found());
            }
            match gpu {
                Some(gpu) => gpu.under(verbs, arguments, clock).map_err(refused),
                None => Ok(Box::new(verbs)),
            }
        }
        options::BackendName::Packet => {
            let missing = || Failure::Refused("--backend packet needs --iface, an Ethernet interface".to_owned());
            let (iface, boards) = (arguments.backend.iface.clone().ok_or_else(missing)?, settings.session.boards.len());
            if arguments.gpu.gpu_direct == options::GpuDirectChoice::Auto {
                say(format_args!(
                    "WARNING: no GPUDirect, fragments go through pinned memory: --backend packet has no NIC"
                ));
            }
            let socket = arguments.backend.socket.into();
            let config = PacketConfig { iface, ip: arguments.backend.ip, boards, mtu, socket };
            Ok(Box::new(PacketBackend::open(&config, clock).map_err(refused)?))
        }
    }
}
