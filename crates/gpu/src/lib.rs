// SPDX-License-Identifier: Apache-2.0
//! Processes events on an NVIDIA GPU while the readout stores them: compares PRBS-31, or computes the camera's charges
//! and passes them on; the fragments are copied to the GPU, or the NIC writes them there. Experimental: never run on a
//! GPU.
//! Promise: the GPU's results equal those of a processor, to the bit; pinned memory is bounded; a slow GPU holds the
//! boards back; a GPU that fails loses only its own results and the rings in its memory.
//! Source: docs/gpu.md.
//!
//! ```text
//! store -> inner sink
//!    \--> batch being filled -> under way: copy in, kernel, copy out -> results, in order -> pattern reports or a sink
//!         (pinned memory)       (a stream each)                          batch is free again
//! ```
//!
//! | part | for |
//! |---|---|
//! | [`Gpu`] | the driver, loaded at run time, and our kernels (`kernels/kernels.cu`) on one device |
//! | [`OnGpu`] | a [sink](penstock_readout::EventSink) around another one |
//! | [`GpuDirect`] | a [back end](penstock_readout::backend::Backend) around another one, with its rings on the device |
//! | [`prove`] | all kernels compared with the processor |
//!
//! Only `cuda` holds `unsafe`.
#![deny(unsafe_code)]

mod batch;
#[allow(unsafe_code)]
mod cuda;
mod direct;
mod proof;
mod reading;
mod rings;
mod sink;

pub use batch::BatchSize;
pub use cuda::{CudaError, DirectError, DmaBuf, Gpu, GpuError, Visibility};
pub use direct::{devices_that_write, exported, GpuDirect};
pub use proof::{prove, Proof};
pub use rings::{DeviceRing, DeviceRings};
pub use sink::{GpuConfig, GpuReport, GpuWork, OnGpu};
