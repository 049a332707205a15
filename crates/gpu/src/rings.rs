// SPDX-License-Identifier: Apache-2.0
//! Rings on the device, each with a counterpart on the host that receives headers, and payloads if they are needed.
//! Promise: bytes on the host equal those on the device, or are absent. Source: docs/gpu.md, "GPUDirect".

use std::sync::{Arc, PoisonError, RwLock};

use penstock_readout::backend::DeviceMemory;
use penstock_readout::Mapping;

use crate::cuda::{CudaError, DmaBuf, Gpu, HostSide};

/// One ring, or the pool of all boards.
#[derive(Debug)]
pub struct DeviceRing {
    pub(crate) device: Arc<DmaBuf>,
    pub(crate) host: HostSide,
    len: usize,
}

impl DeviceRing {
    /// `len` bytes on the device, for which the first `len` of `mapping` stand on the host.
    pub(crate) fn new(gpu: &Arc<Gpu>, mapping: Arc<Mapping>, len: usize) -> Result<DeviceRing, CudaError> {
        let device = Arc::new(DmaBuf::allocate(gpu, len)?);
        Ok(DeviceRing { device, host: HostSide::new(mapping), len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What a NIC registers.
    pub(crate) fn memory(&self) -> Arc<dyn DeviceMemory> {
        self.device.clone()
    }

    fn starts_at(&self) -> u64 {
        self.host.mapping().addr()
    }
}

/// Bytes of a ring on the device.
#[derive(Debug, Clone)]
pub(crate) struct OnDevice {
    ring: Arc<DeviceRing>,
    at: usize,
    pub(crate) len: usize,
}

impl OnDevice {
    /// Address of the first byte, on the device.
    pub(crate) fn address(&self) -> u64 {
        self.ring.device.address() + self.at as u64
    }

    /// Brings them to the host, and waits for it.
    pub(crate) fn read(&self) -> Result<Vec<u8>, CudaError> {
        self.ring.device.read(self.at, self.len)
    }
}

/// All rings on one device.
#[derive(Debug, Default)]
pub struct DeviceRings {
    /// The rings by address of the host's side.
    rings: RwLock<Vec<Arc<DeviceRing>>>,
}

impl DeviceRings {
    pub(crate) fn add(&self, ring: Arc<DeviceRing>) {
        let mut rings = self.rings.write().unwrap_or_else(PoisonError::into_inner);
        let at = rings.partition_point(|other| other.starts_at() < ring.starts_at());
        rings.insert(at, ring);
    }

    pub(crate) fn pin(&self, gpu: &Arc<Gpu>) -> Result<(), CudaError> {
        let rings = self.rings.read().unwrap_or_else(PoisonError::into_inner);
        rings.iter().try_for_each(|ring| ring.host.pin(gpu))
    }

    /// Where the bytes lie on the device that stand for these; none if they are no ring's: copied out of a pool.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<OnDevice> {
        let start = bytes.as_ptr() as u64;
        let rings = self.rings.read().unwrap_or_else(PoisonError::into_inner);
        let ring = rings[..rings.partition_point(|ring| ring.starts_at() <= start)].last()?;
        let at = usize::try_from(start - ring.starts_at()).ok()?;
        let inside = at.checked_add(bytes.len()).is_some_and(|end| end <= ring.len);
        inside.then(|| OnDevice { ring: ring.clone(), at, len: bytes.len() })
    }
}
