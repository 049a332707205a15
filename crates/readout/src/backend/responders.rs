// SPDX-License-Identifier: Apache-2.0
//! The queue pairs of a back end without a NIC: one `transport::Responder` per board, found by its number.
//! Promise: a packet whose source is not the queue pair's peer changes only a counter; replies go to the MAC address
//! from which the peer last sent. Source: IBTA 9.6 (validation).

use std::collections::BTreeMap;

use penstock_transport::{
    Access, CreditPolicy, Endpoint, Memory, MemoryRegion, Mtu, QpState, RecvCompletion, RecvWr, ReplyMarking,
    RequesterConfig, Responder, ResponderConfig, ResponderCounters,
};
use penstock_units::Time;
use penstock_wire::gateware::FIRST_UDP_SPORT;
use penstock_wire::{Ipv4Addr, MacAddr, Psn, Qpn, RocePacket, PULL_READS};

use super::lending::Lending;
use super::pull::{Pull, PullCounters, PullSettings, Reading, Requests, INBOX_LEN};
use super::{BackendError, Completion, Counters, LocalQp, PeerQp, PoolSpec, QpSpec};

/// Added to a fault of a board's request where boards are to announce.
pub(super) const NO_ANNOUNCEMENT: &str =
    "; this server reads (--pull): the board must announce, as `penstock send --pull` does";

/// Unpredictable random bits; in tests, those of a seed.
pub type Entropy = Box<dyn FnMut() -> u32 + Send>;

/// The first address of board 0's ring on the wire; a label independent of our own addresses.
const FIRST_VA: u64 = 0x1_0000_0000;
/// Addresses from ring to ring: no ring is longer, so none borders on another.
const VA_STEP: u64 = 1 << 40;

/// How the queue pairs of a back end without a NIC behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponderSettings {
    /// The posted receives as reported in ACKs.
    pub credits: CreditPolicy,
    /// See [`ResponderConfig::nak_again`].
    pub nak_again: bool,
    /// Least time between two CNPs of a queue pair; none: that of [`ResponderConfig`].
    pub cnp_interval: Option<Time>,
    /// IP marking of replies.
    pub marking: ReplyMarking,
}

impl Default for ResponderSettings {
    /// Credits, so that a board that gets their number does not send into a full ring again and again; and a NAK
    /// again, as frames of a packet socket come in the order in which they were sent, but for what the network does.
    fn default() -> Self {
        ResponderSettings {
            credits: CreditPolicy::Posted,
            nak_again: true,
            cnp_interval: None,
            marking: ReplyMarking::default(),
        }
    }
}

/// One board's queue pair.
struct Slot {
    local: LocalQp,
    len: u64,
    /// Posted before the connection.
    waiting: Vec<RecvWr>,
    responder: Option<Responder>,
    /// The READs of a board that announces.
    requests: Option<Requests>,
    /// Where the peer's frames come from.
    peer_mac: MacAddr,
    /// Counts of earlier connections.
    before: Before,
}

/// Counts of a board's earlier connections.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    responder: ResponderCounters,
    pull: PullCounters,
}

/// All queue pairs, by board.
pub(super) struct Responders {
    ip: Ipv4Addr,
    mac: MacAddr,
    entropy: Entropy,
    settings: ResponderSettings,
    boards: BTreeMap<u16, Slot>,
    /// Board of a queue pair number. Ordered, so that nothing depends on a hash.
    by_qpn: BTreeMap<u32, u16>,
    /// Counters of boards whose queue pair is closed.
    closed: BTreeMap<u16, Before>,
    /// Boards whose packets have not been replied to.
    to_reply: Vec<u16>,
    /// Packets to an unused or unconnected queue pair number.
    unknown_qpn: u64,
    /// None: each queue pair has receives of its own.
    pool: Option<Lending>,
    /// None: boards send.
    pull: Option<Pull>,
    /// Whether READs begin with the PSN that the board has named.
    peer_sets_psn: bool,
}

impl Responders {
    pub(super) fn new(ip: Ipv4Addr, mac: MacAddr, entropy: Entropy) -> Self {
        let (boards, by_qpn, closed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (settings, to_reply) = (ResponderSettings::default(), Vec::new());
        let (unknown_qpn, pool, pull, peer_sets_psn) = (0, None, None, false);
        Responders {
            ip,
            mac,
            entropy,
            settings,
            boards,
            by_qpn,
            closed,
            to_reply,
            unknown_qpn,
            pool,
            pull,
            peer_sets_psn,
        }
    }

    /// From now on the first PSN of READs is the one that the board expects: the standard connection manager lets each
    /// end set the other's (IBTA 12.7.31).
    pub(super) fn begin_as_peers_expect(&mut self) {
        self.peer_sets_psn = true;
    }

    /// READs that it has outstanding at a board.
    pub(super) fn outstanding_reads(&self) -> u8 {
        if self.pull.is_some() {
            PULL_READS
        } else {
            0
        }
    }

    /// From now on boards announce, and are read.
    pub(super) fn pull(&mut self, settings: &PullSettings) -> Result<(), BackendError> {
        let made = Pull::new(settings);
        self.pull = Some(made.map_err(|error| BackendError::Unavailable(format!("--pull: {error}")))?);
        Ok(())
    }

    pub(super) fn set(&mut self, settings: ResponderSettings) {
        self.settings = settings;
    }

    pub(super) fn share(&mut self, spec: &PoolSpec) -> u64 {
        self.pool = Some(Lending::new(spec));
        FIRST_VA
    }

    pub(super) fn post_shared(&mut self, receives: &[RecvWr]) -> Result<(), BackendError> {
        let pool = self.pool.as_mut().ok_or(BackendError::NoPool)?;
        receives.iter().for_each(|wr| pool.post(*wr));
        Ok(())
    }

    pub(super) fn ran_low(&mut self) -> u64 {
        self.pool.as_mut().map_or(0, Lending::ran_low)
    }

    pub(super) fn create(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        let board = spec.board;
        if self.boards.contains_key(&board) {
            return Err(BackendError::HasQp { board });
        }
        let qpn = loop {
            // 0 and 1 are management queue pairs, 0xFFFFFF is multicast (IBTA 3.5.7).
            let qpn = (self.entropy)() & 0x00FF_FFFF;
            if (2..0x00FF_FFFF).contains(&qpn) && !self.by_qpn.contains_key(&qpn) {
                break qpn;
            }
        };
        let (psn, key) = (Psn::new((self.entropy)()), (self.entropy)());
        // Who shares receives writes nowhere by itself.
        let base = FIRST_VA + u64::from(board) * VA_STEP;
        let (rkey, base) = if self.pool.is_some() { (0, 0) } else { (key, base) };
        let local = LocalQp { qpn: Qpn::new(qpn), psn, rkey, base, ring: base, ip: self.ip };
        let before = self.closed.remove(&board).unwrap_or_default();
        let (waiting, peer_mac) = (Vec::new(), MacAddr([0; 6]));
        let len = if self.pull.is_some() { INBOX_LEN } else { spec.len };
        let slot = Slot { local, len: len as u64, waiting, responder: None, requests: None, peer_mac, before };
        self.boards.insert(board, slot);
        self.by_qpn.insert(qpn, board);
        Ok(local)
    }

    pub(super) fn connect(&mut self, board: u16, peer: &PeerQp) -> Result<(), BackendError> {
        let (mac, settings) = (self.mac, self.settings);
        let (is_shared, peer_sets_psn) = (self.pool.is_some(), self.peer_sets_psn);
        let reading = self.pull.as_ref().map(Pull::reading);
        let slot = self.slot(board)?;
        let local = Endpoint { mac, ip: slot.local.ip, qpn: slot.local.qpn };
        let remote = Endpoint { mac: slot.peer_mac, ip: peer.ip, qpn: peer.qpn };
        let mut config = ResponderConfig::new(local, remote, peer.psn, peer.mtu);
        config.rnr_timer = peer.rnr_timer;
        config.credits = settings.credits;
        config.nak_again = settings.nak_again;
        config.cnp_interval = settings.cnp_interval.unwrap_or(config.cnp_interval);
        config.marking = settings.marking;
        let LocalQp { base: va, rkey, .. } = slot.local;
        let region = MemoryRegion { va, rkey, len: slot.len, access: Access::RemoteWrite };
        // Whose receives are a pool's writes nowhere by itself.
        let mut responder = Responder::new(if is_shared { config } else { config.with_region(region) });
        match reading {
            Some(reading) => {
                let first = if peer_sets_psn { peer.psn } else { slot.local.psn };
                slot.requests = Some(slot.pulled((local, remote), first, peer.mtu, reading));
            }
            None => slot.waiting.drain(..).for_each(|wr| responder.post_receive(wr)),
        }
        slot.responder = Some(responder);
        slot.post_inbox();
        if let Some(pool) = &mut self.pool {
            pool.connect(board);
        }
        Ok(())
    }

    pub(super) fn post(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        let slot = self.slot(board)?;
        if let Some(requests) = &mut slot.requests {
            requests.puller.post(receives);
            return Ok(());
        }
        match &mut slot.responder {
            Some(responder) => receives.iter().for_each(|wr| responder.post_receive(*wr)),
            None => slot.waiting.extend_from_slice(receives),
        }
        Ok(())
    }

    /// Gives a packet to its queue pair and appends what it completed to `out`; replies wait for
    /// [`Self::take_replies`], so that ACKs of packets that came together become one.
    pub(super) fn handle(
        &mut self,
        now: Time,
        packet: &RocePacket,
        memory: &mut dyn Memory,
        out: &mut Vec<Completion>,
    ) {
        let board = self.by_qpn.get(&packet.bth.dest_qpn.value()).copied();
        let slot = board.and_then(|board| self.boards.get_mut(&board));
        let (Some(board), Some(Slot { responder: Some(responder), requests, peer_mac, .. })) = (board, slot) else {
            self.unknown_qpn += 1;
            return;
        };
        if let (Some(pull), Some(requests)) = (&mut self.pull, requests) {
            let is_taken = match packet.bth.opcode.is_rc_request() {
                true => take_announcements(now, responder, requests, packet),
                false => pull.handle_packet((now, board), requests, packet, memory, out),
            };
            if is_taken {
                *peer_mac = packet.eth_src;
                self.note_reply(board);
            }
            return;
        }
        if let Some(pool) = self.pool.as_mut().filter(|_| packet.bth.opcode.position().is_start()) {
            serve(pool, board, responder, 1); // one that this packet does not use waits for the next
        }
        let admitted = responder.counters().rcvd_pkts;
        responder.handle_packet(now, packet, memory);
        if responder.counters().rcvd_pkts == admitted {
            return;
        }
        *peer_mac = packet.eth_src;
        while let Some(done) = responder.poll_completion() {
            out.push(completion(board, &done));
        }
        if let Some(pool) = &mut self.pool {
            serve(pool, board, responder, pool.ahead());
        }
        self.note_reply(board);
    }

    fn note_reply(&mut self, board: u16) {
        if self.to_reply.last() != Some(&board) {
            self.to_reply.push(board);
        }
    }

    /// Requests what boards have announced, as far as slots and the window allow, and hands the requests to `send`.
    pub(super) fn request(&mut self, now: Time, memory: &mut dyn Memory, mut send: impl FnMut(RocePacket)) {
        let Some(pull) = &mut self.pull else { return };
        pull.handle_timeout(now);
        for (&board, slot) in &mut self.boards {
            slot.post_inbox();
            if let Some(requests) = &mut slot.requests {
                pull.feed((now, board), &mut requests.puller, memory);
            }
        }
        while let Some(read) = pull.poll_read(now) {
            let slot = self.boards.get_mut(&(read.board as u16));
            slot.and_then(|slot| slot.requests.as_mut()).into_iter().for_each(|requests| requests.puller.read(&read));
        }
        for Slot { requests, peer_mac, .. } in self.boards.values_mut() {
            let Some(requests) = requests else { continue };
            pull.transmit(now, requests, |packet| send(RocePacket { eth_dst: *peer_mac, ..packet }));
        }
    }

    /// When [`Self::request`] has something to do, if nothing comes.
    pub(super) fn request_due(&self) -> Time {
        self.pull.as_ref().map_or(Time::MAX, |pull| pull.due)
    }

    /// Hands the replies to the packets handled since the last call to `send`.
    pub(super) fn take_replies(&mut self, memory: &mut dyn Memory, mut send: impl FnMut(RocePacket)) {
        for board in self.to_reply.drain(..) {
            let Some(Slot { responder: Some(responder), peer_mac, .. }) = self.boards.get_mut(&board) else {
                continue;
            };
            while let Some(mut reply) = responder.poll_transmit(memory) {
                reply.eth_dst = *peer_mac;
                send(reply);
            }
        }
    }

    pub(super) fn close(&mut self, board: u16, out: &mut Vec<Completion>) {
        let Some(mut slot) = self.boards.remove(&board) else { return };
        self.by_qpn.remove(&slot.local.qpn.value());
        if let (Some(pull), Some(requests)) = (&mut self.pull, &mut slot.requests) {
            requests.fault().iter().for_each(|why| requests.puller.name_unread(board, why));
            pull.forget(board, &mut requests.puller);
        }
        self.closed.insert(board, slot.counters());
        let Some(pool) = &mut self.pool else { return };
        pool.disconnect(board);
        if let Some(responder) = &mut slot.responder {
            responder.close();
            while let Some(done) = responder.poll_completion() {
                out.push(completion(board, &done)); // of a receive that it has not filled
            }
        }
    }

    pub(super) fn fault(&self, board: u16) -> Option<String> {
        let slot = self.boards.get(&board)?;
        let hint = if slot.requests.is_some() { NO_ANNOUNCEMENT } else { "" };
        match slot.responder.as_ref()?.state() {
            QpState::Ready => slot.requests.as_ref().and_then(Requests::fault),
            QpState::Error(fault) => Some(format!("{fault}{hint}")),
        }
    }

    pub(super) fn is_unanswered(&self, board: u16) -> bool {
        let requests = self.boards.get(&board).and_then(|slot| slot.requests.as_ref());
        requests.is_some_and(Requests::is_unanswered)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.boards.values().filter_map(|slot| slot.requests.as_ref()).all(Requests::is_settled)
    }

    /// Counts of all boards together.
    pub(super) fn totals(&self) -> Counters {
        let of_pull = self.pull.as_ref().map(Pull::counters);
        [("dropped_unknown_qpn".into(), self.unknown_qpn)].into_iter().chain(of_pull.into_iter().flatten()).collect()
    }

    pub(super) fn counters(&self, board: u16) -> Counters {
        let now = self.boards.get(&board).map(Slot::counters);
        let Some(Before { responder, pull }) = now.or_else(|| self.closed.get(&board).copied()) else {
            return Vec::new();
        };
        let of_pull = self.pull.as_ref().map(|all| all.board_counters(board, &pull));
        let named = responder.named().into_iter().map(|(name, value)| (name.into(), value));
        named.chain(of_pull.into_iter().flatten()).collect()
    }

    fn slot(&mut self, board: u16) -> Result<&mut Slot, BackendError> {
        self.boards.get_mut(&board).ok_or(BackendError::NoQp { board })
    }
}

/// Gives a queue pair receives until it has this number of unused ones, up to its limit.
fn serve(pool: &mut Lending, board: u16, responder: &mut Responder, unused: usize) {
    while responder.state() == QpState::Ready && responder.posted_receives() < unused {
        let Some(wr) = pool.lend(board) else { return };
        responder.post_receive(wr);
    }
}

fn completion(board: u16, done: &RecvCompletion) -> Completion {
    let RecvCompletion { wr_id, status, opcode, imm, byte_len, .. } = *done;
    Completion { board, wr_id, status, opcode, imm, byte_len, payload_crc: None }
}

/// Takes a request of a board that is read: announcements. False: it was not this connection's.
fn take_announcements(now: Time, responder: &mut Responder, requests: &mut Requests, packet: &RocePacket) -> bool {
    let before = responder.counters().rcvd_pkts;
    responder.handle_packet(now, packet, requests.memory());
    while let Some(done) = responder.poll_completion() {
        requests.take_message(&done);
    }
    responder.counters().rcvd_pkts > before
}

impl Slot {
    fn counters(&self) -> Before {
        let mut sum = self.before;
        if let Some(responder) = &self.responder {
            sum.responder += *responder.counters();
        }
        if let Some(requests) = &self.requests {
            sum.pull += requests.counters();
        }
        sum
    }

    /// The READs of this queue pair.
    fn pulled(&mut self, (local, remote): (Endpoint, Endpoint), first: Psn, mtu: Mtu, reading: Reading) -> Requests {
        let mut config = RequesterConfig::new(local, remote, first, mtu);
        config.limits.ack_timeout = reading.ack_timeout;
        config.marking.udp_sport = FIRST_UDP_SPORT | (local.qpn.value() as u16 & 0x3FFF);
        let mut requests = Requests::new(config, self.local.base, reading.longest);
        requests.puller.post(&std::mem::take(&mut self.waiting));
        requests
    }

    /// Posts receives for announcements.
    fn post_inbox(&mut self) {
        let (Some(responder), Some(requests)) = (&mut self.responder, &mut self.requests) else { return };
        while let Some(wr) = requests.take_inbox_receive() {
            responder.post_receive(wr);
        }
    }
}
