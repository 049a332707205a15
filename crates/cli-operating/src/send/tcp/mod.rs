// SPDX-License-Identifier: Apache-2.0
//! `penstock send --protocol tcp`: streams of the simplified TCP, hundreds in one process.
//! Promise: every message arrives in order, even if the receiver is killed and restarted; exit status 0 only if
//! all messages were acknowledged. Source: CMS-TCP section 3.2 (the emulator), figure 3 (against the kernel's sockets).

mod board;
mod headers;
mod kernel;
mod link;
mod plan;
mod registers;
mod report;
mod resolve;

use super::choices::StackName;
use super::link::is_gone;
use super::plan::Plan;
use super::tables::print_report;
use super::Arguments;
use board::{Board, Segments};
use link::Link;
use penstock_cli_common::interrupt::on_interrupt;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_readout::backend::SessionClock;
use penstock_units::Time;
use plan::TcpPlan;
use registers::Registers;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Sends as the command line says.
pub fn send(arguments: &Arguments, plan: &Plan) -> Result<Verdict, Failure> {
    let tcp = TcpPlan::read(arguments, plan).map_err(Failure::Refused)?;
    let interrupted = on_interrupt()?;
    let report = match tcp.stack {
        StackName::Emulator => emulate(plan, &tcp, &interrupted)?,
        StackName::Sockets => kernel::send(plan, &tcp, &interrupted)?,
    };
    Ok(print_report(&report, &report.faults, plan.json, report::closing))
}

fn emulate(plan: &Plan, tcp: &TcpPlan, interrupted: &AtomicBool) -> Result<report::Report, Failure> {
    let clock = SessionClock::start();
    let mut link = Link::open(plan, tcp).map_err(Failure::Refused)?;
    let boards = plan.ips().zip(0..).map(|(ip, k)| Board::new(plan, tcp, ip, k));
    let mut boards: Vec<Board> = boards.collect::<Result<_, _>>().map_err(Failure::Refused)?;
    let mut registers = Registers::new(&boards, link.mac());
    if !plan.json {
        notify(report::opening(plan, tcp, link.mac()));
    }
    let (mut now, mut turn, mut failure, mut done) = (clock.now(), 0, None, None);
    while !interrupted.load(Ordering::Relaxed) && now < plan.end && !is_over(&boards, now, plan.linger, &mut done) {
        let mut busy = link.receive(now, &mut boards);
        registers.serve(&mut link, &boards);
        // The link fills up before all have had their turn: each time another one is first.
        turn = (turn + 1) % boards.len();
        for k in (turn..boards.len()).chain(0..turn) {
            busy |= boards[k].turn(now, k, &mut link);
        }
        if let Err(error) = link.flush(now, &boards) {
            failure = Some(is_gone(plan, &error));
            break;
        }
        now = clock.now();
        if !busy {
            // Nothing can be sent before the hop's MAC is known.
            let boards_due = boards.iter().map(Board::next).filter(|_| link.is_ready()).min();
            let due = boards_due.unwrap_or(Time::MAX).min(link.next(now));
            let wait = Duration::from_nanos(due.saturating_sub(now) / Time::from_ns(1));
            if let Err(error) = link.wait(wait) {
                failure = Some(is_gone(plan, &error));
                break;
            }
            now = clock.now();
        }
    }
    let elapsed = now;
    if failure.is_none() {
        hang_up(&clock, &mut link, &mut boards);
    }
    let silent =
        link.unresolved().map(|hop| format!("{}: no answer to ARP for {hop}: is it there, and up?", plan.iface));
    let mut report = report::of(&boards, elapsed, link.counts(), failure.or(silent));
    if !report.faults.is_empty() {
        report.faults.extend(link.refusal());
    }
    Ok(report)
}

/// All messages are acknowledged, and the receiver has ended the streams or had time to: its kernel acknowledges messages
/// that the receiver itself may refuse. `done`: since when.
fn is_over(boards: &[Board], now: Time, linger: Time, done: &mut Option<Time>) -> bool {
    if !boards.iter().all(|board| board.is_done() || board.is_refused()) {
        *done = None;
        return false;
    }
    let since = *done.get_or_insert(now);
    boards.iter().all(Board::is_closed) || now >= since.saturating_add(linger)
}

/// Ends all streams; segments that the link does not accept within a second are dropped.
fn hang_up(clock: &SessionClock, link: &mut Link, boards: &mut [Board]) {
    let end = clock.now() + Time::from_s(1);
    boards.iter_mut().for_each(|board| board.abort(clock.now()));
    loop {
        let now = clock.now();
        let busy = boards.iter_mut().enumerate().fold(false, |busy, (k, board)| board.transmit(now, k, link) | busy);
        if link.flush(now, boards).is_err() || now >= end || !(busy || link.has_queued()) {
            return;
        }
    }
}
