// SPDX-License-Identifier: Apache-2.0
//! The messages of a coordinator, one line each.

use penstock_units::Time;
use serde::Serialize;
use std::fmt;

/// Something that an operator may want to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Notice {
    BoardSetUp {
        board: String,
        first: u64,
    },
    BoardMissing {
        board: String,
        why: String,
    },
    /// No server hears of it either: changes are made without it.
    BoardGone {
        board: String,
    },
    BoardBack {
        board: String,
    },
    /// It has kept a run from beginning or ending for too long.
    BoardLeftOut {
        board: String,
        why: String,
    },
    /// It answers, and has not carried out a command for too long: changes are made without it.
    BoardDefies {
        board: String,
        order: &'static str,
    },
    /// It has done it after all.
    BoardObeys {
        board: String,
    },
    /// An answer that no board can give; as if there had been none.
    AnswerRefused {
        board: String,
        why: String,
    },
    /// It has sent events by a table that no longer held.
    BoardStrayed {
        board: String,
        first: u64,
        next: u64,
    },
    /// All its queue pairs have failed: that is the board's affair.
    BoardCutOff {
        board: String,
    },
    ServerDead {
        server: u16,
        why: &'static str,
    },
    ServerReady {
        server: u16,
    },
    /// It has been full for long while another one has room: it gets so many quarters of its weight.
    ServerFull {
        server: u16,
        quarters: u64,
    },
    /// It has not been full for long.
    ServerFree {
        server: u16,
        quarters: u64,
    },
    /// A heartbeat of another server or run.
    HeartbeatRefused {
        server: u16,
        why: String,
    },
    NoServer,
    Waits {
        why: String,
    },
    Begun {
        first: u64,
        live: Vec<u16>,
    },
    Postponed {
        first: u64,
        why: String,
    },
    /// The log has the change: it is final from here on.
    Decided {
        first: u64,
        live: Vec<u16>,
    },
    /// A living server has not read it in time.
    Unread {
        server: u16,
        first: u64,
    },
    /// The log has the begin of the run.
    RunBegins {
        first: u64,
        live: Vec<u16>,
    },
    /// Boards were in a run without an end when this one began.
    RunAbandoned {
        first: u64,
    },
    /// The log has the end of the run: its last event is the one before.
    RunEnds {
        first: u64,
    },
    /// A board waits for a server that takes nothing: what it has for that server is flushed.
    Stuck {
        board: String,
        server: u16,
    },
    Done {
        first: u64,
        live: Vec<u16>,
        took: Time,
    },
    /// Left by an earlier coordinator.
    Resolved {
        board: String,
        first: u64,
        confirmed: bool,
    },
    /// Another coordinator has taken this board; nothing more is done.
    Taken {
        board: String,
        owner: u16,
    },
}

impl Notice {
    /// A fault of the run, and not only news.
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Notice::BoardStrayed { .. }
                | Notice::BoardDefies { .. }
                | Notice::BoardLeftOut { .. }
                | Notice::AnswerRefused { .. }
                | Notice::HeartbeatRefused { .. }
                | Notice::Unread { .. }
                | Notice::Taken { .. }
        )
    }
}

fn list(live: &[u16]) -> String {
    if live.is_empty() {
        return "none".to_owned();
    }
    live.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A part of a server's weight.
fn part(quarters: u64) -> &'static str {
    ["nothing", "a quarter", "half", "three quarters", "all"].get(quarters as usize).copied().unwrap_or("all")
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::BoardSetUp { board, first } => write!(f, "{board}: tables written; the last holds from event {first} on"),
            Notice::BoardMissing { board, why } => write!(f, "{board}: {why}; no change can be made before it is back"),
            Notice::BoardGone { board } => {
                write!(f, "{board}: no server receives anything from it either; changes are made without it until it is back")
            }
            Notice::BoardBack { board } => write!(f, "{board}: it answers again"),
            Notice::BoardLeftOut { board, why } => write!(f, "FAULT: the run begins or ends without {board}: {why}"),
            Notice::BoardStrayed { board, first, next } => write!(
                f,
                "FAULT: {board}: it has sent events {first} to {} by a table that did not hold any more; servers refuse \
                 those that are not theirs, and `penstock check --servers` names them",
                next - 1
            ),
            Notice::BoardCutOff { board } => {
                write!(f, "{board}: its queue pairs have failed, those of other boards have not; it has no say about servers")
            }
            Notice::ServerDead { server, why } => write!(f, "server {server}: {why}"),
            Notice::ServerReady { server } => write!(f, "server {server}: every board can send to it"),
            Notice::BoardDefies { board, order } => write!(
                f,
                "FAULT: {board}: it answers and does not {order}; changes are made without it until it does. Reset it, or \
                 take it out of the file of the farm"
            ),
            Notice::BoardObeys { board } => write!(f, "{board}: it has the last table in force"),
            Notice::AnswerRefused { board, why } => {
                write!(f, "FAULT: {board}: {why}; this counts as no answer. Reset the board, or start the coordinator again")
            }
            Notice::ServerFull { server, quarters } => {
                write!(f, "server {server}: its buffers stay full and others have room: it gets {} of its weight", part(*quarters))
            }
            Notice::ServerFree { server, quarters } => {
                write!(f, "server {server}: its buffers have not been full for long: it gets {} of its weight", part(*quarters))
            }
            Notice::HeartbeatRefused { server, why } => write!(
                f,
                "FAULT: server {server}: {why}; its heartbeats do not count. Check `metrics` of this server in the file of \
                 the farm, and --servers and --server of its recv"
            ),
            Notice::NoServer => f.write_str("no server is left; events wait at the boards until one is back"),
            Notice::Waits { why } => write!(f, "no change can be made now: {why}"),
            Notice::Begun { first, live } => {
                write!(f, "asking all boards to hold events from {first} on, for servers {}", list(live))
            }
            Notice::Postponed { first, why } => write!(f, "not at event {first}: {why}; events go on as before"),
            Notice::Decided { first, live } => {
                write!(f, "announced: from event {first} on servers {} take the events", list(live))
            }
            Notice::RunBegins { first, live } => {
                write!(f, "the run begins at event {first}, for servers {}", list(live))
            }
            Notice::RunAbandoned { first } => write!(
                f,
                "the boards were in a run that has no end: what its servers have not stored below event {first} is lost; \
                 `penstock check --servers` names it once its file of servers has this at its end: [[change]] first = \
                 {first}, live = [], end = true, each on a line"
            ),
            Notice::RunEnds { first } => write!(f, "the run ends before event {first}; later ones wait at the boards"),
            Notice::Stuck { board, server } => write!(
                f,
                "{board}: it waits for server {server}, which takes nothing: its events for that server are given up, \
                 `penstock check --servers` names them"
            ),
            Notice::Unread { server, first } => write!(
                f,
                "FAULT: server {server} has not read the change at event {first}: none of its events goes there, boards give \
                 up their queue pairs to it. Is it suspended, or does it read another file?"
            ),
            Notice::Done { first, live, took } => {
                let took = took.as_secs_f64() * 1e3;
                write!(f, "from event {first} on servers {} take the events of all boards ({took:.1} ms)", list(live))
            }
            Notice::Resolved { board, first, confirmed } => write!(
                f,
                "{board}: it held events from {first} on for an earlier coordinator; {}",
                if *confirmed { "confirmed, as the change is in the log" } else { "cancelled, as the log does not have it" }
            ),
            Notice::Taken { board, owner } => write!(
                f,
                "FAULT: {board} belongs to coordinator {owner} (register destination.owner); stop that one, or take its \
                 boards with --take-over"
            ),
        }
    }
}
