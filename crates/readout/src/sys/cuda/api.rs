// SPDX-License-Identifier: Apache-2.0
//! The driver's entry points, found in `libcuda.so.1` by name, and its errors.
//! Promise: a missing library or function is an error with its name, never a panic.
//! Source: cuda.h of CUDA 12.9. Functions that have a `_v2` are called by that name, as the header's macros do.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::ptr;

/// `CUresult`.
pub type Status = c_int;
/// `CUdeviceptr`: an address on the device.
pub type DeviceAddress = u64;

pub const SUCCESS: Status = 0;
pub const OUT_OF_MEMORY: Status = 2;
pub const NO_DEVICE: Status = 100;
pub const NOT_READY: Status = 600;
/// `CU_STREAM_NON_BLOCKING`: work of the default stream does not hold it up.
pub const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
pub const ATTRIBUTE_CAPABILITY: [c_int; 2] = [75, 76];
/// `CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS`, of which `.._OPTION_HOST` is a bit.
pub const ATTRIBUTE_FLUSH_OPTIONS: c_int = 117;
pub const FLUSH_BY_HOST: c_int = 1;
/// `CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING`; from `.._ORDERING_OWNER` on the device sees writes in order.
pub const ATTRIBUTE_WRITES_ORDERING: c_int = 118;
pub const ORDERING_OWNER: c_int = 100;
/// `CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED`.
pub const ATTRIBUTE_DMA_BUF: c_int = 124;
/// `CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD`.
pub const DMA_BUF_FD: c_int = 1;
/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`: synchronous copies wait for what has come from outside.
pub const SYNC_MEMOPS: c_int = 6;
/// `CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX` and `.._TO_OWNER`.
pub const FLUSH_CURRENT_CONTEXT: c_int = 0;
pub const FLUSH_TO_OWNER: c_int = 100;

macro_rules! entry_points {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The driver's functions. Each may be called from any thread while the library is loaded, which it is for good.
        pub struct Api {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl Api {
            /// # Errors
            /// The name of a function that the library does not have.
            ///
            /// # Safety
            /// `library` is a handle of dlopen(3) that is never closed, of a library whose functions of these names
            /// have the types that cuda.h gives them.
            unsafe fn of(library: *mut c_void) -> Result<Api, &'static str> {
                $(
                    // SAFETY: the handle is valid, and the name ends with a zero byte.
                    let $name = unsafe { libc::dlsym(library, concat!($symbol, "\0").as_ptr().cast()) };
                    if $name.is_null() {
                        return Err($symbol);
                    }
                )*
                Ok(Api {
                    // SAFETY: not null, and by the caller's promise a function of this type.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> Status>($name)
                    },)*
                })
            }
        }
    };
}

entry_points! {
    init = "cuInit" (c_uint);
    driver_version = "cuDriverGetVersion" (*mut c_int);
    error_name = "cuGetErrorName" (Status, *mut *const c_char);
    error_string = "cuGetErrorString" (Status, *mut *const c_char);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut c_int, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    device_memory = "cuDeviceTotalMem_v2" (*mut usize, c_int);
    context_retain = "cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2" (c_int);
    context_set_current = "cuCtxSetCurrent" (*mut c_void);
    module_load = "cuModuleLoadData" (*mut *mut c_void, *const c_void);
    module_unload = "cuModuleUnload" (*mut c_void);
    module_function = "cuModuleGetFunction" (*mut *mut c_void, *mut c_void, *const c_char);
    device_alloc = "cuMemAlloc_v2" (*mut DeviceAddress, usize);
    device_free = "cuMemFree_v2" (DeviceAddress);
    host_alloc = "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    host_free = "cuMemFreeHost" (*mut c_void);
    stream_create = "cuStreamCreate" (*mut *mut c_void, c_uint);
    stream_destroy = "cuStreamDestroy_v2" (*mut c_void);
    stream_query = "cuStreamQuery" (*mut c_void);
    stream_synchronize = "cuStreamSynchronize" (*mut c_void);
    /// To the device, from pinned memory.
    copy_in = "cuMemcpyHtoDAsync_v2" (DeviceAddress, *const c_void, usize, *mut c_void);
    /// From the device, into pinned memory.
    copy_out = "cuMemcpyDtoHAsync_v2" (*mut c_void, DeviceAddress, usize, *mut c_void);
    /// From the device, into any memory; waits.
    copy_out_now = "cuMemcpyDtoH_v2" (*mut c_void, DeviceAddress, usize);
    /// Pins memory that is mapped already.
    host_register = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    host_unregister = "cuMemHostUnregister" (*mut c_void);
    /// Place for a file descriptor, address, bytes, kind of handle, flags.
    export = "cuMemGetHandleForAddressRange" (*mut c_void, DeviceAddress, usize, c_int, u64);
    pointer_set_attribute = "cuPointerSetAttribute" (*const c_void, c_int, DeviceAddress);
    flush_writes = "cuFlushGPUDirectRDMAWrites" (c_int, c_int);
    set_words = "cuMemsetD32Async" (DeviceAddress, c_uint, usize, *mut c_void);
    /// Function; blocks in x, y, z; threads in x, y, z; shared memory, stream, parameters, null.
    launch = "cuLaunchKernel" (
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, *mut *mut c_void,
        *mut *mut c_void
    );
}

/// What a call of the driver came back with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({status}): {text}")]
pub struct CudaError {
    /// The driver's function.
    pub call: &'static str,
    /// `CUresult`.
    pub status: i32,
    /// As cuda.h calls it.
    pub name: String,
    pub text: String,
}

impl Api {
    /// Loads a library that is never unloaded. The outer error is why it cannot be; the inner one a function that it lacks.
    pub fn load(library: &CStr) -> Result<Result<Api, &'static str>, String> {
        // SAFETY: the name ends with a zero byte; what the driver's initialisers do is the driver's to answer for.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: dlerror gives null or a text that holds until this thread's next call of its kind.
            let text = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
            return Err(text.map_or_else(String::new, |text| text.to_string_lossy().into_owned()));
        }
        // SAFETY: valid and never closed; a library of the driver's name has the driver's functions.
        Ok(unsafe { Api::of(handle) })
    }

    /// Whether a call went well.
    pub fn check(&self, call: &'static str, status: Status) -> Result<(), CudaError> {
        match status {
            SUCCESS => Ok(()),
            _ => Err(self.error(call, status)),
        }
    }

    /// A status in words.
    pub fn error(&self, call: &'static str, status: Status) -> CudaError {
        let text = |of: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = ptr::null();
            // SAFETY: `text` is a valid place for a pointer.
            let known = unsafe { of(status, &mut text) } == SUCCESS && !text.is_null();
            // SAFETY: the driver's texts are constants that end with a zero byte.
            known.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let name = text(self.error_name).unwrap_or_else(|| "an error".to_owned());
        let text = text(self.error_string).unwrap_or_else(|| "one that the driver does not name".to_owned());
        CudaError { call, status, name, text }
    }
}
