// SPDX-License-Identifier: Apache-2.0
//! Any frame on a link: RoCEv2, TCP, MAC control, congestion notification, or other bytes.
//! `frame_len` and `wire_len` need no bytes, so a simulator can compute the occupancy of links from them.
//! Source: IEEE 802.3 clause 3.

use crate::bytesio::be16;
use crate::cnm::{Cnm, ETHERTYPE_CNM};
use crate::error::ParseError;
use crate::ethernet::MacAddr;
use crate::ethernet::{self, EthernetView, ETHERTYPE_CN_TAG, ETHERTYPE_IPV4, ETHERTYPE_MAC_CONTROL};
use crate::five_tuple::FiveTuple;
use crate::ipv4::{self, Ipv4View};
use crate::mac_control::MacControl;
use crate::mac_control::MAC_CONTROL_DST;
use crate::roce::RocePacket;
use crate::tcp::TcpPacket;
use crate::udp::UDP_PORT_ROCE;
use crate::{tcp, udp, wire_len, MIN_FRAME_LEN};
use bytes::{Bytes, BytesMut};

/// One frame, from destination MAC to its last byte before the FCS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// RoCEv2 over IPv4.
    Roce(RocePacket),
    /// TCP over IPv4. Made by endpoints only: `parse` leaves TCP raw, and [`TcpPacket::parse`] reads it.
    Tcp(TcpPacket),
    /// Pause or PFC, to 01:80:C2:00:00:01.
    MacControl {
        /// Who sends it.
        src: MacAddr,
        /// What it asks for.
        control: MacControl,
    },
    /// QCN's congestion notification message.
    Cnm(Cnm),
    /// Anything else, or a damaged frame a caller wants to carry on.
    Raw(Bytes),
}

impl Packet {
    /// Reads a frame without FCS. The payload of a RoCEv2 packet is a slice of `frame`.
    /// A RoCEv2 packet may have a CN-TAG. ARP, TCP, other UDP, IPv6, VLAN tags and MAC control with an unknown opcode or another address than the group's
    /// give `Packet::Raw`.
    ///
    /// # Errors
    /// A frame that claims to be RoCEv2, MAC control or a CNM and is malformed, or whose ICRC is wrong.
    pub fn parse(frame: Bytes) -> Result<Packet, ParseError> {
        let eth = EthernetView::new_checked(&frame)?;
        match eth.ethertype() {
            ETHERTYPE_MAC_CONTROL if eth.dst() == MAC_CONTROL_DST => {
                let (src, control) = (eth.src(), MacControl::parse(eth.payload())?);
                Ok(control.map_or(Packet::Raw(frame), |control| Packet::MacControl { src, control }))
            }
            ETHERTYPE_CN_TAG => match eth.payload().get(2..4).map(|next| be16(next, 0)) {
                Some(ETHERTYPE_CNM) => Ok(Cnm::parse(&frame)?.map_or(Packet::Raw(frame), Packet::Cnm)),
                Some(ETHERTYPE_IPV4) if claims_roce(&eth.payload()[4..]) => RocePacket::parse(&frame).map(Packet::Roce),
                _ => Ok(Packet::Raw(frame)),
            },
            ETHERTYPE_IPV4 if claims_roce(eth.payload()) => RocePacket::parse(&frame).map(Packet::Roce),
            _ => Ok(Packet::Raw(frame)),
        }
    }

    /// The bytes of the frame without FCS. Cheap for `Raw`.
    pub fn emit(&self) -> Bytes {
        match self {
            Packet::Roce(packet) => packet.emit(),
            Packet::Tcp(packet) => packet.emit(),
            Packet::MacControl { src, control } => {
                let mut frame = BytesMut::zeroed(MIN_FRAME_LEN);
                ethernet::write(&mut frame, MAC_CONTROL_DST, *src, ETHERTYPE_MAC_CONTROL);
                control.write(&mut frame[ethernet::LEN..]);
                frame.freeze()
            }
            Packet::Cnm(cnm) => cnm.emit(),
            Packet::Raw(bytes) => bytes.clone(),
        }
    }

    /// The identity of its flow. For IPv4 other than TCP and UDP, and for all fragments except the first, the ports
    /// are 0. `None`: no IPv4 packet.
    #[inline]
    pub fn five_tuple(&self) -> Option<FiveTuple> {
        match self {
            Packet::Roce(packet) => Some(FiveTuple {
                src: packet.ip_src,
                dst: packet.ip_dst,
                protocol: udp::PROTOCOL,
                sport: packet.udp_sport,
                dport: UDP_PORT_ROCE,
            }),
            Packet::Tcp(packet) => Some(FiveTuple {
                src: packet.ip_src,
                dst: packet.ip_dst,
                protocol: tcp::PROTOCOL,
                sport: packet.src_port,
                dport: packet.dst_port,
            }),
            Packet::MacControl { .. } | Packet::Cnm(_) => None,
            Packet::Raw(frame) => FiveTuple::of_frame(frame),
        }
    }

    /// Bytes from the destination MAC to the last one before the FCS: the length of [`Self::emit`].
    #[inline]
    pub fn frame_len(&self) -> usize {
        match self {
            Packet::Roce(packet) => packet.frame_len(),
            Packet::Tcp(packet) => packet.frame_len(),
            Packet::MacControl { .. } => MIN_FRAME_LEN,
            Packet::Cnm(cnm) => cnm.frame_len(),
            Packet::Raw(bytes) => bytes.len(),
        }
    }

    /// Bytes of link time the frame costs: padded to the minimum, plus FCS, preamble and gap; 84 at least.
    #[inline]
    pub fn wire_len(&self) -> usize {
        wire_len(self.frame_len())
    }
}

impl From<RocePacket> for Packet {
    fn from(packet: RocePacket) -> Self {
        Packet::Roce(packet)
    }
}

/// Whether an IPv4 packet is UDP to port 4791, by the fields alone. A later fragment has no UDP
/// header and so claims nothing.
fn claims_roce(data: &[u8]) -> bool {
    Ipv4View::new_checked(data).is_ok_and(|ip| {
        let port_at = ip.header_len() + 2;
        ip.version() == 4
            && ip.header_len() >= ipv4::LEN
            && ip.protocol() == udp::PROTOCOL
            && ip.fragment_offset() == 0
            && data.get(port_at..port_at + 2) == Some(&UDP_PORT_ROCE.to_be_bytes()[..])
    })
}

impl From<Cnm> for Packet {
    fn from(cnm: Cnm) -> Self {
        Packet::Cnm(cnm)
    }
}
