// SPDX-License-Identifier: Apache-2.0
//! The connection manager's two roles against each other, over a channel that loses and repeats, and message by message
//! as the gateware's bench (tb/connection_manager) asks. A failing case prints its seed.
//! Source: the FEROCE connection manager; `rtl/ctrl/cm_listener.sv`.

use penstock_transport::*;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, Ipv4Addr, Psn, Qpn};
use proptest::prelude::*;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
const US: u64 = 1_000_000;

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
}

impl CmHost for Board {
    fn open(&mut self, entry: usize, from: Ipv4Addr, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        self.lives += 1;
        self.dead[entry] = false;
        self.log.push(format!("open {entry} {from}"));
        let (qpn, psn) = (Qpn::new(0xBEEF00 + entry as u32), Psn::new(self.lives));
        Ok(CmInfo { qpn, psn, ip: BOARD, ..CmInfo::default() })
    }

    fn connect(&mut self, entry: usize, peer: &CmInfo) -> Result<(), Refusal> {
        self.log.push(format!("connect {entry} {:#x}", peer.rkey));
        if self.stuck {
            Err(Refusal::Failed)
        } else {
            Ok(())
        }
    }

    fn ready(&mut self, entry: usize) {
        self.log.push(format!("ready {entry}"));
    }

    fn close(&mut self, entry: usize, failed: bool) {
        self.log.push(format!("close {entry} {failed}"));
    }

    fn is_dead(&self, entry: usize) -> bool {
        self.dead[entry]
    }

    fn transmit(&mut self, entry: usize, transmit: &CmTransmit) -> bool {
        self.log.push(format!("transmit {entry} {} {}", transmit.start, transmit.count));
        true
    }
}

fn board(qps: usize) -> (CmListener, Board) {
    (CmListener::new(qps), Board { dead: vec![false; qps], ..Board::default() })
}

fn ask((listener, host): &mut (CmListener, Board), from: Ipv4Addr, message: CmMessage) -> CmMessage {
    let reply = listener.handle_message(from, &message, host).expect("every request is answered");
    assert_eq!((reply.request, reply.other), (message.request, message.sender));
    reply
}

fn opened(board: &mut (CmListener, Board), peer: CmInfo) -> CmInfo {
    let request = CmMessage { info_valid: false, ..CmMessage::request(CmRequest::OpenQp, peer, CmInfo::default()) };
    let own = ask(board, peer.ip, request).sender;
    for request in [CmRequest::SendQpInfo, CmRequest::ModifyQpRts] {
        let reply = ask(board, peer.ip, CmMessage::request(request, peer, own));
        assert_eq!((reply.answer, reply.sender), (Some(CmAnswer::Ack), own));
    }
    own
}

fn answer(board: &mut (CmListener, Board), from: Ipv4Addr, request: CmRequest, own: CmInfo) -> CmAnswer {
    ask(board, from, CmMessage::request(request, server(), own)).answer.unwrap()
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_changes_nothing() {
    let mut board = board(2);
    let open = CmMessage { info_valid: false, ..CmMessage::request(CmRequest::OpenQp, server(), CmInfo::default()) };
    let own = ask(&mut board, SERVER, open).sender;
    let step = |request| CmMessage::request(request, server(), own);
    for request in [open, step(CmRequest::SendQpInfo), step(CmRequest::ModifyQpRts), step(CmRequest::CloseQp)] {
        let first = ask(&mut board, SERVER, request);
        let log = board.1.log.clone();
        for _ in 0..3 {
            assert_eq!(ask(&mut board, SERVER, request), first);
        }
        assert_eq!((first.answer, board.1.log.clone()), (Some(CmAnswer::Ack), log));
    }
    assert_eq!(board.1.log, ["open 0 10.0.0.1", "connect 0 0xc0ffee01", "ready 0", "close 0 false"]);
}

#[test]
fn nobody_but_its_peer_can_touch_a_queue_pair() {
    let mut board = board(1);
    let own = opened(&mut board, server());
    let log = board.1.log.clone();
    use CmRequest::{CloseQp, Error, ModifyQpRts, SendQpInfo};
    for request in [SendQpInfo, ModifyQpRts, CloseQp, Error, CmRequest::None] {
        // The address in the message is a lie; that of the datagram is what counts.
        assert_eq!(answer(&mut board, STRANGER, request, own), CmAnswer::Nak);
    }
    let other = CmInfo { qpn: Qpn::new(9), ..server() };
    let full = ask(&mut board, STRANGER, CmMessage::request(CmRequest::OpenQp, other, CmInfo::default()));
    assert_eq!((full.answer, full.sender, full.info_valid), (Some(CmAnswer::NoQp), CmInfo::default(), false));
    assert_eq!(board.1.log, log);
}

#[test]
fn a_server_that_comes_back_takes_its_queue_pair_again() {
    let mut board = board(3);
    let own = opened(&mut board, server());
    let again = CmInfo { psn: Psn::new(7), rkey: 8, ..server() };
    assert_eq!(opened(&mut board, again).qpn, own.qpn);
    board.1.dead[0] = true;
    let refused = ask(&mut board, SERVER, CmMessage::request(CmRequest::ModifyQpRts, again, own));
    assert_eq!(refused.answer, Some(CmAnswer::Nak));
    assert_eq!(opened(&mut board, again).qpn, own.qpn);
}

#[test]
fn steps_out_of_order_and_without_meaning_are_refused() {
    let mut board = board(1);
    let open = CmMessage { info_valid: false, ..CmMessage::request(CmRequest::OpenQp, server(), CmInfo::default()) };
    let own = ask(&mut board, SERVER, open).sender;
    assert_eq!(answer(&mut board, SERVER, CmRequest::ModifyQpRts, own), CmAnswer::Nak);
    assert_eq!(answer(&mut board, SERVER, CmRequest::Reserved(5), own), CmAnswer::Error);
    assert_eq!(answer(&mut board, SERVER, CmRequest::CloseQp, CmInfo::default()), CmAnswer::NoQp);
    let transmit = Some(CmTransmit { start: true, ..CmTransmit::default() });
    let start = CmMessage { transmit, ..CmMessage::request(CmRequest::None, server(), own) };
    assert_eq!(ask(&mut board, SERVER, start).answer, Some(CmAnswer::Nak));
    board.1.stuck = true;
    assert_eq!(answer(&mut board, SERVER, CmRequest::SendQpInfo, own), CmAnswer::Error);
    assert_eq!(answer(&mut board, SERVER, CmRequest::SendQpInfo, own), CmAnswer::NoQp);
}

fn opener(transmit: Option<CmTransmit>) -> CmOpener {
    let config = CmOpenerConfig { timeout_ps: 10 * US, retries: 40, keep_alive_ps: Some(1000 * US), transmit };
    CmOpener::new(config, BOARD)
}

/// Lets both speak until the opener has nothing more to wait for but its keep-alive. Messages in both directions are
/// lost and repeated as `chance` says.
fn speak(
    opener: &mut CmOpener,
    board: &mut (CmListener, Board),
    now: &mut u64,
    mut chance: impl FnMut() -> u8,
) -> Vec<CmEvent> {
    let mut events = Vec::new();
    for _ in 0..2000 {
        *now += US;
        events.extend(opener.handle_timeout(*now));
        while let Some(request) = opener.poll_transmit() {
            let copies = [0, 1, 1, 2][usize::from(chance() & 3)];
            for _ in 0..copies {
                let reply = board.0.handle_message(SERVER, &request, &mut board.1).unwrap();
                for _ in 0..[0, 1, 1, 2][usize::from(chance() & 3)] {
                    events.extend(opener.handle_message(*now, BOARD, &reply));
                }
            }
        }
        if matches!(opener.state(), CmState::Open | CmState::Failed(_) | CmState::Closed) {
            break;
        }
    }
    events
}

proptest! {
    #[test]
    fn a_board_comes_up_once_however_many_messages_are_lost_or_repeated(
        chances in prop::collection::vec(any::<u8>(), 2000),
        transmits in any::<bool>(),
    ) {
        let mut chances = chances.into_iter().cycle();
        let transmit = transmits.then_some(CmTransmit { start: true, count: 9, ..CmTransmit::default() });
        let (mut opener, mut board, mut now) = (opener(transmit), board(1), 0);
        opener.open(now, server());
        let events = speak(&mut opener, &mut board, &mut now, || chances.next().unwrap());
        let own = CmInfo { qpn: Qpn::new(0xBEEF00), psn: Psn::new(1), ip: BOARD, ..CmInfo::default() };
        prop_assert_eq!(events, [CmEvent::Peer(own), CmEvent::Open]);
        prop_assert_eq!(&board.1.log[..3], ["open 0 10.0.0.1", "connect 0 0xc0ffee01", "ready 0"]);
        opener.close(now);
        let events = speak(&mut opener, &mut board, &mut now, || chances.next().unwrap());
        prop_assert_eq!(events, [CmEvent::Closed]);
    }
}

#[test]
fn keep_alive_tells_a_living_board_from_one_that_began_again_and_from_a_dead_one() {
    let (mut alive, mut board_, mut now) = (opener(None), board(1), 0);
    alive.open(now, server());
    speak(&mut alive, &mut board_, &mut now, || 1);
    assert_eq!(alive.state(), CmState::Open);

    now = alive.next_timeout().unwrap();
    assert_eq!(speak(&mut alive, &mut board_, &mut now, || 1), [], "alive: nothing to tell");
    assert_eq!(alive.state(), CmState::Open);
    alive.heard(now + 500 * US);
    assert_eq!(alive.next_timeout(), Some(now + 1500 * US), "data is a sign of life");

    let mut restarted = (alive.clone(), board(1), alive.next_timeout().unwrap());
    let events = speak(&mut restarted.0, &mut restarted.1, &mut restarted.2, || 1);
    let text = format!(
        "{}",
        match events[..] {
            [CmEvent::Failed(failure)] => failure,
            _ => panic!("{events:?}"),
        }
    );
    assert!(text.contains("10.0.0.2: answered NO_QP to MODIFY_QP_RTS"), "{text}");

    now = alive.next_timeout().unwrap();
    let mut last = None;
    while last.is_none() {
        now += US;
        last = alive.handle_timeout(now);
        while alive.poll_transmit().is_some() {}
    }
    let CmState::Failed(failure) = alive.state() else { panic!("{:?}", alive.state()) };
    let step = CmRequest::ModifyQpRts;
    assert_eq!((failure.done, failure.why), (Some(step), CmReason::Silent { step, tries: 41 }));
}

#[test]
fn a_connection_that_we_have_opened_can_be_asked_after_and_closed_by_its_peer() {
    let mut board = board(1);
    let own = CmInfo { qpn: Qpn::new(0xBEEF00), ip: BOARD, ..CmInfo::default() };
    assert_eq!(answer(&mut board, SERVER, CmRequest::ModifyQpRts, own), CmAnswer::NoQp);
    board.0.adopt(0, own, server());
    assert_eq!(answer(&mut board, STRANGER, CmRequest::CloseQp, own), CmAnswer::Nak);
    assert_eq!(answer(&mut board, SERVER, CmRequest::ModifyQpRts, own), CmAnswer::Ack);
    assert_eq!(answer(&mut board, SERVER, CmRequest::CloseQp, own), CmAnswer::Ack);
    assert_eq!(board.1.log, ["close 0 false"]);
}

#[test]
fn a_failure_names_the_board_and_the_last_step_that_worked() {
    let mut opener = opener(None);
    opener.open(0, server());
    let request = opener.poll_transmit().unwrap();
    let own = CmInfo { qpn: Qpn::new(5), ip: BOARD, ..CmInfo::default() };
    assert!(opener.handle_message(1, STRANGER, &request.answered(CmAnswer::Ack, Some(own))).is_none());
    let late = CmMessage { request: CmRequest::CloseQp, ..request.answered(CmAnswer::Ack, Some(own)) };
    assert!(opener.handle_message(1, BOARD, &late).is_none());
    assert_eq!(opener.handle_message(1, BOARD, &request.answered(CmAnswer::Ack, Some(own))), Some(CmEvent::Peer(own)));
    let request = opener.poll_transmit().unwrap();
    let Some(CmEvent::Failed(failure)) = opener.handle_message(2, BOARD, &request.answered(CmAnswer::Error, None))
    else {
        panic!("{:?}", opener.state());
    };
    let text = failure.to_string();
    assert!(
        text.starts_with("10.0.0.2: answered ERROR to SEND_QP_INFO (OPEN_QP had worked); it finds no way"),
        "{text}"
    );
}
