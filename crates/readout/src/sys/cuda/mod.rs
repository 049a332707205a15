// SPDX-License-Identifier: Apache-2.0
//! NVIDIA GPUs by the driver's own interface, loaded at run time: nothing else of CUDA is needed, neither to build nor to run.
//! Promise: memory that a copy or a kernel still uses can be neither changed, nor read half done, nor freed.
//! Source: CUDA Driver API (cuda.h of CUDA 12.9).

mod api;
mod device;
mod lane;
mod memory;

pub use api::CudaError;
pub use device::{Gpu, GpuError};
pub use lane::{ChargeWork, Lane, PrbsWork, Work, CHARGES_BYTES, FOUND_BYTES, PIECE_BYTES};
