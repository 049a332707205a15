// SPDX-License-Identifier: Apache-2.0
//! The data file compared with NumPy's reading of it, and all kinds of damage to it.
//! Promise checked: recorded bytes unchanged; a bad file is refused with its name and what was expected.
//! Reference values are NumPy's (`numpy.load`), not ours.

use std::path::{Path, PathBuf};

use penstock_readout::{Dataset, DatasetError, EventSource, Reference, MODULE_BYTES};
use penstock_wire::fragment::{FragmentHeader, HEADER_LEN};

fn data_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/lst1_run2008/modules.npz")
}

fn dataset() -> Dataset {
    Dataset::load(data_file()).unwrap()
}

/// Loads a file with these bytes; gives the error and the file's name as the message must show it.
fn refused(bytes: &[u8]) -> (DatasetError, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.npz");
    std::fs::write(&path, bytes).unwrap();
    (Dataset::load(&path).expect_err("a damaged file is refused"), path.display().to_string())
}

fn assert_contains(error: &DatasetError, parts: &[&str]) {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "`{text}` should contain {parts:?}");
}

/// A stored (uncompressed) archive of `.npy` members of zeros, with these descriptions and data sizes.
fn archive(members: &[(&str, &str, &str, usize)]) -> Vec<u8> {
    let zeros: Vec<Vec<u8>> = members.iter().map(|member| vec![0; member.3]).collect();
    archive_of(members.iter().zip(&zeros).map(|((name, descr, shape, _), data)| (*name, *descr, *shape, &data[..])))
}

/// A stored archive of `.npy` members with these descriptions and data.
fn archive_of<'a>(members: impl Iterator<Item = (&'a str, &'a str, &'a str, &'a [u8])>) -> Vec<u8> {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, descr, shape, data) in members {
        zip.start_file(format!("{name}.npy"), stored).unwrap();
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(header.as_bytes()).unwrap();
        zip.write_all(data).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn the_recorded_events_are_read_as_numpy_reads_them() {
    let data = dataset();
    assert_eq!((data.events(), data.modules(), MODULE_BYTES), (50, 265, 1142));
    assert_eq!([data.event_id(0), data.event_id(1), data.event_id(49)], [3, 7, 199]);
    let module = data.module(0, 0);
    assert_eq!(module[..12], [2, 0, 252, 201, 78, 0, 3, 0, 0, 0, 3, 0]);
    let samples: Vec<u16> = module[22..].chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).take(6).collect();
    assert_eq!(samples, [372, 373, 372, 368, 366, 376]);
    let whole: Vec<u8> = (0..50 * 265).flat_map(|i| data.module(i / 265, i % 265).to_vec()).collect();
    assert_eq!(penstock_wire::fcs(&whole), 0x62a7_8f71, "zlib.crc32 of the same bytes as NumPy reads them");
}

#[test]
fn a_missing_file_is_named() {
    let error = Dataset::load("no/such/file.npz").unwrap_err();
    assert_contains(&error, &["no/such/file.npz", "data/lst1_run2008/modules.npz"]);
}

#[test]
fn a_file_truncated_anywhere_is_refused_by_name() {
    let bytes = std::fs::read(data_file()).unwrap();
    for len in [0, 1, 100, bytes.len() / 2, bytes.len() - 1] {
        let (error, path) = refused(&bytes[..len]);
        assert!(matches!(error, DatasetError::NotAnArchive { .. }), "{len} bytes: {error}");
        assert_contains(&error, &[&path, "truncated"]);
    }
}

#[test]
fn a_flipped_byte_in_the_data_is_refused() {
    let bytes = std::fs::read(data_file()).unwrap();
    for at in [60, 1000, 3_000_000, 7_100_000, 7_240_000] {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        let (error, path) = refused(&bytes);
        assert!(matches!(error, DatasetError::Corrupt { .. }), "byte {at}: {error}");
        assert_contains(&error, &[&path, "corrupt"]);
    }
}

#[test]
fn arrays_of_another_kind_are_refused_with_what_was_expected() {
    const COUNTERS: (&str, &str, &str, usize) = ("counters", "|u1", "(1, 2, 22)", 44);
    const IDS: (&str, &str, &str, usize) = ("event_id", "<i8", "(1,)", 8);
    let frag = |descr, shape, bytes| ("frag", descr, shape, bytes);
    let good = frag("<u2", "(1, 2, 2, 7, 40)", 2240);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("good.npz");
    std::fs::write(&path, archive(&[good, COUNTERS, IDS])).unwrap();
    assert_eq!(Dataset::load(&path).unwrap().modules(), 2);

    let cases: [(&[_], &[&str]); 9] = [
        (&[COUNTERS, IDS], &["no array `frag`"]),
        (&[good, IDS], &["no array `counters`"]),
        (&[frag(">u2", "(1, 2, 2, 7, 40)", 2240), COUNTERS, IDS], &["`frag`", "'>u2'", "expected type '<u2'"]),
        (&[frag("<u2", "(1, 2, 2, 7, 41)", 2296), COUNTERS, IDS], &["[1, 2, 2, 7, 41]", "expected shape", "40]"]),
        (
            &[frag("<u2", "(8589934592, 8589934592, 2, 7, 40)", 2240), COUNTERS, IDS],
            &["`frag`", "more elements than a"],
        ),
        (&[frag("<u2", "(0, 2, 2, 7, 40)", 0), COUNTERS, IDS], &["[0, 2, 2, 7, 40]", "events >= 1"]),
        (&[frag("<u2", "(1, 2, 2, 7, 40)", 2238), COUNTERS, IDS], &["`frag` is corrupt", "2238 data bytes"]),
        (&[good, ("counters", "|u1", "(1, 1, 22)", 22), IDS], &["`counters`", "[1, 1, 22]", "[1, 2, 22]"]),
        (&[good, COUNTERS, ("event_id", "<i8", "(2,)", 16)], &["`event_id`", "shape [2]", "shape [1]"]),
    ];
    for (members, parts) in cases {
        let (error, path) = refused(&archive(members));
        assert_contains(&error, parts);
        assert_contains(&error, &[&path]);
    }
}

/// Two events of three modules (sources 2, 5 and 9) with these offsets in 20 bytes of payload.
fn any_detector(offsets: &[u64], sources: [u16; 3]) -> Vec<u8> {
    let numbers: Vec<u8> = [7u64, 9].iter().flat_map(|n| n.to_le_bytes()).collect();
    let times: Vec<u8> = [1000u64, 3000].iter().flat_map(|n| n.to_le_bytes()).collect();
    let types: Vec<u8> = [4u16, 32].iter().flat_map(|n| n.to_le_bytes()).collect();
    let sources: Vec<u8> = sources.iter().flat_map(|n| n.to_le_bytes()).collect();
    let shape = format!("({},)", offsets.len());
    let offsets: Vec<u8> = offsets.iter().flat_map(|n| n.to_le_bytes()).collect();
    let payload: Vec<u8> = (0..20).collect();
    let members: [(&str, &str, &str, &[u8]); 6] = [
        ("event_number", "<u8", "(2,)", &numbers),
        ("timestamp_ns", "<u8", "(2,)", &times),
        ("trigger_type", "<u2", "(2,)", &types),
        ("source", "<u2", "(3,)", &sources),
        ("offset", "<u8", &shape, &offsets),
        ("payload", "|u1", "(20,)", &payload),
    ];
    archive_of(members.into_iter())
}

#[test]
fn modules_of_any_length_are_read_and_dealt_out() {
    let data = Dataset::read("any.npz", any_detector(&[0, 8, 11, 12, 12, 15, 20], [2, 5, 9])).unwrap();
    assert_eq!((data.events(), data.modules()), (2, 3));
    assert_eq!((data.event_id(1), data.time_ns(1), data.trigger_type(1)), (9, 3000, 32));
    assert_eq!((data.module(0, 0), data.module(1, 0)), (&[0, 1, 2, 3, 4, 5, 6, 7][..], &[][..]));
    let source = EventSource::new(&data, 2).unwrap();
    assert_eq!(source.payload(2, 0)[..], [0, 1, 2, 3, 4, 5, 6, 7, 11]);
    assert_eq!((&source.payload(3, 0)[..], source.trigger_type(3)), (&[15, 16, 17, 18, 19][..], 32));
    assert_eq!((source.streams(0, 0).len(), source.inputs(0), source.inputs(1)), (1, 1, 1));
    assert_eq!((source.max_message_len(), source.message(3, 1, 0).len()), (HEADER_LEN + 9, HEADER_LEN + 3));
    assert_eq!([0, 1, 2, 3].map(|event| source.time_ns(event)), [1000, 3000, 5000, 7000]);
    let thirds = EventSource::new(&data, 3).unwrap();
    assert_eq!((thirds.payload(1, 0).len(), thirds.message(1, 0, 7).len()), (0, HEADER_LEN));
    let text = thirds.check_gateware().unwrap_err().to_string();
    assert!(text.contains("board 0 of 3 has no byte of recorded event 1"), "{text}");
    assert_eq!(source.check_gateware(), Ok(()));
}

#[test]
fn offsets_and_sources_that_make_no_sense_are_refused() {
    for offsets in [[1, 8, 11, 12, 12, 15, 20], [0, 8, 7, 12, 12, 15, 20], [0, 8, 11, 12, 12, 15, 19]] {
        let error = Dataset::read("any.npz", any_detector(&offsets, [2, 5, 9])).unwrap_err();
        assert_contains(&error, &["any.npz", "`offset`", "from 0 to 20"]);
    }
    let error = Dataset::read("any.npz", any_detector(&[0, 20], [2, 5, 9])).unwrap_err();
    assert_contains(&error, &["`offset`", "shape [2]", "shape [7]"]);
    let error = Dataset::read("any.npz", any_detector(&[0, 8, 11, 12, 12, 15, 20], [2, 9, 5])).unwrap_err();
    assert_contains(&error, &["`source`", "5 after 9", "ascending"]);
}

#[test]
fn boards_share_out_every_module_once_and_events_repeat_with_running_numbers() {
    let data = dataset();
    for boards in [1u16, 3, 7, 265] {
        let source = EventSource::new(&data, boards).unwrap();
        for event in [0u64, 49, 50, 1_000_007] {
            let recorded = (event % 50) as usize;
            for module in 0..265 {
                let (board, row) = ((module % usize::from(boards)) as u16, module / usize::from(boards));
                let payload = source.payload(event, board);
                assert_eq!(&payload[row * MODULE_BYTES..][..MODULE_BYTES], data.module(recorded, module));
            }
        }
        let all: usize = (0..boards).map(|board| source.payload(0, board).len()).sum();
        assert_eq!(all, 265 * MODULE_BYTES);
    }
}

#[test]
fn a_message_is_header_and_payload() {
    let source = EventSource::new(&dataset(), 3).unwrap();
    let message = source.message(123, 2, 456);
    let header = FragmentHeader::parse(&message).unwrap();
    assert_eq!((header.source_id, header.event_number, header.timestamp_ns), (2, 123, 456));
    assert_eq!(header.check_payload(&message[HEADER_LEN..]).unwrap(), Reference::payload(&source, 123, 2).unwrap());
    assert_eq!(message.len(), 100_536);
    assert_eq!(source.max_message_len(), HEADER_LEN + 89 * MODULE_BYTES);
}

#[test]
fn too_many_or_no_boards_are_refused() {
    for boards in [0, 266] {
        let text = EventSource::new(&dataset(), boards).unwrap_err().to_string();
        assert!(text.contains(&format!("to {boards} boards")) && text.contains("1 to 265"), "{text}");
    }
}
