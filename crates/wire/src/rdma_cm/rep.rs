// SPDX-License-Identifier: Apache-2.0
//! REP: what the passive side agrees to. Source: IBTA vol. 1, table 110 (clause 12.6.8).

use super::answers::MadIds;
use super::parts::{array, bits, put_bits, MESSAGE_LEN};
use crate::bytesio::{be24, be64, put24, put64};
use crate::psn::{Psn, Qpn};

/// Bytes of private data.
pub const REP_PRIVATE_LEN: usize = 196;

mod at {
    pub const QPN: usize = 12;
    pub const PSN: usize = 20;
    pub const RESPONDER_RESOURCES: usize = 24;
    pub const INITIATOR_DEPTH: usize = 25;
    /// ACK delay 5, failover 2, flow control 1.
    pub const ACK_DELAY: usize = 26;
    /// RNR retry count 3, SRQ 1, -.
    pub const RNR_RETRY: usize = 27;
    pub const CA_GUID: usize = 28;
    pub const PRIVATE: usize = 36;
}

/// The reply to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rep {
    /// The passive side's identifier, and that of the REQ.
    pub ids: MadIds,
    /// Queue pair of the passive side.
    pub qpn: Qpn,
    /// PSN with which the active side begins (IBTA 12.7.31).
    pub psn: Psn,
    /// READs that it takes at a time; not above the REQ's initiator depth.
    pub responder_resources: u8,
    /// READs that it has outstanding; not above the REQ's responder resources.
    pub initiator_depth: u8,
    /// Code of the time until its queue pair acknowledges, 5 bits.
    pub ack_delay: u8,
    /// Failover to an alternate path, 2 bits; 1: not supported.
    pub failover: u8,
    /// End-to-end flow control.
    pub flow_control: bool,
    /// Retries after RNR NAK, 3 bits.
    pub rnr_retry: u8,
    /// Its queue pair has a shared receive queue.
    pub srq: bool,
    /// Channel adapter of the passive side.
    pub ca_guid: u64,
    /// Private data.
    pub private: [u8; REP_PRIVATE_LEN],
}

impl Rep {
    pub(super) fn read(data: &[u8]) -> Self {
        Rep {
            ids: MadIds::read(data),
            qpn: Qpn::new(be24(data, at::QPN)),
            psn: Psn::new(be24(data, at::PSN)),
            responder_resources: data[at::RESPONDER_RESOURCES],
            initiator_depth: data[at::INITIATOR_DEPTH],
            ack_delay: bits(data, at::ACK_DELAY, 0, 5),
            failover: bits(data, at::ACK_DELAY, 5, 2),
            flow_control: bits(data, at::ACK_DELAY, 7, 1) != 0,
            rnr_retry: bits(data, at::RNR_RETRY, 0, 3),
            srq: bits(data, at::RNR_RETRY, 3, 1) != 0,
            ca_guid: be64(data, at::CA_GUID),
            private: array(data, at::PRIVATE),
        }
    }

    pub(super) fn write(&self, data: &mut [u8]) {
        self.ids.write(data);
        put24(data, at::QPN, self.qpn.value());
        put24(data, at::PSN, self.psn.value());
        data[at::RESPONDER_RESOURCES] = self.responder_resources;
        data[at::INITIATOR_DEPTH] = self.initiator_depth;
        put_bits(data, at::ACK_DELAY, 0, 5, self.ack_delay);
        put_bits(data, at::ACK_DELAY, 5, 2, self.failover);
        put_bits(data, at::ACK_DELAY, 7, 1, self.flow_control.into());
        put_bits(data, at::RNR_RETRY, 0, 3, self.rnr_retry);
        put_bits(data, at::RNR_RETRY, 3, 1, self.srq.into());
        put64(data, at::CA_GUID, self.ca_guid);
        data[at::PRIVATE..].copy_from_slice(&self.private);
    }
}

const _: () = assert!(at::PRIVATE + REP_PRIVATE_LEN == MESSAGE_LEN);
