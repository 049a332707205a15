// SPDX-License-Identifier: Apache-2.0
//! The request to a board, which depends only on its last view and the state of the change at hand.

use crate::board::{BoardView, Request, READY_TO_SEND};
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::state::{Attempt, Board, Leaving, Phase};
use crate::tables::Mark;
use penstock_units::Time;

impl Coordinator {
    /// The request to a board, from its last view.
    pub(crate) fn request_for(&mut self, now: Time, at: usize) -> Option<Request> {
        let view = self.boards[at].view.as_ref().map(|(_, view)| view.clone())?;
        if view.owner != self.config.owner {
            return self.claim(at, &view);
        }
        // Not before a claim has succeeded: one may be lost.
        self.boards[at].may_take = false;
        if view.busy {
            return Some(Request::Look);
        }
        if let Some(leaving) = self.leaving {
            let is_open = !view.engaged && !view.keeps;
            let opens = leaving == Leaving::Open && !is_open;
            return Some(if opens { Request::Door { open: true, keeps: false } } else { Request::Release });
        }
        if let Some(queue_pairs) = self.boards[at].to_fail.take() {
            return Some(Request::Fail { queue_pairs });
        }
        // A command is repeated with each look.
        if self.boards[at].is_defiant && self.boards[at].look_due > now {
            return None;
        }
        if view.prepared {
            return self.resolve(now, at, &view);
        }
        // They make room for those of the run that begins.
        let abandoned = self.abandoned(at, &view);
        if self.boards[at].must_begin && view.live == 0 && !abandoned.is_empty() {
            self.boards[at].unclaimed.clear(); // a request may be lost: it is made again
            return Some(Request::Fail { queue_pairs: abandoned });
        }
        if self.boards[at].must_begin && !self.is_begun {
            return self.park(now, at, &view);
        }
        let prepares = matches!(self.phase, Phase::Preparing(_)) && self.takes_part(&view);
        if (prepares || self.is_in_force(&view)) && !self.boards[at].must_begin {
            return self.prepare_board(now, at, &view);
        }
        // A board that holds the events after the end of the run waits for the others, or has its table again.
        let holds_end = self.boards[at].attempt != Attempt::None && view.live == 0 && !self.log.live().is_empty();
        if holds_end && matches!(self.phase, Phase::Preparing(_) | Phase::Logging(_)) {
            return None;
        }
        if holds_end && self.phase == Phase::Cancelling {
            let rows = self.boards[at].rows.clone().or_else(|| self.rows(&view, self.log.live()))?;
            return Some(Request::Replace { first: self.log.first(), rows });
        }
        // Fresh, reset, or with an old table. It waits for its queue pairs, and for servers that read.
        if matches!(self.phase, Phase::Announced { .. } | Phase::Logging(_)) {
            return None;
        }
        self.set_up(now, at, &view)
    }

    /// Takes a board of no owner, or of another one if it may.
    fn claim(&mut self, at: usize, view: &BoardView) -> Option<Request> {
        if self.leaving.is_some() {
            return None;
        }
        if view.owner != 0 && !self.boards[at].may_take {
            self.notify(Notice::Taken { board: self.config.boards[at].clone(), owner: view.owner });
            self.is_over = true;
            return None;
        }
        Some(Request::Claim)
    }

    /// Ends a change that the board has prepared, unless it is the one at hand: as the log has it.
    fn resolve(&mut self, now: Time, at: usize, view: &BoardView) -> Option<Request> {
        let first = view.announced;
        match &self.phase {
            Phase::Preparing(change) | Phase::Logging(change) if change.first == first => return None,
            Phase::Announced { change, .. } if change.first == first => return None,
            _ => {}
        }
        let confirmed = self.log.changes_at(first, view.rows.len());
        if !self.boards[at].is_defiant && !matches!(self.phase, Phase::Cancelling | Phase::Confirming(_)) {
            self.notify(Notice::Resolved { board: self.config.boards[at].clone(), first, confirmed });
            if confirmed && first == self.log.first() && self.phase == Phase::Steady {
                // Servers may not have read it: as if it had just been written.
                let change = self.log.last().clone();
                self.enter(now, Phase::Announced { change, since: now });
                return None;
            }
        }
        if confirmed {
            Some(Request::Confirm)
        } else {
            self.cancel(at, view)
        }
    }

    /// The part of a board with the table in force in the change at hand.
    fn prepare_board(&mut self, now: Time, at: usize, view: &BoardView) -> Option<Request> {
        let change = match &self.phase {
            Phase::Preparing(change) => change.clone(),
            Phase::Cancelling if self.boards[at].has_other_rows(view) => return self.cancel(at, view),
            Phase::Steady => return self.door(at, view).or_else(|| self.park_cut_off(now, at, view)),
            _ => return None,
        };
        if self.boards[at].attempt != Attempt::None {
            return None;
        }
        // What it holds by itself belongs to the table in force, as what others have sent does: before a change from a
        // later event on, it would find no server.
        let holds = view.live == 0 && view.next_event < change.first;
        if holds && self.log.live().iter().any(|server| self.has_way(view, *server)) {
            return self.write_tables(at, view);
        }
        (self.boards[at].attempt, self.boards[at].last_command) = (Attempt::Requested, None);
        let rows = self.rows(view, &change.live)?;
        self.boards[at].staged = Some(rows.clone());
        let (first, is_at_rest) = (change.first, change.mark == Mark::End && view.pending && !view.waits);
        Some(if is_at_rest { Request::Replace { first, rows } } else { Request::Prepare { first, rows } })
    }

    /// The table in force is what is edited, too.
    fn cancel(&self, at: usize, view: &BoardView) -> Option<Request> {
        let rows = self.boards[at].rows.clone().or_else(|| self.rows(view, self.log.live()))?;
        Some(Request::Cancel { rows })
    }

    /// A board has a queue pair to a server. One that holds its events can wait for a server that comes back.
    fn has_way(&self, view: &BoardView, server: u16) -> bool {
        let to_it = self.address(server).and_then(|address| view.queue_pair(address));
        to_it.is_some_and(|(_, state)| view.live > 0 || state == READY_TO_SEND)
    }

    fn set_up(&mut self, now: Time, at: usize, view: &BoardView) -> Option<Request> {
        let (name, first) = (self.config.boards[at].clone(), self.log.first());
        let live = self.log.live().to_vec();
        let waited = now.saturating_sub(self.boards[at].unset_since.unwrap_or(now));
        let is_early = waited < self.config.start_patience;
        let has_none = !live.iter().any(|server| self.has_way(view, *server));
        let lacks = |view: &BoardView| live.iter().copied().find(|server| !self.has_way(view, *server));
        // Servers wait for a board whose connection is lost, but not for one that has never come.
        let begins = |board: &Board| board.must_begin && !board.is_out();
        let rest = self.boards.iter().enumerate().filter(|(_, other)| is_early && begins(other));
        let of_another = rest.filter(|_| self.boards[at].must_begin).find_map(|(other, board)| {
            let lacks_one = board.view.as_ref().map_or(live.first().copied(), |(_, view)| lacks(view));
            lacks_one.map(|server| (other, server))
        });
        let missing = lacks(view).map(|server| (at, server)).filter(|_| is_early || has_none).or(of_another);
        if let Some((other, server)) = missing {
            let name = &self.config.boards[other];
            let has_no_heartbeat = |at: usize| self.config.servers[at].number == server && self.has_no_heartbeat(at);
            let why = match (0..self.servers.len()).any(has_no_heartbeat) {
                true => format!("server {server} has sent no heartbeat yet"),
                false => format!("{name} has no queue pair to server {server} yet"),
            };
            self.notify_once(Notice::Waits { why });
            return self.door(at, view);
        }
        if view.live > 0 && !self.boards[at].must_begin && view.next_event > first {
            self.notify(Notice::BoardStrayed { board: name.clone(), first, next: view.next_event });
        }
        self.write_tables(at, view)
    }

    /// The last table, and the one before it where events of that may still come.
    fn write_tables(&mut self, at: usize, view: &BoardView) -> Option<Request> {
        let (name, first) = (self.config.boards[at].clone(), self.log.first());
        let rows = self.rows(view, self.log.live())?;
        // The two tables are two packets: of a board whose next event is the last table's none may go in between.
        let before = match view.next_event >= first {
            true => Vec::new(),
            false => self.rows(view, self.log.live_before())?,
        };
        let rows_before = (first > 0).then(|| before.clone());
        self.boards[at].must_begin = false;
        let board = &mut self.boards[at];
        (board.rows, board.rows_before, board.staged) = (Some(rows.clone()), rows_before, None);
        board.last_event = None;
        match board.is_defiant {
            true => self.notify_once(Notice::BoardSetUp { board: name, first }),
            false => self.notify(Notice::BoardSetUp { board: name, first }),
        }
        Some(Request::SetUp { before, first, rows })
    }
}
