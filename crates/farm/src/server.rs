// SPDX-License-Identifier: Apache-2.0
//! A server as its boards' queue pairs and its heartbeat show it.
//! Promise: the boards' view takes precedence: a heartbeat alone does not make a server ready, and the loss of the
//! heartbeat alone removes a server only after a timeout.

use crate::shares::Part;
use penstock_units::Time;
use std::collections::BTreeMap;

/// A board as a `recv` sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BoardAtServer {
    /// It may send.
    pub is_up: bool,
    /// Receives that are posted for it, and how many there can be.
    pub credits: u64,
    pub slots: u64,
    /// The number of its queue pair for it; none if it does not report one.
    pub queue_pair: Option<u32>,
}

/// The metrics of a `recv`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerView {
    /// Its number; none if it shares no run.
    pub server: Option<u16>,
    /// Tables of the log that it has read, and their digest ([`crate::Tables::digest`]).
    pub tables_read: u64,
    pub tables_digest: u32,
    /// When its process began, and how often its receiving thread has come round since.
    pub started: u64,
    pub turns: u64,
    /// The boards by name.
    pub boards: BTreeMap<String, BoardAtServer>,
}

/// The load of a server.
#[derive(Debug, Default)]
pub(crate) struct Load {
    pub part: Part,
    /// When the part changed last.
    pub changed: Time,
    /// When it was full last, and when it had room.
    pub full: Option<Time>,
    pub room: Option<Time>,
    /// When the receives of only some boards were used up last.
    pub waits_for_board: Option<Time>,
    /// Time since when it has been full while another one had room.
    pub pressed_since: Option<Time>,
}

impl Load {
    pub fn was_full_within(&self, now: Time, time: Time) -> bool {
        self.full.is_some_and(|last| now.saturating_sub(last) <= time)
    }
}

/// The state of a server.
#[derive(Debug, Default)]
pub(crate) struct Server {
    pub heartbeat: Option<(Time, ServerView)>,
    /// The last heartbeat that was seen, as [`crate::trust`] compares the next one with it.
    pub seen: Option<(u64, u64)>,
    /// When the process began that is heard, and whether it is another one than when the server was put in.
    pub process: Option<u64>,
    pub is_anew: bool,
    /// Time since when its heartbeats are those of another server or run.
    pub foreign_since: Option<Time>,
    pub load: Load,
    /// Time since when it could take events without a break.
    pub ready_since: Option<Time>,
    /// It could once.
    pub was_ready: bool,
}

impl Server {
    /// The last heartbeat, unless it is too old.
    pub fn alive(&self, now: Time, patience: Time) -> Option<&ServerView> {
        let (at, view) = self.heartbeat.as_ref()?;
        (now.saturating_sub(*at) < patience).then_some(view)
    }
}

/// How the boards vote on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    /// Every board can send to it.
    Ready,
    /// A board's queue pair to it has failed, or none can send to it any more.
    Dead,
    Unsure,
}
