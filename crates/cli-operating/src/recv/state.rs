// SPDX-License-Identifier: Apache-2.0
//! The file that records which queue pairs are open at boards, so that a restarted receiver can close those that a
//! killed one left: boards have few queue pairs, and while they send nothing they do not detect a dead server.
//! Promise: written under another name and renamed, by a thread of its own, as a busy disk may take longer for that than
//! queue pairs live; a file that cannot be read or written only causes a warning.

use super::observer::{Observer, Turn};
use super::state_file;
use penstock_readout::session::{Remembered, SessionError};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// After a failure: the obstacle may be gone then.
const AGAIN: Duration = Duration::from_secs(1);

pub struct State {
    /// None: nothing is remembered.
    file: Option<PathBuf>,
    kept: Option<Vec<Remembered>>,
    /// None before anything was open.
    writer: Option<(Sender<String>, JoinHandle<()>)>,
}

impl State {
    pub fn open(file: Option<&Path>, ip: Ipv4Addr) -> State {
        State { file: state_file::file(file, ip), kept: None, writer: None }
    }

    /// The queue pairs that the last receiver left open.
    pub fn earlier(&self) -> Vec<Remembered> {
        let text = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        text.lines().filter_map(Remembered::parse).collect()
    }

    /// Has what is open now written, if that has changed.
    pub fn keep(&mut self, open: &[Remembered]) {
        let Some(file) = &self.file else { return };
        if self.kept.as_deref() == Some(open) {
            return;
        }
        self.kept = Some(open.to_vec());
        let text: String = open.iter().map(|connection| connection.line() + "\n").collect();
        let (texts, _) = self.writer.get_or_insert_with(|| {
            let ((texts, kept), file) = (channel(), file.clone());
            (texts, std::thread::spawn(move || write_each(&file, &kept)))
        });
        // The thread ends only when this end of the channel is gone.
        let _ = texts.send(text);
    }
}

impl Drop for State {
    /// The last text is in the file, if it can be.
    fn drop(&mut self) {
        if let Some((texts, thread)) = self.writer.take() {
            drop(texts);
            let _ = thread.join();
        }
    }
}

impl Observer for State {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        self.keep(&turn.session.remembered());
        Ok(())
    }
}

/// Writes the latest text until there will be none.
fn write_each(file: &Path, texts: &Receiver<String>) {
    let (mut unwritten, mut has_warned) = (None, false);
    loop {
        let next = match unwritten {
            Some(_) => texts.recv_timeout(AGAIN),
            None => texts.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        if next == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        unwritten = texts.try_iter().last().or(next.ok()).or(unwritten);
        let Some(Err(error)) = unwritten.as_ref().map(|text| write(file, text)) else {
            unwritten = None;
            continue;
        };
        if !has_warned {
            has_warned = true;
            let what = "after a crash boards may have no free queue pair";
            penstock_cli_common::output::screen::notify(format_args!("warning: {}: {error}; {what}", file.display()));
        }
    }
}

fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let partial = file.with_extension("partial");
    file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(&partial, text)?;
    std::fs::rename(&partial, file)
}
