// SPDX-License-Identifier: Apache-2.0
//! The two table formats of stored events, and the rows of a row group that is being filled.
//! Promise: column names, types and nullability are those of [`Table::schema`], and of docs/storage.md.
//! Source: ours; versions are in [`Table::version`].

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, ListBuilder, UInt16Builder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::schema::types::ColumnPath;

use crate::sink::Event;

/// Key of a file's metadata that holds [`Table::version`].
pub const SCHEMA_KEY: &str = "penstock.schema";
/// Keys of the run that several servers share, and of the server that has written a file of it.
pub const RUN_KEY: &str = "penstock.run";
pub const SERVER_KEY: &str = "penstock.server";

/// The meaning of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Table {
    /// One row per event, in order of event number.
    ///
    /// | column | type | meaning |
    /// |---|---|---|
    /// | `event_number` | uint64 | |
    /// | `timestamp_ns` | uint64, null if no fragment came | time of the event |
    /// | `complete` | bool | every source is there |
    /// | `sources` | list of uint16 | sources that are there, ascending |
    /// | `missing` | list of uint16 | sources that are not |
    /// | `fragments` | list of binary | payload of each of `sources`, in the same order, without fragment header |
    /// | `crc32c` | list of uint32 | CRC-32C of each of `fragments`, as the board computed it |
    /// | `trigger_types` | list of uint16 | trigger type of each of `fragments`; 0 of version 1 |
    /// | `parts` | list of binary | table of parts of each of `fragments`, as the board sent it; empty if it sent none |
    #[default]
    Events,
    /// One row per fragment, in order of event number and source; sources that did not come have a row too.
    ///
    /// | column | type | meaning |
    /// |---|---|---|
    /// | `event_number` | uint64 | |
    /// | `source` | uint16 | |
    /// | `timestamp_ns` | uint64, null if it did not come | time of the event at the board |
    /// | `crc32c` | uint32, null if it did not come | CRC-32C of the payload, as the board computed it |
    /// | `payload` | binary, null if it did not come | without fragment header |
    /// | `trigger_type` | uint16, null if it did not come | 0 of version 1 |
    /// | `parts` | binary, null if it did not come | table of parts, as the board sent it; empty if it sent none |
    Fragments,
}

impl Table {
    /// Value of the file's key [`SCHEMA_KEY`].
    pub const fn version(self) -> &'static str {
        match self {
            Table::Events => "events/3",
            Table::Fragments => "fragments/2",
        }
    }

    /// The table that a file says it holds, and how many of its columns: the version before this one has no trigger
    /// types and no parts.
    pub fn of_version(version: &str) -> Option<(Table, usize)> {
        match version {
            "events/3" => Some((Table::Events, 9)),
            "events/2" => Some((Table::Events, 7)),
            "fragments/2" => Some((Table::Fragments, 7)),
            "fragments/1" => Some((Table::Fragments, 5)),
            _ => None,
        }
    }

    /// The columns.
    pub fn schema(self) -> SchemaRef {
        let list_of = |item| DataType::new_list(item, true);
        let fields = match self {
            Table::Events => vec![
                Field::new("event_number", DataType::UInt64, false),
                Field::new("timestamp_ns", DataType::UInt64, true),
                Field::new("complete", DataType::Boolean, false),
                Field::new("sources", list_of(DataType::UInt16), false),
                Field::new("missing", list_of(DataType::UInt16), false),
                Field::new("fragments", list_of(DataType::Binary), false),
                Field::new("crc32c", list_of(DataType::UInt32), false),
                Field::new("trigger_types", list_of(DataType::UInt16), false),
                Field::new("parts", list_of(DataType::Binary), false),
            ],
            Table::Fragments => vec![
                Field::new("event_number", DataType::UInt64, false),
                Field::new("source", DataType::UInt16, false),
                Field::new("timestamp_ns", DataType::UInt64, true),
                Field::new("crc32c", DataType::UInt32, true),
                Field::new("payload", DataType::Binary, true),
                Field::new("trigger_type", DataType::UInt16, true),
                Field::new("parts", DataType::Binary, true),
            ],
        };
        Arc::new(Schema::new(fields))
    }

    /// The leaf columns that are noise to a dictionary and to statistics: payloads, their checksums and
    /// tables.
    pub(crate) fn noise(self) -> Vec<ColumnPath> {
        let leaf = |name: &str| ColumnPath::from(vec![name.into(), "list".into(), "item".into()]);
        match self {
            Table::Events => ["fragments", "crc32c", "trigger_types", "parts"].map(leaf).into(),
            Table::Fragments => ["payload", "crc32c", "trigger_type", "parts"].map(ColumnPath::from).into(),
        }
    }
}

/// The columns of the rows that are not yet written.
#[derive(Debug)]
enum Columns {
    Events(Box<EventColumns>),
    Fragments(Box<FragmentColumns>),
}

impl Columns {
    /// Reserves memory for this number of bytes in the payload builders, which must be empty.
    fn reserve(&mut self, bytes: usize) {
        let payloads = BinaryBuilder::with_capacity(0, bytes);
        match self {
            Columns::Events(columns) => columns.fragments = ListBuilder::new(payloads),
            Columns::Fragments(columns) => columns.payload = payloads,
        }
    }
}

#[derive(Debug, Default)]
struct EventColumns {
    event_number: UInt64Builder,
    timestamp_ns: UInt64Builder,
    complete: BooleanBuilder,
    sources: ListBuilder<UInt16Builder>,
    missing: ListBuilder<UInt16Builder>,
    fragments: ListBuilder<BinaryBuilder>,
    crc32c: ListBuilder<UInt32Builder>,
    trigger_types: ListBuilder<UInt16Builder>,
    parts: ListBuilder<BinaryBuilder>,
}

#[derive(Debug, Default)]
struct FragmentColumns {
    event_number: UInt64Builder,
    source: UInt16Builder,
    timestamp_ns: UInt64Builder,
    crc32c: UInt32Builder,
    payload: BinaryBuilder,
    trigger_type: UInt16Builder,
    parts: BinaryBuilder,
}

/// Rows that wait to become a row group.
#[derive(Debug)]
pub(crate) struct Rows {
    table: Table,
    /// Payload bytes for which memory is taken at once: growing would copy them.
    expected_bytes: usize,
    columns: Columns,
    payload_bytes: usize,
    events: u64,
}

impl Rows {
    pub fn new(table: Table) -> Rows {
        let columns = match table {
            Table::Events => Columns::Events(Box::default()),
            Table::Fragments => Columns::Fragments(Box::default()),
        };
        Rows { table, columns, expected_bytes: 0, payload_bytes: 0, events: 0 }
    }

    /// Rows with memory for row groups of this number of payload bytes, allocated at the first row of each.
    pub fn expecting(table: Table, bytes: usize) -> Rows {
        Rows { expected_bytes: bytes, ..Rows::new(table) }
    }

    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn push(&mut self, event: &Event<'_>) {
        if self.events == 0 && self.expected_bytes > 0 {
            self.columns.reserve(self.expected_bytes + event.payload_bytes());
        }
        self.payload_bytes += event.payload_bytes();
        self.events += 1;
        match &mut self.columns {
            Columns::Events(columns) => columns.push(event),
            Columns::Fragments(columns) => columns.push(event),
        }
    }

    /// All rows as one batch; none are left.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        (self.payload_bytes, self.events) = (0, 0);
        let columns = match &mut self.columns {
            Columns::Events(columns) => columns.take(),
            Columns::Fragments(columns) => columns.take(),
        };
        RecordBatch::try_new(self.table.schema(), columns)
    }
}

impl EventColumns {
    fn push(&mut self, event: &Event<'_>) {
        self.event_number.append_value(event.number);
        self.timestamp_ns.append_option(event.timestamp_ns);
        self.complete.append_value(event.complete);
        for fragment in event.fragments {
            self.sources.values().append_value(fragment.source);
            self.fragments.values().append_value(fragment.payload);
            self.crc32c.values().append_value(fragment.crc32c);
            self.trigger_types.values().append_value(fragment.trigger_type);
            self.parts.values().append_value(fragment.parts);
        }
        self.missing.values().append_slice(event.missing);
        self.sources.append(true);
        self.missing.append(true);
        self.fragments.append(true);
        self.crc32c.append(true);
        self.trigger_types.append(true);
        self.parts.append(true);
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.event_number.finish()),
            Arc::new(self.timestamp_ns.finish()),
            Arc::new(self.complete.finish()),
            Arc::new(self.sources.finish()),
            Arc::new(self.missing.finish()),
            Arc::new(self.fragments.finish()),
            Arc::new(self.crc32c.finish()),
            Arc::new(self.trigger_types.finish()),
            Arc::new(self.parts.finish()),
        ]
    }
}

impl FragmentColumns {
    fn push(&mut self, event: &Event<'_>) {
        let mut missing = event.missing.iter().copied().peekable();
        for fragment in event.fragments {
            while let Some(absent) = missing.next_if(|&absent| absent < fragment.source) {
                self.push_absent(event.number, absent);
            }
            self.event_number.append_value(event.number);
            self.source.append_value(fragment.source);
            self.timestamp_ns.append_value(fragment.timestamp_ns);
            self.crc32c.append_value(fragment.crc32c);
            self.payload.append_value(fragment.payload);
            self.trigger_type.append_value(fragment.trigger_type);
            self.parts.append_value(fragment.parts);
        }
        missing.for_each(|absent| self.push_absent(event.number, absent));
    }

    fn push_absent(&mut self, event: u64, source: u16) {
        self.event_number.append_value(event);
        self.source.append_value(source);
        self.timestamp_ns.append_null();
        self.crc32c.append_null();
        self.payload.append_null();
        self.trigger_type.append_null();
        self.parts.append_null();
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.event_number.finish()),
            Arc::new(self.source.finish()),
            Arc::new(self.timestamp_ns.finish()),
            Arc::new(self.crc32c.finish()),
            Arc::new(self.payload.finish()),
            Arc::new(self.trigger_type.finish()),
            Arc::new(self.parts.finish()),
        ]
    }
}
