// SPDX-License-Identifier: Apache-2.0
//! The memory of a receiver as a back end writes it, and what of a run may come in.
//! Promise: nothing after the end of a run is acknowledged or read, so that the next run has it.

use bytes::Bytes;
use penstock_transport::{Memory, Unreadable, Window};
use penstock_wire::FragmentId as SentId;
use penstock_wire::Payload;

use super::Receiver;

impl<S> Memory for Receiver<S> {
    fn write(&mut self, va: u64, data: &Payload) {
        self.slots.write(va, data);
    }

    /// No board reads here: a NIC has filled the slot, and its back end looks at it.
    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        let bytes = self.slots.bytes_at(va).get(..len as usize).ok_or(Unreadable)?;
        Ok(Payload::Bytes(Bytes::copy_from_slice(bytes)))
    }

    fn place(&mut self, va: u64, len: u32) -> Option<&mut [u8]> {
        self.slots.place(va, len)
    }

    fn placed(&mut self, va: u64, len: u32) {
        self.slots.placed(va, len);
    }

    fn refuses(&self, va: u64, len: u32) -> Option<Window> {
        self.slots.refuses(va, len)
    }

    fn foreign(&self, begins: &Payload) -> Option<u64> {
        let Payload::Bytes(bytes) = begins else { return None };
        let event = SentId::peek(bytes).ok().filter(|_| !self.bare)?.event_number;
        self.builder.is_foreign(event).then_some(event)
    }

    fn message_ended(&mut self, region: u64) {
        self.slots.message_ended(region);
    }

    fn admit_read(&mut self, source: u16, event: u64) -> bool {
        match &mut self.opening {
            _ if self.bare => true,
            Some(sources) => sources.get_mut(usize::from(source)).is_none_or(|at| at.admit(event)),
            // What precedes it may still be on its way, so this alone does not end the source's part of the run.
            None => self.builder.precedes_end(event),
        }
    }

    fn admit_arrival(&mut self, source: u16, event: u64) -> bool {
        self.bare || self.opening.is_some() || !self.builder.has_end() || self.builder.admit(source, event)
    }

    /// Nothing after the end of the run is acknowledged, so that it is there for the next one. Nor are later fragments
    /// of a board before the first event is known: those before it would be lost.
    fn admit(&mut self, va: u64, only: Option<&Payload>) -> bool {
        if self.bare || (self.opening.is_none() && !self.builder.has_end()) {
            return true;
        }
        let message = match only {
            None => self.slots.bytes_at(va),
            Some(Payload::Bytes(bytes)) => bytes,
            Some(Payload::Virtual(_)) => return true,
        };
        let Ok(id) = SentId::peek(message) else { return true };
        match &mut self.opening {
            Some(sources) => sources.get_mut(usize::from(id.source_id)).is_none_or(|at| at.admit(id.event_number)),
            None => self.builder.admit(id.source_id, id.event_number),
        }
    }
}
