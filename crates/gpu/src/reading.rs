// SPDX-License-Identifier: Apache-2.0
//! Messages that a NIC has written to the device: a batch of them is read there, and the host gets the parts it needs.
//! Promise: messages return in the order in which they were entered, each with the CRC-32C of the bytes after its
//! header.
//! Source: `read_fragments` in kernels.cu. CRC-32C: IETF RFC 3720, B.4.
//!
//! ```text
//! input   |  tables of the CRC  |  parts of 4 KiB of the payloads  |
//! output  |  header, first and last four bytes, CRC-32C: 52 bytes a message  |
//! ```

use std::sync::Arc;

use penstock_readout::backend::{Completion, DeviceMemory};
use penstock_wire::fragment::HEADER_LEN;

use crate::cuda::{CudaError, Gpu, Lane, ReadWork, Work, CRC_TABLES_BYTES, PART_BYTES, READ_BYTES};
use crate::rings::DeviceRing;

/// Bytes of a payload that 32 threads take.
const PART_LEN: usize = 4096;
/// Number of the first and of the last bytes of a payload that are returned.
const END: usize = 4;
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// A slot that a message fills: it begins at byte `at` of the ring.
#[derive(Debug, Clone)]
pub(crate) struct Filled {
    pub ring: Arc<DeviceRing>,
    pub at: usize,
    pub len: usize,
}

/// One lane and the messages in it.
#[derive(Debug)]
pub(crate) struct Reading {
    lane: Lane,
    /// Messages, and parts of them.
    most: (usize, usize),
    parts: usize,
    messages: usize,
    /// Completions, each with the number of its message; none if there is nothing to read.
    came: Vec<(Completion, Option<(usize, Filled)>)>,
}

impl Reading {
    /// Memory for so many messages of at most `slot_bytes`.
    pub fn new(gpu: &Arc<Gpu>, messages: usize, slot_bytes: usize) -> Result<Reading, CudaError> {
        let parts = messages.saturating_mul(parts_of(slot_bytes));
        let mut lane = Lane::new(gpu, CRC_TABLES_BYTES + parts * PART_BYTES, messages * READ_BYTES)?;
        if let Some(input) = lane.input_mut() {
            write_crc_tables(input);
        }
        Ok(Reading { lane, most: (messages, parts), parts: 0, messages: 0, came: Vec::new() })
    }

    /// Takes a completion, and the slot that it has filled if that is to be read. False, and nothing has happened, if
    /// it is full.
    ///
    /// # Panics
    /// If it is under way.
    pub fn push(&mut self, done: Completion, filled: Option<Filled>) -> bool {
        let Some(filled) = filled.filter(|filled| filled.len >= HEADER_LEN) else {
            let room = self.came.len() < 4 * self.most.0;
            self.came.extend(room.then_some((done, None)));
            return room;
        };
        let payload = filled.len - HEADER_LEN;
        let parts = parts_of(payload);
        if self.messages == self.most.0 || self.parts + parts > self.most.1 {
            return false;
        }
        let message = self.messages;
        let input = self.lane.input_mut().expect("a batch that is filled is not under way");
        let address = filled.ring.device.address() + filled.at as u64;
        write_parts(&mut input[CRC_TABLES_BYTES + self.parts * PART_BYTES..], message, address, payload);
        self.parts += parts;
        self.messages += 1;
        self.came.push((done, Some((message, filled))));
        true
    }

    /// Sends it to the device; `fetching` whole messages too, to the pinned side of their rings.
    pub fn start(&mut self, fetching: bool) -> Result<(), CudaError> {
        if self.messages == 0 {
            return Ok(());
        }
        let (parts_at, parts, messages) = (CRC_TABLES_BYTES, self.parts, self.messages);
        let work = ReadWork { parts_at, parts, tables_at: 0, read_at: 0, messages };
        let tables = 0..parts_at + parts * PART_BYTES;
        self.lane.start(std::slice::from_ref(&tables), &Work::Read(work))?;
        for (_, filled) in self.came.iter().filter(|_| fetching) {
            if let Some((_, Filled { ring, at, len })) = filled {
                self.lane.copy_out(&ring.device, &ring.host, *at, *len)?;
            }
        }
        Ok(())
    }

    pub fn poll_done(&mut self) -> Result<bool, CudaError> {
        self.lane.poll_done()
    }

    pub fn wait(&mut self) -> Result<(), CudaError> {
        self.lane.wait()
    }

    /// Whether anything is to be read: completions alone need not be sent to the device.
    pub fn has_messages(&self) -> bool {
        self.messages > 0
    }

    pub fn completions(&self) -> impl Iterator<Item = &Completion> {
        self.came.iter().map(|(done, _)| done)
    }

    /// Puts what was read of every message to the host's side of its ring, and its completion to `out`. Ready to be
    /// filled again. Returns how many messages were read.
    ///
    /// # Panics
    /// If it is under way.
    pub fn finish(&mut self, out: &mut Vec<Completion>) -> u64 {
        let read = self.lane.output().expect("a batch is finished when its work is done");
        for (done, filled) in self.came.drain(..) {
            let Some((message, Filled { ring, at, len })) = filled else {
                out.push(done);
                continue;
            };
            let row = &read[message * READ_BYTES..][..READ_BYTES];
            let (head, tail) = (HEADER_LEN + END.min(len - HEADER_LEN), END.min(len - HEADER_LEN));
            ring.host.put(at, &row[..head]);
            ring.host.put(at + len - tail, &row[HEADER_LEN + END..][..tail]);
            let crc = row.last_chunk::<4>().map(|word| u32::from_ne_bytes(*word));
            out.push(Completion { payload_crc: crc, ..done });
        }
        let messages = self.messages as u64;
        (self.parts, self.messages) = (0, 0);
        messages
    }
}

/// Parts of a message with so many bytes behind its header; one where there are none.
pub(super) fn parts_of(payload: usize) -> usize {
    payload.div_ceil(PART_LEN).max(1)
}

/// Writes the parts of a message at an address of the device to the beginning of `table`.
pub(super) fn write_parts(table: &mut [u8], message: usize, address: u64, payload: usize) {
    let rows = table.chunks_exact_mut(PART_BYTES).take(parts_of(payload));
    for (number, row) in rows.enumerate() {
        let begin = number * PART_LEN;
        let len = PART_LEN.min(payload - begin);
        row[..8].copy_from_slice(&(address + (HEADER_LEN + begin) as u64).to_ne_bytes());
        let words = [message, len, payload - begin - len, usize::from(number == 0)].map(|word| word as u32);
        row[8..].chunks_exact_mut(4).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_ne_bytes()));
    }
}

/// Writes the tables that the kernel computes with to the beginning of `input`.
pub(super) fn write_crc_tables(input: &mut [u8]) {
    let words = input[..CRC_TABLES_BYTES].chunks_exact_mut(4);
    words.zip(crc_tables()).for_each(|(at, word)| at.copy_from_slice(&word.to_ne_bytes()));
}

/// What the kernel computes with: x to the powers of 8 * 2^k, then what a byte becomes behind 0 to 3 bytes of zeros.
/// The highest power is in bit 0.
fn crc_tables() -> Vec<u32> {
    let times_x = |word: u32| word >> 1 ^ if word & 1 != 0 { POLYNOMIAL } else { 0 };
    let product = |a: u32, b: u32| {
        let shifted = std::iter::successors(Some(b), |b| Some(times_x(*b)));
        (0..32).zip(shifted).fold(0, |sum, (bit, b)| if a << bit >> 31 != 0 { sum ^ b } else { sum })
    };
    let behind_zero = |word: u32| (0..8).fold(word, |word, _| times_x(word));
    let power = |power: &u32| Some(product(*power, *power));
    let powers = std::iter::successors(Some(behind_zero(1 << 31)), power).take(32);
    let slice = |zeros: usize| move |byte: u32| (0..=zeros).fold(byte, |word, _| behind_zero(word));
    powers.chain((0..4).flat_map(|zeros| (0..256).map(slice(zeros)))).collect()
}
