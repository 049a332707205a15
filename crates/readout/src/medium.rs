// SPDX-License-Identifier: Apache-2.0
//! The interface through which files are written, so that a test can simulate a full disk.
//! Promise: every write has its position, so a write that failed halfway is repeated at the same place.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// Bytes that are copied at a time.
const PIECE: u64 = 1 << 20;

/// A file open for writing.
pub trait Medium: std::fmt::Debug + Send {
    /// Writes all of `bytes` at `offset`, or fails having written any part of them.
    ///
    /// # Errors
    /// Those of the operating system; `StorageFull` when there is no room.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Drops everything from `len` on.
    ///
    /// # Errors
    /// Those of the operating system.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Returns when all that was written survives a power failure.
    ///
    /// # Errors
    /// Those of the operating system.
    fn sync(&mut self) -> io::Result<()>;

    /// Whether it is the file at a path. Always true for a medium without a path.
    ///
    /// # Errors
    /// Those of the operating system, but for there being nothing.
    fn is_at(&self, _path: &Path) -> io::Result<bool> {
        Ok(true)
    }

    /// Writes the first `len` bytes to a new medium. Only those need it that may be [somewhere else](Self::is_at).
    ///
    /// # Errors
    /// Those of the operating system.
    fn copy_to(&self, _other: &mut dyn Medium, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file of the operating system, locked (flock) as long as it is open.
#[derive(Debug)]
pub(crate) struct LockedFile(Flock<File>);

impl LockedFile {
    /// Opens a file for reading and writing, and locks it.
    ///
    /// # Errors
    /// `WouldBlock` if another process has locked it; else those of the operating system.
    pub fn open(path: &Path, create: bool) -> io::Result<LockedFile> {
        let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)?;
        let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| io::Error::from(errno))?;
        Ok(LockedFile(locked))
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Medium for LockedFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let here = self.0.metadata()?;
        match std::fs::metadata(path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (here.dev(), here.ino())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn copy_to(&self, other: &mut dyn Medium, len: u64) -> io::Result<()> {
        let mut piece = vec![0; PIECE.min(len) as usize];
        let mut at = 0;
        while at < len {
            let size = PIECE.min(len - at) as usize;
            self.0.read_exact_at(&mut piece[..size], at)?;
            other.write_at(&piece[..size], at)?;
            at += size as u64;
        }
        Ok(())
    }
}

/// How a new file is made, given its path.
pub type CreateMedium = fn(&Path) -> io::Result<Box<dyn Medium>>;

/// A new, empty file of the operating system, locked as long as it is open. What was in it is gone.
///
/// # Errors
/// `WouldBlock` if another process has locked it; else those of the operating system.
pub fn create_file(path: &Path) -> io::Result<Box<dyn Medium>> {
    let mut file = LockedFile::open(path, true)?;
    file.truncate(0)?;
    Ok(Box::new(file))
}

/// Makes the names in a folder survive a power failure.
///
/// # Errors
/// Those of the operating system.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The file system on which the folder of a path is.
///
/// # Errors
/// Those of the operating system.
pub(crate) fn device_of_folder_of(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(folder_of(path))?.dev())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
