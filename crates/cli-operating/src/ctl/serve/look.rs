// SPDX-License-Identifier: Apache-2.0
//! Looks at boards: the registers of their metrics and of the live page's controls.
//! Promise: no board waits for another. Each is asked once an interval, unless it still owes an answer: a silent board
//! is asked for the patience, counts as lost, and is then asked for its identity until it is back.

use super::super::session::Session;
use super::super::streams::{self, halves, Stream};
use super::meters::{self, StreamMeters};
use penstock_cli_common::outcome::Failure;
use penstock_ipbus::map::{Place, Scale};
use penstock_ipbus::regs::counters::ALL;
use penstock_ipbus::regs::{port, qp, source};
use penstock_ipbus::{Access, Fleet, Identity, Outcome, Request};
use penstock_units::Time;
use std::sync::Arc;
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
    pub time: SystemTime,
    /// The same by the clock of the fleet.
    pub at: Time,
    pub link_up: bool,
    pub source_runs: bool,
    /// The counters in the order of the map.
    pub counters: Vec<u32>,
    pub queue_pairs: Vec<QueuePair>,
    pub streams: Vec<Stream>,
    /// One for each stream.
    pub meters: Vec<StreamMeters>,
    pub scale: Scale,
    /// Words of the board's controls; empty: they were written meanwhile.
    pub controls: Vec<u32>,
}

/// A board's name, and what was read of it last; none: it is silent, or not fit.
pub type OfBoard = (String, Option<Arc<Read>>);

/// What a board was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requested {
    Nothing,
    Identity,
    StreamCount,
    Values,
}

/// Registers that the live page shows of a board.
pub type Controls = fn(usize, &Identity) -> Vec<Place>;

struct State {
    requested: Requested,
    streams: Option<u32>,
    /// A control was written after the board was asked: what is on its way may be older.
    is_overtaken: bool,
}

/// All boards.
pub struct Looks {
    fleet: Fleet,
    states: Vec<State>,
    controls: Controls,
    pub boards: Vec<OfBoard>,
}

impl Looks {
    /// Polls the boards of a session with a fleet of their own: a change of the session waits for none of them.
    pub fn of(session: &Session, fleet: Fleet, controls: Controls) -> Self {
        let boards = (0..session.boards.len()).map(|board| (session.address(board).to_string(), None)).collect();
        let states = session
            .boards
            .iter()
            .map(|_| State { requested: Requested::Nothing, streams: None, is_overtaken: false })
            .collect();
        Looks { fleet, states, controls, boards }
    }

    /// Begins a look: asks every board that owes no answer.
    pub fn begin(&mut self, session: &Session) {
        for board in 0..self.states.len() {
            if self.states[board].requested == Requested::Nothing {
                self.request(session, board);
            }
        }
    }

    /// Whether no board that is fit owes an answer.
    pub fn is_over(&self, session: &Session) -> bool {
        session.fit().all(|(board, _)| self.states[board].requested == Requested::Nothing)
    }

    /// Controls of these boards were written.
    pub fn overtake(&mut self, boards: &[usize]) {
        boards
            .iter()
            .for_each(|board| self.states[*board].is_overtaken = self.states[*board].requested == Requested::Values);
    }

    fn request(&mut self, session: &Session, board: usize) {
        let streams = self.states[board].streams;
        let (requested, request) = match (&session.boards[board].identity, streams) {
            (Err(_), _) => (Requested::Identity, Identity::request()),
            (Ok(_), None) => (Requested::StreamCount, streams::count_access().into()),
            (Ok(identity), Some(streams)) => {
                let controls = (self.controls)(board, identity);
                (Requested::Values, request(identity.build.queue_pairs, streams, &controls))
            }
        };
        self.states[board].requested = requested;
        self.fleet.submit(board, &request);
    }

    /// Waits until something has come or `wait` is over, and takes it.
    pub fn turn(&mut self, session: &mut Session, wait: Time) -> Result<(), Failure> {
        self.fleet.turn(wait).map_err(|error| Failure::Fault(error.to_string()))?;
        while let Some((board, _, outcome)) = self.fleet.poll_outcome() {
            self.take(session, board, outcome);
        }
        Ok(())
    }

    fn take(&mut self, session: &mut Session, board: usize, outcome: Outcome) {
        let requested = std::mem::replace(&mut self.states[board].requested, Requested::Nothing);
        let is_overtaken = std::mem::take(&mut self.states[board].is_overtaken);
        if requested == Requested::Identity {
            session.boards[board].identity = Identity::of(outcome);
            if session.boards[board].identity.is_ok() {
                self.request(session, board);
            }
            return;
        }
        let words = match outcome {
            Ok(words) => words,
            Err(error) => {
                session.lost(board, error);
                // It may come back with another build.
                self.states[board].streams = None;
                self.boards[board].1 = None;
                return;
            }
        };
        if requested == Requested::StreamCount {
            self.states[board].streams = Some(streams::count_of(words[0][0]));
            self.request(session, board);
        } else if let Ok(identity) = &session.boards[board].identity {
            let streams = self.states[board].streams.unwrap_or(0);
            let mut read = read(&words, identity, streams as usize, self.fleet.now());
            if is_overtaken {
                read.controls.clear();
            }
            self.boards[board].1 = Some(Arc::new(read));
        }
    }
}

const OF_BOARD: usize = 3;
const OF_QUEUE_PAIR: usize = 5;

/// Words of a queue pair: state; acknowledged bytes, the high half on either side; R_C, R_T, alpha, stage and cuts.
fn of_queue_pair(row: u32) -> [Access; OF_QUEUE_PAIR] {
    let base = qp::BASE + row * qp::STRIDE;
    [
        Access::read(base + qp::STATE),
        Access::read(base + qp::BYTES_ACKED_HI),
        Access::read(base + qp::BYTES_ACKED_LO),
        Access::read(base + qp::BYTES_ACKED_HI),
        Access::Read { address: base + qp::RATE_CURRENT, count: 5 },
    ]
}

fn request(queue_pairs: u32, streams: u32, controls: &[Place]) -> Request {
    let whole: [Access; OF_BOARD] =
        [Access::read(port::LINK), Access::read(source::STATUS), Access::Read { address: ALL[0].1, count: ALL.len() }];
    let meters = meters::accesses(queue_pairs, streams);
    let queue_pairs = (0..queue_pairs).flat_map(of_queue_pair);
    let controls = controls.iter().flat_map(Place::addresses).map(Access::read);
    whole.into_iter().chain(queue_pairs).chain(streams::accesses(streams)).chain(meters).chain(controls).collect()
}

fn read(words: &[Vec<u32>], identity: &Identity, streams: usize, at: Time) -> Read {
    let scale: Scale = identity.scale();
    let faults = port::LINK_LOCAL_FAULT_BITS.mask | port::LINK_REMOTE_FAULT_BITS.mask;
    let queue_pair = |words: &[Vec<u32>]| {
        let rates = &words[4];
        QueuePair {
            state: qp::STATE_BITS.of(words[0][0]),
            rate_current_bps: scale.rate(rates[0].into()),
            rate_target_bps: scale.rate(rates[1].into()),
            alpha: f64::from(rates[2] & 0x1_FFFF) / 65536.0,
            notifications: rates[4],
            bytes_acked: halves(words[1][0], words[2][0], words[3][0]),
        }
    };
    let (whole, rows) = words.split_at(OF_BOARD);
    let (queue_pairs, rest) = rows.split_at(OF_QUEUE_PAIR * identity.build.queue_pairs as usize);
    let (of_streams, rest) = rest.split_at(streams::ACCESSES * streams);
    let (meters, controls) = rest.split_at(meters::ACCESSES * streams);
    Read {
        time: SystemTime::now(),
        at,
        link_up: whole[0][0] & faults == 0,
        source_runs: source::STATUS_RUNNING_BITS.of(whole[1][0]) != 0,
        counters: whole[2].clone(),
        queue_pairs: queue_pairs.chunks_exact(OF_QUEUE_PAIR).map(queue_pair).collect(),
        streams: streams::of_words(of_streams),
        meters: meters::of_words(meters),
        scale,
        controls: controls.iter().flatten().copied().collect(),
    }
}
