// SPDX-License-Identifier: Apache-2.0
//! Memory registered with a device: of the host, or of another device by its dma-buf.
//! Promise: a registration holds its memory; a device that does not support dma-buf causes an error and no other
//! effect.
//! Source: ibv_reg_mr(3), ibv_reg_dmabuf_mr(3).

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use penstock_transport::RecvWr;
use rdma_mummy_sys as ffi;

use super::{owned, Domain};
use crate::device_memory::DeviceMemory;
use crate::sys::Mapping;

/// The memory that a NIC may write.
#[derive(Debug, Clone)]
pub enum Written {
    Host(Arc<Mapping>),
    Device(Arc<dyn DeviceMemory>),
}

impl Written {
    /// Address of the first byte, as peers and receives name it; for device memory its address there.
    pub fn addr(&self) -> u64 {
        match self {
            Written::Host(mapping) => mapping.addr(),
            Written::Device(memory) => memory.address(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Written::Host(mapping) => mapping.len(),
            Written::Device(memory) => memory.len(),
        }
    }
}

/// Memory that the NIC may write, and peers who know its key.
#[derive(Debug)]
pub struct Registration {
    raw: NonNull<ffi::ibv_mr>,
    memory: Written,
    len: usize,
    pub(super) domain: Arc<Domain>,
}

// SAFETY: as for `Context`.
unsafe impl Send for Registration {}
// SAFETY: as for `Context`.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers the first `len` bytes for local and remote writes.
    ///
    /// # Errors
    /// The memory is shorter; the limit of locked memory; the driver's.
    pub fn new(domain: &Arc<Domain>, memory: Written, len: usize) -> io::Result<Registration> {
        use ffi::ibv_access_flags as Access;
        Registration::with_access(domain, memory, len, Access::IBV_ACCESS_LOCAL_WRITE | Access::IBV_ACCESS_REMOTE_WRITE)
    }

    /// The same for local writes alone: SENDs land there, and no peer's WRITE.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn local(domain: &Arc<Domain>, memory: Written, len: usize) -> io::Result<Registration> {
        Registration::with_access(domain, memory, len, ffi::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE)
    }

    fn with_access(
        domain: &Arc<Domain>,
        memory: Written,
        len: usize,
        access: ffi::ibv_access_flags,
    ) -> io::Result<Registration> {
        if len > memory.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let access = access.0 as c_int;
        let raw = match &memory {
            Written::Host(mapping) => {
                let start = mapping.addr() as *mut c_void;
                // SAFETY: the range is mapped, and stays so: the registration holds the mapping until after it is
                // undone.
                owned(unsafe { ffi::ibv_reg_mr(domain.raw.as_ptr(), start, len, access) })?
            }
            Written::Device(memory) => {
                let register = reg_dmabuf_mr()?;
                let file = memory.file().as_raw_fd();
                // SAFETY: an open dma-buf of at least `len` bytes, which the registration holds until after it is
                // undone.
                owned(unsafe { register(domain.raw.as_ptr(), 0, len, memory.address(), file, access) })?
            }
        };
        Ok(Registration { raw, memory, len, domain: domain.clone() })
    }

    /// The key that peers must send.
    pub fn rkey(&self) -> u32 {
        // SAFETY: `raw` is valid until it is dropped.
        unsafe { self.raw.as_ref().rkey }
    }

    pub(super) fn lkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.raw.as_ref().lkey }
    }

    /// Whether a receive is inside.
    pub(super) fn holds(&self, wr: &RecvWr) -> bool {
        let offset = wr.va.checked_sub(self.memory.addr());
        offset.and_then(|offset| offset.checked_add(u64::from(wr.len))).is_some_and(|end| end <= self.len as u64)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: registered once, undone once; the queue pair that uses it is gone, since it owns it.
        unsafe { ffi::ibv_dereg_mr(self.raw.as_ptr()) };
    }
}

/// Domain, offset in the dma-buf, bytes, address that peers use, descriptor, access.
type RegDmabufMr = unsafe extern "C" fn(*mut ffi::ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ffi::ibv_mr;

/// `ibv_reg_dmabuf_mr` of rdma-core 34 or later. The bindings leave it out; the library is loaded already.
fn reg_dmabuf_mr() -> io::Result<RegDmabufMr> {
    // SAFETY: a constant name; the handle is kept, as the library is by `rdma-mummy-sys`.
    let library = unsafe { libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "libibverbs.so.1 is not on this machine"));
    }
    // SAFETY: the handle is valid, and the name ends with a zero byte.
    let function = unsafe { libc::dlsym(library, c"ibv_reg_dmabuf_mr".as_ptr()) };
    if function.is_null() {
        let text = "libibverbs has no such function: rdma-core 34 or later has";
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    // SAFETY: of this type in every libibverbs that has it (infiniband/verbs.h).
    Ok(unsafe { std::mem::transmute::<*mut c_void, RegDmabufMr>(function) })
}
