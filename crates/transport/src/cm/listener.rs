// SPDX-License-Identifier: Apache-2.0
//! The listening side: a table of the connections that peers open, and the rules for their requests.
//! Promise: a repeated request gets the same answer and changes nothing. Only the address that opened a connection can
//! change it, and even that address cannot reopen it while it is live, because addresses can be forged. Memory is fixed
//! by the number of entries; an entry whose peer is gone makes room for others.
//! Source: `rtl/ctrl/cm_listener.sv`, rule for rule; only the time limit of half-open entries is added here.

use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, Ipv4Addr};

/// Where the connection manager of a peer takes messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmAddress {
    /// UDP source address.
    pub ip: Ipv4Addr,
    /// The port that the peer's message names.
    pub port: u16,
}

/// Why the owner does not give a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// None is free, or not for this one.
    NoQp,
    /// Available later: no answer is sent, and the peer repeats its request.
    NotYet,
    /// A step of it failed.
    Failed,
}

/// Why a connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Its peer has closed it.
    PeerClosed,
    /// Its peer reports that it has failed.
    Failed,
    /// Another connection takes its place, or its set-up has failed.
    Replaced,
    /// Its peer did not finish opening it in time: [`CmListenerConfig::half_open`].
    HalfOpen,
}

/// What a listener is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmListenerConfig {
    /// Connections, at least 1.
    pub entries: usize,
    /// Connections that one address may have; another one takes the place of one of its own. 0: as many as there are.
    pub per_address: usize,
    /// A connection that was closed or has failed is for the address that had it; another address gets one that no
    /// address has had.
    pub keep_peers: bool,
    /// No queue pair is given to a new OPEN_QP.
    pub engaged: bool,
    /// How long the steps of opening may take together, from OPEN_QP on.
    pub half_open: Time,
}

impl CmListenerConfig {
    /// The configuration without a bound for an address; 5 s from OPEN_QP to the end of opening.
    pub const fn new(entries: usize) -> Self {
        CmListenerConfig { entries, per_address: 0, keep_peers: false, engaged: false, half_open: Time::from_s(5) }
    }
}

/// The owner of the queue pairs that a [`CmListener`] answers for.
pub trait CmHost {
    /// Gives a queue pair to the manager at `from`, whose parameters are `peer`, and returns our parameters. An older
    /// one of the same peer (`entry`) is closed first by [`Self::close`].
    ///
    /// # Errors
    /// [`Refusal`].
    fn open(&mut self, entry: usize, from: CmAddress, peer: &CmInfo) -> Result<CmInfo, Refusal>;

    /// Connects it to its peer; data use the address in `peer`, messages the address `from`.
    ///
    /// # Errors
    /// [`Refusal`]: the queue pair is then closed.
    fn connect(&mut self, entry: usize, from: CmAddress, peer: &CmInfo) -> Result<(), Refusal>;

    /// It may send.
    fn ready(&mut self, entry: usize);

    /// It is free again.
    fn close(&mut self, entry: usize, why: Ending);

    /// Whether a queue pair may be given to the manager at `from`; what others hold is not touched for its sake if not.
    fn serves(&self, _entry: usize, _from: Ipv4Addr) -> bool {
        true
    }

    /// Whether nothing has been heard of the peer for so long that another queue pair of its address may take its
    /// place.
    fn is_quiet(&self, entry: usize) -> bool;

    /// A message with its peer's address, which may be forged, requests a queue pair while this one is active: the
    /// owner checks whether the peer is alive. The sender repeats its request meanwhile.
    fn check_peer(&mut self, _entry: usize) {}

    /// The manager that holds it has sent a request: a sign of life.
    fn request_arrived(&mut self, _entry: usize) {}

    /// Whether nothing has been heard of the peer for so long that another address may have its queue pair.
    fn is_abandoned(&self, _entry: usize) -> bool {
        false
    }

    /// Whether it has failed since it was opened.
    fn is_dead(&self, entry: usize) -> bool;

    /// The peer starts or stops messages. False: there is no message source.
    fn transmit(&mut self, entry: usize, transmit: &CmTransmit) -> bool;
}

/// What a listener has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CmListenerCounters {
    /// Requests answered.
    pub requests: u64,
    /// Requests answered with anything but ACK.
    pub refused: u64,
    /// Not answered: answers, and requests that must be made again later.
    pub ignored: u64,
    /// Entries that were closed because opening took too long.
    pub half_open: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Phase {
    #[default]
    Closed,
    Init,
    Rtr,
    Rts,
}

/// A closed entry keeps its last peer, so that its repeated CLOSE_QP gets the same answer.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    phase: Phase,
    /// Only it may touch the entry.
    owner: CmAddress,
    peer: CmInfo,
    /// Counts all that were opened: the smaller, the longer ago.
    opened: u64,
    /// When opening must have ended.
    deadline: Time,
    local: CmInfo,
}

impl Entry {
    fn is_half_open(&self) -> bool {
        matches!(self.phase, Phase::Init | Phase::Rtr)
    }
}

/// The listening side of up to `entries` connections.
#[derive(Clone, Debug)]
pub struct CmListener {
    config: CmListenerConfig,
    entries: Vec<Entry>,
    opened: u64,
    counters: CmListenerCounters,
}

impl Default for CmAddress {
    /// No address.
    fn default() -> Self {
        CmAddress { ip: Ipv4Addr::UNSPECIFIED, port: 0 }
    }
}

/// The sender as the message names it; its data go where the message comes from if it names no address.
fn named_peer(from: Ipv4Addr, message: &CmMessage) -> CmInfo {
    let ip = if message.sender.ip.is_unspecified() { from } else { message.sender.ip };
    CmInfo { ip, ..message.sender }
}

impl CmListener {
    /// All closed.
    pub fn new(config: CmListenerConfig) -> Self {
        let entries = vec![Entry::default(); config.entries];
        CmListener { config, entries, opened: 0, counters: CmListenerCounters::default() }
    }

    /// Other values of [`CmListenerConfig::engaged`] and [`CmListenerConfig::keep_peers`] from now on.
    pub fn set_door(&mut self, engaged: bool, keep_peers: bool) {
        (self.config.engaged, self.config.keep_peers) = (engaged, keep_peers);
    }

    /// When [`Self::handle_timeout`] is wanted; none while nothing is half open. May change after every call.
    pub fn next_timeout(&self) -> Option<Time> {
        self.entries.iter().filter(|entry| entry.is_half_open()).map(|entry| entry.deadline).min()
    }

    /// Closes what has been half open for too long. May be called too early or too often.
    pub fn handle_timeout(&mut self, now: Time, host: &mut impl CmHost) {
        for at in 0..self.entries.len() {
            if self.entries[at].is_half_open() && now >= self.entries[at].deadline {
                self.counters.half_open += 1;
                self.end(at, Ending::HalfOpen, host);
            }
        }
    }

    /// Takes a message that came from address `from` at `now`. The answer goes to its [`CmMessage::reply_port`].
    pub fn handle_message(
        &mut self,
        now: Time,
        from: Ipv4Addr,
        message: &CmMessage,
        host: &mut impl CmHost,
    ) -> Option<CmMessage> {
        self.handle_timeout(now, host);
        if message.answer.is_some() {
            self.counters.ignored += 1;
            return None;
        }
        let answer = match message.request {
            CmRequest::OpenQp => self.open(now, from, message, host),
            _ => self.named(from, message, host),
        };
        let Some((answer, local)) = answer else {
            self.counters.ignored += 1;
            return None;
        };
        self.counters.requests += 1;
        self.counters.refused += u64::from(answer != CmAnswer::Ack);
        let info = local.filter(|_| matches!(answer, CmAnswer::Ack | CmAnswer::NoQp));
        // NO_QP names a queue pair and the address that holds it; it is not what the asker may send to.
        Some(CmMessage { info_valid: answer == CmAnswer::Ack, ..message.answered(answer, info) })
    }

    /// Our side and the peer's of an entry that may send.
    pub fn connection(&self, entry: usize) -> Option<(CmInfo, CmInfo)> {
        self.entries.get(entry).filter(|e| e.phase == Phase::Rts).map(|e| (e.local, e.peer))
    }

    /// The owner has opened this connection itself: from now on its peer may ask here whether it lives, and close it.
    pub fn adopt(&mut self, entry: usize, local: CmInfo, peer: CmInfo, owner: CmAddress) {
        if let Some(entry) = self.entries.get_mut(entry) {
            self.opened += 1;
            *entry = Entry { phase: Phase::Rts, owner, peer, opened: self.opened, deadline: Time::MAX, local };
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
        now: Time,
        from: Ipv4Addr,
        message: &CmMessage,
        host: &mut impl CmHost,
    ) -> Option<(CmAnswer, Option<CmInfo>)> {
        let peer = named_peer(from, message);
        let owner = CmAddress { ip: from, port: message.port };
        let same = |e: &Entry| e.phase != Phase::Closed && e.owner.ip == from && e.peer.qpn == peer.qpn;
        let hit = self.entries.iter().position(same);
        if let Some(at) = hit {
            let entry = self.entries[at];
            if entry.peer == peer && !host.is_dead(at) {
                return Some((CmAnswer::Ack, Some(entry.local)));
            }
            if self.config.engaged {
                return Some((CmAnswer::NoQp, self.held_by()));
            }
            if self.lives(at, host) {
                host.check_peer(at);
                return None;
            }
            self.end(at, Ending::Replaced, host);
        }
        if self.config.engaged {
            return Some((CmAnswer::NoQp, self.held_by()));
        }
        // The sender's own entry goes before another one.
        for at in hit.into_iter().chain(self.available(hit, from, host)) {
            if self.entries[at].phase != Phase::Closed {
                self.end(at, Ending::Replaced, host);
            }
            let local = match host.open(at, owner, &peer) {
                Ok(local) => local,
                Err(Refusal::NoQp) => continue,
                Err(Refusal::NotYet) => return None,
                Err(Refusal::Failed) => return Some((CmAnswer::Error, None)),
            };
            self.opened += 1;
            let deadline = now.saturating_add(self.config.half_open);
            self.entries[at] = Entry { phase: Phase::Init, owner, peer, opened: self.opened, deadline, local };
            if message.info_valid {
                let answer = self.connect(at, peer, host);
                self.ready(at, host);
                return answer;
            }
            return Some((CmAnswer::Ack, Some(local)));
        }
        let is_of_sender =
            |at: &usize| self.entries[*at].owner.ip == from && self.lives(*at, host) && host.serves(*at, from);
        let suspects: Vec<_> = (0..self.entries.len()).filter(is_of_sender).collect();
        suspects.into_iter().for_each(|at| host.check_peer(at));
        Some((CmAnswer::NoQp, self.held_by()))
    }

    /// A queue pair that is taken, and the address that holds it.
    fn held_by(&self) -> Option<CmInfo> {
        let held = self.entries.iter().find(|e| e.phase != Phase::Closed);
        held.map(|e| CmInfo { qpn: e.local.qpn, ip: e.owner.ip, ..CmInfo::default() })
    }

    /// Entries that OPEN_QP of `from` may take, the best first: closed ones (where peers keep theirs, its own, and last
    /// those that have had no peer), those that have failed, half-open ones,
    /// those whose peer has been silent for long, and its own address's that are quiet, of these what was opened
    /// longest ago. An address that has as many as it may is offered its own alone. Its own that are not quiet are in
    /// doubt instead.
    fn available(&self, hit: Option<usize>, from: Ipv4Addr, host: &impl CmHost) -> Vec<usize> {
        let rank = |at: usize, entry: &Entry| match entry.phase {
            Phase::Closed if self.config.keep_peers && entry.owner.ip != from => Some((5, 0)),
            Phase::Closed => Some((0, 0)),
            _ if host.is_dead(at) => Some((1, 0)),
            Phase::Init | Phase::Rtr => Some((2, entry.opened)),
            Phase::Rts if host.is_abandoned(at) => Some((3, entry.opened)),
            Phase::Rts if entry.owner.ip == from && host.is_quiet(at) => Some((4, entry.opened)),
            Phase::Rts => None,
        };
        let is_of_sender = |entry: &Entry| entry.phase != Phase::Closed && entry.owner.ip == from;
        let owned = self.entries.iter().filter(|entry| is_of_sender(entry)).count();
        let at_bound = self.config.per_address != 0 && owned >= self.config.per_address;
        let is_kept = |e: &Entry| self.config.keep_peers && e.owner.ip != from && !e.owner.ip.is_unspecified();
        let may = |at, entry: &Entry| {
            Some(at) != hit && host.serves(at, from) && !is_kept(entry) && (!at_bound || is_of_sender(entry))
        };
        let free = |(at, entry)| Some((rank(at, entry)?, at)).filter(|_| may(at, entry));
        let mut free: Vec<_> = self.entries.iter().enumerate().filter_map(free).collect();
        free.sort_unstable();
        free.into_iter().map(|(_, at)| at).collect()
    }

    /// Whether an entry is open and its peer was heard of.
    fn lives(&self, at: usize, host: &impl CmHost) -> bool {
        self.entries[at].phase == Phase::Rts && !host.is_dead(at) && !host.is_quiet(at)
    }

    fn end(&mut self, at: usize, why: Ending, host: &mut impl CmHost) {
        host.close(at, why);
        self.entries[at].phase = Phase::Closed;
    }

    fn connect(&mut self, at: usize, peer: CmInfo, host: &mut impl CmHost) -> Option<(CmAnswer, Option<CmInfo>)> {
        if host.connect(at, self.entries[at].owner, &peer).is_err() {
            self.end(at, Ending::Replaced, host);
            return Some((CmAnswer::Error, None));
        }
        let entry = &mut self.entries[at];
        (entry.phase, entry.peer) = (Phase::Rtr, peer);
        Some((CmAnswer::Ack, Some(entry.local)))
    }

    /// A queue pair that is connected may send.
    fn ready(&mut self, at: usize, host: &mut impl CmHost) {
        if self.entries[at].phase == Phase::Rtr {
            self.entries[at].phase = Phase::Rts;
            host.ready(at);
        }
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
        let has = |e: &Entry| e.local.qpn == qpn && qpn.value() != 0;
        let open = self.entries.iter().position(|e| has(e) && e.phase != Phase::Closed);
        let Some(at) = open.or_else(|| self.entries.iter().position(has)) else {
            return Some((CmAnswer::NoQp, None));
        };
        let entry = self.entries[at];
        let owner = entry.owner.ip == from && entry.phase != Phase::Closed;
        if owner {
            host.request_arrived(at);
        }
        let alive = owner && !host.is_dead(at);
        let peer = named_peer(from, message);
        let (ack, local) = (CmAnswer::Ack, Some(entry.local));
        let answer = match message.request {
            CmRequest::None if owner && message.transmit.is_some() => Some((ack, local)),
            CmRequest::SendQpInfo if alive && message.info_valid => match entry.phase {
                Phase::Rtr | Phase::Rts if entry.peer == peer => Some((ack, local)),
                Phase::Rts => None,
                _ => Some(self.connect(at, peer, host)?),
            },
            CmRequest::ModifyQpRts if alive && entry.phase != Phase::Init => {
                self.ready(at, host);
                Some((ack, local))
            }
            CmRequest::CloseQp | CmRequest::Error if owner => {
                self.entries[at].phase = Phase::Closed;
                let is_error = message.request == CmRequest::Error;
                host.close(at, if is_error { Ending::Failed } else { Ending::PeerClosed });
                Some((ack, local))
            }
            CmRequest::CloseQp | CmRequest::Error
                if entry.phase == Phase::Closed && entry.owner.ip == from && entry.peer.qpn == peer.qpn =>
            {
                Some((ack, local))
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
                let requests_none = transmit.start && transmit.count == 0;
                let done = may && (requests_none || host.transmit(at, transmit));
                Some(if done { answer } else { (CmAnswer::Nak, None) })
            }
            _ => Some(answer),
        }
    }
}
