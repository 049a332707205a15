// SPDX-License-Identifier: Apache-2.0
//! One GPU: its primary context with our kernels in it.
//! Promise: what is made of it holds it, so the context outlives every copy; everything is undone when it is dropped.
//! Source: CUDA Driver API, "Primary Context Management", "Module Management".

use std::ffi::{c_int, c_void, CStr};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::api::{Api, CudaError, ATTRIBUTE_CAPABILITY, NO_DEVICE};

/// The kernels; made of kernels.cu by make_ptx.py, which lie beside it. The driver compiles them for its GPU.
const KERNELS: &CStr =
    match CStr::from_bytes_with_nul(concat!(include_str!("../../../kernels/kernels.ptx"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("text has no zero bytes"),
    };
/// What the driver's library is called on Linux.
const DRIVER: &CStr = c"libcuda.so.1";

/// Why there is no GPU to work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    #[error(
        "NVIDIA's driver cannot be loaded ({0}); install it (nothing else of CUDA is needed), or do without a GPU"
    )]
    NoDriver(String),
    #[error("NVIDIA's driver has no function {0}: it is older than release 520; install a newer one")]
    OldDriver(&'static str),
    #[error("there is no GPU {asked}: the driver sees {count}, numbered from 0 (is CUDA_VISIBLE_DEVICES set?)")]
    NoDevice { asked: u32, count: u32 },
    #[error("GPU {index}: {source}; our kernels need driver release 520 or later, and compute capability 7.0")]
    Kernels { index: u32, source: CudaError },
    #[error(transparent)]
    Driver(#[from] CudaError),
}

/// An open GPU.
pub struct Gpu {
    api: Api,
    index: u32,
    device: c_int,
    context: NonNull<c_void>,
    module: *mut c_void,
    pub(super) prbs31_errors: *mut c_void,
    pub(super) charges: *mut c_void,
    pub(super) read_fragments: *mut c_void,
}

// SAFETY: the driver may be called from any thread; every call of ours first makes the context that thread's own.
unsafe impl Send for Gpu {}
// SAFETY: as above; nothing in it changes once it is open.
unsafe impl Sync for Gpu {}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gpu({})", self.index)
    }
}

impl Gpu {
    /// Loads the driver, opens GPU `index` and gives it our kernels.
    ///
    /// # Errors
    /// [`GpuError`]: no driver, no such GPU, one that does not take the kernels.
    pub fn open(index: u32) -> Result<Arc<Gpu>, GpuError> {
        Gpu::open_with(index, DRIVER)
    }

    /// The same with another library than the one that the system calls the driver.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(index: u32, driver: &CStr) -> Result<Arc<Gpu>, GpuError> {
        let api = Api::load(driver).map_err(GpuError::NoDriver)?.map_err(GpuError::OldDriver)?;
        let mut count = 0;
        // SAFETY: 0 is the only flag there is.
        match api.check("cuInit", unsafe { (api.init)(0) }) {
            Err(error) if error.status == NO_DEVICE => return Err(GpuError::NoDevice { asked: index, count: 0 }),
            other => other?,
        }
        // SAFETY: `count` is a valid place for the number.
        api.check("cuDeviceGetCount", unsafe { (api.device_count)(&mut count) })?;
        let count = u32::try_from(count).unwrap_or(0);
        if index >= count {
            return Err(GpuError::NoDevice { asked: index, count });
        }
        let mut device = 0;
        // SAFETY: a valid place; the ordinal is below the count.
        api.check("cuDeviceGet", unsafe { (api.device_get)(&mut device, index as c_int) })?;
        let mut context = ptr::null_mut();
        // SAFETY: a valid place; `device` is one of the driver's. Released once, when the value is dropped.
        api.check("cuDevicePrimaryCtxRetain", unsafe { (api.context_retain)(&mut context, device) })?;
        let context = NonNull::new(context).ok_or(GpuError::NoDevice { asked: index, count })?;
        let none = ptr::null_mut();
        let (module, prbs31_errors, charges, read_fragments) = (none, none, none, none);
        let mut gpu = Gpu { api, index, device, context, module, prbs31_errors, charges, read_fragments };
        gpu.load_kernels().map_err(|source| GpuError::Kernels { index, source })?;
        Ok(Arc::new(gpu))
    }

    fn load_kernels(&mut self) -> Result<(), CudaError> {
        let api = self.enter()?;
        let mut module = ptr::null_mut();
        // SAFETY: a valid place; PTX as a text that ends with a zero byte. Unloaded once, when `self` is dropped.
        api.check("cuModuleLoadData", unsafe { (api.module_load)(&mut module, KERNELS.as_ptr().cast()) })?;
        let function = |name: &CStr| {
            let mut function = ptr::null_mut();
            // SAFETY: a valid place, a loaded module, a name that ends with a zero byte.
            let status = unsafe { (api.module_function)(&mut function, module, name.as_ptr()) };
            api.check("cuModuleGetFunction", status).map(|()| function)
        };
        let functions = || Ok((function(c"prbs31_errors")?, function(c"charges")?, function(c"read_fragments")?));
        let functions = functions();
        self.module = module;
        (self.prbs31_errors, self.charges, self.read_fragments) = functions?;
        Ok(())
    }

    /// The driver's functions, with this GPU's context current on this thread.
    pub(super) fn enter(&self) -> Result<&Api, CudaError> {
        // SAFETY: the context is retained as long as `self` lives.
        self.api.check("cuCtxSetCurrent", unsafe { (self.api.context_set_current)(self.context.as_ptr()) })?;
        Ok(&self.api)
    }

    /// Its number, as the driver counts.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// A `CUdevice_attribute` that drivers from release 520 on know.
    pub(super) fn attribute(&self, attribute: c_int) -> Result<c_int, CudaError> {
        let (api, mut value) = (self.enter()?, 0);
        // SAFETY: a valid place for the number.
        api.check("cuDeviceGetAttribute", unsafe { (api.device_attribute)(&mut value, attribute, self.device) })?;
        Ok(value)
    }

    /// What it is, for people: name, compute capability, memory, the newest CUDA that its driver speaks.
    ///
    /// # Errors
    /// The driver's.
    pub fn description(&self) -> Result<String, CudaError> {
        let (api, device) = (self.enter()?, self.device);
        let (mut name, mut bytes, mut version, mut capability) = ([0u8; 128], 0, 0, [0; 2]);
        // SAFETY: a place for 128 bytes, of which the driver writes at most as many, the last of them zero.
        let named = unsafe { (api.device_name)(name.as_mut_ptr().cast(), name.len() as c_int, device) };
        api.check("cuDeviceGetName", named)?;
        // SAFETY: a valid place for the number.
        api.check("cuDeviceTotalMem", unsafe { (api.device_memory)(&mut bytes, device) })?;
        // SAFETY: as above.
        api.check("cuDriverGetVersion", unsafe { (api.driver_version)(&mut version) })?;
        for (value, attribute) in capability.iter_mut().zip(ATTRIBUTE_CAPABILITY) {
            *value = self.attribute(attribute)?;
        }
        let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy).unwrap_or_default();
        let ([major, minor], gib) = (capability, bytes as f64 / f64::from(1 << 30));
        Ok(format!(
            "GPU {}: {name}, compute capability {major}.{minor}, {gib:.1} GiB, driver for CUDA {}.{}",
            self.index,
            version / 1000,
            version % 1000 / 10
        ))
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let Ok(api) = self.enter() else { return };
        if !self.module.is_null() {
            // SAFETY: loaded once, unloaded once; what launches its kernels holds `self`.
            unsafe { (api.module_unload)(self.module) };
        }
        // SAFETY: retained once, released once; what was made in it holds `self` and is gone.
        unsafe { (api.context_release)(self.device) };
    }
}
