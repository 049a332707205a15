// SPDX-License-Identifier: Apache-2.0
//! Requests to boards as register accesses, and the views read from their registers.
//! Promise: a table, its first event and its command are in one packet, so that no other client can write in
//! between; a board refuses a command whose key is not the board's owner.
//! Source: regs/destination.rdl, regs/penstock.rdl.

use crate::last_event;
use penstock_farm::{BoardView, Claim, QueuePair, Request, IN_ERROR};
use penstock_ipbus::regs::{connection, destination, global, qp, server};
use penstock_ipbus::{Access, AccessError, BoardAddress, Fleet, FleetError, Outcome, Patience, RequestId};
use penstock_units::Time;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// The view after a request, or why there is none.
type Answer = Result<BoardView, String>;

/// Rows of the table.
const ROWS: usize = server::COUNT as usize;

/// The boards of a farm.
pub struct Boards {
    fleet: Fleet,
    patience: Time,
    owner: u16,
    jobs: Vec<Option<Job>>,
    /// Queue pairs of each board; 0 while they are not known.
    queue_pairs: Vec<usize>,
}

/// A request of the coordinator in progress: the remaining writes, each made after a poll that shows the board ready.
struct Job {
    writes: VecDeque<Vec<Access>>,
    now: Step,
    id: RequestId,
    since: Time,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Count,
    Write,
    Look,
}

impl Boards {
    pub fn open(addresses: &[BoardAddress], patience: Time, owner: u16, seed: u64) -> Result<Self, FleetError> {
        let fleet = Fleet::open(addresses, Patience(patience), seed)?;
        let count = addresses.len();
        Ok(Boards { fleet, patience, owner, jobs: (0..count).map(|_| None).collect(), queue_pairs: vec![0; count] })
    }

    pub fn now(&self) -> Time {
        self.fleet.now()
    }

    /// Sends a request to a board without pending requests.
    pub fn request(&mut self, board: usize, request: &Request) {
        let writes = writes(self.owner, request).into();
        self.next(board, writes, self.now());
    }

    /// Sends, waits at most so long, and takes the answers of requests that have ended.
    pub fn turn(&mut self, wait: Time) -> Result<Vec<(usize, Answer)>, FleetError> {
        self.fleet.turn(wait)?;
        let mut ended = Vec::new();
        while let Some((board, id, outcome)) = self.fleet.poll_outcome() {
            let Some(job) = self.jobs[board].take_if(|job| job.id == id) else { continue };
            if let Some(answer) = self.took(board, job, outcome) {
                ended.push((board, answer));
            }
        }
        Ok(ended)
    }

    /// The next remaining step.
    fn next(&mut self, board: usize, mut writes: VecDeque<Vec<Access>>, since: Time) {
        let (now, accesses) = match self.queue_pairs[board] {
            0 => (Step::Count, vec![Access::read(global::BUILD)]),
            count => match writes.pop_front() {
                Some(accesses) => (Step::Write, accesses),
                None => (Step::Look, look(count)),
            },
        };
        self.submit(board, writes, now, since, accesses);
    }

    fn submit(&mut self, board: usize, writes: VecDeque<Vec<Access>>, now: Step, since: Time, accesses: Vec<Access>) {
        let id = self.fleet.submit(board, &accesses.into_iter().collect());
        self.jobs[board] = Some(Job { writes, now, id, since });
    }

    fn took(&mut self, board: usize, job: Job, outcome: Outcome) -> Option<Answer> {
        let words = match outcome {
            Ok(words) => words,
            Err(error) => {
                self.queue_pairs[board] = 0;
                let hint = match error {
                    AccessError::Refused { .. } => "; it takes no table of servers: `penstock send` needs --by-event",
                    _ => "",
                };
                return Some(Err(format!("{error}{hint}")));
            }
        };
        let Job { writes, now, since, .. } = job;
        match now {
            Step::Count => {
                let count = global::BUILD_N_QP_BITS.of(words[0][0]);
                if !(1..=qp::COUNT).contains(&count) {
                    return Some(Err(format!("it says that it has {count} queue pairs; is this a Penstock board?")));
                }
                self.queue_pairs[board] = count as usize;
                self.next(board, writes, since);
            }
            // Between two tables the board must have taken the first.
            Step::Write => {
                let count = self.queue_pairs[board];
                self.submit(board, writes, Step::Look, since, look(count));
            }
            Step::Look => {
                let view = view(&words);
                if writes.is_empty() {
                    return Some(Ok(view));
                }
                match view.busy {
                    true if self.now().saturating_sub(since) >= self.patience => {
                        return Some(Err(format!("its table has been busy for {}", self.patience)));
                    }
                    true => {
                        let count = self.queue_pairs[board];
                        self.submit(board, writes, Step::Look, since, look(count));
                    }
                    false => self.next(board, writes, since),
                }
            }
        }
        None
    }
}

fn command(owner: u16, mask: u32) -> Access {
    Access::write(destination::CONTROL, destination::CONTROL_KEY_BITS.at(owner) | mask)
}

/// The whole table, so that nothing of an earlier one is left.
fn table(rows: &[u8]) -> Access {
    let mut words = vec![0; ROWS];
    for (word, row) in words.iter_mut().zip(rows) {
        *word = server::ENTRY_QP_BITS.at(*row) | server::ENTRY_LIVE_BITS.mask;
    }
    Access::Write { address: server::BASE + server::ENTRY, words }
}

fn first_event(first: u64) -> Access {
    Access::Write { address: destination::SWITCH_EVENT_LO, words: vec![first as u32, (first >> 32) as u32] }
}

/// The packets that a request writes.
fn writes(owner: u16, request: &Request) -> Vec<Vec<Access>> {
    let change = |first: u64, rows: &[u8], mask| vec![table(rows), first_event(first), command(owner, mask)];
    match request {
        Request::Look => vec![],
        Request::Claim => vec![vec![
            Access::write(destination::OWNER, destination::OWNER_ID_BITS.at(owner)),
            Access::write(destination::OPTIONS, destination::OPTIONS_WAIT_FOR_SERVER_BITS.mask),
        ]],
        Request::SetUp { first: 0, rows, .. } => vec![change(0, rows, destination::CONTROL_COMMIT_BITS.mask)],
        Request::SetUp { before, first, rows } => vec![
            change(0, before, destination::CONTROL_COMMIT_BITS.mask),
            change(*first, rows, destination::CONTROL_COMMIT_BITS.mask),
        ],
        Request::Prepare { first, rows } => vec![change(*first, rows, destination::CONTROL_PREPARE_BITS.mask)],
        Request::Replace { first, rows } => vec![change(*first, rows, destination::CONTROL_COMMIT_BITS.mask)],
        Request::Door { open, keeps } => vec![vec![Access::Bits {
            address: connection::CONTROL,
            and: !(connection::CONTROL_ENGAGED_BITS.mask | connection::CONTROL_KEEP_PEER_BITS.mask),
            or: connection::CONTROL_ENGAGED_BITS.at(!open) | connection::CONTROL_KEEP_PEER_BITS.at(*keeps),
        }]],
        Request::Fail { queue_pairs } => vec![queue_pairs
            .iter()
            .map(|at| {
                let state = qp::BASE + u32::from(*at) * qp::STRIDE + qp::STATE;
                Access::write(state, qp::STATE_BITS.at(IN_ERROR))
            })
            .collect()],
        Request::Release => vec![vec![Access::write(destination::OWNER, 0)]],
        Request::Confirm => vec![vec![command(owner, destination::CONTROL_CONFIRM_BITS.mask)]],
        Request::Cancel { rows } => vec![vec![command(owner, destination::CONTROL_CANCEL_BITS.mask), table(rows)]],
    }
}

/// All that a view is made of.
fn look(queue_pairs: usize) -> Vec<Access> {
    let mut accesses = vec![
        Access::read(destination::OWNER),
        Access::read(connection::CONTROL),
        Access::Read { address: destination::ANNOUNCED_LO, count: 2 },
        Access::Read { address: server::BASE + server::ENTRY, count: ROWS },
    ];
    accesses.extend(last_event::reads());
    for at in (0..qp::COUNT).take(queue_pairs) {
        let row = qp::BASE + at * qp::STRIDE;
        let registers = [qp::STATE, qp::DST_IP, qp::DEST_QPN, qp::RNR_NAK, qp::UNA_PSN, qp::WR_PSN];
        accesses.extend(registers.map(|register| Access::read(row + register)));
    }
    accesses
}

fn view(words: &[Vec<u32>]) -> BoardView {
    let [owner, control, announced, table] = [0, 1, 2, 3].map(|at: usize| &words[at]);
    let (last, queue_pairs) = words[4..].split_at(last_event::READS);
    let status = last[0][0];
    let is = |mask: u32| status & mask != 0;
    let live = table.iter().filter(|word| server::ENTRY_LIVE_BITS.of(**word) != 0);
    let queue_pairs = queue_pairs.chunks_exact(6).map(|row| QueuePair {
        state: qp::STATE_BITS.of(row[0][0]) as u8,
        peer: Ipv4Addr::from_bits(row[1][0]),
        number: row[2][0] & 0x00FF_FFFF,
        claim: Claim::Unknown,
        rnr_naks: row[3][0],
        outstanding: row[4] != row[5],
    });
    BoardView {
        owner: owner[0] as u16,
        next_event: last_event::last_event(last).map_or(0, |last| last.saturating_add(1)),
        announced: u64::from(announced[1]) << 32 | u64::from(announced[0]),
        live: destination::STATUS_LIVE_BITS.of(status) as u8,
        prepared: is(destination::STATUS_PREPARED_BITS.mask),
        pending: is(destination::STATUS_PENDING_BITS.mask),
        busy: is(destination::STATUS_BUSY_BITS.mask),
        refused: is(destination::STATUS_REFUSED_BITS.mask),
        held: is(destination::STATUS_HELD_BITS.mask),
        waits: is(destination::STATUS_WAITS_BITS.mask),
        engaged: connection::CONTROL_ENGAGED_BITS.of(control[0]) != 0,
        keeps: connection::CONTROL_KEEP_PEER_BITS.of(control[0]) != 0,
        rows: live.map(|word| server::ENTRY_QP_BITS.of(*word) as u8).collect(),
        queue_pairs: queue_pairs.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_packet_and_its_key_is_the_owner() {
        let rows: Vec<u8> = (0..64).collect();
        let made = writes(0xABCD, &Request::Prepare { first: 0x1_0000_0002, rows });
        let [packet] = &made[..] else { panic!("{made:?}") };
        let words: usize = packet
            .iter()
            .map(|access| if let Access::Write { words, .. } = access { words.len() + 2 } else { 0 })
            .sum();
        assert!(words < penstock_ipbus::PACKET_WORDS);
        assert_eq!(packet[1], Access::Write { address: destination::SWITCH_EVENT_LO, words: vec![2, 1] });
        assert_eq!(
            packet[2],
            Access::write(destination::CONTROL, 0xABCD_0000 | destination::CONTROL_PREPARE_BITS.mask)
        );
        let Access::Write { words, .. } = &packet[0] else { panic!() };
        assert_eq!((words.len(), words[0], words[63]), (64, 0x100, 0x13F));
    }

    #[test]
    fn a_set_up_from_event_0_on_is_one_table_and_a_later_one_two() {
        let request = |first| Request::SetUp { before: vec![1, 2], first, rows: vec![2] };
        assert_eq!(writes(1, &request(0)).len(), 1);
        let made = writes(1, &request(9));
        assert_eq!((made.len(), &made[0][1], &made[1][1]), (2, &first_event(0), &first_event(9)));
    }

    #[test]
    fn a_view_has_the_table_the_event_that_has_gone_and_each_queue_pair() {
        let mut words: Vec<Vec<u32>> = look(1).iter().map(|access| vec![0; access.answers()]).collect();
        assert_eq!(view(&words).next_event, 0);
        words[4][0] = destination::STATUS_BEGUN_BITS.mask;
        words[6][0] = 3;
        assert_eq!(view(&words).next_event, 4);
        for (at, word) in [3, 0x0A00_0001, 0x77, 12, 5, 6].into_iter().enumerate() {
            words[8 + at][0] = word;
        }
        words[3][1] = 0x105;
        let view = view(&words);
        assert_eq!(view.rows, [5]);
        assert_eq!(
            view.queue_pairs,
            [QueuePair {
                state: 3,
                peer: Ipv4Addr::new(10, 0, 0, 1),
                number: 0x77,
                claim: Claim::Unknown,
                rnr_naks: 12,
                outstanding: true
            }]
        );
    }
}
