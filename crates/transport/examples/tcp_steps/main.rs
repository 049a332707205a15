// SPDX-License-Identifier: Apache-2.0
//! Writes a random history of single events of the simplified TCP, with the model's result for each event, for
//! `rtl/tcp/tcp_engine.sv` to repeat (`tb/tcp_equality/steps.cpp`).
//!
//! Usage: `tcp_steps SEED EVENTS`. Fails if a history of a million events or more lacks some kind of
//! event. Records of little-endian words:
//!
//! ```text
//! 1 10 x parameter                                   written when no earlier event is in flight
//! 2 stream 18 x row                                  a row to continue from, with arbitrary contents
//! 0 stream 7 x event 18 x row after it 5 x actions   words: `words.rs`
//! ```

mod random;
mod weather;
mod words;

use penstock_transport::simple_tcp::{step, Actions, Counts, End, Event, Parameters, Row};
use random::Random;
use std::io::{BufWriter, Write};
use weather::Weather;

/// The streams that the gateware has at most, and more than its pipeline is deep.
const STREAMS: usize = 64;
/// Events of each stream before the weather changes.
const ERA: u64 = 500;
/// Events in which everything that can happen has happened, almost certainly.
const ENOUGH: u64 = 1_000_000;

/// What has happened so far, one number for each kind.
#[derive(Default)]
struct Tally {
    counts: [u64; Counts::KINDS],
    ends: [u64; 6],
    opened: u64,
    acknowledged: u64,
}

impl Tally {
    fn add(&mut self, actions: &Actions) {
        for (bit, count) in self.counts.iter_mut().enumerate() {
            *count += u64::from(actions.counts.has(Counts(1 << bit)));
        }
        self.ends[actions.ended.map_or(0, |end| end as usize)] += 1;
        self.opened += u64::from(actions.opened);
        self.acknowledged += u64::from(actions.acknowledged > 0);
    }

    /// What has never happened.
    fn missing(&self) -> Vec<String> {
        let counts = self.counts.iter().enumerate().filter(|(_, n)| **n == 0).map(|(bit, _)| format!("count {bit}"));
        let ends = [End::Refused, End::Reset, End::Finished, End::TimedOut, End::Aborted]
            .into_iter()
            .filter(|end| self.ends[*end as usize] == 0)
            .map(|end| format!("end {end:?}"));
        let rest = [("opened", self.opened), ("acknowledged", self.acknowledged)]
            .into_iter()
            .filter(|(_, n)| *n == 0)
            .map(|(what, _)| what.to_string());
        counts.chain(ends).chain(rest).collect()
    }
}

struct History<W: Write> {
    out: W,
    random: Random,
    parameters: Parameters,
    rows: [Row; STREAMS],
    now: u32,
    events: u64,
    tally: Tally,
}

impl<W: Write> History<W> {
    fn write(&mut self, words: &[u32]) -> std::io::Result<()> {
        words.iter().try_for_each(|word| self.out.write_all(&word.to_le_bytes()))
    }

    fn change_parameters(&mut self) -> std::io::Result<()> {
        self.parameters = self.random.parameters();
        self.write(&[1])?;
        self.write(&words::of_parameters(&self.parameters))
    }

    fn put_row(&mut self, stream: usize, row: Row) -> std::io::Result<()> {
        self.rows[stream] = row;
        self.write(&[2, stream as u32])?;
        self.write(&words::of_row(&row))
    }

    fn happen(&mut self, stream: usize, event: Event) -> std::io::Result<()> {
        let (row, actions) = step(&self.rows[stream], &self.parameters, self.now, event);
        self.rows[stream] = row;
        self.tally.add(&actions);
        self.events += 1;
        self.write(&[0, stream as u32])?;
        self.write(&words::of_event(&event, self.now))?;
        self.write(&words::of_row(&row))?;
        self.write(&words::of_actions(&actions))
    }
}

fn main() -> std::io::Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [seed, count] = numbers[..] else {
        eprintln!("usage: tcp_steps SEED EVENTS, two decimal numbers");
        std::process::exit(2);
    };
    let mut history = History {
        out: BufWriter::with_capacity(1 << 20, std::io::stdout().lock()),
        random: Random(seed),
        parameters: Parameters::default(),
        rows: [Row::default(); STREAMS],
        now: 0,
        events: 0,
        tally: Tally::default(),
    };
    history.now = history.random.word();
    while history.events < count {
        let weather = Weather::new(&mut history.random);
        history.change_parameters()?;
        for _ in 0..ERA {
            for stream in 0..STREAMS {
                if history.random.one_in(weather.any_row) {
                    let row = history.random.row(history.now);
                    history.put_row(stream, row)?;
                }
                let row = history.rows[stream];
                history.now = weather.next_tick(&mut history.random, &row, history.now);
                let event = weather.event(&mut history.random, &row);
                history.happen(stream, event)?;
            }
        }
    }
    history.out.flush()?;
    let missing = history.tally.missing();
    if history.events >= ENOUGH && !missing.is_empty() {
        eprintln!("seed {seed}: {} events, and never: {}", history.events, missing.join(", "));
        std::process::exit(1);
    }
    eprintln!("seed {seed}: {} events", history.events);
    Ok(())
}
