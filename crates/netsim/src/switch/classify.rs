// SPDX-License-Identifier: Apache-2.0
//! The fields of a frame that a switch reads: destination, class, flow, ECN bits, source.
//! Promise: undetected corrupt bytes (`Faults::corrupt_undetected`) are interpreted as they are, as in a real switch.
//! Source: RFC 2474 (class selector: class = DSCP / 8), RFC 3168 (ECN), IEEE 802.1Qau (CNM).

use std::net::Ipv4Addr;

use penstock_wire::{Cnm, EthernetView, FiveTuple, Ipv4View, MacAddr, Packet, ETHERTYPE_IPV4};

use super::params::SwitchParams;
use crate::frame::Frame;
use crate::pause::CLASSES;

/// Where a frame wants to go and in which class; `None`: it is not to be forwarded.
///
/// The tables are by IPv4 address, so a QCN message goes to the IPv4 source of the frame it quotes, which is the owner
/// of the MAC address it is sent to.
#[inline]
pub(super) fn route_of(frame: &Frame) -> Option<(Ipv4Addr, usize)> {
    match frame.addressed() {
        Some((flow, dscp)) => Some((flow.dst, usize::from(dscp >> 3) % CLASSES)),
        None => destination_and_class(frame.packet_as_sent()),
    }
}

/// The same of a packet.
pub(super) fn destination_and_class(packet: &Packet) -> Option<(Ipv4Addr, usize)> {
    match packet {
        Packet::Roce(packet) => Some((packet.ip_dst, usize::from(packet.dscp >> 3) % CLASSES)),
        Packet::Tcp(packet) => Some((packet.ip_dst, usize::from(packet.dscp >> 3) % CLASSES)),
        Packet::Cnm(cnm) => Some((cnm.ip_dst(), SwitchParams::CNM_CLASS)),
        Packet::MacControl { .. } => None,
        Packet::Raw(bytes) => {
            const IP: usize = 14;
            let eth = EthernetView::new_checked(bytes).ok()?;
            if eth.ethertype() != ETHERTYPE_IPV4 || Ipv4View::new_checked(eth.payload()).is_err() {
                return None;
            }
            let destination: [u8; 4] = bytes.get(IP + 16..IP + 20)?.try_into().ok()?;
            Some((destination.into(), usize::from(bytes[IP + 1] >> 5)))
        }
    }
}

/// The flow by which a frame's path is chosen.
pub(super) fn flow_of(frame: &Frame) -> Option<FiveTuple> {
    match frame.addressed() {
        Some((flow, _)) => Some(*flow),
        None => flow(frame.packet_as_sent()),
    }
}

/// The same of a packet. A QCN message takes one of the paths of its flow's way back.
pub(super) fn flow(packet: &Packet) -> Option<FiveTuple> {
    match packet {
        Packet::Cnm(cnm) => {
            let flow = cnm.flow_tuple;
            Some(FiveTuple { src: flow.dst, dst: flow.src, sport: flow.dport, dport: flow.sport, ..flow })
        }
        packet => packet.five_tuple(),
    }
}

/// The identity and queue state that a congestion point reports.
pub(super) struct Congestion {
    pub(super) mac: MacAddr,
    pub(super) port: u16,
    pub(super) class: usize,
    pub(super) feedback: u8,
    pub(super) q_eq: u64,
    pub(super) queue_bytes: u64,
    pub(super) queue_old: u64,
}

/// The message for the source of a sampled packet; `None` if it has no flow to slow down.
pub(super) fn notification(sampled: &Packet, at: &Congestion) -> Option<Cnm> {
    let (eth_src, eth_dst, dest_qpn, cn_tag) = match sampled {
        Packet::Roce(packet) => (packet.eth_src, packet.eth_dst, Some(packet.bth.dest_qpn), packet.cn_tag),
        Packet::Tcp(packet) => (packet.eth_src, packet.eth_dst, None, None),
        Packet::Cnm(_) | Packet::MacControl { .. } | Packet::Raw(_) => return None,
    };
    let flow_tuple = sampled.five_tuple()?;
    let [a, b, c, d, e, f] = at.mac.0.map(u64::from);
    let mac = a << 40 | b << 32 | c << 24 | d << 16 | e << 8 | f;
    Some(Cnm {
        eth_dst: eth_src,
        eth_src: at.mac,
        flow: cn_tag.unwrap_or(Cnm::flow_of(flow_tuple.sport)),
        feedback: at.feedback,
        cpid: mac << 16 | u64::from(at.port) << 3 | at.class as u64,
        q_offset: in_cells(at.q_eq, at.queue_bytes),
        q_delta: in_cells(at.queue_bytes, at.queue_old),
        priority: at.class as u8,
        encapsulated_dst: eth_dst,
        flow_tuple,
        dest_qpn,
    })
}

/// `a - b` in units of 64 bytes, held at the ends of the range.
fn in_cells(a: u64, b: u64) -> i16 {
    let cells = (i128::from(a) - i128::from(b)) / 64;
    cells.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}
