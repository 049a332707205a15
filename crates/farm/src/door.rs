// SPDX-License-Identifier: Apache-2.0
//! When a board gives queue pairs to servers that ask, and when it gives one up.
//! Promise: a queue pair that a table in force names is given to no other server, not even if it fails while another one
//! asks: servers that come back together do not
//! get each other's events, whatever their order. A server that takes nothing does not hold up the change without it.
//! Source: `connection.control.engaged` and `keep_peer`, `qp.state` (regs/connection.rdl, regs/penstock.rdl).

use crate::board::{BoardView, QueuePair, Request, READY_TO_SEND};
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::shares::Part;
use penstock_units::Time;
use std::net::Ipv4Addr;

impl Coordinator {
    /// The request about servers that request queue pairs, if the board does otherwise.
    pub(crate) fn door(&self, at: usize, view: &BoardView) -> Option<Request> {
        let (open, keeps) = (self.may_open(at, view), self.keeps(view));
        (open == view.engaged || keeps != view.keeps).then_some(Request::Door { open, keeps })
    }

    /// A queue pair that fails while the door is open stays its server's, unless a server has none and no other is left:
    /// then those of addresses that are no more make room.
    pub(crate) fn keeps(&self, view: &BoardView) -> bool {
        let without = self.config.servers.iter().filter(|server| view.queue_pair(server.address).is_none());
        let new = view.queue_pairs.iter().filter(|qp| qp.peer.is_unspecified());
        without.count() <= new.count()
    }

    /// No event can go to a queue pair that is given away now, and a server is missing.
    fn may_open(&self, at: usize, view: &BoardView) -> bool {
        let board = &self.boards[at];
        let are_safe = |rows: &Vec<u8>| rows.iter().all(|row| view.is_safe(*row));
        if view.live == 0 {
            // If an earlier coordinator replaced the table, the rows before are unknown: then no queue pair may be ready, or
            // the door stays as it is.
            let are_none_ready = view.queue_pairs.iter().all(|qp| qp.state != READY_TO_SEND);
            return view.is_past() || board.rows_before.as_ref().map_or(are_none_ready || !view.engaged, are_safe);
        }
        if !self.is_in_force(view) {
            return !view.engaged; // its table is written anew: as it was
        }
        let live = self.log.live();
        let is_away = |number: &u16, address| {
            !live.contains(number) || view.queue_pair(address).is_none_or(|(_, state)| state != READY_TO_SEND)
        };
        let mut included = self.config.servers.iter().filter(|server| !self.excluded.contains(&server.number));
        included.any(|server| is_away(&server.number, server.address))
            && board.rows.as_ref().is_some_and(are_safe)
            && (view.is_past() || board.rows_before.as_ref().is_some_and(are_safe))
    }

    /// Boards that cannot reach the last change, as their events wait for servers that shall take none, or that are full
    /// while another one has room, give up their queue pairs to those; `live`: who shall take events. A queue pair in
    /// which nothing waits is kept.
    pub(crate) fn free_stuck(&mut self, now: Time, live: &[u16]) {
        let any_room = self.has_any_room(now);
        let stuck: Vec<(usize, usize, Vec<u8>)> = (0..self.servers.len())
            .filter(|server| {
                // One that is slow, where no other one could take the events, is waited for.
                let is_full = any_room && self.servers[*server].load.was_full_within(now, self.config.full_for);
                is_full || !live.contains(&self.config.servers[*server].number)
            })
            .flat_map(|server| (0..self.boards.len()).map(move |board| (server, board)))
            .map(|(server, board)| (server, board, self.stuck(board, self.config.servers[server].address)))
            .filter(|(.., queue_pairs)| !queue_pairs.is_empty())
            .collect();
        if stuck.is_empty() {
            self.stuck_since = None;
            return;
        }
        let since = *self.stuck_since.get_or_insert(now);
        if now.saturating_sub(since) < self.config.full_for {
            return;
        }
        self.stuck_since = None;
        for (server, board, queue_pairs) in stuck {
            self.boards[board].to_fail.get_or_insert_default().extend(queue_pairs);
            let load = &mut self.servers[server].load;
            (load.part, load.changed) = (Part::Nothing, now);
            let (board, server) = (self.config.boards[board].clone(), self.config.servers[server].number);
            self.notify(Notice::Stuck { board, server });
        }
    }

    /// A board's queue pairs to this server in which messages wait, while no event comes nearer to the last change.
    fn stuck(&self, board: usize, server: Ipv4Addr) -> Vec<u8> {
        let board = &self.boards[board];
        let is_still = board.pace.is_some_and(|(events, _)| events == 0);
        let view = board.view.as_ref().map(|(_, view)| view);
        let Some(view) = view.filter(|view| {
            is_still && view.pending && !view.waits && view.owner == self.config.owner && !board.is_out()
        }) else {
            return Vec::new();
        };
        let waits = |qp: &QueuePair| qp.peer == server && qp.state == READY_TO_SEND && qp.outstanding;
        (0..).zip(&view.queue_pairs).filter(|(_, qp)| waits(qp)).map(|(row, _)| row).collect()
    }
}
