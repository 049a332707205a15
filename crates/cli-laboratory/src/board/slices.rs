// SPDX-License-Identifier: Apache-2.0
//! Untriggered readout: the recorded samples as streams without end, which the gateware cuts into slices.
//! Promise: the last slice ends behind the last whole beat of the streams; the end is known when all slices have ended.

use super::arguments::Slice;
use crate::gateware::recorded_stream;
use penstock_board::live::LiveBoard;
use penstock_board::{regs, Marks, RegisterError, SetupError, SliceEnd, StreamingConfig};
use penstock_netsim::Time;
use penstock_readout::EventSource;
use penstock_wire::fragment::message_2_len;
use serde::Serialize;
use std::sync::Arc;

/// Cycles that a late slice is waited for beside the time of two slices.
const PATIENCE_CYCLES: u64 = 10_000;
/// Bytes of a beat.
const BEAT: u32 = 8;

/// A stream that is to be cut.
pub struct Plan {
    pub source: Arc<EventSource>,
    pub board: u16,
    /// Recorded events, and the time from the samples of one to those of the next.
    pub count: u64,
    pub interval: Time,
    pub slice: Slice,
    /// Bytes of a slot in the server's ring.
    pub slot_size: u32,
}

/// What became of it, under the names of the gateware's registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slices {
    pub event_messages: u32,
    /// Slices of an input that were too long for a slot, were stopped or did not come, and marks without a slice.
    pub cut: u32,
    pub stopped: u32,
    pub missing: u32,
    pub marks_lost: u32,
}

impl Slices {
    /// Whether every slice has all its data.
    pub fn are_whole(&self) -> bool {
        self.cut + self.stopped + self.missing + self.marks_lost == 0
    }

    /// Reads them.
    ///
    /// # Errors
    /// Those of the board.
    pub fn read(board: &mut LiveBoard) -> Result<Self, RegisterError> {
        use regs::event_input as i;
        let mut sum = |offset| -> Result<u32, RegisterError> {
            (0..penstock_wire::gateware::BOARD_INPUTS as u32)
                .map(|input| board.read(i::BASE + input * i::STRIDE + offset))
                .sum()
        };
        Ok(Self {
            cut: sum(i::CUT)?,
            stopped: sum(i::STOPPED)?,
            missing: sum(i::MISSING)?,
            marks_lost: sum(i::MARKS_LOST)?,
            event_messages: board.read(regs::counters::EVENT_MESSAGES)?,
        })
    }
}

impl std::fmt::Display for Slices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { event_messages, cut, stopped, missing, marks_lost } = self;
        write!(f, "{event_messages} made, {cut} cut, {stopped} stopped, {missing} missing, {marks_lost} marks lost")
    }
}

/// A stream that is being cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slicing {
    patience: u64,
    /// Nothing more is taken; messages made so far, and the last cycle in which one had not ended or was new.
    stopped: Option<(u32, u64)>,
}

impl Slicing {
    /// Has the gateware, whose events are set up, begin. The board's clock is 0 then.
    ///
    /// # Errors
    /// The build cuts no streams, or the board refuses.
    pub fn begin(board: &mut LiveBoard, plan: &Plan) -> Result<Self, SetupError> {
        let clock = board.clock();
        let inputs = plan.source.inputs(plan.board) as u32;
        let around = message_2_len(0, inputs as usize) as u32;
        let limit = (plan.slot_size.saturating_sub(around) / inputs / BEAT * BEAT).max(BEAT);
        let patience = (2 * clock.cycles(plan.slice_time() + plan.interval) + PATIENCE_CYCLES).min(u64::from(u32::MAX));
        let end = match plan.slice {
            Slice::Size(bytes) => SliceEnd::Size(bytes),
            Slice::Period(time) => SliceEnd::Period(clock.cycles(time).clamp(1, u64::from(u32::MAX)) as u32),
            Slice::Mark(_) => SliceEnd::Mark,
        };
        let model = board.board();
        model.set_streaming(&StreamingConfig { end, limit, timeout: patience as u32 })?;
        let first = model.cycle();
        let origin = clock.time(first);
        model.set_clock(origin)?;
        model.run_slices(true)?;
        let marks = match plan.slice {
            Slice::Mark(time) => {
                let period = clock.cycles(time).max(1);
                Some(Marks { first: first + period, period })
            }
            _ => None,
        };
        let pieces = recorded_stream(clock, plan.source.clone(), plan.board, plan.count, plan.interval, origin);
        model.stream(Box::new(pieces), marks);
        Ok(Self { patience, stopped: None })
    }

    /// Returns, after a turn of the board, how many slices there were, once all have ended; `ended` is how many have.
    ///
    /// # Errors
    /// The board refuses.
    pub fn turn(&mut self, board: &mut LiveBoard, ended: u64) -> Result<Option<u64>, RegisterError> {
        let now = board.cycle();
        let Some((made, since)) = self.stopped else {
            if board.board().is_stream_over() {
                board.board().run_slices(false)?;
                self.stopped = Some((0, now));
            }
            return Ok(None);
        };
        let count = board.read(regs::counters::EVENT_MESSAGES)?;
        if count != made || ended < u64::from(count) {
            self.stopped = Some((count, now));
        } else if now >= since + 2 * self.patience {
            board.board().end_stream();
            return Ok(Some(ended));
        }
        Ok(None)
    }

    /// Whether the streams have ended and no message is under way: `ended` is how many have ended.
    ///
    /// # Errors
    /// The board refuses.
    pub fn is_complete(self, board: &mut LiveBoard, ended: u64) -> Result<bool, RegisterError> {
        Ok(self.stopped.is_some() && u64::from(board.read(regs::counters::EVENT_MESSAGES)?) == ended)
    }
}

impl Plan {
    /// How long a slice takes to come.
    fn slice_time(&self) -> Time {
        match self.slice {
            Slice::Period(time) | Slice::Mark(time) => time,
            Slice::Size(bytes) => {
                let streams = self.source.streams(0, self.board);
                let least = streams.iter().map(bytes::Bytes::len).min().unwrap_or(1).max(1) as u64;
                self.interval.saturating_mul(u64::from(bytes).div_ceil(least))
            }
        }
    }
}
