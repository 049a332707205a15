// SPDX-License-Identifier: Apache-2.0
//! The ring of slots with a board that keeps the rules, and with one that does not.
//! Promise checked: no overwrite of a held fragment, credits in ring order, bounds.
//! Source: IBTA 9.7.5.1 for the packets of a WRITE that precede an RNR NAK.

use bytes::Bytes;
use penstock_readout::{Pages, Ring, RingConfig, RingConfigError, RingError, RingMemory};
use penstock_wire::Payload;
use proptest::prelude::*;

const SLOT: u32 = 16;
const VA: u64 = 0x1000;

fn ring(slots: u32) -> Ring {
    Ring::new(RingConfig { va: VA, rkey: 1, slots, slot_bytes: SLOT }).unwrap()
}

fn fill(ring: &mut Ring, slot: u32, byte: u8) {
    let data = Payload::Bytes(Bytes::from(vec![byte; SLOT as usize]));
    ring.write(VA + u64::from(slot * SLOT), &data);
}

#[test]
fn a_fresh_ring_posts_all_slots_but_one() {
    let mut ring = ring(4);
    assert_eq!((ring.take_credits(), ring.take_credits()), (3, 0));
}

/// The board has used its last credit and sends on: the next message is written up to its last packet, which gets an
/// RNR NAK and is sent again alone. Nothing held may change, and the message must be whole in the end.
#[test]
fn the_packets_before_an_rnr_nak_land_in_a_free_slot_and_stay() {
    let mut ring = ring(4);
    assert_eq!(ring.take_credits(), 3);
    for slot in 0..3 {
        fill(&mut ring, slot, slot as u8 + 1);
        ring.complete(slot, SLOT).unwrap();
    }
    fill(&mut ring, 3, 9);
    assert_eq!(ring.take_credits(), 0);
    assert_eq!((0..3).map(|slot| ring.message(slot)[0]).collect::<Vec<_>>(), [1, 2, 3]);

    ring.release(0);
    assert_eq!(ring.take_credits(), 1);
    ring.complete(3, SLOT).unwrap();
    assert_eq!(ring.message(3), [9; SLOT as usize]);
}

#[test]
fn a_pool_hands_out_every_free_slot_and_holds_what_was_filled() {
    let config = RingConfig { va: VA, rkey: 0, slots: 8, slot_bytes: SLOT };
    let memory = RingMemory::allocate(config.len(), Pages::Normal).unwrap();
    let mut pool = Ring::pool(config, memory).unwrap();
    let taken = |pool: &mut Ring| {
        let mut slots = Vec::new();
        pool.take_receives(|wr| slots.push(wr.wr_id));
        slots
    };
    assert_eq!((taken(&mut pool), pool.posted()), ((0..8).collect(), 8));
    fill(&mut pool, 4, 9);
    for slot in [4, 1] {
        pool.complete(slot, SLOT).unwrap();
    }
    assert_eq!(pool.message(4), [9; SLOT as usize]);
    assert_eq!(pool.complete(4, 1), Err(RingError::NotPosted { slot: 4 }), "it is held");
    assert_eq!(pool.complete(u32::MAX, 1), Err(RingError::NotPosted { slot: u32::MAX }));
    fill(&mut pool, 4, 7); // it is held: nobody may write there
    assert_eq!((pool.counters().writes_refused, pool.message(4)[0]), (1, 9));
    assert_eq!(taken(&mut pool), Vec::<u64>::new());
    pool.release(4);
    pool.unfilled(2);
    assert_eq!((taken(&mut pool), pool.posted()), (vec![4, 2], 7));
    pool.unfilled(1); // is held, and stays so
    assert_eq!(pool.message(1).len(), SLOT as usize);
}

#[test]
fn writes_outside_a_free_slot_are_refused_and_counted() {
    let mut ring = ring(4);
    ring.take_credits();
    fill(&mut ring, 0, 1);
    ring.complete(0, SLOT).unwrap();
    let bytes = |len: usize| Payload::Bytes(Bytes::from(vec![7; len]));
    for (va, len) in [(VA, 1), (VA + 31, 2), (VA - 1, 1), (VA + 64, 1), (VA + 60, 5), (u64::MAX, 1), (0, 1)] {
        let before = ring.counters().writes_refused;
        ring.write(va, &bytes(len));
        assert_eq!(ring.counters().writes_refused, before + 1, "{len} bytes at {va:#x}");
    }
    assert_eq!(ring.message(0), [1; SLOT as usize]);
    assert_eq!(ring.counters().bytes_written, u64::from(SLOT));
}

#[test]
fn a_wrong_slot_is_refused_and_its_receive_is_posted_again() {
    let mut ring = ring(3);
    assert_eq!(ring.take_credits(), 2);
    assert_eq!(ring.complete(1, 5), Err(RingError::UnexpectedSlot { slot: 1, expected: 0 }));
    assert_eq!(ring.complete(99, 5), Err(RingError::UnexpectedSlot { slot: 99, expected: 0 }));
    assert_eq!(ring.take_credits(), 2);
    ring.complete(0, 5).unwrap();
    ring.complete(1, 5).unwrap();
    assert_eq!(ring.complete(2, 5), Err(RingError::NotPosted { slot: 2 }));
    assert_eq!(ring.counters().completions_refused, 3);
}

#[test]
fn a_virtual_payload_is_zeros_and_a_message_is_no_longer_than_its_slot() {
    let mut ring = ring(2);
    ring.take_credits();
    fill(&mut ring, 0, 5);
    ring.write(VA + 4, &Payload::Virtual(2));
    ring.complete(0, 1000).unwrap();
    assert_eq!(ring.message(0)[..8], [5, 5, 5, 5, 0, 0, 5, 5]);
    assert_eq!(ring.message(0).len(), SLOT as usize);
    assert_eq!((ring.message(1), ring.message(7)), (&[][..], &[][..]));
}

#[test]
fn a_ring_without_room_or_address_is_refused() {
    let config = |va, slots, slot_bytes| Ring::new(RingConfig { va, rkey: 0, slots, slot_bytes }).err();
    assert_eq!(config(0, 1, 8), Some(RingConfigError::TooSmall { slots: 1, slot_bytes: 8 }));
    assert_eq!(config(0, 2, 0), Some(RingConfigError::TooSmall { slots: 2, slot_bytes: 0 }));
    assert_eq!(
        config(u64::MAX - 8, 2, 8),
        Some(RingConfigError::PastEnd { va: u64::MAX - 8, slots: 2, slot_bytes: 8 })
    );
}

#[test]
fn boards_get_rings_that_do_not_overlap() {
    let rings: Vec<_> = (0..300).map(|board| RingConfig::default().for_board(board)).collect();
    for pair in rings.windows(2) {
        assert!(pair[0].va + u64::from(pair[0].slots) * u64::from(pair[0].slot_bytes) < pair[1].va);
        assert_ne!(pair[0].rkey, pair[1].rkey);
    }
}

proptest! {
    /// A board that fills slots in order while it has credits, always writing one message ahead of its credits;
    /// a consumer that releases in any order. Every message must be intact when it is released.
    #[test]
    fn whatever_the_order_of_release_nothing_is_overwritten_and_no_credit_is_lost(
        slots in 2u32..9,
        steps in prop::collection::vec(any::<Option<prop::sample::Index>>(), 0..300),
    ) {
        let (mut ring, mut credits, mut sent) = (ring(slots), 0, 0u32);
        let mut held: Vec<u32> = Vec::new();
        fill(&mut ring, 0, 0);
        for step in steps {
            credits += ring.take_credits();
            match step {
                None if credits > 0 => {
                    credits -= 1;
                    prop_assert_eq!(ring.complete(sent % slots, SLOT), Ok(()));
                    held.push(sent);
                    sent += 1;
                    credits += ring.take_credits();
                    fill(&mut ring, sent % slots, sent as u8);
                }
                Some(which) if !held.is_empty() => {
                    let message = held.swap_remove(which.index(held.len()));
                    prop_assert_eq!(ring.message(message % slots), [message as u8; SLOT as usize]);
                    ring.release(message % slots);
                }
                _ => {}
            }
        }
        held.iter().for_each(|message| ring.release(message % slots));
        prop_assert_eq!(credits + ring.take_credits(), slots - 1);
        prop_assert_eq!(ring.counters().writes_refused, 0);
    }
}
