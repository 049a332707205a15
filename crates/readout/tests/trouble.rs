// SPDX-License-Identifier: Apache-2.0
//! The receiver under failures around it: full disks, slow consumers, boards and servers that die.
//! Promise checked: no accepted data is lost; missing fragments are named, event by event.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::num::{NonZeroU16, NonZeroUsize};
use std::rc::Rc;

use bytes::Bytes;
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_units::{Rate, Time};
use penstock_wire::{FragmentHeader, Payload};

const BOARDS: u16 = 3;
const SLOTS: u32 = 8;
const SLOT_BYTES: u32 = 1024;
const TIMEOUT: Time = Time::from_us(1);
/// How long the receiver leaves a stalled sink alone.
const RETRY: Time = Time::from_ms(100);

fn config() -> ReceiverConfig {
    let ring = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
    let sources = NonZeroU16::new(BOARDS).unwrap();
    ReceiverConfig {
        rings: (0..BOARDS).map(|board| ring.for_board(board)).collect(),
        builder: BuilderConfig { sources, timeout: TIMEOUT, window: 4, ..BuilderConfig::default() },
        consumer_rate: None,
    }
}

fn payload(event: u64, board: u16) -> Vec<u8> {
    let mut bytes = vec![0; 600 + usize::from(board)];
    penstock_wire::Prbs31::new(event as u32 * 8 + u32::from(board) + 1, false).fill(&mut bytes);
    bytes
}

/// A receiver and the boards in front of it: their next slots and the receives that are posted for them.
struct Farm<S> {
    receiver: Receiver<S>,
    slot: [u32; BOARDS as usize],
    posted: [u32; BOARDS as usize],
}

impl<S: EventSink> Farm<S> {
    fn new(config: ReceiverConfig, sink: S) -> Farm<S> {
        Farm { receiver: Receiver::new(config, sink).unwrap(), slot: [0; 3], posted: [0; 3] }
    }

    /// False if the board has no credit.
    fn send(&mut self, now: Time, event: u64, board: u16) -> bool {
        let b = usize::from(board);
        self.posted[b] += self.receiver.take_credits(board);
        if self.posted[b] == 0 {
            return false;
        }
        let (payload, slot) = (payload(event, board), self.slot[b]);
        let mut message = FragmentHeader::for_payload(board, event, event * 1000, &payload).to_bytes().to_vec();
        message.extend(payload);
        self.write(board, message.clone());
        (self.posted[b], self.slot[b]) = (self.posted[b] - 1, (slot + 1) % SLOTS);
        self.receiver.on_completion(now, board, slot, message.len() as u32).unwrap();
        true
    }

    /// Bytes arrive in the board's next slot; no receive completes.
    fn write(&mut self, board: u16, bytes: Vec<u8>) {
        let va = self.receiver.region(board).unwrap().va;
        let at = va + u64::from(self.slot[usize::from(board)]) * u64::from(SLOT_BYTES);
        self.receiver.write(at, &Payload::Bytes(Bytes::from(bytes)));
    }
}

/// What was stored: event number to sources and payloads.
type Stored = BTreeMap<u64, Vec<(u16, Vec<u8>)>>;

/// Keeps events, and has no room while a test sets so.
#[derive(Default)]
struct Shelf {
    full: Rc<Cell<bool>>,
    stored: Stored,
    tried: u64,
}

impl EventSink for Shelf {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.tried += 1;
        if self.full.get() {
            let source = Error::from(ErrorKind::StorageFull);
            return Err(StoreError::Io { file: "shelf".into(), action: "written", source });
        }
        let parts = event.fragments.iter().map(|part| (part.source, part.payload.to_vec())).collect();
        assert!(self.stored.insert(event.number, parts).is_none(), "event {} is stored twice", event.number);
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn whole(events: impl IntoIterator<Item = u64>) -> Stored {
    let parts = |event| (0..BOARDS).map(|board| (board, payload(event, board))).collect();
    events.into_iter().map(|event| (event, parts(event))).collect()
}

#[test]
fn a_full_disk_stops_credits_is_reported_and_loses_nothing_that_was_accepted() {
    let full = Rc::new(Cell::new(false));
    // Longer than a step, shorter than the disk is full.
    let builder = BuilderConfig { timeout: RETRY / 4, ..config().builder };
    let mut farm = Farm::new(ReceiverConfig { builder, ..config() }, Shelf { full: full.clone(), ..Shelf::default() });
    let (mut now, mut next) = (Time::ZERO, [0u64; 3]);
    for step in 0..400 {
        full.set((100..200).contains(&step));
        now += RETRY / 16;
        farm.receiver.handle_timeout(now).unwrap();
        for board in 0..BOARDS {
            // Board 2 stays one event behind: its fragments are those that a stall finds missing.
            let event = next[usize::from(board)];
            let behind = board == 2 && event + u64::from(step < 398) >= next[0];
            let over = board < 2 && step >= 398;
            if !behind && !over && farm.send(now, event, board) {
                next[usize::from(board)] += 1;
            }
        }
        if step == 190 {
            assert!(farm.receiver.stalled().is_some_and(|error| error.to_string().contains("has room")));
            assert!((0..BOARDS).all(|board| farm.receiver.take_credits(board) == 0));
            assert!(farm.receiver.sink().tried < 120, "a full disk is asked ten times a second");
        }
    }
    farm.receiver.finish(now).unwrap();
    let report = farm.receiver.report();
    assert_eq!((report.receiver.store_stalls, report.builder.events_incomplete, report.builder.strays()), (1, 0, 0));
    assert_eq!(next[0], next[2]);
    assert_eq!(farm.receiver.sink().stored, whole(0..next[0]));
}

#[test]
fn a_disk_that_is_full_at_the_end_can_be_waited_for() {
    let full = Rc::new(Cell::new(true));
    let mut farm = Farm::new(config(), Shelf { full: full.clone(), ..Shelf::default() });
    (0..BOARDS).for_each(|board| assert!(farm.send(Time::ZERO, 0, board)));
    assert!(farm.send(Time::ZERO, 1, 0));
    let error = farm.receiver.finish(Time(1)).unwrap_err();
    assert!(error.is_retriable(), "{error}");
    full.set(false);
    farm.receiver.finish(Time(2)).unwrap();
    assert_eq!(farm.receiver.sink().stored.keys().copied().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_consumer_that_is_slower_than_the_time_out_makes_no_event_incomplete() {
    let consumer_rate = Some(Rate::from_mbps(8)); // 2 ms an event; the time-out is 1 us
    let mut farm = Farm::new(ReceiverConfig { consumer_rate, ..config() }, Shelf::default());
    let (mut now, mut next) = (Time::ZERO, [0u64; 3]);
    while next.iter().any(|&event| event < 40) {
        let mut sent = false;
        for board in 0..BOARDS {
            let event = next[usize::from(board)];
            if event < 40 && farm.send(now, event, board) {
                (sent, next[usize::from(board)]) = (true, event + 1);
            }
        }
        if !sent {
            now = farm.receiver.poll_timeout().expect("a slot will come free");
            farm.receiver.handle_timeout(now).unwrap();
        }
    }
    farm.receiver.finish(now).unwrap();
    assert_eq!(farm.receiver.sink().stored, whole(0..40));
}

#[test]
fn a_board_that_restarts_in_mid_event_costs_that_event_its_fragment_and_nothing_else() {
    let mut farm = Farm::new(config(), Shelf::default());
    for event in 0..5 {
        (0..BOARDS).for_each(|board| assert!(farm.send(Time(event), event, board)));
    }
    // Board 1 dies with half of its fragment of event 5 written; the others go on.
    let half = payload(9, 1)[..300].to_vec();
    farm.write(1, half);
    for event in 5..7 {
        assert!(farm.send(Time(10), event, 0) && farm.send(Time(10), event, 2));
    }
    assert!(farm.receiver.restart_ring(1, 0x77), "nothing of board 1 is held");
    (farm.slot[1], farm.posted[1]) = (0, 0);
    assert!(farm.send(Time(11), 6, 1), "it begins again with event 6");
    farm.receiver.handle_timeout(TIMEOUT + Time(10)).unwrap();
    for event in 7..20 {
        (0..BOARDS).for_each(|board| assert!(farm.send(TIMEOUT + Time(20), event, board)));
    }
    farm.receiver.finish(TIMEOUT + Time(30)).unwrap();
    let mut expected = whole(0..20);
    expected.get_mut(&5).unwrap().remove(1);
    assert_eq!(farm.receiver.sink().stored, expected);
    assert_eq!(farm.receiver.report().builder.events_incomplete, 1);
    assert_eq!(farm.receiver.region(1).unwrap().rkey, 0x77);
}

/// Three servers store a run; server 1 is killed in mid-event and taken out at an announced event.
#[test]
fn the_unfinished_events_of_a_dead_server_are_accounted_for_one_by_one() {
    const EVENTS: u64 = 90;
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut servers = Servers::new(3).unwrap();
    let mut farms: Vec<Option<Farm<RunWriter>>> = Vec::new();
    for (server, folder) in (0..).zip(&folders) {
        let writer = WriterOptions { row_group_bytes: 5000, ..WriterOptions::default() };
        let row_groups_waiting = NonZeroUsize::new(100).unwrap(); // no time passes in which a slow disk could catch up
        let options = RunOptions { writer, file_bytes: 20_000, row_groups_waiting, ..RunOptions::default() };
        let share = servers.shares(server).next().unwrap();
        let builder = BuilderConfig { first_event: share.ours[0], stride: share.rows, ..config().builder };
        let sink = RunWriter::open(folder.path(), options).unwrap();
        farms.push(Some(Farm::new(ReceiverConfig { builder, ..config() }, sink)));
    }
    for event in 0..EVENTS {
        let server = usize::from(servers.server_of(event).unwrap());
        for board in 0..BOARDS {
            if event == 49 && board == 1 {
                // The process is killed between two fragments: nothing is closed, nothing is dropped.
                while farms[1].as_ref().is_some_and(|farm| farm.receiver.sink().row_groups_waiting() > 0) {
                    std::thread::yield_now();
                }
                let killed = copy_of_open_file(folders[1].path());
                drop(farms[1].take());
                restore(folders[1].path(), killed);
                servers.take_out(1, 60).unwrap();
                let shares: Vec<_> = [0, 2].map(|server| (server, servers.shares(server).last().unwrap())).into();
                for (server, share) in shares {
                    let farm = farms[usize::from(server)].as_mut().unwrap();
                    farm.receiver.change_share(share).unwrap();
                }
            }
            if let Some(farm) = &mut farms[server] {
                assert!(farm.send(Time(event), event, board));
            }
        }
    }
    for farm in farms.iter_mut().flatten() {
        farm.receiver.finish(Time(EVENTS)).unwrap();
        assert_eq!(farm.receiver.report().builder.events_incomplete, 0);
    }
    recover_folder(folders[1].path()).unwrap();

    let stored: Vec<Vec<u64>> = folders.iter().map(|folder| stored_events(folder.path())).collect();
    let unstored = servers.unstored(1, EVENTS, &stored[1]);
    assert!(!unstored.is_empty() && unstored.contains(&49) && unstored.contains(&58), "{unstored:?}");
    assert!(unstored.iter().all(|event| event % 3 == 1 && *event < 60), "{unstored:?}");
    assert_eq!(servers.unstored(0, EVENTS, &stored[0]), Vec::<u64>::new());
    assert_eq!(servers.unstored(2, EVENTS, &stored[2]), Vec::<u64>::new());
    let mut all: Vec<u64> = stored.into_iter().flatten().chain(unstored).collect();
    all.sort_unstable();
    assert_eq!(all, (0..EVENTS).collect::<Vec<_>>(), "each event once");
}

type Files = BTreeMap<std::path::PathBuf, Vec<u8>>;

fn copy_of_open_file(folder: &std::path::Path) -> Files {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| (file.clone(), std::fs::read(&file).unwrap())).collect()
}

fn restore(folder: &std::path::Path, files: Files) {
    for entry in std::fs::read_dir(folder).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    files.into_iter().for_each(|(file, bytes)| std::fs::write(file, bytes).unwrap());
}

/// Event numbers of all files, every file checked.
fn stored_events(folder: &std::path::Path) -> Vec<u64> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt64Type;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut numbers = Vec::new();
    for file in files {
        let file = std::fs::File::open(file).unwrap();
        let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        for batch in builder.build().unwrap() {
            let batch = batch.unwrap();
            numbers.extend(batch.column_by_name("event_number").unwrap().as_primitive::<UInt64Type>().values());
        }
    }
    numbers
}
