// SPDX-License-Identifier: Apache-2.0
//! Rings that lie on another device, such as a GPU: the memory that a NIC can be given there, and back ends that take it.
//! Promise: memory stays as long as a registration holds it; a NIC that cannot take it is an error and nothing else.
//! Source: kernel documentation `driver-api/dma-buf`; ibv_reg_dmabuf_mr(3).

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::{Backend, BackendError, LocalQp, PoolSpec, QpSpec};

/// Memory of a device, which its driver exports as a dma-buf.
#[allow(clippy::len_without_is_empty, reason = "it is never empty")]
pub trait DeviceMemory: Debug + Send + Sync {
    /// Of the first byte, on the device.
    fn address(&self) -> u64;

    /// Bytes.
    fn len(&self) -> usize;

    /// The dma-buf: its first byte is that at [`Self::address`].
    fn file(&self) -> BorrowedFd<'_>;
}

/// A back end whose NIC can be given such memory.
pub trait WritesDevice: Backend {
    /// The NIC's name.
    fn device(&self) -> &str;

    /// Registers such memory and lets it go again, to see whether that is possible.
    ///
    /// # Errors
    /// The library has no such function; the driver's.
    fn can_write(&mut self, memory: &Arc<dyn DeviceMemory>) -> io::Result<()>;

    /// [`Backend::create_qp`] over memory of a device: the base is its address there.
    ///
    /// # Errors
    /// As that.
    fn create_qp_on(&mut self, spec: &QpSpec, memory: &Arc<dyn DeviceMemory>) -> Result<LocalQp, BackendError>;

    /// [`Backend::share_receives`] over memory of a device.
    ///
    /// # Errors
    /// As that.
    fn share_receives_on(&mut self, pool: &PoolSpec, memory: &Arc<dyn DeviceMemory>) -> Result<u64, BackendError>;
}
