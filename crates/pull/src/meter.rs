// SPDX-License-Identifier: Apache-2.0
//! Measures round trips, and sets the window by them.

use penstock_units::Time;

use crate::config::Config;
use crate::window::Window;

/// A round trip that is assumed until one has been measured: short, so that the first READs do not wait for each other.
const FIRST_ROUND_TRIP: Time = Time::from_us(4);
/// Packets that a measured window has in addition: one waits for room, one is on its way from a board to a switch, and
/// one makes up for a shortest round trip that was that of a short fragment.
const EXCESS: u64 = 3;
/// A way is long if it takes this number of times what the server's line takes for the window.
const FAR: u64 = 16;
/// The longest RDMA message, bytes.
const LONGEST_MESSAGE: u32 = 1 << 31;
/// READs that share a window, at least. Each is a whole number of packets.
const READS_OF_A_WINDOW: u64 = 8;

/// The window in use, and round trips of all boards, measured by epochs: an epoch ends when a window's bytes have
/// arrived.
#[derive(Debug)]
pub(crate) struct Meter {
    source: Window,
    bytes: u64,
    mtu: u32,
    /// The longest packet on the wire.
    packet: u64,
    /// Payload of the longest READs, bytes.
    read_size: u32,
    /// The longest payload that fits into the window.
    longest: u32,
    /// Whether it follows from ways that were measured.
    is_measured: bool,
    epoch: Epoch,
    /// The fastest READ of the epoch before.
    fastest_before: Time,
}

#[derive(Debug, Clone, Copy)]
struct Epoch {
    arrived: u64,
    /// The shortest round trip of a READ.
    fastest: Time,
    /// Bytes of boards whose way has been measured, and the sum of their round trips in ns, each times its bytes.
    measured: u64,
    weighted_ns: u128,
}

impl Epoch {
    const EMPTY: Epoch = Epoch { arrived: 0, fastest: Time::MAX, measured: 0, weighted_ns: 0 };
}

impl Meter {
    pub(crate) fn new(config: &Config) -> Self {
        let mut meter = Self {
            source: config.window,
            bytes: 0,
            mtu: config.mtu,
            packet: config.wire_bytes(config.mtu),
            read_size: 0,
            longest: 0,
            is_measured: false,
            epoch: Epoch::EMPTY,
            fastest_before: Time::MAX,
        };
        meter.set(config, FIRST_ROUND_TRIP);
        meter
    }

    fn set(&mut self, config: &Config, round_trip: Time) {
        let packet = config.wire_bytes(config.mtu);
        self.bytes = match self.source {
            Window::Given(bytes) => bytes,
            Window::Measured { line } => {
                let carried = line.bytes_in(round_trip).bytes();
                carried.saturating_add(carried / 2).saturating_add(EXCESS * packet)
            }
        };
        let packets = (self.bytes / READS_OF_A_WINDOW).div_ceil(packet).max(1);
        let payload =
            |packets: u64| u32::try_from(packets).unwrap_or(u32::MAX).saturating_mul(config.mtu).min(LONGEST_MESSAGE);
        self.read_size = payload(packets);
        self.longest = payload((self.bytes / packet).max(1));
    }

    /// W, bytes on the wire.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Payload of a READ of a board that reads `packets` at a time, bytes, and of one with which a fragment ends. A given
    /// window is shared by READs of one size.
    #[inline]
    pub(crate) fn read_sizes(&self, packets: u32) -> (u32, u32) {
        let size = match self.source {
            Window::Given(_) => self.read_size,
            Window::Measured { .. } => self.read_size.min(packets.saturating_mul(self.mtu)),
        };
        (size, size.saturating_add(size / 2).min(self.longest).max(size))
    }

    /// The least part of a window with which a board may begin; none before ways have been measured.
    #[inline]
    pub(crate) fn large_share(&self) -> u64 {
        match self.is_measured {
            true => 2 * READS_OF_A_WINDOW * self.packet,
            false => u64::MAX,
        }
    }

    /// Packets of the READs that share a part of the window.
    #[inline]
    pub(crate) fn packets_of(&self, share: u64) -> u32 {
        u32::try_from(share / READS_OF_A_WINDOW / self.packet).unwrap_or(u32::MAX)
    }

    /// Packets of the longest READ.
    #[inline]
    pub(crate) fn longest_packets(&self) -> u32 {
        self.read_size / self.mtu
    }

    /// The shortest round trip of any board's READ, of late.
    #[inline]
    pub(crate) fn fastest(&self) -> Time {
        self.epoch.fastest.min(self.fastest_before)
    }

    /// How long the way of a READ of `wire` bytes takes, without the bytes themselves on the line. `None` if the line
    /// was busy for a quarter of the time, or more, with the `carried` bytes of other READs that have arrived since it was
    /// posted: then it may have waited, and a longer window would bring nothing.
    #[inline]
    pub(crate) fn way(&self, round_trip: Time, wire: u64, carried: u64) -> Option<Time> {
        match self.source {
            Window::Given(_) => None,
            Window::Measured { line } => {
                let was_idle = round_trip > line.time_for(carried).saturating_mul(4);
                was_idle.then(|| round_trip.saturating_sub(line.time_for(wire)))
            }
        }
    }

    /// The way of a board: the one that was measured, or else a round trip that is far longer than any wait for the line.
    /// Boards far away may never find the line idle.
    #[inline]
    pub(crate) fn likely_way(&self, measured: Option<Time>, shortest: Time) -> Option<Time> {
        match self.source {
            Window::Given(_) => None,
            Window::Measured { line } => {
                let is_far = || shortest > line.time_for(self.bytes).saturating_mul(FAR);
                measured.or_else(|| is_far().then_some(shortest))
            }
        }
    }

    /// A READ of `wire` bytes has arrived after `round_trip`, at a board whose way takes `way`, if that is measured.
    #[inline]
    pub(crate) fn measure(&mut self, config: &Config, wire: u64, round_trip: Time, way: Option<Time>) {
        let epoch = &mut self.epoch;
        epoch.fastest = epoch.fastest.min(round_trip);
        epoch.arrived += wire;
        if let Some(way) = way {
            epoch.measured += wire;
            epoch.weighted_ns += u128::from(way.as_ps() / 1_000) * u128::from(wire);
        }
        if epoch.arrived >= self.bytes {
            let epoch = std::mem::replace(&mut self.epoch, Epoch::EMPTY);
            self.fastest_before = epoch.fastest;
            if let Some(mean) = epoch.weighted_ns.checked_div(u128::from(epoch.measured)) {
                self.is_measured = true;
                self.set(config, Time::from_ns(u64::try_from(mean).unwrap_or(u64::MAX / 1_000)));
            }
        }
    }
}
