// SPDX-License-Identifier: Apache-2.0
//! NVIDIA GPUs by the driver's own interface, in the bindings of `cudarc`, which load it at run time: nothing else of CUDA is
//! needed, neither to build nor to run.
//! Promise: memory that a copy or a kernel still uses can be neither changed, nor read half done, nor freed.
//! Source: CUDA Driver API (cuda.h of CUDA 12.9).

mod device;
mod dma_buf;
mod error;
mod lane;
mod memory;

pub use device::{Gpu, GpuError};
pub use dma_buf::{DirectError, DmaBuf, HostSide, Visibility};
pub use error::CudaError;
pub use lane::{
    ChargeWork, Lane, PrbsWork, ReadWork, Work, ADDRESS_BYTES, CHARGES_BYTES, CRC_TABLES_BYTES, FOUND_BYTES,
    JUMPS_BYTES, PART_BYTES, PIECE_BYTES, READ_BYTES,
};
