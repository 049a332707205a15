// SPDX-License-Identifier: Apache-2.0
//! `penstock recv`: opens boards, receives fragments, builds and stores events; with or without an RDMA NIC.
//! Promise: exit status 0 only if every board came up, every fragment was right and every event complete.
//! The loop is `penstock_readout::session`.

mod arguments;
mod boards;
mod choices;
#[cfg(feature = "gpu")]
mod gpu;
mod line;
mod listening;
mod memory;
mod metrics;
#[cfg(not(feature = "gpu"))]
mod no_gpu;
mod plan;
mod sharing;
mod silence;
mod sink;
mod speed;
mod state;
mod tables;
mod view;

use choices::{GpuDirectChoice, NumaChoice};
use line::Line;
use penstock_cli_common::interrupt::{self, on_interrupt};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::say;
use penstock_cli_common::output::{print, to_verdict};
use penstock_readout::backend::{Backend, PacketBackend, SessionClock, TcpBackend, Verbs};
use penstock_readout::session::{Session, SessionConfig, SessionError, SessionReport};
use penstock_readout::{node_of_device, stay_on_node, Dataset, EventSource, NumaError, StoreError};
use penstock_units::Time;
use plan::{BackendPlan, EndPlan, Plan};
use sharing::Sharing;
use silence::Silence;
use sink::Sink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use view::View;

#[cfg(not(feature = "gpu"))]
use no_gpu as gpu;

pub use arguments::Arguments;

/// Time between two polls of progress, metrics and requests.
const TURN: Time = Time::from_ms(100);

/// A run with a limit on events or messages is given up if every board was refused and none has sent anything for this
/// time.
const REFUSED: Time = Time::from_s(10);

/// Receives; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(Plan::read(arguments).map_err(Failure::Refused).and_then(receive))
}

/// Of errors before the first message: another request would do.
fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}

fn receive(plan: Plan) -> Result<Verdict, Failure> {
    let timeout = plan.session.builder.timeout;
    let sharing = plan.sharing.as_ref().map(|(file, server)| Sharing::open(file, *server, timeout));
    let mut sharing = sharing.transpose().map_err(Failure::Refused)?;
    let mut plan = plan;
    plan.files.writer.metadata.extend(sharing.iter().flat_map(Sharing::names));
    let plan = plan;
    stay(&plan).map_err(refused)?;
    let clock = SessionClock::start();
    let mut metrics = plan.metrics.map(metrics::Metrics::serve).transpose().map_err(Failure::Refused)?;
    let mut gpu = gpu::open(&plan).map_err(refused)?;
    let backend = open_backend(&plan, clock.clone(), gpu.as_mut())?;
    // Before that there is nothing to bring to an end: a signal ends the wait for a device at once.
    let interrupted = on_interrupt()?;
    if let Some(notice) = backend.notice() {
        say(notice);
    }
    if let Some(warning) = backend.warning() {
        say(format_args!("WARNING: {warning}"));
    }
    let address = backend.address();
    plan::no_board_is_here(&plan.session.boards, address.ip).map_err(Failure::Refused)?;
    let sink = Sink::open(&plan, gpu).map_err(refused)?;
    let shares = sharing.as_ref().map(Sharing::shares).unwrap_or_default();
    let config = SessionConfig { shares, ..plan.session.clone() };
    let mut session = Session::new(config, backend, clock, sink).map_err(refused)?;
    if let Some(file) = &plan.check.reference {
        let dataset = Dataset::load(file).map_err(refused)?;
        let boards = u16::try_from(plan.session.boards.len()).map_err(refused)?;
        session = session.with_reference(EventSource::new(&dataset, boards).map_err(refused)?);
    }
    if let Some(pattern) = plan.check.pattern {
        session = session.with_pattern(pattern, plan.check.bare);
    }
    let mut memory = state::State::open(plan.state.as_deref(), address.ip);
    session.forget_earlier(&memory.earlier());
    // After everything that a run requires, and before the first queue pair is opened.
    let tell = |(line, sources): &(_, Vec<_>)| Line::tell(*line, sources, &interrupted);
    let mut line = plan.line.as_ref().map(tell).transpose().map_err(refused)?;
    line.iter().filter(|_| !plan.json).filter_map(Line::summary).for_each(say);
    let title = tables::opening(&plan, &address);
    if !plan.json {
        say(&title);
    }
    let mut view =
        (!plan.json).then(|| View::open(title, plan.end.events.or(plan.end.messages), plan.out.is_some())).flatten();

    let (mut boards_reported, mut next_turn, count) = (false, Time::ZERO, plan.session.boards.len());
    plan.end.events.iter().for_each(|events| session.end_after(*events));
    let (mut waiting, mut end) = (Waiting::default(), End::new(&plan, interrupted));
    let (mut broken, mut silence_due) = (None, Time::MAX);
    let mut silence = Silence::new(plan.session.builder.timeout);
    interrupt::speaks_itself();
    loop {
        if interrupt::gives_up() {
            break;
        }
        let turn = match end.has_come(&mut session) {
            Ok(true) => break,
            Ok(false) => session.step(TURN),
            Err(error) => Err(error),
        };
        if let Err(error) = turn {
            broken = Some(breaks(&session, &error));
            break;
        }
        let now = session.now();
        if now < next_turn {
            continue;
        }
        if let Some(error) = session.receiver().stalled().filter(|error| end.is_near && !error.is_busy()) {
            waiting.report_disk(error);
        }
        if end.is_near {
            waiting.report_boards(&session.out_of_reach());
        }
        next_turn = now + TURN;
        // Boards get no slots while storage is waited for, and a server of several may have no part of the events.
        let waits = session.receiver().stalled().is_some() || sharing.is_some();
        let may_send = if waits { 0 } else { session.boards_up() };
        if let Some(message) = silence.look(now, session.messages(), may_send).filter(|_| !end.is_near) {
            say(message);
        }
        if let Some(sharing) = &mut sharing {
            if let Err(error) = sharing.look(&mut session) {
                broken = Some(breaks(&session, &error));
                break;
            }
        }
        if let Some(line) = &mut line {
            line.look(now, &mut session);
        }
        memory.keep(&session.remembered());
        if end.is_near {
            interrupt::last_words(last_words(&plan, &mut session));
        }
        if let Some(view) = view.as_mut().filter(|view| view.is_due()) {
            let stalled = session.receiver().stalled().map(ToString::to_string);
            view.draw(session.report(), stalled);
        }
        if let Some(metrics) = &mut metrics {
            metrics.tell(session.report(), sharing.as_ref().map(Sharing::state));
        }
        if !boards_reported && (now > plan.session.bring_up || session.boards_up() == count) {
            boards_reported = true;
            tables::brought_up(&session.report()).iter().for_each(say);
            silence_due = now.saturating_add(plan.session.bring_up.max(Time::from_s(5)));
        }
        if now >= silence_due {
            silence_due = Time::MAX;
            tables::silent(&session.report()).iter().for_each(say);
        }
    }
    let up = if sharing.is_some() { 0 } else { session.boards_up() };
    let silent = silence.fault(session.now(), up, end.by_time);
    let report = session.report();
    drop(view);
    interrupt::last_words(last_words(&plan, &mut session));
    let mut is_finished = false;
    if broken.is_none() {
        match finish(&mut session, &mut waiting) {
            Ok(finished) => is_finished = finished,
            Err(error) => broken = Some(breaks(&session, &error)),
        }
    }
    // The report is always given: it names the fault and the progress of the run.
    let unstored = (!is_finished).then(|| session.store_rest().err()).flatten().map(|error| error.to_string());
    let unstored = unstored.filter(|error| broken.as_ref().is_none_or(|known| !known.starts_with(error)));
    memory.keep(&session.remembered());
    let gpu = session.receiver().sink().gpu.as_ref().map(gpu::now);
    let in_vain = sharing.as_ref().and_then(|sharing| sharing.waited_in_vain(session.messages()));
    let needs_boards = sharing.as_ref().is_none_or(Sharing::has_part);
    let shared = sharing.into_iter().flat_map(|sharing| sharing.faults).chain(in_vain);
    let stopped = (!is_finished && interrupt::gives_up()).then(|| {
        session.give_up();
        given_up(&plan, &session)
    });
    let faults = broken.into_iter().chain(silent).chain(stopped).chain(unstored).chain(shared).collect();
    let shares = line.map(|mut line| line.shares());
    let (text, verdict) = conclude(&plan, report, session.report(), gpu, shares, faults, needs_boards);
    interrupt::speaks_itself();
    Ok(print(text, verdict))
}

/// The fault of a run that a second signal has stopped.
fn given_up(plan: &Plan, session: &Session<Sink>) -> String {
    let receiver = session.receiver();
    let (kept, open) = (receiver.kept(), receiver.open_events() as u64);
    let unwritten = receiver.events_stored().saturating_sub(kept.events);
    let begun = format!("{open} that had begun, from event {} on", receiver.next_event());
    let events = match (unwritten, open) {
        (0, 0) => "no event was given up".to_owned(),
        (0, _) => format!("{open} events are given up: {begun}"),
        (_, 0) => format!("{unwritten} events are given up: none of these is on the disk"),
        _ => format!("{} events are given up: {unwritten} that are not on the disk and {begun}", unwritten + open),
    };
    let files = match (&plan.out, kept.unclosed) {
        (None, _) => String::new(),
        (Some(_), 0) => format!("; {} events are on the disk", kept.events),
        (Some(_), unclosed) => format!(
            "; {} events are on the disk, {unclosed} of them in a file that is not closed: `penstock check --recover` \
             completes it",
            kept.events
        ),
    };
    format!("stopped by a second signal: {events}{files}")
}

/// The report of a run that cannot be brought to its end any more.
fn last_words(plan: &Plan, session: &mut Session<Sink>) -> String {
    let report = session.report();
    let fault = given_up(plan, session);
    conclude(plan, report.clone(), report, None, None, vec![fault], true).0
}

/// The fault of a run that an error ends. Events are stored in order: all before it are as they would have been.
fn breaks(session: &Session<Sink>, error: &SessionError) -> String {
    format!("{error}; this concerns events from {} on", session.receiver().next_event())
}

/// When a run is over. What has begun is finished: an event of which some fragments are here waits for the others.
struct End {
    plan: EndPlan,
    bare: bool,
    interrupted: Arc<AtomicBool>,
    /// The run continues only for events that have begun.
    is_near: bool,
    /// It has lasted for as long as was asked for.
    by_time: bool,
}

impl End {
    fn new(plan: &Plan, interrupted: Arc<AtomicBool>) -> Self {
        End { plan: plan.end, bare: plan.check.bare, interrupted, is_near: false, by_time: false }
    }

    fn has_come(&mut self, session: &mut Session<Sink>) -> Result<bool, SessionError> {
        let counts = self.plan.events.is_some() || self.plan.messages.is_some();
        let is_in_vain = counts && session.is_refused(REFUSED);
        let is_time = is_in_vain || session.now() >= self.plan.deadline || self.interrupted.load(Ordering::Relaxed);
        if is_time && !self.is_near {
            self.is_near = true;
            self.by_time = session.now() >= self.plan.deadline;
            session.end_now()?;
        }
        let messages = session.receiver().messages_compared();
        let enough = self.plan.messages.is_some_and(|n| messages >= n) || (self.bare && is_time);
        Ok(enough || session.is_over())
    }
}

/// Events that wait for a disk or for boards at the end of a run.
#[derive(Default)]
struct Waiting {
    disk_reported: bool,
    boards_reported: bool,
}

impl Waiting {
    fn report_boards(&mut self, boards: &[&str]) {
        if !boards.is_empty() && !std::mem::replace(&mut self.boards_reported, true) {
            let boards = boards.join(", ");
            say(format_args!(
                "waiting: {boards} cannot be reached; events wait for --outage seconds, Ctrl-C twice gives them up"
            ));
        }
    }

    fn report_disk(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.disk_reported, true) {
            say(format_args!("waiting: {error}; events are held until they can be stored, Ctrl-C twice gives them up"));
        }
    }
}

/// Closes all. What was acknowledged is not given up for a full disk or want of file descriptors: it waits for them.
/// False: a second signal has ended that.
fn finish(session: &mut Session<Sink>, waiting: &mut Waiting) -> Result<bool, SessionError> {
    loop {
        if interrupt::gives_up() {
            session.hang_up(Time::from_ms(200), || false)?;
            return Ok(false);
        }
        match session.finish(Time::from_s(2), interrupt::gives_up) {
            Err(SessionError::Store(error)) if error.is_retriable() => {
                waiting.report_disk(&error);
                std::thread::sleep(Duration::from_millis(100));
            }
            result => return result.map(|()| true),
        }
    }
}

/// Before any memory is touched and any thread started.
fn stay(plan: &Plan) -> Result<(), NumaError> {
    match plan.numa {
        None => Ok(()),
        Some(NumaChoice::Node(node)) => stay_on_node(node),
        Some(NumaChoice::Nic) => stay_on_node(node_of_device(plan.nic.as_deref().unwrap_or("the RDMA device"))?),
    }
}

/// Boards as they were before they were closed, all else as it is now.
fn conclude(
    plan: &Plan,
    before: SessionReport,
    mut after: SessionReport,
    mut gpu: Option<gpu::Done>,
    shares: Option<serde_json::Value>,
    mut faults: Vec<String>,
    needs_boards: bool,
) -> (String, Verdict) {
    after.readout.pattern = gpu.as_mut().and_then(gpu::take_pattern).or(after.readout.pattern);
    let states = before.boards.into_iter().zip(after.boards).map(|(before, mut after)| {
        (after.state, after.step, after.trouble) = (before.state, before.step, before.trouble);
        after
    });
    let boards = states.collect();
    let report = SessionReport { boards, seconds: before.seconds, cpu_seconds: before.cpu_seconds, ..after };
    faults.extend(tables::faults(&report, needs_boards));
    faults.extend(gpu.iter().flat_map(gpu::faults));
    let verdict = if faults.is_empty() { Verdict::Verified } else { Verdict::Fault };
    match plan.json {
        true => {
            let mut json = serde_json::to_value(&report).expect("a report has only plain keys");
            json["faults"] = serde_json::json!(faults);
            json["is_stored"] = serde_json::json!(plan.out.is_some());
            if let Some(shares) = shares {
                json["shares"] = shares;
            }
            if let Some(gpu) = &gpu {
                json["gpu"] = serde_json::json!(gpu);
            }
            (format!("{json:#}"), verdict)
        }
        false => {
            let gpu = gpu.as_ref().map(|gpu| gpu::line(gpu, plan.charges()));
            (tables::closing(&report, plan.out.is_some(), gpu, &faults), verdict)
        }
    }
}

fn open_backend(plan: &Plan, clock: SessionClock, gpu: Option<&mut gpu::Opened>) -> Result<Box<dyn Backend>, Failure> {
    match &plan.backend {
        BackendPlan::Verbs(config) => {
            let verbs = Verbs::open(config, clock.clone()).map_err(refused)?;
            if !plan.json {
                say(verbs.found());
            }
            match gpu {
                Some(gpu) => gpu.under(verbs, plan, clock).map_err(refused),
                None => Ok(Box::new(verbs)),
            }
        }
        BackendPlan::Packet(config) => {
            if plan.gpu.as_ref().is_some_and(|gpu| gpu.direct == GpuDirectChoice::Auto) {
                say(format_args!(
                    "WARNING: no GPUDirect, fragments go through pinned memory: --backend packet has no NIC"
                ));
            }
            Ok(Box::new(PacketBackend::open(config, clock).map_err(refused)?))
        }
        BackendPlan::Tcp(config) => Ok(Box::new(TcpBackend::open(config, clock).map_err(refused)?)),
    }
}
