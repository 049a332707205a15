// SPDX-License-Identifier: Apache-2.0
//! The data of one board's detector: the raw samples of an event per trigger. The gateware makes the messages.

use penstock_board::live::LiveBoard;
use penstock_board::{DetectorEvent, Feed, LineClock, MessageSource, RegisterError, StreamPiece};
use penstock_readout::EventSource;
use penstock_units::Time;
use std::sync::Arc;

/// How long before its trigger an event may be handed to a board: as soon as it has room.
pub const LEAD: Time = Time::MAX;

/// The latest that a trigger may come in a farm: less than servers allow between the times of one event.
pub const LATE: Time = Time::from_ns(400);

/// Gives triggers of a live board, which its busy gateware has held up by more than [`LATE`], their times back: the
/// detector stands still for as long, and so does the board's clock, whose 0 is at `origin`. Other boards have the same
/// events at the same times.
///
/// # Errors
/// The board refuses.
pub fn postpone_late(board: &mut LiveBoard, origin: &mut Time) -> Result<(), RegisterError> {
    let Some(late) = board.board().late_trigger() else { return Ok(()) };
    let clock = board.clock();
    let cycles = late + clock.cycle_from(BEFORE_TRIGGERS);
    *origin += clock.time(cycles);
    board.board().set_clock(*origin)?;
    board.board().shift_triggers(cycles);
    Ok(())
}

/// How long before the first trigger a board's clock is set.
pub const BEFORE_TRIGGERS: Time = Time::from_us(10);

/// The samples of one board, event after event, at the times of the run's triggers.
pub struct BoardSource {
    clock: LineClock,
    events: Arc<EventSource>,
    board: u16,
    /// Trigger times since `origin`, one per event, never decreasing; shared by all boards.
    triggers: Arc<[Time]>,
    origin: Time,
    next: usize,
}

impl BoardSource {
    /// The events of a board with this clock, from event `next` on; `origin` is 0 of the trigger times, in the board's
    /// time.
    pub fn new(
        clock: LineClock,
        events: Arc<EventSource>,
        board: u16,
        triggers: Arc<[Time]>,
        origin: Time,
        next: u64,
    ) -> Self {
        Self { clock, events, board, triggers, origin, next: next as usize }
    }
}

impl MessageSource for BoardSource {
    fn next_time(&self) -> Option<Time> {
        self.triggers.get(self.next).map(|at| self.origin + *at)
    }

    fn take(&mut self, _now: Time) -> Option<Feed> {
        let at = self.next_time()?;
        let number = self.next as u64;
        self.next += 1;
        let (streams, trigger_type) = (self.events.streams(number, self.board), self.events.trigger_type(number));
        Some(DetectorEvent { number, trigger_type, cycle: self.clock.cycle_from(at), streams }.into())
    }

    fn lead(&self) -> Time {
        LEAD
    }
}

/// The same samples without triggers: those of `count` events, one after the other, `interval` apart from `origin` on.
pub fn recorded_stream(
    clock: LineClock,
    events: Arc<EventSource>,
    board: u16,
    count: u64,
    interval: Time,
    origin: Time,
) -> impl Iterator<Item = StreamPiece> + Send {
    let piece = move |event| StreamPiece {
        cycle: clock.cycle_from(origin + interval * event),
        streams: events.streams(event, board),
    };
    (0..count).map(piece)
}
