// SPDX-License-Identifier: Apache-2.0
//! Computes the number of slots of a run, and checks that the machine has the memory for them.

use super::arguments::MemoryArguments;
use penstock_cli_common::arguments::number::positive;
use penstock_readout::session::PoolSize;
use penstock_readout::RingConfig;

/// Slots that hold what a board sends within the latency, and one that stays free.
pub fn slots(arguments: &MemoryArguments) -> Result<u32, String> {
    let needs = positive("--throughput", arguments.throughput)?.zip(positive("--latency", arguments.latency)?);
    let Some((gbps, ms)) = needs else {
        return Ok(arguments.slots.unwrap_or(RingConfig::default().slots));
    };
    let bytes = gbps * 1e9 / 8.0 * ms * 1e-3;
    let needed = (bytes / f64::from(arguments.slot_size.max(1))).ceil() + 1.0;
    match arguments.slots {
        Some(slots) if f64::from(slots) < needed => Err(format!(
            "--slots {slots}: {gbps} Gb/s for {ms} ms are {needed} slots of {} bytes; give that many, or larger ones",
            arguments.slot_size
        )),
        Some(slots) => Ok(slots),
        None if needed > f64::from(u32::MAX) => Err(format!("{gbps} Gb/s for {ms} ms: {needed} slots are too many")),
        None => Ok((needed as u32).max(2)),
    }
}

/// An event that is stored, and one that comes in: a slot of either for each board.
pub fn pool(arguments: &MemoryArguments, boards: usize) -> Result<Option<PoolSize>, String> {
    let Some(slots) = arguments.srq else { return Ok(None) };
    let least = 2 * boards.max(2);
    if (slots as usize) < least {
        return Err(format!(
            "--srq {slots}: {boards} boards need at least {least} slots, for an event that is stored and one that comes in"
        ));
    }
    Ok(Some(PoolSize { slots, copies: arguments.srq_copies.unwrap_or(slots.saturating_mul(4)) }))
}

/// Rings must leave the machine a quarter of its memory.
pub fn check_memory(what: &str, slots: u64, slot_bytes: u32) -> Result<(), String> {
    let needed = u128::from(slots) * u128::from(slot_bytes);
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u128> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    match kib.map(|kib| kib * 1024) {
        Some(free) if needed > free / 4 * 3 => Err(format!(
            "{what} of {slot_bytes} bytes are {} MB, but {} MB are free; use fewer or smaller ones",
            needed / 1_000_000,
            free / 1_000_000
        )),
        _ => Ok(()),
    }
}
