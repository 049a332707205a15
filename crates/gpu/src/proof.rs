// SPDX-License-Identifier: Apache-2.0
//! Test of a GPU: compares all kernels with the processor, on payloads of all lengths with planted errors, and
//! waveforms with every kind of tie.
//! Promise: every result is compared; one seed makes one set of payloads.

use std::sync::Arc;

use penstock_readout::{Event, Fragment};
use penstock_recorded::{COUNTER_BYTES, MODULE_BYTES, SAMPLE_SHAPE};
use penstock_wire::fragment::{FragmentHeader, HEADER_LEN};
use penstock_wire::Prbs31;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::batch::{Batch, BatchSize, Errors, Kernel};
use crate::cuda::{CudaError, Gpu, Lane, ReadWork, Work, CRC_TABLES_BYTES, PART_BYTES, READ_BYTES};
use crate::reading::{parts_of, write_crc_tables, write_parts};

const PAYLOADS: usize = 400;
const MODULES: usize = 500;
const FRAGMENTS: usize = 600;
const SAMPLES: usize = SAMPLE_SHAPE[2];

/// What was compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// PRBS-31 payloads, their bytes, and those in which errors were planted.
    pub payloads: u64,
    pub payload_bytes: u64,
    pub payloads_damaged: u64,
    /// Payloads of which the GPU counts other errors, or another first one, than the processor.
    pub payloads_differing: u64,
    pub waveforms: u64,
    /// Charges that are not the processor's.
    pub charges_differing: u64,
    /// Fragments as a NIC leaves them on the device, and those of which header, ends or CRC-32C are read as something
    /// else.
    pub fragments: u64,
    pub fragments_differing: u64,
}

impl Proof {
    pub fn holds(&self) -> bool {
        let all = self.payloads > 0 && self.waveforms > 0 && self.fragments > 0;
        all && self.payloads_differing == 0 && self.charges_differing == 0 && self.fragments_differing == 0
    }
}

/// Has the GPU compute what the processor computes too.
///
/// # Errors
/// The driver's.
pub fn prove(gpu: &Arc<Gpu>, seed: u64) -> Result<Proof, CudaError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut proof = Proof::default();
    for invert in [true, false] {
        prove_prbs(gpu, &mut random, invert, &mut proof)?;
    }
    prove_charges(gpu, &mut random, &mut proof)?;
    prove_reading(gpu, &mut random, &mut proof)?;
    Ok(proof)
}

/// Fragments with payloads of all short lengths, then of several parts.
fn prove_reading(gpu: &Arc<Gpu>, random: &mut ChaCha8Rng, proof: &mut Proof) -> Result<(), CudaError> {
    let len = |i: usize, word: u32| if i < FRAGMENTS / 2 { i } else { 4000 + word as usize % 20_000 };
    let messages: Vec<Vec<u8>> = (0..FRAGMENTS)
        .map(|i| {
            let mut payload = vec![0; len(i, random.next_u32())];
            random.fill_bytes(&mut payload);
            [&FragmentHeader::for_payload(i as u16, i as u64, 7, &payload).to_bytes()[..], &payload].concat()
        })
        .collect();
    let parts: usize = messages.iter().map(|message| parts_of(message.len() - HEADER_LEN)).sum();
    let begin = (CRC_TABLES_BYTES + parts * PART_BYTES).next_multiple_of(8);
    let places = messages.iter().scan(begin, |next, message| {
        let at = *next;
        *next = (at + message.len()).next_multiple_of(8);
        Some(at)
    });
    let places: Vec<usize> = places.collect();
    let end = places[FRAGMENTS - 1] + messages[FRAGMENTS - 1].len();
    let mut lane = Lane::new(gpu, end, FRAGMENTS * READ_BYTES)?;
    let addresses: Vec<u64> = places.iter().map(|at| lane.device_address(*at)).collect();
    let input = lane.input_mut().expect("nothing is under way");
    write_crc_tables(input);
    let mut table = CRC_TABLES_BYTES;
    for (number, (message, at)) in messages.iter().zip(&places).enumerate() {
        input[*at..][..message.len()].copy_from_slice(message);
        let payload = message.len() - HEADER_LEN;
        write_parts(&mut input[table..], number, addresses[number], payload);
        table += parts_of(payload) * PART_BYTES;
    }
    let work = ReadWork { parts_at: CRC_TABLES_BYTES, parts, tables_at: 0, read_at: 0, messages: FRAGMENTS };
    lane.start(std::slice::from_ref(&(0..end)), &Work::Read(work))?;
    lane.wait()?;
    let read = lane.output().expect("the work is done").chunks_exact(READ_BYTES);
    for (message, read) in messages.iter().zip(read) {
        let (header, payload) = message.split_at(HEADER_LEN);
        let ends = payload.len().min(4);
        let right = read[..HEADER_LEN] == *header
            && read[HEADER_LEN..][..ends] == payload[..ends]
            && read[HEADER_LEN + 4..][..ends] == payload[payload.len() - ends..]
            && read[HEADER_LEN + 8..] == penstock_wire::crc32c(payload).to_ne_bytes();
        proof.fragments += 1;
        proof.fragments_differing += u64::from(!right);
    }
    Ok(())
}

/// A batch with one event of these payloads, done.
fn done(gpu: &Arc<Gpu>, kernel: Kernel, payloads: &[Vec<u8>]) -> Result<Batch, CudaError> {
    let longest = payloads.iter().map(Vec::len).max().unwrap_or(0);
    let mut batch = Batch::new(gpu, BatchSize::holding(payloads.len(), longest, 0), kernel, None)?;
    let fragments: Vec<Fragment<'_>> = payloads.iter().map(|payload| Fragment::of(0, 0, payload)).collect();
    let event = Event { number: 0, timestamp_ns: None, complete: true, fragments: &fragments, missing: &[] };
    batch.push(&event, &[]);
    batch.start()?;
    batch.wait()?;
    Ok(batch)
}

fn prove_prbs(gpu: &Arc<Gpu>, random: &mut ChaCha8Rng, invert: bool, proof: &mut Proof) -> Result<(), CudaError> {
    let mut sequence = Prbs31::new(random.next_u32(), invert);
    let mut payloads = Vec::new();
    for i in 0..PAYLOADS {
        // All short lengths, then long ones, which are several pieces.
        let len = if i < PAYLOADS / 2 { 5 + i } else { 4000 + random.next_u32() as usize % 20_000 };
        let mut payload = vec![0; len];
        sequence.fill(&mut payload);
        // Three of four are damaged, after the four bytes that give their place in the sequence.
        for _ in 0..i % 4 {
            payload[4 + random.next_u32() as usize % (len - 4)] ^= 1 << (random.next_u32() % 8);
        }
        payloads.push(payload);
    }
    let batch = done(gpu, Kernel::Prbs31 { invert }, &payloads)?;
    for (payload, found) in payloads.iter().zip(batch.event(0).compared().map(|compared| compared.found)) {
        let expected = errors(payload, invert);
        proof.payloads += 1;
        proof.payload_bytes += payload.len() as u64;
        proof.payloads_damaged += u64::from(expected.is_some_and(|errors| errors.bits > 0));
        proof.payloads_differing += u64::from(found != expected);
    }
    Ok(())
}

/// What the processor finds behind the first four bytes.
fn errors(payload: &[u8], invert: bool) -> Option<Errors> {
    let behind = Prbs31::behind(*payload.first_chunk()?, invert)?;
    let first = behind.first_error(&payload[4..]).map(|at| at + 4);
    Some(Errors { bits: behind.clone().errors(&payload[4..]), first })
}

fn prove_charges(gpu: &Arc<Gpu>, random: &mut ChaCha8Rng, proof: &mut Proof) -> Result<(), CudaError> {
    let mut payload = vec![0; MODULES * MODULE_BYTES];
    for (i, module) in payload.chunks_exact_mut(MODULE_BYTES).enumerate() {
        random.fill_bytes(module);
        // From two values, with ties everywhere, to all that a word can hold.
        let mask = (1u32 << (1 + i % 16)) - 1;
        for sample in module[COUNTER_BYTES..].chunks_exact_mut(2) {
            let value = u16::from_le_bytes([sample[0], sample[1]]) & mask as u16;
            sample.copy_from_slice(&value.to_le_bytes());
        }
    }
    let expected: Vec<i32> = payload.chunks_exact(MODULE_BYTES).flat_map(charges).collect();
    let batch = done(gpu, Kernel::Charges, &[payload])?;
    batch.event(0).with_charges(|event| {
        let found = event.fragments[0].payload.as_chunks::<4>().0;
        proof.waveforms = expected.len() as u64;
        let differing =
            expected.iter().zip(found).filter(|(expected, found)| **expected != i32::from_le_bytes(**found));
        proof.charges_differing = (expected.len() - found.len()) as u64 + differing.count() as u64;
    });
    Ok(())
}

/// The charges of a module, by the definition of the median.
fn charges(module: &[u8]) -> impl Iterator<Item = i32> + '_ {
    module[COUNTER_BYTES..].chunks_exact(2 * SAMPLES).map(|waveform| {
        let mut samples: Vec<i32> =
            waveform.chunks_exact(2).map(|sample| i32::from(u16::from_le_bytes([sample[0], sample[1]]))).collect();
        samples.sort_unstable();
        let twice_the_median = samples[SAMPLES / 2 - 1] + samples[SAMPLES / 2];
        samples.iter().sum::<i32>() - SAMPLES as i32 / 2 * twice_the_median
    })
}
