// SPDX-License-Identifier: Apache-2.0
//! Evaluates the views: missing boards, dead servers, ready servers.
//! Promise: a board that has lost every server, or was away and has lost some, does not count in the judgement of
//! servers; every change has a reported reason.

use crate::board::{BoardView, QueuePair, CLOSED, IN_ERROR, READY_TO_SEND};
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::server::Vote;
use crate::tables::Mark;
use penstock_units::Time;
use std::net::Ipv4Addr;

/// The time in which servers find out that a board is back, and open their queue pairs again.
const REOPENED: Time = Time::from_s(5);

impl Coordinator {
    /// Who is missing, and who is gone for the servers too.
    pub(crate) fn watch_boards(&mut self, now: Time) {
        for at in 0..self.boards.len() {
            let name = self.config.boards[at].clone();
            let silence = now.saturating_sub(self.boards[at].silent_since);
            let silent = silence >= self.config.board_patience;
            let begins = self.boards.iter().any(|board| board.must_begin);
            let is_edge = begins || self.ending_since.is_some() || self.phase.mark() != Mark::None;
            let patience = self.config.heartbeat_patience;
            let alive = self.servers.iter().filter_map(|server| server.alive(now, patience));
            let is_alive = alive.filter_map(|view| view.boards.get(&name)).any(|board| board.is_up);
            let board = &mut self.boards[at];
            let why = match is_alive {
                true => {
                    "its slow control does not answer, though servers hear of it: is the way to it cut, or this host \
                     not on its access list?"
                }
                false => &board.trouble,
            };
            let why = why.to_owned();
            if silent != board.is_missing {
                board.is_missing = silent;
                if !silent {
                    board.is_gone = false;
                    board.back_since = Some(now);
                }
                self.notify(if silent {
                    Notice::BoardMissing { board: name, why }
                } else {
                    Notice::BoardBack { board: name }
                });
            } else if silent && !board.is_gone {
                let patience = self.config.heartbeat_patience;
                let answers: Vec<bool> = self
                    .servers
                    .iter()
                    .filter_map(|server| server.alive(now, patience)?.boards.get(&name))
                    .map(|board| board.is_up)
                    .collect();
                if !answers.is_empty() && !answers.contains(&true) {
                    self.boards[at].is_gone = true;
                    self.notify(Notice::BoardGone { board: name });
                } else if is_edge && silence >= self.config.start_patience {
                    self.boards[at].is_gone = true;
                    self.notify(Notice::BoardLeftOut { board: name, why });
                }
            }
        }
    }

    /// A queue pair of a server is gone: it has failed, or it was closed while the board's table holds. The board gives
    /// no other one to that server before the table has changed. Of a server that names none of those that take messages
    /// nothing is certain, unless it was heard of often while an event waits for a queue pair: the view may be older than
    /// the heartbeat, and others of an earlier run.
    fn has_lost(&self, at: usize, view: &BoardView, server: Ipv4Addr) -> bool {
        let is_lost = |state| state == IN_ERROR || (state == CLOSED && self.is_in_force(view));
        let abandoned = if view.waits { self.abandoned(at, view) } else { Vec::new() };
        let takes_messages =
            |(row, qp): (u8, &QueuePair)| qp.peer == server && qp.state == READY_TO_SEND && !abandoned.contains(&row);
        view.queue_pair(server).is_some_and(|(_, state)| is_lost(state))
            && !(0..).zip(&view.queue_pairs).any(takes_messages)
    }

    pub(crate) fn vote(&self, now: Time, at: usize) -> Vote {
        let address = self.config.servers[at].address;
        let (mut ready, mut failed, mut voters) = (0, false, 0);
        for (board, view) in self.views().filter(|(at, _)| !self.boards[*at].is_cut_off) {
            if self.boards[board].is_out() {
                continue;
            }
            voters += 1;
            match view.queue_pair(address) {
                Some((_, READY_TO_SEND)) => ready += 1,
                _ if self.has_lost(board, view, address) => failed = true,
                _ => {}
            }
        }
        let present = self.boards.iter().filter(|board| !board.is_out() && !board.is_cut_off).count();
        let was_there = self.servers[at].was_ready || now.saturating_sub(self.started) >= self.config.start_patience;
        match () {
            () if failed || (voters > 0 && voters == present && ready == 0 && was_there) => Vote::Dead,
            () if voters > 0 && voters == present && ready == voters => Vote::Ready,
            () => Vote::Unsure,
        }
    }

    pub(crate) fn watch_servers(&mut self, now: Time) {
        // A board is itself the fault if it has lost all servers at once while another board has not, or if it was away:
        // then its timers have given up what other boards' have not.
        let live: Vec<Ipv4Addr> = self
            .config
            .servers
            .iter()
            .filter(|server| self.log.live().contains(&server.number))
            .map(|server| server.address)
            .collect();
        let has_failed = |at: usize, view: &BoardView| {
            let board = &self.boards[at];
            let patience = self.config.board_patience.max(REOPENED);
            let is_just_back = board.back_since.is_some_and(|since| now.saturating_sub(since) < patience);
            let failed = live.iter().filter(|address| self.has_lost(at, view, **address)).count();
            let least = if board.is_cut_off || is_just_back { 1 } else { live.len() };
            live.len() > 1 && failed >= least
        };
        let failed: Vec<usize> = self.views().filter(|(at, view)| has_failed(*at, view)).map(|(at, _)| at).collect();
        let rest = self.views().count() > failed.len();
        for at in 0..self.boards.len() {
            let is_cut_off = rest && failed.contains(&at);
            if is_cut_off && !self.boards[at].is_cut_off {
                self.notify(Notice::BoardCutOff { board: self.config.boards[at].clone() });
            }
            let board = &mut self.boards[at];
            board.is_cut_off = is_cut_off;
            board.cut_off_since = is_cut_off.then(|| board.cut_off_since.unwrap_or(now));
        }
        for at in 0..self.servers.len() {
            let beats = !self.config.servers[at].has_heartbeat
                || self.servers[at].alive(now, self.config.heartbeat_patience).is_some();
            let ready = beats && self.vote(now, at) == Vote::Ready;
            let since = self.servers[at].ready_since;
            self.servers[at].ready_since = ready.then(|| since.unwrap_or(now));
            self.servers[at].was_ready |= ready;
            self.servers[at].is_anew &= self.log.live().contains(&self.config.servers[at].number);
        }
    }

    /// The rows of those who shall take events; why the first that leaves does.
    pub(crate) fn target_rows(&self, now: Time) -> (Vec<u16>, Option<(u16, &'static str)>) {
        let (mut servers, mut why) = (Vec::new(), None);
        for (at, config) in self.config.servers.iter().enumerate() {
            let (server, number) = (&self.servers[at], config.number);
            // A heartbeat that has never been is no sign of death.
            let is_silent = config.has_heartbeat
                && server
                    .heartbeat
                    .as_ref()
                    .is_some_and(|(at, _)| now.saturating_sub(*at) >= self.config.heartbeat_patience);
            let leaves = match self.vote(now, at) {
                _ if self.excluded.contains(&number) => Some("it shall take no more events"),
                _ if server
                    .foreign_since
                    .is_some_and(|since| now.saturating_sub(since) >= self.config.heartbeat_patience) =>
                {
                    Some("its heartbeat is that of another server or run")
                }
                Vote::Dead if self.has_no_heartbeat(at) => Some("it has sent no heartbeat"),
                Vote::Dead => Some("the boards' queue pairs to it have failed"),
                _ if server.is_anew => Some("its recv has begun anew"),
                _ if is_silent => Some("its heartbeat has stopped"),
                _ => None,
            };
            let settled = server.ready_since.is_some_and(|since| now.saturating_sub(since) >= self.config.settle);
            let is_live = self.log.live().contains(&number);
            match leaves {
                None if is_live || settled => servers.push(at),
                Some(reason) if is_live => why = why.or(Some((number, reason))),
                _ => {}
            }
        }
        (self.table_of(&servers), why)
    }
}
