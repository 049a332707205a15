// SPDX-License-Identifier: Apache-2.0
//! A request: accesses to registers in order, and their distribution over packets.
//! Promise: a packet and its reply fit [`PACKET_WORDS`]; an access of any length is divided into packets, and its words
//! are returned together.

use crate::packet::{Info, Kind, PacketHeader, PacketKind, TransactionHeader, PACKET_WORDS};

/// Words that one transaction may have.
const TRANSACTION_WORDS: usize = 255;
/// Words of a write before its data: header and address.
const WRITE_HEAD: usize = 2;

/// One access to registers; addresses are bytes, as in the register map.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Access {
    Read {
        address: u32,
        count: usize,
    },
    /// Every word from the same address.
    ReadFifo {
        address: u32,
        count: usize,
    },
    Write {
        address: u32,
        words: Vec<u32>,
    },
    /// Every word to the same address.
    WriteFifo {
        address: u32,
        words: Vec<u32>,
    },
    /// (old & and) | or; its words are the old one.
    Bits {
        address: u32,
        and: u32,
        or: u32,
    },
    /// old + addend, modulo 2^32; its words are the old one.
    Sum {
        address: u32,
        addend: u32,
    },
}

impl Access {
    /// Reads one word.
    pub const fn read(address: u32) -> Self {
        Access::Read { address, count: 1 }
    }

    /// Writes one word.
    pub fn write(address: u32, word: u32) -> Self {
        Access::Write { address, words: vec![word] }
    }

    /// Whether carrying it out twice is the same as once.
    const fn only_looks(&self) -> bool {
        matches!(self, Access::Read { .. })
    }

    /// Words that it is answered with.
    pub const fn answers(&self) -> usize {
        match self {
            Access::Read { count, .. } | Access::ReadFifo { count, .. } => *count,
            Access::Write { .. } | Access::WriteFifo { .. } => 0,
            Access::Bits { .. } | Access::Sum { .. } => 1,
        }
    }
}

/// Accesses of one board, carried out in this order. The first that the board refuses ends it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    #[allow(missing_docs)]
    pub accesses: Vec<Access>,
}

impl Request {
    /// Reads single words.
    pub fn reads(addresses: impl IntoIterator<Item = u32>) -> Self {
        addresses.into_iter().map(Access::read).collect()
    }

    /// Whether it changes nothing, so that its packets may be repeated and may overtake each other.
    pub fn only_looks(&self) -> bool {
        self.accesses.iter().all(Access::only_looks)
    }
}

impl FromIterator<Access> for Request {
    fn from_iter<I: IntoIterator<Item = Access>>(accesses: I) -> Self {
        Request { accesses: accesses.into_iter().collect() }
    }
}

impl From<Access> for Request {
    fn from(access: Access) -> Self {
        Request { accesses: vec![access] }
    }
}

/// The words of each access: those read, the old word of a read-modify-write, none of a write.
pub type Outcome = Result<Vec<Vec<u32>>, AccessError>;

/// Why a request was not carried out to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum AccessError {
    /// Everything before this word was executed, nothing after it.
    #[error("it refuses to {} 0x{address:05X}: {}", if *.is_write { "write" } else { "read" },
        if *.is_write { "no such register, read-only, or locked" } else { "no such register" })]
    Refused { address: u32, is_write: bool },
    #[error("no answer to {tries} packets in {:.1} s: {}", waited.as_secs_f64(), if *.has_answered {
        "it answered before, and then stopped: power, cable, or its access list" } else {
        "not powered, another address, or its access list leaves this host out" })]
    Silent { tries: u32, waited: penstock_units::Time, has_answered: bool },
    #[error("it was reset while it was written to; its settings are those after reset")]
    Restarted,
    #[error("it answers, but its reply to a write is lost, and other clients' packets have replaced it: read the registers \
        again")]
    Unknown,
    /// Never carried out.
    #[error("it answers, but other clients' packets came before each of ours for {:.1} s: nothing was written",
        waited.as_secs_f64())]
    Crowded { waited: penstock_units::Time },
    #[error("it answers what IPbus 2.0 does not allow (transaction header 0x{word:08X}); is this a Penstock board?")]
    Protocol { word: u32 },
}

/// The part of an access in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    access: usize,
    /// Its first word among those of the access.
    offset: usize,
    /// Byte address of its first word.
    address: u32,
    kind: Kind,
    words: u8,
    is_fifo: bool,
}

/// A packet to be sent; its header comes last, with the packet id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    pieces: Vec<Piece>,
    /// All words; the header is 0 until it is known.
    pub words: Vec<u32>,
    /// Transaction id of the first piece; the others count on.
    pub first_id: u16,
    reply_words: usize,
}

/// Words of an access, from `offset` on.
#[derive(Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub access: usize,
    pub offset: usize,
    pub words: &'a [u32],
}

/// The contents of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Not to this packet.
    Foreign,
    /// The words of each piece.
    Done(Vec<Part<'a>>),
    Failed(AccessError),
}

impl Packet {
    fn new() -> Self {
        Packet { pieces: Vec::new(), words: vec![0], first_id: 0, reply_words: 1 }
    }

    /// Packet id and order of bytes on the wire.
    pub fn set_header(&mut self, id: u16) {
        self.words[0] = PacketHeader { id, kind: PacketKind::Control }.word();
    }

    /// Numbers its transactions from `next` on.
    pub fn number(&mut self, next: &mut u16) {
        self.first_id = *next & 0xFFF;
        let mut at = 1;
        for piece in &self.pieces {
            let header =
                TransactionHeader { id: *next & 0xFFF, words: piece.words, kind: piece.kind, info: Info::Request };
            self.words[at] = header.word();
            at += piece.request_words();
            *next = next.wrapping_add(1);
        }
    }

    fn has_room(&self, request: usize, reply: usize) -> bool {
        self.words.len() + request <= PACKET_WORDS && self.reply_words + reply <= PACKET_WORDS
    }

    fn push(&mut self, piece: Piece, data: &[u32]) {
        self.words.push(0);
        self.words.push(piece.address / 4);
        self.words.extend_from_slice(data);
        self.reply_words += 1 + piece.answered_words();
        self.pieces.push(piece);
    }

    /// Reads the words of a reply after its header.
    pub fn reply<'a>(&self, words: &'a [u32]) -> Reply<'a> {
        let mut at = 0;
        let mut done = Vec::with_capacity(self.pieces.len());
        for (number, piece) in self.pieces.iter().enumerate() {
            let id = self.first_id.wrapping_add(number as u16) & 0xFFF;
            let Some(word) = words.get(at).copied() else { return Reply::Foreign };
            let Some(header) = TransactionHeader::parse(word) else { return Reply::Foreign };
            if header.id != id || header.kind != piece.kind || header.words > piece.words {
                return Reply::Foreign;
            }
            match header.info {
                Info::Success if header.words == piece.words => {}
                Info::ReadError | Info::ReadTimeout | Info::WriteError | Info::WriteTimeout => {
                    let step = if piece.is_fifo { 0 } else { 4 };
                    let address = piece.address + step * u32::from(header.words);
                    let is_write = matches!(header.info, Info::WriteError | Info::WriteTimeout);
                    return Reply::Failed(AccessError::Refused { address, is_write });
                }
                _ => return Reply::Failed(AccessError::Protocol { word }),
            }
            let answered = piece.answered_words();
            let Some(data) = words.get(at + 1..at + 1 + answered) else { return Reply::Foreign };
            if answered > 0 {
                done.push(Part { access: piece.access, offset: piece.offset, words: data });
            }
            at += 1 + answered;
        }
        if at == words.len() {
            Reply::Done(done)
        } else {
            Reply::Foreign
        }
    }
}

impl Piece {
    fn request_words(&self) -> usize {
        WRITE_HEAD
            + match self.kind {
                Kind::Read | Kind::ReadFifo => 0,
                Kind::Write | Kind::WriteFifo => usize::from(self.words),
                Kind::RmwBits => 2,
                Kind::RmwSum => 1,
            }
    }

    /// Words after the header of the reply.
    fn answered_words(&self) -> usize {
        match self.kind {
            Kind::Write | Kind::WriteFifo => 0,
            _ => usize::from(self.words),
        }
    }
}

/// Divides a request among packets.
pub fn packets(request: &Request) -> Vec<Packet> {
    let mut made = Vec::new();
    let mut packet = Packet::new();
    for (access, what) in request.accesses.iter().enumerate() {
        let (kind, start, data, total) = match what {
            Access::Read { address, count } => (Kind::Read, *address, &[][..], *count),
            Access::ReadFifo { address, count } => (Kind::ReadFifo, *address, &[][..], *count),
            Access::Write { address, words } => (Kind::Write, *address, &words[..], words.len()),
            Access::WriteFifo { address, words } => (Kind::WriteFifo, *address, &words[..], words.len()),
            Access::Bits { address, and, or } => {
                single(&mut made, &mut packet, access, Kind::RmwBits, *address, &[*and, *or]);
                continue;
            }
            Access::Sum { address, addend } => {
                single(&mut made, &mut packet, access, Kind::RmwSum, *address, &[*addend]);
                continue;
            }
        };
        let (is_fifo, is_read) = (matches!(kind, Kind::ReadFifo | Kind::WriteFifo), data.is_empty());
        let mut offset = 0;
        while offset < total {
            let left = total - offset;
            // A read needs room in the reply, a write in the request; a piece of few words is not worth it.
            let least = left.min(16);
            let (request, reply) = if is_read { (WRITE_HEAD, 1 + least) } else { (WRITE_HEAD + least, 1) };
            if !packet.has_room(request, reply) {
                made.push(std::mem::replace(&mut packet, Packet::new()));
            }
            let room = match is_read {
                true => PACKET_WORDS - packet.reply_words - 1,
                false => PACKET_WORDS - packet.words.len() - WRITE_HEAD,
            };
            let count = left.min(room).min(TRANSACTION_WORDS);
            let part = if is_read { data } else { &data[offset..offset + count] };
            let address = if is_fifo { start } else { start + 4 * offset as u32 };
            packet.push(Piece { access, offset, address, kind, words: count as u8, is_fifo }, part);
            offset += count;
        }
    }
    if !packet.pieces.is_empty() {
        made.push(packet);
    }
    made
}

fn single(made: &mut Vec<Packet>, packet: &mut Packet, access: usize, kind: Kind, address: u32, data: &[u32]) {
    if !packet.has_room(WRITE_HEAD + data.len(), 2) {
        made.push(std::mem::replace(packet, Packet::new()));
    }
    packet.push(Piece { access, offset: 0, address, kind, words: 1, is_fifo: false }, data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_accesses_are_divided_and_no_packet_is_too_long() {
        let request: Request = [
            Access::Write { address: 0x8000, words: (0..4096).collect() },
            Access::Read { address: 0x8000, count: 4096 },
            Access::ReadFifo { address: 0x20, count: 300 },
            Access::Sum { address: 0x18, addend: 1 },
        ]
        .into_iter()
        .chain((0..500).map(|n| Access::Bits { address: 4 * n, and: 0, or: n }))
        .collect();
        let made = packets(&request);
        assert!(made.len() < 40, "{}", made.len());
        let mut seen = 0;
        for packet in &made {
            assert!(packet.words.len() <= PACKET_WORDS && packet.reply_words <= PACKET_WORDS);
            for piece in &packet.pieces {
                if piece.access == 0 {
                    assert_eq!(piece.address, 0x8000 + 4 * seen);
                    seen += u32::from(piece.words);
                }
                if piece.is_fifo {
                    assert_eq!(piece.address, 0x20);
                }
            }
        }
        assert_eq!(seen, 4096);
    }

    #[test]
    fn a_hundred_single_writes_are_one_packet() {
        let request: Request = (0..100).map(|n| Access::write(4 * n, n)).collect();
        assert_eq!(packets(&request).len(), 1);
        assert!(!request.only_looks() && Request::reads([0, 4]).only_looks());
    }

    #[test]
    fn replies_of_others_and_refusals_are_distinguished() {
        let request: Request = [Access::read(0x10), Access::write(0x20, 5)].into_iter().collect();
        let mut packet = packets(&request).remove(0);
        packet.number(&mut 0xFFF);
        assert_eq!(
            packet.reply(&[0x2FFF_0100, 42, 0x2000_0110]),
            Reply::Done(vec![Part { access: 0, offset: 0, words: &[42] }])
        );
        assert_eq!(packet.reply(&[0x2FFE_0100, 42, 0x2000_0110]), Reply::Foreign);
        assert_eq!(packet.reply(&[0x2FFF_0100, 42]), Reply::Foreign);
        let refused = AccessError::Refused { address: 0x20, is_write: true };
        assert_eq!(packet.reply(&[0x2FFF_0100, 42, 0x2000_0015]), Reply::Failed(refused));
        assert_eq!(packet.reply(&[0x3FFF_0100]), Reply::Foreign);
        assert_eq!(packet.reply(&[0x2FFF_0001]), Reply::Failed(AccessError::Protocol { word: 0x2FFF_0001 }));
    }
}
