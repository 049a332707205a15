// SPDX-License-Identifier: Apache-2.0
//! Two operators at once: each change of a board's settings begins and ends with a count in the board itself.
//!
//! ```text
//!  operator_begun   + 1 by read-modify-write as a change begins; the old count is this change's ticket
//!  operator_ended   + 1 as it ends
//!  operator_ip      the host that began last
//! ```
//!
//! Promise: a change that begins during another one (or after one was cut off) is refused with the name of its host; a
//! change during which another one began reports it. Programs that do not update the counts (uHAL) are not detected.
//! A device whose map has no such registers is changed without them.
//! Source: the registers' descriptions in `regs/penstock.rdl`.

use super::fault::FaultKind;
use super::work::Change;
use crate::fleet::FleetError;
use crate::regs::global::{OPERATOR_BEGUN, OPERATOR_ENDED, OPERATOR_IP};
use crate::request::{Access, AccessError, Outcome, Request};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

/// A count that is further ahead than this is behind.
const HALF: u32 = 1 << 31;

/// A change of a board that has begun.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    pub board: usize,
    begun: u32,
}

/// The address from which this host speaks to a board; nothing is sent.
pub fn own_address(to: SocketAddrV4) -> Ipv4Addr {
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
    /// Begins a change of these boards; of those that another operator is changing only with `force`.
    pub(super) fn begin(&mut self, boards: &[usize]) -> Result<Vec<Ticket>, FleetError> {
        if !self.fleet.map().has_operators {
            return Ok(boards.iter().map(|board| Ticket { board: *board, begun: 0 }).collect());
        }
        let force = self.manner.force;
        let looks: Vec<_> =
            boards.iter().map(|board| (*board, Access::Read { address: OPERATOR_IP, count: 3 }.into())).collect();
        let found = self.fleet.run(&looks)?;
        let mut free = Vec::new();
        for (board, outcome) in boards.iter().zip(found) {
            match outcome.map(|words| (words[0][0], words[0][1], words[0][2])) {
                Ok((ip, begun, ended)) if begun != ended && !force => self.busy(*board, ip),
                Ok(_) => free.push(*board),
                Err(error) => self.failed(*board, &error),
            }
        }
        let take = |board: usize| -> Request {
            let own = own_address(self.address(board).0);
            [
                Access::Sum { address: OPERATOR_BEGUN, addend: 1 },
                Access::read(OPERATOR_ENDED),
                Access::read(OPERATOR_IP),
                Access::write(OPERATOR_IP, own.to_bits()),
            ]
            .into_iter()
            .collect()
        };
        let requests: Vec<_> = free.iter().map(|board| (*board, take(*board))).collect();
        let outcomes = self.fleet.run(&requests)?;
        let (mut tickets, mut given_back) = (Vec::new(), Vec::new());
        for (board, outcome) in free.into_iter().zip(outcomes) {
            match outcome.map(|words| (words[0][0], words[1][0], words[2][0])) {
                Ok((begun, ended, ip)) if begun != ended && !force => {
                    // It began between the look and the count.
                    self.busy(board, ip);
                    let back: Request = [Access::Sum { address: OPERATOR_ENDED, addend: 1 }].into_iter().collect();
                    given_back.push((board, back));
                }
                Ok((begun, _, _)) => tickets.push(Ticket { board, begun: begun.wrapping_add(1) }),
                Err(error) => self.failed(board, &error),
            }
        }
        self.fleet.run(&given_back)?;
        Ok(tickets)
    }

    fn busy(&mut self, board: usize, ip: u32) {
        let host = Ipv4Addr::from_bits(ip);
        let to_force = self.manner.to_force;
        let message = format!(
            "the operator at {host} is changing its settings, or was cut off while doing so: wait, or take over by \
             {to_force}"
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

    /// Ends changes; reports boards on which another one began meanwhile.
    pub(super) fn end(&mut self, tickets: &[Ticket]) -> Result<(), FleetError> {
        if !self.fleet.map().has_operators {
            return Ok(());
        }
        let look = |_: &Ticket| Access::Read { address: OPERATOR_IP, count: 2 }.into();
        let requests: Vec<(usize, Request)> = tickets.iter().map(|ticket| (ticket.board, look(ticket))).collect();
        let found = self.fleet.run(&requests)?;
        let (mut ends, mut others) = (Vec::new(), Vec::new());
        for (ticket, outcome) in tickets.iter().zip(found) {
            // A board that is silent now was told of by what came before.
            let Ok(words) = outcome else { continue };
            let (ip, begun) = (words[0][0], words[0][1]);
            if begun == ticket.begun {
                ends.push((ticket.board, Access::write(OPERATOR_ENDED, begun).into()));
            } else if begun.wrapping_sub(ticket.begun) > HALF {
                // Counts that have gone back are those of a board that was reset: both are 0 now.
                self.was_reset(ticket.board);
            } else {
                let host = Ipv4Addr::from_bits(ip);
                let message = format!("the operator at {host} began to change its settings meanwhile: read them again");
                self.fault(ticket.board, FaultKind::Meanwhile, None, message);
                others.push((ticket.board, begun));
            }
        }
        self.fleet.run(&ends)?;
        let add = |addend: u32| Request::from(Access::Sum { address: OPERATOR_ENDED, addend });
        let own: Vec<_> = others.iter().map(|(board, _)| (*board, add(1))).collect();
        let outcomes = self.fleet.run(&own)?;
        // One who took over and has ended since has ended this change, too: it counts once.
        let is_twice =
            |begun: u32, outcome: &Outcome| outcome.as_ref().is_ok_and(|words| words[0][0].wrapping_sub(begun) < HALF);
        let twice = others.into_iter().zip(&outcomes).filter(|((_, begun), outcome)| is_twice(*begun, outcome));
        let back: Vec<_> = twice.map(|((board, _), _)| (board, add(u32::MAX))).collect();
        self.fleet.run(&back)?;
        Ok(())
    }
}
