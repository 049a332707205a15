// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock recv`, by topic: a struct is a heading of `--help`.
//! Promise: contradictory options are refused by name.
//! Source: the option names are perftest's and iperf3's where they have the same.

use super::choices::{BackendName, GpuDirectChoice, LineChoice, NumaChoice, Rows, SocketName};
use crate::board_list::BoardList;
use penstock_cli_common::arguments::cm::{CmName, RDMA_CM_PORT};
use penstock_cli_common::arguments::pattern::PatternName;
use penstock_cli_common::arguments::quantity::{
    above_zero, bytes, fine_milliseconds, gbps, listen_address, megabytes_per_second, microseconds, milliseconds,
    seconds, whole_seconds,
};
use penstock_readout::backend::{GidChoice, PollMode};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub boards: BoardArguments,
    #[command(flatten)]
    pub backend: BackendArguments,
    #[command(flatten)]
    pub memory: MemoryArguments,
    #[command(flatten)]
    pub run: RunArguments,
    #[command(flatten)]
    pub check: CheckArguments,
    #[command(flatten)]
    pub storage: StorageArguments,
    #[command(flatten)]
    pub serving: ServingArguments,
    #[command(flatten)]
    pub gpu: GpuArguments,
    #[command(flatten)]
    pub report: ReportArguments,
}

/// The boards, and how their connections open.
#[derive(clap::Args)]
#[command(next_help_heading = "Boards")]
pub struct BoardArguments {
    /// 10.0.0.2, a host's name, 10.0.0.2-10.0.0.9, 10.0.0.0/24, @FILE with one of these a line; several with commas or
    /// spaces. Board i is source i
    #[arg(value_name = "BOARDS")]
    pub lists: Vec<BoardList>,
    /// File of boards (TOML), see docs/readout.md
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The boards open their queue pairs; otherwise this server does
    #[arg(long)]
    pub listen: bool,
    /// Connection manager by which queue pairs open
    #[arg(long, value_enum, default_value = "feroce")]
    pub cm: CmName,
    /// Port at which boards request connections, for --cm rdma
    #[arg(long, value_name = "PORT", default_value_t = RDMA_CM_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub cm_port: u16,
    /// Agree on queue pairs by lines of JSON at this TCP port: boards' processors connect (docs/exchange.md)
    #[arg(long, value_name = "PORT", conflicts_with = "cm", value_parser = clap::value_parser!(u16).range(1..))]
    pub exchange: Option<u16>,
    /// Seconds after which boards that are not up are reported
    #[arg(long, default_value_t = 5.0, value_name = "S", value_parser = seconds)]
    pub bring_up: f64,
    /// Milliseconds of silence after which a board gets a keep-alive; 0 is never
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = milliseconds::<u64>)]
    pub keep_alive: u64,
    /// This server's line, as in 10Gbps: sets each board's share of it, over IPbus, with profile "penstock"
    /// (docs/congestion-control.md). "auto" is the interface's speed as the kernel reports it; "none" sets no shares
    /// [default: auto, or none if the kernel reports no speed]
    #[arg(long, value_name = "RATE", num_args = 0..=1, default_missing_value = "auto")]
    pub line: Option<LineChoice>,
    /// File that records open connections, so that they can be closed after a crash; over TCP the folder next to it keeps
    /// messages between two runs (docs/tcp.md); "none" for neither
    /// [default: ~/.local/state/penstock/recv-<address>]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
}

/// The receive path, and the receiving thread.
#[derive(clap::Args)]
#[command(next_help_heading = "Back end")]
pub struct BackendArguments {
    #[arg(long = "backend", value_name = "BACKEND", value_enum, default_value = "packet")]
    pub name: BackendName,
    /// Ethernet interface, for --backend packet
    #[arg(long, value_name = "NAME")]
    pub iface: Option<String>,
    /// How frames come in, for --backend packet [default: auto]
    #[arg(long, value_name = "SOCKET", value_enum)]
    pub socket: Option<SocketName>,
    /// RDMA device, for --backend verbs [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// GID of the device, by index or by IPv4 address [default: the first RoCEv2 one]
    #[arg(long, value_name = "GID")]
    pub gid: Option<GidChoice>,
    /// Our address, if the interface has several
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<Ipv4Addr>,
    /// Read what boards announce (`penstock send --pull`), oldest event first, instead of boards that send at will; for
    /// --backend verbs or packet. Boards get no shares
    #[arg(long, conflicts_with_all = ["srq", "bare"])]
    pub pull: bool,
    /// Bytes that may be on their way from all boards together, with --pull [default: what the line carries in 200 us,
    /// by --line or the interface's speed; at least 262144]
    #[arg(long, value_name = "BYTES", requires = "pull", value_parser = bytes::<u64>)]
    pub window: Option<u64>,
    /// Port that boards connect to, for --backend tcp [default: 10000]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Path MTU of RoCEv2: 256, 512, 1024, 2048 or 4096 [default: 4096]
    #[arg(short, long, value_name = "BYTES", value_parser = bytes::<usize>)]
    pub mtu: Option<usize>,
    /// busy, event, or hybrid[:microseconds to spin]
    #[arg(long, default_value = "hybrid", value_name = "MODE")]
    pub poll: PollMode,
    /// Stay on the CPUs and the memory of this NUMA node: its number, or "nic" for that of the interface or device
    #[arg(long, value_name = "NODE|nic")]
    pub numa: Option<NumaChoice>,
    /// Microseconds that a board waits over RoCEv2 when its ring is full [default: 640]
    #[arg(long, value_name = "US", value_parser = microseconds::<u32>)]
    pub rnr_timer: Option<u32>,
}

/// The memory of fragments until their events are stored.
#[derive(clap::Args)]
#[command(next_help_heading = "Memory")]
pub struct MemoryArguments {
    /// Slots of each board's ring [default: 64, or as many as --throughput and --latency require]
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
    /// Bytes of a slot: the largest fragment with its header of 40 bytes
    #[arg(long, default_value_t = 128 * 1024, value_name = "BYTES", value_parser = bytes::<u32>)]
    pub slot_size: u32,
    /// Gb/s of one board, for the size of its ring
    #[arg(long, requires = "latency", value_name = "GBPS", value_parser = gbps)]
    pub throughput: Option<f64>,
    /// Milliseconds for which events may have to wait in the rings
    #[arg(long, requires = "throughput", value_name = "MS", value_parser = fine_milliseconds)]
    pub latency: Option<f64>,
    /// Rings on huge pages
    #[arg(long)]
    pub huge_pages: bool,
    /// Slots that all boards share, which must SEND: one pool in place of rings
    #[arg(long, value_name = "N", conflicts_with_all = ["slots", "throughput", "latency"])]
    pub srq: Option<u32>,
    /// Fragments that may be copied out of the pool while their events wait for other boards [default: four times
    /// --srq]
    #[arg(long, value_name = "N", requires = "srq")]
    pub srq_copies: Option<u32>,
}

/// When a run begins and ends, and how long events are waited for.
#[derive(clap::Args)]
#[command(next_help_heading = "Run")]
pub struct RunArguments {
    /// First event's number [default: the first event of the boards that agree, see docs/recv.md]
    #[arg(long, value_name = "N")]
    pub first_event: Option<u64>,
    /// File of the servers that share the run (TOML), read again when it changes, see docs/servers.md
    #[arg(long, value_name = "FILE", requires = "server", conflicts_with = "bare")]
    pub servers: Option<PathBuf>,
    /// Which of them this is
    #[arg(long, value_name = "N", requires = "servers")]
    pub server: Option<u16>,
    /// End after this number of events (of this server)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub events: Option<u64>,
    /// End after this number of messages of all boards together, with --bare
    #[arg(long, requires = "bare", value_name = "N")]
    pub messages: Option<u64>,
    /// Accept no new events after this number of seconds, and end when the open ones are complete
    #[arg(short = 'D', long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Milliseconds for which an event waits for fragments of boards that can be reached. Longer than (retries + 1)
    /// times the boards' ACK timers [default: that of 7 retries of 67 ms, 537; over TCP 2500]
    #[arg(long, value_name = "MS", value_parser = |text: &str| above_zero(milliseconds::<u64>(text)))]
    pub event_timeout: Option<u64>,
    /// Seconds for which events wait for a board that cannot be reached, after its last sign of life: an outage that is
    /// some seconds shorter costs nothing [default: 45; with --servers, at most 1 for boards whose registers cannot be read]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub outage: Option<f64>,
    /// Milliseconds of silence at the end after which queue pairs are closed: a board whose last ACK was lost repeats
    /// its packets. Longer than the boards' ACK timers; with --cm rdma at least four times as long
    #[arg(long, default_value_t = 300, value_name = "MS", value_parser = milliseconds::<u64>)]
    pub linger: u64,
}

/// The data with which payloads are compared.
#[derive(clap::Args)]
#[command(next_help_heading = "Checks")]
pub struct CheckArguments {
    /// Compare payloads with a test pattern, board by board
    #[arg(long, value_enum)]
    pub payload: Option<PatternName>,
    /// Messages are nothing but the --payload, without fragment headers: those of the gateware's own source
    #[arg(long, requires = "payload", conflicts_with_all = ["events", "out", "serve", "data", "consumer_rate"])]
    pub bare: bool,
    /// Compare payloads with these recorded events (npz)
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
}

/// Where events are stored.
#[derive(clap::Args)]
#[command(next_help_heading = "Storage")]
pub struct StorageArguments {
    /// Folder for the events (Parquet); otherwise they are checked and discarded
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Contents of a row of the files
    #[arg(long, value_enum, default_value = "events")]
    pub rows: Rows,
    /// Bytes after which a file is closed and the next one started
    #[arg(long, default_value = "4GB", value_name = "BYTES", value_parser = bytes::<u64>)]
    pub file_size: u64,
    /// Seconds after which a file is closed and the next one started
    #[arg(long, default_value_t = 600, value_name = "S", value_parser = whole_seconds::<u64>)]
    pub file_time: u64,
    /// Milliseconds after which rows are written at the latest, even if the row group (16 MiB) is not full: a killed
    /// process loses later rows, and those that the disk has not taken
    #[arg(long, default_value_t = 1000, value_name = "MS", requires = "out", value_parser = milliseconds::<u64>)]
    pub flush: u64,
    /// Threads that encode and compress files [default: half of the cores, at most 8]
    #[arg(long, value_name = "N", requires = "out")]
    pub encoders: Option<NonZeroUsize>,
}

/// The consumers of events while they are stored.
#[derive(clap::Args)]
#[command(next_help_heading = "Serving")]
pub struct ServingArguments {
    /// Serve events as an Arrow IPC stream at this address and port, or Unix socket (docs/storage.md)
    #[arg(long, value_name = "ADDRESS:PORT|PATH")]
    pub serve: Option<String>,
    /// Consumers get all events, and boards wait for slow ones; otherwise slow ones miss some, and are told how many
    #[arg(long, requires = "serve")]
    pub serve_all: bool,
    /// MB/s that an emulated consumer of events takes, to see the effect of a slow one
    #[arg(long, value_name = "MBPS", value_parser = megabytes_per_second)]
    pub consumer_rate: Option<f64>,
}

/// Processing of events on an NVIDIA GPU.
#[derive(clap::Args)]
#[command(next_help_heading = "GPU")]
pub struct GpuArguments {
    /// Experimental, never run on a GPU: let this NVIDIA GPU process the events, too: compare --payload prbs, or
    /// compute --gpu-charges (docs/gpu.md)
    #[arg(id = "gpu", long = "gpu", value_name = "N", conflicts_with = "bare")]
    pub index: Option<u32>,
    /// Have the NIC write to that GPU's memory (GPUDirect): "on", or "auto" to do without where GPU or NIC cannot. Of a
    /// run that is stored it makes the GPU a part on which all depends
    #[arg(long, value_name = "WHETHER", requires = "gpu", value_enum, default_value = "off")]
    pub gpu_direct: GpuDirectChoice,
    /// Folder for the charges of the LST camera's waveforms, computed on the GPU
    #[arg(long, value_name = "FOLDER", requires = "gpu", conflicts_with = "payload")]
    pub gpu_charges: Option<PathBuf>,
    /// Bytes that go to the GPU at a time; three times as much memory is pinned. At least an event
    #[arg(
        long, value_name = "BYTES", requires = "gpu", default_value = "16MB",
        value_parser = |text: &str| above_zero(bytes::<usize>(text)),
    )]
    pub gpu_batch: usize,
}

/// The reporting of the run.
#[derive(clap::Args)]
#[command(next_help_heading = "Report")]
pub struct ReportArguments {
    /// Serve Prometheus metrics at this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub metrics: Option<SocketAddr>,
    /// Print the final report as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}
