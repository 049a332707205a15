// SPDX-License-Identifier: Apache-2.0
//! `penstock board`: the verilated gateware as a live endpoint, on a TAP device, a packet socket, the socket of a virtual machine,
//! or a replay of a capture. Manual: docs/board.md.

use crate::board_report::{self, BoardReport};
use crate::board_session::{Progress, Session};
use crate::live::{threshold, BoardPage, LiveOptions, Page};
use crate::run::{on_interrupt, told, Failure};
use crate::screen::say;
use crate::{board_setup, output, Verdict};
use penstock_dashboard::Listener;
use penstock_netsim::Time;
use penstock_wire::{Ipv4Addr, MacAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) wire: WireArguments,
    /// The board's address, with the length of its network's prefix if it has a gateway: 10.0.0.2/24
    #[arg(long)]
    pub(crate) ip: Network,
    /// The board's MAC address; made of the IP address if left out: 02:00 and the four octets
    #[arg(long, value_parser = mac)]
    pub(crate) mac: Option<MacAddr>,
    /// Next hop of addresses outside of the network
    #[arg(long)]
    pub(crate) gateway: Option<Ipv4Addr>,
    /// The server: for --connect, and for the board to open a connection by itself with --open
    #[arg(long)]
    pub(crate) peer_ip: Option<Ipv4Addr>,
    /// The server's MAC address, where ARP shall not be asked
    #[arg(long, value_parser = mac)]
    pub(crate) peer_mac: Option<MacAddr>,
    /// Set the queue pair up by registers for this queue pair of the server: qpn=0x11,psn=0,rkey=0x1,va=0x1000. Without it
    /// servers open queue pairs over the network (connection manager)
    #[arg(long, value_name = "KEY=VALUE,...", requires = "peer_ip")]
    pub(crate) connect: Option<StaticPeer>,
    /// Open the queue pair from the board's side by the connection manager at --peer-ip
    #[arg(long, requires = "peer_ip", conflicts_with = "connect")]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) transport: TransportArguments,
    #[command(flatten)]
    pub(crate) messages: MessageArguments,
    /// Put an emulated switch of this scenario between board and wire
    #[arg(long, value_name = "SCENARIO.toml")]
    pub(crate) switch: Option<PathBuf>,
    /// Set a key of the scenario, as in switch.window=64us; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "switch")]
    pub(crate) set: Vec<String>,
    /// Capture the board's port, in the board's time
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,
    /// End after so much of the board's time, as in 5ms
    #[arg(long)]
    pub(crate) time: Option<Time>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) wall: Option<f64>,
    /// Real cycles to one of the board's while it waits for its peer: a timer of 4 ms gives the peer 4 s with 1000
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) patience: u32,
    #[command(flatten)]
    pub(crate) live: LiveOptions,
    /// Print the summary as JSON instead of text
    #[arg(short = 'J', long)]
    pub(crate) json: bool,
}

/// What the board is plugged into.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct WireArguments {
    /// A TAP device: the host's own kernel is at the far end
    #[arg(long, value_name = "NAME")]
    pub(crate) tap: Option<String>,
    /// A packet socket on an interface
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) packet: Option<String>,
    /// Unix datagram sockets, ours and that of a virtual machine (QEMU: -netdev dgram)
    #[arg(long, value_name = "LOCAL,REMOTE")]
    pub(crate) unix: Option<SocketPair>,
    /// A capture whose frames go in at their time stamps
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) replay: Option<PathBuf>,
}

/// The queue pair.
#[derive(clap::Args)]
pub struct TransportArguments {
    /// Index of the queue pair that is set up and gets the messages, 0 to 3
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..4))]
    pub(crate) qp: u8,
    /// Number of queue pair 0 on the wire; its low 8 bits are 0
    #[arg(long, default_value = "0x200", value_parser = number::<u32>)]
    pub(crate) qpn_base: u32,
    /// Path MTU: 256, 512, 1024, 2048 or 4096 bytes
    #[arg(long, default_value_t = 4096)]
    pub(crate) mtu: u16,
    /// Acknowledgement timeout 4.096 us * 2^CODE, in the board's time
    #[arg(long, value_name = "CODE", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..32))]
    pub(crate) ack_timeout: u8,
    /// Retransmissions without an answer before the queue pair fails
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
    pub(crate) retry_cnt: u8,
    /// RNR retries before the queue pair fails; 7 without end
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
    pub(crate) rnr_retry: u8,
    /// Law of congestion control: off, dcqcn or qcn; dcqcn, or the scenario's, if left out
    #[arg(long, value_parser = ["off", "dcqcn", "qcn"])]
    pub(crate) law: Option<String>,
}

/// What is sent.
#[derive(clap::Args)]
pub struct MessageArguments {
    /// PRBS-31 of the gateware's own source: bytes of a message, and how many messages (without: until the end)
    #[arg(long, value_name = "LENxN", group = "source")]
    pub(crate) prbs: Option<Series>,
    /// 64-bit counter words of the gateware's own source
    #[arg(long, value_name = "LENxN", group = "source")]
    pub(crate) counter: Option<Series>,
    /// The first 16 KiB of a file, round and round, from the gateware's replay memory: FILE,LENxN
    #[arg(long, value_name = "FILE,LENxN", group = "source")]
    pub(crate) pattern: Option<Pattern>,
    /// So many recorded camera events, with fragment headers, each as it is (see --data)
    #[arg(long, value_name = "N", group = "source")]
    pub(crate) events: Option<u64>,
    /// The recorded events
    #[arg(long, default_value = "data/lst1_run2008/modules.npz", value_name = "FILE.npz")]
    pub(crate) data: PathBuf,
    /// With --events: which of how many boards this one is, as in 0/3
    #[arg(long, default_value = "0/1", value_name = "K/N")]
    pub(crate) share: Share,
    /// How messages go: write, write-imm (the immediate is the slot), send or send-imm
    #[arg(long, value_enum, default_value_t = VerbChoice::WriteImm)]
    pub(crate) verb: VerbChoice,
    /// Slots of the ring in the server's memory
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) slots: u32,
    /// Bytes from slot to slot; the length of a message rounded up to 4096 if left out
    #[arg(long, value_parser = number::<u32>)]
    pub(crate) slot_size: Option<u32>,
    /// Time from one message to the next, in the board's time; 0: as fast as the line
    #[arg(long, default_value = "0ns")]
    pub(crate) interval: Time,
    /// Go on when all messages have ended, until Ctrl-C
    #[arg(long)]
    pub(crate) stay: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum VerbChoice {
    Write,
    WriteImm,
    Send,
    SendImm,
}

impl VerbChoice {
    pub(crate) fn is_send(self) -> bool {
        matches!(self, Self::Send | Self::SendImm)
    }

    pub(crate) fn with_imm(self) -> bool {
        matches!(self, Self::WriteImm | Self::SendImm)
    }
}

/// An address and its network's prefix; 0: everything is on the link.
#[derive(Debug, Clone, Copy)]
pub struct Network {
    pub(crate) ip: Ipv4Addr,
    pub(crate) netmask: u32,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, prefix) = text.split_once('/').unwrap_or((text, "0"));
        let ip = ip.parse().map_err(|_| format!("{ip:?} is no IPv4 address"))?;
        match prefix.parse::<u32>() {
            Ok(bits @ 0..=32) => Ok(Self { ip, netmask: u32::MAX.checked_shl(32 - bits).unwrap_or(0) }),
            _ => Err(format!("/{prefix}: the length of a prefix is 0 to 32")),
        }
    }
}

/// A queue pair of the server.
#[derive(Debug, Clone, Copy)]
pub struct StaticPeer {
    pub(crate) qpn: u32,
    pub(crate) rkey: u32,
    pub(crate) va: u64,
    /// The first PSN that it expects.
    pub(crate) psn: u32,
}

impl FromStr for StaticPeer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut peer = Self { qpn: u32::MAX, rkey: 0, va: 0, psn: 0 };
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("{part:?}: allowed is KEY=VALUE"))?;
            match key {
                "qpn" => peer.qpn = number(value)?,
                "psn" => peer.psn = number(value)?,
                "rkey" => peer.rkey = number(value)?,
                "va" => peer.va = number(value)?,
                _ => return Err(format!("{key:?}: keys are qpn, psn, rkey, va")),
            }
        }
        match peer.qpn {
            0..=0xff_ffff => Ok(peer),
            _ => Err("qpn is missing, or has more than 24 bits".into()),
        }
    }
}

/// Two socket paths.
#[derive(Debug, Clone)]
pub struct SocketPair {
    pub(crate) local: PathBuf,
    pub(crate) remote: PathBuf,
}

impl FromStr for SocketPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(',') {
            Some((local, remote)) if !local.is_empty() && !remote.is_empty() => {
                Ok(Self { local: local.into(), remote: remote.into() })
            }
            _ => Err("allowed are two paths with a comma between: OURS,THE-MACHINE'S".into()),
        }
    }
}

/// Messages of one length; without a count there is no end.
#[derive(Debug, Clone, Copy)]
pub struct Series {
    pub(crate) len: u32,
    pub(crate) count: Option<u32>,
}

impl FromStr for Series {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (len, count) = match text.split_once('x') {
            Some((len, count)) => (len, Some(number::<u32>(count)?)),
            None => (text, None),
        };
        let len = number::<u32>(len)?;
        match (len, count) {
            (0, _) | (0x8000_0001.., _) => Err(format!("{len} bytes: a message has 1 to 2147483648")),
            (_, Some(0)) => Err("0 messages: give 1 or more, or no count at all".into()),
            _ => Ok(Self { len, count }),
        }
    }
}

/// A file for the replay memory.
#[derive(Debug, Clone)]
pub struct Pattern {
    pub(crate) file: PathBuf,
    pub(crate) series: Series,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (file, series) = text.rsplit_once(',').ok_or("allowed is FILE,LENxN")?;
        Ok(Self { file: file.into(), series: series.parse()? })
    }
}

/// One board of several.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    pub(crate) board: u16,
    pub(crate) boards: u16,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (board, boards) = text.split_once('/').ok_or("allowed is K/N, as in 0/3")?;
        let (board, boards) = (number::<u16>(board)?, number::<u16>(boards)?);
        match board < boards {
            true => Ok(Self { board, boards }),
            false => Err(format!("board {board} of {boards}: they count from 0")),
        }
    }
}

/// A whole number, decimal or hexadecimal.
pub(crate) fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let wrong = || format!("{text:?}: allowed is a whole number of {} bits, decimal or 0x...", 8 * size_of::<T>());
    parsed.ok().and_then(|value| T::try_from(value).ok()).ok_or_else(wrong)
}

fn mac(text: &str) -> Result<MacAddr, String> {
    let wrong = || format!("{text:?}: allowed are six octets, as in 02:00:0a:00:00:02");
    let octets: Vec<u8> =
        text.split(':').map(|octet| u8::from_str_radix(octet, 16)).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let mac = MacAddr(octets.try_into().map_err(|_| wrong())?);
    match mac.is_multicast() {
        true => Err(format!(
            "{text}: a group address cannot be an interface's own; clear the lowest bit of the first octet"
        )),
        false => Ok(mac),
    }
}

/// Runs the board; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    told(live(arguments))
}

fn live(arguments: &Arguments) -> Result<Verdict, Failure> {
    let listener = arguments.live.listen()?;
    let interrupted = on_interrupt()?;
    let mut session = board_setup::session(arguments)?;
    let mut watched = match listener {
        Some(listener) => Some(watch(arguments, listener, &session)?),
        None => None,
    };
    if !arguments.json {
        say(format_args!("{}; Ctrl-C ends it", board_setup::greeting(arguments)));
    }
    let end = follow(&mut session, arguments, &interrupted, watched.as_mut());
    let frames = session.board.finish_capture().map_err(|error| Failure::Fault(error.to_string()))?;
    let (now, progress) = (Time::from_ps(session.board.now_ps()), session.progress());
    let mut report = BoardReport::new(session, end?, frames)?;
    if let Some((page, _)) = &watched {
        report.steered = page.applied();
        page.end(report.end(), now, progress, &report);
    }
    let json = || serde_json::to_string_pretty(&report).expect("a report has only plain keys");
    let text = if arguments.json { json() } else { board_report::text(&report) };
    let verdict = output::print(text, report.verdict());
    if let Some((page, _)) = &watched {
        page.stay(&interrupted);
    }
    Ok(verdict)
}

/// The page of a board.
fn watch(arguments: &Arguments, listener: Listener, session: &Session) -> Result<(Page, BoardPage), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let text = arguments.switch.as_ref().map(std::fs::read_to_string).transpose().map_err(|error| refused(&error))?;
    let scenario = arguments.switch.as_deref().zip(text);
    let law = arguments.transport.law.as_deref();
    let mut given = arguments.set.clone();
    given.extend(law.filter(|law| *law != "qcn").map(|law| format!("cc.law={law}")));
    let mut board = BoardPage::new(scenario, given, arguments.transport.qp, law != Some("qcn"));
    let limit = threshold(session);
    let manifest = board.manifest(&format!("board {}", arguments.ip.ip), limit.is_some());
    let settings = board.settings(limit).map_err(|error| refused(&error))?;
    let page = Page::open(&arguments.live, Some(listener), manifest, settings, "messages")?;
    board.record_into(page.recording().clone());
    Ok((page, board))
}

/// Turns until the session is over; says how.
fn follow(
    session: &mut Session,
    arguments: &Arguments,
    interrupted: &AtomicBool,
    mut watched: Option<&mut (Page, BoardPage)>,
) -> Result<&'static str, Failure> {
    /// How long Ctrl-C, or a control of the page, may have to wait.
    const LONGEST_SLEEP: Duration = Duration::from_millis(100);
    let begun = Instant::now();
    loop {
        match session.turn(LONGEST_SLEEP)? {
            Progress::Done if !arguments.messages.stay => return Ok("done"),
            _ => {}
        }
        if let Some((page, board)) = watched.as_deref_mut() {
            board.look(session, page)?;
            while let Some(request) = page.poll_request() {
                board.handle(request, session, page);
            }
            let (done, total) = session.progress();
            page.advance(Time::from_ps(session.board.now_ps()), done, total, interrupted);
        }
        if interrupted.load(Ordering::Relaxed) {
            return Ok("interrupted");
        }
        if arguments.wall.is_some_and(|limit| begun.elapsed().as_secs_f64() >= limit) {
            return Ok("wall time limit");
        }
        if arguments.time.is_some_and(|limit| session.board.now_ps() >= limit.as_ps()) {
            return Ok("time limit");
        }
    }
}
