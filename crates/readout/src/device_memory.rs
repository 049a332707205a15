// SPDX-License-Identifier: Apache-2.0
//! Memory of another device, such as a GPU, that a NIC can write.
//! Promise: the memory exists as long as a registration holds it.
//! Source: kernel documentation `driver-api/dma-buf`; ibv_reg_dmabuf_mr(3).

use std::fmt::Debug;
use std::os::fd::BorrowedFd;

/// Memory of a device, which its driver exports as a dma-buf.
#[allow(clippy::len_without_is_empty, reason = "it is never empty")]
pub trait DeviceMemory: Debug + Send + Sync {
    /// Address of the first byte, on the device.
    fn address(&self) -> u64;

    /// Bytes.
    fn len(&self) -> usize;

    /// The dma-buf: its first byte is that at [`Self::address`].
    fn file(&self) -> BorrowedFd<'_>;
}
