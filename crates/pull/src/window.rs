// SPDX-License-Identifier: Apache-2.0
//! The window: how many bytes may be on their way to this server.

use penstock_units::Rate;

/// Where the window W comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Bytes on the wire.
    Given(u64),
    /// Three packets more than three halves of what the line carries in a round trip: the mean of the boards' shortest
    /// ones, weighted by what they send (Little's law). The excess keeps the line busy while a READ waits for room, and
    /// is the queue that remains.
    Measured {
        /// The rate of the server's line.
        line: Rate,
    },
}
