// SPDX-License-Identifier: Apache-2.0
//! The plan of `penstock board`: reads and checks the command line, the emulated switch's scenario and the data to
//! send.
//! Promise: invalid settings are refused before anything is opened, with the value and what is allowed.

use super::arguments::{
    Arguments, MessageArguments, Network, Protocol, Series, Share, Slice, SocketPair, StaticPeer, TransportArguments,
    TriggerChoice, VerbChoice, WireArguments,
};
use super::target::Target;
use crate::python::Home;
use penstock_board::{regs, LineClock, SetupError, Top, WhileBusy};
use penstock_cc::{DcqcnParams, DcqcnSettings, Law};
use penstock_cli_common::arguments::cm::CmName;
use penstock_cli_common::live::LiveOptions;
use penstock_cli_common::outcome::Failure;
use penstock_lab::SwitchScenario;
use penstock_netsim::Time;
use penstock_readout::{Dataset, EventSource, RingConfig};
use penstock_wire::fragment::message_2_len;
use penstock_wire::gateware::{Rings, BOARD_EVENT_BYTES, FIRST_QPN, REPLAY_BYTES};
use penstock_wire::{Ipv4Addr, MacAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that the replay memory is read in.
const REPLAY_BLOCK: usize = 64;

/// Everything that a board is made of, and what it is to do.
pub struct Plan {
    /// The build of the gateware.
    pub top: Top,
    pub wire: WirePlan,
    pub network: Network,
    pub mac: MacAddr,
    pub gateway: Option<Ipv4Addr>,
    pub peer_ip: Option<Ipv4Addr>,
    /// A queue pair that is set up by registers.
    pub connect: Option<ConnectPlan>,
    /// A stream of TCP takes the place of the queue pair.
    pub stream: Option<StreamPlan>,
    /// The board opens its queue pair or stream by itself.
    pub open: bool,
    pub transport: TransportPlan,
    /// Port of the standard connection manager.
    pub cm_port: Option<u16>,
    /// The file that gets what servers SEND.
    pub received: Option<PathBuf>,
    pub messages: MessagePlan,
    pub switch: Option<SwitchPlan>,
    pub capture: Option<PathBuf>,
    pub end: EndPlan,
    pub patience: u32,
    /// Standard input has commands.
    pub control: bool,
    pub live: LiveOptions,
    pub json: bool,
}

/// The wire of the board.
pub enum WirePlan {
    Tap(String),
    Packet(String),
    Unix(SocketPair),
    Replay(PathBuf),
}

/// A queue pair of a server that was set up by other means.
#[derive(Clone, Copy)]
pub struct ConnectPlan {
    pub peer: StaticPeer,
    pub ip: Ipv4Addr,
    /// None: ARP is used.
    pub mac: Option<MacAddr>,
}

/// Where a stream of TCP goes.
#[derive(Clone, Copy)]
pub struct StreamPlan {
    pub ip: Ipv4Addr,
    pub port: u16,
    /// None: ARP is used.
    pub mac: Option<MacAddr>,
}

/// The queue pair.
pub struct TransportPlan {
    pub qp: u8,
    pub qpn_base: u32,
    pub mtu: u16,
    pub ack_timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    /// The law that the command line names.
    pub law: Option<Law>,
    pub congestion: DcqcnParams,
}

/// The messages and where they go.
pub struct MessagePlan {
    pub start: Start,
    pub share: Share,
    /// The destination table selects the server of each event.
    pub by_event: bool,
    /// Handling of events while the board is busy.
    pub while_busy: WhileBusy,
    pub verb: VerbChoice,
    pub slots: u32,
    /// Bytes from slot to slot of the server's ring.
    pub slot_size: u32,
    pub interval: Time,
}

/// The data sent once the queue pair is ready.
#[derive(Clone)]
pub enum Start {
    Nothing,
    /// The gateware's own source; `kind` as in `source.control.generator`.
    Generator {
        kind: u32,
        series: Series,
        replay: Vec<u8>,
    },
    Events {
        count: u64,
        source: Arc<EventSource>,
    },
    /// Streams without triggers, of the samples of so many events.
    Slices {
        count: u64,
        source: Arc<EventSource>,
        slice: Slice,
    },
}

impl Start {
    /// Whether it is a certain number of messages.
    pub fn has_end(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Generator { series, .. } => series.count.is_some(),
            Self::Events { .. } | Self::Slices { .. } => true,
        }
    }

    /// Bytes of the longest message.
    fn longest(&self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Generator { series, .. } => series.len,
            Self::Events { source, .. } => source.max_gateware_message_len() as u32,
            Self::Slices { source, slice: Slice::Size(bytes), .. } => {
                let inputs = source.inputs(0);
                let whole = bytes.next_multiple_of(8) as usize * inputs;
                message_2_len(whole.min(BOARD_EVENT_BYTES), inputs) as u32
            }
            // What is longer than a slot is cut.
            Self::Slices { .. } => 0,
        }
    }
}

/// The emulated switch between board and wire.
pub struct SwitchPlan {
    pub file: PathBuf,
    /// The overrides of the file from the command line.
    pub set: Vec<String>,
    pub scenario: SwitchScenario,
}

/// When the command ends.
pub struct EndPlan {
    /// A moment of the board's time.
    pub time: Option<Time>,
    /// A moment of the machine's time, s.
    pub wall_s: Option<f64>,
    /// Not when all messages have ended.
    pub stay: bool,
    /// How long the next server is waited for when one is gone; with `stay` for ever.
    pub wait: Duration,
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}

impl Plan {
    /// The destination of the messages.
    pub fn target(&self) -> Target {
        match self.stream {
            Some(_) => Target::Stream(self.transport.qp),
            None => Target::QueuePair(self.transport.qp),
        }
    }

    /// # Errors
    /// The option or the key that cannot be done, with its value and what is allowed.
    pub fn read(arguments: &Arguments) -> Result<Plan, Failure> {
        let start = start(&arguments.messages)?;
        check_source(&arguments.messages)?;
        let longest = start.longest();
        let while_busy = while_busy(&arguments.messages, longest)?;
        check_transport(&arguments.transport)?;
        let slot_size = slot_size(&arguments.messages, longest, arguments.connect.is_some())?;
        let switch = arguments.switch.as_ref().map(|file| switch(file, &arguments.set)).transpose()?;
        let stream = stream(arguments)?;
        let top = match stream {
            Some(_) => Top::of_line_tcp(arguments.line),
            None if arguments.transport.windows => Top::of_windows(arguments.line),
            None => Top::of_line(arguments.line, arguments.transport.rings),
        }
        .map_err(|error| refused(format!("--line: {error}")))?;
        let transport = transport(&arguments.transport, qpn_base(arguments)?, switch.as_ref(), top.clock())?;
        let connect = arguments.connect.zip(arguments.peer_ip);
        let wait = Duration::try_from_secs_f64(arguments.messages.wait)
            .map_err(|_| refused(format!("--wait {}: seconds, 0 or more", arguments.messages.wait)))?;
        let messages = &arguments.messages;
        Ok(Plan {
            top,
            wire: wire(&arguments.wire)?,
            network: arguments.ip,
            mac: arguments.mac.unwrap_or_else(|| mac_of(arguments.ip.ip)),
            gateway: arguments.gateway,
            peer_ip: arguments.peer_ip,
            connect: connect.map(|(peer, ip)| ConnectPlan { peer, ip, mac: arguments.peer_mac }),
            stream,
            open: arguments.open || stream.is_some(),
            transport,
            cm_port: cm_port(&arguments.transport)?,
            received: arguments.transport.received.clone(),
            messages: MessagePlan {
                start,
                share: messages.share,
                by_event: messages.by_event,
                while_busy,
                verb: messages.verb,
                slots: messages.slots,
                slot_size,
                interval: messages.interval,
            },
            switch,
            capture: arguments.capture.clone(),
            end: EndPlan { time: arguments.time, wall_s: arguments.wall, stay: messages.stay, wait },
            patience: arguments.patience,
            control: arguments.control,
            live: arguments.live.clone(),
            json: arguments.json,
        })
    }
}

/// What goes with TCP.
fn stream(arguments: &Arguments) -> Result<Option<StreamPlan>, Failure> {
    if arguments.protocol.protocol == Protocol::Roce {
        return Ok(None);
    }
    let Some(ip) = arguments.peer_ip else {
        return Err(refused("--protocol tcp: the board opens the stream; give the server's address by --peer-ip"));
    };
    for (given, option) in [
        (arguments.connect.is_some(), "--connect"),
        (arguments.open, "--open"),
        (arguments.messages.by_event, "--by-event"),
        (arguments.switch.is_some(), "--switch"),
        (arguments.live.is_on(), "a live page"),
        (arguments.transport.law.is_some(), "--law"),
        (arguments.transport.cc_share.is_some(), "--cc-share"),
        (arguments.transport.rings == Rings::Memory, "--rings memory"),
        (arguments.transport.windows, "--windows"),
    ] {
        if given {
            return Err(refused(format!("--protocol tcp: {option} goes with --protocol roce alone")));
        }
    }
    Ok(Some(StreamPlan { ip, port: arguments.protocol.port, mac: arguments.peer_mac }))
}

fn wire(arguments: &WireArguments) -> Result<WirePlan, Failure> {
    let WireArguments { tap, packet, unix, replay } = arguments;
    Ok(match (tap.clone(), packet.clone(), unix.clone(), replay.clone()) {
        (Some(name), ..) => WirePlan::Tap(name),
        (_, Some(name), ..) => WirePlan::Packet(name),
        (_, _, Some(pair), _) => WirePlan::Unix(pair),
        (.., Some(file)) => WirePlan::Replay(file),
        _ => return Err(refused("give one of --tap, --packet, --unix, --replay")),
    })
}

/// 02:00 and the four octets.
/// The address of a device whose MAC address is not given.
pub fn mac_of(ip: Ipv4Addr) -> MacAddr {
    let [a, b, c, d] = ip.octets();
    MacAddr([0x02, 0, a, b, c, d])
}

/// The number of queue pair 0: one that strangers have to guess, unless the other side knows it beforehand.
fn qpn_base(arguments: &Arguments) -> Result<u32, Failure> {
    if let Some(base) = arguments.transport.qpn_base {
        return Ok(base);
    }
    if arguments.connect.is_some() || arguments.wire.replay.is_some() {
        return Ok(FIRST_QPN);
    }
    // The first and the last 256 numbers hold those that are special (IBTA 3.5.3).
    let word = getrandom::u32().map_err(|error| Failure::Fault(format!("no random number: {error}")))?;
    Ok((1 + word % 0xfffe) << 8)
}

/// Queue pairs that send get their servers by the gateware's own connection manager.
fn cm_port(transport: &TransportArguments) -> Result<Option<u16>, Failure> {
    match (transport.cm, transport.windows) {
        (CmName::Feroce, _) => Ok(None),
        (CmName::Rdma, true) => Ok(Some(transport.cm_port)),
        (CmName::Rdma, false) => Err(refused("--cm rdma: servers connect to windows; give --windows")),
    }
}

fn check_transport(transport: &TransportArguments) -> Result<(), Failure> {
    if let Some(base) = transport.qpn_base.filter(|base| base & 0xff != 0 || *base > 0xff_ff00) {
        return Err(refused(format!("--qpn-base {base:#x}: a number of 24 bits whose low 8 bits are 0, as in 0x200")));
    }
    if !matches!(transport.mtu, 256 | 512 | 1024 | 2048 | 4096) {
        return Err(refused(format!("--mtu: {}", SetupError::Mtu { mtu: transport.mtu })));
    }
    Ok(())
}

fn transport(
    arguments: &TransportArguments,
    qpn_base: u32,
    switch: Option<&SwitchPlan>,
    clock: LineClock,
) -> Result<TransportPlan, Failure> {
    let rate_line = clock.rate();
    let congestion = match (arguments.cc_share, switch) {
        (Some(share), _) if arguments.law.as_deref().is_some_and(|law| law != "dcqcn") => {
            return Err(refused(format!("--cc-share {share}: goes with --law dcqcn")));
        }
        (Some(share), _) if share > rate_line => {
            return Err(refused(format!("--cc-share {share}: allowed is up to the line, {rate_line}")));
        }
        (Some(_), Some(_)) => return Err(refused("--cc-share: with --switch, allowed is cc.share in its scenario")),
        (Some(share), None) => DcqcnSettings { rate_line, ..DcqcnSettings::for_share(share) }
            .at_clock(clock.hz)
            .map_err(|error| refused(format!("--cc-share {share}: {error}")))?,
        (None, Some(switch)) => {
            switch.scenario.cc.at_clock(clock.hz).map_err(|error| refused(format!("cc: {error}")))?
        }
        (None, None) => DcqcnSettings { rate_line, ..DcqcnSettings::default() }
            .at_clock(clock.hz)
            .map_err(|error| refused(format!("cc: {error}")))?,
    };
    let law = arguments.law.as_deref().map(|name| match name {
        "off" => Law::Off,
        "qcn" => Law::Qcn,
        _ => Law::Dcqcn,
    });
    Ok(TransportPlan {
        qp: arguments.qp,
        qpn_base,
        mtu: arguments.mtu,
        ack_timeout: arguments.ack_timeout,
        retry_cnt: arguments.retry_cnt,
        rnr_retry: arguments.rnr_retry,
        law,
        congestion: DcqcnParams { law: law.unwrap_or(congestion.law), ..congestion },
    })
}

/// The slot size of `penstock recv`, which opens the queue pair, by default; for another server what a message needs.
fn slot_size(messages: &MessageArguments, longest: u32, is_static: bool) -> Result<u32, Failure> {
    let least = if is_static { 1 } else { RingConfig::default().slot_bytes };
    let slot_size = messages.slot_size.unwrap_or_else(|| longest.max(least).next_multiple_of(4096));
    match slot_size < longest {
        true => Err(refused(format!("--slot-size {slot_size}: a message has {longest} bytes; make the slots larger"))),
        false => Ok(slot_size),
    }
}

fn switch(file: &Path, set: &[String]) -> Result<SwitchPlan, Failure> {
    let scenario = SwitchScenario::load(file, set).map_err(refused)?;
    Ok(SwitchPlan { file: file.to_owned(), set: set.to_vec(), scenario })
}

/// The recorded events of one board of those that share them.
fn events(messages: &MessageArguments) -> Result<Arc<EventSource>, Failure> {
    let installed = || Home::find().shared("data/lst1_run2008/modules.npz");
    let file = messages.data.clone().or_else(installed).ok_or_else(|| {
        refused("--events, --stream: this executable was installed without recorded events; give yours with --data")
    })?;
    let dataset = Dataset::load(&file).map_err(refused)?;
    let source =
        EventSource::new(&dataset, messages.share.boards).map_err(|error| refused(format!("--share: {error}")))?;
    source.check_gateware().map_err(|error| refused(format!("--share: {error}")))?;
    let bytes = source.max_payload_len();
    if bytes > BOARD_EVENT_BYTES {
        let share = messages.share.boards;
        return Err(refused(format!(
            "--share {}/{share}: a board's part of an event has {bytes} bytes; the gateware's events have at most \
             {BOARD_EVENT_BYTES}, so share them among more boards",
            messages.share.board
        )));
    }
    Ok(Arc::new(source))
}

/// Options that go with some of the sources only. The gateware sends events with the slot as immediate data.
fn check_source(messages: &MessageArguments) -> Result<(), Failure> {
    let makes_events = messages.events.or(messages.stream).is_some();
    if messages.by_event && !makes_events {
        return Err(refused("--by-event: goes with --events or --stream alone"));
    }
    if messages.slice.is_some() && messages.stream.is_none() {
        return Err(refused("--slice: goes with --stream alone"));
    }
    match (makes_events, messages.verb.with_imm()) {
        (true, false) => {
            Err(refused("--verb: events and slices go with an immediate; allowed are then: write-imm, send-imm"))
        }
        _ => Ok(()),
    }
}

/// Triggers that are lost need times of their own: without them as many come as the gateware refuses.
fn while_busy(messages: &MessageArguments, longest: u32) -> Result<WhileBusy, Failure> {
    match messages.triggers {
        TriggerChoice::Wait => Ok(WhileBusy::Wait),
        TriggerChoice::Lost if messages.events.is_none() => {
            Err(refused("--triggers lost: goes with triggers, those of --events"))
        }
        TriggerChoice::Lost if messages.interval == Time::ZERO => Err(refused(
            "--triggers lost: goes with the time from one trigger to the next, --interval, as in --interval 20us",
        )),
        TriggerChoice::Lost => Ok(WhileBusy::Lose { longest: longest as usize }),
    }
}

/// Streams whose slices fit into the gateware's events.
fn slices(messages: &MessageArguments, count: u64) -> Result<Start, Failure> {
    let (source, slice) = (events(messages)?, messages.slice.unwrap_or_default());
    let inputs = source.inputs(messages.share.board);
    match slice {
        Slice::Size(bytes) if bytes as usize > BOARD_EVENT_BYTES / inputs => Err(refused(format!(
            "--slice size={bytes}: the gateware's events have at most {BOARD_EVENT_BYTES} bytes; allowed are {} for each \
             of {inputs} inputs",
            BOARD_EVENT_BYTES / inputs
        ))),
        _ => Ok(Start::Slices { count, source, slice }),
    }
}

/// The data to send once the queue pair is ready.
fn start(messages: &MessageArguments) -> Result<Start, Failure> {
    use regs::source as s;
    let generator = |kind: u32, series: Series| Start::Generator { kind, series, replay: Vec::new() };
    debug_assert_eq!(s::CONTROL_GENERATOR_BITS.low, 0);
    if let Some(count) = messages.stream {
        return slices(messages, count);
    }
    Ok(match (messages.prbs, messages.counter, &messages.pattern, messages.events) {
        (Some(series), ..) => generator(0, series),
        (_, Some(series), ..) => generator(1, series),
        (_, _, Some(pattern), _) => {
            let mut replay = std::fs::read(&pattern.file)
                .map_err(|error| refused(format!("{}: {error}", pattern.file.display())))?;
            if replay.is_empty() {
                return Err(refused(format!("{}: the file is empty; it has nothing to send", pattern.file.display())));
            }
            replay.truncate(REPLAY_BYTES);
            replay.resize(replay.len().next_multiple_of(REPLAY_BLOCK), 0);
            Start::Generator { kind: 2, series: pattern.series, replay }
        }
        (.., Some(count)) => Start::Events { count, source: events(messages)? },
        _ => Start::Nothing,
    })
}
