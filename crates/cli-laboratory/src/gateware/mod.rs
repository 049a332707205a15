// SPDX-License-Identifier: Apache-2.0
//! Access to the gateware for commands: its clock at 10 Gb/s, the detector at its inputs, and its meters.

mod meters;
mod source;
mod triggers;

pub use meters::Meters;
pub use source::{postpone_late, recorded_stream, BoardSource, BEFORE_TRIGGERS, LATE, LEAD};
pub use triggers::Triggers;

/// IP ECN codepoint ECT(0): the flow may be marked instead of dropped (RFC 3168).
pub const ECT0: u8 = 0b10;
