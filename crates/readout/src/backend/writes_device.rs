// SPDX-License-Identifier: Apache-2.0
//! Back ends whose NIC writes rings on another device, such as a GPU.
//! Promise: a NIC that cannot write there causes an error and no other effect.
//! Source: kernel documentation `driver-api/dma-buf`; ibv_reg_dmabuf_mr(3).

use std::io;
use std::sync::Arc;

use super::{Backend, BackendError, LocalQp, PoolSpec, QpSpec};
use crate::device_memory::DeviceMemory;

/// A back end whose NIC can write [`DeviceMemory`].
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
