// SPDX-License-Identifier: Apache-2.0
//! The words of a sample, and the results from all samples of a board.
//! Promise: a reset of a board between samples is detected, because its counters go back.

use super::super::faults::Faults;
use super::super::session::Session;
use penstock_ipbus::map::Scale;
use penstock_ipbus::regs::qp;
use penstock_ipbus::{Access, Outcome, Request};
use penstock_netsim::{NameNumber, TraceSink};
use penstock_units::Time;

/// Registers from R_C on that a sample has.
const RATES: usize = 5;
/// A count that went up by more than this in one interval has gone back.
const HALF: u32 = 1 << 31;

/// The requests to a board in each poll.
pub fn request(queue_pairs: &[u16]) -> Request {
    let of_one = |row: &u16| {
        let base = qp::BASE + u32::from(*row) * qp::STRIDE;
        [Access::read(base + qp::BYTES_ACKED_LO), Access::Read { address: base + qp::RATE_CURRENT, count: RATES }]
    };
    queue_pairs.iter().flat_map(of_one).collect()
}

/// A queue pair's counts at its last sample.
#[derive(Debug, Clone, Copy)]
struct Counts {
    time: Time,
    bytes: u32,
    notifications: u32,
}

/// The results of the samples of a board.
#[derive(Debug, Clone)]
pub struct OfBoard {
    pub samples: u64,
    pub missed: u64,
    pub resets: Vec<Time>,
    /// Spans without an answer.
    pub silences: Vec<(Time, Time)>,
    pub refused: Option<String>,
    requested_at: Time,
    answered_at: Time,
    is_silent: bool,
    name: Option<NameNumber>,
    counts: Vec<Option<Counts>>,
    scale: Scale,
    pub label: String,
}

/// All boards, by their numbers.
pub struct Sampled {
    pub boards: Vec<OfBoard>,
    queue_pairs: Vec<u16>,
    /// Ticks that came too late for this host.
    pub late: u64,
}

impl Sampled {
    pub fn new(session: &Session, queue_pairs: &[u16]) -> Self {
        let of = |number: usize| OfBoard {
            samples: 0,
            missed: 0,
            resets: Vec::new(),
            silences: Vec::new(),
            refused: None,
            requested_at: Time::ZERO,
            answered_at: Time::ZERO,
            is_silent: false,
            name: None,
            counts: vec![None; queue_pairs.len()],
            scale: super::super::get::scale(session, number),
            label: session.address(number).to_string(),
        };
        Sampled { boards: (0..session.boards.len()).map(of).collect(), queue_pairs: queue_pairs.to_vec(), late: 0 }
    }

    pub fn mark_requested(&mut self, board: usize, now: Time) {
        self.boards[board].requested_at = now;
    }

    pub fn missed(&mut self, board: usize) {
        self.boards[board].missed += 1;
    }

    pub fn late(&mut self, ticks: u64) {
        self.late += ticks;
    }

    /// Processes an answer; returns messages to print at once.
    pub fn answered(&mut self, board: usize, now: Time, outcome: Outcome, trace: &mut TraceSink) -> Option<String> {
        let of = &mut self.boards[board];
        let words = match outcome {
            Ok(words) => words,
            Err(penstock_ipbus::AccessError::Silent { .. }) => {
                if !std::mem::replace(&mut of.is_silent, true) {
                    return Some(format!("is silent since {:.3} s", of.answered_at.as_secs_f64()));
                }
                return None;
            }
            Err(error) => {
                let first = of.refused.is_none();
                of.refused = Some(error.to_string());
                return first.then(|| error.to_string());
            }
        };
        let time = of.requested_at + (now.saturating_sub(of.requested_at)) / 2;
        let name = *of.name.get_or_insert_with(|| trace.name_number(&of.label));
        trace.begin_numbered(time, name);
        let mut was_reset = false;
        for (at, row) in self.queue_pairs.iter().enumerate() {
            let (bytes, rates) = (words[2 * at][0], &words[2 * at + 1]);
            let counts = Counts { time, bytes, notifications: rates[4] };
            if let Some(before) = of.counts[at].replace(counts) {
                let (more, cuts) = (bytes.wrapping_sub(before.bytes), rates[4].wrapping_sub(before.notifications));
                let span = (time.saturating_sub(before.time)).as_secs_f64();
                // Over a longer span the low half of the bytes may have gone round.
                let is_short = span < 1.0;
                if cuts >= HALF || (is_short && more >= HALF) {
                    was_reset = true;
                } else if is_short && span > 0.0 {
                    trace.record(*row, "throughput_bps", f64::from(more) * 8.0 / span);
                }
            }
            trace.record(*row, "rate_current_bps", of.scale.rate(rates[0].into()) as f64);
            trace.record(*row, "rate_target_bps", of.scale.rate(rates[1].into()) as f64);
            trace.record(*row, "alpha", f64::from(rates[2] & 0x1_FFFF) / 65536.0);
            trace.record(*row, "stage", f64::from(rates[3] & 0xFF));
            trace.record(*row, "cnp_handled", f64::from(rates[4]));
        }
        of.samples += 1;
        let since = std::mem::replace(&mut of.answered_at, time);
        let mut notice = None;
        if std::mem::take(&mut of.is_silent) {
            of.silences.push((since, time));
            notice = Some(format!("answers again at {:.3} s", time.as_secs_f64()));
        }
        if was_reset {
            of.resets.push(time);
            notice = Some(format!("was reset before {:.3} s: its counts went back", time.as_secs_f64()));
        }
        notice
    }

    /// The faults, by board.
    pub fn faults(&self, session: &Session, faults: &mut Faults) {
        for (number, of) in self.boards.iter().enumerate() {
            let mut push = |message: String| faults.push(session.address(number), None, message);
            of.resets
                .iter()
                .for_each(|at| push(format!("was reset before {:.3} s: its counts went back", at.as_secs_f64())));
            of.silences.iter().for_each(|(from, to)| {
                push(format!("was silent from {:.3} s to {:.3} s", from.as_secs_f64(), to.as_secs_f64()));
            });
            of.refused.iter().for_each(|message| push(message.clone()));
            if of.is_silent {
                push(format!("is silent since {:.3} s", of.answered_at.as_secs_f64()));
            }
        }
    }
}
