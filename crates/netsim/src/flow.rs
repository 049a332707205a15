// SPDX-License-Identifier: Apache-2.0
//! Traffic between two hosts: the messages of a workload, the endpoints that carry them, and the observers of both.
//! Promise: an endpoint is sans-IO: packets, time and pauses are passed in, packets and the next deadline are polled.
//! Source: ARCHITECTURE.md, "Time"; the `handle`/`poll` style of quinn-proto.

use penstock_wire::Packet;

use crate::pull_stats::PullStats;
use crate::trace::TraceSink;
use crate::units::Time;

/// A flow of the simulation: one direction of messages from one host to another, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A message of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// When it is there to be sent; its completion time counts from here.
    pub at: Time,
    /// The size, at least 1.
    pub bytes: u64,
    /// The event it is a part of; messages that are of none are numbered on.
    pub event: u64,
}

/// The messages of one flow, in the order in which they are sent.
pub trait MessageSource {
    /// The next message; its `at` is not before the last one's and may be in the future. `None`: there are no more.
    ///
    /// A sender calls this when it has no further message to start, so that a flow which always has data (`at == now`)
    /// is limited by the network alone and ends at its stop time.
    fn next_message(&mut self, now: Time) -> Option<Message>;
}

/// One end of one flow, as a host's port drives it.
pub trait Endpoint: 'static {
    /// A packet for this endpoint has arrived whole.
    fn on_packet(&mut self, now: Time, packet: &Packet);

    /// When `on_timeout` is wanted: retransmission, the next message, the moment the pacer lets a packet start. May
    /// change after every call; `None` while only a packet can change anything.
    fn next_timeout(&self) -> Option<Time>;

    /// The time of `next_timeout` has come; may be called too early or too often.
    fn on_timeout(&mut self, now: Time);

    /// The next packet that may start now. `None`: nothing, until a packet arrives or `next_timeout` has come.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;

    /// Whether `poll_transmit` may give a packet now; asked after every call. A cautious `true` costs a poll, a wrong
    /// `false` a packet.
    fn is_ready(&self) -> bool {
        true
    }

    /// The traffic class (IEEE 802.1Q priority, 0 to 7) of the packet that `poll_transmit` would return.
    fn class(&self) -> usize;

    /// The port may not send this endpoint's class from now on, or may again.
    fn on_pause(&mut self, _now: Time, _paused: bool) {}

    /// What it has pulled, if it pulls.
    fn pulled(&self) -> Option<PullStats> {
        None
    }

    /// Called every trace interval: `trace.record(channel, metric, value)`.
    fn sample(&mut self, _now: Time, _channel: u16, _trace: &mut TraceSink) {}
}
