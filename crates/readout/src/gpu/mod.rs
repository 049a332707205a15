// SPDX-License-Identifier: Apache-2.0
//! Events on a GPU while they are stored: PRBS-31 compared there, or the camera's charges computed and handed on.
//! Promise: what the GPU says is what a processor would say, to the bit; pinned memory is bounded, a GPU that is slow holds the
//! boards back, and one that fails takes nothing with it but its own results.
//! Source: docs/readout.md, "GPUs".
//!
//! ```text
//! store -> inner sink
//!    \--> batch being filled -> under way: copy in, kernel, copy out -> results, in order -> pattern reports or a sink
//!         (pinned memory)       (a stream each)                          batch is free again
//! ```

mod batch;
mod proof;
mod reading;
mod rings;
mod sink;

pub use batch::BatchSize;
pub use proof::{prove, Proof};
pub(crate) use reading::{Filled, Reading};
pub use rings::{DeviceRing, DeviceRings};
pub use sink::{GpuConfig, GpuReport, GpuWork, OnGpu};

pub use crate::sys::cuda::{CudaError, DirectError, DmaBuf, Gpu, GpuError, Visibility};
