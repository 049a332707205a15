// SPDX-License-Identifier: Apache-2.0
//! The listening side: a table of connections that others open, and the rules of what they may ask.
//! Promise: a repeated request gets the same answer and changes nothing; only the address that opened a connection may
//! touch it; memory is fixed by the number of entries. Source: `rtl/ctrl/cm_listener.sv`, rule for rule.

use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, Ipv4Addr};

/// Why the owner does not give a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// None is free, or not for this one.
    NoQp,
    /// It can be had later: no answer goes out, and the asker asks again.
    NotYet,
    /// A step of it failed.
    Failed,
}

/// The owner of the queue pairs that a [`CmListener`] answers for.
pub trait CmHost {
    /// Gives a queue pair to `from`, whose side is `peer`, and tells our side of it. An older one of the same peer
    /// (`entry`) is closed first by [`Self::close`].
    ///
    /// # Errors
    /// [`Refusal`].
    fn open(&mut self, entry: usize, from: Ipv4Addr, peer: &CmInfo) -> Result<CmInfo, Refusal>;

    /// Connects it to its peer.
    ///
    /// # Errors
    /// [`Refusal`]: the queue pair is then closed.
    fn connect(&mut self, entry: usize, peer: &CmInfo) -> Result<(), Refusal>;

    /// It may send.
    fn ready(&mut self, entry: usize);

    /// It is free again, or (`failed`) its peer has failed.
    fn close(&mut self, entry: usize, failed: bool);

    /// Whether it has failed since it was opened.
    fn is_dead(&self, entry: usize) -> bool;

    /// The peer asks for messages, or for an end of them. False: there is no source that could.
    fn transmit(&mut self, entry: usize, transmit: &CmTransmit) -> bool;
}

/// What a listener has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CmListenerCounters {
    /// Requests answered.
    pub requests: u64,
    /// Of these, answered with anything but ACK.
    pub refused: u64,
    /// Not answered: answers, and requests that must be made again later.
    pub ignored: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Phase {
    #[default]
    Closed,
    Init,
    Rtr,
    Rts,
}

/// A closed entry keeps its last peer, whose repeated CLOSE_QP gets the same answer.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    phase: Phase,
    peer: CmInfo,
    own: CmInfo,
}

/// The listening side of up to `entries` connections.
#[derive(Clone, Debug)]
pub struct CmListener {
    entries: Vec<Entry>,
    counters: CmListenerCounters,
}

impl CmListener {
    /// All closed.
    pub fn new(entries: usize) -> Self {
        CmListener { entries: vec![Entry::default(); entries], counters: CmListenerCounters::default() }
    }

    /// Takes a message that came from address `from`. The answer goes to its [`CmMessage::reply_port`].
    pub fn handle_message(&mut self, from: Ipv4Addr, message: &CmMessage, host: &mut impl CmHost) -> Option<CmMessage> {
        if message.answer.is_some() {
            self.counters.ignored += 1;
            return None;
        }
        let answer = match message.request {
            CmRequest::OpenQp => self.open(from, message, host),
            _ => self.named(from, message, host),
        };
        let Some((answer, own)) = answer else {
            self.counters.ignored += 1;
            return None;
        };
        self.counters.requests += 1;
        self.counters.refused += u64::from(answer != CmAnswer::Ack);
        Some(message.answered(answer, own.filter(|_| answer == CmAnswer::Ack)))
    }

    /// Our side and the peer's of an entry that may send.
    pub fn connection(&self, entry: usize) -> Option<(CmInfo, CmInfo)> {
        self.entries.get(entry).filter(|e| e.phase == Phase::Rts).map(|e| (e.own, e.peer))
    }

    /// The owner has opened this connection itself: from now on its peer may ask here whether it lives, and close it.
    pub fn adopt(&mut self, entry: usize, own: CmInfo, peer: CmInfo) {
        if let Some(entry) = self.entries.get_mut(entry) {
            *entry = Entry { phase: Phase::Rts, peer, own };
        }
    }

    /// The owner has ended it.
    pub fn forget(&mut self, entry: usize) {
        if let Some(entry) = self.entries.get_mut(entry) {
            entry.phase = Phase::Closed;
        }
    }

    /// What it has done.
    pub fn counters(&self) -> &CmListenerCounters {
        &self.counters
    }

    fn open(
        &mut self,
        from: Ipv4Addr,
        message: &CmMessage,
        host: &mut impl CmHost,
    ) -> Option<(CmAnswer, Option<CmInfo>)> {
        let peer = CmInfo { ip: from, ..message.sender };
        let same = |e: &Entry| e.phase != Phase::Closed && e.peer.ip == from && e.peer.qpn == peer.qpn;
        let hit = self.entries.iter().position(same);
        if let Some(at) = hit {
            let entry = self.entries[at];
            if entry.peer == peer && !host.is_dead(at) {
                return Some((CmAnswer::Ack, Some(entry.own)));
            }
            host.close(at, false);
            self.entries[at].phase = Phase::Closed;
        }
        // The sender's own entry goes before a free one.
        let free = |(at, e): (usize, &Entry)| (e.phase == Phase::Closed).then_some(at);
        let candidates = hit.into_iter().chain(self.entries.iter().enumerate().filter_map(free)).collect::<Vec<_>>();
        for at in candidates {
            let own = match host.open(at, from, &peer) {
                Ok(own) => own,
                Err(Refusal::NoQp) => continue,
                Err(Refusal::NotYet) => return None,
                Err(Refusal::Failed) => return Some((CmAnswer::Error, None)),
            };
            self.entries[at] = Entry { phase: Phase::Init, peer, own };
            if message.info_valid {
                return self.connect(at, peer, host);
            }
            return Some((CmAnswer::Ack, Some(own)));
        }
        Some((CmAnswer::NoQp, None))
    }

    fn connect(&mut self, at: usize, peer: CmInfo, host: &mut impl CmHost) -> Option<(CmAnswer, Option<CmInfo>)> {
        if host.connect(at, &peer).is_err() {
            host.close(at, false);
            self.entries[at].phase = Phase::Closed;
            return Some((CmAnswer::Error, None));
        }
        let entry = &mut self.entries[at];
        (entry.phase, entry.peer) = (Phase::Rtr, peer);
        Some((CmAnswer::Ack, Some(entry.own)))
    }

    /// A request to a queue pair that it names.
    fn named(
        &mut self,
        from: Ipv4Addr,
        message: &CmMessage,
        host: &mut impl CmHost,
    ) -> Option<(CmAnswer, Option<CmInfo>)> {
        let qpn = message.other.qpn;
        // A number may be given out again: the open entry that has it goes before a closed one that had it.
        let has = |e: &Entry| e.own.qpn == qpn && qpn.value() != 0;
        let open = self.entries.iter().position(|e| has(e) && e.phase != Phase::Closed);
        let Some(at) = open.or_else(|| self.entries.iter().position(has)) else {
            return Some((CmAnswer::NoQp, None));
        };
        let entry = self.entries[at];
        let owner = entry.peer.ip == from && entry.phase != Phase::Closed;
        let alive = owner && !host.is_dead(at);
        let peer = CmInfo { ip: from, ..message.sender };
        let (ack, own) = (CmAnswer::Ack, Some(entry.own));
        let answer = match message.request {
            CmRequest::None if owner && message.transmit.is_some() => Some((ack, own)),
            CmRequest::SendQpInfo if alive && message.info_valid => match entry.phase {
                Phase::Rtr | Phase::Rts if entry.peer == peer => Some((ack, own)),
                Phase::Rts => None,
                _ => Some(self.connect(at, peer, host)?),
            },
            CmRequest::ModifyQpRts if alive && entry.phase != Phase::Init => {
                if entry.phase == Phase::Rtr {
                    self.entries[at].phase = Phase::Rts;
                    host.ready(at);
                }
                Some((ack, own))
            }
            CmRequest::CloseQp | CmRequest::Error if owner => {
                self.entries[at].phase = Phase::Closed;
                host.close(at, message.request == CmRequest::Error);
                Some((ack, own))
            }
            CmRequest::CloseQp | CmRequest::Error
                if entry.phase == Phase::Closed && entry.peer.ip == from && entry.peer.qpn == peer.qpn =>
            {
                Some((ack, own))
            }
            CmRequest::Reserved(_) => Some((CmAnswer::Error, None)),
            _ => None,
        };
        let refused = if entry.phase == Phase::Closed { CmAnswer::NoQp } else { CmAnswer::Nak };
        let answer = answer.unwrap_or((refused, None));
        match &message.transmit {
            // Only an open queue pair can send; stopping is always right.
            Some(transmit) if answer.0 == ack => {
                let may = !transmit.start || self.entries[at].phase == Phase::Rts;
                Some(if may && host.transmit(at, transmit) { answer } else { (CmAnswer::Nak, None) })
            }
            _ => Some(answer),
        }
    }
}
