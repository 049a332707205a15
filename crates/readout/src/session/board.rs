// SPDX-License-Identifier: Apache-2.0
//! One board of a session: where its connection stands, and the listening side's view of it.
//! Promise: a queue pair serves one connection; the next one gets numbers of its own.
//! Source: `penstock_transport::cm`.

use std::io;

use penstock_transport::{CmFailure, CmHost, CmOpener, CmOpenerConfig, CmState, Refusal};
use penstock_wire::{CmInfo, CmMessage, CmTransmit, Ipv4Addr, Psn, Qpn};
use serde::{Deserialize, Serialize};

use super::Core;
use crate::backend::LocalQp;
use crate::EventSink;

/// Who opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Opens {
    /// This server asks the board.
    #[default]
    We,
    /// The board asks this server.
    Board,
}

/// A board as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardSpec {
    pub name: String,
    pub ip: Ipv4Addr,
    pub opens: Opens,
}

/// A connection that a killed session has left open at its board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    pub own: CmInfo,
    pub peer: CmInfo,
}

/// Where a board stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoardState {
    /// Will be opened; or, where the board opens, is waited for.
    Waiting,
    Opening,
    Up,
    /// Is being told that it is over.
    Closing,
}

pub(super) struct Board {
    pub(super) spec: BoardSpec,
    pub(super) opener: CmOpener,
    pub(super) state: BoardState,
    local: Option<LocalQp>,
    /// Nobody has been connected to `local`.
    fresh: bool,
    /// When it is opened, while it waits.
    due_ps: u64,
    ending: bool,
    pub(super) lives: u32,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// The last thing that went wrong.
    pub(super) trouble: Option<String>,
    /// Why the last request to it could not be sent.
    unsent: Option<String>,
    /// What was last written to the log, and after how many messages.
    logged: Option<(String, u64)>,
}

impl Board {
    pub(super) fn new(spec: BoardSpec, cm: CmOpenerConfig, local: LocalQp) -> Board {
        Board {
            opener: CmOpener::new(cm, spec.ip),
            spec,
            state: BoardState::Waiting,
            local: Some(local),
            fresh: true,
            due_ps: 0,
            ending: false,
            lives: 0,
            messages: 0,
            bytes: 0,
            trouble: None,
            unsent: None,
            logged: None,
        }
    }

    pub(super) fn opens(&self) -> Opens {
        self.spec.opens
    }

    pub(super) fn is_up(&self) -> bool {
        self.state == BoardState::Up
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state == BoardState::Waiting
    }

    pub(super) fn is_due(&self, now_ps: u64) -> bool {
        self.is_waiting() && !self.ending && self.spec.opens == Opens::We && now_ps >= self.due_ps
    }

    pub(super) fn has_qp(&self) -> bool {
        self.local.is_some()
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh && self.has_qp()
    }

    pub(super) fn used(&mut self) {
        self.fresh = false;
    }

    pub(super) fn qp_gone(&mut self) {
        self.local = None;
    }

    pub(super) fn qp_made(&mut self, local: LocalQp) {
        (self.local, self.fresh) = (Some(local), true);
    }

    fn own(&self) -> CmInfo {
        self.local.map_or_else(CmInfo::default, |qp| CmInfo {
            qpn: qp.qpn,
            psn: qp.psn,
            rkey: qp.rkey,
            base: qp.base,
            ip: qp.ip,
        })
    }

    pub(super) fn open(&mut self, now_ps: u64) {
        self.opener.open(now_ps, self.own());
        self.state = BoardState::Opening;
    }

    pub(super) fn up(&mut self) {
        self.state = BoardState::Up;
        self.lives += 1;
        self.trouble = None;
    }

    /// It was sent a request, or could not be: then it is of no use to look for what is wrong at the board.
    pub(super) fn asked(&mut self, request: &CmMessage, sent: io::Result<()>) {
        let (ip, request) = (self.spec.ip, request.request);
        self.unsent = sent.err().filter(|error| error.kind() != io::ErrorKind::WouldBlock).map(|error| {
            format!("{ip}: {request} cannot be sent: {error}; has this server a route to it? `ip route get {ip}`")
        });
        if self.unsent.is_some() && self.state == BoardState::Opening {
            self.trouble.clone_from(&self.unsent);
        }
    }

    /// What to say when it does not answer.
    pub(super) fn why(&self, failure: &CmFailure) -> String {
        self.unsent.clone().unwrap_or_else(|| failure.to_string())
    }

    /// It failed: the board is told, as far as it can still hear, and then opened again.
    pub(super) fn fail(&mut self, now_ps: u64, trouble: String) {
        self.log(&trouble);
        self.trouble = Some(trouble);
        self.close(now_ps);
    }

    /// A board that fails in the same way whenever it is tried is logged once. The first attempt is nobody's news yet: who
    /// brings boards up asks the report for what is not up after a while.
    fn log(&mut self, trouble: &str) {
        let logged = self.logged.as_ref().map(|(text, messages)| (text.as_str(), *messages));
        let is_known = logged == Some((trouble, self.messages)) || (logged.is_none() && self.lives == 0);
        if is_known {
            tracing::debug!(board = self.spec.name, "{trouble}");
        } else {
            tracing::warn!(board = self.spec.name, "{trouble}");
        }
        self.logged = Some((trouble.to_owned(), self.messages));
    }

    fn close(&mut self, now_ps: u64) {
        self.opener.close(now_ps);
        self.state = BoardState::Closing;
        if self.opener.state() == CmState::Closed {
            // It has heard nothing of us: there is nobody to wait for.
            self.closed(now_ps, self.opener.timeout_ps());
        }
    }

    pub(super) fn closed(&mut self, now_ps: u64, wait_ps: u64) {
        (self.state, self.due_ps) = (BoardState::Waiting, now_ps + wait_ps);
    }

    pub(super) fn close_earlier(&mut self, now_ps: u64, old: &Remembered) {
        self.opener.adopt(now_ps, old.own, old.peer);
        self.close(now_ps);
    }

    /// The session ends.
    pub(super) fn end(&mut self, now_ps: u64) {
        self.ending = true;
        match self.state {
            BoardState::Waiting | BoardState::Closing => {}
            BoardState::Opening | BoardState::Up => self.close(now_ps),
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        !self.is_waiting()
    }

    pub(super) fn message(&mut self, now_ps: u64, bytes: u32) {
        self.messages += 1;
        self.bytes += u64::from(bytes);
        self.opener.heard(now_ps);
    }

    pub(super) fn remembered(&self) -> Option<Remembered> {
        let told = self.opener.peer().qpn.value() != 0 && !self.is_waiting();
        told.then(|| Remembered { own: self.own(), peer: self.opener.peer() })
    }
}

/// Boards that open towards us: entry `i` of the listener is board `i`.
impl<S: EventSink> CmHost for Core<S> {
    fn open(&mut self, entry: usize, from: Ipv4Addr, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        let board = &self.boards[entry];
        if board.spec.ip != from || board.spec.opens != Opens::Board || board.ending {
            return Err(Refusal::NoQp);
        }
        match self.fresh_qp(entry) {
            Ok(true) => Ok(self.boards[entry].own()),
            Ok(false) => Err(Refusal::NotYet),
            Err(error) => {
                self.boards[entry].trouble = Some(error.to_string());
                Err(Refusal::Failed)
            }
        }
    }

    fn connect(&mut self, entry: usize, peer: &CmInfo) -> Result<(), Refusal> {
        self.boards[entry].state = BoardState::Opening;
        Core::connect(self, entry, peer).map_err(|error| {
            self.boards[entry].trouble = Some(error.to_string());
            Refusal::Failed
        })?;
        let board = &mut self.boards[entry];
        board.opener.adopt(self.now_ps, board.own(), *peer);
        Ok(())
    }

    fn ready(&mut self, entry: usize) {
        self.came_up(entry);
    }

    fn close(&mut self, entry: usize, failed: bool) {
        let board = &mut self.boards[entry];
        board.used();
        board.opener.forget();
        board.closed(self.now_ps, 0);
        if failed {
            board.trouble = Some(format!("{}: the board says that its queue pair has failed", board.spec.ip));
        }
    }

    fn is_dead(&self, entry: usize) -> bool {
        !matches!(self.boards[entry].state, BoardState::Opening | BoardState::Up) && !self.boards[entry].is_fresh()
            || self.backend.fault(entry as u16).is_some()
    }

    /// A server sends nothing.
    fn transmit(&mut self, _entry: usize, _transmit: &CmTransmit) -> bool {
        false
    }
}

impl Remembered {
    /// One line of text: what [`Self::parse`] reads.
    pub fn line(&self) -> String {
        let side = |info: &CmInfo| format!("{} {:#x} {:#x}", info.ip, info.qpn.value(), info.psn.value());
        format!("{} {}", side(&self.own), side(&self.peer))
    }

    /// Reads a line; none if it is something else.
    pub fn parse(line: &str) -> Option<Remembered> {
        let mut words = line.split_whitespace();
        let mut side = || {
            let ip = words.next()?.parse().ok()?;
            let mut hex = || u32::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
            Some(CmInfo { ip, qpn: Qpn::new(hex()?), psn: Psn::new(hex()?), ..CmInfo::default() })
        };
        Some(Remembered { own: side()?, peer: side()? })
    }
}
