// SPDX-License-Identifier: Apache-2.0
//! Access to the gateware for commands: its clock, the detector at its inputs, and its meters.

mod meters;
mod shares;
mod source;
mod triggers;

pub use meters::Meters;
pub use penstock_wire::gateware::CLOCK_HZ as BOARD_CLOCK_HZ;
pub use shares::{cc_params, cc_words, groups, profile_words, show as show_share, InForce, WORDS as CC_WORDS};
pub use source::{recorded_stream, BoardSource, LEAD};
pub use triggers::Triggers;

use penstock_netsim::Time;

/// IP ECN codepoint ECT(0): the flow may be marked instead of dropped (RFC 3168).
pub const ECT0: u8 = 0b10;

/// Clock cycles of a span of the board's time.
pub fn cycles(time: Time) -> u64 {
    (u128::from(time.as_ps()) * u128::from(BOARD_CLOCK_HZ) / 1_000_000_000_000) as u64
}
