// SPDX-License-Identifier: Apache-2.0
//! Errors of the driver's calls.
//! Promise: each error names the call, and the driver's error number and text.
//! Source: CUDA Driver API, "Error Handling".

use cudarc::driver::DriverError;

/// What a call of the driver came back with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {name} ({status}): {text}")]
pub struct CudaError {
    /// The driver's function.
    pub call: &'static str,
    /// `CUresult`.
    pub status: i32,
    /// The name in cuda.h.
    pub name: String,
    pub text: String,
}

/// An error of `call`.
pub(super) fn failed(call: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| {
        let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
        let text = text.unwrap_or_else(|_| "one that the driver does not name".to_owned());
        CudaError { call, status: error.0 as i32, name: format!("{:?}", error.0), text }
    }
}
