// SPDX-License-Identifier: Apache-2.0
//! Replies that wait for `poll_transmit`: CNPs first, then acknowledgements and READ responses in the order of their
//! requests, so that no ACK overtakes the responses of an earlier READ.
//! ACKs are cumulative: of several positive ACKs in a row only the latest is kept.
//! Source: IBTA vol. 1, clause 9.7.5.1 (responses, coalescing); annex A17.9 (CNP).

use crate::counters::ResponderCounters;
use crate::read::{Read, Responses};
use crate::reply::Reply;
use penstock_wire::{AethRepr, Psn};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// Up to or at a packet.
    Acknowledgement(Psn, Reply),
    Responses(Responses),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    cnps: usize,
    waiting: VecDeque<Waiting>,
}

impl Replies {
    pub(crate) fn push_cnp(&mut self) {
        self.cnps += 1;
    }

    #[inline]
    pub(crate) fn push(&mut self, psn: Psn, aeth: AethRepr) {
        let reply = |psn| Reply::Acknowledgement { psn, aeth };
        match self.waiting.back_mut() {
            Some(Waiting::Acknowledgement(last_psn, last)) if last.is_ack() && reply(psn).is_ack() => {
                // Of a repeated request before a READ, the ACK goes less far than one that waits.
                let latest = if psn.distance_from(*last_psn) > 0 { psn } else { *last_psn };
                (*last_psn, *last) = (latest, reply(latest));
            }
            _ => self.waiting.push_back(Waiting::Acknowledgement(psn, reply(psn))),
        }
    }

    /// The answer to a READ in its turn.
    pub(crate) fn push_responses(&mut self, responses: Responses) {
        self.waiting.push_back(Waiting::Responses(responses));
    }

    /// The answer to a repetition of `whole`: it replaces what is left of earlier answers to that READ, and precedes
    /// the replies to later requests.
    pub(crate) fn repeat(&mut self, whole: &Read, responses: Responses) {
        let first = responses.read.first;
        self.forget(whole);
        let is_earlier = |waiting: &Waiting| match waiting {
            Waiting::Acknowledgement(psn, _) => psn.distance_from(first) < 0,
            Waiting::Responses(other) => other.read.first.distance_from(first) < 0,
        };
        let place = self.waiting.iter().position(|waiting| !is_earlier(waiting)).unwrap_or(self.waiting.len());
        self.waiting.insert(place, Waiting::Responses(responses));
    }

    /// Whether a READ has had no complete answer since it was first requested.
    pub(crate) fn is_unanswered(&self, read: &Read) -> bool {
        self.waiting.iter().any(
            |waiting| matches!(waiting, Waiting::Responses(one) if !one.is_repeated && read.contains(one.read.first)),
        )
    }

    /// Drops the responses of a READ.
    pub(crate) fn forget(&mut self, read: &Read) {
        self.waiting
            .retain(|waiting| !matches!(waiting, Waiting::Responses(responses) if read.contains(responses.read.first)));
    }

    /// Drops the responses of all READs.
    pub(crate) fn forget_reads(&mut self) {
        self.waiting.retain(|waiting| !matches!(waiting, Waiting::Responses(_)));
    }

    /// Drops all but the CNPs.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    #[inline]
    pub(crate) fn pop(&mut self, counters: &mut ResponderCounters) -> Option<Reply> {
        let reply = if self.cnps > 0 {
            self.cnps -= 1;
            counters.np_cnp_sent += 1;
            Reply::Cnp
        } else {
            self.next()?
        };
        counters.sent_pkts += 1;
        Some(reply)
    }

    #[inline]
    fn next(&mut self) -> Option<Reply> {
        let (reply, has_more) = match self.waiting.front_mut()? {
            Waiting::Acknowledgement(_, reply) => (*reply, false),
            Waiting::Responses(responses) => responses.next(),
        };
        if !has_more {
            self.waiting.pop_front();
        }
        Some(reply)
    }
}
