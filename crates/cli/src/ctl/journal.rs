// SPDX-License-Identifier: Apache-2.0
//! The journal: every write to a board, as a line of JSON.
//! Promise: nothing is written to a board as long as the journal cannot be opened; a line stands in it whole, also where
//! several programs write at once.

use crate::outcome::Failure;
use penstock_ipbus::BoardAddress;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub struct Journal {
    path: PathBuf,
    file: File,
    operator: String,
}

/// One word that was written, or was to be.
pub struct Entry<'a> {
    pub board: BoardAddress,
    pub register: &'a str,
    pub old: u32,
    pub new: u32,
    /// "written", "rolled back", or why it was not written.
    pub result: &'a str,
}

impl Journal {
    /// Opens the file for lines at its end; None: that of the user.
    pub fn open(path: Option<&Path>) -> Result<Journal, Failure> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => usual()?,
        };
        let refused = |error| {
            Failure::Refused(format!(
                "{}: the journal of writes cannot be opened: {error}; give one by --journal FILE",
                path.display()
            ))
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(refused)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(refused)?;
        Ok(Journal { file, operator: operator(), path })
    }

    /// Notes what was written; each line is one write to the file.
    pub fn note(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        for entry in entries {
            let line = json!({
                "time": time, "operator": self.operator, "board": entry.board.to_string(), "register": entry.register,
                "old": format!("0x{:08X}", entry.old), "new": format!("0x{:08X}", entry.new), "result": entry.result,
            });
            let path = self.path.display();
            self.file
                .write_all(format!("{line}\n").as_bytes())
                .map_err(|error| Failure::Fault(format!("{path}: the journal cannot be written: {error}")))?;
        }
        Ok(())
    }
}

/// user@host
fn operator() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| format!("uid{}", nix::unistd::getuid()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{user}@{}", host.trim())
}

fn usual() -> Result<PathBuf, Failure> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let missing = || {
        Failure::Refused(
            "neither XDG_STATE_HOME nor HOME is set: say where the journal of writes is by --journal FILE".to_owned(),
        )
    };
    Ok(state.or_else(home).ok_or_else(missing)?.join("penstock/ctl.jsonl"))
}
