// SPDX-License-Identifier: Apache-2.0
//! A run as a folder of files that are closed by size and by time.
//! Promise: files are numbered in the order of their events; what an earlier process has left open is recovered first,
//! and its numbers are not used again.
//! Source: issue F ("rotated by size and time, written to a temporary name and renamed when valid").

use std::path::{Path, PathBuf};

use crate::medium::{create_file, CreateMedium};
use crate::recover::{list, recover_folder, Recovered};
use crate::sink::{Event, EventSink, StoreError};
use crate::writer::{EventWriter, WriterOptions};

/// When files end. The default is 4 GiB or ten minutes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    pub writer: WriterOptions,
    /// Bytes on disk after which a file is closed; it may be longer by one row group.
    pub file_bytes: u64,
    /// Time after which a file is closed, from its first event, in ps; none is never.
    pub file_ps: Option<u64>,
}

impl Default for RunOptions {
    fn default() -> Self {
        const S: u64 = 1_000_000_000_000;
        let writer = WriterOptions { row_group_ps: Some(S), sync_row_groups: true, ..WriterOptions::default() };
        RunOptions { writer, file_bytes: 4 << 30, file_ps: Some(600 * S) }
    }
}

/// Writes `events-000000.parquet`, `events-000001.parquet`... of a folder.
#[derive(Debug)]
pub struct RunWriter {
    folder: PathBuf,
    options: RunOptions,
    create: CreateMedium,
    recovered: Vec<Recovered>,
    next_file: u32,
    /// The file that is open, and when its first event came.
    open: Option<(EventWriter, u64)>,
    closed: Vec<PathBuf>,
    now_ps: u64,
}

impl RunWriter {
    /// Makes the folder if it is not there, and recovers what a killed process has left in it.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the folder cannot be used; [`StoreError::Locked`] if another process writes into it.
    pub fn open(folder: impl Into<PathBuf>, options: RunOptions) -> Result<RunWriter, StoreError> {
        RunWriter::open_on(folder, options, create_file)
    }

    /// [`Self::open`] on media of the caller's.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(
        folder: impl Into<PathBuf>,
        options: RunOptions,
        create: CreateMedium,
    ) -> Result<RunWriter, StoreError> {
        let folder = folder.into();
        std::fs::create_dir_all(&folder).map_err(|source| StoreError::Io {
            file: folder.clone(),
            action: "made",
            source,
        })?;
        let recovered = recover_folder(&folder)?;
        if !list(&folder, ".parquet.partial")?.is_empty() {
            return Err(StoreError::Locked { folder });
        }
        let numbers = list(&folder, ".parquet")?.into_iter().filter_map(|path| number_of(&path));
        let next_file = numbers.max().map_or(0, |last| last + 1);
        let closed = Vec::new();
        Ok(RunWriter { folder, options, create, recovered, next_file, open: None, closed, now_ps: 0 })
    }

    /// What was recovered when the folder was opened.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// The files of this process that are valid by now.
    pub fn closed(&self) -> &[PathBuf] {
        &self.closed
    }

    /// Closes the file that is open; the next event opens another.
    fn close_file(&mut self) -> Result<(), StoreError> {
        if let Some((writer, _)) = &mut self.open {
            writer.close()?;
            self.closed.push(writer.path().into());
            self.open = None;
        }
        Ok(())
    }

    /// The open file, or a new one.
    fn file(&mut self) -> Result<&mut EventWriter, StoreError> {
        if self.open.is_none() {
            let path = self.folder.join(format!("events-{:06}.parquet", self.next_file));
            let writer = EventWriter::create_on(path, &self.options.writer, self.create)?;
            self.next_file += 1;
            self.open = Some((writer, self.now_ps));
        }
        let (writer, _) = self.open.as_mut().expect("opened above");
        Ok(writer)
    }

    fn file_due(&self) -> Option<u64> {
        let (_, since) = self.open.as_ref()?;
        Some(since.saturating_add(self.options.file_ps?))
    }
}

impl EventSink for RunWriter {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.open.as_ref().is_some_and(|(writer, _)| writer.bytes_written() >= self.options.file_bytes) {
            self.close_file()?;
        }
        let now_ps = self.now_ps;
        let writer = self.file()?;
        writer.handle_timeout(now_ps)?;
        writer.store(event)
    }

    fn handle_timeout(&mut self, now_ps: u64) -> Result<(), StoreError> {
        self.now_ps = now_ps;
        if self.file_due().is_some_and(|due| due <= now_ps) {
            self.close_file()?;
        }
        match &mut self.open {
            Some((writer, _)) => writer.handle_timeout(now_ps),
            None => Ok(()),
        }
    }

    fn poll_timeout(&self) -> Option<u64> {
        let rows = self.open.as_ref().and_then(|(writer, _)| writer.poll_timeout());
        [rows, self.file_due()].into_iter().flatten().min()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.close_file()
    }
}

/// `events-000012.parquet`, also `events-000012-recovered.parquet`, is 12.
fn number_of(path: &Path) -> Option<u32> {
    let digits = path.file_name()?.to_str()?.strip_prefix("events-")?;
    digits.get(..6)?.parse().ok()
}
