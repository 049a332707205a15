// SPDX-License-Identifier: Apache-2.0
//! Storage under failures: killed writers, full disks; and files that end by size and time.
//! Promise checked: written data is kept and valid, accepted data is not lost.
//! The same with a process that is really killed: tests/test_storage.py.

use std::cell::Cell;
use std::io;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use penstock_readout::*;
use penstock_units::Time;

fn store(sink: &mut impl EventSink, number: u64) -> Result<(), StoreError> {
    with_event(number, |event| sink.store(event))
}

/// The same, however slow the disk is.
fn store_run(run: &mut RunWriter, number: u64) {
    with_event(number, |event| run.store_waiting(event)).unwrap();
}

fn with_event<T>(number: u64, use_it: impl FnOnce(&Event<'_>) -> T) -> T {
    let payload = payload(number);
    let fragments = [Fragment::of(0, number, &payload), Fragment::of(2, number, b"")];
    use_it(&Event { number, timestamp_ns: Some(number), complete: false, fragments: &fragments, missing: &[1] })
}

/// A thousand bytes that zstd cannot make fewer, and that name their event.
fn payload(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 1000];
    penstock_wire::Prbs31::new(number as u32 + 1, false).fill(&mut bytes);
    bytes
}

/// Event numbers of a file, every payload compared.
fn events(path: &Path) -> Vec<u64> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    let mut numbers = Vec::new();
    for batch in builder.build().unwrap() {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let found = column("event_number").as_primitive::<UInt64Type>().values().to_vec();
        for (row, number) in found.iter().enumerate() {
            let fragments = column("fragments").as_list::<i32>().value(row);
            assert_eq!(fragments.as_binary::<i32>().value(0), payload(*number));
        }
        numbers.extend(found);
    }
    numbers
}

/// Row groups of three events.
fn small() -> WriterOptions {
    WriterOptions { row_group_bytes: 2500, ..WriterOptions::default() }
}

/// A writer's file as it is when the process is killed now, by name of the folder.
fn killed(writer: EventWriter) {
    std::mem::forget(writer);
}

#[test]
fn a_file_cut_anywhere_is_recovered_to_its_last_whole_row_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events-000000.parquet");
    let mut writer = EventWriter::create(&path, &small()).unwrap();
    let mut ends = vec![(writer.bytes_written(), 0)];
    for number in 0..10 {
        store(&mut writer, number).unwrap();
        if writer.bytes_written() > ends.last().unwrap().0 {
            ends.push((writer.bytes_written(), number + 1));
        }
    }
    let partial = folder.path().join("events-000000.parquet.partial");
    let whole = std::fs::read(&partial).unwrap();
    killed(writer);
    assert_eq!(ends.iter().map(|end| end.1).collect::<Vec<_>>(), [0, 3, 6, 9]);

    let elsewhere = tempfile::tempdir().unwrap();
    let partial = elsewhere.path().join("events-000000.parquet.partial");
    for cut in (0..whole.len()).step_by(211).chain(ends.iter().map(|end| end.0 as usize)) {
        std::fs::write(&partial, &whole[..cut]).unwrap();
        let found = recover_file(&partial).unwrap();
        let kept = ends.iter().rev().find(|end| end.0 <= cut as u64).map_or(0, |end| end.1);
        assert_eq!((found.rows, found.file.is_some()), (kept, kept > 0), "cut at byte {cut}");
        if let Some(file) = found.file {
            assert_eq!(events(&file), (0..kept).collect::<Vec<_>>(), "cut at byte {cut}");
            std::fs::remove_file(file).unwrap();
        }
        assert!(!partial.exists());
    }
}

#[test]
fn a_damaged_row_group_ends_recovery_and_never_passes() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(folder.path().join("e.parquet"), &small()).unwrap();
    (0..9).for_each(|number| store(&mut writer, number).unwrap());
    let partial = folder.path().join("e.parquet.partial");
    let mut bytes = std::fs::read(&partial).unwrap();
    drop(writer);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let partial = folder.path().join("damaged.parquet.partial");
    std::fs::write(&partial, &bytes).unwrap();
    let found = recover_file(&partial).unwrap();
    assert_eq!(found.rows, 3);
    assert!(found.bytes_dropped > 2000);
    assert_eq!(events(&found.file.unwrap()), [0, 1, 2]);
}

#[test]
fn a_file_that_is_still_being_written_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(folder.path().join("events-000000.parquet"), &small()).unwrap();
    (0..4).for_each(|number| store(&mut writer, number).unwrap());
    assert_eq!(recover_folder(folder.path()).unwrap(), []);
    let refused = RunWriter::open(folder.path(), RunOptions::default()).unwrap_err();
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    writer.close().unwrap();
    assert_eq!(events(writer.path()), [0, 1, 2, 3]);
}

#[test]
fn a_run_goes_on_behind_what_was_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events-000004.parquet");
    let child = std::thread::spawn(move || {
        let mut writer = EventWriter::create(path, &small()).unwrap();
        (0..4).for_each(|number| store(&mut writer, number).unwrap());
        std::fs::read(writer.path().with_extension("parquet.partial")).unwrap()
    });
    let bytes = child.join().unwrap();
    std::fs::remove_file(folder.path().join("events-000004.parquet")).unwrap();
    std::fs::write(folder.path().join("events-000004.parquet.partial"), bytes).unwrap();

    let mut run = RunWriter::open(folder.path(), RunOptions::default()).unwrap();
    assert_eq!(run.recovered().iter().map(|file| file.rows).collect::<Vec<_>>(), [3]);
    assert_eq!(run.found(), 1);
    store_run(&mut run, 7);
    run.close().unwrap();
    assert_eq!(events(&folder.path().join("events-000004.parquet")), [0, 1, 2]);
    assert_eq!(run.closed(), [folder.path().join("events-000005.parquet")]);
    assert_eq!(events(&run.closed()[0]), [7]);
}

#[test]
fn files_end_by_size_and_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions {
        writer: small(),
        file_bytes: u64::MAX,
        file_time: Some(Time::from_s(10)),
        ..RunOptions::default()
    };
    let mut run = RunWriter::open(folder.path(), options).unwrap();
    for number in 0..12 {
        run.handle_timeout(Time::from_s(number * 3)).unwrap();
        store_run(&mut run, number);
        assert!(run.poll_timeout().is_some_and(|due| due > Time::from_s(number * 3)));
    }
    run.close().unwrap();
    let files: Vec<Vec<u64>> = run.closed().iter().map(|file| events(file)).collect();
    assert_eq!(files, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]], "ten seconds are over after four");

    let folder = tempfile::tempdir().unwrap();
    let options = RunOptions { writer: small(), file_bytes: 8000, file_time: None, ..RunOptions::default() };
    let mut run = RunWriter::open(folder.path(), options).unwrap();
    (0..12).for_each(|number| store_run(&mut run, number));
    run.close().unwrap();
    let files: Vec<Vec<u64>> = run.closed().iter().map(|file| events(file)).collect();
    assert_eq!(files, [vec![0, 1, 2, 3, 4, 5], vec![6, 7, 8, 9, 10, 11]], "two row groups pass 8000 bytes");
}

#[test]
fn a_run_whose_folder_is_deleted_reports_it_at_the_next_row_group_and_is_whole_when_it_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let run_in = folder.path().join("run");
    let options = RunOptions { writer: small(), file_bytes: u64::MAX, ..RunOptions::default() };
    let mut run = RunWriter::open(&run_in, options).unwrap();
    let on_disk = |run: &RunWriter| {
        while run.row_groups_waiting() > 0 {
            std::thread::yield_now();
        }
    };
    (0..6).for_each(|number| store_run(&mut run, number));
    on_disk(&run);
    std::fs::remove_dir_all(&run_in).unwrap();
    let mut next = 6;
    let error = loop {
        match with_event(next, |event| run.store_waiting(event)) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
    };
    let text = error.to_string();
    assert!(error.is_retriable() && !error.is_busy(), "{text}");
    assert!(
        text.contains("events-000000.parquet.partial: cannot be found where it is written: No such file"),
        "{text}"
    );
    assert!(run.handle_timeout(Time(1)).is_err(), "it is still not there");

    std::fs::create_dir(&run_in).unwrap();
    for number in next..next + 3 {
        while with_event(number, |event| run.store_waiting(event)).is_err() {
            std::thread::yield_now();
        }
    }
    // Without its folder: a file alone is as easily deleted.
    on_disk(&run);
    std::fs::remove_file(run_in.join("events-000000.parquet.partial")).unwrap();
    run.close().unwrap();
    assert_eq!(events(&run_in.join("events-000000.parquet")), (0..next + 3).collect::<Vec<_>>());
    assert_eq!(std::fs::read_dir(&run_in).unwrap().count(), 1);
}

#[test]
fn rows_are_written_when_they_have_waited() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriterOptions { row_group_time: Some(Time::from_s(1)), ..WriterOptions::default() };
    let mut writer = EventWriter::create(folder.path().join("events-000000.parquet"), &options).unwrap();
    writer.handle_timeout(Time::from_s(5)).unwrap();
    store(&mut writer, 0).unwrap();
    assert_eq!(writer.poll_timeout(), Some(Time::from_s(6)));
    writer.handle_timeout(Time::from_s(6) - Time(1)).unwrap();
    assert_eq!(writer.events_waiting(), 1);
    writer.handle_timeout(Time::from_s(6)).unwrap();
    assert_eq!((writer.events_waiting(), writer.poll_timeout()), (0, None));
}

thread_local! {
    /// Bytes that every file of this thread may still grow to.
    static ROOM: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// A disk of so much room, in front of a real file; a write that does not fit is done in part, as a real one is.
#[derive(Debug)]
struct SmallDisk(Box<dyn Medium>);

impl Medium for SmallDisk {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fits = ROOM.get().saturating_sub(offset).min(bytes.len() as u64) as usize;
        self.0.write_at(&bytes[..fits], offset)?;
        match fits < bytes.len() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

fn small_disk(path: &Path) -> io::Result<Box<dyn Medium>> {
    Ok(Box::new(SmallDisk(create_file(path)?)))
}

#[test]
fn a_full_disk_refuses_events_and_loses_none_that_it_took() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let mut writer = EventWriter::create_on(&path, &small(), small_disk).unwrap();
    let mut taken = 0;
    for room in [0, 3, 2000, 6000, 9000, 11_000, 30_000] {
        ROOM.set(room);
        let mut refusals = 0;
        while refusals < 3 && taken < 40 {
            match store(&mut writer, taken) {
                Ok(()) => taken += 1,
                Err(error) => {
                    assert!(error.is_retriable(), "{error}");
                    refusals += 1;
                }
            }
        }
        let size = std::fs::metadata(path.with_extension("parquet.partial")).unwrap().len();
        assert_eq!(size, writer.bytes_written(), "nothing torn stays on the disk");
    }
    assert!((9..40).contains(&taken), "{taken} events on 30 kB");
    ROOM.set(writer.bytes_written() + 10);
    let error = writer.close().unwrap_err();
    assert!(error.is_retriable() && error.to_string().contains("has room"), "{error}");
    ROOM.set(u64::MAX);
    writer.close().unwrap();
    assert_eq!(events(&path), (0..taken).collect::<Vec<_>>());
}

#[test]
fn what_can_come_back_is_waited_for_and_a_disk_that_is_broken_is_not() {
    let outcome = |code| {
        let source = io::Error::from_raw_os_error(code);
        let error = StoreError::Io { file: "events-000000.parquet.partial".into(), action: "written", source };
        (error.is_retriable(), error.to_string())
    };
    use libc::{EDQUOT, EMFILE, ENFILE, ENOENT, ENOSPC, ENOTDIR, EROFS, ESTALE, EXDEV};
    for code in [ENOSPC, EDQUOT, EMFILE, ENFILE, ENOENT, ENOTDIR, EROFS, ESTALE, EXDEV] {
        assert!(outcome(code).0, "{}", outcome(code).1);
    }
    for code in [libc::EIO, libc::EACCES, libc::ENXIO] {
        assert!(!outcome(code).0, "{}", outcome(code).1);
    }
    assert!(
        outcome(EROFS).1.ends_with("make the file system writable (`mount -o remount,rw`)"),
        "{}",
        outcome(EROFS).1
    );
}
