// SPDX-License-Identifier: Apache-2.0
//! One queue pair of a software front end: its connection, its rate, and its messages under way.
//! Promise: messages go in the order in which they were posted. What a connection has not delivered is sent again over the
//! next one; with the events of a table (`--by-event`) it is flushed, as the gateware does.
//! Source: the gateware that it emulates: requester, congestion control, rings of slots.

use super::announcer::{Announcer, Ring};
use super::cnp_bound::{CnpWatch, Seen};
use super::link::Link;
use super::pacing::Pacing;
use super::payload::Messages;
use super::plan::Plan;
use super::window::Window;
use crate::neighbour::next_hop;
use penstock_cc::{CnpBound, DcqcnParams, Law, ReactionPoint, State};
use penstock_farm::{CLOSED, IN_ERROR, READY_TO_SEND};
use penstock_transport::{
    Endpoint, PayloadSource, Refusal, Requester, RequesterConfig, RequesterCounters, RequesterState, Response,
    SendStatus, SendWr, Verb,
};
use penstock_units::Time;
use penstock_wire::gateware::{CLOCK_HZ as BOARD_CLOCK_HZ, FIRST_UDP_SPORT};
use penstock_wire::{CmInfo, MacAddr, Psn, Qpn, RocePacket};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Messages under way at a time, at least, and bytes that are enough: of one queue pair, and of all front ends together,
/// which must fit into the socket of a server in software.
const MESSAGES_AHEAD: usize = 2;
const BYTES_AHEAD: u64 = 1 << 20;
const ALL_BYTES_AHEAD: u64 = 8 << 20;
/// Packets of one queue pair before the next one has its turn.
const BURST: usize = 32;
/// A server that has neither acknowledged nor asked anything for so long is taken for dead: another one may have the
/// queue pair. `penstock recv` asks a board that is silent every second whether it lives.
pub const ABANDONED: Time = Time::from_s(5);
/// `qp.state` between OPEN_QP and the end of opening.
const READY_TO_RECEIVE: u8 = 2;

pub struct Lane {
    plan: Arc<Plan>,
    ip: Ipv4Addr,
    mac: MacAddr,
    qpn: Qpn,
    /// PSN of the next connection.
    psn: Psn,
    peer: CmInfo,
    requester: Option<Requester>,
    /// With --pull: announces messages, which the server reads.
    announcer: Option<Announcer>,
    /// The parameters in force, and the limiter of this connection; none without a law.
    cc: DcqcnParams,
    pacing: Option<Pacing>,
    bound: Option<CnpWatch>,
    /// Raises of earlier connections' rates, and a warning that is to be said.
    raises: u64,
    pub warning: Option<String>,
    window: Window,
    /// Messages of this connection: the first one goes to slot 0.
    posted: u64,
    bytes_ahead: u64,
    pub bytes_acked: u64,
    pub messages_ok: u64,
    /// Flushed with their connection.
    pub messages_err: u64,
    ready: bool,
    /// The server has closed the queue pair: acknowledgements that came before are taken first.
    pub closing: bool,
    pub lives: u32,
    /// Counts of earlier connections.
    before: RequesterCounters,
    pub trouble: Option<String>,
    /// When a server was heard of last: it was connected, or has acknowledged something.
    pub last_arrival: Time,
}

impl Lane {
    pub fn new(plan: &Arc<Plan>, ip: Ipv4Addr, mac: MacAddr) -> Result<Lane, String> {
        Ok(Lane {
            plan: plan.clone(),
            ip,
            mac,
            qpn: random_qpn()?,
            psn: random_psn()?,
            peer: CmInfo::default(),
            requester: None,
            announcer: None,
            cc: plan.cc,
            pacing: None,
            bound: None,
            raises: 0,
            warning: None,
            window: Window::new(),
            posted: 0,
            bytes_ahead: 0,
            bytes_acked: 0,
            messages_ok: 0,
            messages_err: 0,
            ready: false,
            closing: false,
            lives: 0,
            before: RequesterCounters::default(),
            trouble: None,
            last_arrival: Time::ZERO,
        })
    }

    pub fn qpn(&self) -> Qpn {
        self.qpn
    }

    pub fn peer(&self) -> &CmInfo {
        &self.peer
    }

    /// The present connection.
    pub fn requester(&self) -> Option<&Requester> {
        self.requester.as_ref()
    }

    pub fn counters(&self) -> RequesterCounters {
        let mut sum = self.before;
        sum += self.counters_of_connection();
        sum
    }

    /// What a server reads counts as sent.
    fn counters_of_connection(&self) -> RequesterCounters {
        let mut sum = self.requester.as_ref().map_or_else(RequesterCounters::default, |r| *r.counters());
        if let Some(answers) = self.announcer.as_ref().map(Announcer::counters) {
            sum.sent_pkts += answers.sent_pkts;
            sum.rcvd_pkts += answers.rcvd_pkts;
            sum.tx_payload_bytes += answers.tx_payload_bytes;
        }
        sum
    }

    /// How often a rate was raised that notifications alone held down.
    pub fn cnp_raises(&self) -> u64 {
        self.raises + self.bound.as_ref().map_or(0, CnpWatch::raises)
    }

    /// Rate in bit/s and CNPs that cut it, of the present connection.
    pub fn congestion(&self) -> Option<(u64, u32)> {
        self.pacing.as_ref().map(|pacing| (pacing.rate().bits_per_second(), pacing.cnp_handled()))
    }

    /// The parameters of congestion control in force.
    pub fn cc(&self) -> &DcqcnParams {
        &self.cc
    }

    /// Takes other ones, from the next packet on.
    pub fn set_cc(&mut self, now: Time, params: DcqcnParams) {
        self.cc = params;
        match &mut self.pacing {
            Some(pacing) if params.law != Law::Off => pacing.set(params, now),
            pacing => *pacing = (params.law != Law::Off && self.requester.is_some()).then(|| Pacing::new(params, now)),
        }
        self.bind(now);
    }

    /// The limiter's state word, of the next connection if there is none.
    pub fn limiter(&mut self, now: Time) -> State {
        let state = self.pacing.as_mut().and_then(|pacing| pacing.state(now));
        state.unwrap_or_else(|| ReactionPoint::new(&self.cc).state)
    }

    /// The state as a number of `enum ibv_qp_state`.
    pub fn state(&self) -> u8 {
        match &self.requester {
            None => CLOSED,
            Some(_) if self.has_failed() => IN_ERROR,
            Some(_) if self.ready => READY_TO_SEND,
            Some(_) => READY_TO_RECEIVE,
        }
    }

    /// It takes messages.
    pub fn is_ready(&self) -> bool {
        self.ready && !self.has_failed()
    }

    pub fn has_failed(&self) -> bool {
        self.requester.as_ref().is_some_and(|requester| requester.state() != RequesterState::Ready)
            || self.announcer.as_ref().is_some_and(|announcer| announcer.fault().is_some())
    }

    /// When its server counts as dead, of several that share the run: what it has not read would hold up the events of
    /// the others. A server that is sent to is given up by the timer of a message instead.
    pub fn abandoned_at(&self) -> Time {
        let is_unread = self.announcer.as_ref().is_some_and(Announcer::holds_messages);
        match self.plan.by_event && self.is_ready() && is_unread {
            true => self.last_arrival.saturating_add(ABANDONED),
            false => Time::MAX,
        }
    }

    /// Its server is dead.
    pub fn abandon(&mut self) {
        self.trouble = Some(format!("{}: it reads nothing and asks nothing", self.peer.ip));
        self.fail();
    }

    /// Fails by command: what it holds is flushed.
    pub fn fail(&mut self) {
        self.requester.iter_mut().for_each(Requester::close);
    }

    /// Takes a new life: what the last one left unacknowledged begins again.
    pub fn begin(&mut self) -> Result<CmInfo, Refusal> {
        self.psn = random_psn().map_err(|_| Refusal::Failed)?;
        Ok(self.local_info())
    }

    /// PSN with which the next connection begins, as the server has set it.
    pub fn set_psn(&mut self, psn: Psn) {
        self.psn = psn;
    }

    pub fn local_info(&self) -> CmInfo {
        CmInfo { qpn: self.qpn, psn: self.psn, rkey: 0, base: 0, ip: self.ip }
    }

    pub fn connect_to(&mut self, now: Time, peer: &CmInfo) -> Result<(), Refusal> {
        let mac = next_hop(peer.ip, &self.plan.iface).ok_or(Refusal::Failed)?;
        let local = Endpoint { mac: self.mac, ip: self.ip, qpn: self.qpn };
        let remote = Endpoint { mac, ip: peer.ip, qpn: peer.qpn };
        let mut config = RequesterConfig::new(local, remote, self.psn, self.plan.mtu);
        config.limits = self.plan.limits;
        // Any port of the dynamic range, another one for every front end, so that switches spread them.
        config.marking.udp_sport = FIRST_UDP_SPORT | (self.qpn.value() as u16 & 0x3FFF);
        self.pacing = (self.cc.law != Law::Off).then(|| Pacing::new(self.cc, now));
        (self.requester, self.peer) = (Some(Requester::new(config)), *peer);
        if self.plan.pull {
            let Plan { slots, slot_bytes, mtu, .. } = *self.plan;
            let rkey = random_word().map_err(|_| Refusal::Failed)?;
            self.announcer = Some(Announcer::new(Ring { slots, slot_bytes }, rkey, (local, remote), peer.psn, mtu));
        }
        self.bind(now);
        (self.window, self.last_arrival) = (Window::new(), now);
        (self.posted, self.bytes_ahead) = (0, 0);
        Ok(())
    }

    pub fn up(&mut self) {
        self.ready = self.requester.is_some();
        self.lives += 1;
        self.trouble = None;
    }

    pub fn end(&mut self, messages: &mut Messages) {
        (self.ready, self.closing) = (false, false);
        if self.plan.by_event {
            self.fail();
            self.take_completions(messages);
        }
        self.before = self.counters();
        (self.requester, self.announcer) = (None, None);
        self.raises += self.bound.take().map_or(0, |bound| bound.raises());
    }

    /// Whether the server has acknowledged or requested something.
    pub fn handle_packet(&mut self, now: Time, packet: &RocePacket, messages: &mut Messages) -> bool {
        let Lane { announcer, messages_ok, bytes_acked, .. } = self;
        let is_open = self.requester.as_ref().is_some_and(|requester| requester.state() == RequesterState::Ready);
        if let Some(announcer) = announcer.as_mut().filter(|_| is_open && packet.bth.opcode.is_rc_request()) {
            let is_sign = announcer.handle_request(now, packet, messages, |bytes| {
                *messages_ok += 1;
                *bytes_acked += u64::from(bytes);
            });
            if is_sign {
                self.last_arrival = now;
            }
            return is_sign;
        }
        let Some(requester) = &mut self.requester else { return false };
        self.window.before(requester);
        let before = requester.outstanding_packets();
        let response = requester.handle_packet(now, packet);
        self.window.after(requester);
        if let Some(bound) = &mut self.bound {
            bound.acknowledged(now, before.saturating_sub(requester.outstanding_packets()));
        }
        match response {
            Response::Cnp => self.pacing.iter_mut().for_each(|pacing| pacing.on_cnp(now)),
            Response::Acknowledgement => {
                self.last_arrival = now;
                self.take_completions(messages);
            }
            Response::ReadData { .. } | Response::Dropped => {} // no READ is posted
        }
        response == Response::Acknowledgement
    }

    /// Another message may be posted.
    pub fn has_room(&self) -> bool {
        if let Some(announcer) = &self.announcer {
            return announcer.has_room() && !self.has_failed();
        }
        let under_way = self.requester.as_ref().map_or(0, Requester::outstanding_messages);
        let bytes_enough = BYTES_AHEAD.min(ALL_BYTES_AHEAD / u64::from(self.plan.boards));
        let enough = under_way >= MESSAGES_AHEAD && self.bytes_ahead >= bytes_enough;
        // What is posted cannot go to another server any more.
        let is_full = self.plan.by_event && under_way >= self.plan.slots as usize;
        !enough && !is_full && !self.has_failed()
    }

    /// Posts message `n` of this length and event; false: it cannot be posted.
    pub fn post(&mut self, n: u64, len: u32, event: u64) -> bool {
        if let Some(announcer) = &mut self.announcer {
            if len > 0 {
                announcer.push(n, event, len);
            }
            return true;
        }
        let slot = (self.posted % u64::from(self.plan.slots)) as u32;
        let wr = SendWr {
            wr_id: n,
            verb: if self.plan.send_verb { Verb::Send } else { Verb::WriteImm(slot) },
            va: n << 32,
            len,
            remote_va: self.peer.base + u64::from(slot) * u64::from(self.plan.slot_bytes),
            rkey: self.peer.rkey,
            solicited: false,
        };
        let Some(requester) = &mut self.requester else { return false };
        if let Err(error) = requester.post_send(wr) {
            self.trouble = Some(error.to_string());
            return false;
        }
        self.posted += 1;
        self.bytes_ahead += u64::from(len);
        true
    }

    /// Sends what may be sent now; whether it sent anything.
    pub fn transmit(&mut self, now: Time, link: &mut Link, messages: &mut Messages) -> bool {
        if !self.ready {
            self.pacing.iter_mut().for_each(|pacing| pacing.set_waiting(now, false));
            return false;
        }
        self.check_notifications(now);
        let Some(requester) = &mut self.requester else { return false };
        if let Some(announcer) = &mut self.announcer {
            announcer.announce(requester, &self.peer);
        }
        self.window.before(requester);
        requester.handle_timeout(now);
        self.window.after(requester);
        let mut sent = 0;
        while sent < BURST && link.has_room() && self.window.may_send() && requester.can_transmit() {
            if self.pacing.as_mut().is_some_and(|pacing| !pacing.may_start(now)) {
                break;
            }
            let source: &mut dyn PayloadSource = match &mut self.announcer {
                Some(announcer) => announcer,
                None => &mut *messages,
            };
            let Some(packet) = requester.poll_transmit(now, source) else { break };
            if let Some(pacing) = &mut self.pacing {
                pacing.started((packet.frame_len() + penstock_wire::WIRE_OVERHEAD) as u32);
            }
            self.window.sent(packet.bth.opcode.position().is_end());
            if let Some(bound) = self.bound.as_mut().filter(|_| packet.bth.ack_req) {
                bound.sent(now, requester.outstanding_packets());
            }
            link.queue(&packet);
            sent += 1;
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.set_waiting(now, self.window.may_send() && requester.can_transmit());
        }
        if requester.state() != RequesterState::Ready {
            self.take_completions(messages);
            return sent > 0;
        }
        sent += self.answer(link, messages, BURST - sent);
        sent > 0
    }

    /// Sends up to `most` packets of answers to READs; how many it sent.
    fn answer(&mut self, link: &mut Link, messages: &Messages, most: usize) -> usize {
        let Some(announcer) = &mut self.announcer else { return 0 };
        let mut sent = 0;
        while announcer.has_answers && sent < most && link.has_room() {
            let Some(packet) = announcer.poll_transmit(messages) else { break };
            link.queue(&packet);
            sent += 1;
        }
        if let Some(fault) = announcer.fault() {
            self.trouble = Some(format!("{}: {fault}", self.peer.ip));
        }
        sent
    }

    /// When its timer or its pacer has something to do.
    pub fn next(&self) -> Time {
        let Some(requester) = self.requester.as_ref().filter(|_| self.ready) else { return Time::MAX };
        if self.announcer.as_ref().is_some_and(|announcer| announcer.has_answers) {
            return Time::ZERO;
        }
        let timer = requester.next_timeout().unwrap_or(Time::MAX).min(self.abandoned_at());
        let waits = self.window.may_send() && requester.can_transmit();
        timer.min(self.pacing.as_ref().filter(|_| waits).map_or(Time::MAX, Pacing::next))
    }

    /// A new bound on what notifications do, for the parameters in force.
    fn bind(&mut self, now: Time) {
        self.raises += self.bound.take().map_or(0, |bound| bound.raises());
        let is_dcqcn = self.cc.law == Law::Dcqcn && self.requester.is_some();
        self.bound = is_dcqcn.then(|| CnpWatch::new(now));
    }

    /// Raises a rate that notifications alone hold down.
    fn check_notifications(&mut self, now: Time) {
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
                    self.ip, rate, self.peer.ip
                ));
            }
        }
    }

    fn take_completions(&mut self, messages: &mut Messages) {
        let Some(requester) = &mut self.requester else { return };
        while let Some(done) = requester.poll_completion() {
            let is_good = done.status == SendStatus::Success;
            if let Some(announcer) = &mut self.announcer {
                announcer.acknowledged();
                continue;
            }
            if !is_good && !self.plan.by_event {
                continue; // it is sent again
            }
            messages.ended(done.wr_id);
            self.bytes_ahead = self.bytes_ahead.saturating_sub(done.byte_len.into());
            if is_good {
                self.messages_ok += 1;
                self.bytes_acked += u64::from(done.byte_len);
            } else {
                self.messages_err += 1;
            }
        }
        if let RequesterState::Error(fault) = requester.state() {
            self.trouble = Some(fault.to_string());
        }
        let is_flushed = self.plan.by_event && requester.state() != RequesterState::Ready;
        for unread in self.announcer.iter_mut().filter(|_| is_flushed).flat_map(Announcer::take_unread) {
            messages.ended(unread);
            self.messages_err += 1;
        }
    }
}

fn random_word() -> Result<u32, String> {
    getrandom::u32().map_err(|error| format!("the kernel gives no random numbers: {error}"))
}

fn random_psn() -> Result<Psn, String> {
    random_word().map(Psn::new)
}

/// A number that a stranger has to guess; 0 and 1 are the special queue pairs (IBTA 3.5.3), the last one is multicast.
fn random_qpn() -> Result<Qpn, String> {
    loop {
        let word = random_word()? >> 8;
        if (2..0xFF_FFFF).contains(&word) {
            return Ok(Qpn::new(word));
        }
    }
}
