// SPDX-License-Identifier: Apache-2.0
//! When a board gives queue pairs to servers that ask, and when it gives one up.
//! Promise: a queue pair that a table in force names is given to no other server: servers that come back together do not
//! get each other's events, whatever their order. A server that takes nothing does not hold up the change without it.
//! Source: `connection.control.engaged`, `qp.state` (regs/connection.rdl, regs/penstock.rdl).

use crate::board::{BoardView, Request, READY_TO_SEND};
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::shares::Part;
use penstock_units::Time;

impl Coordinator {
    /// What a board is told about servers that ask, if it does otherwise.
    pub(crate) fn door(&self, at: usize, view: &BoardView) -> Option<Request> {
        let open = self.may_open(at, view);
        (open == view.engaged).then_some(Request::Door { open })
    }

    /// No event can go to a queue pair that is given away now, and a server is missing.
    fn may_open(&self, at: usize, view: &BoardView) -> bool {
        let board = &self.boards[at];
        let are_safe = |rows: &Vec<u8>| rows.iter().all(|row| view.is_safe(*row));
        if view.live == 0 {
            return view.is_past() || board.rows_before.as_ref().is_some_and(are_safe);
        }
        if !self.is_in_force(view) {
            return !view.engaged; // its table is written anew: as it was
        }
        let live = self.log.live();
        let is_away = |number: &u16, address| {
            !live.contains(number) || view.queue_pair(address).is_none_or(|(_, state)| state != READY_TO_SEND)
        };
        let mut wanted = self.config.servers.iter().filter(|server| !self.wanted_out.contains(&server.number));
        wanted.any(|server| is_away(&server.number, server.address))
            && board.rows.as_ref().is_some_and(are_safe)
            && (view.is_past() || board.rows_before.as_ref().is_some_and(are_safe))
    }

    /// Boards that cannot reach the last change, as their events wait for servers that shall take none or that are full,
    /// give up their queue pairs to those; `live`: who shall take events.
    pub(crate) fn free_stuck(&mut self, now: Time, live: &[u16]) {
        let since = *self.obstructed_since.get_or_insert(now);
        if now.saturating_sub(since) < self.config.full_for {
            return;
        }
        self.obstructed_since = Some(now);
        let longest_break = self.config.full_for;
        for at in 0..self.servers.len() {
            let (number, address) = (self.config.servers[at].number, self.config.servers[at].address);
            let is_full = self.servers[at].load.was_full_within(now, longest_break);
            if live.contains(&number) && !is_full {
                continue;
            }
            for board in 0..self.boards.len() {
                let Some((_, view)) = &self.boards[board].view else { continue };
                if !view.pending || view.waits || view.owner != self.config.owner {
                    continue;
                }
                let takes =
                    |row: usize| view.queue_pairs[row].peer == address && view.queue_pairs[row].state == READY_TO_SEND;
                let stuck = (0..view.queue_pairs.len()).filter(|row| takes(*row)).map(|row| row as u8);
                let stuck: Vec<u8> = stuck.collect();
                if stuck.is_empty() {
                    continue;
                }
                let name = self.config.boards[board].clone();
                self.boards[board].to_fail.get_or_insert_default().extend(stuck);
                self.servers[at].load.part = Part::Nothing;
                self.servers[at].load.changed = now;
                self.say(Notice::Stuck { board: name, server: number });
            }
        }
    }
}
