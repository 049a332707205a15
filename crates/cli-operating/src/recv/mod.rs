// SPDX-License-Identifier: Apache-2.0
//! `penstock recv`: opens boards, receives fragments, builds and stores events; with or without an RDMA NIC.
//! Promise: exit status 0 only if every board came up, every fragment was right and every event complete.
//! The loop is `penstock_readout::session`.

mod arguments;
mod boards;
mod choices;
mod conclusion;
mod ending;
#[cfg(feature = "gpu")]
mod gpu;
mod line;
mod listening;
mod memory;
mod metrics;
mod needs;
#[cfg(not(feature = "gpu"))]
mod no_gpu;
mod observer;
mod passed;
mod plan;
mod sharing;
mod silence;
mod sink;
mod speed;
mod state;
mod state_file;
mod tables;
mod view;

use choices::{GpuDirectChoice, NumaChoice};
use conclusion::{last_words, Outcome};
use ending::{breaks, finish, given_up, End, WaitNotices};
use line::Line;
use metrics::Metrics;
use observer::{Observer, Turn};
use passed::Passed;
use penstock_cli_common::interrupt::{self, on_interrupt};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_cli_common::output::{print, to_verdict};
use penstock_readout::backend::{Backend, PacketBackend, SessionClock, TcpBackend, Verbs};
use penstock_readout::session::{Session, SessionConfig, SessionError};
use penstock_readout::{node_of_device, stay_on_node, Dataset, EventSource, NumaError, Share};
use penstock_units::Time;
use plan::{BackendPlan, Plan};
use sharing::Sharing;
use silence::{BringUp, Silence};
use sink::Sink;
use state::State;
use view::View;

#[cfg(not(feature = "gpu"))]
use no_gpu as gpu;

pub use arguments::Arguments;

/// Time between two polls of progress, metrics and requests.
const TURN: Time = Time::from_ms(100);

/// Receives; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(Plan::read(arguments).map_err(Failure::Refused).and_then(receive))
}

/// An error before the first message: another request can succeed.
fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}

fn receive(mut plan: Plan) -> Result<Verdict, Failure> {
    let timeout = plan.session.builder.timeout;
    let sharing = plan.sharing.as_ref().map(|(file, server)| Sharing::open(file, *server, timeout));
    let sharing = sharing.transpose().map_err(Failure::Refused)?;
    plan.files.writer.metadata.extend(sharing.iter().flat_map(Sharing::names));
    stay(&plan).map_err(refused)?;
    let clock = SessionClock::start();
    let metrics = plan.metrics.map(Metrics::serve).transpose().map_err(Failure::Refused)?;
    let mut gpu = gpu::open(&plan).map_err(refused)?;
    let backend = open_backend(&plan, clock.clone(), gpu.as_mut())?;
    // Before that there is nothing to bring to an end: a signal ends the wait for a device at once.
    let interrupted = on_interrupt()?;
    if let Some(notice) = backend.notice() {
        notify(notice);
    }
    if let Some(warning) = backend.warning() {
        notify(format_args!("WARNING: {warning}"));
    }
    let address = backend.address();
    plan::no_board_is_here(&plan.session.boards, address.ip).map_err(Failure::Refused)?;
    let sink = Sink::open(&plan, gpu).map_err(refused)?;
    let shares = sharing.as_ref().map(Sharing::shares).unwrap_or_default();
    let mut session = open_session(&plan, shares, backend, clock, sink).map_err(refused)?;
    let state = State::open(plan.state.as_deref(), address.ip);
    session.forget_earlier(&state.earlier());
    let warnings = plan.line.as_ref().map(line::warnings).unwrap_or_default();
    warnings.iter().for_each(|warning| notify(format_args!("WARNING: {warning}")));
    // After everything that a run requires, and before the first queue pair is opened.
    let line = plan.line.as_ref().map(|plan| Line::open(plan, &interrupted)).transpose().map_err(refused)?;
    let (boards, absence) = (&plan.session.boards, plan.session.builder.outage);
    let passed = plan.reporting_outage.map(|outage| Passed::open(&mut session, boards, outage, absence));
    let passed = passed.transpose().map_err(refused)?;
    let title = tables::opening(&plan, &address);
    let mut view = None;
    if !plan.json {
        line.iter().filter_map(Line::summary).for_each(notify);
        notify(&title);
        view = View::open(title, plan.end.events.or(plan.end.messages), plan.out.is_some());
    }
    plan.end.events.iter().for_each(|events| session.end_after(*events));
    interrupt::prints_itself();
    let observers = Observers {
        sharing,
        waits: WaitNotices::default(),
        silence: Silence::new(timeout),
        line,
        passed,
        state,
        view,
        metrics,
        bring_up: BringUp::new(&plan),
    };
    let run = Run { end: End::new(&plan, interrupted), plan, session, observers };
    Ok(run.complete())
}

/// The session, with the data that payloads are compared with.
fn open_session(
    plan: &Plan,
    shares: Vec<Share>,
    backend: Box<dyn Backend>,
    clock: SessionClock,
    sink: Sink,
) -> Result<Session<Sink>, Box<dyn std::error::Error>> {
    let config = SessionConfig { shares, ..plan.session.clone() };
    let mut session = Session::new(config, backend, clock, sink)?;
    if let Some(file) = &plan.check.reference {
        let dataset = Dataset::load(file)?;
        let boards = u16::try_from(plan.session.boards.len())?;
        session = session.with_reference(EventSource::new(&dataset, boards)?);
    }
    Ok(match plan.check.pattern {
        Some(pattern) => session.with_pattern(pattern, plan.check.bare),
        None => session,
    })
}

/// A run under way.
struct Run {
    plan: Plan,
    session: Session<Sink>,
    end: End,
    observers: Observers,
}

impl Run {
    /// Receives until the run ends, and reports.
    fn complete(mut self) -> Verdict {
        let mut broken = self.watch().map_err(|error| breaks(&self.session, &error)).err();
        let sharing = self.observers.sharing.as_ref();
        let up = if sharing.is_some() { 0 } else { self.session.boards_up() };
        let silent = self.observers.silence.fault(self.session.now(), up, self.end.by_time);
        let before = self.session.report();
        self.observers.view = None;
        interrupt::last_words(last_words(&self.plan, &mut self.session));
        let mut is_finished = false;
        if broken.is_none() {
            match finish(&mut self.session, &mut self.observers.waits) {
                Ok(finished) => is_finished = finished,
                Err(error) => broken = Some(breaks(&self.session, &error)),
            }
        }
        // The report is always given: it names the fault and the progress of the run.
        let unstored = (!is_finished).then(|| self.session.store_rest().err()).flatten().map(|error| error.to_string());
        let unstored = unstored.filter(|error| broken.as_ref().is_none_or(|fault| !fault.starts_with(error)));
        self.observers.state.keep(&self.session.remembered());
        let gpu = self.session.receiver().sink().gpu.as_ref().map(gpu::now);
        let sharing = self.observers.sharing.as_ref();
        let in_vain = sharing.and_then(|sharing| sharing.waited_in_vain(self.session.messages()));
        let needs_boards = sharing.is_none_or(Sharing::has_part);
        let shared = sharing.into_iter().flat_map(|sharing| sharing.faults.clone()).chain(in_vain);
        let stopped = (!is_finished && interrupt::gives_up()).then(|| {
            self.session.give_up();
            given_up(&self.plan, &self.session)
        });
        let faults = broken.into_iter().chain(silent).chain(stopped).chain(unstored).chain(shared).collect();
        let shares = self.observers.line.as_mut().map(Line::shares);
        let outcome = Outcome { before, after: self.session.report(), gpu, shares, faults, needs_boards };
        let (text, verdict) = outcome.conclude(&self.plan);
        interrupt::prints_itself();
        print(text, verdict)
    }

    /// Receives until the run ends or a second signal gives it up.
    fn watch(&mut self) -> Result<(), SessionError> {
        let mut next_turn = Time::ZERO;
        while !interrupt::gives_up() && !self.end.poll(&mut self.session)? {
            self.session.step(TURN)?;
            let now = self.session.now();
            if now >= next_turn {
                next_turn = now + TURN;
                let is_ending = self.end.is_near;
                if is_ending {
                    interrupt::last_words(last_words(&self.plan, &mut self.session));
                }
                let mut turn = Turn { session: &mut self.session, now, is_ending, server: None };
                self.observers.list().into_iter().try_for_each(|observer| observer.observe(&mut turn))?;
            }
        }
        Ok(())
    }
}

/// Everything that watches a run.
struct Observers {
    sharing: Option<Sharing>,
    waits: WaitNotices,
    silence: Silence,
    line: Option<Line>,
    passed: Option<Passed>,
    state: State,
    view: Option<View>,
    metrics: Option<Metrics>,
    bring_up: BringUp,
}

impl Observers {
    /// The server's part first: others need it.
    fn list(&mut self) -> [&mut dyn Observer; 9] {
        [
            &mut self.sharing,
            &mut self.waits,
            &mut self.silence,
            &mut self.line,
            &mut self.passed,
            &mut self.state,
            &mut self.view,
            &mut self.metrics,
            &mut self.bring_up,
        ]
    }
}

/// Keeps to the node, before any memory is touched and any thread started.
fn stay(plan: &Plan) -> Result<(), NumaError> {
    match plan.numa {
        None => Ok(()),
        Some(NumaChoice::Node(node)) => stay_on_node(node),
        Some(NumaChoice::Nic) => stay_on_node(node_of_device(plan.nic.as_deref().unwrap_or("the RDMA device"))?),
    }
}

fn open_backend(plan: &Plan, clock: SessionClock, gpu: Option<&mut gpu::Opened>) -> Result<Box<dyn Backend>, Failure> {
    match &plan.backend {
        BackendPlan::Verbs(config) => {
            let verbs = Verbs::open(config, clock.clone()).map_err(refused)?;
            if !plan.json {
                notify(verbs.found());
            }
            match gpu {
                Some(gpu) => gpu.under(verbs, plan, clock).map_err(refused),
                None => Ok(Box::new(verbs)),
            }
        }
        BackendPlan::Packet(config) => {
            if plan.gpu.as_ref().is_some_and(|gpu| gpu.direct == GpuDirectChoice::Auto) {
                notify(format_args!(
                    "WARNING: no GPUDirect, fragments go through pinned memory: --backend packet has no NIC"
                ));
            }
            Ok(Box::new(PacketBackend::open(config, clock).map_err(refused)?))
        }
        BackendPlan::Tcp(config) => Ok(Box::new(TcpBackend::open(config, clock).map_err(refused)?)),
    }
}
