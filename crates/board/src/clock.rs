// SPDX-License-Identifier: Apache-2.0
//! The gateware's clock, set to the board's time by its registers.

use crate::board::{Board, RegisterError};
use crate::config::regs;
use penstock_units::Time;

impl Board {
    /// Counts cycles from here on: the board's set-up precedes the time of a simulation.
    ///
    /// # Errors
    /// The board refuses to set its clock.
    pub fn restart_time(&mut self) -> Result<(), RegisterError> {
        if self.has_time {
            self.set_clock_by(|_| 0)?;
        }
        self.begin_cycles();
        Ok(())
    }

    /// Sets the gateware's clock to the board's time since `origin`, which may be to come: what it shows in a cycle is
    /// less than a cycle off.
    ///
    /// # Errors
    /// The board refuses.
    pub fn set_clock(&mut self, origin: Time) -> Result<(), RegisterError> {
        self.has_time = true;
        let ns = |time: Time| time / Time::from_ns(1);
        let clock = self.clock();
        self.set_clock_by(|cycle| ns(clock.time(cycle)).wrapping_sub(ns(origin)))
    }

    /// Sets the gateware's clock so that it shows `time`, ns, of the next cycle to come in that cycle.
    fn set_clock_by(&mut self, time: impl Fn(u64) -> u64) -> Result<(), RegisterError> {
        use regs::timing as t;
        /// Other masters of the registers may hold up a write.
        const TRIES: u32 = 16;
        // Of a cycle, ns.
        let step = self.clock().time(1).as_ps() / 1000;
        let set = |board: &mut Self, at: u64| -> Result<u64, RegisterError> {
            board.write(t::SET_HI, (at >> 32) as u32)?;
            board.write(t::SET_LO, at as u32)?;
            board.write(t::COMMAND, t::COMMAND_SET_BITS.mask)?;
            Ok(board.cycle())
        };
        for _ in 0..TRIES {
            // How long the three writes take, and what the clock then shows of a time of 0.
            let begun = self.cycle();
            let taken = set(self, 0)? - begun;
            let shown = self.tai_ns() + step;
            let target = time(self.cycle() + taken);
            let found = set(self, target.wrapping_sub(shown))?;
            let off = self.tai_ns().wrapping_add(step).wrapping_sub(time(found)) as i64;
            if off.abs() <= 2 {
                break;
            }
        }
        Ok(())
    }
}
