// SPDX-License-Identifier: Apache-2.0
//! One software front end: a queue pair, its messages, its rate, its side of the connection manager.
//! Promise: messages not acknowledged over one connection are sent again over the next one, in order.
//! Source: the gateware that it emulates: requester, `cm_listener` and `cm_opener`, rings of slots.

use super::cnp_bound::{CnpWatch, Seen};
use super::link::{next_hop, Link};
use super::pacing::Pacing;
use super::payload::{Messages, Shared};
use super::plan::Plan;
use super::window::Window;
use penstock_cc::{CnpBound, DcqcnParams, Law, ReactionPoint, State};
use penstock_readout::Servers;
use penstock_transport::{
    CmAddress, CmEvent, CmHost, CmListener, CmListenerConfig, CmListenerCounters, CmOpener, CmOpenerConfig, CmState,
    Ending, Endpoint, Refusal, Requester, RequesterConfig, RequesterCounters, RequesterState, Response, SendStatus,
    SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::gateware::CLOCK_HZ as BOARD_CLOCK_HZ;
use penstock_wire::gateware::FIRST_UDP_SPORT;
use penstock_wire::{CmInfo, CmMessage, CmTransmit, Ipv4Addr, MacAddr, Psn, Qpn, RocePacket};
use std::sync::Arc;

/// Messages under way at a time, at least, and bytes that are enough: of one front end, and of all together, which
/// must fit into the socket of a server in software.
const MESSAGES_AHEAD: usize = 2;
const BYTES_AHEAD: u64 = 1 << 20;
const ALL_BYTES_AHEAD: u64 = 8 << 20;
/// Packets of one front end before the next one has its turn.
const BURST: usize = 32;
/// Wait before an opened connection that failed is opened again.
const REOPEN: Time = Time::from_ms(500);

/// A server that has neither acknowledged nor asked anything for so long may take its place with another queue pair:
/// longer than from one question of `penstock recv` to the next, so that no forged OPEN_QP comes in between.
const QUIET: Time = Time::from_s(2);

/// One that has neither acknowledged nor asked anything for so long is taken for dead: another one may have the queue
/// pair. `penstock recv` asks a board that is silent every second whether it lives.
const ABANDONED: Time = Time::from_s(5);

/// The state of a connection, separate from the listener, which calls it.
struct Side {
    plan: Plan,
    ip: Ipv4Addr,
    mac: MacAddr,
    source: u16,
    qpn: Qpn,
    /// PSN of the next connection.
    psn: Psn,
    peer: CmInfo,
    requester: Option<Requester>,
    /// The parameters in force, and the limiter of this connection; none without a law.
    cc: DcqcnParams,
    pacing: Option<Pacing>,
    bound: Option<CnpWatch>,
    /// Raises of earlier connections' rates, and a warning that is to be said.
    raises: u64,
    warning: Option<String>,
    window: Window,
    messages: Messages,
    /// Messages of this connection: the first one goes to slot 0.
    first: u64,
    posted: u64,
    bytes_ahead: u64,
    bytes_acked: u64,
    ready: bool,
    /// The server has closed the queue pair: acknowledgements that came before are taken first.
    closing: bool,
    lives: u32,
    /// Of earlier connections.
    before: RequesterCounters,
    trouble: Option<String>,
    now: Time,
    /// When a server was heard of last: it was connected, or has acknowledged something.
    heard: Time,
    /// The server has requested the end.
    stopped: bool,
}

/// One software front end.
pub struct FrontEnd {
    side: Side,
    listener: CmListener,
    /// None: the server opens.
    opener: Option<CmOpener>,
    open_at: Time,
}

impl FrontEnd {
    pub fn new(plan: &Plan, share: Option<Shared>, k: u16, ip: Ipv4Addr, mac: MacAddr) -> Result<FrontEnd, String> {
        let source = plan.first_source + k;
        let (psn, qpn) = (random_psn()?, random_qpn()?);
        let side = Side {
            plan: plan.clone(),
            ip,
            mac,
            source,
            qpn,
            psn,
            peer: CmInfo::default(),
            requester: None,
            cc: plan.cc,
            pacing: None,
            bound: None,
            raises: 0,
            warning: None,
            window: Window::new(),
            messages: Messages::new(plan, share, source),
            first: 0,
            posted: 0,
            bytes_ahead: 0,
            bytes_acked: 0,
            ready: false,
            closing: false,
            lives: 0,
            before: RequesterCounters::default(),
            trouble: None,
            now: Time::ZERO,
            heard: Time::ZERO,
            stopped: false,
        };
        let config = CmOpenerConfig::default();
        let opener = plan.server.map(|server| CmOpener::new(config, server));
        Ok(FrontEnd { side, listener: CmListener::new(CmListenerConfig::new(1)), opener, open_at: Time::ZERO })
    }

    pub fn ip(&self) -> Ipv4Addr {
        self.side.ip
    }

    pub fn source(&self) -> u16 {
        self.side.source
    }

    pub fn lives(&self) -> u32 {
        self.side.lives
    }

    /// The servers that share the run are others from an announced event on.
    pub fn share(&mut self, servers: &Arc<Servers>) {
        self.side.messages.share(servers);
    }

    /// The last event that it has begun to send.
    pub fn last_event(&self) -> Option<u64> {
        self.side.messages.last_made()
    }

    pub fn trouble(&self) -> Option<&str> {
        self.side.trouble.as_deref()
    }

    pub fn messages_done(&self) -> u64 {
        self.side.messages.done()
    }

    /// All messages are acknowledged.
    pub fn is_done(&self) -> bool {
        let side = &self.side;
        side.stopped || (side.plan.events > 0 && !side.messages.has(side.messages.done()))
    }

    /// It knows the number of messages.
    pub fn wants_all(&self) -> bool {
        self.side.plan.events > 0
    }

    pub fn is_connected(&self) -> bool {
        self.side.requester.is_some()
    }

    pub fn counters(&self) -> RequesterCounters {
        let mut sum = self.side.before;
        if let Some(requester) = &self.side.requester {
            sum += *requester.counters();
        }
        sum
    }

    /// Bytes of messages that were acknowledged, of all connections.
    pub fn bytes_acked(&self) -> u64 {
        self.side.bytes_acked
    }

    /// The present connection.
    pub fn requester(&self) -> Option<&Requester> {
        self.side.requester.as_ref()
    }

    /// Key of the server's ring.
    pub fn rkey(&self) -> u32 {
        self.side.peer.rkey
    }

    /// Of the connection manager's requests.
    pub fn cm_counters(&self) -> &CmListenerCounters {
        self.listener.counters()
    }

    /// How often a rate was raised that notifications alone held down.
    pub fn cnp_raises(&self) -> u64 {
        self.side.raises + self.side.bound.as_ref().map_or(0, CnpWatch::raises)
    }

    /// What the user should hear now.
    pub fn take_warning(&mut self) -> Option<String> {
        self.side.warning.take()
    }

    /// Rate in bit/s and CNPs that cut it, of the present connection.
    pub fn congestion(&self) -> Option<(u64, u32)> {
        self.side.pacing.as_ref().map(|pacing| (pacing.rate().bits_per_second(), pacing.cnp_handled()))
    }

    /// The parameters of congestion control in force.
    pub fn cc(&self) -> &DcqcnParams {
        &self.side.cc
    }

    /// Takes other ones, from the next packet on.
    pub fn set_cc(&mut self, now: Time, params: DcqcnParams) {
        let side = &mut self.side;
        side.cc = params;
        match &mut side.pacing {
            Some(pacing) if params.law != Law::Off => pacing.set(params, now),
            pacing => *pacing = (params.law != Law::Off && side.requester.is_some()).then(|| Pacing::new(params, now)),
        }
        side.bind(now);
    }

    /// The limiter's state word, of the next connection if there is none.
    pub fn limiter(&mut self, now: Time) -> State {
        let state = self.side.pacing.as_mut().and_then(|pacing| pacing.state(now));
        state.unwrap_or_else(|| ReactionPoint::new(&self.side.cc).state)
    }

    /// As `enum ibv_qp_state`.
    pub fn state(&self) -> u32 {
        match &self.side.requester {
            None => 0,
            Some(_) if self.side.has_failed() => 6,
            Some(_) if self.side.ready => 3,
            Some(_) => 2,
        }
    }

    pub fn handle_request(&mut self, now: Time, from: Ipv4Addr, message: &CmMessage) -> Option<CmMessage> {
        self.side.now = now;
        self.listener.handle_message(now, from, message, &mut self.side)
    }

    pub fn handle_answer(&mut self, now: Time, from: Ipv4Addr, message: &CmMessage) {
        let event = self.opener.as_mut().and_then(|opener| opener.handle_message(now, from, message));
        self.on_event(now, event);
    }

    /// The next request to the server, where this side opens.
    pub fn next_request(&mut self, now: Time) -> Option<(CmAddress, CmMessage)> {
        self.side.now = now;
        self.listener.handle_timeout(now, &mut self.side);
        let lost = self.side.has_failed();
        let opener = self.opener.as_mut()?;
        let event = opener.handle_timeout(now);
        self.on_event(now, event);
        let opener = self.opener.as_mut()?;
        if lost && opener.state() == CmState::Open {
            opener.close(now);
        }
        let is_over = matches!(opener.state(), CmState::Closed | CmState::Failed(_));
        if is_over && now >= self.open_at && !self.is_done() {
            self.side.end();
            let own = self.side.begin().ok()?;
            self.opener.as_mut()?.open(now, own);
        }
        let opener = self.opener.as_mut()?;
        opener.poll_transmit().map(|message| (CmAddress { ip: opener.ip(), port: opener.port() }, message))
    }

    fn on_event(&mut self, now: Time, event: Option<CmEvent>) {
        match event {
            Some(CmEvent::Open(peer)) => {
                let Some(opener) = &mut self.opener else { return };
                if self.side.connect_to(&peer).is_err() {
                    self.side.trouble = Some(format!("no MAC address of {} is known (ARP)", peer.ip));
                    opener.close(now);
                } else {
                    self.side.up();
                    let server = CmAddress { ip: opener.ip(), port: opener.port() };
                    self.listener.adopt(0, self.side.own(), self.side.peer, server);
                }
            }
            Some(CmEvent::Closed) => self.open_at = now + REOPEN,
            Some(CmEvent::Failed(failure)) => {
                self.side.trouble = Some(failure.to_string());
                self.open_at = now + REOPEN;
            }
            None => {}
        }
    }

    /// False: it is not connected.
    pub fn handle_packet(&mut self, now: Time, packet: &RocePacket) -> bool {
        let side = &mut self.side;
        let Some(requester) = &mut side.requester else { return false };
        side.window.before(requester);
        let before = requester.outstanding_packets();
        let response = requester.handle_packet(now, packet);
        side.window.after(requester);
        if let Some(bound) = &mut side.bound {
            bound.acknowledged(now, before.saturating_sub(requester.outstanding_packets()));
        }
        match response {
            Response::Cnp => side.pacing.iter_mut().for_each(|pacing| pacing.on_cnp(now)),
            Response::Acknowledgement => {
                // Data that is acknowledged is a sign of life.
                self.opener.iter_mut().for_each(|opener| opener.heard(now));
                side.heard = now;
                side.take_completions();
            }
            Response::Dropped => {}
        }
        true
    }

    /// Posts and sends what may be sent now; whether it sent anything.
    pub fn turn(&mut self, now: Time, link: &mut Link) -> bool {
        let side = &mut self.side;
        if std::mem::take(&mut side.closing) {
            side.end();
        }
        if !side.ready {
            side.pacing.iter_mut().for_each(|pacing| pacing.set_waiting(now, false));
            return false;
        }
        side.post(now);
        side.judge_notifications(now);
        let Some(requester) = &mut side.requester else { return false };
        side.window.before(requester);
        requester.handle_timeout(now);
        side.window.after(requester);
        let mut sent = 0;
        while sent < BURST && link.has_room() && side.window.may_send() && requester.can_transmit() {
            if side.pacing.as_mut().is_some_and(|pacing| !pacing.may_start(now)) {
                break;
            }
            let Some(packet) = requester.poll_transmit(now, &mut side.messages) else { break };
            if let Some(pacing) = &mut side.pacing {
                pacing.started((packet.frame_len() + penstock_wire::WIRE_OVERHEAD) as u32);
            }
            side.window.sent(packet.bth.opcode.position().is_end());
            if let Some(bound) = side.bound.as_mut().filter(|_| packet.bth.ack_req) {
                bound.sent(now, requester.outstanding_packets());
            }
            link.queue(&packet);
            sent += 1;
        }
        if let Some(pacing) = &mut side.pacing {
            pacing.set_waiting(now, side.window.may_send() && requester.can_transmit());
        }
        if requester.state() != RequesterState::Ready {
            side.take_completions();
        }
        sent > 0
    }

    /// When there is something to do, if no packet comes before.
    pub fn next(&self) -> Time {
        let side = &self.side;
        let Some(requester) = side.requester.as_ref().filter(|_| side.ready) else { return Time::MAX };
        let timer = requester.next_timeout().unwrap_or(Time::MAX);
        let pacer = side
            .pacing
            .as_ref()
            .filter(|_| side.window.may_send() && requester.can_transmit())
            .map_or(Time::MAX, Pacing::next);
        timer.min(pacer).min(side.next_message())
    }
}

impl Side {
    /// Takes a new life: what the last one left unacknowledged begins again.
    fn begin(&mut self) -> Result<CmInfo, Refusal> {
        self.psn = random_psn().map_err(|_| Refusal::Failed)?;
        Ok(self.own())
    }

    fn own(&self) -> CmInfo {
        CmInfo { qpn: self.qpn, psn: self.psn, rkey: 0, base: 0, ip: self.ip }
    }

    fn connect_to(&mut self, peer: &CmInfo) -> Result<(), Refusal> {
        self.end();
        let mac = next_hop(peer.ip, &self.plan.iface).ok_or(Refusal::Failed)?;
        let local = Endpoint { mac: self.mac, ip: self.ip, qpn: self.qpn };
        let remote = Endpoint { mac, ip: peer.ip, qpn: peer.qpn };
        let mut config = RequesterConfig::new(local, remote, self.psn, self.plan.mtu);
        config.limits = self.plan.limits;
        // Any port of the dynamic range, another one for every front end, so that switches spread them.
        config.marking.udp_sport = FIRST_UDP_SPORT | (self.qpn.value() as u16 & 0x3FFF);
        self.pacing = (self.cc.law != Law::Off).then(|| Pacing::new(self.cc, self.now));
        self.bind(self.now);
        (self.requester, self.peer) = (Some(Requester::new(config)), *peer);
        self.window = Window::new();
        self.heard = self.now;
        (self.first, self.posted, self.bytes_ahead) = (self.messages.done(), self.messages.done(), 0);
        Ok(())
    }

    fn up(&mut self) {
        self.ready = self.requester.is_some();
        self.lives += 1;
        self.trouble = None;
    }

    fn end(&mut self) {
        (self.ready, self.closing) = (false, false);
        if let Some(requester) = self.requester.take() {
            self.before += *requester.counters();
        }
        self.raises += self.bound.take().map_or(0, |bound| bound.raises());
    }

    /// A new bound on what notifications do, for the parameters in force.
    fn bind(&mut self, now: Time) {
        self.raises += self.bound.take().map_or(0, |bound| bound.raises());
        let is_dcqcn = self.cc.law == Law::Dcqcn && self.requester.is_some();
        self.bound = is_dcqcn.then(|| CnpWatch::new(now));
    }

    /// Raises a rate that notifications alone hold down.
    fn judge_notifications(&mut self, now: Time) {
        let (Some(bound), Some(pacing), Some(requester)) = (&mut self.bound, &mut self.pacing, &self.requester) else {
            return;
        };
        let waits = self.window.may_send() && requester.can_transmit();
        let counters = requester.counters();
        let losses = counters.packet_seq_err + counters.local_ack_timeout_err + counters.rnr_nak;
        let (line, rate) = (self.cc.rate_line, pacing.rate());
        let held = waits && rate <= CnpBound::highest(line).to_rate(BOARD_CLOCK_HZ);
        let raises = bound.raises();
        if let Some(level) = bound.look(now, Seen { held, cnps: counters.rp_cnp_received, losses }) {
            let least = CnpBound::floor(line, level);
            pacing.set(DcqcnParams { rate_min: least.max(self.cc.rate_min), ..self.cc }, now);
            if raises == 0 && bound.raises() == 1 {
                self.warning = Some(format!(
                    "{}: congestion notifications hold its rate at {}, and nothing else tells of congestion: its least \
                     rate doubles every second now, up to a quarter of the line; forged CNPs of {}?",
                    self.ip,
                    rate,
                    self.peer.ip
                ));
            }
        }
    }

    fn has_failed(&self) -> bool {
        self.requester.as_ref().is_some_and(|requester| requester.state() != RequesterState::Ready)
    }

    fn take_completions(&mut self) {
        let Some(requester) = &mut self.requester else { return };
        while let Some(done) = requester.poll_completion() {
            if done.status == SendStatus::Success {
                self.messages.acknowledged();
                self.bytes_ahead = self.bytes_ahead.saturating_sub(done.byte_len.into());
                self.bytes_acked += u64::from(done.byte_len);
            }
        }
        if let RequesterState::Error(fault) = requester.state() {
            self.trouble = Some(fault.to_string());
        }
    }

    /// When the next message is due; the end of time if there is none, or enough are under way.
    fn next_message(&self) -> Time {
        let under_way = self.requester.as_ref().map_or(0, Requester::outstanding_messages);
        let bytes_enough = BYTES_AHEAD.min(ALL_BYTES_AHEAD / u64::from(self.plan.boards));
        let enough = under_way >= MESSAGES_AHEAD && self.bytes_ahead >= bytes_enough;
        let none = self.stopped || !self.messages.has(self.posted);
        if enough || none || self.has_failed() {
            return Time::MAX;
        }
        self.plan.interval.saturating_mul(self.messages.events_before(self.posted))
    }

    fn post(&mut self, now: Time) {
        while self.next_message() <= now {
            let n = self.posted;
            let slot = ((n - self.first) % u64::from(self.plan.slots)) as u32;
            let len = self.messages.message(n);
            let wr = SendWr {
                wr_id: n,
                verb: if self.plan.send_verb { Verb::Send } else { Verb::WriteImm(slot) },
                va: n << 32,
                len,
                remote_va: self.peer.base + u64::from(slot) * u64::from(self.plan.slot_bytes),
                rkey: self.peer.rkey,
                solicited: false,
            };
            let Some(requester) = &mut self.requester else { return };
            if let Err(error) = requester.post_send(wr) {
                self.trouble = Some(error.to_string());
                return;
            }
            self.posted += 1;
            self.bytes_ahead += u64::from(len);
        }
    }
}

/// The server opens, as it opens a board.
impl CmHost for Side {
    fn open(&mut self, _entry: usize, _from: CmAddress, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        if self.plan.server.is_some() {
            return Err(Refusal::NoQp);
        }
        self.end();
        self.begin()
    }

    fn connect(&mut self, _entry: usize, _from: CmAddress, peer: &CmInfo) -> Result<(), Refusal> {
        self.connect_to(peer)
    }

    fn ready(&mut self, _entry: usize) {
        self.up();
    }

    fn close(&mut self, _entry: usize, why: Ending) {
        self.closing = true;
        match why {
            Ending::Failed => self.trouble = Some(format!("{}: the server says that it has failed", self.peer.ip)),
            Ending::HalfOpen => self.trouble = Some("a server began to open the queue pair and did not finish".into()),
            Ending::Asked | Ending::Replaced => {}
        }
    }

    fn is_quiet(&self, _entry: usize) -> bool {
        self.now >= self.heard.saturating_add(QUIET)
    }

    fn heard(&mut self, _entry: usize) {
        self.heard = self.now;
    }

    fn is_abandoned(&self, _entry: usize) -> bool {
        self.now >= self.heard.saturating_add(ABANDONED)
    }

    fn is_dead(&self, _entry: usize) -> bool {
        self.has_failed()
    }

    /// It sends what it was started for; a server can stop it and start it again.
    fn transmit(&mut self, _entry: usize, transmit: &CmTransmit) -> bool {
        self.stopped = !transmit.start;
        true
    }
}

fn random_psn() -> Result<Psn, String> {
    let word = getrandom::u32().map_err(|error| format!("the kernel gives no random numbers: {error}"))?;
    Ok(Psn::new(word))
}

/// A number that a stranger has to guess; 0 and 1 are the special queue pairs (IBTA 3.5.3), the last one is multicast.
fn random_qpn() -> Result<Qpn, String> {
    loop {
        let word = getrandom::u32().map_err(|error| format!("the kernel gives no random numbers: {error}"))? >> 8;
        if (2..0xFF_FFFF).contains(&word) {
            return Ok(Qpn::new(word));
        }
    }
}
