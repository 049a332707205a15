// SPDX-License-Identifier: Apache-2.0
//! Announcements: one that is written reads back, each contradiction is refused by name, no bytes make it panic.

use penstock_wire::{
    announcement, announcement_len, successors_from_bytes, successors_to_bytes, Announced, Announcement,
    AnnouncementError, Entry, ANNOUNCEMENT_EVENTS, ANNOUNCEMENT_SLOT_LEN, SUCCESSORS_LEN,
};
use proptest::prelude::*;

/// The bytes that announce these fragments.
fn written(carried: u8, memory: (u32, u32), all: &[Announced]) -> Vec<u8> {
    let rest = all.windows(2).map(|pair| pair[0].entry_of(&pair[1], memory.1).unwrap());
    announcement(carried, memory, all[0], &rest.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn an_announcement_reads_back_event_by_event(
        event in 0..u64::MAX - 30_000,
        address in 0..u64::MAX / 2,
        (carried, rkey, stride) in (any::<u8>(), any::<u32>(), 10..=u32::MAX),
        entries in prop::collection::vec((any::<u8>(), 0..=256u64), 1..=ANNOUNCEMENT_EVENTS),
    ) {
        let length = |share: u64| (u64::from(stride - 10) * share / 256) as u32;
        let mut all = vec![Announced { event, address, length: length(entries[0].1) }];
        for (skipped, share) in &entries[1..] {
            let entry = Entry { skipped: *skipped, length: length(*share) };
            all.push(all.last().unwrap().next(entry, stride).unwrap());
        }
        let data = written(carried, (rkey, stride), &all);
        prop_assert_eq!(data.len(), announcement_len(all.len()));
        prop_assert!(data.len() <= ANNOUNCEMENT_SLOT_LEN);
        let read = Announcement::parse(&data).unwrap();
        prop_assert_eq!((read.carried, read.rkey, read.stride, read.len()), (carried, rkey, stride, all.len()));
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn no_bytes_make_it_panic(mut data in prop::collection::vec(any::<u8>(), 0..600), right in any::<bool>()) {
        if right && data.len() >= 8 {
            data[..6].copy_from_slice(b"PSTA\x02\0");
            data[6] = (data.len().saturating_sub(32) / 5) as u8;
        }
        if let Ok(read) = Announcement::parse(&data) {
            let all: Vec<Announced> = read.iter().collect();
            prop_assert!(all.iter().all(|one| u64::from(one.length) + 10 <= read.stride.into()));
            prop_assert_eq!(all.len(), read.len());
            let again = written(read.carried, (read.rkey, read.stride), &all);
            let again = Announcement::parse(&again).unwrap();
            prop_assert_eq!(again.iter().collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn successors_read_back(entries in any::<[(u8, u32); 2]>()) {
        let entries = entries.map(|(skipped, length)| Entry { skipped, length });
        prop_assert_eq!(successors_from_bytes(&successors_to_bytes(entries)), entries);
    }
}

#[test]
fn a_slot_is_full_with_the_most_events() {
    assert!((0..5).contains(&(ANNOUNCEMENT_SLOT_LEN - announcement_len(ANNOUNCEMENT_EVENTS))));
    assert_eq!(announcement_len(1) - announcement_len(0), SUCCESSORS_LEN / 2);
}

#[test]
fn what_does_not_follow_has_no_entry() {
    let at = |event, address| Announced { event, address, length: 5 };
    let first = at(7, 100);
    assert_eq!(first.entry_of(&at(8, 120), 20), Some(Entry { skipped: 0, length: 5 }));
    assert_eq!(first.entry_of(&at(263, 120), 20), Some(Entry { skipped: 255, length: 5 }));
    for other in [at(7, 120), at(6, 120), at(264, 120), at(8, 119), at(8, 80)] {
        assert_eq!(first.entry_of(&other, 20), None, "{other:?}");
    }
}

#[test]
fn each_contradiction_is_refused_by_name() {
    let first = Announced { event: 7, address: 0x1000, length: 54 };
    let rest = [Entry { skipped: 0, length: 0 }, Entry { skipped: 3, length: 10 }];
    let good = announcement(0, (5, 64), first, &rest);
    let changed = |at: usize, bytes: &[u8]| {
        let mut data = good.clone();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        data
    };
    let last = u64::MAX - 1;
    let cases = [
        (good[..31].to_vec(), AnnouncementError::Truncated { available: 31 }),
        (changed(3, b"F"), AnnouncementError::BadMagic { found: *b"PSTF" }),
        (changed(4, &[1, 0]), AnnouncementError::BadVersion { found: 1 }),
        (changed(6, &[0]), AnnouncementError::BadCount { count: 0 }),
        (changed(6, &[97]), AnnouncementError::BadCount { count: 97 }),
        (good[..46].to_vec(), AnnouncementError::BadLength { count: 3, expected: 47, available: 46 }),
        (changed(6, &[2]), AnnouncementError::BadLength { count: 2, expected: 42, available: 47 }),
        (changed(8, &[0xFF; 8]), AnnouncementError::NoSuchEvent { event: u64::MAX, skipped: 0 }),
        (changed(8, &last.to_le_bytes()), AnnouncementError::NoSuchEvent { event: last, skipped: 0 }),
        (changed(16, &[0xFF; 8]), AnnouncementError::PastEnd { address: u64::MAX, stride: 64 }),
        (changed(43, &[55]), AnnouncementError::Overlap { event: 12, length: 55, stride: 64 }),
    ];
    for (data, expected) in cases {
        assert_eq!(Announcement::parse(&data).err(), Some(expected));
    }
    assert_eq!(Announcement::parse(&good).unwrap().iter().map(|one| one.event).collect::<Vec<_>>(), [7, 8, 12]);
    let last = Announced { event: last, address: u64::MAX - 64, length: 54 };
    assert_eq!(Announcement::parse(&announcement(0, (5, 64), last, &[])).map(|read| read.len()), Ok(1));
}
