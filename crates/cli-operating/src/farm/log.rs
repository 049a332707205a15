// SPDX-License-Identifier: Apache-2.0
//! The log of changes: the file of servers that every `recv` reads, and that holds the decisions after a crash.
//! Promise: a change is in the file whole or not at all, and stays there; only one coordinator at a time writes it.
//! Source: POSIX rename(2), fsync(2); the file is that of docs/servers.md.

use crate::servers_file::read_tables;
use nix::fcntl::{Flock, FlockArg};
use penstock_farm::{Change, Mark, Tables};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

pub struct Log {
    file: PathBuf,
    /// Held until the process ends.
    _lock: Flock<File>,
}

impl Log {
    /// Takes the lock; makes the file with this name and these rows, for a run that begins, if there is none.
    pub fn open(file: &Path, begin: Option<(&str, &[u16])>) -> Result<(Log, Tables), String> {
        let beside = beside(file, "lock");
        let fail = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
            format!("cannot {what} {}: {error}", path.display())
        };
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&beside);
        let lock = lock.map_err(|error| fail("make", &beside, &error))?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
            nix::errno::Errno::EWOULDBLOCK => {
                format!("{} is locked: another `penstock farm` coordinates these servers", beside.display())
            }
            error => fail("lock", &beside, &error),
        })?;
        let log = Log { file: file.to_owned(), _lock: lock };
        if begin.is_some() {
            let _ = fs::remove_file(log.request());
            if file.exists() {
                log.put_away()?;
            }
        }
        match begin {
            Some((run, live)) if !file.exists() => {
                log.replace(&format!("run = \"{run}\"\nlive = {}\n", list(live)))?;
            }
            None if !file.exists() => {
                return Err(format!("{} does not exist; --begin makes it, for a run that begins", file.display()));
            }
            _ => {}
        }
        Ok((log, read_tables(file)?))
    }

    /// The file of a run that has ended makes room for that of the next one.
    fn put_away(&self) -> Result<(), String> {
        let tables = read_tables(&self.file)?;
        if tables.end().is_none() {
            return Ok(());
        }
        let name = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let old = self.file.with_file_name(format!("{name}-{}.toml", tables.run()));
        let fail = |error| format!("cannot rename {} to {}: {error}", self.file.display(), old.display());
        fs::rename(&self.file, &old).map_err(fail)
    }

    /// Where `penstock farm --end` asks the coordinator that runs to end the run.
    fn request(&self) -> PathBuf {
        beside(&self.file, "end")
    }

    /// Whether the run is to end.
    pub fn is_to_end(&self) -> bool {
        self.request().exists()
    }

    /// The run has ended as was asked for.
    pub fn has_ended(&self) {
        let _ = fs::remove_file(self.request());
    }

    /// Whether the coordinator of the run of this file is asked to end it, and has not yet.
    pub fn is_end_requested(file: &Path) -> bool {
        beside(file, "end").exists()
    }

    /// Whether a coordinator of the run of this file lives, on this host.
    pub fn is_locked(file: &Path) -> bool {
        let lock = OpenOptions::new().write(true).open(beside(file, "lock"));
        lock.is_ok_and(|lock| Flock::lock(lock, FlockArg::LockExclusiveNonblock).is_err())
    }

    /// Asks for the end of the run of this file.
    pub fn request_end(file: &Path) -> Result<(), String> {
        if !file.exists() {
            return Err(format!("{} does not exist: there is no run that could end", file.display()));
        }
        let request = beside(file, "end");
        fs::write(&request, "").map_err(|error| format!("cannot write {}: {error}", request.display()))
    }

    /// Appends a change, so that it lasts.
    pub fn append(&self, change: &Change) -> Result<(), String> {
        let text = fs::read_to_string(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))?;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let mark = match change.mark {
            Mark::None => "",
            Mark::Begin => "begin = true\n",
            Mark::End => "end = true\n",
        };
        let (first, live) = (change.first, list(&change.live));
        self.replace(&format!("{text}{end}\n[[change]]\nfirst = {first}\nlive = {live}\n{mark}"))
    }

    /// Readers see the old text or the new one. An error means the old one, unless the folder's own sync failed: the
    /// new name stands then, and may be lost with the machine's power.
    fn replace(&self, text: &str) -> Result<(), String> {
        let new = beside(&self.file, "new");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.file)
        };
        write().map_err(|error| format!("cannot write {}: {error}", self.file.display()))?;
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
            tracing::warn!("{}: {error}; a change may be lost if this machine loses power now", folder.display());
        }
        Ok(())
    }
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    file.with_file_name(name)
}

fn list(live: &[u16]) -> String {
    format!("[{}]", live.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_read_back_and_a_second_coordinator_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("servers.toml");
        let message = Log::open(&file, None).err().unwrap();
        assert!(message.contains("--begin"), "{message}");
        let (log, servers) = Log::open(&file, Some(("a1", &[0, 1, 0]))).unwrap();
        assert_eq!(servers, Tables::new("a1".into(), vec![0, 1, 0]));
        let message = Log::open(&file, None).err().unwrap();
        assert!(message.contains("another `penstock farm`"), "{message}");
        // An editor has left no end of line.
        fs::write(&file, "live = [0, 1, 2]").unwrap();
        log.append(&Change::new(7, vec![0, 2])).unwrap();
        log.append(&Change::new(9, vec![2])).unwrap();
        drop(log);
        let (log, servers) = Log::open(&file, None).unwrap();
        assert_eq!((servers.count(), servers.first(), servers.live(), servers.server_of(8)), (3, 9, &[2][..], Some(0)));
        fs::remove_dir_all(folder.path()).unwrap();
        let message = log.append(&Change::new(12, vec![0])).unwrap_err();
        assert!(message.contains("servers.toml"), "{message}");
    }
}
