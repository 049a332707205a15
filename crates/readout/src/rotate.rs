// SPDX-License-Identifier: Apache-2.0
//! A run as a folder of files that are closed by size and by time, written by background threads.
//! Promise: files are numbered in the order of their events; files that an earlier process left open are recovered
//! first, and their numbers are not used again. Only `close` waits for a disk; the number of row groups in flight is
//! bounded.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use nix::unistd::{access, AccessFlags};
use parquet::errors::ParquetError;
use penstock_units::Time;

use crate::event_file::{Encoder, EventFile};
use crate::medium::{create_file, CreateMedium};
use crate::recover::{list, recover_folder, Recovered};
use crate::schema::Rows;
use crate::sink::{Event, EventSink, Kept, StoreError};
use crate::write_behind::{Files, WriteBehind};
use crate::writer::payload_of_one_row;
use crate::writer_options::{WriterOptions, MAX_BATCH_BYTES};

/// Time after which rows are tried again for which the writing threads had no room.
const NO_ROOM: Time = Time::from_ms(1);

/// When files end, and how many threads write them. The default is 4 GiB or ten minutes, by one encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    pub writer: WriterOptions,
    /// Bytes on disk after which a file is closed; it may be longer by one row group.
    pub file_bytes: u64,
    /// Time after which a file is closed, from its first event; none is never. A file that follows one of full
    /// size may be closed earlier: the time is that of the row groups, whose size is known later.
    pub file_time: Option<Time>,
    /// Threads that encode and compress; another one writes and syncs. Files do not depend on their number.
    pub encoders: NonZeroUsize,
    /// Row groups at most between the caller and the disk. A killed process loses these and the one being filled.
    pub row_groups_waiting: NonZeroUsize,
}

impl Default for RunOptions {
    fn default() -> Self {
        let writer =
            WriterOptions { row_group_time: Some(Time::from_s(1)), sync_row_groups: true, ..WriterOptions::default() };
        let (encoders, row_groups_waiting) = (NonZeroUsize::MIN, NonZeroUsize::MIN.saturating_add(3));
        RunOptions { writer, file_bytes: 4 << 30, file_time: Some(Time::from_s(600)), encoders, row_groups_waiting }
    }
}

/// Writes `events-000000.parquet`, `events-000001.parquet`... of a folder.
#[derive(Debug)]
pub struct RunWriter {
    folder: PathBuf,
    options: RunOptions,
    recovered: Vec<Recovered>,
    found: usize,
    rows: Rows,
    /// When the first of `rows` came.
    rows_since: Option<Time>,
    /// The time of the first event since files were last ended.
    file_since: Option<Time>,
    now: Time,
    /// Nothing that is due is tried before: there was no room.
    not_before: Time,
    /// Nothing more is written.
    given_up: bool,
    behind: WriteBehind,
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
        let fail = |action| {
            let file = folder.clone();
            move |source| StoreError::Io { file, action, source }
        };
        std::fs::create_dir_all(&folder).map_err(fail("made"))?;
        // Now, and not when the first event is there.
        access(&folder, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|error| fail("written to")(error.into()))?;
        let recovered = recover_folder(&folder)?;
        if !list(&folder, ".parquet.partial")?.is_empty() {
            return Err(StoreError::Locked { folder });
        }
        let options = RunOptions { writer: options.writer.checked(), ..options };
        let numbers: Vec<_> = list(&folder, ".parquet")?.into_iter().filter_map(|path| number_of(&path)).collect();
        let next = numbers.iter().max().map_or(0, |last| last + 1);
        let encoder =
            Encoder::new(&options.writer).map_err(|source| StoreError::Parquet { file: folder.clone(), source })?;
        let (file_bytes, sync_row_groups) = (options.file_bytes, options.writer.sync_row_groups);
        let files = Folder {
            folder: folder.clone(),
            file_bytes,
            sync_row_groups,
            encoder: encoder.clone(),
            create,
            next,
            open: None,
            closed: Vec::new(),
        };
        let behind = WriteBehind::start(files, &encoder, options.encoders, options.row_groups_waiting)
            .map_err(fail("written by threads of its own"))?;
        Ok(RunWriter {
            rows: Rows::expecting(options.writer.table, options.writer.row_group_bytes),
            folder,
            options,
            recovered,
            found: numbers.len(),
            rows_since: None,
            file_since: None,
            now: Time::ZERO,
            not_before: Time::ZERO,
            given_up: false,
            behind,
        })
    }

    /// Files that were in the folder when it was opened, those recovered then included: of a run that goes on, or of
    /// another one.
    pub fn found(&self) -> usize {
        self.found
    }

    /// The files recovered when the folder was opened.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// The files of this process that are valid by now; all of them after [`EventSink::close`].
    pub fn closed(&self) -> Vec<PathBuf> {
        self.behind.closed()
    }

    /// Row groups on their way to the disk.
    pub fn row_groups_waiting(&self) -> usize {
        self.behind.row_groups()
    }

    /// Gives the rows to the threads; false if these have no room.
    fn push_rows(&mut self) -> Result<bool, StoreError> {
        if self.rows.events() == 0 {
            return Ok(true);
        }
        if !self.behind.has_room() {
            return Ok(false);
        }
        let fail =
            |error: arrow_schema::ArrowError| StoreError::Parquet { file: self.folder.clone(), source: error.into() };
        let held = Kept { events: self.rows.events(), bytes: self.rows.payload_bytes() as u64, unclosed: 0 };
        let batch = self.rows.take().map_err(fail)?;
        self.rows_since = None;
        self.behind.push(batch, held);
        Ok(true)
    }

    fn end_file(&mut self) {
        if self.file_since.take().is_some() {
            self.behind.end_file();
        }
    }

    fn rows_due(&self) -> Option<Time> {
        Some(self.rows_since?.saturating_add(self.options.writer.row_group_time?))
    }

    fn file_due(&self) -> Option<Time> {
        Some(self.file_since?.saturating_add(self.options.file_time?))
    }
}

impl EventSink for RunWriter {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if let Some(error) = self.behind.error() {
            return Err(error);
        }
        let bytes = payload_of_one_row(event)?;
        let (waiting, limit) = (self.rows.payload_bytes(), self.options.writer.row_group_bytes);
        if (waiting >= limit || waiting + bytes > MAX_BATCH_BYTES) && !self.push_rows()? {
            return Err(StoreError::WriterBusy { folder: self.folder.clone(), row_groups: self.behind.row_groups() });
        }
        self.rows.push(event);
        self.rows_since.get_or_insert(self.now);
        self.file_since.get_or_insert(self.now);
        if self.rows.payload_bytes() >= limit {
            // The event is taken already: if there is no room, the next one gets the error.
            self.push_rows()?;
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Time) -> Result<(), StoreError> {
        self.now = now;
        if let Some(error) = self.behind.error() {
            return Err(error);
        }
        if self.poll_timeout().is_none_or(|due| now < due) {
            return Ok(());
        }
        if !self.push_rows()? {
            self.not_before = now.saturating_add(NO_ROOM);
        } else if self.file_due().is_some_and(|due| due <= now) {
            self.end_file();
        }
        Ok(())
    }

    fn kept(&self) -> Option<Kept> {
        Some(self.behind.kept())
    }

    fn give_up(&mut self) {
        self.given_up = true;
        self.behind.stop();
    }

    fn poll_timeout(&self) -> Option<Time> {
        let due = [self.rows_due(), self.file_due()].into_iter().flatten().min();
        due.map(|due| due.max(self.not_before))
    }

    fn wait(&mut self) -> Result<(), StoreError> {
        self.behind.wait_for_room()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.behind.wait_for_room()?;
        self.push_rows()?;
        self.end_file();
        self.behind.wait_for_all()
    }
}

impl Drop for RunWriter {
    /// An early end (an error, Ctrl-C handled above us, a panic) leaves valid files with what came so far.
    fn drop(&mut self) {
        if self.given_up {
            return;
        }
        if let Err(error) = self.close() {
            tracing::error!(%error, "the run could not be closed; `penstock check --recover` completes it");
        }
    }
}

/// The files of the folder, as the writing thread makes them.
struct Folder {
    folder: PathBuf,
    file_bytes: u64,
    sync_row_groups: bool,
    encoder: Encoder,
    create: CreateMedium,
    /// Number of the next file.
    next: u32,
    open: Option<EventFile>,
    closed: Vec<PathBuf>,
}

impl Folder {
    fn file(&mut self) -> Result<&mut EventFile, StoreError> {
        if self.open.is_none() {
            let path = self.folder.join(format!("events-{:06}.parquet", self.next));
            self.open = Some(EventFile::create(path, self.sync_row_groups, self.create)?);
            self.next += 1;
        }
        Ok(self.open.as_mut().expect("opened above"))
    }
}

impl Files for Folder {
    fn write(&mut self, segment: &Bytes) -> Result<(), StoreError> {
        if self.open.as_ref().is_some_and(|file| file.bytes_written() >= self.file_bytes) {
            self.end_file()?;
        }
        self.file()?.write(segment)
    }

    fn end_file(&mut self) -> Result<(), StoreError> {
        if let Some(file) = &mut self.open {
            file.complete(&self.encoder)?;
            self.closed.push(file.path().into());
            self.open = None;
        }
        Ok(())
    }

    fn take_closed(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.closed)
    }

    fn is_there(&self) -> bool {
        self.open.as_ref().is_none_or(EventFile::is_there)
    }

    fn broken(&self, source: ParquetError) -> StoreError {
        let file = self.open.as_ref().map_or(&self.folder, |file| file.partial());
        StoreError::Parquet { file: file.clone(), source }
    }
}

/// `events-000012.parquet`, also `events-000012-recovered.parquet`, is 12.
fn number_of(path: &Path) -> Option<u32> {
    let digits = path.file_name()?.to_str()?.strip_prefix("events-")?;
    digits.get(..6)?.parse().ok()
}
