// SPDX-License-Identifier: Apache-2.0
//! Recovery: makes a valid file from one that a killed process left.
//! Promise: every row group with intact frame and bytes is kept, in order; a torn rest after them is dropped.
//! Source: the layout of `segment.rs`. An interrupted recovery can be repeated and gives the same file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;

use crate::event_file::PARTIAL;
use crate::medium::{sync_folder_of, LockedFile, Medium};
use crate::segment::{Footer, Frame, FRAME_LEN, PARQUET_MAGIC};
use crate::sink::StoreError;

/// The outcome for one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The valid file; none if no row group had been written, and the remainder was removed.
    pub file: Option<PathBuf>,
    /// The result.
    pub partial: PathBuf,
    pub row_groups: usize,
    pub rows: u64,
    /// Bytes after the last intact row group that were dropped.
    pub bytes_dropped: u64,
}

/// The contents of a file, frame by frame, up to the first damage.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub footer: Footer,
    /// Where the last whole segment ends.
    pub end: u64,
    /// Whether what follows begins like a frame: a row group that was written in part, or damaged.
    pub torn: bool,
}

/// Reads the frames of a file.
///
/// # Errors
/// Those of the operating system; `InvalidData` if the file does not begin as one of ours.
pub(crate) fn walk(file: &File) -> io::Result<Walk> {
    let len = file.metadata()?.len();
    let mut found = Walk { end: PARQUET_MAGIC.len() as u64, ..Walk::default() };
    let mut start = [0; PARQUET_MAGIC.len()];
    if len < found.end {
        return Ok(Walk { end: 0, ..found });
    }
    file.read_exact_at(&mut start, 0)?;
    if start != PARQUET_MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not begin with \"PAR1\""));
    }
    while found.end + FRAME_LEN as u64 <= len {
        let mut frame = [0; FRAME_LEN];
        file.read_exact_at(&mut frame, found.end)?;
        let Some(frame) = Frame::parse(&frame) else {
            return Ok(found);
        };
        found.torn = true;
        let begin = found.end + FRAME_LEN as u64;
        let whole = begin.checked_add(frame.segment_len).is_some_and(|end| end <= len);
        if !whole || frame.ordinal as usize != found.footer.row_groups() {
            return Ok(found);
        }
        let mut segment = vec![0; frame.segment_len as usize];
        file.read_exact_at(&mut segment, begin)?;
        if Frame::of(frame.ordinal, &segment) != frame || found.footer.add(Bytes::from(segment), begin).is_err() {
            return Ok(found);
        }
        found.end = begin + frame.segment_len;
        found.torn = false;
    }
    Ok(found)
}

/// Completes `<name>.partial` to `<name>`. A file of that name that is already there stays, and the recovered one is
/// called `<name stem>-recovered.parquet`.
///
/// # Errors
/// [`StoreError::Locked`] if a live process writes it; [`StoreError::Io`] if it cannot be read or written.
pub fn recover_file(partial: &Path) -> Result<Recovered, StoreError> {
    let fail = |action| move |source| StoreError::Io { file: partial.into(), action, source };
    let mut file = LockedFile::open(partial, false).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => StoreError::Locked { folder: partial.into() },
        _ => fail("opened")(source),
    })?;
    let Walk { footer, end, .. } = walk(&file).map_err(fail("recovered"))?;
    let parquet = |source| StoreError::Parquet { file: partial.into(), source };
    let len = file.metadata().map_err(fail("read"))?.len();
    let (row_groups, rows) = (footer.row_groups(), footer.rows());
    let mut recovered =
        Recovered { file: None, partial: partial.into(), row_groups, rows, bytes_dropped: len.saturating_sub(end) };
    let Some(footer) = footer.to_bytes().map_err(parquet)? else {
        std::fs::remove_file(partial).map_err(fail("removed"))?;
        return Ok(recovered);
    };
    file.truncate(end).map_err(fail("cut behind its last whole row group"))?;
    file.write_at(&footer, end).map_err(fail("completed with its footer"))?;
    file.sync().map_err(fail("synced"))?;
    let path = name_of(partial);
    std::fs::rename(partial, &path).map_err(fail("renamed"))?;
    sync_folder_of(&path).map_err(fail("synced in its folder"))?;
    tracing::info!(file = %path.display(), row_groups, rows, dropped = recovered.bytes_dropped, "recovered");
    recovered.file = Some(path);
    Ok(recovered)
}

/// Recovers every `*.parquet.partial` in a folder that no live process writes, in order of their names.
///
/// # Errors
/// As [`recover_file`], but for the files of live processes, which are left alone.
pub fn recover_folder(folder: &Path) -> Result<Vec<Recovered>, StoreError> {
    let mut recovered = Vec::new();
    for partial in list(folder, &format!(".parquet{PARTIAL}"))? {
        match recover_file(&partial) {
            Err(StoreError::Locked { .. }) => tracing::warn!(file = %partial.display(), "still being written"),
            result => recovered.push(result?),
        }
    }
    Ok(recovered)
}

/// Files of a folder with this suffix, by name.
pub(crate) fn list(folder: &Path, end: &str) -> Result<Vec<PathBuf>, StoreError> {
    let fail = |source| StoreError::Io { file: folder.into(), action: "listed", source };
    let entries = std::fs::read_dir(folder).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end));
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(named).collect();
    files.sort();
    Ok(files)
}

fn name_of(partial: &Path) -> PathBuf {
    let path = partial.with_extension("");
    match path.exists() {
        false => path,
        true => {
            path.with_file_name(format!("{}-recovered.parquet", path.file_stem().unwrap_or_default().to_string_lossy()))
        }
    }
}
