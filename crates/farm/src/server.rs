// SPDX-License-Identifier: Apache-2.0
//! A server as its boards' queue pairs and its heartbeat show it.
//! Promise: the boards' view takes precedence: a heartbeat alone does not make a server ready, and the loss of the
//! heartbeat alone removes a server only after a timeout.

use penstock_units::Time;
use std::collections::BTreeMap;

/// The metrics of a `recv`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerView {
    /// Tables of the log that it has read; none if it does not say.
    pub tables_read: Option<u64>,
    /// Whether each of its boards may send, by name.
    pub boards_up: BTreeMap<String, bool>,
}

/// The state of a server.
#[derive(Debug, Default)]
pub(crate) struct Server {
    pub heard: Option<(Time, ServerView)>,
    /// Since when it could take events without a break.
    pub ready_since: Option<Time>,
    /// It could once.
    pub was_ready: bool,
}

impl Server {
    /// The last heartbeat, unless it is too old.
    pub fn alive(&self, now: Time, patience: Time) -> Option<&ServerView> {
        let (at, view) = self.heard.as_ref()?;
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
