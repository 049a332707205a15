// SPDX-License-Identifier: Apache-2.0
//! From the event builder to the sink: what is compared on the way, and when storage has to be waited for.
//! Promise: an event leaves the builder when the sink has it, and its slots are free then or when the consumer has taken it;
//! an error that can be retried loses nothing.

use penstock_wire::fragment::HEADER_LEN;

use super::lent::Loan;
use super::{Held, Receiver};
use crate::sink::{Event, EventSink, Fragment, StoreError};

/// How long storage is left alone before it is asked again; and if it is only slow.
const RETRY_PS: u64 = 100_000_000_000;
const RETRY_BUSY_PS: u64 = 1_000_000_000;

/// Storage that has to be waited for.
#[derive(Debug)]
pub(super) struct Stall {
    pub(super) error: StoreError,
    pub(super) retry_at_ps: u64,
}

impl<S: EventSink> Receiver<S> {
    /// Stores what is ready, unless storage has to be waited for.
    pub(super) fn store_events(&mut self, now_ps: u64) -> Result<(), StoreError> {
        if self.stalled.as_ref().is_some_and(|stall| now_ps < stall.retry_at_ps) {
            return Ok(());
        }
        if self.consumer.is_behind() || self.stalled.is_some() {
            self.builder.restart_patience(now_ps);
        }
        let stored = self.sink.handle_timeout(now_ps).and_then(|()| self.store_ready(now_ps));
        match stored {
            Err(error) if error.is_retriable() => {
                self.stall(now_ps, error);
                Ok(())
            }
            Ok(()) => {
                if self.stalled.take().is_some_and(|stall| !stall.error.is_busy()) {
                    tracing::warn!("storage goes on");
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Slots that the sink reads no more are free, or wait for the consumer.
    pub(super) fn take_back(&mut self, now_ps: u64) {
        let settled = self.sink.settled();
        while let Some(Loan { until_ps, board, place, .. }) = self.lent.given_back(settled) {
            if until_ps <= now_ps {
                self.slots.release(board, place);
            } else {
                self.consumer.hold(until_ps, board, place);
            }
        }
    }

    fn stall(&mut self, now_ps: u64, error: StoreError) {
        let earlier = self.stalled.take().map(|stall| stall.error);
        if error.is_busy() {
            self.counters.store_waits += u64::from(earlier.is_none());
            if earlier.is_some_and(|earlier| !earlier.is_busy()) {
                tracing::warn!("storage goes on");
            }
        } else if earlier.is_none_or(|earlier| earlier.is_busy()) {
            self.counters.store_stalls += 1;
            tracing::error!(%error, "storage waits; boards get no credits until it goes on");
        }
        let wait_ps = if error.is_busy() { RETRY_BUSY_PS } else { RETRY_PS };
        self.stalled = Some(Stall { error, retry_at_ps: now_ps.saturating_add(wait_ps) });
    }

    fn store_ready(&mut self, now_ps: u64) -> Result<(), StoreError> {
        while let Some(event) = self.builder.peek_event(now_ps) {
            let slots = &self.slots;
            let fragment = |(source, timestamp_ns, Held { place, crc32c }): (u16, u64, Held)| {
                let payload = &slots.message(source, place)[HEADER_LEN..];
                Fragment { source, timestamp_ns, crc32c, payload }
            };
            let fragments: Vec<Fragment<'_>> = event.timed_fragments().map(fragment).collect();
            let missing: Vec<u16> = event.missing().collect();
            let (number, timestamp_ns, complete) = (event.number, event.timestamp_ns, event.complete);
            let whole = Event { number, timestamp_ns, complete, fragments: &fragments, missing: &missing };
            self.sink.store(&whole)?;

            let bytes = whole.payload_bytes() as u64;
            self.counters.bytes_stored += bytes;
            if let Some(reference) = &self.reference {
                for &Fragment { source, payload, .. } in &fragments {
                    self.check.compare(&**reference, number, source, payload);
                }
            }
            if let Some(pattern) = &mut self.pattern {
                pattern.event(number, &missing);
                fragments.iter().for_each(|part| pattern.payload(part.source, Some(number), part.payload));
            }
            let until_ps = self.consumer.give(now_ps, bytes);
            for (board, Held { place, .. }) in event.rejected() {
                self.slots.release(board, place);
            }
            let free = self.lent.stored(self.sink.settled());
            for (board, Held { place, .. }) in event.fragments() {
                if !free {
                    self.lent.lend(until_ps, board, place);
                } else if until_ps <= now_ps {
                    self.slots.release(board, place);
                } else {
                    self.consumer.hold(until_ps, board, place);
                }
            }
            self.builder.pop_event();
        }
        Ok(())
    }
}
