// SPDX-License-Identifier: Apache-2.0
//! Boards in software behind UDP sockets of their own, and fleets that speak to them.

use penstock_ipbus::change::{carry_out, plan, BoardSettings, Fault, FaultKind, Manner};
use penstock_ipbus::map::{find, Build};
use penstock_ipbus::regs::{global, qp};
use penstock_ipbus::{Access, BoardAddress, Fleet, Patience, Responder, ResponderConfig};
use penstock_units::Time;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

/// A board that answers until the test ends. `answers` sees it after each packet, with the packet's sender; false: the
/// reply is lost. `sent` is called after each reply.
fn board(
    mut answers: impl FnMut(SocketAddr, &mut Responder) -> bool + Send + 'static,
    mut sent: impl FnMut() + Send + 'static,
) -> BoardAddress {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = socket.local_addr().unwrap() else { unreachable!() };
    std::thread::spawn(move || {
        let (mut board, mut buffer) = (Responder::new(ResponderConfig::default()), [0; 1536]);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let Some(reply) = board.handle(&buffer[..length]) else { continue };
            if answers(from, &mut board) {
                socket.send_to(&reply, from).unwrap();
                sent();
            }
        }
    });
    BoardAddress(address)
}

fn fleet(boards: &[BoardAddress], seed: u64) -> Fleet {
    Fleet::open(boards, Patience(Time::from_s(300)), seed).unwrap()
}

/// Linux begins to stamp datagrams a while after the first socket has asked it to; until then they have the time at
/// which they are taken.
fn wait_for_stamps() {
    let mut fleet = fleet(&[board(|_, _| true, || {})], 3);
    loop {
        fleet.submit(0, &Access::read(global::ID).into());
        fleet.turn(Time::ZERO).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let end = fleet.now();
        assert!(end < Time::from_s(60), "no datagram has the time of its arrival");
        while fleet.poll_outcome().is_none() {
            fleet.turn(Time::from_s(60)).unwrap();
        }
        if fleet.last_answer(0) < end {
            return;
        }
    }
}

#[test]
fn a_reply_has_the_time_of_its_arrival_however_late_it_is_taken() {
    let (answered, answers) = channel();
    let one = || {
        let answered = answered.clone();
        board(|_, _| true, move || answered.send(()).unwrap())
    };
    let mut fleet = fleet(&[one(), one()], 1);
    wait_for_stamps();
    fleet.gather(Time::from_ms(1));
    for _ in 0..3 {
        let begin = fleet.now();
        for board in 0..2 {
            fleet.submit(board, &Access::read(global::ID).into());
        }
        fleet.turn(Time::ZERO).unwrap();
        (0..2).for_each(|_| answers.recv().unwrap());
        let end = fleet.now();
        let mut outcomes = 0;
        while outcomes < 2 {
            fleet.turn(Time::from_s(60)).unwrap();
            while let Some((board, _, outcome)) = fleet.poll_outcome() {
                assert_eq!(outcome.unwrap(), [[0x5053_544B]]);
                let answered = fleet.last_answer(board);
                assert!(begin < answered && answered < end, "between {begin} and {end}, not at {answered}");
                outcomes += 1;
            }
        }
    }
}

/// Sets a register of the fleet's only board, and waits no time for other operators; whether that went well, and the
/// faults.
fn set(fleet: &mut Fleet, name: &str, number: u64, force: bool) -> (bool, Vec<Fault>) {
    set_in_turn(fleet, (name, number), force, Time::ZERO, "/dev/null".into())
}

/// The same after waiting for them.
fn set_in_turn(
    fleet: &mut Fleet,
    (name, number): (&str, u64),
    force: bool,
    wait: Time,
    journal: PathBuf,
) -> (bool, Vec<Fault>) {
    let journal = Some(journal);
    let manner = Manner { force, wait, journal, operator: None, to_force: "--force", to_name_journal: "--journal" };
    let place = find(name, Build { queue_pairs: 4, clock_khz: 156_250 }).unwrap()[0];
    let mut faults = Vec::new();
    let plans = plan(fleet, &[BoardSettings { board: 0, settings: vec![(place, number)] }], &mut faults).unwrap();
    let good = carry_out(fleet, &plans, &manner, &mut faults).unwrap();
    (!good.is_empty(), faults)
}

/// A queue pair that is ready to send only after `looks` more packets.
fn slow_queue_pair(looks: u32) -> BoardAddress {
    let (state, mut left) = (qp::BASE + qp::STATE, None);
    let answers = move |_, board: &mut Responder| {
        left = match left {
            None if board.get(state) == 3 => {
                board.set(state, 0);
                Some(looks)
            }
            Some(0) => {
                board.set(state, 3);
                None
            }
            left => left.map(|left| left - 1),
        };
        true
    };
    board(answers, || {})
}

#[test]
fn a_queue_pair_is_waited_for_until_its_ring_is_empty() {
    let mut fleet = fleet(&[slow_queue_pair(5)], 4);
    assert_eq!(set(&mut fleet, "qp[0].state", 3, true), (true, vec![]));
}

#[test]
fn a_queue_pair_that_never_gets_ready_is_a_fault_after_the_patience() {
    let mut fleet = Fleet::open(&[slow_queue_pair(u32::MAX)], Patience(Time::from_ms(100)), 5).unwrap();
    let (good, faults) = set(&mut fleet, "qp[0].state", 3, true);
    assert!(!good && faults[0].kind == FaultKind::Differs, "{faults:?}");
}

#[test]
fn of_two_operators_at_once_the_second_is_refused_and_the_first_is_notified_if_it_takes_over() {
    let (written, writes) = channel();
    let (is_held, mut first) = (Arc::new(AtomicBool::new(true)), None);
    let held = is_held.clone();
    // From the first operator's write on it gets no reply, and so stays in the middle of its change.
    let one = board(
        move |from, board| {
            if first.is_none() && board.get(global::SCRATCH) == 7 {
                first = Some(from);
                written.send(()).unwrap();
            }
            first != Some(from) || !held.load(Ordering::Relaxed)
        },
        || {},
    );
    let change = std::thread::spawn(move || set(&mut fleet(&[one], 1), "scratch", 7, false));
    writes.recv().unwrap();
    let mut second = fleet(&[one], 2);
    let (is_good, faults) = set(&mut second, "flow_control.traffic_class", 5, false);
    assert!(!is_good && faults[0].kind == FaultKind::Busy, "{faults:?}");
    assert!(faults[0].message.contains("the operator at 127.0.0.1 is changing its settings"), "{faults:?}");
    assert_eq!(set(&mut second, "flow_control.traffic_class", 5, true), (true, Vec::new()));
    is_held.store(false, Ordering::Relaxed);
    let (is_good, faults) = change.join().unwrap();
    assert!(is_good && faults[0].kind == FaultKind::Meanwhile, "{faults:?}");
    assert!(faults[0].message.contains("the operator at 127.0.0.1 began to change its settings"), "{faults:?}");
    assert_eq!(set(&mut second, "scratch", 9, false), (true, Vec::new()), "both have ended");
}

/// The mark of a board: begun, ended.
fn mark(fleet: &mut Fleet) -> (u32, u32) {
    let look = Access::Read { address: global::OPERATOR_BEGUN, count: 2 };
    let words = fleet.run(&[(0, look.into())]).unwrap().remove(0).unwrap();
    (words[0][0], words[0][1])
}

/// `PENSTOCK_TURNS` makes it longer.
#[test]
fn operators_at_once_take_turns_and_none_undoes_what_another_has_set() {
    let one = board(|_, _| true, || {});
    let fields = [("alpha_rule", 2), ("g_shift", 9), ("stage_counting", 1), ("cut_on_tick", 1)];
    let turns = 2 * std::env::var("PENSTOCK_TURNS").map_or(2, |turns| turns.parse::<usize>().unwrap());
    let operators = fields.map(|(field, number)| {
        std::thread::spawn(move || {
            let mut single = fleet(&[one], number + field.len() as u64);
            for number in [0, number].into_iter().cycle().take(turns) {
                let name = format!("cc[0].control.{field}");
                let done = set_in_turn(&mut single, (&name, number), false, Time::from_s(300), "/dev/null".into());
                assert_eq!(done, (true, Vec::new()), "{name}={number}");
            }
        })
    });
    operators.into_iter().for_each(|operator| operator.join().unwrap());
    let mut last = fleet(&[one], 99);
    for (field, number) in fields {
        let place = find(&format!("cc[0].control.{field}"), Build { queue_pairs: 4, clock_khz: 156_250 }).unwrap()[0];
        let words = last.run(&[(0, Access::read(place.address()).into())]).unwrap().remove(0).unwrap();
        assert_eq!(place.number(&words[0]), number, "{field}");
    }
    let (begun, ended) = mark(&mut last);
    assert_eq!(begun, ended, "nobody is left");
}

#[test]
fn the_mark_of_an_operator_who_was_cut_off_expires() {
    let mut is_marked = false;
    let one = board(
        move |_, board| {
            if !std::mem::replace(&mut is_marked, true) {
                board.set(global::OPERATOR_IP, u32::from_be_bytes([10, 1, 2, 3]));
                board.set(global::OPERATOR_BEGUN, 5);
                board.set(global::OPERATOR_ENDED, 3);
            }
            true
        },
        || {},
    );
    let mut patient = fleet(&[one], 1);
    assert_eq!(mark(&mut patient), (0, 0));
    let (is_good, faults) = set(&mut patient, "scratch", 7, false);
    assert!(!is_good && faults[0].kind == FaultKind::Busy, "{faults:?}");
    assert!(faults[0].message.contains("the operator at 10.1.2.3 is changing its settings"), "{faults:?}");
    assert!(faults[0].message.contains("expires after 1500.0 s"), "{faults:?}");
    let journal = std::env::temp_dir().join(format!("penstock-marks-{}", std::process::id()));
    let mut next = Fleet::open(&[one], Patience(Time::from_ms(100)), 2).unwrap();
    let done = set_in_turn(&mut next, ("scratch", 7), false, Time::from_s(300), journal.clone());
    let noted = std::fs::read_to_string(&journal).unwrap();
    std::fs::remove_file(&journal).unwrap();
    // A loaded machine may keep a board from answering for longer than this patience.
    assert!(done.0 || done.1.iter().all(|fault| fault.kind == FaultKind::Silent), "{done:?}");
    assert!(noted.contains("taken over from 10.1.2.3, whose mark has not moved for"), "{noted}");
    if done.0 {
        assert_eq!(mark(&mut patient), (6, 6));
    }
}

#[test]
fn a_reset_in_the_middle_of_a_change_is_reported_and_leaves_no_change_open() {
    for is_reply_lost in [true, false] {
        let mut was_reset = false;
        let one = board(
            move |_, board| {
                let is_now = !was_reset && board.get(global::SCRATCH) == 7;
                if is_now {
                    board.reset();
                    was_reset = true;
                }
                !(is_now && is_reply_lost)
            },
            || {},
        );
        let mut operator = fleet(&[one], 1);
        let (is_good, faults) = set(&mut operator, "scratch", 7, false);
        assert!(!is_good, "reply lost: {is_reply_lost}");
        let reset_faults =
            faults.iter().filter(|fault| fault.message.starts_with("it was reset while it was written to"));
        assert_eq!(reset_faults.count(), 1, "{faults:?}");
        assert!(faults.iter().all(|fault| fault.kind != FaultKind::Meanwhile), "{faults:?}");
        assert_eq!(set(&mut operator, "scratch", 9, false), (true, Vec::new()));
    }
}
