// SPDX-License-Identifier: Apache-2.0
//! The headers of a stream's segments, the parser of routers' ICMP messages about them, and datagrams of IPbus.
//! Source: RFC 9293 section 3.1; RFC 792 and RFC 1191 section 4 ("fragmentation needed"); RFC 1071 (checksum); RFC 768.

use bytes::Bytes;
use penstock_transport::simple_tcp::Outgoing;
use penstock_wire::{
    Ecn, EthernetView, Ipv4View, MacAddr, Payload, SackBlocks, SynOptions, TcpFlags, TcpPacket, UdpView,
};
use std::net::{Ipv4Addr, SocketAddrV4};

/// The two ends of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    pub ip: Ipv4Addr,
    pub port: u16,
    pub server: Ipv4Addr,
    pub server_port: u16,
}

impl Peers {
    /// A segment's packet without payload. A SYN offers window scale 0, so that the server may scale its own windows
    /// (RFC 7323 section 2.2).
    pub fn packet(&self, local: MacAddr, hop: MacAddr, segment: &Outgoing, window: u16) -> TcpPacket {
        TcpPacket {
            eth_dst: hop,
            eth_src: local,
            ip_src: self.ip,
            ip_dst: self.server,
            dscp: 0,
            ecn: Ecn::NotEct,
            ttl: 64,
            src_port: self.port,
            dst_port: self.server_port,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: if segment.flags.contains(TcpFlags::RST) { 0 } else { window },
            options: SynOptions::default(),
            sack: SackBlocks::default(),
            payload: Payload::EMPTY,
        }
    }

    /// Whether a segment is this stream's.
    pub fn fits(&self, packet: &TcpPacket) -> bool {
        packet.ip_src == self.server && packet.src_port == self.server_port && packet.dst_port == self.port
    }
}

/// A router's word on a segment of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub source_port: u16,
    pub seq: u32,
    /// Bytes of an IP packet that the next link takes.
    pub mtu: u16,
}

/// Reads an Ethernet frame of ICMP "fragmentation needed" about TCP; none if it is anything else, cut short, or one of
/// its checksums is wrong.
pub fn read_too_long(frame: &[u8]) -> Option<TooLong> {
    let outer = Ipv4View::new_checked(frame.get(14..)?).ok().filter(|ip| ip.protocol() == 1)?;
    let packet = frame.get(14..14 + outer.total_len())?;
    let (header, icmp) = packet.split_at_checked(outer.header_len())?;
    if !is_sum_right(header) || !is_sum_right(icmp) {
        return None;
    }
    let half = |data: &[u8], at: usize| Some(u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?));
    let word = |data: &[u8], at: usize| Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?));
    if icmp.get(..2)? != [3, 4] {
        return None;
    }
    let inner = icmp.get(8..)?;
    let ip = Ipv4View::new_checked(inner).ok().filter(|ip| ip.protocol() == 6)?;
    let tcp = inner.get(ip.header_len()..)?;
    Some(TooLong {
        source: Ipv4Addr::from_bits(word(inner, 12)?),
        destination: Ipv4Addr::from_bits(word(inner, 16)?),
        source_port: half(tcp, 0)?,
        seq: word(tcp, 4)?,
        mtu: half(icmp, 6)?,
    })
}

/// A datagram to a front end, or the answer to it: `from` and `to` are the same of both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    pub from_mac: MacAddr,
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
    pub payload: Bytes,
}

impl Datagram {
    /// Reads an Ethernet frame of a datagram to this port. Its UDP checksum is not looked at: between two programs of one
    /// machine there is none.
    pub fn read(frame: &Bytes, port: u16) -> Option<Datagram> {
        const ETHERNET: usize = 14;
        const UDP: usize = 8;
        let eth = EthernetView::new_checked(frame).ok()?;
        let packet = frame.get(ETHERNET..)?;
        let ip = Ipv4View::new_checked(packet).ok().filter(|ip| ip.protocol() == 17)?;
        let at = ETHERNET + ip.header_len();
        let udp = UdpView::new_checked(frame.get(at..ETHERNET + ip.total_len())?).ok()?;
        let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
        let (from, to) = (address(12)?, address(16)?);
        if udp.dst_port() != port || at + udp.len() > ETHERNET + ip.total_len() || udp.len() < UDP {
            return None;
        }
        Some(Datagram {
            from_mac: eth.src(),
            from: SocketAddrV4::new(from, udp.src_port()),
            to: SocketAddrV4::new(to, port),
            payload: frame.slice(at + UDP..at + udp.len()),
        })
    }

    /// The frame of an answer, from this MAC address.
    pub fn answer(&self, local: MacAddr) -> Vec<u8> {
        let len = self.payload.len() as u16;
        let mut frame = [self.from_mac.0, local.0].concat();
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((28 + len).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(self.to.ip().octets().into_iter().chain(self.from.ip().octets()));
        let sum = !folded_sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        for half in [self.to.port(), self.from.port(), 8 + len, 0] {
            frame.extend(half.to_be_bytes());
        }
        frame.extend_from_slice(&self.payload);
        frame
    }
}

/// Whether the checksum in these bytes is theirs.
fn is_sum_right(bytes: &[u8]) -> bool {
    folded_sum(bytes) == 0xFFFF
}

fn folded_sum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let sum: u32 = bytes.chunks(2).map(word).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    ((folded & 0xFFFF) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_back_to_where_its_request_came_from() {
        let (requester, local) = (MacAddr([2; 6]), MacAddr([6; 6]));
        let (from, to) = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:50001".parse().unwrap());
        let request = Datagram { from_mac: requester, from, to, payload: Bytes::from_static(b"a request") };
        let frame = Bytes::from(request.answer(local));
        assert!(is_sum_right(&frame[14..34]));
        let answer = Datagram::read(&frame, 40000).unwrap();
        assert_eq!(answer, Datagram { from_mac: local, from: to, to: from, payload: request.payload });
        assert_eq!(Datagram::read(&frame, 40001), None);
        assert!((0..frame.len()).all(|len| Datagram::read(&frame.slice(..len), 40000).is_none()));
    }

    #[test]
    fn a_routers_word_is_read_and_one_cut_short_or_damaged_is_not() {
        let mut frame = vec![0; 14];
        frame.extend([0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0x65, 0xC6, 10, 0, 0, 254, 10, 0, 0, 2]);
        frame.extend([3, 4, 0x10, 0x9E, 0, 0, 5, 20]);
        frame.extend([0x45, 0, 35, 40, 0, 0, 64, 0, 64, 6, 0, 0, 10, 0, 0, 2, 10, 1, 0, 1]);
        frame.extend([0xC0, 0, 39, 16, 1, 2, 3, 4]);
        let too_long = TooLong {
            source: Ipv4Addr::new(10, 0, 0, 2),
            destination: Ipv4Addr::new(10, 1, 0, 1),
            source_port: 0xC000,
            seq: 0x0102_0304,
            mtu: 1300,
        };
        assert_eq!(read_too_long(&frame), Some(too_long));
        for len in 0..frame.len() {
            assert_eq!(read_too_long(&frame[..len]), None);
        }
        for bit in 14 * 8..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_too_long(&damaged), None, "bit {bit}");
        }
    }
}
