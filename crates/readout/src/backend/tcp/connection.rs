// SPDX-License-Identifier: Apache-2.0
//! One board's connection: bytes from the kernel, or another source, to the slots.
//! Promise: most of a long message goes from the kernel directly to its slot; without a slot nothing is read, so
//! that the window closes and the board waits; no message waits for a delayed acknowledgement.
//! Source: RFC 9293 sections 3.8.6 (flow control by the receiver's window), 3.7.4 (Nagle's algorithm) and 3.8.6.3
//! (delayed acknowledgements).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Take};
use std::os::fd::AsFd;
use std::time::Duration;

use mio::net::TcpStream;
use penstock_transport::{Memory, RecvOpcode, RecvStatus, RecvWr};
use penstock_units::Time;
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::{FragmentId, Ipv4Addr, STREAM_HEADER_LEN};
use socket2::{SockRef, TcpKeepalive};

use super::deframer::{Deframer, DeframerCounts, Next};
use crate::backend::Completion;

/// Bytes read at a time for short messages, and after the rest of a long one: the next header.
const STAGE: usize = 256 << 10;
const BEHIND: usize = 4 << 10;
/// The length from which on a message's rest is read into its slot.
const LONG: u32 = 16 << 10;
/// Bytes of one connection in a turn: then others have theirs.
const TURN: usize = 1 << 20;
/// Where a fragment of either version has its magic and its source (docs/fragments.md).
const MAGIC: &[u8; 4] = b"PSTF";
const SOURCE_AT: usize = 6;
/// Bytes of a stream that show whether it begins with a fragment, and those with its source and event.
const BEGINNING: usize = STREAM_HEADER_LEN + MAGIC.len();
const INTRODUCTION: usize = STREAM_HEADER_LEN + HEADER_LEN;

/// The identity of a stream's sender, from its first bytes.
pub(super) enum Introduced {
    NotYet,
    /// The source, and the first event if the header is intact.
    As(u16, Option<u64>),
    /// No fragment begins here.
    Nobody,
}

/// How a turn ended.
pub(super) enum Turn {
    /// Nothing more is there, or there is no slot.
    Waits,
    /// There is more to do.
    Busy,
    /// The connection is over: why, and whether within a message.
    Over(String),
    /// It is to be ended: the next message has this number of bytes, and no slot takes it.
    Refused(u32),
}

/// What became of the held bytes.
enum Parsed {
    All,
    /// A message waits for a slot.
    Starved,
    /// A whole message may not be taken now.
    HeldBack,
    /// A message of this number of bytes fits no slot.
    Refused(u32),
}

/// Where the bytes come from. Reading never waits (`WouldBlock`).
pub(super) trait ByteSource: Read {
    /// What has come of a message is to be acknowledged at once.
    fn acknowledge(&mut self);
}

/// Time from one keep-alive of a silent peer to the next (RFC 9293 section 3.8.4), and how many may be in vain: events
/// wait less long for a board that does not answer.
const ALIVE: Duration = Duration::from_secs(1);
const IN_VAIN: u32 = 60;

/// Has the kernel ask a silent peer; its answers are what [`heard_ago`](crate::sys::heard_ago) sees.
pub(super) fn keep_alive(stream: &impl AsFd) {
    let often = TcpKeepalive::new().with_time(ALIVE).with_interval(ALIVE).with_retries(IN_VAIN);
    // Without it a silent board is one that cannot be reached.
    let _ = SockRef::from(stream).set_tcp_keepalive(&often);
}

/// Where a board's bytes come from.
pub(super) enum Stream {
    Socket(TcpStream),
    /// What the last run has left of it.
    Kept(Take<File>),
}

impl Stream {
    pub(super) fn socket(&mut self) -> Option<&mut TcpStream> {
        match self {
            Stream::Socket(stream) => Some(stream),
            Stream::Kept(_) => None,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Socket(stream) => stream.read(into),
            Stream::Kept(file) => file.read(into),
        }
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Stream::Socket(stream) => stream.read_vectored(into),
            Stream::Kept(file) => file.read_vectored(into),
        }
    }
}

impl ByteSource for Stream {
    fn acknowledge(&mut self) {
        if let Stream::Socket(stream) = self {
            let _ = SockRef::from(&*stream).set_tcp_quickack(true);
        }
    }
}

pub(super) struct Connection<S = Stream> {
    pub(super) stream: S,
    pub(super) ip: Ipv4Addr,
    pub(super) since: Time,
    pub(super) board: Option<u16>,
    /// The session knows that the board is up: messages may come.
    pub(super) announced: bool,
    /// The kernel may have more.
    readable: bool,
    deframer: Deframer,
    /// Bytes that were read and not looked at, from `at` on.
    held: Vec<u8>,
    at: usize,
    /// A message is held for which there was no slot.
    starved: bool,
    /// A whole message is in its slot and may not be taken now: see [`Memory::admit`].
    held_back: bool,
    /// Messages up to this event are here already, and are dropped.
    pub(super) received_up_to: Option<u64>,
    /// The slot of the message under way, and how much of it is there.
    slot: Option<(RecvWr, u32)>,
    /// Bytes of messages that have gone into slots.
    placed: u64,
    /// Messages that were reported.
    pub(super) messages: u64,
}

impl<S: ByteSource> Connection<S> {
    pub(super) fn new(stream: S, ip: Ipv4Addr, since: Time, longest: u32) -> Self {
        Connection {
            stream,
            ip,
            since,
            board: None,
            announced: false,
            readable: true,
            deframer: Deframer::new(longest),
            held: Vec::new(),
            at: 0,
            starved: false,
            held_back: false,
            received_up_to: None,
            slot: None,
            placed: 0,
            messages: 0,
        }
    }

    pub(super) fn became_readable(&mut self) {
        self.readable = true;
    }

    pub(super) fn counts(&self) -> DeframerCounts {
        self.deframer.counts()
    }

    /// Whether a turn would do anything. Without a slot nothing is read: the window closes.
    pub(super) fn has_work(&self, slots: &VecDeque<RecvWr>) -> bool {
        let has_slot = self.slot.is_some() || !slots.is_empty();
        self.announced && has_slot && (self.readable || self.starved || self.held_back)
    }

    /// Whether nothing more is there of it: its source is empty, and no message waits.
    pub(super) fn is_empty(&self) -> bool {
        !self.readable && !self.starved && !self.held_back
    }

    /// A whole message waits until it may be taken.
    pub(super) fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// Bytes of messages that have gone into slots so far.
    pub(super) fn placed(&self) -> u64 {
        self.placed
    }

    /// Whether bytes that come have a place.
    pub(super) fn has_place(&self, slots: &VecDeque<RecvWr>) -> bool {
        !self.starved && !self.held_back && !self.deframer.is_refused() && (self.slot.is_some() || !slots.is_empty())
    }

    /// Who sends, by the first bytes of the stream.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) fn introduce(&mut self) -> io::Result<Introduced> {
        while self.held.len() < INTRODUCTION && self.readable {
            let mut bytes = [0; INTRODUCTION];
            let missing = INTRODUCTION - self.held.len();
            match self.stream.read(&mut bytes[..missing]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.held.extend_from_slice(&bytes[..len]),
                Err(error) => self.note_would_block(error)?,
            }
        }
        let begins = self.held.get(STREAM_HEADER_LEN..BEGINNING);
        if begins.is_some_and(|magic| magic != MAGIC) {
            return Ok(Introduced::Nobody);
        }
        let Some(first) = self.held.get(STREAM_HEADER_LEN..INTRODUCTION) else { return Ok(Introduced::NotYet) };
        let event = FragmentId::peek(first).ok().map(|id| id.event_number);
        Ok(Introduced::As(u16::from_le_bytes([first[SOURCE_AT], first[SOURCE_AT + 1]]), event))
    }

    fn note_would_block(&mut self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(())
            }
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }
    }

    /// Moves available bytes into the slots of board `board`, and reports complete messages.
    pub(super) fn turn(
        &mut self,
        board: u16,
        slots: &mut VecDeque<RecvWr>,
        memory: &mut dyn Memory,
        stage: &mut [u8],
        out: &mut Vec<Completion>,
    ) -> Turn {
        let mut taken = 0;
        loop {
            let parsed = self.parse(board, slots, memory, out);
            (self.starved, self.held_back) = (matches!(parsed, Parsed::Starved), matches!(parsed, Parsed::HeldBack));
            match parsed {
                Parsed::Refused(len) => return Turn::Refused(len),
                Parsed::Starved | Parsed::HeldBack => return Turn::Waits,
                Parsed::All => {}
            }
            if !self.readable {
                self.acknowledge();
                return Turn::Waits;
            }
            if taken >= TURN {
                return Turn::Busy;
            }
            match self.read(memory, stage) {
                Ok(0) => return Turn::Over(self.ended("the board has closed it")),
                Ok(len) => taken += len,
                Err(error) => match self.note_would_block(error) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                        return Turn::Over(self.ended("the board has ended it (RST)"));
                    }
                    Err(error) => return Turn::Over(self.ended(&error.to_string())),
                },
            }
        }
    }

    /// Lets the kernel acknowledge at once what has come of a message: by Nagle's algorithm its board may hold back the
    /// rest until then, and the kernel delays an acknowledgement by up to 40 ms. Only latency is lost if this fails.
    fn acknowledge(&mut self) {
        if self.is_cut() || !self.held.is_empty() {
            self.stream.acknowledge();
        }
    }

    fn ended(&self, how: &str) -> String {
        let within = if self.deframer.is_between_messages() { "" } else { " within a message" };
        format!("{}: its connection is over{within}: {how}", self.ip)
    }

    /// Whether the stream ends within a message.
    pub(super) fn is_cut(&self) -> bool {
        !self.deframer.is_between_messages()
    }

    /// Gives back the slot of a message that never became whole.
    pub(super) fn take_slot(&mut self) -> Option<RecvWr> {
        self.slot.take().map(|(slot, _)| slot)
    }

    /// Reads the rest of a long message into its slot and a little more, or else as much as the stage takes.
    fn read(&mut self, memory: &mut dyn Memory, stage: &mut [u8]) -> io::Result<usize> {
        let left = self.deframer.left();
        let direct = match self.slot {
            Some((slot, filled)) if left >= LONG => memory.place(slot.va + u64::from(filled), left),
            _ => None,
        };
        let (len, direct_len) = match direct {
            Some(rest) => {
                let mut into = [IoSliceMut::new(rest), IoSliceMut::new(&mut stage[..BEHIND])];
                (self.stream.read_vectored(&mut into)?, left as usize)
            }
            None => (self.stream.read(&mut stage[..STAGE])?, 0),
        };
        let into_slot = len.min(direct_len);
        if let Some((slot, filled)) = self.slot.as_mut().filter(|_| into_slot > 0) {
            memory.placed(slot.va + u64::from(*filled), into_slot as u32);
            *filled += into_slot as u32;
        }
        self.placed += into_slot as u64;
        self.deframer.took(into_slot as u32);
        self.held.extend_from_slice(&stage[..len - into_slot]);
        Ok(len)
    }

    /// Whether a whole message has come before, over another connection.
    fn is_duplicate(&self, memory: &mut dyn Memory, slot: RecvWr, len: u32) -> bool {
        let Some(received_up_to) = self.received_up_to else { return false };
        let id = memory.place(slot.va, len).and_then(|message| FragmentId::peek(message).ok());
        id.is_some_and(|id| id.event_number <= received_up_to)
    }

    /// Moves the message under way from its slot into another one, of another memory. False if there is none.
    pub(super) fn change_slot(&mut self, from: &mut dyn Memory, slot: RecvWr, into: &mut dyn Memory) -> bool {
        let Some((old, filled)) = self.slot else { return false };
        if let (Some(bytes), Some(place)) = (from.place(old.va, filled), into.place(slot.va, filled)) {
            place.copy_from_slice(bytes);
        }
        self.slot = Some((slot, filled));
        true
    }

    /// Takes what is held.
    fn parse(
        &mut self,
        board: u16,
        slots: &mut VecDeque<RecvWr>,
        memory: &mut dyn Memory,
        out: &mut Vec<Completion>,
    ) -> Parsed {
        let parsed = loop {
            if let Some((slot, len)) = self.slot.filter(|_| self.deframer.left() == 0) {
                if self.is_duplicate(memory, slot, len) {
                    self.slot = None;
                    slots.push_front(slot);
                    continue;
                }
                if !memory.admit(slot.va, None) {
                    break Parsed::HeldBack;
                }
                self.slot = None;
                self.messages += 1;
                out.push(Completion {
                    board,
                    wr_id: slot.wr_id,
                    status: RecvStatus::Success,
                    opcode: RecvOpcode::Send,
                    imm: None,
                    byte_len: len,
                    payload_crc: None,
                });
            }
            let (done, next) = self.deframer.look(&self.held[self.at..]);
            self.at += done;
            let left = match next {
                Next::More => break Parsed::All,
                Next::Refused(len) => break Parsed::Refused(len),
                Next::Message(left) => left,
            };
            let (slot, filled) = match self.slot {
                Some(under_way) => under_way,
                None => match slots.pop_front() {
                    Some(slot) => (slot, 0),
                    None => break Parsed::Starved,
                },
            };
            if self.fill(memory, slot, filled, left) < left {
                break Parsed::All;
            }
        };
        if self.at == self.held.len() {
            self.held.clear();
            self.at = 0;
        } else if self.at >= STAGE {
            self.held.drain(..self.at);
            self.at = 0;
        }
        parsed
    }

    /// Copies held bytes of the message under way into its slot, at most `left`; returns how many.
    fn fill(&mut self, memory: &mut dyn Memory, slot: RecvWr, filled: u32, left: u32) -> u32 {
        let bytes = &self.held[self.at..];
        let taken = bytes.len().min(left as usize);
        let va = slot.va + u64::from(filled);
        if let Some(place) = memory.place(va, taken as u32).filter(|_| taken > 0) {
            place.copy_from_slice(&bytes[..taken]);
            memory.placed(va, taken as u32);
        }
        self.slot = Some((slot, filled + taken as u32));
        self.placed += taken as u64;
        self.deframer.took(taken as u32);
        self.at += taken;
        taken as u32
    }
}
