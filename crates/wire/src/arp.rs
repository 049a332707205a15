// SPDX-License-Identifier: Apache-2.0
//! ARP for IPv4 over Ethernet: finds the MAC address of an IPv4 address.
//! Source: RFC 826; RFC 5227 (probes: a sender of 0.0.0.0 has no address yet).

use crate::bytesio::{be16, put16};
use crate::ethernet;
use crate::ethernet::{EthernetView, MacAddr};
use core::net::Ipv4Addr;

/// EtherType of ARP.
pub const ETHERTYPE_ARP: u16 = 0x0806;
const LEN: usize = 28;
/// Hardware Ethernet, protocol IPv4, addresses of 6 and 4 bytes.
const FORMAT: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// A request or an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    /// An answer; otherwise a request.
    pub is_reply: bool,
    /// Who sends it.
    pub sender: (MacAddr, Ipv4Addr),
    /// The target addresses; the MAC of a request is unused.
    pub target: (MacAddr, Ipv4Addr),
}

impl Arp {
    /// Reads a frame; none if it is not ARP for IPv4 over Ethernet, whole, a request or an answer.
    pub fn parse(frame: &[u8]) -> Option<Arp> {
        let eth = EthernetView::new_checked(frame).ok().filter(|eth| eth.ethertype() == ETHERTYPE_ARP)?;
        let data = eth.payload().get(..LEN)?;
        let operation = be16(data, 6);
        let end = |at: usize| -> Option<(MacAddr, Ipv4Addr)> {
            let ip: [u8; 4] = data[at + 6..at + 10].try_into().ok()?;
            Some((MacAddr(data[at..at + 6].try_into().ok()?), Ipv4Addr::from(ip)))
        };
        let fits = data[..6] == FORMAT && (1..=2).contains(&operation);
        fits.then_some(Arp { is_reply: operation == 2, sender: end(8)?, target: end(18)? })
    }

    /// The frame: a request goes to all, an answer to its target.
    pub fn emit(&self) -> [u8; ethernet::LEN + LEN] {
        let mut frame = [0; ethernet::LEN + LEN];
        let to = if self.is_reply { self.target.0 } else { MacAddr::BROADCAST };
        ethernet::write(&mut frame, to, self.sender.0, ETHERTYPE_ARP);
        let data = &mut frame[ethernet::LEN..];
        data[..6].copy_from_slice(&FORMAT);
        put16(data, 6, 1 + u16::from(self.is_reply));
        for (at, (mac, ip)) in [(8, self.sender), (18, self.target)] {
            data[at..at + 6].copy_from_slice(&mac.0);
            data[at + 6..at + 10].copy_from_slice(&ip.octets());
        }
        frame
    }

    /// The answer that `mac` has the requested address.
    #[must_use]
    pub fn answer(&self, mac: MacAddr) -> Arp {
        Arp { is_reply: true, sender: (mac, self.target.1), target: self.sender }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_are_the_bytes_of_rfc_826() {
        let (requester, target) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let request = Arp { is_reply: false, sender: (requester, from), target: (MacAddr::default(), to) };
        let frame = request.emit();
        assert_eq!(frame[..14], [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6]);
        assert_eq!(frame[14..22], [0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!(frame[22..], [2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        assert_eq!(Arp::parse(&frame), Some(request));
        let answer = request.answer(target);
        assert_eq!(Arp::parse(&answer.emit()), Some(answer));
        assert_eq!((answer.sender, answer.target), ((target, to), (requester, from)));
        assert_eq!(Arp::parse(&frame[..41]), None);
        for at in 12..20 {
            let mut other = frame;
            other[at] ^= 0x40;
            assert_eq!(Arp::parse(&other), None, "byte {at}");
        }
    }
}
