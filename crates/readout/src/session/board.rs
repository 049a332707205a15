// SPDX-License-Identifier: Apache-2.0
//! One board of a session: the state of its connection.
//! Promise: a queue pair serves one connection; the next connection gets new numbers.
//! Source: `penstock_transport::cm`.

use std::io;

use penstock_transport::{CmFailure, CmOpener, CmOpenerConfig, CmState};
use penstock_units::Time;
use penstock_wire::{CmInfo, CmMessage, Ipv4Addr, Psn, Qpn};
use serde::{Deserialize, Serialize};

use crate::backend::LocalQp;
use crate::builder::{Notice, Standing};

/// The start of [`super::BoardReport::trouble`], after the address, if the back end reports why it has ended a queue
/// pair.
pub const IN_ERROR: &str = "queue pair in error";

/// Who opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Opens {
    /// This server opens the connection.
    #[default]
    We,
    /// The board opens the connection.
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
    pub local: CmInfo,
    pub peer: CmInfo,
}

/// The state of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoardState {
    /// Will be opened; or, where the board opens, is waited for.
    Waiting,
    Opening,
    Up,
    /// Being notified that it is over.
    Closing,
}

/// What the back end has heard of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Alive,
    /// It can be reached again.
    Again,
}

pub(super) struct Board {
    pub(super) spec: BoardSpec,
    pub(super) opener: CmOpener,
    pub(super) state: BoardState,
    local: Option<LocalQp>,
    /// No peer has been connected to `local`.
    fresh: bool,
    /// The event that it has passed can be read while it has no connection, and has to be before the next one.
    reports_passed: bool,
    awaits_passed: bool,
    /// When it is opened, while it waits.
    due: Time,
    ending: bool,
    /// Its connection is being closed to be opened again at once.
    is_cut: bool,
    pub(super) lives: u32,
    pub(super) messages: u64,
    pub(super) last_message: Time,
    /// When the back end had its last sign of life, where it reports any.
    sign_at: Time,
    was_away: bool,
    pub(super) bytes: u64,
    /// The last thing that went wrong.
    pub(super) trouble: Option<String>,
    /// Why events do not wait for it although it is up.
    pub(super) left_out: Option<String>,
    /// Why the back end has ended its queue pair, the last time.
    pub(super) refused: Option<String>,
    /// Why the last request to it could not be sent.
    unsent: Option<String>,
    /// The last log entry, and the number of messages before it.
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
            reports_passed: false,
            awaits_passed: false,
            due: Time::ZERO,
            ending: false,
            is_cut: false,
            lives: 0,
            messages: 0,
            last_message: Time::ZERO,
            sign_at: Time::ZERO,
            was_away: false,
            bytes: 0,
            trouble: None,
            left_out: None,
            refused: None,
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

    /// A request of it was refused, and for so long no message has come.
    pub(super) fn is_refused(&self, now: Time, patience: Time) -> bool {
        self.refused.is_some() && now >= self.last_message.saturating_add(patience)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.state == BoardState::Waiting
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.is_waiting() && !self.ending && self.spec.opens == Opens::We && now >= self.due
    }

    pub(super) fn has_qp(&self) -> bool {
        self.local.is_some()
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.fresh && self.has_qp()
    }

    pub(super) fn used(&mut self) {
        (self.fresh, self.awaits_passed) = (false, self.reports_passed);
    }

    /// Whether the event that it has passed can be read, from now on.
    pub(super) fn expect_passed(&mut self, is_expected: bool) {
        self.reports_passed = is_expected;
        self.awaits_passed &= is_expected;
    }

    /// Whether the event that it has passed has to be read before its next connection.
    pub(super) fn awaits_passed(&self) -> bool {
        self.awaits_passed
    }

    /// Whether nothing of it can be on its way: its last connection is over, and the next one was not requested.
    pub(super) fn is_away(&self) -> bool {
        self.is_waiting() && !self.has_qp() && !self.ending
    }

    /// It has passed this event, and `missing` fragments up to it have not come.
    pub(super) fn passed(&mut self, event: Option<u64>, missing: u64) {
        let is_first = std::mem::take(&mut self.awaits_passed);
        if let Some(event) = event.filter(|_| is_first && missing > 0) {
            let name = &self.spec.name;
            tracing::warn!(
                board = name,
                "{missing} of its fragments up to event {event} were lost with its queue pair"
            );
        }
    }

    pub(super) fn qp_gone(&mut self) {
        self.local = None;
    }

    pub(super) fn qp_made(&mut self, local: LocalQp) {
        (self.local, self.fresh) = (Some(local), true);
    }

    /// Our side of its connection.
    pub(super) fn local_info(&self) -> CmInfo {
        self.local.map_or_else(CmInfo::default, |qp| CmInfo {
            qpn: qp.qpn,
            psn: qp.psn,
            rkey: qp.rkey,
            base: qp.base,
            ip: qp.ip,
        })
    }

    pub(super) fn open(&mut self, now: Time) {
        self.opener.open(now, self.local_info());
        self.state = BoardState::Opening;
    }

    pub(super) fn up(&mut self) {
        self.state = BoardState::Up;
        self.lives += 1;
        self.trouble = None;
    }

    /// It was sent a request, or could not be: then it is of no use to look for what is wrong at the board.
    pub(super) fn request_sent(&mut self, request: &CmMessage, sent: io::Result<()>) {
        let (ip, request) = (self.spec.ip, request.request);
        self.unsent = sent.err().filter(|error| error.kind() != io::ErrorKind::WouldBlock).map(|error| {
            format!("{ip}: {request} cannot be sent: {error}; has this server a route to it? `ip route get {ip}`")
        });
        if self.unsent.is_some() && self.state == BoardState::Opening {
            self.trouble.clone_from(&self.unsent);
        }
    }

    /// The message if it does not answer.
    pub(super) fn why(&self, failure: &CmFailure) -> String {
        self.unsent.clone().unwrap_or_else(|| failure.to_string())
    }

    /// It failed: the board is notified if it is reachable, and then opened again.
    pub(super) fn fail(&mut self, now: Time, trouble: String) {
        self.log(&trouble);
        self.trouble = Some(trouble);
        self.close(now);
    }

    /// Its connection, which it has opened at the back end, is over.
    pub(super) fn lost(&mut self, now: Time, why: String) {
        if self.ending {
            tracing::debug!(board = self.spec.name, "{why}");
        } else {
            self.log(&why);
        }
        self.trouble = Some(why);
        self.closed(now, Time::ZERO);
    }

    /// A board that fails in the same way at every attempt is logged once. The first attempt is not logged:
    /// the caller that brings boards up reads from the report which ones are not up after a while.
    fn log(&mut self, trouble: &str) {
        /// One that has sent no more than these since has not come to work in between.
        const FEW: u64 = 1000;
        let is_repeated = match &self.logged {
            Some((text, messages)) => text == trouble && self.messages < messages + FEW,
            None => self.lives == 0,
        };
        if is_repeated {
            tracing::debug!(board = self.spec.name, "{trouble}");
        } else {
            tracing::warn!(board = self.spec.name, "{trouble}");
        }
        let since = self.logged.as_ref().filter(|_| is_repeated).map_or(self.messages, |(_, messages)| *messages);
        self.logged = Some((trouble.to_owned(), since));
    }

    /// Events wait for it, or do not any more. Each change is logged.
    pub(super) fn noticed(&mut self, notice: &Notice) {
        let (name, Notice { event, head, .. }) = (&self.spec.name, notice);
        let far = format!("it sends event {event} and the run is at event {head}");
        let why = match notice.standing {
            Standing::InStep => {
                tracing::warn!(board = name, "is waited for again, from event {event} on");
                self.left_out = None;
                return;
            }
            Standing::Silent if self.is_up() => {
                format!("it has a connection and has sent nothing for several events up to {event}")
            }
            Standing::Silent => format!("it is not up, and several events up to {event} have waited for it"),
            Standing::Behind => format!("{far}: what it sends is counted and not stored until it has caught up"),
            Standing::Ahead => format!("{far}: what it sends is counted and not stored until the run is there"),
        };
        tracing::warn!(board = name, "events do not wait for it: {why}");
        self.left_out = Some(why);
    }

    /// Its queue pair has ended on this side alone; where this side opens it, it is opened again at once.
    pub(super) fn cut(&mut self, now: Time) {
        self.is_cut = true;
        self.close(now);
    }

    fn close(&mut self, now: Time) {
        self.opener.close(now);
        self.state = BoardState::Closing;
        if self.opener.state() == CmState::Closed {
            // It has not received anything from us: there is no need to wait for it.
            self.closed(now, self.opener.timeout());
        }
    }

    pub(super) fn closed(&mut self, now: Time, wait: Time) {
        let wait = if std::mem::take(&mut self.is_cut) { Time::ZERO } else { wait };
        (self.state, self.due) = (BoardState::Waiting, now + wait);
    }

    pub(super) fn close_earlier(&mut self, now: Time, old: &Remembered) {
        self.opener.adopt(now, old.local, old.peer, 0);
        self.close(now);
    }

    /// The session ends.
    pub(super) fn end(&mut self, now: Time) {
        self.ending = true;
        match self.state {
            BoardState::Waiting | BoardState::Closing => {}
            BoardState::Opening | BoardState::Up => self.close(now),
        }
    }

    /// The session ends: it is not opened again.
    pub(super) fn ending(&self) -> bool {
        self.ending
    }

    pub(super) fn is_ending(&self) -> bool {
        !self.is_waiting()
    }

    pub(super) fn message(&mut self, now: Time, bytes: u32) {
        self.messages += 1;
        self.bytes += u64::from(bytes);
        self.last_message = now;
        self.was_away = false;
        self.opener.data_arrived(now);
    }

    /// What it means that the back end has heard of it at this time; none if that is not new. After a time without a sign
    /// it is no sign of life until a message comes: what TCP sends again it sends late, at growing intervals.
    pub(super) fn sign_at(&mut self, at: Time) -> Option<Sign> {
        /// Longer than the kernel's clock may lag where the machine's processors are taken away for a while; it is asked
        /// every second.
        const STEP: Time = Time::from_ms(400);
        const AWAY: Time = Time::from_ms(1500);
        let before = self.sign_at;
        self.sign_at = before.max(at);
        let ago = at.saturating_sub(before);
        if before == Time::ZERO {
            return Some(Sign::Alive);
        }
        if ago > AWAY {
            self.was_away = true;
            return Some(Sign::Again);
        }
        (ago > STEP && !self.was_away).then_some(Sign::Alive)
    }

    pub(super) fn remembered(&self) -> Option<Remembered> {
        let has_peer = self.opener.peer().qpn.value() != 0 && !self.is_waiting();
        has_peer.then(|| Remembered { local: self.local_info(), peer: self.opener.peer() })
    }
}

impl Remembered {
    /// One line of text: what [`Self::parse`] reads.
    pub fn line(&self) -> String {
        let side = |info: &CmInfo| format!("{} {:#x} {:#x}", info.ip, info.qpn.value(), info.psn.value());
        format!("{} {}", side(&self.local), side(&self.peer))
    }

    /// Reads a line; none if it is something else.
    pub fn parse(line: &str) -> Option<Remembered> {
        let mut words = line.split_whitespace();
        let mut side = || {
            let ip = words.next()?.parse().ok()?;
            let mut hex = || u32::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
            Some(CmInfo { ip, qpn: Qpn::new(hex()?), psn: Psn::new(hex()?), ..CmInfo::default() })
        };
        Some(Remembered { local: side()?, peer: side()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_gives_a_sign_of_life_every_second_and_after_a_time_away_not_before_its_next_message() {
        let spec = BoardSpec { name: "board".into(), ip: Ipv4Addr::LOCALHOST, opens: Opens::Board };
        let (ip, rkey, base) = (Ipv4Addr::LOCALHOST, 0, 0);
        let local = LocalQp { qpn: Qpn::new(2), psn: Psn::new(0), rkey, base, ring: base, ip };
        let mut board = Board::new(spec, CmOpenerConfig::default(), local);
        let sign = |board: &mut Board, at: u64| board.sign_at(Time::from_ms(at));
        assert_eq!(sign(&mut board, 10), Some(Sign::Alive), "from now on it is expected to be heard");
        (100..=10_000).step_by(10).for_each(|at| assert_eq!(sign(&mut board, at), None, "its messages tell"));
        for lag in [10_000, 10_030, 10_200, 10_010] {
            assert_eq!(sign(&mut board, lag), None, "the kernel's clock has lagged");
        }
        assert_eq!(sign(&mut board, 11_000), Some(Sign::Alive));
        assert_eq!(sign(&mut board, 29_000), Some(Sign::Again));
        assert_eq!((sign(&mut board, 29_030), sign(&mut board, 30_000)), (None, None));
        board.message(Time::from_ms(30_001), 100);
        assert_eq!(sign(&mut board, 31_000), Some(Sign::Alive));
    }
}
