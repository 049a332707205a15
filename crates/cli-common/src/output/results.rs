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
    #[error("--out {folder}: holds the results of {what}; give another folder, or replace them with --overwrite")]
    ForeignResults { folder: PathBuf, what: String },
    #[error("--out: cannot replace {file} of an earlier run: {source}; remove it or give another folder")]
    Stale { file: PathBuf, source: Error },
}

/// Refuses a folder with the results of something else than this scenario, or than boards sampled (none). A scenario that
/// runs again, with other settings, replaces its own results.
pub fn refuse_foreign(folder: &Path, scenario: Option<&Path>) -> Result<(), OutputError> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let stored = || std::fs::read_dir(folder).ok()?.filter_map(Result::ok).find(|file| is_received(&file.file_name()));
    let other = match std::fs::read_to_string(folder.join(SUMMARY)) {
        Ok(text) => {
            let summary: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let of = summary.get("scenario").and_then(|of| of.as_str()).map(Path::new);
            (of.and_then(name) != scenario.and_then(name))
                .then(|| of.map_or_else(|| "another command".to_owned(), |of| of.display().to_string()))
        }
        Err(_) => stored().map(|_| "`penstock recv`".to_owned()),
    };
    other.map_or(Ok(()), |what| Err(OutputError::ForeignResults { folder: folder.into(), what }))
}

/// Whether a file is one that `penstock recv` stores: `events-000000.parquet`, or the one that it writes.
fn is_received(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("events-") && (name.ends_with(".parquet") || name.ends_with(".partial"))
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
    fn results_of_something_else_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mine = Some(Path::new("here/mine.toml"));
        let refusal = |scenario| refuse_foreign(folder.path(), scenario).map_err(|error| error.to_string());
        assert_eq!((refusal(mine), refusal(None)), (Ok(()), Ok(())));
        std::fs::write(folder.path().join("events-000000.parquet"), "").unwrap();
        assert!(refusal(mine).unwrap_err().contains("holds the results of `penstock recv`"));
        std::fs::write(folder.path().join(SUMMARY), r#"{"scenario": "there/mine.toml"}"#).unwrap();
        assert_eq!(refusal(mine), Ok(()));
        assert!(refusal(None).unwrap_err().contains("holds the results of there/mine.toml; give another folder"));
        assert!(refusal(Some(Path::new("other.toml"))).unwrap_err().contains("--overwrite"));
        std::fs::write(folder.path().join(SUMMARY), r#"{"boards": []}"#).unwrap();
        assert!(refusal(mine).unwrap_err().contains("holds the results of another command"));
        assert_eq!(refusal(None), Ok(()));
    }

    #[test]
    fn a_folder_in_the_place_of_a_result_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(EVENTS)).unwrap();
        let error = prepare(folder.path()).unwrap_err();
        assert!(error.to_string().contains("events.parquet"), "{error}");
    }
}
