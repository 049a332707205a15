// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl serve`: serves registers of boards as Prometheus metrics, and the live page of the boards.
//! Promise: a scrape costs the boards nothing: it gets the values that were read last, and their age. A silent board
//! counts as down and delays no other one; a board that returns is identified again.

mod families;
mod look;
mod meters;
mod page;

use super::arguments::{patience, BoardArguments, WriteArguments};
use super::session::Session;
use families::Served;
use look::Looks;
use page::BoardsPage;
use penstock_cli_common::arguments::quantity::listen_address;
use penstock_cli_common::interrupt::{be_hasty, on_interrupt};
use penstock_cli_common::live::{LiveOptions, Page};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_dashboard::{serve_metrics, Settings};
use penstock_ipbus::Identity;
use penstock_units::Time;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    boards: BoardArguments,
    /// Where the metrics are served
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9101", value_parser = listen_address)]
    metrics: SocketAddr,
    /// Time between two looks at the boards
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = patience)]
    interval: Time,
    /// Serve the live page, too [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8080")]
    live: Option<String>,
    /// Nothing can be changed from the live page
    #[arg(long, requires = "live")]
    read_only: bool,
    #[command(flatten)]
    write: WriteArguments,
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let served = Served::default();
    let registry = served.registry();
    let refused = |error: std::io::Error| {
        Failure::Refused(format!("--metrics {}: cannot listen there: {error}; give another address", arguments.metrics))
    };
    let live = LiveOptions::at(arguments.live.clone());
    let listener = live.listen()?;
    serve_metrics(arguments.metrics, move || families::encoded(&registry)).map_err(refused)?;
    let mut session = Session::open(&arguments.boards)?;
    session.wait = WAIT;
    session.unfit().print();
    let interrupted = on_interrupt()?;
    be_hasty();
    notify(format_args!("metrics of {} boards: http://{}/metrics", session.boards.len(), arguments.metrics));
    let mut page = None;
    if live.is_on() {
        let manifest = page::manifest(&session, arguments.interval, arguments.read_only);
        page = Some(BoardsPage::new(Page::open(&live, listener, manifest, Settings::default(), "s")?, &session));
    }
    let controls = if page.is_some() { page::controls } else { |_: usize, _: &Identity| Vec::new() };
    let mut looks = Looks::of(&session, session.another_fleet(&arguments.boards.link)?, controls);
    let interval = arguments.interval.to_duration();
    let mut next = Instant::now();
    while !interrupted.load(Ordering::Relaxed) {
        next = (next + interval).max(Instant::now());
        looks.begin(&session);
        let mut is_reported = false;
        while !interrupted.load(Ordering::Relaxed) {
            let rest = next.saturating_duration_since(Instant::now());
            looks.turn(&mut session, Time::from_duration(rest.min(CONTROLS)))?;
            if let Some(page) = &mut page {
                page.handle(&mut session, &mut looks, &arguments.write)?;
            }
            let is_end = Instant::now() >= next;
            // Boards that are slow now are reported with the next look.
            if !is_reported && (is_end || looks.is_over(&session)) {
                is_reported = true;
                page.iter_mut().for_each(|page| page.look(&session, &looks));
                served.publish(&looks.boards);
            }
            if is_end {
                break;
            }
        }
    }
    page.iter().for_each(|page| page.end(&session));
    Ok(Verdict::Verified)
}

/// A control of the page waits no longer than this for its turn.
const CONTROLS: Duration = Duration::from_millis(50);
/// Time to wait for another operator's change; the page stands still meanwhile.
const WAIT: Time = Time::from_s(1);
