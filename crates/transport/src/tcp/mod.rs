// SPDX-License-Identifier: Apache-2.0
//! TCP as ordinary hosts use it: one direction of data; New Reno, BIC or CUBIC; with or without SACK; sans-IO.
//! Sequence numbers are 64-bit offsets internally and wrap only on the wire. The connection is established from the
//! start: studies of congestion do not need the handshake. [`TcpPassive`] has it, and gives out payload.
//! Sources: RFC 9293 (TCP), RFC 5681 and 6582 (New Reno), RFC 2018 and 6675 (SACK), RFC 6298 (timer), RFC 3042
//! (limited transmit), RFC 9438 (CUBIC); Xu, Harfoush and Rhee, INFOCOM 2004 (BIC).

mod acked;
mod bic;
mod config;
mod congestion;
mod cubic;
mod passive;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub use config::{TcpConfig, TcpEndpoint, TcpStall, TcpVariant};
pub use passive::{PassiveChange, TcpPassive};
pub use receiver::{TcpReceiver, TcpReceiverCounters};
pub use sender::{TcpCounters, TcpSender};

/// The offset of a 32-bit sequence number: the one closest to `near`.
pub(crate) fn unwrap(near: u64, seq: u32) -> u64 {
    let ahead = seq.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sequence_number_stands_for_the_closest_offset() {
        let near = (1 << 32) + 5;
        assert_eq!(super::unwrap(near, 7), (1 << 32) + 7);
        assert_eq!(super::unwrap(near, u32::MAX), u64::from(u32::MAX));
        assert_eq!(super::unwrap(3, 1), 1);
    }
}
