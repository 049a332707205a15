// SPDX-License-Identifier: Apache-2.0
//! A session sends and accepts the messages of FEROCE's own programs (`crates/wire/tests/feroce_messages.txt`), byte
//! for byte. Numbers, PSNs, keys and addresses differ: they are substituted in the message before the comparison.
//! Source: the FEROCE connection manager.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use penstock_readout::backend::{Backend, InProcess, SessionClock};
use penstock_readout::session::{BoardSpec, BoardState, CmPort, Opens, Session, SessionConfig};
use penstock_readout::Discard;
use penstock_units::Time;
use penstock_wire::{CmInfo, CmMessage, Ipv4Addr, MacAddr, CM_LEN, CM_REQUEST_PORT};

const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const BOARD: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// What FEROCE's own programs say, by name.
fn golden(name: &str) -> [u8; CM_LEN] {
    let messages = include_str!("../../wire/tests/feroce_messages.txt");
    let line = messages.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap();
    let digits: Vec<u32> = line.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    bytes.try_into().unwrap()
}

/// The message of that name, between these two.
fn between(name: &str, sender: CmInfo, other: CmInfo) -> [u8; CM_LEN] {
    CmMessage { sender, other, ..CmMessage::parse(&golden(name)).unwrap() }.to_bytes()
}

/// Bytes that come to the session's port, and bytes that leave it, with the port that they go to.
#[derive(Default)]
struct Mail {
    came: VecDeque<[u8; CM_LEN]>,
    sent: VecDeque<(u16, [u8; CM_LEN])>,
}

struct Post(Rc<RefCell<Mail>>);

impl CmPort for Post {
    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        let bytes = self.0.borrow_mut().came.pop_front()?;
        Some((BOARD, CmMessage::parse(&bytes).unwrap()))
    }

    fn send(&mut self, to: Ipv4Addr, port: u16, message: &CmMessage) -> io::Result<()> {
        assert_eq!(to, BOARD);
        self.0.borrow_mut().sent.push_back((port, message.to_bytes()));
        Ok(())
    }
}

/// A session with one board, whose other end is the test.
struct Table {
    session: Session<Discard>,
    mail: Rc<RefCell<Mail>>,
}

impl Table {
    fn new(opens: Opens) -> Table {
        let mut bits = 7u64;
        let entropy = move || {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (bits >> 32) as u32
        };
        let nic = InProcess::new(HOST, MacAddr([2, 0, 0, 0, 0, 1]), Box::new(entropy));
        let mail = Rc::new(RefCell::new(Mail::default()));
        let boards = vec![BoardSpec { name: "board".into(), ip: BOARD, opens }];
        let config =
            SessionConfig { boards, slots: 4, slot_bytes: 4096, linger: Time::ZERO, ..SessionConfig::default() };
        let (nic, post): (Box<dyn Backend>, Box<dyn CmPort>) = (Box::new(nic), Box::new(Post(mail.clone())));
        let session = Session::with_port(config, nic, post, SessionClock::start(), Discard::default()).unwrap();
        Table { session, mail }
    }

    /// The next message that leaves.
    fn next_sent(&mut self) -> (u16, [u8; CM_LEN]) {
        loop {
            if let Some(sent) = self.mail.borrow_mut().sent.pop_front() {
                return sent;
            }
            self.session.step(Time::from_ms(1)).unwrap();
            assert!(self.session.now() < Time::from_s(60), "nothing was said");
        }
    }

    fn deliver(&mut self, bytes: [u8; CM_LEN]) {
        self.mail.borrow_mut().came.push_back(bytes);
    }

    fn state(&mut self) -> BoardState {
        self.session.report().boards[0].state
    }
}

/// FEROCE's gateware as golden messages have it.
fn board() -> CmInfo {
    CmMessage::parse(&golden("board agrees")).unwrap().sender
}

fn sender(bytes: &[u8; CM_LEN]) -> CmInfo {
    CmMessage::parse(bytes).unwrap().sender
}

#[test]
fn a_session_opens_and_closes_feroce_s_gateware_as_its_host_software_does() {
    let mut table = Table::new(Opens::We);
    let (port, message) = table.next_sent();
    let local = sender(&message);
    assert_eq!((port, local.ip), (CM_REQUEST_PORT, HOST));
    assert_eq!(message, between("host opens", local, CmInfo::default()));
    table.deliver(between("board agrees", board(), local));
    while table.state() != BoardState::Up {
        table.session.step(Time::from_ms(1)).unwrap();
    }
    table.session.hang_up(Time::ZERO, || false).unwrap();
    let closing = between("host closes", local, board());
    while table.next_sent() != (CM_REQUEST_PORT, closing) {
        // Keep-alives, which FEROCE's gateware does not know.
    }
    table.deliver(between("board has closed", board(), local));
    while table.state() != BoardState::Waiting {
        table.session.step(Time::from_ms(1)).unwrap();
    }
}

#[test]
fn a_session_that_listens_answers_feroce_s_host_software_as_its_gateware_does() {
    let mut table = Table::new(Opens::Board);
    let peer = CmInfo { ip: BOARD, ..sender(&golden("host opens")) };
    for life in 1..3 {
        table.deliver(between("host opens", peer, CmInfo::default()));
        let (port, message) = table.next_sent();
        let local = sender(&message);
        assert_eq!((port, local.ip), (CM_REQUEST_PORT, HOST));
        assert_eq!(message, between("board agrees", local, peer));
        assert_eq!((table.state(), table.session.report().boards[0].lives), (BoardState::Up, life));
        table.deliver(between("host closes", peer, local));
        let closed = between("board has closed", local, peer);
        while table.next_sent() != (CM_REQUEST_PORT, closed) {
            // Keep-alives, which FEROCE's host software leaves unanswered.
        }
        assert_eq!(table.state(), BoardState::Waiting);
    }
}
