// SPDX-License-Identifier: Apache-2.0
//! A session over a NIC whose completions are taken late: they are still in its queue when the queue pair has failed.
//! Promise checked: messages acknowledged to a board are delivered before its slots are written again.
//! Source: IBTA 9.7.5.1 (an acknowledgement means that the message has arrived).

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use penstock_readout::backend::*;
use penstock_readout::session::{BoardSpec, Opens, Session, SessionConfig};
use penstock_readout::{BuilderConfig, Discard};
use penstock_transport::{
    CmAddress, CmHost, CmListener, CmListenerConfig, Ending, Memory, RecvOpcode, RecvStatus, RecvWr, Refusal,
};
use penstock_units::Time;
use penstock_wire::{
    CmInfo, CmMessage, CmTransmit, FragmentHeader, Ipv4Addr, MacAddr, Payload, Psn, Qpn, CM_LEN, CM_REQUEST_PORT,
};

const SLOT_BYTES: u32 = 256;

/// What the test sees of the NIC.
#[derive(Default)]
struct State {
    /// Lives of board 0's queue pair, and whether the present one may be written to.
    lives: u32,
    connected: bool,
    has_failed: bool,
    /// The completions in the queue.
    waiting: Vec<Completion>,
    /// Receives of the present life.
    posted: Vec<RecvWr>,
}

/// Board 0 sends two fragments in each of its two lives; the second of the first one comes when that life is over.
struct Nic {
    ip: Ipv4Addr,
    state: Arc<Mutex<State>>,
}

fn fragment(event: u64) -> Vec<u8> {
    let payload = [event as u8; 100];
    let mut bytes = FragmentHeader::for_payload(0, event, event, &payload).to_bytes().to_vec();
    bytes.extend_from_slice(&payload);
    bytes
}

impl Backend for Nic {
    fn name(&self) -> &'static str {
        "late"
    }

    fn address(&self) -> LocalAddress {
        LocalAddress::of_ip(self.ip, MacAddr([2, 0, 0, 0, 0, 1]))
    }

    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        let mut state = self.state.lock().unwrap();
        state.lives += u32::from(spec.board == 0);
        let (qpn, psn) = (Qpn::new(100 * u32::from(spec.board) + state.lives + 1), Psn::new(7));
        let base = 0x1000_0000 * (u64::from(spec.board) + 1);
        Ok(LocalQp { qpn, psn, rkey: 5, base, ring: base, ip: self.ip })
    }

    fn connect(&mut self, board: u16, _peer: &PeerQp) -> Result<(), BackendError> {
        self.state.lock().unwrap().connected |= board == 0;
        Ok(())
    }

    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        if board == 0 {
            self.state.lock().unwrap().posted.extend_from_slice(receives);
        }
        Ok(())
    }

    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        _mode: PollMode,
        _deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        std::thread::sleep(Duration::from_micros(200));
        let mut state = self.state.lock().unwrap();
        if !state.connected || state.has_failed || state.posted.len() < 2 {
            return Ok(());
        }
        let first = u64::from(state.lives - 1) * 2;
        for event in [first, first + 1] {
            let RecvWr { wr_id, va, .. } = state.posted.remove(0);
            let bytes = fragment(event);
            memory.write(va, &Payload::Bytes(bytes.clone().into()));
            let (status, opcode, byte_len) = (RecvStatus::Success, RecvOpcode::Send, bytes.len() as u32);
            let done = Completion { board: 0, wr_id, status, opcode, imm: None, byte_len, payload_crc: None };
            if event == 1 {
                (state.waiting, state.has_failed) = (vec![done], true);
            } else {
                out.push(done);
            }
        }
        state.connected = state.lives == 1;
        Ok(())
    }

    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        if board == 0 {
            let mut state = self.state.lock().unwrap();
            out.append(&mut state.waiting);
            (state.connected, state.has_failed) = (false, false);
            state.posted.clear();
        }
        Ok(())
    }

    fn fault(&self, board: u16) -> Option<String> {
        (board == 0 && self.state.lock().unwrap().has_failed).then(|| "it has failed".into())
    }
}

/// A board's connection manager, which agrees to everything.
struct Agrees;

impl CmHost for Agrees {
    fn open(&mut self, _entry: usize, from: CmAddress, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        Ok(CmInfo { qpn: Qpn::new(9), psn: Psn::new(1), ip: from.ip, ..CmInfo::default() })
    }

    fn connect(&mut self, _entry: usize, _from: CmAddress, _peer: &CmInfo) -> Result<(), Refusal> {
        Ok(())
    }

    fn ready(&mut self, _entry: usize) {}

    fn close(&mut self, _entry: usize, _why: Ending) {}

    fn is_quiet(&self, _entry: usize) -> bool {
        false
    }

    fn is_dead(&self, _entry: usize) -> bool {
        false
    }

    fn transmit(&mut self, _entry: usize, _transmit: &CmTransmit) -> bool {
        false
    }
}

fn answer_until(ip: Ipv4Addr, over: &AtomicBool) {
    let socket = UdpSocket::bind((ip, CM_REQUEST_PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let (mut listener, mut data) = (CmListener::new(CmListenerConfig::new(1)), [0; CM_LEN]);
    while !over.load(Ordering::Relaxed) {
        let Ok((len, std::net::SocketAddr::V4(from))) = socket.recv_from(&mut data) else { continue };
        let Ok(message) = CmMessage::parse(&data[..len]) else { continue };
        if let Some(reply) = listener.handle_message(Time::ZERO, *from.ip(), &message, &mut Agrees) {
            socket.send_to(&reply.to_bytes(), (*from.ip(), message.reply_port())).unwrap();
        }
    }
}

/// Runs until board 0 has had two lives and all is stored. Where there is a second board it never sends, and which
/// event is the first is known only after `patience_ms`. A board that `reports` which event it has passed gets its second
/// life after that.
fn run(net: u8, boards: u8, patience_ms: u64, reports: bool) {
    let (ours, over) = (Ipv4Addr::new(127, 9, net, 1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let peers: Vec<_> = (0..boards).map(|k| Ipv4Addr::new(127, 9, net, 2 + k)).collect();
        for &ip in &peers {
            let over = &over;
            scope.spawn(move || answer_until(ip, over));
        }
        let state = Arc::new(Mutex::new(State::default()));
        let board = |ip: &Ipv4Addr| BoardSpec { name: ip.to_string(), ip: *ip, opens: Opens::We };
        let builder = BuilderConfig { timeout: Time::from_ms(patience_ms), ..BuilderConfig::default() };
        let (boards, reopen, linger) = (peers.iter().map(board).collect(), Time::from_ms(1), Time::ZERO);
        let shape = SessionConfig { boards, builder, slots: 4, slot_bytes: SLOT_BYTES, ..SessionConfig::default() };
        let config = SessionConfig { reopen, linger, ..shape };
        let nic = Nic { ip: ours, state: state.clone() };
        let mut session = Session::new(config, Box::new(nic), SessionClock::start(), Discard::default()).unwrap();
        session.expect_passed(0, reports, Time::from_s(9));
        let (mut steps_away, mut lives_before) = (0, 1);
        while session.events_stored() < 4 && session.now() < Time::from_s(10) {
            session.step(Time::from_ms(1)).unwrap();
            steps_away += u32::from(reports && session.away()[0]);
            if steps_away == 50 {
                steps_away += 1; // once
                lives_before = state.lock().unwrap().lives;
                session.passed(0, Some(1));
            }
        }
        session.finish(Time::from_ms(10), || false).unwrap();
        over.store(true, Ordering::Relaxed);
        let report = session.report();
        let (receiver, builder) = (&report.readout.receiver, &report.readout.builder);
        assert_eq!((lives_before, state.lock().unwrap().lives), (1, 2), "away for {steps_away} steps");
        assert_eq!(steps_away >= 50, reports);
        assert_eq!((receiver.fragments_good, builder.fragments_accepted), (4, 4), "{report:?}");
        assert_eq!(report.readout.rings[0].completions_refused, 0);
    });
}

#[test]
fn what_was_acknowledged_is_delivered_before_the_slots_of_a_failed_queue_pair_open_again() {
    run(1, 1, 100, false);
}

#[test]
fn the_same_while_it_is_not_yet_known_which_event_is_the_first() {
    run(2, 2, 300, false);
}

#[test]
fn a_board_that_reports_which_event_it_has_passed_is_not_opened_again_before_that() {
    run(4, 1, 100, true);
}

#[test]
fn an_end_that_is_hurried_waits_for_no_board_to_agree() {
    let (ours, peer, over) = (Ipv4Addr::new(127, 9, 3, 1), Ipv4Addr::new(127, 9, 3, 2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let agrees = scope.spawn(|| answer_until(peer, &over));
        let boards = vec![BoardSpec { name: peer.to_string(), ip: peer, opens: Opens::We }];
        let shape = SessionConfig { boards, slots: 4, slot_bytes: SLOT_BYTES, ..SessionConfig::default() };
        let nic = Nic { ip: ours, state: Arc::default() };
        let mut session = Session::new(shape, Box::new(nic), SessionClock::start(), Discard::default()).unwrap();
        while session.boards_up() == 0 {
            session.step(Time::from_ms(1)).unwrap();
        }
        over.store(true, Ordering::Relaxed);
        agrees.join().unwrap();
        let begun = Instant::now();
        session.finish(Time::from_s(60), || true).unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
    });
}
