// SPDX-License-Identifier: Apache-2.0
//! Verifies a stored file: schema, frames, footer, order of events, CRC-32C of every fragment, its pattern on request.
//! Promise: every damaged byte of a file is found, those of payloads with row group and row. In a file that another program
//! has rewritten only payloads have a checksum; the report says so. A damaged file gives a report, never a panic.
//! Source: docs/storage.md.

use std::fs::File;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, FieldRef, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use penstock_wire::{crc32c, PartFlags, Parts};
use serde::Serialize;

use crate::ending::{ending, Ending};
use crate::pattern::{Found, Pattern, PatternCheck};
use crate::recover::{walk, Walk};
use crate::schema::{Table, RUN_KEY, SCHEMA_KEY, SERVER_KEY};

/// The maximum number of problems of a file that are described; all are counted.
const DESCRIBED: usize = 100;
/// Rows that are read at a time.
const BATCH_ROWS: usize = 64;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The row group, from 0; none where the file as a whole is meant.
    pub row_group: Option<usize>,
    /// Row of that row group, from 0.
    pub row: Option<u64>,
    pub event: Option<u64>,
    pub source: Option<u16>,
    pub what: String,
}

/// Parts listed in the tables of all fragments, and the boards' flags of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PartCounts {
    pub all: u64,
    /// Nothing came from that input.
    pub missing: u64,
    /// Longer than the board takes, or ended by its timeout: bytes are lost.
    pub cut: u64,
    pub stopped: u64,
    /// Fragments of that input were dropped before it: duplicates, late ones.
    pub dropped: u64,
    pub trigger_differs: u64,
}

impl PartCounts {
    /// Parts that are not whole.
    pub fn lost(&self) -> u64 {
        self.missing + self.cut + self.stopped
    }

    fn add(&mut self, flags: PartFlags) {
        let is = |flag| u64::from(flags.contains(flag));
        self.all += 1;
        self.missing += is(PartFlags::MISSING);
        self.cut += is(PartFlags::CUT);
        self.stopped += is(PartFlags::STOPPED);
        self.dropped += is(PartFlags::DROPPED);
        self.trigger_differs += is(PartFlags::TRIGGER_DIFFERS);
    }
}

/// The contents of a file, and its errors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FileReport {
    pub file: PathBuf,
    /// Value of the key `penstock.schema`.
    pub schema: Option<String>,
    /// Name of the run, if several servers share it, with the server that wrote the file.
    pub run: Option<String>,
    pub server: Option<u16>,
    pub row_groups: usize,
    /// Row groups that have the CRC-32C of their frame; none if the file was rewritten by another program.
    pub frames: usize,
    /// The program that has rewritten the file, if one has: then only payloads have a checksum.
    pub rewritten_by: Option<String>,
    pub rows: u64,
    pub events: u64,
    pub events_incomplete: u64,
    pub fragments: u64,
    pub payload_bytes: u64,
    pub parts: PartCounts,
    pub first_event: Option<u64>,
    pub last_event: Option<u64>,
    /// All problems; the first hundred are described.
    pub problems: u64,
    pub described: Vec<Problem>,
    /// Event numbers, for what only several files show.
    #[serde(skip)]
    pub numbers: Vec<u64>,
    /// A digest of the sources and payloads of each of these events.
    #[serde(skip)]
    pub digests: Vec<u32>,
}

/// Reads a whole file and reports. A pattern is looked for where it is given.
pub fn verify_file(path: &Path, pattern: Option<Pattern>) -> FileReport {
    let report = FileReport { file: path.into(), ..FileReport::default() };
    let mut verifier = Verifier { report, pattern: pattern.map(PatternCheck::new), fragment_event: None, row: (0, 0) };
    if let Err(what) = verifier.file(path) {
        verifier.problem(None, what);
    }
    let complete = verifier.fragment_event.take();
    verifier.end_event(complete);
    verifier.report
}

/// Whether names and types agree. How items of a list are called, and what may be null, is the writing program's.
fn same_columns(found: &Schema, expected: &Schema) -> bool {
    let same_type = |found: &DataType, expected: &DataType| match (found, expected) {
        (DataType::List(found), DataType::List(expected)) => found.data_type() == expected.data_type(),
        _ => found == expected,
    };
    let same = |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && same_type(a.data_type(), b.data_type());
    found.fields().len() == expected.fields().len() && found.fields().iter().zip(expected.fields()).all(same)
}

/// The decoder panics at some damaged pages and footers; they are a report like all others.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| error.to_string()),
        Err(_) => Err("a page or a length is not what its header says".to_owned()),
    }
}

/// The footer that the row groups should have: their frames prove it.
fn of_row_groups(found: &Walk) -> Option<ArrowReaderMetadata> {
    let footer = found.footer.unsealed().ok()??;
    let metadata = ParquetMetaDataReader::decode_metadata(&footer[..footer.len() - 8]).ok()?;
    ArrowReaderMetadata::try_new(Arc::new(metadata), Default::default()).ok()
}

struct Verifier {
    report: FileReport,
    pattern: Option<PatternCheck>,
    /// The event that the last row belongs to, with one row per fragment, and whether all its sources came.
    fragment_event: Option<(u64, bool)>,
    /// Row group and row that are being looked at.
    row: (usize, u64),
}

impl Verifier {
    fn problem(&mut self, place: Option<(u64, u16)>, what: impl Into<String>) {
        let at_row = place.map(|_| self.row);
        self.add(Problem {
            row_group: at_row.map(|row| row.0),
            row: at_row.map(|row| row.1),
            event: place.map(|place| place.0),
            source: place.map(|place| place.1),
            what: what.into(),
        });
    }

    fn event_problem(&mut self, event: u64, what: impl Into<String>) {
        let (row_group, row) = (Some(self.row.0), Some(self.row.1));
        self.add(Problem { row_group, row, event: Some(event), source: None, what: what.into() });
    }

    fn add(&mut self, problem: Problem) {
        self.report.problems += 1;
        if self.report.described.len() < DESCRIBED {
            self.report.described.push(problem);
        }
    }

    /// An error that affects the whole file is returned.
    fn file(&mut self, path: &Path) -> Result<(), String> {
        let file = File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
        let found = walk(&file).map_err(|error| format!("cannot be read: {error}"))?;
        self.report.frames = found.footer.row_groups();
        let ending = ending(&file, &found).map_err(|error| format!("cannot be read: {error}"))?;
        let metadata = match &ending {
            Ending::Damaged(what) => {
                self.problem(None, what.clone());
                match of_row_groups(&found) {
                    Some(metadata) => metadata,
                    None => return Ok(()),
                }
            }
            Ending::Proven | Ending::Unproven(_) => guarded(|| ArrowReaderMetadata::load(&file, Default::default()))
                .map_err(|what| format!("has no footer that can be read: {what}"))?,
        };
        self.report.row_groups = metadata.metadata().num_row_groups();
        if found.torn {
            let (row_group, what) = (Some(self.report.frames), "its bytes do not have the CRC-32C of its frame");
            self.add(Problem { row_group, row: None, event: None, source: None, what: what.into() });
        }
        let creator = metadata.metadata().file_metadata().created_by().unwrap_or("an unknown program");
        let (frames, groups) = (self.report.frames, self.report.row_groups);
        let is_ours = creator.starts_with("penstock") || frames > 0;
        match ending {
            Ending::Unproven(_) if !is_ours => self.report.rewritten_by = Some(creator.to_owned()),
            Ending::Unproven(1..) if !found.torn => self.problem(None, "the seal in front of its footer is damaged"),
            _ => {}
        }
        if self.report.rewritten_by.is_none() && !found.torn && frames != groups {
            let what = format!("only {frames} of its {groups} row groups have the frame they were written with");
            self.problem(None, what);
        }
        let keys = metadata.metadata().file_metadata().key_value_metadata();
        let of = |key: &str| keys.and_then(|keys| keys.iter().find(|pair| pair.key == key)?.value.clone());
        let version = of(SCHEMA_KEY);
        self.report.run = of(RUN_KEY);
        self.report.server = of(SERVER_KEY).and_then(|number| number.parse().ok());
        self.report.schema = version.clone();
        let version = version.ok_or(format!("its metadata have no {SCHEMA_KEY}: it was not written by penstock"))?;
        let found = Table::of_version(&version);
        let (table, columns) = found.ok_or(format!("its schema {version} is unknown to this version"))?;
        let expected = Schema::new(table.schema().fields()[..columns].to_vec());
        if !same_columns(metadata.schema(), &expected) {
            return Err(format!("its columns are not those of {version}: {:?}", metadata.schema().fields()));
        }
        for row_group in 0..self.report.row_groups {
            self.row = (row_group, 0);
            if let Err(what) = guarded(|| self.row_group(&file, &metadata, table)) {
                let (row_group, row) = (Some(self.row.0), Some(self.row.1));
                let what = format!("cannot be decoded from here on: {what}");
                self.add(Problem { row_group, row, event: None, source: None, what });
            }
        }
        Ok(())
    }

    fn row_group(&mut self, file: &File, metadata: &ArrowReaderMetadata, table: Table) -> Result<(), ParquetError> {
        let file = file.try_clone()?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
            .with_row_groups(vec![self.row.0])
            .with_batch_size(BATCH_ROWS)
            .build()?;
        for batch in reader {
            match table {
                Table::Events => self.event_rows(&batch?),
                Table::Fragments => self.fragment_rows(&batch?),
            }
        }
        Ok(())
    }

    fn event_rows(&mut self, batch: &RecordBatch) {
        let numbers = batch.column(0).as_primitive::<UInt64Type>();
        let complete = batch.column(2).as_boolean();
        let tables = batch.columns().get(8).map(|column| column.as_list::<i32>());
        let [sources, missing, fragments, crcs] = [3, 4, 5, 6].map(|column| batch.column(column).as_list::<i32>());
        for row in 0..batch.num_rows() {
            let event = numbers.value(row);
            let u16s = |list: arrow_array::ArrayRef| list.as_primitive::<UInt16Type>().values().to_vec();
            let (sources, missing) = (u16s(sources.value(row)), u16s(missing.value(row)));
            let (payloads, crcs) = (fragments.value(row), crcs.value(row));
            let (payloads, crcs) = (payloads.as_binary::<i32>(), crcs.as_primitive::<UInt32Type>());
            if payloads.len() != sources.len() || crcs.len() != sources.len() {
                self.event_problem(event, "its lists of sources, fragments and crc32c differ in length");
            }
            if complete.value(row) != missing.is_empty() {
                self.event_problem(event, "`complete` and `missing` contradict each other");
            }
            if !sources.windows(2).all(|pair| pair[0] < pair[1]) {
                self.event_problem(event, "its sources are not ascending");
            }
            self.begin_event(event);
            missing.iter().for_each(|&source| self.missing(source));
            for (i, &source) in sources.iter().enumerate().take(payloads.len().min(crcs.len())) {
                self.fragment(event, source, payloads.value(i), crcs.value(i));
                let Some(tables) = tables.map(|tables| tables.value(row)) else { continue };
                match tables.as_binary::<i32>() {
                    tables if i < tables.len() => self.parts(event, source, tables.value(i), payloads.value(i)),
                    _ => self.problem(Some((event, source)), "its list of parts is shorter than that of sources"),
                }
            }
            self.end_event(Some((event, missing.is_empty())));
            self.end_row();
        }
    }

    fn fragment_rows(&mut self, batch: &RecordBatch) {
        let numbers = batch.column(0).as_primitive::<UInt64Type>();
        let sources = batch.column(1).as_primitive::<UInt16Type>();
        let crcs = batch.column(3).as_primitive::<UInt32Type>();
        let payloads = batch.column(4).as_binary::<i32>();
        let tables = batch.columns().get(6).map(|column| column.as_binary::<i32>());
        for row in 0..batch.num_rows() {
            let (event, source) = (numbers.value(row), sources.value(row));
            if self.fragment_event.is_none_or(|(last, _)| last != event) {
                let last = self.fragment_event.replace((event, true));
                self.end_event(last);
                self.begin_event(event);
            }
            match (payloads.is_valid(row), crcs.is_valid(row)) {
                (true, true) => {
                    self.fragment(event, source, payloads.value(row), crcs.value(row));
                    let table = tables.map_or(&[][..], |tables| tables.value(row));
                    self.parts(event, source, table, payloads.value(row));
                }
                (false, false) => {
                    self.fragment_event = Some((event, false));
                    self.missing(source);
                }
                _ => self.problem(Some((event, source)), "it has a payload or a crc32c, but not both"),
            }
            self.end_row();
        }
    }

    fn begin_event(&mut self, event: u64) {
        if let Some(last) = self.report.last_event.filter(|&last| event <= last) {
            self.event_problem(event, format!("it stands behind event {last}; events must ascend"));
        }
        let follows = self.report.last_event.is_some_and(|last| last.checked_add(1) == Some(event));
        if let (false, Some(pattern)) = (follows, &mut self.pattern) {
            (0..=u16::MAX).take(pattern.sources()).for_each(|source| pattern.skip(source));
        }
        self.report.first_event.get_or_insert(event);
        self.report.last_event = Some(event);
        self.report.numbers.push(event);
        self.report.digests.push(0);
    }

    /// Adds a source of the last event to its digest; no payload: it is missing.
    fn digest(&mut self, source: u16, payload: Option<(usize, u32)>) {
        let Some(digest) = self.report.digests.last_mut() else { return };
        let (len, crc) = payload.map_or((u64::MAX, 0), |(len, crc)| (len as u64, crc));
        let mut bytes = [0; 14];
        bytes[..2].copy_from_slice(&source.to_le_bytes());
        bytes[2..10].copy_from_slice(&len.to_le_bytes());
        bytes[10..].copy_from_slice(&crc.to_le_bytes());
        // In whichever order a table has the sources.
        *digest = digest.wrapping_add(crc32c(&bytes));
    }

    fn end_event(&mut self, event: Option<(u64, bool)>) {
        if let Some((_, complete)) = event {
            self.report.events += 1;
            self.report.events_incomplete += u64::from(!complete);
        }
    }

    fn end_row(&mut self) {
        self.report.rows += 1;
        self.row.1 += 1;
    }

    fn missing(&mut self, source: u16) {
        self.digest(source, None);
        if let Some(pattern) = &mut self.pattern {
            pattern.skip(source);
        }
    }

    /// A table must describe its payload; the board's flags of each part are counted.
    fn parts(&mut self, event: u64, source: u16, table: &[u8], payload: &[u8]) {
        match Parts::parse(table, payload.len() as u32) {
            Ok(parts) => parts.iter().for_each(|part| self.report.parts.add(part.flags)),
            Err(error) => self.problem(Some((event, source)), error.to_string()),
        }
    }

    fn fragment(&mut self, event: u64, source: u16, payload: &[u8], crc: u32) {
        self.report.fragments += 1;
        self.report.payload_bytes += payload.len() as u64;
        let computed = crc32c(payload);
        self.digest(source, Some((payload.len(), computed)));
        if computed != crc {
            self.problem(Some((event, source)), format!("CRC-32C of its payload is {computed:#010x}, not {crc:#010x}"));
        }
        match self.pattern.as_mut().map(|pattern| pattern.check(source, payload)) {
            None | Some(Found::Right) => {}
            Some(Found::Jump { bytes }) => {
                let mut what = "its pattern does not follow the fragment before".to_owned();
                what += &bytes.map_or(String::new(), |bytes| format!(", but is {bytes} bytes further on"));
                self.problem(Some((event, source)), what);
            }
            Some(Found::Wrong { errors, first }) => {
                let what = format!("its pattern has {errors} errors, the first in byte {first}");
                self.problem(Some((event, source)), what);
            }
        }
    }
}
