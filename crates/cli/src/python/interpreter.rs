// SPDX-License-Identifier: Apache-2.0
//! Finds the Python interpreter that commands use.

use std::path::{Path, PathBuf};

/// `PENSTOCK_PYTHON`, else the repository's environment, else the system's.
pub fn interpreter(repo: &Path) -> PathBuf {
    let own = repo.join(".venv/bin/python");
    match std::env::var_os("PENSTOCK_PYTHON") {
        Some(python) => python.into(),
        None if own.exists() => own,
        None => "python3".into(),
    }
}
