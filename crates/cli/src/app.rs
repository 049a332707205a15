// SPDX-License-Identifier: Apache-2.0
//! The readout as the application of the simulated server: the in-process back end.

use penstock_netsim::{HostApp, Time, TraceSink};
use penstock_readout::{EventSink, Receiver, StoreError};
use penstock_transport::{Memory, RecvCompletion, RecvStatus, RecvWr};
use penstock_wire::Qpn;

/// The server's queue pair of board k has number `FIRST_QPN + k`.
pub const FIRST_QPN: u32 = 0x100;

/// Joins a [`Receiver`] to the queue pairs of a host.
pub struct ReadoutApp<S> {
    receiver: Receiver<S>,
    /// Storage failed: the run ends, nothing more is taken.
    failed: Option<StoreError>,
}

impl<S: EventSink> ReadoutApp<S> {
    pub fn new(receiver: Receiver<S>) -> Self {
        Self { receiver, failed: None }
    }

    pub fn receiver(&self) -> &Receiver<S> {
        &self.receiver
    }

    pub fn receiver_mut(&mut self) -> &mut Receiver<S> {
        &mut self.receiver
    }

    pub fn take_failure(&mut self) -> Option<StoreError> {
        self.failed.take()
    }

    fn note(&mut self, result: Result<(), StoreError>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

fn board_of(qpn: Qpn) -> u16 {
    (qpn.value() - FIRST_QPN) as u16
}

impl<S: EventSink + 'static> HostApp for ReadoutApp<S> {
    fn memory(&mut self) -> &mut dyn Memory {
        &mut self.receiver
    }

    fn on_completion(&mut self, now: Time, completion: RecvCompletion) {
        if completion.status != RecvStatus::Success {
            return; // flushed receives of a queue pair in error; its counters say why
        }
        let slot = completion.imm.unwrap_or(u32::MAX);
        let taken = self.receiver.on_completion(now.as_ps(), board_of(completion.qpn), slot, completion.byte_len);
        self.note(taken);
    }

    fn post_receives(&mut self, _now: Time, qpn: Qpn, post: &mut dyn FnMut(RecvWr)) {
        for _ in 0..self.receiver.take_credits(board_of(qpn)) {
            post(RecvWr::default());
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.receiver.poll_timeout().map(Time::from_ps)
    }

    fn on_wakeup(&mut self, now: Time) {
        let done = self.receiver.handle_timeout(now.as_ps());
        self.note(done);
    }

    fn is_finished(&self) -> bool {
        self.failed.is_some()
    }

    fn sample(&mut self, _now: Time, trace: &mut TraceSink) {
        trace.record(0, "events_built", self.receiver.events_stored() as f64);
    }
}
