// SPDX-License-Identifier: Apache-2.0
//! One GPU: its primary context with our kernels in it.
//! Promise: every object made from it keeps it alive, so the context outlives every copy; everything is released on
//! drop. A missing or old driver is an error, though `cudarc` panics where a library or a function is missing.
//! Source: CUDA Driver API, "Primary Context Management", "Module Management".

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_attribute, CUresult};
use cudarc::driver::{result, sys, CudaContext, CudaFunction, DriverError};
use cudarc::nvrtc::Ptx;

use super::error::{failed, CudaError};

/// The kernels; make_ptx.py makes them of kernels.cu. The driver compiles them for its GPU.
const KERNELS: &str = include_str!("../../kernels/kernels.ptx");
/// What the driver's library is called on Linux.
const DRIVER: &str = "libcuda.so.1";
/// CUDA 11.8, which release 520 has: all functions of ours are in it, and it takes our kernels.
const OLDEST: i32 = 11_080;

/// Why there is no GPU to work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    #[error(
        "NVIDIA's driver cannot be loaded ({0}); install it (nothing else of CUDA is needed), or do without a GPU"
    )]
    NoDriver(String),
    #[error(
        "NVIDIA's driver is for CUDA {}.{}, which is older than release 520 (CUDA 11.8); install a newer one",
        version / 1000, version % 1000 / 10
    )]
    OldDriver { version: i32 },
    #[error("there is no GPU {index}: the driver sees {count}, numbered from 0 (is CUDA_VISIBLE_DEVICES set?)")]
    NoDevice { index: u32, count: u32 },
    #[error("GPU {index}: {source}; our kernels need driver release 520 or later, and compute capability 7.0")]
    Kernels { index: u32, source: CudaError },
    #[error(transparent)]
    Driver(#[from] CudaError),
}

/// An open GPU.
#[derive(Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    pub(super) prbs31_errors: CudaFunction,
    pub(super) charges: CudaFunction,
    pub(super) read_fragments: CudaFunction,
}

impl Gpu {
    /// Loads the driver, opens GPU `index` and gives it our kernels. A process loads one driver, and for good.
    ///
    /// # Errors
    /// [`GpuError`]: no driver, no such GPU, one that does not take the kernels.
    pub fn open(index: u32) -> Result<Arc<Gpu>, GpuError> {
        load_driver()?;
        match result::init() {
            Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => return Err(GpuError::NoDevice { index, count: 0 }),
            other => other.map_err(failed("cuInit"))?,
        }
        let count = result::device::get_count().map_err(failed("cuDeviceGetCount"))?;
        let count = u32::try_from(count).unwrap_or(0);
        if index >= count {
            return Err(GpuError::NoDevice { index, count });
        }
        let context = CudaContext::new(index as usize).map_err(failed("cuDevicePrimaryCtxRetain"))?;
        // SAFETY: no stream waits for another's work here: a lane waits for its own before its memory is used again.
        unsafe { context.disable_event_tracking() };
        let kernels = |source| GpuError::Kernels { index, source };
        let module =
            context.load_module(Ptx::from_src(KERNELS)).map_err(failed("cuModuleLoadData")).map_err(kernels)?;
        let function = |name| module.load_function(name).map_err(failed("cuModuleGetFunction")).map_err(kernels);
        let (prbs31_errors, charges) = (function("prbs31_errors")?, function("charges")?);
        let read_fragments = function("read_fragments")?;
        Ok(Arc::new(Gpu { context, prbs31_errors, charges, read_fragments }))
    }

    /// Its context, current on this thread.
    pub(super) fn enter(&self) -> Result<&Arc<CudaContext>, CudaError> {
        self.context.bind_to_thread().map_err(failed("cuCtxSetCurrent"))?;
        Ok(&self.context)
    }

    /// Its number, as the driver counts.
    pub fn index(&self) -> u32 {
        self.context.ordinal() as u32
    }

    /// An attribute that drivers from release 520 on know.
    pub(super) fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32, CudaError> {
        self.context.attribute(attribute).map_err(failed("cuDeviceGetAttribute"))
    }

    /// What it is, for people: name, compute capability, memory, the newest CUDA that its driver speaks.
    ///
    /// # Errors
    /// The driver's.
    pub fn description(&self) -> Result<String, CudaError> {
        let name = self.context.name().map_err(failed("cuDeviceGetName"))?;
        let bytes = self.context.total_mem().map_err(failed("cuDeviceTotalMem"))?;
        let (major, minor) = self.context.compute_capability().map_err(failed("cuDeviceGetAttribute"))?;
        let (version, gib) = (driver_version()?, bytes as f64 / f64::from(1 << 30));
        Ok(format!(
            "GPU {}: {name}, compute capability {major}.{minor}, {gib:.1} GiB, driver for CUDA {}.{}",
            self.index(),
            version / 1000,
            version % 1000 / 10
        ))
    }
}

/// Makes sure that `cudarc` finds the driver, and all that we use in it.
fn load_driver() -> Result<(), GpuError> {
    // SAFETY: what the driver's initialisers do is the driver's to answer for.
    let driver = unsafe { libloading::Library::new(DRIVER) };
    let reason = |error: libloading::Error| error.source().map_or_else(|| error.to_string(), ToString::to_string);
    // It stays loaded: it is among the names that `cudarc` tries.
    driver.map(std::mem::forget).map_err(|error| GpuError::NoDriver(reason(error)))?;
    match driver_version()? {
        version if version < OLDEST => Err(GpuError::OldDriver { version }),
        _ => Ok(()),
    }
}

/// The newest CUDA that the driver speaks: 1000 times the major version and 10 times the minor one.
fn driver_version() -> Result<i32, CudaError> {
    let mut version = 0;
    // SAFETY: a valid place for the number.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(failed("cuDriverGetVersion"))?;
    Ok(version)
}
