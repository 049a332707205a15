// SPDX-License-Identifier: Apache-2.0
//! The connection manager against an attacker on its port: floods, malformed messages, queue pairs of other hosts.
//! Its memory is bounded by its entries; connections that other hosts have opened continue.

use penstock_transport::*;
use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, Ipv4Addr, Psn, Qpn, CM_LEN};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const ENTRIES: usize = 8;

/// Gives every queue pair that it has, each number to whoever comes next.
#[derive(Default)]
struct Owner {
    open: [Option<Ipv4Addr>; ENTRIES],
    ready: [bool; ENTRIES],
    opened: u32,
    numbers: Vec<u32>,
    /// Not for whoever asks now.
    withheld: Option<usize>,
}

impl CmHost for Owner {
    fn open(&mut self, entry: usize, from: CmAddress, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        if self.withheld == Some(entry) {
            return Err(Refusal::NoQp);
        }
        assert_eq!(self.open[entry].replace(from.ip), None);
        self.opened += 1;
        let number = self.numbers.pop().unwrap_or(100 + self.opened);
        Ok(CmInfo { qpn: Qpn::new(number), psn: Psn::new(9), ..CmInfo::default() })
    }

    fn connect(&mut self, _entry: usize, _from: CmAddress, _peer: &CmInfo) -> Result<(), Refusal> {
        Ok(())
    }

    fn ready(&mut self, entry: usize) {
        self.ready[entry] = true;
    }

    fn close(&mut self, entry: usize, _why: Ending) {
        assert!(self.open[entry].take().is_some());
        self.ready[entry] = false;
    }

    fn is_quiet(&self, _entry: usize) -> bool {
        false
    }

    fn is_dead(&self, _entry: usize) -> bool {
        false
    }

    fn transmit(&mut self, _entry: usize, _transmit: &penstock_wire::CmTransmit) -> bool {
        true
    }
}

fn info(qpn: u32) -> CmInfo {
    CmInfo { qpn: Qpn::new(qpn), psn: Psn::new(1), rkey: 2, base: 3, ip: SERVER }
}

fn exchange(listener: &mut CmListener, owner: &mut Owner, from: Ipv4Addr, request: CmMessage) -> Option<CmAnswer> {
    listener.handle_message(Time::ZERO, from, &request, owner).and_then(|answer| answer.answer)
}

/// The server's queue pair, opened in all its steps.
fn connected(listener: &mut CmListener, owner: &mut Owner) -> CmInfo {
    let open = CmMessage::request(CmRequest::OpenQp, info(7), CmInfo::default());
    let local = listener.handle_message(Time::ZERO, SERVER, &open, owner).expect("an answer").sender;
    let ready = CmMessage::request(CmRequest::ModifyQpRts, info(7), local);
    assert_eq!(exchange(listener, owner, SERVER, ready), Some(CmAnswer::Ack));
    local
}

#[test]
fn a_flood_takes_no_more_than_the_entries_and_leaves_open_connections_alone() {
    let (mut listener, mut owner) = (CmListener::new(CmListenerConfig::new(ENTRIES)), Owner::default());
    let local = connected(&mut listener, &mut owner);
    let mut answers = std::collections::BTreeMap::new();
    for n in 0..100_000u32 {
        let from = Ipv4Addr::from_bits(0x0B00_0000 + n);
        let open = CmMessage::request(CmRequest::OpenQp, info(n & 0xFF_FFFF), CmInfo::default());
        *answers.entry(format!("{:?}", exchange(&mut listener, &mut owner, from, open))).or_insert(0u32) += 1;
        let close = CmMessage::request(CmRequest::CloseQp, info(7), local);
        assert_eq!(exchange(&mut listener, &mut owner, from, close), Some(CmAnswer::Nak), "it is the server's");
    }
    assert_eq!(answers, [("Some(Ack)".to_owned(), 7), ("Some(NoQp)".to_owned(), 99_993)].into());
    assert_eq!((owner.opened, owner.open[0], owner.ready[0]), (ENTRIES as u32, Some(SERVER), true));
    assert_eq!(listener.connection(0).map(|(local, _)| local), Some(local));
    let alive = CmMessage::request(CmRequest::ModifyQpRts, info(7), local);
    assert_eq!(exchange(&mut listener, &mut owner, SERVER, alive), Some(CmAnswer::Ack), "the server's keep-alive");
}

#[test]
fn malformed_messages_and_reserved_codes_reach_nobody() {
    for len in (0..CM_LEN).chain(CM_LEN + 1..200) {
        assert!(CmMessage::parse(&vec![0xFF; len]).is_err(), "{len} bytes");
    }
    let (mut listener, mut owner) = (CmListener::new(CmListenerConfig::new(ENTRIES)), Owner::default());
    let local = connected(&mut listener, &mut owner);
    for flags in 0..=u8::MAX {
        let mut bytes = CmMessage::request(CmRequest::None, info(7), local).to_bytes();
        bytes[0] = flags;
        let message = CmMessage::parse(&bytes).unwrap();
        let meaningless = matches!(message.request, CmRequest::Reserved(_) | CmRequest::None);
        if message.answer.is_some() {
            assert_eq!(exchange(&mut listener, &mut owner, SERVER, message), None, "an answer that nobody waits for");
        } else if meaningless {
            assert_ne!(exchange(&mut listener, &mut owner, SERVER, message), Some(CmAnswer::Ack), "{message:?}");
        }
    }
    assert_eq!((owner.opened, owner.ready[0]), (1, true));
}

#[test]
fn a_number_that_is_given_out_again_is_its_new_owners() {
    let (mut listener, mut owner) = (CmListener::new(CmListenerConfig::new(ENTRIES)), Owner::default());
    let local = connected(&mut listener, &mut owner);
    let second = Ipv4Addr::new(10, 0, 0, 2);
    let close = CmMessage::request(CmRequest::CloseQp, info(7), local);
    assert_eq!(exchange(&mut listener, &mut owner, SERVER, close), Some(CmAnswer::Ack));
    // Entry 0 is closed and remembers its number, which the owner gives to entry 1.
    (owner.numbers, owner.withheld) = (vec![local.qpn.value()], Some(0));
    let open = CmMessage::request(CmRequest::OpenQp, info(10), CmInfo::default());
    let given = listener.handle_message(Time::ZERO, second, &open, &mut owner).expect("an answer").sender;
    assert_eq!(given.qpn, local.qpn);
    let ready = CmMessage::request(CmRequest::ModifyQpRts, info(10), given);
    assert_eq!(exchange(&mut listener, &mut owner, second, ready), Some(CmAnswer::Ack));
}

#[test]
fn forged_answers_neither_open_nor_kill_a_connection() {
    let board = Ipv4Addr::new(10, 0, 0, 2);
    let local = info(0x5A_17E5);
    for forge in 0..3 {
        let mut opener = CmOpener::new(CmOpenerConfig::default(), board);
        opener.open(Time::ZERO, local);
        let request = opener.poll_transmit().expect("OPEN_QP");
        for answer in [CmAnswer::Ack, CmAnswer::Nak, CmAnswer::NoQp, CmAnswer::Error] {
            let mut forged = request.answered(answer, Some(info(1)));
            let mut from = board;
            match forge {
                0 => from = Ipv4Addr::new(10, 0, 0, 66),
                1 => forged.other.qpn = Qpn::new(1), // a number that was not guessed
                _ => forged.request = CmRequest::ModifyQpRts,
            }
            assert_eq!(opener.handle_message(Time(1), from, &forged), None);
            assert_eq!(opener.state(), CmState::Requesting(CmRequest::OpenQp));
        }
        let answer = request.answered(CmAnswer::Ack, Some(info(1)));
        assert!(matches!(opener.handle_message(Time(1), board, &answer), Some(CmEvent::Open(_))));
    }
}
