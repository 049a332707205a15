// SPDX-License-Identifier: Apache-2.0
//! `penstock recv`: opens boards, receives, builds events, stores them; on an RDMA NIC or on none.
//! Promise: exit status 0 only if every board came up, every fragment was right and every event whole.
//! Source: issue F; the loop is `penstock_readout::session`.

mod boards;
mod metrics;
mod options;
mod sink;
mod state;
mod tables;
mod view;

use crate::run::{on_interrupt, told, Failure};
use crate::screen::say;
use crate::Verdict;
use options::{NumaChoice, Settings};
use penstock_readout::backend::{Backend, GidChoice, PacketBackend, PacketConfig, SessionClock, Verbs, VerbsConfig};
use penstock_readout::session::{Session, SessionError, SessionReport};
use penstock_readout::{node_of_device, stay_on_node, Dataset, EventSource, NumaError};
use sink::Sink;
use std::sync::atomic::Ordering;
use std::time::Duration;
use view::View;

pub use options::Arguments;

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
    let settings = Settings::read(arguments).map_err(Failure::Refused)?;
    let interrupted = on_interrupt()?;
    stay(arguments).map_err(refused)?;
    let clock = SessionClock::start();
    let backend = open_backend(arguments, &settings, clock)?;
    if let Some(warning) = backend.warning() {
        eprintln!("WARNING: {warning}");
    }
    let address = backend.address();
    let told = settings.session.clone();
    let sink = Sink::open(arguments).map_err(refused)?;
    let mut session = Session::new(settings.session, backend, clock, sink).map_err(refused)?;
    if let Some(file) = &arguments.reference {
        let dataset = Dataset::load(file).map_err(refused)?;
        let boards = u16::try_from(told.boards.len()).map_err(refused)?;
        session = session.with_reference(EventSource::new(&dataset, boards).map_err(refused)?);
    }
    if let Some(name) = arguments.payload {
        session = session.with_pattern(name.pattern(), arguments.bare);
    }
    let mut memory = state::State::open(arguments.state.as_deref(), address.ip);
    session.forget_earlier(&memory.earlier());
    let metrics = arguments.metrics.map(metrics::Metrics::serve).transpose().map_err(Failure::Refused)?;
    let title = tables::opening(arguments, &told, &address);
    if !arguments.json {
        eprintln!("{title}");
    }
    let mut view = (!arguments.json).then(|| View::open(title, arguments.events.or(arguments.messages))).flatten();

    let (mut told_of_missing, mut next_turn) = (false, 0);
    let bring_up_ps = u64::from(arguments.bring_up) * PS_PER_S;
    let end_ps = arguments.seconds.map_or(u64::MAX, |s| (s * PS_PER_S as f64) as u64);
    let enough = |session: &Session<Sink>| {
        arguments.events.is_some_and(|n| session.events_stored() >= n)
            || arguments.messages.is_some_and(|n| session.receiver().messages_compared() >= n)
    };
    while !interrupted.load(Ordering::Relaxed) && !enough(&session) && session.now_ps() < end_ps {
        session.step(TURN_PS).map_err(fault)?;
        let now = session.now_ps();
        if now < next_turn {
            continue;
        }
        next_turn = now + TURN_PS;
        memory.keep(&session.remembered());
        if let Some(view) = view.as_mut().filter(|view| view.is_due()) {
            let stalled = session.receiver().stalled().map(ToString::to_string);
            view.draw(session.report(), stalled);
        }
        if let Some(metrics) = &metrics {
            metrics.tell(&session.report());
        }
        if !told_of_missing && now > bring_up_ps {
            told_of_missing = true;
            tables::missing(&session.report()).iter().for_each(|line| say(line));
        }
    }
    let report = session.report();
    drop(view);
    finish(&mut session)?;
    memory.keep(&session.remembered());
    Ok(conclude(arguments, report, session.report()))
}

/// Closes all. What was acknowledged is not given up for a full disk or want of file descriptors: it waits for them.
fn finish(session: &mut Session<Sink>) -> Result<(), Failure> {
    let mut told = false;
    loop {
        match session.finish(2 * PS_PER_S) {
            Err(SessionError::Store(error)) if error.is_retriable() => {
                if !told {
                    eprintln!("waiting: {error}; events are held until they can be stored, Ctrl-C twice gives them up");
                }
                told = true;
                std::thread::sleep(Duration::from_millis(100));
            }
            result => return result.map_err(fault),
        }
    }
}

/// Before any memory is touched and any thread started.
fn stay(arguments: &Arguments) -> Result<(), NumaError> {
    let nic = || arguments.device.as_deref().or(arguments.iface.as_deref()).unwrap_or("the RDMA device");
    match arguments.numa {
        None => Ok(()),
        Some(NumaChoice::Node(node)) => stay_on_node(node),
        Some(NumaChoice::Nic) => stay_on_node(node_of_device(nic())?),
    }
}

/// Boards as they were before they were closed, all else as it is now.
fn conclude(arguments: &Arguments, before: SessionReport, after: SessionReport) -> Verdict {
    let states = before.boards.into_iter().zip(after.boards).map(|(before, mut after)| {
        (after.state, after.trouble) = (before.state, before.trouble);
        after
    });
    let boards = states.collect();
    let report = SessionReport { boards, seconds: before.seconds, cpu_seconds: before.cpu_seconds, ..after };
    let faults = tables::faults(&report);
    match arguments.json {
        true => {
            let mut json = serde_json::to_value(&report).expect("a report has only plain keys");
            json["faults"] = serde_json::json!(faults);
            println!("{json:#}");
        }
        false => println!("{}", tables::closing(&report, &faults)),
    }
    if faults.is_empty() {
        Verdict::Verified
    } else {
        Verdict::Fault
    }
}

fn open_backend(arguments: &Arguments, settings: &Settings, clock: SessionClock) -> Result<Box<dyn Backend>, Failure> {
    let mtu = settings.session.mtu;
    match arguments.backend {
        options::BackendName::Verbs => {
            let by_ip = arguments.ip.map(GidChoice::Address);
            let gid = arguments.gid.or(by_ip).unwrap_or_default();
            let config = VerbsConfig { device: arguments.device.clone(), gid, mtu: Some(mtu) };
            let verbs = Verbs::open(&config, clock).map_err(refused)?;
            if !arguments.json {
                eprintln!("{}", verbs.found());
            }
            Ok(Box::new(verbs))
        }
        options::BackendName::Packet => {
            let missing = || Failure::Refused("--backend packet needs --iface, an Ethernet interface".to_owned());
            let (iface, boards) = (arguments.iface.clone().ok_or_else(missing)?, settings.session.boards.len());
            let config = PacketConfig { iface, ip: arguments.ip, boards, mtu };
            Ok(Box::new(PacketBackend::open(&config, clock).map_err(refused)?))
        }
    }
}
