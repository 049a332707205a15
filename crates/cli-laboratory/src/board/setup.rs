// SPDX-License-Identifier: Apache-2.0
//! Makes a board from a plan: sets it up by its registers and connects it to the wire.

use super::plan::{ConnectPlan, Plan, Start, StreamPlan, WirePlan};
use super::session::Session;
use crate::gateware::ECT0;
use penstock_board::live::{
    resolve, LiveBoard, NoNeighbour, PaceConfig, PacketSocket, Replay, Tap, UnixWire, Wire, WireError,
};
use penstock_board::{regs, Board, EndpointConfig, QpConfig, SetupError, StreamConfig};
use penstock_cli_common::outcome::Failure;
use penstock_netsim::{CaptureSink, EmulatedSwitch, Time};
use penstock_wire::gateware::FIRST_UDP_SPORT;
use penstock_wire::{Psn, Qpn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// DSCP 26, as the connection manager's default has it.
const DSCP: u8 = 26;
/// Time from one sample of the rate limiter to the next, for a page without a scenario.
const SAMPLE_INTERVAL: Time = Time::from_us(5);
/// Retransmission timeouts of a stream: the first, the shortest, the longest, us.
const RTO_US: [u32; 3] = [10_000, 5_000, 50_000];
/// Queue pairs of the board's build.
const QUEUE_PAIRS: u8 = 4;
/// How long a peer may take to answer ARP.
const ARP_PATIENCE: Duration = Duration::from_secs(10);

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}

/// The start message of `penstock board`.
pub fn greeting(plan: &Plan) -> String {
    let place = match &plan.wire {
        WirePlan::Tap(name) => format!("TAP device {name}"),
        WirePlan::Packet(name) => format!("interface {name}"),
        WirePlan::Unix(pair) => format!("socket {}", pair.local.display()),
        WirePlan::Replay(_) => "a capture".to_owned(),
    };
    if let Some(stream) = plan.stream {
        let (ip, mac) = (plan.network.ip, plan.mac);
        return format!("board {ip} ({mac}) on {place}, TCP stream to {}:{}", stream.ip, stream.port);
    }
    let base = plan.transport.qpn_base;
    format!("board {} ({}) on {place}, queue pairs {base:#x} to {:#x}", plan.network.ip, plan.mac, base + 3)
}

/// Everything that is needed before the first turn, and why the queue pair is still closed: the search for the peer's
/// address was interrupted.
pub fn session(plan: &Plan, interrupted: &AtomicBool) -> Result<(Session, Option<NoNeighbour>), Failure> {
    let mut wire = wire(&plan.wire).map_err(refused)?;
    let capture = plan.capture.as_ref().map(|path| CaptureSink::create(path, 0)).transpose().map_err(refused)?;

    let mut board = Board::of(plan.top);
    configure(&mut board, plan)?;
    if let Some(stream) = plan.stream {
        set_stream(&mut board, plan, stream)?;
    }
    let closed = match plan.connect {
        Some(connect) => open_static(&mut board, plan, connect, wire.as_mut(), interrupted)?,
        None => None,
    };
    let pace = PaceConfig { patience: plan.patience, ..PaceConfig::default() };
    let mut live = LiveBoard::new(board, wire, pace).map_err(|error| Failure::Fault(error.to_string()))?;
    if let Some(capture) = capture {
        live.set_capture(capture);
    }
    let clock = plan.top.clock();
    let sampled = plan.switch.as_ref().map(|switch| clock.cycles(switch.scenario.sample_interval));
    if let Some(interval) = sampled.or(plan.live.is_on().then(|| clock.cycles(SAMPLE_INTERVAL))) {
        let qp = plan.transport.qp;
        live.sample_rates(qp, qp, u32::try_from(interval).unwrap_or(u32::MAX))?;
    }
    if let Some(switch) = &plan.switch {
        live.set_switch(EmulatedSwitch::new(switch.scenario.switch.clone()));
    }
    Ok((Session::new(live, plan), closed))
}

fn wire(plan: &WirePlan) -> Result<Box<dyn Wire>, WireError> {
    Ok(match plan {
        WirePlan::Tap(name) => Box::new(Tap::open(name)?),
        WirePlan::Packet(name) => Box::new(PacketSocket::open(name)?),
        WirePlan::Unix(pair) => Box::new(UnixWire::open(&pair.local, &pair.remote)?),
        WirePlan::Replay(file) => Box::new(Replay::open(file, None)?),
    })
}

/// Addresses, services, the connection manager's defaults, rings.
pub fn configure(board: &mut Board, plan: &Plan) -> Result<(), Failure> {
    use regs::{connection as c, ring as r, services as s};
    let (transport, messages) = (&plan.transport, &plan.messages);
    board.configure(&EndpointConfig {
        mac: plan.mac,
        ip: plan.network.ip,
        ttl: 64,
        qpn_base: Qpn::new(transport.qpn_base),
        obey_pause: true,
        obey_pfc: true,
        traffic_class: DSCP >> 3,
        congestion: transport.congestion,
    })?;
    let attributes = (transport.mtu.ilog2() - 7)
        | c::TRANSPORT_ACK_TIMEOUT_BITS.at(transport.ack_timeout)
        | c::TRANSPORT_RETRY_CNT_BITS.at(transport.retry_cnt)
        | c::TRANSPORT_RNR_RETRY_BITS.at(transport.rnr_retry);
    // Timers are the board's own time, which a machine makes slowly: the shortest that the registers have.
    let resolution = s::RESOLUTION_ARP_RETRY_BITS.at(1u32) | s::RESOLUTION_ARP_TRIES_BITS.at(15u32);
    // The board's own messages go to one queue pair: the next server must get that one. With several servers each has
    // its own, and a board without messages sends only by transmit requests, from every queue pair that is opened.
    let is_shared = messages.by_event || matches!(messages.start, Start::Nothing);
    let offered = if is_shared { 0 } else { u32::from(transport.qp) + 1 };
    let patience = c::PATIENCE_TIMEOUT_MS_BITS.at(5u32) | c::PATIENCE_RETRIES_BITS.at(7u32);
    for (address, value) in [
        (s::NETMASK, plan.network.netmask),
        (s::GATEWAY, plan.gateway.map_or(0, u32::from)),
        (s::RESOLUTION, resolution),
        (s::CONTROL, s::CONTROL_RESET),
        (c::TRANSPORT, attributes),
        (c::PATIENCE, patience),
        (c::SERVER_IP, plan.peer_ip.map_or(0, u32::from)),
        (c::CONTROL, c::CONTROL_RESET | c::CONTROL_OFFERED_BITS.at(offered)),
    ] {
        board.write(address, value)?;
    }
    for qp in (0..QUEUE_PAIRS).filter(|qp| is_shared || *qp == transport.qp) {
        let ring = r::BASE + u32::from(qp) * r::STRIDE;
        board.write(ring + r::SLOTS, messages.slots)?;
        board.write(ring + r::SLOT_SIZE, messages.slot_size)?;
    }
    Ok(())
}

/// Where the stream goes. Its timers are the board's own time, which a machine makes slowly; a kernel that delays its
/// acknowledgements by 40 ms is no loss.
fn set_stream(board: &mut Board, plan: &Plan, stream: StreamPlan) -> Result<(), Failure> {
    let StreamPlan { ip, port, mac } = stream;
    let secret = getrandom::u32().map_err(|error| Failure::Fault(format!("no random number: {error}")))?;
    board.set_stream(plan.transport.qp, &StreamConfig { mac, ip, port, rto_us: RTO_US, secret })?;
    // The time of an idle board stands still: an interval between two challenge ACKs would never be over, and the
    // kernel's keep-alives, which are answered by them, would end the stream.
    board.write(regs::tcp::CHALLENGE_INTERVAL, 0)?;
    Ok(())
}

/// The queue pair by registers, for a server that was set up by other means.
fn open_static(
    board: &mut Board,
    plan: &Plan,
    connect: ConnectPlan,
    wire: &mut dyn Wire,
    interrupted: &AtomicBool,
) -> Result<Option<NoNeighbour>, Failure> {
    use regs::ring as r;
    let transport = &plan.transport;
    let ConnectPlan { peer, ip: dst_ip, mac } = connect;
    let local = (plan.mac, plan.network.ip);
    let outside = (u32::from(dst_ip) ^ u32::from(local.1)) & plan.network.netmask != 0;
    let next_hop = match plan.gateway {
        Some(gateway) if outside => gateway,
        None if outside => {
            return Err(refused(format!("{dst_ip} is outside of the board's network: give a --gateway")))
        }
        _ => dst_ip,
    };
    let dst_mac = match mac {
        Some(mac) => mac,
        None => match resolve(wire, local, next_hop, ARP_PATIENCE, || interrupted.load(Ordering::Relaxed)) {
            Ok(mac) => mac,
            Err(stopped @ NoNeighbour::Stopped(_)) => return Ok(Some(stopped)),
            Err(error) => return Err(Failure::Fault(error.to_string())),
        },
    };
    let opened = board.open_qp(
        transport.qp,
        &QpConfig {
            dst_mac,
            dst_ip,
            udp_sport: FIRST_UDP_SPORT + u16::from(transport.qp),
            tos: DSCP << 2 | ECT0,
            dest_qpn: Qpn::new(peer.qpn),
            rkey: peer.rkey,
            mtu: transport.mtu,
            ack_timeout: transport.ack_timeout,
            retry_cnt: transport.retry_cnt,
            rnr_retry: transport.rnr_retry,
            init_psn: Psn::new(peer.psn),
        },
    );
    opened.map_err(|error| match error {
        SetupError::Mtu { .. } => refused(format!("--mtu: {error}")),
        other => other.into(),
    })?;
    let ring = r::BASE + u32::from(transport.qp) * r::STRIDE;
    board.write(ring + r::BASE_LO, peer.va as u32)?;
    board.write(ring + r::BASE_HI, (peer.va >> 32) as u32)?;
    Ok(None)
}
