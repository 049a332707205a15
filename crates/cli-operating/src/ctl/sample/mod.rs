// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl sample`: R_C, R_T, alpha, stage and notifications of queue pairs over time, as the laboratory's trace.
//! Promise: writes a folder like `penstock run`: trace.parquet, summary.json, report.html. The time of a sample is the
//! midpoint between its request and its reply, by this host's clock; a sample without a reply is missing, and counted.
//! Source: AdvCam figure 14; docs/lab.md lists the metrics.

mod arguments;
mod page;
mod reading;
mod summary;

use super::session::Session;
use penstock_cli_common::interrupt::{be_quiet, on_interrupt};
use penstock_cli_common::live::{LiveOptions, Page};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::results::{self, SUMMARY, TRACE};
use penstock_cli_common::output::{print, screen::notify};
use penstock_dashboard::Settings;
use penstock_ipbus::Request;
use penstock_netsim::TraceSink;
use penstock_units::Time;
use reading::Sampled;
use std::sync::atomic::{AtomicBool, Ordering};

pub use arguments::Arguments;

/// An interrupt waits no longer than this, and then for answers under way.
const TURN: Time = Time::from_ms(50);
const LAST_ANSWERS: Time = Time::from_ms(500);

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let live = LiveOptions::at(arguments.live.clone());
    let listener = live.listen()?;
    let mut session = Session::open(&arguments.boards)?;
    let interrupted = on_interrupt()?;
    be_quiet();
    let mut faults = session.unfit();
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    if let Some((board, count)) = session
        .fit()
        .map(|(board, identity)| (board, identity.build.queue_pairs))
        .find(|(_, count)| arguments.queue_pairs.iter().any(|qp| u32::from(*qp) >= *count))
    {
        let board = session.address(board);
        return Err(Failure::Refused(match count {
            0 => format!("{board} has no queue pairs: its gateware is built without RoCE; sample the other boards"),
            _ => format!("--queue-pairs: {board} has {count}, 0 to {}", count - 1),
        }));
    }
    if !arguments.overwrite {
        results::refuse_foreign(&arguments.out, None).map_err(|error| refused(&error))?;
    }
    results::prepare(&arguments.out).map_err(|error| refused(&error))?;
    let metadata = [("penstock.source", "boards"), ("penstock.clock", "host")];
    let mut trace = TraceSink::create(arguments.out.join(TRACE), &metadata).map_err(|error| refused(&error))?;
    let (manifest, plan) = page::of(&session, arguments);
    let page = Page::open(&live, listener, manifest, Settings::default(), "s")?;
    trace.set_tee(page.tee(plan, arguments.boards.link.patience));

    let mut sampled = Sampled::new(&session, &arguments.queue_pairs);
    let sampling = sample(&mut session, arguments, &mut sampled, &mut trace, &page, &interrupted);
    let (elapsed, end) = sampling?;
    let rows = trace.finish().map_err(|error| Failure::Fault(error.to_string()))?;
    sampled.faults(&session, &mut faults);
    let summary = summary::of(&session, arguments, &sampled, (elapsed, end, rows), &faults);
    page.end(end, elapsed, (elapsed.as_ps() / 1_000_000_000_000, 0), &summary);
    results::write(&arguments.out.join(SUMMARY), &format!("{summary:#}\n"))?;
    let verdict = page.report(&arguments.out, faults.verdict());
    faults.print();
    let text = match arguments.boards.link.json {
        true => summary.to_string(),
        false => summary::text(&session, &sampled, elapsed, &arguments.out),
    };
    Ok(print(text, verdict))
}

/// Requests a sample of a board, unless its last one is still under way.
fn request_sample(session: &mut Session, sampled: &mut Sampled, board: usize, request: &Request, now: Time) {
    if session.fleet.is_idle(board) {
        session.fleet.submit(board, request);
        sampled.mark_requested(board, now);
    } else {
        sampled.missed(board);
    }
}

/// Samples until the time is over; how long that was, and how it ended.
fn sample(
    session: &mut Session,
    arguments: &Arguments,
    sampled: &mut Sampled,
    trace: &mut TraceSink,
    page: &Page,
    interrupted: &AtomicBool,
) -> Result<(Time, &'static str), Failure> {
    let fault = |error: penstock_ipbus::FleetError| Failure::Fault(error.to_string());
    let boards: Vec<usize> = session.fit().map(|(board, _)| board).collect();
    if boards.is_empty() {
        return Ok((Time::ZERO, "no board"));
    }
    let (begin, last) = (session.fleet.now(), arguments.time.unwrap_or(Time::MAX));
    let request = reading::request(&arguments.queue_pairs);
    session.fleet.gather(arguments.interval / 10);
    let (mut tick, mut reported_at, mut stopped) = (0, Time::ZERO, None);
    loop {
        let now = session.fleet.now().saturating_sub(begin);
        if interrupted.load(Ordering::Relaxed) {
            stopped.get_or_insert(now);
        }
        let is_over = now >= last || stopped.is_some();
        // Answers under way are taken; a board that is silent is not waited for once the user has had enough.
        let is_late = stopped.is_some_and(|since| now >= since.saturating_add(LAST_ANSWERS));
        if is_late || is_over && boards.iter().all(|board| session.fleet.is_idle(*board)) {
            break;
        }
        let due = arguments.interval.saturating_mul(tick);
        if !is_over && now >= due {
            for board in &boards {
                request_sample(session, sampled, *board, &request, now);
            }
            // Of ticks that this host was too slow for, none is made up for.
            let next = now.as_ps() / arguments.interval.as_ps() + 1;
            sampled.late(next - tick - 1);
            tick = next;
        }
        let until =
            if is_over { Time::from_ms(10) } else { arguments.interval.saturating_mul(tick).saturating_sub(now) };
        session.fleet.turn(until.min(TURN)).map_err(fault)?;
        while let Some((board, _, outcome)) = session.fleet.poll_outcome() {
            let answered_at = session.fleet.last_answer(board).saturating_sub(begin);
            if let Some(silent) = sampled.answered(board, answered_at, outcome, trace) {
                notify(format_args!("{}: {silent}", session.address(board)));
            }
        }
        if now >= reported_at {
            reported_at = now + Time::from_ms(100);
            let total = arguments.time.map_or(0, |time| time.as_ps() / 1_000_000_000_000);
            page.advance(now, now.as_ps() / 1_000_000_000_000, total, interrupted);
        }
        trace.check().map_err(|error| Failure::Fault(error.to_string()))?;
    }
    let end = if interrupted.load(Ordering::Relaxed) { "interrupted" } else { "done" };
    Ok((session.fleet.now().saturating_sub(begin), end))
}
