// SPDX-License-Identifier: Apache-2.0
//! One endpoint of a station, of any protocol, with its pending timers.
//! Promise: the calls made for every packet are dispatched by a comparison, not through a vtable. The dispatch macro
//! has thirteen lines; `enum_dispatch` would save about twenty more, but would make this file depend on state that it keeps
//! of the trait in `flow`.
//! Source: ARCHITECTURE.md, "Time".

use penstock_wire::Packet;

use super::endpoint_table::Key;
use super::{
    PullBoard, PullServer, RcReceiver, RcSender, ReadRequester, ReadResponder, TcpFlowReceiver, TcpFlowSender,
};
use crate::flow::Endpoint;
use crate::pause::CLASSES;
use crate::pull_stats::PullStats;
use crate::units::Time;

/// An endpoint of any protocol.
pub(super) enum Kind {
    Sender(RcSender),
    Receiver(RcReceiver),
    /// Boxed, as they are larger than the others.
    ReadRequester(Box<ReadRequester>),
    ReadResponder(Box<ReadResponder>),
    PullBoard(Box<PullBoard>),
    PullServer(Box<PullServer>),
    TcpSender(TcpFlowSender),
    TcpReceiver(TcpFlowReceiver),
    /// An endpoint that the caller provides.
    Application(Box<dyn Endpoint>),
}

/// An endpoint and the station's data about it, which starts its first cache line.
#[repr(C, align(64))]
pub(super) struct Slot {
    /// The key by which it is found.
    pub(super) key: Key,
    /// The classes in whose list of ready endpoints it is, bit i for class i.
    pub(super) listed: u8,
    /// Timers set and not yet due.
    pub(super) armed: Armed,
    pub(super) kind: Kind,
}

/// The times of the timers of one endpoint. A new one is always the earliest, else none is set; mostly there is one.
#[derive(Default)]
pub(super) struct Armed {
    first: Option<Time>,
    /// The later ones, the earliest last.
    later: Vec<Time>,
}

impl Armed {
    /// Adds a time if it is before all others; returns whether it was.
    #[inline]
    pub(super) fn add(&mut self, at: Time) -> bool {
        if self.first.is_some_and(|first| at >= first) {
            return false;
        }
        self.later.extend(self.first.replace(at));
        true
    }

    /// The first timer has fired.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.first = self.later.pop();
    }
}

/// Calls a method of whichever endpoint it is.
macro_rules! endpoint {
    ($slot:expr, $inner:ident => $call:expr) => {
        match &mut $slot.kind {
            Kind::Sender($inner) => $call,
            Kind::Receiver($inner) => $call,
            Kind::ReadRequester($inner) => $call,
            Kind::ReadResponder($inner) => $call,
            Kind::PullBoard($inner) => $call,
            Kind::PullServer($inner) => $call,
            Kind::TcpSender($inner) => $call,
            Kind::TcpReceiver($inner) => $call,
            Kind::Application($inner) => $call,
        }
    };
}

impl Slot {
    pub(super) fn new(key: Key, kind: Kind) -> Self {
        Slot { key, listed: 0, armed: Armed::default(), kind }
    }

    pub(super) fn endpoint(&mut self) -> &mut dyn Endpoint {
        match &mut self.kind {
            Kind::Sender(inner) => inner,
            Kind::Receiver(inner) => inner,
            Kind::ReadRequester(inner) => &mut **inner,
            Kind::ReadResponder(inner) => &mut **inner,
            Kind::PullBoard(inner) => &mut **inner,
            Kind::PullServer(inner) => &mut **inner,
            Kind::TcpSender(inner) => inner,
            Kind::TcpReceiver(inner) => inner,
            Kind::Application(inner) => &mut **inner,
        }
    }

    /// What its endpoint has pulled, if it pulls.
    pub(super) fn pulled(&self) -> Option<PullStats> {
        match &self.kind {
            Kind::PullServer(server) => server.pulled(),
            Kind::Application(application) => application.pulled(),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn is_ready(&mut self) -> bool {
        endpoint!(self, inner => inner.is_ready())
    }

    #[inline]
    pub(super) fn next_timeout(&mut self) -> Option<Time> {
        endpoint!(self, inner => inner.next_timeout())
    }

    #[inline]
    pub(super) fn class(&mut self) -> usize {
        endpoint!(self, inner => inner.class()) % CLASSES
    }

    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        endpoint!(self, inner => inner.poll_transmit(now))
    }

    #[inline]
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet) {
        endpoint!(self, inner => inner.on_packet(now, packet));
    }
}
