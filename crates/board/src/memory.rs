// SPDX-License-Identifier: Apache-2.0
//! The AXI4 memory (AMBA IHI 0022, A3) beside a front end whose rings are not on chip, or whose peers have windows: 64 bits wide,
//! bursts that go up word by word, in the order of their addresses whatever their IDs are.
//! Promise: it takes and gives a word in each cycle, and answers in order, with SLVERR outside of its addresses.

use crate::ffi::Axi;
use std::collections::VecDeque;

/// Cycles from the address of a burst to its first word, and from its last word to its confirmation: some 200 ns at
/// 156.25 MHz, as a controller of DDR4 takes under load.
const LATENCY: u64 = 32;
/// Bursts that wait each way.
const OUTSTANDING: usize = 16;
const WORD_BYTES: u64 = 8;
const SLVERR: u8 = 0b10;

/// The words of a burst that have not gone.
struct Burst {
    id: u8,
    /// Address of the next word.
    address: u64,
    words_left: u32,
    is_refused: bool,
    /// The first cycle in which a word may go.
    due: u64,
}

/// A burst that is written.
struct Confirmation {
    id: u8,
    due: u64,
    is_refused: bool,
}

/// A memory from address 0 on.
pub(crate) struct Memory {
    words: Vec<u64>,
    cycle: u64,
    writes: VecDeque<Burst>,
    confirmations: VecDeque<Confirmation>,
    reads: VecDeque<Burst>,
}

impl Memory {
    pub fn new(bytes: usize) -> Self {
        Self {
            words: vec![0; bytes / WORD_BYTES as usize],
            cycle: 0,
            writes: VecDeque::new(),
            confirmations: VecDeque::new(),
            reads: VecDeque::new(),
        }
    }

    /// Puts bytes there at once.
    ///
    /// # Panics
    /// When they are not all inside.
    pub fn put(&mut self, address: u64, data: &[u8]) {
        for (at, byte) in (address..).zip(data) {
            let word = &mut self.words[(at / WORD_BYTES) as usize];
            let shift = 8 * (at % WORD_BYTES);
            *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
        }
    }

    /// The bytes there now.
    ///
    /// # Panics
    /// When they are not all inside.
    pub fn bytes(&self, address: u64, len: usize) -> Vec<u8> {
        let byte = |at: u64| (self.words[(at / WORD_BYTES) as usize] >> (8 * (at % WORD_BYTES))) as u8;
        (address..address + len as u64).map(byte).collect()
    }

    fn burst(&self, id: u8, address: u64, len: u8) -> Burst {
        let words_left = u32::from(len) + 1;
        let end = address.checked_add(u64::from(words_left) * WORD_BYTES);
        let is_refused = end.is_none_or(|end| end > self.words.len() as u64 * WORD_BYTES);
        Burst { id, address, words_left, is_refused, due: self.cycle + LATENCY }
    }

    /// Drives the port before the cycle.
    pub fn drive(&self, axi: &mut Axi) {
        axi.awready = u8::from(self.writes.len() + self.confirmations.len() < OUTSTANDING);
        axi.wready = u8::from(!self.writes.is_empty());
        let confirmed = self.confirmations.front().filter(|confirmation| confirmation.due <= self.cycle);
        axi.bvalid = u8::from(confirmed.is_some());
        axi.bid = confirmed.map_or(0, |confirmation| confirmation.id);
        axi.bresp = confirmed.map_or(0, |confirmation| response(confirmation.is_refused));
        axi.arready = u8::from(self.reads.len() < OUTSTANDING);
        let read = self.reads.front().filter(|burst| burst.due <= self.cycle);
        axi.rvalid = u8::from(read.is_some());
        if let Some(burst) = read {
            axi.rid = burst.id;
            axi.rdata = if burst.is_refused { 0 } else { self.words[(burst.address / WORD_BYTES) as usize] };
            axi.rresp = response(burst.is_refused);
            axi.rlast = u8::from(burst.words_left == 1);
        }
    }

    /// Observes the port after the cycle.
    ///
    /// # Panics
    /// When the last word of a burst is not the one that its address has announced.
    pub fn observe(&mut self, axi: &Axi) {
        if axi.wvalid & axi.wready != 0 {
            let burst = self.writes.front_mut().expect("a word is taken once its address is");
            if !burst.is_refused {
                let word = &mut self.words[(burst.address / WORD_BYTES) as usize];
                let written = lanes(axi.wstrb);
                *word = *word & !written | axi.wdata & written;
            }
            let is_over = burst.advance();
            assert_eq!(axi.wlast != 0, is_over, "the front end ends a burst where its address does not");
            if is_over {
                let (id, is_refused) = (burst.id, burst.is_refused);
                self.writes.pop_front();
                self.confirmations.push_back(Confirmation { id, due: self.cycle + LATENCY, is_refused });
            }
        }
        if axi.awvalid & axi.awready != 0 {
            self.writes.push_back(self.burst(axi.awid, axi.awaddr, axi.awlen));
        }
        if axi.bvalid & axi.bready != 0 {
            self.confirmations.pop_front();
        }
        if axi.rvalid & axi.rready != 0 && self.reads.front_mut().is_some_and(Burst::advance) {
            self.reads.pop_front();
        }
        if axi.arvalid & axi.arready != 0 {
            self.reads.push_back(self.burst(axi.arid, axi.araddr, axi.arlen));
        }
        self.cycle += 1;
    }
}

impl Burst {
    /// A word has gone; whether it was the last.
    fn advance(&mut self) -> bool {
        self.address = self.address.wrapping_add(WORD_BYTES);
        self.words_left -= 1;
        self.words_left == 0
    }
}

/// The bits of a word in the bytes that have a strobe.
fn lanes(strobes: u8) -> u64 {
    (0..WORD_BYTES).filter(|lane| strobes >> lane & 1 != 0).map(|lane| 0xff << (8 * lane)).sum()
}

fn response(is_refused: bool) -> u8 {
    if is_refused {
        SLVERR
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the memory until `done` says so of a cycle; the number of cycles.
    fn run(memory: &mut Memory, axi: &mut Axi, mut done: impl FnMut(&mut Axi) -> bool) -> u64 {
        for cycle in 1..1000 {
            memory.drive(axi);
            memory.observe(axi);
            if done(axi) {
                return cycle;
            }
        }
        panic!("no answer");
    }

    fn write(memory: &mut Memory, address: u64, words: &[u64]) -> (u8, u64) {
        write_lanes(memory, address, words, u8::MAX)
    }

    fn write_lanes(memory: &mut Memory, address: u64, words: &[u64], wstrb: u8) -> (u8, u64) {
        let awlen = (words.len() - 1) as u8;
        let mut axi = Axi { awaddr: address, awlen, awvalid: 1, wstrb, bready: 1, ..Axi::default() };
        let mut waiting = words.iter();
        let mut next = |axi: &mut Axi| {
            axi.wvalid = u8::from(waiting.len() > 0);
            axi.wlast = u8::from(waiting.len() == 1);
            axi.wdata = waiting.next().copied().unwrap_or_default();
        };
        next(&mut axi);
        let cycles = run(memory, &mut axi, |axi| {
            axi.awvalid &= 1 - axi.awready;
            if axi.wvalid & axi.wready != 0 {
                next(axi);
            }
            axi.bvalid != 0
        });
        (axi.bresp, cycles)
    }

    fn read(memory: &mut Memory, address: u64, words: u8) -> (Vec<u64>, u8, u64) {
        let mut axi = Axi { araddr: address, arlen: words - 1, arvalid: 1, rready: 1, ..Axi::default() };
        let mut found = Vec::new();
        let cycles = run(memory, &mut axi, |axi| {
            axi.arvalid &= 1 - axi.arready;
            if axi.rvalid != 0 {
                found.push(axi.rdata);
            }
            axi.rvalid & axi.rlast != 0
        });
        (found, axi.rresp, cycles)
    }

    #[test]
    fn a_burst_comes_back_as_it_was_written_each_way_after_the_latency() {
        let mut memory = Memory::new(4096);
        let words: Vec<u64> = (0..256).map(|word| word * 0x0123_4567_89ab).collect();
        // The address, then its words, then the wait for the confirmation.
        assert_eq!(write(&mut memory, 2048, &words), (0, 1 + 256 + LATENCY));
        assert_eq!(read(&mut memory, 2048, 255), (words[..255].to_vec(), 0, LATENCY + 255));
        assert_eq!(read(&mut memory, 2048 + 255 * 8, 1), (vec![words[255]], 0, LATENCY + 1));
        assert_eq!(read(&mut memory, 0, 2).0, [0, 0]);
    }

    #[test]
    fn bytes_that_were_put_are_read_and_those_beside_them_stay() {
        let mut memory = Memory::new(64);
        memory.put(0, &[0xff; 24]);
        memory.put(7, &[1, 2, 3]);
        let (words, ..) = read(&mut memory, 0, 2);
        assert_eq!(words, [0x01ff_ffff_ffff_ffff, 0xffff_ffff_ffff_0302]);
    }

    #[test]
    fn bytes_without_a_strobe_stay() {
        let mut memory = Memory::new(64);
        memory.put(0, &[0x55; 16]);
        write_lanes(&mut memory, 8, &[0x0123_4567_89ab_cdef], 0b0110_0001);
        assert_eq!(memory.bytes(7, 10), [0x55, 0xef, 0x55, 0x55, 0x55, 0x55, 0x45, 0x23, 0x55, 0]);
    }

    #[test]
    fn each_burst_has_the_id_of_its_address() {
        let mut memory = Memory::new(4096);
        let mut ids = Vec::new();
        for (arid, arlen) in [(1, 1), (0, 0), (1, 0)] {
            memory.drive(&mut Axi::default());
            memory.observe(&Axi { arid, arlen, arvalid: 1, arready: 1, ..Axi::default() });
        }
        let mut axi = Axi { rready: 1, ..Axi::default() };
        run(&mut memory, &mut axi, |axi| {
            ids.extend((axi.rvalid != 0).then_some(axi.rid));
            ids.len() == 4
        });
        assert_eq!(ids, [1, 1, 0, 1]);
    }

    #[test]
    fn what_is_outside_is_refused_and_changes_nothing() {
        let mut memory = Memory::new(4096);
        assert_eq!(write(&mut memory, 4088, &[1, 2]).0, SLVERR);
        assert_eq!(write(&mut memory, u64::MAX - 7, &[1]).0, SLVERR);
        let (words, response, _) = read(&mut memory, 4088, 2);
        assert_eq!((words, response), (vec![0, 0], SLVERR));
        assert_eq!(read(&mut memory, 4088, 1), (vec![0], 0, LATENCY + 1));
    }

    #[test]
    #[should_panic(expected = "the front end ends a burst where its address does not")]
    fn a_burst_that_is_too_short_is_found() {
        let mut memory = Memory::new(4096);
        let mut axi = Axi { awlen: 1, awvalid: 1, wvalid: 1, wlast: 1, ..Axi::default() };
        run(&mut memory, &mut axi, |axi| axi.bvalid != 0);
    }
}
