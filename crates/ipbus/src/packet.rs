// SPDX-License-Identifier: Apache-2.0
//! Words of IPbus 2.0: packet and transaction headers, and the status packet.
//!
//! ```text
//!  packet       31:28 version 2 | 27:24 0  | 23:8 packet id      | 7:4 F    | 3:0 kind (control, status, resend)
//!  transaction  31:28 version 2 | 27:16 id | 15:8 words          | 7:4 kind | 3:0 info (F: request)
//! ```
//!
//! Words are sent in big-endian order; the gateware accepts either order.

/// UDP port of a board.
pub const PORT: u16 = 50001;
/// Words of the longest packet: an Ethernet MTU of 1500 bytes without the headers of IP and UDP.
pub const PACKET_WORDS: usize = 368;
/// Words of a status packet.
pub const STATUS_WORDS: usize = 16;
const VERSION: u32 = 2;

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum PacketKind {
    Control = 0,
    Status = 1,
    Resend = 2,
}

/// The first word of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHeader {
    /// 0: unreliable, carried out whenever it comes.
    pub id: u16,
    #[allow(missing_docs)]
    pub kind: PacketKind,
}

impl PacketHeader {
    /// The header as a word.
    pub const fn word(self) -> u32 {
        VERSION << 28 | (self.id as u32) << 8 | 0xF0 | self.kind as u32
    }

    /// None: no header of IPbus 2.0.
    pub fn parse(word: u32) -> Option<Self> {
        let kind = match word & 0xF {
            0 => PacketKind::Control,
            1 => PacketKind::Status,
            2 => PacketKind::Resend,
            _ => return None,
        };
        let is_header = word >> 28 == VERSION && (word >> 24) & 0xF == 0 && (word >> 4) & 0xF == 0xF;
        is_header.then_some(PacketHeader { id: (word >> 8) as u16, kind })
    }
}

/// The kind of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Read = 0,
    Write = 1,
    /// Every word from the same address.
    ReadFifo = 2,
    WriteFifo = 3,
    /// (old & AND term) | OR term; answers the old word.
    RmwBits = 4,
    /// old + addend; answers the old word.
    RmwSum = 5,
}

/// How a transaction ended; `Request` in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Info {
    Success = 0,
    BadHeader = 1,
    ReadError = 4,
    WriteError = 5,
    ReadTimeout = 6,
    WriteTimeout = 7,
    Request = 0xF,
}

/// The first word of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TransactionHeader {
    /// 12 bits, chosen by the client.
    pub id: u16,
    pub words: u8,
    pub kind: Kind,
    pub info: Info,
}

impl TransactionHeader {
    /// The header as a word.
    pub const fn word(self) -> u32 {
        VERSION << 28
            | (self.id as u32 & 0xFFF) << 16
            | (self.words as u32) << 8
            | (self.kind as u32) << 4
            | self.info as u32
    }

    /// None: no header of IPbus 2.0.
    pub fn parse(word: u32) -> Option<Self> {
        let kind = match (word >> 4) & 0xF {
            0 => Kind::Read,
            1 => Kind::Write,
            2 => Kind::ReadFifo,
            3 => Kind::WriteFifo,
            4 => Kind::RmwBits,
            5 => Kind::RmwSum,
            _ => return None,
        };
        let info = match word & 0xF {
            0 => Info::Success,
            1 => Info::BadHeader,
            4 => Info::ReadError,
            5 => Info::WriteError,
            6 => Info::ReadTimeout,
            7 => Info::WriteTimeout,
            0xF => Info::Request,
            _ => return None,
        };
        let header = TransactionHeader { id: (word >> 16) as u16 & 0xFFF, words: (word >> 8) as u8, kind, info };
        (word >> 28 == VERSION).then_some(header)
    }
}

/// The parts of a status reply that a client needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusReply {
    /// Bytes of the longest packet.
    pub mtu_bytes: u32,
    /// Replies that are kept.
    pub buffers: u32,
    /// Packet id that the board waits for.
    pub next_id: u16,
}

impl StatusReply {
    /// Reads a whole packet; None: it is no status reply.
    pub fn parse(words: &[u32]) -> Option<Self> {
        let is_status = words.len() == STATUS_WORDS
            && PacketHeader::parse(words[0]) == Some(PacketHeader { id: 0, kind: PacketKind::Status });
        let next = PacketHeader::parse(*words.get(3)?)?;
        is_status.then_some(StatusReply { mtu_bytes: words[1], buffers: words[2], next_id: next.id })
    }
}

/// A status request packet.
pub fn status_request() -> Vec<u32> {
    let mut words = vec![0; STATUS_WORDS];
    words[0] = PacketHeader { id: 0, kind: PacketKind::Status }.word();
    words
}

/// The packet id that follows; 0 is not one.
pub const fn following(id: u16) -> u16 {
    if id == u16::MAX {
        1
    } else {
        id + 1
    }
}

/// How many packet ids `later` is ahead of `earlier`, 0 to 65534.
pub const fn ahead(later: u16, earlier: u16) -> u32 {
    let span = u16::MAX as u32;
    (later as u32 + span - earlier as u32) % span
}

/// Words in the order of the network.
pub fn to_bytes(words: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 * words.len());
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_be_bytes()));
    bytes
}

/// The words of a packet in either order, that of its first byte, and whether that is big-endian; None: no whole
/// words.
pub fn from_bytes(bytes: &[u8]) -> Option<(Vec<u32>, bool)> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return None;
    }
    let big = bytes[0] & 0xF0 != 0xF0;
    let word = |chunk: &[u8]| {
        let chunk = [chunk[0], chunk[1], chunk[2], chunk[3]];
        if big {
            u32::from_be_bytes(chunk)
        } else {
            u32::from_le_bytes(chunk)
        }
    };
    Some((bytes.chunks_exact(4).map(word).collect(), big))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_words_of_the_specification() {
        let packet = PacketHeader { id: 0xABCD, kind: PacketKind::Control };
        assert_eq!(packet.word(), 0x20AB_CDF0);
        assert_eq!(PacketHeader::parse(0x20AB_CDF0), Some(packet));
        assert_eq!(status_request()[0], 0x2000_00F1);
        let read = TransactionHeader { id: 0x123, words: 5, kind: Kind::Read, info: Info::Request };
        assert_eq!(read.word(), 0x2123_050F);
        assert_eq!(TransactionHeader::parse(0x2123_050F), Some(read));
        for wrong in [0x1000_00F0, 0x2000_0000, 0x2000_00F3, 0x2100_00F0] {
            assert_eq!(PacketHeader::parse(wrong), None, "{wrong:08x}");
        }
        for wrong in [0x1123_050F, 0x2123_056F, 0x2123_0502] {
            assert_eq!(TransactionHeader::parse(wrong), None, "{wrong:08x}");
        }
    }

    #[test]
    fn packet_ids_go_round_without_0() {
        assert_eq!((following(1), following(0xFFFF)), (2, 1));
        assert_eq!((ahead(5, 3), ahead(1, 0xFFFF), ahead(3, 3)), (2, 1, 0));
        assert_eq!(ahead(1, 7), 65529);
    }

    #[test]
    fn words_are_read_in_either_order() {
        let words = [0x2000_01F0, 0x2001_010F, 7];
        let big = to_bytes(&words);
        let little: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(from_bytes(&big), Some((words.to_vec(), true)));
        assert_eq!(from_bytes(&little), Some((words.to_vec(), false)));
        assert_eq!(from_bytes(&big[..7]), None);
        assert_eq!(from_bytes(&[]), None);
    }
}
