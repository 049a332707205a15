// SPDX-License-Identifier: Apache-2.0
//! Captures links into one pcapng file that Wireshark reads: an interface for each direction, times in nanoseconds.
//! Promise: frames are in order of time; the file is written under a temporary name and renamed when finished or
//! dropped, so an early end leaves a valid file.
//! Source: pcapng (draft-ietf-opsawg-pcapng), written by the crate pcap-file.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, PcapError};

use crate::units::{Rate, Time};

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("cannot write {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: {source}")]
    Format { path: PathBuf, source: PcapError },
}

/// A frame that is not yet in the file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: Time,
    sequence: u64,
    interface: u32,
    frame: Bytes,
}

/// A capture file under way.
///
/// A frame is captured as it leaves its port, before the faults of the link, with the time at which its last bit has
/// left (the FCS, preamble and gap have their time but are not captured). Times count from 1970-01-01, rounded
/// down to a nanosecond.
pub struct CaptureSink {
    path: PathBuf,
    temporary: PathBuf,
    writer: Option<PcapNgWriter<BufWriter<File>>>,
    snap_bytes: u32,
    interfaces: u32,
    /// Windowed nodes report their frames late, so frames wait until none can come before them.
    waiting: BinaryHeap<Reverse<Waiting>>,
    sequence: u64,
    written: u64,
    error: Option<CaptureError>,
}

impl CaptureSink {
    /// if_tsresol: times are in units of 10^-9 s.
    const NANOSECONDS: u8 = 9;

    /// Begins a file at `path` that keeps the first `snap_bytes` of each frame; 0 keeps all.
    pub fn create(path: impl AsRef<Path>, snap_bytes: u32) -> Result<Self, CaptureError> {
        let path = path.as_ref().to_owned();
        let mut temporary = path.clone().into_os_string();
        temporary.push(".part");
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary).map_err(|source| CaptureError::Io { path: temporary.clone(), source })?;
        let writer = PcapNgWriter::new(BufWriter::new(file))
            .map_err(|source| CaptureError::Format { path: path.clone(), source })?;
        Ok(CaptureSink {
            path,
            temporary,
            writer: Some(writer),
            snap_bytes,
            interfaces: 0,
            waiting: BinaryHeap::new(),
            sequence: 0,
            written: 0,
            error: None,
        })
    }

    /// Describes one direction of a link; returns its number.
    pub fn add_interface(&mut self, name: &str, rate: Rate) -> u32 {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: self.snap_bytes,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfSpeed(rate.bits_per_second()),
                InterfaceDescriptionOption::IfTsResol(Self::NANOSECONDS),
            ],
        };
        self.write(block);
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Takes a frame whose last bit leaves at `at`; no frame that leaves before `settled` can follow.
    pub fn record(&mut self, interface: u32, at: Time, settled: Time, frame: Bytes) {
        self.waiting.push(Reverse(Waiting { at, sequence: self.sequence, interface, frame }));
        self.sequence += 1;
        while self.waiting.peek().is_some_and(|Reverse(first)| first.at < settled) {
            self.write_first();
        }
    }

    fn write_first(&mut self) {
        let Some(Reverse(Waiting { at, interface, frame, .. })) = self.waiting.pop() else { return };
        let kept = match self.snap_bytes as usize {
            0 => frame.len(),
            snap => snap.min(frame.len()),
        };
        self.write(EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(at.as_ps() / 1000),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(&frame[..kept]),
            options: Vec::new(),
        });
        self.written += 1;
    }

    fn write<'a>(&mut self, block: impl PcapNgBlock<'a>) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(source) = writer.write_block(&block.into_block()) {
            self.error.get_or_insert(CaptureError::Format { path: self.path.clone(), source });
        }
    }

    /// Writes the rest, closes the file and gives it its name. Returns the number of frames in it.
    pub fn finish(mut self) -> Result<u64, CaptureError> {
        self.close()?;
        Ok(self.written)
    }

    fn close(&mut self) -> Result<(), CaptureError> {
        while !self.waiting.is_empty() {
            self.write_first();
        }
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.error.take().map_or(Ok(()), Err)?;
        let io = |source| CaptureError::Io { path: self.path.clone(), source };
        writer.into_inner().flush().map_err(io)?;
        std::fs::rename(&self.temporary, &self.path).map_err(io)
    }
}

impl Drop for CaptureSink {
    /// A run that ends early still leaves its captures; an error here cannot be reported.
    fn drop(&mut self) {
        let _ = self.close();
    }
}
