// SPDX-License-Identifier: Apache-2.0
//! Fragments of version 2: a written fragment reads back, every damage is found, every contradiction is refused by
//! name. The CRC-32C is compared with that of the `crc32c` crate over the whole message.

use penstock_wire::fragment::{message_2_len, PART_ALIGN, PART_LEN, TRAILER_LEN};
use penstock_wire::{FragmentError, FragmentHeader, FragmentId, FragmentMessage, Part, PartFlags, Parts};
use proptest::prelude::*;

const ID: FragmentId = FragmentId { source_id: 3, event_number: 77, timestamp_ns: 5_000_000_000, trigger_type: 9 };

/// Parts of these lengths one after another, with the payload that they make.
fn payload_of(lens: &[usize]) -> (Vec<Part>, Vec<u8>) {
    let (mut parts, mut payload) = (Vec::new(), Vec::new());
    for (input, &len) in lens.iter().enumerate() {
        payload.resize(payload.len().next_multiple_of(PART_ALIGN), 0);
        let flags = if len == 0 { PartFlags::MISSING } else { PartFlags::default() };
        parts.push(Part { input: input as u8, flags, offset: payload.len() as u32, len: len as u32 });
        payload.extend((0..len).map(|i| (i * 7 + input) as u8));
    }
    (parts, payload)
}

proptest! {
    #[test]
    fn a_message_parses_back_and_any_flipped_bit_is_found(
        (source_id, event_number, timestamp_ns, trigger_type) in any::<(u16, u64, u64, u16)>(),
        lens in prop::collection::vec(0..50usize, 0..=16),
        alone in 0..50usize,
        flags in any::<u16>(),
        position in any::<prop::sample::Index>(),
        bit in 0..8u8,
    ) {
        let id = FragmentId { source_id, event_number, timestamp_ns, trigger_type };
        let (parts, payload) = payload_of(&lens);
        let payload = if parts.is_empty() { vec![0x5A; alone] } else { payload };
        let mut message = id.message_2(&payload, PartFlags(flags), &parts);
        prop_assert_eq!(message.len(), message_2_len(payload.len(), parts.len()));
        prop_assert_eq!(message.len() % PART_ALIGN, 0);
        let (front, crc) = message.split_at(message.len() - 4);
        prop_assert_eq!(crc32c::crc32c(front).to_le_bytes(), crc);

        let read = FragmentMessage::parse(&message).unwrap();
        prop_assert_eq!((read.id, read.payload, read.flags), (id, &payload[..], PartFlags(flags)));
        prop_assert_eq!(read.payload_crc, crc32c::crc32c(&payload));
        prop_assert_eq!(read.parts.iter().collect::<Vec<_>>(), parts);
        prop_assert_eq!(FragmentId::peek(&message), Ok(id));

        let at = position.index(message.len());
        message[at] ^= 1 << bit;
        prop_assert!(FragmentMessage::parse(&message).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(mut data in prop::collection::vec(any::<u8>(), 0..200), right in any::<bool>()) {
        if right && data.len() >= 6 {
            data[..6].copy_from_slice(b"PSTF\x02\0");
        }
        let _ = FragmentMessage::parse(&data);
        let _ = FragmentId::peek(&data);
        let _ = Parts::parse(&data, 64);
    }

    #[test]
    fn version_1_is_read_by_the_same_call(payload in prop::collection::vec(any::<u8>(), 0..100)) {
        let header = FragmentHeader::for_payload(1, 2, 3, &payload);
        let mut message = [&header.to_bytes()[..], &payload].concat();
        let read = FragmentMessage::parse(&message).unwrap();
        prop_assert_eq!((read.id, read.payload, read.payload_crc), (header.id(), &payload[..], header.payload_crc));
        prop_assert!(read.parts.is_empty());
        message.push(0);
        let is_refused = matches!(FragmentMessage::parse(&message), Err(FragmentError::PayloadLength { .. }));
        prop_assert!(is_refused);
    }
}

/// A message whose table or trailer was changed and whose CRC-32C is right again.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let (parts, payload) = payload_of(&[5, 0, 12]);
    let mut message = ID.message_2(&payload, PartFlags::MISSING, &parts);
    change(&mut message);
    let crc_at = message.len() - 4;
    let crc = crc32c::crc32c(&message[..crc_at]).to_le_bytes();
    message[crc_at..].copy_from_slice(&crc);
    FragmentMessage::parse(&message).unwrap_err().to_string()
}

#[test]
fn contradictions_are_refused_with_value_and_rule() {
    // 5 bytes, none, 12 bytes: at 0, 8 and 8 of a payload of 20.
    let entry = |n: usize| move |message: &[u8]| message.len() - TRAILER_LEN - (3 - n) * PART_LEN;
    let set = |n: usize, at: usize, value: u8| {
        changed(move |message| {
            let place = entry(n)(message) + at;
            message[place] = value;
        })
    };
    let of = |n: usize, input: u8, bytes: &str, rule: &str| {
        format!("entry {n} of the table of parts, input {input}, has bytes {bytes} of 20: {rule}")
    };
    const ORDER: &str = "inputs must ascend and be below 16";
    const BEGIN: &str = "it must begin where the part before ends, at the next multiple of 8";
    assert_eq!(set(1, 0, 0), of(1, 0, "8..8", ORDER));
    assert_eq!(set(2, 0, 16), of(2, 16, "8..20", ORDER));
    assert_eq!(set(2, 4, 0), of(2, 2, "0..12", BEGIN));
    assert_eq!(set(2, 8, 13), of(2, 2, "8..21", "it ends behind the payload"));
    assert_eq!(set(0, 2, 1), of(0, 0, "0..5", "a missing part has no bytes"));
    assert_eq!(set(2, 8, 4), "the parts end at byte 16 of a payload of 20: they must make all of it");
    let cut = changed(|message| drop(message.drain(32..40)));
    assert_eq!(
        cut,
        "fragment of event 77 has 112 bytes; its trailer says 20 bytes of payload and 3 parts, which make 120"
    );
    let other = changed(|message| {
        let at = message.len() - 8;
        message[at] = b'X';
    });
    assert!(
        other.starts_with("fragment of event 77 has [58, 53, 54, 45] in its trailer instead of \"PSTE\""),
        "{other}"
    );
}

#[test]
fn a_version_that_does_not_exist_and_a_table_that_is_too_long_are_refused() {
    let error = FragmentId::peek(b"PSTF\x03\0").unwrap_err();
    assert_eq!(error.to_string(), "fragment version 3, this reader knows 1 and 2: update the reader or the board");
    let error = Parts::parse(&[0; 17 * PART_LEN], 0).unwrap_err();
    assert_eq!(error.to_string(), "table of parts has 272 bytes: entries have 16, and there are 16 at most");
}
