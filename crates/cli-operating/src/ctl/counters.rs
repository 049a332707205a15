// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl counters`: shows the counters of boards.

use super::arguments::BoardArguments;
use super::faults::Faults;
use super::session::Session;
use super::streams;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_cli_common::output::table::{columns, terminal_width};
use penstock_ipbus::map::{find, Place};
use penstock_ipbus::regs::counters::ALL;
use penstock_ipbus::{Access, Request};
use serde_json::{json, Map, Value};
use std::collections::HashMap;

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
    /// Also the counters of each TCP stream
    #[arg(long)]
    streams: bool,
}

/// A counter's name, and its number on each board that was read.
type Counted = (String, Vec<Option<u32>>);

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut session = Session::open(&arguments.boards)?;
    let mut faults = session.unfit();
    let rows = rows(&mut session, arguments, &mut faults)?;
    let (boards, counted) = read(&mut session, &rows, &mut faults)?;
    let text = match arguments.boards.link.json {
        true => as_json(&session, &boards, &counted, &faults).to_string(),
        false => table(&session, &boards, &counted, arguments.all),
    };
    faults.print();
    Ok(print(text, faults.verdict()))
}

const OF_QUEUE_PAIR: &[&str] = &[
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
const OF_STREAM: &[&str] = &[
    "segments",
    "retransmitted",
    "timeouts",
    "fast_retransmits",
    "duplicate_acks",
    "window_probes",
    "challenge_acks",
    "out_of_window",
    "bad_acks",
    "bad_options",
    "peer_data",
    "ignored",
    "path_mtu",
    "window_closed",
    "messages_ok",
    "messages_err",
];

/// Names and addresses of the counters of `count` copies of a group.
fn of_copies(group: &'static str, names: &'static [&'static str], count: u32) -> impl Iterator<Item = (String, u32)> {
    let build = penstock_ipbus::map::Build { queue_pairs: 256, clock_khz: 1 };
    let of = move |index: u32| names.iter().map(move |name| format!("{group}[{index}].{name}"));
    (0..count).flat_map(of).filter_map(move |name| {
        let place = find(&name, build).ok()?.first().map(Place::address)?;
        Some((name, place))
    })
}

/// The numbers of queue pairs and streams of a board that are counted, too.
struct Rows {
    board: usize,
    queue_pairs: u32,
    streams: u32,
}

fn rows(session: &mut Session, arguments: &Arguments, faults: &mut Faults) -> Result<Vec<Rows>, Failure> {
    let queue_pairs = |count: u32| if arguments.queue_pairs { count } else { 0 };
    let fit: Vec<_> = session.fit().map(|(board, of)| (board, queue_pairs(of.build.queue_pairs))).collect();
    if !arguments.streams {
        return Ok(fit.into_iter().map(|(board, queue_pairs)| Rows { board, queue_pairs, streams: 0 }).collect());
    }
    let requests: Vec<_> = fit.iter().map(|(board, _)| (*board, Request::from(streams::count_access()))).collect();
    let mut rows = Vec::new();
    for ((board, queue_pairs), outcome) in fit.into_iter().zip(session.run(&requests)?) {
        match outcome {
            Ok(words) => rows.push(Rows { board, queue_pairs, streams: streams::count_of(words[0][0]) }),
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(session.address(board), register, message);
            }
        }
    }
    Ok(rows)
}

fn read(session: &mut Session, rows: &[Rows], faults: &mut Faults) -> Result<(Vec<usize>, Vec<Counted>), Failure> {
    let rows_of = |queue_pairs: u32, streams: u32| {
        of_copies("qp", OF_QUEUE_PAIR, queue_pairs).chain(of_copies("stream", OF_STREAM, streams))
    };
    let request = |Rows { board, queue_pairs, streams }: &Rows| -> (usize, Request) {
        let whole = Access::Read { address: ALL[0].1, count: ALL.len() };
        let copies = rows_of(*queue_pairs, *streams).map(|(_, address)| Access::read(address));
        (*board, std::iter::once(whole).chain(copies).collect())
    };
    let requests: Vec<_> = rows.iter().map(request).collect();
    let mut read: Vec<(usize, HashMap<u32, u32>)> = Vec::new();
    for (Rows { board, queue_pairs, streams }, outcome) in rows.iter().zip(session.run(&requests)?) {
        match outcome {
            Ok(words) => {
                let whole = ALL.iter().map(|(_, address)| *address);
                let addresses = whole.chain(rows_of(*queue_pairs, *streams).map(|(_, address)| address));
                read.push((*board, addresses.zip(words.into_iter().flatten()).collect()));
            }
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(session.address(*board), register, message);
            }
        }
    }
    let queue_pairs = rows.iter().map(|rows| rows.queue_pairs).max().unwrap_or(0);
    let streams = rows.iter().map(|rows| rows.streams).max().unwrap_or(0);
    let whole = ALL.iter().map(|(name, address)| ((*name).to_owned(), *address));
    let counted = whole.chain(rows_of(queue_pairs, streams)).map(|(name, address)| {
        let numbers = read.iter().map(|(_, words)| words.get(&address).copied());
        (name, numbers.collect())
    });
    let counted = counted.collect();
    Ok((read.into_iter().map(|(board, _)| board).collect(), counted))
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
