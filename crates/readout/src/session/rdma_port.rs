// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager of a session: boards open their connections by REQ to queue pair 1.
//! Promise: only boards of the session get a connection; each address holds a bounded number.
//! Source: `penstock_transport::rdma_cm`.

use std::collections::BTreeMap;
use std::io;

use penstock_transport::{
    RdmaCmArrival, RdmaCmBridge, RdmaCmBridgeConfig, RdmaCmConfig, RdmaCmInbox, RdmaCmInboxCounters, RdmaCmPath,
};
use penstock_units::Time;
use penstock_wire::{CmMessage, Ipv4Addr, MacAddr, Qpn};

use super::config::SessionConfig;
use super::error::SessionError;
use super::sockets::CmPort;
use crate::backend::{random_words, Backend, BackendError, Counters};

/// Connections that one board may hold: the next one, and one that ends.
const OF_A_BOARD: usize = 2;
/// Boards retry after an RNR NAK without end (IBTA 9.7.5.2.8).
const RNR_RETRY: u8 = 7;

pub(super) struct RdmaPort {
    bridge: RdmaCmBridge,
    /// Where frames of each board come from.
    macs: BTreeMap<Ipv4Addr, MacAddr>,
    now: Time,
    /// Counts of the packets to queue pair 1.
    arrived: RdmaCmInboxCounters,
}

impl RdmaPort {
    /// Listens at a port of TCP's space.
    pub(super) fn open(backend: &mut dyn Backend, port: u16, config: &SessionConfig) -> Result<RdmaPort, SessionError> {
        let name = backend.name();
        let address = backend.address();
        let mac = address.mac.map_or([0; 6], |mac| mac.0);
        let (boards, count): (Vec<Ipv4Addr>, usize) =
            (config.boards.iter().map(|board| board.ip).collect(), config.boards.len());
        if !backend.open_management(RdmaCmInbox::new(boards.clone())) {
            let why = format!("--cm rdma: back end {name} has no access to queue pair 1; use --backend packet");
            return Err(BackendError::Unavailable(why).into());
        }
        let of_one = boards.iter().map(|ip| boards.iter().filter(|other| *other == ip).count()).max().unwrap_or(1);
        let cm = RdmaCmConfig {
            port: Some(port),
            per_address: OF_A_BOARD * of_one,
            allow: Some(boards),
            mtu: config.mtu,
            half_open: config.half_open,
            ..RdmaCmConfig::new(address.ip, guid(mac), OF_A_BOARD * count)
        };
        let slots = config.pool.map_or(config.slots, |_| 0);
        let config = RdmaCmBridgeConfig {
            cm,
            port,
            path: RdmaCmPath { mtu: config.mtu, retry_count: 7, ack_timeout: 0 },
            slots,
            slot_bytes: config.slot_bytes,
            rnr_retry: RNR_RETRY,
            responder_resources: 0,
            initiator_depth: backend.outstanding_reads(),
        };
        let bridge = RdmaCmBridge::new(config, random_words()?);
        Ok(RdmaPort { bridge, macs: BTreeMap::new(), now: Time::ZERO, arrived: RdmaCmInboxCounters::default() })
    }

    fn transmit(&mut self, backend: &mut dyn Backend, from: Option<(Ipv4Addr, MacAddr)>) {
        while let Some((to, mad)) = self.bridge.poll_transmit() {
            let mac = from.filter(|(ip, _)| *ip == to).map(|(_, mac)| mac).or_else(|| self.macs.get(&to).copied());
            if let Some(mac) = mac {
                backend.send_mad((mac, to), &mad);
            }
        }
        while let Some((ip, trouble)) = self.bridge.poll_trouble() {
            tracing::warn!("{ip}: {trouble}");
        }
    }
}

/// EUI-64 of a MAC address (IEEE 802, clause 8.2; RFC 4291, appendix A).
fn guid(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    u64::from_be_bytes([a ^ 2, b, c, 0xFF, 0xFE, d, e, f])
}

impl CmPort for RdmaPort {
    fn exchange(&mut self, now: Time, backend: &mut dyn Backend, has_qp: &dyn Fn(Qpn) -> bool) {
        self.now = now;
        while let Some(inbox) = backend.management() {
            self.arrived = *inbox.counters();
            let Some(RdmaCmArrival { from, mac, mad }) = inbox.pop() else { break };
            if inbox.has_peer(from) {
                self.macs.insert(from, mac);
            }
            self.bridge.handle_mad(now, from, &mad);
            self.transmit(backend, Some((from, mac)));
        }
        self.bridge.handle_timeout(now);
        self.bridge.retain(now, has_qp);
        self.transmit(backend, None);
    }

    fn strangers(&self) -> u64 {
        self.arrived.strangers
    }

    fn ack_timeout(&self) -> Option<Time> {
        self.bridge.ack_timeout()
    }

    fn counters(&self) -> Counters {
        let all = self.bridge.counters().with_inbox(&self.arrived);
        all.into_iter().map(|(name, n)| (name.into(), n)).collect()
    }

    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        self.bridge.poll_message()
    }

    fn send(&mut self, to: Ipv4Addr, _port: u16, message: &CmMessage) -> io::Result<()> {
        self.bridge.handle_message(self.now, to, message);
        Ok(())
    }
}
