// SPDX-License-Identifier: Apache-2.0
//! Finds the messages in a stream of bytes, and detects damage.
//! Promise: a byte is examined once, except during the search for a header; after damage the next intact header is
//! found; a stream with a message that no slot takes is read no further; sans-IO, stores no bytes.
//! Source: docs/fragments.md, "In a TCP stream".

use penstock_wire::{read_stream_header, stream_padding, STREAM_HEADER_LEN};

/// The next item in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Too few bytes to decide: pass these again with more following.
    More,
    /// A message of this number of bytes; pass them to [`Deframer::took`].
    Message(u32),
    /// A message of this number of bytes, none or more than a slot has: the ends do not agree, and nothing that follows
    /// is looked at.
    Refused(u32),
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeframerCounts {
    /// How often no header was where one must be.
    pub(crate) resynchronised: u64,
    /// Bytes passed over until the next one.
    pub(crate) bytes_skipped: u64,
    /// Messages that no slot can take, or of no bytes.
    pub(crate) messages_refused: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    Seeking,
    /// The outstanding bytes of a message, and zeros after it.
    Message {
        left: u32,
        padding: u32,
    },
    /// This number of zeros is to come.
    Passing(u32),
    /// It is refused for good.
    Refused(u32),
}

/// The reader of one stream.
#[derive(Debug)]
pub(crate) struct Deframer {
    longest: u32,
    state: State,
    counts: DeframerCounts,
}

impl Deframer {
    /// A deframer for messages of up to `longest` bytes.
    pub(crate) fn new(longest: u32) -> Self {
        Deframer { longest, state: State::Header, counts: DeframerCounts::default() }
    }

    pub(crate) fn counts(&self) -> DeframerCounts {
        self.counts
    }

    /// Whether the stream may end here.
    pub(crate) fn is_between_messages(&self) -> bool {
        matches!(self.state, State::Header | State::Passing(0) | State::Refused(_))
    }

    /// Whether a message has come that no slot takes.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.state, State::Refused(_))
    }

    /// Bytes of the message under way that are still to come; 0 between messages.
    pub(crate) fn left(&self) -> u32 {
        match self.state {
            State::Message { left, .. } => left,
            _ => 0,
        }
    }

    /// Looks at what is there between messages. How many of the bytes are done with, and what follows them.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> (usize, Next) {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match self.state {
                State::Message { left, .. } => return (at, Next::Message(left)),
                State::Refused(len) => return (at, Next::Refused(len)),
                State::Passing(0) => self.state = State::Header,
                State::Passing(left) => {
                    let passed = left.min(rest.len() as u32);
                    self.state = State::Passing(left - passed);
                    at += passed as usize;
                    if passed < left {
                        return (at, Next::More);
                    }
                }
                State::Header => {
                    let Some(header) = rest.first_chunk::<STREAM_HEADER_LEN>() else { return (at, Next::More) };
                    match read_stream_header(*header) {
                        Some(len) => {
                            at += STREAM_HEADER_LEN;
                            self.begin(len);
                        }
                        None => {
                            self.counts.resynchronised += 1;
                            self.state = State::Seeking;
                        }
                    }
                }
                State::Seeking => {
                    // A length that cannot be is chance, not a header.
                    let is_header = |window: &[u8]| {
                        let header = window.try_into().ok().and_then(read_stream_header);
                        header.is_some_and(|len| (1..=self.longest).contains(&len))
                    };
                    let found = rest.windows(STREAM_HEADER_LEN).position(is_header);
                    let skipped = found.unwrap_or(rest.len().saturating_sub(STREAM_HEADER_LEN - 1));
                    self.counts.bytes_skipped += skipped as u64;
                    at += skipped;
                    if found.is_none() {
                        return (at, Next::More);
                    }
                    self.state = State::Header;
                }
            }
        }
    }

    fn begin(&mut self, len: u32) {
        self.state = if (1..=self.longest).contains(&len) {
            State::Message { left: len, padding: stream_padding(len as usize) as u32 }
        } else {
            self.counts.messages_refused += 1;
            State::Refused(len)
        };
    }

    /// Records that this number of bytes of the message was taken. Returns whether it is complete.
    pub(crate) fn took(&mut self, bytes: u32) -> bool {
        let State::Message { left, padding } = &mut self.state else { return false };
        *left -= bytes.min(*left);
        let whole = *left == 0;
        if whole {
            self.state = State::Passing(*padding);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_wire::stream_header;

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        let mut stream = Vec::new();
        for message in messages {
            stream.extend(stream_header(message.len() as u32));
            stream.extend_from_slice(message);
            stream.resize(stream.len() + stream_padding(message.len()), 0);
        }
        stream
    }

    /// What comes out of a stream that is shown in pieces of `piece` bytes.
    fn read(stream: &[u8], piece: usize, longest: u32) -> (Vec<Vec<u8>>, DeframerCounts) {
        let mut deframer = Deframer::new(longest);
        let (mut messages, mut message, mut held) = (Vec::new(), Vec::new(), Vec::new());
        for part in stream.chunks(piece) {
            held.extend_from_slice(part);
            loop {
                let (done, next) = deframer.look(&held);
                held.drain(..done);
                let Next::Message(left) = next else { break };
                let taken = held.len().min(left as usize);
                message.extend(held.drain(..taken));
                if deframer.took(taken as u32) {
                    messages.push(std::mem::take(&mut message));
                } else if taken == 0 {
                    break;
                }
            }
        }
        (messages, deframer.counts())
    }

    #[test]
    fn messages_come_out_however_the_stream_is_cut() {
        let messages: Vec<Vec<u8>> = (1..40).map(|n| (0..n * 3).map(|byte| byte as u8).collect()).collect();
        let stream = framed(&messages.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for piece in [1, 2, 7, 8, 9, 64, 1000, stream.len()] {
            let (read, counts) = read(&stream, piece, 200);
            assert_eq!((read, counts), (messages.clone(), DeframerCounts::default()), "pieces of {piece}");
        }
    }

    #[test]
    fn after_damage_the_next_whole_message_is_found() {
        let messages = [&[1_u8; 40][..], &[2; 21], &[3; 64], &[4; 5]];
        let whole = framed(&messages);
        let second = STREAM_HEADER_LEN + 40;
        for bit in 0..64 {
            let mut stream = whole.clone();
            stream[second + bit / 8] ^= 1 << (bit % 8);
            let (read, counts) = read(&stream, 13, 200);
            assert_eq!(read, [messages[0], messages[2], messages[3]]);
            assert_eq!((counts.resynchronised, counts.bytes_skipped), (1, 8 + 24));
        }
        // Bytes that are missing or too many do not matter either.
        let mut stream = whole.clone();
        stream.drain(second + 3..second + 8);
        assert_eq!(read(&stream, 5, 200).0, [messages[0], messages[2], messages[3]]);
        let mut stream = whole;
        stream.splice(second..second, [9; 11]);
        assert_eq!(read(&stream, 5, 200).0, messages);
    }

    #[test]
    fn nothing_is_read_behind_a_message_that_no_slot_takes() {
        for len in [0, 201, u32::MAX] {
            let stream = [framed(&[&[1; 8]]), stream_header(len).to_vec(), framed(&[&[3; 8]])].concat();
            let mut deframer = Deframer::new(200);
            assert_eq!(deframer.look(&stream), (8, Next::Message(8)));
            assert!(deframer.took(8));
            assert_eq!(deframer.look(&stream[16..]), (8, Next::Refused(len)));
            assert_eq!(deframer.look(&stream[24..]), (0, Next::Refused(len)));
            assert_eq!(deframer.counts(), DeframerCounts { messages_refused: 1, ..DeframerCounts::default() });
        }
    }
}
