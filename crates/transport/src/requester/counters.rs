// SPDX-License-Identifier: Apache-2.0
//! The counters of a requester. A counter has the name of the kernel's RDMA counter where one exists
//! (`rdma statistic`, mlx5 and rxe).

use crate::by_name::by_name;

/// Counters of one requester; they only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequesterCounters {
    /// Packets handed out by `poll_transmit`, those sent again included.
    pub sent_pkts: u64,
    /// Packets sent again.
    pub retransmitted_pkts: u64,
    /// Payload bytes handed out, those sent again included.
    pub tx_payload_bytes: u64,
    /// Packets that passed the addressing checks.
    pub rcvd_pkts: u64,
    /// ACKs that acknowledged something new.
    pub rcvd_acks: u64,
    /// Acknowledgements of any kind without new information: repeated, or outside the window.
    pub stale_acks: u64,
    /// Sequence NAKs that were obeyed.
    pub packet_seq_err: u64,
    /// Gaps in READ responses, or ACKs beyond a READ without all its responses: the rest was requested again.
    pub implied_nak_seq_err: u64,
    /// RNR NAKs that were obeyed.
    pub rnr_nak: u64,
    /// ACK timers that expired.
    pub local_ack_timeout_err: u64,
    /// Payload bytes of READ responses, each once.
    pub rx_payload_bytes: u64,
    /// READ responses without new bytes in their turn: repeated, late, or after a gap.
    pub dropped_read_responses: u64,
    /// CNPs received.
    pub rp_cnp_received: u64,
    /// Messages completed.
    pub messages_ok: u64,
    /// Messages failed or flushed.
    pub messages_err: u64,
    /// Dropped: destination queue pair or address not ours.
    pub dropped_not_for_us: u64,
    /// Dropped: source address not the peer's.
    pub dropped_wrong_peer: u64,
    /// Dropped: partition key does not match.
    pub dropped_bad_pkey: u64,
    /// Dropped: neither acknowledgement, READ response nor CNP, or a wrong syndrome.
    pub dropped_not_response: u64,
    /// Dropped: the queue pair is in error.
    pub dropped_in_error: u64,
}

by_name!(
    RequesterCounters:
    sent_pkts,
    retransmitted_pkts,
    tx_payload_bytes,
    rcvd_pkts,
    rcvd_acks,
    stale_acks,
    packet_seq_err,
    implied_nak_seq_err,
    rnr_nak,
    local_ack_timeout_err,
    rx_payload_bytes,
    dropped_read_responses,
    rp_cnp_received,
    messages_ok,
    messages_err,
    dropped_not_for_us,
    dropped_wrong_peer,
    dropped_bad_pkey,
    dropped_not_response,
    dropped_in_error,
);
