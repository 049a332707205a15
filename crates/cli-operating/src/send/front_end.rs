// SPDX-License-Identifier: Apache-2.0
//! One software front end: its queue pairs, its messages, its side of the connection manager, its destination table.
//! Promise: messages not acknowledged over one connection are sent again over the next one, in order. With the events of a
//! table each goes to the queue pair that the table names, waits as the table has it, and is never sent twice.
//! Source: the gateware that it emulates: `cm_listener` and `cm_opener`, `destination`.

use super::lane::{Lane, ABANDONED};
use super::link::Link;
use super::payload::{Messages, Shared};
use super::plan::Plan;
use penstock_cc::DcqcnParams;
use penstock_farm::{DestinationTable, Route};
use penstock_readout::Servers;
use penstock_transport::{
    CmAddress, CmEvent, CmHost, CmListener, CmListenerConfig, CmListenerCounters, CmOpener, CmOpenerConfig, CmState,
    Ending, Refusal, RequesterCounters,
};
use penstock_units::Time;
use penstock_wire::{CmInfo, CmMessage, CmRequest, CmTransmit, Ipv4Addr, MacAddr, RocePacket};
use std::sync::Arc;

/// Wait before an opened connection that failed is opened again.
const REOPEN: Time = Time::from_ms(500);

/// A server that has neither acknowledged nor asked anything for so long may take its place with another queue pair:
/// longer than from one question of `penstock recv` to the next, so that no forged OPEN_QP comes in between.
const QUIET: Time = Time::from_s(2);

/// Time from one message that is flushed without a queue pair to the next: events that have waited are not all lost
/// during one change of the table.
const FLUSH: Time = Time::from_ms(1);

/// What the listener calls.
struct Side {
    plan: Arc<Plan>,
    ip: Ipv4Addr,
    lanes: Vec<Lane>,
    messages: Messages,
    /// Destination table of `--by-event`.
    table: DestinationTable,
    /// The table in which the events began, and when.
    begun: Option<Time>,
    /// Messages without a queue pair that takes messages.
    flushed: u64,
    flush_due: Time,
    /// The next message to be posted, and when that can be.
    next: u64,
    due: Time,
    now: Time,
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
    source: u16,
}

impl FrontEnd {
    pub fn new(plan: &Arc<Plan>, share: Option<Shared>, k: u16, ip: Ipv4Addr, mac: MacAddr) -> Result<Self, String> {
        let source = plan.first_source + k;
        let lanes = (0..plan.queue_pairs()).map(|_| Lane::new(plan, ip, mac)).collect::<Result<Vec<_>, _>>()?;
        let listener = CmListener::new(CmListenerConfig::new(lanes.len()));
        let side = Side {
            plan: plan.clone(),
            ip,
            lanes,
            messages: Messages::new(plan, share, source),
            table: DestinationTable::default(),
            begun: (!plan.by_event).then_some(Time::ZERO),
            flushed: 0,
            flush_due: Time::ZERO,
            next: 0,
            due: Time::MAX,
            now: Time::ZERO,
            stopped: false,
        };
        // The standard connection manager has no keep-alives.
        let keep_alive = CmOpenerConfig::default().keep_alive.filter(|_| plan.rdma_port.is_none());
        let config = CmOpenerConfig { keep_alive, ..CmOpenerConfig::default() };
        let opener = plan.server.map(|server| CmOpener::new(config, server));
        Ok(FrontEnd { side, listener, opener, open_at: Time::ZERO, source })
    }

    pub fn ip(&self) -> Ipv4Addr {
        self.side.ip
    }

    pub fn source(&self) -> u16 {
        self.source
    }

    /// Its queue pairs.
    pub fn lanes_mut(&mut self) -> &mut [Lane] {
        &mut self.side.lanes
    }

    /// Its destination table.
    pub fn table(&mut self) -> &mut DestinationTable {
        &mut self.side.table
    }

    pub fn lives(&self) -> u32 {
        self.sum(|lane| lane.lives.into()) as u32
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
        self.side.lanes.iter().find_map(|lane| lane.trouble.as_deref())
    }

    /// Messages acknowledged.
    pub fn messages_done(&self) -> u64 {
        self.sum(|lane| lane.messages_ok)
    }

    /// Messages lost with their queue pairs, or without a server.
    pub fn messages_lost(&self) -> u64 {
        self.side.flushed + self.sum(|lane| lane.messages_err)
    }

    /// All messages have ended.
    pub fn is_done(&self) -> bool {
        let side = &self.side;
        side.stopped || (side.plan.events > 0 && !side.messages.has(side.messages.done()))
    }

    /// It knows the number of messages.
    pub fn has_end(&self) -> bool {
        self.side.plan.events > 0
    }

    pub fn is_connected(&self) -> bool {
        self.side.lanes.iter().any(|lane| lane.requester().is_some())
    }

    pub fn counters(&self) -> RequesterCounters {
        let mut sum = RequesterCounters::default();
        self.side.lanes.iter().for_each(|lane| sum += lane.counters());
        sum
    }

    fn sum(&self, of: fn(&Lane) -> u64) -> u64 {
        self.side.lanes.iter().map(of).sum()
    }

    /// Counts of the connection manager's requests.
    pub fn cm_counters(&self) -> &CmListenerCounters {
        self.listener.counters()
    }

    /// Whether servers that ask get a queue pair, and whether only one that is theirs or nobody's.
    pub fn set_door(&mut self, engaged: bool, keep_peers: bool) {
        self.listener.set_door(engaged, keep_peers);
    }

    /// How often a rate was raised that notifications alone held down.
    pub fn cnp_raises(&self) -> u64 {
        self.sum(Lane::cnp_raises)
    }

    /// What the user should hear now.
    pub fn take_warning(&mut self) -> Option<String> {
        self.side.lanes.iter_mut().find_map(|lane| lane.warning.take())
    }

    /// Rate in bit/s and CNPs that cut it, of the present connections together.
    pub fn congestion(&self) -> Option<(u64, u32)> {
        let of_each = self.side.lanes.iter().filter_map(Lane::congestion);
        of_each.reduce(|(rate, cnps), (more, other)| (rate + more, cnps + other))
    }

    /// The parameters of congestion control in force.
    pub fn cc(&self) -> &DcqcnParams {
        self.side.lanes[0].cc()
    }

    /// Takes other ones, from the next packet on.
    pub fn set_cc(&mut self, now: Time, params: DcqcnParams) {
        self.side.lanes.iter_mut().for_each(|lane| lane.set_cc(now, params));
    }

    pub fn handle_request(&mut self, now: Time, from: Ipv4Addr, message: &CmMessage) -> Option<CmMessage> {
        self.side.now = now;
        let answer = self.listener.handle_message(now, from, message, &mut self.side);
        let is_closed = message.request == CmRequest::CloseQp && self.side.lanes[0].closing;
        if let Some(opener) = self.opener.as_mut().filter(|_| is_closed && self.side.plan.rdma_port.is_some()) {
            // Without keep-alives nothing else says that the server is to be opened again.
            opener.forget();
            self.open_at = now + REOPEN;
        }
        answer
    }

    pub fn handle_answer(&mut self, now: Time, from: Ipv4Addr, message: &CmMessage) {
        if self.side.plan.rdma_port.is_some() && message.info_valid && message.request == CmRequest::OpenQp {
            self.side.lanes[0].set_psn(message.other.psn);
        }
        let event = self.opener.as_mut().and_then(|opener| opener.handle_message(now, from, message));
        self.on_event(now, event);
    }

    /// The next request to the server, where this side opens.
    pub fn next_request(&mut self, now: Time) -> Option<(CmAddress, CmMessage)> {
        self.side.now = now;
        self.listener.handle_timeout(now, &mut self.side);
        let lost = self.side.lanes[0].has_failed();
        let opener = self.opener.as_mut()?;
        let event = opener.handle_timeout(now);
        self.on_event(now, event);
        let opener = self.opener.as_mut()?;
        if lost && opener.state() == CmState::Open {
            opener.close(now);
        }
        let is_over = matches!(opener.state(), CmState::Closed | CmState::Failed(_));
        if is_over && now >= self.open_at && !self.is_done() {
            self.side.end(0);
            let local = self.side.lanes[0].begin().ok()?;
            self.opener.as_mut()?.open(now, local);
        }
        let opener = self.opener.as_mut()?;
        opener.poll_transmit().map(|message| (CmAddress { ip: opener.ip(), port: opener.port() }, message))
    }

    /// What the server's connection manager answers, or what does not fit.
    pub fn server_trouble(&mut self, trouble: String) {
        self.side.lanes[0].trouble = Some(trouble);
    }

    fn on_event(&mut self, now: Time, event: Option<CmEvent>) {
        let side = &mut self.side;
        match event {
            Some(CmEvent::Open(peer)) => {
                let Some(opener) = &mut self.opener else { return };
                if side.connect_to(0, &peer).is_err() {
                    side.lanes[0].trouble = Some(format!("no MAC address of {} is known (ARP)", peer.ip));
                    opener.close(now);
                } else {
                    side.lanes[0].up();
                    let server = CmAddress { ip: opener.ip(), port: opener.port() };
                    self.listener.adopt(0, side.lanes[0].local_info(), *side.lanes[0].peer(), server);
                }
            }
            Some(CmEvent::Closed) => self.open_at = now + REOPEN,
            Some(CmEvent::Failed(failure)) => {
                side.lanes[0].trouble = Some(failure.to_string());
                self.open_at = now + REOPEN;
            }
            None => {}
        }
    }

    /// False: it is not connected.
    pub fn handle_packet(&mut self, now: Time, packet: &RocePacket) -> bool {
        let Side { lanes, messages, .. } = &mut self.side;
        // One that is for none of them is counted by one that is connected.
        let named = lanes.iter().position(|lane| lane.qpn() == packet.bth.dest_qpn && lane.requester().is_some());
        let Some(at) = named.or_else(|| lanes.iter().position(|lane| lane.requester().is_some())) else { return false };
        if lanes[at].handle_packet(now, packet, messages) {
            // Data that is acknowledged is a sign of life.
            self.opener.iter_mut().for_each(|opener| opener.data_arrived(now));
        }
        true
    }

    /// Posts and sends what may be sent now; whether it sent anything.
    pub fn turn(&mut self, now: Time, link: &mut Link) -> bool {
        let side = &mut self.side;
        for at in 0..side.lanes.len() {
            if side.lanes[at].closing {
                side.end(at);
            }
            if now >= side.lanes[at].abandoned_at() {
                side.lanes[at].abandon();
            }
        }
        side.post(now);
        let Side { lanes, messages, .. } = side;
        lanes.iter_mut().fold(false, |busy, lane| lane.transmit(now, link, messages) | busy)
    }

    /// When there is something to do, if nothing comes before.
    pub fn next(&self) -> Time {
        self.side.lanes.iter().map(Lane::next).fold(self.side.due, Time::min)
    }
}

impl Side {
    fn end(&mut self, at: usize) {
        self.lanes[at].end(&mut self.messages);
    }

    fn connect_to(&mut self, at: usize, peer: &CmInfo) -> Result<(), Refusal> {
        self.end(at);
        if !self.plan.by_event {
            self.next = self.messages.done();
        }
        self.lanes[at].connect_to(self.now, peer)
    }

    /// Posts what is due, up to a message that must wait.
    fn post(&mut self, now: Time) {
        loop {
            self.due = self.next_message(now);
            if self.due > now {
                return;
            }
            match self.route() {
                Route::Wait => self.due = Time::MAX,
                Route::Nowhere => self.flush(now),
                Route::To(at) => match self.lanes.get(usize::from(at)) {
                    Some(lane) if lane.is_ready() && lane.has_room() => self.pass(Some(usize::from(at))),
                    Some(lane) if lane.is_ready() => self.due = Time::MAX,
                    _ => self.flush(now),
                },
            }
            if self.due > now {
                return;
            }
        }
    }

    fn flush(&mut self, now: Time) {
        if now < self.flush_due {
            self.due = self.flush_due;
            return;
        }
        self.flush_due = now + FLUSH;
        self.pass(None);
    }

    /// When the next message is due; the end of time if there is none.
    fn next_message(&mut self, now: Time) -> Time {
        if self.stopped || !self.messages.has(self.next) {
            return Time::MAX;
        }
        // The first table begins the events.
        let begun = match self.begun {
            None if self.table.has_servers() => *self.begun.insert(now),
            None => return Time::MAX,
            Some(begun) => begun,
        };
        begun.saturating_add(self.plan.interval.saturating_mul(self.messages.events_before(self.next)))
    }

    fn route(&mut self) -> Route {
        let Side { lanes, table, messages, .. } = self;
        match messages.next_event().filter(|_| self.plan.by_event) {
            Some(event) => table.route(event, |at| lanes.get(usize::from(at)).map(Lane::is_ready)),
            None if lanes[0].is_ready() => Route::To(0),
            None => Route::Wait,
        }
    }

    /// The next message goes to a queue pair, or is flushed.
    fn pass(&mut self, at: Option<usize>) {
        let n = self.next;
        if let Some(event) = self.messages.next_event().filter(|_| self.plan.by_event) {
            self.table.passes(event);
        }
        let len = self.messages.message(n);
        let event = if self.plan.pull { self.messages.event(n) } else { 0 };
        match at {
            Some(at) if self.lanes[at].post(n, len, event) => {}
            // It stays where it is until another connection.
            Some(_) if !self.plan.by_event => {
                self.due = Time::MAX;
                return;
            }
            _ => {
                self.messages.ended(n);
                self.flushed += 1;
            }
        }
        self.next += 1;
    }
}

/// The server opens, as it opens a board.
impl CmHost for Side {
    fn open(&mut self, at: usize, _from: CmAddress, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        if self.plan.server.is_some() {
            return Err(Refusal::NoQp);
        }
        self.end(at);
        self.lanes[at].begin()
    }

    fn connect(&mut self, at: usize, _from: CmAddress, peer: &CmInfo) -> Result<(), Refusal> {
        self.connect_to(at, peer)
    }

    fn ready(&mut self, at: usize) {
        self.lanes[at].up();
    }

    fn close(&mut self, at: usize, why: Ending) {
        let lane = &mut self.lanes[at];
        lane.closing = true;
        match why {
            Ending::Failed => lane.trouble = Some(format!("{}: the server says that it has failed", lane.peer().ip)),
            Ending::HalfOpen => lane.trouble = Some("a server began to open the queue pair and did not finish".into()),
            Ending::PeerClosed | Ending::Replaced => {}
        }
    }

    fn is_quiet(&self, at: usize) -> bool {
        self.now >= self.lanes[at].last_arrival.saturating_add(QUIET)
    }

    fn request_arrived(&mut self, at: usize) {
        self.lanes[at].last_arrival = self.now;
    }

    fn is_abandoned(&self, at: usize) -> bool {
        self.now >= self.lanes[at].last_arrival.saturating_add(ABANDONED)
    }

    fn is_dead(&self, at: usize) -> bool {
        self.lanes[at].has_failed()
    }

    /// It sends what it was started for; a server can stop it and start it again, unless several share it.
    fn transmit(&mut self, _at: usize, transmit: &CmTransmit) -> bool {
        self.stopped = !transmit.start && !self.plan.by_event;
        !self.plan.by_event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::Arguments;
    use clap::Parser;
    use penstock_farm::Command;

    #[derive(Parser)]
    struct Send {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn an_event_each_millisecond_is_lost_while_its_queue_pair_is_gone_and_the_next_table_is_prepared() {
        let words = "send --iface lo --ip 10.0.0.2 --by-event --rate 100000";
        let plan = Arc::new(Plan::read(&Send::parse_from(words.split(' ')).arguments).unwrap());
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let mut side = FrontEnd::new(&plan, None, 0, plan.first_ip, mac).unwrap().side;
        side.table.waits_for_server = true;
        side.table.command(side.table.owner, Command::Commit { first: 0 }, &[0]);
        side.post(Time::ZERO);
        assert_eq!(side.flushed, 0, "it waits");
        side.table.command(side.table.owner, Command::Prepare { first: 1_000 }, &[1]);
        (0..20_000).step_by(10).for_each(|us| side.post(Time::from_us(us)));
        assert_eq!(side.flushed, 20, "of 2,000 events that were due");
    }
}
