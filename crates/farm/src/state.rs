// SPDX-License-Identifier: Apache-2.0
//! The states of a change, and the state that a coordinator keeps for a board.

use crate::board::{BoardView, Request};
use crate::config::FarmConfig;
use crate::notice::Notice;
use crate::tables::Change;
use penstock_units::Time;

/// The pending actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Answer it by [`Coordinator::handle_board`].
    Ask {
        board: usize,
        request: Request,
    },
    /// Append it to the log, so that it lasts; answer by [`Coordinator::handle_logged`].
    Log(Change),
    Say(Notice),
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

/// Preparing the change at hand. A table that an earlier coordinator's late packet has had prepared at the same event
/// may have other rows: it is ours only if the board has taken our own command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    None,
    Asked,
    Taken,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Board {
    /// The last answer, and when it came; none while what is known may be wrong.
    pub view: Option<(Time, BoardView)>,
    /// The first event that had not gone, as the views of before and of now say, and the time between them.
    pub pace: Option<(u64, Time)>,
    pub is_asked: bool,
    /// Since when it has not answered.
    pub silent_since: Time,
    pub look_due: Time,
    pub is_missing: bool,
    pub is_gone: bool,
    pub may_take: bool,
    pub must_begin: bool,
    /// Whether it has been told to prepare the present change.
    pub attempt: Attempt,
    pub is_cut_off: bool,
    /// Since when it answers without the last table in force.
    pub unset_since: Option<Time>,
    /// The rows of the table in force, and those that it has been told to prepare.
    pub rows: Option<Vec<u8>>,
    pub staged: Option<Vec<u8>>,
    /// Views in a row in which an event waits though every server of `rows` is ready: those are not in force.
    pub doubts: u32,
    pub trouble: String,
}

impl Board {
    /// Of which nothing is known yet.
    pub fn new(config: &FarmConfig, now: Time) -> Self {
        Board {
            view: None,
            pace: None,
            is_asked: false,
            silent_since: now,
            look_due: now,
            is_missing: false,
            is_gone: false,
            may_take: config.take_over,
            must_begin: config.begin,
            attempt: Attempt::None,
            is_cut_off: false,
            unset_since: None,
            rows: None,
            staged: None,
            doubts: 0,
            trouble: "no answer yet".into(),
        }
    }

    /// The table as last edited is not the one in force.
    pub fn has_other_rows(&self, view: &BoardView) -> bool {
        self.rows.as_ref().is_some_and(|rows| *rows != view.rows)
    }
}
