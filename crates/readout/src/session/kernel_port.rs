// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager of a session over an RDMA NIC: the kernel's, by librdmacm, for queue pairs of the back
//! end. To the session it speaks as FEROCE's: a request is OPEN_QP, its answer accepts or rejects, an end is CLOSE_QP.
//! Promise: only boards of the session get a connection; each address holds a bounded number. A request that the session
//! does not answer is presented again until its time is over.
//! Source: `penstock_transport::rdma_cm`, whose bridge does the same where queue pair 1 is ours.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddrV4;

use penstock_transport::{Mtu, RdmaCmOffer, RetryLimits, RDMA_CM_OFFER_LEN};
use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, Ipv4Addr, Psn, Qpn};

use super::config::SessionConfig;
use super::error::SessionError;
use super::sockets::CmPort;
use crate::backend::{Backend, Counters};
use crate::sys::verbs::{connection_library_is_there, Attributes, ConnectionEvent, Identifier, Listener, Request};

/// Connections that one board may hold: the next one, and one that ends.
const OF_A_BOARD: usize = 2;
/// Wait before a request that the session has not answered is presented again.
const AGAIN: Time = Time::from_ms(20);
/// Events taken in one turn, to bound the effect of a flood.
const MOST: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The session has not answered; when the request is presented again, and when its time is over.
    Offered {
        due: Time,
        end: Time,
    },
    Open,
    /// The session has closed it, and the peer's answer is awaited.
    Closing,
}

struct Link {
    id: Identifier,
    ip: Ipv4Addr,
    phase: Phase,
    local: CmInfo,
    peer: CmInfo,
    attributes: Attributes,
}

pub(super) struct KernelPort {
    /// None once the kernel refuses to say what has happened.
    listener: Option<Listener>,
    boards: Vec<Ipv4Addr>,
    links: Vec<Link>,
    inbox: VecDeque<(Ipv4Addr, CmMessage)>,
    now: Time,
    mtu: Mtu,
    /// 0: a pool.
    slots: u32,
    slot_bytes: u32,
    /// READs that this end has outstanding.
    reads: u8,
    half_open: Time,
    strangers: u64,
    requests: u64,
    refused: u64,
    established: u64,
    disconnected: u64,
    /// Connections that did not come up or were lost without DREQ.
    failed: u64,
}

impl KernelPort {
    /// Listens at a port of TCP's space.
    pub(super) fn open(backend: &dyn Backend, port: u16, config: &SessionConfig) -> Result<KernelPort, SessionError> {
        let ip = backend.address().ip;
        let listener = match connection_library_is_there() {
            true => Listener::open(SocketAddrV4::new(ip, port)),
            false => Err(io::Error::new(io::ErrorKind::Unsupported, "librdmacm.so.1 is not on this machine")),
        };
        Ok(KernelPort {
            listener: Some(listener.map_err(|source| SessionError::Rdma { ip, port, source })?),
            boards: config.boards.iter().map(|board| board.ip).collect(),
            links: Vec::new(),
            inbox: VecDeque::new(),
            now: Time::ZERO,
            mtu: config.mtu,
            slots: config.pool.map_or(config.slots, |_| 0),
            slot_bytes: config.slot_bytes,
            reads: backend.outstanding_reads(),
            half_open: config.half_open,
            strangers: 0,
            requests: 0,
            refused: 0,
            established: 0,
            disconnected: 0,
            failed: 0,
        })
    }

    fn happened(&mut self, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Requested(request) => self.requested(request),
            ConnectionEvent::Established(key) => {
                self.established += u64::from(self.links.iter().any(|link| link.id.key() == key));
            }
            ConnectionEvent::Disconnected(key) => {
                let Some(link) = self.take(key) else { return };
                self.disconnected += 1;
                // The peer's DREQ is answered; after one of ours this does nothing.
                link.id.disconnect();
                self.ended(&link);
            }
            ConnectionEvent::Failed(key) => {
                let Some(link) = self.take(key) else { return };
                self.failed += 1;
                self.ended(&link);
            }
        }
    }

    fn requested(&mut self, request: Request) {
        let Request { id, from, qpn, reads, private } = request;
        let of_ip = self.boards.iter().filter(|board| **board == from).count();
        if of_ip == 0 {
            self.strangers += 1;
        }
        let held = self.links.iter().filter(|link| link.ip == from).count();
        if held >= of_ip * OF_A_BOARD {
            self.refused += 1;
            return id.reject();
        }
        let attributes = match id.attributes().map_err(|error| error.to_string()) {
            Ok(attributes) => attributes,
            Err(trouble) => return self.refuse(&id, from, &trouble),
        };
        let mismatch = RdmaCmOffer::read(&private).and_then(|offer| offer.mismatch(self.slots, self.slot_bytes));
        if let Some(trouble) = mismatch {
            return self.refuse(&id, from, &trouble);
        }
        if attributes.mtu_code != u32::from(self.mtu.code()) {
            let theirs = Mtu::ALL.into_iter().find(|mtu| u32::from(mtu.code()) == attributes.mtu_code);
            let (theirs, ours) = (theirs.map_or(0, Mtu::bytes), self.mtu.bytes());
            return self.refuse(&id, from, &format!("requests path MTU {theirs}; both ends must have --mtu {ours}"));
        }
        if reads < self.reads {
            let ours = self.reads;
            let pull = "set --pull at both ends or at neither";
            return self.refuse(&id, from, &format!("takes {reads} READs at a time, this end has {ours}: {pull}"));
        }
        self.requests += 1;
        let psn = Psn::new(attributes.receive_psn);
        let peer = CmInfo { qpn: Qpn::new(qpn), psn, rkey: 0, base: 0, ip: from };
        let phase = Phase::Offered { due: Time::ZERO, end: self.now.saturating_add(self.half_open) };
        self.links.push(Link { id, ip: from, phase, local: CmInfo::default(), peer, attributes });
    }

    /// Rejects a request of a board, for a reason that a person must put right.
    fn refuse(&mut self, id: &Identifier, from: Ipv4Addr, trouble: &str) {
        tracing::warn!("{from}: {trouble}");
        self.refused += 1;
        id.reject();
    }

    /// Passes on that a connection is over.
    fn ended(&mut self, link: &Link) {
        let Link { ip, phase, local, peer, .. } = *link;
        match phase {
            Phase::Offered { .. } => {}
            Phase::Open => self.inbox.push_back((ip, CmMessage::request(CmRequest::CloseQp, peer, local))),
            Phase::Closing => {
                let request = CmMessage::request(CmRequest::CloseQp, local, peer);
                self.inbox.push_back((ip, request.answered(CmAnswer::Ack, None)));
            }
        }
    }

    fn take(&mut self, key: usize) -> Option<Link> {
        let at = self.links.iter().position(|link| link.id.key() == key)?;
        Some(self.links.swap_remove(at))
    }

    /// Presents requests that wait, and gives up those that have waited for too long.
    fn offer(&mut self) {
        let mut at = 0;
        while at < self.links.len() {
            let link = &mut self.links[at];
            match link.phase {
                Phase::Offered { end, .. } if self.now >= end => {
                    self.refused += 1;
                    self.links.swap_remove(at).id.reject();
                    continue;
                }
                Phase::Offered { due, end } if self.now >= due => {
                    link.phase = Phase::Offered { due: self.now + AGAIN, end };
                    let request = CmMessage::request(CmRequest::OpenQp, link.peer, CmInfo::default());
                    self.inbox.push_back((link.ip, request));
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The session has answered a request.
    fn decided(&mut self, to: Ipv4Addr, answer: CmAnswer, message: &CmMessage) {
        let is_offered =
            |l: &Link| matches!(l.phase, Phase::Offered { .. }) && l.ip == to && l.peer.qpn == message.other.qpn;
        let Some(at) = self.links.iter().position(is_offered) else { return };
        if answer != CmAnswer::Ack {
            self.refused += 1;
            return self.links.swap_remove(at).id.reject();
        }
        let mut private = [0; RDMA_CM_OFFER_LEN];
        RdmaCmOffer::of(&message.sender, self.slots, self.slot_bytes).write(&mut private);
        let link = &mut self.links[at];
        (link.phase, link.local) = (Phase::Open, message.sender);
        if let Err(error) = link.id.accept(message.sender.qpn.value(), self.reads, &private) {
            tracing::warn!("{to}: its connection was not accepted: {error}");
            self.failed += 1;
            let link = self.links.swap_remove(at);
            self.ended(&link);
        }
    }

    /// The session closes a queue pair.
    fn close(&mut self, to: Ipv4Addr, message: &CmMessage) {
        let of_qp = |link: &Link| link.ip == to && link.local.qpn == message.sender.qpn;
        match self.links.iter_mut().find(|link| of_qp(link)) {
            Some(link) if link.phase == Phase::Open => {
                link.phase = Phase::Closing;
                link.id.disconnect();
            }
            Some(_) => {}
            None => self.inbox.push_back((to, message.answered(CmAnswer::Ack, None))),
        }
    }
}

impl CmPort for KernelPort {
    fn exchange(&mut self, now: Time, backend: &mut dyn Backend, has_qp: &dyn Fn(Qpn) -> bool) {
        self.now = now;
        for _ in 0..MOST {
            match self.listener.as_ref().map_or(Ok(None), Listener::poll) {
                Ok(Some(event)) => self.happened(event),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!("no board can connect any more: the kernel's connection manager: {error}");
                    self.listener = None;
                }
            }
        }
        for link in self.links.iter_mut().filter(|link| link.phase == Phase::Open && !has_qp(link.local.qpn)) {
            link.phase = Phase::Closing;
            link.id.disconnect();
        }
        self.offer();
        let psn = |link: &Link| ((link.ip, link.peer.qpn), Psn::new(link.attributes.send_psn));
        backend.set_first_psns(self.links.iter().map(psn).collect::<BTreeMap<_, _>>());
    }

    fn strangers(&self) -> u64 {
        self.strangers
    }

    fn ack_timeout(&self) -> Option<Time> {
        let of = |link: &Link| RetryLimits { ack_timeout: link.attributes.ack_timeout, ..RetryLimits::default() };
        self.links.iter().filter_map(|link| of(link).ack_timeout()).max()
    }

    fn counters(&self) -> Counters {
        let counted = [
            ("rdma_cm_requests", self.requests),
            ("rdma_cm_refused", self.refused),
            ("rdma_cm_established", self.established),
            ("rdma_cm_disconnected", self.disconnected),
            ("rdma_cm_silent", self.failed),
        ];
        counted.into_iter().map(|(name, n)| (name.into(), n)).collect()
    }

    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        self.inbox.pop_front()
    }

    fn send(&mut self, to: Ipv4Addr, _port: u16, message: &CmMessage) -> io::Result<()> {
        match (message.answer, message.request) {
            (Some(answer), CmRequest::OpenQp) => self.decided(to, answer, message),
            (None, CmRequest::CloseQp) => self.close(to, message),
            // Keep-alives have no counterpart.
            _ => {}
        }
        Ok(())
    }
}
