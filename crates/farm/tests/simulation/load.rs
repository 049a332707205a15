// SPDX-License-Identifier: Apache-2.0
//! Weights, and servers that cannot keep up.

use crate::board::address;
use crate::world::{World, SLOTS};
use penstock_farm::{first_table, Notice};

/// Runs until the table is this one, within so many milliseconds; how long it took.
fn until_table(world: &mut World, live: &[u16], most: u64) -> u64 {
    let begun = world.now;
    while world.coordinator.as_ref().unwrap().log().live() != live {
        world.step(1);
        let log = &world.log;
        assert!(world.now - begun <= most, "{live:?} is wanted: {log:?}: {:#?}", world.notices);
    }
    world.now - begun
}

/// A world whose servers have these weights, in which events flow.
fn flowing(seed: u64, weights: &[u8]) -> World {
    let mut world = World::new(seed, 2, weights.len() as u16);
    world.weights = weights.to_vec();
    world.log[0].live = first_table((0..).zip(weights.iter().copied()));
    world.open_all();
    world.start();
    world.run(500);
    world
}

#[test]
fn a_server_of_twice_the_weight_gets_twice_the_events_and_a_dead_one_leaves_its_part_to_the_others() {
    let mut world = flowing(1, &[2, 1, 1]);
    world.flows_to(1, &[0, 1, 2, 0]);
    for board in &world.boards {
        let went = |server| board.went.range(..400).filter(|(_, to)| **to == Some(address(server))).count();
        assert_eq!([0, 1, 2].map(went), [200, 100, 100]);
    }
    world.kill_server(1);
    until_table(&mut world, &[0, 2, 0], 1000);
    world.flows_to(1, &[0, 2, 0]);
    world.revive_server(1);
    until_table(&mut world, &[0, 1, 2, 0], 2000);
    world.coordinator.as_mut().unwrap().set_weight(2, 2);
    until_table(&mut world, &[0, 2, 1, 0, 2], 1000);
    world.flows_to(1, &[0, 2, 1, 0, 2]);
    world.check(1);
    assert!(!world.notices.iter().any(Notice::is_fault), "{:?}", world.notices);
}

#[test]
fn a_server_whose_credits_are_used_up_gets_less_then_nothing_and_later_all_again() {
    let mut world = flowing(2, &[1, 1]);
    world.servers[1].credits = 1;
    for table in [&[0, 1, 0][..], &[0, 0, 1, 0, 0], &[0]] {
        let took = until_table(&mut world, table, 2000);
        assert!(took > 900, "{table:?} after {took} ms");
    }
    world.flows_to(2, &[0]);
    world.run(3000);
    world.servers[1].credits = SLOTS;
    // It has been full until now.
    for (table, least) in [(&[0, 0, 1, 0, 0][..], 9000), (&[0, 1, 0], 9000), (&[0, 1], 9000)] {
        let took = until_table(&mut world, table, 11_000);
        assert!(took > least, "{table:?} after {took} ms");
    }
    world.check(2);
    let quarters = world.notices.iter().filter_map(|notice| match notice {
        Notice::ServerFull { server: 1, quarters } | Notice::ServerFree { server: 1, quarters } => Some(*quarters),
        _ => None,
    });
    assert_eq!(quarters.collect::<Vec<_>>(), [2, 1, 0, 1, 2, 4]);
}

#[test]
fn what_a_server_was_given_less_of_outlives_the_coordinator() {
    let mut world = flowing(3, &[2, 1]);
    world.flows_to(3, &[0, 1, 0]);
    world.servers[0].credits = 0;
    until_table(&mut world, &[0, 1], 2000);
    world.servers[0].credits = SLOTS / 4; // neither full nor with room
    world.kill_coordinator();
    world.start();
    world.run(5000);
    world.flows_to(3, &[0, 1]);
    until_table(&mut world, &[0, 1, 0], 10_000);
    world.check(3);
}

#[test]
fn when_all_are_full_or_one_is_only_for_a_moment_nothing_changes() {
    let mut world = flowing(4, &[1, 1]);
    world.servers.iter_mut().for_each(|server| server.credits = 0);
    world.run(4000);
    world.servers[0].credits = SLOTS / 4;
    world.run(4000);
    world.servers.iter_mut().for_each(|server| server.credits = SLOTS);
    world.run(1000);
    for _ in 0..10 {
        (world.servers[0].credits, world.servers[1].credits) = (SLOTS, 0);
        world.run(700);
        world.servers[1].credits = SLOTS;
        world.run(700);
    }
    assert_eq!(world.log.len(), 1, "{:#?}", world.notices);
    world.flows_to(4, &[0, 1]);
}

#[test]
fn a_server_that_announces_credits_and_refuses_messages_gets_less() {
    let mut world = flowing(5, &[1, 1]);
    let refuse = |world: &mut World, boards: usize| {
        for _ in 0..4000 {
            for board in &mut world.boards[..boards] {
                board.qps[1].rnr_naks = board.qps[1].rnr_naks.wrapping_add(1);
            }
            world.step(1);
        }
    };
    refuse(&mut world, 1);
    assert_eq!(world.tables().live(), [0, 1], "one board alone is ahead of the others");
    refuse(&mut world, 2);
    assert_eq!(world.tables().live(), [0], "{:#?}", world.notices);
    // Better a slow server than none.
    world.kill_server(0);
    until_table(&mut world, &[1], 2000);
    world.flows_to(5, &[1]);
    world.check(5);
}
