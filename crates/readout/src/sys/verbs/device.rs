// SPDX-License-Identifier: Apache-2.0
//! Devices of this machine, their ports and GIDs, protection domains, and memory registered in one.
//! Promise: a registration holds its mapping; nothing outlives the device it was made of.
//! Source: ibv_get_device_list(3), ibv_query_port(3), ibv_query_gid_table(3), ibv_alloc_pd(3), ibv_reg_mr(3).

use std::ffi::{c_int, CStr};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use penstock_transport::RecvWr;
use rdma_mummy_sys as ffi;

use super::{done, owned};
use crate::sys::Mapping;

/// Whether libibverbs is on this machine. Where it is not, all else here fails.
pub fn library_is_there() -> bool {
    // SAFETY: a constant name; the handle is kept, as the library is by `rdma-mummy-sys`.
    unsafe { !libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_LAZY).is_null() }
}

/// Calls `visit` with every device of this machine.
fn with_devices<R>(visit: impl FnOnce(&[*mut ffi::ibv_device]) -> R) -> io::Result<R> {
    let mut count: c_int = 0;
    // SAFETY: `count` is a valid place for the number of devices.
    let list = owned(unsafe { ffi::ibv_get_device_list(&mut count) })?;
    // SAFETY: the list has `count` devices until it is freed, which is after the last use of the slice.
    let result = visit(unsafe { std::slice::from_raw_parts(list.as_ptr(), count.max(0) as usize) });
    // SAFETY: from ibv_get_device_list, freed once; devices that were opened stay valid.
    unsafe { ffi::ibv_free_device_list(list.as_ptr()) };
    Ok(result)
}

fn name_of(device: *mut ffi::ibv_device) -> String {
    // SAFETY: `device` is of a list that is not yet freed; its name ends with a zero byte.
    unsafe { CStr::from_ptr(ffi::ibv_get_device_name(device)) }.to_string_lossy().into_owned()
}

/// Names of this machine's devices.
///
/// # Errors
/// The kernel has no verbs, or they may not be used.
pub fn device_names() -> io::Result<Vec<String>> {
    with_devices(|devices| devices.iter().map(|device| name_of(*device)).collect())
}

/// One line of a device's table of GIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GidEntry {
    pub gid: [u8; 16],
    pub port: u8,
    pub index: u8,
    /// As `enum ibv_gid_type_sysfs` and the driver have it: 0 InfiniBand, 1 RoCE v1, 2 RoCE v2.
    pub kind: u32,
    /// Index of the network interface; 0 if the driver does not say.
    pub interface: u32,
}

/// What a port can do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortState {
    pub active: bool,
    /// `enum ibv_mtu`: 1 is 256 bytes, 5 is 4096.
    pub mtu_code: u32,
}

/// An open device.
#[derive(Debug)]
pub struct Context(pub(super) NonNull<ffi::ibv_context>);

// SAFETY: libibverbs may be called from any thread (ibv_open_device(3)); we add no state of our own.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens the device of this name.
    ///
    /// # Errors
    /// `NotFound` if there is none; otherwise the driver's.
    pub fn open(name: &str) -> io::Result<Arc<Context>> {
        let opened = with_devices(|devices| {
            let device = devices.iter().find(|device| name_of(**device) == name).ok_or(io::ErrorKind::NotFound)?;
            // SAFETY: the device is of a list that is not yet freed.
            owned(unsafe { ffi::ibv_open_device(*device) })
        })??;
        Ok(Arc::new(Context(opened)))
    }

    /// State of a port, numbered from 1.
    ///
    /// # Errors
    /// There is no such port.
    pub fn port(&self, port: u8) -> io::Result<PortState> {
        // SAFETY: a plain C struct of integers.
        let mut attr: ffi::ibv_port_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the device is open and `attr` is large enough; the call fills it.
        done(unsafe { ffi::ibv_query_port(self.0.as_ptr(), port, &mut attr) })?;
        let active = attr.state == ffi::ibv_port_state::IBV_PORT_ACTIVE;
        Ok(PortState { active, mtu_code: attr.active_mtu })
    }

    /// The GIDs of all ports.
    ///
    /// # Errors
    /// The driver's.
    pub fn gids(&self) -> io::Result<Vec<GidEntry>> {
        // The kernel takes the table's size in 16 bits: 1638 entries are the most.
        const MOST: usize = 1024;
        // SAFETY: plain C structs of integers.
        let mut table: Vec<ffi::ibv_gid_entry> = vec![unsafe { std::mem::zeroed() }; MOST];
        // SAFETY: the table has room for `MOST` entries.
        let count = unsafe { ffi::ibv_query_gid_table(self.0.as_ptr(), table.as_mut_ptr(), MOST, 0) };
        let Ok(count) = usize::try_from(count) else {
            return Err(io::Error::from_raw_os_error(count.unsigned_abs() as i32));
        };
        let entry = |e: &ffi::ibv_gid_entry| GidEntry {
            // SAFETY: both variants of the union are 16 plain bytes.
            gid: unsafe { e.gid.raw },
            port: e.port_num as u8,
            index: e.gid_index as u8,
            kind: e.gid_type,
            interface: e.ndev_ifindex,
        };
        Ok(table[..count.min(MOST)].iter().map(entry).collect())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; what was made of it holds an `Arc` and is gone.
        unsafe { ffi::ibv_close_device(self.0.as_ptr()) };
    }
}

/// A protection domain: queue pairs reach only memory of their own domain.
#[derive(Debug)]
pub struct Domain {
    pub(super) raw: NonNull<ffi::ibv_pd>,
    _context: Arc<Context>,
}

// SAFETY: as for `Context`.
unsafe impl Send for Domain {}
// SAFETY: as for `Context`.
unsafe impl Sync for Domain {}

impl Domain {
    /// # Errors
    /// The driver's.
    pub fn new(context: &Arc<Context>) -> io::Result<Arc<Domain>> {
        // SAFETY: the device is open.
        let raw = owned(unsafe { ffi::ibv_alloc_pd(context.0.as_ptr()) })?;
        Ok(Arc::new(Domain { raw, _context: context.clone() }))
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: allocated once, freed once; what was made of it holds an `Arc` and is gone.
        unsafe { ffi::ibv_dealloc_pd(self.raw.as_ptr()) };
    }
}

/// Memory that the NIC may write, and peers who know its key.
#[derive(Debug)]
pub struct Registration {
    raw: NonNull<ffi::ibv_mr>,
    memory: Arc<Mapping>,
    len: usize,
    pub(super) domain: Arc<Domain>,
}

// SAFETY: as for `Context`.
unsafe impl Send for Registration {}
// SAFETY: as for `Context`.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers the first `len` bytes of a mapping for local and remote writes.
    ///
    /// # Errors
    /// The mapping is shorter; the limit of locked memory; the driver's.
    pub fn new(domain: &Arc<Domain>, memory: &Arc<Mapping>, len: usize) -> io::Result<Registration> {
        use ffi::ibv_access_flags as Access;
        Registration::with_access(domain, memory, len, Access::IBV_ACCESS_LOCAL_WRITE | Access::IBV_ACCESS_REMOTE_WRITE)
    }

    /// The same for local writes alone: SENDs land there, and no peer's WRITE.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn local(domain: &Arc<Domain>, memory: &Arc<Mapping>, len: usize) -> io::Result<Registration> {
        Registration::with_access(domain, memory, len, ffi::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE)
    }

    fn with_access(
        domain: &Arc<Domain>,
        memory: &Arc<Mapping>,
        len: usize,
        access: ffi::ibv_access_flags,
    ) -> io::Result<Registration> {
        if len > memory.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let start = memory.addr() as *mut libc::c_void;
        // SAFETY: the range is mapped, and stays so: the registration holds the mapping until after it is undone.
        let raw = owned(unsafe { ffi::ibv_reg_mr(domain.raw.as_ptr(), start, len, access.0 as c_int) })?;
        Ok(Registration { raw, memory: memory.clone(), len, domain: domain.clone() })
    }

    /// The key that peers must send.
    pub fn rkey(&self) -> u32 {
        // SAFETY: `raw` is valid until it is dropped.
        unsafe { self.raw.as_ref().rkey }
    }

    pub(super) fn lkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { self.raw.as_ref().lkey }
    }

    /// Whether a receive lies inside.
    pub(super) fn holds(&self, wr: &RecvWr) -> bool {
        let offset = wr.va.checked_sub(self.memory.addr());
        offset.and_then(|offset| offset.checked_add(u64::from(wr.len))).is_some_and(|end| end <= self.len as u64)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: registered once, undone once; the queue pair that uses it is gone, since it owns it.
        unsafe { ffi::ibv_dereg_mr(self.raw.as_ptr()) };
    }
}
