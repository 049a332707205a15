// SPDX-License-Identifier: Apache-2.0
//! What a coordinator does not accept: heartbeats of another server, run or time, and answers that no board can give.
//! Promise: each is counted and has no other effect than silence would have; a server that keeps on sending heartbeats
//! of another server or run is taken out.

use crate::board::{BoardView, Claim, READY_TO_SEND};
use crate::coordinator::Coordinator;
use crate::notice::Notice;
use crate::server::ServerView;
use crate::shares::MAX_ROWS;
use crate::state::LastCommand;
use penstock_units::Time;
use std::net::Ipv4Addr;

/// Answers without the effect of a command before a board counts as defiant: one may come late.
const DEFIANT_ANSWERS: u32 = 5;
/// Heartbeats without a queue pair, after which it is nobody's.
const ABANDONED: u32 = 5;
/// The last event that can be announced: the file of servers has signed integers.
const LAST_EVENT: u64 = i64::MAX as u64;

impl Coordinator {
    /// Whether a server's metrics are a heartbeat: of this server and run, and later than what was seen before.
    pub(crate) fn accept_view(&mut self, now: Time, at: usize, view: Option<&ServerView>) -> bool {
        let number = self.config.servers[at].number;
        let Some(view) = view else {
            self.refusals.garbled += 1;
            return false;
        };
        let why = if view.server != Some(number) {
            self.refusals.other_server += 1;
            Some(match view.server {
                Some(other) => format!("it says that it is server {other}"),
                None => "its recv runs without --servers".to_owned(),
            })
        } else if self.log.digest(view.tables_read) != Some(view.tables_digest) {
            self.refusals.other_run += 1;
            Some("it has read tables that are not in the file of servers: of another run?".to_owned())
        } else {
            None
        };
        if let Some(why) = why {
            self.servers[at].foreign_since.get_or_insert(now);
            self.notify_once(Notice::HeartbeatRefused { server: number, why });
            return false;
        }
        let (patience, server) = (self.config.heartbeat_patience, &mut self.servers[at]);
        let (is_alive, seen) = (server.alive(now, patience).is_some(), server.seen);
        let this = (view.started, view.turns);
        let is_older = seen.is_some_and(|seen| this < seen);
        if is_older && is_alive {
            self.refusals.stale += 1;
            return false;
        }
        server.seen = Some(this);
        // The first one of a process shows only that somebody had it; the next one, that the process lives.
        let is_beat = seen.is_some_and(|seen| seen.0 == this.0 && this.1 > seen.1);
        if is_beat {
            server.foreign_since = None;
            // Its queue pairs have gone with the process before.
            server.is_anew |= server.process.replace(view.started).is_some_and(|before| before != view.started);
        }
        is_beat
    }

    /// Which queue pairs of a board are those that the servers have now: a board without messages does not notice that
    /// a receiver was killed, so its queue pair looks ready, and another one of the same server may be beside it.
    pub(crate) fn note_claims(&mut self, at: usize) {
        let Some((_, view)) = &mut self.boards[at].view else { return };
        for qp in &mut view.queue_pairs {
            let its = self.config.servers.iter().position(|config| config.address == qp.peer && config.has_heartbeat);
            qp.claim = its.map_or(Claim::Unknown, |server| match &self.servers[server].heartbeat {
                None if self.config.begin => Claim::Foreign,
                None => Claim::Unknown,
                Some((_, view)) => match view.boards.get(&self.config.boards[at]).and_then(|board| board.queue_pair) {
                    None => Claim::Unknown,
                    Some(number) if number == qp.number => Claim::Matching,
                    Some(_) => Claim::Foreign,
                },
            });
        }
    }

    /// Counts the heartbeats of a server that do not name what looks like its queue pair.
    pub(crate) fn note_unclaimed(&mut self, at: usize, server: Ipv4Addr) {
        let board = &mut self.boards[at];
        let Some((_, view)) = &board.view else { return };
        for (row, qp) in (0..).zip(&view.queue_pairs).filter(|(_, qp)| qp.peer == server) {
            match qp.state == READY_TO_SEND && qp.claim == Claim::Foreign {
                true => {
                    let (number, beats) = board.unclaimed.entry(row).or_insert((qp.number, 0));
                    *beats = if *number == qp.number { *beats + 1 } else { 1 };
                    *number = qp.number;
                }
                false => _ = board.unclaimed.remove(&row),
            }
        }
    }

    /// Queue pairs whose receivers are gone for certain: a heartbeat may be older than a queue pair that has just been
    /// opened, but not so many.
    pub(crate) fn abandoned(&self, at: usize, view: &BoardView) -> Vec<u8> {
        let is_left = |(row, (number, beats)): &(&u8, &(u32, u32))| {
            let qp = view.queue_pairs.get(usize::from(**row));
            *beats >= ABANDONED && qp.is_some_and(|qp| qp.number == *number && qp.state == READY_TO_SEND)
        };
        self.boards[at].unclaimed.iter().filter(is_left).map(|(row, _)| *row).collect()
    }

    /// A run begins, and nothing shows that this server has a receiver.
    pub(crate) fn has_no_heartbeat(&self, server: usize) -> bool {
        self.config.begin && self.config.servers[server].has_heartbeat && self.servers[server].heartbeat.is_none()
    }

    /// Whether a board has carried out its command, by its new view.
    pub(crate) fn note_obedience(&mut self, now: Time, at: usize) {
        let board = &self.boards[at];
        let Some((_, view)) = &board.view else { return };
        let is_in_force = self.is_in_force(view);
        let is_moving = board.pace.is_some_and(|(events, _)| events > 0);
        let is_done = !view.busy
            && board.last_command.is_none_or(|last_command| match last_command {
                LastCommand::Belong => view.owner == self.config.owner,
                // The event from which on it was to hold them has gone: a later one is tried.
                LastCommand::Wait => view.live == 0 || (view.refused && is_moving),
                LastCommand::Take => is_in_force,
                LastCommand::Cancel => !view.prepared && !board.has_other_rows(view),
            });
        let name = self.config.boards[at].clone();
        let patience = self.config.board_patience;
        let board = &mut self.boards[at];
        if is_done {
            (board.last_command, board.defiance) = (None, None);
            if board.is_defiant && is_in_force {
                board.is_defiant = false;
                self.notify(Notice::BoardObeys { board: name });
            }
            return;
        }
        let (answers, since) = board.defiance.map_or((1, now), |(answers, since)| (answers + 1, since));
        board.defiance = Some((answers, since));
        if !board.is_defiant && answers >= DEFIANT_ANSWERS && now.saturating_sub(since) >= patience {
            let order = board.last_command.map_or("finish a command", LastCommand::order);
            board.is_defiant = true;
            self.notify(Notice::BoardDefies { board: name, order });
        }
    }

    /// Why a view cannot be true.
    pub(crate) fn why_implausible(&self, now: Time, at: usize, view: &BoardView) -> Option<String> {
        if usize::from(view.live) > MAX_ROWS || view.rows.len() > MAX_ROWS {
            return Some(format!("it says that {} servers are live, and its table has {MAX_ROWS} rows", view.live));
        }
        if view.next_event > LAST_EVENT / 2 || view.announced > LAST_EVENT {
            let event = view.next_event.max(view.announced);
            return Some(format!("it says that it is at event {event}, which is above all that a run can have"));
        }
        let (before, last) = self.boards[at].last_event.filter(|_| view.owner == self.config.owner)?;
        if view.next_event < last {
            return Some(format!("it says that it is at event {}, and it was at {last} before", view.next_event));
        }
        // More than one each nanosecond.
        let most = now.saturating_sub(before).as_ps() / 1000 + 1000;
        (view.next_event - last > most).then(|| {
            format!(
                "it says that it is at event {}, and it was at {last} {} before",
                view.next_event,
                now.saturating_sub(before)
            )
        })
    }
}
