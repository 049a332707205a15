// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl watch`: polls registers and prints a line for each change.
//! Promise: every change between two polls is shown once, with the time. No board waits for another: a silent one is
//! reported once and asked for its identity until it is back, with all its values, and the others are polled as before.

use super::device::Device;
use super::faults::Faults;
use super::get::{self, scale, value_json};
use super::session::{places_of, BoardPlaces, Member, Session, SessionOf};
use penstock_cli_common::interrupt::{be_hasty, on_interrupt};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_ipbus::map::Place;
use penstock_ipbus::{Outcome, Unfit};
use penstock_units::Time;
use serde_json::json;
use std::mem::{discriminant, Discriminant};
use std::sync::atomic::Ordering;
use std::time::SystemTime;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: get::Arguments,
    #[command(flatten)]
    poll: PollArguments,
}

/// When registers are polled.
#[derive(clap::Args)]
pub struct PollArguments {
    /// Time between two polls
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::arguments::patience)]
    interval: Time,
    /// End after this number of polls
    #[arg(long, value_name = "N")]
    looks: Option<u64>,
}

/// An interrupt waits no longer than this.
const TURN: Time = Time::from_ms(50);

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let get::Arguments { boards, names } = &arguments.of;
    poll(|| Session::open(boards), names, &arguments.poll, boards.link.json)
}

/// Polls registers of a session's devices.
pub fn poll<D: Device>(
    open: impl FnOnce() -> Result<SessionOf<D>, Failure>,
    names: &[String],
    arguments: &PollArguments,
    json: bool,
) -> Result<Verdict, Failure> {
    let mut session = open()?;
    let interrupted = on_interrupt()?;
    be_hasty();
    let mut watch = Watch::of(&session, names, json)?;
    let (mut looks, mut due) = (0, Time::ZERO);
    while !interrupted.load(Ordering::Relaxed) {
        let now = session.fleet.now();
        let is_over = arguments.looks.is_some_and(|most| looks >= most);
        let is_idle = |board| session.fleet.is_idle(board);
        if is_over && (0..session.boards.len()).all(is_idle) {
            break;
        }
        if !is_over && now >= due {
            watch.poll(&mut session);
            looks += 1;
            due = (due + arguments.interval).max(now);
        }
        let rest = if is_over { TURN } else { due.saturating_sub(now).min(TURN) };
        session.fleet.turn(rest).map_err(|error| Failure::Fault(error.to_string()))?;
        let mut faults = Faults::default();
        while let Some((board, _, outcome)) = session.fleet.poll_outcome() {
            watch.take(&mut session, board, outcome, &mut faults);
        }
        watch.reported(&faults);
    }
    Ok(watch.verdict)
}

/// A board's registers and their last numbers.
#[derive(Default)]
struct OfBoard {
    places: Vec<Place>,
    /// Empty: nothing was read since it answers.
    last: Vec<u64>,
    /// Why it cannot be read, once that was said.
    reported: Option<Discriminant<Unfit>>,
}

struct Watch<'a> {
    names: &'a [String],
    json: bool,
    boards: Vec<OfBoard>,
    verdict: Verdict,
}

impl<'a> Watch<'a> {
    fn of<D: Device>(session: &SessionOf<D>, names: &'a [String], json: bool) -> Result<Self, Failure> {
        let places = session.places(names)?;
        let reported = |board: &Member<D>| board.identity.as_ref().err().map(discriminant);
        let mut boards: Vec<OfBoard> =
            session.boards.iter().map(|board| OfBoard { reported: reported(board), ..OfBoard::default() }).collect();
        for BoardPlaces { board, places } in places {
            boards[board].places = places;
        }
        let mut watch = Watch { names, json, boards, verdict: Verdict::Verified };
        watch.reported(&session.unfit());
        Ok(watch)
    }

    fn reported(&mut self, faults: &Faults) {
        faults.print();
        if !faults.0.is_empty() {
            self.verdict = Verdict::Fault;
        }
    }

    /// Asks every board that owes no answer.
    fn poll<D: Device>(&self, session: &mut SessionOf<D>) {
        for board in 0..self.boards.len() {
            if session.fleet.is_idle(board) {
                self.request(session, board);
            }
        }
    }

    fn request<D: Device>(&self, session: &mut SessionOf<D>, board: usize) {
        let request = match session.boards[board].identity {
            Ok(_) => get::request(&self.boards[board].places),
            Err(_) => D::request(),
        };
        session.fleet.submit(board, &request);
    }

    fn take<D: Device>(&mut self, session: &mut SessionOf<D>, board: usize, outcome: Outcome, faults: &mut Faults) {
        let of = &mut self.boards[board];
        if session.boards[board].identity.is_err() {
            session.boards[board].identity = D::of(outcome);
            match session.boards[board].identity.as_ref().map(|identity| places_of(self.names, identity)) {
                Ok(Ok(places)) => {
                    of.places = places;
                    self.request(session, board);
                }
                // It came back with a smaller build.
                Ok(Err(why)) => faults.push(session.address(board), None, why),
                Err(_) => self.lost(session, board, None, faults),
            }
            return;
        }
        match get::numbers(&of.places, outcome) {
            Ok(numbers) => {
                of.reported = None;
                let before = std::mem::replace(&mut of.last, numbers);
                self.show(session, board, &before);
            }
            Err(error) => {
                let (register, _) = session.named(&error);
                session.lost(board, error);
                self.lost(session, board, register, faults);
            }
        }
    }

    /// A board cannot be read: this is said once.
    fn lost<D: Device>(&mut self, session: &SessionOf<D>, board: usize, register: Option<String>, faults: &mut Faults) {
        let of = &mut self.boards[board];
        of.places.clear();
        of.last.clear();
        let Err(why) = &session.boards[board].identity else { return };
        if of.reported.replace(discriminant(why)) != Some(discriminant(why)) {
            faults.push(session.address(board), register, why);
        }
    }

    /// A line for each number that is not as before.
    fn show<D: Device>(&mut self, session: &SessionOf<D>, board: usize, before: &[u64]) {
        let of = &self.boards[board];
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let (address, scale) = (session.address(board).to_string(), scale(session, board));
        for (at, (place, number)) in of.places.iter().zip(&of.last).enumerate() {
            if before.get(at) == Some(number) {
                continue;
            }
            let name = place.name();
            let line = match self.json {
                true => {
                    let value = value_json(place, *number, scale);
                    json!({"time": time, "board": address, "register": name, "value": value}).to_string()
                }
                false => format!("{time}  {address}  {name}  {}", get::shown(place, *number, scale)),
            };
            self.verdict = print(line, self.verdict);
        }
    }
}
