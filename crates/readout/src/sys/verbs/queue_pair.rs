// SPDX-License-Identifier: Apache-2.0
//! A reliable connection that only receives.
//! Promise: it is destroyed before its receive memory is released.
//! Source: ibv_create_qp(3), ibv_modify_qp(3), ibv_post_recv(3); states of IBTA 10.3.1.

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

/// A reliable connection that only receives.
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
        max_receives: u32,
        source: Source,
    ) -> io::Result<QueuePair> {
        // SAFETY: a plain C struct of integers and pointers.
        let mut init: ffi::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        init.send_cq = completions.raw.as_ptr();
        init.recv_cq = completions.raw.as_ptr();
        init.qp_type = ffi::ibv_qp_type::IBV_QPT_RC;
        (init.cap.max_recv_wr, init.cap.max_recv_sge) = (max_receives, 1);
        init.cap.max_send_wr = 1;
        init.cap.max_send_sge = 1;
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

    /// RTS, from RTR. `psn` is that of our first request; we make none, but a peer may want to know.
    ///
    /// # Errors
    /// The driver's.
    pub fn ready_to_send(&self, psn: u32) -> io::Result<()> {
        let mut attr = blank();
        attr.qp_state = ffi::ibv_qp_state::IBV_QPS_RTS;
        attr.sq_psn = psn;
        // 4.096 us * 2^14 = 67 ms, and both retry counts at their most.
        (attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic) = (14, 7, 7, 1);
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
