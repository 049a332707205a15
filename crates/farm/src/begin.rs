// SPDX-License-Identifier: Apache-2.0
//! Where a run begins and ends, and boards that are given back.
//! Promise: a run begins at one event that no board has passed, whatever an earlier run has left at the boards, and
//! ends before one event, from which on all boards wait for the next run.

use crate::board::{BoardView, Request};
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::state::{Action, LastCommand, Leaving, Phase};
use crate::tables::{Change, Mark};
use penstock_units::Time;

impl Coordinator {
    /// The run is to end: every server takes the events before one event, and nobody later ones.
    pub fn end(&mut self, now: Time) {
        self.ending_since.get_or_insert(now);
    }

    /// The run has ended, and every board holds what comes next.
    pub fn has_ended(&self) -> bool {
        self.log.end().is_some() && self.phase == Phase::Steady && self.is_parked()
    }

    /// Gives the boards back; `open`: with queue pairs for whoever asks.
    pub fn leave(&mut self, open: bool) {
        self.leaving = Some(if open { Leaving::Open } else { Leaving::Closed });
    }

    /// The boards that belong to this coordinator, by name: none once it has left.
    pub fn boards_kept(&self) -> impl Iterator<Item = &str> {
        let boards = self.boards.iter().zip(&self.config.boards);
        boards.filter(|(board, _)| board.is_ours).map(|(_, name)| name.as_str())
    }

    /// Every board has the last table.
    fn is_parked(&self) -> bool {
        let mut boards = self.boards.iter().filter(|board| !board.is_out());
        boards.all(|board| board.view.as_ref().is_some_and(|(_, view)| self.is_in_force(view)))
    }

    /// Whether it is known where the run begins. A board that has sent events of an earlier run holds the next ones; the
    /// run begins where the last of them does.
    pub(crate) fn begin_run(&mut self, now: Time) -> bool {
        if self.is_begun {
            return true;
        }
        let mut first = 0;
        for (board, name) in self.boards.iter().zip(&self.config.boards).filter(|(board, _)| !board.is_out()) {
            match &board.view {
                None => return false,
                Some((_, view)) if view.owner != self.config.owner || view.busy || view.prepared => return false,
                Some((_, view)) if view.live > 0 => {
                    self.has_abandoned = true;
                    let why = format!("{name} sends events of another run, and has been commanded to hold them");
                    self.notify_once(Notice::Waits { why });
                    return false;
                }
                Some((_, view)) => first = first.max(view.announced).max(view.next_event),
            }
        }
        self.is_begun = true;
        if first > 0 {
            let change = Change { first, live: self.log.live().to_vec(), mark: Mark::Begin };
            self.begun = now;
            self.out.push_back(Action::Log(change.clone()));
            self.enter(now, Phase::Logging(change));
        }
        first == 0
    }

    /// The request to a board that may have a table of an earlier run.
    pub(crate) fn park(&mut self, now: Time, at: usize, view: &BoardView) -> Option<Request> {
        if view.live == 0 {
            return self.door(at, view);
        }
        if !view.engaged {
            return Some(Request::Door { open: false, keeps: self.keeps(view) });
        }
        let board = &self.boards[at];
        if board.last_command == Some(LastCommand::Wait) && board.look_due > now {
            return None; // one has been refused, as its event had gone
        }
        let first = self.unreached(now, board)?;
        self.boards[at].last_event = None;
        Some(Request::Replace { first, rows: Vec::new() })
    }

    /// A board that has lost all servers while others have not holds its events by itself, so that they may open queue
    /// pairs again.
    pub(crate) fn park_cut_off(&mut self, now: Time, at: usize, view: &BoardView) -> Option<Request> {
        let board = &self.boards[at];
        let is_long = board.cut_off_since.is_some_and(|since| now.saturating_sub(since) >= self.config.settle);
        let is_lost = is_long && board.look_due <= now && view.live > 0 && (!view.pending || view.waits);
        // A board that was set up anew has no event that it remembers.
        let first = self.unreached(now, board).filter(|_| is_lost)?.max(self.log.first());
        Some(Request::Replace { first, rows: Vec::new() })
    }

    /// The last event is the one before this change.
    pub(crate) fn end_run(&mut self, now: Time, since: Time) {
        if let Some(why) = self.obstacle() {
            if !self.may_end_at_rest() {
                self.notify_once(Notice::Waits { why });
                if now.saturating_sub(since) >= self.config.start_patience {
                    self.leave_out();
                }
                return;
            }
        }
        let change = Change { first: self.end_event(now), live: Vec::new(), mark: Mark::End };
        self.request(now, change);
    }

    /// An event that no board will have sent when it is asked; the next one where the detector rests. A board whose very
    /// first event comes while it gets the table from 0 has sent it anyway, as no board refuses a table from 0 on.
    fn end_event(&self, now: Time) -> u64 {
        let boards = self.boards.iter().filter(|board| !board.is_out());
        boards.filter_map(|board| self.unreached(now, board)).fold(self.log.reached().max(self.sent), u64::max)
    }

    /// No board has reached the last change, as no events come: each can have it replaced by the end of the run.
    fn may_end_at_rest(&self) -> bool {
        let mut boards = self.boards.iter().filter(|board| !board.is_out());
        self.sent <= self.log.first()
            && boards.all(|board| {
                let view = board.view.as_ref().map(|(_, view)| view);
                let is_still = board.pace.is_some_and(|(events, _)| events == 0);
                is_still && view.is_some_and(|view| self.is_in_force(view) && (view.waits || view.rests()))
            })
    }

    /// The run ends without boards that keep it from that.
    fn leave_out(&mut self) {
        for at in 0..self.boards.len() {
            let board = &self.boards[at];
            let Some(why) = self.obstacle_at(at).filter(|_| !board.is_out()) else { continue };
            self.boards[at].is_left_out = true;
            self.notify(Notice::BoardLeftOut { board: self.config.boards[at].clone(), why });
        }
    }
}
