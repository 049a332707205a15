// SPDX-License-Identifier: Apache-2.0
//! Where `penstock recv` puts events: a folder of Parquet files, or nowhere.
//! Promise: that of `RunWriter`.

use penstock_readout::{Discard, Event, EventSink, RunOptions, RunWriter, StoreError};
use std::path::Path;

pub struct Sink(Box<dyn EventSink>);

impl Sink {
    pub fn open(folder: Option<&Path>) -> Result<Sink, StoreError> {
        Ok(Sink(match folder {
            Some(folder) => Box::new(RunWriter::open(folder, RunOptions::default())?),
            None => Box::new(Discard::default()),
        }))
    }
}

impl EventSink for Sink {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.0.store(event)
    }

    fn handle_timeout(&mut self, now_ps: u64) -> Result<(), StoreError> {
        self.0.handle_timeout(now_ps)
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.0.close()
    }
}
