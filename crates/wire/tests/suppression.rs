// SPDX-License-Identifier: Apache-2.0
//! The model of zero suppression and its decoder, on the vectors that the gateware's bench also uses
//! (tb/zero_suppression).

use penstock_wire::fragment::{expand, suppress, Channel, ChannelTable, SuppressionError};

/// Lines `lanes hold rows table payload output`, bytes in hexadecimal; `-` is none.
const VECTORS: &str = include_str!("suppression.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let hex = hex.strip_prefix('-').unwrap_or(hex);
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn vectors() -> impl Iterator<Item = (ChannelTable, Vec<u8>, Vec<u8>)> {
    VECTORS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut words = line.split(' ');
        let mut number = || words.next().unwrap().parse::<usize>().unwrap();
        let (lanes, hold, rows) = (number(), number(), number());
        let channel = |word: &[u8]| Channel {
            pedestal: u16::from_le_bytes([word[0], word[1]]),
            threshold: i16::from_le_bytes([word[2], word[3]]),
        };
        let channels: Vec<Channel> = bytes(words.next().unwrap()).chunks_exact(4).map(channel).collect();
        assert_eq!(channels.len(), lanes * rows);
        let table = ChannelTable { lanes, hold, channels };
        (table, bytes(words.next().unwrap()), bytes(words.next().unwrap()))
    })
}

#[test]
fn the_model_makes_what_the_gateware_makes() {
    let mut count = 0;
    for (table, payload, output) in vectors() {
        assert_eq!(suppress(&table, &payload), output, "{} bytes at {} lanes", payload.len(), table.lanes);
        count += 1;
    }
    assert!(count > 20);
}

#[test]
fn values_come_back_where_their_word_stayed_and_are_0_elsewhere() {
    for (table, payload, output) in vectors() {
        let values = expand(&output).unwrap();
        assert_eq!(values.len(), payload.len() / 2);
        let rows = table.channels.len() / table.lanes;
        for (word, samples) in payload.chunks(8).enumerate() {
            let real = |lane: usize| {
                let index = 4 * word + lane;
                let channel =
                    table.channels[index / table.lanes / table.hold.max(1) % rows * table.lanes + index % table.lanes];
                let sample = u16::from_le_bytes([samples[2 * lane], samples[2 * lane + 1]]);
                let value = (i32::from(sample) - i32::from(channel.pedestal)).clamp(-32768, 32767);
                (value, value >= i32::from(channel.threshold))
            };
            let lanes = samples.len() / 2;
            let stays = (0..lanes).any(|lane| real(lane).1);
            for lane in 0..lanes {
                let expected = if stays { real(lane).0 } else { 0 };
                assert_eq!(i32::from(values[4 * word + lane]), expected);
            }
        }
    }
}

#[test]
fn bytes_that_are_no_output_are_refused_with_the_place() {
    let table = ChannelTable { lanes: 4, hold: 1, channels: vec![Channel { pedestal: 10, threshold: 5 }; 4] };
    let payload: Vec<u8> = (0..70 * 4_u16).flat_map(|n| (n % 20).to_le_bytes()).collect();
    let good = suppress(&table, &payload);
    assert_eq!(expand(&[]), Err(SuppressionError::Length { available: 0 }));
    assert_eq!(expand(&good[1..]), Err(SuppressionError::Length { available: good.len() - 1 }));
    assert_eq!(
        expand(&payload),
        Err(SuppressionError::BadMagic { found: payload[payload.len() - 4..].try_into().unwrap() })
    );
    assert!(matches!(expand(&good[8..]), Err(SuppressionError::Mask { block: 0, .. })));
    let longer = [&[0_u8; 8], &good[..]].concat();
    assert!(matches!(expand(&longer), Err(SuppressionError::Rest { words: 1, bytes: 560 })));
    let mask = good.len() - 16;
    let mut beyond = good.clone();
    beyond[mask + 7] |= 0x80;
    assert!(matches!(
        expand(&beyond),
        Err(SuppressionError::Mask { block: 1, why: "it keeps words behind the end", .. })
    ));
    // Anything else gives an error or values, and never panics.
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut damaged = good.clone();
            damaged[at] ^= 1 << bit;
            let _ = expand(&damaged);
        }
    }
}
