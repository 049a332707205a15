// SPDX-License-Identifier: Apache-2.0
//! The endpoints of a station: how they are added before a run, and how they are read after it.
//! Promise: two endpoints never receive the same packet; the second one is refused with the conflicting identifier.
//! Source: IBTA 9.6 (a packet's queue pair), RFC 9293 (both ends of a connection: addresses and ports).

use std::net::Ipv4Addr;

use penstock_transport::TcpConfig;
use penstock_wire::Qpn;

use super::endpoint_table::Key;
use super::slot::{Kind, Slot};
use super::{
    PullBoard, PullServer, RcReceiver, RcSender, ReadRequester, ReadResponder, Station, TcpFlowReceiver, TcpFlowSender,
};
use crate::flow::Endpoint;
use crate::pull_stats::PullStats;

/// Why an endpoint cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StationError {
    #[error("station {ip} has a {what} on queue pair {qpn} already; give each its own number")]
    QpnTaken { ip: Ipv4Addr, qpn: Qpn, what: &'static str },
    #[error(
        "station {ip} has a TCP connection between its port {port} and port {peer_port} of {peer} already; give each \
         its own ports"
    )]
    PortTaken { ip: Ipv4Addr, port: u16, peer: Ipv4Addr, peer_port: u16 },
    #[error("a {what} with address {found} cannot live on station {ip}; its local address must be the station's")]
    WrongAddress { ip: Ipv4Addr, found: Ipv4Addr, what: &'static str },
}

impl Station {
    /// Reserves room for this number of endpoints: a thousand boards with one each and room for four would fill caches
    /// with nothing.
    pub fn expect_endpoints(&mut self, endpoints: usize) {
        self.slots.reserve_exact(endpoints);
    }

    /// Adds a sender and returns its index, which is its channel in traces. A queue pair may have one sender and one
    /// receiver. To be called before the run.
    pub fn add_rc_sender(&mut self, sender: RcSender) -> Result<usize, StationError> {
        let config = sender.requester().config();
        let (local, peer) = (config.local, config.peer);
        self.claim("sender", local.ip, local.qpn, Key::Sender(local.qpn))?;
        // A second sender to the same queue pair is a mistake that the receiver will count; the first hears of CNMs.
        let notified = config.marking.cn_tag.map_or(Key::SenderTo(peer.ip, peer.qpn), Key::Flow);
        self.by_key.insert(notified, self.slots.len() as u32);
        self.senders.push(self.slots.len() as u32);
        Ok(self.push(Key::Sender(local.qpn), Kind::Sender(sender)))
    }

    /// Adds a receiver and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_rc_receiver(&mut self, receiver: RcReceiver) -> Result<usize, StationError> {
        let local = receiver.responder().config().local;
        self.claim("receiver", local.ip, local.qpn, Key::Receiver(local.qpn))?;
        Ok(self.push(Key::Receiver(local.qpn), Kind::Receiver(receiver)))
    }

    /// Adds an end that reads and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_read_requester(&mut self, requester: ReadRequester) -> Result<usize, StationError> {
        let local = requester.requester().config().local;
        let key = Key::Sender(local.qpn);
        self.claim("READ requester", local.ip, local.qpn, key)?;
        Ok(self.push(key, Kind::ReadRequester(Box::new(requester))))
    }

    /// Adds an end that is read and returns its index, which is its channel in traces. It takes the CNPs of its queue
    /// pair, which may therefore have no sender. To be called before the run.
    pub fn add_read_responder(&mut self, responder: ReadResponder) -> Result<usize, StationError> {
        let key = self.claim_read("READ responder", &responder)?;
        Ok(self.push(key, Kind::ReadResponder(Box::new(responder))))
    }

    /// Adds a board that is pulled and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_pull_board(&mut self, board: PullBoard) -> Result<usize, StationError> {
        let key = self.claim_read("board that is pulled", board.responder())?;
        Ok(self.push(key, Kind::PullBoard(Box::new(board))))
    }

    /// Adds the end of all flows that this host pulls and returns its index, which is its channel in traces. To be
    /// called before the run.
    pub fn add_pull_server(&mut self, server: PullServer) -> Result<usize, StationError> {
        let (ip, queue_pairs) = (self.config.ip, server.queue_pairs());
        for qpn in &queue_pairs {
            self.claim("pulling end", ip, *qpn, Key::Receiver(*qpn))?;
            self.claim("pulling end", ip, *qpn, Key::Sender(*qpn))?;
        }
        let key = Key::Sender(queue_pairs.first().copied().unwrap_or(Qpn::new(0)));
        Ok(self.push(key, Kind::PullServer(Box::new(server))))
    }

    /// The key of an end that is read: requests and CNPs of its queue pair go there.
    fn claim_read(&mut self, what: &'static str, responder: &ReadResponder) -> Result<Key, StationError> {
        let (local, peer) = (responder.responder().config().local, responder.responder().config().peer);
        let key = Key::Receiver(local.qpn);
        self.claim(what, local.ip, local.qpn, key)?;
        self.claim(what, local.ip, local.qpn, Key::Sender(local.qpn))?;
        self.by_key.insert(Key::SenderTo(peer.ip, peer.qpn), self.slots.len() as u32);
        self.senders.push(self.slots.len() as u32);
        Ok(key)
    }

    /// Adds a TCP sender and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_tcp_sender(&mut self, sender: TcpFlowSender) -> Result<usize, StationError> {
        let key = self.claim_tcp("TCP sender", sender.config())?;
        self.senders.push(self.slots.len() as u32);
        Ok(self.push(key, Kind::TcpSender(sender)))
    }

    /// Adds a TCP receiver and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_tcp_receiver(&mut self, receiver: TcpFlowReceiver) -> Result<usize, StationError> {
        let key = self.claim_tcp("TCP receiver", receiver.config())?;
        Ok(self.push(key, Kind::TcpReceiver(receiver)))
    }

    /// Adds an endpoint of the caller's own, which gets the requests to all of these queue pairs, and the answers to its
    /// own, and returns its index. To be called before the run.
    pub fn add_application(
        &mut self,
        application: Box<dyn Endpoint>,
        queue_pairs: &[Qpn],
    ) -> Result<usize, StationError> {
        for qpn in queue_pairs {
            self.claim("receiver", self.config.ip, *qpn, Key::Receiver(*qpn))?;
            self.claim("receiver", self.config.ip, *qpn, Key::Sender(*qpn))?;
        }
        let key = Key::Receiver(queue_pairs.first().copied().unwrap_or(Qpn::new(0)));
        Ok(self.push(key, Kind::Application(application)))
    }

    /// Adds an endpoint of the caller's own, which gets the segments of all of these connections, and returns its
    /// index. To be called before the run.
    pub fn add_tcp_application(
        &mut self,
        application: Box<dyn Endpoint>,
        connections: &[TcpConfig],
    ) -> Result<usize, StationError> {
        let mut first = None;
        for config in connections {
            let key = self.claim_tcp("receiver", config)?;
            first.get_or_insert(key);
        }
        let key = first.unwrap_or(Key::Receiver(Qpn::new(0)));
        Ok(self.push(key, Kind::Application(application)))
    }

    fn claim_tcp(&mut self, what: &'static str, config: &TcpConfig) -> Result<Key, StationError> {
        let (ip, local, peer) = (self.config.ip, config.local, config.peer);
        if local.ip != ip {
            return Err(StationError::WrongAddress { ip, found: local.ip, what });
        }
        let key = Key::Tcp(peer.ip, peer.port, local.port);
        let free = self.by_key.insert(key, self.slots.len() as u32);
        free.then_some(key).ok_or(StationError::PortTaken { ip, port: local.port, peer: peer.ip, peer_port: peer.port })
    }

    fn claim(&mut self, what: &'static str, found: Ipv4Addr, qpn: Qpn, key: Key) -> Result<(), StationError> {
        let ip = self.config.ip;
        if found != ip {
            return Err(StationError::WrongAddress { ip, found, what });
        }
        let free = self.by_key.insert(key, self.slots.len() as u32);
        free.then_some(()).ok_or(StationError::QpnTaken { ip, qpn, what })
    }

    fn push(&mut self, key: Key, kind: Kind) -> usize {
        if let (true, Key::Sender(qpn) | Key::Receiver(qpn)) = (self.slots.is_empty(), key) {
            self.first_qpn = qpn.value();
        }
        self.slots.push(Slot::new(key, kind));
        self.slots.len() - 1
    }

    /// The sender at this index, if a sender is there.
    pub fn sender(&self, index: usize) -> Option<&RcSender> {
        match &self.slots.get(index)?.kind {
            Kind::Sender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The sender at this index, to look at its reaction point.
    pub fn sender_mut(&mut self, index: usize) -> Option<&mut RcSender> {
        match &mut self.slots.get_mut(index)?.kind {
            Kind::Sender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The receiver at this index, if a receiver is there.
    pub fn receiver(&self, index: usize) -> Option<&RcReceiver> {
        match &self.slots.get(index)?.kind {
            Kind::Receiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// The end that reads at this index, if one is there.
    pub fn read_requester(&self, index: usize) -> Option<&ReadRequester> {
        match &self.slots.get(index)?.kind {
            Kind::ReadRequester(requester) => Some(requester),
            _ => None,
        }
    }

    /// The board that is pulled at this index, if one is there.
    pub fn pull_board(&self, index: usize) -> Option<&PullBoard> {
        match &self.slots.get(index)?.kind {
            Kind::PullBoard(board) => Some(board),
            _ => None,
        }
    }

    /// The pulling end at this index, if it is there.
    pub fn pull_server(&self, index: usize) -> Option<&PullServer> {
        match &self.slots.get(index)?.kind {
            Kind::PullServer(server) => Some(server),
            _ => None,
        }
    }

    /// What the endpoint at this index has pulled, if it pulls.
    pub fn pulled(&self, index: usize) -> Option<PullStats> {
        self.slots.get(index)?.pulled()
    }

    /// The end that is read at this index, if one is there.
    pub fn read_responder(&self, index: usize) -> Option<&ReadResponder> {
        match &self.slots.get(index)?.kind {
            Kind::ReadResponder(responder) => Some(responder),
            _ => None,
        }
    }

    /// The TCP sender at this index, if one is there.
    pub fn tcp_sender(&self, index: usize) -> Option<&TcpFlowSender> {
        match &self.slots.get(index)?.kind {
            Kind::TcpSender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The TCP receiver at this index, if one is there.
    pub fn tcp_receiver(&self, index: usize) -> Option<&TcpFlowReceiver> {
        match &self.slots.get(index)?.kind {
            Kind::TcpReceiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// All senders with their indices.
    pub fn senders(&self) -> impl Iterator<Item = (usize, &RcSender)> {
        (0..self.slots.len()).filter_map(|index| Some((index, self.sender(index)?)))
    }

    /// All receivers with their indices.
    pub fn receivers(&self) -> impl Iterator<Item = (usize, &RcReceiver)> {
        (0..self.slots.len()).filter_map(|index| Some((index, self.receiver(index)?)))
    }
}
