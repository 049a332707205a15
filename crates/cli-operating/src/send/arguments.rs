// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock send`, by topic: a struct is a heading of `--help`.
//! Promise: an option with the same name as one of `penstock recv` has the same meaning.
//! Source: the option names are those of `penstock recv` and of iperf3 where they have the same.

use super::choices::{LawName, PayloadName, ProtocolName, StackName};
use penstock_cli_common::arguments::allowed::Allowed;
use penstock_cli_common::arguments::cm::{CmName, RDMA_CM_PORT};
use penstock_cli_common::arguments::number::{share, TCP_PORT};
use penstock_cli_common::arguments::quantity::{above_zero, bytes, gbps, hertz, milliseconds, seconds};
use penstock_units::Rate;
use std::net::Ipv4Addr;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub boards: BoardArguments,
    #[command(flatten)]
    pub events: EventArguments,
    #[command(flatten)]
    pub protocol: ProtocolArguments,
    #[command(flatten)]
    pub tcp: TcpArguments,
    #[command(flatten)]
    pub faults: FaultArguments,
    #[command(flatten)]
    pub report: ReportArguments,
}

/// The senders and their destinations.
#[derive(clap::Args)]
#[command(next_help_heading = "Front ends")]
pub struct BoardArguments {
    /// Ethernet interface
    #[arg(long, value_name = "NAME")]
    pub iface: String,
    /// Address of the first front end; the others follow. With --protocol rc the interface must have them all, with tcp
    /// none of them
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Ipv4Addr,
    /// Front ends in this process
    #[arg(id = "boards", long = "boards", value_name = "N", default_value_t = 1)]
    pub count: u16,
    /// Source id of the first front end
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first_source: u16,
    /// Open queue pairs at this server; otherwise the server opens them here
    #[arg(long, value_name = "ADDRESS")]
    pub connect: Option<Ipv4Addr>,
    /// Connection manager by which queue pairs open
    #[arg(long, value_enum, default_value = "feroce")]
    pub cm: CmName,
    /// Port of the server's connection manager, for --cm rdma
    #[arg(long, value_name = "PORT", default_value_t = RDMA_CM_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub cm_port: u16,
    /// Servers that may open queue pairs here, as ADDRESS or ADDRESS/PREFIX; may be repeated. Others are not answered
    /// [default: all]
    #[arg(long, value_name = "ADDRESS[/N]", value_delimiter = ',')]
    pub allow: Vec<Allowed>,
    /// Milliseconds for which it stays, when all is acknowledged, for the server to close the queue pairs
    #[arg(long, default_value_t = 2000, value_name = "MS", value_parser = milliseconds::<u64>)]
    pub linger: u64,
}

/// The data to send, and its times.
#[derive(clap::Args)]
#[command(next_help_heading = "Events")]
pub struct EventArguments {
    #[arg(long, value_enum, default_value = "prbs")]
    pub payload: PayloadName,
    /// Recorded camera events (npz), for --payload recorded
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Payload bytes of a fragment, without its header of 40 bytes
    #[arg(short = 'l', long, value_name = "BYTES", default_value_t = 65_536,
        value_parser = |text: &str| above_zero(bytes::<u32>(text)))]
    pub length: u32,
    /// Events of the run; 0 is without end
    #[arg(id = "events", short = 'n', long = "events", value_name = "N", default_value_t = 0)]
    pub count: u64,
    /// File of the servers that share the run (TOML), as for `penstock recv`
    #[arg(long, value_name = "FILE", requires = "server")]
    pub servers: Option<PathBuf>,
    /// Send only the events of this server, as a board's queue pair to that server does
    #[arg(long, value_name = "N", requires = "servers")]
    pub server: Option<u16>,
    /// Each event goes to the server that the front end's destination table names for its number. The table comes over
    /// IPbus (`penstock farm`); the events begin with it
    #[arg(long, conflicts_with_all = ["connect", "servers"])]
    pub by_event: bool,
    /// First event's number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first_event: u64,
    /// Events per second; otherwise as fast as possible
    #[arg(short, long, value_name = "HZ", value_parser = hertz)]
    pub rate: Option<f64>,
    /// End after this number of seconds
    #[arg(short = 'D', long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
}

/// The connection: settings that both ends must share, and the handling of loss.
#[derive(clap::Args)]
#[command(next_help_heading = "Protocol")]
pub struct ProtocolArguments {
    /// RoCEv2, or the simplified TCP, which any host receives
    #[arg(long, value_enum, default_value = "rc")]
    pub protocol: ProtocolName,
    /// Announce fragments to the server, which reads them (`penstock recv --pull`). Congestion control is off: the server
    /// decides what crosses its link
    #[arg(long, conflicts_with_all = ["send_verb", "cc_share"])]
    pub pull: bool,
    /// Slots of the server's ring; with --pull of this front end's, which the server reads
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub slots: u32,
    /// Bytes of a slot of that ring
    #[arg(long, value_name = "BYTES", default_value_t = 128 * 1024, value_parser = bytes::<u32>)]
    pub slot_size: u32,
    /// SEND instead of RDMA WRITE with immediate
    #[arg(long)]
    pub send_verb: bool,
    /// Path MTU: 256, 512, 1024, 2048 or 4096
    #[arg(short, long, value_name = "BYTES", default_value_t = 4096, value_parser = bytes::<usize>)]
    pub mtu: usize,
    /// Congestion control
    #[arg(long, value_enum, default_value = "dcqcn")]
    pub cc: LawName,
    /// Line rate for congestion control, Gb/s
    #[arg(long, default_value_t = 10.0, value_name = "GBPS", value_parser = gbps)]
    pub line_rate: f64,
    /// Each board's share of the server's line if all send at once, as in 39Mbps, for congestion control by the
    /// profile "penstock"; without it, --line-rate over --boards, or for a single board AdvCam's Table II
    #[arg(long, value_name = "RATE", value_parser = share)]
    pub cc_share: Option<Rate>,
    /// ACK timer, 4.096 us * 2^CODE; 0: it never expires
    #[arg(long, value_name = "CODE", default_value_t = 14, value_parser = clap::value_parser!(u8).range(0..32))]
    pub ack_timeout: u8,
    /// Timeouts and NAKs in a row until a queue pair gives up, 0 to 7
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
    pub retry_cnt: u8,
}

/// Streams of --protocol tcp, which go to --connect.
#[derive(clap::Args)]
#[command(next_help_heading = "TCP")]
pub struct TcpArguments {
    /// Port of the server
    #[arg(long, value_name = "PORT", default_value_t = TCP_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// The implementation that makes the segments
    #[arg(long, value_enum, default_value = "emulator")]
    pub stack: StackName,
    /// Payload bytes of a segment, 64 to 8960 [default: from the interface's MTU]
    #[arg(long, value_name = "BYTES", value_parser = bytes::<u16>)]
    pub mss: Option<u16>,
    /// Bytes of a stream's ring, which holds unacknowledged data; rounded up to a power of two
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, value_parser = bytes::<u32>)]
    pub ring: u32,
    /// Send short segments at once (no Nagle's algorithm)
    #[arg(long)]
    pub no_nagle: bool,
    /// No congestion control: new data is sent after a loss, timeouts do not double
    #[arg(long)]
    pub no_back_off: bool,
    /// Fixed retransmission timeout [default: follows the round trip, by RFC 6298]
    #[arg(long, value_name = "MS", value_parser = milliseconds::<u32>)]
    pub rto: Option<u32>,
    /// Timeouts in a row until a stream gives up; 0: never
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub give_up: u8,
    /// Initial sequence number, for tests [default: at random]
    #[arg(long, value_name = "N")]
    pub iss: Option<u32>,
}

/// Faults of the frames, for tests on kernels without `tc netem`.
#[derive(clap::Args)]
#[command(next_help_heading = "Faults")]
pub struct FaultArguments {
    /// Share of frames to lose, for tests
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub loss: f64,
    /// Share of frames to send twice
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub duplicate: f64,
    /// Share of frames to send after the next one
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub reorder: f64,
    /// Share of frames to damage in one bit
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub corrupt: f64,
    /// Share of received frames, acknowledgements most of all, to lose
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub ack_loss: f64,
    /// Share of received frames to take twice
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub ack_duplicate: f64,
    /// Share of received frames to take after the next one
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub ack_reorder: f64,
    /// Share of received frames to damage in one bit
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub ack_corrupt: f64,
    /// Seed of these faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The reporting of the run.
#[derive(clap::Args)]
#[command(next_help_heading = "Report")]
pub struct ReportArguments {
    /// Print the final report as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}
