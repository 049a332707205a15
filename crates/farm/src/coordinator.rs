// SPDX-License-Identifier: Apache-2.0
//! The state machine of the coordinator.
//!
//! ```text
//! Steady --a server died or is ready--> Preparing --all boards prepared--> Logging --written--> Announced
//!    ^                                      |                                                      | living servers
//!    |                                      v refused, silent, reset                               v have read it
//!    +------none is prepared any more-- Cancelling              +---all have it in force--------- Confirming
//!    +----------------------------------------------------------+
//! ```
//!
//! The request to a board depends only on its last view and this state, so that a lost answer, a reset board, and
//! a change left by an earlier coordinator are all handled in the same way.

use crate::board::{BoardView, Request, READY_TO_SEND};
use crate::config::FarmConfig;
use crate::notice::Notice;
use crate::server::{Server, ServerView};
use crate::state::{Action, Attempt, Board, LastCommand, Leaving, Phase, Refusals};
use crate::tables::{Change, Mark, Tables};
use penstock_units::Time;
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Views after which rows are not what they seem.
const MAX_REFUSED_VIEWS: u32 = 5;

/// The coordinator.
#[derive(Debug)]
pub struct Coordinator {
    pub(crate) config: FarmConfig,
    pub(crate) log: Tables,
    pub(crate) phase: Phase,
    pub(crate) boards: Vec<Board>,
    pub(crate) servers: Vec<Server>,
    pub(crate) excluded: BTreeSet<u16>,
    /// When the change at hand was wanted, and from when on the next may be.
    pub(crate) started: Time,
    pub(crate) begun: Time,
    pub(crate) not_before: Time,
    pub(crate) lead: Time,
    pub(crate) reported: BTreeSet<String>,
    pub(crate) phase_since: Time,
    pub(crate) refusals: Refusals,
    /// Whether it is known at which event the run begins.
    pub(crate) is_begun: bool,
    /// Whether boards were found in a run without an end.
    pub(crate) has_abandoned: bool,
    /// Time since when the run is to end.
    pub(crate) ending_since: Option<Time>,
    /// The lowest event number above all that a board is known to have sent.
    pub(crate) sent: u64,
    /// Boards are given back.
    pub(crate) leaving: Option<Leaving>,
    /// Time since when boards have been held up by servers that take nothing.
    pub(crate) stuck_since: Option<Time>,
    pub(crate) is_over: bool,
    pub(crate) out: VecDeque<Action>,
}

impl Coordinator {
    /// `log` is the present contents of the file.
    pub fn new(config: FarmConfig, log: Tables, now: Time) -> Self {
        let boards = config.boards.iter().map(|_| Board::new(&config, now)).collect();
        let servers = config.servers.iter().map(|_| Server::default()).collect();
        let (lead, is_begun) = (config.lead, !config.begin);
        let mut coordinator = Coordinator {
            config,
            log,
            phase: Phase::Steady,
            boards,
            servers,
            excluded: BTreeSet::new(),
            started: now,
            begun: now,
            not_before: now,
            lead,
            reported: BTreeSet::new(),
            phase_since: now,
            refusals: Refusals::default(),
            is_begun,
            has_abandoned: false,
            ending_since: None,
            sent: 0,
            leaving: None,
            stuck_since: None,
            is_over: false,
            out: VecDeque::new(),
        };
        coordinator.resume_parts();
        coordinator.advance(now);
        coordinator
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Action> {
        self.out.pop_front()
    }

    /// When [`Coordinator::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Time {
        let looks = self.boards.iter().filter(|board| !board.is_pending).map(|board| board.look_due);
        looks.min().unwrap_or(Time::MAX)
    }

    /// Another coordinator has the boards: nothing more is to be done.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// No change is under way.
    pub fn is_steady(&self) -> bool {
        self.phase == Phase::Steady
    }

    /// Answers that were not accepted.
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Boards that answer and do not carry out their commands.
    pub fn boards_defiant(&self) -> usize {
        self.boards.iter().filter(|board| board.is_defiant).count()
    }

    pub fn log(&self) -> &Tables {
        &self.log
    }

    /// Boards that answer, and have the last table in force.
    pub fn boards_in_force(&self) -> usize {
        self.boards.iter().filter(|board| board.view.as_ref().is_some_and(|(_, view)| self.is_in_force(view))).count()
    }

    /// Servers that shall take no events though they could.
    pub fn take_out(&mut self, servers: impl IntoIterator<Item = u16>) {
        self.excluded = servers.into_iter().collect();
    }

    /// Sets the server's weight from now on.
    pub fn set_weight(&mut self, server: u16, weight: u8) {
        self.config
            .servers
            .iter_mut()
            .filter(|config| config.number == server)
            .for_each(|config| config.weight = weight);
    }

    /// The part of its weight that each server has.
    pub fn parts(&self) -> impl Iterator<Item = (u16, f64)> + '_ {
        let part = |server: &Server| server.load.part.quarters() as f64 / 4.0;
        self.config.servers.iter().zip(&self.servers).map(move |(config, server)| (config.number, part(server)))
    }

    /// Takes the answer of a board: its view after the request, or why there is none.
    pub fn handle_board(&mut self, now: Time, board: usize, answer: Result<BoardView, String>) {
        let state = &mut self.boards[board];
        state.is_pending = false;
        state.look_due = now + self.config.look;
        if state.attempt == Attempt::Requested {
            let is_taken = answer.as_ref().is_ok_and(|view| !view.refused);
            state.attempt = if is_taken { Attempt::Taken } else { Attempt::Failed };
        }
        let answer = answer.and_then(|view| match self.why_implausible(now, board, &view) {
            None => Ok(view),
            Some(why) => {
                self.refusals.boards += 1;
                self.notify_once(Notice::AnswerRefused { board: self.config.boards[board].clone(), why: why.clone() });
                Err(why)
            }
        });
        let state = &mut self.boards[board];
        match answer {
            Ok(view) => {
                let is_ours = view.owner == self.config.owner;
                state.is_ours = is_ours;
                state.last_event = is_ours.then_some((now, view.next_event));
                self.sent = self.sent.max(view.next_event);
                let before = state.view.take();
                state.note_pace(now, before.as_ref(), view.next_event, self.config.look);
                state.answered(now);
                if let Some((_, before)) = &before {
                    self.note_naks(now, board, before, &view);
                }
                self.boards[board].view = Some((now, view));
                self.note_claims(board);
                self.note_rows(now, board);
                self.note_obedience(now, board);
            }
            Err(why) => (state.view, state.trouble) = (None, why),
        }
        self.advance(now);
    }

    /// The consequences of a new view for the tables of this board.
    fn note_rows(&mut self, now: Time, at: usize) {
        let Some((_, view)) = self.boards[at].view.clone() else { return };
        let view = &view;
        let (is_in_force, is_prepared, rows) = (self.is_in_force(view), view.prepared, view.rows.clone());
        let board = &mut self.boards[at];
        if is_in_force {
            let confirmed =
                board.staged.take_if(|_| board.rows.is_none() || matches!(self.phase, Phase::Confirming(_)));
            if confirmed.is_some() {
                board.rows_before = board.rows.take();
            }
            board.rows = confirmed.or(board.rows.take()).or(Some(rows));
        }
        let (waits, queue_pairs) = (view.waits, &view.queue_pairs);
        let is_ready = |row: &u8| queue_pairs.get(usize::from(*row)).is_some_and(|qp| qp.state == READY_TO_SEND);
        let is_odd = waits && board.rows.as_ref().is_some_and(|rows| !rows.is_empty() && rows.iter().all(is_ready));
        board.refused_views = if is_odd { board.refused_views + 1 } else { 0 };
        let since = board.unset_since;
        board.unset_since = (!is_in_force && !is_prepared).then(|| since.unwrap_or(now));
    }

    /// Processes a server's metrics; none if it has answered with something else.
    pub fn handle_server(&mut self, now: Time, server: u16, view: Option<ServerView>) {
        let found = self.config.servers.iter().position(|config| config.number == server);
        if let Some(at) = found {
            let is_accepted = self.accept_view(now, at, view.as_ref());
            if let Some(view) = view.filter(|_| is_accepted) {
                self.note_credits(now, at, &view);
                self.servers[at].heartbeat = Some((now, view));
                for board in 0..self.boards.len() {
                    self.note_claims(board);
                    self.note_unclaimed(board, self.config.servers[at].address);
                }
            }
        }
        self.advance(now);
    }

    /// The change is in the log and lasts, or is not in it.
    pub fn handle_logged(&mut self, now: Time, result: Result<(), String>) {
        let Phase::Logging(change) = std::mem::replace(&mut self.phase, Phase::Steady) else { return };
        let announced = result.and_then(|()| match self.log.announce(change.clone()) {
            true => Ok(()),
            false => Err("the log has a later change".into()),
        });
        match announced {
            Ok(()) => {
                self.boards.iter_mut().for_each(|board| board.is_left_out = false);
                self.notify(match change.mark {
                    Mark::None => Notice::Decided { first: change.first, live: change.live.clone() },
                    Mark::Begin => Notice::RunBegins { first: change.first, live: change.live.clone() },
                    Mark::End => Notice::RunEnds { first: change.first },
                });
                if change.mark == Mark::Begin && self.has_abandoned {
                    self.notify(Notice::RunAbandoned { first: change.first });
                }
                self.enter(now, Phase::Announced { change, since: now });
            }
            Err(why) => self.postpone(now, &change, why),
        }
        self.advance(now);
    }

    /// Looks at what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
    }

    // ---- what goes on -----------------------------------------------------------------------------------

    pub(crate) fn notify(&mut self, notice: Notice) {
        self.out.push_back(Action::Notify(notice));
    }

    /// Reports it once, until `reported` is cleared.
    pub(crate) fn notify_once(&mut self, notice: Notice) {
        if self.reported.insert(notice.to_string()) {
            self.notify(notice);
        }
    }

    fn advance(&mut self, now: Time) {
        if self.is_over {
            return;
        }
        self.watch_boards(now);
        self.watch_servers(now);
        match self.phase.clone() {
            Phase::Steady => self.begin(now),
            Phase::Preparing(change) => self.prepare(now, change),
            Phase::Cancelling => {
                let settled = |board: &Board| {
                    board.view.as_ref().is_none_or(|(_, view)| !view.prepared && !board.has_other_rows(view))
                };
                if self.boards.iter().all(|board| board.is_defiant || (!board.is_pending && settled(board))) {
                    self.boards.iter_mut().for_each(|board| board.staged = None);
                    self.enter(now, Phase::Steady);
                }
            }
            Phase::Logging(_) => {}
            Phase::Announced { change, since } => self.announce(now, change, since),
            Phase::Confirming(change) => {
                let done = |board: &Board| {
                    board
                        .view
                        .as_ref()
                        .is_some_and(|(_, view)| self.is_in_force(view) && view.announced == change.first)
                };
                if self.boards.iter().all(|board| board.is_out() || done(board)) {
                    self.enter(now, Phase::Steady);
                    self.lead = self.config.lead;
                    self.reported.clear();
                    let took = now.saturating_sub(self.begun);
                    self.notify(Notice::Done { first: change.first, live: change.live, took });
                }
            }
        }
        for at in 0..self.boards.len() {
            if self.boards[at].is_pending || self.is_over {
                continue;
            }
            let request = self.request_for(now, at);
            let look = (self.boards[at].look_due <= now).then_some(Request::Look);
            if let Some(request) = request.or(look) {
                self.boards[at].is_pending = true;
                self.boards[at].last_command = LastCommand::by(&request).or(self.boards[at].last_command);
                self.out.push_back(Action::Request { board: at, request });
            }
        }
    }

    pub(crate) fn enter(&mut self, now: Time, phase: Phase) {
        (self.phase, self.phase_since) = (phase, now);
    }

    pub(crate) fn views(&self) -> impl Iterator<Item = (usize, &BoardView)> {
        self.boards.iter().enumerate().filter_map(|(at, board)| board.view.as_ref().map(|(_, view)| (at, view)))
    }

    /// The last table holds at this board.
    pub(crate) fn is_in_force(&self, view: &BoardView) -> bool {
        view.owner == self.config.owner
            && !view.busy
            && !view.prepared
            && view.announced == self.log.first()
            && usize::from(view.live) == self.log.live().len()
    }

    /// A board can be asked for a change: it has the last table, or has put its events off by itself.
    pub(crate) fn takes_part(&self, view: &BoardView) -> bool {
        let is_parked = view.owner == self.config.owner
            && !view.busy
            && !view.prepared
            && view.live == 0
            && view.announced > self.log.first();
        self.is_in_force(view) || is_parked
    }

    pub(crate) fn address(&self, server: u16) -> Option<Ipv4Addr> {
        self.config.servers.iter().find(|config| config.number == server).map(|config| config.address)
    }

    /// The rows of a table at a board.
    pub(crate) fn rows(&self, view: &BoardView, live: &[u16]) -> Option<Vec<u8>> {
        let unknown = Ipv4Addr::UNSPECIFIED; // in the log, but not in the configuration: it has no queue pair
        view.rows_of(live.iter().map(|server| self.address(*server).unwrap_or(unknown)))
    }

    /// A server has another queue pair than in its active row, and that one is ready.
    fn has_moved(&self, at: usize, live: &[u16]) -> bool {
        let board = &self.boards[at];
        let (Some((_, view)), Some(old)) = (&board.view, &board.rows) else { return false };
        let is_ready = |row: &u8| view.queue_pairs.get(usize::from(*row)).is_some_and(|qp| qp.state == READY_TO_SEND);
        !board.is_out()
            && self.is_in_force(view)
            && live == self.log.live()
            && (board.refused_views >= MAX_REFUSED_VIEWS
                || self
                    .rows(view, live)
                    .is_some_and(|rows| rows.iter().zip(old).any(|(new, old)| new != old && is_ready(new))))
    }

    /// Begins a change, if one is wanted and can be made.
    fn begin(&mut self, now: Time) {
        if now < self.not_before || self.log.end().is_some() || !self.begin_run(now) {
            return;
        }
        let (mut live, why) = self.target_rows(now);
        self.free_stuck(now, &live);
        if let Some(since) = self.ending_since {
            return self.end_run(now, since);
        }
        let moved = (0..self.boards.len()).any(|at| self.has_moved(at, &live));
        if live == self.log.live() && !moved {
            if !self.weigh(now) {
                return;
            }
            live = self.target_rows(now).0;
            if live == self.log.live() {
                return;
            }
        }
        if live.is_empty() {
            self.notify_once(Notice::NoServer);
        }
        if let Some(why) = self.obstacle() {
            return self.notify_once(Notice::Waits { why });
        }
        if let Some((server, why)) = why {
            self.notify_once(Notice::ServerDead { server, why });
        }
        for server in live.iter().copied().collect::<BTreeSet<u16>>() {
            if !self.log.live().contains(&server) {
                self.notify_once(Notice::ServerReady { server });
            }
        }
        self.request(now, Change::new(self.first_event(now), live));
    }

    /// Begins to ask the boards for a change.
    pub(crate) fn request(&mut self, now: Time, change: Change) {
        self.boards.iter_mut().for_each(|board| (board.attempt, board.refused_views) = (Attempt::None, 0));
        self.begun = now;
        self.notify(Notice::Begun { first: change.first, live: change.live.clone() });
        self.enter(now, Phase::Preparing(change));
    }

    /// Why no change can be made now.
    pub(crate) fn obstacle(&self) -> Option<String> {
        (0..self.boards.len()).filter(|at| !self.boards[*at].is_out()).find_map(|at| self.obstacle_at(at))
    }

    /// Why this board cannot make a change now.
    pub(crate) fn obstacle_at(&self, at: usize) -> Option<String> {
        let (board, name) = (&self.boards[at], &self.config.boards[at]);
        let Some((_, view)) = &board.view else { return Some(format!("{name}: {}", board.trouble)) };
        match () {
            () if board.must_begin || !self.takes_part(view) => {
                Some(format!("{name} has not the last table in force yet"))
            }
            () if view.pending && !view.waits => {
                Some(format!("{name} has not reached event {}, where the last change is", view.announced))
            }
            () => None,
        }
    }

    /// An event that no board will have sent when it is asked.
    pub(crate) fn first_event(&self, now: Time) -> u64 {
        // Where no server takes events, the next table holds from the same event on.
        let least = self.log.first() + u64::from(!self.log.live().is_empty());
        let boards = self.boards.iter().filter(|board| !board.is_out());
        boards.filter_map(|board| self.unreached(now, board)).fold(least, u64::max)
    }

    /// The same of one board.
    pub(crate) fn unreached(&self, now: Time, board: &Board) -> Option<u64> {
        let (seen, view) = board.view.as_ref()?;
        let expected = |(events, time): (u64, Time)| {
            let span = u128::from((now.saturating_sub(*seen) + self.lead).as_ps());
            let expected = (u128::from(events) * span).checked_div(u128::from(time.as_ps())).unwrap_or(0);
            u64::try_from(expected).unwrap_or(u64::MAX).saturating_add(1)
        };
        let ahead = match board.pace {
            // A waiting board sends nothing: the change may start directly after the sent events.
            _ if view.waits || view.held => 0,
            // Nor does one whose detector rests; where it does not, the change is tried again.
            Some((0, _)) => 0,
            // Two views may be so near that all between them was a burst.
            pace => pace.into_iter().chain(board.long_pace).map(expected).min().unwrap_or(1),
        };
        Some(view.next_event.saturating_add(ahead))
    }

    fn prepare(&mut self, now: Time, change: Change) {
        let mut all = true;
        let mut why = None;
        for (board, name) in self.boards.iter().zip(&self.config.boards).filter(|(board, _)| !board.is_out()) {
            // At the end of a run the last table may have been replaced at once.
            let holds = |view: &BoardView| view.prepared || (change.mark == Mark::End && view.live == 0 && !view.busy);
            let prepared =
                |view: &BoardView| holds(view) && view.announced == change.first && view.owner == self.config.owner;
            match &board.view {
                _ if board.is_missing => why = Some(format!("{name} does not answer")),
                Some((_, view)) if prepared(view) && board.attempt == Attempt::Taken => match () {
                    () if !view.busy && view.next_event > change.first => {
                        why = Some(format!("{name} says that it holds it, and has sent event {}", view.next_event - 1));
                    }
                    () if board.staged.as_ref().is_some_and(|rows| *rows != view.rows) => {
                        why = Some(format!("{name} has other rows than were written"));
                    }
                    () => continue,
                },
                None if board.attempt == Attempt::Failed => why = Some(format!("{name}: {}", board.trouble)),
                Some((_, view))
                    if board.attempt == Attempt::Failed || (board.attempt == Attempt::Taken && !view.busy) =>
                {
                    why = Some(match view.owner == self.config.owner {
                        true if view.next_event > change.first => {
                            format!("{name} has sent event {} already", view.next_event - 1)
                        }
                        true => format!("{name} has refused it"),
                        false => format!("{name} was reset"),
                    });
                }
                _ if now.saturating_sub(self.phase_since) >= self.config.board_patience => {
                    why = Some(format!("{name} has not prepared it in {}", self.config.board_patience));
                }
                _ => {}
            }
            all = false;
        }
        if let Some(why) = why {
            self.lead = self.lead.saturating_mul(2).min(Time::from_s(1));
            return self.postpone(now, &change, why);
        }
        if all {
            self.out.push_back(Action::Log(change.clone()));
            self.enter(now, Phase::Logging(change));
        }
    }

    fn postpone(&mut self, now: Time, change: &Change, why: String) {
        self.notify(Notice::Postponed { first: change.first, why });
        self.not_before = now + self.config.look;
        // Boards that had to hold the events after the end have their tables again.
        self.boards.iter_mut().for_each(|board| {
            board.last_command = board.last_command.filter(|last_command| *last_command != LastCommand::Wait)
        });
        self.enter(now, Phase::Cancelling);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_between_two_near_views_puts_no_change_far_off() {
        let config = FarmConfig::new(7, vec!["board".into()], Vec::new());
        let mut coordinator = Coordinator::new(config, Tables::new("run".into(), vec![0]), Time::ZERO);
        let mut seen = |ms: u64, next_event: u64| {
            let view = BoardView { owner: 7, next_event, ..BoardView::default() };
            coordinator.handle_board(Time::from_ms(ms), 0, Ok(view));
            coordinator.unreached(Time::from_ms(ms), &coordinator.boards[0]).unwrap() - next_event
        };
        assert_eq!([seen(1, 100), seen(21, 120)], [1, 21], "an event a millisecond, for the time of a change");
        assert_eq!(seen(22, 160), 21, "40 have waited for something");
        assert_eq!(seen(42, 200), 41);
    }
}
