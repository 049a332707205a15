// SPDX-License-Identifier: Apache-2.0
//! The connection manager's two roles against each other over a channel that loses and repeats messages, and single
//! messages as in the gateware's bench (tb/connection_manager). A failing case prints its seed.
//! Source: the FEROCE connection manager; `rtl/ctrl/cm_listener.sv`.

mod opener;

use penstock_transport::*;
use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, Ipv4Addr, Psn, Qpn};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
const US: Time = Time::from_us(1);

fn server() -> CmInfo {
    CmInfo { qpn: Qpn::new(0x123456), psn: Psn::new(0xABCDEF), rkey: 0xC0FFEE01, base: 0x7F00_1234_5000, ip: SERVER }
}

/// A board with `dead.len()` queue pairs.
#[derive(Default)]
struct Board {
    log: Vec<String>,
    dead: Vec<bool>,
    lives: u32,
    stuck: bool,
    quiet: bool,
    abandoned: bool,
    probed: Vec<usize>,
}

impl CmHost for Board {
    fn open(&mut self, entry: usize, from: CmAddress, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        self.lives += 1;
        self.dead[entry] = false;
        self.log.push(format!("open {entry} {}", from.ip));
        let (qpn, psn) = (Qpn::new(0xBEEF00 + entry as u32), Psn::new(self.lives));
        Ok(CmInfo { qpn, psn, ip: BOARD, ..CmInfo::default() })
    }

    fn connect(&mut self, entry: usize, from: CmAddress, peer: &CmInfo) -> Result<(), Refusal> {
        self.log.push(format!("connect {entry} {:#x} {} {}", peer.rkey, peer.ip, from.port));
        if self.stuck {
            Err(Refusal::Failed)
        } else {
            Ok(())
        }
    }

    fn ready(&mut self, entry: usize) {
        self.log.push(format!("ready {entry}"));
    }

    fn close(&mut self, entry: usize, why: Ending) {
        self.log.push(format!("close {entry} {why:?}"));
    }

    fn is_quiet(&self, _entry: usize) -> bool {
        self.quiet
    }

    fn check_peer(&mut self, entry: usize) {
        self.probed.push(entry);
    }

    fn request_arrived(&mut self, _entry: usize) {
        self.abandoned = false;
    }

    fn is_abandoned(&self, _entry: usize) -> bool {
        self.abandoned
    }

    fn is_dead(&self, entry: usize) -> bool {
        self.dead[entry]
    }

    fn transmit(&mut self, entry: usize, transmit: &CmTransmit) -> bool {
        self.log.push(format!(
            "transmit {entry} {} {} {} {}",
            transmit.start, transmit.count, transmit.with_imm, transmit.is_write
        ));
        true
    }
}

fn board(qps: usize) -> (CmListener, Board) {
    (CmListener::new(CmListenerConfig::new(qps)), Board { dead: vec![false; qps], ..Board::default() })
}

fn exchange((listener, host): &mut (CmListener, Board), from: Ipv4Addr, message: CmMessage) -> CmMessage {
    let reply = listener.handle_message(Time::ZERO, from, &message, host).expect("every request is answered");
    assert_eq!((reply.request, reply.other), (message.request, message.sender));
    reply
}

/// OPEN_QP that gets no answer and changes nothing: which entries' peers are to be asked whether they live.
fn probed(board: &mut (CmListener, Board), from: Ipv4Addr, message: CmMessage) -> Vec<usize> {
    let before = (board.1.log.clone(), board.0.connection(0));
    assert_eq!(board.0.handle_message(Time::ZERO, from, &message, &mut board.1), None);
    assert_eq!((board.1.log.clone(), board.0.connection(0)), before);
    std::mem::take(&mut board.1.probed)
}

fn opened(board: &mut (CmListener, Board), peer: CmInfo) -> CmInfo {
    let reply = exchange(board, peer.ip, CmMessage::request(CmRequest::OpenQp, peer, CmInfo::default()));
    assert_eq!((reply.answer, reply.port), (Some(CmAnswer::Ack), 0x4321));
    assert!(board.1.log.last().is_some_and(|last| last.starts_with("ready")), "it may send: {:?}", board.1.log);
    reply.sender
}

/// What FEROCE's own programs say, by name.
fn golden(name: &str) -> CmMessage {
    let messages = include_str!("../../../wire/tests/feroce_messages.txt");
    let line = messages.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap();
    let digits: Vec<u32> = line.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    CmMessage::parse(&bytes).unwrap()
}

const FEROCE_HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const FEROCE_BOARD: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

#[test]
fn feroce_s_own_messages_open_start_and_close_a_queue_pair() {
    let mut board = board(1);
    let mut deliver = |name: &str, local: CmInfo| {
        // Numbers and PSNs are each board's own: the rest of its answer is FEROCE's.
        let mut message = golden(name);
        if message.request != CmRequest::OpenQp {
            message.other.qpn = local.qpn;
        }
        exchange(&mut board, FEROCE_HOST, message)
    };
    let (opened, expected) = (deliver("host opens", CmInfo::default()), golden("board agrees"));
    let local = opened.sender;
    assert_eq!(CmMessage { sender: expected.sender, ..opened }, expected);
    for name in ["tx-meta", "tx-meta --immediate", "tx-meta --write", "tx-meta --write --immediate"] {
        assert_eq!(deliver(name, local).answer, Some(CmAnswer::Ack), "{name}");
    }
    let (closed, expected) = (deliver("host closes", local), golden("board has closed"));
    assert_eq!(CmMessage { sender: expected.sender, ..closed }, expected);
    deliver("host opens", CmInfo::default());
    let closed = deliver("close-qp", local);
    assert_eq!((closed.answer, golden("close-qp").reply_port()), (Some(CmAnswer::Ack), 0xBEEF));
    let began = ["open 0 10.77.0.1", "connect 0 0x1f2e 10.77.0.1 17185", "ready 0"];
    let started = [false, true].into_iter().flat_map(|write| [false, true].map(|imm| (write, imm)));
    let started: Vec<_> = started.map(|(write, imm)| format!("transmit 0 true 16 {imm} {write}")).collect();
    let log: Vec<&str> = started.iter().map(String::as_str).chain(["close 0 PeerClosed"]).collect();
    assert_eq!(board.1.log, [&began[..], &log, &began, &["close 0 PeerClosed"]].concat());
}

#[test]
fn an_opener_sends_and_takes_what_feroce_sends_and_takes() {
    let mut opener = CmOpener::new(CmOpenerConfig::default(), FEROCE_BOARD);
    let (open, agrees) = (golden("host opens"), golden("board agrees"));
    opener.open(Time(0), open.sender);
    assert_eq!(opener.poll_transmit(), Some(open));
    assert_eq!(opener.handle_message(Time(1), FEROCE_BOARD, &agrees), Some(CmEvent::Open(agrees.sender)));
    assert_eq!((opener.state(), opener.poll_transmit()), (CmState::Open, None), "nothing more is asked for");
    opener.close(Time(2));
    assert_eq!(opener.poll_transmit(), Some(golden("host closes")));
    assert_eq!(opener.handle_message(Time(3), FEROCE_BOARD, &golden("board has closed")), Some(CmEvent::Closed));
}

#[test]
fn a_listener_sends_and_takes_what_feroce_s_host_sends_and_takes_of_a_board_that_opens() {
    let (mut listener, mut host) = board(1);
    for life in 0..2 {
        let mut deliver = |name: &str, other: Qpn| {
            let message = golden(name);
            let message = CmMessage { other: CmInfo { qpn: other, ..message.other }, ..message };
            listener.handle_message(Time::ZERO, FEROCE_BOARD, &message, &mut host).expect("an answer")
        };
        let (agreed, expected) = (deliver("board opens", Qpn::new(0)), golden("host agrees"));
        assert_eq!(CmMessage { sender: expected.sender, ..agreed }, expected, "life {life}");
        let (closed, expected) = (deliver("board closes", agreed.sender.qpn), golden("host has closed"));
        assert_eq!(CmMessage { sender: expected.sender, ..closed }, expected, "life {life}");
    }
}

#[test]
fn data_go_to_the_address_in_the_message_and_messages_to_where_they_come_from() {
    let mut board = board(1);
    let data = Ipv4Addr::new(10, 1, 0, 1);
    let request = |ip| CmMessage {
        port: 0x5000,
        ..CmMessage::request(CmRequest::OpenQp, CmInfo { ip, ..server() }, CmInfo::default())
    };
    let local = exchange(&mut board, SERVER, request(data)).sender;
    assert_eq!(answer(&mut board, data, CmRequest::CloseQp, local), CmAnswer::Nak, "the data's address has no say");
    board.1.dead[0] = true;
    exchange(&mut board, SERVER, request(Ipv4Addr::UNSPECIFIED));
    let connected: Vec<_> = board.1.log.iter().filter(|line| line.starts_with("connect")).collect();
    assert_eq!(connected, ["connect 0 0xc0ffee01 10.1.0.1 20480", "connect 0 0xc0ffee01 10.0.0.1 20480"]);
    // Who adopts such a connection asks at the port that was named.
    let mut watching = CmOpener::new(CmOpenerConfig::default(), SERVER);
    watching.adopt(Time(0), local, server(), 0x5000);
    watching.close(Time(1));
    assert_eq!((watching.port(), watching.poll_transmit().unwrap().request), (0x5000, CmRequest::CloseQp));
}

fn answer(board: &mut (CmListener, Board), from: Ipv4Addr, request: CmRequest, local: CmInfo) -> CmAnswer {
    exchange(board, from, CmMessage::request(request, server(), local)).answer.unwrap()
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_changes_nothing() {
    let mut board = board(2);
    let open = CmMessage { info_valid: false, ..CmMessage::request(CmRequest::OpenQp, server(), CmInfo::default()) };
    let local = exchange(&mut board, SERVER, open).sender;
    let step = |request| CmMessage::request(request, server(), local);
    for request in [open, step(CmRequest::SendQpInfo), step(CmRequest::ModifyQpRts), step(CmRequest::CloseQp)] {
        let first = exchange(&mut board, SERVER, request);
        let log = board.1.log.clone();
        for _ in 0..3 {
            assert_eq!(exchange(&mut board, SERVER, request), first);
        }
        assert_eq!((first.answer, board.1.log.clone()), (Some(CmAnswer::Ack), log));
    }
    assert_eq!(
        board.1.log,
        ["open 0 10.0.0.1", "connect 0 0xc0ffee01 10.0.0.1 17185", "ready 0", "close 0 PeerClosed"]
    );
}

#[test]
fn nobody_but_its_peer_can_touch_a_queue_pair() {
    let mut board = board(1);
    let local = opened(&mut board, server());
    let log = board.1.log.clone();
    use CmRequest::{CloseQp, Error, ModifyQpRts, SendQpInfo};
    for request in [SendQpInfo, ModifyQpRts, CloseQp, Error, CmRequest::None] {
        // The address in the message is a lie; that of the datagram is what counts.
        assert_eq!(answer(&mut board, STRANGER, request, local), CmAnswer::Nak);
    }
    let other = CmInfo { qpn: Qpn::new(9), ..server() };
    let full = exchange(&mut board, STRANGER, CmMessage::request(CmRequest::OpenQp, other, CmInfo::default()));
    let held = CmInfo { qpn: local.qpn, ip: SERVER, ..CmInfo::default() };
    assert_eq!(
        (full.answer, full.sender, full.info_valid),
        (Some(CmAnswer::NoQp), held, false),
        "it says who holds it"
    );
    assert_eq!(board.1.log, log);
}

#[test]
fn an_opener_names_who_holds_what_it_cannot_have() {
    let mut board = board(1);
    let local = opened(&mut board, server());
    let mut late = CmOpener::new(CmOpenerConfig::default(), BOARD);
    late.open(Time(0), CmInfo { ip: STRANGER, ..server() });
    let reply = exchange(&mut board, STRANGER, late.poll_transmit().unwrap());
    let Some(CmEvent::Failed(failure)) = late.handle_message(Time(1), BOARD, &reply) else {
        panic!("{:?}", late.state())
    };
    assert_eq!(failure.why.holder(), Some((local.qpn, SERVER)));
    assert!(failure.to_string().contains("NO_QP to OPEN_QP: 10.0.0.1 holds its queue pair 0xbeef00"), "{failure}");
    assert!(failure.to_string().contains("or it keeps them"), "some may be free, and kept for others: {failure}");
}

#[test]
fn a_queue_pair_whose_peer_is_gone_gives_way_and_a_living_one_does_not() {
    let peer = |k: u8| CmInfo { qpn: Qpn::new(k.into()), ip: Ipv4Addr::new(10, 0, 1, k), ..server() };
    let open = |k: u8| CmMessage::request(CmRequest::OpenQp, peer(k), CmInfo::default());
    let mut board = board(2);
    let owned = [opened(&mut board, peer(1)), opened(&mut board, peer(2))];
    board.1.quiet = true; // silence alone is no reason for another address
    assert_eq!(exchange(&mut board, peer(3).ip, open(3)).answer, Some(CmAnswer::NoQp));
    board.1.dead[1] = true;
    assert_eq!(opened(&mut board, peer(3)).qpn, owned[1].qpn);
    // Who has only taken a queue pair and is not heard of again keeps nobody out.
    let closed = CmMessage::request(CmRequest::CloseQp, peer(3), owned[1]);
    assert_eq!(exchange(&mut board, peer(3).ip, closed).answer, Some(CmAnswer::Ack));
    let half = CmMessage { info_valid: false, ..open(4) };
    assert_eq!(exchange(&mut board, peer(4).ip, half).answer, Some(CmAnswer::Ack));
    assert_eq!(opened(&mut board, peer(5)).qpn, owned[1].qpn);
    assert_eq!(board.0.connection(0).map(|(local, _)| local), Some(owned[0]));
}

#[test]
fn a_queue_pair_whose_peer_is_silent_gives_way_and_one_that_gets_keep_alives_does_not() {
    let other = CmInfo { qpn: Qpn::new(7), ip: STRANGER, ..server() };
    let open = CmMessage::request(CmRequest::OpenQp, other, CmInfo::default());
    let mut board = board(1);
    let local = opened(&mut board, server());
    board.1.abandoned = true;
    let alive = CmMessage::request(CmRequest::ModifyQpRts, server(), local);
    assert_eq!(exchange(&mut board, STRANGER, alive).answer, Some(CmAnswer::Nak), "no sign of its peer's life");
    assert!(board.1.abandoned);
    assert_eq!(exchange(&mut board, SERVER, alive).answer, Some(CmAnswer::Ack));
    assert_eq!(exchange(&mut board, STRANGER, open).answer, Some(CmAnswer::NoQp));
    board.1.abandoned = true;
    assert_eq!(opened(&mut board, other).qpn, local.qpn);
}

#[test]
fn a_peer_that_comes_back_with_another_number_takes_the_oldest_of_its_own_once_that_is_quiet() {
    let peer = |n: u32| CmInfo { qpn: Qpn::new(n), ..server() };
    let mut board = board(2);
    let owned = [opened(&mut board, peer(1)), opened(&mut board, peer(2))];
    let again = CmMessage::request(CmRequest::OpenQp, peer(3), CmInfo::default());
    assert_eq!(exchange(&mut board, SERVER, again).answer, Some(CmAnswer::NoQp), "their data come: not yet");
    assert_eq!(std::mem::take(&mut board.1.probed), [0, 1]);
    board.1.quiet = true;
    assert_eq!(opened(&mut board, peer(3)).qpn, owned[0].qpn);
    assert_eq!(opened(&mut board, peer(4)).qpn, owned[1].qpn);
}

#[test]
fn no_opening_takes_a_living_queue_pair_even_from_its_peer_s_own_address() {
    let mut board = board(1);
    let local = opened(&mut board, server());
    for forged in
        [CmInfo { psn: Psn::new(7), ..server() }, CmInfo { rkey: 8, ..server() }, CmInfo { ip: STRANGER, ..server() }]
    {
        for info_valid in [true, false] {
            let open = CmMessage { info_valid, ..CmMessage::request(CmRequest::OpenQp, forged, CmInfo::default()) };
            assert_eq!(probed(&mut board, SERVER, open), [0], "{forged:?}");
        }
        assert_eq!(opened(&mut board, server()), local, "its own request, repeated");
    }
    let another = CmInfo { qpn: Qpn::new(99), ..server() };
    let open = CmMessage::request(CmRequest::OpenQp, another, CmInfo::default());
    assert_eq!(exchange(&mut board, SERVER, open).answer, Some(CmAnswer::NoQp));
    assert_eq!((opened(&mut board, server()), std::mem::take(&mut board.1.probed)), (local, vec![0]));
    // One that came before its peer's gives way once it is quiet, which it is: nobody is there.
    let close = CmMessage::request(CmRequest::CloseQp, server(), local);
    assert_eq!(exchange(&mut board, SERVER, close).answer, Some(CmAnswer::Ack));
    opened(&mut board, another);
    board.1.quiet = true;
    opened(&mut board, server());
    assert_eq!(board.0.connection(0).map(|(_, peer)| peer), Some(server()));
}

#[test]
fn an_idle_board_is_probed_at_once_if_it_answers_keep_alives_and_nothing_has_just_come() {
    let (ms, mut opener) = (Time::from_ms(1), CmOpener::new(CmOpenerConfig::default(), BOARD));
    let peer = CmInfo { qpn: Qpn::new(0x200), ip: BOARD, ..CmInfo::default() };
    opener.adopt(Time::ZERO, server(), peer, 0);
    opener.probe_if_idle(ms * 150);
    assert_eq!(opener.poll_transmit(), None, "it is not known whether it answers");
    assert!(!opener.is_quiet(ms * 199, ms * 200) && opener.is_quiet(ms * 200, ms * 200));
    assert_eq!(opener.handle_timeout(ms * 200), None);
    let probe = opener.poll_transmit().expect("the first keep-alive");
    opener.handle_message(ms * 201, BOARD, &probe.answered(CmAnswer::Ack, Some(peer)));
    assert!(!opener.is_quiet(ms * 900, ms * 200), "it is asked");
    opener.probe_if_idle(ms * 250);
    assert_eq!(opener.poll_transmit(), None, "it has just answered");
    opener.probe_if_idle(ms * 350);
    assert_eq!(opener.poll_transmit().map(|probe| probe.request), Some(CmRequest::ModifyQpRts));
    opener.probe_if_idle(ms * 351);
    assert_eq!(opener.poll_transmit(), None, "it is being asked");
    let forgotten = probe.answered(CmAnswer::NoQp, None);
    assert!(matches!(opener.handle_message(ms * 352, BOARD, &forgotten), Some(CmEvent::Failed(_))));
}

#[test]
fn a_board_that_does_not_answer_is_quiet_until_something_of_it_comes() {
    let (ms, mut opener) = (Time::from_ms(1), CmOpener::new(CmOpenerConfig::default(), BOARD));
    let peer = CmInfo { qpn: Qpn::new(0x666), ip: BOARD, ..CmInfo::default() };
    opener.adopt(Time::ZERO, server(), peer, 9);
    opener.handle_timeout(ms * 200);
    opener.poll_transmit().expect("the first keep-alive");
    assert_eq!(opener.handle_timeout(ms * 400), None, "not given up");
    assert!(opener.is_quiet(ms * 400, ms * 1000), "though it was asked again and again since");
    opener.data_arrived(ms * 401);
    assert!(!opener.is_quiet(ms * 402, ms * 1000));
}

#[test]
fn a_server_that_comes_back_takes_its_queue_pair_again() {
    let mut board = board(3);
    let local = opened(&mut board, server());
    let again = CmInfo { psn: Psn::new(7), rkey: 8, ..server() };
    let open = CmMessage::request(CmRequest::OpenQp, again, CmInfo::default());
    assert_eq!(probed(&mut board, SERVER, open), [0], "it lives");
    board.1.quiet = true;
    assert_eq!(opened(&mut board, again).qpn, local.qpn);
    board.1.quiet = false;
    board.1.dead[0] = true;
    let refused = exchange(&mut board, SERVER, CmMessage::request(CmRequest::ModifyQpRts, again, local));
    assert_eq!(refused.answer, Some(CmAnswer::Nak));
    assert_eq!(opened(&mut board, again).qpn, local.qpn);
}

#[test]
fn what_is_half_open_for_too_long_is_closed_and_what_is_open_stays() {
    let config = CmListenerConfig { half_open: US * 10, ..CmListenerConfig::new(3) };
    let (mut listener, mut host) = (CmListener::new(config), Board { dead: vec![false; 3], ..Board::default() });
    let open = CmMessage::request(CmRequest::OpenQp, server(), CmInfo::default());
    listener.handle_message(US, SERVER, &open, &mut host).expect("an answer");
    assert_eq!(listener.next_timeout(), None, "nothing is half open");
    let strange = CmInfo { ip: STRANGER, ..server() };
    let begin = CmMessage { info_valid: false, ..CmMessage::request(CmRequest::OpenQp, strange, CmInfo::default()) };
    let local = listener.handle_message(US * 2, STRANGER, &begin, &mut host).expect("an answer").sender;
    // Neither what it repeats nor the next step gives it more time.
    listener.handle_message(US * 8, STRANGER, &begin, &mut host);
    let step = CmMessage::request(CmRequest::SendQpInfo, strange, local);
    assert_eq!(listener.handle_message(US * 9, STRANGER, &step, &mut host).unwrap().answer, Some(CmAnswer::Ack));
    assert_eq!(listener.next_timeout(), Some(US * 12));
    host.log.clear();
    listener.handle_timeout(US * 12 - Time(1), &mut host);
    assert!(host.log.is_empty());
    listener.handle_timeout(US * 12, &mut host);
    assert_eq!((&host.log[..], listener.counters().half_open), (&["close 1 HalfOpen".to_owned()][..], 1));
    let late = CmMessage::request(CmRequest::ModifyQpRts, strange, local);
    assert_eq!(listener.handle_message(US * 13, STRANGER, &late, &mut host).unwrap().answer, Some(CmAnswer::NoQp));
    assert!(listener.connection(0).is_some());
    // A message that comes late enough says what time it is, too.
    listener.handle_message(US * 20, STRANGER, &begin, &mut host).expect("an answer");
    listener.handle_message(US * 40, SERVER, &open, &mut host).expect("an answer");
    assert_eq!((listener.next_timeout(), listener.counters().half_open), (None, 2));
}

#[test]
fn an_address_that_has_as_many_as_it_may_gets_one_of_its_own_or_none() {
    let peer = |n: u32| CmInfo { qpn: Qpn::new(n), ..server() };
    let config = CmListenerConfig { per_address: 2, ..CmListenerConfig::new(4) };
    let mut board = (CmListener::new(config), Board { dead: vec![false; 4], ..Board::default() });
    let owned = [opened(&mut board, peer(1)), opened(&mut board, peer(2))];
    let third = CmMessage::request(CmRequest::OpenQp, peer(3), CmInfo::default());
    assert_eq!(exchange(&mut board, SERVER, third).answer, Some(CmAnswer::NoQp), "two are free, and not for it");
    assert_eq!(std::mem::take(&mut board.1.probed), [0, 1]);
    let other = CmInfo { ip: STRANGER, ..server() };
    assert_eq!(opened(&mut board, other).qpn.value(), 0xBEEF02, "another address takes a free one");
    board.1.quiet = true;
    assert_eq!(opened(&mut board, peer(3)).qpn, owned[0].qpn, "its own, once that is quiet");
    board.1.quiet = false;
    board.1.dead[1] = true;
    assert_eq!(opened(&mut board, peer(4)).qpn, owned[1].qpn, "or has failed");
    assert!(board.0.connection(3).is_none());
}

/// The gateware's bench has the same test.
#[test]
fn a_kept_queue_pair_that_was_closed_or_has_failed_is_for_its_last_peer_alone() {
    let at = |n: u8| CmInfo { qpn: Qpn::new(u32::from(n)), ip: Ipv4Addr::new(10, 0, 1, n), ..server() };
    let config = CmListenerConfig { keep_peers: true, ..CmListenerConfig::new(4) };
    let mut board = (CmListener::new(config), Board { dead: vec![false; 4], ..Board::default() });
    let owned = [0, 1].map(|n| opened(&mut board, at(n)).qpn);
    let open = |peer: CmInfo| CmMessage::request(CmRequest::OpenQp, peer, CmInfo::default());
    let half = exchange(&mut board, at(2).ip, CmMessage { info_valid: false, ..open(at(2)) }).sender.qpn;
    let close = CmMessage::request(CmRequest::CloseQp, at(0), CmInfo { qpn: owned[0], ..CmInfo::default() });
    assert_eq!(exchange(&mut board, at(0).ip, close).answer, Some(CmAnswer::Ack));
    board.1.dead[1] = true;
    assert_eq!(opened(&mut board, at(3)).qpn.value(), 0xBEEF03, "what no address has had");
    assert_eq!(exchange(&mut board, at(4).ip, open(at(4))).answer, Some(CmAnswer::NoQp));
    for (n, qpn) in [(2, half), (1, owned[1]), (0, owned[0]), (1, owned[1])] {
        let again = CmInfo { qpn: Qpn::new(100 + u32::from(n)), ..at(n) };
        assert_eq!(opened(&mut board, again).qpn, qpn, "server {n}");
        board.1.dead[usize::from(n)] = true;
        assert_eq!(exchange(&mut board, at(4).ip, open(at(4))).answer, Some(CmAnswer::NoQp));
    }
}

/// The gateware's bench has the same test.
#[test]
fn an_engaged_listener_gives_no_queue_pair_and_serves_those_that_are_open() {
    let mut board = board(2);
    let open = |qpn: u32| {
        let peer = CmInfo { qpn: Qpn::new(qpn), ..server() };
        CmMessage::request(CmRequest::OpenQp, peer, CmInfo::default())
    };
    let first = exchange(&mut board, SERVER, open(7));
    board.0.set_door(true, false);
    assert_eq!(exchange(&mut board, SERVER, open(8)).answer, Some(CmAnswer::NoQp));
    assert_eq!(exchange(&mut board, SERVER, open(7)).sender, first.sender, "the same answer");
    board.1.dead[0] = true;
    assert_eq!(exchange(&mut board, SERVER, open(7)).answer, Some(CmAnswer::NoQp), "it has failed");
    board.0.set_door(false, false);
    assert_eq!(exchange(&mut board, SERVER, open(7)).answer, Some(CmAnswer::Ack));
}

#[test]
fn steps_out_of_order_and_without_meaning_are_refused() {
    let mut board = board(1);
    let open = CmMessage { info_valid: false, ..CmMessage::request(CmRequest::OpenQp, server(), CmInfo::default()) };
    let local = exchange(&mut board, SERVER, open).sender;
    assert_eq!(answer(&mut board, SERVER, CmRequest::ModifyQpRts, local), CmAnswer::Nak);
    assert_eq!(answer(&mut board, SERVER, CmRequest::Reserved(5), local), CmAnswer::Error);
    assert_eq!(answer(&mut board, SERVER, CmRequest::CloseQp, CmInfo::default()), CmAnswer::NoQp);
    let transmit = Some(CmTransmit { start: true, count: 1, ..CmTransmit::default() });
    let start = CmMessage { transmit, ..CmMessage::request(CmRequest::None, server(), local) };
    assert_eq!(exchange(&mut board, SERVER, start).answer, Some(CmAnswer::Nak));
    board.1.stuck = true;
    assert_eq!(answer(&mut board, SERVER, CmRequest::SendQpInfo, local), CmAnswer::Error);
    assert_eq!(answer(&mut board, SERVER, CmRequest::SendQpInfo, local), CmAnswer::NoQp);
}

#[test]
fn a_count_of_0_requests_no_message() {
    let mut board = board(1);
    let local = opened(&mut board, server());
    let before = board.1.log.clone();
    let transmit = Some(CmTransmit { start: true, length: 64, ..CmTransmit::default() });
    let start = CmMessage { transmit, ..CmMessage::request(CmRequest::None, server(), local) };
    assert_eq!(exchange(&mut board, SERVER, start).answer, Some(CmAnswer::Ack));
    assert_eq!(board.1.log, before);
}
