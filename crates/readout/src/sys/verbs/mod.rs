// SPDX-License-Identifier: Apache-2.0
//! libibverbs and librdmacm with ownership: objects are dropped in the right order and never used afterwards.
//! Promise: safe to use; a queue pair keeps its memory mapped and registered for as long as the NIC may write it.
//! Source: the manual pages ibv_*(3); the library is loaded at run time by `rdma-mummy-sys`.

mod completion;
mod device;
mod queue_pair;
mod rdma_cm;
mod registration;

use std::ffi::c_int;
use std::io;
use std::ptr::NonNull;

pub use completion::{status_name, CompletionQueue, WorkCompletion, FLUSHED};
pub use device::{device_names, library_is_there, Context, Domain, GidEntry};
pub use queue_pair::{Outgoing, QueuePair, ReadWr, Receives, Remote, Source};
pub use rdma_cm::{connection_library_is_there, Attributes, ConnectionEvent, Identifier, Listener, Request};
pub use registration::{Registration, Written};

/// Converts `errno`-style results of libibverbs: 0, or the error's number itself.
fn done(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno.abs())),
    }
}

fn owned<T>(pointer: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(io::Error::last_os_error)
}
