// SPDX-License-Identifier: Apache-2.0
//! The sink of `penstock recv`: a folder of Parquet files, or none; on request also connected consumers and a GPU.
//! Promise: those of `RunWriter`, `Serving` and `OnGpu`.

use super::gpu;
use super::listening::not_listening;
use super::plan::Plan;
use penstock_cli_common::output::screen::notify;
use penstock_readout::{Discard, Event, EventSink, Kept, RunWriter, Serving, StoreError};
use penstock_units::Time;

/// Takes the events of a run.
pub struct Sink {
    sink: Box<dyn EventSink>,
    /// The GPU's results; none without one.
    pub gpu: Option<gpu::Report>,
}

impl Sink {
    /// All that the plan requires.
    pub fn open(plan: &Plan, gpu: Option<gpu::Opened>) -> Result<Sink, String> {
        let text = |error: StoreError| error.to_string();
        let mut sink = match &plan.out {
            Some(folder) => {
                let writer = RunWriter::open(folder, plan.files.clone()).map_err(text)?;
                if writer.found() > 0 {
                    let (folder, found) = (folder.display(), writer.found());
                    notify(format_args!(
                        "{folder}: event files of an earlier run ({found}) are there; those of this run are added"
                    ));
                }
                Sink::of(writer)
            }
            None => Sink::of(Discard::default()),
        };
        if let Some(serving) = &plan.serving {
            let at = &serving.given;
            let listening = Serving::listen(sink, serving.at.clone(), serving.options.clone());
            sink = Sink::of(listening.map_err(|error| match &error {
                StoreError::Io { source, .. } if !at.contains('/') => not_listening("--serve", at, source),
                _ => error.to_string(),
            })?);
        }
        if let Some(opened) = gpu {
            let (sink_beside, report) = opened.beside(sink, plan)?;
            sink = Sink { sink: sink_beside, gpu: Some(report) };
        }
        Ok(sink)
    }

    fn of(sink: impl EventSink + 'static) -> Sink {
        Sink { sink: Box::new(sink), gpu: None }
    }
}

impl EventSink for Sink {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.sink.store(event)
    }

    fn handle_timeout(&mut self, now: Time) -> Result<(), StoreError> {
        self.sink.handle_timeout(now)
    }

    fn needs_payloads(&self) -> bool {
        self.sink.needs_payloads()
    }

    fn settled(&self) -> u64 {
        self.sink.settled()
    }

    fn reconnected(&mut self, board: u16) {
        self.sink.reconnected(board);
    }

    fn kept(&self) -> Option<Kept> {
        self.sink.kept()
    }

    fn give_up(&mut self) {
        self.sink.give_up();
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.sink.poll_timeout()
    }

    fn wait(&mut self) -> Result<(), StoreError> {
        self.sink.wait()
    }

    /// A GPU failure is reported with the other faults.
    fn close(&mut self) -> Result<(), StoreError> {
        match self.sink.close() {
            Err(StoreError::Accelerator { .. }) => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::Arguments;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn events_go_to_the_folder_and_to_the_socket_of_the_plan() {
        let folder = tempfile::tempdir().unwrap();
        let (run, socket) = (folder.path().join("run"), folder.path().join("socket"));
        let words = ["recv", "10.0.0.2", "--iface", "eth0"].map(str::to_owned);
        let paths = [("--out", &run), ("--serve", &socket)];
        let paths = paths.iter().flat_map(|(name, path)| [(*name).to_owned(), path.display().to_string()]);
        let plan = Plan::read(&Command::parse_from(words.into_iter().chain(paths)).arguments).unwrap();

        let mut sink = Sink::open(&plan, None).unwrap();
        assert!(socket.exists());
        let event = Event { number: 0, timestamp_ns: None, complete: false, fragments: &[], missing: &[0] };
        sink.store(&event).unwrap();
        sink.close().unwrap();
        assert!(run.join("events-000000.parquet").exists());
    }
}
