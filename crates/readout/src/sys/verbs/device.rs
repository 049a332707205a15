// SPDX-License-Identifier: Apache-2.0
//! Devices of this machine, their ports and GIDs, and protection domains.
//! Promise: no object outlives the device from which it was made.
//! Source: ibv_get_device_list(3), ibv_query_port(3), ibv_query_gid_table(3), ibv_alloc_pd(3).

use std::ffi::{c_int, CStr};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use rdma_mummy_sys as ffi;

use super::{done, owned};

/// Whether libibverbs is on this machine and can be loaded: a static executable loads none. Where it is not, all else
/// here fails.
pub fn library_is_there() -> bool {
    // SAFETY: a constant name; the handle is kept, as the library is by `rdma-mummy-sys`.
    !cfg!(target_feature = "crt-static")
        && unsafe { !libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_LAZY).is_null() }
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
    /// The number of `enum ibv_gid_type_sysfs` and the driver: 0 InfiniBand, 1 RoCE v1, 2 RoCE v2.
    pub kind: u32,
    /// Index of the network interface; 0 if the driver does not say.
    pub interface: u32,
}

/// The present state of a port.
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
