// SPDX-License-Identifier: Apache-2.0
//! The verilated QCN switch with a line at each port.
//! Promise: time in which nothing can happen is not simulated, and the result is the same.

use crate::axil::{Answer, Master};
use crate::board::RegisterError;
use crate::ffi::{SwitchModel, SwitchPins};
use crate::gmii::Gmii;
use crate::port::{Port, Received};
use crate::switch::counts::PortCounts;
use crate::switch::line::SwitchLine;
use crate::switch::settings::{SwitchError, SwitchSettings};
use bytes::Bytes;
use penstock_wire::gateware::{LineClock, SWITCH_PORTS, SWITCH_QUEUES};
use std::collections::VecDeque;

const RESET_CYCLES: u64 = 16;
/// After so many cycles without a frame in the switch or on a line its state stays as it is.
const SETTLED: u64 = 512;
/// The only thing that moves even then: the table of addresses serves the ports in turns.
const TURNS: u64 = SWITCH_PORTS as u64;

/// Bytes in the queues of a port, queue 0 first.
pub type Levels = [u32; SWITCH_QUEUES];

/// A frame on its way into a port: when its first octet is there, whether its FCS is right.
struct Arrival {
    cycle: u64,
    frame: Bytes,
    fcs_ok: bool,
}

/// One port and its line.
struct Side {
    line: Box<dyn Port>,
    inbox: VecDeque<Arrival>,
    counts: PortCounts,
    levels: Levels,
    peak: u32,
    /// Begin and end of the peer's pauses that hold the port, in their order.
    pauses: VecDeque<(u64, u64)>,
    /// Bytes that waited while they did, each cycle.
    held_byte_cycles: u128,
}

/// The management port and its line.
struct Management {
    line: Gmii,
    inbox: VecDeque<(u64, Bytes)>,
    outbox: VecDeque<Received>,
}

/// The QCN switch with 4 ports of 10 or 1 Gb/s. Time is counted in its clock's cycles since the end of its reset.
pub struct QcnSwitch {
    model: SwitchModel,
    pins: SwitchPins,
    clock: LineClock,
    master: Master,
    management: Option<Management>,
    cycle: u64,
    sides: [Side; SWITCH_PORTS],
    outbox: VecDeque<(u8, Received)>,
    levels_seen: [u8; 24],
    peak: u32,
    /// Cycles between samples of the queues; 0: none.
    sample_interval: u64,
    next_sample: u64,
    samples: Vec<(u64, [Levels; SWITCH_PORTS])>,
    /// Cycles since something happened.
    settled: u64,
    skips: bool,
    skipped: u64,
}

impl QcnSwitch {
    /// The switch with these settings.
    ///
    /// # Errors
    /// The settings do not fit the gateware.
    pub fn new(line: SwitchLine, settings: &SwitchSettings) -> Result<Self, SwitchError> {
        settings.check()?;
        let mut switch = Self::reset(line);
        switch.set_up(settings.registers());
        Ok(switch)
    }

    /// The switch after its reset: it learns addresses, and has the settings of the register map.
    pub fn reset(line: SwitchLine) -> Self {
        let side = || Side {
            line: line.port(),
            inbox: VecDeque::new(),
            counts: PortCounts::default(),
            levels: [0; SWITCH_QUEUES],
            peak: 0,
            pauses: VecDeque::new(),
            held_byte_cycles: 0,
        };
        let mut switch = Self {
            model: SwitchModel::new(line as u32),
            pins: SwitchPins { rst: 1, link_up: u8::MAX, ..SwitchPins::default() },
            clock: line.clock(),
            master: Master::default(),
            management: None,
            cycle: 0,
            sides: std::array::from_fn(|_| side()),
            outbox: VecDeque::new(),
            levels_seen: [0; 24],
            peak: 0,
            sample_interval: 0,
            next_sample: u64::MAX,
            samples: Vec::new(),
            settled: 0,
            skips: true,
            skipped: 0,
        };
        for (side, line) in switch.sides.iter_mut().zip(&mut switch.pins.line) {
            side.line.drive(line);
        }
        for _ in 0..RESET_CYCLES {
            switch.model.cycle(&mut switch.pins);
        }
        switch.pins.rst = 0;
        // those of the lines' clocks are over later
        for _ in 0..RESET_CYCLES {
            switch.model.cycle(&mut switch.pins);
        }
        switch
    }

    /// Plugs in the management port, and sets which of the others are. All are in use before.
    ///
    /// # Panics
    /// This build has no management port.
    pub fn plug(&mut self, ports: impl IntoIterator<Item = u8>) {
        assert_eq!(self.clock, LineClock::GBPS_1, "the switch at 10 Gb/s is built without its management port");
        self.pins.link_up = ports.into_iter().fold(0, |up, port| up | 1 << port);
        self.pins.management_up = 1;
        self.management = Some(Management { line: Gmii::default(), inbox: VecDeque::new(), outbox: VecDeque::new() });
        self.skips = false; // it has timers
    }

    /// Writes registers, address and value, before time begins.
    fn set_up(&mut self, registers: Vec<(u32, u32)>) {
        let mut master = Master::default();
        registers.into_iter().for_each(|(address, value)| master.write(address, value));
        while !master.is_idle() {
            master.drive(&mut self.pins.axil);
            self.model.cycle(&mut self.pins);
            master.observe(0, &mut self.pins.axil);
        }
        let refused =
            std::iter::from_fn(|| master.poll_answer()).find(|answer| matches!(answer, Answer::Refused { .. }));
        assert_eq!(refused, None, "the map of this build has these registers");
    }

    /// Its clock and its lines.
    pub fn clock(&self) -> LineClock {
        self.clock
    }

    /// Cycles since the end of reset.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Has the queues sampled every `interval` cycles, now first.
    pub fn sample_queues(&mut self, interval: u64) {
        self.sample_interval = interval;
        self.next_sample = if interval == 0 { u64::MAX } else { self.cycle };
    }

    /// The samples since the last call: the cycle, and each port's queues.
    pub fn take_samples(&mut self) -> Vec<(u64, [Levels; SWITCH_PORTS])> {
        std::mem::take(&mut self.samples)
    }

    /// Has every cycle simulated: for a comparison.
    pub fn never_skip(&mut self) {
        self.skips = false;
    }

    /// Cycles that were not simulated, as nothing could happen in them.
    pub fn skipped_cycles(&self) -> u64 {
        self.skipped
    }

    /// Hands over a frame whose first octet comes at `cycle`, or when the line is free; of one port in the order of
    /// time. `fcs_ok = false` arrives with a wrong FCS.
    ///
    /// # Panics
    /// There is no such port.
    pub fn receive(&mut self, port: u8, cycle: u64, frame: Bytes, fcs_ok: bool) {
        let inbox = &mut self.sides[usize::from(port)].inbox;
        let cycle = inbox.back().map_or(cycle, |last| last.cycle.max(cycle));
        inbox.push_back(Arrival { cycle, frame, fcs_ok });
    }

    /// Hands over a frame to the management port, in the order of time.
    ///
    /// # Panics
    /// It is not plugged in.
    pub fn receive_management(&mut self, cycle: u64, frame: Bytes) {
        self.management.as_mut().expect("it is plugged in").inbox.push_back((cycle, frame));
    }

    /// The next frame that the management port has sent completely.
    pub fn poll_management(&mut self) -> Option<Received> {
        self.management.as_mut()?.outbox.pop_front()
    }

    /// Frames that wait to enter a port; `None` is the management port.
    pub fn waiting_frames(&self, port: Option<u8>) -> usize {
        match port {
            Some(port) => self.sides[usize::from(port)].inbox.len(),
            None => self.management.as_ref().map_or(0, |port| port.inbox.len()),
        }
    }

    /// Reads a register by the pins; the clock runs for it.
    ///
    /// # Errors
    /// There is no such register.
    pub fn read(&mut self, address: u32) -> Result<u32, RegisterError> {
        self.master.read(address, 0);
        match self.answered() {
            Answer::Read { value, .. } => Ok(value),
            _ => Err(RegisterError::Refused { address }),
        }
    }

    /// Writes a register by the pins; the clock runs for it.
    ///
    /// # Errors
    /// There is no such register, or it refuses the value.
    pub fn write(&mut self, address: u32, value: u32) -> Result<(), RegisterError> {
        self.master.write(address, value);
        match self.answered() {
            Answer::Write { .. } => Ok(()),
            _ => Err(RegisterError::Refused { address }),
        }
    }

    fn answered(&mut self) -> Answer {
        loop {
            self.step();
            if let Some(answer) = self.master.poll_answer() {
                return answer;
            }
        }
    }

    /// Notes that pauses of the peer hold a port from one cycle to another; an earlier one ends with it.
    pub(super) fn held(&mut self, port: u8, from: u64, until: u64) {
        self.sides[usize::from(port)].pauses.push_back((from, until));
    }

    /// The next frame that a port has sent completely.
    pub fn poll_transmit(&mut self) -> Option<(u8, Received)> {
        self.outbox.pop_front()
    }

    pub fn counts(&self, port: u8) -> &PortCounts {
        &self.sides[usize::from(port)].counts
    }

    /// Bytes in the queues of a port now.
    pub fn levels(&self, port: u8) -> Levels {
        self.sides[usize::from(port)].levels
    }

    /// Most bytes that ever waited at a port.
    pub fn peak_bytes(&self, port: u8) -> u64 {
        self.sides[usize::from(port)].peak.into()
    }

    /// Most bytes that ever waited in all queues.
    pub fn peak_total_bytes(&self) -> u64 {
        self.peak.into()
    }

    /// Bytes that waited while a pause held the port, summed over cycles.
    pub(super) fn held_byte_cycles(&self, port: u8) -> u128 {
        self.sides[usize::from(port)].held_byte_cycles
    }

    /// Runs the clock up to, not including, `cycle`.
    pub fn run_until(&mut self, cycle: u64) {
        while self.cycle < cycle {
            if self.settled >= SETTLED && self.skips {
                self.skip(cycle);
            }
            if self.cycle < cycle {
                self.step();
            }
        }
    }

    /// Goes on to the next cycle in which something may happen.
    fn skip(&mut self, until: u64) {
        let arrivals = self.sides.iter().filter_map(|side| side.inbox.front().map(|arrival| arrival.cycle));
        let next = arrivals.chain([self.next_sample, until]).min().unwrap_or(until);
        let idle = next.saturating_sub(self.cycle) / TURNS * TURNS;
        self.cycle += idle;
        self.skipped += idle;
    }

    /// One clock cycle.
    fn step(&mut self) {
        let mut quiet = true;
        for (side, line) in self.sides.iter_mut().zip(&mut self.pins.line) {
            if side.line.is_idle() && side.inbox.front().is_some_and(|arrival| arrival.cycle <= self.cycle) {
                let arrival = side.inbox.pop_front().expect("front was there");
                side.line.push(&arrival.frame, arrival.fcs_ok);
            }
            quiet &= side.line.is_idle();
            side.line.drive(line);
        }
        if let Some(Management { line, inbox, .. }) = &mut self.management {
            if line.is_idle() && inbox.front().is_some_and(|(cycle, _)| *cycle <= self.cycle) {
                let (_, frame) = inbox.pop_front().expect("front was there");
                line.push(&frame, true);
            }
            line.drive(&mut self.pins.management);
        }
        self.master.drive(&mut self.pins.axil);

        self.model.cycle(&mut self.pins);

        self.master.observe(self.cycle, &mut self.pins.axil);
        if let Some(Management { line, outbox, .. }) = &mut self.management {
            outbox.extend(line.observe(self.cycle, &self.pins.management));
        }
        if self.pins.level != self.levels_seen {
            self.read_levels();
        }
        let bits = PortCounts::BITS;
        for (port, (side, line)) in (0u8..).zip(self.sides.iter_mut().zip(&self.pins.line)) {
            if let Some(frame) = side.line.observe(self.cycle, line) {
                self.outbox.push_back((port, frame));
            }
            quiet &= side.line.is_silent(line);
            if self.pins.stat != 0 {
                side.counts.add(self.pins.stat >> (bits * usize::from(port)) & ((1 << bits) - 1));
            }
            quiet &= !side.wait(self.cycle);
        }
        if self.cycle >= self.next_sample {
            self.samples.push((self.cycle, std::array::from_fn(|port| self.sides[port].levels)));
            self.next_sample += self.sample_interval;
        }
        self.settled = if quiet && self.levels_seen == [0; 24] { self.settled + 1 } else { 0 };
        self.cycle += 1;
    }

    fn read_levels(&mut self) {
        self.levels_seen = self.pins.level;
        let mut octets = self.levels_seen.chunks_exact(3);
        let mut total = 0;
        for side in &mut self.sides {
            for (level, octets) in side.levels.iter_mut().zip(&mut octets) {
                *level = u32::from_le_bytes([octets[0], octets[1], octets[2], 0]);
            }
            let waits = side.levels.iter().sum();
            side.peak = side.peak.max(waits);
            total += waits;
        }
        self.peak = self.peak.max(total);
    }
}

impl Side {
    /// Counts what a pause holds; whether there is one, or one to come.
    fn wait(&mut self, cycle: u64) -> bool {
        while self.pauses.get(1).is_some_and(|(from, _)| *from <= cycle) {
            self.pauses.pop_front();
        }
        let Some((from, until)) = self.pauses.front().copied() else { return false };
        if cycle >= until && self.pauses.len() == 1 {
            self.pauses.pop_front();
            return false;
        }
        if (from..until).contains(&cycle) {
            self.held_byte_cycles += u128::from(self.levels.iter().sum::<u32>());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use penstock_wire::gateware::SWITCH_QUEUE_BYTES;
    use penstock_wire::MacAddr;

    fn station(port: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 1, port])
    }

    fn switch(line: SwitchLine) -> QcnSwitch {
        let settings = SwitchSettings {
            mac: MacAddr([2, 0, 0, 0, 2, 0]),
            table: (0..4).map(|port| (station(port), port)).collect(),
            limit_bytes: SWITCH_QUEUE_BYTES,
            point: Some(Default::default()),
            pause: None,
        };
        QcnSwitch::new(line, &settings).unwrap()
    }

    fn frame(from: u8, to: u8, len: usize) -> Bytes {
        let mut frame = BytesMut::new();
        frame.extend_from_slice(&station(to).0);
        frame.extend_from_slice(&station(from).0);
        frame.extend_from_slice(&[0x88, 0xb5]);
        frame.resize(len, from);
        frame.freeze()
    }

    /// Frames of three ports into one, with long and short silences.
    fn run(mut switch: QcnSwitch) -> (Vec<(u8, Received)>, u64) {
        for burst in 0..6u64 {
            for port in 0..3u8 {
                for index in 0..4 {
                    let at = burst * (1000 + 777 * burst) + u64::from(port) * 3 + index;
                    switch.receive(
                        port,
                        at,
                        frame(port, 3, 60 + 301 * usize::from(port) + index as usize),
                        port != 2 || index != 1,
                    );
                }
            }
        }
        switch.sample_queues(1500);
        switch.run_until(40_000);
        (std::iter::from_fn(|| switch.poll_transmit()).collect(), switch.skipped_cycles())
    }

    #[test]
    fn what_is_skipped_changes_nothing() {
        for line in SwitchLine::ALL {
            let (skipping, skipped) = run(switch(line));
            let mut whole = switch(line);
            whole.never_skip();
            let (all, none) = run(whole);
            assert_eq!((all.len(), none), (6 * 11, 0), "all but the bad ones");
            assert!(skipped > 20_000, "{line:?}: {skipped}");
            assert_eq!(skipping, all, "{line:?}");
            assert!(all.iter().all(|(port, sent)| *port == 3 && sent.fcs_ok));
        }
    }

    #[test]
    fn full_lines_of_any_frame_length_pass_without_a_loss() {
        for line in SwitchLine::ALL {
            let (mut switch, clock, count) = (switch(line), line.clock(), 120u64);
            // frames of one length, an odd number of octets, follow each other without a longer gap
            let (len, mut octet) = (101usize, 0);
            for _ in 0..count {
                for port in 0..4 {
                    switch.receive(port, clock.cycle_from(clock.octet * octet), frame(port, (port + 1) % 4, len), true);
                }
                octet += penstock_wire::wire_len(len) as u64;
            }
            switch.run_until(clock.cycle_from(clock.octet * octet) + 300);
            let sent: Vec<_> = std::iter::from_fn(|| switch.poll_transmit()).collect();
            assert_eq!(sent.len() as u64, 4 * count, "{line:?}: in the time of the lines, and some frames more");
            assert!(sent.iter().all(|(_, frame)| frame.fcs_ok && frame.frame.len() == len));
        }
    }

    #[test]
    fn the_management_port_answers_by_the_registers_that_the_pins_write() {
        use crate::switch::settings::regs::{global, management};
        let mut switch = QcnSwitch::reset(SwitchLine::Gbps1);
        switch.plug([0, 1]);
        switch.write(management::IP, 0x0a00_0009).unwrap();
        assert_eq!(switch.read(management::IP), Ok(0x0a00_0009));
        assert_eq!(switch.write(global::MAP_HASH, 1), Err(RegisterError::Refused { address: global::MAP_HASH }));
        let mut request = BytesMut::new();
        request.extend_from_slice(&[0xff; 6]);
        request.extend_from_slice(&station(9).0);
        request.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]); // ARP: who has
        request.extend_from_slice(&station(9).0);
        request.extend_from_slice(&[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9]);
        switch.receive_management(0, request.freeze());
        switch.run_until(switch.cycle() + 2_000);
        let reply = switch.poll_management().expect("an answer").frame;
        assert_eq!(&reply[..6], station(9).0);
        assert_eq!((&reply[20..22], &reply[28..32]), (&[0, 2][..], &[10, 0, 0, 9][..]), "ARP: its answer");
        assert_eq!(switch.read(management::ARP_REQUESTS), Ok(1));
        assert!(switch.poll_transmit().is_none(), "not by another port");
    }

    #[test]
    fn a_queue_has_the_memory_that_scenarios_count_on() {
        let mut switch = switch(SwitchLine::Gbps10);
        // whole cells; two lines into one, so that half of them stay
        let (len, count) = (23 * 64, 400u64);
        for index in 0..count {
            for port in 0..2 {
                switch.receive(port, index, frame(port, 3, len), true);
            }
        }
        switch.run_until(count * (len as u64 / 8 + 3) + 1000);
        let dropped = switch.counts(3).tx_dropped;
        assert!(dropped > 0);
        let least = SWITCH_QUEUE_BYTES - len as u64;
        assert!((least..=SWITCH_QUEUE_BYTES).contains(&switch.peak_bytes(3)), "{}", switch.peak_bytes(3));
        assert_eq!((switch.counts(0).rx_lost, switch.counts(0).rx_frame), (0, count));
        switch.run_until(switch.cycle() + SWITCH_QUEUE_BYTES / 7);
        assert_eq!(switch.levels(3), [0; SWITCH_QUEUES]);
        assert_eq!(switch.counts(3).tx_frame + dropped, 2 * count);
    }

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        let fits = SwitchSettings { mac: station(9), table: Vec::new(), limit_bytes: 1000, point: None, pause: None };
        let table = (0..17).map(|port| (station(port), 0)).collect();
        let refused = |settings: SwitchSettings| QcnSwitch::new(SwitchLine::Gbps10, &settings).err().unwrap();
        assert_eq!(refused(SwitchSettings { table, ..fits.clone() }), SwitchError::Stations(17));
        let table = vec![(station(1), 4)];
        assert_eq!(refused(SwitchSettings { table, ..fits.clone() }), SwitchError::Port(4, station(1)));
        let limit_bytes = 1 << 24;
        let error = refused(SwitchSettings { limit_bytes, ..fits });
        assert_eq!(error, SwitchError::TooLarge("limit_bytes", 1 << 24, (1 << 24) - 1));
    }
}
