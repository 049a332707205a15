// SPDX-License-Identifier: Apache-2.0
//! The UDP port of the connection manager on one address, non-blocking.
//! Promise: a message of a wrong length is dropped; so is one that cannot be sent, because the peer repeats its
//! request.
//! Source: the FEROCE connection manager, which receives requests and answers on one port.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

use penstock_units::Time;
use penstock_wire::{CmMessage, Ipv4Addr, Qpn, CM_LEN, CM_REQUEST_PORT};

use super::error::SessionError;
use crate::backend::{Backend, Counters};

/// Where the messages of the connection manager come from and go to.
pub trait CmPort {
    /// Exchanges what waits with the network, before and after the messages of a turn. `has_qp`: whether a queue pair
    /// of this number is a board's.
    fn exchange(&mut self, _now: Time, _backend: &mut dyn Backend, _has_qp: &dyn Fn(Qpn) -> bool) {}

    /// Messages of addresses that are no board's, where [`Self::receive`] does not return them.
    fn strangers(&self) -> u64 {
        0
    }

    /// The longest ACK timeout of the boards; none where the connection manager does not say.
    fn ack_timeout(&self) -> Option<Time> {
        None
    }

    /// What a connection manager of its own has counted.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// The next message and its source address; none when there are no more, or another source has its turn.
    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)>;

    /// Sends a message to a UDP port. A request is made again when no answer comes, whatever the reason.
    ///
    /// # Errors
    /// Why it cannot be sent: no route, for instance.
    fn send(&mut self, to: Ipv4Addr, port: u16, message: &CmMessage) -> io::Result<()>;
}

/// Messages taken per call, to bound the effect of a flood.
const MOST: u32 = 256;

pub(super) struct CmSocket {
    socket: UdpSocket,
    taken: u32,
}

impl CmSocket {
    pub(super) fn bind(ip: Ipv4Addr) -> Result<CmSocket, SessionError> {
        let port = CM_REQUEST_PORT;
        let bound = UdpSocket::bind((ip, port)).and_then(|s| s.set_nonblocking(true).map(|()| s));
        let socket = bound.map_err(|source| SessionError::Port { ip, port, source })?;
        Ok(CmSocket { socket, taken: 0 })
    }
}

/// The port of a back end that takes connections itself.
pub(super) struct NoPort;

impl CmPort for NoPort {
    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        None
    }

    fn send(&mut self, _to: Ipv4Addr, _port: u16, _message: &CmMessage) -> io::Result<()> {
        Ok(())
    }
}

impl CmPort for CmSocket {
    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        let mut data = [0; CM_LEN + 1];
        while self.taken < MOST {
            self.taken += 1;
            let Ok((len, from)) = self.socket.recv_from(&mut data) else { break };
            if let (Ok(message), SocketAddr::V4(from)) = (CmMessage::parse(&data[..len]), from) {
                return Some((*from.ip(), message));
            }
        }
        self.taken = 0;
        None
    }

    fn send(&mut self, to: Ipv4Addr, port: u16, message: &CmMessage) -> io::Result<()> {
        self.socket.send_to(&message.to_bytes(), SocketAddrV4::new(to, port)).map(drop)
    }
}
