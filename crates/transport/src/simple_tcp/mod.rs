// SPDX-License-Identifier: Apache-2.0
//! The simplified, unidirectional TCP of front ends: a sender that an ordinary TCP receiver understands.
//! Promise: the rules are one pure function of integers, [`step`], so that gateware can match it bit for bit; a
//! segment from any host other than the peer changes only counters.
//! Source: CMS-TCP section 3.1; RFC 9293 (TCP), RFC 7323 (window scale), RFC 5681 and 6582 (fast retransmit), RFC 6298
//! (timer), RFC 5961 (blind injection), RFC 1191 and 5927 (path MTU). The row's fields: docs/tcp.md.
//!
//! ```text
//!            Open             SYN+ACK
//!  CLOSED ---------> SYN_SENT -------> ESTABLISHED
//!    ^                  |                   |
//!    +------------------+-------------------+
//!      Abort, RST, FIN of the peer, give-up: unfinished messages fail
//! ```

mod actions;
mod arrival;
mod changes;
mod event;
mod parameters;
mod pick;
mod row;
mod sender;
mod sequence;
mod step;
mod stream;
mod timer;

pub use actions::{Actions, Counts, End, Outgoing};
pub use event::{Arrival, Event};
pub use parameters::{Parameters, ParametersError};
pub use row::{Row, State};
pub use sender::{BackOff, SimpleTcpSender};
pub use step::step;
pub use stream::{MessageEnd, Stream, StreamCounters, WriteError};

/// The smallest segment that a peer's option or a path can ask for: less is taken as this (RFC 9293 section 3.7.1 gives
/// no limit; without one a forged option would make every byte a frame).
pub const MIN_MSS: u16 = 64;
/// The largest: a frame of 9000 bytes without the headers of IPv4 and TCP.
pub const MAX_MSS: u16 = 8960;
/// The segment that a peer without the option takes (RFC 9293 section 3.7.1).
pub const DEFAULT_MSS: u16 = 536;
/// The largest window scale (RFC 7323 section 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;
