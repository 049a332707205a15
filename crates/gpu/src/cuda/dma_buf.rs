// SPDX-License-Identifier: Apache-2.0
//! Rings in memory of the device, which a NIC writes by itself (GPUDirect RDMA), and their counterparts on the host.
//! Promise: exported in separate whole pages; data written by a NIC is made visible before a kernel reads it; the
//! memory exists as long as it is referenced.
//! Source: CUDA Driver API, `cuMemGetHandleForAddressRange` (addresses and sizes are multiples of the host's page) and
//! `cuFlushGPUDirectRDMAWrites` (not needed where the attribute `GPU_DIRECT_RDMA_WRITES_ORDERING` is the owner's or
//! more).

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use cudarc::driver::result;
use cudarc::driver::sys::{
    self, CUGPUDirectRDMAWritesOrdering, CUdevice_attribute, CUdeviceptr, CUflushGPUDirectRDMAWritesOptions,
    CUflushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesTarget, CUmemRangeHandleType, CUpointer_attribute,
};
use penstock_readout::backend::DeviceMemory;
use penstock_readout::Mapping;

use super::error::{failed, CudaError};
use super::memory::Allocation;
use super::Gpu;

/// Why a NIC cannot write to the memory of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectError {
    #[error(
        "GPU {gpu} exports no memory as dma-buf (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0): this takes NVIDIA's open \
         kernel modules, release 515 or later, on Linux 5.12 or later"
    )]
    NoDmaBuf { gpu: u32 },
    #[error(
        "GPU {gpu} neither sees what a NIC writes in order nor can be made to (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_\
         WRITES_ORDERING is {ordering}, .._FLUSH_WRITES_OPTIONS {options})"
    )]
    NotVisible { gpu: u32, ordering: i32, options: i32 },
    #[error("GPU {gpu}: {source}")]
    Driver { gpu: u32, source: CudaError },
    #[error("{nic} does not take memory of GPU {gpu}: {reason}")]
    Refused { nic: String, gpu: u32, reason: String },
}

/// How a kernel comes to see what a NIC has written before the kernel was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// The device orders by itself.
    Native,
    /// Data is visible after a flush.
    Flushed,
}

impl Gpu {
    /// Whether NICs may be given memory of this GPU, and what a kernel needs to see what they write.
    ///
    /// # Errors
    /// `NoDmaBuf`, `NotVisible`; the driver's.
    pub fn visibility(&self) -> Result<Visibility, DirectError> {
        let gpu = self.index();
        let query = |attribute| self.attribute(attribute).map_err(|source| DirectError::Driver { gpu, source });
        if query(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED)? == 0 {
            return Err(DirectError::NoDmaBuf { gpu });
        }
        let ordering = query(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING)?;
        let options = query(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)?;
        // From there on the device sees writes in order.
        let owner = CUGPUDirectRDMAWritesOrdering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER as i32;
        let host = CUflushGPUDirectRDMAWritesOptions::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST as i32;
        match (ordering >= owner, options & host != 0) {
            (true, _) => Ok(Visibility::Native),
            (false, true) => Ok(Visibility::Flushed),
            (false, false) => Err(DirectError::NotVisible { gpu, ordering, options }),
        }
    }

    /// Returns when all that has been written from outside is visible to kernels.
    ///
    /// # Errors
    /// The driver's.
    pub fn flush_writes(&self) -> Result<(), CudaError> {
        use CUflushGPUDirectRDMAWritesScope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER as TO_OWNER;
        use CUflushGPUDirectRDMAWritesTarget::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX as CURRENT;
        self.enter()?;
        // SAFETY: the context is current.
        unsafe { sys::cuFlushGPUDirectRDMAWrites(CURRENT, TO_OWNER) }
            .result()
            .map_err(failed("cuFlushGPUDirectRDMAWrites"))
    }
}

/// Memory of the device that can be registered with a NIC.
#[derive(Debug)]
pub struct DmaBuf {
    address: CUdeviceptr,
    len: usize,
    file: OwnedFd,
    gpu: Arc<Gpu>,
    _memory: Allocation,
}

impl DmaBuf {
    /// Allocates at least `len` bytes on the device, exported.
    ///
    /// # Errors
    /// The driver's: no room; a range that it does not export.
    pub fn allocate(gpu: &Arc<Gpu>, len: usize) -> Result<DmaBuf, CudaError> {
        let page = page_bytes();
        let len = len.max(1).next_multiple_of(page);
        // Other allocations may share the first and the last page of one that is not on their boundaries.
        let mut memory = Allocation::allocate(gpu, len)?;
        if !memory.address.is_multiple_of(page as u64) {
            memory = Allocation::allocate(gpu, len + page)?;
        }
        let address = memory.address.next_multiple_of(page as u64);
        gpu.enter()?;
        let (sync, mut file): (c_uint, c_int) = (1, -1);
        // Synchronous copies wait for what has come from outside.
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
        // SAFETY: the attribute's value is an unsigned int; the address is of this context.
        let set = unsafe { sys::cuPointerSetAttribute((&raw const sync).cast(), attribute, memory.address) };
        set.result().map_err(failed("cuPointerSetAttribute"))?;
        let kind = CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
        // SAFETY: a valid place for the descriptor; the range lies in `memory`.
        let exported = unsafe { sys::cuMemGetHandleForAddressRange((&raw mut file).cast(), address, len, kind, 0) };
        exported.result().map_err(failed("cuMemGetHandleForAddressRange"))?;
        // SAFETY: a descriptor that the driver has opened for us.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        Ok(DmaBuf { address, len, file, gpu: gpu.clone(), _memory: memory })
    }

    /// Bytes from `at` on, brought to the host. Waits.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If they lie outside.
    pub fn read(&self, at: usize, len: usize) -> Result<Vec<u8>, CudaError> {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "{len} bytes at {at} of {}", self.len);
        self.gpu.enter()?;
        let mut bytes = vec![0; len];
        // SAFETY: as many bytes lie there on the device.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, self.address + at as u64) }.map_err(failed("cuMemcpyDtoH"))?;
        Ok(bytes)
    }
}

impl DeviceMemory for DmaBuf {
    fn address(&self) -> u64 {
        self.address
    }

    fn len(&self) -> usize {
        self.len
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn page_bytes() -> usize {
    // SAFETY: only asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The memory of the host that stands for a ring on the device: what of its messages is needed here is put here.
#[derive(Debug)]
pub struct HostSide {
    pinned: OnceLock<Pinned>,
    mapping: Arc<Mapping>,
}

impl HostSide {
    pub fn new(mapping: Arc<Mapping>) -> HostSide {
        HostSide { pinned: OnceLock::new(), mapping }
    }

    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Puts bytes where a message's lie, before its completion is reported: until then nothing reads them.
    ///
    /// # Panics
    /// If they lie outside.
    pub fn put(&self, at: usize, bytes: &[u8]) {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.mapping.len()), "bytes behind a ring");
        // SAFETY: inside the mapping. Like a NIC this writes to slots that are posted or filled and not reported, of
        // which the ring's owner, who drives us, holds no reference.
        unsafe { self.mapping.put(at, bytes) };
    }

    /// Pins it, so that the device copies to it by itself. Doing so again does nothing.
    ///
    /// # Errors
    /// The driver's: no more memory may be pinned.
    pub fn pin(&self, gpu: &Arc<Gpu>) -> Result<(), CudaError> {
        if self.pinned.get().is_none() {
            let pinned = Pinned::new(gpu, self.mapping.clone())?;
            let _ = self.pinned.set(pinned);
        }
        Ok(())
    }

    /// Where the device may copy to; none if it is not pinned.
    pub(super) fn place(&self, at: usize, len: usize) -> Option<*mut c_void> {
        self.pinned.get()?;
        assert!(at.checked_add(len).is_some_and(|end| end <= self.mapping.len()), "{len} bytes at {at} behind a ring");
        Some((self.mapping.addr() + at as u64) as *mut c_void)
    }
}

/// Memory of the host that is pinned while this lives.
#[derive(Debug)]
struct Pinned {
    gpu: Arc<Gpu>,
    mapping: Arc<Mapping>,
}

impl Pinned {
    fn new(gpu: &Arc<Gpu>, mapping: Arc<Mapping>) -> Result<Pinned, CudaError> {
        gpu.enter()?;
        // SAFETY: the range is mapped for as long as the value lives, which holds the mapping.
        let pinned = unsafe { sys::cuMemHostRegister_v2(mapping.addr() as *mut c_void, mapping.len(), 0) };
        pinned.result().map_err(failed("cuMemHostRegister"))?;
        Ok(Pinned { gpu: gpu.clone(), mapping })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let start = self.mapping.addr() as *mut c_void;
        // SAFETY: pinned once, unpinned once; lanes that copy to it are waited for before.
        let _ = self.gpu.enter().map(|_| unsafe { sys::cuMemHostUnregister(start) });
    }
}
