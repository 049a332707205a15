// SPDX-License-Identifier: Apache-2.0
//! The journal: every write to a board, as a line of JSON.
//! Promise: nothing is written to a board if the journal cannot be opened; every line is written whole, even if
//! several programs write at once.

use super::manner::Manner;
use crate::fleet::BoardAddress;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// An open journal.
pub struct Journal {
    path: PathBuf,
    file: File,
    operator: String,
}

/// Why there is no journal, or no line in it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum JournalError {
    #[error("neither XDG_STATE_HOME nor HOME is set: say where the journal of writes is by {to_name}")]
    NoPlace { to_name: &'static str },
    #[error("{}: the journal of writes cannot be opened: {error}; give one by {to_name}", .path.display())]
    Open { path: PathBuf, error: io::Error, to_name: &'static str },
    #[error("{}: the journal cannot be written: {error}", .path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// One word that was written, or was to be.
#[allow(missing_docs)]
pub struct Entry<'a> {
    pub board: BoardAddress,
    pub register: &'a str,
    pub old: u32,
    pub new: u32,
    /// "written", "rolled back", or why it was not written.
    pub result: &'a str,
}

impl Journal {
    /// Opens the file for lines at its end.
    ///
    /// # Errors
    /// There is no place for it, or no right to write there.
    pub fn open(manner: &Manner) -> Result<Journal, JournalError> {
        let to_name = manner.to_name_journal;
        let path = match &manner.journal {
            Some(path) => path.clone(),
            None => usual().ok_or(JournalError::NoPlace { to_name })?,
        };
        let file = append(&path).map_err(|error| JournalError::Open { path: path.clone(), error, to_name })?;
        Ok(Journal { file, operator: manner.operator.clone().unwrap_or_else(operator), path })
    }

    /// Notes what was written; each line is one write to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        for entry in entries {
            let line = json!({
                "time": time, "operator": self.operator, "board": entry.board.to_string(), "register": entry.register,
                "old": format!("0x{:08X}", entry.old), "new": format!("0x{:08X}", entry.new), "result": entry.result,
            });
            self.file
                .write_all(format!("{line}\n").as_bytes())
                .map_err(|error| JournalError::Write { path: self.path.clone(), error })?;
        }
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// user@host
fn operator() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| format!("uid{}", nix::unistd::getuid()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{user}@{}", host.trim())
}

fn usual() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    Some(state.or_else(home)?.join("penstock/ctl.jsonl"))
}
