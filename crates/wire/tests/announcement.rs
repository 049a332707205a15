// SPDX-License-Identifier: Apache-2.0
//! Announcements: one that is written reads back, each contradiction is refused by name, no bytes make it panic.

use penstock_wire::{
    announcement, announcement_len, Announced, Announcement, AnnouncementError, ANNOUNCEMENT_EVENTS,
    ANNOUNCEMENT_SLOT_LEN,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn an_announcement_reads_back_event_by_event(
        first_event in 0..u64::MAX - 200,
        address in 0..u64::MAX / 2,
        rkey in any::<u32>(),
        stride in any::<u32>(),
        shares in prop::collection::vec(0..=256u64, 1..=ANNOUNCEMENT_EVENTS),
    ) {
        let lengths: Vec<u32> = shares.iter().map(|share| (u64::from(stride) * share / 256) as u32).collect();
        let data = announcement((first_event, address), rkey, stride, &lengths);
        prop_assert_eq!(data.len(), announcement_len(lengths.len()));
        prop_assert!(data.len() <= ANNOUNCEMENT_SLOT_LEN);
        let read = Announcement::parse(&data).unwrap();
        prop_assert_eq!((read.first_event, read.address, read.rkey, read.stride), (first_event, address, rkey, stride));
        let expected = lengths.iter().zip(0u64..).map(|(&length, at)| {
            Announced { event: first_event + at, address: address + at * u64::from(stride), length }
        });
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        prop_assert_eq!(read.len(), lengths.len());
    }

    #[test]
    fn no_bytes_make_it_panic(mut data in prop::collection::vec(any::<u8>(), 0..600), right in any::<bool>()) {
        if right && data.len() >= 8 {
            let count = (data.len().saturating_sub(32) / 4) as u16;
            data[..6].copy_from_slice(b"PSTA\x01\0");
            data[6..8].copy_from_slice(&count.to_le_bytes());
        }
        if let Ok(read) = Announcement::parse(&data) {
            prop_assert!(read.iter().all(|one| one.length <= read.stride));
            let lengths: Vec<u32> = read.iter().map(|one| one.length).collect();
            prop_assert_eq!(announcement((read.first_event, read.address), read.rkey, read.stride, &lengths), data);
        }
    }
}

#[test]
fn a_slot_is_full_with_the_most_events() {
    assert_eq!(announcement_len(ANNOUNCEMENT_EVENTS), ANNOUNCEMENT_SLOT_LEN);
}

#[test]
fn each_contradiction_is_refused_by_name() {
    let good = announcement((7, 0x1000), 5, 64, &[64, 0, 10]);
    let changed = |at: usize, bytes: &[u8]| {
        let mut data = good.clone();
        data[at..at + bytes.len()].copy_from_slice(bytes);
        data
    };
    let cases = [
        (good[..31].to_vec(), AnnouncementError::Truncated { available: 31 }),
        (changed(3, b"F"), AnnouncementError::BadMagic { found: *b"PSTF" }),
        (changed(4, &[2, 0]), AnnouncementError::BadVersion { found: 2 }),
        (changed(6, &[0, 0]), AnnouncementError::BadCount { count: 0 }),
        (changed(6, &[121, 0]), AnnouncementError::BadCount { count: 121 }),
        (good[..43].to_vec(), AnnouncementError::BadLength { count: 3, expected: 44, available: 43 }),
        (changed(6, &[2, 0]), AnnouncementError::BadLength { count: 2, expected: 40, available: 44 }),
        (changed(8, &[0xFF; 8]), AnnouncementError::NoSuchEvent { first_event: u64::MAX, count: 3 }),
        (changed(16, &[0xFF; 8]), AnnouncementError::PastEnd { address: u64::MAX, stride: 64, count: 3 }),
        (changed(40, &[65]), AnnouncementError::Overlap { event: 9, length: 65, stride: 64 }),
    ];
    for (data, expected) in cases {
        assert_eq!(Announcement::parse(&data).err(), Some(expected));
    }
    assert!(Announcement::parse(&good).is_ok());
    let last = announcement((u64::MAX - 1, u64::MAX - 64), 5, 64, &[64]);
    assert_eq!(Announcement::parse(&last).map(|read| read.len()), Ok(1), "the last event there is");
}
