// SPDX-License-Identifier: Apache-2.0
//! Runs that follow each other on boards that live, servers that come back together, and a server that takes nothing.

use crate::board::{address, Board};
use crate::world::{seeds, World, SLOTS};
use penstock_farm::{Change, Mark, Notice, QueuePair, IN_ERROR};
use penstock_units::Time;

/// Where the events of the log's run begin and end.
pub fn span(world: &World) -> (u64, Option<u64>) {
    let of = |mark| world.log.iter().find(|change| change.mark == mark).map(|change| change.first);
    (of(Mark::Begin).unwrap_or(0), of(Mark::End))
}

/// Every event of the run has gone to its server, from every board.
pub fn is_whole(world: &World, seed: u64) {
    let (begin, end) = span(world);
    let end = end.unwrap_or_else(|| world.boards.iter().map(|board| board.event).min().unwrap());
    let tables = world.tables();
    for (at, board) in world.boards.iter().enumerate() {
        for event in begin..end {
            let went = board.went.get(&event).copied().flatten();
            assert_eq!(
                went,
                tables.server_of(event).map(address),
                "seed {seed}: board {at}: event {event} of {begin} to {end}: {:#?}",
                world.notices
            );
        }
    }
}

/// A new run, and new receivers.
pub fn begin(world: &mut World) {
    let servers = world.servers.len() as u16;
    world.log = vec![Change::new(0, (0..servers).collect())];
    world.begins = true;
    world.start();
    (0..servers).for_each(|server| world.start_server(server, None));
}

#[test]
fn a_run_begins_after_every_other_one_on_boards_that_live_and_every_event_of_it_is_whole() {
    for seed in seeds(40) {
        let mut world = World::new(seed, 3, 2);
        (world.loss, world.delay) = (world.random.below(60), 1 + world.random.below(20));
        let mut last_end = None;
        for run in 0..5 {
            begin(&mut world);
            world.until("events of the run", |world| {
                let (begin, _) = span(world);
                let has_begun = run == 0 || begin > 0;
                has_begun && world.boards.iter().all(|board| board.event > begin + 200)
            });
            let is_reported = world.notices.iter().any(|notice| matches!(notice, Notice::RunAbandoned { .. }));
            assert_eq!(is_reported, run > 0 && last_end.is_none(), "seed {seed}: {:#?}", world.notices);
            world.notices.retain(|notice| !matches!(notice, Notice::RunAbandoned { .. }));
            if let Some(end) = last_end {
                assert_eq!(span(&world).0, end, "seed {seed}: no event is lost between runs: {:#?}", world.notices);
            }
            assert!(!world.notices.iter().any(Notice::is_fault), "seed {seed}: {:#?}", world.notices);
            last_end = None;
            match world.random.below(3) {
                0 => {
                    is_whole(&world, seed);
                    world.stop_coordinator();
                }
                1 => {
                    is_whole(&world, seed);
                    world.kill_coordinator();
                }
                _ => {
                    world.end();
                    world.until("the end", |world| world.coordinator.as_ref().unwrap().has_ended());
                    let end = span(&world).1.unwrap();
                    world.until("all events", |world| world.boards.iter().all(|board| board.event >= end));
                    world.run(100);
                    let ends = world.boards.iter().map(|board| board.event);
                    assert!(
                        ends.clone().all(|event| event == end),
                        "seed {seed}: {end}: {:?}",
                        ends.collect::<Vec<_>>()
                    );
                    is_whole(&world, seed);
                    last_end = Some(end);
                    world.coordinator.as_mut().unwrap().leave(true);
                    world.until("boards", |world| world.has_left());
                    let free = world.boards.iter().all(|board| board.table.owner == 0 && !board.engaged);
                    assert!(free, "seed {seed}");
                    world.coordinator = None;
                }
            }
            // Receivers end, or are killed, or their queue pairs live on with nobody behind them.
            for server in 0..2 {
                if world.random.happens(700) {
                    world.kill_server(server);
                }
            }
            let pause = world.random.below(600);
            world.run(pause);
        }
    }
}

#[test]
fn a_run_begins_without_the_queue_pairs_of_receivers_that_were_killed() {
    for seed in seeds(20) {
        let mut world = World::new(seed, 3, 2);
        begin(&mut world);
        world.until("events", |world| world.boards.iter().all(|board| board.event > 100));
        // No board notices by itself that its servers are dead, and none has queue pairs for all that come.
        world.detection = u64::MAX;
        for _ in 0..4 {
            (0..2).for_each(|server| world.kill_server(server));
            world.kill_coordinator();
            let last = span(&world).0;
            world.log = vec![Change::new(0, vec![0, 1])];
            world.start();
            let pause = world.random.below(800);
            world.run(pause);
            (0..2).for_each(|server| world.start_unaware(server));
            world.until("events of the next run", |world| {
                let (begin, _) = span(world);
                begin > last && world.boards.iter().all(|board| board.event > begin + 50)
            });
            assert!(world.requesting.is_empty(), "seed {seed}: receivers without queue pairs: {:#?}", world.notices);
            for board in &world.boards {
                let newest =
                    |server| board.qps.iter().filter(|qp| qp.peer == address(server)).map(|qp| qp.number).max();
                let rows = board.table.rows().iter().map(|row| board.qps[usize::from(*row)].number);
                assert_eq!(rows.map(Some).collect::<Vec<_>>(), [newest(0), newest(1)], "seed {seed}: {:?}", board.qps);
            }
            let first = span(&world).0;
            assert!(world.notices.contains(&Notice::RunAbandoned { first }), "seed {seed}: {:#?}", world.notices);
            is_whole(&world, seed);
        }
    }
}

#[test]
fn a_detector_that_rests_does_not_keep_a_run_from_ending_or_the_next_one_from_beginning() {
    for seed in seeds(20) {
        let mut world = World::new(seed, 3, 2);
        begin(&mut world);
        world.until("events", |world| world.boards.iter().all(|board| board.event > 100));
        // Every board has sent the same events.
        let last = world.boards.iter().map(|board| board.event).max().unwrap() + 1;
        world.rests_at = Some(last);
        world.until("rest", |world| world.boards.iter().all(|board| board.event == last));
        world.run(100);
        if seed % 2 == 0 {
            world.end();
            world.until("the end", |world| world.coordinator.as_ref().unwrap().has_ended());
            assert_eq!(span(&world).1, Some(last));
        }
        is_whole(&world, seed);
        world.stop_coordinator();
        begin(&mut world);
        world.until("queue pairs", |world| world.requesting.is_empty());
        world.rests_at = None;
        world.until("events", |world| world.boards.iter().all(|board| board.event > last + 100));
        assert_eq!(span(&world).0, last, "seed {seed}");
        is_whole(&world, seed);
    }
}

#[test]
fn servers_that_come_back_together_get_their_own_events_whatever_their_order() {
    for seed in seeds(80) {
        let mut world = World::new(seed, 3, 3);
        world.detection = 1 + world.random.below(200);
        world.open_all();
        world.start();
        world.run(500);
        let two = world.random.happens(500);
        let killed: Vec<u16> = if two { vec![1, 2] } else { vec![0, 1, 2] };
        killed.iter().for_each(|server| world.kill_server(*server));
        let is_without = world.random.happens(300);
        if is_without {
            world.kill_coordinator();
        }
        for server in killed {
            let wait = world.random.below(4) * world.random.below(100);
            world.run(wait);
            world.start_server(server, None);
        }
        if is_without {
            world.run(1000);
            world.start();
        }
        world.run(6000);
        world.flows_to(seed, &[0, 1, 2]);
        world.check(seed);
    }
}

#[test]
fn without_a_server_boards_hold_their_events_for_the_next_one_and_lose_none() {
    for seed in seeds(20) {
        let mut world = World::new(seed, 3, 2);
        world.detection = 20;
        world.open_all();
        world.start();
        world.run(500);
        (0..2).for_each(|server| world.kill_server(server));
        world.until("no table", |world| world.tables().live().is_empty());
        world.run(300);
        let held: Vec<u64> = world.boards.iter().map(|board| board.event).collect();
        world.run(1000);
        assert_eq!(held, world.boards.iter().map(|board| board.event).collect::<Vec<_>>(), "seed {seed}");
        let lost: u64 = world.boards.iter().map(|board| board.flushed).sum();
        world.start_server(1, None);
        world.until("a table", |world| world.tables().live() == [1]);
        world.run(500);
        world.flows_to(seed, &[1]);
        assert_eq!(lost, world.boards.iter().map(|board| board.flushed).sum(), "seed {seed}: {:#?}", world.notices);
        world.check(seed);
    }
}

#[test]
fn a_board_that_alone_has_lost_all_servers_gets_them_back() {
    let mut world = World::new(7, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    for at in 0..2 {
        world.boards[2].qps[at].state = IN_ERROR;
    }
    world.requesting = vec![(1, 2, None), (0, 2, None)];
    world.run(3000);
    assert_eq!(world.tables().live(), [0, 1]);
    world.flows_to(7, &[0, 1]);
    world.check(7);
}

#[test]
fn a_board_that_notices_a_dead_server_long_before_others_loses_none_of_the_other_servers_events() {
    for seed in seeds(20) {
        let mut world = World::new(seed, 3, 2);
        world.open_all();
        world.start();
        world.run(500);
        // It was silent, so it seems to be cut off when its queue pair alone has failed.
        world.boards[0].silent_until = world.now + 1500;
        world.run(1600);
        let fails = |board: &mut Board| {
            board.qps.iter_mut().filter(|qp| qp.peer == address(1)).for_each(|qp| qp.state = IN_ERROR);
        };
        fails(&mut world.boards[0]);
        world.until("a board that holds its events", |world| world.boards[0].table.view().live == 0);
        world.run(50);
        world.boards[1..].iter_mut().for_each(fails);
        world.until("the table without the server", |world| world.tables().live() == [0]);
        world.flows_to(seed, &[0]);
        world.check(seed);
        let tables = world.tables();
        for (at, board) in world.boards.iter().enumerate() {
            let mut nowhere = board.went.iter().filter(|(_, server)| server.is_none()).map(|(event, _)| *event);
            let lost = nowhere.find(|event| tables.server_of(*event) == Some(0));
            assert_eq!(lost, None, "seed {seed}: of board {at}, {:#?}", world.notices);
        }
    }
}

#[test]
fn a_board_that_was_away_gets_a_server_back_that_it_has_lost_alone_and_the_table_stays() {
    for seed in seeds(20) {
        let mut world = World::new(seed, 3, 3);
        // A coordinator that has more patience has not missed it.
        world.board_patience = (seed % 2 == 0).then_some(Time::from_s(30));
        world.open_all();
        world.start();
        world.run(500);
        let (away, lost, changes) = (2, world.random.below(3), world.log.len());
        world.boards[away].silent_until = world.now + 1500;
        world.run(1600);
        let place = world.boards[away].qps.iter().position(|qp| qp.peer == address(lost as u16)).unwrap();
        world.boards[away].qps[place].state = IN_ERROR;
        world.requesting = vec![(lost as u16, away, None)];
        world.until("the queue pair", |world| world.requesting.is_empty());
        world.run(1000);
        assert_eq!(world.log.len(), changes, "seed {seed}: {:#?}", world.notices);
        world.flows_to(seed, &[0, 1, 2]);
        world.check(seed);
    }
}

#[test]
fn a_queue_pair_of_an_earlier_run_takes_no_server_out_while_the_server_cannot_reach_the_board() {
    for seed in seeds(20) {
        let mut world = World::new(seed, 3, 3);
        world.open_all();
        let (board, server) = (world.random.below(3) as usize, world.random.below(3) as u16);
        let earlier = world.boards[board].qps.last_mut().unwrap();
        *earlier = QueuePair { state: 0, peer: address(server), ..*earlier };
        world.start();
        world.run(500);
        let changes = world.log.len();
        // Its recv has closed its end, and names no queue pair of this board.
        world.servers[usize::from(server)].before = vec![0; 3];
        world.servers[usize::from(server)].before[board] = u32::MAX;
        world.run(1000);
        assert_eq!(world.log.len(), changes, "seed {seed}: {:#?}", world.notices);
        world.servers[usize::from(server)].before[board] = 0;
        world.flows_to(seed, &[0, 1, 2]);
        world.check(seed);
    }
}

#[test]
fn no_board_begins_a_run_before_the_others_have_their_queue_pairs() {
    for seed in seeds(10) {
        let mut world = World::new(seed, 3, 2);
        world.loss = world.random.below(60);
        begin(&mut world);
        let late: Vec<_> = world.requesting.iter().copied().filter(|(_, board, _)| *board == 2).collect();
        world.requesting.retain(|(_, board, _)| *board != 2);
        world.run(3000);
        let events: Vec<u64> = world.boards.iter().map(|board| board.event).collect();
        assert_eq!(events, [0; 3], "seed {seed}: servers give up what lacks the third board: {:#?}", world.notices);
        world.requesting.extend(late);
        world.until("events", |world| world.boards.iter().all(|board| board.event > 100));
        is_whole(&world, seed);
    }
}

#[test]
fn a_full_server_is_waited_for_where_no_other_one_has_room() {
    let mut world = World::new(9, 2, 2);
    world.open_all();
    world.start();
    world.run(500);
    world.servers[0].credits = 0;
    for board in &mut world.boards {
        board.room.insert(0, 3);
    }
    world.run(50);
    world.kill_server(1);
    world.cut(1, 0..2);
    world.until("a table without the other one", |world| world.tables().live() == [0]);
    world.run(5000);
    assert!(!world.notices.iter().any(|notice| matches!(notice, Notice::Stuck { .. })), "{:#?}", world.notices);
    world.free(0);
    world.run(500);
    world.flows_to(9, &[0]);
    world.check(9);
}

#[test]
fn a_server_that_was_suspended_before_it_has_read_a_change_gets_no_event_of_it() {
    for (seed, is_noticed) in seeds(40).map(|seed| (seed, seed % 2 == 0)) {
        let mut world = World::new(seed, 2, 2);
        world.open_all();
        world.start();
        world.run(500);
        world.coordinator.as_mut().unwrap().set_weight(0, 2);
        world.until("a change", |world| world.log.len() == 2);
        // Its socket holds what comes until it goes on; one board has found out that it does not answer, or none has.
        world.servers[1].is_running = false;
        if is_noticed {
            world.cut(1, 0..1);
        }
        world.until("a table without it", |world| world.tables().live() == [0]);
        world.run(1000);
        let first = world.log[1].first;
        for (at, board) in world.boards.iter().enumerate() {
            let late = board.went.range(first..).filter(|(_, went)| **went == Some(address(1))).map(|(event, _)| event);
            let late: Vec<_> = late.collect();
            assert!(late.is_empty(), "seed {seed}: board {at}: {late:?} from {first} on: {:#?}", world.notices);
        }
        world.servers[1].is_running = true;
        world.flows_to(seed, &[0]);
        world.check(seed);
    }
}

#[test]
fn a_server_that_takes_nothing_holds_up_no_change() {
    for (seed, is_configured) in seeds(40).map(|seed| (seed, seed % 2 == 0)) {
        let mut world = World::new(seed, 2, 2);
        world.open_all();
        world.start();
        world.run(500);
        // Its disk is full: it takes what is posted, and then nothing. One board has less room than the other.
        world.servers[1].credits = 1;
        for (at, board) in world.boards.iter_mut().enumerate() {
            board.room.insert(1, 600 + 40 * at as u64);
        }
        world.until("half of its part", |world| world.tables().live() == [0, 1, 0]);
        for board in &mut world.boards {
            board.room.insert(1, 3);
        }
        world.servers[1].credits = 0;
        if is_configured {
            world.run(100);
            world.coordinator.as_mut().unwrap().take_out([1]);
        }
        let begun = world.now;
        world.until("its end", |world| world.tables().live() == [0]);
        let took = world.now - begun;
        assert!(took < 5000, "seed {seed}: {took} ms: {:#?}", world.notices);
        // An event of before may wait for it still.
        world.run(1500);
        world.flows_to(seed, &[0]);
        world.check(seed);
        world.servers[1].credits = SLOTS;
    }
}
