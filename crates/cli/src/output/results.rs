// SPDX-License-Identifier: Apache-2.0
//! The folder of results: created, and cleared of the results of an earlier run, before the simulation starts.
//! Promise: every result file in it belongs to the last run that used the folder; a folder that cannot be written is
//! refused before the run.

use crate::outcome::Failure;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

pub const EVENTS: &str = "events.parquet";
pub const TRACE: &str = "trace.parquet";
pub const SUMMARY: &str = "summary.json";
pub const REPORT: &str = "report.html";
pub const CAPTURE: &str = "capture.pcapng";
/// Written by `python/penstock/plots.py`.
const PLOTS: [&str; 3] = ["throughput.png", "alpha.png", "queue.png"];

/// Why results cannot be written there.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("--out {folder}: cannot make this folder: {source}; give one that can be written")]
    Folder { folder: PathBuf, source: Error },
    #[error("--out {folder}: cannot write in this folder: {source}; give one that can be written")]
    ReadOnly { folder: PathBuf, source: Error },
    #[error("--out: cannot replace {file} of an earlier run: {source}; remove it or give another folder")]
    Stale { file: PathBuf, source: Error },
}

/// Makes the folder and removes what an earlier run has left in it, nothing else.
pub fn prepare(folder: &Path) -> Result<(), OutputError> {
    std::fs::create_dir_all(folder).map_err(|source| OutputError::Folder { folder: folder.into(), source })?;
    for name in [EVENTS, TRACE, SUMMARY, REPORT, CAPTURE].into_iter().chain(PLOTS) {
        let file = folder.join(name);
        match std::fs::remove_file(&file) {
            Err(source) if source.kind() != ErrorKind::NotFound => return Err(OutputError::Stale { file, source }),
            _ => {}
        }
    }
    let probe = folder.join(SUMMARY);
    File::create(&probe)
        .and_then(|_| std::fs::remove_file(probe))
        .map_err(|source| OutputError::ReadOnly { folder: folder.into(), source })
}

/// Writes one of the results.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::Fault(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_an_earlier_run_go_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        for name in [SUMMARY, "throughput.png", "notes.txt"] {
            std::fs::write(folder.path().join(name), "old").unwrap();
        }
        prepare(folder.path()).unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
    }

    #[test]
    fn a_folder_in_the_place_of_a_result_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(EVENTS)).unwrap();
        let error = prepare(folder.path()).unwrap_err();
        assert!(error.to_string().contains("events.parquet"), "{error}");
    }
}
