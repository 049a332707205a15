// SPDX-License-Identifier: Apache-2.0
//! What `penstock recv` is told: the command line and the file of boards, checked and joined.
//! Promise: what cannot work is refused before anything is opened, with the value and what to do.
//! Source: the option names are perftest's and iperf3's where they have the same.

use super::boards::{read_boards, Boards};
use super::sink::Rows;
use crate::pattern::PatternName;
use penstock_readout::backend::{GidChoice, PollMode};
use penstock_readout::session::{BoardSpec, Opens, PoolSize, SessionConfig};
use penstock_readout::{BuilderConfig, Pages, RingConfig};
use penstock_transport::{CmOpenerConfig, Mtu};
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::RnrTimer;
use std::collections::HashSet;
use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendName {
    /// An RDMA NIC, or rdma_rxe
    Verbs,
    /// Any Ethernet interface, by a packet socket; needs CAP_NET_RAW
    Packet,
}

/// Where to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumaChoice {
    Node(u32),
    Nic,
}

impl FromStr for NumaChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nic" => Ok(NumaChoice::Nic),
            _ => text.parse().map(NumaChoice::Node).map_err(|_| format!("{text}: a node's number, or nic")),
        }
    }
}

#[derive(clap::Args)]
pub struct Arguments {
    /// Addresses of the boards; board i is source i
    pub boards: Vec<Ipv4Addr>,
    /// File of boards (TOML), see docs/readout.md
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The boards open their queue pairs themselves; otherwise this server asks them to
    #[arg(long)]
    pub listen: bool,
    #[arg(long, value_enum, default_value = "packet")]
    pub backend: BackendName,
    /// Ethernet interface, for --backend packet
    #[arg(long, value_name = "NAME")]
    pub iface: Option<String>,
    /// RDMA device, for --backend verbs [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Its GID, by index or by IPv4 address [default: the first RoCEv2 one]
    #[arg(long, value_name = "GID")]
    pub gid: Option<GidChoice>,
    /// Our address, if the interface has several
    #[arg(long)]
    pub ip: Option<Ipv4Addr>,
    /// Slots of each board's ring [default: 64, or what --rate and --latency ask for]
    #[arg(long)]
    pub slots: Option<u32>,
    /// Slots that all boards share, which must SEND: one pool (a shared receive queue) in place of rings
    #[arg(long, value_name = "N", conflicts_with_all = ["slots", "rate", "latency"])]
    pub srq: Option<u32>,
    /// Fragments that may be copied out of the pool while their events wait for other boards [default: four times --srq]
    #[arg(long, value_name = "N", requires = "srq")]
    pub srq_copies: Option<u32>,
    /// Bytes of a slot: the largest fragment with its header of 40 bytes
    #[arg(long, default_value_t = 128 * 1024)]
    pub slot_bytes: u32,
    /// Gb/s of one board, for the size of its ring
    #[arg(long, requires = "latency", value_name = "GBPS")]
    pub rate: Option<f64>,
    /// Milliseconds for which events may have to wait in the rings
    #[arg(long, requires = "rate", value_name = "MS")]
    pub latency: Option<f64>,
    /// Rings on huge pages
    #[arg(long)]
    pub huge_pages: bool,
    /// Stay on the CPUs and the memory of this NUMA node: its number, or "nic" for that of the interface or device
    #[arg(long, value_name = "NODE|nic")]
    pub numa: Option<NumaChoice>,
    /// busy, event, or hybrid[:microseconds to spin]
    #[arg(long, default_value = "hybrid")]
    pub poll: PollMode,
    /// Path MTU: 256, 512, 1024, 2048 or 4096
    #[arg(short, long, default_value_t = 4096)]
    pub mtu: usize,
    /// Microseconds that a board waits when its ring is full
    #[arg(long, default_value_t = 640, value_name = "US")]
    pub rnr_timer: u32,
    /// Milliseconds for which an event waits for missing fragments
    #[arg(long, default_value_t = 100, value_name = "MS")]
    pub event_timeout: u64,
    /// First event's number [default: the first that any board sends]
    #[arg(long)]
    pub first_event: Option<u64>,
    /// Folder for the events (Parquet); otherwise they are checked and forgotten
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// What a row of the files is
    #[arg(long, value_enum, default_value = "events")]
    pub rows: Rows,
    /// Megabytes after which a file is closed and another begun
    #[arg(long, default_value_t = 4000, value_name = "MB")]
    pub file_mb: u64,
    /// Seconds after which a file is closed and another begun
    #[arg(long, default_value_t = 600, value_name = "S")]
    pub file_seconds: u64,
    /// Milliseconds after which rows are written at the latest, full row group (16 MiB) or not: a killed process loses what
    /// is younger, and what the disk has not taken
    #[arg(long, default_value_t = 1000, value_name = "MS", requires = "out")]
    pub flush: u64,
    /// Threads that encode and compress files [default: half of the cores, at most 8]
    #[arg(long, value_name = "N", requires = "out")]
    pub encoders: Option<NonZeroUsize>,
    /// Serve events as an Arrow IPC stream at this address and port, or Unix socket (docs/storage.md)
    #[arg(long, value_name = "ADDRESS:PORT|PATH")]
    pub serve: Option<String>,
    /// Consumers get all events: boards wait for slow ones; otherwise these miss some, and are told how many
    #[arg(long, requires = "serve")]
    pub serve_all: bool,
    /// Compare payloads with these recorded events (npz)
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,
    /// Compare payloads with a test pattern, board by board
    #[arg(long, value_enum)]
    pub payload: Option<PatternName>,
    /// Messages are nothing but the --payload, without fragment headers: those of the gateware's own source
    #[arg(long, requires = "payload", conflicts_with_all = ["events", "out", "serve", "reference", "consumer_rate"])]
    pub bare: bool,
    /// Have this NVIDIA GPU work on the events too: compare --payload prbs, or compute --gpu-charges (docs/readout.md)
    #[arg(long, value_name = "N", conflicts_with = "bare")]
    pub gpu: Option<u32>,
    /// Folder for the charges of the LST camera's waveforms, computed on the GPU
    #[arg(long, value_name = "FOLDER", requires = "gpu", conflicts_with = "payload")]
    pub gpu_charges: Option<PathBuf>,
    /// Megabytes that go to the GPU at a time; three times as much memory is pinned. At least an event
    #[arg(long, value_name = "MB", requires = "gpu", default_value = "16")]
    pub gpu_batch_mb: NonZeroUsize,
    /// End after so many messages of all boards together, with --bare
    #[arg(long, requires = "bare", value_name = "N")]
    pub messages: Option<u64>,
    /// End after so many events
    #[arg(long)]
    pub events: Option<u64>,
    /// End after so many seconds
    #[arg(short = 'D', long)]
    pub seconds: Option<f64>,
    /// MB/s that the consumer of events takes, to see what a slow one does
    #[arg(long, value_name = "MBPS")]
    pub consumer_rate: Option<f64>,
    /// Seconds after which boards that are not up are reported
    #[arg(long, default_value_t = 5, value_name = "S")]
    pub bring_up: u32,
    /// Milliseconds of silence after which a board is asked whether it lives; 0 is never
    #[arg(long, default_value_t = 1000, value_name = "MS")]
    pub keep_alive: u64,
    /// Milliseconds of silence at the end after which queue pairs are closed: a board whose last ACK was lost asks again.
    /// Longer than the boards' ACK timers
    #[arg(long, default_value_t = 300, value_name = "MS")]
    pub linger: u64,
    /// File that remembers open connections, so that they can be closed after a crash; "none" for no such file
    /// [default: ~/.local/state/penstock/recv-<address>]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Serve Prometheus metrics at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Print the final report as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// Everything a session is made of.
pub struct Settings {
    pub session: SessionConfig,
}

const PS_PER_MS: u64 = 1_000_000_000;

impl Settings {
    pub fn read(arguments: &Arguments) -> Result<Settings, String> {
        let boards = boards(arguments)?;
        if !arguments.bare && arguments.slot_bytes as usize <= HEADER_LEN {
            let slot_bytes = arguments.slot_bytes;
            return Err(format!("--slot-bytes {slot_bytes}: a fragment's header alone has {HEADER_LEN} bytes"));
        }
        let mtu = Mtu::from_bytes(arguments.mtu)
            .ok_or_else(|| format!("--mtu {}: allowed are 256, 512, 1024, 2048, 4096", arguments.mtu))?;
        let slots = slots(arguments)?;
        let pool = pool(arguments, boards.len())?;
        match pool {
            Some(pool) => {
                let all = pool.slots.saturating_add(pool.copies);
                check_memory(&format!("a pool and its copies: {all} fragments"), all.into(), arguments.slot_bytes)?;
            }
            None => {
                let all = boards.len() as u64 * u64::from(slots);
                check_memory(&format!("{} rings of {slots} slots", boards.len()), all, arguments.slot_bytes)?;
            }
        }
        let keep_alive_ps = (arguments.keep_alive > 0).then(|| arguments.keep_alive.saturating_mul(PS_PER_MS));
        let timeout_ps = arguments.event_timeout.saturating_mul(PS_PER_MS);
        let consumer = positive("--consumer-rate", arguments.consumer_rate)?;
        Ok(Settings {
            session: SessionConfig {
                boards,
                slots,
                slot_bytes: arguments.slot_bytes,
                pool,
                pages: if arguments.huge_pages { Pages::Huge } else { Pages::Normal },
                builder: BuilderConfig {
                    timeout_ps,
                    first_event: arguments.first_event.unwrap_or(0),
                    ..BuilderConfig::default()
                },
                find_first_event: arguments.first_event.is_none(),
                consumer_bytes_per_s: consumer.and_then(|mb| std::num::NonZeroU64::new((mb * 1e6) as u64)),
                poll: arguments.poll,
                mtu,
                rnr_timer: RnrTimer::at_least(arguments.rnr_timer),
                cm: CmOpenerConfig { keep_alive_ps, ..CmOpenerConfig::default() },
                linger_ps: arguments.linger.saturating_mul(PS_PER_MS),
                ..SessionConfig::default()
            },
        })
    }
}

fn boards(arguments: &Arguments) -> Result<Vec<BoardSpec>, String> {
    let opens = if arguments.listen { Opens::Board } else { Opens::We };
    let mut boards = match &arguments.file {
        Some(file) => {
            let Boards { boards } = read_boards(file, opens)?;
            boards
        }
        None => Vec::new(),
    };
    boards.extend(arguments.boards.iter().map(|&ip| BoardSpec { name: ip.to_string(), ip, opens }));
    let mut names = HashSet::new();
    if let Some(twice) = boards.iter().find(|board| !names.insert(&board.name)) {
        return Err(format!(
            "{} is there twice; sources that are queue pairs of one board need names of their own, in a --file",
            twice.name
        ));
    }
    match boards.len() {
        0 => Err("no boards: name their addresses, or a file of boards by --file".to_owned()),
        1..=65535 => Ok(boards),
        n => Err(format!("{n} boards: at most 65535 are numbered")),
    }
}

fn positive(option: &str, value: Option<f64>) -> Result<Option<f64>, String> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => Err(format!("{option} {value}: must be above 0")),
        value => Ok(value),
    }
}

/// Slots that hold what a board sends within the latency, and one that stays free.
fn slots(arguments: &Arguments) -> Result<u32, String> {
    let rate = positive("--rate", arguments.rate)?.zip(positive("--latency", arguments.latency)?);
    let Some((gbps, ms)) = rate else {
        return Ok(arguments.slots.unwrap_or(RingConfig::default().slots));
    };
    let bytes = gbps * 1e9 / 8.0 * ms * 1e-3;
    let needed = (bytes / f64::from(arguments.slot_bytes.max(1))).ceil() + 1.0;
    match arguments.slots {
        Some(slots) if f64::from(slots) < needed => Err(format!(
            "--slots {slots}: {gbps} Gb/s for {ms} ms are {needed} slots of {} bytes; give that many, or larger ones",
            arguments.slot_bytes
        )),
        Some(slots) => Ok(slots),
        None if needed > f64::from(u32::MAX) => Err(format!("{gbps} Gb/s for {ms} ms: {needed} slots are too many")),
        None => Ok((needed as u32).max(2)),
    }
}

/// An event that is stored, and one that comes in: a slot of either for each board.
fn pool(arguments: &Arguments, boards: usize) -> Result<Option<PoolSize>, String> {
    let Some(slots) = arguments.srq else { return Ok(None) };
    let least = 2 * boards.max(2);
    if (slots as usize) < least {
        return Err(format!(
            "--srq {slots}: {boards} boards need at least {least} slots, for an event that is stored and one that comes in"
        ));
    }
    Ok(Some(PoolSize { slots, copies: arguments.srq_copies.unwrap_or(slots.saturating_mul(4)) }))
}

/// Rings must leave the machine a quarter of its memory.
fn check_memory(what: &str, slots: u64, slot_bytes: u32) -> Result<(), String> {
    let wanted = u128::from(slots) * u128::from(slot_bytes);
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u128> = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    match kib.map(|kib| kib * 1024) {
        Some(free) if wanted > free / 4 * 3 => Err(format!(
            "{what} of {slot_bytes} bytes are {} MB, but {} MB are free; use fewer or smaller ones",
            wanted / 1_000_000,
            free / 1_000_000
        )),
        _ => Ok(()),
    }
}

/// Why `option` cannot listen at an address, and what would do.
pub fn not_listening(option: &str, at: impl Display, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "; another program has it: give another port",
        io::ErrorKind::AddrNotAvailable => "; this machine does not have that address: 0.0.0.0 is all of its own",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are root's",
        _ => "",
    };
    format!("{option} {at}: {error}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn read(line: &str) -> Result<Settings, String> {
        let words = std::iter::once("recv").chain(line.split_whitespace());
        Settings::read(&Line::try_parse_from(words).map_err(|error| error.to_string())?.arguments)
    }

    fn refusal(line: &str) -> String {
        read(line).err().unwrap_or_else(|| panic!("`{line}` was taken"))
    }

    #[test]
    fn an_address_that_is_given_twice_is_refused_by_name() {
        assert_eq!(read("10.0.0.2 10.0.0.3").unwrap().session.boards.len(), 2);
        let told = refusal("10.0.0.2 10.0.0.3 10.0.0.2");
        assert!(told.starts_with("10.0.0.2 is there twice"), "{told}");
    }

    #[test]
    fn a_slot_that_holds_no_fragment_is_refused_but_for_bare_messages() {
        assert!(refusal("10.0.0.2 --slot-bytes 40").contains("--slot-bytes 40"));
        assert!(read("10.0.0.2 --slot-bytes 41").is_ok());
        assert!(read("10.0.0.2 --slot-bytes 40 --payload prbs --bare").is_ok());
    }
}
