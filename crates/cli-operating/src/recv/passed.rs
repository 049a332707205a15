// SPDX-License-Identifier: Apache-2.0
//! Reads from the boards of a farm, over IPbus, which event they have passed, while they have no connection.
//! Promise: events wait for a board that is away and still holds its fragments; a board whose register cannot be read is
//! waited for as briefly as without this.
//! Source: `destination.last_event` (regs/destination.rdl). A board of a farm never sends again what was under way over a
//! connection that is lost, and its next connection needs an empty ring. An event in that ring may wait for another
//! board, and that board at another server for this one: only the register shows what is waited for in vain.

use super::observer::{Observer, Turn};
use super::sink::Sink;
use crate::last_event;
use penstock_cli_common::output::screen::notify;
use penstock_ipbus::{AccessError, BoardAddress, Fleet, FleetError, Patience, RequestId, PORT};
use penstock_readout::session::{BoardSpec, BoardState, Session, SessionError};
use penstock_units::Time;
use std::net::SocketAddrV4;

/// The time without an answer after which a request has failed.
const PATIENCE: Patience = Patience(Time::from_s(2));

/// Time between two requests to a board without a connection.
const INTERVAL: Time = Time::from_ms(300);

/// Time between two requests to a board with a connection, until it has answered.
const AGAIN: Time = Time::from_s(2);

/// Requests in vain in a row, of a board with a connection, after which it counts as one that does not report.
const UNANSWERED: u32 = 5;

/// The boards of a farm.
pub struct Passed {
    fleet: Fleet,
    boards: Vec<Requested>,
    /// How long events wait for a board that does not report.
    absence: Time,
    /// When boards with a connection are looked at next.
    next: Time,
}

/// Whether a board reports which event it has passed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reports {
    /// So it is expected; how many requests were in vain while it had a connection.
    Expected(u32),
    Yes,
    No,
}

/// A board, by its address.
struct Requested {
    sources: Vec<usize>,
    id: Option<RequestId>,
    /// When the next request may be made.
    due: Time,
    reports: Reports,
}

impl Passed {
    /// Events wait for a board for `outage`, and for `absence` once it is certain that its register cannot be read.
    ///
    /// # Errors
    /// There is no socket.
    pub fn open(
        session: &mut Session<Sink>,
        sources: &[BoardSpec],
        outage: Time,
        absence: Time,
    ) -> Result<Passed, FleetError> {
        let mut addresses: Vec<BoardAddress> = Vec::new();
        let mut boards: Vec<Requested> = Vec::new();
        for (source, BoardSpec { ip, .. }) in sources.iter().enumerate() {
            session.expect_passed(source, true, outage);
            let address = BoardAddress(SocketAddrV4::new(*ip, PORT));
            match addresses.iter().position(|at| at.0 == address.0) {
                Some(at) => boards[at].sources.push(source),
                None => {
                    addresses.push(address);
                    let reports = Reports::Expected(0);
                    boards.push(Requested { sources: vec![source], id: None, due: Time::ZERO, reports });
                }
            }
        }
        let fleet = Fleet::open(&addresses, PATIENCE, std::process::id().into())?;
        Ok(Passed { fleet, boards, absence, next: Time::ZERO })
    }

    /// Requests the registers of boards that are away, and of others until they have answered once.
    fn request(&mut self, now: Time, session: &mut Session<Sink>) {
        let mut is_due = session.away();
        let is_unknown = |board: &&Requested| matches!(board.reports, Reports::Expected(_));
        if now >= self.next && self.boards.iter().any(|board| is_unknown(&board)) {
            self.next = now + AGAIN;
            let reports = session.report().boards;
            for source in self.boards.iter().filter(is_unknown).flat_map(|board| &board.sources) {
                is_due[*source] |= reports[*source].state == BoardState::Up;
            }
        }
        for (at, board) in self.boards.iter_mut().enumerate() {
            let is_due = board.sources.iter().any(|source| is_due[*source]);
            if is_due && board.id.is_none() && now >= board.due {
                board.id = Some(self.fleet.submit(at, &last_event::reads().into_iter().collect()));
                board.due = now + INTERVAL;
            }
        }
    }

    /// Passes on what boards have answered.
    fn take_answers(&mut self, session: &mut Session<Sink>) -> Result<(), FleetError> {
        self.fleet.turn(Time::ZERO)?;
        while let Some((at, id, outcome)) = self.fleet.poll_outcome() {
            let board = &mut self.boards[at];
            if board.id.take_if(|requested| *requested == id).is_none() {
                continue;
            }
            let event = outcome.as_ref().ok().and_then(|words| last_event::last_event(words));
            if outcome.is_ok() {
                board.sources.iter().for_each(|source| session.passed(*source, event));
            }
            if event.is_some() {
                board.reports = Reports::Yes;
            } else if let Reports::Expected(in_vain) = board.reports {
                let in_vain = if board.is_in_vain(session) { in_vain + 1 } else { 0 };
                let is_certain = matches!(outcome, Err(AccessError::Refused { .. })) || in_vain >= UNANSWERED;
                board.reports = if is_certain { Reports::No } else { Reports::Expected(in_vain) };
                if is_certain {
                    board.sources.iter().for_each(|source| session.expect_passed(*source, false, self.absence));
                }
            }
        }
        Ok(())
    }
}

impl Requested {
    /// Whether a request should have shown an event: events of the board have come, over a connection that it has.
    fn is_in_vain(&self, session: &mut Session<Sink>) -> bool {
        let reports = session.report().boards;
        let has_sent = |source: &usize| reports[*source].state == BoardState::Up && reports[*source].messages > 0;
        self.sources.iter().any(has_sent)
    }
}

impl Observer for Passed {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        if let Err(error) = self.take_answers(turn.session) {
            notify(format_args!("WARNING: the event that boards have passed cannot be read: {error}"));
        }
        self.request(turn.now, turn.session);
        // What was requested goes out now.
        let _ = self.fleet.turn(Time::ZERO);
        Ok(())
    }
}
