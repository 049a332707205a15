// SPDX-License-Identifier: Apache-2.0
//! Shared by both GPU tests: recorded camera events, and a sink whose contents the tests can inspect.

use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use penstock_readout::{Dataset, Event, EventSink, StoreError};

pub static EVENTS: LazyLock<Dataset> = LazyLock::new(|| {
    Dataset::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/lst1_run2008/modules.npz")).unwrap()
});

/// Number, and payloads by source.
pub type Stored = (u64, Vec<Vec<u8>>);

/// A sink that others may look into.
#[derive(Clone, Default)]
pub struct Kept(pub Arc<Mutex<Vec<Stored>>>);

impl EventSink for Kept {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        let payloads = event.fragments.iter().map(|fragment| fragment.payload.to_vec()).collect();
        self.0.lock().unwrap().push((event.number, payloads));
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
