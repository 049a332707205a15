// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager for an owner of queue pairs that is made for FEROCE's messages: REQ comes as
//! OPEN_QP, its answer goes out as REP or REJ, DREQ is CLOSE_QP.
//! Promise: a request that the owner does not answer is presented again until its time is over; a connection whose
//! queue pair the owner has given up is disconnected.
//!
//! ```text
//! RdmaCmMad -> handle_mad    --> poll_message -> CmMessage to CmListener, CmOpener
//! RdmaCmMad <- poll_transmit <-- handle_message <- CmMessage of these
//! ```

use super::{
    Entropy, RdmaCm, RdmaCmAgreed, RdmaCmConfig, RdmaCmCounters, RdmaCmEnd, RdmaCmEvent, RdmaCmFailure, RdmaCmOffer,
    RdmaCmPath, RDMA_CM_PRIVATE_LEN,
};
use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, Ipv4Addr, Qpn, RdmaCmMad, RejReason};
use std::collections::VecDeque;

/// Wait before a request that the owner has not answered is presented again.
const AGAIN: Time = Time::from_ms(20);

/// What to do where only one end reads.
const PULL: &str = ": set --pull at both ends or at neither";

/// The settings of a bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RdmaCmBridgeConfig {
    /// The connection manager.
    pub cm: RdmaCmConfig,
    /// Port of the passive side, where the owner opens.
    pub port: u16,
    /// What both ends must have.
    pub path: RdmaCmPath,
    /// Slots of a ring: a peer of ours with others is refused. 0: a pool, of any size.
    pub slots: u32,
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// How often the peer retries after our RNR NAK.
    pub rnr_retry: u8,
    /// READs that a peer may have outstanding here; unless 0, one that has none does not fit.
    pub responder_resources: u8,
    /// READs that this end has outstanding; a peer that takes fewer does not fit.
    pub initiator_depth: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The owner opens, and waits for REP.
    Connecting,
    /// A peer opens, and the owner has not answered; when it is presented again.
    Offered(Time),
    Open,
    /// The owner closes, and waits for DREP.
    Closing,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    connection: u32,
    ip: Ipv4Addr,
    phase: Phase,
    local: CmInfo,
    peer: CmInfo,
    path: RdmaCmPath,
}

/// Translates between the messages of both protocols.
pub struct RdmaCmBridge {
    config: RdmaCmBridgeConfig,
    cm: RdmaCm,
    links: Vec<Link>,
    inbox: VecDeque<(Ipv4Addr, CmMessage)>,
    troubles: VecDeque<(Ipv4Addr, String)>,
}

impl RdmaCmBridge {
    /// No connections.
    pub fn new(config: RdmaCmBridgeConfig, entropy: Entropy) -> Self {
        let cm = RdmaCm::new(config.cm.clone(), entropy);
        RdmaCmBridge { config, cm, links: Vec::new(), inbox: VecDeque::new(), troubles: VecDeque::new() }
    }

    /// Takes a message of a peer.
    pub fn handle_mad(&mut self, now: Time, from: Ipv4Addr, mad: &RdmaCmMad) {
        self.cm.handle_mad(now, from, mad);
        self.settle(now);
    }

    /// The time of [`Self::next_timeout`] has come. May be called too early or too often.
    pub fn handle_timeout(&mut self, now: Time) {
        self.cm.handle_timeout(now);
        self.settle(now);
        for link in &mut self.links {
            if matches!(link.phase, Phase::Offered(due) if now >= due) {
                link.phase = Phase::Offered(now + AGAIN);
                self.inbox.push_back((link.ip, CmMessage::request(CmRequest::OpenQp, link.peer, CmInfo::default())));
            }
        }
    }

    /// When [`Self::handle_timeout`] is wanted.
    pub fn next_timeout(&self) -> Option<Time> {
        let offered = self.links.iter().filter_map(|link| match link.phase {
            Phase::Offered(due) => Some(due),
            _ => None,
        });
        offered.chain(self.cm.next_timeout()).min()
    }

    /// The next message to a peer.
    pub fn poll_transmit(&mut self) -> Option<(Ipv4Addr, RdmaCmMad)> {
        self.cm.poll_transmit()
    }

    /// The next message to the owner, with the address of the peer.
    pub fn poll_message(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        self.inbox.pop_front()
    }

    /// The longest ACK timeout of the connections; none without one.
    pub fn ack_timeout(&self) -> Option<Time> {
        self.links.iter().filter_map(|link| link.path.ack_timeout()).max()
    }

    /// What a person must put right, with the peer's address.
    pub fn poll_trouble(&mut self) -> Option<(Ipv4Addr, String)> {
        self.troubles.pop_front()
    }

    /// Connections, those that end included.
    pub fn connections(&self) -> usize {
        self.cm.connections()
    }

    /// Whether a connection waits for the peer's answer to DREQ.
    pub fn is_closing(&self) -> bool {
        self.links.iter().any(|link| link.phase == Phase::Closing)
    }

    /// Counts of the connection manager.
    pub fn counters(&self) -> &RdmaCmCounters {
        self.cm.counters()
    }

    /// Takes a message of the owner to a peer. Keep-alives have no counterpart and are dropped.
    pub fn handle_message(&mut self, now: Time, to: Ipv4Addr, message: &CmMessage) {
        match (message.answer, message.request) {
            (Some(answer), CmRequest::OpenQp) => self.decided(now, to, answer, message),
            (None, CmRequest::OpenQp) => self.open(now, to, message),
            (None, CmRequest::CloseQp) => self.close(now, to, message),
            _ => {}
        }
        self.settle(now);
    }

    /// Disconnects what has a queue pair that the owner does not have any more.
    pub fn retain(&mut self, now: Time, is_alive: impl Fn(Qpn) -> bool) {
        for link in &mut self.links {
            if link.phase == Phase::Open && !is_alive(link.local.qpn) {
                link.phase = Phase::Closing;
                self.cm.disconnect(now, link.connection);
            }
        }
    }

    /// The owner has answered a request.
    fn decided(&mut self, now: Time, to: Ipv4Addr, answer: CmAnswer, message: &CmMessage) {
        let is_offered =
            |l: &Link| matches!(l.phase, Phase::Offered(_)) && l.ip == to && l.peer.qpn == message.other.qpn;
        let Some(at) = self.links.iter().position(is_offered) else { return };
        let connection = self.links[at].connection;
        if answer == CmAnswer::Ack {
            // The peer begins with the PSN that the owner was given as the peer's.
            let local = RdmaCmEnd { psn: self.links[at].peer.psn, ..self.end(&message.sender) };
            (self.links[at].phase, self.links[at].local) = (Phase::Open, message.sender);
            self.cm.accept(now, connection, local);
            return;
        }
        self.links.swap_remove(at);
        let reason = match answer {
            CmAnswer::NoQp => RejReason::NoQp,
            CmAnswer::Nak => RejReason::Consumer,
            _ => RejReason::NoResources,
        };
        self.cm.reject(connection, reason);
    }

    /// The owner opens; a repeated request changes nothing.
    fn open(&mut self, now: Time, to: Ipv4Addr, message: &CmMessage) {
        let of_qp = |link: &Link| link.ip == to && link.local.qpn == message.sender.qpn;
        if let Some(at) = self.links.iter().position(|link| link.phase != Phase::Closing && of_qp(link)) {
            let link = self.links[at];
            if link.local == message.sender && link.phase == Phase::Connecting {
                return;
            }
            self.links.swap_remove(at);
            self.cm.disconnect(now, link.connection);
        }
        let local = self.end(&message.sender);
        if let Some(connection) = self.cm.connect(now, to, self.config.port, local, self.config.path) {
            let (phase, local, peer) = (Phase::Connecting, message.sender, CmInfo::default());
            self.links.push(Link { connection, ip: to, phase, local, peer, path: self.config.path });
        }
    }

    fn close(&mut self, now: Time, to: Ipv4Addr, message: &CmMessage) {
        let of_qp = |link: &Link| link.ip == to && link.local.qpn == message.sender.qpn;
        match self.links.iter().position(of_qp) {
            Some(at) if self.links[at].phase == Phase::Open => {
                self.links[at].phase = Phase::Closing;
                self.cm.disconnect(now, self.links[at].connection);
            }
            Some(at) if self.links[at].phase == Phase::Closing => {}
            Some(at) => {
                let link = self.links.swap_remove(at);
                self.cm.disconnect(now, link.connection);
                self.inbox.push_back((to, message.answered(CmAnswer::Ack, None)));
            }
            None => self.inbox.push_back((to, message.answered(CmAnswer::Ack, None))),
        }
    }

    /// Passes on what has happened.
    fn settle(&mut self, now: Time) {
        while let Some(event) = self.cm.poll_event() {
            match event {
                RdmaCmEvent::Requested { connection, from, peer, path } => {
                    self.requested(connection, from, &peer, path);
                }
                RdmaCmEvent::Established { connection, agreed } => self.established(now, connection, &agreed),
                RdmaCmEvent::Failed { connection, why } => self.failed(connection, why),
                RdmaCmEvent::Disconnected { connection } => self.disconnected(connection),
            }
        }
    }

    fn requested(&mut self, connection: u32, from: Ipv4Addr, peer: &RdmaCmEnd, path: RdmaCmPath) {
        let offer = RdmaCmOffer::read(&peer.private);
        if let Some(trouble) = offer.and_then(|offer| self.mismatch(&offer)) {
            self.troubles.push_back((from, trouble));
            return self.cm.reject(connection, RejReason::Consumer);
        }
        if path.mtu != self.config.path.mtu {
            let (theirs, ours) = (path.mtu.bytes(), self.config.path.mtu.bytes());
            self.troubles.push_back((from, format!("requests path MTU {theirs}; both ends must have --mtu {ours}")));
            return self.cm.reject(connection, RejReason::InvalidMtu);
        }
        if peer.responder_resources < self.config.initiator_depth {
            let (theirs, ours) = (peer.responder_resources, self.config.initiator_depth);
            self.troubles.push_back((from, format!("takes {theirs} READs at a time, this end has {ours}{PULL}")));
            return self.cm.reject(connection, RejReason::InsufficientResources);
        }
        let peer = info(peer, from);
        self.links.push(Link {
            connection,
            ip: from,
            phase: Phase::Offered(Time::ZERO),
            local: CmInfo::default(),
            peer,
            path,
        });
    }

    fn established(&mut self, now: Time, connection: u32, agreed: &RdmaCmAgreed) {
        let Some(at) = self.links.iter().position(|l| l.connection == connection && l.phase == Phase::Connecting)
        else {
            return; // a peer has opened it: the owner has it already
        };
        let (ip, local) = (self.links[at].ip, self.links[at].local);
        let request = CmMessage::request(CmRequest::OpenQp, local, CmInfo::default());
        let offer = RdmaCmOffer::read(&agreed.peer.private);
        let never_reads = self.config.responder_resources > 0 && agreed.local.responder_resources == 0;
        let no_reads = never_reads.then(|| format!("has no READs outstanding{PULL}"));
        if let Some(trouble) = offer.and_then(|offer| self.mismatch(&offer)).or(no_reads) {
            self.links.swap_remove(at);
            self.cm.disconnect(now, connection);
            self.troubles.push_back((ip, trouble));
            return self.inbox.push_back((ip, request.answered(CmAnswer::Error, None)));
        }
        // The peer begins with the PSN that we expect, and we with the one that it expects.
        let peer = CmInfo { psn: agreed.local.psn, ..info(&agreed.peer, ip) };
        (self.links[at].phase, self.links[at].peer) = (Phase::Open, peer);
        let mut answer = request.answered(CmAnswer::Ack, Some(peer));
        answer.other.psn = agreed.peer.psn;
        self.inbox.push_back((ip, answer));
    }

    fn failed(&mut self, connection: u32, why: RdmaCmFailure) {
        let Some(link) = self.take(connection) else { return };
        let Link { ip, local, peer, phase, .. } = link;
        match (phase, why) {
            (Phase::Connecting, RdmaCmFailure::Silent { .. }) => {} // the owner counts the answers that it lacks
            (Phase::Connecting, _) => {
                self.troubles.push_back((ip, why.to_string()));
                let has_none = matches!(why, RdmaCmFailure::Rejected { reason: RejReason::NoQp, .. });
                let answer = if has_none { CmAnswer::NoQp } else { CmAnswer::Error };
                let request = CmMessage::request(CmRequest::OpenQp, local, CmInfo::default());
                self.inbox.push_back((ip, request.answered(answer, None)));
            }
            (Phase::Open, _) => self.inbox.push_back((ip, CmMessage::request(CmRequest::CloseQp, peer, local))),
            (Phase::Offered(_) | Phase::Closing, _) => {}
        }
    }

    fn disconnected(&mut self, connection: u32) {
        let Some(Link { ip, local, peer, phase, .. }) = self.take(connection) else { return };
        let message = match phase {
            Phase::Closing => CmMessage::request(CmRequest::CloseQp, local, peer).answered(CmAnswer::Ack, None),
            _ => CmMessage::request(CmRequest::CloseQp, peer, local),
        };
        self.inbox.push_back((ip, message));
    }

    fn take(&mut self, connection: u32) -> Option<Link> {
        let at = self.links.iter().position(|link| link.connection == connection)?;
        Some(self.links.swap_remove(at))
    }

    /// What does not fit a peer's ring.
    fn mismatch(&self, offer: &RdmaCmOffer) -> Option<String> {
        offer.mismatch(self.config.slots, self.config.slot_bytes)
    }

    fn end(&self, info: &CmInfo) -> RdmaCmEnd {
        let mut private = [0; RDMA_CM_PRIVATE_LEN];
        RdmaCmOffer::of(info, self.config.slots, self.config.slot_bytes).write(&mut private);
        RdmaCmEnd {
            qpn: info.qpn,
            psn: info.psn,
            responder_resources: self.config.responder_resources,
            initiator_depth: self.config.initiator_depth,
            rnr_retry: self.config.rnr_retry,
            private,
        }
    }
}

/// A peer's end as FEROCE's messages have it.
fn info(end: &RdmaCmEnd, ip: Ipv4Addr) -> CmInfo {
    let offer = RdmaCmOffer::read(&end.private).unwrap_or_default();
    CmInfo { qpn: end.qpn, psn: end.psn, rkey: offer.rkey, base: offer.base, ip }
}
