// SPDX-License-Identifier: Apache-2.0
//! The states of a change, and the state that a coordinator keeps for a board.

use crate::board::{BoardView, Request};
use crate::config::FarmConfig;
use crate::notice::Notice;
use crate::tables::{Change, Mark};
use penstock_units::Time;
use std::collections::BTreeMap;

/// The pending actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Answer it by [`Coordinator::handle_board`].
    Request {
        board: usize,
        request: Request,
    },
    /// Append it to the log, so that it lasts; answer by [`Coordinator::handle_logged`].
    Log(Change),
    Notify(Notice),
}

/// Answers that were not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusals {
    /// Not the metrics of a `recv`.
    pub garbled: u64,
    /// Heartbeats with another number than the server's, or of a `recv` that shares no run.
    pub other_server: u64,
    /// Heartbeats of a `recv` that has read tables which are not in the log.
    pub other_run: u64,
    /// Heartbeats that are older than one before.
    pub stale: u64,
    /// Answers of boards.
    pub boards: u64,
}

/// How boards are given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It has queue pairs for every server that requests one.
    Open,
    /// It has no queue pairs.
    Closed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Steady,
    Preparing(Change),
    Cancelling,
    Logging(Change),
    Announced { change: Change, since: Time },
    Confirming(Change),
}

impl Phase {
    /// What the change at hand is for the run.
    pub fn mark(&self) -> Mark {
        match self {
            Phase::Steady | Phase::Cancelling => Mark::None,
            Phase::Preparing(change)
            | Phase::Logging(change)
            | Phase::Announced { change, .. }
            | Phase::Confirming(change) => change.mark,
        }
    }
}

/// Preparing the change at hand. A table that an earlier coordinator's late packet has had prepared at the same event
/// may have other rows: it is ours only if the board has taken our own command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    None,
    Requested,
    Taken,
    Failed,
}

/// Commands that a board carries out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastCommand {
    Belong,
    Wait,
    Take,
    Cancel,
}

impl LastCommand {
    pub fn by(request: &Request) -> Option<LastCommand> {
        match request {
            Request::Claim => Some(LastCommand::Belong),
            Request::Replace { rows, .. } if rows.is_empty() => Some(LastCommand::Wait),
            Request::SetUp { .. } | Request::Replace { .. } | Request::Confirm => Some(LastCommand::Take),
            Request::Cancel { .. } => Some(LastCommand::Cancel),
            Request::Look
            | Request::Prepare { .. }
            | Request::Door { .. }
            | Request::Fail { .. }
            | Request::Release => None,
        }
    }

    /// The name for messages.
    pub fn order(self) -> &'static str {
        match self {
            LastCommand::Belong => "take its owner's number",
            LastCommand::Wait => "hold the events of the run before",
            LastCommand::Take => "take the table of the last command",
            LastCommand::Cancel => "cancel the change of the last command",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Board {
    /// The last answer, and when it came; none while what is known may be wrong.
    pub view: Option<(Time, BoardView)>,
    /// Events that went between the last two views, and in what time; the same over no less than from look to look.
    pub pace: Option<(u64, Time)>,
    pub long_pace: Option<(u64, Time)>,
    /// The start of the present measurement of the latter, and the event that was next then.
    pub long_since: Option<(Time, u64)>,
    pub is_pending: bool,
    /// Time since when it has not answered.
    pub silent_since: Time,
    pub look_due: Time,
    pub is_missing: bool,
    pub is_gone: bool,
    /// Time since when it answers again, if it was missing or away for long enough to lose queue pairs.
    pub back_since: Option<Time>,
    /// It answers, and does not carry out its commands: changes are made without it.
    pub is_defiant: bool,
    /// The run ends without it, as it has kept the end from being made for too long.
    pub is_left_out: bool,
    /// Its command that is not carried out yet, by how many answers and since when.
    pub last_command: Option<LastCommand>,
    pub defiance: Option<(u32, Time)>,
    /// Its next event as it was last accepted.
    pub last_event: Option<(Time, u64)>,
    /// It belonged to this coordinator when it was last heard.
    pub is_ours: bool,
    pub may_take: bool,
    pub must_begin: bool,
    /// Whether it has the command to prepare the present change.
    pub attempt: Attempt,
    pub is_cut_off: bool,
    pub cut_off_since: Option<Time>,
    /// When each server, by its place, has last sent it a receiver-not-ready NAK.
    pub refused_by: BTreeMap<usize, Time>,
    /// Time since when it answers without the last table in force.
    pub unset_since: Option<Time>,
    /// The rows of the table in force, and those that it is to prepare.
    pub rows: Option<Vec<u8>>,
    pub staged: Option<Vec<u8>>,
    /// Those of the table before, where events of it may still come.
    pub rows_before: Option<Vec<u8>>,
    /// Its queue pairs that look ready and that their server does not name, with the numbers of those: in how many
    /// heartbeats in a row.
    pub unclaimed: BTreeMap<u8, (u32, u32)>,
    /// Queue pairs that it is to give up.
    pub to_fail: Option<Vec<u8>>,
    /// Views in a row in which an event waits though every server of `rows` is ready: those are not in force.
    pub refused_views: u32,
    pub trouble: String,
}

/// A board that was silent for so long may have lost queue pairs, at its end or at a server's.
const AWAY: Time = Time::from_s(1);

impl Board {
    /// It has answered.
    pub fn answered(&mut self, now: Time) {
        if now.saturating_sub(self.silent_since) >= AWAY {
            self.back_since = Some(now);
        }
        self.silent_since = now;
    }

    /// Measures its pace, at a view with this next event.
    pub fn note_pace(&mut self, now: Time, before: Option<&(Time, BoardView)>, next_event: u64, look: Time) {
        let pace = |at: Time, since: u64| {
            // From 0 on it is no pace: the table was set up anew.
            let events = next_event.checked_sub(since).filter(|events| since > 0 || *events == 0);
            events.map(|events| (events, now.saturating_sub(at)))
        };
        if let Some((at, view)) = before {
            self.pace = pace(*at, view.next_event);
        }
        let long = self.long_since.and_then(|(at, since)| pace(at, since));
        if long.is_none_or(|(_, time)| time >= look) {
            (self.long_pace, self.long_since) = (long, Some((now, next_event)));
        }
    }

    /// State before anything has been read from boards and servers.
    pub fn new(config: &FarmConfig, now: Time) -> Self {
        Board {
            view: None,
            pace: None,
            long_pace: None,
            long_since: None,
            is_pending: false,
            silent_since: now,
            look_due: now,
            is_missing: false,
            is_gone: false,
            back_since: None,
            is_defiant: false,
            is_left_out: false,
            last_command: None,
            defiance: None,
            last_event: None,
            is_ours: false,
            may_take: config.take_over,
            must_begin: config.begin,
            attempt: Attempt::None,
            is_cut_off: false,
            cut_off_since: None,
            refused_by: BTreeMap::new(),
            unset_since: None,
            rows: None,
            staged: None,
            rows_before: None,
            unclaimed: BTreeMap::new(),
            to_fail: None,
            refused_views: 0,
            trouble: "no answer yet".into(),
        }
    }

    /// Changes are made without it.
    pub fn is_out(&self) -> bool {
        self.is_gone || self.is_defiant || self.is_left_out
    }

    /// The table as last edited is not the one in force.
    pub fn has_other_rows(&self, view: &BoardView) -> bool {
        self.rows.as_ref().is_some_and(|rows| *rows != view.rows)
    }
}
