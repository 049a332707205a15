// SPDX-License-Identifier: Apache-2.0
//! The opening side of one connection: repeats its request until it is answered, then supervises the connection.
//! Promise: unexpected answers and answers from other addresses change nothing; a connection that carries data is never
//! given up because an answer is missing. Source: `rtl/ctrl/cm_opener.sv`; FEROCE's host software.

use super::{CmFailure, CmReason};
use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, Ipv4Addr, CM_REQUEST_PORT};

/// How patient an opener is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmOpenerConfig {
    /// Wait for one answer.
    pub timeout: Time,
    /// The number of retries of a step.
    pub retries: u32,
    /// The silence of an open connection after which a keep-alive is sent; none: never.
    pub keep_alive: Option<Time>,
}

impl Default for CmOpenerConfig {
    /// 200 ms, 10 retries, keep-alive after 1 s.
    fn default() -> Self {
        CmOpenerConfig { timeout: Time::from_ms(200), retries: 10, keep_alive: Some(Time::from_s(1)) }
    }
}

/// The number of keep-alives sent to a peer while its data arrive, until it has acknowledged one.
const INTRODUCTIONS: u32 = 3;

/// A peer that has never agreed to a keep-alive is given up when this many in a row are unanswered and no data arrive:
/// FEROCE's host software answers none, so a few unanswered ones are no evidence.
const UNANSWERED: u32 = 10;

/// The state of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmState {
    /// Not begun, or closed.
    Closed,
    /// This step has been requested.
    Requesting(CmRequest),
    /// The board may send.
    Open,
    /// It did not come up, or is up no longer.
    Failed(CmFailure),
}

/// What the owner must do, or may report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmEvent {
    /// The board has sent its parameters, and sends data from now on: connect the queue pair.
    Open(CmInfo),
    /// It has closed the queue pair.
    Closed,
    /// See [`CmState::Failed`].
    Failed(CmFailure),
}

/// A question under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Question {
    step: CmRequest,
    begun: Time,
    /// When to ask again, or to give up.
    deadline: Time,
    sent: u32,
    retries: u32,
    to_send: bool,
}

/// The opening side of one connection.
#[derive(Clone, Debug)]
pub struct CmOpener {
    config: CmOpenerConfig,
    ip: Ipv4Addr,
    port: u16,
    local: CmInfo,
    peer: CmInfo,
    state: CmState,
    done: Option<CmRequest>,
    question: Option<Question>,
    last_arrival: Time,
    /// When an open connection is asked whether it lives though its data come, and how often still: so that it is known
    /// what silence means.
    introduction: Option<(Time, u32)>,
    /// The board has answered a keep-alive: one that does not know it neither answers it nor agrees to it.
    keeps_alive: bool,
    /// Keep-alives without an answer and without data since.
    unanswered: u32,
    /// This side has opened the connection, and can open it again.
    requested: bool,
    /// A sign of life that the owner has not taken.
    life: Option<LifeSign>,
    /// Reported once when a connection is given up: the board's queue pair is free.
    farewell: Option<CmMessage>,
}

/// What an answer of a board means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeSign {
    /// It answered at once.
    Present,
    /// It answered a repeated request only: it was out of reach.
    Returned,
}

impl CmOpener {
    /// A connection to the board at `ip`, closed.
    pub fn new(config: CmOpenerConfig, ip: Ipv4Addr) -> Self {
        CmOpener {
            config,
            ip,
            port: CM_REQUEST_PORT,
            local: CmInfo::default(),
            peer: CmInfo::default(),
            state: CmState::Closed,
            done: None,
            question: None,
            last_arrival: Time::ZERO,
            introduction: None,
            keeps_alive: false,
            unanswered: 0,
            requested: false,
            life: None,
            farewell: None,
        }
    }

    /// Starts with our parameters: an unused queue pair.
    pub fn open(&mut self, now: Time, local: CmInfo) {
        (self.local, self.peer, self.done, self.port) = (local, CmInfo::default(), None, CM_REQUEST_PORT);
        self.requested = true;
        self.request(now, CmRequest::OpenQp);
    }

    /// Another has opened this connection towards us, and takes requests at `port` (0: where all do): from now on this
    /// side watches over it.
    pub fn adopt(&mut self, now: Time, local: CmInfo, peer: CmInfo, port: u16) {
        self.port = if port == 0 { CM_REQUEST_PORT } else { port };
        (self.local, self.peer, self.requested) = (local, peer, false);
        self.opened(now);
    }

    /// Requests that the board free its queue pair. Does nothing before the board has got ours.
    pub fn close(&mut self, now: Time) {
        self.farewell = None;
        if self.done.is_some() {
            self.request(now, CmRequest::CloseQp);
        } else {
            (self.state, self.question) = (CmState::Closed, None);
        }
    }

    /// The board has closed this connection itself.
    pub fn forget(&mut self) {
        self.closed();
    }

    /// Data of the board arrived. An open connection gets no keep-alive then.
    pub fn data_arrived(&mut self, now: Time) {
        self.last_arrival = self.last_arrival.max(now);
        self.unanswered = 0;
    }

    /// Another connection of the board's address is asked for: a board that has answered a keep-alive before is asked
    /// now whether it lives, unless something of it came just now.
    pub fn probe_if_idle(&mut self, now: Time) {
        let was_active = now < self.last_arrival.saturating_add(self.config.timeout / 2);
        if self.state == CmState::Open && self.question.is_none() && self.keeps_alive && !was_active {
            self.probe(now);
        }
    }

    /// The board's sign of life since the last call: it was opened, or answered a keep-alive. None without keep-alives.
    pub fn take_life(&mut self) -> Option<LifeSign> {
        self.life.take()
    }

    /// Asks an open connection now whether it lives, unless that is under way.
    pub fn request_life_sign(&mut self, now: Time) {
        if self.state == CmState::Open && self.question.is_none() && self.config.keep_alive.is_some() {
            self.probe(now);
        }
    }

    /// Whether the board may be gone: it has not answered the last keep-alive, or nothing of it has come for `time`.
    /// The silence of one that has answered keep-alives before ends the connection by itself.
    pub fn is_quiet(&self, now: Time, time: Time) -> bool {
        !self.keeps_alive && (self.unanswered > 0 || now >= self.last_arrival.saturating_add(time))
    }

    /// Takes a message that came from `from` at `now` of any clock that does not run backwards.
    pub fn handle_message(&mut self, now: Time, from: Ipv4Addr, message: &CmMessage) -> Option<CmEvent> {
        let question = self.question?;
        let answer = message.answer?;
        // The answer contains our number as the other side's.
        if from != self.ip || message.request != question.step || message.other.qpn != self.local.qpn {
            return None;
        }
        let step = question.step;
        let why = match answer {
            CmAnswer::Ack => return self.agreed(now, step, message),
            CmAnswer::NoQp => {
                let holder = (!message.sender.ip.is_unspecified()).then_some((message.sender.qpn, message.sender.ip));
                CmReason::NoQp { step, holder }
            }
            CmAnswer::Nak => CmReason::Nak { step },
            CmAnswer::Error => CmReason::Error { step },
            CmAnswer::Reserved(code) => CmReason::Reserved { step, code },
        };
        self.refused(now, question, why)
    }

    /// The time of [`Self::next_timeout`] has come. May be called too early or too often.
    pub fn handle_timeout(&mut self, now: Time) -> Option<CmEvent> {
        if self.next_timeout().is_none_or(|at| now < at) {
            return None;
        }
        let Some(question) = &mut self.question else {
            self.probe(now);
            return None;
        };
        if question.sent <= question.retries {
            (question.to_send, question.deadline) = (true, now + self.config.timeout);
            return None;
        }
        let question = *question;
        self.refused(now, question, CmReason::Silent { step: question.step, tries: question.sent })
    }

    /// When [`Self::handle_timeout`] is wanted. May change after every call.
    pub fn next_timeout(&self) -> Option<Time> {
        match &self.question {
            Some(question) => Some(question.deadline),
            None if self.state == CmState::Open => {
                self.config.keep_alive.map(|wait| self.introduction.map_or(self.last_arrival + wait, |(at, _)| at))
            }
            None => None,
        }
    }

    /// The next message to the board, to [`Self::port`].
    pub fn poll_transmit(&mut self) -> Option<CmMessage> {
        if let Some(farewell) = self.farewell.take() {
            return Some(farewell);
        }
        let question = self.question.as_mut().filter(|question| question.to_send)?;
        question.to_send = false;
        question.sent += 1;
        Some(CmMessage::request(question.step, self.local, self.peer))
    }

    /// Its state.
    pub fn state(&self) -> CmState {
        self.state
    }

    /// Wait for one answer.
    pub fn timeout(&self) -> Time {
        self.config.timeout
    }

    /// The board.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// UDP port of the board's connection manager.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The board's parameters; valid after it has sent them.
    pub fn peer(&self) -> CmInfo {
        self.peer
    }

    fn request(&mut self, now: Time, step: CmRequest) {
        self.state = CmState::Requesting(step);
        self.question = Some(self.question(now, step, self.config.retries));
    }

    fn question(&self, now: Time, step: CmRequest, retries: u32) -> Question {
        let deadline = now + self.config.timeout;
        Question { step, begun: now, deadline, sent: 0, retries, to_send: true }
    }

    /// Asks whether the connection lives. A peer that has never agreed to the question is asked once at a time:
    /// FEROCE's host software takes it for a wrong answer to its CLOSE_QP, and gives up after the second.
    fn probe(&mut self, now: Time) {
        let retries = if self.keeps_alive { self.config.retries } else { 0 };
        let wait = self.config.keep_alive.unwrap_or(Time::MAX);
        let next = |(_, left): (Time, u32)| (left > 1).then(|| (now.saturating_add(wait), left - 1));
        self.introduction = self.introduction.and_then(next);
        self.question = Some(self.question(now, CmRequest::ModifyQpRts, retries));
    }

    fn agreed(&mut self, now: Time, step: CmRequest, message: &CmMessage) -> Option<CmEvent> {
        match step {
            CmRequest::OpenQp => {
                if !message.info_valid || message.sender.qpn.value() == 0 {
                    return Some(self.fail(CmReason::NoInfo { step }));
                }
                let ip = if message.sender.ip.is_unspecified() { self.ip } else { message.sender.ip };
                self.peer = CmInfo { ip, ..message.sender };
                self.opened(now);
                Some(CmEvent::Open(self.peer))
            }
            CmRequest::CloseQp => Some(self.closed()),
            _ => {
                let was_away = self.unanswered > 0 || self.question.is_some_and(|question| question.sent > 1);
                self.life = Some(if was_away { LifeSign::Returned } else { LifeSign::Present });
                (self.question, self.keeps_alive, self.introduction) = (None, true, None);
                self.data_arrived(now);
                None
            }
        }
    }

    /// No, or no answer.
    fn refused(&mut self, now: Time, question: Question, why: CmReason) -> Option<CmEvent> {
        match question.step {
            CmRequest::CloseQp => Some(self.closed()),
            CmRequest::ModifyQpRts if self.is_no_sign(question, why) => {
                let unanswered = match why {
                    CmReason::Silent { .. } if self.last_arrival <= question.begun => self.unanswered + 1,
                    _ => 0,
                };
                self.question = None;
                self.data_arrived(now);
                self.unanswered = unanswered;
                if !matches!(why, CmReason::Silent { .. }) {
                    self.life = Some(LifeSign::Present);
                }
                None
            }
            _ => Some(self.fail(why)),
        }
    }

    /// Whether a failed keep-alive is meaningless: data have arrived since, or the board does not support keep-alives.
    fn is_no_sign(&self, question: Question, why: CmReason) -> bool {
        let is_patient = !self.requested || self.unanswered + 1 < UNANSWERED;
        let foreign = match why {
            CmReason::Silent { .. } => !self.keeps_alive && is_patient,
            CmReason::Error { .. } | CmReason::Reserved { .. } => !self.keeps_alive,
            _ => false,
        };
        self.last_arrival > question.begun || foreign
    }

    fn opened(&mut self, now: Time) {
        (self.state, self.question, self.last_arrival) = (CmState::Open, None, now);
        (self.done, self.keeps_alive, self.unanswered) = (Some(CmRequest::OpenQp), false, 0);
        self.introduction = Some((now + self.config.timeout, INTRODUCTIONS));
        self.life = self.config.keep_alive.map(|_| LifeSign::Present);
    }

    fn closed(&mut self) -> CmEvent {
        (self.state, self.question, self.done) = (CmState::Closed, None, None);
        CmEvent::Closed
    }

    fn fail(&mut self, why: CmReason) -> CmEvent {
        let failure = CmFailure { ip: self.ip, done: self.done, why };
        if self.done.is_some() {
            self.farewell = Some(CmMessage::request(CmRequest::CloseQp, self.local, self.peer));
        }
        (self.state, self.question) = (CmState::Failed(failure), None);
        CmEvent::Failed(failure)
    }
}
