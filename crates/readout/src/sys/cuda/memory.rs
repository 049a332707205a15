// SPDX-License-Identifier: Apache-2.0
//! Memory of the device, pinned memory of the host, and streams: each owned by one value.
//! Promise: freed once, in the context it was made in. That nothing uses it by then is its owner's to see to ([`super::Lane`]).
//! Source: CUDA Driver API, "Memory Management", "Stream Management".

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::api::{CudaError, DeviceAddress, OUT_OF_MEMORY, STREAM_NON_BLOCKING};
use super::Gpu;

/// Memory of the device.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    gpu: Arc<Gpu>,
    pub address: DeviceAddress,
}

impl DeviceMemory {
    pub fn allocate(gpu: &Arc<Gpu>, bytes: usize) -> Result<DeviceMemory, CudaError> {
        let (api, mut address) = (gpu.enter()?, 0);
        // SAFETY: a valid place for the address.
        api.check("cuMemAlloc", unsafe { (api.device_alloc)(&mut address, bytes) })?;
        Ok(DeviceMemory { gpu: gpu.clone(), address })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: allocated once, freed once; its lane has waited for all that uses it.
        let _ = self.gpu.enter().map(|api| unsafe { (api.device_free)(self.address) });
    }
}

/// Page-locked memory of the host, which the device copies from and to by itself. Zeroed.
#[derive(Debug)]
pub(super) struct PinnedMemory {
    gpu: Arc<Gpu>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: memory of the process, owned by this value; the driver frees it from any thread.
unsafe impl Send for PinnedMemory {}

impl PinnedMemory {
    pub fn allocate(gpu: &Arc<Gpu>, len: usize) -> Result<PinnedMemory, CudaError> {
        let (api, mut start) = (gpu.enter()?, ptr::null_mut());
        // SAFETY: a valid place for the address; no flags.
        api.check("cuMemHostAlloc", unsafe { (api.host_alloc)(&mut start, len, 0) })?;
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| api.error("cuMemHostAlloc", OUT_OF_MEMORY))?;
        // SAFETY: `len` bytes from `start` were allocated for us alone.
        unsafe { start.as_ptr().write_bytes(0, len) };
        Ok(PinnedMemory { gpu: gpu.clone(), start, len })
    }

    /// Only while the device does not write it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are allocated and initialised as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Only while the device does not use it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` makes the reference unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated once, freed once; its lane has waited for all that uses it.
        let _ = self.gpu.enter().map(|api| unsafe { (api.host_free)(self.start.as_ptr().cast()) });
    }
}

/// A queue of work on the device, done in order.
#[derive(Debug)]
pub(super) struct Stream {
    gpu: Arc<Gpu>,
    pub raw: *mut c_void,
}

// SAFETY: the driver takes a stream from any thread whose context is the stream's.
unsafe impl Send for Stream {}

impl Stream {
    pub fn new(gpu: &Arc<Gpu>) -> Result<Stream, CudaError> {
        let (api, mut raw) = (gpu.enter()?, ptr::null_mut());
        // SAFETY: a valid place for the handle.
        api.check("cuStreamCreate", unsafe { (api.stream_create)(&mut raw, STREAM_NON_BLOCKING) })?;
        Ok(Stream { gpu: gpu.clone(), raw })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = self.gpu.enter().map(|api| unsafe { (api.stream_destroy)(self.raw) });
    }
}
