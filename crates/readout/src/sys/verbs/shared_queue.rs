// SPDX-License-Identifier: Apache-2.0
//! Receives that many queue pairs take from (SRQ).
//! Promise: it is destroyed behind the queue pairs that use it and before its memory is let go.
//! Source: ibv_create_srq(3), ibv_post_srq_recv(3), ibv_modify_srq(3); IBTA 10.2.9.

use std::ffi::c_int;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use penstock_transport::RecvWr;
use rdma_mummy_sys as ffi;

use super::queue_pair::in_list;
use super::{done, owned, Domain, Registration};

/// A shared receive queue over one registration.
#[derive(Debug)]
pub struct SharedQueue {
    pub(super) raw: NonNull<ffi::ibv_srq>,
    registration: Registration,
}

// SAFETY: as for `Context`.
unsafe impl Send for SharedQueue {}
// SAFETY: as for `Context`.
unsafe impl Sync for SharedQueue {}

impl SharedQueue {
    /// A queue with room for `max_receives`, all of which lie in the registration.
    ///
    /// # Errors
    /// The driver's; among them more receives than it can hold, or no such queues at all.
    pub fn new(registration: Registration, max_receives: u32) -> io::Result<Arc<SharedQueue>> {
        let attr = ffi::ibv_srq_attr { max_wr: max_receives, max_sge: 1, srq_limit: 0 };
        let mut init = ffi::ibv_srq_init_attr { srq_context: ptr::null_mut(), attr };
        // SAFETY: the domain is valid, and held by the registration.
        let raw = owned(unsafe { ffi::ibv_create_srq(registration.domain.raw.as_ptr(), &mut init) })?;
        Ok(Arc::new(SharedQueue { raw, registration }))
    }

    pub(super) fn domain(&self) -> &Domain {
        &self.registration.domain
    }

    /// The device tells once when fewer than `receives` are left; then it must be asked for again.
    ///
    /// # Errors
    /// The driver's.
    pub fn tell_below(&self, receives: u32) -> io::Result<()> {
        let mut attr = ffi::ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: receives };
        let mask = ffi::ibv_srq_attr_mask::IBV_SRQ_LIMIT.0 as c_int;
        // SAFETY: the queue is valid and `attr` has the field that the mask names.
        done(unsafe { ffi::ibv_modify_srq(self.raw.as_ptr(), &mut attr, mask) })
    }

    /// Posts receives, in this order.
    ///
    /// # Errors
    /// As [`QueuePair::post`](super::QueuePair::post).
    pub fn post(&self, receives: &[RecvWr]) -> io::Result<()> {
        in_list(&self.registration, receives, |first| {
            let mut refused = ptr::null_mut();
            // SAFETY: the list lives until the call returns; the memory that it names is registered and owned.
            unsafe { ffi::ibv_post_srq_recv(self.raw.as_ptr(), first, &mut refused) }
        })
    }
}

impl Drop for SharedQueue {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once, before its registration; its queue pairs hold an `Arc` and are gone.
        unsafe { ffi::ibv_destroy_srq(self.raw.as_ptr()) };
    }
}
