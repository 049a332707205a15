// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock board`, by topic.

use penstock_cli_common::arguments::cm::{CmName, RDMA_CM_PORT};
use penstock_cli_common::arguments::number::{number, share};
use penstock_cli_common::arguments::quantity::{bytes, seconds};
use penstock_cli_common::live::LiveOptions;
use penstock_netsim::{Rate, Time};
use penstock_wire::gateware::Rings;
use penstock_wire::{Ipv4Addr, MacAddr};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub wire: WireArguments,
    /// The board's address, with the length of its network's prefix if it has a gateway: 10.0.0.2/24
    #[arg(long)]
    pub ip: Network,
    /// The board's MAC address; made of the IP address if left out: 02:00 and the four octets
    #[arg(long, value_parser = mac)]
    pub mac: Option<MacAddr>,
    /// Next hop of addresses outside of the network
    #[arg(long)]
    pub gateway: Option<Ipv4Addr>,
    /// The server: for --connect, and for the board to open a connection by itself with --open
    #[arg(long)]
    pub peer_ip: Option<Ipv4Addr>,
    /// The server's MAC address, instead of ARP
    #[arg(long, value_parser = mac)]
    pub peer_mac: Option<MacAddr>,
    /// Set the queue pair up by registers for this queue pair of the server: qpn=0x11,psn=0,rkey=0x1,va=0x1000. Without
    /// it servers open queue pairs over the network (connection manager)
    #[arg(long, value_name = "KEY=VALUE,...", requires = "peer_ip")]
    pub connect: Option<StaticPeer>,
    /// Open the queue pair from the board's side by the connection manager at --peer-ip
    #[arg(long, requires = "peer_ip", conflicts_with = "connect")]
    pub open: bool,
    /// Rate of the board's line: 10Gbps; 1Gbps, 2.5Gbps, 25Gbps and 100Gbps where the program was built with all boards
    #[arg(long, value_name = "RATE", default_value = "10Gbps", value_parser = share)]
    pub line: Rate,
    #[command(flatten)]
    pub protocol: ProtocolArguments,
    #[command(flatten)]
    pub transport: TransportArguments,
    #[command(flatten)]
    pub messages: MessageArguments,
    /// Put an emulated switch of this scenario between board and wire
    #[arg(long, value_name = "SCENARIO.toml")]
    pub switch: Option<PathBuf>,
    /// Set a key of the scenario, as in switch.window=64us; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "switch")]
    pub set: Vec<String>,
    /// Capture the board's port, in the board's time
    #[arg(long, value_name = "FILE.pcapng")]
    pub capture: Option<PathBuf>,
    /// Read commands from standard input, one a line: `reset input 2` pulses the reset of detector input 2 and of its
    /// digitiser, `reset front-end` that of all else
    #[arg(long, requires = "events")]
    pub control: bool,
    /// End after so much of the board's time, as in 5ms
    #[arg(long)]
    pub time: Option<Time>,
    /// End after this number of seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wall: Option<f64>,
    /// Real cycles to one of the board's while it waits for its peer: a timer of 4 ms gives the peer 4 s with 1000
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub patience: u32,
    #[command(flatten)]
    pub live: LiveOptions,
    /// Print the summary as JSON instead of text
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// The wire of the board.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct WireArguments {
    /// A TAP device: the host's own kernel is at the far end
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// A packet socket on an interface
    #[arg(long, value_name = "INTERFACE")]
    pub packet: Option<String>,
    /// Unix datagram sockets, ours and that of a virtual machine (QEMU: -netdev dgram)
    #[arg(long, value_name = "LOCAL,REMOTE")]
    pub unix: Option<SocketPair>,
    /// A capture; its frames are received at their time stamps
    #[arg(long, value_name = "FILE.pcapng")]
    pub replay: Option<PathBuf>,
}

/// How messages go to the server.
#[derive(clap::Args)]
pub struct ProtocolArguments {
    /// roce: to a queue pair; tcp: over a stream to a socket of --peer-ip, as `penstock recv --backend tcp` has it
    #[arg(long, value_enum, default_value_t = Protocol::Roce)]
    pub protocol: Protocol,
    /// With --protocol tcp: the server's port
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    Roce,
    Tcp,
}

/// The queue pair.
#[derive(clap::Args)]
pub struct TransportArguments {
    /// Index of the queue pair, or of the stream of TCP, that is set up and gets the messages, 0 to 3
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..4))]
    pub qp: u8,
    /// Number of queue pair 0 on the wire; its low 8 bits are 0 [default: random; 0x200 with --connect and --replay]
    #[arg(long, value_parser = number::<u32>)]
    pub qpn_base: Option<u32>,
    /// Where the board keeps what is not acknowledged: chip: 256 KiB of each queue pair; memory: 4 MiB, in AXI4
    /// memory, where the program was built with all boards
    #[arg(long, value_name = "PLACE", default_value = "chip", value_parser = rings)]
    pub rings: Rings,
    /// Give the board a memory of 65 MiB at 0 that servers READ and WRITE through windows, at 10 Gb/s. Its first 1 MiB are
    /// the rings
    #[arg(long, conflicts_with = "rings")]
    pub windows: bool,
    /// With --windows: by which connection manager servers connect to windows, other than by registers. feroce: the
    /// gateware's own; rdma: the standard one besides, in software (docs/windows.md)
    #[arg(long, value_enum, default_value = "feroce")]
    pub cm: CmName,
    /// Port at which servers request connections, for --cm rdma
    #[arg(long, value_name = "PORT", default_value_t = RDMA_CM_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub cm_port: u16,
    /// With --windows: write the bytes of messages that servers SEND to this file, one message after the other
    #[arg(long, value_name = "FILE", requires = "windows")]
    pub received: Option<PathBuf>,
    /// Path MTU: 256, 512, 1024, 2048 or 4096 bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = bytes::<u16>)]
    pub mtu: u16,
    /// Acknowledgement timeout 4.096 us * 2^CODE, in the board's time
    #[arg(long, value_name = "CODE", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..32))]
    pub ack_timeout: u8,
    /// Retransmissions without an answer before the queue pair fails
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
    pub retry_cnt: u8,
    /// RNR retries before the queue pair fails; 7 without end
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
    pub rnr_retry: u8,
    /// Law of congestion control: off, dcqcn or qcn; dcqcn, or the scenario's, if left out
    #[arg(long, value_parser = ["off", "dcqcn", "qcn"])]
    pub law: Option<String>,
    /// The board's share of the server's line if all boards send at once, as in 39Mbps: DCQCN by the profile
    /// "penstock"; without it, by AdvCam's Table II, or as the scenario has it
    #[arg(long, value_name = "RATE", value_parser = share)]
    pub cc_share: Option<Rate>,
}

/// The data to send.
#[derive(clap::Args)]
pub struct MessageArguments {
    /// PRBS-31 of the gateware's own source: bytes of a message, and how many messages (without: until the end)
    #[arg(long, value_name = "LENxN", group = "source")]
    pub prbs: Option<Series>,
    /// 64-bit counter words of the gateware's own source
    #[arg(long, value_name = "LENxN", group = "source")]
    pub counter: Option<Series>,
    /// The first 16 KiB of a file, repeated, from the gateware's replay memory: FILE,LENxN
    #[arg(long, value_name = "FILE,LENxN", group = "source")]
    pub pattern: Option<Pattern>,
    /// Number of recorded camera events, with fragment headers, unchanged (see --data)
    #[arg(long, value_name = "N", group = "source")]
    pub events: Option<u64>,
    /// The samples of so many recorded camera events as streams without triggers, which the gateware cuts into slices (see
    /// --slice); --interval lies between the samples of one event and those of the next
    #[arg(long, value_name = "N", group = "source")]
    pub stream: Option<u64>,
    /// With --stream: where a slice ends: size=4096 (bytes of each input), period=20us, or mark=20us (pulses at that
    /// distance) [default: size=4096]
    #[arg(long, value_name = "WHERE")]
    pub slice: Option<Slice>,
    /// The recorded events [default: those of the Large-Sized Telescope that come with the command]
    #[arg(long, value_name = "FILE.npz")]
    pub data: Option<PathBuf>,
    /// With --events or --stream: which of how many boards this one is, as in 0/3
    #[arg(long, default_value = "0/1", value_name = "K/N")]
    pub share: Share,
    /// With --events: each goes to the server that the board's destination table names for its number. The table comes
    /// over IPbus (`penstock farm`); the events begin with it
    #[arg(long, conflicts_with_all = ["connect", "open"])]
    pub by_event: bool,
    /// With --events: what becomes of a trigger that comes while the board is busy. wait: it is held, and no event is lost;
    /// lost: it comes all the same, and the board refuses and counts it
    #[arg(long, value_enum, default_value_t = TriggerChoice::Wait)]
    pub triggers: TriggerChoice,
    /// How messages go: write, write-imm (the immediate is the slot), send or send-imm
    #[arg(long, value_enum, default_value_t = VerbChoice::WriteImm)]
    pub verb: VerbChoice,
    /// Slots of the ring in the server's memory
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub slots: u32,
    /// Bytes from slot to slot [default: 131072 as `penstock recv` has it, with --connect the length of a message;
    /// either is rounded up to 4096 and holds a message]
    #[arg(long, value_name = "BYTES", value_parser = bytes::<u32>)]
    pub slot_size: Option<u32>,
    /// Time from one message to the next, in the board's time; 0: as fast as the line
    #[arg(long, default_value = "0ns")]
    pub interval: Time,
    /// Go on when all messages have ended, until Ctrl-C; otherwise until the server has closed the queue pair or is
    /// silent
    #[arg(long)]
    pub stay: bool,
    /// How long to wait for the next server when one has died, or has closed the queue pair before all messages had
    /// ended; with --stay for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    pub wait: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TriggerChoice {
    Wait,
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum VerbChoice {
    Write,
    WriteImm,
    Send,
    SendImm,
}

impl VerbChoice {
    pub fn is_send(self) -> bool {
        matches!(self, Self::Send | Self::SendImm)
    }

    pub fn with_imm(self) -> bool {
        matches!(self, Self::WriteImm | Self::SendImm)
    }
}

/// An address and its network's prefix; 0: everything is on the link.
#[derive(Debug, Clone, Copy)]
pub struct Network {
    pub ip: Ipv4Addr,
    pub netmask: u32,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, prefix) = text.split_once('/').unwrap_or((text, "0"));
        let ip: Ipv4Addr = ip.parse().map_err(|_| format!("{ip:?} is no IPv4 address"))?;
        let netmask = match prefix.parse::<u32>() {
            Ok(bits @ 0..=32) => u32::MAX.checked_shl(32 - bits).unwrap_or(0),
            _ => return Err(format!("/{prefix}: the length of a prefix is 0 to 32")),
        };
        // Of 31 and 32 bits all addresses are hosts' (RFC 3021).
        let host = ip.to_bits() & !netmask;
        let has_broadcast = netmask != 0 && !netmask > 1;
        let wrong = match () {
            () if ip.is_unspecified() => "stands for no host",
            () if ip.is_multicast() => "is a multicast group",
            () if ip.is_broadcast() || (has_broadcast && host == !netmask) => "is the broadcast address",
            () if has_broadcast && host == 0 => "is the address of the network itself",
            () => return Ok(Self { ip, netmask }),
        };
        Err(format!("{ip} {wrong}; give the address of one host, as in 10.0.0.2/24"))
    }
}

/// A queue pair of the server.
#[derive(Debug, Clone, Copy)]
pub struct StaticPeer {
    pub qpn: u32,
    pub rkey: u32,
    pub va: u64,
    /// The first PSN that it expects.
    pub psn: u32,
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
    pub local: PathBuf,
    pub remote: PathBuf,
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
    pub len: u32,
    pub count: Option<u32>,
}

impl FromStr for Series {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (len, count) = match text.split_once('x') {
            Some((len, count)) => (len, Some(number::<u32>(count)?)),
            None => (text, None),
        };
        let len = bytes::<u32>(len)?;
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
    pub file: PathBuf,
    pub series: Series,
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (file, series) = text.rsplit_once(',').ok_or("allowed is FILE,LENxN")?;
        Ok(Self { file: file.into(), series: series.parse()? })
    }
}

/// Where a slice of a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// It ends after so many bytes of each input.
    Size(u32),
    /// It ends after so much of the board's time.
    Period(Time),
    /// Pulses end it; these lie so far apart.
    Mark(Time),
}

impl Default for Slice {
    fn default() -> Self {
        Self::Size(4096)
    }
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// A slice of fewer bytes or cycles has more header than data.
        const LEAST: Time = Time::from_ns(64);
        let wrong =
            || format!("{text:?}: allowed are size=BYTES, period=TIME and mark=TIME, as in size=4096 or mark=20us");
        let (kind, value) = text.split_once('=').ok_or_else(wrong)?;
        let time = || match value.parse::<Time>() {
            Ok(time) if time >= LEAST => Ok(time),
            Ok(_) => Err(format!("{value}: allowed is {LEAST} or more")),
            Err(error) => Err(error.to_string()),
        };
        match kind {
            "size" => match number::<u32>(value)? {
                size @ 8.. => Ok(Self::Size(size)),
                _ => Err(format!("{value} bytes: allowed are 8 or more")),
            },
            "period" => Ok(Self::Period(time()?)),
            "mark" => Ok(Self::Mark(time()?)),
            _ => Err(wrong()),
        }
    }
}

/// One board of several.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    pub board: u16,
    pub boards: u16,
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

fn rings(text: &str) -> Result<Rings, String> {
    match text {
        "chip" => Ok(Rings::Chip),
        "memory" => Ok(Rings::Memory),
        _ => Err("allowed are chip and memory".to_owned()),
    }
}

pub fn mac(text: &str) -> Result<MacAddr, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_one_host_is_taken_with_or_without_a_prefix() {
        for (text, why) in [
            ("0.0.0.0", "stands for no host"),
            ("224.0.0.1", "is a multicast group"),
            ("255.255.255.255", "is the broadcast address"),
            ("10.0.0.255/24", "is the broadcast address"),
            ("10.0.0.0/24", "is the address of the network itself"),
        ] {
            let message = text.parse::<Network>().unwrap_err();
            assert!(message.contains(why) && message.contains("as in 10.0.0.2/24"), "{text}: {message}");
        }
        for text in ["10.0.0.0", "10.0.0.255", "10.0.0.254/24", "10.0.0.0/31", "10.0.0.255/32"] {
            assert_eq!(text.parse::<Network>().unwrap().ip.to_string(), text.split('/').next().unwrap());
        }
    }

    #[test]
    fn the_length_of_a_series_may_have_a_unit() {
        let read = |text: &str| text.parse::<Series>().map(|series| (series.len, series.count));
        assert_eq!(read("4KiBx3"), Ok((4096, Some(3))));
        assert_eq!(read("4096x3"), Ok((4096, Some(3))));
        assert_eq!(read("64kB"), Ok((64_000, None)));
        assert!(read("4kilo").unwrap_err().contains("KiB"));
        assert!(read("0B").unwrap_err().contains("a message has 1 to"));
    }
}
