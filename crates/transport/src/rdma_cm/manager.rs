// SPDX-License-Identifier: Apache-2.0
//! The table of connections and the rules for each message.
//! Promise: only the peer of a connection, with both of its identifiers, changes it; what strangers send costs one
//! bounded answer and no memory.
//! Source: IBTA vol. 1, clauses 12.9.5 to 12.9.8 (states of both sides, timeouts, stale connections), 12.10.

use super::entry::{time_of, Entry, State};
use super::requests::{agree, make_rep, make_req, read_rep, read_req, Target};
use super::{
    RdmaCmAgreed, RdmaCmConfig, RdmaCmCounters, RdmaCmEnd, RdmaCmEvent, RdmaCmFailure, RdmaCmPath, RDMA_CM_PRIVATE_LEN,
};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MadIds, Mra, Psn, Qpn, RdmaCmMad, RdmaCmMessage, Rej, RejReason, Rejected, Rep, Req};
use std::collections::VecDeque;

/// Unpredictable random bits; in tests, those of a seed.
pub type Entropy = Box<dyn FnMut() -> u32 + Send>;

/// Answers without a connection that may wait to be sent.
const ANSWERS: usize = 64;
/// Code of the time that an MRA requests for the owner: 4.3 s.
const SERVICE_TIMEOUT: u8 = 20;
/// First of the dynamic ports.
const FIRST_PORT: u16 = 0xC000;

const NO_END: RdmaCmEnd = RdmaCmEnd {
    qpn: Qpn::new(0),
    psn: Psn::new(0),
    responder_resources: 0,
    initiator_depth: 0,
    rnr_retry: 0,
    private: [0; RDMA_CM_PRIVATE_LEN],
};

/// The connections of one address, in both roles.
pub struct RdmaCm {
    config: RdmaCmConfig,
    entropy: Entropy,
    entries: Vec<Entry>,
    out: VecDeque<(Ipv4Addr, RdmaCmMad)>,
    events: VecDeque<RdmaCmEvent>,
    counters: RdmaCmCounters,
}

impl RdmaCm {
    /// No connections. Identifiers come from `entropy`.
    pub fn new(config: RdmaCmConfig, entropy: Entropy) -> Self {
        let (entries, out, events) = (Vec::new(), VecDeque::new(), VecDeque::new());
        RdmaCm { config, entropy, entries, out, events, counters: RdmaCmCounters::default() }
    }

    /// Requests a connection to a port and returns its identifier; none if the table is full.
    pub fn connect(&mut self, now: Time, to: Ipv4Addr, port: u16, local: RdmaCmEnd, path: RdmaCmPath) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let local_id = self.new_id();
        let from_port = FIRST_PORT | (self.entropy)() as u16;
        let req = make_req(&self.config, local_id, Target { ip: to, port, from_port }, &local, &path);
        let transaction = self.new_transaction();
        let mut entry = self.entry(local_id, to, transaction, local, path);
        entry.is_active = true;
        let (wait, retries) =
            (time_of(self.config.response_timeout).min(self.config.longest_wait), self.config.retries);
        entry.request(now, State::ReqSent, RdmaCmMessage::Req(req), wait, retries);
        self.send(&entry);
        self.entries.push(entry);
        Some(local_id)
    }

    /// Agrees to a request. False if it is over.
    pub fn accept(&mut self, now: Time, connection: u32, local: RdmaCmEnd) -> bool {
        let Some(at) = self.at(connection).filter(|at| self.entries[*at].state == State::ReqReceived) else {
            return false;
        };
        let entry = &mut self.entries[at];
        let agreed = agree(&local, &entry.peer, entry.path);
        (entry.local, entry.peer) = (agreed.local, agreed.peer);
        let rep = RdmaCmMessage::Rep(make_rep(&self.config, entry.ids(), &agreed.local));
        let (wait, left) = (entry.wait, entry.left);
        entry.request(now, State::RepSent, rep, wait, left);
        let entry = self.entries[at].clone();
        self.send(&entry);
        true
    }

    /// Rejects a request. A repeated one is a new request.
    pub fn reject(&mut self, connection: u32, reason: RejReason) {
        if let Some(at) = self.at(connection).filter(|at| self.entries[*at].state == State::ReqReceived) {
            let entry = self.entries.swap_remove(at);
            self.send_rej(&entry, Rejected::Req, reason);
        }
    }

    /// Ends a connection, or gives up one that is not established.
    pub fn disconnect(&mut self, now: Time, connection: u32) {
        let Some(at) = self.at(connection) else { return };
        match self.entries[at].state {
            State::ReqSent => {
                let entry = self.entries.swap_remove(at);
                self.send_rej(&entry, Rejected::Req, RejReason::Timeout);
            }
            State::ReqReceived => self.reject(connection, RejReason::Consumer),
            State::RepSent | State::Established => self.send_dreq(now, at),
            State::DreqSent | State::TimeWait => {}
        }
    }

    /// Takes a message that came from `from` at `now`.
    pub fn handle_mad(&mut self, now: Time, from: Ipv4Addr, mad: &RdmaCmMad) {
        match &mad.message {
            RdmaCmMessage::Req(req) => self.handle_req(now, from, mad.transaction, req),
            RdmaCmMessage::Rep(rep) => self.handle_rep(from, mad.transaction, rep),
            RdmaCmMessage::Rtu(ids) => self.handle_rtu(from, *ids),
            RdmaCmMessage::Rej(rej) => self.handle_rej(now, from, rej),
            RdmaCmMessage::Mra(mra) => self.handle_mra(now, from, mra),
            RdmaCmMessage::Dreq { ids, qpn } => self.handle_dreq(now, from, mad.transaction, *ids, *qpn),
            RdmaCmMessage::Drep(ids) => self.handle_drep(now, from, *ids),
        }
    }

    /// The time of [`Self::next_timeout`] has come. May be called too early or too often.
    pub fn handle_timeout(&mut self, now: Time) {
        let mut at = 0;
        while at < self.entries.len() {
            if now < self.entries[at].deadline {
                at += 1;
            } else if let Some(mad) = self.entries[at].repeat(now) {
                self.out.push_back((self.entries[at].peer_ip, mad));
                at += 1;
            } else if !self.expire(now, at) {
                at += 1;
            }
        }
    }

    /// When [`Self::handle_timeout`] is wanted. May change after every call.
    pub fn next_timeout(&self) -> Option<Time> {
        self.entries.iter().map(|entry| entry.deadline).filter(|at| *at < Time::MAX).min()
    }

    /// The next message, with its destination.
    pub fn poll_transmit(&mut self) -> Option<(Ipv4Addr, RdmaCmMad)> {
        self.out.pop_front()
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<RdmaCmEvent> {
        self.events.pop_front()
    }

    /// Whether a connection is in the table.
    pub fn has(&self, connection: u32) -> bool {
        self.at(connection).is_some()
    }

    /// Connections in the table, those that end included.
    pub fn connections(&self) -> usize {
        self.entries.len()
    }

    /// What it has done.
    pub fn counters(&self) -> &RdmaCmCounters {
        &self.counters
    }

    fn handle_req(&mut self, now: Time, from: Ipv4Addr, transaction: u64, req: &Req) {
        let ids = MadIds { local: 0, remote: req.local_id };
        if self.config.allow.as_ref().is_some_and(|allow| !allow.contains(&from)) {
            self.counters.strangers += 1;
            return self.answer_rej(from, transaction, ids, Rejected::Req, (RejReason::Consumer, None));
        }
        let is_same = |e: &Entry| e.peer_ip == from && e.remote_id == req.local_id && e.peer_guid == req.ca_guid;
        if let Some(at) = self.entries.iter().position(|e| !e.is_active && is_same(e)) {
            return self.repeated_req(from, transaction, req, at);
        }
        if let Some(at) = self.entries.iter().position(|e| e.holds(from, req.qpn)) {
            self.end_stale(now, at);
            return self.answer_rej(from, transaction, ids, Rejected::Req, (RejReason::StaleConn, None));
        }
        let (peer, path) = match read_req(&self.config, from, req) {
            Ok(read) => read,
            Err(why) => return self.answer_rej(from, transaction, ids, Rejected::Req, why),
        };
        let opened = |e: &&Entry| e.peer_ip == from && !e.is_active && e.state != State::TimeWait;
        let is_at_bound =
            self.config.per_address != 0 && self.entries.iter().filter(opened).count() >= self.config.per_address;
        if is_at_bound || !self.has_room() {
            return self.answer_rej(from, transaction, ids, Rejected::Req, (RejReason::NoQp, None));
        }
        self.counters.requests += 1;
        let local_id = self.new_id();
        let mut entry = self.entry(local_id, from, transaction, NO_END, path);
        (entry.remote_id, entry.peer_guid, entry.peer) = (req.local_id, req.ca_guid, peer);
        entry.wait = time_of(req.local_timeout).min(self.config.longest_wait);
        entry.left = req.cm_retries.min(self.config.retries);
        entry.deadline = now.saturating_add(self.config.half_open);
        self.entries.push(entry);
        self.events.push_back(RdmaCmEvent::Requested { connection: local_id, from, peer, path });
    }

    /// The peer has forgotten a connection: it ends, and the peer's request may be made again.
    fn end_stale(&mut self, now: Time, at: usize) {
        let Entry { local_id: connection, state, .. } = self.entries[at];
        self.disconnect(now, connection);
        if state == State::ReqReceived {
            let why = RdmaCmFailure::Rejected { reason: RejReason::StaleConn, information: 0 };
            self.events.push_back(RdmaCmEvent::Failed { connection, why });
        }
    }

    /// A REQ with the identifier of a connection.
    fn repeated_req(&mut self, from: Ipv4Addr, transaction: u64, req: &Req, at: usize) {
        let entry = &self.entries[at];
        let ids = MadIds { local: 0, remote: req.local_id };
        let is_same = (entry.peer.qpn, entry.peer.psn) == (req.qpn, req.psn);
        match entry.state {
            _ if !is_same => {
                self.answer_rej(from, transaction, ids, Rejected::Req, (RejReason::DuplicateCommId, None));
            }
            State::ReqReceived => {
                let message = Rejected::Req;
                let mra = RdmaCmMessage::Mra(Mra { ids: entry.ids(), message, service_timeout: SERVICE_TIMEOUT });
                self.answer_again(from, RdmaCmMad { transaction, message: mra });
            }
            State::RepSent => {
                if let Some(message) = entry.sent {
                    self.answer_again(from, RdmaCmMad { transaction, message });
                }
            }
            State::TimeWait => self.answer_rej(from, transaction, ids, Rejected::Req, (RejReason::StaleConn, None)),
            State::Established | State::DreqSent | State::ReqSent => self.counters.ignored += 1,
        }
    }

    fn handle_rep(&mut self, from: Ipv4Addr, transaction: u64, rep: &Rep) {
        let opens = |e: &Entry| e.state == State::ReqSent && e.peer_ip == from && e.local_id == rep.ids.remote;
        if let Some(at) = self.entries.iter().position(opens) {
            return self.opened(at, rep);
        }
        match self.entries.iter().position(|e| e.is_active && e.is_of(from, rep.ids)) {
            Some(at) if self.entries[at].state == State::Established => {
                if let Some(message) = self.entries[at].sent {
                    self.answer_again(from, RdmaCmMad { transaction, message });
                }
            }
            Some(_) => self.counters.ignored += 1,
            None => {
                self.counters.unknown += 1;
                let why = (RejReason::InvalidCommId, None);
                self.answer_rej(from, transaction, rep.ids.swapped(), Rejected::Rep, why);
            }
        }
    }

    /// The REP that a REQ has waited for.
    fn opened(&mut self, at: usize, rep: &Rep) {
        let entry = &mut self.entries[at];
        (entry.remote_id, entry.peer_guid) = (rep.ids.local, rep.ca_guid);
        match read_rep(&entry.local, entry.path, rep) {
            Ok(agreed) => {
                (entry.local, entry.peer) = (agreed.local, agreed.peer);
                entry.rest(State::Established, Some(RdmaCmMessage::Rtu(entry.ids())));
                let entry = entry.clone();
                self.send(&entry);
                self.established(&entry);
            }
            Err(reason) => {
                let entry = self.entries.swap_remove(at);
                self.send_rej(&entry, Rejected::Rep, reason);
                let why = RdmaCmFailure::Unfit { reason };
                self.events.push_back(RdmaCmEvent::Failed { connection: entry.local_id, why });
            }
        }
    }

    fn handle_rtu(&mut self, from: Ipv4Addr, ids: MadIds) {
        let Some(at) = self.entries.iter().position(|e| !e.is_active && e.is_of(from, ids)) else {
            self.counters.unknown += 1;
            return;
        };
        if self.entries[at].state == State::RepSent {
            self.entries[at].rest(State::Established, None);
            let entry = self.entries[at].clone();
            self.established(&entry);
        } else {
            self.counters.ignored += 1;
        }
    }

    fn handle_rej(&mut self, now: Time, from: Ipv4Addr, rej: &Rej) {
        // A peer that has not given the connection an identifier names ours alone, one that has got none of ours its
        // own one and, for a timeout, its GUID.
        let guid = u64::from_be_bytes(rej.information);
        let is_named = |e: &Entry| {
            let by_guid = rej.reason == RejReason::Timeout && rej.ids.remote == 0 && e.peer_guid == guid;
            let is_peer = e.remote_id == rej.ids.local;
            match e.state {
                State::ReqSent => e.local_id == rej.ids.remote,
                _ => is_peer && (e.local_id == rej.ids.remote || (by_guid && !e.is_active)),
            }
        };
        let Some(at) = self.entries.iter().position(|e| e.peer_ip == from && is_named(e)) else {
            self.counters.unknown += 1;
            return;
        };
        match self.entries[at].state {
            State::ReqSent | State::ReqReceived | State::RepSent => {
                let entry = self.entries.swap_remove(at);
                let why = RdmaCmFailure::Rejected { reason: rej.reason, information: rej.information[0] };
                self.events.push_back(RdmaCmEvent::Failed { connection: entry.local_id, why });
            }
            State::Established | State::DreqSent => self.disconnected(now, at),
            State::TimeWait => self.counters.ignored += 1,
        }
    }

    fn handle_mra(&mut self, now: Time, from: Ipv4Addr, mra: &Mra) {
        let waits = |e: &Entry| match (e.state, mra.message) {
            (State::ReqSent, Rejected::Req) => e.peer_ip == from && e.local_id == mra.ids.remote,
            (State::RepSent, Rejected::Rep) => e.is_of(from, mra.ids),
            _ => false,
        };
        match self.entries.iter_mut().find(|e| waits(e)) {
            Some(entry) => entry.extend(now, mra.service_timeout),
            None => self.counters.ignored += 1,
        }
    }

    fn handle_dreq(&mut self, now: Time, from: Ipv4Addr, transaction: u64, ids: MadIds, qpn: Qpn) {
        let drep = RdmaCmMad { transaction, message: RdmaCmMessage::Drep(ids.swapped()) };
        let Some(at) = self.entries.iter().position(|e| e.is_of(from, ids)) else {
            // Its peer waits for an answer, whatever has become of the connection.
            self.counters.unknown += 1;
            return self.answer(from, drep);
        };
        match self.entries[at].state {
            _ if self.entries[at].local.qpn != qpn => self.counters.ignored += 1,
            State::RepSent | State::Established | State::DreqSent => {
                self.out.push_back((from, drep));
                self.disconnected(now, at);
            }
            State::TimeWait => self.answer_again(from, drep),
            State::ReqSent | State::ReqReceived => self.counters.ignored += 1,
        }
    }

    fn handle_drep(&mut self, now: Time, from: Ipv4Addr, ids: MadIds) {
        match self.entries.iter().position(|e| e.is_of(from, ids)) {
            Some(at) if self.entries[at].state == State::DreqSent => self.disconnected(now, at),
            Some(_) => self.counters.ignored += 1,
            None => self.counters.unknown += 1,
        }
    }

    /// The last wait of a connection is over. Whether it has left the table.
    fn expire(&mut self, now: Time, at: usize) -> bool {
        let Entry { state, tries, .. } = self.entries[at];
        let (message, why) = match state {
            State::DreqSent => {
                self.disconnected(now, at);
                return false;
            }
            State::ReqSent => (Rejected::Req, RdmaCmFailure::Silent { message: "REQ", tries }),
            State::RepSent => (Rejected::Rep, RdmaCmFailure::Silent { message: "REP", tries }),
            State::ReqReceived => (Rejected::Req, RdmaCmFailure::Undecided),
            State::Established | State::TimeWait => {
                self.entries.swap_remove(at);
                return true;
            }
        };
        let entry = self.entries.swap_remove(at);
        self.counters.silent += u64::from(why != RdmaCmFailure::Undecided);
        self.send_rej(&entry, message, RejReason::Timeout);
        self.events.push_back(RdmaCmEvent::Failed { connection: entry.local_id, why });
        true
    }

    fn established(&mut self, entry: &Entry) {
        self.counters.established += 1;
        let agreed = RdmaCmAgreed { local: entry.local, peer: entry.peer, path: entry.path };
        self.events.push_back(RdmaCmEvent::Established { connection: entry.local_id, agreed });
    }

    fn disconnected(&mut self, now: Time, at: usize) {
        self.counters.disconnected += 1;
        self.entries[at].end(now, &self.config);
        self.events.push_back(RdmaCmEvent::Disconnected { connection: self.entries[at].local_id });
    }

    fn send_dreq(&mut self, now: Time, at: usize) {
        let transaction = self.new_transaction();
        let wait = time_of(self.config.response_timeout).min(self.config.longest_wait);
        let entry = &mut self.entries[at];
        entry.transaction = transaction;
        let dreq = RdmaCmMessage::Dreq { ids: entry.ids(), qpn: entry.peer.qpn };
        entry.request(now, State::DreqSent, dreq, wait, self.config.retries);
        let entry = entry.clone();
        self.send(&entry);
    }

    /// Sends what an entry has to say.
    fn send(&mut self, entry: &Entry) {
        if let Some(message) = entry.sent {
            self.out.push_back((entry.peer_ip, RdmaCmMad { transaction: entry.transaction, message }));
        }
    }

    /// Rejects a connection that is in the table no more.
    fn send_rej(&mut self, entry: &Entry, message: Rejected, reason: RejReason) {
        self.counters.refused += 1;
        let (len, information) = match reason {
            RejReason::Timeout => (8, self.config.ca_guid.to_be_bytes()),
            RejReason::InvalidMtu => (1, [self.config.mtu.code(), 0, 0, 0, 0, 0, 0, 0]),
            _ => (0, [0; 8]),
        };
        let rej = Rej { ids: entry.ids(), message, reason, information_len: len, information };
        self.out
            .push_back((entry.peer_ip, RdmaCmMad { transaction: entry.transaction, message: RdmaCmMessage::Rej(rej) }));
    }

    /// Rejects a message without a connection.
    fn answer_rej(
        &mut self,
        from: Ipv4Addr,
        transaction: u64,
        ids: MadIds,
        message: Rejected,
        (reason, byte): (RejReason, Option<u8>),
    ) {
        self.counters.refused += 1;
        let mut information = [0; 8];
        information[0] = byte.unwrap_or(0);
        let information_len = u8::from(byte.is_some());
        let rej = RdmaCmMessage::Rej(Rej { ids, message, reason, information_len, information });
        self.answer(from, RdmaCmMad { transaction, message: rej });
    }

    fn answer_again(&mut self, to: Ipv4Addr, mad: RdmaCmMad) {
        self.counters.repeated += 1;
        self.answer(to, mad);
    }

    /// Sends an answer that its peer requests again if it is left out.
    fn answer(&mut self, to: Ipv4Addr, mad: RdmaCmMad) {
        if self.out.len() < ANSWERS {
            self.out.push_back((to, mad));
        } else {
            self.counters.suppressed += 1;
        }
    }

    fn at(&self, connection: u32) -> Option<usize> {
        self.entries.iter().position(|entry| entry.local_id == connection)
    }

    /// Makes room for another connection by what is over; false if there is none.
    fn has_room(&mut self) -> bool {
        if self.entries.len() < self.config.connections {
            return true;
        }
        let over = self.entries.iter().enumerate().filter(|(_, entry)| entry.state == State::TimeWait);
        let Some((at, _)) = over.min_by_key(|(_, entry)| entry.deadline) else { return false };
        self.entries.swap_remove(at);
        true
    }

    fn entry(&self, local_id: u32, peer_ip: Ipv4Addr, transaction: u64, local: RdmaCmEnd, path: RdmaCmPath) -> Entry {
        Entry {
            local_id,
            remote_id: 0,
            peer_ip,
            peer_guid: 0,
            transaction,
            is_active: false,
            state: State::ReqReceived,
            local,
            peer: NO_END,
            path,
            sent: None,
            wait: Time::ZERO,
            left: 0,
            tries: 0,
            deadline: Time::MAX,
        }
    }

    /// An identifier that no connection has.
    fn new_id(&mut self) -> u32 {
        loop {
            let id = (self.entropy)();
            if id != 0 && self.at(id).is_none() {
                return id;
            }
        }
    }

    fn new_transaction(&mut self) -> u64 {
        u64::from((self.entropy)()) << 32 | u64::from((self.entropy)())
    }
}
