// SPDX-License-Identifier: Apache-2.0
//! No file descriptor is available when the next file of a run is due: boards wait, no accepted data is lost, and
//! storage continues when descriptors are available again.

use std::fs::File;
use std::num::NonZeroU16;
use std::process::Command;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Payload};

const CHILD: &str = "in_a_process_of_few_descriptors";
const EVENTS: u64 = 40;
const SLOTS: u32 = 4;
const SLOT_BYTES: u32 = 256;
/// Longer than the receiver leaves a stalled sink alone.
const TURN: Time = Time::from_ms(200);

#[test]
fn a_run_without_descriptors_for_its_next_file_waits_and_loses_nothing() {
    let program = std::env::current_exe().expect("this test's program");
    let command = Command::new("sh")
        .args(["-c", "ulimit -n 40 && exec \"$0\" --ignored --exact --nocapture \"$1\""])
        .arg(program)
        .arg(CHILD)
        .output()
        .expect("a shell");
    let (out, err) = (String::from_utf8_lossy(&command.stdout), String::from_utf8_lossy(&command.stderr));
    assert!(command.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

/// One board, whose next fragment is `event`; false if it has no credit.
fn send(receiver: &mut Receiver<RunWriter>, credits: &mut u32, now: Time, event: u64) -> bool {
    *credits += receiver.take_credits(0);
    if *credits == 0 {
        return false;
    }
    *credits -= 1;
    let payload = [event as u8; 200];
    let message = [&FragmentHeader::for_payload(0, event, event, &payload).to_bytes()[..], &payload].concat();
    let slot = (event % u64::from(SLOTS)) as u32;
    let (va, len) = (receiver.region(0).expect("the ring").va, message.len() as u32);
    receiver.write(va + u64::from(slot * SLOT_BYTES), &Payload::Bytes(Bytes::from(message)));
    receiver.on_completion(now, 0, slot, len).expect("an error that passes is no error of the run");
    true
}

/// Time goes on; and the thread that writes has some.
fn turn(receiver: &mut Receiver<RunWriter>, now: Time) -> Time {
    std::thread::sleep(std::time::Duration::from_millis(1));
    receiver.handle_timeout(now + TURN).expect("an error that passes is no error of the run");
    now + TURN
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn in_a_process_of_few_descriptors() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = RunOptions { file_bytes: 1, ..RunOptions::default() };
    let writer = WriterOptions { row_group_time: None, row_group_bytes: 1, ..options.writer };
    let options = RunOptions { writer, ..options };
    let sink = RunWriter::open(folder.path(), options).expect("an empty folder");
    let ring = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
    let builder = BuilderConfig { sources: NonZeroU16::MIN, ..BuilderConfig::default() };
    let config = ReceiverConfig { rings: vec![ring], builder, consumer_rate: None };
    let mut receiver = Receiver::new(config, sink).expect("a ring that fits");
    let (mut credits, mut event) = (0, 0);
    // Each event is a file; the thread that writes them is waited for.
    let mut now = Time::ZERO;
    while event < 4 || receiver.sink().closed().len() < 3 {
        event += u64::from(event < 4 && send(&mut receiver, &mut credits, now, event));
        now = turn(&mut receiver, now);
    }
    let held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!held.is_empty());
    while receiver.stalled().is_none_or(StoreError::is_busy) {
        event += u64::from(send(&mut receiver, &mut credits, now, event));
        now = turn(&mut receiver, now);
    }
    let why = receiver.stalled().expect("no descriptor, no file").to_string();
    assert!(why.contains("open files"), "{why}");
    while send(&mut receiver, &mut credits, now, event) {
        event += 1;
    }
    assert!(event < EVENTS, "a board without credits waits");
    drop(held);
    while event < EVENTS {
        event += u64::from(send(&mut receiver, &mut credits, now, event));
        now = turn(&mut receiver, now);
    }
    receiver.finish(now).expect("all is closed");
    assert_eq!(receiver.report().receiver.store_stalls, 1);
    let rows = |path: &std::path::PathBuf| {
        let reader = SerializedFileReader::new(File::open(path).expect("a closed file")).expect("a valid file");
        reader.metadata().file_metadata().num_rows()
    };
    let files = receiver.sink().closed();
    assert!(files.len() > 4, "{} files", files.len());
    assert_eq!(files.iter().map(rows).sum::<i64>(), EVENTS as i64);
}
