// SPDX-License-Identifier: Apache-2.0
//! The connection manager's UDP ports of all front ends, one per address.
//! Promise: a front end answers only on its own address.
//! Source: `penstock_transport::cm`.

use super::front_end::FrontEnd;
use penstock_cli_common::arguments::allowed::{admits, Allowed};
use penstock_units::Time;
use penstock_wire::{CmMessage, CM_LEN, CM_REQUEST_PORT};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

/// Messages that one front end takes in a turn.
const MOST: usize = 16;

/// Requests and answers come to the same port.
pub struct Sockets {
    sockets: Vec<UdpSocket>,
    allow: Vec<Allowed>,
    strangers: u64,
}

impl Sockets {
    pub fn bind(ips: &[Ipv4Addr], allow: &[Allowed]) -> Result<Sockets, String> {
        let bind = |ip: &Ipv4Addr| {
            let bound = UdpSocket::bind((*ip, CM_REQUEST_PORT)).and_then(|s| s.set_nonblocking(true).map(|()| s));
            bound.map_err(|error| format!("UDP port {CM_REQUEST_PORT} of {ip}: {error}"))
        };
        let sockets = ips.iter().map(bind).collect::<Result<_, String>>()?;
        Ok(Sockets { sockets, allow: allow.to_vec(), strangers: 0 })
    }

    /// Messages of addresses that may not ask: not answered.
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    /// The messages that have come, with the number of the front end that each is for.
    pub fn receive(&mut self) -> Vec<(usize, SocketAddrV4, CmMessage)> {
        let of =
            |(k, socket)| std::iter::from_fn(move || receive(socket)).take(MOST).map(move |(from, m)| (k, from, m));
        let arrived: Vec<_> = self.sockets.iter().enumerate().flat_map(of).collect();
        let (admitted, strangers): (Vec<_>, Vec<_>) =
            arrived.into_iter().partition(|(_, from, _)| admits(&self.allow, *from.ip()));
        self.strangers += strangers.len() as u64;
        admitted
    }

    /// Handles the messages that were received, and sends what is due.
    pub fn serve(&mut self, now: Time, arrived: Vec<(usize, SocketAddrV4, CmMessage)>, front_ends: &mut [FrontEnd]) {
        for (k, from, message) in arrived {
            if message.answer.is_some() {
                front_ends[k].handle_answer(now, *from.ip(), &message);
            } else if let Some(answer) = front_ends[k].handle_request(now, *from.ip(), &message) {
                // A lost message is requested again.
                let _ = self.sockets[k].send_to(&answer.to_bytes(), (*from.ip(), message.reply_port()));
            }
        }
        for (socket, front_end) in self.sockets.iter().zip(front_ends) {
            while let Some((to, message)) = front_end.next_request(now) {
                let _ = socket.send_to(&message.to_bytes(), (to.ip, to.port));
            }
        }
    }
}

fn receive(socket: &UdpSocket) -> Option<(SocketAddrV4, CmMessage)> {
    let mut data = [0; CM_LEN + 1];
    loop {
        let (len, from) = socket.recv_from(&mut data).ok()?;
        if let (Ok(message), SocketAddr::V4(from)) = (CmMessage::parse(&data[..len]), from) {
            return Some((from, message));
        }
    }
}
