// SPDX-License-Identifier: Apache-2.0
//! Why a machine, a driver or an interface provides no AF_XDP socket, and what to do.

use std::fmt;
use std::io;

/// The attempted actions; some errors have a more specific meaning for an action.
pub(super) const SOCKET: &str = "AF_XDP socket";
pub(super) const REGISTER: &str = "registering memory";
pub(super) const BIND: &str = "binding to a queue";
pub(super) const ATTACH: &str = "attaching the program";

/// Why there is no AF_XDP here.
#[derive(Debug)]
pub struct XdpError {
    pub(super) step: &'static str,
    pub(super) source: io::Error,
    /// The longest frames take several chunks.
    pub(super) several: bool,
}

impl XdpError {
    /// Another process has the interface's queue, or a program on it.
    pub fn is_busy(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
    }
}

impl std::error::Error for XdpError {}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let XdpError { step, source, several } = self;
        let errno = source.raw_os_error().unwrap_or(0);
        let why = match (errno, *step) {
            (libc::EINVAL, BIND) if *several => "frames longer than a page need Linux 6.6",
            (libc::EAFNOSUPPORT, _) => "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)",
            (libc::EPERM | libc::EACCES, _) => "it needs root, or CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN",
            (libc::EBUSY | libc::EEXIST, ATTACH) => "another XDP program is attached: `ip link` shows it",
            (libc::EBUSY, BIND) => "another AF_XDP socket has this queue",
            (libc::EOPNOTSUPP, ATTACH) => "the driver runs no XDP programs",
            (libc::ENOBUFS, REGISTER) => "more memory than may be locked: `ulimit -l unlimited`, or CAP_IPC_LOCK",
            (_, ATTACH) => "the driver refuses the program; with a smaller MTU it may not",
            _ => return write!(f, "{step}: {source}"),
        };
        write!(f, "{step}: {why} ({source})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_gives_the_remedy() {
        let message =
            |step, errno, several| XdpError { step, source: io::Error::from_raw_os_error(errno), several }.to_string();
        for (step, errno, several, words) in [
            (SOCKET, libc::EAFNOSUPPORT, false, "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)"),
            (SOCKET, libc::EPERM, false, "CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN"),
            (REGISTER, libc::ENOBUFS, false, "ulimit -l"),
            (BIND, libc::EBUSY, false, "another AF_XDP socket has this queue"),
            (BIND, libc::EINVAL, true, "need Linux 6.6"),
            (BIND, libc::EINVAL, false, "binding to a queue: Invalid argument"),
            (ATTACH, libc::EBUSY, true, "another XDP program is attached"),
            (ATTACH, libc::EOPNOTSUPP, true, "the driver runs no XDP programs"),
            (ATTACH, libc::ERANGE, true, "the driver refuses the program"),
        ] {
            assert!(message(step, errno, several).contains(words), "{}", message(step, errno, several));
        }
    }
}
