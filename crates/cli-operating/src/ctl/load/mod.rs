// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl load`: fills a table in boards' memory from a file.
//! Promise: a board counts as loaded only if every byte, read back by RDMA READ, is that of the file. Its queue pair is in
//! reset before and after; each register write is in the journal.
//!
//! ```text
//! registers (IPbus): window -> open the queue pair -> WRITE, READ, compare (packet socket) -> close it
//! ```

mod queue_pair;
mod table;
mod transfer;
mod window;

use super::arguments::{BoardArguments, WriteArguments};
use super::faults::Faults;
use super::session::Session;
use penstock_cli_common::arguments::number::number;
use penstock_cli_common::arguments::quantity::bytes;
use penstock_cli_common::interrupt::{be_quiet, on_interrupt};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_ipbus::change::local_address;
use penstock_ipbus::Identity;
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use table::Table;
use transfer::{Path, Target, Transfer};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub boards: BoardArguments,
    /// Its bytes: the elements of an array (.npy), or any other file as it is
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Queue pair whose window gets the bytes, and which carries them [default: the only free one with a window]
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub queue_pair: Option<u32>,
    /// Key of the window, as in 0x1234, if several queue pairs have one
    #[arg(long, value_name = "KEY", value_parser = number::<u32>)]
    pub rkey: Option<u32>,
    /// First byte in the window
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = bytes::<u64>)]
    pub offset: u64,
    /// Write nothing: READ the window, and compare it with the file
    #[arg(long)]
    pub compare: bool,
    #[command(flatten)]
    pub write: WriteArguments,
}

/// A board that has the table.
#[derive(Debug, Serialize)]
struct Loaded {
    board: String,
    queue_pair: u32,
    address: u64,
    bytes: usize,
    seconds: f64,
    retransmitted_pkts: u64,
}

impl Loaded {
    fn line(&self, arguments: &Arguments, table: &Table) -> String {
        let Loaded { board, queue_pair, address, bytes, .. } = self;
        let (file, kind) = (arguments.file.display(), &table.kind);
        format!("{board}: {bytes} bytes of {file} ({kind}) at {address:#x}, window of qp[{queue_pair}]: verified")
    }
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let table = Table::read(&arguments.file).map_err(Failure::Refused)?;
    let mut session = Session::open(&arguments.boards)?;
    let interrupted = on_interrupt()?;
    be_quiet();
    let mut faults = session.unfit();
    let mut loaded = Vec::new();
    for (board, identity) in session.fit().collect::<Vec<_>>() {
        match load(&mut session, (board, identity), arguments, &table, &mut faults, &interrupted)? {
            Ok(done) => loaded.extend(done),
            Err(why) => faults.push(session.address(board), None, why),
        }
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    faults.print();
    let text = match arguments.boards.link.json {
        true => json!({"boards": loaded, "faults": faults.json()}).to_string(),
        false => loaded.iter().map(|one| one.line(arguments, &table)).collect::<Vec<_>>().join("\n"),
    };
    match text.is_empty() {
        true => Ok(faults.verdict()),
        false => Ok(print(text, faults.verdict())),
    }
}

/// Loads one board. None: the reason is among the faults.
fn load(
    session: &mut Session,
    (board, identity): (usize, Identity),
    arguments: &Arguments,
    table: &Table,
    faults: &mut Faults,
    interrupted: &AtomicBool,
) -> Result<Result<Option<Loaded>, String>, Failure> {
    let windows = match window::read(session, board, identity.build.queue_pairs, !arguments.compare)? {
        Ok(windows) => windows,
        Err(why) => return Ok(Err(why)),
    };
    let address = session.address(board);
    let chosen = window::choose(&windows, arguments.queue_pair, arguments.rkey, !arguments.compare);
    let prepared = chosen.and_then(|window| {
        let place = window
            .place(arguments.offset, table.bytes.len() as u64)
            .map_err(|why| format!("{} ({}): {why}", arguments.file.display(), table.kind))?;
        let path = Path::to(*address.0.ip(), local_address(address.0))?;
        Ok((window, place, path))
    });
    let (window, place, path) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return Ok(Err(why)),
    };
    let begun = Instant::now();
    let opened = queue_pair::open(session, board, &window, &path, &arguments.write, faults)?;
    let Some(connection) = opened else { return Ok(Ok(None)) };
    let target = Target { address: place, rkey: window.rkey };
    let transferred = Transfer::open(&path, connection).and_then(|mut transfer| {
        if !arguments.compare {
            transfer.write(&table.bytes, target, interrupted).map_err(|error| error.to_string())?;
        }
        transfer.verify(&table.bytes, target, interrupted).map_err(|error| error.to_string())?;
        Ok(transfer.retransmitted())
    });
    queue_pair::close(session, board, &window, &arguments.write, faults)?;
    Ok(transferred.map(|retransmitted_pkts| {
        Some(Loaded {
            board: address.to_string(),
            queue_pair: window.queue_pair,
            address: place,
            bytes: table.bytes.len(),
            seconds: begun.elapsed().as_secs_f64(),
            retransmitted_pkts,
        })
    }))
}
