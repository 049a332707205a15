// SPDX-License-Identifier: Apache-2.0
//! The trace file: an independent reader reads back the recorded values, even when the run ends early.

mod common;

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt64Type};
use arrow_array::{RecordBatch, StringArray};
use common::PORT;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use penstock_netsim::{Engine, Frame, Node, Outbox, PortId, RunEnd, Time, TraceError, TraceSink};

type Row = (u64, String, u16, String, f64);

fn read(path: &Path) -> Vec<Row> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    rows(reader.map(Result::unwrap))
}

fn rows(batches: impl IntoIterator<Item = RecordBatch>) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        let names = |column: usize, row: usize| {
            let dictionary = batch.column(column).as_dictionary::<UInt16Type>();
            let values = dictionary.downcast_dict::<StringArray>().unwrap();
            arrow_array::ArrayAccessor::value(&values, row).to_owned()
        };
        for row in 0..batch.num_rows() {
            rows.push((
                batch.column(0).as_primitive::<UInt64Type>().value(row),
                names(1, row),
                batch.column(2).as_primitive::<UInt16Type>().value(row),
                names(3, row),
                batch.column(4).as_primitive::<Float64Type>().value(row),
            ));
        }
    }
    rows
}

/// Records its own time.
struct Clock(Option<Time>);

impl Node for Clock {
    fn on_start(&mut self, out: &mut Outbox) {
        if let Some(at) = self.0 {
            out.timer_at(at, 0);
        }
    }
    fn on_frame(&mut self, _at: Time, _port: PortId, _frame: Frame, _out: &mut Outbox) {}
    fn on_timer(&mut self, _now: Time, _token: u64, out: &mut Outbox) {
        out.stop();
    }
    fn sample(&mut self, now: Time, trace: &mut TraceSink) {
        trace.record(3, "ps", now.as_ps() as f64);
        trace.record_at(Time(1), PORT.0, "earlier", 1.5);
    }
}

#[test]
fn every_node_is_sampled_at_the_interval_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let mut engine = Engine::new(1);
    engine.add_node("a", Box::new(Clock(Some(Time::from_us(25)))));
    engine.add_node("b", Box::new(Clock(None)));
    engine.set_trace(TraceSink::create(&path, &[("seed", "1")]).unwrap(), Time::from_us(10));
    assert_eq!(engine.run_until(Time::from_ms(1)).unwrap(), RunEnd::Stopped);
    assert!(!path.exists(), "the name appears when the file is whole");
    assert_eq!(engine.take_trace().unwrap().finish().unwrap(), 12);
    let rows = read(&path);
    let times: Vec<(u64, &str)> = rows.iter().filter(|row| row.3 == "ps").map(|row| (row.0, row.1.as_str())).collect();
    let us = 1_000_000;
    let expected = [(0, "a"), (10 * us, "a"), (20 * us, "a"), (0, "b"), (10 * us, "b"), (20 * us, "b")];
    assert_eq!(times, expected, "series by series");
    assert_eq!(rows.iter().filter(|row| **row == (1, "a".to_owned(), 0, "earlier".to_owned(), 1.5)).count(), 3);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_trace_that_is_dropped_is_still_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let mut trace = TraceSink::create(&path, &[]).unwrap();
    trace.begin(Time(5), "node");
    for n in 0..200_000u32 {
        trace.record((n % 7) as u16, "n", f64::from(n));
    }
    drop(trace);
    let rows = read(&path);
    assert_eq!(rows.len(), 200_000);
    for channel in 0..7u16 {
        let values: Vec<f64> = rows.iter().filter(|row| row.2 == channel).map(|row| row.4).collect();
        let recorded = (0..200_000u32).filter(|n| n % 7 == u32::from(channel)).map(f64::from);
        assert_eq!(values, recorded.collect::<Vec<_>>(), "in the order in which they were recorded");
    }
}

#[test]
fn any_number_of_names_and_channels_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for count in [1u16, 2, 3, 255, 256, 257, 9000] {
        let path = folder.path().join(format!("{count}.parquet"));
        let mut trace = TraceSink::create(&path, &[]).unwrap();
        let mut expected = Vec::new();
        // Not a multiple of the eight rows that the file packs together.
        for n in 0..u64::from(count) * 3 + 1 {
            let number = u16::try_from(n * 7 % u64::from(count)).unwrap();
            trace.begin(Time(n), &format!("node {number}"));
            trace.record(u16::MAX - number, "value", n as f64);
            expected.push((n, format!("node {number}"), u16::MAX - number, "value".to_owned(), n as f64));
        }
        trace.finish().unwrap();
        let mut rows = read(&path);
        rows.sort_by_key(|row| row.0);
        assert_eq!(rows, expected, "{count} names");
    }
    let path = folder.path().join("none.parquet");
    assert_eq!(TraceSink::create(&path, &[]).unwrap().finish().unwrap(), 0);
    assert_eq!(read(&path), []);
}

#[test]
fn only_the_selected_metrics_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let mut trace = TraceSink::create(&path, &[]).unwrap();
    trace.select(&["alpha".to_owned(), "alhpa".to_owned()]);
    trace.begin(Time(5), "node");
    assert!(trace.records("alpha") && !trace.records("queue_bytes"));
    for n in 0..3 {
        trace.record(n, "alpha", f64::from(n));
        trace.record(n, "queue_bytes", 1.0);
    }
    assert_eq!(trace.never_recorded().collect::<Vec<_>>(), ["alhpa"]);
    assert_eq!(trace.finish().unwrap(), 3);
    assert!(read(&path).iter().all(|row| row.3 == "alpha"));
}

#[test]
fn a_trace_that_cannot_be_written_names_the_file() {
    let error = TraceSink::create("/no/such/folder/trace.parquet", &[]).err().unwrap();
    assert!(matches!(&error, TraceError::Io { .. }));
    assert!(error.to_string().starts_with("cannot write /no/such/folder/trace.parquet.part: "), "{error}");
}

#[test]
fn a_trace_in_memory_has_the_rows_of_one_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let fill = |trace: &mut TraceSink| {
        trace.select(&["kept".to_owned()]);
        for n in 0..140_000 {
            trace.begin(Time(n), if n < 131_072 { "early" } else { "late" });
            trace.record(n as u16 % 3, "kept", n as f64);
            trace.record(0, "left out", 1.0);
        }
    };
    let (mut file, mut memory) = (TraceSink::create(&path, &[]).unwrap(), TraceSink::in_memory());
    fill(&mut file);
    fill(&mut memory);
    assert_eq!(file.finish().unwrap(), 140_000);
    let batches = memory.into_batches().unwrap();
    assert!(batches.len() > 1);
    assert_eq!(rows(batches), read(&path));
    assert_eq!(TraceSink::in_memory().into_batches().unwrap()[0].num_rows(), 0, "without rows there are still columns");
}

#[test]
fn samples_that_come_and_go_keep_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let mut trace = TraceSink::create(&path, &[]).unwrap();
    let mut expected = Vec::new();
    for n in 0..500u64 {
        // Channel c comes every c + 1 times, channel 3 twice at once.
        for channel in (0..4u16).filter(|channel| n % (u64::from(*channel) + 1) == 0) {
            for again in 0..1 + u64::from(channel == 3) {
                trace.begin(Time(n), "node");
                trace.record(channel, "value", (n + again) as f64);
                expected.push((n, "node".to_owned(), channel, "value".to_owned(), (n + again) as f64));
            }
        }
    }
    trace.finish().unwrap();
    expected.sort_by_key(|row| row.2);
    assert_eq!(read(&path), expected);
}

/// A value for a while, then another one: of few or of ever new ones, with those that compare oddly.
fn values(seed: u64, series: u64, rows: usize) -> Vec<f64> {
    let mut state = seed * 1000 + series;
    let mut next = move || {
        // SplitMix64 (Steele et al. 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut values = Vec::new();
    while values.len() < rows {
        let value = match next() % 8 {
            0 => 0.0,
            1 => -0.0,
            2 => f64::NAN,
            few @ 3..=5 => few as f64,
            _ => f64::from_bits(next()),
        };
        let longest = [1, 3, 9, 40][(series % 4) as usize];
        values.extend(std::iter::repeat_n(value, 1 + (next() % longest) as usize));
    }
    values
}

#[test]
fn values_that_stay_and_values_that_change_are_read_back_bit_for_bit() {
    const ROWS: usize = 40_000;
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..4 {
        // Seed 0: all change at each sample; 3: they stay for long.
        let series: Vec<u64> = (0..8).map(|n| if seed == 0 { 4 * n } else { 4 * n + seed }).collect();
        let expected: Vec<Vec<f64>> = series.iter().map(|series| values(seed, *series, ROWS)).collect();
        let path = folder.path().join(format!("{seed}.parquet"));
        let mut trace = TraceSink::create(&path, &[]).unwrap();
        for row in 0..ROWS {
            trace.begin(Time(row as u64), "node");
            for (channel, values) in expected.iter().enumerate() {
                trace.record(channel as u16, "value", values[row]);
            }
        }
        assert_eq!(trace.finish().unwrap() as usize, 8 * ROWS);
        let mut found = vec![Vec::new(); 8];
        for (_, _, channel, _, value) in read(&path) {
            found[usize::from(channel)].push(value.to_bits());
        }
        let bits = |values: &Vec<f64>| values[..ROWS].iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
        assert_eq!(found, expected.iter().map(bits).collect::<Vec<_>>(), "seed {seed}");
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        let dictionary = reader.metadata().row_group(0).column(4).dictionary_page_offset().is_some();
        assert_eq!(dictionary, seed > 0, "a dictionary where values repeat, seed {seed}");
    }
}

#[test]
fn a_disk_that_is_full_is_reported_while_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("trace.parquet.part")).unwrap();
    let mut trace = TraceSink::create(&path, &[]).unwrap();
    // Two groups may wait for the thread that writes; the next one meets what it has found.
    let error = (0..8 * 131_072u64).find_map(|n| {
        trace.begin(Time(n), "node");
        trace.record(0, "value", f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        trace.check().err()
    });
    let error = error.expect("it cannot be written").to_string();
    assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
    assert!(error.contains("No space left"), "{error}");
}
