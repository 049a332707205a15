// SPDX-License-Identifier: Apache-2.0
//! The session campaign: faults that the fault campaign of `crates/readout` does not cover. Boards that are stale,
//! silent, duplicated or return with other numbers, strangers that forge packets, servers that are killed and restart
//! elsewhere, disks that fill: one after the other, over a link with faults. Promise: every stored byte is what was
//! sent; no acknowledged fragment is dropped without being counted; each fault is counted and named; the run recovers
//! after each.
//! Each test prints its seed. `PENSTOCK_SEED`, `PENSTOCK_PACKETS` and, with the gateware, `PENSTOCK_INCIDENTS` override
//! the defaults (`make soak`).

#[path = "sessions/field.rs"]
mod field;
#[path = "sessions/gateware.rs"]
mod gateware;
#[path = "sessions/incident.rs"]
mod incident;
#[path = "sessions/ledger.rs"]
mod ledger;
#[path = "sessions/production.rs"]
mod production;
#[path = "sessions/software.rs"]
mod software;
#[path = "sessions/stranger.rs"]
mod stranger;
#[path = "sessions/wire.rs"]
mod wire;

use std::time::Instant;

use field::{board_ip, Field, FrontEnd};
use gateware::Gateware;
use incident::{happen, Incident, ALL, FAR};
use penstock_wire::Ipv4Addr;
use software::Software;
use wire::{Faults, Random};

const BOARDS: u16 = 24;
const FAULTS: Faults = Faults { loss: 1_000, duplicate: 1_000, reorder: 1_000, corrupt: 1_000 };

/// A number of the environment, or the usual one.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

fn software(board: u16, server: Option<Ipv4Addr>, seed: u64) -> Box<dyn FrontEnd> {
    Box::new(Software::new(board, board_ip(board), server, seed))
}

/// Rounds of an incident, of `first` and then of all in turn, and a calm stretch of `calm` events, while `goes_on` says
/// so of the packets and incidents so far. `board`: who it happens to.
fn campaign(
    mut field: Field,
    first: &[Incident],
    calm: u64,
    goes_on: impl Fn(u64, u64) -> bool,
    board: impl Fn(&mut Random) -> u16,
) {
    let begun = Instant::now();
    field.heal();
    field.calm(FAR);
    let (mut rounds, mut deck) = (0, first.to_vec());
    while goes_on(field.wire.counts.packets, rounds) {
        if deck.is_empty() {
            deck = ALL.to_vec();
        }
        // In an order of the seed's.
        let pick = field.random.below(deck.len() as u64) as usize;
        let board = board(&mut field.random);
        happen(&mut field, deck.swap_remove(pick), board);
        field.heal();
        field.calm(calm);
        rounds += 1;
    }
    let events = field.now.as_ps() / production::PERIOD.as_ps();
    let (ledger, wire) = field.finish();
    println!(
        "{rounds} incidents, {} of {events} events whole, {:?}, {:.1?}",
        ledger.complete(),
        wire.counts,
        begun.elapsed()
    );
}

#[test]
fn whatever_boards_strangers_and_servers_do_nothing_acknowledged_is_lost_unseen_and_the_run_is_whole_again() {
    let seed = setting("PENSTOCK_SEED", 1);
    let most = setting("PENSTOCK_PACKETS", 1_000_000);
    let board = |random: &mut Random| random.below(u64::from(BOARDS)) as u16;
    campaign(Field::new(BOARDS, FAULTS, seed, software), &[], 200, |packets, _| packets < most, board);
}

#[test]
fn the_same_where_one_board_of_four_is_the_gateware() {
    let seed = setting("PENSTOCK_SEED", 1);
    let either = |board: u16, server: Option<Ipv4Addr>, seed| match board {
        0 => Box::new(Gateware::new(board, board_ip(board))) as Box<dyn FrontEnd>,
        _ => software(board, server, seed),
    };
    let mut field = Field::new(4, FAULTS, seed, either);
    field.is_gateware_there = true;
    let first = [Incident::KilledServer, Incident::ReturningBoard, Incident::SilentBoard];
    let most = setting("PENSTOCK_INCIDENTS", first.len() as u64);
    campaign(field, &first, 50, |_, incidents| incidents < most, |random| (random.below(5) as u16).saturating_sub(1));
}
