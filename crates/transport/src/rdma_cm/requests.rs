// SPDX-License-Identifier: Apache-2.0
//! REQ and REP: how they are made, and what is wrong with those of peers.
//! Source: IBTA vol. 1, clauses 12.6.5, 12.6.8, 12.7 (fields), 12.6.7.2 (reasons); annex A11.

use super::{RdmaCmAgreed, RdmaCmConfig, RdmaCmEnd, RdmaCmPath, RDMA_CM_PRIVATE_LEN};
use crate::config::{pkeys_match, Mtu};
use penstock_wire::{
    rdma_cm_port, rdma_cm_service, IpAddressing, Ipv4Addr, MadIds, RejReason, Rep, Req, Service, ADDRESSING_LEN,
    DEFAULT_PKEY, REP_PRIVATE_LEN, REQ_PRIVATE_LEN,
};

/// Time to live of RoCEv2 packets.
const HOP_LIMIT: u8 = 64;
/// Failover to an alternate path is not supported (IBTA 12.6.8).
const NO_FAILOVER: u8 = 1;

/// A destination: address and port.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) ip: Ipv4Addr,
    pub(super) port: u16,
    /// Port of the active side.
    pub(super) from_port: u16,
}

pub(super) fn make_req(config: &RdmaCmConfig, local_id: u32, to: Target, local: &RdmaCmEnd, path: &RdmaCmPath) -> Req {
    let mut private = [0; REQ_PRIVATE_LEN];
    IpAddressing { port: to.from_port, src: config.ip, dst: to.ip }.write(&mut private);
    private[ADDRESSING_LEN..].copy_from_slice(&local.private);
    Req {
        local_id,
        service_id: rdma_cm_service(to.port),
        ca_guid: config.ca_guid,
        qpn: local.qpn,
        responder_resources: local.responder_resources,
        initiator_depth: local.initiator_depth,
        remote_timeout: config.response_timeout,
        service: Service::Rc,
        flow_control: true,
        psn: local.psn,
        local_timeout: config.response_timeout,
        retry_count: path.retry_count,
        pkey: DEFAULT_PKEY,
        mtu: path.mtu.code(),
        rnr_retry: local.rnr_retry,
        cm_retries: config.retries,
        srq: false,
        local_gid: config.ip.to_ipv6_mapped().octets(),
        remote_gid: to.ip.to_ipv6_mapped().octets(),
        traffic_class: 0,
        hop_limit: HOP_LIMIT,
        ack_timeout: path.ack_timeout,
        private,
    }
}

/// Checks a REQ and returns the peer's end and the path.
///
/// # Errors
/// The reason to reject it, with one byte of information.
pub(super) fn read_req(
    config: &RdmaCmConfig,
    from: Ipv4Addr,
    req: &Req,
) -> Result<(RdmaCmEnd, RdmaCmPath), (RejReason, Option<u8>)> {
    if config.port.is_none() || rdma_cm_port(req.service_id) != config.port {
        return Err((RejReason::InvalidServiceId, None));
    }
    if req.service != Service::Rc {
        return Err((RejReason::InvalidTransportType, None));
    }
    let addressing = IpAddressing::read(&req.private).ok_or((RejReason::Unsupported, None))?;
    if addressing.src != from || addressing.dst != config.ip {
        return Err((RejReason::InvalidGid, None));
    }
    if req.qpn.value() < 2 || req.local_id == 0 || !pkeys_match(req.pkey, DEFAULT_PKEY) {
        return Err((RejReason::Unsupported, None));
    }
    let mtu = Mtu::ALL.into_iter().find(|mtu| mtu.code() == req.mtu && *mtu <= config.mtu);
    let mtu = mtu.ok_or((RejReason::InvalidMtu, Some(config.mtu.code())))?;
    let mut private = [0; RDMA_CM_PRIVATE_LEN];
    private.copy_from_slice(&req.private[ADDRESSING_LEN..]);
    let peer = RdmaCmEnd {
        qpn: req.qpn,
        psn: req.psn,
        responder_resources: req.responder_resources,
        initiator_depth: req.initiator_depth,
        rnr_retry: req.rnr_retry,
        private,
    };
    Ok((peer, RdmaCmPath { mtu, retry_count: req.retry_count, ack_timeout: req.ack_timeout }))
}

/// What both ends have, of which the passive one accepts with `local`.
pub(super) fn agree(local: &RdmaCmEnd, peer: &RdmaCmEnd, path: RdmaCmPath) -> RdmaCmAgreed {
    let (taken, outstanding) =
        (local.responder_resources.min(peer.initiator_depth), local.initiator_depth.min(peer.responder_resources));
    RdmaCmAgreed {
        local: RdmaCmEnd { responder_resources: taken, initiator_depth: outstanding, ..*local },
        peer: RdmaCmEnd { responder_resources: outstanding, initiator_depth: taken, ..*peer },
        path,
    }
}

pub(super) fn make_rep(config: &RdmaCmConfig, ids: MadIds, local: &RdmaCmEnd) -> Rep {
    let mut private = [0; REP_PRIVATE_LEN];
    private[..RDMA_CM_PRIVATE_LEN].copy_from_slice(&local.private);
    Rep {
        ids,
        qpn: local.qpn,
        psn: local.psn,
        responder_resources: local.responder_resources,
        initiator_depth: local.initiator_depth,
        ack_delay: 0,
        failover: NO_FAILOVER,
        flow_control: true,
        rnr_retry: local.rnr_retry,
        srq: false,
        ca_guid: config.ca_guid,
        private,
    }
}

/// Checks a REP and returns what is agreed.
///
/// # Errors
/// The reason to reject it.
pub(super) fn read_rep(local: &RdmaCmEnd, path: RdmaCmPath, rep: &Rep) -> Result<RdmaCmAgreed, RejReason> {
    if rep.qpn.value() < 2 || rep.ids.local == 0 {
        return Err(RejReason::Unsupported);
    }
    if rep.initiator_depth > local.responder_resources {
        return Err(RejReason::InsufficientResources);
    }
    let mut private = [0; RDMA_CM_PRIVATE_LEN];
    private.copy_from_slice(&rep.private[..RDMA_CM_PRIVATE_LEN]);
    let peer = RdmaCmEnd {
        qpn: rep.qpn,
        psn: rep.psn,
        responder_resources: rep.responder_resources,
        initiator_depth: rep.initiator_depth,
        rnr_retry: rep.rnr_retry,
        private,
    };
    Ok(agree(local, &peer, path))
}
