// SPDX-License-Identifier: Apache-2.0
//! Constants of the gateware that software and simulation depend on.
//! Source: `rtl/top/penstock_1g.sv`, `penstock_xgmii.sv` (2.5G, 10G, 25G), `penstock_100g.sv`; the registers are in
//! `regs/penstock.rdl`.

use penstock_units::{Rate, Time};

/// Clock of the 10G front end, Hz: 64 bits a cycle.
pub const CLOCK_HZ: u64 = 156_250_000;
/// Clock of the 2.5G front end, Hz: 64 bits a cycle.
pub const CLOCK_2_5G_HZ: u64 = 39_062_500;
/// Clock of the 25G front end, Hz: 64 bits a cycle.
pub const CLOCK_25G_HZ: u64 = 390_625_000;
/// Clock of the 100G front end, Hz: 512 bits a cycle, more than the line takes.
pub const CLOCK_100G_HZ: u64 = 322_265_625;
/// Clock of the 1G front end, Hz: 64 bits a cycle, more than the line takes.
pub const CLOCK_1G_HZ: u64 = 62_500_000;
/// Clock period of the 10G front end.
pub const CYCLE: Time = Time::from_ps(1_000_000_000_000 / CLOCK_HZ);
/// One octet on a 10 Gb/s wire.
pub const OCTET: Time = Time::from_ps(CYCLE.as_ps() / 8);
/// Fragments that each queue pair keeps for a server that READs them, in a build that does.
pub const PULL_SLOTS: u32 = 256;
/// The longest message with announcements, in bytes on the wire: 44 entries, and one is under way at a time. Header 32,
/// entries 5 each; Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4, and 24 of preamble, FCS and gap.
pub const ANNOUNCEMENT_WIRE_BYTES: u64 = 32 + 44 * 5 + 102;
/// The clock of a front end and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineClock {
    /// Frequency of the front end.
    pub hz: u64,
    /// How long the line takes for an octet.
    pub octet: Time,
    /// Octets that the line takes in a clock cycle: numerator and denominator.
    pub octets_per_cycle: (u64, u64),
}

impl LineClock {
    /// The clock of `penstock_1g`.
    pub const GBPS_1: Self = Self { hz: CLOCK_1G_HZ, octet: Time::from_ps(8_000), octets_per_cycle: (2, 1) };
    /// The clock of `penstock_xgmii` at 2.5 Gb/s.
    pub const GBPS_2_5: Self = Self { hz: CLOCK_2_5G_HZ, octet: Time::from_ps(3_200), octets_per_cycle: (8, 1) };
    /// The clock of `penstock_xgmii` at 10 Gb/s.
    pub const GBPS_10: Self = Self { hz: CLOCK_HZ, octet: OCTET, octets_per_cycle: (8, 1) };
    /// The clock of `penstock_xgmii` at 25 Gb/s.
    pub const GBPS_25: Self = Self { hz: CLOCK_25G_HZ, octet: Time::from_ps(320), octets_per_cycle: (8, 1) };
    /// The clock of `penstock_100g`.
    pub const GBPS_100: Self = Self { hz: CLOCK_100G_HZ, octet: Time::from_ps(80), octets_per_cycle: (1280, 33) };

    /// The line rate.
    pub const fn rate(self) -> Rate {
        Rate(8_000_000_000_000 / self.octet.as_ps())
    }

    /// When a cycle begins, if cycle 0 begins at time 0; rounded down to picoseconds.
    pub const fn time(self, cycle: u64) -> Time {
        let (octets, cycles) = self.octets_per_cycle;
        Time::from_ps((cycle as u128 * (self.octet.as_ps() * octets) as u128 / cycles as u128) as u64)
    }

    /// Whole cycles in a span of time.
    pub const fn cycles(self, span: Time) -> u64 {
        let (octets, cycles) = self.octets_per_cycle;
        (span.as_ps() as u128 * cycles as u128 / (self.octet.as_ps() * octets) as u128) as u64
    }

    /// The first cycle that begins at this time or later.
    pub const fn cycle_from(self, time: Time) -> u64 {
        let (octets, cycles) = self.octets_per_cycle;
        (time.as_ps() as u128 * cycles as u128).div_ceil((self.octet.as_ps() * octets) as u128) as u64
    }

    /// Length of this number of cycles, rounded up to picoseconds.
    pub const fn span(self, cycles: u64) -> Time {
        let (octets, per) = self.octets_per_cycle;
        Time::from_ps((cycles as u128 * (self.octet.as_ps() * octets) as u128).div_ceil(per as u128) as u64)
    }

    /// Length of this number of cycles, ps.
    pub fn picoseconds(self, cycles: f64) -> f64 {
        let (octets, per) = self.octets_per_cycle;
        cycles * ((self.octet.as_ps() * octets) as f64 / per as f64)
    }
}

/// Number of queue pair 0 on the wire unless software sets another; its low 8 bits are 0.
pub const FIRST_QPN: u32 = 0x200;
/// UDP source port of queue pair 0: the first of the dynamic ports (RFC 6335), as required by IBTA A17.9.2.
pub const FIRST_UDP_SPORT: u16 = 0xC000;
/// Detector inputs of the verilated front ends (`N_IN`).
pub const BOARD_INPUTS: usize = 4;
/// Most payload bytes of an event that they make (`EVENT_BYTES`).
pub const BOARD_EVENT_BYTES: usize = 512 * 1024;

/// Where a front end keeps what it has sent until it is acknowledged (`STORE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rings {
    /// The store is in its block RAM.
    Chip,
    /// The store is in the AXI4 memory next to it.
    Memory,
}

/// Lines that the QCN switch has builds for (`rtl/top/penstock_switch_1g.sv`, `penstock_switch.sv`).
pub const SWITCH_LINES: [LineClock; 2] = [LineClock::GBPS_1, LineClock::GBPS_10];
/// Ports of the QCN switch (`rtl/top/penstock_switch.sv`), which the verilated one has all.
pub const SWITCH_PORTS: usize = 4;
/// Its output queues at each port; the higher one goes first.
pub const SWITCH_QUEUES: usize = 2;
/// Bytes of each of them, in cells of 64 (`CELLS`).
pub const SWITCH_QUEUE_BYTES: u64 = 4096 * 64;
/// Entries of its table of MAC addresses.
pub const SWITCH_ADDRESSES: usize = 16;
/// The longest queue length and number of octets that its settings hold.
pub const SWITCH_MAX_SETTING: u64 = (1 << 24) - 1;
/// Bytes of the replay memory of the message source.
pub const REPLAY_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [(LineClock, u64); 5] = [
        (LineClock::GBPS_1, 1_000_000_000),
        (LineClock::GBPS_2_5, 2_500_000_000),
        (LineClock::GBPS_10, 10_000_000_000),
        (LineClock::GBPS_25, 25_000_000_000),
        (LineClock::GBPS_100, 100_000_000_000),
    ];

    #[test]
    fn a_clock_and_its_line_agree_on_the_length_of_a_second() {
        for (line, bits_per_second) in LINES {
            assert_eq!(line.rate(), Rate(bits_per_second));
            let second = Time::from_ps(1_000_000_000_000);
            assert_eq!((line.time(line.hz), line.span(line.hz)), (second, second), "{line:?}");
            assert_eq!((line.cycles(second), line.cycle_from(second)), (line.hz, line.hz), "{line:?}");
        }
    }

    #[test]
    fn a_cycle_that_is_no_whole_number_of_picoseconds_is_rounded_as_documented() {
        let line = LineClock::GBPS_100; // 102,400 ps are 33 cycles: one begins at 3103.03 ps
        let [before, after] = [3103, 3104].map(Time::from_ps);
        assert_eq!((line.time(1), line.span(1)), (before, after));
        assert_eq!((line.cycles(before), line.cycles(after)), (0, 1));
        assert_eq!((line.cycle_from(before), line.cycle_from(after)), (1, 2));
        assert_eq!(line.picoseconds(33.0), 102_400.0);
    }

    #[test]
    fn cycles_come_back_from_their_times_after_hours_too() {
        for (line, _) in LINES {
            for cycle in (0..100).chain((1 << 42)..(1 << 42) + 100) {
                assert_eq!(line.cycle_from(line.time(cycle)), cycle, "{line:?}");
                assert_eq!(line.cycles(line.span(cycle)), cycle, "{line:?}");
            }
        }
    }
}
