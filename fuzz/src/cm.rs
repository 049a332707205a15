// SPDX-License-Identifier: Apache-2.0
//! The connection manager: its message of any bytes, the listener against any requests of several addresses, the opener
//! against any answers and timing.
//! Promise: no panic; reading and writing a message reproduces it; only the address that opened an entry has an
//! effect on it; steps come in their order; a repeated request gets the same answer; no answer leaves the opener
//! waiting for ever.

use crate::input::Input;
use penstock_transport::{
    CmAddress, CmEvent, CmHost, CmListener, CmListenerConfig, CmOpener, CmOpenerConfig, CmState, Ending, Refusal,
};
use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, Ipv4Addr, Psn, Qpn, CM_LEN};

const ENTRIES: usize = 3;
const PEERS: u8 = 4;

/// The first byte chooses what is tried.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 4 {
        0 => parse(input.0),
        1 => opener(&mut input),
        _ => listener(&mut input),
    }
}

fn parse(data: &[u8]) {
    let parsed = CmMessage::parse(data);
    assert_eq!(parsed.is_ok(), data.len() == CM_LEN);
    if let Ok(message) = parsed {
        assert_eq!(CmMessage::parse(&message.to_bytes()), Ok(message));
    }
}

fn address(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n % PEERS)
}

/// A message whose numbers are often those that somebody uses.
fn message(input: &mut Input) -> CmMessage {
    let mut bytes = [0; CM_LEN];
    let wild = input.bytes(8);
    let at = usize::from(wild.first().copied().unwrap_or(0)) % (CM_LEN - 8);
    if wild.len() == 8 && wild[7] & 1 == 1 {
        bytes[at..at + 8].copy_from_slice(wild);
    }
    bytes[0] = input.u8();
    bytes[4] = input.u8() % 4; // sender's queue pair
    bytes[28] = input.u8() % 8; // the other side's
    bytes[51] = input.u8();
    CmMessage::parse(&bytes).expect("64 bytes")
}

/// A queue pair as the owner sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Qp {
    owner: Ipv4Addr,
    connected: bool,
    ready: bool,
    dead: bool,
}

/// Gives queue pairs, and looks at the order of what it is told.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Host {
    qps: [Option<Qp>; ENTRIES],
    /// What the owner says next; the listener must cope with all of it.
    whims: u8,
    /// Numbers are given out in turn, and again when they are free.
    next_qpn: u32,
    numbers: [u32; ENTRIES],
    /// Who asks.
    from: Ipv4Addr,
    calls: u32,
    peers: [Qpn; ENTRIES],
    /// Queue pair of the peer whose entry was closed last.
    closed_by: Option<Qpn>,
}

impl Host {
    fn qp(&mut self, entry: usize) -> &mut Qp {
        self.calls += 1;
        let from = self.from;
        let qp = self.qps[entry].as_mut().expect("only an open queue pair is told anything");
        assert_eq!(qp.owner, from, "a stranger reached entry {entry}");
        qp
    }
}

impl CmHost for Host {
    fn open(&mut self, entry: usize, from: CmAddress, peer: &CmInfo) -> Result<CmInfo, Refusal> {
        assert!(self.qps[entry].is_none(), "entry {entry} is taken");
        assert_eq!(from.ip, self.from);
        match self.whims % 8 {
            1 => return Err(Refusal::NoQp),
            2 => return Err(Refusal::NotYet),
            3 => return Err(Refusal::Failed),
            _ => {}
        }
        self.calls += 1;
        let used: Vec<u32> = (0..ENTRIES).filter(|n| self.qps[*n].is_some()).map(|n| self.numbers[n]).collect();
        self.next_qpn =
            (1..8).map(|step| 1 + (self.next_qpn + step) % 7).find(|n| !used.contains(n)).expect("a number");
        self.numbers[entry] = self.next_qpn;
        self.peers[entry] = peer.qpn;
        self.qps[entry] = Some(Qp { owner: from.ip, connected: false, ready: false, dead: false });
        Ok(CmInfo { qpn: Qpn::new(self.next_qpn), psn: Psn::new(5), ..CmInfo::default() })
    }

    fn connect(&mut self, entry: usize, from: CmAddress, peer: &CmInfo) -> Result<(), Refusal> {
        let fails = self.whims & 0x10 != 0;
        assert_eq!(from.ip, self.from, "the peer is who it really is");
        assert!(!peer.ip.is_unspecified(), "data have an address to go to");
        self.qp(entry).connected = true;
        self.peers[entry] = peer.qpn;
        if fails {
            Err(Refusal::Failed)
        } else {
            Ok(())
        }
    }

    fn ready(&mut self, entry: usize) {
        let qp = self.qp(entry);
        assert!(qp.connected && !qp.ready, "in order, once");
        qp.ready = true;
    }

    fn close(&mut self, entry: usize, why: Ending) {
        self.calls += 1;
        let qp = self.qps[entry].expect("only an open queue pair is told anything");
        assert!(why != Ending::HalfOpen || !qp.ready, "entry {entry} was open");
        assert!(qp.owner == self.from || qp.dead || !qp.ready, "a stranger closed entry {entry}");
        self.qps[entry] = None;
        self.closed_by = Some(self.peers[entry]);
    }

    fn is_quiet(&self, _entry: usize) -> bool {
        self.whims & 0x80 != 0
    }

    fn is_dead(&self, entry: usize) -> bool {
        self.qps[entry].is_some_and(|qp| qp.dead)
    }

    fn transmit(&mut self, entry: usize, transmit: &CmTransmit) -> bool {
        if transmit.start {
            assert!(self.qp(entry).ready, "only an open queue pair sends");
        }
        self.whims & 0x20 == 0
    }
}

fn listener(input: &mut Input) {
    let (qps, from) = ([None; ENTRIES], Ipv4Addr::UNSPECIFIED);
    let mut host = Host {
        qps,
        whims: 0,
        next_qpn: 0,
        numbers: [0; ENTRIES],
        from,
        calls: 0,
        peers: [Qpn::new(0); ENTRIES],
        closed_by: None,
    };
    let per_address = usize::from(input.u8()) % (ENTRIES + 1);
    let config = CmListenerConfig { per_address, half_open: Time(100), ..CmListenerConfig::new(ENTRIES) };
    let (mut listener, mut now) = (CmListener::new(config), Time::ZERO);
    while !input.is_empty() {
        host.whims = input.u8();
        host.from = address(input.u8());
        if host.whims & 0x40 != 0 {
            if let Some(qp) = &mut host.qps[usize::from(host.whims) % ENTRIES] {
                qp.dead = true;
            }
        }
        let message = message(input);
        now += Time(u64::from(host.whims / 8));
        listener.handle_timeout(now, &mut host);
        host.closed_by = None;
        let answer = listener.handle_message(now, host.from, &message, &mut host);
        let Some(answer) = answer else { continue };
        assert_eq!((answer.request, answer.other), (message.request, message.sender));
        assert_eq!(answer.info_valid, answer.answer == Some(CmAnswer::Ack));
        // A closing request is known again by the queue pair of its sender.
        let repeated = host.closed_by != Some(message.sender.qpn);
        let closes = matches!(message.request, CmRequest::CloseQp | CmRequest::Error);
        let repeats = host.whims & 0x3F == 0 && message.transmit.is_none() && !(closes && repeated);
        if repeats && answer.answer == Some(CmAnswer::Ack) {
            let before = host.clone();
            assert_eq!(listener.handle_message(now, host.from, &message, &mut host), Some(answer), "{message:?}");
            assert_eq!(host, before, "a repeated request changes nothing");
        }
        let held = host.qps.iter().flatten().filter(|qp| qp.owner == host.from).count();
        assert!(per_address == 0 || held <= per_address, "{held} queue pairs of one address");
        // Whoever was just given a queue pair is found under its number.
        if message.request == CmRequest::OpenQp && answer.answer == Some(CmAnswer::Ack) {
            let close = CmMessage::request(CmRequest::ModifyQpRts, message.sender, answer.sender);
            let found = listener.handle_message(now, host.from, &close, &mut host).and_then(|answer| answer.answer);
            assert_ne!(found, Some(CmAnswer::NoQp), "{answer:?}");
        }
    }
}

fn opener(input: &mut Input) {
    let board = address(1);
    input.u8();
    let config = CmOpenerConfig { timeout: Time(1000), retries: 2, keep_alive: Some(Time(10_000)) };
    let local = CmInfo { qpn: Qpn::new(1), ..CmInfo::default() };
    let (mut opener, mut now) = (CmOpener::new(config, board), Time::ZERO);
    opener.open(now, local);
    while !input.is_empty() {
        match input.u8() % 8 {
            0 => opener.open(now, local),
            1 => opener.close(now),
            2 => opener.data_arrived(now),
            3 => {
                let from = address(input.u8());
                let before = format!("{opener:?}");
                let event = opener.handle_message(now, from, &message(input));
                assert!(from == board || (event.is_none() && format!("{opener:?}") == before), "a stranger was heard");
            }
            4 | 5 => answer_request(&mut opener, now, input.u8()),
            _ => {
                now += Time(u64::from(input.u16()));
                opener.handle_timeout(now);
            }
        }
        while opener.poll_transmit().is_some() {}
    }
    // With nobody there it gives up, unless it is open to a board that does not answer keep-alives: that can be closed.
    if opener.state() == CmState::Open {
        opener.close(now);
    }
    for _ in 0..20 {
        let Some(at) = opener.next_timeout() else { break };
        now = now.max(at);
        if matches!(opener.handle_timeout(now), Some(CmEvent::Failed(_) | CmEvent::Closed)) {
            break;
        }
        while opener.poll_transmit().is_some() {}
    }
    assert!(matches!(opener.state(), CmState::Closed | CmState::Failed(_)), "{:?}", opener.state());
}

fn answer_request(opener: &mut CmOpener, now: Time, code: u8) {
    let CmState::Requesting(step) = opener.state() else { return };
    let local = CmInfo { qpn: Qpn::new(1), ..CmInfo::default() };
    let peer = CmInfo { qpn: Qpn::new(7), ..CmInfo::default() };
    let answers = [CmAnswer::Ack, CmAnswer::Ack, CmAnswer::Ack, CmAnswer::NoQp, CmAnswer::Nak, CmAnswer::Error];
    let answer = answers[usize::from(code) % answers.len()];
    let request = CmMessage::request(step, local, peer);
    opener.handle_message(now, opener.ip(), &request.answered(answer, (code & 0x80 == 0).then_some(peer)));
}
