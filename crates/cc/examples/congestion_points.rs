// SPDX-License-Identifier: Apache-2.0
//! Writes a random history of four congestion points with the model's feedback, for `rtl/switch/congestion_point.sv` to
//! repeat (`tb/congestion_point/steps.cpp`), or answers for the frames that a switch in gateware has queued.
//!
//! Usage: `congestion_points history SEED FRAMES`. Records of little-endian words:
//!
//! ```text
//! 1 q_eq w jitter seed 8 x sample_bytes        a fresh start of all points
//! 0 point bytes queue feedback queue_old       a frame; feedback 0: no message; queue_old before this frame
//! ```
//!
//! Usage: `congestion_points answer`. Standard input: a line with the 12 parameters, then a line `index bytes queue` for
//! each frame, all decimal; standard output: a line `feedback queue_old` for each.

#[path = "common/random.rs"]
mod random;

use penstock_cc::{QcnCongestionPoint, QcnMarking};
use random::Random;
use std::collections::BTreeMap;
use std::io::{BufRead, BufWriter, Write};

/// The points' indices, as in tb/congestion_point/congestion_point_harness.sv.
const INDEX: [u8; 4] = [0, 1, 31, 255];
/// Frames of all points until the next fresh start.
const ERA: u64 = 20_000;
const QUEUE_BITS: u32 = 24;

/// Settings within the gateware's widths: those of the QCN hardware evaluation, near them, or any at all.
fn marking(random: &mut Random) -> QcnMarking {
    let mut marking = QcnMarking::default();
    match random.below(4) {
        0 => {}
        1 => {
            marking.q_eq = 1 + random.below(200_000) as u32;
            marking.w = random.below(8) as u32;
            marking.jitter = random.below(256) as u8;
            marking.sample_bytes.iter_mut().for_each(|bytes| *bytes /= 10);
        }
        _ => {
            marking.q_eq = random.magnitude(QUEUE_BITS);
            marking.w = random.magnitude(8);
            marking.jitter = random.magnitude(8) as u8;
            marking.sample_bytes = std::array::from_fn(|_| {
                let bits = random.pick(&[4, 12, 16, QUEUE_BITS]);
                random.magnitude(bits)
            });
        }
    }
    marking
}

/// One queue: its length wanders around a level that changes now and then.
struct Queue {
    bytes: u64,
    level: u64,
    wild: bool,
}

impl Queue {
    fn arrive(&mut self, random: &mut Random, q_eq: u32) -> (u32, u64) {
        let frame = match random.below(4) {
            0 => 60,
            1 => 1514,
            2 => 60 + random.below(8963) as u32,
            _ => random.magnitude(16),
        };
        if random.one_in(50) {
            self.level = random.below(4 * u64::from(q_eq) + 1);
        }
        if self.wild && random.one_in(4) {
            self.bytes = u64::from(random.magnitude(QUEUE_BITS));
        }
        let leaves = if self.bytes > self.level { 2 * u64::from(frame) } else { 0 };
        let most = (1 << QUEUE_BITS) - 1;
        self.bytes = (self.bytes.saturating_sub(leaves) + u64::from(frame)).min(most);
        (frame, self.bytes)
    }
}

fn history(seed: u64, frames: u64) -> std::io::Result<()> {
    let mut random = Random(seed);
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut write = |words: &[u32]| words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()));
    let mut messages = 0u64;
    let mut done = 0;
    while done < frames {
        let (marking, any) = (marking(&mut random), random.next() as u32);
        let lfsr = random.pick(&[0, 1, 0x9E37_79B9, any]);
        write(&[1, marking.q_eq, marking.w, marking.jitter.into(), lfsr])?;
        write(&marking.sample_bytes)?;
        let mut points = INDEX.map(|index| QcnCongestionPoint::new(marking, lfsr, index));
        let mut queues: [Queue; 4] =
            std::array::from_fn(|_| Queue { bytes: 0, level: u64::from(marking.q_eq), wild: random.one_in(3) });
        for _ in 0..ERA.min(frames - done) {
            let which = random.below(4) as usize;
            let (bytes, queue) = queues[which].arrive(&mut random, marking.q_eq);
            let old = points[which].queue_at_sample() as u32;
            let feedback = points[which].on_arrival(bytes, queue).unwrap_or(0);
            messages += u64::from(feedback != 0);
            write(&[0, which as u32, bytes, queue as u32, feedback.into(), old])?;
        }
        done += ERA.min(frames - done);
    }
    out.flush()?;
    eprintln!("seed {seed}: {done} frames, {messages} messages");
    Ok(())
}

fn answer() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let numbers = |line: String| line.split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>();
    let params = numbers(lines.next().ok_or("no parameters")??)?;
    let [q_eq, w, jitter, seed, sample_bytes @ ..] = &params[..] else { return Err("12 parameters are needed".into()) };
    let marking =
        QcnMarking { q_eq: *q_eq, w: *w, jitter: u8::try_from(*jitter)?, sample_bytes: sample_bytes.try_into()? };
    let mut points = BTreeMap::new();
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in lines {
        let [index, bytes, queue] = numbers(line?)?[..] else { return Err("a frame is `index bytes queue`".into()) };
        let index = u8::try_from(index)?;
        let point = points.entry(index).or_insert_with(|| QcnCongestionPoint::new(marking, *seed, index));
        let old = point.queue_at_sample();
        writeln!(out, "{} {old}", point.on_arrival(bytes, queue.into()).unwrap_or(0))?;
    }
    Ok(out.flush()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["history", seed, frames] => Ok(history(seed.parse()?, frames.parse()?)?),
        ["answer"] => answer(),
        _ => {
            eprintln!("usage: congestion_points history SEED FRAMES, decimal numbers; or congestion_points answer");
            std::process::exit(2);
        }
    }
}
