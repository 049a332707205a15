// SPDX-License-Identifier: Apache-2.0
//! `penstock board`: the verilated gateware as a live endpoint, on a TAP device, a packet socket, the socket of a
//! virtual machine, or a replay of a capture. Manual: docs/board.md.

mod arguments;
mod connections;
mod control;
mod destinations;
mod management;
mod page;
mod plan;
mod received;
mod report;
mod session;
mod setup;
mod slices;
mod target;

pub use arguments::{mac, Arguments, Network, SocketPair};
pub use plan::mac_of;

use control::Control;
use management::Management;
use page::{threshold, BoardPage};
use penstock_cc::Law;
use penstock_cli_common::interrupt::on_interrupt;
use penstock_cli_common::live::Page;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_cli_common::output::{print, to_verdict};
use penstock_dashboard::Listener;
use plan::Plan;
use received::Received;
use report::{BoardReport, ABANDONED, REFUSED};
use session::{Progress, Session};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs the board; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(Plan::read(arguments).and_then(|plan| live(&plan)))
}

fn live(plan: &Plan) -> Result<Verdict, Failure> {
    let listener = plan.live.listen()?;
    let interrupted = on_interrupt()?;
    let (mut session, closed) = setup::session(plan, &interrupted)?;
    let mut watched = match listener {
        Some(listener) => Some(watch(plan, listener, &session)?),
        None => None,
    };
    let mut control = plan.control.then(Control::open);
    let mut beside = Beside {
        received: Received::open(plan)?,
        management: plan.cm_port.map(|port| Management::open(plan, port, &mut session.board)).transpose()?,
    };
    if !plan.json {
        notify(format_args!("{}; Ctrl-C ends it", setup::greeting(plan)));
    }
    let end = follow(&mut session, &mut beside, plan, &interrupted, watched.as_mut(), control.as_mut());
    let rdma_cm = beside.end(&mut session)?;
    let frames = session.board.finish_capture().map_err(|error| Failure::Fault(error.to_string()))?;
    let (now, progress) = (session.board.now(), session.progress());
    let mut report = BoardReport::new(session, end?, frames)?;
    if let Some(why) = closed {
        report.unfinished = Some(format!("the queue pair was not opened: {why}"));
    }
    report.rdma_cm = rdma_cm;
    report.resets = control.map(|control| control.resets().clone());
    if let Some((page, _)) = &watched {
        report.steered = page.applied();
        page.end(report.end(), now, progress, &report);
    }
    let json = || serde_json::to_string_pretty(&report).expect("a report has only plain keys");
    let text = if plan.json { json() } else { report::text(&report) };
    let verdict = print(text, report.verdict());
    if let Some((page, _)) = &watched {
        page.stay(&interrupted);
    }
    Ok(verdict)
}

/// The page of a board.
fn watch(plan: &Plan, listener: Listener, session: &Session) -> Result<(Page, BoardPage), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let file = plan.switch.as_ref().map(|switch| switch.file.as_path());
    let text = file.map(std::fs::read_to_string).transpose().map_err(|error| refused(&error))?;
    let mut given = plan.switch.as_ref().map(|switch| switch.set.clone()).unwrap_or_default();
    let law = plan.transport.law.and_then(|law| match law {
        Law::Off => Some("off"),
        Law::Dcqcn => Some("dcqcn"),
        Law::Qcn => None,
    });
    given.extend(law.map(|law| format!("cc.law={law}")));
    let mut board = BoardPage::new(file.zip(text), given, plan.transport.qp, plan.transport.law != Some(Law::Qcn));
    let limit = threshold(session);
    let manifest = board.manifest(&format!("board {}", plan.network.ip), plan.top.clock(), limit.is_some());
    let settings = board.settings(limit).map_err(|error| refused(&error))?;
    let page = Page::open(&plan.live, Some(listener), manifest, settings, "messages")?;
    board.record_into(page.recording().clone());
    Ok((page, board))
}

/// What is beside the front end: the user of its stream from servers, and a connection manager.
struct Beside {
    received: Received,
    management: Option<Management>,
}

impl Beside {
    fn turn(&mut self, session: &mut Session) -> Result<(), Failure> {
        self.received.turn(&mut session.board)?;
        match &mut self.management {
            Some(management) => management.turn(&mut session.board),
            None => Ok(()),
        }
    }

    /// Ends the connections; the counts of the connection manager.
    fn end(&mut self, session: &mut Session) -> Result<Option<BTreeMap<String, u64>>, Failure> {
        let Some(management) = &mut self.management else { return Ok(None) };
        management.hang_up(&mut session.board);
        session.board.turn(Duration::ZERO)?;
        Ok(Some(management.counters(&session.board)))
    }
}

/// Runs until the session is over; returns how it ended.
fn follow(
    session: &mut Session,
    beside: &mut Beside,
    plan: &Plan,
    interrupted: &AtomicBool,
    mut watched: Option<&mut (Page, BoardPage)>,
    mut control: Option<&mut Control>,
) -> Result<&'static str, Failure> {
    /// How long Ctrl-C, or a control of the page, may have to wait.
    const LONGEST_SLEEP: Duration = Duration::from_millis(100);
    let begun = Instant::now();
    loop {
        match session.turn(LONGEST_SLEEP)? {
            Progress::Done if !plan.end.stay => return Ok("done"),
            Progress::Abandoned => return Ok(ABANDONED),
            Progress::Refused => return Ok(REFUSED),
            _ => {}
        }
        beside.turn(session)?;
        if let Some(control) = control.as_deref_mut() {
            control.turn(session, plan)?;
        }
        if let Some((page, board)) = watched.as_deref_mut() {
            board.look(session, page)?;
            while let Some(request) = page.poll_request() {
                board.handle(request, session, page);
            }
            let (done, total) = session.progress();
            page.advance(session.board.now(), done, total, interrupted);
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok("interrupted");
        }
        if plan.end.wall_s.is_some_and(|limit| begun.elapsed().as_secs_f64() >= limit) {
            return Ok("wall time limit");
        }
        if plan.end.time.is_some_and(|limit| session.board.now() >= limit) {
            return Ok("time limit");
        }
    }
}
