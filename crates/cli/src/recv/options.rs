// SPDX-License-Identifier: Apache-2.0
//! What `penstock recv` is told: the command line and the file of boards, checked and joined.
//! Promise: what cannot work is refused before anything is opened, with the value and what to do.

use super::arguments::{Arguments, BoardArguments, MemoryArguments};
use super::boards::{read_boards, Boards};
use penstock_readout::backend::SocketChoice;
use penstock_readout::session::{BoardSpec, Opens, PoolSize, SessionConfig};
use penstock_readout::{BuilderConfig, Pages, RingConfig};
use penstock_transport::{CmOpenerConfig, Mtu};
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::RnrTimer;
use std::collections::HashSet;
use std::fmt::Display;
use std::io;
use std::net::Ipv4Addr;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendName {
    /// An RDMA NIC, or rdma_rxe
    Verbs,
    /// Any Ethernet interface, by AF_XDP or a packet socket; needs CAP_NET_RAW
    Packet,
}

/// Whether the NIC writes to the memory of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GpuDirectChoice {
    /// Never
    Off,
    /// If GPU and NIC can
    Auto,
    /// Or else the run does not begin
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SocketName {
    /// AF_XDP where the driver runs XDP programs, or else the ring
    Auto,
    /// AF_XDP, past the kernel's network stack; needs root, or CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN
    Xdp,
    /// A packet socket with a shared ring
    Ring,
}

impl From<SocketName> for SocketChoice {
    fn from(name: SocketName) -> Self {
        match name {
            SocketName::Auto => SocketChoice::Auto,
            SocketName::Xdp => SocketChoice::Xdp,
            SocketName::Ring => SocketChoice::Ring,
        }
    }
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

/// Everything a session is made of.
pub struct Settings {
    pub session: SessionConfig,
}

pub const PS_PER_MS: u64 = 1_000_000_000;

impl Settings {
    pub fn read(arguments: &Arguments) -> Result<Settings, String> {
        let boards = boards(&arguments.boards)?;
        let slot_bytes = arguments.memory.slot_bytes;
        if !arguments.check.bare && slot_bytes as usize <= HEADER_LEN {
            return Err(format!("--slot-bytes {slot_bytes}: a fragment's header alone has {HEADER_LEN} bytes"));
        }
        check_direct(arguments)?;
        let mtu = Mtu::from_bytes(arguments.backend.mtu)
            .ok_or_else(|| format!("--mtu {}: allowed are 256, 512, 1024, 2048, 4096", arguments.backend.mtu))?;
        let slots = slots(&arguments.memory)?;
        let pool = pool(&arguments.memory, boards.len())?;
        match pool {
            Some(pool) => {
                let all = pool.slots.saturating_add(pool.copies);
                check_memory(&format!("a pool and its copies: {all} fragments"), all.into(), slot_bytes)?;
            }
            None => {
                let all = boards.len() as u64 * u64::from(slots);
                check_memory(&format!("{} rings of {slots} slots", boards.len()), all, slot_bytes)?;
            }
        }
        let keep_alive_ps =
            (arguments.boards.keep_alive > 0).then(|| arguments.boards.keep_alive.saturating_mul(PS_PER_MS));
        let timeout_ps = arguments.run.event_timeout.saturating_mul(PS_PER_MS);
        positive("--seconds", arguments.run.seconds)?;
        let consumer = positive("--consumer-rate", arguments.serving.consumer_rate)?;
        Ok(Settings {
            session: SessionConfig {
                boards,
                slots,
                slot_bytes,
                pool,
                pages: if arguments.memory.huge_pages { Pages::Huge } else { Pages::Normal },
                builder: BuilderConfig {
                    timeout_ps,
                    first_event: arguments.run.first_event.unwrap_or(0),
                    ..BuilderConfig::default()
                },
                find_first_event: arguments.run.first_event.is_none(),
                consumer_bytes_per_s: consumer.and_then(|mb| std::num::NonZeroU64::new((mb * 1e6) as u64)),
                poll: arguments.backend.poll,
                mtu,
                rnr_timer: RnrTimer::at_least(arguments.backend.rnr_timer),
                cm: CmOpenerConfig { keep_alive_ps, ..CmOpenerConfig::default() },
                bring_up_ps: u64::from(arguments.boards.bring_up) * 1000 * PS_PER_MS,
                linger_ps: arguments.run.linger.saturating_mul(PS_PER_MS),
                ..SessionConfig::default()
            },
        })
    }
}

fn boards(arguments: &BoardArguments) -> Result<Vec<BoardSpec>, String> {
    let opens = if arguments.listen { Opens::Board } else { Opens::We };
    let mut boards = match &arguments.file {
        Some(file) => {
            let Boards { boards } = read_boards(file, opens)?;
            boards
        }
        None => Vec::new(),
    };
    boards.extend(arguments.ips.iter().map(|&ip| BoardSpec { name: ip.to_string(), ip, opens }));
    let mut names = HashSet::new();
    if let Some(twice) = boards.iter().find(|board| !names.insert(&board.name)) {
        return Err(format!(
            "{} is there twice; sources that are queue pairs of one board need names of their own, in a --file",
            twice.name
        ));
    }
    let is_host = |ip: &Ipv4Addr| !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast());
    if let Some(board) = boards.iter().find(|board| !is_host(&board.ip)) {
        return Err(format!("{}: {} is no address of one board", board.name, board.ip));
    }
    match boards.len() {
        0 => Err("no boards: name their addresses, or a file of boards by --file".to_owned()),
        1..=65535 => Ok(boards),
        n => Err(format!("{n} boards: at most 65535 are numbered")),
    }
}

/// Only when the back end is open is it known which address is ours.
pub fn no_board_is_here(boards: &[BoardSpec], ours: Ipv4Addr) -> Result<(), String> {
    match boards.iter().find(|board| board.ip == ours) {
        Some(board) => Err(format!("{}: {ours} is this server's own address; give the board's", board.name)),
        None => Ok(()),
    }
}

fn check_direct(arguments: &Arguments) -> Result<(), String> {
    /// A kernel reads words, behind a header of 40 bytes.
    const ALIGNMENT: u32 = 8;
    let slot_bytes = arguments.memory.slot_bytes;
    match arguments.gpu.gpu_direct {
        GpuDirectChoice::Off => Ok(()),
        GpuDirectChoice::On if arguments.backend.name != BackendName::Verbs => {
            Err("--gpu-direct on: only an RDMA NIC writes to a GPU: add --backend verbs".to_owned())
        }
        _ if !slot_bytes.is_multiple_of(ALIGNMENT) => {
            Err(format!("--slot-bytes {slot_bytes}: a multiple of {ALIGNMENT} with --gpu-direct"))
        }
        _ => Ok(()),
    }
}

pub fn positive(option: &str, value: Option<f64>) -> Result<Option<f64>, String> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => Err(format!("{option} {value}: must be above 0")),
        value => Ok(value),
    }
}

/// Slots that hold what a board sends within the latency, and one that stays free.
fn slots(arguments: &MemoryArguments) -> Result<u32, String> {
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
fn pool(arguments: &MemoryArguments, boards: usize) -> Result<Option<PoolSize>, String> {
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
    use clap::{CommandFactory, Parser};

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
    fn an_address_that_is_no_boards_is_refused() {
        for ip in ["0.0.0.0", "224.0.0.1", "239.255.255.255", "255.255.255.255"] {
            let told = refusal(&format!("10.0.0.2 {ip}"));
            assert_eq!(told, format!("{ip}: {ip} is no address of one board"));
        }
    }

    #[test]
    fn a_run_of_no_length_is_refused() {
        for line in ["--seconds 0", "--seconds nan", "--seconds=-1", "--events 0"] {
            let told = refusal(&format!("10.0.0.2 {line}"));
            assert!(told.contains(line.split([' ', '=']).next().unwrap()), "{line}: {told}");
        }
        assert!(read("10.0.0.2 --seconds 0.1 --events 1").is_ok());
    }

    #[test]
    fn a_slot_that_holds_no_fragment_is_refused_but_for_bare_messages() {
        assert!(refusal("10.0.0.2 --slot-bytes 40").contains("--slot-bytes 40"));
        assert!(read("10.0.0.2 --slot-bytes 41").is_ok());
        assert!(read("10.0.0.2 --slot-bytes 40 --payload prbs --bare").is_ok());
    }

    #[test]
    fn every_option_is_under_a_heading_of_the_help() {
        let command = Line::command();
        let mut flat = command.get_arguments().filter(|option| option.get_help_heading().is_none());
        assert_eq!(flat.next().map(|option| option.get_id().as_str()), None);
    }
}
