// SPDX-License-Identifier: Apache-2.0
//! The verilated builds, and their differences: the line, the width of a beat, the transport, where the rings are.

#[cfg(feature = "all-tops")]
use crate::gmii::Gmii;
#[cfg(feature = "all-tops")]
use crate::hard_mac::HardMac;
use crate::port::Port;
use crate::xgmii::Xgmii;
use penstock_units::Rate;
use penstock_wire::gateware::{LineClock, Rings};

/// A build of a front end. Its number is the one of `cpp/board.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Top {
    /// `penstock_xgmii` at 10 Gb/s with 4 queue pairs.
    Gbps10 = 0,
    /// The same with 4 streams of TCP instead of queue pairs.
    Gbps10Tcp = 1,
    /// `Gbps10` without detector inputs, source and services, which the messages of a simulation do not need.
    Gbps10Flows = 2,
    /// `Gbps10` with windows of an AXI4 memory that peers READ and WRITE, SENDs of peers, and its rings in that memory, too.
    /// It keeps fragments there for servers that READ them.
    Gbps10Reads = 12,
    /// `penstock_1g` with 4 queue pairs.
    #[cfg(feature = "all-tops")]
    Gbps1 = 3,
    /// `penstock_xgmii` at 10 Gb/s with 16 queue pairs.
    #[cfg(feature = "all-tops")]
    Gbps10X16 = 4,
    /// `penstock_xgmii` at 25 Gb/s with 16 queue pairs.
    #[cfg(feature = "all-tops")]
    Gbps25X16 = 5,
    /// `penstock_100g` with 16 queue pairs.
    #[cfg(feature = "all-tops")]
    Gbps100X16 = 6,
    /// `penstock_xgmii` at 10 Gb/s with 16 streams of TCP.
    #[cfg(feature = "all-tops")]
    Gbps10TcpX16 = 7,
    /// `penstock_xgmii` at 25 Gb/s with 16 streams of TCP.
    #[cfg(feature = "all-tops")]
    Gbps25TcpX16 = 8,
    /// `penstock_100g` with 16 streams of TCP.
    #[cfg(feature = "all-tops")]
    Gbps100TcpX16 = 9,
    /// `penstock_xgmii` at 10 Gb/s with 4 queue pairs and their rings in AXI4 memory.
    #[cfg(feature = "all-tops")]
    Gbps10Memory = 10,
    /// `penstock_xgmii` at 2.5 Gb/s with 4 queue pairs.
    #[cfg(feature = "all-tops")]
    Gbps2_5 = 11,
}

/// Bytes of the rings at the beginning of the memory that peers READ and WRITE.
const READ_RINGS_BYTES: u64 = 1 << 20;
/// Bytes behind them for the window of each queue pair.
const READ_WINDOW_BYTES: u64 = 16 << 20;
/// Bytes of all of it: that of four queue pairs.
const READ_MEMORY_BYTES: usize = (READ_RINGS_BYTES + 4 * READ_WINDOW_BYTES) as usize;
/// Bytes of a ring in memory (`MEMORY_RING_BYTES` of `build.rs`).
#[cfg(feature = "all-tops")]
const MEMORY_RING_BYTES: usize = 4 << 20;

/// No build has a line of this rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchLine {
    #[error("no board of this program has a line of {0}; it has {there}", there = there("1Gbps, 2.5Gbps, ", "1Gbps, 2.5Gbps, 25Gbps and 100Gbps"))]
    Roce(Rate),
    #[error("no board of this program has a line of {0} with TCP; it has {there}", there = there("", "25Gbps and 100Gbps"))]
    Tcp(Rate),
    #[error("no board of this program has a line of {0} and rings in memory; it has {there}", there = there_with_memory())]
    Memory(Rate),
    #[error("no board of this program has a line of {0} and windows; it has 10Gbps")]
    Windows(Rate),
}

/// The lines of this build: `slower` than 10 Gb/s if it has all, or those that it `lacks`.
fn there(slower: &str, lacks: &str) -> String {
    match cfg!(feature = "all-tops") {
        true => format!("{slower}10Gbps, 25Gbps and 100Gbps"),
        false => format!("10Gbps; `cargo build --release -p penstock-cli --features all-tops` adds {lacks}"),
    }
}

/// The same of front ends with rings in memory.
fn there_with_memory() -> &'static str {
    match cfg!(feature = "all-tops") {
        true => "10Gbps",
        false => "none: `cargo build --release -p penstock-cli --features all-tops` adds 10Gbps",
    }
}

impl Top {
    /// The front end for RoCEv2 with a line of this rate and its rings there.
    ///
    /// # Errors
    /// There is none, or it is not part of this build.
    pub fn of_line(rate: Rate, rings: Rings) -> Result<Self, NoSuchLine> {
        if rings == Rings::Memory {
            #[cfg(feature = "all-tops")]
            if rate == Self::Gbps10Memory.clock().rate() {
                return Ok(Self::Gbps10Memory);
            }
            return Err(NoSuchLine::Memory(rate));
        }
        #[cfg(feature = "all-tops")]
        let tops = [Self::Gbps10, Self::Gbps1, Self::Gbps2_5, Self::Gbps25X16, Self::Gbps100X16];
        #[cfg(not(feature = "all-tops"))]
        let tops = [Self::Gbps10];
        tops.into_iter().find(|top| top.clock().rate() == rate).ok_or(NoSuchLine::Roce(rate))
    }

    /// The same, with its queue pairs and their messages alone if there is a build of that: it runs in half of the time.
    ///
    /// # Errors
    /// As [`Top::of_line`].
    pub fn of_flows(rate: Rate, rings: Rings) -> Result<Self, NoSuchLine> {
        match Self::of_line(rate, rings)? {
            Self::Gbps10 => Ok(Self::Gbps10Flows),
            whole => Ok(whole),
        }
    }

    /// The front end for RoCEv2 with a line of this rate and windows of its memory.
    ///
    /// # Errors
    /// There is none.
    pub fn of_windows(rate: Rate) -> Result<Self, NoSuchLine> {
        match rate == Self::Gbps10Reads.clock().rate() {
            true => Ok(Self::Gbps10Reads),
            false => Err(NoSuchLine::Windows(rate)),
        }
    }

    /// The front end for TCP with a line of this rate.
    ///
    /// # Errors
    /// There is none, or it is not part of this build.
    pub fn of_line_tcp(rate: Rate) -> Result<Self, NoSuchLine> {
        #[cfg(feature = "all-tops")]
        let tops = [Self::Gbps10Tcp, Self::Gbps25TcpX16, Self::Gbps100TcpX16];
        #[cfg(not(feature = "all-tops"))]
        let tops = [Self::Gbps10Tcp];
        tops.into_iter().find(|top| top.clock().rate() == rate).ok_or(NoSuchLine::Tcp(rate))
    }

    /// Its clock and its line.
    pub fn clock(self) -> LineClock {
        match self {
            Self::Gbps10 | Self::Gbps10Tcp | Self::Gbps10Flows | Self::Gbps10Reads => LineClock::GBPS_10,
            #[cfg(feature = "all-tops")]
            Self::Gbps1 => LineClock::GBPS_1,
            #[cfg(feature = "all-tops")]
            Self::Gbps2_5 => LineClock::GBPS_2_5,
            #[cfg(feature = "all-tops")]
            Self::Gbps10X16 | Self::Gbps10TcpX16 | Self::Gbps10Memory => LineClock::GBPS_10,
            #[cfg(feature = "all-tops")]
            Self::Gbps25X16 | Self::Gbps25TcpX16 => LineClock::GBPS_25,
            #[cfg(feature = "all-tops")]
            Self::Gbps100X16 | Self::Gbps100TcpX16 => LineClock::GBPS_100,
        }
    }

    /// Bytes of a payload beat.
    pub fn lanes(self) -> usize {
        match self {
            #[cfg(feature = "all-tops")]
            Self::Gbps100X16 | Self::Gbps100TcpX16 => 64,
            _ => 8,
        }
    }

    /// Bytes of the AXI4 memory beside it.
    pub(crate) fn memory_bytes(self) -> Option<usize> {
        match self {
            Self::Gbps10Reads => Some(READ_MEMORY_BYTES),
            #[cfg(feature = "all-tops")]
            Self::Gbps10Memory => Some(4 * MEMORY_RING_BYTES),
            _ => None,
        }
    }

    /// The part of this memory that is for the window of queue pair `index`: its first address, and bytes. No other queue
    /// pair has it.
    pub(crate) fn window(self, index: u8) -> Option<(u64, u64)> {
        let base = READ_RINGS_BYTES + u64::from(index) * READ_WINDOW_BYTES;
        (self == Self::Gbps10Reads).then_some((base, READ_WINDOW_BYTES))
    }

    /// A model of what is at its Ethernet side.
    pub(crate) fn port(self) -> Box<dyn Port> {
        match self {
            #[cfg(feature = "all-tops")]
            Self::Gbps1 => Box::<Gmii>::default(),
            #[cfg(feature = "all-tops")]
            Self::Gbps100X16 | Self::Gbps100TcpX16 => Box::<HardMac>::default(),
            _ => Box::<Xgmii>::default(),
        }
    }
}
