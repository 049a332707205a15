// SPDX-License-Identifier: Apache-2.0
//! The incidents of the field, one at a time, with the reports that must appear while an incident lasts.
//! The run recovers after each; the ledger accounts for every fragment.

use penstock_readout::session::{Opens, SessionReport};
use penstock_wire::Qpn;

use super::field::{span, Field};
use super::production::event_at;
use super::stranger;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// A board's number goes back to 0 in the middle of a run.
    StaleBoard,
    /// The same, and the server is restarted while it lasts: who decides with which event the run begins?
    StaleBoardAtStart,
    /// A board is up, answers keep-alives, and sends nothing for a while; then it sends what it held.
    SilentBoard,
    /// A board sends nothing when the server starts.
    SilentBoardAtStart,
    /// A board has no power for a while, and returns with another queue pair and the event that is due then.
    ReturningBoard,
    /// A second board has the address of another, and asks for its connection.
    Twin,
    /// A board names another source in its fragments.
    WrongSource,
    /// The server is killed; another one begins at another address, without the state of the first.
    KilledServer,
    /// Signals end the server in whatever state it is.
    SignalledServer,
    /// The disk is full for a while.
    FullDisk,
    /// The disk is full, and the server is killed before it has room.
    KilledOnFullDisk,
    /// Strangers send as much as the boards.
    Storm,
    /// A board's device refuses its data, and lets shorter packets through.
    RefusedFrames,
    /// The server's interface is replaced by one with another MAC.
    MovedMac,
}

pub const ALL: [Incident; 14] = {
    use Incident::*;
    [
        StaleBoard,
        StaleBoardAtStart,
        SilentBoard,
        SilentBoardAtStart,
        ReturningBoard,
        Twin,
        WrongSource,
        KilledServer,
        SignalledServer,
        FullDisk,
        KilledOnFullDisk,
        Storm,
        RefusedFrames,
        MovedMac,
    ]
};

/// Events between the numbers of a stale board and those of the run, at least, so that nobody takes them for late ones.
pub const FAR: u64 = 200;

fn is_left_out(report: &SessionReport, board: u16, why: &str) -> bool {
    report.boards[usize::from(board)].left_out.as_ref().is_some_and(|text| text.contains(why))
}

/// The board's number goes back to 0 with its power.
fn make_stale(field: &mut Field, board: u16) {
    let (now, server) = (field.now, field.server_ip());
    let front_end = &mut field.places[usize::from(board)].front_end;
    front_end.power_cycle(server);
    front_end.production().restart(0, now);
}

/// The board is given the number that is due, as by the run's next synchronisation.
fn put_in_step(field: &mut Field, board: u16) {
    let (now, server) = (field.now, field.server_ip());
    let front_end = &mut field.places[usize::from(board)].front_end;
    front_end.power_cycle(server);
    front_end.production().resume(now);
}

/// Lets it happen to a board, and ends it; the run may still be recovering.
pub fn happen(field: &mut Field, what: Incident, board: u16) {
    let begun = event_at(field.now);
    match what {
        Incident::StaleBoard => stale_board(field, board),
        Incident::StaleBoardAtStart => stale_board_at_start(field, board),
        Incident::SilentBoard => silent_board(field, board),
        Incident::SilentBoardAtStart => silent_board_at_start(field, board),
        Incident::ReturningBoard => returning_board(field, board),
        Incident::Twin => twin(field, board),
        Incident::WrongSource => wrong_source(field, board),
        Incident::KilledServer => field.kill_server(),
        Incident::SignalledServer => {
            let patience = field.random.below(400);
            field.signal_server(patience);
        }
        Incident::FullDisk => full_disk(field, 1000, |_| {}),
        Incident::KilledOnFullDisk => full_disk(field, 500, Field::kill_server),
        Incident::Storm => storm(field),
        Incident::RefusedFrames => refused_frames(field, board),
        Incident::MovedMac => moved_mac(field),
    }
    println!("event {begun}: {what:?} of board {board}, over at {} (event {})", field.now, event_at(field.now));
}

fn stale_board(field: &mut Field, board: u16) {
    make_stale(field, board);
    // One that was in step is waited for, as one that has been away, until several events have lacked it.
    field.until("stale board named", |report| {
        is_left_out(report, board, "it sends event") || is_left_out(report, board, "nothing")
    });
    goes_on_without(field, board);
    put_in_step(field, board);
}

fn stale_board_at_start(field: &mut Field, board: u16) {
    make_stale(field, board);
    field.kill_server();
    field.until("stale board named", |report| is_left_out(report, board, "it sends event"));
    goes_on_without(field, board);
    put_in_step(field, board);
}

fn silent_board(field: &mut Field, board: u16) {
    let at = usize::from(board);
    field.places[at].front_end.production().is_silent = true;
    field.until("silent board named", |report| is_left_out(report, board, "sent nothing"));
    goes_on_without(field, board);
    field.places[at].front_end.production().is_silent = false;
}

fn silent_board_at_start(field: &mut Field, board: u16) {
    field.places[usize::from(board)].front_end.production().is_silent = true;
    field.kill_server();
    field.until("silent board named", |report| is_left_out(report, board, "nothing"));
    goes_on_without(field, board);
    put_in_step(field, board);
}

fn returning_board(field: &mut Field, board: u16) {
    let at = usize::from(board);
    field.places[at].is_dark = true;
    let ticks = field.random.below(800);
    field.ticks(ticks);
    put_in_step(field, board);
    field.places[at].is_dark = false;
}

fn twin(field: &mut Field, board: u16) {
    let at = usize::from(board);
    let qpn = Qpn::new(field.random.next() as u32 | 2);
    for _ in 0..50 {
        let (ip, server) = (field.places[at].ip, field.server_ip());
        let parcel = stranger::twin(&mut field.random, ip, server, qpn);
        field.send(parcel);
        field.ticks(20);
    }
    let report = field.report();
    let lives = report.boards[at].lives;
    assert!(lives >= 1 && (field.places[at].opens == Opens::Board || report.cm_refused > 0), "{lives}");
}

fn wrong_source(field: &mut Field, board: u16) {
    let (at, boards) = (usize::from(board), field.boards());
    field.places[at].front_end.production().names = (board + 1) % boards;
    let counted = field.report().boards[at].events.fragments_wrong_source;
    field.until("wrong source counted for its board", |report| {
        report.boards[at].events.fragments_wrong_source >= counted + 5
    });
    put_in_step(field, board);
}

/// The disk is full for 100 ticks and up to `more`; `last` happens while it still is.
fn full_disk(field: &mut Field, more: u64, last: impl FnOnce(&mut Field)) {
    field.full.set(true);
    let ticks = 100 + field.random.below(more);
    field.ticks(ticks);
    last(field);
    field.full.set(false);
}

fn storm(field: &mut Field) {
    let usual = std::mem::replace(&mut field.strangers, 1_000_000);
    let ticks = 200 + field.random.below(800);
    field.ticks(ticks);
    field.strangers = usual;
}

fn refused_frames(field: &mut Field, board: u16) {
    let refused = field.wire.counts.refused;
    field.wire.refuses = Some(field.places[usize::from(board)].ip);
    let ticks = 100 + field.random.below(900);
    field.ticks(ticks);
    field.wire.refuses = None;
    assert!(field.wire.counts.refused > refused, "its packets were refused");
}

fn moved_mac(field: &mut Field) {
    let lives: Vec<u32> = field.report().boards.iter().map(|board| board.lives).collect();
    let misled = field.misled();
    field.move_mac();
    field.until("every board connected at the server's new MAC", |report| {
        report.boards.iter().zip(&lives).all(|(board, before)| board.lives > *before)
    });
    assert!(field.misled() > misled, "boards still sent to the former one");
}

/// The others are not braked: events that lack this board alone are stored as fast as they come.
fn goes_on_without(field: &mut Field, board: u16) {
    let of = |field: &mut Field| {
        let report = field.report();
        let counters = &report.readout.builder;
        (counters.events_complete + counters.events_incomplete, report.boards[usize::from(board)].events.events_missing)
    };
    let before = of(field);
    let events = 200;
    field.ticks(span(events));
    let after = of(field);
    let stored = after.0 - before.0;
    assert!(stored >= events * 3 / 4, "{stored} events in the time of {events} without board {board}");
    assert!(after.1 > before.1, "what the board lacks is counted for it");
}
