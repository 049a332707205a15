// SPDX-License-Identifier: Apache-2.0
//! The counters of a responder. A counter has the name of the kernel's RDMA counter where one exists
//! (`rdma statistic`, mlx5 and rxe).

use crate::by_name::by_name;

/// Counters of one responder; they only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResponderCounters {
    /// Packets that passed the addressing checks.
    pub rcvd_pkts: u64,
    /// Packets handed out by `poll_transmit`.
    pub sent_pkts: u64,
    /// RDMA WRITE messages completed.
    pub rx_write_requests: u64,
    /// SEND messages completed.
    pub rx_send_requests: u64,
    /// RDMA READ requests accepted, each once.
    pub rx_read_requests: u64,
    /// Payload bytes placed in memory.
    pub rx_payload_bytes: u64,
    /// Payload bytes of READ responses, repeated ones included.
    pub tx_payload_bytes: u64,
    /// Request packets before the expected PSN.
    pub duplicate_request: u64,
    /// READ requests among these that are no part of a recent READ; they have no answer.
    pub dropped_stale_reads: u64,
    /// Request packets ahead of the expected PSN.
    pub out_of_sequence: u64,
    /// NAKs for a gap: at most one for each.
    pub nak_sequence_sent: u64,
    /// RNR NAKs sent, as no receive was posted.
    pub out_of_buffer: u64,
    /// NAKs for a wrong rkey, range or permission.
    pub resp_remote_access_errors: u64,
    /// NAKs for a wrong opcode, sequence or length, or one READ too many.
    pub resp_invalid_requests: u64,
    /// NAKs for memory that could not be read.
    pub resp_remote_operational_errors: u64,
    /// SENDs longer than their receive buffer.
    pub resp_local_length_error: u64,
    /// Packets that arrived with the CE mark.
    pub np_ecn_marked_roce_packets: u64,
    /// CNPs sent.
    pub np_cnp_sent: u64,
    /// Dropped: destination queue pair or address not ours.
    pub dropped_not_for_us: u64,
    /// Dropped: source address or (if configured) source port not the peer's.
    pub dropped_wrong_peer: u64,
    /// Dropped: partition key does not match.
    pub dropped_bad_pkey: u64,
    /// Dropped: no request of the reliable connection service (responses, CNPs, other services).
    pub dropped_not_request: u64,
    /// Dropped: the queue pair is in error.
    pub dropped_in_error: u64,
}

by_name!(
    ResponderCounters:
    rcvd_pkts,
    sent_pkts,
    rx_write_requests,
    rx_send_requests,
    rx_read_requests,
    rx_payload_bytes,
    tx_payload_bytes,
    duplicate_request,
    dropped_stale_reads,
    out_of_sequence,
    nak_sequence_sent,
    out_of_buffer,
    resp_remote_access_errors,
    resp_invalid_requests,
    resp_remote_operational_errors,
    resp_local_length_error,
    np_ecn_marked_roce_packets,
    np_cnp_sent,
    dropped_not_for_us,
    dropped_wrong_peer,
    dropped_bad_pkey,
    dropped_not_request,
    dropped_in_error,
);
