// SPDX-License-Identifier: Apache-2.0
//! The back end without a network: the caller passes packets in and takes packets out.
//! Promise: deterministic for given entropy and order of packets; the reference for the other back ends.
//! Source: the responder of `penstock_transport`.

use std::collections::VecDeque;

use penstock_transport::{Memory, RecvWr};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, RocePacket};

use super::pull::PullSettings;
use super::responders::{Entropy, ResponderSettings, Responders};
use super::{Backend, BackendError, Completion, Counters, LocalAddress, LocalQp, PeerQp, PollMode, PoolSpec, QpSpec};

/// Packets in, packets out. Its time is that of the packets: no clock is read.
pub struct InProcess {
    address: LocalAddress,
    responders: Responders,
    /// The packets that arrived, with the time of each.
    arrived: VecDeque<(Time, RocePacket)>,
    replies: VecDeque<RocePacket>,
    now: Time,
}

impl InProcess {
    /// A back end at this address. `entropy` makes numbers, PSNs and keys; with a seeded one a run repeats itself.
    pub fn new(ip: Ipv4Addr, mac: MacAddr, entropy: Entropy) -> Self {
        let (arrived, replies) = (VecDeque::new(), VecDeque::new());
        let address = LocalAddress::of_ip(ip, mac);
        let responders = Responders::new(ip, mac, entropy);
        InProcess { address, responders, arrived, replies, now: Time::ZERO }
    }

    /// Boards announce, and are read; [`Self::advance`] runs its timers.
    ///
    /// # Errors
    /// The setting with which nothing could be read.
    pub fn with_pull(mut self, settings: &PullSettings) -> Result<Self, BackendError> {
        self.responders.pull(settings)?;
        Ok(self)
    }

    /// The time is `now`, though no packet has arrived.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// When there are READs or timers to run, if no packet arrives; [`Time::MAX`]: never.
    pub fn due(&self) -> Time {
        self.responders.request_due()
    }

    /// Sets how queue pairs behave, from the next connection on.
    #[must_use]
    pub fn with_settings(mut self, settings: ResponderSettings) -> Self {
        self.responders.set(settings);
        self
    }

    /// A packet arrives at `now`; [`Backend::poll`] takes it.
    pub fn arrive(&mut self, now: Time, packet: RocePacket) {
        self.advance(now);
        self.arrived.push_back((now, packet));
    }

    /// The next packet to the peers.
    pub fn take_reply(&mut self) -> Option<RocePacket> {
        self.replies.pop_front()
    }
}

impl Backend for InProcess {
    fn name(&self) -> &'static str {
        "in-process"
    }

    fn address(&self) -> LocalAddress {
        self.address
    }

    fn admits_before_ack(&self) -> bool {
        true
    }

    fn share_receives(&mut self, pool: &PoolSpec) -> Result<u64, BackendError> {
        Ok(self.responders.share(pool))
    }

    fn post_shared(&mut self, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.responders.post_shared(receives)
    }

    fn ran_low(&mut self) -> u64 {
        self.responders.ran_low()
    }

    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        self.responders.create(spec)
    }

    fn connect(&mut self, board: u16, peer: &PeerQp) -> Result<(), BackendError> {
        self.responders.connect(board, peer)
    }

    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.responders.post(board, receives)
    }

    /// Nothing comes while this waits, so it never does.
    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        _mode: PollMode,
        _deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        while let Some((now, packet)) = self.arrived.pop_front() {
            self.responders.handle(now, &packet, memory, out);
            self.responders.take_replies(memory, |reply| self.replies.push_back(reply));
        }
        self.responders.request(self.now, memory, |request| self.replies.push_back(request));
        Ok(())
    }

    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        self.responders.close(board, out);
        Ok(())
    }

    fn fault(&self, board: u16) -> Option<String> {
        self.responders.fault(board)
    }

    fn is_unanswered(&self, board: u16) -> bool {
        self.responders.is_unanswered(board)
    }

    fn is_settled(&self) -> bool {
        self.responders.is_settled()
    }

    fn counters(&mut self) -> Counters {
        self.responders.totals()
    }

    fn board_counters(&self, board: u16) -> Counters {
        self.responders.counters(board)
    }
}
