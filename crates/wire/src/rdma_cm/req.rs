// SPDX-License-Identifier: Apache-2.0
//! REQ: what the active side proposes. Source: IBTA vol. 1, table 106 (clause 12.6.5).

use super::parts::{array, bits, put_bits, MESSAGE_LEN};
use crate::bytesio::{be16, be24, be32, be64, put16, put24, put32, put64};
use crate::psn::{Psn, Qpn};

/// Bytes of private data, addresses included.
pub const REQ_PRIVATE_LEN: usize = 92;

/// LIDs of a routed path, as RoCEv2 has none (IBTA 12.7.11).
const PERMISSIVE_LID: u16 = 0xFFFF;

mod at {
    pub const LOCAL_ID: usize = 0;
    pub const SERVICE: usize = 8;
    pub const CA_GUID: usize = 16;
    pub const QPN: usize = 32;
    pub const RESPONDER_RESOURCES: usize = 35;
    pub const INITIATOR_DEPTH: usize = 39;
    /// Remote response timeout 5, service 2, flow control 1.
    pub const REMOTE_TIMEOUT: usize = 43;
    pub const PSN: usize = 44;
    /// Local response timeout 5, retry count 3.
    pub const LOCAL_TIMEOUT: usize = 47;
    pub const PKEY: usize = 48;
    /// Path MTU 4, -, RNR retry count 3.
    pub const MTU: usize = 50;
    /// Retries of the manager 4, SRQ 1, -.
    pub const CM_RETRIES: usize = 51;
    pub const LOCAL_LID: usize = 52;
    pub const REMOTE_LID: usize = 54;
    pub const LOCAL_GID: usize = 56;
    pub const REMOTE_GID: usize = 72;
    pub const TRAFFIC_CLASS: usize = 92;
    pub const HOP_LIMIT: usize = 93;
    /// ACK timeout 5, -.
    pub const ACK_TIMEOUT: usize = 95;
    pub const PRIVATE: usize = 140;
}

/// Transport service of the queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// 0: reliable connection.
    Rc,
    /// 1: unreliable connection.
    Uc,
    /// 2, 3: reliable datagram, extended transports.
    Other(u8),
}

impl Service {
    const fn from_code(code: u8) -> Self {
        match code {
            0 => Service::Rc,
            1 => Service::Uc,
            code => Service::Other(code),
        }
    }

    const fn code(self) -> u8 {
        match self {
            Service::Rc => 0,
            Service::Uc => 1,
            Service::Other(code) => code,
        }
    }
}

/// A request for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Req {
    /// Identifier that the active side gives the connection.
    pub local_id: u32,
    /// What it wants to connect to: [`rdma_cm_service`](super::rdma_cm_service).
    pub service_id: u64,
    /// Channel adapter of the active side: with `local_id` it names the connection.
    pub ca_guid: u64,
    /// Its queue pair.
    pub qpn: Qpn,
    /// READs that it takes at a time.
    pub responder_resources: u8,
    /// READs that it wants to have outstanding.
    pub initiator_depth: u8,
    /// Code of the time in which the passive side is to answer: 4.096 us * 2^code, 5 bits.
    pub remote_timeout: u8,
    /// Transport service.
    pub service: Service,
    /// End-to-end flow control.
    pub flow_control: bool,
    /// PSN with which the passive side begins (IBTA 12.7.31).
    pub psn: Psn,
    /// Code of the time in which it answers.
    pub local_timeout: u8,
    /// Retries of its queue pair, 3 bits.
    pub retry_count: u8,
    /// Partition key.
    pub pkey: u16,
    /// Path MTU as in `enum ibv_mtu`, 4 bits.
    pub mtu: u8,
    /// Retries after RNR NAK, 3 bits; 7: without end.
    pub rnr_retry: u8,
    /// Retries of the connection managers' messages, 4 bits.
    pub cm_retries: u8,
    /// Its queue pair has a shared receive queue.
    pub srq: bool,
    /// GID of the active side; an IPv4 address as `::ffff:address`.
    pub local_gid: [u8; 16],
    /// GID of the passive side.
    pub remote_gid: [u8; 16],
    /// Traffic class of the path.
    pub traffic_class: u8,
    /// Hop limit of the path.
    pub hop_limit: u8,
    /// Code of the ACK timeout of the passive side's queue pair, 5 bits.
    pub ack_timeout: u8,
    /// Private data; the first bytes are [`IpAddressing`](super::IpAddressing).
    pub private: [u8; REQ_PRIVATE_LEN],
}

impl Req {
    pub(super) fn read(data: &[u8]) -> Self {
        Req {
            local_id: be32(data, at::LOCAL_ID),
            service_id: be64(data, at::SERVICE),
            ca_guid: be64(data, at::CA_GUID),
            qpn: Qpn::new(be24(data, at::QPN)),
            responder_resources: data[at::RESPONDER_RESOURCES],
            initiator_depth: data[at::INITIATOR_DEPTH],
            remote_timeout: bits(data, at::REMOTE_TIMEOUT, 0, 5),
            service: Service::from_code(bits(data, at::REMOTE_TIMEOUT, 5, 2)),
            flow_control: bits(data, at::REMOTE_TIMEOUT, 7, 1) != 0,
            psn: Psn::new(be24(data, at::PSN)),
            local_timeout: bits(data, at::LOCAL_TIMEOUT, 0, 5),
            retry_count: bits(data, at::LOCAL_TIMEOUT, 5, 3),
            pkey: be16(data, at::PKEY),
            mtu: bits(data, at::MTU, 0, 4),
            rnr_retry: bits(data, at::MTU, 5, 3),
            cm_retries: bits(data, at::CM_RETRIES, 0, 4),
            srq: bits(data, at::CM_RETRIES, 4, 1) != 0,
            local_gid: array(data, at::LOCAL_GID),
            remote_gid: array(data, at::REMOTE_GID),
            traffic_class: data[at::TRAFFIC_CLASS],
            hop_limit: data[at::HOP_LIMIT],
            ack_timeout: bits(data, at::ACK_TIMEOUT, 0, 5),
            private: array(data, at::PRIVATE),
        }
    }

    pub(super) fn write(&self, data: &mut [u8]) {
        put32(data, at::LOCAL_ID, self.local_id);
        put64(data, at::SERVICE, self.service_id);
        put64(data, at::CA_GUID, self.ca_guid);
        put24(data, at::QPN, self.qpn.value());
        data[at::RESPONDER_RESOURCES] = self.responder_resources;
        data[at::INITIATOR_DEPTH] = self.initiator_depth;
        put_bits(data, at::REMOTE_TIMEOUT, 0, 5, self.remote_timeout);
        put_bits(data, at::REMOTE_TIMEOUT, 5, 2, self.service.code());
        put_bits(data, at::REMOTE_TIMEOUT, 7, 1, self.flow_control.into());
        put24(data, at::PSN, self.psn.value());
        put_bits(data, at::LOCAL_TIMEOUT, 0, 5, self.local_timeout);
        put_bits(data, at::LOCAL_TIMEOUT, 5, 3, self.retry_count);
        put16(data, at::PKEY, self.pkey);
        put_bits(data, at::MTU, 0, 4, self.mtu);
        put_bits(data, at::MTU, 5, 3, self.rnr_retry);
        put_bits(data, at::CM_RETRIES, 0, 4, self.cm_retries);
        put_bits(data, at::CM_RETRIES, 4, 1, self.srq.into());
        put16(data, at::LOCAL_LID, PERMISSIVE_LID);
        put16(data, at::REMOTE_LID, PERMISSIVE_LID);
        data[at::LOCAL_GID..at::LOCAL_GID + 16].copy_from_slice(&self.local_gid);
        data[at::REMOTE_GID..at::REMOTE_GID + 16].copy_from_slice(&self.remote_gid);
        data[at::TRAFFIC_CLASS] = self.traffic_class;
        data[at::HOP_LIMIT] = self.hop_limit;
        put_bits(data, at::ACK_TIMEOUT, 0, 5, self.ack_timeout);
        data[at::PRIVATE..].copy_from_slice(&self.private);
    }
}

const _: () = assert!(at::PRIVATE + REQ_PRIVATE_LEN == MESSAGE_LEN);
