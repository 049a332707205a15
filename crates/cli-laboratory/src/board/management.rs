// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager of a board with windows (`--cm rdma`), in software: it is in
//! the place of a processor beside the gateware, which gets the packets to queue pair 1 and has the registers.
//! Promise: each connection has a queue pair with a window for itself, in reset before and after; its window and key are
//! in the private data of REP; hosts that are not on the board's access list are rejected.
//! Source: `penstock_transport::rdma_cm`; registers: docs/integration.md, "Windows that servers read".

use super::plan::Plan;
use crate::gateware::ECT0;
use penstock_board::live::LiveBoard;
use penstock_board::{qp_register, regs, QpConfig, RegisterError, SetupError};
use penstock_cli_common::outcome::Failure;
use penstock_cli_common::output::screen::notify;
use penstock_netsim::Time;
use penstock_transport::{
    Mtu, RdmaCm, RdmaCmArrival, RdmaCmConfig, RdmaCmEnd, RdmaCmEvent, RdmaCmOffer, RdmaCmPath, RDMA_CM_PRIVATE_LEN,
};
use penstock_wire::gateware::FIRST_UDP_SPORT;
use penstock_wire::{Ipv4Addr, MacAddr, Psn, Qpn, RejReason};
use std::collections::BTreeMap;
use std::time::Instant;

const RESET: u32 = 0;
/// DSCP 26, as FEROCE's connection manager has it by default.
const TOS: u8 = 26 << 2 | ECT0;
/// Peers retry after an RNR NAK without end: how long the user's logic takes no message is its affair.
const RNR_RETRY: u8 = 7;

/// A connection, and what it has.
struct Link {
    connection: u32,
    qp: u8,
    ip: Ipv4Addr,
    mac: MacAddr,
}

/// A window as its registers describe it.
struct Window {
    base: u64,
    len: u64,
    rkey: u32,
    reads: u8,
}

/// The connections of a board.
pub struct Management {
    cm: RdmaCm,
    begun: Instant,
    local: (MacAddr, Ipv4Addr),
    links: Vec<Link>,
    is_quiet: bool,
}

impl Management {
    /// Listens at a port of TCP's space.
    ///
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn open(plan: &Plan, port: u16, board: &mut LiveBoard) -> Result<Self, Failure> {
        random()?;
        let mtu = Mtu::from_bytes(plan.transport.mtu.into()).expect("a plan has one of the path MTUs");
        let [_, _, c, d, e, f] = plan.mac.0;
        let ca_guid = u64::from(u32::from_be_bytes([c, d, e, f])) << 32 | u64::from(plan.network.ip.to_bits());
        // One that is over keeps its identifiers for a while.
        let connections = 2 * usize::from(board.queue_pairs());
        let config = RdmaCmConfig { port: Some(port), mtu, ..RdmaCmConfig::new(plan.network.ip, ca_guid, connections) };
        let entropy = Box::new(|| getrandom::u32().expect("the kernel's random source does not dry up"));
        let cm = RdmaCm::new(config, entropy);
        board.set_management(plan.network.ip);
        let local = (plan.mac, plan.network.ip);
        Ok(Self { cm, begun: Instant::now(), local, links: Vec::new(), is_quiet: plan.json })
    }

    /// Handles the messages that have come, and sends what is due.
    ///
    /// # Errors
    /// The board refuses.
    pub fn turn(&mut self, board: &mut LiveBoard) -> Result<(), Failure> {
        let now = self.now();
        while let Some(RdmaCmArrival { from, mac, mad }) = board.poll_management() {
            self.cm.handle_mad(now, from, &mad);
            self.settle(board, Some((from, mac)))?;
        }
        self.cm.handle_timeout(now);
        self.settle(board, None)
    }

    /// Sends DREQ over each connection. Its peer takes silence for the end, if that is lost.
    pub fn hang_up(&mut self, board: &mut LiveBoard) {
        let now = self.now();
        self.links.iter().for_each(|link| self.cm.disconnect(now, link.connection));
        self.transmit(board, None);
    }

    /// Counts of messages and connections.
    pub fn counters(&self, board: &LiveBoard) -> BTreeMap<String, u64> {
        self.cm.counters().with_inbox(&board.management_counters()).into_iter().collect()
    }

    fn now(&self) -> Time {
        Time::from_duration(self.begun.elapsed())
    }

    /// Does what has happened; `from`: the sender of the message that has come.
    fn settle(&mut self, board: &mut LiveBoard, from: Option<(Ipv4Addr, MacAddr)>) -> Result<(), Failure> {
        while let Some(event) = self.cm.poll_event() {
            match event {
                RdmaCmEvent::Requested { connection, from: ip, peer, path } => {
                    let mac = from.filter(|(of, _)| *of == ip).map(|(_, mac)| mac);
                    self.requested(board, (connection, ip, mac), &peer, path)?;
                }
                RdmaCmEvent::Established { .. } => {}
                RdmaCmEvent::Failed { connection, .. } | RdmaCmEvent::Disconnected { connection } => {
                    self.ended(board, connection)?;
                }
            }
        }
        self.transmit(board, from);
        Ok(())
    }

    fn requested(
        &mut self,
        board: &mut LiveBoard,
        (connection, ip, mac): (u32, Ipv4Addr, Option<MacAddr>),
        peer: &RdmaCmEnd,
        path: RdmaCmPath,
    ) -> Result<(), Failure> {
        let is_served = is_served(board, ip)?;
        let Some(mac) = mac.filter(|_| is_served) else {
            self.cm.reject(connection, RejReason::Consumer);
            return Ok(());
        };
        let Some((qp, window)) = free_window(board)? else {
            self.note(format_args!("{ip}: no queue pair in reset has a window (docs/windows.md)"));
            self.cm.reject(connection, RejReason::NoQp);
            return Ok(());
        };
        let (psn, base) = (Psn::new(random()? & 0xff_ffff), board.read(regs::global::QPN_BASE)?);
        board.write(qp_register(qp, regs::qp::READ_PSN), psn.value())?;
        open(board, qp, (ip, mac), peer, path)?;
        let mut private = [0; RDMA_CM_PRIVATE_LEN];
        let slot_bytes = u32::try_from(window.len).unwrap_or(u32::MAX);
        RdmaCmOffer { base: window.base, rkey: window.rkey, slots: 1, slot_bytes }.write(&mut private);
        let qpn = Qpn::new(base + u32::from(qp));
        let reads = window.reads;
        let end = RdmaCmEnd { qpn, psn, responder_resources: reads, initiator_depth: 0, rnr_retry: RNR_RETRY, private };
        self.links.push(Link { connection, qp, ip, mac });
        self.cm.accept(self.now(), connection, end);
        self.note(format_args!("{ip} has qp[{qp}] and its window"));
        Ok(())
    }

    /// A connection is over.
    fn ended(&mut self, board: &mut LiveBoard, connection: u32) -> Result<(), RegisterError> {
        let Some(at) = self.links.iter().position(|link| link.connection == connection) else { return Ok(()) };
        let Link { qp, ip, .. } = self.links.swap_remove(at);
        self.note(format_args!("{ip} has left qp[{qp}]"));
        board.write(qp_register(qp, regs::qp::STATE), RESET)
    }

    /// A message whose destination has no MAC address yet is repeated.
    fn transmit(&mut self, board: &mut LiveBoard, from: Option<(Ipv4Addr, MacAddr)>) {
        while let Some((to, mad)) = self.cm.poll_transmit() {
            let of_link = || self.links.iter().find(|link| link.ip == to).map(|link| link.mac);
            let mac = from.filter(|(ip, _)| *ip == to).map(|(_, mac)| mac).or_else(of_link);
            if let Some(mac) = mac {
                board.send_beside(&mad.to_packet(self.local, (mac, to)));
            }
        }
    }

    fn note(&self, what: std::fmt::Arguments) {
        if !self.is_quiet {
            notify(what);
        }
    }
}

/// Opens a queue pair for a peer.
fn open(
    board: &mut LiveBoard,
    qp: u8,
    (dst_ip, dst_mac): (Ipv4Addr, MacAddr),
    peer: &RdmaCmEnd,
    path: RdmaCmPath,
) -> Result<(), SetupError> {
    board.board().open_qp(
        qp,
        &QpConfig {
            dst_mac,
            dst_ip,
            udp_sport: FIRST_UDP_SPORT + u16::from(qp),
            tos: TOS,
            dest_qpn: peer.qpn,
            rkey: 0,
            mtu: path.mtu.bytes() as u16,
            ack_timeout: path.ack_timeout,
            retry_cnt: path.retry_count,
            rnr_retry: peer.rnr_retry,
            init_psn: peer.psn,
        },
    )
}

/// Whether the board's access list has a host.
fn is_served(board: &mut LiveBoard, ip: Ipv4Addr) -> Result<bool, RegisterError> {
    use regs::{access, access_entry as entry};
    if access::CONTROL_ENABLE_BITS.of(board.read(access::CONTROL)?) == 0 {
        return Ok(true);
    }
    for row in 0..entry::COUNT {
        let [of, netmask] = [entry::IP, entry::NETMASK].map(|at| board.read(entry::BASE + row * entry::STRIDE + at));
        if (of? ^ ip.to_bits()) & netmask? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first queue pair in reset that has a window.
fn free_window(board: &mut LiveBoard) -> Result<Option<(u8, Window)>, RegisterError> {
    use regs::qp as q;
    for qp in 0..board.queue_pairs() {
        let mut read = |offset| board.read(qp_register(qp, offset));
        let len = u64::from(read(q::READ_LENGTH_HI)?) << 32 | u64::from(read(q::READ_LENGTH_LO)?);
        if len > 0 && q::STATE_BITS.of(read(q::STATE)?) == RESET {
            let base = u64::from(read(q::READ_BASE_HI)?) << 32 | u64::from(read(q::READ_BASE_LO)?);
            let reads = q::READ_DEPTH_RESOURCES_BITS.of(read(q::READ_DEPTH)?) as u8;
            return Ok(Some((qp, Window { base, len, rkey: read(q::READ_RKEY)?, reads })));
        }
    }
    Ok(None)
}

fn random() -> Result<u32, Failure> {
    getrandom::u32().map_err(|error| Failure::Fault(format!("the kernel gives no random numbers: {error}")))
}
