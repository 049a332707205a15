// SPDX-License-Identifier: Apache-2.0
//! Watches for other devices that say by ARP that they have this server's address.
//! Promise: each such device is named once in the log, and all of its claims are counted; nothing is sent.
//! Source: RFC 826 (a receiver of either kind of frame takes over the sender's pair of addresses); RFC 5227 section 2.4
//! (conflict detection).

use std::collections::BTreeSet;
use std::io;

use penstock_wire::{Arp, Ipv4Addr, MacAddr};

use crate::sys::{Frames, Interface, PacketSocket};

/// ARP frames that may wait for the next look.
const RING: Frames = Frames { longest: 64, count: 1024 };
/// Devices that are named.
const NAMED: usize = 16;

pub(super) struct Claims {
    socket: PacketSocket,
    local: (MacAddr, Ipv4Addr),
    devices: BTreeSet<[u8; 6]>,
    count: u64,
}

impl Claims {
    /// # Errors
    /// The kernel's.
    pub(super) fn open((name, interface): (&str, &Interface), ip: Ipv4Addr) -> io::Result<Claims> {
        let socket = PacketSocket::open_arp((name, interface), RING)?;
        Ok(Claims { socket, local: (MacAddr(interface.mac), ip), devices: BTreeSet::new(), count: 0 })
    }

    /// Looks at what has come, and reports what is new to `name`'s user.
    pub(super) fn look(&mut self, name: &str) {
        let (local_mac, ip) = self.local;
        let (devices, count) = (&mut self.devices, &mut self.count);
        self.socket.receive(RING.count, |frame, _| {
            let Some(mac) = claims(frame, local_mac, ip) else { return true };
            *count += 1;
            if devices.len() < NAMED && devices.insert(mac.0) {
                tracing::warn!(
                    "{name}: {mac} says by ARP that it has {ip}, this server's address: boards that believe it send \
                     there; give each host an address of its own, or find who forges it"
                );
            }
            true
        });
    }

    /// Frames so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// The other device that a frame gives `ip` to.
fn claims(frame: &[u8], local: MacAddr, ip: Ipv4Addr) -> Option<MacAddr> {
    let arp = Arp::parse(frame)?;
    (arp.sender.1 == ip && arp.sender.0 != local).then_some(arp.sender.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_device_with_the_own_address_is_a_claim() {
        let (local, other) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 9]));
        let [ip, board] = [1, 2].map(|n| Ipv4Addr::new(10, 0, 0, n));
        let frame = |is_reply, mac, ip| Arp { is_reply, sender: (mac, ip), target: (local, board) }.emit();
        for is_reply in [false, true] {
            assert_eq!(claims(&frame(is_reply, other, ip), local, ip), Some(other));
            assert_eq!(claims(&frame(is_reply, local, ip), local, ip), None);
            assert_eq!(claims(&frame(is_reply, other, board), local, ip), None);
        }
    }
}
