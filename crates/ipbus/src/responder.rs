// SPDX-License-Identifier: Apache-2.0
//! A board in software, or a QCN switch: the protocol of `rtl/ctrl/ipbus_target.sv` and the register map, without
//! gateware.
//! Promise: packets get the replies that the gateware gives: each packet id executed once, replies kept, bus errors,
//! status and resend. Registers store values as the map says; of the gateware's functions, the board emulates the
//! states of queue pairs, the source's run, the commit of the destination table, closing by command, and the locked
//! access list. A switch forwards nothing; its MAC table can be looked at.

use crate::map::{Build, Map, BOARD, MAP_HASH, SWITCH};
use crate::packet::{
    following, from_bytes, Info, Kind, PacketHeader, PacketKind, TransactionHeader, PACKET_WORDS, STATUS_WORDS,
};
use crate::regs::{access, connection, destination, events, global, qcn_switch, qp, server, source, tcp};
use crate::switch::Switch;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::OnceLock;

/// Replies that are kept.
const BUFFERS: usize = 8;
const MOST_QUEUE_PAIRS: u32 = 256;

/// The map's entry for a word.
#[derive(Debug, Clone, Copy)]
struct Fact {
    writable: bool,
    lockable: bool,
    keep: u32,
    reset: u32,
    /// Queue pair that it belongs to, of a board.
    row: Option<u32>,
    /// Copy of its group, and the group's number.
    index: u32,
    group: usize,
    /// The streams' rows follow.
    of_streams_too: bool,
}

/// The facts by address, in words.
fn facts_of(map: &Map) -> Vec<Option<Fact>> {
    let mut facts = Vec::new();
    for (number, group) in map.groups.iter().enumerate() {
        for index in 0..group.count {
            for register in group.registers {
                let fact = Fact {
                    writable: register.writable,
                    lockable: register.lockable,
                    keep: register.kept(),
                    reset: register.reset().unwrap_or(0),
                    // The parameters of congestion control answer in every build.
                    row: (group.per_queue_pair && group.count == MOST_QUEUE_PAIRS).then_some(index),
                    index,
                    group: number,
                    of_streams_too: group.of_streams_too,
                };
                let at = group.address(register, index) as usize / 4;
                facts.resize(facts.len().max(at + 1), None);
                facts[at] = Some(fact);
            }
        }
    }
    facts
}

/// The properties of a board in software.
#[derive(Debug, Clone, Copy)]
pub struct ResponderConfig {
    #[allow(missing_docs)]
    pub build: Build,
    /// Hash of its register map.
    pub map_hash: u32,
    /// The word of `options`.
    pub options: u32,
    /// TCP streams.
    pub streams: u32,
    /// Detector inputs.
    pub inputs: u32,
    /// Byte addresses that stand for something where this is a front end: other writes are refused. None: all that the
    /// map lets be written.
    pub writes: Option<&'static [Range<u32>]>,
    /// The same of reads.
    pub reads: Option<&'static [Range<u32>]>,
}

impl Default for ResponderConfig {
    fn default() -> Self {
        ResponderConfig {
            build: Build { queue_pairs: 4, clock_khz: 156_250 },
            map_hash: MAP_HASH,
            options: global::OPTIONS_QCN_BITS.mask
                | global::OPTIONS_SOURCE_BITS.mask
                | global::OPTIONS_SERVICES_BITS.mask
                | global::OPTIONS_RETRANSMIT_BITS.mask,
            streams: 0,
            inputs: 0,
            writes: None,
            reads: None,
        }
    }
}

/// What it is.
#[derive(Debug, Clone, Copy)]
enum Device {
    Board(ResponderConfig),
    Switch(Switch),
}

impl Device {
    fn facts(&self) -> &'static [Option<Fact>] {
        static OF_BOARD: OnceLock<Vec<Option<Fact>>> = OnceLock::new();
        static OF_SWITCH: OnceLock<Vec<Option<Fact>>> = OnceLock::new();
        match self {
            Device::Board(_) => OF_BOARD.get_or_init(|| facts_of(&BOARD)),
            Device::Switch(_) => OF_SWITCH.get_or_init(|| facts_of(&SWITCH)),
        }
    }
}

/// A board or a switch.
#[derive(Debug)]
pub struct Responder {
    device: Device,
    /// Words that are not as after reset.
    words: HashMap<u32, u32>,
    next_id: u16,
    kept: VecDeque<(u16, Vec<u8>)>,
    carried_out: u64,
    /// Registers that the last datagram has written, with their words.
    written: Vec<(u32, u32)>,
    /// MAC table of a switch: `entry_hi` and `entry_lo` of each entry that was written.
    table: HashMap<u32, (u32, u32)>,
}

/// The answer to a datagram.
pub type Answer = Option<Vec<u8>>;

impl Responder {
    #[allow(missing_docs)]
    pub fn new(config: ResponderConfig) -> Self {
        Responder::of(Device::Board(config))
    }

    /// A QCN switch of this build.
    pub fn switch(build: Switch) -> Self {
        Responder::of(Device::Switch(build))
    }

    fn of(device: Device) -> Self {
        let (words, kept, table) = (HashMap::new(), VecDeque::new(), HashMap::new());
        let mut found = Responder { device, words, next_id: 1, kept, carried_out: 0, written: Vec::new(), table };
        found.reset();
        found
    }

    /// Everything as after power-on.
    pub fn reset(&mut self) {
        self.words.clear();
        self.next_id = 1;
        self.kept.clear();
        self.table.clear();
        match self.device {
            Device::Board(config) => self.reset_board(&config),
            Device::Switch(build) => {
                self.words.insert(qcn_switch::global::MAP_HASH, SWITCH.hash);
                self.words.insert(qcn_switch::global::BUILD, build.build());
            }
        }
    }

    fn reset_board(&mut self, config: &ResponderConfig) {
        let Build { queue_pairs, clock_khz } = config.build;
        let rate = crate::map::Scale { clock_khz }.rate_word(penstock_units::Rate::from_gbps(10)) as u32;
        for (address, word) in [
            (global::MAP_HASH, config.map_hash),
            (global::BUILD, 64 | global::BUILD_N_QP_BITS.at(queue_pairs)),
            (global::CLOCK, clock_khz),
            (global::RING, 262_144),
            (global::SLOTS, 256),
            (global::OPTIONS, config.options),
            (tcp::BUILD, config.streams),
            (events::BUILD, events::BUILD_N_IN_BITS.at(config.inputs)),
        ] {
            self.words.insert(address, word);
        }
        for row in 0..queue_pairs {
            let base = qp::BASE + row * qp::STRIDE;
            self.words.insert(base + qp::RATE_CURRENT, rate);
            self.words.insert(base + qp::RATE_TARGET, rate);
            self.words.insert(base + qp::ALPHA, 65536);
        }
    }

    /// Control packets carried out since it was made.
    pub fn carried_out(&self) -> u64 {
        self.carried_out
    }

    /// The word at a byte address, as the gateware would set it.
    pub fn set(&mut self, address: u32, word: u32) {
        self.words.insert(address, word);
    }

    /// The word at a byte address; 0 where there is none.
    pub fn get(&self, address: u32) -> u32 {
        self.read(address).unwrap_or(0)
    }

    /// What was written to an entry of a switch's MAC table: `entry_hi` and `entry_lo`.
    pub fn table_entry(&self, index: u32) -> Option<(u32, u32)> {
        self.table.get(&index).copied()
    }

    /// The writes that the last datagram has carried out at a board, in order: byte address and word, commands included.
    pub fn written(&self) -> &[(u32, u32)] {
        &self.written
    }

    /// Takes a datagram.
    pub fn handle(&mut self, bytes: &[u8]) -> Answer {
        self.written.clear();
        let (words, big) = from_bytes(bytes)?;
        let header = PacketHeader::parse(words[0])?;
        if words.len() > PACKET_WORDS {
            return None;
        }
        match header.kind {
            PacketKind::Control => self.control(header.id, &words[1..], big),
            PacketKind::Status if header.id == 0 && words.len() == STATUS_WORDS => Some(encoded(&self.status(), big)),
            PacketKind::Resend if header.id != 0 && words.len() == 1 => {
                self.kept.iter().rev().find(|(id, _)| *id == header.id).map(|(_, reply)| reply.clone())
            }
            _ => None,
        }
    }

    fn status(&self) -> Vec<u32> {
        let mut words = crate::packet::status_request();
        words[1] = 4 * PACKET_WORDS as u32;
        words[2] = BUFFERS as u32;
        words[3] = PacketHeader { id: self.next_id, kind: PacketKind::Control }.word();
        words
    }

    fn control(&mut self, id: u16, words: &[u32], big: bool) -> Answer {
        if id != 0 && id != self.next_id {
            return None;
        }
        let mut reply = vec![PacketHeader { id, kind: PacketKind::Control }.word()];
        let mut at = 0;
        while at < words.len() && reply.len() < PACKET_WORDS {
            let (used, is_good) = self.transaction(&words[at..], &mut reply);
            at += used;
            if !is_good {
                break;
            }
        }
        self.carried_out += 1;
        let reply = encoded(&reply, big);
        if id != 0 {
            self.next_id = following(id);
            if self.kept.len() == BUFFERS {
                self.kept.pop_front();
            }
            self.kept.push_back((id, reply.clone()));
        }
        Some(reply)
    }

    /// Carries out the transaction that the words begin with; how many they are, and whether the next one follows.
    fn transaction(&mut self, words: &[u32], reply: &mut Vec<u32>) -> (usize, bool) {
        let place = reply.len();
        let Some(header) = TransactionHeader::parse(words[0]).filter(|header| header.info == Info::Request) else {
            reply.push(words[0] & 0xFFFF_00F0 | Info::BadHeader as u32);
            return (1, false);
        };
        let count = usize::from(header.words);
        let (needs, answers) = match header.kind {
            Kind::Read | Kind::ReadFifo => (1, count),
            Kind::Write | Kind::WriteFifo => (1 + count, 0),
            Kind::RmwBits => (3, 1),
            Kind::RmwSum => (2, 1),
        };
        let is_single = !matches!(header.kind, Kind::RmwBits | Kind::RmwSum) || count == 1;
        if words.len() <= needs || place + 1 + answers > PACKET_WORDS || !is_single {
            reply.push(TransactionHeader { words: 0, info: Info::BadHeader, ..header }.word());
            return (1, false);
        }
        reply.push(0);
        let is_fifo = matches!(header.kind, Kind::ReadFifo | Kind::WriteFifo);
        let mut done = 0;
        let mut info = Info::Success;
        while done < count {
            let step = if is_fifo { 0 } else { done as u32 };
            let address = words[1].wrapping_add(step).checked_mul(4);
            let old = address.filter(|address| self.is_readable(*address)).and_then(|address| self.read(address));
            let written = match header.kind {
                Kind::Read | Kind::ReadFifo => None,
                Kind::Write | Kind::WriteFifo => Some(words[2 + done]),
                Kind::RmwBits => old.map(|old| old & words[2] | words[3]),
                Kind::RmwSum => old.map(|old| old.wrapping_add(words[2])),
            };
            let is_write = matches!(header.kind, Kind::Write | Kind::WriteFifo);
            let Some(old) = old.or(is_write.then_some(0)) else {
                info = Info::ReadError;
                break;
            };
            if let (Some(word), Some(address)) = (written, address) {
                if !self.write(address, word) {
                    info = Info::WriteError;
                    break;
                }
            } else if written.is_some() {
                info = Info::WriteError;
                break;
            }
            if !is_write {
                reply.push(old);
            }
            done += 1;
        }
        reply[place] = TransactionHeader { words: done as u8, info, ..header }.word();
        (1 + needs, info == Info::Success)
    }

    fn fact(&self, address: u32) -> Option<Fact> {
        let fact = (*self.device.facts().get(address as usize / 4)?)?;
        match self.device {
            // Ports and queues that a switch has not refuse.
            Device::Switch(build) if fact.index >= build.copies(&SWITCH.groups[fact.group]) => None,
            _ => Some(fact),
        }
    }

    /// A row that a board has not reads 0, and takes writes without effect.
    fn is_beyond(&self, fact: Fact) -> bool {
        let Device::Board(config) = self.device else { return false };
        let streams = if fact.of_streams_too { config.streams } else { 0 };
        fact.row.is_some_and(|row| row >= config.build.queue_pairs + streams)
    }

    /// Whether a register stands for something that can be read here; what is to be changed is.
    fn is_readable(&self, address: u32) -> bool {
        let Device::Board(ResponderConfig { reads: Some(reads), writes, .. }) = self.device else { return true };
        let ranges = reads.iter().chain(writes.into_iter().flatten());
        ranges.into_iter().any(|range| range.contains(&address))
    }

    fn read(&self, address: u32) -> Option<u32> {
        let fact = self.fact(address)?;
        if self.is_beyond(fact) {
            return Some(0);
        }
        Some(self.words.get(&address).copied().unwrap_or(fact.reset))
    }

    /// False: SLVERR.
    fn write(&mut self, address: u32, word: u32) -> bool {
        let Some(fact) = self.fact(address) else { return false };
        match self.device {
            Device::Board(config) => self.write_board(&config, fact, address, word),
            Device::Switch(build) => self.write_switch(build, fact, address, word & fact.keep),
        }
    }

    fn write_board(&mut self, config: &ResponderConfig, fact: Fact, address: u32, word: u32) -> bool {
        let is_locked = access::CONTROL_LOCKED_BITS.of(self.get(access::CONTROL)) != 0;
        let is_void = config.writes.is_some_and(|writes| !writes.iter().any(|range| range.contains(&address)));
        if !fact.writable || is_void || (fact.lockable && is_locked) {
            return false;
        }
        if !self.is_beyond(fact) {
            self.words.insert(address, word & fact.keep);
            self.written.push((address, word));
            self.act(config, address, word);
        }
        true
    }

    fn write_switch(&mut self, build: Switch, fact: Fact, address: u32, word: u32) -> bool {
        let is_locked = qcn_switch::access::CONTROL_LOCKED_BITS.of(self.get(qcn_switch::access::CONTROL)) != 0;
        if !fact.writable || (fact.lockable && is_locked) {
            return false;
        }
        if address != qcn_switch::global::ENTRY_WRITE {
            self.words.insert(address, word);
            return true;
        }
        if word >= build.entries {
            return false;
        }
        let entry = (self.get(qcn_switch::global::ENTRY_HI), self.get(qcn_switch::global::ENTRY_LO));
        self.table.insert(word, entry);
        true
    }

    /// The gateware's action at a write.
    fn act(&mut self, config: &ResponderConfig, address: u32, word: u32) {
        match address {
            source::COMMAND => {
                let is_start = source::COMMAND_START_BITS.of(word) != 0;
                if is_start || source::COMMAND_STOP_BITS.of(word) != 0 {
                    self.words.insert(source::STATUS, u32::from(is_start));
                }
            }
            global::COMMAND if global::COMMAND_CLEAR_BITS.of(word) != 0 => {
                for (_, counter) in crate::regs::counters::ALL {
                    self.words.remove(&counter);
                }
            }
            connection::COMMAND if connection::COMMAND_CLOSE_BITS.of(word) != 0 => {
                let row = connection::COMMAND_QP_BITS.of(word);
                if row < config.build.queue_pairs {
                    self.words.insert(qp::BASE + row * qp::STRIDE + qp::STATE, 0);
                }
            }
            destination::CONTROL if destination::CONTROL_COMMIT_BITS.of(word) != 0 => {
                let live = (0..server::COUNT)
                    .filter(|row| server::ENTRY_LIVE_BITS.of(self.get(server::BASE + row * server::STRIDE)) != 0)
                    .count();
                self.words.insert(destination::STATUS, live as u32 | destination::STATUS_PENDING_BITS.mask);
            }
            _ => {}
        }
    }
}

fn encoded(words: &[u32], big: bool) -> Vec<u8> {
    if big {
        crate::packet::to_bytes(words)
    } else {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qcn_switch::{global as of_switch, port, queue};

    #[test]
    fn a_switch_has_what_was_built_and_takes_what_the_gateware_takes() {
        let mut switch = Responder::switch(Switch { ports: 2, queues: 4, entries: 16 });
        assert_eq!(switch.get(of_switch::MAP_HASH), SWITCH.hash);
        assert_eq!(switch.get(of_switch::BUILD), 2 | 4 << 4 | 16 << 8 | of_switch::BUILD_MANAGEMENT_BITS.mask);
        assert_eq!(switch.get(of_switch::Q_EQ), of_switch::Q_EQ_RESET);
        // The last queue and port that it has, and the first that it has not.
        assert_eq!((switch.read(queue::BASE + 7 * 4), switch.read(queue::BASE + 8 * 4)), (Some(0), None));
        let counter = |index| port::BASE + index * port::STRIDE + port::TX_PFC;
        assert_eq!((switch.read(counter(1)), switch.read(counter(2))), (Some(0), None));
        assert!(!switch.write(of_switch::BUILD, 1) && !switch.write(counter(0), 1) && !switch.write(0x03F0, 1));
        assert!(switch.write(of_switch::Q_EQ, u32::MAX));
        assert_eq!(switch.get(of_switch::Q_EQ), 0x00FF_FFFF);
        assert!(switch.write(of_switch::ENTRY_HI, 0x8001_0200) && switch.write(of_switch::ENTRY_LO, 5));
        assert!(switch.write(of_switch::ENTRY_WRITE, 15) && !switch.write(of_switch::ENTRY_WRITE, 16));
        assert_eq!((switch.get(of_switch::ENTRY_WRITE), switch.table_entry(15)), (0, Some((0x8001_0200, 5))));
        assert_eq!(switch.table_entry(0), None);
        // A list that is locked stays; other settings do not.
        let host = qcn_switch::access_entry::BASE + qcn_switch::access_entry::STRIDE;
        assert!(switch.write(host, 7) && switch.write(qcn_switch::access::CONTROL, 3));
        assert!(
            !switch.write(host, 8) && !switch.write(qcn_switch::access::CONTROL, 0) && switch.write(of_switch::XON, 1)
        );
        assert_eq!(switch.get(host), 7);
        switch.reset();
        assert_eq!((switch.get(of_switch::Q_EQ), switch.table_entry(15)), (of_switch::Q_EQ_RESET, None));
    }
}
