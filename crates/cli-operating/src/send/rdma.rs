// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager of all front ends, which open: `--cm rdma`.
//! Promise: a front end connects from its own address; at the end each connection is closed by DREQ.
//! Source: `penstock_transport::rdma_cm`.

use super::front_end::FrontEnd;
use super::link::Link;
use super::plan::Plan;
use crate::neighbour::next_hop;
use penstock_transport::{
    Entropy, RdmaCmArrival, RdmaCmBridge, RdmaCmBridgeConfig, RdmaCmConfig, RdmaCmCounters, RdmaCmInbox,
    RdmaCmInboxCounters, RdmaCmPath,
};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, RdmaCmMad, RocePacket, GSI_QPN, PULL_READS};
use std::collections::BTreeMap;
use std::net::UdpSocket;

/// Connections of a front end: the next one, and one that ends.
const OF_A_FRONT_END: usize = 2;
/// The port to which a datagram makes the kernel find a MAC address (RFC 863, discard).
const DISCARD: u16 = 9;
/// Wait before another datagram.
const ARP: Time = Time::from_ms(200);
/// A server that has no retries left is no server: RNR NAKs are answered without end (IBTA 9.7.5.2.8).
const RNR_RETRY: u8 = 7;

/// The connection managers of all front ends.
pub struct RdmaPorts {
    bridges: Vec<RdmaCmBridge>,
    /// Messages to each front end; its server is its only peer.
    inboxes: Vec<RdmaCmInbox>,
    iface: String,
    ips: Vec<Ipv4Addr>,
    macs: BTreeMap<Ipv4Addr, MacAddr>,
    /// When the kernel is made to find a MAC address again.
    arp_due: Time,
}

impl RdmaPorts {
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn open(plan: &Plan, port: u16, mac: MacAddr) -> Result<RdmaPorts, String> {
        let ips: Vec<Ipv4Addr> = plan.ips().collect();
        let bridges = ips.iter().map(|ip| {
            let cm = RdmaCmConfig { mtu: plan.mtu, ..RdmaCmConfig::new(*ip, guid(mac, *ip), OF_A_FRONT_END) };
            let limits = plan.limits;
            let path = RdmaCmPath { mtu: plan.mtu, retry_count: limits.retry_cnt, ack_timeout: limits.ack_timeout };
            let (slots, slot_bytes) = (plan.slots, plan.slot_bytes);
            let responder_resources = if plan.pull { PULL_READS } else { 0 };
            let config = RdmaCmBridgeConfig {
                cm,
                port,
                path,
                slots,
                slot_bytes,
                rnr_retry: RNR_RETRY,
                responder_resources,
                initiator_depth: 0,
            };
            Ok(RdmaCmBridge::new(config, entropy()?))
        });
        Ok(RdmaPorts {
            bridges: bridges.collect::<Result<_, String>>()?,
            inboxes: ips.iter().map(|_| RdmaCmInbox::new(plan.server.into_iter().collect())).collect(),
            iface: plan.iface.clone(),
            ips,
            macs: BTreeMap::new(),
            arp_due: Time::ZERO,
        })
    }

    /// Takes a packet to front end `k`, if it is for the connection manager.
    pub fn take(&mut self, k: usize, packet: &RocePacket) -> bool {
        let inbox = self.inboxes.get_mut(k).filter(|_| packet.bth.dest_qpn == GSI_QPN);
        inbox.map(|inbox| inbox.push(packet)).is_some()
    }

    /// Whether packets wait for [`Self::serve`].
    pub fn has_arrivals(&self) -> bool {
        !self.inboxes.iter().all(RdmaCmInbox::is_empty)
    }

    /// Handles the messages that were received, and sends what is due.
    pub fn serve(&mut self, now: Time, front_ends: &mut [FrontEnd], link: &mut Link) {
        self.handle_mads(now, link);
        for (bridge, front_end) in self.bridges.iter_mut().zip(front_ends) {
            bridge.handle_timeout(now);
            pass_messages(bridge, now, front_end);
            while let Some((to, request)) = front_end.next_request(now) {
                bridge.handle_message(now, to.ip, &request);
            }
            pass_messages(bridge, now, front_end);
            while let Some((ip, trouble)) = bridge.poll_trouble() {
                front_end.server_trouble(format!("{ip}: {trouble}"));
            }
        }
        self.transmit(now, link);
    }

    /// Closes all connections. False once nothing waits for an answer.
    pub fn hang_up(&mut self, now: Time, link: &mut Link) -> bool {
        self.handle_mads(now, link);
        for bridge in &mut self.bridges {
            bridge.handle_timeout(now);
            bridge.retain(now, |_| false);
            while bridge.poll_message().is_some() {}
        }
        self.transmit(now, link);
        self.bridges.iter().any(RdmaCmBridge::is_closing)
    }

    /// Messages of addresses that are no server's.
    pub fn strangers(&self) -> u64 {
        self.inboxes.iter().map(|inbox| inbox.counters().strangers).sum()
    }

    /// Counts of all front ends together.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let (mut cm, mut arrived) = (RdmaCmCounters::default(), RdmaCmInboxCounters::default());
        self.bridges.iter().for_each(|bridge| cm += *bridge.counters());
        self.inboxes.iter().for_each(|inbox| arrived += *inbox.counters());
        cm.with_inbox(&arrived).into_iter().collect()
    }

    /// Answers go to where the messages came from.
    fn handle_mads(&mut self, now: Time, link: &mut Link) {
        for k in 0..self.bridges.len() {
            while let Some(RdmaCmArrival { from, mac, mad }) = self.inboxes[k].pop() {
                self.bridges[k].handle_mad(now, from, &mad);
                while let Some((to, mad)) = self.bridges[k].poll_transmit() {
                    let mac = if to == from { Some(mac) } else { self.mac(now, self.ips[k], to) };
                    self.queue(k, (mac, to), &mad, link);
                }
            }
        }
    }

    fn transmit(&mut self, now: Time, link: &mut Link) {
        for k in 0..self.bridges.len() {
            while let Some((to, mad)) = self.bridges[k].poll_transmit() {
                let mac = self.mac(now, self.ips[k], to);
                self.queue(k, (mac, to), &mad, link);
            }
        }
    }

    /// A message that cannot be sent is repeated.
    fn queue(&self, k: usize, (mac, to): (Option<MacAddr>, Ipv4Addr), mad: &RdmaCmMad, link: &mut Link) {
        if let Some(mac) = mac {
            link.queue(&mad.to_packet((link.mac(), self.ips[k]), (mac, to)));
        }
    }

    /// MAC of the next hop. The kernel finds it when it has something to send there.
    fn mac(&mut self, now: Time, from: Ipv4Addr, to: Ipv4Addr) -> Option<MacAddr> {
        if let Some(mac) = next_hop(to, &self.iface) {
            self.macs.insert(to, mac);
        } else if now >= self.arp_due {
            self.arp_due = now + ARP;
            let _ = UdpSocket::bind((from, 0)).and_then(|socket| socket.send_to(&[], (to, DISCARD)));
        }
        self.macs.get(&to).copied()
    }
}

/// Exchanges messages between a front end and its bridge.
fn pass_messages(bridge: &mut RdmaCmBridge, now: Time, front_end: &mut FrontEnd) {
    while let Some((from, message)) = bridge.poll_message() {
        if message.answer.is_some() {
            front_end.handle_answer(now, from, &message);
        } else if let Some(answer) = front_end.handle_request(now, from, &message) {
            bridge.handle_message(now, from, &answer);
        }
    }
}

/// Number of a front end's channel adapter: front ends of one interface differ in their addresses.
fn guid(mac: MacAddr, ip: Ipv4Addr) -> u64 {
    let [_, _, c, d, e, f] = mac.0;
    u64::from(u32::from_be_bytes([c, d, e, f])) << 32 | u64::from(ip.to_bits())
}

/// Random words of the kernel.
fn entropy() -> Result<Entropy, String> {
    let word = || getrandom::u32().map_err(|error| format!("the kernel gives no random numbers: {error}"));
    word()?;
    Ok(Box::new(move || word().expect("the kernel's random source does not dry up")))
}
