// SPDX-License-Identifier: Apache-2.0
//! The registers that are read from each board for its metrics.

use super::super::session::Session;
use super::super::streams::{self, halves, Stream};
use crate::outcome::Failure;
use penstock_ipbus::regs::counters::ALL;
use penstock_ipbus::regs::{port, qp, source};
use penstock_ipbus::{Access, Request};
use std::time::SystemTime;

/// A queue pair.
#[derive(Debug, Clone)]
pub struct QueuePair {
    pub state: u32,
    pub rate_current_bps: u64,
    pub rate_target_bps: u64,
    pub alpha: f64,
    pub notifications: u32,
    pub bytes_acked: u64,
}

/// A board that answers.
#[derive(Debug, Clone)]
pub struct Read {
    pub link_up: bool,
    pub source_runs: bool,
    /// In the order of the map.
    pub counters: Vec<u32>,
    pub queue_pairs: Vec<QueuePair>,
    pub streams: Vec<Stream>,
}

/// All boards at one time.
#[derive(Debug, Clone)]
pub struct Look {
    pub time: SystemTime,
    /// Name, and what was read; none: the board is silent, or not fit.
    pub boards: Vec<(String, Option<Read>)>,
}

/// Words of a queue pair: state; acknowledged bytes, the high half on either side; R_C, R_T, alpha, stage and cuts.
fn of_queue_pair(row: u32) -> [Access; 5] {
    let base = qp::BASE + row * qp::STRIDE;
    [
        Access::read(base + qp::STATE),
        Access::read(base + qp::BYTES_ACKED_HI),
        Access::read(base + qp::BYTES_ACKED_LO),
        Access::read(base + qp::BYTES_ACKED_HI),
        Access::Read { address: base + qp::RATE_CURRENT, count: 5 },
    ]
}

fn request(queue_pairs: u32) -> Request {
    let whole = [
        Access::read(port::LINK),
        Access::read(source::STATUS),
        Access::Read { address: ALL[0].1, count: ALL.len() },
        streams::count_access(),
    ];
    whole.into_iter().chain((0..queue_pairs).flat_map(of_queue_pair)).collect()
}

/// Looks at all boards.
pub fn at(session: &mut Session) -> Result<Look, Failure> {
    let fit: Vec<_> = session.fit().collect();
    let requests: Vec<_> = fit.iter().map(|(board, of)| (*board, request(of.build.queue_pairs))).collect();
    let outcomes = session.run(&requests)?;
    let mut boards: Vec<(String, Option<Read>)> =
        (0..session.boards.len()).map(|board| (session.address(board).to_string(), None)).collect();
    let mut counts = Vec::new();
    for ((board, identity), outcome) in fit.into_iter().zip(outcomes) {
        match outcome {
            Ok(words) => {
                counts.push((board, streams::count_of(words[3][0])));
                boards[board].1 = Some(read(&words, identity.scale()));
            }
            Err(error) => session.lost(board, error),
        }
    }
    counts.retain(|(_, streams)| *streams > 0);
    for (board, outcome) in streams::read(session, &counts)? {
        match (outcome, &mut boards[board].1) {
            (Ok(streams), Some(read)) => read.streams = streams,
            (Ok(_), None) => {}
            (Err(error), read) => {
                *read = None;
                session.lost(board, error);
            }
        }
    }
    Ok(Look { time: SystemTime::now(), boards })
}

fn read(words: &[Vec<u32>], scale: penstock_ipbus::map::Scale) -> Read {
    let faults = port::LINK_LOCAL_FAULT_MASK | port::LINK_REMOTE_FAULT_MASK;
    let queue_pair = |words: &[Vec<u32>]| {
        let rates = &words[4];
        QueuePair {
            state: words[0][0] & qp::STATE_MASK,
            rate_current_bps: scale.rate(rates[0].into()),
            rate_target_bps: scale.rate(rates[1].into()),
            alpha: f64::from(rates[2] & 0x1_FFFF) / 65536.0,
            notifications: rates[4],
            bytes_acked: halves(words[1][0], words[2][0], words[3][0]),
        }
    };
    Read {
        link_up: words[0][0] & faults == 0,
        source_runs: words[1][0] & source::STATUS_RUNNING_MASK != 0,
        counters: words[2].clone(),
        queue_pairs: words[4..].chunks_exact(5).map(queue_pair).collect(),
        streams: Vec::new(),
    }
}
