// SPDX-License-Identifier: Apache-2.0
//! Finds the MAC address of a peer before the board runs, which is required when queue pairs are set up by registers.
//! The board's own ARP serves only the connection manager.
//! Source: RFC 826.

use super::wire::{Sent, Wire, WireError};
use bytes::{BufMut, Bytes, BytesMut};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr};
use std::time::{Duration, Instant};

const ETHERTYPE_ARP: u16 = 0x0806;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// Hardware Ethernet, protocol IPv4, lengths 6 and 4.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Why a peer's address is not known.
#[derive(Debug, thiserror::Error)]
pub enum NoNeighbour {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(
        "{peer} has not answered ARP for {waited:?}: is it up, on this wire, and in the network of {local}? \
         --peer-mac gives its address without asking"
    )]
    Silent { peer: Ipv4Addr, local: Ipv4Addr, waited: Duration },
    #[error("{0} had not answered ARP")]
    Stopped(Ipv4Addr),
}

/// How long a wait for frames lasts before it is asked whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Sends ARP requests for `peer`, once a second, for as long as `patience` and until `is_stopped`. Other frames that come
/// meanwhile are dropped.
///
/// # Errors
/// No answer, or the wire fails.
pub fn resolve(
    wire: &mut dyn Wire,
    local: (MacAddr, Ipv4Addr),
    peer: Ipv4Addr,
    patience: Duration,
    is_stopped: impl Fn() -> bool,
) -> Result<MacAddr, NoNeighbour> {
    const REPEAT: Duration = Duration::from_secs(1);
    let request = frame(REQUEST, local, (MacAddr::default(), peer));
    let begun = Instant::now();
    while begun.elapsed() < patience {
        let sent = wire.send(Time::ZERO, &request)? == Sent::Done;
        let again = Instant::now() + if sent { REPEAT } else { REPEAT / 10 };
        while Instant::now() < again {
            while let Some(frame) = wire.receive(Time::ZERO)? {
                if let Some(mac) = answer(&frame, local, peer) {
                    return Ok(mac);
                }
            }
            if is_stopped() {
                return Err(NoNeighbour::Stopped(peer));
            }
            wire.wait(again.saturating_duration_since(Instant::now()).min(LOOK), false)?;
        }
    }
    Err(NoNeighbour::Silent { peer, local: local.1, waited: patience })
}

/// An ARP frame; a request goes to everyone.
fn frame(operation: u16, sender: (MacAddr, Ipv4Addr), target: (MacAddr, Ipv4Addr)) -> Bytes {
    let to = if operation == REQUEST { MacAddr::BROADCAST } else { target.0 };
    let mut frame = BytesMut::with_capacity(60);
    frame.put_slice(&to.0);
    frame.put_slice(&sender.0 .0);
    frame.put_u16(ETHERTYPE_ARP);
    frame.put_slice(&ETHERNET_IPV4);
    frame.put_u16(operation);
    for (mac, ip) in [sender, target] {
        frame.put_slice(&mac.0);
        frame.put_slice(&ip.octets());
    }
    frame.resize(60, 0);
    frame.freeze()
}

/// The peer's address, if this is its answer to us.
fn answer(frame: &[u8], local: (MacAddr, Ipv4Addr), peer: Ipv4Addr) -> Option<MacAddr> {
    let arp = frame.get(12..42)?;
    let is_reply =
        arp[..2] == ETHERTYPE_ARP.to_be_bytes() && arp[2..8] == ETHERNET_IPV4 && arp[8..10] == REPLY.to_be_bytes();
    let between = arp[16..20] == peer.octets() && arp[26..30] == local.1.octets();
    (is_reply && between).then(|| MacAddr(arp[10..16].try_into().expect("six bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const LOCAL: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 2));
    const PEER: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 9]), Ipv4Addr::new(10, 0, 0, 1));

    /// Answers the given request, after other frames.
    struct Cable(VecDeque<Bytes>);

    impl Wire for Cable {
        fn send(&mut self, _now: Time, sent: &Bytes) -> Result<Sent, WireError> {
            assert_eq!(sent[..6], [0xff; 6]);
            let stranger = (MacAddr([2; 6]), Ipv4Addr::new(10, 0, 0, 7));
            self.0.extend([frame(REQUEST, PEER, LOCAL), frame(REPLY, stranger, LOCAL), frame(REPLY, PEER, LOCAL)]);
            Ok(Sent::Done)
        }

        fn receive(&mut self, _now: Time) -> Result<Option<Bytes>, WireError> {
            Ok(self.0.pop_front())
        }

        fn wait(&mut self, _timeout: Duration, _room: bool) -> Result<(), WireError> {
            Ok(())
        }
    }

    #[test]
    fn only_the_peer_s_own_reply_gives_its_address() {
        let found = resolve(&mut Cable(VecDeque::new()), LOCAL, PEER.1, Duration::from_secs(5), || false);
        assert_eq!(found.unwrap(), PEER.0);
    }

    #[test]
    fn a_request_is_the_one_that_etherparse_reads() {
        let request = frame(REQUEST, LOCAL, (MacAddr::default(), PEER.1));
        let arp = etherparse::ArpPacketSlice::from_slice(&request[14..]).unwrap();
        assert_eq!(arp.operation(), etherparse::ArpOperation::REQUEST);
        assert_eq!((arp.sender_hw_addr(), arp.sender_protocol_addr()), (&LOCAL.0 .0[..], &LOCAL.1.octets()[..]));
        assert_eq!(arp.target_protocol_addr(), &PEER.1.octets());
    }
}
