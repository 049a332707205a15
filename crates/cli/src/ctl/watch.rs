// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl watch`: polls registers and prints a line for each change.
//! Promise: every change between two polls is shown once, with the time; a board that stays silent is reported, and
//! polled further.

use super::faults::Faults;
use super::get::{self, read, scale, value_json};
use super::session::Session;
use crate::interrupt::{be_quiet, on_interrupt};
use crate::outcome::{Failure, Verdict};
use crate::output::print;
use penstock_units::Time;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: get::Arguments,
    /// Time between two polls
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::arguments::patience)]
    interval: Time,
    /// End after this number of polls
    #[arg(long, value_name = "N")]
    looks: Option<u64>,
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let interrupted = on_interrupt()?;
    be_quiet();
    let mut session = Session::open(&arguments.of.boards)?;
    let mut told = session.unfit();
    let places = session.places(&arguments.of.names)?;
    told.tell();
    let mut known: HashMap<(usize, String), u64> = HashMap::new();
    let mut silent: HashSet<String> = HashSet::new();
    let (begin, mut looks) = (Instant::now(), 0);
    let mut verdict = told.verdict();
    while !interrupted.load(Ordering::Relaxed) && arguments.looks.is_none_or(|most| looks < most) {
        let mut faults = Faults::default();
        let readings = read(&mut session, &places, &mut faults)?;
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        for (board, readings) in &readings {
            for (place, number) in readings {
                if known.insert((*board, place.name()), *number) == Some(*number) {
                    continue;
                }
                let (address, scale) = (session.address(*board), scale(&session, *board));
                let line = match arguments.of.boards.link.json {
                    true => json!({"time": time, "board": address.to_string(), "register": place.name(), "value": value_json(place, *number, scale)}).to_string(),
                    false => format!("{time}  {address}  {}  {}", place.name(), get::shown(place, *number, scale)),
                };
                verdict = print(line, verdict);
            }
        }
        let now: HashSet<String> = faults.0.iter().map(|fault| fault.board.to_string()).collect();
        faults.0.retain(|fault| !silent.contains(&fault.board.to_string()));
        faults.tell();
        if !faults.0.is_empty() {
            verdict = Verdict::Fault;
        }
        silent = now;
        looks += 1;
        let next = begin + arguments.interval.to_duration() * u32::try_from(looks).unwrap_or(u32::MAX);
        while Instant::now() < next && !interrupted.load(Ordering::Relaxed) && arguments.looks != Some(looks) {
            std::thread::sleep((next - Instant::now().min(next)).min(Time::from_ms(50).to_duration()));
        }
    }
    told.0.clear();
    Ok(verdict)
}
