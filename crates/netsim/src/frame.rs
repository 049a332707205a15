// SPDX-License-Identifier: Apache-2.0
//! A frame on a link: a packet, and whether its frame check sequence will be right on arrival.
//! Promise: the header fields that every hop reads are stored together, outside the packet.

use std::net::Ipv4Addr;

use penstock_wire::{Ecn, FiveTuple, Packet, MIN_FRAME_LEN, WIRE_OVERHEAD};

/// A frame. Nodes pass it on by value, so the packet itself is on the heap.
#[derive(Debug, Clone)]
pub struct Frame {
    packet: Box<Packet>,
    frame_len: u32,
    /// Flow and DSCP of a RoCE or TCP packet; see `Traits::ADDRESSED`.
    flow: FiveTuple,
    dscp: u8,
    /// Notes of the switch that holds the frame: the port it came in by, and its class.
    pub(crate) ingress: u16,
    pub(crate) class: u8,
    traits: Traits,
}

/// A set of flags in one byte, so that a frame is copied by whole words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Traits(u8);

impl Traits {
    const NONE: u8 = 0;
    /// RoCE or TCP: `flow` and `dscp` hold.
    const ADDRESSED: u8 = 1;
    /// A pause or PFC frame.
    const CONTROL: u8 = 1 << 1;
    const CARRIES_DATA: u8 = 1 << 2;
    const ECN_CAPABLE: u8 = 1 << 3;
    /// There were bit errors that the Ethernet FCS catches.
    const BAD_FCS: u8 = 1 << 4;
    /// A switch has set congestion experienced, which is not written into the packet yet.
    const MARKED: u8 = 1 << 5;
    /// It has a CN-TAG.
    const CN_TAGGED: u8 = 1 << 6;

    #[inline]
    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    fn set(&mut self, flag: u8, on: bool) {
        self.0 = self.0 & !flag | if on { flag } else { 0 };
    }

    /// Flags of a packet with addresses.
    fn addressed(has_payload: bool, is_ecn_capable: bool) -> u8 {
        let data = if has_payload { Self::CARRIES_DATA } else { 0 };
        let ecn = if is_ecn_capable { Self::ECN_CAPABLE } else { 0 };
        Self::ADDRESSED | data | ecn
    }
}

/// Placeholder for the flow of a frame that is neither RoCE nor TCP.
const NO_FLOW: FiveTuple =
    FiveTuple { src: Ipv4Addr::UNSPECIFIED, dst: Ipv4Addr::UNSPECIFIED, protocol: 0, sport: 0, dport: 0 };

impl Frame {
    pub fn new(packet: Packet) -> Self {
        Frame::boxed(Box::new(packet))
    }

    #[inline]
    fn boxed(packet: Box<Packet>) -> Self {
        let (dscp, traits) = match &*packet {
            Packet::Roce(packet) => {
                let tagged = if packet.cn_tag.is_some() { Traits::CN_TAGGED } else { 0 };
                (packet.dscp, Traits::addressed(!packet.payload.is_empty(), packet.ecn.is_capable()) | tagged)
            }
            Packet::Tcp(packet) => {
                (packet.dscp, Traits::addressed(!packet.payload.is_empty(), packet.ecn.is_capable()))
            }
            Packet::MacControl { .. } => (0, Traits::CONTROL),
            Packet::Cnm(_) | Packet::Raw(_) => (0, Traits::NONE),
        };
        let traits = Traits(traits);
        let flow = if traits.has(Traits::ADDRESSED) { packet.five_tuple() } else { None };
        let frame_len = packet.frame_len() as u32;
        Frame { packet, frame_len, flow: flow.unwrap_or(NO_FLOW), dscp, ingress: 0, class: 0, traits }
    }

    /// Sets whether its frame check sequence is right.
    pub fn with_fcs(mut self, fcs_ok: bool) -> Self {
        self.traits.set(Traits::BAD_FCS, !fcs_ok);
        self
    }

    /// False after bit errors that the Ethernet FCS catches; a receiver counts such a frame and drops it.
    #[inline]
    pub fn fcs_ok(&self) -> bool {
        !self.traits.has(Traits::BAD_FCS)
    }

    /// There were bit errors.
    pub(crate) fn spoil_fcs(&mut self) {
        self.traits.set(Traits::BAD_FCS, true);
    }

    /// The packet. It is mutable access since an ECN mark is written into the packet only when a node reads it: at most
    /// hops the packet is no longer in the cache.
    #[inline]
    pub fn packet(&mut self) -> &Packet {
        self.write_mark();
        &self.packet
    }

    pub fn into_packet(mut self) -> Packet {
        self.write_mark();
        *self.packet
    }

    /// The packet with the ECN bits that it was sent with.
    pub(crate) fn packet_as_sent(&self) -> &Packet {
        &self.packet
    }

    /// Whether it is a pause or PFC frame.
    #[inline]
    pub(crate) fn is_control(&self) -> bool {
        self.traits.has(Traits::CONTROL)
    }

    /// Flow and DSCP of a RoCE or TCP packet, without access to the packet.
    #[inline]
    pub(crate) fn addressed(&self) -> Option<(&FiveTuple, u8)> {
        self.traits.has(Traits::ADDRESSED).then_some((&self.flow, self.dscp))
    }

    #[inline]
    pub(crate) fn is_ecn_capable(&self) -> bool {
        self.traits.has(Traits::ECN_CAPABLE)
    }

    /// Sets congestion experienced on a RoCE or TCP packet.
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.traits.set(Traits::MARKED, true);
    }

    #[inline]
    fn write_mark(&mut self) {
        if !self.traits.has(Traits::MARKED) {
            return;
        }
        self.traits.set(Traits::MARKED, false);
        match &mut *self.packet {
            Packet::Roce(packet) => packet.ecn = Ecn::Ce,
            Packet::Tcp(packet) => packet.ecn = Ecn::Ce,
            Packet::Cnm(_) | Packet::MacControl { .. } | Packet::Raw(_) => {}
        }
    }

    /// Whether it has a CN-TAG.
    #[inline]
    pub(crate) fn is_cn_tagged(&self) -> bool {
        self.traits.has(Traits::CN_TAGGED)
    }

    /// Removes its CN-TAG.
    pub(crate) fn remove_cn_tag(&mut self) {
        if let Packet::Roce(packet) = &mut *self.packet {
            packet.cn_tag = None;
            self.frame_len = packet.frame_len() as u32;
            self.traits.set(Traits::CN_TAGGED, false);
        }
    }

    /// `Packet::frame_len`.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.frame_len as usize
    }

    /// `Packet::wire_len`.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.frame_len().max(MIN_FRAME_LEN) + WIRE_OVERHEAD
    }

    /// Whether it counts as a data packet.
    #[inline]
    pub(crate) fn carries_data(&self) -> bool {
        self.traits.has(Traits::CARRIES_DATA)
    }
}

/// Memory of received frames, for the frames that will be sent.
#[derive(Default)]
pub(crate) struct Spare(#[allow(clippy::vec_box)] Vec<Box<Packet>>);

impl Spare {
    /// The maximum number of packets whose memory is kept: some nodes only send and others only receive.
    const MOST: usize = 1 << 16;

    #[inline]
    pub(crate) fn frame(&mut self, packet: Packet) -> Frame {
        match self.0.pop() {
            Some(mut place) => {
                *place = packet;
                Frame::boxed(place)
            }
            None => Frame::new(packet),
        }
    }

    #[inline]
    pub(crate) fn keep(&mut self, frame: Frame) {
        if self.0.len() < Self::MOST {
            self.0.push(frame.packet);
        }
    }
}
