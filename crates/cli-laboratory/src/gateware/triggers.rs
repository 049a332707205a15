// SPDX-License-Identifier: Apache-2.0
//! The trigger counters of a board's gateware (rtl/event/event_timing.sv), under the names of its registers.

use penstock_board::{regs, LineClock};
use serde::Serialize;

/// Triggers and dead time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Triggers {
    /// The sum of `accepted`, `vetoed`, `rejected_busy` and `rejected_dead`.
    pub received: u32,
    /// Each of them is one event.
    pub accepted: u32,
    pub vetoed: u32,
    pub rejected_busy: u32,
    pub rejected_dead: u32,
    /// Triggers whose number was not the last one's successor.
    pub jumped: u32,
    /// How long the board was busy, in dead time or had its gate open.
    pub busy_s: f64,
    pub veto_s: f64,
}

impl Triggers {
    /// Reads those of a board with this clock; `None` where no trigger has come.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn read<E>(clock: LineClock, mut read: impl FnMut(u32) -> Result<u32, E>) -> Result<Option<Self>, E> {
        use regs::timing as t;
        let received = read(t::RECEIVED)?;
        if received == 0 {
            return Ok(None);
        }
        let mut seconds = |low, high| -> Result<f64, E> {
            let cycles = u64::from(read(high)?) << 32 | u64::from(read(low)?);
            Ok(clock.picoseconds(cycles as f64) * 1e-12)
        };
        let (busy_s, veto_s) =
            (seconds(t::BUSY_CYCLES_LO, t::BUSY_CYCLES_HI)?, seconds(t::VETO_CYCLES_LO, t::VETO_CYCLES_HI)?);
        Ok(Some(Self {
            received,
            accepted: read(t::ACCEPTED)?,
            vetoed: read(t::VETOED)?,
            rejected_busy: read(t::REJECTED_BUSY)?,
            rejected_dead: read(t::REJECTED_DEAD)?,
            jumped: read(t::JUMPED)?,
            busy_s,
            veto_s,
        }))
    }
}

impl std::fmt::Display for Triggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} accepted of {}, {} vetoed, {} rejected while busy, {} in dead time; busy for {:.3} us",
            self.accepted,
            self.received,
            self.vetoed,
            self.rejected_busy,
            self.rejected_dead,
            self.busy_s * 1e6,
        )
    }
}
