// SPDX-License-Identifier: Apache-2.0
//! Why a session cannot start or continue, and what to do.

use penstock_wire::Ipv4Addr;

use crate::backend::BackendError;
use crate::builder::ShareError;
use crate::receiver::ReceiverError;
use crate::sink::StoreError;
use crate::sys::MemoryError;

/// Why a session cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("a session needs 1 to 65535 boards, not {0}")]
    Boards(usize),
    #[error("board {board}: {source}")]
    Memory { board: String, source: MemoryError },
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    #[error(transparent)]
    Share(#[from] ShareError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("UDP port {port} of {ip}: {source}; {}", port_hint(source))]
    Port { ip: Ipv4Addr, port: u16, source: std::io::Error },
    #[error("TCP port {port}: {source}; is it in use? `ss -ltnp`")]
    Exchange { port: u16, source: std::io::Error },
    #[error("--cm rdma: port {port} of {ip}: {source}; {}", rdma_hint(source))]
    Rdma { ip: Ipv4Addr, port: u16, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The remedy where the kernel's connection manager cannot be used.
fn rdma_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "another program listens there: `rdma resource show cm_id`",
        std::io::ErrorKind::PermissionDenied => "may this user open /dev/infiniband/rdma_cm?",
        std::io::ErrorKind::Unsupported => "`apt-get install librdmacm1`, or receive by `--backend packet`",
        _ => "is the kernel's connection manager there? `modprobe rdma_ucm`",
    }
}

/// The remedy for an unavailable port.
fn port_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "another receiver has it: `ss -ulnp`",
        std::io::ErrorKind::AddrNotAvailable => "this machine has no such address: `ip addr`",
        _ if error.raw_os_error() == Some(libc::EMFILE) => "the process may open no more files: `ulimit -n 1024`",
        _ if matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENODEV)) => "is the interface up? `ip link`",
        _ => "see `ip addr` and `ss -ulnp`",
    }
}
