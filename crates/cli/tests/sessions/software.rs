// SPDX-License-Identifier: Apache-2.0
//! A front end in software: requester and both roles of the connection manager, combined as in `penstock send`.
//! Source: `crates/cli-operating/src/send/front_end.rs`, with the field's clock and link instead of the machine's.

use bytes::Bytes;
use penstock_transport::{
    CmAddress, CmEvent, CmHost, CmListener, CmListenerConfig, CmOpener, CmState, Ending, Endpoint, PayloadSource,
    Refusal, Requester, RequesterConfig, RequesterState, RetryLimits, SendStatus, SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::{CmInfo, CmMessage, CmTransmit, Ipv4Addr, MacAddr, Payload, Psn, Qpn};

use super::field::{FrontEnd, ACK_TIMEOUT, CM, MTU, SLOTS, SLOT_BYTES};
use super::production::Production;
use super::wire::{mac, Parcel, Random};

/// Packets of one front end in a tick.
const BURST: usize = 4;
const REOPEN: Time = Time::from_ms(20);
const QUIET: Time = Time::from_ms(30);
const ABANDONED: Time = Time::from_ms(150);

/// What the connection is made of, apart from the listener, which calls it.
struct Side {
    ip: Ipv4Addr,
    qpn: Qpn,
    psn: Psn,
    random: Random,
    /// Whom it asks; none: the server asks.
    server: Option<Ipv4Addr>,
    requester: Option<Requester>,
    /// What ARP has announced of a server.
    neighbour: Option<(Ipv4Addr, MacAddr)>,
    peer: CmInfo,
    ready: bool,
    closing: bool,
    /// Messages of this connection that were posted, and that were acknowledged.
    posted: u64,
    ended: u64,
    now: Time,
    last_arrival: Time,
}

pub struct Software {
    side: Side,
    listener: CmListener,
    opener: Option<CmOpener>,
    open_at: Time,
    production: Production,
}

struct Messages<'a> {
    first: u64,
    production: &'a Production,
}

impl PayloadSource for Messages<'_> {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let (n, at) = ((va >> 16) - self.first, (va & 0xFFFF) as usize);
        let bytes: &Bytes = &self.production.messages()[n as usize].1;
        Payload::Bytes(bytes.slice(at..at + len))
    }
}

impl Software {
    /// `server`: whom it asks for a connection; none: it waits for a server to ask.
    pub fn new(board: u16, ip: Ipv4Addr, server: Option<Ipv4Addr>, seed: u64) -> Software {
        let mut random = Random(seed);
        let side = Side {
            ip,
            qpn: Qpn::new(0x20_0000 | random.next() as u32 & 0xFFFF),
            psn: Psn::new(random.next() as u32),
            random,
            server,
            requester: None,
            neighbour: None,
            peer: CmInfo::default(),
            ready: false,
            closing: false,
            posted: 0,
            ended: 0,
            now: Time::ZERO,
            last_arrival: Time::ZERO,
        };
        let opener = server.map(|server| CmOpener::new(CM, server));
        Software {
            side,
            listener: CmListener::new(CmListenerConfig::new(1)),
            opener,
            open_at: Time::ZERO,
            production: Production::new(board),
        }
    }

    fn on_event(&mut self, event: Option<CmEvent>) {
        let now = self.side.now;
        match event {
            Some(CmEvent::Open(peer)) => {
                let Some(opener) = &self.opener else { return };
                let server = CmAddress { ip: opener.ip(), port: opener.port() };
                self.side.connect_to(&peer);
                self.side.ready = true;
                self.listener.adopt(0, self.side.local_info(), peer, server);
            }
            Some(CmEvent::Closed | CmEvent::Failed(_)) => self.open_at = now + REOPEN,
            None => {}
        }
    }

    /// Asks the server where this side opens.
    fn poll_opener(&mut self, out: &mut Vec<Parcel>) {
        let now = self.side.now;
        let Some(opener) = &mut self.opener else { return };
        let event = opener.handle_timeout(now);
        self.on_event(event);
        let Some(opener) = &mut self.opener else { return };
        if self.side.has_failed() && opener.state() == CmState::Open {
            opener.close(now);
        }
        let is_over = matches!(opener.state(), CmState::Closed | CmState::Failed(_));
        if is_over && now >= self.open_at {
            self.side.end();
            self.side.psn = Psn::new(self.side.random.next() as u32);
            opener.open(now, self.side.local_info());
        }
        let from = self.side.ip;
        while let Some(message) = opener.poll_transmit() {
            out.push(Parcel::Message { from, to: opener.ip(), message });
        }
    }

    fn message(&mut self, from: Ipv4Addr, message: &CmMessage, out: &mut Vec<Parcel>) {
        if message.answer.is_some() {
            let event = self.opener.as_mut().and_then(|opener| opener.handle_message(self.side.now, from, message));
            self.on_event(event);
            return;
        }
        if let Some(reply) = self.listener.handle_message(self.side.now, from, message, &mut self.side) {
            out.push(Parcel::Message { from: self.side.ip, to: from, message: reply });
        }
    }
}

impl FrontEnd for Software {
    fn production(&mut self) -> &mut Production {
        &mut self.production
    }

    fn power_cycle(&mut self, server: Ipv4Addr) {
        let side = &mut self.side;
        side.end();
        side.qpn = Qpn::new(0x20_0000 | side.random.next() as u32 & 0xFFFF);
        side.server = side.server.map(|_| server);
        self.listener = CmListener::new(CmListenerConfig::new(1));
        self.opener = side.server.map(|server| CmOpener::new(CM, server));
        self.open_at = Time::ZERO;
    }

    fn move_server(&mut self, server: Ipv4Addr) {
        if self.side.server.replace(server).is_some() {
            self.side.end();
            self.listener.forget(0);
            (self.opener, self.open_at) = (Some(CmOpener::new(CM, server)), Time::ZERO);
        } else {
            self.side.server = None;
        }
    }

    fn learn_mac(&mut self, server: Ipv4Addr, mac: MacAddr) {
        self.side.neighbour = Some((server, mac));
    }

    fn receive(&mut self, now: Time, parcel: Parcel, out: &mut Vec<Parcel>) {
        self.side.now = now;
        match parcel {
            Parcel::Message { from, message, .. } => self.message(from, &message, out),
            Parcel::Data(packet) => {
                let Some(requester) = &mut self.side.requester else { return };
                if requester.handle_packet(now, &packet) == penstock_transport::Response::Acknowledgement {
                    self.side.last_arrival = now;
                    self.opener.iter_mut().for_each(|opener| opener.data_arrived(now));
                }
                self.side.completions(&mut self.production);
            }
        }
    }

    fn turn(&mut self, now: Time, out: &mut Vec<Parcel>) {
        let side = &mut self.side;
        side.now = now;
        if std::mem::take(&mut side.closing) {
            side.end();
        }
        self.production.make(now);
        side.post(&self.production);
        if let Some(requester) = side.requester.as_mut().filter(|_| side.ready) {
            requester.handle_timeout(now);
            let mut messages = Messages { first: side.ended, production: &self.production };
            let packets = std::iter::from_fn(|| requester.poll_transmit(now, &mut messages));
            out.extend(packets.take(BURST).map(Parcel::Data));
        }
        side.completions(&mut self.production);
        self.poll_opener(out);
    }
}

impl Side {
    fn local_info(&self) -> CmInfo {
        CmInfo { qpn: self.qpn, psn: self.psn, rkey: 0, base: 0, ip: self.ip }
    }

    fn connect_to(&mut self, peer: &CmInfo) {
        self.end();
        let local = Endpoint { mac: mac(self.ip), ip: self.ip, qpn: self.qpn };
        let resolved = self.neighbour.filter(|(ip, _)| *ip == peer.ip).map(|(_, mac)| mac);
        let remote = Endpoint { mac: resolved.unwrap_or_else(|| mac(peer.ip)), ip: peer.ip, qpn: peer.qpn };
        let mut config = RequesterConfig::new(local, remote, self.psn, MTU);
        config.limits = RetryLimits { ack_timeout: ACK_TIMEOUT, ..RetryLimits::default() };
        (self.requester, self.peer, self.last_arrival) = (Some(Requester::new(config)), *peer, self.now);
        (self.posted, self.ended) = (0, 0);
    }

    fn end(&mut self) {
        (self.ready, self.closing, self.requester) = (false, false, None);
    }

    fn has_failed(&self) -> bool {
        self.requester.as_ref().is_some_and(|requester| requester.state() != RequesterState::Ready)
    }

    fn completions(&mut self, production: &mut Production) {
        let Some(requester) = &mut self.requester else { return };
        while let Some(end) = requester.poll_completion() {
            if end.status == SendStatus::Success {
                assert_eq!(end.wr_id, self.ended, "each message once, in order");
                self.ended += 1;
                production.acknowledged();
            }
        }
    }

    fn post(&mut self, production: &Production) {
        if self.has_failed() || !self.ready {
            return;
        }
        while ((self.posted - self.ended) as usize) < production.messages().len() {
            let n = self.posted;
            let slot = (n % u64::from(SLOTS)) as u32;
            let len = production.messages()[(n - self.ended) as usize].1.len() as u32;
            let remote_va = self.peer.base + u64::from(slot * SLOT_BYTES);
            let (verb, rkey) = (Verb::WriteImm(slot), self.peer.rkey);
            let wr = SendWr { wr_id: n, verb, va: n << 16, len, remote_va, rkey, solicited: false };
            let Some(requester) = &mut self.requester else { return };
            requester.post_send(wr).expect("short messages are taken");
            self.posted += 1;
        }
    }
}

impl CmHost for Side {
    fn open(&mut self, _entry: usize, _from: CmAddress, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        if self.server.is_some() {
            return Err(Refusal::NoQp);
        }
        self.end();
        self.psn = Psn::new(self.random.next() as u32);
        Ok(self.local_info())
    }

    fn connect(&mut self, _entry: usize, _from: CmAddress, peer: &CmInfo) -> Result<(), Refusal> {
        self.connect_to(peer);
        Ok(())
    }

    fn ready(&mut self, _entry: usize) {
        self.ready = self.requester.is_some();
    }

    fn close(&mut self, _entry: usize, _why: Ending) {
        self.closing = true;
    }

    fn is_quiet(&self, _entry: usize) -> bool {
        self.now >= self.last_arrival + QUIET
    }

    fn request_arrived(&mut self, _entry: usize) {
        self.last_arrival = self.now;
    }

    fn is_abandoned(&self, _entry: usize) -> bool {
        self.now >= self.last_arrival + ABANDONED
    }

    fn is_dead(&self, _entry: usize) -> bool {
        self.has_failed()
    }

    fn transmit(&mut self, _entry: usize, _transmit: &CmTransmit) -> bool {
        true
    }
}
