// SPDX-License-Identifier: Apache-2.0
//! Where `penstock recv` puts events: a folder of Parquet files, or nowhere; to whoever connects, and to a GPU, if asked to.
//! Promise: those of `RunWriter`, `Serving` and `OnGpu`.

use super::arguments::Arguments;
use super::gpu;
use super::options::not_listening;
use crate::screen::say;
use penstock_readout::{
    Discard, Event, EventSink, RunOptions, RunWriter, ServeAt, ServeOptions, Serving, SlowConsumer, StoreError, Table,
    WriterOptions,
};
use std::num::NonZeroUsize;

const PS_PER_S: u64 = 1_000_000_000_000;
const PS_PER_MS: u64 = 1_000_000_000;

pub struct Sink {
    sink: Box<dyn EventSink>,
    /// What the GPU has done; none without one.
    pub gpu: Option<gpu::Report>,
}

/// What a row of the files is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Rows {
    /// An event
    Events,
    /// A fragment
    Fragments,
}

impl Sink {
    /// All that the command line asks for, for so many boards.
    pub fn open(arguments: &Arguments, boards: usize, gpu: Option<gpu::Opened>) -> Result<Sink, String> {
        let told = |error: StoreError| error.to_string();
        let mut sink = match &arguments.storage.out {
            Some(folder) => {
                let writer = RunWriter::open(folder, run_options(arguments)).map_err(told)?;
                if writer.found() > 0 {
                    let (folder, found) = (folder.display(), writer.found());
                    say(format_args!(
                        "{folder}: event files of an earlier run ({found}) are there; those of this run are added"
                    ));
                }
                Sink::of(writer)
            }
            None => Sink::of(Discard::default()),
        };
        if let Some(at) = &arguments.serving.serve {
            let slow = if arguments.serving.serve_all { SlowConsumer::HoldsBack } else { SlowConsumer::Misses };
            let options = ServeOptions { slow, ..ServeOptions::default() };
            let listening = Serving::listen(sink, serve_at(at)?, options);
            sink = Sink::of(listening.map_err(|error| match &error {
                StoreError::Io { source, .. } if !at.contains('/') => not_listening("--serve", at, source),
                _ => error.to_string(),
            })?);
        }
        if let Some(opened) = gpu {
            let (beside, report) = gpu::beside(sink, opened, arguments, boards)?;
            sink = Sink { gpu: Some(report), ..beside };
        }
        Ok(sink)
    }

    pub fn of(sink: impl EventSink + 'static) -> Sink {
        Sink { sink: Box::new(sink), gpu: None }
    }
}

pub fn run_options(arguments: &Arguments) -> RunOptions {
    let default = RunOptions::default();
    let table = match arguments.storage.rows {
        Rows::Events => Table::Events,
        Rows::Fragments => Table::Fragments,
    };
    let encoders = arguments.storage.encoders.unwrap_or_else(encoders);
    RunOptions {
        writer: WriterOptions {
            table,
            row_group_ps: Some(arguments.storage.flush.saturating_mul(PS_PER_MS)),
            ..default.writer
        },
        file_bytes: arguments.storage.file_mb.saturating_mul(1_000_000),
        file_ps: Some(arguments.storage.file_seconds.saturating_mul(PS_PER_S)),
        encoders,
        // One for each encoder, one that is written, two that wait.
        row_groups_waiting: encoders.saturating_add(3),
    }
}

/// Half of the cores, at most eight: the others are for the receiving loop, the network and who reads the files.
fn encoders() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new((cores / 2).min(8)).unwrap_or(NonZeroUsize::MIN)
}

/// An address with a port, or else the path of a Unix socket; `localhost:9000` was not meant as one.
fn serve_at(at: &str) -> Result<ServeAt, String> {
    match at.parse() {
        Ok(address) => Ok(ServeAt::Tcp(address)),
        Err(_) if at.contains(':') && !at.contains('/') => Err(format!(
            "--serve {at}: not an address and port, as in 127.0.0.1:9000; a Unix socket of that name is ./{at}"
        )),
        Err(_) => Ok(ServeAt::Unix(at.into())),
    }
}

impl EventSink for Sink {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.sink.store(event)
    }

    fn handle_timeout(&mut self, now_ps: u64) -> Result<(), StoreError> {
        self.sink.handle_timeout(now_ps)
    }

    fn wants_payloads(&self) -> bool {
        self.sink.wants_payloads()
    }

    fn settled(&self) -> u64 {
        self.sink.settled()
    }

    fn reconnected(&mut self, board: u16) {
        self.sink.reconnected(board);
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.sink.poll_timeout()
    }

    fn wait(&mut self) -> Result<(), StoreError> {
        self.sink.wait()
    }

    /// That the GPU has failed is told with the other faults.
    fn close(&mut self) -> Result<(), StoreError> {
        match self.sink.close() {
            Err(StoreError::Gpu { .. }) => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn files_and_consumers_are_as_the_command_line_says() {
        let folder = tempfile::tempdir().unwrap();
        let (run, socket) = (folder.path().join("run"), folder.path().join("socket"));
        let words = [
            "recv",
            "10.0.0.2",
            "--rows",
            "fragments",
            "--file-mb",
            "7",
            "--file-seconds",
            "3",
            "--encoders",
            "3",
            "--flush",
            "50",
        ];
        let paths = [("--out", &run), ("--serve", &socket)];
        let paths = paths.iter().flat_map(|(name, path)| [(*name).to_owned(), path.display().to_string()]);
        let words = words.iter().map(|word| (*word).to_owned()).chain(paths);
        let arguments = Command::parse_from(words).arguments;
        let options = run_options(&arguments);
        assert_eq!((options.writer.table, options.file_bytes), (Table::Fragments, 7_000_000));
        assert_eq!(options.file_ps, Some(3 * PS_PER_S));
        assert_eq!(options.writer.row_group_ps, Some(50 * PS_PER_MS));
        assert_eq!((options.encoders.get(), options.row_groups_waiting.get()), (3, 6));

        let mut sink = Sink::open(&arguments, 1, None).unwrap();
        assert!(socket.exists());
        let event = Event { number: 0, timestamp_ns: None, complete: false, fragments: &[], missing: &[0] };
        sink.store(&event).unwrap();
        sink.close().unwrap();
        assert!(run.join("events-000000.parquet").exists());
        assert_eq!(serve_at("127.0.0.1:9000"), Ok(ServeAt::Tcp(([127, 0, 0, 1], 9000).into())));
    }

    #[test]
    fn a_name_with_a_port_is_no_unix_socket() {
        assert!(matches!(serve_at("127.0.0.1:9000"), Ok(ServeAt::Tcp(_))));
        assert!(matches!(serve_at("/run/events"), Ok(ServeAt::Unix(_))));
        assert!(matches!(serve_at("./localhost:9000"), Ok(ServeAt::Unix(_))));
        assert!(serve_at("localhost:9000").unwrap_err().contains("./localhost:9000"));
    }
}
