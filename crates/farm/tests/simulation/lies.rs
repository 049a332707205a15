// SPDX-License-Identifier: Apache-2.0
//! A coordinator that is lied to, by servers and by boards: each lie is counted and has a known outcome, and the events
//! of honest boards go on to honest servers.

use crate::board::address;
use crate::world::{World, OWNER};
use penstock_farm::{
    Action, BoardView, Coordinator, FarmConfig, Notice, Refusals, Request, ServerConfig, ServerView, Tables,
};
use penstock_units::Time;

fn flowing(seed: u64) -> World {
    let mut world = World::new(seed, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    world
}

fn refusals(world: &World) -> Refusals {
    world.coordinator.as_ref().unwrap().refusals()
}

/// Server 1 reports this instead of the truth for so long, every 100 ms.
fn lies(world: &mut World, ms: u64, mut lie: impl FnMut(ServerView) -> Option<ServerView>) {
    world.servers[1].is_running = false;
    for _ in 0..ms / 100 {
        world.run(100);
        let (view, now) = (world.heartbeat(1), Time::from_ms(world.now));
        world.coordinator.as_mut().unwrap().handle_server(now, 1, lie(view));
    }
}

#[test]
fn a_heartbeat_of_another_server_run_or_time_or_none_at_all_is_counted_and_is_no_sign_of_life() {
    type Lie = fn(ServerView) -> Option<ServerView>;
    type Count = fn(Refusals) -> u64;
    let all: [(Lie, Count); 6] = [
        (|_| None, |refusals| refusals.garbled),
        (|view| Some(ServerView { server: Some(0), ..view }), |refusals| refusals.other_server),
        (|view| Some(ServerView { server: None, ..view }), |refusals| refusals.other_server),
        (|view| Some(ServerView { tables_digest: view.tables_digest ^ 1, ..view }), |refusals| refusals.other_run),
        (|view| Some(ServerView { tables_read: 9, ..view }), |refusals| refusals.other_run),
        (|view| Some(ServerView { turns: 1, ..view }), |refusals| refusals.stale),
    ];
    for (lie, count) in all {
        let mut world = flowing(1);
        lies(&mut world, 1500, lie);
        assert_eq!(world.tables().live(), [0, 1], "patience");
        assert!(count(refusals(&world)) >= 10, "{:?}", refusals(&world));
        lies(&mut world, 1500, lie);
        world.flows_to(1, &[0]);
        let last_command =
            world.notices.iter().filter(|notice| matches!(notice, Notice::HeartbeatRefused { server: 1, .. }));
        assert!(last_command.count() <= 2, "once for each table: {:#?}", world.notices);
        world.servers[1].is_running = true;
        world.run(1500);
        world.flows_to(1, &[0, 1]);
        world.check(1);
    }
}

#[test]
fn a_heartbeat_that_is_repeated_is_not_one_more() {
    let mut world = flowing(2);
    let last = world.heartbeat(1);
    lies(&mut world, 3000, |_| Some(last.clone()));
    world.flows_to(2, &[0]);
    assert_eq!(refusals(&world), Refusals::default(), "an answer that comes twice is no lie");
    // Those of a process that is no more, though the server is dead.
    lies(&mut world, 6000, |_| Some(ServerView { started: 0, turns: 3, ..last.clone() }));
    world.flows_to(2, &[0]);
}

#[test]
fn a_recv_of_another_run_is_taken_out_even_if_there_has_never_been_a_heartbeat() {
    let mut world = World::new(3, 3, 2);
    world.open_all();
    world.start();
    lies(&mut world, 3000, |view| Some(ServerView { tables_digest: 0, ..view }));
    world.flows_to(3, &[0]);
    let dead = Notice::ServerDead { server: 1, why: "its heartbeat is that of another server or run" };
    assert!(world.notices.contains(&dead), "{:#?}", world.notices);
    world.check(3);
}

#[test]
fn a_board_that_answers_with_nonsense_counts_as_silent_and_holds_up_no_event() {
    let all: [fn(&mut BoardView); 5] = [
        |view| view.next_event = u64::MAX,
        |view| view.next_event += 1 << 50,
        |view| view.next_event = 3,
        |view| view.live = 127,
        |view| view.announced = u64::MAX,
    ];
    for lie in all {
        let mut world = flowing(4);
        world.lies[2] = Some(lie);
        world.run(600);
        let last_command =
            |world: &World, is: fn(&Notice) -> bool| world.notices.iter().filter(|notice| is(notice)).count();
        assert!(last_command(&world, |notice| matches!(notice, Notice::AnswerRefused { .. })) > 0);
        assert!(last_command(&world, |notice| matches!(notice, Notice::BoardMissing { .. })) > 0);
        assert!(refusals(&world).boards > 10);
        world.kill_server(1);
        world.run(1000);
        assert_eq!(world.log.len(), 1, "no change is made on its word");
        world.lies[2] = None;
        world.run(1000);
        world.flows_to(4, &[0]);
        assert!(world.log[1].first < 10_000, "{:?}", world.log);
        world.check(4);
    }
}

#[test]
fn a_board_that_is_always_busy_has_the_change_postponed_and_the_others_go_on() {
    let mut world = flowing(5);
    world.lies[2] = Some(|view| (view.busy, view.prepared) = (view.busy || view.prepared, false));
    world.servers[1].is_running = false; // its boards reach it still
    world.run(1000);
    let held = |world: &World| world.boards[..2].iter().filter(|board| board.table.view().prepared).count();
    let mut longest = 0;
    let mut since = world.now;
    for _ in 0..4000 {
        world.step(1);
        since = if held(&world) > 0 { since } else { world.now };
        longest = longest.max(world.now - since);
    }
    assert!((400..1500).contains(&longest), "events are held for {longest} ms");
    assert!(world.notices.iter().any(|notice| matches!(notice, Notice::Postponed { .. })), "{:#?}", world.notices);
    let defies = |notice: &&Notice| matches!(notice, Notice::BoardDefies { .. });
    assert_eq!(world.notices.iter().filter(defies).count(), 1, "{:#?}", world.notices);
    world.lies[2] = None;
    world.run(1000);
    world.flows_to(5, &[0]);
    world.check(5);
}

#[test]
fn a_board_that_reports_events_held_and_has_sent_one_has_the_change_postponed() {
    let mut world = flowing(6);
    world.lies[0] = Some(|view| view.next_event += if view.prepared { 1000 } else { 0 });
    world.kill_server(1);
    world.run(1000);
    let holds =
        |notice: &Notice| matches!(notice, Notice::Postponed { why, .. } if why.contains("says that it holds it"));
    assert!(world.log.len() == 1 && world.notices.iter().any(holds), "{:#?}", world.notices);
    world.lies[0] = None;
    // Its next events are below one that it has reported to have sent.
    world.kill_coordinator();
    world.start();
    world.run(1500);
    world.flows_to(6, &[0]);
    world.check(6);
}

#[test]
fn a_board_that_has_other_rows_than_were_written_has_the_change_postponed() {
    let mut world = flowing(7);
    world.lies[0] = Some(|view| {
        if view.prepared {
            view.rows = vec![5];
        }
    });
    world.kill_server(1);
    world.run(1000);
    let names_other_rows =
        |notice: &Notice| matches!(notice, Notice::Postponed { why, .. } if why.contains("other rows"));
    assert!(world.log.len() == 1 && world.notices.iter().any(names_other_rows), "{:#?}", world.notices);
    world.lies[0] = None;
    world.run(1500);
    world.flows_to(7, &[0]);
    world.check(7);
}

#[test]
fn a_board_that_ignores_its_commands_holds_its_own_events_and_no_other_change() {
    let mut world = flowing(8);
    world.kill_server(1);
    while world.log.len() == 1 {
        world.step(1);
    }
    world.boards[2].is_deaf = true;
    let first = world.log[1].first;
    world.run(1500);
    let defies = |notice: &&Notice| matches!(notice, Notice::BoardDefies { .. });
    assert_eq!(world.notices.iter().filter(defies).count(), 1, "{:#?}", world.notices);
    assert_eq!(world.coordinator.as_ref().unwrap().boards_defiant(), 1);
    world.revive_server(1);
    world.run(2000);
    assert_eq!(world.tables().live(), [0, 1], "{:#?}", world.notices);
    assert!(world.boards[2].event <= first && world.boards[0].event > first + 1000);
    world.boards[2].is_deaf = false;
    world.run(500);
    world.flows_to(8, &[0, 1]);
    assert!(world.notices.contains(&Notice::BoardObeys { board: "board 2".into() }));
    assert!(world.notices.len() < 40, "{:#?}", world.notices);
    world.check(8);
}

#[test]
fn a_board_that_never_takes_its_table_is_reported_and_the_others_change() {
    let mut world = World::new(9, 3, 2);
    world.open_all();
    world.boards[1].is_deaf = true;
    world.start();
    world.run(1500);
    assert!(world.notices.iter().any(|notice| matches!(notice, Notice::BoardDefies { .. })), "{:#?}", world.notices);
    world.kill_server(1);
    world.run(1000);
    assert_eq!(world.tables().live(), [0], "{:#?}", world.notices);
    assert!(world.boards[0].event > 1000 && world.boards[1].went.values().all(Option::is_none));
}

#[test]
fn a_coordinator_that_takes_over_claims_again_until_a_claim_has_succeeded() {
    let server = |number| ServerConfig { number, address: address(number), has_heartbeat: false, weight: 1 };
    let config =
        FarmConfig { take_over: true, ..FarmConfig::new(9, vec!["board 0".into()], (0..2).map(server).collect()) };
    let mut board = crate::board::Board::new(0);
    board.table.owner = OWNER;
    let mut coordinator = Coordinator::new(config, Tables::new("run".into(), vec![0, 1]), Time::ZERO);
    let mut now = Time::ZERO;
    let next_request = |coordinator: &mut Coordinator, now: Time| {
        coordinator.handle_timeout(now);
        let actions: Vec<Action> = std::iter::from_fn(|| coordinator.poll()).collect();
        actions.into_iter().find_map(|action| match action {
            Action::Request { request, .. } => Some(request),
            _ => None,
        })
    };
    // Every claim gets lost, and the other coordinator has the board still.
    for _ in 0..5 {
        now += Time::from_ms(100);
        assert_eq!(next_request(&mut coordinator, now), Some(Request::Look));
        coordinator.handle_board(now, 0, Ok(board.carry_out(9, &Request::Look)));
        assert_eq!(next_request(&mut coordinator, now), Some(Request::Claim));
        coordinator.handle_board(now, 0, Err("no answer".into()));
        assert!(!coordinator.is_over());
    }
    now += Time::from_ms(100);
    next_request(&mut coordinator, now);
    coordinator.handle_board(now, 0, Ok(board.carry_out(9, &Request::Claim)));
    next_request(&mut coordinator, now);
    // It has had it: who takes it now ends this one.
    board.table.owner = OWNER;
    coordinator.handle_board(now, 0, Ok(board.carry_out(9, &Request::Look)));
    assert!(coordinator.is_over());
}
