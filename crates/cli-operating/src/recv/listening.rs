// SPDX-License-Identifier: Apache-2.0
//! Why a server of `penstock recv` cannot listen.

use std::fmt::Display;
use std::io;

/// Why `option` cannot listen at an address, and what would do.
pub fn not_listening(option: &str, at: impl Display, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "; another program has it: give another port",
        io::ErrorKind::AddrNotAvailable => "; this machine does not have that address: 0.0.0.0 is all of its own",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are root's",
        _ => "",
    };
    format!("{option} {at}: {error}{advice}")
}
