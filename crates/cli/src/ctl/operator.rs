// SPDX-License-Identifier: Apache-2.0
//! Two operators at once: each change of a board's settings begins and ends with a count in the board itself.
//!
//! ```text
//!  operator_begun   + 1 by read-modify-write as a change begins; the old count is this change's ticket
//!  operator_ended   + 1 as it ends
//!  operator_ip      the host that began last
//! ```
//!
//! Promise: a change that begins while another is under way (or was cut off) is refused, and names its host; one during
//! which another began is told of it. Programs that do not count (uHAL) are not seen.
//! Source: the registers' descriptions in `regs/penstock.rdl`.

use super::faults::Faults;
use super::get::named;
use super::session::Session;
use crate::outcome::Failure;
use penstock_ipbus::regs::global::{OPERATOR_BEGUN, OPERATOR_ENDED, OPERATOR_IP};
use penstock_ipbus::{Access, Request};
use std::net::{Ipv4Addr, UdpSocket};

/// A change of a board that has begun.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    pub board: usize,
    begun: u32,
}

/// The address from which this host speaks to a board; nothing is sent.
pub fn own_address(to: std::net::SocketAddrV4) -> Ipv4Addr {
    let address = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    match address {
        Ok(std::net::SocketAddr::V4(address)) => *address.ip(),
        _ => Ipv4Addr::UNSPECIFIED,
    }
}

/// Begins a change of these boards; of those that another operator is changing only with `force`.
pub fn begin(
    session: &mut Session,
    boards: &[usize],
    force: bool,
    faults: &mut Faults,
) -> Result<Vec<Ticket>, Failure> {
    let looks: Vec<_> =
        boards.iter().map(|board| (*board, Access::Read { address: OPERATOR_IP, count: 3 }.into())).collect();
    let found = session.run(&looks)?;
    let mut free = Vec::new();
    for (board, outcome) in boards.iter().zip(found) {
        match outcome.map(|words| (words[0][0], words[0][1], words[0][2])) {
            Ok((ip, begun, ended)) if begun != ended && !force => {
                faults.push(session.address(*board), None, busy(ip));
            }
            Ok(_) => free.push(*board),
            Err(error) => {
                let (register, message) = named(&error);
                faults.push(session.address(*board), register, message);
            }
        }
    }
    let take = |board: usize| -> Request {
        let own = own_address(session.address(board).0);
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
    let outcomes = session.run(&requests)?;
    let (mut tickets, mut given_back) = (Vec::new(), Vec::new());
    for (board, outcome) in free.into_iter().zip(outcomes) {
        match outcome.map(|words| (words[0][0], words[1][0], words[2][0])) {
            Ok((begun, ended, ip)) if begun != ended && !force => {
                // It began between the look and the count.
                faults.push(session.address(board), None, busy(ip));
                let back: Request = [Access::Sum { address: OPERATOR_ENDED, addend: 1 }].into_iter().collect();
                given_back.push((board, back));
            }
            Ok((begun, _, _)) => tickets.push(Ticket { board, begun: begun.wrapping_add(1) }),
            Err(error) => {
                let (register, message) = named(&error);
                faults.push(session.address(board), register, message);
            }
        }
    }
    session.run(&given_back)?;
    Ok(tickets)
}

fn busy(ip: u32) -> String {
    let host = Ipv4Addr::from_bits(ip);
    format!(
        "the operator at {host} is changing its settings, or was cut off while doing so: wait, or take over by --force"
    )
}

/// Ends changes; says where another one began meanwhile.
pub fn end(session: &mut Session, tickets: &[Ticket], faults: &mut Faults) -> Result<(), Failure> {
    let look = |_: &Ticket| Access::Read { address: OPERATOR_IP, count: 2 }.into();
    let requests: Vec<(usize, Request)> = tickets.iter().map(|ticket| (ticket.board, look(ticket))).collect();
    let found = session.run(&requests)?;
    let mut ends = Vec::new();
    for (ticket, outcome) in tickets.iter().zip(found) {
        // A board that is silent now was told of by what came before.
        let Ok(words) = outcome else { continue };
        let (ip, begun) = (words[0][0], words[0][1]);
        if begun == ticket.begun {
            ends.push((ticket.board, Access::write(OPERATOR_ENDED, begun).into()));
        } else {
            let host = Ipv4Addr::from_bits(ip);
            let message = format!("the operator at {host} began to change its settings meanwhile: read them again");
            faults.push(session.address(ticket.board), None, message);
            ends.push((ticket.board, Access::Sum { address: OPERATOR_ENDED, addend: 1 }.into()));
        }
    }
    session.run(&ends)?;
    Ok(())
}
