// SPDX-License-Identifier: Apache-2.0
//! The event file, read back with Arrow's own reader.
//! Promise checked: stored events read back in order; the file is valid however the writer ends.
//! The same file is read with pyarrow in tests/test_events_parquet.py.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use penstock_readout::*;
use proptest::prelude::*;

/// Number, timestamp, (source, payload) of each fragment, missing sources.
type Row = (u64, Option<u64>, Vec<(u16, Vec<u8>)>, Vec<u16>);

fn store(writer: &mut EventWriter, (number, timestamp_ns, fragments, missing): &Row) -> Result<(), StoreError> {
    let fragments: Vec<Fragment<'_>> =
        fragments.iter().map(|(source, payload)| Fragment::of(*source, *number, payload)).collect();
    let complete = missing.is_empty();
    writer.store(&Event { number: *number, timestamp_ns: *timestamp_ns, complete, fragments: &fragments, missing })
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let column = |name: &str| batch.column_by_name(name).unwrap().clone();
    let list_u16 = |name: &str, row: usize| -> Vec<u16> {
        column(name).as_list::<i32>().value(row).as_primitive::<UInt16Type>().values().to_vec()
    };
    let row = |row: usize| {
        let timestamps = column("timestamp_ns");
        let timestamp_ns = timestamps.is_valid(row).then(|| timestamps.as_primitive::<UInt64Type>().value(row));
        let payloads = column("fragments").as_list::<i32>().value(row);
        let payloads = payloads.as_binary::<i32>().iter().map(|payload| payload.unwrap().to_vec());
        let missing = list_u16("missing", row);
        assert_eq!(column("complete").as_boolean().value(row), missing.is_empty());
        let fragments = list_u16("sources", row).into_iter().zip(payloads).collect();
        (column("event_number").as_primitive::<UInt64Type>().value(row), timestamp_ns, fragments, missing)
    };
    (0..batch.num_rows()).map(row).collect()
}

fn read(path: &Path) -> Vec<Row> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    builder.build().unwrap().flat_map(|batch| rows_of(&batch.unwrap())).collect()
}

fn row(number: u64) -> Row {
    (number, Some(number * 10), vec![(0, vec![number as u8; 1000]), (1, vec![])], vec![])
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let fragment = (any::<u16>(), prop::collection::vec(any::<u8>(), 0..300));
    let missing = prop::collection::vec(any::<u16>(), 0..4);
    let row = (any::<u64>(), any::<Option<u64>>(), prop::collection::vec(fragment, 0..5), missing);
    prop::collection::vec(row, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn stored_events_are_read_back_whatever_the_size_of_the_row_groups(rows in rows(), row_group_bytes in 0usize..2000) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.parquet");
        let mut writer = EventWriter::create(&path, &WriterOptions { row_group_bytes, ..Default::default() }).unwrap();
        rows.iter().for_each(|row| store(&mut writer, row).unwrap());
        writer.close().unwrap();
        prop_assert_eq!(read(&path), rows);
    }
}

#[test]
fn the_name_appears_with_the_valid_file_and_nothing_else_remains() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let mut writer = EventWriter::create(&path, &WriterOptions::default()).unwrap();
    store(&mut writer, &row(1)).unwrap();
    assert!(!path.exists());
    writer.close().unwrap();
    writer.close().unwrap();
    assert_eq!(read(&path), [row(1)]);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["events.parquet"]);
    let text = store(&mut writer, &row(2)).unwrap_err().to_string();
    assert!(text.contains("events.parquet: event 2 comes after the file was closed"), "{text}");
}

#[test]
fn a_writer_that_is_dropped_leaves_a_valid_file_with_what_came_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let mut writer =
        EventWriter::create(&path, &WriterOptions { row_group_bytes: 1500, ..Default::default() }).unwrap();
    (0..5).for_each(|number| store(&mut writer, &row(number)).unwrap());
    drop(writer);
    assert_eq!(read(&path), (0..5).map(row).collect::<Vec<_>>());
}

#[test]
fn metadata_names_the_schema_and_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let metadata = vec![("penstock.seed".to_owned(), "42".to_owned())];
    EventWriter::create(&path, &WriterOptions { metadata, ..Default::default() }).unwrap().close().unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
    let metadata = builder.metadata().file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| metadata.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
    assert_eq!(value("penstock.schema").as_deref(), Some("events/3"));
    assert_eq!(value("penstock.seed").as_deref(), Some("42"));
    assert_eq!(builder.schema().fields(), Table::Events.schema().fields());
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let text = EventWriter::create("no/such/folder/events.parquet", &WriterOptions::default()).unwrap_err().to_string();
    assert!(text.contains("no/such/folder/events.parquet.partial: cannot be created"), "{text}");
}
