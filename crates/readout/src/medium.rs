// SPDX-License-Identifier: Apache-2.0
//! What a file is written through, so that a test can be a disk that is full.
//! Promise: positions are given with every write, so a write that failed half way is done again in the same place.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

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
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
