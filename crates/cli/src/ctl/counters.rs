// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl counters`: what boards have counted.

use super::arguments::BoardArguments;
use super::faults::Faults;
use super::get::named;
use super::session::Session;
use crate::outcome::{Failure, Verdict};
use crate::output::print;
use crate::output::table::{columns, terminal_width};
use penstock_ipbus::map::{find, Place};
use penstock_ipbus::regs::counters::ALL;
use penstock_ipbus::{Access, Request};
use serde_json::{json, Map, Value};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    boards: BoardArguments,
    /// Also counters that are 0 on every board
    #[arg(long)]
    all: bool,
    /// Also the counters of each queue pair
    #[arg(long)]
    queue_pairs: bool,
}

/// A counter's name, and its number on each board that was read.
type Counted = (String, Vec<Option<u32>>);

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut session = Session::open(&arguments.boards)?;
    let mut faults = session.unfit();
    let (boards, counted) = read(&mut session, arguments.queue_pairs, &mut faults)?;
    let text = match arguments.boards.link.json {
        true => as_json(&session, &boards, &counted, &faults).to_string(),
        false => table(&session, &boards, &counted, arguments.all),
    };
    faults.tell();
    Ok(print(text, faults.verdict()))
}

/// Names and addresses of the counters of queue pair `index`.
fn of_queue_pair(index: u32) -> impl Iterator<Item = (String, u32)> {
    const NAMES: [&str; 9] = [
        "packets_sent",
        "packets_retransmitted",
        "packet_seq_err",
        "rnr_nak",
        "local_ack_timeout_err",
        "stale_acks",
        "messages_ok",
        "messages_err",
        "rp_cnp_handled",
    ];
    let build = penstock_ipbus::map::Build { queue_pairs: 256, clock_khz: 1 };
    NAMES.into_iter().filter_map(move |name| {
        let name = format!("qp[{index}].{name}");
        let place = find(&name, build).ok()?.first().map(Place::address)?;
        Some((name, place))
    })
}

fn read(session: &mut Session, queue_pairs: bool, faults: &mut Faults) -> Result<(Vec<usize>, Vec<Counted>), Failure> {
    let fit: Vec<_> = session.fit().collect();
    let names_of = |rows: u32| -> Vec<(String, u32)> {
        let whole = ALL.iter().map(|(name, address)| ((*name).to_owned(), *address));
        whole.chain((0..rows).flat_map(of_queue_pair)).collect()
    };
    let rows = |count: u32| if queue_pairs { count } else { 0 };
    let request = |rows: u32| -> Request {
        let whole = Access::Read { address: ALL[0].1, count: ALL.len() };
        let others = (0..rows).flat_map(of_queue_pair).map(|(_, address)| Access::read(address));
        std::iter::once(whole).chain(others).collect()
    };
    let requests: Vec<_> = fit.iter().map(|(board, of)| (*board, request(rows(of.build.queue_pairs)))).collect();
    let most = fit.iter().map(|(_, of)| rows(of.build.queue_pairs)).max().unwrap_or(0);
    let mut counted: Vec<Counted> = names_of(most).into_iter().map(|(name, _)| (name, Vec::new())).collect();
    let mut boards = Vec::new();
    for ((board, _), outcome) in fit.into_iter().zip(session.run(&requests)?) {
        match outcome {
            Ok(words) => {
                let words: Vec<u32> = words.into_iter().flatten().collect();
                boards.push(board);
                counted.iter_mut().enumerate().for_each(|(at, (_, numbers))| numbers.push(words.get(at).copied()));
            }
            Err(error) => {
                let (register, message) = named(&error);
                faults.push(session.address(board), register, message);
            }
        }
    }
    Ok((boards, counted))
}

fn table(session: &Session, boards: &[usize], counted: &[Counted], all: bool) -> String {
    let mut header = vec!["counter".to_owned()];
    header.extend(boards.iter().map(|board| session.address(*board).to_string()));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let is_shown = |(_, numbers): &&Counted| all || numbers.iter().flatten().any(|number| *number > 0);
    let cell = |number: &Option<u32>| number.map_or(String::new(), |number| number.to_string());
    let rows: Vec<Vec<String>> = counted
        .iter()
        .filter(is_shown)
        .map(|(name, numbers)| std::iter::once(name.clone()).chain(numbers.iter().map(cell)).collect())
        .collect();
    columns(&header, &rows, 1, terminal_width())
}

fn as_json(session: &Session, boards: &[usize], counted: &[Counted], faults: &Faults) -> Value {
    let of_board = |at: usize| -> Map<String, Value> {
        counted.iter().filter_map(|(name, numbers)| Some((name.clone(), json!(numbers[at]?)))).collect()
    };
    let found = boards.iter().enumerate();
    let found: Vec<Value> = found
        .map(|(at, board)| json!({"board": session.address(*board).to_string(), "counters": of_board(at)}))
        .collect();
    json!({"boards": found, "faults": faults.json()})
}
