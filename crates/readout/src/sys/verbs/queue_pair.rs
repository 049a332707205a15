// SPDX-License-Identifier: Apache-2.0
//! A reliable connection that receives, and reads.
//! Promise: it is destroyed before its receive memory is released.
//! Source: ibv_create_qp(3), ibv_modify_qp(3), ibv_post_recv(3), ibv_post_send(3); states of IBTA 10.3.1.

use std::ffi::c_int;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use penstock_transport::{Mtu, RecvWr};
use rdma_mummy_sys as ffi;

use super::{done, owned, CompletionQueue, Registration};

/// Where a queue pair's packets leave: the port, and the line of its table of GIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    pub port: u8,
    pub gid_index: u8,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    pub gid: [u8; 16],
    pub qpn: u32,
    /// PSN of its first request.
    pub psn: u32,
    pub mtu: Mtu,
    /// Code of the wait in our RNR NAKs.
    pub rnr_timer: u8,
}

/// Where a queue pair's messages go.
#[derive(Debug)]
pub enum Receives {
    /// Into memory of its own, that its peer may also write.
    PerQueuePair(Registration),
    /// Into memory of all.
    Pool(Arc<Registration>),
}

impl Receives {
    fn registration(&self) -> &Registration {
        match self {
            Receives::PerQueuePair(registration) => registration,
            Receives::Pool(registration) => registration,
        }
    }
}

/// The READs that a queue pair makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// READs that it may have outstanding.
    pub reads: u8,
    /// Timer after which one is requested again, 4.096 us * 2^code; six times.
    pub ack_timeout: u8,
}

impl Outgoing {
    /// None, where the peer sends. The timer is never set.
    pub const NONE: Outgoing = Outgoing { reads: 0, ack_timeout: 14 };
}

/// An RDMA READ.
#[derive(Debug)]
pub struct ReadWr<'a> {
    pub wr_id: u64,
    /// Address and key at the peer.
    pub address: u64,
    pub rkey: u32,
    /// Address and number of the first bytes, in memory that is registered beside that of the receives.
    pub into: (&'a Registration, u64, u32),
    /// Address and number of the others, in the memory of the receives.
    pub rest: (u64, u32),
}

/// A reliable connection that receives, and reads.
#[derive(Debug)]
pub struct QueuePair {
    raw: NonNull<ffi::ibv_qp>,
    receives: Receives,
    _completions: Arc<CompletionQueue>,
}

// SAFETY: as for `Context`.
unsafe impl Send for QueuePair {}
// SAFETY: as for `Context`.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Makes one in INIT: receives may be posted, peers may not write yet.
    ///
    /// # Errors
    /// The driver's; among them more receives than it can hold.
    pub fn new(
        receives: Receives,
        completions: &Arc<CompletionQueue>,
        (max_receives, outgoing): (u32, Outgoing),
        source: Source,
    ) -> io::Result<QueuePair> {
        // SAFETY: a plain C struct of integers and pointers.
        let mut init: ffi::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        init.send_cq = completions.raw.as_ptr();
        init.recv_cq = completions.raw.as_ptr();
        init.qp_type = ffi::ibv_qp_type::IBV_QPT_RC;
        (init.cap.max_recv_wr, init.cap.max_recv_sge) = (max_receives, 1);
        init.cap.max_send_wr = u32::from(outgoing.reads).max(1);
        init.cap.max_send_sge = if outgoing.reads > 0 { 2 } else { 1 };
        init.sq_sig_all = 1;
        let domain = receives.registration().domain.raw.as_ptr();
        // SAFETY: domain and queue are valid, and held by the queue pair.
        let raw = owned(unsafe { ffi::ibv_create_qp(domain, &mut init) })?;
        let qp = QueuePair { raw, receives, _completions: completions.clone() };
        let mut attr = blank();
        attr.qp_state = ffi::ibv_qp_state::IBV_QPS_INIT;
        attr.port_num = source.port;
        attr.qp_access_flags = ffi::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0;
        use ffi::ibv_qp_attr_mask as Mask;
        qp.modify(
            &mut attr,
            Mask::IBV_QP_STATE | Mask::IBV_QP_PKEY_INDEX | Mask::IBV_QP_PORT | Mask::IBV_QP_ACCESS_FLAGS,
        )?;
        Ok(qp)
    }

    pub fn number(&self) -> u32 {
        // SAFETY: `raw` is valid until it is dropped.
        unsafe { self.raw.as_ref().qp_num }
    }

    /// The key of its own memory; 0 where it has none.
    pub fn rkey(&self) -> u32 {
        match &self.receives {
            Receives::PerQueuePair(registration) => registration.rkey(),
            Receives::Pool(_) => 0,
        }
    }

    /// RTR: takes what `remote` sends. The kernel resolves its MAC for this.
    ///
    /// # Errors
    /// `TimedOut` if no host answers to the address; the driver's errors.
    pub fn ready_to_receive(&self, remote: &Remote, source: Source) -> io::Result<()> {
        let mut attr = blank();
        attr.qp_state = ffi::ibv_qp_state::IBV_QPS_RTR;
        attr.path_mtu = u32::from(remote.mtu.code());
        attr.dest_qp_num = remote.qpn;
        attr.rq_psn = remote.psn;
        attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer = remote.rnr_timer;
        attr.ah_attr.is_global = 1;
        attr.ah_attr.port_num = source.port;
        attr.ah_attr.grh.dgid.raw = remote.gid;
        attr.ah_attr.grh.sgid_index = source.gid_index;
        attr.ah_attr.grh.hop_limit = 64;
        use ffi::ibv_qp_attr_mask as Mask;
        let mask = Mask::IBV_QP_STATE
            | Mask::IBV_QP_AV
            | Mask::IBV_QP_PATH_MTU
            | Mask::IBV_QP_DEST_QPN
            | Mask::IBV_QP_RQ_PSN
            | Mask::IBV_QP_MAX_DEST_RD_ATOMIC
            | Mask::IBV_QP_MIN_RNR_TIMER;
        self.modify(&mut attr, mask)
    }

    /// RTS, from RTR. `psn` is that of our first request.
    ///
    /// # Errors
    /// The driver's; among them more READs at a time than the device makes.
    pub fn ready_to_send(&self, psn: u32, outgoing: Outgoing) -> io::Result<()> {
        let mut attr = blank();
        attr.qp_state = ffi::ibv_qp_state::IBV_QPS_RTS;
        attr.sq_psn = psn;
        // The most retries that end: `rdma_rxe` of Linux 6.1 takes 7 for ever. RNR NAKs are waited for.
        (attr.timeout, attr.retry_cnt, attr.rnr_retry) = (outgoing.ack_timeout, 6, 7);
        attr.max_rd_atomic = outgoing.reads.max(1);
        use ffi::ibv_qp_attr_mask as Mask;
        let mask = Mask::IBV_QP_STATE
            | Mask::IBV_QP_SQ_PSN
            | Mask::IBV_QP_TIMEOUT
            | Mask::IBV_QP_RETRY_CNT
            | Mask::IBV_QP_RNR_RETRY
            | Mask::IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify(&mut attr, mask)
    }

    /// Whether it is in the state ERR.
    ///
    /// # Errors
    /// The driver's.
    pub fn is_in_error(&self) -> io::Result<bool> {
        let mut attr = blank();
        // SAFETY: a plain C struct of integers and pointers.
        let mut init: ffi::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let mask = ffi::ibv_qp_attr_mask::IBV_QP_STATE.0 as c_int;
        // SAFETY: valid; both structs are large enough.
        done(unsafe { ffi::ibv_query_qp(self.raw.as_ptr(), &mut attr, mask, &mut init) })?;
        Ok(attr.qp_state == ffi::ibv_qp_state::IBV_QPS_ERR)
    }

    /// ERR: nothing is received any more, and receives that were taken end with a completion.
    ///
    /// # Errors
    /// The driver's.
    pub fn give_up(&self) -> io::Result<()> {
        let mut attr = blank();
        attr.qp_state = ffi::ibv_qp_state::IBV_QPS_ERR;
        self.modify(&mut attr, ffi::ibv_qp_attr_mask::IBV_QP_STATE)
    }

    /// Posts receives, in this order, unless one is outside the registration.
    ///
    /// # Errors
    /// `InvalidInput`: one is outside, and none is posted; `OutOfMemory`: more than `max_receives`.
    pub fn post(&self, receives: &[RecvWr]) -> io::Result<()> {
        let registration = self.receives.registration();
        if !receives.iter().all(|wr| wr.len == 0 || registration.holds(wr)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let lkey = registration.lkey();
        let mut places: Vec<_> = receives.iter().map(|wr| ffi::ibv_sge { addr: wr.va, length: wr.len, lkey }).collect();
        let mut requests: Vec<_> = receives
            .iter()
            .zip(&mut places)
            .map(|(wr, place)| ffi::ibv_recv_wr {
                wr_id: wr.wr_id,
                next: ptr::null_mut(),
                sg_list: place,
                num_sge: c_int::from(wr.len > 0),
            })
            .collect();
        for at in (1..requests.len()).rev() {
            requests[at - 1].next = &mut requests[at];
        }
        let Some(first) = requests.first_mut() else { return Ok(()) };
        let mut refused = ptr::null_mut();
        // SAFETY: the list lives until the call returns; the memory that it names is registered and owned.
        done(unsafe { ffi::ibv_post_recv(self.raw.as_ptr(), first, &mut refused) })
    }

    /// Posts a READ, unless a place is outside of its registration.
    ///
    /// # Errors
    /// `InvalidInput`: outside; `OutOfMemory`: more than [`Outgoing::reads`].
    pub fn post_read(&self, read: &ReadWr<'_>) -> io::Result<()> {
        let places = [read.into, (self.receives.registration(), read.rest.0, read.rest.1)];
        let mut list = Vec::with_capacity(places.len());
        for (registration, va, len) in places.into_iter().filter(|(.., len)| *len > 0) {
            if !registration.holds(&RecvWr { wr_id: 0, va, len }) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            list.push(ffi::ibv_sge { addr: va, length: len, lkey: registration.lkey() });
        }
        // SAFETY: a plain C struct of integers, pointers and unions of these.
        let mut request: ffi::ibv_send_wr = unsafe { std::mem::zeroed() };
        (request.wr_id, request.opcode) = (read.wr_id, ffi::ibv_wr_opcode::IBV_WR_RDMA_READ);
        (request.sg_list, request.num_sge) = (list.as_mut_ptr(), list.len() as c_int);
        request.wr.rdma = ffi::rdma_t { remote_addr: read.address, rkey: read.rkey };
        let mut refused = ptr::null_mut();
        // SAFETY: the list lives until the call returns; the memory that it names is registered, by the queue pair or by
        // the caller until it is destroyed.
        done(unsafe { ffi::ibv_post_send(self.raw.as_ptr(), &mut request, &mut refused) })
    }

    fn modify(&self, attr: &mut ffi::ibv_qp_attr, mask: ffi::ibv_qp_attr_mask) -> io::Result<()> {
        // SAFETY: the queue pair is valid and `attr` has the fields that the mask names.
        done(unsafe { ffi::ibv_modify_qp(self.raw.as_ptr(), attr, mask.0 as c_int) })
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once, before its registration; nothing is written any more when this returns.
        unsafe { ffi::ibv_destroy_qp(self.raw.as_ptr()) };
    }
}

fn blank() -> ffi::ibv_qp_attr {
    // SAFETY: a plain C struct of integers, in which all zeros is a value.
    unsafe { std::mem::zeroed() }
}
