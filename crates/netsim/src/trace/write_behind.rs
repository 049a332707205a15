// SPDX-License-Identifier: Apache-2.0
//! Writes a trace's file on a separate thread while the run continues.
//! Promise: row groups are written in order, so the file does not depend on scheduling; at most two are queued, then
//! the run waits; a write error is reported at the next group or when the file is closed.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

use super::error::TraceError;
use super::file::TraceFile;
use super::rows::Group;

/// A row group, and the names that came since the last one.
struct Order {
    rows: Group,
    names: Vec<String>,
}

/// A file and the thread that writes it.
pub struct WriteBehind {
    path: PathBuf,
    /// The number of names passed to the thread.
    names_sent: usize,
    orders: SyncSender<Order>,
    /// Groups that are written: their memory serves the next.
    spare: Receiver<Group>,
    /// None: the file has failed, and the reason has been reported.
    thread: Option<JoinHandle<Result<(), TraceError>>>,
}

impl WriteBehind {
    /// Begins with a file that is open.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn new(file: TraceFile) -> Result<Self, TraceError> {
        let path = file.path().to_owned();
        let (orders, taken) = sync_channel(1);
        let (written, spare) = channel();
        let thread = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || write(file, &taken, &written))
            .map_err(|source| TraceError::Io { path: path.clone(), source })?;
        Ok(WriteBehind { path, names_sent: 0, orders, spare, thread: Some(thread) })
    }

    /// Where the file will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has a row group written; `names` are those that the numbers of nodes and metrics stand for. Gives a group to
    /// fill.
    ///
    /// # Errors
    /// The first that the file has met, once; it takes no more then.
    pub fn write(&mut self, rows: Group, names: &[String]) -> Result<Group, TraceError> {
        let order = Order { rows, names: names[self.names_sent..].to_vec() };
        self.names_sent = names.len();
        match self.orders.send(order) {
            Ok(()) => Ok(self.spare.try_recv().unwrap_or_default()),
            Err(refused) => self.ended().map(|()| refused.0.rows),
        }
    }

    /// Waits until all is written, closes the file and gives it its name.
    ///
    /// # Errors
    /// The first error of the file, unless [`Self::write`] has reported it.
    pub fn close(mut self) -> Result<(), TraceError> {
        self.orders = sync_channel(0).0;
        self.ended()
    }

    fn ended(&mut self) -> Result<(), TraceError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn write(mut file: TraceFile, orders: &Receiver<Order>, written: &Sender<Group>) -> Result<(), TraceError> {
    let mut all_names = Vec::new();
    for Order { rows, names } in orders {
        all_names.extend(names);
        file.write(&rows, &all_names)?;
        let _ = written.send(rows); // the run may have ended
    }
    file.close()
}
