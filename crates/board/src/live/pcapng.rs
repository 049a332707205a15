// SPDX-License-Identifier: Apache-2.0
//! Reads the frames of a pcapng file, with their times.
//! Promise: blocks without frames are skipped by their length, whatever they contain; options may end with or without
//! `opt_endofopt`; a file that breaks the format is refused with the number of the block. Never a panic.
//! Source: pcapng (draft-ietf-opsawg-pcapng): section header, interface description, enhanced and
//! simple packets, and the obsolete packet block.
//!
//! ```text
//! block: type u32 | length of the block u32 | body | length again u32        all in the section's byte order
//! ```

use bytes::Bytes;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPT_END: u16 = 0;
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
const EPB_FLAGS: u16 = 2;

const PS_PER_S: i128 = 1_000_000_000_000;
const ETHERNET: u16 = 1;

/// A frame as it was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Captured {
    /// Time since the epoch; a simple packet has the time of the frame in front of it.
    pub at_ps: i128,
    /// The frame without FCS.
    pub frame: Bytes,
}

/// Why a file is refused.
pub(super) type Refused = String;

#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if self.is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn i64(self, bytes: &[u8]) -> Option<i64> {
        let bytes = bytes.try_into().ok()?;
        Some(if self.is_big { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) })
    }

    /// Code and value of each option. None: one is longer than the block.
    fn options(self, mut bytes: &[u8]) -> Option<Vec<(u16, &[u8])>> {
        let mut options = Vec::new();
        while !bytes.is_empty() {
            let (code, len) = (self.u16(bytes, 0)?, usize::from(self.u16(bytes, 2)?));
            if code == OPT_END {
                break;
            }
            options.push((code, bytes.get(4..4 + len)?));
            // The padding of the last one may be missing.
            bytes = bytes.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(options)
    }
}

#[derive(Clone, Copy)]
struct Interface {
    link_type: u16,
    /// 0: unlimited.
    snap: u32,
    resolution: u8,
    offset_s: i64,
    fcs_len: usize,
}

impl Interface {
    fn parse(order: Order, body: &[u8]) -> Option<Interface> {
        let (link_type, snap) = (order.u16(body, 0)?, order.u32(body, 4)?);
        let mut found = Interface { link_type, snap, resolution: 6, offset_s: 0, fcs_len: 0 };
        for (code, value) in order.options(body.get(8..)?)? {
            match (code, value) {
                (IF_TSRESOL, [resolution]) => found.resolution = *resolution,
                (IF_FCSLEN, [len]) => found.fcs_len = usize::from(*len),
                (IF_TSOFFSET, value) => found.offset_s = order.i64(value)?,
                _ => {}
            }
        }
        Some(found)
    }

    /// Units of `if_tsresol` are a power of ten, or of two where its highest bit is set.
    fn picoseconds(&self, ticks: u64) -> i128 {
        let base: i128 = if self.resolution & 0x80 == 0 { 10 } else { 2 };
        let units = base.checked_pow(u32::from(self.resolution & 0x7f)).unwrap_or(i128::MAX);
        let ticks = i128::from(ticks);
        // Whole seconds first: 2^64 units times 10^12 fit.
        (i128::from(self.offset_s) + ticks / units) * PS_PER_S + (ticks % units).saturating_mul(PS_PER_S) / units
    }
}

/// A packet block as it is in the file.
struct Packet<'a> {
    interface: usize,
    /// None: the block has no time.
    ticks: Option<u64>,
    len: usize,
    data: &'a [u8],
    fcs_len: Option<usize>,
}

/// The frames of a file, in its order.
///
/// # Errors
/// It is no pcapng, breaks the format, or has frames of another link or that were cut.
pub(super) fn frames(file: &[u8]) -> Result<Vec<Captured>, Refused> {
    if file.get(..4) != Some(&SECTION_HEADER.to_be_bytes()) {
        return Err("not a pcapng file; `editcap -F pcapng in out` makes one".into());
    }
    let (mut order, mut interfaces, mut found) = (Order { is_big: false }, Vec::new(), Vec::<Captured>::new());
    let (mut rest, mut number) = (file, 0);
    while !rest.is_empty() {
        number += 1;
        let malformed = |what: &str| match number {
            1 => format!("not a pcapng file: block 1: {what}"),
            _ => format!("block {number}: {what}"),
        };
        if rest.get(..4) == Some(&SECTION_HEADER.to_be_bytes()) {
            let magic = rest.get(8..12).ok_or_else(|| malformed("the file ends within it"))?;
            order.is_big = magic == BYTE_ORDER.to_be_bytes();
            if !order.is_big && magic != BYTE_ORDER.to_le_bytes() {
                return Err(malformed("its byte-order magic is wrong"));
            }
            if order.u16(rest, 12) != Some(1) {
                return Err(malformed("a section of another version than 1"));
            }
            interfaces.clear();
        }
        let (Some(kind), Some(len)) = (order.u32(rest, 0), order.u32(rest, 4)) else {
            return Err(malformed("the file ends within it"));
        };
        let len = len as usize;
        if len < 12 || !len.is_multiple_of(4) {
            return Err(malformed(&format!("a length of {len} bytes: allowed are multiples of 4 from 12 on")));
        }
        let block = rest.get(..len).ok_or_else(|| malformed("the file ends within it"))?;
        if order.u32(block, len - 4) != Some(len as u32) {
            return Err(malformed("its two lengths differ"));
        }
        let body = &block[8..len - 4];
        rest = &rest[len..];
        let short = || malformed("it is shorter than its contents");
        let packet = match kind {
            INTERFACE => {
                interfaces.push(Interface::parse(order, body).ok_or_else(short)?);
                continue;
            }
            ENHANCED_PACKET => enhanced(order, body).ok_or_else(short)?,
            PACKET => obsolete(order, body).ok_or_else(short)?,
            SIMPLE_PACKET => simple(order, body, &interfaces).ok_or_else(short)?,
            _ => continue,
        };
        let before = found.last().map_or(0, |frame| frame.at_ps);
        let frame = frame(&packet, &interfaces, before);
        found.push(frame.map_err(|what| format!("frame {}{what}", found.len() + 1))?);
    }
    Ok(found)
}

fn frame(packet: &Packet, interfaces: &[Interface], before: i128) -> Result<Captured, String> {
    let number = packet.interface;
    let interface = interfaces.get(number).ok_or(format!(" is of interface {number}, which is not described"))?;
    if interface.link_type != ETHERNET {
        return Err(format!(" has link type {}; only Ethernet (1) can be replayed", interface.link_type));
    }
    let (kept, len) = (packet.data.len(), packet.len);
    if kept < len {
        return Err(format!(" is cut to {kept} of {len} bytes; capture whole frames (-s 0)"));
    }
    let fcs_len = packet.fcs_len.unwrap_or(interface.fcs_len);
    let frame = Bytes::copy_from_slice(&packet.data[..kept.saturating_sub(fcs_len)]);
    Ok(Captured { at_ps: packet.ticks.map_or(before, |ticks| interface.picoseconds(ticks)), frame })
}

fn enhanced(order: Order, body: &[u8]) -> Option<Packet<'_>> {
    let word = |at| order.u32(body, at);
    let ticks = u64::from(word(4)?) << 32 | u64::from(word(8)?);
    let (kept, len) = (word(12)? as usize, word(16)? as usize);
    let options = order.options(body.get(20 + kept.next_multiple_of(4)..).unwrap_or_default())?;
    let flags = options.into_iter().find(|(code, _)| *code == EPB_FLAGS).and_then(|(_, value)| order.u32(value, 0));
    // 0: the length of the FCS is that of the interface.
    let fcs_len = flags.map(|flags| (flags >> 5 & 0xF) as usize).filter(|len| *len > 0);
    let data = body.get(20..20 + kept)?;
    Some(Packet { interface: word(0)? as usize, ticks: Some(ticks), len, data, fcs_len })
}

fn obsolete(order: Order, body: &[u8]) -> Option<Packet<'_>> {
    let word = |at| order.u32(body, at);
    let ticks = u64::from(word(4)?) << 32 | u64::from(word(8)?);
    let (kept, len) = (word(12)? as usize, word(16)? as usize);
    let data = body.get(20..20 + kept)?;
    Some(Packet { interface: usize::from(order.u16(body, 0)?), ticks: Some(ticks), len, data, fcs_len: None })
}

/// A Simple Packet of interface 0; its length in the file follows from that of the frame and the interface's limit.
fn simple<'a>(order: Order, body: &'a [u8], interfaces: &[Interface]) -> Option<Packet<'a>> {
    let len = order.u32(body, 0)? as usize;
    let snap = interfaces.first().map_or(0, |interface| interface.snap as usize);
    let kept = if snap > 0 { len.min(snap) } else { len };
    Some(Packet { interface: 0, ticks: None, len, data: body.get(4..4 + kept)?, fcs_len: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(is_big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
        let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = word(body.len() as u32 + 12);
        [&word(kind)[..], &len, &body, &len].concat()
    }

    /// Words of a body, then its bytes.
    fn body(is_big: bool, words: &[u32], bytes: &[u8]) -> Vec<u8> {
        let word = |value: &u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        [&words.iter().flat_map(word).collect::<Vec<u8>>()[..], bytes].concat()
    }

    fn section(is_big: bool) -> Vec<u8> {
        let version = if is_big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
        block(is_big, SECTION_HEADER, &[&body(is_big, &[BYTE_ORDER], &version)[..], &[0xFF; 8]].concat())
    }

    fn interface(is_big: bool, snap: u32, options: &[u8]) -> Vec<u8> {
        let link = if is_big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
        block(is_big, INTERFACE, &[&link[..], &body(is_big, &[snap], options)].concat())
    }

    fn packet(is_big: bool, ticks: u32, data: &[u8], options: &[u8]) -> Vec<u8> {
        let len = data.len() as u32;
        let mut data = data.to_vec();
        data.resize(data.len().next_multiple_of(4), 0);
        data.extend_from_slice(options);
        block(is_big, ENHANCED_PACKET, &body(is_big, &[0, 0, ticks, len, len], &data))
    }

    fn read(parts: &[Vec<u8>]) -> Result<Vec<(i128, Vec<u8>)>, String> {
        frames(&parts.concat()).map(|found| found.into_iter().map(|one| (one.at_ps, one.frame.to_vec())).collect())
    }

    #[test]
    fn options_end_with_or_without_an_end_and_may_hold_what_is_no_text() {
        for is_big in [false, true] {
            let option = |code: u16, value: &[u8]| {
                let head = if is_big { u16::to_be_bytes } else { u16::to_le_bytes };
                [&head(code)[..], &head(value.len() as u16), value].concat()
            };
            let comment = option(1, b"\xFFnot");
            let with_end = [option(2, &[0, 0, 0, 0]), option(0, &[])].concat();
            let zone = option(10, &[0, 0, 0, 0]); // if_tzone
            let parts = [
                section(is_big),
                interface(is_big, 0, &zone),
                packet(is_big, 7, b"first", &comment),
                packet(is_big, 9, b"second", &with_end),
            ];
            let expected = [(7_000_000, b"first".to_vec()), (9_000_000, b"second".to_vec())];
            assert_eq!(read(&parts).unwrap(), expected, "big-endian {is_big}");
        }
    }

    #[test]
    fn simple_and_obsolete_packets_are_frames_and_other_blocks_are_skipped() {
        let simple = |len: u32, data: &[u8]| block(false, SIMPLE_PACKET, &body(false, &[len], data));
        let old = block(false, PACKET, &body(false, &[0, 0, 5, 3, 3], b"old"));
        let unknown = block(false, 0x0BAD, b"\xFF\xFF\xFF\xFF");
        let parts = [section(false), unknown, interface(false, 0, &[]), simple(3, b"abc"), old, simple(4, b"late")];
        let expected = [(0, b"abc".to_vec()), (5_000_000, b"old".to_vec()), (5_000_000, b"late".to_vec())];
        assert_eq!(read(&parts).unwrap(), expected);
        let cut = [section(false), interface(false, 3, &[]), simple(8, b"abc")];
        assert_eq!(read(&cut).unwrap_err(), "frame 1 is cut to 3 of 8 bytes; capture whole frames (-s 0)");
    }

    #[test]
    fn times_have_the_units_and_offset_of_their_interface_and_an_fcs_is_no_part_of_a_frame() {
        let of = |options: &[u8]| {
            let parts = [section(false), interface(false, 0, options), packet(false, 6, b"dataFCS!", &[])];
            read(&parts).unwrap().remove(0)
        };
        assert_eq!(of(&[9, 0, 1, 0, 9, 0, 0, 0]).0, 6_000);
        assert_eq!(of(&[9, 0, 1, 0, 0x81, 0, 0, 0]).0, 3 * PS_PER_S);
        let offset = [&[14, 0, 8, 0][..], &(-2i64).to_le_bytes()].concat();
        assert_eq!(of(&offset).0, 6_000_000 - 2 * PS_PER_S);
        assert_eq!(of(&[13, 0, 1, 0, 4, 0, 0, 0]).1, b"data");
        assert_eq!(of(&[]).1, b"dataFCS!");
    }

    #[test]
    fn every_section_has_its_own_interfaces_and_byte_order() {
        let parts = [
            section(true),
            interface(true, 0, &[]),
            packet(true, 1, b"big", &[]),
            section(false),
            packet(false, 2, b"little", &[]),
        ];
        assert_eq!(read(&parts).unwrap_err(), "frame 2 is of interface 0, which is not described");
    }

    #[test]
    fn a_file_that_is_cut_or_damaged_anywhere_is_read_or_refused() {
        let parts = [section(false), interface(false, 0, &[9, 0, 1, 0, 9, 0, 0, 0]), packet(false, 1, b"frame", &[])];
        let whole = parts.concat();
        for len in 0..whole.len() {
            let ends = [0, parts[0].len(), parts[0].len() + parts[1].len()].contains(&len);
            assert_eq!(frames(&whole[..len]).is_ok(), ends && len > 0, "{len} bytes");
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[len] ^= 1 << bit;
                let _ = frames(&damaged);
            }
        }
    }
}
