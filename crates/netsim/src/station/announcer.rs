// SPDX-License-Identifier: Apache-2.0
//! The announcements that a board which is read by its server sends as messages.
//! Promise: that of `penstock_pull::Announcements`, which decides what is announced.
//! Source: `penstock_wire::announcement`; IBTA vol. 1 clause 9.7 through the requester.

use std::collections::VecDeque;

use bytes::Bytes;
use penstock_pull::Announcements;
use penstock_transport::{PayloadSource, RequestFault, Requester, RequesterConfig, RequesterState, SendWr, Verb};
use penstock_wire::{Payload, RocePacket, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN};

use crate::units::Time;

/// The announcements that may have to be sent again.
#[derive(Default)]
struct Written {
    kept: VecDeque<(u64, Bytes)>,
}

impl PayloadSource for Written {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        match self.kept.iter().find(|(first, _)| *first == va) {
            Some((_, bytes)) => Payload::Bytes(bytes.slice(..len)),
            None => Payload::Virtual(len as u32),
        }
    }
}

/// The sending half of a board's queue pair.
pub(super) struct Announcer {
    requester: Requester,
    written: Written,
    /// First address and key of the server's ring.
    ring: (u64, u32),
    announced: u64,
    /// The most wire bytes of announcements that were outstanding at a time.
    highest_outstanding: u64,
}

impl Announcer {
    /// `ring`: first address and key of the announcements' ring at the server.
    pub(super) fn new(request: RequesterConfig, ring: (u64, u32)) -> Self {
        let (requester, written) = (Requester::new(request), Written::default());
        Announcer { requester, written, ring, announced: 0, highest_outstanding: 0 }
    }

    pub(super) fn requester(&self) -> &Requester {
        &self.requester
    }

    /// The most wire bytes of announcements that were outstanding at a time.
    pub(super) fn highest_outstanding(&self) -> u64 {
        self.highest_outstanding
    }

    /// Why it has given up, if it has.
    pub(super) fn fault(&self) -> Option<RequestFault> {
        match self.requester.state() {
            RequesterState::Ready => None,
            RequesterState::Error(fault) => Some(fault),
        }
    }

    /// Posts what is to be sent as a message now.
    pub(super) fn settle(&mut self, announcements: &mut Announcements) {
        while self.requester.poll_completion().is_some() {
            self.written.kept.pop_front();
            announcements.acknowledged();
        }
        if self.fault().is_none() {
            announcements.poll_message().into_iter().for_each(|message| self.post(message.into()));
        }
    }

    fn post(&mut self, bytes: Bytes) {
        let slot = (self.announced % u64::from(ANNOUNCEMENT_SLOTS)) as u32;
        let (va, len) = (self.announced, bytes.len() as u32);
        let (base, rkey) = self.ring;
        let remote_va = base + u64::from(slot) * ANNOUNCEMENT_SLOT_LEN as u64;
        self.announced += 1;
        self.written.kept.push_back((va, bytes));
        let wr = SendWr { wr_id: va, verb: Verb::WriteImm(slot), va, len, remote_va, rkey, solicited: false };
        let posted = self.requester.post_send(wr);
        debug_assert!(posted.is_ok(), "an announcement is short");
        let wire = |bytes: &Bytes| (bytes.len() + WIRE) as u64;
        let outstanding = self.written.kept.iter().map(|(_, bytes)| wire(bytes)).sum();
        self.highest_outstanding = self.highest_outstanding.max(outstanding);
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<RocePacket> {
        self.requester.poll_transmit(now, &mut self.written)
    }

    pub(super) fn handle_packet(&mut self, now: Time, packet: &RocePacket) {
        self.requester.handle_packet(now, packet);
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.requester.handle_timeout(now);
    }
}

/// What surrounds an announcement on the wire: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4, and 24
/// of preamble, FCS and gap.
const WIRE: usize = 102;
