// SPDX-License-Identifier: Apache-2.0
//! A pcapng file as a wire: its frames come in at their time stamps, the first at the board's time 0.
//! Promise: the whole file is read and checked before anything runs; the same file gives the same run. Frames
//! from the board are discarded; a capture of the board's port contains them.

use super::pcapng;
use super::wire::{Sent, Wire, WireError, WireTime};
use bytes::Bytes;
use penstock_units::Time;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

/// The frames of a file that have not come yet, with their times.
#[derive(Debug)]
pub struct Replay {
    frames: VecDeque<(Time, Bytes)>,
}

impl Replay {
    /// Reads a whole file; frames count from the earliest. Pauses longer than `max_gap` are shortened to it.
    ///
    /// # Errors
    /// It cannot be read, is no pcapng, holds no Ethernet frame, or holds frames that were cut when they were captured.
    pub fn open(path: &Path, max_gap: Option<Time>) -> Result<Self, WireError> {
        let wrong = |what: String| WireError::Capture { path: path.into(), what };
        let file = std::fs::read(path).map_err(|error| wrong(format!("cannot read it: {error}")))?;
        let mut frames = pcapng::frames(&file).map_err(wrong)?;
        frames.sort_by_key(|frame| frame.at_ps);
        let mut before = frames.first().ok_or_else(|| wrong("no frame in it".into()))?.at_ps;
        let (mut now, mut timed) = (Time::ZERO, VecDeque::with_capacity(frames.len()));
        for pcapng::Captured { at_ps: at, frame } in frames {
            let gap = Time(u64::try_from(at - before).unwrap_or(u64::MAX)).min(max_gap.unwrap_or(Time::MAX));
            now = now.saturating_add(gap);
            if now == Time::MAX {
                return Err(wrong("it spans more than 200 days".into()));
            }
            timed.push_back((now, frame));
            before = at;
        }
        Ok(Self { frames: timed })
    }

    /// Frames that have not come yet.
    pub fn left(&self) -> usize {
        self.frames.len()
    }
}

impl Wire for Replay {
    fn send(&mut self, _now: Time, _frame: &Bytes) -> Result<Sent, WireError> {
        Ok(Sent::Done)
    }

    fn receive(&mut self, now: Time) -> Result<Option<Bytes>, WireError> {
        let due = self.frames.front().is_some_and(|(at, _)| *at <= now);
        Ok(if due { self.frames.pop_front().map(|(_, frame)| frame) } else { None })
    }

    fn wait(&mut self, _timeout: Duration, _room: bool) -> Result<(), WireError> {
        Ok(())
    }

    fn time(&self) -> WireTime {
        WireTime::Simulated(self.frames.front().map(|frame| frame.0))
    }
}
