// SPDX-License-Identifier: Apache-2.0
//! The five-tuple that identifies a flow: addresses, protocol and ports.
//! Promise: all packets of one direction of one flow have the same five-tuple; a frame without one gives `None`.
//! Source: RFC 2992 (hashing of flows), IBTA annex A17 (the UDP source port is a RoCEv2 flow's label).

use core::net::Ipv4Addr;

use crate::bytesio::be16;
use crate::ethernet::{EthernetView, ETHERTYPE_IPV4};
use crate::ipv4::{self, Ipv4View};
use crate::{tcp, udp};

/// A flow's addresses, IP protocol and ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct FiveTuple {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// IP protocol: 17 UDP, 6 TCP.
    pub protocol: u8,
    /// Source port; 0 where the protocol has none.
    pub sport: u16,
    /// Destination port; 0 where the protocol has none.
    pub dport: u16,
}

impl FiveTuple {
    /// Reads the bytes of a frame, as [`crate::Packet::five_tuple`] has it.
    pub(crate) fn of_frame(frame: &[u8]) -> Option<FiveTuple> {
        let eth = EthernetView::new_checked(frame).ok()?;
        let data = eth.payload();
        if eth.ethertype() != ETHERTYPE_IPV4 || Ipv4View::new_checked(data).is_err() {
            return None;
        }
        FiveTuple::read(data)
    }

    /// Reads the bytes of an IPv4 packet, of which the header at least must be there.
    pub(crate) fn read(data: &[u8]) -> Option<FiveTuple> {
        let ip = Ipv4View::new_checked(data).ok()?;
        let address = |at: usize| Ipv4Addr::new(data[at], data[at + 1], data[at + 2], data[at + 3]);
        let has_ports = [udp::PROTOCOL, tcp::PROTOCOL].contains(&ip.protocol()) && ip.fragment_offset() == 0;
        let at = ip.header_len();
        let ports = has_ports && at >= ipv4::LEN && data.len() >= at + 4;
        let (sport, dport) = if ports { (be16(data, at), be16(data, at + 2)) } else { (0, 0) };
        Some(FiveTuple { src: address(12), dst: address(16), protocol: ip.protocol(), sport, dport })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn frame(protocol: u8, offset: u8) -> Bytes {
        let mut frame = [0; 42];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14..18].copy_from_slice(&[0x45, 0, 0, 28]);
        frame[14 + 7] = offset;
        frame[14 + 9] = protocol;
        frame[26..38].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0x00, 0x50]);
        Bytes::copy_from_slice(&frame)
    }

    #[test]
    fn ports_are_those_of_tcp_and_udp_in_the_first_fragment_only() {
        let of = |protocol, offset| FiveTuple::of_frame(&frame(protocol, offset)).unwrap();
        let tuple = of(6, 0);
        assert_eq!((tuple.src, tuple.dst), (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!((tuple.protocol, tuple.sport, tuple.dport), (6, 0x1234, 80));
        assert_eq!((of(17, 0).sport, of(17, 3).sport, of(1, 0).sport), (0x1234, 0, 0));
    }

    #[test]
    fn what_is_no_ipv4_has_no_five_tuple() {
        let mut arp = frame(6, 0).to_vec();
        arp[13] = 0x06;
        assert_eq!(FiveTuple::of_frame(&arp), None);
        assert_eq!(FiveTuple::of_frame(&frame(6, 0)[..30]), None);
    }
}
