// SPDX-License-Identifier: Apache-2.0
//! Memory of the device and pinned memory of the host, each owned by one value.
//! Promise: freed once, in the context it was made in. The owner ensures that it is no longer in use ([`super::Lane`]).
//! Source: CUDA Driver API, "Memory Management". `cudarc`'s `CudaSlice` and `PinnedHostSlice` are not used: they come
//! from a pool, from which no dma-buf can be made, and record an event for every copy.

use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUresult};
use cudarc::driver::{result, DriverError};

use super::error::{failed, CudaError};
use super::Gpu;

/// Memory of the device.
#[derive(Debug)]
pub(super) struct Allocation {
    gpu: Arc<Gpu>,
    pub address: CUdeviceptr,
}

impl Allocation {
    pub fn allocate(gpu: &Arc<Gpu>, bytes: usize) -> Result<Allocation, CudaError> {
        gpu.enter()?;
        // SAFETY: the memory is only read behind copies and kernels that have written it.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(failed("cuMemAlloc"))?;
        Ok(Allocation { gpu: gpu.clone(), address })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated once, freed once; its lane has waited for all that uses it.
        let _ = self.gpu.enter().map(|_| unsafe { result::free_sync(self.address) });
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
        gpu.enter()?;
        // SAFETY: no flags.
        let start = unsafe { result::malloc_host(len, 0) }
            .and_then(|start| NonNull::new(start.cast::<u8>()).ok_or(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)));
        let start = start.map_err(failed("cuMemHostAlloc"))?;
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
        let _ = self.gpu.enter().map(|_| unsafe { result::free_host(self.start.as_ptr().cast()) });
    }
}
