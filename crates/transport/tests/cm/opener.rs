// SPDX-License-Identifier: Apache-2.0
//! The opening role: against a listener over a channel that loses and repeats messages, and with single messages.

use super::*;
use proptest::prelude::*;

fn opener() -> CmOpener {
    let config = CmOpenerConfig { timeout: US * 10, retries: 40, keep_alive: Some(US * 1000) };
    CmOpener::new(config, BOARD)
}

/// Lets both speak until the opener has nothing more to wait for but its keep-alive. Messages in both directions are
/// lost and repeated as `chance` says.
fn exchange(
    opener: &mut CmOpener,
    board: &mut (CmListener, Board),
    now: &mut Time,
    mut chance: impl FnMut() -> u8,
) -> Vec<CmEvent> {
    let mut events = Vec::new();
    for _ in 0..2000 {
        *now += US;
        events.extend(opener.handle_timeout(*now));
        while let Some(request) = opener.poll_transmit() {
            let copies = [0, 1, 1, 2][usize::from(chance() & 3)];
            for _ in 0..copies {
                let reply = board.0.handle_message(Time::ZERO, SERVER, &request, &mut board.1).unwrap();
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
    ) {
        let mut chances = chances.into_iter().cycle();
        let (mut opener, mut board, mut now) = (opener(), board(1), Time::ZERO);
        opener.open(now, server());
        let events = exchange(&mut opener, &mut board, &mut now, || chances.next().unwrap());
        let local = CmInfo { qpn: Qpn::new(0xBEEF00), psn: Psn::new(1), ip: BOARD, ..CmInfo::default() };
        prop_assert_eq!(events, [CmEvent::Open(local)]);
        prop_assert_eq!(&board.1.log, &["open 0 10.0.0.1", "connect 0 0xc0ffee01 10.0.0.1 17185", "ready 0"]);
        opener.close(now);
        let events = exchange(&mut opener, &mut board, &mut now, || chances.next().unwrap());
        prop_assert_eq!(events, [CmEvent::Closed]);
    }
}

/// Lets time pass until the opener has nothing more to ask but its next keep-alive; `reply` is the board.
fn probed(
    opener: &mut CmOpener,
    now: &mut Time,
    mut reply: impl FnMut(CmMessage) -> Option<CmMessage>,
) -> Vec<CmMessage> {
    *now = opener.next_timeout().unwrap();
    let mut requests = Vec::new();
    for _ in 0..1000 {
        *now += US;
        opener.handle_timeout(*now);
        while let Some(request) = opener.poll_transmit() {
            requests.push(request);
            if let Some(answer) = reply(request) {
                opener.handle_message(*now, BOARD, &answer);
            }
        }
        if opener.state() != CmState::Open || opener.next_timeout().is_some_and(|at| at > *now + US * 500) {
            break;
        }
    }
    requests
}

#[test]
fn keep_alive_separates_a_living_board_from_one_that_began_again_and_from_a_dead_one() {
    let (mut alive, mut board_, mut now) = (opener(), board(1), Time::ZERO);
    alive.open(now, server());
    exchange(&mut alive, &mut board_, &mut now, || 1);
    assert_eq!(alive.state(), CmState::Open);
    assert_eq!(alive.next_timeout(), Some(now + US * 10), "soon for the first time");

    let (listener, host) = &mut board_;
    let requests = probed(&mut alive, &mut now, |request| listener.handle_message(Time::ZERO, SERVER, &request, host));
    assert_eq!(requests.iter().map(|message| message.request).collect::<Vec<_>>(), [CmRequest::ModifyQpRts]);
    assert_eq!(alive.state(), CmState::Open, "alive: nothing to tell");
    alive.data_arrived(now + US * 500);
    assert_eq!(alive.next_timeout(), Some(now + US * 1500), "data is a sign of life");

    let (mut restarted, mut later, mut forgetful) = (alive.clone(), now, board(1));
    let (listener, host) = &mut forgetful;
    probed(&mut restarted, &mut later, |request| listener.handle_message(Time::ZERO, SERVER, &request, host));
    let CmState::Failed(failure) = restarted.state() else { panic!("{:?}", restarted.state()) };
    assert!(failure.to_string().contains("10.0.0.2: answered NO_QP to MODIFY_QP_RTS"), "{failure}");

    let requests = probed(&mut alive, &mut now, |_| None);
    let CmState::Failed(failure) = alive.state() else { panic!("{:?}", alive.state()) };
    let step = CmRequest::ModifyQpRts;
    assert_eq!((failure.done, failure.why), (Some(CmRequest::OpenQp), CmReason::Silent { step, tries: 41 }));
    let last =
        requests.iter().map(|message| message.request).chain(alive.poll_transmit().map(|message| message.request));
    assert_eq!(last.last(), Some(CmRequest::CloseQp), "the board is told, should it hear us");
}

#[test]
fn a_board_without_keep_alives_is_not_given_up_after_a_few_missing_answers() {
    let error = |request: CmMessage| Some(request.answered(CmAnswer::Error, None));
    let replies: [fn(CmMessage) -> Option<CmMessage>; 2] = [|_| None, error];
    for reply in replies {
        let (mut opener, mut board, mut now) = (opener(), board(1), Time::ZERO);
        opener.open(now, server());
        exchange(&mut opener, &mut board, &mut now, || 1);
        for _ in 0..5 {
            assert_eq!(probed(&mut opener, &mut now, reply).len(), 1, "once at a time");
            assert_eq!(opener.state(), CmState::Open);
        }
        // One that says that it has no such queue pair has begun again.
        probed(&mut opener, &mut now, |request| Some(request.answered(CmAnswer::NoQp, None)));
        assert!(matches!(opener.state(), CmState::Failed(_)), "{:?}", opener.state());
    }
}

#[test]
fn an_answer_with_a_reserved_code_is_reported_by_its_code() {
    let mut opener = opener();
    opener.open(Time::ZERO, server());
    let request = opener.poll_transmit().unwrap();
    let event = opener.handle_message(US, BOARD, &request.answered(CmAnswer::Reserved(5), None));
    let Some(CmEvent::Failed(failure)) = event else { panic!("{event:?}") };
    assert_eq!(failure.why, CmReason::Reserved { step: CmRequest::OpenQp, code: 5 });
    assert!(failure.to_string().contains("answered OPEN_QP with the reserved code 5"), "{failure}");
}

/// Killed before it could agree, or one of FEROCE's host software that has nothing to send: opened anew, neither loses anything.
#[test]
fn a_board_that_has_never_agreed_is_given_up_after_ten_questions_without_an_answer_and_without_data() {
    let (mut opener, mut board, mut now) = (opener(), board(1), Time::ZERO);
    opener.open(now, server());
    exchange(&mut opener, &mut board, &mut now, || 1);
    for _ in 0..9 {
        probed(&mut opener, &mut now, |_| None);
    }
    assert_eq!(opener.state(), CmState::Open);
    opener.data_arrived(now); // data: the count begins again
    for _ in 0..9 {
        probed(&mut opener, &mut now, |_| None);
    }
    assert_eq!(opener.state(), CmState::Open);
    let mut adopted = opener.clone();
    probed(&mut opener, &mut now, |_| None);
    assert!(matches!(opener.state(), CmState::Failed(_)), "{:?}", opener.state());

    // A board that opens by itself would need a command by hand to do it again.
    adopted.adopt(now, server(), server(), 0);
    for _ in 0..30 {
        probed(&mut adopted, &mut now, |_| None);
    }
    assert_eq!(adopted.state(), CmState::Open);
}

#[test]
fn no_answer_to_a_keep_alive_ends_a_connection_over_which_data_come() {
    let answers = [None, Some(CmAnswer::Error), Some(CmAnswer::Nak), Some(CmAnswer::NoQp)];
    for answer in answers {
        let (mut opener, mut board, mut now) = (opener(), board(1), Time::ZERO);
        opener.open(now, server());
        exchange(&mut opener, &mut board, &mut now, || 1);
        let (listener, host) = &mut board;
        probed(&mut opener, &mut now, |request| listener.handle_message(Time::ZERO, SERVER, &request, host));
        now = opener.next_timeout().unwrap();
        opener.handle_timeout(now);
        let request = opener.poll_transmit().unwrap();
        opener.data_arrived(now + US);
        let event = match answer {
            Some(answer) => opener.handle_message(now + US * 2, BOARD, &request.answered(answer, None)),
            None => (0..1000).find_map(|step| opener.handle_timeout(now + US * (2 + step))),
        };
        assert_eq!((event, opener.state()), (None, CmState::Open), "{answer:?}");
    }
}

#[test]
fn a_connection_that_we_have_opened_can_be_probed_and_closed_by_its_peer() {
    let mut board = board(1);
    let local = CmInfo { qpn: Qpn::new(0xBEEF00), ip: BOARD, ..CmInfo::default() };
    assert_eq!(answer(&mut board, SERVER, CmRequest::ModifyQpRts, local), CmAnswer::NoQp);
    board.0.adopt(0, local, server(), CmAddress { ip: SERVER, port: 0 });
    assert_eq!(answer(&mut board, STRANGER, CmRequest::CloseQp, local), CmAnswer::Nak);
    assert_eq!(answer(&mut board, SERVER, CmRequest::ModifyQpRts, local), CmAnswer::Ack);
    assert_eq!(answer(&mut board, SERVER, CmRequest::CloseQp, local), CmAnswer::Ack);
    assert_eq!(board.1.log, ["close 0 PeerClosed"]);
}

#[test]
fn a_failure_names_the_board_and_the_last_step_that_worked() {
    let mut opener = opener();
    opener.open(Time(0), server());
    let request = opener.poll_transmit().unwrap();
    let local = CmInfo { qpn: Qpn::new(5), ip: BOARD, ..CmInfo::default() };
    assert!(opener.handle_message(Time(1), STRANGER, &request.answered(CmAnswer::Ack, Some(local))).is_none());
    let late = CmMessage { request: CmRequest::CloseQp, ..request.answered(CmAnswer::Ack, Some(local)) };
    assert!(opener.handle_message(Time(1), BOARD, &late).is_none());
    assert_eq!(
        opener.handle_message(Time(1), BOARD, &request.answered(CmAnswer::Ack, Some(local))),
        Some(CmEvent::Open(local))
    );
    opener.handle_timeout(opener.next_timeout().unwrap());
    let request = opener.poll_transmit().unwrap();
    let Some(CmEvent::Failed(failure)) = opener.handle_message(Time(11), BOARD, &request.answered(CmAnswer::Nak, None))
    else {
        panic!("{:?}", opener.state());
    };
    let text = failure.to_string();
    assert!(
        text.starts_with("10.0.0.2: answered NAK to MODIFY_QP_RTS (OPEN_QP had worked); the queue pair is another"),
        "{text}"
    );
}
