// SPDX-License-Identifier: Apache-2.0
//! Moves events from the event builder to the sink: comparison of payloads, and waiting for storage.
//! Promise: an event leaves the builder when the sink has taken it; its slots become free then, or when the consumer
//! has taken the event. A retriable error loses nothing.

use penstock_units::{Rate, Time};
use penstock_wire::fragment::{PART_ALIGN, PART_LEN};

use super::consumer::Consumer;
use super::lent::{Lent, Loan};
use super::report::ReceiverCounters;
use super::slots::{Place, Slots};
use crate::builder::EventBuilder;
use crate::check::{CheckReport, Reference};
use crate::monitor::PatternMonitor;
use crate::sink::{Event, EventSink, Fragment, StoreError};

/// The wait before storage is retried; and the wait if it is only slow.
const RETRY: Time = Time::from_ms(100);
const RETRY_BUSY: Time = Time::from_ms(1);

/// The slot of a fragment, and the CRC-32C of its payload: required for storing, in addition to its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    pub(super) place: Place,
    pub(super) crc32c: u32,
    /// First byte of the payload in the message, and its length.
    pub(super) at: u8,
    pub(super) len: u32,
    pub(super) trigger_type: u16,
    /// Entries of its table of parts.
    pub(super) parts: u8,
}

impl Held {
    /// The payload in its message.
    fn payload<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        &message[usize::from(self.at)..][..self.len as usize]
    }

    /// The table of parts, which was checked when the message came.
    fn parts<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        let at = usize::from(self.at) + (self.len as usize).next_multiple_of(PART_ALIGN);
        match self.parts {
            0 => &[],
            parts => &message[at..][..usize::from(parts) * PART_LEN],
        }
    }
}

/// Storage that has to be waited for.
#[derive(Debug)]
struct Stall {
    error: StoreError,
    retry_at: Time,
}

/// The sink, what events are compared with on their way into it, and what keeps their slots.
pub(super) struct Storing<S> {
    pub(super) sink: S,
    pub(super) reference: Option<Box<dyn Reference + Send>>,
    pub(super) check: CheckReport,
    pub(super) pattern: Option<PatternMonitor>,
    consumer: Consumer,
    lent: Lent,
    stalled: Option<Stall>,
}

impl<S: EventSink> Storing<S> {
    /// `consumer_rate`: see [`super::ReceiverConfig`].
    pub(super) fn new(sink: S, consumer_rate: Option<Rate>) -> Storing<S> {
        Storing {
            sink,
            reference: None,
            check: CheckReport::default(),
            pattern: None,
            consumer: Consumer::new(consumer_rate),
            lent: Lent::default(),
            stalled: None,
        }
    }

    /// Why storage has to be waited for.
    pub(super) fn error(&self) -> Option<&StoreError> {
        self.stalled.as_ref().map(|stall| &stall.error)
    }

    /// Storage is asked again at once; what it was waited for.
    pub(super) fn end_stall(&mut self) -> Option<StoreError> {
        self.stalled.take().map(|stall| stall.error)
    }

    /// The consumer has not taken all it was given.
    pub(super) fn is_behind(&self) -> bool {
        self.consumer.is_behind()
    }

    /// When there is something to do; `builder`: for the event builder, which waits while storage does.
    pub(super) fn poll_timeout(&self, builder: Option<Time>) -> Option<Time> {
        let storage = match &self.stalled {
            Some(stall) => [Some(stall.retry_at), None],
            None => [builder, self.sink.poll_timeout()],
        };
        storage.into_iter().chain([self.consumer.next_due()]).flatten().min()
    }

    /// Slots of which the consumer has taken the fragments are free.
    pub(super) fn release_taken(&mut self, now: Time, slots: &mut Slots) {
        while let Some((board, place)) = self.consumer.taken(now) {
            slots.release(board, place);
        }
    }

    /// Stores what is ready, unless storage has to be waited for.
    ///
    /// # Errors
    /// Those of the sink that cannot be retried.
    pub(super) fn store_events(
        &mut self,
        now: Time,
        builder: &mut EventBuilder<Held>,
        slots: &mut Slots,
        counters: &mut ReceiverCounters,
    ) -> Result<(), StoreError> {
        if self.stalled.as_ref().is_some_and(|stall| now < stall.retry_at) {
            return Ok(());
        }
        if self.consumer.is_behind() || self.stalled.is_some() {
            builder.restart_patience(now);
        }
        let stored = self.sink.handle_timeout(now);
        let stored = stored.and_then(|()| self.store_ready(now, builder, slots, counters));
        match stored {
            Err(error) if error.is_retriable() => {
                self.stall(now, error, counters);
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
    pub(super) fn take_back(&mut self, now: Time, slots: &mut Slots) {
        let settled = self.sink.settled();
        while let Some(Loan { until, board, place, .. }) = self.lent.given_back(settled) {
            if until <= now {
                slots.release(board, place);
            } else {
                self.consumer.hold(until, board, place);
            }
        }
    }

    fn stall(&mut self, now: Time, error: StoreError, counters: &mut ReceiverCounters) {
        let earlier = self.stalled.take().map(|stall| stall.error);
        if error.is_busy() {
            counters.store_waits += u64::from(earlier.is_none());
            if earlier.is_some_and(|earlier| !earlier.is_busy()) {
                tracing::warn!("storage goes on");
            }
        } else if earlier.is_none_or(|earlier| earlier.is_busy()) {
            counters.store_stalls += 1;
            tracing::error!(%error, "storage waits; boards get no credits until it goes on");
        }
        let wait = if error.is_busy() { RETRY_BUSY } else { RETRY };
        self.stalled = Some(Stall { error, retry_at: now.saturating_add(wait) });
    }

    fn store_ready(
        &mut self,
        now: Time,
        builder: &mut EventBuilder<Held>,
        slots: &mut Slots,
        counters: &mut ReceiverCounters,
    ) -> Result<(), StoreError> {
        while let Some(event) = builder.peek_event(now) {
            let fragment = |(source, timestamp_ns, held): (u16, u64, Held)| {
                let message = slots.message(source, held.place);
                let (payload, parts) = (held.payload(message), held.parts(message));
                Fragment { source, timestamp_ns, crc32c: held.crc32c, payload, trigger_type: held.trigger_type, parts }
            };
            let fragments: Vec<Fragment<'_>> = event.timed_fragments().map(fragment).collect();
            let missing: Vec<u16> = event.missing().collect();
            let (number, timestamp_ns, complete) = (event.number, event.timestamp_ns, event.complete);
            let whole = Event { number, timestamp_ns, complete, fragments: &fragments, missing: &missing };
            self.sink.store(&whole)?;

            let bytes = whole.payload_bytes() as u64;
            counters.bytes_stored += bytes;
            if let Some(reference) = &self.reference {
                for &Fragment { source, payload, .. } in &fragments {
                    self.check.compare(&**reference, number, source, payload);
                }
            }
            if let Some(pattern) = &mut self.pattern {
                pattern.event(number, &missing);
                fragments.iter().for_each(|part| pattern.payload(part.source, Some(number), part.payload));
            }
            let until = self.consumer.give(now, bytes);
            for (board, Held { place, .. }) in event.rejected() {
                slots.release(board, place);
            }
            let free = self.lent.stored(self.sink.settled());
            for (board, Held { place, .. }) in event.fragments() {
                if !free {
                    self.lent.lend(until, board, place);
                } else if until <= now {
                    slots.release(board, place);
                } else {
                    self.consumer.hold(until, board, place);
                }
            }
            builder.pop_event();
        }
        Ok(())
    }
}
