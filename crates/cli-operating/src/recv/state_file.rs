// SPDX-License-Identifier: Apache-2.0
//! Where a receiver records its open queue pairs: the file of `--state`, or one in the user's folder of state.
//! Source: XDG base directory specification.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// The file of a receiver at an address, as the command line has it; none: nothing is remembered.
pub fn file(given: Option<&Path>, ip: Ipv4Addr) -> Option<PathBuf> {
    match given {
        Some(file) if file == Path::new("none") => None,
        Some(file) => Some(file.to_owned()),
        None => folder().map(|folder| folder.join(format!("recv-{ip}"))),
    }
}

fn folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("penstock"))
}
