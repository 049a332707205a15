// SPDX-License-Identifier: Apache-2.0
//! One direction of a link: serialisation at its rate, propagation delay, and seeded, typed faults.
//! Promise: frames leave in order and never faster than the rate; faults depend only on the seed and the link's name.
//! Source: IEEE 802.3 clause 4 for preamble, FCS and gap.

use bytes::Bytes;
use penstock_wire::Packet;

use crate::frame::Frame;
use crate::rng::Stream;
use crate::units::{Probability, Rate, Time};

/// The faults of a link, independent for each frame. The default is a perfect link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// The frame vanishes.
    pub loss: Probability,
    /// The frame arrives a second time, one frame time later.
    pub duplicate: Probability,
    /// The frame is held back by `reorder_by`, so that later ones overtake it.
    pub reorder: Probability,
    pub reorder_by: Time,
    /// Bit errors which the FCS catches.
    pub corrupt: Probability,
    /// One bit after the Ethernet header flips although the FCS is right (an error inside a switch): the ICRC's
    /// business. MAC control frames, which are made and consumed on one link, are spared.
    pub corrupt_undetected: Probability,
    /// Up to this much is added to the delay of each frame, evenly distributed; the order of frames is kept.
    pub jitter: Time,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            loss: Probability::NEVER,
            duplicate: Probability::NEVER,
            reorder: Probability::NEVER,
            reorder_by: Time::from_us(10),
            corrupt: Probability::NEVER,
            corrupt_undetected: Probability::NEVER,
            jitter: Time::ZERO,
        }
    }
}

impl Faults {
    fn is_perfect(&self) -> bool {
        *self == Faults { reorder_by: self.reorder_by, ..Faults::default() }
    }
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkParams {
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    pub faults: Faults,
}

impl Default for LinkParams {
    /// 10 Gb/s and 1 us, no faults.
    fn default() -> Self {
        LinkParams { rate: Rate::from_gbps(10), delay: Time::from_us(1), faults: Faults::default() }
    }
}

/// Which direction of a link is meant, by the ends as they were given to `Engine::connect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    #[default]
    Both,
    /// The direction from the first end to the second.
    Forward,
    /// The direction from the second end to the first.
    Back,
}

impl Way {
    /// The places in an array of two directions.
    pub(crate) fn directions(self) -> std::ops::Range<usize> {
        match self {
            Way::Both => 0..2,
            Way::Forward => 0..1,
            Way::Back => 1..2,
        }
    }
}

/// A change of a link; `None` leaves a value unchanged. The frame on the wire is not affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkChange {
    pub rate: Option<Rate>,
    pub loss: Option<Probability>,
}

/// The counters of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStats {
    pub frames: u64,
    /// Frames that carry payload: requests with data, not acknowledgements and control.
    pub data_frames: u64,
    /// Bytes with preamble, FCS and gap.
    pub wire_bytes: u64,
    /// Time in which the wire was busy.
    pub busy: Time,
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub corrupted_undetected: u64,
}

/// The outcome of a transmitted frame at the receiver.
pub(crate) struct Passage {
    /// Last bit at the other end; `None` if the frame is lost.
    pub(crate) arrival: Option<Time>,
    /// Last bit of a duplicate.
    pub(crate) duplicate: Option<Time>,
}

/// The part of one direction of a link that every frame accesses; the rest is a [`Wire`].
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) busy_until: Time,
    delay: Time,
    /// 0 where the time of a byte is no whole number.
    ps_per_byte: u64,
    frames: u64,
    pub(crate) data_frames: u64,
    wire_bytes: u64,
}

/// The rest of one direction of a link.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) params: LinkParams,
    pub(crate) is_perfect: bool,
    /// The statistics without the counters of `Direction`.
    stats: LinkStats,
    /// Bytes whose time is already included in `stats.busy`.
    timed_bytes: u64,
    last_arrival: Time,
    random: Stream,
}

impl Direction {
    pub(crate) fn new(params: LinkParams, random: Stream) -> (Self, Wire) {
        let (busy_until, last_arrival) = (Time::ZERO, Time::ZERO);
        let (stats, is_perfect) = (LinkStats::default(), params.faults.is_perfect());
        let (delay, ps_per_byte) = (params.delay, whole_ps_per_byte(params.rate));
        let out = Direction { busy_until, delay, ps_per_byte, frames: 0, data_frames: 0, wire_bytes: 0 };
        (out, Wire { params, is_perfect, stats, timed_bytes: 0, last_arrival, random })
    }

    /// Changes the link for the frames that begin from now on.
    pub(crate) fn change(&mut self, wire: &mut Wire, change: LinkChange) {
        wire.stats = self.stats(wire);
        wire.timed_bytes = self.wire_bytes;
        wire.params.rate = change.rate.unwrap_or(wire.params.rate);
        wire.params.faults.loss = change.loss.unwrap_or(wire.params.faults.loss);
        wire.is_perfect = wire.params.faults.is_perfect();
        self.ps_per_byte = whole_ps_per_byte(wire.params.rate);
    }

    pub(crate) fn stats(&self, wire: &Wire) -> LinkStats {
        let untimed = self.wire_bytes - wire.timed_bytes;
        LinkStats {
            frames: self.frames,
            data_frames: self.data_frames,
            wire_bytes: self.wire_bytes,
            busy: wire.stats.busy + Time(self.ps_per_byte * untimed),
            ..wire.stats
        }
    }

    /// Sends a frame at `start` or when the wire is free. Returns its time on the wire.
    #[inline]
    pub(crate) fn occupy(&mut self, wire: &mut Wire, start: Time, frame: &Frame) -> Time {
        self.data_frames += u64::from(frame.carries_data());
        self.occupy_for(wire, start, frame.wire_len() as u64)
    }

    /// The same for a frame without data, with this number of bytes on the wire.
    #[inline]
    pub(crate) fn occupy_for(&mut self, wire: &mut Wire, start: Time, bytes: u64) -> Time {
        self.frames += 1;
        self.wire_bytes += bytes;
        let serialisation = self.time_for(wire, bytes);
        if self.ps_per_byte == 0 {
            wire.stats.busy += serialisation;
            wire.timed_bytes = self.wire_bytes;
        }
        self.busy_until = start.max(self.busy_until) + serialisation;
        serialisation
    }

    /// The time of this number of bytes.
    #[inline]
    pub(crate) fn time_for(&self, wire: &Wire, bytes: u64) -> Time {
        match self.ps_per_byte {
            0 => wire.params.rate.time_for(bytes),
            ps => Time(ps * bytes),
        }
    }

    /// When the last bit of the frame that was given to `occupy` is at the other end.
    #[inline]
    pub(crate) fn arrival(&self) -> Time {
        self.busy_until + self.delay
    }
}

fn whole_ps_per_byte(rate: Rate) -> u64 {
    const BITS: u64 = 8_000_000_000_000;
    let rate = rate.bits_per_second();
    if rate > 0 && BITS.is_multiple_of(rate) {
        BITS / rate
    } else {
        0
    }
}

impl Wire {
    /// Applies the faults to a frame that would arrive at `arrival`.
    pub(crate) fn pass(&mut self, serialisation: Time, arrival: Time, frame: &mut Frame) -> Passage {
        if self.is_perfect {
            return Passage { arrival: Some(arrival), duplicate: None };
        }
        self.pass_with_faults(serialisation, arrival, frame)
    }

    fn pass_with_faults(&mut self, serialisation: Time, arrival: Time, frame: &mut Frame) -> Passage {
        let faults = self.params.faults;
        let jitter = if faults.jitter > Time::ZERO { self.random.below(faults.jitter.0 + 1) } else { 0 };
        let mut arrival = (arrival + Time(jitter)).max(self.last_arrival);
        if self.random.happens(faults.loss) {
            self.stats.lost += 1;
            return Passage { arrival: None, duplicate: None };
        }
        self.last_arrival = arrival;
        if self.random.happens(faults.reorder) {
            self.stats.reordered += 1;
            arrival += faults.reorder_by;
        }
        if self.random.happens(faults.corrupt) {
            self.stats.corrupted += 1;
            frame.spoil_fcs();
        }
        if self.random.happens(faults.corrupt_undetected) && !matches!(frame.packet(), Packet::MacControl { .. }) {
            self.stats.corrupted_undetected += 1;
            flip_a_bit(frame, &mut self.random);
        }
        let duplicate = self.random.happens(faults.duplicate).then(|| {
            self.stats.duplicated += 1;
            arrival + serialisation
        });
        Passage { arrival: Some(arrival), duplicate }
    }
}

/// Flips one bit after the Ethernet header and leaves the frame as bytes, since its fields can no longer be trusted.
fn flip_a_bit(frame: &mut Frame, random: &mut Stream) {
    const ETHERNET_HEADER: usize = 14;
    let mut bytes = frame.packet().emit().to_vec();
    if bytes.len() > ETHERNET_HEADER {
        let at = ETHERNET_HEADER + random.below((bytes.len() - ETHERNET_HEADER) as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
    }
    *frame = Frame::new(Packet::Raw(Bytes::from(bytes))).with_fcs(frame.fcs_ok());
}
