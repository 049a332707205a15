// SPDX-License-Identifier: Apache-2.0
//! A pcapng file as a wire: its frames come in at their time stamps, the first at the board's time 0.
//! Promise: the whole file is read and checked before anything runs; the same file gives the same run. Frames
//! from the board are discarded; a capture of the board's port contains them.
//! Source: pcapng (draft-ietf-opsawg-pcapng), read by the crate pcap-file.

use super::wire::{Sent, Wire, WireError, WireTime};
use bytes::Bytes;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::DataLink;
use penstock_units::Time;
use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

const PS_PER_S: u128 = 1_000_000_000_000;

/// The frames of a file that have not come yet, with their times.
#[derive(Debug)]
pub struct Replay {
    frames: VecDeque<(Time, Bytes)>,
}

impl Replay {
    /// Reads a whole file; frames count from the earliest. Pauses longer than `max_gap` are shortened to it.
    ///
    /// # Errors
    /// It cannot be read, is no pcapng, holds no Ethernet frame, or holds frames that were cut when they were captured.
    pub fn open(path: &Path, max_gap: Option<Time>) -> Result<Self, WireError> {
        let wrong = |what: String| WireError::Capture { path: path.into(), what };
        let file = File::open(path).map_err(|error| wrong(format!("cannot read it: {error}")))?;
        let mut reader = PcapNgReader::new(BufReader::new(file))
            .map_err(|error| wrong(format!("not a pcapng file ({error}); `editcap -F pcapng in out` makes one")))?;
        let mut frames: Vec<(u128, Bytes)> = Vec::new();
        // `has_data_left` of the reader swallows nothing, so each block is looked at, the interfaces by a copy.
        while let Some(block) = reader.next_block() {
            let number = frames.len() + 1;
            let block = block.map_err(|error| wrong(format!("malformed behind frame {}: {error}", number - 1)))?;
            let Block::EnhancedPacket(packet) = block.into_owned() else { continue };
            let Some(interface) = reader.packet_interface(&packet) else {
                return Err(wrong(format!(
                    "frame {number} is of interface {}, which is not described",
                    packet.interface_id
                )));
            };
            if interface.linktype != DataLink::ETHERNET {
                let link = interface.linktype;
                return Err(wrong(format!("frame {number} has link type {link:?}; only Ethernet can be replayed")));
            }
            if packet.data.len() != packet.original_len as usize {
                let (kept, len) = (packet.data.len(), packet.original_len);
                return Err(wrong(format!(
                    "frame {number} is cut to {kept} of {len} bytes; capture whole frames (-s 0)"
                )));
            }
            frames.push((picoseconds(packet.timestamp, interface), Bytes::from(packet.data.into_owned())));
        }
        frames.sort_by_key(|frame| frame.0);
        let mut before = frames.first().ok_or_else(|| wrong("no frame in it".into()))?.0;
        let (mut now, mut timed) = (Time::ZERO, VecDeque::with_capacity(frames.len()));
        for (at, frame) in frames {
            let gap = Time(u64::try_from(at - before).unwrap_or(u64::MAX)).min(max_gap.unwrap_or(Time::MAX));
            now = now.saturating_add(gap);
            if now == Time::MAX {
                return Err(wrong("it spans more than 200 days".into()));
            }
            timed.push_back((now, frame));
            before = at;
        }
        Ok(Self { frames: timed })
    }

    /// Frames that have not come yet.
    pub fn left(&self) -> usize {
        self.frames.len()
    }
}

/// Time stamp in ps. The crate gives the units of the file as if they were nanoseconds; `if_tsresol` says what they
/// are, a power of ten, or of two where its highest bit is set.
fn picoseconds(stamp: Duration, interface: &InterfaceDescriptionBlock) -> u128 {
    const MICROSECONDS: u8 = 6;
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    let resolution = resolution.unwrap_or(MICROSECONDS);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    let units = base.checked_pow(u32::from(resolution & 0x7f)).unwrap_or(u128::MAX);
    let ticks = stamp.as_nanos();
    // Whole seconds first: 2^64 units times 10^12 fit.
    ticks / units * PS_PER_S + (ticks % units).saturating_mul(PS_PER_S) / units
}

impl Wire for Replay {
    fn send(&mut self, _now: Time, _frame: &Bytes) -> Result<Sent, WireError> {
        Ok(Sent::Done)
    }

    fn receive(&mut self, now: Time) -> Result<Option<Bytes>, WireError> {
        let due = self.frames.front().is_some_and(|(at, _)| *at <= now);
        Ok(if due { self.frames.pop_front().map(|(_, frame)| frame) } else { None })
    }

    fn wait(&mut self, _timeout: Duration, _room: bool) -> Result<(), WireError> {
        Ok(())
    }

    fn time(&self) -> WireTime {
        WireTime::Simulated(self.frames.front().map(|frame| frame.0))
    }
}
