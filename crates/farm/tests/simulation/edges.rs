// SPDX-License-Identifier: Apache-2.0
//! Ends and begins of runs when the detector rests, and with boards that are off, send nothing or obey nobody.
//! Promise: they are made within a bounded time, and a board without which they are made is named.

use crate::board::address;
use crate::runs::{begin, is_whole, span};
use crate::world::{seeds, World};
use penstock_farm::{Mark, Notice, QueuePair};

/// Longer than a coordinator waits for a board at the begin or the end of a run.
const BOUND: u64 = 12_000;

/// A run in which the detector rests at this event, which all boards have reached.
fn resting(seed: u64, rests: u64) -> World {
    let mut world = World::new(seed, 3, 3);
    begin(&mut world);
    world.rests_at = Some(rests);
    world.until("queue pairs", |world| world.requesting.is_empty());
    world.until("rest", |world| world.boards.iter().all(|board| board.event == rests));
    world.run(200);
    world
}

fn end(world: &mut World, seed: u64) -> u64 {
    let begun = world.now;
    world.end();
    world.until("the end", |world| world.coordinator.as_ref().unwrap().has_ended());
    let took = world.now - begun;
    assert!(took < BOUND, "seed {seed}: {took} ms: {:#?}", world.notices);
    span(world).1.unwrap()
}

fn left_out(world: &World) -> Vec<&str> {
    let left_out = world.notices.iter().filter_map(|notice| match notice {
        Notice::BoardLeftOut { board, .. } => Some(board.as_str()),
        _ => None,
    });
    left_out.collect()
}

#[test]
fn a_run_ends_at_the_last_event_though_none_has_come_since_a_change() {
    for seed in seeds(20) {
        let rests = if seed % 4 == 3 { 0 } else { 300 };
        let mut world = resting(seed, rests);
        world.coordinator.as_mut().unwrap().take_out([2]);
        world.until("a change", |world| world.tables().live() == [0, 1]);
        world.run(300);
        let begun = world.now;
        let at = end(&mut world, seed);
        assert!(world.now - begun < 2000 && at == rests, "seed {seed}: {at} {rests} {:#?}", world.notices);
        assert!(!world.notices.iter().any(Notice::is_fault), "seed {seed}: {:#?}", world.notices);
        let is_given_up = |notice: &Notice| matches!(notice, Notice::Stuck { .. });
        assert!(!world.notices.iter().any(is_given_up), "seed {seed}: {:#?}", world.notices);
        is_whole(&world, seed);
        if rests == 0 {
            continue;
        }
        world.stop_coordinator();
        begin(&mut world);
        world.until("queue pairs", |world| world.requesting.is_empty());
        // One that has not begun ends too, where it would have begun.
        if seed % 2 == 0 {
            world.until("the begin", |world| world.log.iter().any(|change| change.mark == Mark::Begin));
            world.run(1000);
            assert_eq!(end(&mut world, seed), rests, "seed {seed}");
            world.stop_coordinator();
            begin(&mut world);
            world.until("queue pairs", |world| world.requesting.is_empty());
        }
        world.until("all tables", |world| world.coordinator.as_ref().unwrap().boards_in_force() == 3);
        world.run(1000);
        world.rests_at = None;
        world.until("events", |world| world.boards.iter().all(|board| board.event > rests + 100));
        assert_eq!(span(&world).0, rests, "seed {seed}");
        is_whole(&world, seed);
    }
}

#[test]
fn events_that_come_while_a_run_ends_at_rest_go_to_their_servers_or_wait_for_the_next_run() {
    let mut postponed = 0;
    for seed in seeds(60) {
        let mut world = resting(seed, 300);
        world.coordinator.as_mut().unwrap().take_out([2]);
        world.until("a change", |world| world.tables().live() == [0, 1]);
        let pause = 200 + world.random.below(900);
        world.run(pause);
        world.loss = world.random.below(60);
        world.end();
        let pause = world.random.below(60);
        world.run(pause);
        world.rests_at = None;
        world.until("the end", |world| world.coordinator.as_ref().unwrap().has_ended());
        let at = span(&world).1.unwrap();
        world.until("all events", |world| world.boards.iter().all(|board| board.event >= at));
        world.run(50);
        assert!(world.boards.iter().all(|board| board.event == at), "seed {seed}: {:#?}", world.notices);
        is_whole(&world, seed);
        postponed += u32::from(world.notices.iter().any(|notice| matches!(notice, Notice::Postponed { .. })));
    }
    assert!(postponed > 3, "{postponed} ends at rest were overtaken by events");
}

#[test]
fn a_run_ends_without_a_board_that_is_off_or_sends_nothing_and_names_it() {
    for seed in seeds(12) {
        let mut world = World::new(seed, 3, 2);
        begin(&mut world);
        world.until("events", |world| world.boards.iter().all(|board| board.event > 100));
        // Servers take it for present in all cases.
        match seed % 3 {
            // It has no power.
            0 => (world.boards[1].is_idle, world.boards[1].silent_until) = (true, u64::MAX),
            // Its slow control is cut, and it goes on.
            1 => world.boards[1].silent_until = u64::MAX,
            // It answers, and has no events any more: it has not reached the last change.
            _ => {
                world.boards[1].is_idle = true;
                world.coordinator.as_mut().unwrap().set_weight(0, 2);
                world.until("a change", |world| world.tables().live() == [0, 1, 0]);
            }
        }
        world.run(100);
        let at = end(&mut world, seed);
        assert_eq!(left_out(&world), ["board 1"], "seed {seed}: {:#?}", world.notices);
        world.until("all events", |world| [0, 2].iter().all(|board| world.boards[*board].event >= at));
        world.run(50);
        for board in [0, 2] {
            assert_eq!(world.boards[board].event, at, "seed {seed}: {:#?} {:?}", world.notices, world.log);
        }
        // The next run begins with the others, and with it once it is back.
        world.coordinator.as_mut().unwrap().leave(true);
        world.run(1000);
        world.notices.clear();
        begin(&mut world);
        world.until("events", |world| [0, 2].iter().all(|board| world.boards[*board].event > at + 100));
    }
}

#[test]
fn a_run_begins_without_a_board_that_ignores_all_commands() {
    for seed in seeds(6) {
        let mut world = World::new(seed, 3, 2);
        begin(&mut world);
        world.until("events", |world| world.boards.iter().all(|board| board.event > 100));
        world.stop_coordinator();
        world.boards[1].is_deaf = true;
        let begun = world.now;
        begin(&mut world);
        world.until("a begin", |world| world.log.iter().any(|change| change.mark == Mark::Begin));
        assert!(world.now - begun < BOUND, "seed {seed}");
        assert!(world.notices.iter().any(|notice| matches!(notice, Notice::BoardDefies { .. })), "seed {seed}");
        let first = span(&world).0;
        world.until("events", |world| [0, 2].iter().all(|board| world.boards[*board].event > first + 100));
        let went = world.boards[0].went[&first];
        assert_eq!(went, world.tables().server_of(first).map(address), "seed {seed}");
    }
}

#[test]
fn a_queue_pair_of_a_receiver_that_is_gone_hides_no_other_one_that_has_failed() {
    for seed in seeds(20) {
        let mut world = World::new(seed, 4, 1 + seed as u16 % 2);
        let last = seed as u16 % 2;
        begin(&mut world);
        world.until("events", |world| world.boards.iter().all(|board| board.event > 100));
        // A server's `recv` begins anew while there is no coordinator, and gets queue pairs beside those of before.
        world.kill_coordinator();
        let stale: Vec<QueuePair> =
            world.boards.iter().map(|board| *board.qps.iter().find(|qp| qp.peer == address(last)).unwrap()).collect();
        world.start_unaware(last);
        world.boards.iter_mut().for_each(|board| board.open(last, 5));
        world.requesting.clear();
        world.begins = false;
        world.start();
        world.run(2000);
        // Those of two boards fail. These boards have no messages in the ones of before, and have noticed nothing.
        world.cut(last, 0..2);
        for (board, stale) in world.boards.iter_mut().zip(stale).take(2) {
            let unused = board.qps.iter().position(|qp| qp.peer.is_unspecified()).unwrap();
            board.qps[unused] = stale;
        }
        world.requesting.extend((0..2).map(|board| (last, board, None)));
        let before: Vec<u64> = world.boards.iter().map(|board| board.event).collect();
        world.until("events", |world| {
            world.boards.iter().zip(&before).all(|(board, before)| board.event > before + 300)
        });
    }
}
