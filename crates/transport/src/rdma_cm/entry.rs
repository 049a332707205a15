// SPDX-License-Identifier: Apache-2.0
//! One connection of the table: its identifiers, its state, and the message that is repeated until it is answered.
//! Source: IBTA vol. 1, clauses 12.9.7 (states) and 12.9.8.1 (timeouts).

use super::{RdmaCmConfig, RdmaCmEnd, RdmaCmPath};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MadIds, Qpn, RdmaCmMad, RdmaCmMessage};

/// Longest time for which an MRA stops repetitions.
const LONGEST_SERVICE: Time = Time::from_s(70);

/// 4.096 us * 2^code.
pub(super) fn time_of(code: u8) -> Time {
    Time::from_ps(4_096_000 << (code & 31))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The active side has no answer yet.
    ReqSent,
    /// The owner of the passive side has not decided.
    ReqReceived,
    /// The passive side has no RTU yet.
    RepSent,
    Established,
    DreqSent,
    /// The connection is over; repeated DREQs are still answered.
    TimeWait,
}

/// Identifier and numbers of a connection.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) local_id: u32,
    /// 0: not received yet.
    pub(super) remote_id: u32,
    pub(super) peer_ip: Ipv4Addr,
    pub(super) peer_guid: u64,
    pub(super) transaction: u64,
    pub(super) is_active: bool,
    pub(super) state: State,
    pub(super) local: RdmaCmEnd,
    /// Valid from REQ or REP on.
    pub(super) peer: RdmaCmEnd,
    pub(super) path: RdmaCmPath,
    /// The last message of ours that needs an answer, or that answers a repeated one.
    pub(super) sent: Option<RdmaCmMessage>,
    pub(super) wait: Time,
    pub(super) left: u8,
    pub(super) tries: u8,
    pub(super) deadline: Time,
}

impl Entry {
    pub(super) fn ids(&self) -> MadIds {
        MadIds { local: self.local_id, remote: self.remote_id }
    }

    /// Whether a message with these identifiers, of the peer's side, belongs to it.
    pub(super) fn is_of(&self, from: Ipv4Addr, ids: MadIds) -> bool {
        self.peer_ip == from && self.local_id == ids.remote && self.remote_id == ids.local
    }

    /// Whether a queue pair of the peer is in use by it.
    pub(super) fn holds(&self, from: Ipv4Addr, qpn: Qpn) -> bool {
        let is_live = matches!(self.state, State::ReqReceived | State::RepSent | State::Established);
        is_live && self.peer_ip == from && self.peer.qpn == qpn
    }

    /// Sends a message that is repeated until it is answered.
    pub(super) fn request(&mut self, now: Time, state: State, message: RdmaCmMessage, wait: Time, retries: u8) {
        (self.state, self.sent) = (state, Some(message));
        (self.wait, self.left, self.tries, self.deadline) = (wait, retries, 1, now + wait);
    }

    /// It needs no answer any more.
    pub(super) fn rest(&mut self, state: State, sent: Option<RdmaCmMessage>) {
        (self.state, self.sent, self.deadline) = (state, sent, Time::MAX);
    }

    pub(super) fn end(&mut self, now: Time, config: &RdmaCmConfig) {
        (self.state, self.sent, self.deadline) = (State::TimeWait, None, now.saturating_add(config.time_wait));
    }

    /// The message again, if it may be repeated once more.
    pub(super) fn repeat(&mut self, now: Time) -> Option<RdmaCmMad> {
        let message = self.sent.filter(|_| self.left > 0)?;
        self.left -= 1;
        self.tries += 1;
        self.deadline = now + self.wait;
        Some(RdmaCmMad { transaction: self.transaction, message })
    }

    /// The answer takes longer. Each time counts as one repetition, so that the wait stays bounded.
    pub(super) fn extend(&mut self, now: Time, code: u8) {
        if self.left > 0 {
            self.left -= 1;
            self.deadline = now + time_of(code).min(LONGEST_SERVICE).max(self.wait);
        }
    }
}
