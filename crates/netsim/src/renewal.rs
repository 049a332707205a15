// SPDX-License-Identifier: Apache-2.0
//! A pause that one end of a link renews and the other end obeys. A pause expires, so its frame is repeated whenever
//! half of the pause has passed. These frames are computed when either end reads the state, without an event per frame.
//! Promise: the frames, and the time they occupy the wire, are as if a timer had sent each of them. If a frame could be
//! lost, captured or changed, or the wire is busy when a frame is due, the sending end uses a real timer instead.
//! Source: IEEE 802.1Qbb; measured: with a thousand senders, such timers took a quarter of the run time.

use penstock_wire::{MIN_FRAME_LEN, WIRE_OVERHEAD};

use crate::link::{Direction, Wire};
use crate::units::Time;

/// A PFC frame has the least length of a frame.
const WIRE_BYTES: u64 = (MIN_FRAME_LEN + WIRE_OVERHEAD) as u64;

/// When a PFC frame that pauses for `pause` is repeated, counted from its start.
pub(crate) fn refresh_after(pause: Time) -> Time {
    Time(pause.0 / 2)
}

/// The state of one direction of a link.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Renewal {
    /// Frames are repeated.
    goes_on: bool,
    /// When the next frame leaves, if the wire is free then.
    due: Time,
    /// The bytes whose wire time equals the pause.
    pause_bytes: u64,
    /// When the last frame arrives.
    last_arrival: Time,
    /// Frames not yet reported to the sending end, and to the receiving end.
    unreported_sent: u64,
    unreported_arrived: u64,
    /// The timer of the sending end for the moment at which it must ask again.
    sender_token: u64,
    /// That of the receiving end. Without it the sending end repeats all frames itself.
    receiver_token: Option<u64>,
}

impl Renewal {
    /// The timers at which the two ends query the state, first the sending end's; `None` if there is nothing to
    /// tell.
    pub(crate) fn tokens(&self) -> [Option<u64>; 2] {
        let sender = (self.goes_on || self.unreported_sent > 0).then_some(self.sender_token);
        let receiver = self.receiver_token.filter(|_| self.goes_on || self.unreported_arrived > 0);
        [sender, receiver]
    }

    /// Leaves all further frames to the sending end; both ends must then be notified.
    pub(crate) fn leave(&mut self) {
        self.goes_on = false;
    }
}

/// The changes to report to the sending end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// Frames since the last query.
    pub(crate) frames: u64,
    /// Until when its wire has the last of them.
    pub(crate) busy_until: Time,
    /// Frames are no longer repeated here: the sending end itself repeats the next one, which is due at this time.
    pub(crate) left_at: Option<Time>,
}

/// The changes to report to the receiving end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    /// Frames since the last query.
    pub(crate) frames: u64,
    /// When the last one arrives.
    pub(crate) last: Time,
    /// The bytes whose wire time equals the pause from there.
    pub(crate) pause_bytes: u64,
    /// There will be more: the pause ends with a frame, or when a timer reports a change.
    pub(crate) goes_on: bool,
}

/// A [`Renewal`] together with the wire that its frames take.
pub(crate) struct PauseRenewal<'a> {
    pub(crate) state: &'a mut Renewal,
    pub(crate) out: &'a mut Direction,
    pub(crate) wire: &'a mut Wire,
    /// Nothing can happen to a frame on this wire.
    pub(crate) is_plain: bool,
}

impl PauseRenewal<'_> {
    /// The receiving end will query the state when a timer with this token fires.
    pub(crate) fn admit(self, receiver_token: u64) {
        self.state.receiver_token = Some(receiver_token);
    }

    /// The sending end: the PFC frame that has just left is repeated at `due` and from then on, until [`Self::cease`].
    /// `pause_bytes` take as long on the wire as the pause. False if the sending end must do that by a timer.
    pub(crate) fn begin(self, due: Time, pause_bytes: u64, sender_token: u64) -> bool {
        if !self.is_plain || self.state.receiver_token.is_none() {
            return false;
        }
        *self.state = Renewal { goes_on: true, due, pause_bytes, sender_token, ..*self.state };
        true
    }

    /// The sending end: nothing is to be repeated from now on.
    pub(crate) fn cease(self) {
        self.state.leave();
    }

    /// The sending end queries the state before it sends anything else.
    pub(crate) fn sent(mut self, now: Time) -> Sent {
        if self.settle(now) {
            self.state.leave();
        }
        let frames = std::mem::take(&mut self.state.unreported_sent);
        let left_at = (!self.state.goes_on).then_some(self.state.due);
        Sent { frames, busy_until: self.out.busy_until, left_at }
    }

    /// The receiving end queries the state.
    pub(crate) fn arrived(mut self, now: Time) -> Arrived {
        self.settle(now);
        let Renewal { last_arrival: last, pause_bytes, goes_on, .. } = *self.state;
        Arrived { frames: std::mem::take(&mut self.state.unreported_arrived), last, pause_bytes, goes_on }
    }

    /// Sends the frames that are due before a time. True: the next one is due before it too, but waits for the wire.
    pub(crate) fn settle(&mut self, before: Time) -> bool {
        let Self { state, out, wire, .. } = self;
        while state.goes_on && state.due < before {
            let begin = state.due.max(out.busy_until);
            if begin >= before {
                return true;
            }
            out.occupy_for(wire, begin, WIRE_BYTES);
            state.last_arrival = out.arrival();
            state.unreported_sent += 1;
            state.unreported_arrived += 1;
            state.due = begin + refresh_after(out.time_for(wire, state.pause_bytes));
        }
        false
    }
}
