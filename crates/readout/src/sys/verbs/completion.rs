// SPDX-License-Identifier: Apache-2.0
//! Completion queues, polled or waited on.
//! Promise: completions come in the order of their queue pair; a requested event is never lost.
//! Source: ibv_create_cq(3), ibv_poll_cq(3), ibv_get_cq_event(3).

use std::ffi::c_int;
use std::io;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use rdma_mummy_sys as ffi;

use super::{done, owned, Context};

/// One work completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkCompletion {
    pub wr_id: u64,
    /// Number of its queue pair, valid for every status.
    pub qpn: u32,
    /// `enum ibv_wc_status`; the fields below hold only if it is 0.
    pub status: u32,
    /// The completion is one of a WRITE WITH IMMEDIATE, not of a SEND.
    pub is_write: bool,
    pub imm: Option<u32>,
    pub byte_len: u32,
}

/// A completion queue with the channel that wakes a sleeper.
#[derive(Debug)]
pub struct CompletionQueue {
    pub(super) raw: NonNull<ffi::ibv_cq>,
    channel: NonNull<ffi::ibv_comp_channel>,
    /// Last: the device must outlive both.
    _context: Arc<Context>,
}

// SAFETY: as for `Context`.
unsafe impl Send for CompletionQueue {}
// SAFETY: as for `Context`.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// A queue for `depth` completions.
    ///
    /// # Errors
    /// The driver's; among them too great a depth.
    pub fn new(context: &Arc<Context>, depth: u32) -> io::Result<Arc<CompletionQueue>> {
        let depth = c_int::try_from(depth).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the device is open.
        let channel = owned(unsafe { ffi::ibv_create_comp_channel(context.0.as_ptr()) })?;
        // SAFETY: both are valid; the queue has no user context.
        let raw = unsafe { ffi::ibv_create_cq(context.0.as_ptr(), depth, ptr::null_mut(), channel.as_ptr(), 0) };
        let raw = owned(raw).inspect_err(|_| {
            // SAFETY: made above, and no queue uses it.
            unsafe { ffi::ibv_destroy_comp_channel(channel.as_ptr()) };
        })?;
        let queue = CompletionQueue { raw, channel, _context: context.clone() };
        // SAFETY: a valid descriptor; the flag makes ibv_get_cq_event return instead of sleeping.
        if unsafe { libc::fcntl(queue.fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Arc::new(queue))
    }

    fn fd(&self) -> RawFd {
        // SAFETY: the channel is valid until it is dropped.
        unsafe { self.channel.as_ref().fd }
    }

    /// Makes room for `depth` completions.
    ///
    /// # Errors
    /// The driver's.
    pub fn resize(&self, depth: u32) -> io::Result<()> {
        let depth = c_int::try_from(depth).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the queue is valid.
        done(unsafe { ffi::ibv_resize_cq(self.raw.as_ptr(), depth) })
    }

    /// Takes up to 32 completions, in order; returns their number.
    ///
    /// # Errors
    /// The queue is lost (it overflowed, or the device is gone).
    pub fn poll(&self, mut each: impl FnMut(WorkCompletion)) -> io::Result<usize> {
        const BATCH: usize = 32;
        // SAFETY: plain C structs of integers.
        let mut batch: [ffi::ibv_wc; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: there is room for BATCH completions.
        let count = unsafe { ffi::ibv_poll_cq(self.raw.as_ptr(), BATCH as c_int, batch.as_mut_ptr()) };
        let count = usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(count.unsigned_abs() as i32))?;
        for wc in &batch[..count.min(BATCH)] {
            let has_imm = wc.wc_flags & ffi::ibv_wc_flags::IBV_WC_WITH_IMM.0 != 0;
            // SAFETY: both variants of the union are one integer.
            let imm = has_imm.then(|| u32::from_be(unsafe { wc.imm_data_invalidated_rkey_union.imm_data }));
            let is_write = wc.opcode == ffi::ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM;
            each(WorkCompletion {
                wr_id: wc.wr_id,
                qpn: wc.qp_num,
                status: wc.status,
                is_write,
                imm,
                byte_len: wc.byte_len,
            });
        }
        Ok(count)
    }

    /// Requests an event at the next completion. Poll again after this and before [`Self::sleep`]: what came in between
    /// makes no event.
    ///
    /// # Errors
    /// The driver's.
    pub fn request_event(&self) -> io::Result<()> {
        // SAFETY: the queue is valid.
        done(unsafe { ffi::ibv_req_notify_cq(self.raw.as_ptr(), 0) })
    }

    /// Sleeps until the requested event, at most `timeout`; consumes it.
    ///
    /// # Errors
    /// The system's.
    pub fn sleep(&self, timeout: Duration) -> io::Result<()> {
        let mut ready = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: one descriptor, no signal mask.
        if unsafe { libc::ppoll(&mut ready, 1, &timeout, ptr::null()) } < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        let (mut queue, mut user) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel is valid and does not block; each event taken is acknowledged at once, without which
        // destroying the queue would wait for ever.
        unsafe {
            while ffi::ibv_get_cq_event(self.channel.as_ptr(), &mut queue, &mut user) == 0 {
                ffi::ibv_ack_cq_events(queue, 1);
            }
        }
        Ok(())
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once, the queue before its channel; queue pairs hold an `Arc` and are gone.
        unsafe {
            ffi::ibv_destroy_cq(self.raw.as_ptr());
            ffi::ibv_destroy_comp_channel(self.channel.as_ptr());
        }
    }
}

/// The status of a work request that was never done, since its queue pair had ended.
pub const FLUSHED: &str = "IBV_WC_WR_FLUSH_ERR";

/// Name of an `enum ibv_wc_status`, as the header has it.
pub fn status_name(status: u32) -> &'static str {
    const NAMES: [&str; 22] = [
        "IBV_WC_SUCCESS",
        "IBV_WC_LOC_LEN_ERR",
        "IBV_WC_LOC_QP_OP_ERR",
        "IBV_WC_LOC_EEC_OP_ERR",
        "IBV_WC_LOC_PROT_ERR",
        "IBV_WC_WR_FLUSH_ERR",
        "IBV_WC_MW_BIND_ERR",
        "IBV_WC_BAD_RESP_ERR",
        "IBV_WC_LOC_ACCESS_ERR",
        "IBV_WC_REM_INV_REQ_ERR",
        "IBV_WC_REM_ACCESS_ERR",
        "IBV_WC_REM_OP_ERR",
        "IBV_WC_RETRY_EXC_ERR",
        "IBV_WC_RNR_RETRY_EXC_ERR",
        "IBV_WC_LOC_RDD_VIOL_ERR",
        "IBV_WC_REM_INV_RD_REQ_ERR",
        "IBV_WC_REM_ABORT_ERR",
        "IBV_WC_INV_EECN_ERR",
        "IBV_WC_INV_EEC_STATE_ERR",
        "IBV_WC_FATAL_ERR",
        "IBV_WC_RESP_TIMEOUT_ERR",
        "IBV_WC_GENERAL_ERR",
    ];
    NAMES.get(status as usize).copied().unwrap_or("a status that libibverbs 44 does not name")
}
