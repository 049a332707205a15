// SPDX-License-Identifier: Apache-2.0
//! The interface between the receiver and storage.
//! Promise: a sink that returns `Ok` has taken all the bytes it needs, so the slots may be reused. A sink that
//! returns a retriable error has taken nothing and can be called again.
//! Source: ARCHITECTURE.md, "The way of a fragment" ("the writer stores them, the slot is posted again").

use std::io::ErrorKind;
use std::path::PathBuf;

use penstock_units::Time;

/// One source's part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    pub source: u16,
    /// Time of the event at the board, in ns.
    pub timestamp_ns: u64,
    /// CRC-32C of the payload, as the board computed it.
    pub crc32c: u32,
    /// The payload without fragment header.
    pub payload: &'a [u8],
    /// The kind of trigger; 0 if the board does not report it.
    pub trigger_type: u16,
    /// Table of parts as the board sent it (`penstock_wire::Parts`); empty if there is none.
    pub parts: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// A fragment whose CRC-32C is computed here, for payloads that arrive without one.
    pub fn of(source: u16, timestamp_ns: u64, payload: &'a [u8]) -> Fragment<'a> {
        Fragment { source, timestamp_ns, crc32c: penstock_wire::crc32c(payload), payload, trigger_type: 0, parts: &[] }
    }
}

/// One event as a sink sees it; the payloads are still in the rings.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub number: u64,
    /// Timestamp of the event, in ns; none if no fragment came.
    pub timestamp_ns: Option<u64>,
    pub complete: bool,
    /// The received data, by source.
    pub fragments: &'a [Fragment<'a>],
    /// Sources whose fragments did not arrive.
    pub missing: &'a [u16],
}

impl Event<'_> {
    /// Payload bytes of all fragments.
    pub fn payload_bytes(&self) -> usize {
        self.fragments.iter().map(|fragment| fragment.payload.len()).sum()
    }
}

/// Why an event could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{file}: cannot be {action}: {source}; {}", io_hint(source))]
    Io { file: PathBuf, action: &'static str, source: std::io::Error },
    #[error("{file}: the Parquet encoder failed: {source}; what is in the file stays and can be recovered")]
    Parquet { file: PathBuf, source: parquet::errors::ParquetError },
    #[error("event {event} has {bytes} bytes, more than the {limit} that one row can hold; send smaller fragments")]
    TooLarge { event: u64, bytes: usize, limit: usize },
    #[error("{file}: event {event} comes after the file was closed; open a new one")]
    Closed { file: PathBuf, event: u64 },
    #[error("{folder}: another process writes here; give each receiver a folder of its own")]
    Locked { folder: PathBuf },
    #[error("a consumer of events at {at} is slow and its queue of {events} is full; it is waited for")]
    ConsumerBusy { at: String, events: usize },
    #[error("{folder}: {row_groups} row groups wait for the disk or their compression; boards wait for these")]
    WriterBusy { folder: PathBuf, row_groups: usize },
    #[error("all {batches} batches are on their way through the {device}; boards wait for them")]
    AcceleratorBusy { device: &'static str, batches: usize },
    #[error("the {device}'s work ended before event {event}: {reason}; what else the run stores goes on")]
    Accelerator { device: &'static str, event: u64, reason: String },
}

/// The remedy for an unavailable file or address.
fn io_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "another program listens there, or one that was killed has left its socket: `ss -lnp`, rm"
        }
        ErrorKind::AddrNotAvailable => "this machine has no such address: `ip addr`",
        ErrorKind::PermissionDenied => "it may not be written by who runs this",
        ErrorKind::NotFound => "make the folder that it is to lie in",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "boards wait until the disk has room",
        ErrorKind::ReadOnlyFilesystem => "make the file system writable (`mount -o remount,rw`)",
        ErrorKind::CrossesDevices | ErrorKind::StaleNetworkFileHandle => "mount the file system that it was begun on",
        _ => "check that the folder exists, is writable and has room",
    }
}

impl StoreError {
    /// Whether the same call can succeed later: room on the disk, a folder that was deleted and is made again, a
    /// consumer that catches up. Nothing was taken, and nothing that was taken before is lost.
    pub fn is_retriable(&self) -> bool {
        match self {
            StoreError::Io { source, .. } => {
                use ErrorKind::{CrossesDevices, NotADirectory, NotFound, ReadOnlyFilesystem, StaleNetworkFileHandle};
                use ErrorKind::{FileTooLarge, Interrupted, QuotaExceeded, StorageFull, TimedOut, WouldBlock};
                let full = matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge);
                let away = matches!(source.kind(), NotFound | NotADirectory | CrossesDevices | StaleNetworkFileHandle);
                // No kind stands for these: of the whole system and of this process.
                const ENFILE: i32 = 23;
                const EMFILE: i32 = 24;
                let no_descriptors = matches!(source.raw_os_error(), Some(ENFILE | EMFILE));
                let away = away || source.kind() == ReadOnlyFilesystem;
                full || away || no_descriptors || matches!(source.kind(), Interrupted | TimedOut | WouldBlock)
            }
            other => other.is_busy(),
        }
    }

    /// Whether this is not a fault: the consumer of events is slower than their rate.
    pub fn is_busy(&self) -> bool {
        use StoreError::{AcceleratorBusy, ConsumerBusy, WriterBusy};
        matches!(self, ConsumerBusy { .. } | WriterBusy { .. } | AcceleratorBusy { .. })
    }

    /// The same for another reader: the errors of the operating system and of the encoder cannot be cloned.
    pub(crate) fn repeated(&self) -> StoreError {
        match self {
            StoreError::Io { file, action, source } => {
                let again = match source.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::new(source.kind(), source.to_string()),
                };
                StoreError::Io { file: file.clone(), action, source: again }
            }
            StoreError::Parquet { file, source } => {
                let source = parquet::errors::ParquetError::General(source.to_string());
                StoreError::Parquet { file: file.clone(), source }
            }
            StoreError::TooLarge { event, bytes, limit } => {
                StoreError::TooLarge { event: *event, bytes: *bytes, limit: *limit }
            }
            StoreError::Closed { file, event } => StoreError::Closed { file: file.clone(), event: *event },
            StoreError::Locked { folder } => StoreError::Locked { folder: folder.clone() },
            StoreError::ConsumerBusy { at, events } => StoreError::ConsumerBusy { at: at.clone(), events: *events },
            StoreError::WriterBusy { folder, row_groups } => {
                StoreError::WriterBusy { folder: folder.clone(), row_groups: *row_groups }
            }
            &StoreError::AcceleratorBusy { device, batches } => StoreError::AcceleratorBusy { device, batches },
            StoreError::Accelerator { device, event, reason } => {
                StoreError::Accelerator { device, event: *event, reason: reason.clone() }
            }
        }
    }
}

/// The events that are on a disk, as far as the sink has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    pub events: u64,
    /// Payload bytes of these.
    pub bytes: u64,
    /// Events in a file that is not closed: [`crate::recover_file`] finds them there.
    pub unclosed: u64,
}

impl std::ops::AddAssign for Kept {
    fn add_assign(&mut self, more: Kept) {
        self.events += more.events;
        self.bytes += more.bytes;
        self.unclosed += more.unclosed;
    }
}

/// Takes events in order of their number.
pub trait EventSink {
    /// # Errors
    /// [`StoreError`]; the event is then not taken. Ask again with the same event if the error is retriable.
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError>;

    /// It is `now`: for what must happen after some time (files that are closed, rows that are written). Call it
    /// before events that came at `now` are stored, and at [`Self::poll_timeout`].
    ///
    /// # Errors
    /// As [`Self::store`].
    fn handle_timeout(&mut self, _now: Time) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether the bytes of payloads are read here, [`Fragment::payload`]. Where the slots lie on another device they
    /// are brought to the host only if so; otherwise only a payload's length and its first and last four bytes are
    /// right.
    fn needs_payloads(&self) -> bool {
        true
    }

    /// The number of taken events, from the first on, that are no longer read: their slots may be reused. A sink
    /// that takes all bytes that it needs at once need not implement it.
    fn settled(&self) -> u64 {
        u64::MAX
    }

    /// A board has begun again, from the next event on: its test pattern need not go on where it was.
    fn reconnected(&mut self, _board: u16) {}

    /// What of the taken events is on a disk; none if the sink has no disk.
    fn kept(&self) -> Option<Kept> {
        None
    }

    /// What is not on the disk is given up: nothing more is written, and [`Self::kept`] does not change any more.
    fn give_up(&mut self) {}

    /// When [`Self::handle_timeout`] has something to do.
    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// Waits until a sink that has answered an error of being [busy](StoreError::is_busy) can be asked again. Only for
    /// callers that have nothing else to do; a sink that never answers so need not have it.
    ///
    /// # Errors
    /// As [`Self::store`].
    fn wait(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// [`Self::store`] for callers that have nothing else to do: waits for a sink that is busy.
    ///
    /// # Errors
    /// As [`Self::store`], but for those of being busy.
    fn store_waiting(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        loop {
            match self.store(event) {
                Err(error) if error.is_busy() => self.wait()?,
                other => return other,
            }
        }
    }

    /// Makes everything stored so far permanent. Later calls of `store` may fail. May be called again if it failed.
    ///
    /// # Errors
    /// [`StoreError`] if the last events cannot be made permanent.
    fn close(&mut self) -> Result<(), StoreError>;
}

/// Counts events and forgets them; for benchmarks, and for runs that only check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Discard {
    pub events: u64,
    pub bytes: u64,
}

impl EventSink for Discard {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.events += 1;
        self.bytes += event.payload_bytes() as u64;
        Ok(())
    }

    fn needs_payloads(&self) -> bool {
        false
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
