// SPDX-License-Identifier: Apache-2.0
//! Events on an NVIDIA GPU while the readout stores them: PRBS-31 compared there, or the camera's charges computed and
//! handed on; the fragments copied there, or written there by the NIC. Experimental: it has never run on a GPU.
//! Promise: what the GPU says is what a processor would say, to the bit; pinned memory is bounded, a GPU that is slow holds the
//! boards back, and one that fails takes nothing with it but its own results, and the rings that lie on it.
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
