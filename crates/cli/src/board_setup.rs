// SPDX-License-Identifier: Apache-2.0
//! From the flags of `penstock board` to a board that is set up by its registers and plugged in.

use crate::board::{Arguments, Series};
use crate::board_session::{Session, Start};
use crate::run::{has_table, Failure};
use crate::simulation::{BOARD_CLOCK_HZ, ECT0};
use penstock_board::live::{resolve, LiveBoard, PaceConfig, PacketSocket, Replay, Tap, UnixWire, Wire, WireError};
use penstock_board::{qp_register, regs, Board, EndpointConfig, QpConfig, RegisterError, SetupError};
use penstock_cc::{DcqcnParams, Law};
use penstock_netsim::{CaptureSink, EmulatedSwitch, SwitchScenario};
use penstock_readout::{Dataset, EventSource};
use penstock_wire::{MacAddr, Psn, Qpn};
use std::sync::Arc;
use std::time::Duration;

/// RFC 6335: source ports of dynamic use begin here; IBTA A17.9.2 asks for one of them.
const UDP_SPORT: u16 = 0xc000;
/// DSCP 26, as the connection manager's default has it.
const DSCP: u8 = 26;
/// From one sample of the rate limiter to the next, for a page without a scenario: 5 us.
const SAMPLE_CYCLES: u64 = 781;
/// How long a peer may take to answer ARP.
const ARP_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the gateware's replay memory.
const REPLAY_BYTES: usize = 16 * 1024;
const REPLAY_BLOCK: usize = 64;

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<RegisterError> for Failure {
    fn from(error: RegisterError) -> Self {
        Self::Fault(error.to_string())
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Mtu { .. } => Self::Refused(format!("--mtu: {error}")),
            other => Self::Fault(other.to_string()),
        }
    }
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}

/// What `penstock board` says when it has begun.
pub fn greeting(arguments: &Arguments) -> String {
    let wire = &arguments.wire;
    let place = match (&wire.tap, &wire.packet, &wire.unix) {
        (Some(name), ..) => format!("TAP device {name}"),
        (_, Some(name), _) => format!("interface {name}"),
        (.., Some(pair)) => format!("socket {}", pair.local.display()),
        _ => "a capture".to_owned(),
    };
    let base = arguments.transport.qpn_base;
    format!("board {} ({}) on {place}, queue pairs {base:#x} to {:#x}", arguments.ip.ip, mac_of(arguments), base + 3)
}

/// Everything that is needed before the first turn.
pub fn session(arguments: &Arguments) -> Result<Session, Failure> {
    let events = events(arguments)?;
    let start = start(arguments, events)?;
    check(arguments, start.longest())?;
    let scenario = arguments.switch.as_ref().map(|path| SwitchScenario::load(path, &arguments.set));
    let scenario = scenario.transpose().map_err(|error| match &arguments.switch {
        Some(file) if has_table(file, "topology") => refused(format!(
            "--switch {}: this is a scenario of the laboratory (penstock run); one of an emulated switch has [[step]], \
             as scenarios/advcam-9.toml has (docs/board.md)",
            file.display()
        )),
        _ => refused(error),
    })?;
    let congestion = match &scenario {
        Some(scenario) => scenario.cc.at_clock(BOARD_CLOCK_HZ).map_err(|error| refused(format!("cc: {error}")))?,
        None => DcqcnParams::default(),
    };
    let mut wire = wire(arguments)?;
    let capture = arguments.capture.as_ref().map(|path| CaptureSink::create(path, 0)).transpose().map_err(refused)?;

    let mut board = Board::new();
    configure(&mut board, arguments, start.longest(), congestion)?;
    if let Some(peer) = arguments.connect {
        open_static(&mut board, arguments, peer, wire.as_mut())?;
    }
    let pace = PaceConfig { patience: arguments.patience, ..PaceConfig::default() };
    let mut live = LiveBoard::new(board, wire, pace).map_err(|error| Failure::Fault(error.to_string()))?;
    if let Some(capture) = capture {
        live.set_capture(capture);
    }
    let sampled = scenario.as_ref().map(|scenario| cycles(scenario.sample_interval));
    if let Some(interval) = sampled.or(arguments.live.is_on().then_some(SAMPLE_CYCLES)) {
        let qp = arguments.transport.qp;
        live.sample_rates(qp, qp, u32::try_from(interval).unwrap_or(u32::MAX))?;
    }
    if let Some(scenario) = scenario {
        live.set_switch(EmulatedSwitch::new(scenario.switch));
    }
    Ok(Session::new(live, start, arguments))
}

fn wire(arguments: &Arguments) -> Result<Box<dyn Wire>, Failure> {
    let wire = &arguments.wire;
    Ok(match (&wire.tap, &wire.packet, &wire.unix, &wire.replay) {
        (Some(name), ..) => Box::new(Tap::open(name)?),
        (_, Some(name), ..) => Box::new(PacketSocket::open(name)?),
        (_, _, Some(pair), _) => Box::new(UnixWire::open(&pair.local, &pair.remote)?),
        (.., Some(file)) => Box::new(Replay::open(file, None)?),
        _ => return Err(Failure::Refused("give one of --tap, --packet, --unix, --replay".into())),
    })
}

fn mac_of(arguments: &Arguments) -> MacAddr {
    let [a, b, c, d] = arguments.ip.ip.octets();
    arguments.mac.unwrap_or(MacAddr([0x02, 0, a, b, c, d]))
}

/// Bytes from slot to slot of the server's ring.
fn slot_size(arguments: &Arguments, longest: u32) -> u32 {
    arguments.messages.slot_size.unwrap_or_else(|| longest.max(1).next_multiple_of(4096))
}

/// What can be told to be wrong before anything is opened.
fn check(arguments: &Arguments, longest: u32) -> Result<(), Failure> {
    let transport = &arguments.transport;
    if transport.qpn_base & 0xff != 0 || transport.qpn_base > 0xff_ff00 {
        let base = transport.qpn_base;
        return Err(refused(format!("--qpn-base {base:#x}: a number of 24 bits whose low 8 bits are 0, as in 0x200")));
    }
    if !matches!(transport.mtu, 256 | 512 | 1024 | 2048 | 4096) {
        return Err(SetupError::Mtu { mtu: transport.mtu }.into());
    }
    let slot_size = slot_size(arguments, longest);
    if slot_size < longest {
        return Err(refused(format!("--slot-size {slot_size}: a message has {longest} bytes; make the slots larger")));
    }
    Ok(())
}

/// Addresses, services, the connection manager's defaults, rings.
fn configure(board: &mut Board, arguments: &Arguments, longest: u32, congestion: DcqcnParams) -> Result<(), Failure> {
    use regs::{connection as c, ring as r, services as s};
    let (transport, messages) = (&arguments.transport, &arguments.messages);
    let law = match transport.law.as_deref() {
        Some("off") => Law::Off,
        Some("qcn") => Law::Qcn,
        Some(_) => Law::Dcqcn,
        None => congestion.law,
    };
    board.configure(&EndpointConfig {
        mac: mac_of(arguments),
        ip: arguments.ip.ip,
        ttl: 64,
        qpn_base: Qpn::new(transport.qpn_base),
        obey_pause: true,
        obey_pfc: true,
        traffic_class: DSCP >> 3,
        congestion: DcqcnParams { law, ..congestion },
    })?;
    let attributes = (transport.mtu.ilog2() - 7)
        | u32::from(transport.ack_timeout) << c::TRANSPORT_ACK_TIMEOUT_SHIFT
        | u32::from(transport.retry_cnt) << c::TRANSPORT_RETRY_CNT_SHIFT
        | u32::from(transport.rnr_retry) << c::TRANSPORT_RNR_RETRY_SHIFT;
    // Timers are the board's own time, which a machine makes slowly: the shortest that the registers have.
    let resolution = 1 << s::RESOLUTION_ARP_RETRY_SHIFT | 15 << s::RESOLUTION_ARP_TRIES_SHIFT;
    let patience = 5 << c::PATIENCE_TIMEOUT_MS_SHIFT | 7 << c::PATIENCE_RETRIES_SHIFT;
    for (address, value) in [
        (s::NETMASK, arguments.ip.netmask),
        (s::GATEWAY, arguments.gateway.map_or(0, u32::from)),
        (s::RESOLUTION, resolution),
        (s::CONTROL, s::CONTROL_RESET),
        (c::TRANSPORT, attributes),
        (c::PATIENCE, patience),
        (c::SERVER_IP, arguments.peer_ip.map_or(0, u32::from)),
    ] {
        board.write(address, value)?;
    }
    let ring = r::BASE + u32::from(transport.qp) * r::STRIDE;
    board.write(ring + r::SLOTS, messages.slots)?;
    board.write(ring + r::SLOT_SIZE, slot_size(arguments, longest))?;
    Ok(())
}

/// The queue pair by registers, for a server that was set up by other means.
fn open_static(
    board: &mut Board,
    arguments: &Arguments,
    peer: crate::board::StaticPeer,
    wire: &mut dyn Wire,
) -> Result<(), Failure> {
    use regs::ring as r;
    let transport = &arguments.transport;
    let dst_ip = arguments.peer_ip.expect("clap requires it with --connect");
    let own = (mac_of(arguments), arguments.ip.ip);
    let outside = (u32::from(dst_ip) ^ u32::from(own.1)) & arguments.ip.netmask != 0;
    let next_hop = match arguments.gateway {
        Some(gateway) if outside => gateway,
        None if outside => {
            return Err(refused(format!("{dst_ip} is outside of the board's network: give a --gateway")))
        }
        _ => dst_ip,
    };
    let dst_mac = match arguments.peer_mac {
        Some(mac) => mac,
        None => resolve(wire, own, next_hop, ARP_PATIENCE).map_err(|error| Failure::Fault(error.to_string()))?,
    };
    board.open_qp(
        transport.qp,
        &QpConfig {
            dst_mac,
            dst_ip,
            udp_sport: UDP_SPORT + u16::from(transport.qp),
            tos: DSCP << 2 | ECT0,
            dest_qpn: Qpn::new(peer.qpn),
            rkey: peer.rkey,
            mtu: transport.mtu,
            ack_timeout: transport.ack_timeout,
            retry_cnt: transport.retry_cnt,
            rnr_retry: transport.rnr_retry,
            init_psn: Psn::new(peer.psn),
        },
    )?;
    let ring = r::BASE + u32::from(transport.qp) * r::STRIDE;
    board.write(ring + r::BASE_LO, peer.va as u32)?;
    board.write(ring + r::BASE_HI, (peer.va >> 32) as u32)?;
    Ok(())
}

/// The recorded events, if they are to be sent.
fn events(arguments: &Arguments) -> Result<Option<Arc<EventSource>>, Failure> {
    let messages = &arguments.messages;
    if messages.events.is_none() {
        return Ok(None);
    }
    let dataset = Dataset::load(&messages.data).map_err(refused)?;
    let source =
        EventSource::new(&dataset, messages.share.boards).map_err(|error| refused(format!("--share: {error}")))?;
    Ok(Some(Arc::new(source)))
}

/// What is to be sent once the queue pair is ready.
fn start(arguments: &Arguments, events: Option<Arc<EventSource>>) -> Result<Start, Failure> {
    use regs::source as s;
    let messages = &arguments.messages;
    let generator = |kind: u32, series: Series| Start::Generator { kind, series, replay: Vec::new() };
    debug_assert_eq!(s::CONTROL_GENERATOR_SHIFT, 0);
    Ok(match (messages.prbs, messages.counter, &messages.pattern, messages.events, events) {
        (Some(series), ..) => generator(0, series),
        (_, Some(series), ..) => generator(1, series),
        (_, _, Some(pattern), ..) => {
            let mut replay = std::fs::read(&pattern.file)
                .map_err(|error| refused(format!("{}: {error}", pattern.file.display())))?;
            if replay.is_empty() {
                return Err(refused(format!("{}: the file is empty; it has nothing to send", pattern.file.display())));
            }
            replay.truncate(REPLAY_BYTES);
            replay.resize(replay.len().next_multiple_of(REPLAY_BLOCK), 0);
            Start::Generator { kind: 2, series: pattern.series, replay }
        }
        (_, _, _, Some(count), Some(source)) => Start::Events { count, source },
        _ => Start::Nothing,
    })
}

/// The board's queue pair as software reads it: whether it is ready to send.
pub fn is_ready(board: &mut LiveBoard, qp: u8) -> Result<bool, RegisterError> {
    const READY_TO_SEND: u32 = 3;
    Ok(board.read(qp_register(qp, regs::qp::STATE))? & regs::qp::STATE_MASK == READY_TO_SEND)
}

/// Clock cycles of a span of the board's time.
pub fn cycles(time: penstock_netsim::Time) -> u64 {
    (u128::from(time.as_ps()) * u128::from(BOARD_CLOCK_HZ) / 1_000_000_000_000) as u64
}
