// SPDX-License-Identifier: Apache-2.0
//! The connection manager's UDP ports of all front ends, one pair an address.
//! Promise: a front end answers at its own address only.
//! Source: `penstock_transport::cm`.

use super::front_end::FrontEnd;
use penstock_wire::{CmMessage, CM_LEN, CM_REPLY_PORT, CM_REQUEST_PORT};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Messages that one front end takes in a turn.
const MOST: usize = 16;

/// Requests come to the first of each pair, answers to the second.
pub struct Sockets(Vec<(UdpSocket, Option<UdpSocket>)>);

impl Sockets {
    pub fn bind(ips: &[Ipv4Addr], connects: bool) -> Result<Sockets, String> {
        let bind = |ip: Ipv4Addr, port: u16| {
            let bound = UdpSocket::bind((ip, port)).and_then(|s| s.set_nonblocking(true).map(|()| s));
            bound.map_err(|error| format!("UDP port {port} of {ip}: {error}"))
        };
        let pair = |ip: &Ipv4Addr| {
            let reply = connects.then(|| bind(*ip, CM_REPLY_PORT)).transpose()?;
            Ok((bind(*ip, CM_REQUEST_PORT)?, reply))
        };
        ips.iter().map(pair).collect::<Result<_, String>>().map(Sockets)
    }

    /// Takes what has come, and sends what is due.
    pub fn serve(&mut self, now: u64, front_ends: &mut [FrontEnd]) {
        for ((request, reply), front_end) in self.0.iter().zip(front_ends) {
            for _ in 0..MOST {
                let Some((from, message)) = receive(request) else { break };
                if let Some(answer) = front_end.handle_request(now, *from.ip(), &message) {
                    // One that does not arrive is asked for again.
                    let _ = request.send_to(&answer.to_bytes(), (*from.ip(), message.reply_port()));
                }
            }
            let Some(reply) = reply else { continue };
            while let Some((from, message)) = receive(reply) {
                front_end.handle_answer(now, *from.ip(), &message);
            }
            while let Some((to, message)) = front_end.next_request(now) {
                let _ = reply.send_to(&message.to_bytes(), (to, CM_REQUEST_PORT));
            }
        }
    }
}

fn receive(socket: &UdpSocket) -> Option<(std::net::SocketAddrV4, CmMessage)> {
    let mut data = [0; CM_LEN + 1];
    loop {
        let (len, from) = socket.recv_from(&mut data).ok()?;
        if let (Ok(message), SocketAddr::V4(from)) = (CmMessage::parse(&data[..len]), from) {
            return Some((from, message));
        }
    }
}
