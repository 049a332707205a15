// SPDX-License-Identifier: Apache-2.0
//! The counters and meters of a board, read from its registers after the run.

use super::stream::{StreamCounts, STREAM};
use crate::gateware::{Meters, Triggers};
use penstock_board::{qp_register, regs, Board, LineClock, RegisterError, WorkerGone};
use std::collections::BTreeMap;

/// Why a board's counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    #[error("{board}: {source}")]
    Register { board: String, source: RegisterError },
    #[error(transparent)]
    Worker(#[from] WorkerGone),
}

/// Counters that each queue pair has of its own.
const OF_QUEUE_PAIRS: [u32; 5] = [
    regs::qp::PACKETS_SENT,
    regs::qp::PACKETS_RETRANSMITTED,
    regs::qp::LOCAL_ACK_TIMEOUT_ERR,
    regs::qp::PACKET_SEQ_ERR,
    regs::qp::RNR_NAK,
];

/// Every counter of the register map, and the meters of the queue pairs that have sent something.
pub struct GatewareCounters {
    pub clock: LineClock,
    /// Name, address, value.
    counters: Vec<(&'static str, u32, u32)>,
    pub meters: Vec<Meters>,
    /// One for each queue pair, those of [`OF_QUEUE_PAIRS`].
    queue_pairs: Vec<[u32; OF_QUEUE_PAIRS.len()]>,
    /// Counts of the stream of a board without queue pairs.
    pub stream: Option<StreamCounts>,
    /// Counts of triggers, of a board that has had any.
    pub triggers: Option<Triggers>,
}

impl GatewareCounters {
    /// Reads them all; `board` is its name, for errors.
    pub fn read(board: &str, mut gateware: Board) -> Result<Self, CounterError> {
        let clock = gateware.clock();
        let failed = |source| CounterError::Register { board: board.to_owned(), source };
        let mut read = |address| gateware.read(address).map_err(failed);
        let queue_pairs = regs::global::BUILD_N_QP_BITS.of(read(regs::global::BUILD)?);
        let counter = |&(name, address)| Ok((name, address, read(address)?));
        let counters = regs::counters::ALL.iter().map(counter).collect::<Result<_, CounterError>>()?;
        let (mut meters, mut of_queue_pairs) = (Vec::new(), Vec::new());
        for qp in 0..queue_pairs {
            meters.extend(Meters::read(clock, qp as u8, &mut read)?);
            let mut counts = [0; OF_QUEUE_PAIRS.len()];
            for (count, offset) in counts.iter_mut().zip(OF_QUEUE_PAIRS) {
                *count = read(qp_register(qp as u8, offset))?;
            }
            of_queue_pairs.push(counts);
        }
        let stream = if queue_pairs == 0 { Some(StreamCounts::read(&mut read)?) } else { None };
        if stream.is_some() {
            meters.extend(Meters::of_stream(clock, 0, STREAM, &mut read)?);
        }
        let triggers = Triggers::read(clock, &mut read)?;
        Ok(Self { clock, counters, meters, queue_pairs: of_queue_pairs, stream, triggers })
    }

    /// The counter at an address of `regs::counters`.
    pub fn at(&self, address: u32) -> u32 {
        self.counters.iter().find(|counter| counter.1 == address).expect("an address of regs::counters").2
    }

    /// The counter of a queue pair at an offset of `regs::qp`.
    pub fn of_queue_pair(&self, index: u8, offset: u32) -> u32 {
        let column = OF_QUEUE_PAIRS.iter().position(|entry| *entry == offset).expect("an offset of OF_QUEUE_PAIRS");
        self.queue_pairs[usize::from(index)][column]
    }

    pub fn by_name(&self) -> BTreeMap<&'static str, u32> {
        self.counters.iter().map(|&(name, _, value)| (name, value)).collect()
    }
}
