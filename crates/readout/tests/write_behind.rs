// SPDX-License-Identifier: Apache-2.0
//! The background threads of a run's writer: order, bounds, and disks that are slow or fail.
//! Promise checked: files do not depend on the threads; accepted data is on disk or reported as lost.
//! Source: docs/storage.md. The disks here are simulated; tests/test_recv.py uses a real full disk.

use std::io;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::RwLock;
use std::time::Duration;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Payload, Prbs31};

fn options(row_groups_waiting: usize, encoders: usize) -> RunOptions {
    let writer = WriterOptions { row_group_bytes: 2500, ..WriterOptions::default() };
    let count = |n| NonZeroUsize::new(n).unwrap();
    RunOptions {
        writer,
        file_bytes: u64::MAX,
        file_time: None,
        encoders: count(encoders),
        row_groups_waiting: count(row_groups_waiting),
    }
}

/// Half of an event is noise to the compressor, half is not.
fn with_event<T>(number: u64, use_it: impl FnOnce(&Event<'_>) -> T) -> T {
    let mut payload = vec![number as u8; 1000];
    Prbs31::new(number as u32 + 1, false).fill(&mut payload[..500]);
    let fragments = [Fragment::of(0, number, &payload)];
    use_it(&Event { number, timestamp_ns: Some(number), complete: true, fragments: &fragments, missing: &[] })
}

fn rows(path: &Path) -> i64 {
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    reader.metadata().file_metadata().num_rows()
}

#[test]
fn files_are_the_same_bytes_however_many_threads_encode_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, of: &str| std::fs::read(folder.path().join(name).join(of)).unwrap();
    for encoders in [1, 2, 5] {
        let path = folder.path().join(encoders.to_string());
        let mut run = RunWriter::open(path, RunOptions { file_bytes: 20_000, ..options(4, encoders) }).unwrap();
        (0..100).for_each(|number| with_event(number, |event| run.store_waiting(event)).unwrap());
        run.close().unwrap();
        assert!(run.closed().len() > 2, "{} files", run.closed().len());
        for path in run.closed() {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(file(&encoders.to_string(), name) == file("1", name), "{encoders} encoders, {name}");
        }
    }
    // One file, written in the caller's own time: the same too.
    let mut run = RunWriter::open(folder.path().join("run"), options(4, 3)).unwrap();
    let single = folder.path().join("run/single");
    let mut writer = EventWriter::create(&single, &options(1, 1).writer).unwrap();
    for number in 0..50 {
        with_event(number, |event| run.store_waiting(event)).unwrap();
        with_event(number, |event| writer.store(event)).unwrap();
    }
    run.close().unwrap();
    writer.close().unwrap();
    assert!(file("run", "single") == file("run", "events-000000.parquet"));
}

/// A disk whose writes wait at a gate that a test holds shut, and fail as it says. One for each test: these run side by
/// side.
#[derive(Debug)]
struct Gated {
    file: Box<dyn Medium>,
    gate: &'static Gate,
}

#[derive(Debug)]
struct Gate {
    shut: RwLock<()>,
    /// 0 is none; `u64::MAX` panics.
    errno: AtomicU64,
}

impl Gate {
    const fn new() -> Gate {
        Gate { shut: RwLock::new(()), errno: AtomicU64::new(0) }
    }
}

impl Medium for Gated {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _open = self.gate.shut.read().unwrap();
        match self.gate.errno.load(Ordering::SeqCst) {
            0 => self.file.write_at(bytes, offset),
            u64::MAX => panic!("a bug of the medium"),
            errno => Err(io::Error::from_raw_os_error(errno as i32)),
        }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Waits (in real time) for what another thread does.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{what} has not come");
}

#[test]
fn a_slow_disk_holds_boards_back_within_the_bound_and_loses_nothing() {
    static GATE: Gate = Gate::new();
    const EVENTS: u64 = 100;
    let folder = tempfile::tempdir().unwrap();
    let create = |path: &Path| Ok(Box::new(Gated { file: create_file(path)?, gate: &GATE }) as Box<dyn Medium>);
    let run = RunWriter::open_on(folder.path(), options(2, 2), create).unwrap();
    let ring = RingConfig { slots: 4, slot_bytes: 2048, ..RingConfig::default() };
    let builder = BuilderConfig { sources: NonZeroU16::MIN, ..BuilderConfig::default() };
    let config = ReceiverConfig { rings: vec![ring], builder, consumer_rate: None };
    let mut receiver = Receiver::new(config, run).unwrap();
    let (mut credits, mut event, mut now) = (0, 0, Time::ZERO);
    let mut send = |receiver: &mut Receiver<RunWriter>, now| {
        credits += receiver.take_credits(0);
        if credits == 0 || event == EVENTS {
            return event;
        }
        let payload = [event as u8; 1000];
        let message = [&FragmentHeader::for_payload(0, event, event, &payload).to_bytes()[..], &payload].concat();
        let (slot, len) = ((event % 4) as u32, message.len() as u32);
        let va = receiver.region(0).unwrap().va;
        receiver.write(va + u64::from(slot * 2048), &Payload::Bytes(Bytes::from(message)));
        receiver.on_completion(now, 0, slot, len).unwrap();
        (credits, event) = (credits - 1, event + 1);
        event
    };
    let shut = GATE.shut.write().unwrap();
    let mut sent = 0;
    for _ in 0..200 {
        now += Time::from_ms(2);
        receiver.handle_timeout(now).unwrap();
        sent = send(&mut receiver, now);
    }
    // Two row groups of three events are on their way, three events wait for room, and the ring holds its own.
    assert!((9..=9 + 4).contains(&sent), "{sent} events");
    assert!(
        matches!(receiver.stalled(), Some(StoreError::WriterBusy { row_groups: 2, .. })),
        "{:?}",
        receiver.stalled()
    );
    assert_eq!(receiver.report().receiver.store_stalls, 0, "nothing is wrong with the disk");
    assert!(receiver.report().receiver.store_waits > 0);
    drop(shut);
    until("the last event", || {
        now += Time::from_ms(2);
        receiver.handle_timeout(now).unwrap();
        send(&mut receiver, now) == EVENTS
    });
    receiver.finish(now).unwrap();
    assert_eq!(receiver.report().builder.events_incomplete, 0);
    assert_eq!(rows(&receiver.sink().closed()[0]), EVENTS as i64);
}

#[test]
fn an_error_of_the_disk_reaches_a_caller_that_only_passes_the_time_and_ends_with_its_cause() {
    static GATE: Gate = Gate::new();
    const ENOSPC: u64 = 28;
    let folder = tempfile::tempdir().unwrap();
    let create = |path: &Path| Ok(Box::new(Gated { file: create_file(path)?, gate: &GATE }) as Box<dyn Medium>);
    let mut run = RunWriter::open_on(folder.path(), options(4, 1), create).unwrap();
    GATE.errno.store(ENOSPC, Ordering::SeqCst);
    (0..3).for_each(|number| with_event(number, |event| run.store(event)).unwrap());
    until("the error", || {
        run.handle_timeout(Time::from_ms(1)).is_err_and(|error| error.is_retriable() && !error.is_busy())
    });
    let refused = with_event(3, |event| run.store(event)).unwrap_err().to_string();
    assert!(refused.contains("events-000000.parquet.partial") && refused.contains("has room"), "{refused}");
    assert!(run.close().unwrap_err().is_retriable());
    GATE.errno.store(0, Ordering::SeqCst);
    until("the disk", || run.handle_timeout(Time::from_ms(1)).is_ok());
    with_event(3, |event| run.store(event)).unwrap();
    run.close().unwrap();
    let files: Vec<i64> = run.closed().iter().map(|file| rows(file)).collect();
    assert_eq!(files, [3, 1], "what came before the file was to be closed, and the refused event once");
}

#[test]
fn a_broken_disk_ends_the_run_with_a_sentence_and_so_does_a_panic() {
    static GATE: Gate = Gate::new();
    const EIO: u64 = 5;
    for (errno, words) in [(EIO, "Input/output error"), (u64::MAX, "the writer thread panicked")] {
        let folder = tempfile::tempdir().unwrap();
        let create = |path: &Path| Ok(Box::new(Gated { file: create_file(path)?, gate: &GATE }) as Box<dyn Medium>);
        let mut run = RunWriter::open_on(folder.path(), options(2, 1), create).unwrap();
        (0..6).for_each(|number| with_event(number, |event| run.store_waiting(event)).unwrap());
        until("the disk", || run.row_groups_waiting() == 0);
        GATE.errno.store(errno, Ordering::SeqCst);
        let mut number = 6;
        let error = loop {
            match with_event(number, |event| run.store_waiting(event)) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
            assert!(number < 100, "nobody says that the disk is broken");
        };
        assert!(!error.is_retriable() && error.to_string().contains(words), "{error}");
        assert!(run.close().is_err());
        drop(run);
        GATE.errno.store(0, Ordering::SeqCst);
        let recovered = recover_folder(folder.path()).unwrap();
        assert_eq!(recovered.iter().map(|file| file.rows).collect::<Vec<_>>(), [6], "what was on disk stays");
    }
}

#[test]
fn what_is_reported_as_kept_is_what_a_recovery_finds_after_the_rest_was_given_up() {
    static GATE: Gate = Gate::new();
    const ENOSPC: u64 = 28;
    let payload = 1000;
    for written in [0, 3, 9] {
        let folder = tempfile::tempdir().unwrap();
        let create = |path: &Path| Ok(Box::new(Gated { file: create_file(path)?, gate: &GATE }) as Box<dyn Medium>);
        let mut run = RunWriter::open_on(folder.path(), options(3, 1), create).unwrap();
        GATE.errno.store(0, Ordering::SeqCst);
        (0..written).for_each(|number| with_event(number, |event| run.store_waiting(event)).unwrap());
        until("the disk", || run.row_groups_waiting() == 0);
        GATE.errno.store(ENOSPC, Ordering::SeqCst);
        // The error may come with any of them, or after the last one.
        let takes = |run: &mut RunWriter, number| with_event(number, |event| run.store_waiting(event)).is_ok();
        (written..written + 5).all(|number| takes(&mut run, number));
        until("the error", || run.handle_timeout(Time::ZERO).is_err());
        run.give_up();
        // Room at last, and too late: what was given up stays so.
        GATE.errno.store(0, Ordering::SeqCst);
        let kept = run.kept().unwrap();
        assert_eq!(kept, Kept { events: written, bytes: written * payload, unclosed: written });
        drop(run);
        let recovered = recover_folder(folder.path()).unwrap();
        assert_eq!(recovered.iter().map(|file| file.rows).sum::<u64>(), kept.events);
    }
}

#[test]
fn events_of_closed_files_are_kept_and_those_of_a_file_that_was_removed_are_not() {
    let folder = tempfile::tempdir().unwrap();
    // Room for three row groups, so that the last is never held back.
    let options = RunOptions { file_bytes: 1, ..options(3, 1) };
    let mut run = RunWriter::open(folder.path(), options).unwrap();
    (0..9).for_each(|number| with_event(number, |event| run.store_waiting(event)).unwrap());
    until("the disk", || run.row_groups_waiting() == 0);
    assert_eq!(run.kept().unwrap(), Kept { events: 9, bytes: 9000, unclosed: 3 });
    std::fs::remove_dir_all(folder.path()).unwrap();
    (9..12).for_each(|number| with_event(number, |event| run.store_waiting(event)).unwrap());
    until("the error", || run.handle_timeout(Time::ZERO).is_err());
    run.give_up();
    assert_eq!(run.kept().unwrap().unclosed, 0, "the open file is gone");
}
