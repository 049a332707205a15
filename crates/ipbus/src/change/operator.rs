// SPDX-License-Identifier: Apache-2.0
//! Two operators at once: a mark in the board itself lets changes of its settings come one after the other.
//!
//! ```text
//!  operator_begun   + 1 takes the board, in one packet with a read of operator_ended. If both were equal before, the
//!                   board is ours; otherwise the 1 is taken back, and the change waits
//!  operator_ended   + 1 as the change ends
//!  operator_ip      the host that has it
//! ```
//!
//! Promise: changes of a board do not overlap. A change waits for the one before it, for as long as [`Manner`] says, and
//! holds no other board meanwhile. A mark that does not move for [`LEASE`] is that of a change that was cut off: the next
//! one takes over, and notes it in the journal. A change that was taken over reports it. Programs that do not use the
//! registers (uHAL) are not detected. A device whose map has no such registers is changed without them.
//! Source: the registers' descriptions in `regs/penstock.rdl`.
//!
//! [`Manner`]: super::Manner

use super::error::ChangeError;
use super::fault::FaultKind;
use super::journal::Entry;
use super::work::Change;
use crate::fleet::FleetError;
use crate::regs::global::{OPERATOR_BEGUN, OPERATOR_ENDED, OPERATOR_IP};
use crate::request::{Access, AccessError, Request};
use penstock_units::Time;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

/// A count that is further ahead than this is behind.
const HALF: u32 = 1 << 31;
/// Patiences after which a mark that has not moved counts as that of a change that was cut off: a request takes four at
/// most.
const LEASE: u64 = 5;
/// Time from one look at a mark to the next.
const POLL: Time = Time::from_ms(50);

/// A change of a board that has begun: the two counts since then.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    pub board: usize,
    begun: u32,
    ended: u32,
}

/// The three registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    ip: u32,
    begun: u32,
    ended: u32,
}

/// A board that another operator has, and the mark.
type Busy = (usize, Mark);

impl Mark {
    const fn words(self) -> [u32; 3] {
        [self.ip, self.begun, self.ended]
    }

    const fn is_free(self) -> bool {
        self.begun == self.ended
    }
}

/// The address from which this host speaks to a board; nothing is sent.
pub fn local_address(to: SocketAddrV4) -> Ipv4Addr {
    let address = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    match address {
        Ok(SocketAddr::V4(address)) => *address.ip(),
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

impl Change<'_> {
    /// Carries `work` out on all of these boards, on each as soon as no other operator is changing it; those that stay
    /// in others' hands for too long are faults.
    pub(super) fn in_turn(
        &mut self,
        boards: &[usize],
        mut work: impl FnMut(&mut Self, &[Ticket]) -> Result<(), ChangeError>,
    ) -> Result<(), ChangeError> {
        let (start, mut waiting) = (self.fleet.now(), boards.to_vec());
        while !waiting.is_empty() {
            let (tickets, busy) = self.begin(&waiting)?;
            if !tickets.is_empty() {
                let done = work(self, &tickets);
                self.end(&tickets)?;
                done?;
            }
            if !busy.is_empty() {
                if self.fleet.now().saturating_sub(start) >= self.manner.wait {
                    busy.iter().for_each(|(board, mark)| self.busy(*board, *mark));
                    return Ok(());
                }
                self.fleet.pause(POLL)?;
            }
            waiting = busy.into_iter().map(|(board, _)| board).collect();
        }
        Ok(())
    }

    /// Time for which a board is known to have this mark.
    fn unmoved(&self, board: usize, mark: Mark) -> Time {
        self.fleet.marks().unmoved(self.address(board).0, mark.words())
    }

    fn lease(&self) -> Time {
        self.fleet.patience().saturating_mul(LEASE)
    }

    /// Begins a change of these boards; those that another operator is changing, unless with `force`.
    fn begin(&mut self, boards: &[usize]) -> Result<(Vec<Ticket>, Vec<Busy>), ChangeError> {
        if !self.fleet.map().has_operators {
            let free = |board: &usize| Ticket { board: *board, begun: 0, ended: 0 };
            return Ok((boards.iter().map(free).collect(), Vec::new()));
        }
        let looks: Vec<_> = boards.iter().map(|board| (*board, look())).collect();
        let found = self.fleet.run(&looks)?;
        let (mut free, mut busy) = (Vec::new(), Vec::new());
        for (board, outcome) in boards.iter().zip(found) {
            match outcome.map(|words| mark(&words[0])) {
                Ok(mark) => {
                    let is_over = self.unmoved(*board, mark) >= self.lease();
                    let takes = mark.is_free() || is_over || self.manner.force;
                    if takes { &mut free } else { &mut busy }.push((*board, mark));
                }
                Err(error) => self.failed(*board, &error),
            }
        }
        let tickets = self.take(&free, &mut busy)?;
        Ok((tickets, busy))
    }

    /// Takes boards that were free, or whose mark is to be taken over, when they were looked at.
    fn take(&mut self, free: &[(usize, Mark)], busy: &mut Vec<Busy>) -> Result<Vec<Ticket>, ChangeError> {
        let take: Request = [
            Access::Sum { address: OPERATOR_BEGUN, addend: 1 },
            Access::read(OPERATOR_ENDED),
            Access::read(OPERATOR_IP),
        ]
        .into_iter()
        .collect();
        let requests: Vec<_> = free.iter().map(|(board, _)| (*board, take.clone())).collect();
        let outcomes = self.fleet.run(&requests)?;
        let (mut tickets, mut given_back, mut named) = (Vec::new(), Vec::new(), Vec::new());
        for ((board, seen), outcome) in free.iter().zip(outcomes) {
            let found = match outcome.map(|words| Mark { begun: words[0][0], ended: words[1][0], ip: words[2][0] }) {
                Ok(found) => found,
                // Whether it was taken is not known; then its mark does not move.
                Err(AccessError::Unknown | AccessError::Crowded { .. }) => {
                    busy.push((*board, *seen));
                    continue;
                }
                Err(error) => {
                    self.failed(*board, &error);
                    continue;
                }
            };
            // Of several that take a mark over, the first finds it as it was.
            let takes_over = !found.is_free() && (self.manner.force || (!seen.is_free() && found == *seen));
            if !found.is_free() && !takes_over {
                given_back.push((*board, sum(OPERATOR_BEGUN, u32::MAX)));
                busy.push((*board, found));
                continue;
            }
            let ours = Access::write(OPERATOR_IP, local_address(self.address(*board).0).to_bits());
            let mut request = Request::from(ours);
            if takes_over {
                // The change that was cut off counts as ended.
                request.accesses.push(Access::write(OPERATOR_ENDED, found.begun));
                self.note_takeover(*board, found)?;
            }
            named.push((*board, request));
            tickets.push(Ticket { board: *board, begun: found.begun.wrapping_add(1), ended: found.begun });
        }
        self.fleet.run(&given_back)?;
        self.fleet.run(&named)?;
        Ok(tickets)
    }

    fn note_takeover(&mut self, board: usize, mark: Mark) -> Result<(), ChangeError> {
        let host = Ipv4Addr::from_bits(mark.ip);
        let result = match self.manner.force {
            true => format!("taken over from {host} by {}", self.manner.to_force),
            false => {
                format!("taken over from {host}, whose mark has not moved for {:.0} s", self.lease().as_secs_f64())
            }
        };
        let register = self.fleet.map().name_of(OPERATOR_ENDED);
        let board = self.address(board);
        let entry = Entry { board, register: &register, old: mark.ended, new: mark.begun, result: &result };
        Ok(self.journal.note(&[entry])?)
    }

    fn busy(&mut self, board: usize, mark: Mark) {
        let (host, to_force) = (Ipv4Addr::from_bits(mark.ip), self.manner.to_force);
        let unmoved = self.unmoved(board, mark).as_secs_f64();
        let lease = self.lease().as_secs_f64();
        let message = format!(
            "the operator at {host} is changing its settings: its mark has not moved for {unmoved:.1} s, and expires \
             after {lease:.1} s; try again, or take over by {to_force}"
        );
        self.fault(board, FaultKind::Busy, None, message);
    }

    /// Reports a reset, unless the board was silent or reset before.
    fn was_reset(&mut self, board: usize) {
        let address = self.address(board);
        if !self.faults.iter().any(|fault| fault.board == address && fault.kind == FaultKind::Silent) {
            self.failed(board, &AccessError::Restarted);
        }
    }

    fn was_taken_over(&mut self, board: usize, ip: u32) {
        let host = Ipv4Addr::from_bits(ip);
        let message = format!("the operator at {host} began to change its settings meanwhile: read them again");
        self.fault(board, FaultKind::Meanwhile, None, message);
    }

    /// Ends changes; reports boards that another one took over.
    fn end(&mut self, tickets: &[Ticket]) -> Result<(), FleetError> {
        if !self.fleet.map().has_operators {
            return Ok(());
        }
        let looks: Vec<_> = tickets.iter().map(|ticket| (ticket.board, look())).collect();
        let found = self.fleet.run(&looks)?;
        let mut ours = Vec::new();
        for (ticket, outcome) in tickets.iter().zip(found) {
            // A board that is silent now was reported by what came before.
            let Ok(words) = outcome else { continue };
            let mark = mark(&words[0]);
            if mark.begun.wrapping_sub(ticket.begun) > HALF {
                // Counts that have gone back are those of a board that was reset: both are 0 now.
                self.was_reset(ticket.board);
            } else if mark.ended == ticket.ended {
                ours.push((ticket, mark.ip));
            } else {
                self.was_taken_over(ticket.board, mark.ip);
            }
        }
        let ends: Vec<_> = ours.iter().map(|(ticket, _)| (ticket.board, sum(OPERATOR_ENDED, 1))).collect();
        let outcomes = self.fleet.run(&ends)?;
        let mut back = Vec::new();
        for ((ticket, ip), outcome) in ours.into_iter().zip(outcomes) {
            if outcome.is_ok_and(|words| words[0][0] != ticket.ended) {
                // It was taken over since the look.
                self.was_taken_over(ticket.board, ip);
                back.push((ticket.board, sum(OPERATOR_ENDED, u32::MAX)));
            }
        }
        self.fleet.run(&back)?;
        Ok(())
    }
}

fn look() -> Request {
    Access::Read { address: OPERATOR_IP, count: 3 }.into()
}

fn mark(words: &[u32]) -> Mark {
    Mark { ip: words[0], begun: words[1], ended: words[2] }
}

fn sum(address: u32, addend: u32) -> Request {
    Access::Sum { address, addend }.into()
}
