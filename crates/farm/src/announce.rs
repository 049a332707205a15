// SPDX-License-Identifier: Apache-2.0
//! A change that is in the log, until the boards may make it.
//! Promise: boards hold its events until every server that can take some has read it. One that has not, as it was
//! suspended, gets none of them: it would go by the table before once it goes on.

use crate::board::{Claim, READY_TO_SEND};
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::server::Vote;
use crate::state::Phase;
use crate::tables::Change;
use penstock_units::Time;

/// Two looks of a `recv` at the file, also of one that boards have given up: it may live.
const READING: Time = Time::from_ms(200);

impl Coordinator {
    /// Waits for servers that are to read the change; then boards may make it.
    pub(crate) fn announce(&mut self, now: Time, change: Change, since: Time) {
        let (patience, waited) = (self.config.heartbeat_patience, now.saturating_sub(since));
        // After a restart: the live servers are not known yet, but those that the boards have given up.
        let is_unknown = |at: usize| {
            let is_alive = !self.config.servers[at].has_heartbeat || self.servers[at].heartbeat.is_some();
            !is_alive && self.vote(now, at) != Vote::Dead
        };
        if now.saturating_sub(self.started) < patience && (0..self.servers.len()).any(is_unknown) {
            return;
        }
        let tables = self.log.count() as u64;
        let has_not_read = |at: &usize| {
            let heartbeat = self.servers[*at].heartbeat.as_ref();
            heartbeat.is_some_and(|(_, view)| view.tables_read < tables)
        };
        let lives = |at: &usize| self.servers[*at].alive(now, patience).is_some() && self.vote(now, *at) != Vote::Dead;
        // One that the change takes out gets none of its events.
        let gets_some = |at: &usize| change.live.contains(&self.config.servers[*at].number);
        let has_way = |at: &usize| gets_some(at) && !self.takes_messages(*at).is_empty();
        let is_behind = |at: &usize| has_not_read(at) && (lives(at) || has_way(at));
        let behind: Vec<usize> = (0..self.servers.len()).filter(is_behind).collect();
        let living: Vec<usize> = behind.iter().copied().filter(lives).collect();
        let limit = if living.is_empty() { READING } else { self.config.read_patience };
        if !behind.is_empty() && waited < limit {
            return;
        }
        let without = behind.iter().filter(|server| gets_some(server));
        let held: Vec<(usize, Vec<u8>)> = without.flat_map(|server| self.takes_messages(*server)).collect();
        for server in living {
            let server = self.config.servers[server].number;
            self.notify_once(Notice::Unread { server, first: change.first });
        }
        if !held.is_empty() && waited < self.config.read_patience.saturating_add(self.config.board_patience) {
            for (board, queue_pairs) in held {
                let board = &mut self.boards[board];
                if !board.is_pending {
                    board.to_fail.get_or_insert_default().extend(queue_pairs);
                }
            }
            return;
        }
        self.enter(now, Phase::Confirming(change));
    }

    /// The boards that can send to a server, and their queue pairs to it.
    fn takes_messages(&self, server: usize) -> Vec<(usize, Vec<u8>)> {
        let address = self.config.servers[server].address;
        let views = self.views().filter(|(at, _)| !self.boards[*at].is_out());
        let of = views.map(|(at, view)| {
            // One that the process which is behind does not have is another process's, which has read the file.
            let its = (0..)
                .zip(&view.queue_pairs)
                .filter(|(_, qp)| qp.peer == address && qp.state == READY_TO_SEND && qp.claim != Claim::Foreign);
            (at, its.map(|(row, _)| row).collect::<Vec<u8>>())
        });
        of.filter(|(_, queue_pairs)| !queue_pairs.is_empty()).collect()
    }
}
