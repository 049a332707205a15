// SPDX-License-Identifier: Apache-2.0
//! The coordinator with lost and delayed messages, boards that reset and vanish, servers that die and return, and with
//! its own death. One seed gives one run; the seed of a failing run is printed.

mod board;
mod campaign;
mod edges;
mod lies;
mod load;
mod runs;
mod world;

use board::{address, Board, Random};
use penstock_farm::{Action, Coordinator, FarmConfig, Mark, Notice, Request, ServerConfig, Tables, IN_ERROR};
use penstock_units::Time;
use world::{World, OWNER};

#[test]
fn a_dead_server_is_taken_out_at_one_event_and_comes_back() {
    for seed in 0..20 {
        let mut world = World::new(seed, 3, 2);
        world.open_all();
        world.start();
        world.run(500);
        world.kill_server(1);
        world.run(2000);
        world.flows_to(seed, &[0]);
        let lost: Vec<u64> = world.boards.iter().map(|board| board.flushed).collect();
        world.revive_server(1);
        world.run(2000);
        world.flows_to(seed, &[0, 1]);
        world.check(seed);
        assert_eq!(lost, world.boards.iter().map(|board| board.flushed).collect::<Vec<_>>(), "seed {seed}");
        assert!(!world.notices.iter().any(Notice::is_fault), "seed {seed}: {:?}", world.notices);
    }
}

#[test]
fn whatever_is_lost_delayed_reset_or_killed_no_event_is_split() {
    for seed in 0..60 {
        let mut world = World::new(seed, 3, 3);
        (world.loss, world.delay) = (world.random.below(150), 1 + world.random.below(40));
        world.open_all();
        world.start();
        world.run(400);
        for _ in 0..12 {
            match world.random.below(7) {
                0 => world.kill_server(1),
                1 => world.revive_server(1),
                2 => world.kill_server(2),
                3 => world.revive_server(2),
                4 => {
                    world.dies_with_log = world.random.happens(500);
                    if !world.dies_with_log {
                        world.kill_coordinator();
                    }
                }
                5 => {
                    let at = world.random.below(3) as usize;
                    world.reset_board(at);
                    world.run(20);
                    for server in (0..3).filter(|server| world.servers[*server].is_alive) {
                        world.boards[at].open(server as u16, server);
                    }
                }
                _ => {
                    let (at, ms) = (world.random.below(3) as usize, world.random.below(900));
                    // Its slow control alone is cut off: it goes on sending.
                    world.boards[at].silent_until = world.now + ms;
                }
            }
            let wait = world.random.below(900);
            world.run(wait);
            if world.coordinator.is_none() {
                world.start();
            }
        }
        world.loss = 0;
        world.dies_with_log = false;
        // They ask again for a queue pair that the coordinator fails, and are then given less for up to half a minute.
        world.repeats_requests = true;
        for server in 0..3 {
            world.revive_server(server);
        }
        if world.coordinator.is_none() {
            world.start();
        }
        world.run(15_000);
        for _ in 0..4 {
            if world.tables().live() != [0, 1, 2] {
                world.run(10_000);
            }
        }
        world.flows_to(seed, &[0, 1, 2]);
        world.check(seed);
    }
}

#[test]
fn a_second_coordinator_is_refused_and_does_nothing_and_one_that_takes_over_stops_the_first() {
    let mut world = World::new(1, 2, 2);
    world.open_all();
    world.start();
    world.run(300);
    let config = |owner, take_over| FarmConfig {
        take_over,
        ..FarmConfig::new(
            owner,
            vec!["board 0".into(), "board 1".into()],
            (0..2)
                .map(|number| ServerConfig { number, address: address(number), has_heartbeat: false, weight: 1 })
                .collect(),
        )
    };
    let now = Time::from_ms(world.now);
    let mut second = Coordinator::new(config(9, false), world.tables(), now);
    let view = world.boards[0].carry_out(9, &Request::Look);
    second.handle_board(now, 0, Ok(view.clone()));
    assert!(second.is_over());
    let mut owners = Vec::new();
    while let Some(action) = second.poll() {
        match action {
            Action::Notify(Notice::Taken { owner, .. }) => owners.push(owner),
            Action::Request { request, .. } => assert_eq!(request, Request::Look),
            _ => {}
        }
    }
    assert_eq!(owners, [OWNER]);

    let mut third = Coordinator::new(config(9, true), world.tables(), now);
    third.handle_board(now, 0, Ok(view));
    let claims =
        std::iter::from_fn(|| third.poll()).any(|a| matches!(a, Action::Request { request: Request::Claim, .. }));
    assert!(claims && !third.is_over());
    world.boards[0].carry_out(9, &Request::Claim);
    world.run(100);
    assert!(world.coordinator.as_ref().unwrap().is_over());
    assert!(world.notices.contains(&Notice::Taken { board: "board 0".into(), owner: 9 }));
}

#[test]
fn a_coordinator_that_follows_within_a_change_does_not_wait_for_a_heartbeat_of_the_dead_server() {
    let mut followed = 0;
    for seed in 0..20 {
        let mut world = World::new(seed, 3, 2);
        world.open_all();
        world.start();
        world.run(500);
        world.kill_server(1);
        world.dies_with_log = true;
        while world.coordinator.is_some() {
            world.step(1);
        }
        if world.log.len() == 1 {
            continue; // it died before the change was written
        }
        followed += 1;
        world.start();
        let begun = world.now;
        while !world.notices.iter().any(|notice| matches!(notice, Notice::Done { first, .. } if *first > 0)) {
            world.step(1);
            assert!(world.now - begun < 1000, "seed {seed}: {:?}", world.notices);
        }
        world.flows_to(seed, &[0]);
        world.check(seed);
    }
    assert!(followed > 5);
}

/// Two coordinators begin at once, and a third takes over; returns how many of the two have ended before it.
fn race(seed: u64) -> usize {
    const OWNERS: [u16; 3] = [9, OWNER, 8];
    let mut random = Random(seed);
    let mut boards = [Board::new(0), Board::new(0), Board::new(0)];
    boards.iter_mut().for_each(|board| (0..2).for_each(|server| board.open(server, server.into())));
    let tables = Tables::new("run".into(), vec![0, 1]);
    let begun = |who: usize, now| {
        let names = (0..3).map(|at| format!("board {at}")).collect();
        let server = |number| ServerConfig { number, address: address(number), has_heartbeat: false, weight: 1 };
        let config = FarmConfig {
            begin: who < 2,
            take_over: who == 2,
            ..FarmConfig::new(OWNERS[who], names, (0..2).map(server).collect())
        };
        Coordinator::new(config, tables.clone(), now)
    };
    let mut coordinators = vec![begun(0, Time::ZERO), begun(1, Time::ZERO)];
    let (mut first, mut ended) = (0, 0);
    let (mut taken, mut requests, mut answers) = ([0; 3], vec![], vec![]);
    for ms in 1..2000 {
        let now = Time::from_ms(ms);
        if ms == 1000 {
            ended = coordinators.iter().filter(|coordinator| coordinator.is_over()).count();
            coordinators.push(begun(2, now));
        }
        for (who, coordinator) in coordinators.iter_mut().enumerate() {
            while let Some(action) = coordinator.poll() {
                match action {
                    Action::Request { board, request } => requests.push((who, board, request)),
                    Action::Notify(notice) => taken[who] += u32::from(matches!(notice, Notice::Taken { .. })),
                    // The other one had set boards up already.
                    Action::Log(change) => {
                        assert_eq!(change.mark, Mark::Begin, "seed {seed}: {change:?}");
                        first = first.max(change.first);
                        coordinator.handle_logged(now, Ok(()));
                    }
                }
            }
        }
        for _ in 0..random.below(4) {
            if !requests.is_empty() {
                let (who, at, request) = requests.swap_remove(random.below(requests.len() as u64) as usize);
                answers.push((who, at, boards[at].carry_out(OWNERS[who], &request)));
            }
            if !answers.is_empty() && random.happens(600) {
                let (who, at, view) = answers.swap_remove(random.below(answers.len() as u64) as usize);
                coordinators[who].handle_board(now, at, Ok(view));
            }
        }
        coordinators.iter_mut().for_each(|coordinator| coordinator.handle_timeout(now));
        boards.iter_mut().for_each(|board| _ = board.edited.is_empty() || board.send());
    }
    assert!(coordinators.iter().map(Coordinator::is_over).eq([true, true, false]), "seed {seed}");
    assert_eq!(taken, [1, 1, 0], "seed {seed}: each that ended has said so once");
    assert_eq!(coordinators[2].boards_in_force(), boards.len(), "seed {seed}");
    for board in &boards {
        assert!(board.table.owner == OWNERS[2] && board.event > 500, "seed {seed}: {} events", board.event);
        let is_right = |(event, server): (&u64, &Option<_>)| match server {
            Some(server) => Some(*server) == tables.server_of(*event).map(address),
            None => *event < first,
        };
        assert!(board.went.iter().all(is_right), "seed {seed}: an event went elsewhere");
    }
    ended
}

#[test]
fn of_two_that_begin_at_once_one_or_both_end_and_one_that_takes_over_has_all_boards_whatever_the_order() {
    let (mut one, mut neither) = (0, 0);
    for seed in 0..200 {
        match race(seed) {
            0 => panic!("seed {seed}: both go on"),
            1 => one += 1,
            _ => neither += 1,
        }
    }
    assert!(one > 20 && neither > 20, "both ways are met: {one}, {neither}");
}

#[test]
fn a_heartbeat_of_a_server_that_the_boards_cannot_reach_keeps_nobody_in_the_table() {
    let mut world = World::new(3, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    for board in &mut world.boards {
        board.qps[1].state = IN_ERROR;
    }
    world.run(800);
    assert!(world.servers[1].is_alive, "its heartbeat goes on");
    world.flows_to(3, &[0]);
    world.check(3);
}

#[test]
fn a_server_without_a_heartbeat_is_taken_out_after_patience_and_one_board_without_servers_has_no_vote() {
    let mut world = World::new(4, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    world.servers[1].is_running = false; // its process hangs, its queue pairs live
    world.run(1500);
    assert_eq!(world.tables().live(), [0, 1], "patience");
    world.run(1500);
    world.flows_to(4, &[0]);
    world.servers[1].is_running = true;
    world.run(1500);
    world.flows_to(4, &[0, 1]);
    for at in 0..2 {
        world.boards[2].qps[at].state = IN_ERROR;
    }
    world.run(1500);
    assert_eq!(world.tables().live(), [0, 1]);
    assert!(world.notices.contains(&Notice::BoardCutOff { board: "board 2".into() }));
    world.check(4);
}

#[test]
fn a_server_that_does_not_read_the_log_is_reported_and_holds_events_no_longer_than_patience() {
    let mut world = World::new(5, 2, 3);
    world.open_all();
    world.start();
    world.run(500);
    world.kill_server(1);
    world.run(100);
    world.servers[2].is_running = false;
    world.servers[2].tables_read = 1;
    for _ in 0..60 {
        let now = Time::from_ms(world.now);
        let behind = world.heartbeat(2);
        world.coordinator.as_mut().unwrap().handle_server(now, 2, Some(behind));
        world.run(100);
    }
    let unread = |notice: &Notice| matches!(notice, Notice::Unread { server: 2, .. });
    assert_eq!(world.notices.iter().filter(|notice| unread(notice)).count(), 1, "{:#?}", world.notices);
    world.check(5);
}

#[test]
fn a_silent_board_holds_up_no_change_and_is_set_up_anew_when_it_is_back() {
    let mut world = World::new(6, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    world.boards[2].is_off = true;
    world.run(100);
    world.kill_server(1);
    world.run(2500);
    assert_eq!(world.tables().live(), [0], "{:#?}", world.notices);
    assert!(world.notices.contains(&Notice::BoardGone { board: "board 2".into() }));
    world.reset_board(2);
    world.boards[2].event = world.boards[0].event;
    let skipped: Vec<u64> = (0..world.boards[2].event).filter(|e| !world.boards[2].went.contains_key(e)).collect();
    world.boards[2].went.extend(skipped.into_iter().map(|event| (event, None)));
    world.run(20);
    world.boards[2].open(0, 0);
    world.run(500);
    world.flows_to(6, &[0]);
    world.check(6);
}

#[test]
fn a_prepared_board_that_vanishes_is_confirmed_when_it_is_back_and_holds_its_events_until_then() {
    for seed in 0..20 {
        let mut world = World::new(100 + seed, 3, 2);
        world.open_all();
        world.start();
        world.run(500);
        world.kill_server(1);
        while world.log.len() == 1 {
            world.run(1);
        }
        world.boards[1].silent_until = world.now + 1500;
        let first = world.log[1].first;
        world.run(1200);
        assert!(world.boards[1].event <= first && world.boards[1].table.view().held, "it waits at the change");
        assert!(world.boards[0].event > first, "the others go on");
        world.run(1500);
        world.flows_to(seed, &[0]);
        world.check(seed);
    }
}
