// SPDX-License-Identifier: Apache-2.0
//! Servers that cannot keep up get a smaller part of their weight, and get it back.
//!
//! A server is *full* when its `recv` says that of every board a sixteenth of the receives or less are posted, or when
//! every board has just got a receiver-not-ready NAK from it and its `recv` does not say that it waits for one of them,
//! as one that is behind the others or has lost its connection; it *has room* when its `recv` says that half of each
//! board's receives or more are posted.
//! Promise: a part shrinks only while a server of the same table has room, so that events go where they can be taken;
//! when all are full at once (too many events), or the receives of only some boards are used up (those boards are ahead
//! of the others, for which their events wait), nothing changes.

use crate::board::BoardView;
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::server::{BoardAtServer, ServerView, Vote};
use crate::shares::{table, Part};
use crate::state::Board;
use penstock_units::Time;

impl Coordinator {
    /// A server counts as full, or as one that has room, for so long after it was.
    fn longest_break(&self) -> Time {
        self.config.full_for / 2
    }

    /// Takes the credits that a `recv` announces.
    pub(crate) fn note_credits(&mut self, now: Time, at: usize, view: &ServerView) {
        let boards = || view.boards.values().filter(|board| board.is_up && board.slots > 0);
        let load = &mut self.servers[at].load;
        if boards().next().is_none() {
            return;
        }
        let is_used_up = |board: &BoardAtServer| 16 * board.credits <= board.slots;
        let is_free = |board: &BoardAtServer| 2 * board.credits >= board.slots;
        let is_away = |(name, board): (&String, &Board)| {
            !board.is_out() && view.boards.get(name).is_some_and(|at_server| !at_server.is_up)
        };
        let is_any_away = self.config.boards.iter().zip(&self.boards).any(is_away);
        match (boards().any(is_used_up), boards().any(is_free)) {
            // The events of the boards that are ahead wait for one that is behind, or that is away and may come back.
            (true, any_free) if any_free || is_any_away => (load.full, load.waits_for_board) = (None, Some(now)),
            (true, _) if boards().all(is_used_up) => load.full = Some(now),
            (false, true) if boards().all(is_free) => load.room = Some(now),
            _ => {}
        }
    }

    /// Takes the NAKs that a board has got since the view before.
    pub(crate) fn note_naks(&mut self, now: Time, at: usize, before: &BoardView, view: &BoardView) {
        for (old, new) in before.queue_pairs.iter().zip(&view.queue_pairs) {
            let is_refused = old.peer == new.peer && old.state == new.state && old.rnr_naks != new.rnr_naks;
            let server = self.config.servers.iter().position(|server| server.address == new.peer);
            if let Some(server) = server.filter(|_| is_refused) {
                self.boards[at].refused_by.insert(server, now);
                let is_recent = |last: &Time| now.saturating_sub(*last) <= self.longest_break();
                let boards = self.boards.iter().filter(|board| !board.is_out() && !board.is_cut_off);
                let are_all_refused =
                    boards.map(|board| board.refused_by.get(&server)).all(|last| last.is_some_and(is_recent));
                let load = &self.servers[server].load;
                if are_all_refused && !load.waits_for_board.as_ref().is_some_and(is_recent) {
                    self.servers[server].load.full = Some(now);
                }
            }
        }
    }

    /// The parts of an earlier coordinator, as far as the last table shows them.
    pub(crate) fn resume_parts(&mut self) {
        let live = self.log.live();
        let rows: Vec<u64> = self
            .config
            .servers
            .iter()
            .map(|server| live.iter().filter(|other| **other == server.number).count() as u64)
            .collect();
        // The server with the most rows for its weight has all of it.
        let weights = || self.config.servers.iter().map(|server| u64::from(server.weight));
        let most = rows.iter().copied().zip(weights()).max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
        let Some((most, its_weight)) = most else { return };
        let parts: Vec<Part> = rows
            .iter()
            .zip(weights())
            .map(
                |(rows, weight)| if *rows == 0 { Part::Whole } else { Part::nearest(rows * its_weight, most * weight) },
            )
            .collect();
        for (server, part) in self.servers.iter_mut().zip(parts) {
            (server.load.part, server.load.changed) = (part, self.started);
        }
    }

    /// The rows of a table of these servers by their parts. If none has any part, each has a quarter: better slow
    /// servers than none.
    pub(crate) fn table_of(&self, servers: &[usize]) -> Vec<u16> {
        let units = |part: &dyn Fn(usize) -> Part| -> Vec<(u16, u64)> {
            let of = |at: &usize| {
                let config = &self.config.servers[*at];
                (config.number, u64::from(config.weight) * part(*at).quarters())
            };
            servers.iter().map(of).collect()
        };
        let rows = table(&units(&|at| self.servers[at].load.part));
        if rows.is_empty() {
            table(&units(&|_| Part::Quarter))
        } else {
            rows
        }
    }

    fn is_live(&self, at: usize) -> bool {
        self.log.live().contains(&self.config.servers[at].number)
    }

    /// A server of the table could take what another one cannot.
    pub(crate) fn has_any_room(&self, now: Time) -> bool {
        let longest_break = self.longest_break();
        let has_room = |at: usize| {
            let load = &self.servers[at].load;
            self.is_live(at)
                && !load.was_full_within(now, longest_break)
                && load.room.is_some_and(|last| now.saturating_sub(last) <= longest_break)
                && self.vote(now, at) == Vote::Ready
        };
        (0..self.servers.len()).any(has_room)
    }

    /// Changes the parts of servers that have been full, or have not been for long; whether one has changed.
    pub(crate) fn weigh(&mut self, now: Time) -> bool {
        let (longest_break, full_for) = (self.longest_break(), self.config.full_for);
        let any_room = self.has_any_room(now);
        let mut notices = Vec::new();
        for at in 0..self.servers.len() {
            let is_live = self.is_live(at);
            let (load, server) = (&mut self.servers[at].load, self.config.servers[at].number);
            let is_pressed = is_live && any_room && load.was_full_within(now, longest_break);
            load.pressed_since = is_pressed.then(|| load.pressed_since.unwrap_or(now));
            let pressed =
                load.pressed_since.zip(load.full).map(|(since, last)| last.saturating_sub(since.max(load.changed)));
            let has_been_pressed = pressed.is_some_and(|time| time >= full_for);
            let has_been_free = !load.was_full_within(now, self.config.relief)
                && now.saturating_sub(load.changed) >= self.config.relief;
            let part = match load.part {
                part if has_been_pressed => part.less(),
                part if has_been_free => part.more(),
                part => part,
            };
            if part != load.part {
                let quarters = part.quarters();
                notices.push(match quarters < load.part.quarters() {
                    true => Notice::ServerFull { server, quarters },
                    false => Notice::ServerFree { server, quarters },
                });
                (load.part, load.changed) = (part, now);
            }
        }
        let any = !notices.is_empty();
        notices.into_iter().for_each(|notice| self.notify(notice));
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Claim, QueuePair, READY_TO_SEND};
    use crate::config::{FarmConfig, ServerConfig};
    use crate::tables::Tables;
    use std::net::Ipv4Addr;

    #[test]
    fn a_server_that_waits_for_one_board_is_not_full_though_it_refuses_all() {
        let names = ["ahead", "behind"].map(String::from);
        let address = Ipv4Addr::LOCALHOST;
        let server = ServerConfig { number: 0, address, weight: 1, has_heartbeat: true };
        let config = FarmConfig::new(7, names.to_vec(), vec![server]);
        let mut coordinator = Coordinator::new(config, Tables::new("run".into(), vec![0]), Time::ZERO);
        let mut is_full_after = |ms: u64, credits: [u64; 2], are_up: [bool; 2]| {
            let now = Time::from_ms(ms);
            let at_server = |(credits, is_up)| BoardAtServer { is_up, credits, slots: 8, queue_pair: None };
            let boards = names.iter().cloned().zip(credits.into_iter().zip(are_up).map(at_server)).collect();
            coordinator.note_credits(now, 0, &ServerView { boards, ..ServerView::default() });
            let view = |rnr_naks| {
                let (number, claim) = (5, Claim::Unknown);
                let qp = QueuePair { state: READY_TO_SEND, peer: address, number, claim, rnr_naks, outstanding: true };
                BoardView { queue_pairs: vec![qp], ..BoardView::default() }
            };
            (0..2).for_each(|board| coordinator.note_naks(now, board, &view(1), &view(2)));
            coordinator.servers[0].load.was_full_within(now, Time::from_ms(100))
        };
        let both = [true; 2];
        assert!(is_full_after(1, [0, 3], both), "both are refused, and it has room for neither");
        assert!(!is_full_after(2, [0, 5], both));
        assert!(!is_full_after(400, [2, 2], both), "it has just been so");
        assert!(is_full_after(600, [2, 2], both));
        assert!(!is_full_after(601, [0, 0], [true, false]), "the other may come back");
        assert!(is_full_after(1200, [0, 0], both));
    }
}
