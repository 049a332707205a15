// SPDX-License-Identifier: Apache-2.0
//! The opening side of one connection: asks for each step until it is answered, then watches over it.
//! Promise: answers that nobody waits for, or that come from another address, change nothing.
//! Source: `rtl/ctrl/cm_opener.sv`; the order of steps is that of FEROCE's host software.

use super::{CmFailure, CmReason};
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, Ipv4Addr};

/// How patient an opener is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmOpenerConfig {
    /// Wait for one answer, ps.
    pub timeout_ps: u64,
    /// How often a step is asked for again.
    pub retries: u32,
    /// How long an open connection may be silent before it is asked whether it lives, ps; none: never.
    pub keep_alive_ps: Option<u64>,
    /// What the board's source of messages is to do, once it is open.
    pub transmit: Option<CmTransmit>,
}

impl Default for CmOpenerConfig {
    /// 200 ms, 10 retries, keep-alive after 1 s, no transmit request.
    fn default() -> Self {
        const MS: u64 = 1_000_000_000;
        CmOpenerConfig { timeout_ps: 200 * MS, retries: 10, keep_alive_ps: Some(1000 * MS), transmit: None }
    }
}

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmState {
    /// Not begun, or closed.
    Closed,
    /// This step was asked for.
    Asking(CmRequest),
    /// The board may send.
    Open,
    /// It did not come up, or is up no longer.
    Failed(CmFailure),
}

/// What the owner must do, or may tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CmEvent {
    /// The board has told its side: connect the queue pair before the next [`CmOpener::poll_transmit`].
    Peer(CmInfo),
    /// All steps are done.
    Open,
    /// It has closed the queue pair.
    Closed,
    /// See [`CmState::Failed`].
    Failed(CmFailure),
}

/// A question under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Question {
    step: CmRequest,
    /// When to ask again, or to give up.
    deadline: u64,
    asked: u32,
    to_send: bool,
    /// Asked of an open connection, to see whether it lives.
    probe: bool,
}

/// The opening side of one connection.
#[derive(Clone, Debug)]
pub struct CmOpener {
    config: CmOpenerConfig,
    ip: Ipv4Addr,
    own: CmInfo,
    peer: CmInfo,
    state: CmState,
    done: Option<CmRequest>,
    question: Option<Question>,
    heard: u64,
}

impl CmOpener {
    /// A connection to the board at `ip`, closed.
    pub fn new(config: CmOpenerConfig, ip: Ipv4Addr) -> Self {
        let (own, peer) = (CmInfo::default(), CmInfo::default());
        CmOpener { config, ip, own, peer, state: CmState::Closed, done: None, question: None, heard: 0 }
    }

    /// Begins, with our side of it: a queue pair that nobody has used.
    pub fn open(&mut self, now: u64, own: CmInfo) {
        (self.own, self.peer, self.done) = (own, CmInfo::default(), None);
        self.ask(now, CmRequest::OpenQp);
    }

    /// Another has opened this connection towards us: from now on this side watches over it.
    pub fn adopt(&mut self, now: u64, own: CmInfo, peer: CmInfo) {
        (self.own, self.peer, self.done) = (own, peer, Some(CmRequest::ModifyQpRts));
        (self.state, self.question, self.heard) = (CmState::Open, None, now);
    }

    /// Tells the board that its queue pair is free. Nothing happens before it was told of ours.
    pub fn close(&mut self, now: u64) {
        if self.done.is_some() {
            self.ask(now, CmRequest::CloseQp);
        } else {
            (self.state, self.question) = (CmState::Closed, None);
        }
    }

    /// The board has closed this connection itself.
    pub fn forget(&mut self) {
        self.closed();
    }

    /// The board was heard of: its data came in. An open connection is not asked then.
    pub fn heard(&mut self, now: u64) {
        self.heard = self.heard.max(now);
    }

    /// Takes a message that came from `from` at `now`, picoseconds of any clock that does not run backwards.
    pub fn handle_message(&mut self, now: u64, from: Ipv4Addr, message: &CmMessage) -> Option<CmEvent> {
        let question = self.question?;
        let answer = message.answer?;
        // The board says whom it answers: our number comes back as the other side's.
        if from != self.ip || message.request != question.step || message.other.qpn != self.own.qpn {
            return None;
        }
        self.heard(now);
        let step = question.step;
        let why = match answer {
            CmAnswer::Ack => return self.agreed(now, question, message),
            CmAnswer::NoQp => CmReason::NoQp { step },
            CmAnswer::Nak => CmReason::Nak { step },
            CmAnswer::Error | CmAnswer::Reserved(_) => CmReason::Error { step },
        };
        if step == CmRequest::CloseQp {
            return Some(self.closed());
        }
        Some(self.fail(why))
    }

    /// The time of [`Self::next_timeout`] has come. May be called too early or too often.
    pub fn handle_timeout(&mut self, now: u64) -> Option<CmEvent> {
        if self.next_timeout().is_none_or(|at| now < at) {
            return None;
        }
        let Some(question) = &mut self.question else {
            self.ask(now, CmRequest::ModifyQpRts);
            if let Some(question) = &mut self.question {
                question.probe = true;
            }
            self.state = CmState::Open;
            return None;
        };
        if question.asked <= self.config.retries {
            (question.to_send, question.deadline) = (true, now + self.config.timeout_ps);
            return None;
        }
        let (step, tries) = (question.step, question.asked);
        if step == CmRequest::CloseQp {
            return Some(self.closed());
        }
        Some(self.fail(CmReason::Silent { step, tries }))
    }

    /// When [`Self::handle_timeout`] is wanted. May change after every call.
    pub fn next_timeout(&self) -> Option<u64> {
        match &self.question {
            Some(question) => Some(question.deadline),
            None if self.state == CmState::Open => self.config.keep_alive_ps.map(|wait| self.heard + wait),
            None => None,
        }
    }

    /// The next message to the board's port [`CM_REQUEST_PORT`](penstock_wire::CM_REQUEST_PORT).
    pub fn poll_transmit(&mut self) -> Option<CmMessage> {
        let question = self.question.as_mut().filter(|question| question.to_send)?;
        question.to_send = false;
        question.asked += 1;
        let mut message = CmMessage::request(question.step, self.own, self.peer);
        match question.step {
            // A queue pair is taken first and told of its peer by SEND_QP_INFO.
            CmRequest::OpenQp => message.info_valid = false,
            CmRequest::None => message.transmit = self.config.transmit,
            _ => {}
        }
        Some(message)
    }

    /// Where it stands.
    pub fn state(&self) -> CmState {
        self.state
    }

    /// Wait for one answer, ps.
    pub fn timeout_ps(&self) -> u64 {
        self.config.timeout_ps
    }

    /// The board.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// What the board has told of itself; meaningful once it has.
    pub fn peer(&self) -> CmInfo {
        self.peer
    }

    fn ask(&mut self, now: u64, step: CmRequest) {
        let deadline = now + self.config.timeout_ps;
        self.state = CmState::Asking(step);
        self.question = Some(Question { step, deadline, asked: 0, to_send: true, probe: false });
    }

    fn agreed(&mut self, now: u64, question: Question, message: &CmMessage) -> Option<CmEvent> {
        let step = question.step;
        self.question = None;
        if question.probe {
            self.state = CmState::Open;
            return None;
        }
        if step == CmRequest::OpenQp {
            if !message.info_valid || message.sender.qpn.value() == 0 {
                return Some(self.fail(CmReason::NoInfo { step }));
            }
            // The address is the one it was asked at.
            self.peer = CmInfo { ip: self.ip, ..message.sender };
        }
        self.done = Some(step);
        match step {
            CmRequest::OpenQp => {
                self.ask(now, CmRequest::SendQpInfo);
                Some(CmEvent::Peer(self.peer))
            }
            CmRequest::SendQpInfo => {
                self.ask(now, CmRequest::ModifyQpRts);
                None
            }
            CmRequest::ModifyQpRts if self.config.transmit.is_some() => {
                self.ask(now, CmRequest::None);
                None
            }
            CmRequest::CloseQp => Some(self.closed()),
            _ => {
                self.state = CmState::Open;
                Some(CmEvent::Open)
            }
        }
    }

    fn closed(&mut self) -> CmEvent {
        (self.state, self.question, self.done) = (CmState::Closed, None, None);
        CmEvent::Closed
    }

    fn fail(&mut self, why: CmReason) -> CmEvent {
        let failure = CmFailure { ip: self.ip, done: self.done, why };
        (self.state, self.question) = (CmState::Failed(failure), None);
        CmEvent::Failed(failure)
    }
}
