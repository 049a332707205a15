// SPDX-License-Identifier: Apache-2.0
//! The path of one batch through the GPU: pinned memory, a copy to the device, kernels, a copy back, on its own stream.
//! Promise: while work is in progress its memory cannot be written, and its result memory cannot be read; drop waits.
//! Source: CUDA Driver API, "Stream Management", "Execution Control"; the kernels' parameters are those of kernels.cu.
//!
//! ```text
//! input   |  data of any kind  |  tables: jumps, pieces, modules, parts  |     (pinned, and the same on the device)
//! output  |  found: 8 bytes a piece  |  charges: 56 bytes a module  |  read: 52 bytes a message  |   (and the same pinned)
//! ```

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdeviceptr, CUresult};
use cudarc::driver::{result, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg};
use penstock_readout::backend::DeviceMemory;

use super::dma_buf::{DmaBuf, HostSide};
use super::error::{failed, CudaError};
use super::memory::{Allocation, PinnedMemory};
use super::Gpu;

/// Bytes of `Piece` and of `Found` in kernels.cu, of a module's address and of its charges.
pub const PIECE_BYTES: usize = 24;
pub const FOUND_BYTES: usize = 8;
pub const ADDRESS_BYTES: usize = 8;
pub const CHARGES_BYTES: usize = 14 * 4;
/// The same of `Part` and `Read`.
pub const PART_BYTES: usize = 24;
pub const READ_BYTES: usize = 13 * 4;
/// Bytes of the tables that go with them: 32 rows of 31 states; 32 powers and four tables of 256 words.
pub const JUMPS_BYTES: usize = 32 * 31 * 4;
pub const CRC_TABLES_BYTES: usize = (32 + 4 * 256) * 4;
/// Threads for a piece or a part, and for a module.
const PIECE_THREADS: usize = 32;
const MODULE_THREADS: usize = 14;
const BLOCK_THREADS: usize = 128;

/// PRBS-31 to be compared. Places are bytes of input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrbsWork {
    pub pieces_at: usize,
    pub pieces: usize,
    pub jumps_at: usize,
    /// The sequence is sent complemented.
    pub invert: bool,
    pub found_at: usize,
}

/// Charges to be computed. Places are bytes of input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChargeWork {
    pub modules_at: usize,
    pub modules: usize,
    pub charges_at: usize,
}

/// Headers to be gathered and CRCs to be computed. Places are bytes of input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadWork {
    pub parts_at: usize,
    pub parts: usize,
    pub tables_at: usize,
    pub read_at: usize,
    /// Messages that the parts are of.
    pub messages: usize,
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Prbs31(PrbsWork),
    Charges(ChargeWork),
    Read(ReadWork),
}

/// One of several batches that are under way side by side.
#[derive(Debug)]
pub struct Lane {
    /// Something was queued that nobody has waited for.
    busy: bool,
    input: PinnedMemory,
    output: PinnedMemory,
    device_input: Allocation,
    device_output: Allocation,
    stream: Arc<CudaStream>,
    gpu: Arc<Gpu>,
}

impl Lane {
    /// # Errors
    /// The driver's: no room.
    pub fn new(gpu: &Arc<Gpu>, input_bytes: usize, output_bytes: usize) -> Result<Lane, CudaError> {
        let (input_bytes, output_bytes) = (input_bytes.max(16), output_bytes.max(16));
        Ok(Lane {
            busy: false,
            input: PinnedMemory::allocate(gpu, input_bytes)?,
            output: PinnedMemory::allocate(gpu, output_bytes)?,
            device_input: Allocation::allocate(gpu, input_bytes)?,
            device_output: Allocation::allocate(gpu, output_bytes)?,
            stream: gpu.enter()?.new_stream().map_err(failed("cuStreamCreate"))?,
            gpu: gpu.clone(),
        })
    }

    /// Where a place of the input lies on the device: for tables of addresses, which are the caller's to get right. A
    /// kernel that gets a wrong one ends the GPU's work, and no more.
    pub fn device_address(&self, at: usize) -> CUdeviceptr {
        self.device_input.address + at as u64
    }

    /// What was put in. A GPU that is at work only reads it.
    pub fn input(&self) -> &[u8] {
        self.input.bytes()
    }

    /// The input, to be filled; none while work is under way.
    pub fn input_mut(&mut self) -> Option<&mut [u8]> {
        (!self.busy).then(|| self.input.bytes_mut())
    }

    /// What the last work has left; none while work is under way.
    pub fn output(&self) -> Option<&[u8]> {
        (!self.busy).then(|| self.output.bytes())
    }

    /// Queues the copies of these parts of the input, then the work, and returns at once.
    ///
    /// # Errors
    /// The driver's. What was queued before it may still run: the lane stays busy, and is good for nothing but
    /// [`Self::wait`].
    ///
    /// # Panics
    /// If the lane is busy, or a part lies outside input or output.
    pub fn start(&mut self, upload: &[Range<usize>], work: &Work) -> Result<(), CudaError> {
        assert!(!self.busy, "a lane takes work when the last is done");
        self.gpu.enter()?;
        self.busy = true;
        for part in upload.iter().filter(|part| !part.is_empty()) {
            let from = &self.input.bytes()[part.clone()];
            let to = self.device_input.address + part.start as u64;
            // SAFETY: `from` lies in pinned memory that stays as it is while `busy`; the device's has the same length.
            unsafe { result::memcpy_htod_async(to, from, self.stream.cu_stream()) }
                .map_err(failed("cuMemcpyHtoDAsync"))?;
        }
        match work {
            Work::Prbs31(work) if work.pieces > 0 => self.compare(work),
            Work::Charges(work) if work.modules > 0 => self.add_up(work),
            Work::Read(work) if work.parts > 0 => self.read(work),
            _ => Ok(()),
        }
    }

    fn compare(&mut self, work: &PrbsWork) -> Result<(), CudaError> {
        let pieces = self.input_part(work.pieces_at, work.pieces * PIECE_BYTES);
        let jumps = self.input_part(work.jumps_at, JUMPS_BYTES);
        let (found_at, found_bytes) = (work.found_at, work.pieces * FOUND_BYTES);
        let found = self.output_part(found_at, found_bytes);
        self.clear(found, found_bytes)?;
        let (count, flip) = (work.pieces as u32, if work.invert { u32::MAX } else { 0 });
        let mut launch = self.stream.launch_builder(&self.gpu.prbs31_errors);
        launch.arg(&pieces).arg(&count).arg(&jumps).arg(&flip).arg(&found);
        // SAFETY: the parameters of `prbs31_errors` in kernels.cu, in order and of its types; it writes no more than
        // `count` elements of `found`.
        unsafe { start(&mut launch, work.pieces * PIECE_THREADS) }?;
        self.fetch(found_at, found_bytes)
    }

    fn add_up(&mut self, work: &ChargeWork) -> Result<(), CudaError> {
        let modules = self.input_part(work.modules_at, work.modules * ADDRESS_BYTES);
        let (charges_at, charges_bytes) = (work.charges_at, work.modules * CHARGES_BYTES);
        let (count, charges) = (work.modules as u32, self.output_part(charges_at, charges_bytes));
        let mut launch = self.stream.launch_builder(&self.gpu.charges);
        launch.arg(&modules).arg(&count).arg(&charges);
        // SAFETY: the parameters of `charges` in kernels.cu, in order and of its types; it writes 14 words for each of
        // `count` modules.
        unsafe { start(&mut launch, work.modules * MODULE_THREADS) }?;
        self.fetch(charges_at, charges_bytes)
    }

    fn read(&mut self, work: &ReadWork) -> Result<(), CudaError> {
        let parts = self.input_part(work.parts_at, work.parts * PART_BYTES);
        let tables = self.input_part(work.tables_at, CRC_TABLES_BYTES);
        let (read_at, read_bytes) = (work.read_at, work.messages * READ_BYTES);
        let (count, read) = (work.parts as u32, self.output_part(read_at, read_bytes));
        self.clear(read, read_bytes)?;
        let mut launch = self.stream.launch_builder(&self.gpu.read_fragments);
        launch.arg(&parts).arg(&count).arg(&tables).arg(&read);
        // SAFETY: the parameters of `read_fragments` in kernels.cu, in order and of its types; it writes the elements
        // of `read` that the parts name.
        unsafe { start(&mut launch, work.parts * PIECE_THREADS) }?;
        self.fetch(read_at, read_bytes)
    }

    /// Queues a copy of a ring's bytes on the device to its side on the host, which is pinned; behind what was started.
    ///
    /// # Errors
    /// As [`Self::start`].
    ///
    /// # Panics
    /// If nothing was started, or the bytes lie outside.
    pub fn copy_out(&mut self, from: &DmaBuf, to: &HostSide, at: usize, len: usize) -> Result<(), CudaError> {
        assert!(self.busy && at + len <= from.len(), "a copy of {len} bytes at {at} belongs to work under way");
        let Some(to) = to.place(at, len) else { return Ok(()) };
        self.gpu.enter()?;
        let (from, stream) = (from.address() + at as u64, self.stream.cu_stream());
        // SAFETY: both ranges are `len` bytes long and stay while this is busy: who owns the ring waits for its lanes.
        // These bytes are reported when the work is done.
        let queued = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, len, stream) };
        queued.result().map_err(failed("cuMemcpyDtoHAsync"))
    }

    fn clear(&mut self, at: CUdeviceptr, bytes: usize) -> Result<(), CudaError> {
        self.gpu.enter()?;
        // SAFETY: the bytes lie in the device's output.
        unsafe { result::memset_d8_async(at, 0, bytes, self.stream.cu_stream()) }.map_err(failed("cuMemsetD8Async"))
    }

    /// Copies a part of the device's output into ours.
    fn fetch(&mut self, at: usize, bytes: usize) -> Result<(), CudaError> {
        let from = self.output_part(at, bytes);
        self.gpu.enter()?;
        let to = &mut self.output.bytes_mut()[at..at + bytes];
        // SAFETY: `to` lies in pinned memory that nobody reads or writes while `busy`.
        unsafe { result::memcpy_dtoh_async(to, from, self.stream.cu_stream()) }.map_err(failed("cuMemcpyDtoHAsync"))
    }

    /// Where a part of the input lies on the device. Checked: kernels read any address that they get.
    fn input_part(&self, at: usize, bytes: usize) -> CUdeviceptr {
        assert!(
            at.is_multiple_of(8) && at + bytes <= self.input.bytes().len(),
            "{bytes} bytes at {at} of a lane's input"
        );
        self.device_input.address + at as u64
    }

    /// The same of the output, which kernels write.
    fn output_part(&self, at: usize, bytes: usize) -> CUdeviceptr {
        assert!(
            at.is_multiple_of(4) && at + bytes <= self.output.bytes().len(),
            "{bytes} bytes at {at} of a lane's output"
        );
        self.device_output.address + at as u64
    }

    /// Whether the work is done, without waiting.
    ///
    /// # Errors
    /// The driver's: what has gone wrong in the work.
    pub fn poll_done(&mut self) -> Result<bool, CudaError> {
        self.gpu.enter()?;
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
            CUresult::CUDA_ERROR_NOT_READY => return Ok(false),
            status => status.result().map_err(failed("cuStreamQuery"))?,
        }
        self.busy = false;
        Ok(true)
    }

    /// Waits for the work.
    ///
    /// # Errors
    /// As [`Self::poll_done`].
    pub fn wait(&mut self) -> Result<(), CudaError> {
        self.stream.synchronize().map_err(failed("cuStreamSynchronize"))?;
        self.busy = false;
        Ok(())
    }
}

/// # Safety
/// The parameters are those of the function, which writes only to the device's output.
unsafe fn start(launch: &mut LaunchArgs<'_>, threads: usize) -> Result<(), CudaError> {
    let (blocks, block) = (threads.div_ceil(BLOCK_THREADS) as u32, BLOCK_THREADS as u32);
    let grid = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (block, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: by the caller's promise; the driver copies the parameters before it returns.
    unsafe { launch.launch(grid) }.map(|_| ()).map_err(failed("cuLaunchKernel"))
}

impl Drop for Lane {
    fn drop(&mut self) {
        // If that fails the device is lost, and writes nothing any more.
        if self.busy && self.wait().is_err() {
            tracing::debug!("GPU {}: a lane ends with its work unfinished", self.gpu.index());
        }
    }
}
