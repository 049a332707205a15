// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl serve`: serves registers of boards as Prometheus metrics.
//! Promise: a scrape costs the boards nothing: it gets the values that were read last, and their age. A silent board
//! counts as down and is polled further; a board that returns is identified again.

mod families;
mod look;

use super::arguments::{patience, BoardArguments};
use super::session::Session;
use crate::interrupt::{be_quiet, on_interrupt};
use crate::outcome::{Failure, Verdict};
use crate::output::screen::say;
use families::Served;
use penstock_dashboard::serve_metrics;
use penstock_units::Time;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    boards: BoardArguments,
    /// Where the metrics are served
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9101")]
    metrics: SocketAddr,
    /// Time between two looks at the boards
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = patience)]
    interval: Time,
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let interrupted = on_interrupt()?;
    be_quiet();
    let served = Served::default();
    let registry = served.registry();
    let refused = |error: std::io::Error| {
        Failure::Refused(format!("--metrics {}: cannot listen there: {error}; give another address", arguments.metrics))
    };
    serve_metrics(arguments.metrics, move || families::encoded(&registry)).map_err(refused)?;
    let mut session = Session::open(&arguments.boards)?;
    session.unfit().tell();
    say(format_args!("metrics of {} boards: http://{}/metrics", session.boards.len(), arguments.metrics));
    let mut next = Instant::now();
    while !interrupted.load(Ordering::Relaxed) {
        session.identify_again()?;
        served.tell(look::at(&mut session)?);
        next = (next + arguments.interval.to_duration()).max(Instant::now());
        while Instant::now() < next && !interrupted.load(Ordering::Relaxed) {
            std::thread::sleep((next - Instant::now().min(next)).min(Duration::from_millis(50)));
        }
    }
    Ok(Verdict::Verified)
}
