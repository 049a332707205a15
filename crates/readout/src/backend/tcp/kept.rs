// SPDX-License-Identifier: Apache-2.0
//! Messages that the kernel had acknowledged at a board when a run ended, and that are after its end: they wait for the
//! next run in a file, one for each board, as the bytes of its stream.
//! Promise: a file has whole messages alone, in order; it is written under another name, synced and renamed.
//! Source: docs/fragments.md, "In a TCP stream". An acknowledgement of TCP cannot be held back for a single message.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Take, Write};
use std::path::{Path, PathBuf};

use penstock_transport::{Memory, RecvWr};
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::{
    read_stream_header, stream_header, stream_padding, FragmentId, Ipv4Addr, Payload, STREAM_HEADER_LEN,
};

/// How far after the last kept event a board may go on: events of one server of several lie apart.
const REACH: u64 = 64;

/// Counts of messages, and their events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Messages {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// The first and the last event, if their headers are intact.
    pub(super) events: Option<(u64, u64)>,
}

impl Messages {
    fn add(&mut self, message: &[u8], len: u32) {
        self.count += 1;
        self.bytes += (STREAM_HEADER_LEN + len as usize + stream_padding(len as usize)) as u64;
        if let Ok(FragmentId { event_number, .. }) = FragmentId::peek(message) {
            let first = self.events.map_or(event_number, |(first, _)| first);
            self.events = Some((first, event_number));
        }
    }
}

impl std::fmt::Display for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.events {
            Some((first, last)) => write!(f, "{} of events {first} to {last}", self.count),
            None => write!(f, "{}", self.count),
        }
    }
}

/// What the last run has left of a board.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    pub(super) messages: Messages,
}

fn path(folder: &Path, ip: Ipv4Addr, source: u16) -> PathBuf {
    folder.join(format!("{ip}-{source}"))
}

impl Kept {
    /// The file of a board; none if there is none, or nothing whole in it.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn find(folder: &Path, ip: Ipv4Addr, source: u16) -> io::Result<Option<Kept>> {
        let path = path(folder, ip, source);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let end = file.metadata()?.len();
        let (mut reader, mut messages) = (BufReader::new(file), Messages::default());
        let mut header = [0; STREAM_HEADER_LEN];
        while messages.bytes + STREAM_HEADER_LEN as u64 <= end {
            reader.seek(SeekFrom::Start(messages.bytes))?;
            reader.read_exact(&mut header)?;
            let Some(len) = read_stream_header(header) else { break };
            if messages.bytes + STREAM_HEADER_LEN as u64 + u64::from(len) > end {
                break;
            }
            let mut begins = vec![0; HEADER_LEN.min(len as usize)];
            reader.read_exact(&mut begins)?;
            messages.add(&begins, len);
        }
        Ok((messages.count > 0).then_some(Kept { path, messages }))
    }

    /// Whether a board whose first message is of this event goes on after the kept ones.
    pub(super) fn goes_on_at(&self, event: Option<u64>) -> bool {
        let (Some(event), Some((first, last))) = (event, self.messages.events) else { return true };
        (first..=last.saturating_add(REACH)).contains(&event)
    }

    /// Its bytes.
    ///
    /// # Errors
    /// The file is gone.
    pub(super) fn open(&self) -> io::Result<Take<File>> {
        Ok(File::open(&self.path)?.take(self.messages.bytes))
    }

    /// All of it was taken, or is of no use.
    pub(super) fn remove(&self) {
        // A file that stays comes again: the events are duplicates then.
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("{}: {error}", self.path.display());
        }
    }
}

/// Writes the messages of a board that are for the next run.
pub(super) struct Keeper {
    /// None: they are only counted.
    path: Option<PathBuf>,
    file: Option<BufWriter<File>>,
    pub(super) messages: Messages,
}

impl Keeper {
    pub(super) fn new(folder: Option<&Path>, ip: Ipv4Addr, source: u16) -> Keeper {
        let path = folder.map(|folder| path(folder, ip, source));
        Keeper { path, file: None, messages: Messages::default() }
    }

    fn partial(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        name.into()
    }

    /// # Errors
    /// Those of the file system, with the path.
    pub(super) fn push(&mut self, message: &[u8]) -> io::Result<()> {
        let Some(path) = &self.path else {
            self.messages.add(message, message.len() as u32);
            return Ok(());
        };
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        if self.file.is_none() {
            path.parent().map_or(Ok(()), fs::create_dir_all).map_err(named)?;
            self.file = Some(BufWriter::new(File::create(Self::partial(path)).map_err(named)?));
        }
        if let Some(file) = &mut self.file {
            let zeros = [0; STREAM_HEADER_LEN];
            for part in [&stream_header(message.len() as u32)[..], message, &zeros[..stream_padding(message.len())]] {
                file.write_all(part).map_err(named)?;
            }
        }
        self.messages.add(message, message.len() as u32);
        Ok(())
    }

    /// Puts the file in place, where there is something in it. Whether all messages are kept.
    ///
    /// # Errors
    /// Those of the file system, with the path.
    pub(super) fn finish(&mut self) -> io::Result<bool> {
        let Some(path) = &self.path else { return Ok(self.messages.count == 0) };
        let Some(file) = self.file.take() else { return Ok(true) };
        let put = || {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            fs::rename(Self::partial(path), path)?;
            File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
        };
        put().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(true)
    }
}

/// One slot of its own, through which messages go to a file.
pub(super) struct Scratch(Vec<u8>);

impl Scratch {
    pub(super) fn new(len: u32) -> Scratch {
        Scratch(vec![0; len as usize])
    }

    pub(super) fn slot(&self) -> RecvWr {
        RecvWr { va: 0, len: self.0.len() as u32, ..RecvWr::default() }
    }

    pub(super) fn message(&self, len: u32) -> &[u8] {
        &self.0[..len as usize]
    }
}

impl Memory for Scratch {
    fn write(&mut self, va: u64, data: &Payload) {
        if let (Payload::Bytes(bytes), Some(place)) = (data, self.place(va, data.len() as u32)) {
            place.copy_from_slice(bytes);
        }
    }

    fn place(&mut self, va: u64, len: u32) -> Option<&mut [u8]> {
        self.0.get_mut(va as usize..va as usize + len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_wire::FragmentHeader;

    const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn fragment(event: u64) -> Vec<u8> {
        let payload = vec![7; 10 + event as usize];
        [&FragmentHeader::for_payload(3, event, 0, &payload).to_bytes()[..], &payload].concat()
    }

    #[test]
    fn messages_come_back_as_the_bytes_of_their_stream_and_a_torn_one_does_not() {
        let all = tempfile::tempdir().unwrap();
        let folder = all.path().join("kept");
        let mut keeper = Keeper::new(Some(&folder), IP, 3);
        (100..103).for_each(|event| keeper.push(&fragment(event)).unwrap());
        assert!(Kept::find(&folder, IP, 3).unwrap().is_none(), "not before it is whole");
        assert!(keeper.finish().unwrap());
        let kept = Kept::find(&folder, IP, 3).unwrap().unwrap();
        assert_eq!(kept.messages, keeper.messages);
        assert_eq!((kept.messages.count, kept.messages.events), (3, Some((100, 102))));
        let mut bytes = Vec::new();
        kept.open().unwrap().read_to_end(&mut bytes).unwrap();
        let second = STREAM_HEADER_LEN + fragment(100).len() + stream_padding(fragment(100).len()) + STREAM_HEADER_LEN;
        assert!(bytes[second..].starts_with(&fragment(101)) && bytes.len() % STREAM_HEADER_LEN == 0);
        assert!(
            Kept::find(&folder, IP, 2).unwrap().is_none()
                && Kept::find(&folder, [10, 0, 0, 3].into(), 3).unwrap().is_none()
        );
        File::options().write(true).open(&kept.path).unwrap().set_len(bytes.len() as u64 - 40).unwrap();
        assert_eq!(Kept::find(&folder, IP, 3).unwrap().unwrap().messages.events, Some((100, 101)));
        kept.remove();
        assert!(Kept::find(&folder, IP, 3).unwrap().is_none());
    }

    #[test]
    fn kept_messages_belong_to_a_board_that_goes_on_and_not_to_one_that_begins_again() {
        let all = tempfile::tempdir().unwrap();
        let folder = all.path().to_owned();
        let mut keeper = Keeper::new(Some(&folder), IP, 0);
        (100..103).for_each(|event| keeper.push(&fragment(event)).unwrap());
        keeper.finish().unwrap();
        let kept = Kept::find(&folder, IP, 0).unwrap().unwrap();
        for (event, goes_on) in
            [(Some(0), false), (Some(99), false), (Some(101), true), (Some(103), true), (None, true)]
        {
            assert_eq!(kept.goes_on_at(event), goes_on, "{event:?}");
        }
        assert!(!kept.goes_on_at(Some(100_000)));
    }

    #[test]
    fn without_a_folder_they_are_counted() {
        let mut keeper = Keeper::new(None, IP, 0);
        keeper.push(&fragment(5)).unwrap();
        assert!(!keeper.finish().unwrap());
        assert_eq!(keeper.messages.to_string(), "1 of events 5 to 5");
    }
}
