// SPDX-License-Identifier: Apache-2.0
//! What a requester does with acknowledgements and READ responses. A READ is acknowledged by its responses only: an
//! acknowledgement beyond it, or a response after a gap, means that its next response was lost (implied NAK).
//! Source: IBTA vol. 1, clauses 9.4.4 (READ responses), 9.7.5 (acknowledgements), 9.7.7.2 (credits), 9.9.2 (errors).

use super::queue::OpenRead;
use super::{Limit, RequestFault, Requester, Response, RetryLimits, SendStatus, Timer};
use penstock_units::Time;
use penstock_wire::{AethRepr, Credits, NakCode, Psn, RocePacket, Syndrome};

impl Requester {
    pub(super) fn acknowledgement(&mut self, now: Time, psn: Psn, syndrome: Syndrome, msn: u32) -> Response {
        let is_valid = match syndrome {
            Syndrome::Ack(_) | Syndrome::RnrNak(_) => true,
            Syndrome::Nak(code) => !matches!(code, NakCode::InvalidRdRequest | NakCode::Reserved(_)),
            Syndrome::Reserved(_) => false,
        };
        if !is_valid {
            self.counters.dropped_not_response += 1;
            return Response::Dropped;
        }
        let Some(number) = self.outstanding(psn) else {
            // What repeats the last ACK may still bring credits; anything else outside the window is old or false.
            let before = self.limit;
            if psn.next() == self.una() && matches!(syndrome, Syndrome::Ack(_)) {
                self.credit(syndrome, msn);
            }
            self.counters.stale_acks += u64::from(self.limit == before);
            return Response::Acknowledgement;
        };
        self.credit(syndrome, msn);
        match syndrome {
            Syndrome::Ack(_) => self.ack(now, number),
            // A NAK names the first packet that did not arrive, which acknowledges all before it.
            Syndrome::RnrNak(timer) => self.receiver_not_ready(now, number, Time::from_us(timer.microseconds().into())),
            Syndrome::Nak(NakCode::PsnSequenceError) => self.gap(now, number),
            Syndrome::Nak(code) => {
                self.acknowledge(now, self.reach(number));
                self.fail(number, RequestFault::Refused { psn, code });
            }
            Syndrome::Reserved(_) => {}
        }
        Response::Acknowledgement
    }

    /// Takes the next response of the first READ without all of them; any other is dropped.
    pub(super) fn read_response(&mut self, now: Time, packet: &RocePacket) -> Response {
        let aeth = packet.aeth.filter(|_| packet.bth.opcode.has_aeth());
        let is_valid = match aeth {
            Some(AethRepr { syndrome, .. }) => matches!(syndrome, Syndrome::Ack(_)),
            None => !packet.bth.opcode.has_aeth(),
        };
        if !is_valid {
            self.counters.dropped_not_response += 1;
            return Response::Dropped;
        }
        if let (Some(number), Some(read)) = (self.outstanding(packet.bth.psn), self.queue.first_read().copied()) {
            let next = read.first.max(self.una);
            if number == next {
                return self.next_response(now, number, &read, packet, aeth);
            }
            if number > next {
                self.counters.dropped_read_responses += 1;
                self.implied_nak(now, next);
                return Response::Acknowledgement;
            }
        }
        self.counters.dropped_read_responses += 1;
        Response::Dropped
    }

    /// The response whose turn it is. Its place in the answer may be First where the READ was requested again, so only
    /// its end is checked.
    fn next_response(
        &mut self,
        now: Time,
        number: u64,
        read: &OpenRead,
        packet: &RocePacket,
        aeth: Option<AethRepr>,
    ) -> Response {
        let (opcode, len, mtu) = (packet.bth.opcode, packet.payload.len(), self.config.mtu.bytes() as u64);
        let offset = (number - read.first) * mtu;
        let expected = (u64::from(read.wr.len) - offset).min(mtu) as usize;
        if len != expected || opcode.position().is_end() != (number + 1 == read.end) {
            let psn = packet.bth.psn;
            self.acknowledge(now, number);
            self.fail(number, RequestFault::BadResponse { psn, opcode, len, expected });
            return Response::Acknowledgement;
        }
        if let Some(AethRepr { syndrome, msn }) = aeth {
            self.credit(syndrome, msn);
        }
        self.counters.rx_payload_bytes += len as u64;
        self.acknowledge(now, number + 1);
        Response::ReadData { wr_id: read.wr.wr_id, va: read.wr.va.wrapping_add(offset) }
    }

    /// The number of a packet that was sent and has no ACK.
    #[inline]
    fn outstanding(&self, psn: Psn) -> Option<u64> {
        let ahead = u64::try_from(psn.distance_from(self.una())).ok()?;
        Some(self.una + ahead).filter(|number| *number < self.sent_end)
    }

    /// How far an acknowledgement of everything before `upto` goes: to the first missing response of a READ.
    #[inline]
    fn reach(&self, upto: u64) -> u64 {
        self.queue.first_read().map_or(upto, |read| upto.min(read.first.max(self.una)))
    }

    /// Updates the peer's receives from an acknowledgement. A peer never revokes reported credits.
    fn credit(&mut self, syndrome: Syndrome, msn: u32) {
        let done = self.queue.unwrap_msn(msn);
        let promised = match syndrome {
            Syndrome::Ack(Credits::UNLIMITED) => {
                self.limit = Limit::Unlimited;
                return;
            }
            Syndrome::Ack(credits) => u64::from(credits.receives().unwrap_or(0)),
            _ => 0,
        };
        self.limit = match self.limit {
            // A NAK only means that there is no receive for the next message; it reports no credits.
            Limit::Unlimited if !matches!(syndrome, Syndrome::Ack(_)) => Limit::Unlimited,
            Limit::Unlimited => Limit::Below(done + promised),
            Limit::Below(limit) => Limit::Below(limit.max(done + promised)),
        };
    }

    /// Everything before `upto` has arrived. It may lie beyond a rewound `nxt`.
    fn acknowledge(&mut self, now: Time, upto: u64) {
        if upto == self.una {
            return;
        }
        self.una = upto;
        self.nxt = self.nxt.max(upto);
        self.req_end = self.req_end.max(upto);
        self.retry_left = self.config.limits.retry_cnt;
        self.rnr_left = self.config.limits.rnr_retry;
        while let Some(wr) = self.queue.take_done(upto) {
            self.complete(&wr, SendStatus::Success);
        }
        self.queue.skip_to(self.nxt);
        // Late responses of a READ do not end the wait for a receive of a later message.
        if !matches!(self.timer, Timer::Rnr(_, at) if upto <= at) {
            self.start_timer(now);
        }
    }

    #[inline]
    fn ack(&mut self, now: Time, number: u64) {
        let reach = self.reach(number + 1);
        self.counters.rcvd_acks += u64::from(reach > self.una);
        match reach > number {
            true => self.acknowledge(now, reach),
            false => self.lost_response(now, reach),
        }
    }

    /// An acknowledgement beyond a READ without all its responses.
    #[cold]
    fn lost_response(&mut self, now: Time, next: u64) {
        let retries = self.counters.implied_nak_seq_err;
        self.implied_nak(now, next);
        self.counters.stale_acks += u64::from(self.counters.implied_nak_seq_err == retries);
    }

    /// The response `next` of a READ was lost: the rest of the READ is requested again, unless it has been.
    #[cold]
    fn implied_nak(&mut self, now: Time, next: u64) {
        let repeated = self.nxt == next || self.implied_nak == Some(next);
        self.acknowledge(now, next);
        if !repeated {
            self.counters.implied_nak_seq_err += 1;
            self.implied_nak = Some(next);
            self.retry();
        }
    }

    #[cold]
    fn gap(&mut self, now: Time, number: u64) {
        let reach = self.reach(number);
        if reach < number {
            return self.lost_response(now, reach);
        }
        // Already back at this packet and nothing sent since: a copy, or the NAK of a later packet.
        let repeated = self.nxt == number;
        self.acknowledge(now, number);
        if repeated {
            self.counters.stale_acks += 1;
        } else {
            self.counters.packet_seq_err += 1;
            self.retry();
        }
    }

    #[cold]
    fn receiver_not_ready(&mut self, now: Time, number: u64, wait: Time) {
        let reach = self.reach(number);
        let repeated = self.nxt == reach && matches!(self.timer, Timer::Rnr(..));
        self.acknowledge(now, reach);
        if repeated {
            self.counters.stale_acks += 1;
            return;
        }
        self.counters.rnr_nak += 1;
        let limits = self.config.limits;
        if self.rnr_left == 0 {
            return self
                .fail(number, RequestFault::RnrRetriesSpent { psn: self.psn_of(number), retries: limits.rnr_retry });
        }
        if limits.rnr_retry != RetryLimits::ENDLESS {
            self.rnr_left -= 1;
        }
        // The peer answers: a receiver that is slow for long must not use up the retries, a loss now and then.
        self.retry_left = limits.retry_cnt;
        self.rewind();
        self.timer = Timer::Rnr(now + wait, number);
    }
}
