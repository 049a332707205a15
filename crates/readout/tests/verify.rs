// SPDX-License-Identifier: Apache-2.0
//! Verification of stored files: every flipped byte is found.
//! Promise checked: damage is reported with row group and row; nothing panics on a damaged file.

use std::path::Path;

use penstock_readout::*;

const EVENTS: u64 = 12;

/// PRBS-31 of each source, one sequence over all events; source 1 misses event 7.
fn write(path: &Path, table: Table) {
    let mut patterns = [5, 6].map(|seed| penstock_wire::Prbs31::new(seed, true));
    let options = WriterOptions { table, row_group_bytes: 2500, ..WriterOptions::default() };
    let mut writer = EventWriter::create(path, &options).unwrap();
    for number in 0..EVENTS {
        let payloads: Vec<Vec<u8>> = patterns
            .iter_mut()
            .map(|pattern| {
                let mut payload = vec![0; 500];
                pattern.fill(&mut payload);
                payload
            })
            .collect();
        let here: &[usize] = if number == 7 { &[0] } else { &[0, 1] };
        let fragments: Vec<Fragment<'_>> =
            here.iter().map(|&source| Fragment::of(source as u16, number, &payloads[source])).collect();
        let missing: &[u16] = if number == 7 { &[1] } else { &[] };
        let complete = missing.is_empty();
        writer.store(&Event { number, timestamp_ns: Some(number), complete, fragments: &fragments, missing }).unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn a_good_file_has_no_problems_in_either_table() {
    let folder = tempfile::tempdir().unwrap();
    for table in [Table::Events, Table::Fragments] {
        let path = folder.path().join("events.parquet");
        write(&path, table);
        let report = verify_file(&path, Some(Pattern::Prbs31 { invert: true }));
        assert_eq!(report.described, []);
        assert_eq!((report.events, report.events_incomplete, report.fragments), (EVENTS, 1, 2 * EVENTS - 1));
        assert_eq!((report.payload_bytes, report.row_groups, report.frames), (500 * 23, 4, 4));
        assert_eq!(report.numbers, (0..EVENTS).collect::<Vec<_>>());
    }
}

#[test]
fn a_payload_that_is_not_the_pattern_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    write(&path, Table::Events);
    let report = verify_file(&path, Some(Pattern::Counter));
    assert_eq!(report.problems, 2 * EVENTS - 1);
    let first = &report.described[0];
    assert_eq!((first.row_group, first.row, first.event, first.source), (Some(0), Some(0), Some(0), Some(0)));
}

/// The problems of a file with these bytes.
fn problems(path: &Path, bytes: &[u8]) -> u64 {
    std::fs::write(path, bytes).unwrap();
    verify_file(path, None).problems
}

/// Every byte of a file with rows and of one without events; every fifth of the other table.
#[test]
fn a_flipped_bit_of_any_byte_and_a_cut_anywhere_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    for (table, events, step) in [(Table::Events, 2, 1), (Table::Fragments, 2, 5), (Table::Events, 0, 1)] {
        let mut writer = EventWriter::create(&path, &WriterOptions { table, ..WriterOptions::default() }).unwrap();
        for number in 0..events {
            let fragments = [Fragment::of(0, number, b"payload"), Fragment::of(1, number, b"")];
            let event = Event { number, timestamp_ns: Some(9), complete: true, fragments: &fragments, missing: &[] };
            writer.store(&event).unwrap();
        }
        writer.close().unwrap();
        let good = std::fs::read(&path).unwrap();
        assert_eq!((problems(&path, &good), verify_file(&path, None).rewritten_by), (0, None));
        for at in (0..good.len()).step_by(step) {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            assert!(problems(&path, &bytes) > 0, "{table:?}: bit {} of byte {at} of {}", at % 8, good.len());
            if at % 7 == 0 {
                assert!(problems(&path, &good[..at]) > 0, "{table:?}: cut to {at} of {} bytes", good.len());
            }
        }
        for at in [4, good.len() / 2, good.len() - 8, good.len()] {
            let bytes = [&good[..at], &[0; 4], &good[at..]].concat();
            assert!(problems(&path, &bytes) > 0, "{table:?}: 4 bytes more at {at} of {}", good.len());
        }
    }
}

#[test]
fn a_damaged_footer_hides_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    write(&path, Table::Events);
    let mut bytes = std::fs::read(&path).unwrap();
    let len = bytes.len();
    bytes[len - 20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let report = verify_file(&path, None);
    assert_eq!((report.problems, report.events, report.row_groups), (1, EVENTS, 4));
    assert!(report.described[0].what.contains("CRC-32C of its seal"), "{:?}", report.described);
}

#[test]
fn a_flipped_bit_of_a_row_group_is_found_and_its_row_group_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    write(&path, Table::Events);
    let good = std::fs::read(&path).unwrap();
    for row_group in 0..4 {
        let frames: Vec<usize> = (0..good.len() - 8).filter(|at| good[*at..].starts_with(b"PSTKSEG1")).collect();
        let mut bytes = good.clone();
        bytes[frames[row_group] + 200] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        let report = verify_file(&path, None);
        assert_eq!(report.described[0].row_group, Some(row_group), "{:?}", report.described);
    }
}

#[test]
fn a_wrong_checksum_in_a_good_file_is_named_with_row_group_and_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let mut writer =
        EventWriter::create(&path, &WriterOptions { row_group_bytes: 300, ..WriterOptions::default() }).unwrap();
    for number in 0..9 {
        let payload = [number as u8; 100];
        let mut fragment = Fragment::of(4, number, &payload);
        fragment.crc32c ^= u32::from(number == 7);
        let event = Event { number, timestamp_ns: None, complete: true, fragments: &[fragment], missing: &[] };
        writer.store(&event).unwrap();
    }
    writer.close().unwrap();
    let report = verify_file(&path, None);
    assert_eq!(report.problems, 1);
    let Problem { row_group, row, event, source, what } = &report.described[0];
    assert_eq!((*row_group, *row, *event, *source), (Some(2), Some(1), Some(7), Some(4)));
    assert!(what.contains("CRC-32C"), "{what}");
}

#[test]
fn order_is_checked_and_what_is_no_event_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    let mut writer = EventWriter::create(&path, &WriterOptions::default()).unwrap();
    for number in [3, 5, 4] {
        let event = Event { number, timestamp_ns: None, complete: true, fragments: &[], missing: &[] };
        writer.store(&event).unwrap();
    }
    writer.close().unwrap();
    let report = verify_file(&path, None);
    assert_eq!(report.described[0].what, "it stands behind event 5; events must ascend");
    for bytes in [&b""[..], b"PAR1", b"PAR1PAR1", b"no Parquet file at all", &[0; 100]] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(verify_file(&path, None).problems, 1, "{bytes:?}");
    }
}

/// Two parts of 4 bytes, the second one cut, and one that is missing, in a payload of 12.
fn table_of_parts(second_offset: u32) -> Vec<u8> {
    let part = |input, flags, offset, len| penstock_wire::Part { input, flags, offset, len }.to_bytes();
    let flags = [penstock_wire::PartFlags::default(), penstock_wire::PartFlags::CUT, penstock_wire::PartFlags::MISSING];
    [part(0, flags[0], 0, 4), part(3, flags[1], second_offset, 4), part(5, flags[2], 16, 0)].concat()
}

#[test]
fn parts_are_counted_as_the_board_sent_them_and_a_table_that_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    for table in [Table::Events, Table::Fragments] {
        let mut writer = EventWriter::create(&path, &WriterOptions { table, ..WriterOptions::default() }).unwrap();
        for number in 0..4 {
            let parts = table_of_parts(if number == 2 { 4 } else { 8 });
            let fragment = Fragment { trigger_type: 7, parts: &parts, ..Fragment::of(1, number, b"abcd....efgh") };
            let event = Event { number, timestamp_ns: None, complete: true, fragments: &[fragment], missing: &[] };
            writer.store(&event).unwrap();
        }
        writer.close().unwrap();
        let report = verify_file(&path, None);
        let counts = PartCounts { all: 9, missing: 3, cut: 3, ..PartCounts::default() };
        assert_eq!((report.parts, report.parts.lost(), report.problems), (counts, 6, 1));
        let Problem { row, event, source, what, .. } = &report.described[0];
        assert_eq!((*row, *event, *source), (Some(2), Some(2), Some(1)));
        assert!(what.starts_with("entry 1 of the table of parts, input 3, has bytes 4..8 of 12"), "{what}");
    }
}

#[test]
fn the_digest_of_an_event_is_that_of_its_sources_and_payloads_in_either_table() {
    let folder = tempfile::tempdir().unwrap();
    let digests = |table, change: usize| {
        let path = folder.path().join("events.parquet");
        let mut writer = EventWriter::create(&path, &WriterOptions { table, ..WriterOptions::default() }).unwrap();
        for number in 0..4 {
            let payload = [7 + u8::from(change == 1); 20];
            let fragments = [0, 2].map(|source| Fragment::of(source, 5, &payload[..20 - usize::from(change == 2)]));
            let here = if change == 3 { &fragments[..1] } else { &fragments[..] };
            let missing: &[u16] = if change == 3 { &[1, 2] } else { &[1] };
            let event = Event { number, timestamp_ns: Some(5), complete: false, fragments: here, missing };
            writer.store(&event).unwrap();
        }
        writer.close().unwrap();
        let report = verify_file(&path, None);
        assert_eq!(report.described, []);
        report.digests
    };
    let all: Vec<_> = (0..4).map(|change| digests(Table::Events, change)).collect();
    for (change, found) in all.iter().enumerate() {
        assert_eq!(&digests(Table::Fragments, change), found);
        assert!(all[..change].iter().all(|other| other[0] != found[0]), "change {change}");
    }
}
