// SPDX-License-Identifier: Apache-2.0
//! The two UDP ports of the connection manager on one address, without waiting.
//! Promise: a message of a wrong length is dropped; so is one that cannot be sent, as it will be asked for again.
//! Source: the FEROCE connection manager (requests to 0x4321, answers to 0x4322).

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

use penstock_wire::{CmMessage, Ipv4Addr, CM_LEN, CM_REPLY_PORT, CM_REQUEST_PORT};

use super::SessionError;

/// Messages taken in one go, whoever floods us.
const MOST: u32 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Request,
    Reply,
}

pub(super) struct CmSockets {
    request: UdpSocket,
    reply: UdpSocket,
    taken: u32,
}

impl CmSockets {
    pub(super) fn bind(ip: Ipv4Addr) -> Result<CmSockets, SessionError> {
        let bind = |port| {
            let bound = UdpSocket::bind((ip, port)).and_then(|s| s.set_nonblocking(true).map(|()| s));
            bound.map_err(|source| SessionError::Port { ip, port, source })
        };
        Ok(CmSockets { request: bind(CM_REQUEST_PORT)?, reply: bind(CM_REPLY_PORT)?, taken: 0 })
    }

    /// The next message, who sent it and where it came; none when there are no more, or it is somebody else's turn.
    pub(super) fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage, Port)> {
        let mut data = [0; CM_LEN + 1];
        while self.taken < MOST {
            self.taken += 1;
            let ports = [(&self.reply, Port::Reply), (&self.request, Port::Request)];
            let Some((len, from, port)) = ports.into_iter().find_map(|(socket, port)| {
                let (len, from) = socket.recv_from(&mut data).ok()?;
                Some((len, from, port))
            }) else {
                break;
            };
            if let (Ok(message), SocketAddr::V4(from)) = (CmMessage::parse(&data[..len]), from) {
                return Some((*from.ip(), message, port));
            }
        }
        self.taken = 0;
        None
    }

    /// Sends a request to a board. It is asked again when no answer comes, whatever the reason.
    ///
    /// # Errors
    /// Why the kernel cannot send it: no route, for instance.
    pub(super) fn ask(&self, to: Ipv4Addr, message: &CmMessage) -> io::Result<()> {
        let sent = self.reply.send_to(&message.to_bytes(), SocketAddrV4::new(to, CM_REQUEST_PORT));
        sent.map(drop)
    }

    /// Answers a request.
    pub(super) fn answer(&self, to: Ipv4Addr, port: u16, message: &CmMessage) {
        let _ = self.request.send_to(&message.to_bytes(), SocketAddrV4::new(to, port));
    }
}
