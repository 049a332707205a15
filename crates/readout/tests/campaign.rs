// SPDX-License-Identifier: Apache-2.0
//! The fault campaign: fragments of many boards over a wire that loses, repeats, reorders and damages packets, with
//! ends that die and clocks that jump. Every stored event is byte for byte what was sent, or lists what it lacks. Each
//! test prints its seed; `PENSTOCK_SEED` and `PENSTOCK_FRAGMENTS` set the seed and size of the largest one (`make
//! soak`).

#[path = "campaign/farm.rs"]
mod farm;

use farm::{Farm, Faults, TICK};

const BOARDS: u16 = 64;
const FAULTS: Faults = Faults { loss: 1_000, duplicate: 1_000, reorder: 1_000, corrupt: 1_000 };

/// A number of the environment, or the usual one.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn every_event_of_64_boards_is_byte_exact_whatever_the_wire_does() {
    let events = setting("PENSTOCK_FRAGMENTS", 1_000_000) / u64::from(BOARDS);
    let mut farm = Farm::new(BOARDS, FAULTS, setting("PENSTOCK_SEED", 1));
    farm.run(events);
    let (wire, retransmitted) = (farm.wire(), farm.retransmitted());
    println!("{events} events, {wire:?}, {retransmitted} retransmitted");
    assert!(wire.lost.min(wire.duplicated).min(wire.reordered).min(wire.damaged) > wire.packets / 2000);
    assert!(retransmitted > 0 && farm.server.counter("out_of_sequence") > 0);
    let done = farm.finish();
    assert_eq!((done.complete, done.fragments, done.incomplete.len()), (events, events * u64::from(BOARDS), 0));
}

#[test]
fn the_same_seed_gives_the_same_campaign() {
    let run = |seed| {
        let mut farm = Farm::new(8, FAULTS, seed);
        farm.run(200);
        (farm.now, format!("{:?}", farm.wire()), farm.retransmitted())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_server_that_is_restarted_in_mid_run_loses_only_what_it_held_and_reports_it() {
    let mut farm = Farm::new(16, FAULTS, 11);
    farm.run(150);
    for _ in 0..37 {
        farm.tick(u64::MAX); // the middle of something
    }
    let mut dead = farm.replace_server();
    let first: Vec<u64> = farm.boards.iter().map(|board| board.next_event).collect();
    let (from, to) = (*first.iter().min().unwrap(), *first.iter().max().unwrap());
    let stored = dead.receiver.sink().next;
    assert!(stored <= to && from < 400);
    let until = to + 200;
    farm.run(until);
    let done = farm.finish();
    assert_eq!(done.first, Some(from), "the new server begins with the first event that is not acknowledged");
    for (event, missing) in &done.incomplete {
        let acknowledged = |board: &u16| first[usize::from(*board)] > *event;
        assert!(*event < to && missing.iter().all(acknowledged), "event {event} misses {missing:?}");
    }
    assert_eq!(done.complete + done.incomplete.len() as u64, until - from);
    assert!(done.complete >= until - to, "every event from the last board's first one on is whole");
    dead.receiver.finish(farm.now).unwrap();
}

#[test]
fn a_board_that_is_restarted_in_mid_event_costs_the_events_it_missed_and_no_other() {
    let (victim, skipped) = (3u16, 5u64);
    let mut farm = Farm::new(16, FAULTS, 12);
    farm.run(100);
    for _ in 0..23 {
        farm.tick(u64::MAX);
    }
    let acknowledged = farm.boards[usize::from(victim)].first_unacknowledged();
    let resumes = farm.boards[usize::from(victim)].next_event + skipped;
    farm.restart_board(victim, resumes, resumes + 300);
    farm.run(resumes + 300);
    let done = farm.finish();
    assert_eq!(done.complete + done.incomplete.len() as u64, resumes + 300);
    for (event, missing) in &done.incomplete {
        assert!(
            (acknowledged..resumes).contains(event),
            "event {event} of {acknowledged}..{resumes} misses {missing:?}"
        );
        assert_eq!(missing, &[victim]);
    }
    assert!(done.incomplete.len() as u64 >= skipped);
}

#[test]
fn what_a_board_sends_again_after_a_reconnect_is_no_fault() {
    let (victim, received) = (5u16, 97);
    let mut farm = Farm::new(8, Faults::default(), 16);
    farm.run(100);
    // The server has all of them, but the acknowledgements of the last three were lost with the connection.
    farm.restart_board(victim, received, 160);
    farm.run(160);
    let done = farm.finish();
    assert_eq!((done.complete, done.incomplete.len()), (160, 0));
    let builder = farm.server.receiver.report().builder;
    assert_eq!((builder.resent_after_reconnect, builder.duplicates, builder.strays()), (100 - received, 0, 0));
}

#[test]
fn a_server_clock_that_jumps_costs_at_most_the_events_that_are_open() {
    for jump_ps in [3_600_000_000_000_000, -50_000_000_000i64] {
        let mut farm = Farm::new(16, FAULTS, 13);
        farm.run(100);
        for _ in 0..31 {
            farm.tick(u64::MAX);
        }
        let open = farm.boards.iter().map(|board| board.next_event).max().unwrap();
        let before = farm.server.receiver.sink().next;
        farm.server_clock_ps += jump_ps;
        farm.run(open + 200);
        let done = farm.finish();
        assert_eq!(done.complete + done.incomplete.len() as u64, open + 200, "every event is handed out");
        for (event, missing) in &done.incomplete {
            assert!(jump_ps > 0 && (before..=open).contains(event) && !missing.is_empty(), "event {event}");
        }
    }
}

#[test]
fn clocks_of_boards_that_jump_together_cost_nothing() {
    let mut farm = Farm::new(16, FAULTS, 14);
    farm.run(100);
    for board in &mut farm.boards {
        board.clock_offset_ns = 10_000_000_000;
    }
    farm.run(300);
    let done = farm.finish();
    assert_eq!((done.complete, done.incomplete.len()), (300, 0));
}

#[test]
fn a_board_whose_clock_jumps_alone_is_identified_and_its_fragments_are_in_no_wrong_event() {
    let mut farm = Farm::new(16, FAULTS, 15);
    farm.run(100);
    farm.boards[7].clock_offset_ns = 10_000_000_000;
    farm.run(110);
    farm.boards[7].clock_offset_ns = 0;
    farm.run(300);
    farm.now += TICK * 100_000;
    let done = farm.finish();
    let incomplete: Vec<u64> = done.incomplete.iter().map(|(event, _)| *event).collect();
    assert_eq!(done.complete + incomplete.len() as u64, 300);
    assert!(incomplete.iter().all(|event| (100..110).contains(event)), "{incomplete:?}");
    let strays = farm.server.receiver.report().builder.strays_timestamp;
    assert!(strays >= 10 && incomplete.len() == 10, "{strays} strays");
}
