// SPDX-License-Identifier: Apache-2.0
//! No file descriptor left when the next file of a run is due: boards wait, nothing that was taken is lost, and storage
//! goes on when there are descriptors again. Source: issue F (file descriptor exhaustion).

use std::fs::File;
use std::num::NonZeroU16;
use std::process::Command;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_wire::{FragmentHeader, Payload};

const CHILD: &str = "in_a_process_of_few_descriptors";
const EVENTS: u64 = 12;
const SLOTS: u32 = 4;
const SLOT_BYTES: u32 = 256;
/// Longer than the receiver leaves a stalled sink alone.
const LATER_PS: u64 = 1_000_000_000_000;

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
fn send(receiver: &mut Receiver<RunWriter>, credits: &mut u32, now_ps: u64, event: u64) -> bool {
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
    receiver.on_completion(now_ps, 0, slot, len).expect("an error that passes is no error of the run");
    true
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn in_a_process_of_few_descriptors() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = RunOptions { file_bytes: 1, ..RunOptions::default() };
    let options =
        RunOptions { writer: WriterOptions { row_group_ps: None, row_group_bytes: 1, ..options.writer }, ..options };
    let sink = RunWriter::open(folder.path(), options).expect("an empty folder");
    let ring = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
    let builder = BuilderConfig { sources: NonZeroU16::MIN, ..BuilderConfig::default() };
    let config = ReceiverConfig { rings: vec![ring], builder, consumer_bytes_per_s: None };
    let mut receiver = Receiver::new(config, sink).expect("a ring that fits");
    let (mut credits, mut event) = (0, 0);
    while event < 4 {
        assert!(send(&mut receiver, &mut credits, 0, event));
        event += 1;
    }
    let held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!held.is_empty());
    while send(&mut receiver, &mut credits, 1, event) {
        event += 1;
    }
    let why = receiver.stalled().expect("no descriptor, no file").to_string();
    assert!(why.contains("open files"), "{why}");
    assert!(event < EVENTS, "a board without credits waits");
    drop(held);
    receiver.handle_timeout(LATER_PS).expect("storage goes on");
    assert!(receiver.stalled().is_none());
    while event < EVENTS {
        assert!(send(&mut receiver, &mut credits, LATER_PS, event), "credits are back");
        event += 1;
    }
    receiver.finish(LATER_PS).expect("all is closed");
    assert_eq!(receiver.report().receiver.store_stalls, 1);
    let rows = |path: &std::path::PathBuf| {
        let reader = SerializedFileReader::new(File::open(path).expect("a closed file")).expect("a valid file");
        reader.metadata().file_metadata().num_rows()
    };
    let files = receiver.sink().closed();
    assert!(files.len() > 4, "{} files", files.len());
    assert_eq!(files.iter().map(rows).sum::<i64>(), EVENTS as i64);
}
