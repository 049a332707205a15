// SPDX-License-Identifier: Apache-2.0
//! The plan of `penstock recv`: the command line and the file of boards, checked and combined.
//! Promise: invalid settings are refused before anything is opened, with the value and what to do.

use super::arguments::{Arguments, BoardArguments, RunArguments, ServingArguments, StorageArguments};
use super::boards::{read_boards, Boards, Weighted};
use super::choices::{BackendName, GpuDirectChoice, LineChoice, NumaChoice, Rows, SocketName};
use super::memory::{check_memory, pool, slots};
use super::needs::{check_backend, check_direct, manager};
use super::{speed, state_file};
use penstock_cli_common::arguments::number::{positive, TCP_PORT};
use penstock_cli_common::arguments::pattern::PatternName;
use penstock_readout::backend::{GidChoice, PacketConfig, PullSettings, PullWindow, TcpConfig, VerbsConfig};
use penstock_readout::session::{BoardSpec, Manager, Opens, SessionConfig};
use penstock_readout::{
    BuilderConfig, Pages, Pattern, RunOptions, ServeAt, ServeOptions, SlowConsumer, Table, WriterOptions,
};
use penstock_transport::{CmOpenerConfig, Mtu};
use penstock_units::{Rate, Time};
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::RnrTimer;
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// How long an event waits over TCP: what is sent again after an outage that the kernel does not notice comes later.
const TCP_TIMEOUT: Time = Time::from_ms(2500);

/// How long events of a farm wait for a board whose connection is lost, if it does not report which event it has passed.
const ABSENCE: Time = Time::from_s(1);

/// Everything that a run is made of.
pub struct Plan {
    pub session: SessionConfig,
    pub backend: BackendPlan,
    /// The device or interface, if one is named.
    pub nic: Option<String>,
    pub numa: Option<NumaChoice>,
    /// None: boards get no shares.
    pub line: Option<LinePlan>,
    /// The file of the servers that share the run, and which of them this is.
    pub sharing: Option<(PathBuf, u16)>,
    /// How long events wait for a board that reports which event it has passed; none: no board does.
    pub reporting_outage: Option<Time>,
    pub end: EndPlan,
    pub check: CheckPlan,
    /// The folder of the events; none: they are checked and forgotten.
    pub out: Option<PathBuf>,
    /// How files are written, of events and of charges.
    pub files: RunOptions,
    pub serving: Option<ServingPlan>,
    pub gpu: Option<GpuPlan>,
    /// The file that remembers open connections, if one is named.
    pub state: Option<PathBuf>,
    pub metrics: Option<SocketAddr>,
    pub json: bool,
}

/// How messages come in.
pub enum BackendPlan {
    Verbs(VerbsConfig),
    Packet(PacketConfig),
    Tcp(TcpConfig),
}

/// This server's line, and the sources that share it.
pub struct LinePlan {
    pub rate: Rate,
    /// The speed of the interface, if the kernel reports one.
    pub nic: Option<Rate>,
    pub sources: Vec<Weighted>,
}

/// When a run ends.
#[derive(Debug, Clone, Copy)]
pub struct EndPlan {
    pub events: Option<u64>,
    /// Messages of all boards together, without fragment headers.
    pub messages: Option<u64>,
    /// Nothing more is taken from here on.
    pub deadline: Time,
}

/// The data with which the processor compares payloads.
pub struct CheckPlan {
    pub pattern: Option<Pattern>,
    /// Messages are nothing but the pattern.
    pub bare: bool,
    pub reference: Option<PathBuf>,
}

/// Where events are served.
pub struct ServingPlan {
    pub at: ServeAt,
    /// The text of the command line.
    pub given: String,
    pub options: ServeOptions,
}

/// What a GPU does.
#[derive(Clone)]
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "`no_gpu.rs` refuses it"))]
pub struct GpuPlan {
    pub index: u32,
    pub direct: GpuDirectChoice,
    pub task: GpuTask,
    pub batch_bytes: usize,
}

/// Its work on the events.
#[derive(Clone)]
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "`no_gpu.rs` refuses it"))]
pub enum GpuTask {
    Prbs31 {
        invert: bool,
    },
    /// Into this folder.
    Charges(PathBuf),
}

impl Plan {
    /// # Errors
    /// The option that cannot be done, with its value and what to do.
    pub fn read(arguments: &Arguments) -> Result<Plan, String> {
        check_backend(&arguments.backend)?;
        let boards_open = manager(arguments)? != Manager::Feroce;
        let over_tcp = arguments.backend.name == BackendName::Tcp;
        let sources = boards(&arguments.boards, over_tcp || boards_open)?;
        let line = if arguments.backend.pull { None } else { line(arguments)? };
        let session = session(arguments, sources.iter().map(|source| source.spec.clone()).collect())?;
        let backend = backend(arguments, &session)?;
        let serving = serving(&arguments.serving)?;
        let gpu = gpu(arguments)?;
        let Arguments { backend: nic, run, check, storage, .. } = arguments;
        // Payloads are compared once.
        let pattern = check.payload.filter(|_| gpu.is_none()).map(PatternName::pattern);
        Ok(Plan {
            session,
            backend,
            nic: nic.device.clone().or(nic.iface.clone()),
            numa: nic.numa,
            line: line.map(|rate| LinePlan { rate, nic: speed_of_nic(arguments).ok(), sources }),
            sharing: run.servers.clone().zip(run.server),
            reporting_outage: reporting_outage(run, over_tcp)?,
            end: end(run),
            check: CheckPlan { pattern, bare: check.bare, reference: check.data.clone() },
            out: storage.out.clone(),
            files: files(storage),
            serving,
            gpu,
            state: arguments.boards.state.clone(),
            metrics: arguments.report.metrics,
            json: arguments.report.json,
        })
    }

    /// The folder of the charges that a GPU computes.
    pub fn charges(&self) -> Option<&Path> {
        match self.gpu.as_ref().map(|gpu| &gpu.task) {
            Some(GpuTask::Charges(folder)) => Some(folder.as_path()),
            _ => None,
        }
    }
}

fn session(arguments: &Arguments, boards: Vec<BoardSpec>) -> Result<SessionConfig, String> {
    let slot_bytes = arguments.memory.slot_size;
    if !arguments.check.bare && slot_bytes as usize <= HEADER_LEN {
        return Err(format!("--slot-size {slot_bytes}: a fragment's header alone has {HEADER_LEN} bytes"));
    }
    check_direct(arguments)?;
    let mtu = arguments.backend.mtu.unwrap_or(4096);
    let mtu = Mtu::from_bytes(mtu).ok_or_else(|| format!("--mtu {mtu}: allowed are 256, 512, 1024, 2048, 4096"))?;
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
    let manager = manager(arguments)?;
    // FEROCE's connection manager alone has keep-alives.
    let has_keep_alives = manager == Manager::Feroce && arguments.boards.keep_alive > 0;
    let keep_alive = has_keep_alives.then(|| ms(arguments.boards.keep_alive));
    positive("--seconds", arguments.run.seconds)?;
    let consumer = positive("--consumer-rate", arguments.serving.consumer_rate)?;
    Ok(SessionConfig {
        boards,
        slots,
        slot_bytes,
        pool,
        pages: if arguments.memory.huge_pages { Pages::Huge } else { Pages::Normal },
        builder: BuilderConfig {
            timeout: event_timeout(arguments),
            outage: outage(arguments)?,
            first_event: arguments.run.first_event.unwrap_or(0),
            ..BuilderConfig::default()
        },
        find_first_event: arguments.run.first_event.is_none(),
        consumer_rate: consumer.map(|mb| Rate((mb * 1e6) as u64 * 8)).filter(|rate| *rate > Rate(0)),
        poll: arguments.backend.poll,
        mtu,
        rnr_timer: RnrTimer::at_least(arguments.backend.rnr_timer.unwrap_or(640)),
        cm: CmOpenerConfig { keep_alive, ..CmOpenerConfig::default() },
        manager,
        bring_up: seconds("--bring-up", arguments.boards.bring_up)?,
        linger: ms(arguments.run.linger),
        ..SessionConfig::default()
    })
}

/// This server's line, if boards get shares.
fn line(arguments: &Arguments) -> Result<Option<Rate>, String> {
    let Arguments { boards, backend, .. } = arguments;
    let of_nic = || speed_of_nic(arguments);
    match (boards.line, backend.name) {
        (Some(LineChoice::None), _) | (None, BackendName::Tcp) => Ok(None),
        (Some(_), BackendName::Tcp) => Err("--line: boards over TCP have no DCQCN; leave it out".to_owned()),
        (Some(LineChoice::Rate(line)), _) => Ok(Some(line)),
        (Some(LineChoice::Auto), _) => of_nic().map(Some),
        (None, _) => Ok(of_nic().ok()),
    }
}

fn speed_of_nic(arguments: &Arguments) -> Result<Rate, String> {
    let backend = &arguments.backend;
    speed::of_nic(backend.iface.as_deref(), backend.device.as_deref())
}

/// How boards are read: by a window that is given, or that follows from the line.
fn pull(arguments: &Arguments, session: &SessionConfig) -> Result<PullSettings, String> {
    let window = match (arguments.backend.window, line(arguments)?) {
        (Some(bytes), _) => PullWindow::Bytes(bytes),
        (None, Some(line)) => PullWindow::OfLine(line),
        (None, None) => {
            return Err("--pull: the kernel reports no speed of the interface: give --line 10Gbps, or --window".into());
        }
    };
    let &SessionConfig { slots, slot_bytes, mtu, .. } = session;
    let (patience, ack_timeout) = (PullSettings::PATIENCE, read_timer(event_timeout(arguments)));
    Ok(PullSettings { boards: session.boards.len(), slots, slot_bytes, mtu, window, patience, ack_timeout })
}

/// The longest timer of a READ whose eight tries an event waits for.
fn read_timer(event_timeout: Time) -> u8 {
    const UNIT: Time = Time::from_ns(4_096);
    let tries = event_timeout / UNIT / 8;
    tries.checked_ilog2().map_or(1, |code| code.clamp(1, 31) as u8)
}

fn end(run: &RunArguments) -> EndPlan {
    let deadline = run.seconds.map_or(Time::MAX, Time::from_secs_f64);
    EndPlan { events: run.events, messages: run.messages, deadline }
}

/// How long an event waits for boards that can be reached.
fn event_timeout(arguments: &Arguments) -> Time {
    match (arguments.run.event_timeout, arguments.backend.name) {
        (Some(given), _) => ms(given),
        (None, BackendName::Tcp) => TCP_TIMEOUT,
        (None, _) => BuilderConfig::default().timeout,
    }
}

/// How long events wait for a board of a farm that reports which event it has passed, while it cannot be reached.
fn reporting_outage(run: &RunArguments, over_tcp: bool) -> Result<Option<Time>, String> {
    let outage = run.outage.map_or(Ok(BuilderConfig::default().outage), |given| seconds("--outage", given))?;
    Ok(run.servers.as_ref().filter(|_| !over_tcp).map(|_| outage))
}

/// How long events wait for a board that cannot be reached. Boards of a farm never send again what was under way over a
/// connection that is lost.
fn outage(arguments: &Arguments) -> Result<Time, String> {
    match (arguments.run.outage, &arguments.run.servers) {
        (Some(given), _) => seconds("--outage", given),
        (None, Some(_)) => Ok(ABSENCE.min(event_timeout(arguments))),
        (None, None) => Ok(BuilderConfig::default().outage),
    }
}

/// A time in seconds, which may be 0.
fn seconds(option: &str, value: f64) -> Result<Time, String> {
    match value >= 0.0 && value.is_finite() {
        true => Ok(Time::from_secs_f64(value)),
        false => Err(format!("{option} {value}: must be 0 or above")),
    }
}

/// A time in milliseconds, for options.
fn ms(count: u64) -> Time {
    Time::from_ms(1).saturating_mul(count)
}

fn backend(all: &Arguments, session: &SessionConfig) -> Result<BackendPlan, String> {
    let (arguments, mtu) = (&all.backend, session.mtu);
    Ok(match arguments.name {
        BackendName::Verbs => {
            let by_ip = arguments.ip.map(GidChoice::Address);
            let gid = arguments.gid.or(by_ip).unwrap_or_default();
            let pull = arguments.pull.then(|| pull(all, session)).transpose()?;
            BackendPlan::Verbs(VerbsConfig { device: arguments.device.clone(), gid, mtu: Some(mtu), pull })
        }
        BackendName::Packet => {
            let iface = arguments.iface.clone().ok_or("--backend packet needs --iface, an Ethernet interface")?;
            let (boards, socket) = (session.boards.len(), arguments.socket.unwrap_or(SocketName::Auto).into());
            let pull = arguments.pull.then(|| pull(all, session)).transpose()?;
            BackendPlan::Packet(PacketConfig { iface, ip: arguments.ip, boards, mtu, socket, pull })
        }
        BackendName::Tcp => {
            if session.pool.is_some() {
                return Err("--srq: over TCP each stream has a ring of its own; leave it out".to_owned());
            }
            let boards = session.boards.iter().map(|board| board.ip).collect();
            let ip = arguments.ip.unwrap_or(Ipv4Addr::UNSPECIFIED);
            let port = arguments.port.unwrap_or(TCP_PORT);
            let kept = state_file::file(all.boards.state.as_deref(), ip).map(|mut file| {
                file.as_mut_os_string().push(format!("-port-{port}"));
                file
            });
            BackendPlan::Tcp(TcpConfig { ip, port, boards, bare: all.check.bare, kept })
        }
    })
}

fn files(storage: &StorageArguments) -> RunOptions {
    let default = RunOptions::default();
    let table = match storage.rows {
        Rows::Events => Table::Events,
        Rows::Fragments => Table::Fragments,
    };
    let encoders = storage.encoders.unwrap_or_else(encoders);
    RunOptions {
        writer: WriterOptions { table, row_group_time: Some(ms(storage.flush)), ..default.writer },
        file_bytes: storage.file_size,
        file_time: Some(Time::from_s(1).saturating_mul(storage.file_time)),
        encoders,
        // One for each encoder, one that is written, two that wait.
        row_groups_waiting: encoders.saturating_add(3),
    }
}

/// Half of the cores, at most eight: the others are for the receiving loop, the network and who reads the files.
fn encoders() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new((cores / 2).min(8)).unwrap_or(NonZeroUsize::MIN)
}

fn serving(arguments: &ServingArguments) -> Result<Option<ServingPlan>, String> {
    let Some(given) = arguments.serve.clone() else { return Ok(None) };
    let slow = if arguments.serve_all { SlowConsumer::HoldsBack } else { SlowConsumer::Misses };
    Ok(Some(ServingPlan { at: serve_at(&given)?, given, options: ServeOptions { slow, ..ServeOptions::default() } }))
}

/// An address with a port, or else the path of a Unix socket; `localhost:9000` was not meant as one.
fn serve_at(at: &str) -> Result<ServeAt, String> {
    match at.parse() {
        Ok(address) => Ok(ServeAt::Tcp(address)),
        Err(_) if at.contains(':') && !at.contains('/') => Err(format!(
            "--serve {at}: not an address and port, as in 127.0.0.1:9000; a Unix socket of that name is ./{at}"
        )),
        Err(_) => Ok(ServeAt::Unix(at.into())),
    }
}

fn gpu(arguments: &Arguments) -> Result<Option<GpuPlan>, String> {
    let Some(index) = arguments.gpu.index else { return Ok(None) };
    let task = match (arguments.check.payload.map(PatternName::pattern), &arguments.gpu.gpu_charges) {
        (Some(Pattern::Prbs31 { invert }), _) => GpuTask::Prbs31 { invert },
        (Some(Pattern::Counter), _) => {
            return Err("--gpu compares PRBS-31 only: --payload prbs or prbs-plain".to_owned());
        }
        (None, Some(folder)) => GpuTask::Charges(folder.clone()),
        (None, None) => return Err("--gpu has nothing to do: add --payload prbs, or --gpu-charges FOLDER".to_owned()),
    };
    let batch_bytes = arguments.gpu.gpu_batch;
    let direct = if arguments.backend.pull { GpuDirectChoice::Off } else { arguments.gpu.gpu_direct };
    Ok(Some(GpuPlan { index, direct, task, batch_bytes }))
}

/// `connect`: boards open their connections in any case.
fn boards(arguments: &BoardArguments, connect: bool) -> Result<Vec<Weighted>, String> {
    let opens = if arguments.listen || connect { Opens::Board } else { Opens::We };
    let mut boards = match &arguments.file {
        Some(file) => {
            let Boards { boards } = read_boards(file, opens)?;
            boards
        }
        None => Vec::new(),
    };
    for board in arguments.lists.iter().flat_map(|list| &list.0) {
        let ip = *board.address.0.ip();
        if board.address.0.port() != penstock_ipbus::PORT {
            return Err(format!("{}: queue pairs have no port of their own; give {ip}", board.address));
        }
        boards.push(Weighted { spec: BoardSpec { name: ip.to_string(), ip, opens }, weight: 1 });
    }
    if connect {
        boards.iter_mut().for_each(|board| board.spec.opens = Opens::Board);
    }
    let mut names = HashSet::new();
    if let Some(twice) = boards.iter().map(|board| &board.spec).find(|board| !names.insert(&board.name)) {
        return Err(format!(
            "{} is there twice; sources that are queue pairs of one board need names of their own, in a --file",
            twice.name
        ));
    }
    let is_host = |ip: &Ipv4Addr| !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast());
    if let Some(board) = boards.iter().map(|board| &board.spec).find(|board| !is_host(&board.ip)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_cli_common::arguments::line::{arguments, without_heading};

    fn read(line: &str) -> Result<Plan, String> {
        Plan::read(&arguments(&format!("recv --iface eth0 {line}"))?)
    }

    fn refusal(line: &str) -> String {
        read(line).err().unwrap_or_else(|| panic!("`{line}` was taken"))
    }

    #[test]
    fn an_address_that_is_given_twice_is_refused_by_name() {
        assert_eq!(read("10.0.0.2 10.0.0.3").unwrap().session.boards.len(), 2);
        let message = refusal("10.0.0.2 10.0.0.3 10.0.0.2");
        assert!(message.starts_with("10.0.0.2 is there twice"), "{message}");
    }

    #[test]
    fn an_address_that_is_no_boards_is_refused() {
        for ip in ["0.0.0.0", "224.0.0.1", "239.255.255.255", "255.255.255.255"] {
            let message = refusal(&format!("10.0.0.2 {ip}"));
            assert_eq!(message, format!("{ip}: {ip} is no address of one board"));
        }
    }

    #[test]
    fn a_run_of_no_length_is_refused() {
        for line in ["--seconds 0", "--seconds nan", "--seconds=-1", "--events 0"] {
            let message = refusal(&format!("10.0.0.2 {line}"));
            assert!(message.contains(line.split([' ', '=']).next().unwrap()), "{line}: {message}");
        }
        assert!(read("10.0.0.2 --seconds 0.1 --events 1").is_ok());
    }

    #[test]
    fn the_wait_for_boards_is_any_number_of_seconds() {
        assert_eq!(read("10.0.0.2 --bring-up 2.6").unwrap().session.bring_up, Time::from_ms(2600));
        assert_eq!(read("10.0.0.2 --bring-up 0").unwrap().session.bring_up, Time::ZERO);
        for value in ["-1", "nan", "inf"] {
            assert!(refusal(&format!("10.0.0.2 --bring-up={value}")).starts_with("--bring-up"));
        }
    }

    #[test]
    fn a_slot_that_holds_no_fragment_is_refused_but_for_bare_messages() {
        assert!(refusal("10.0.0.2 --slot-size 40").contains("--slot-size 40"));
        assert!(read("10.0.0.2 --slot-size 41").is_ok());
        assert!(read("10.0.0.2 --slot-size 40 --payload prbs --bare").is_ok());
    }

    #[test]
    fn an_option_of_another_back_end_is_refused() {
        let message = |options: &str| refusal(&format!("10.0.0.2 {options}"));
        assert_eq!(
            message("--backend tcp --mtu 1024"),
            "--mtu: an option of --backend verbs and packet, not of tcp; leave it out"
        );
        assert_eq!(message("--device rxe0"), "--device: an option of --backend verbs, not of packet; leave it out");
        assert_eq!(message("--backend tcp --cm rdma"), "--cm rdma: streams over TCP have no queue pairs");
        assert_eq!(message("--port 10000"), "--port: an option of --backend tcp, not of packet; leave it out");
        for (option, backends) in [("--socket ring", "verbs tcp"), ("--gid 1", "packet tcp"), ("--rnr-timer 10", "tcp")]
        {
            for other in backends.split(' ') {
                let message = message(&format!("--backend {other} {option}"));
                assert!(message.starts_with(option.split(' ').next().unwrap()), "{message}");
            }
        }
        assert!(read("10.0.0.2 --socket ring --mtu 1024 --rnr-timer 10").is_ok());
        assert!(read("10.0.0.2 --backend tcp --port 10001").is_ok());
    }

    #[test]
    fn boards_are_not_read_over_tcp_nor_into_a_gpu() {
        for (line, why) in [
            ("--backend tcp --pull", "--pull: TCP has no RDMA READ"),
            (
                "--backend verbs --pull --window 9000 --gpu 0 --payload prbs --gpu-direct on",
                "--gpu-direct on: with --pull",
            ),
            ("--pull --srq 64", "--srq"),
            ("--pull --bare --payload prbs", "--bare"),
            ("--window 100000", "--pull"),
            ("--pull --line none", "give --line 10Gbps, or --window"),
        ] {
            let message = refusal(&format!("10.0.0.2 {line}"));
            assert!(message.contains(why), "{line}: {message}");
        }
        let plan = read("10.0.0.2 --pull --line 25Gbps --slots 100").unwrap();
        assert!(plan.line.is_none(), "boards that are read have no shares");
        let BackendPlan::Packet(PacketConfig { pull: Some(pull), .. }) = plan.backend else { panic!() };
        assert_eq!((pull.boards, pull.slots, pull.window), (1, 100, PullWindow::OfLine(Rate::from_gbps(25))));
        assert_eq!((pull.ack_timeout, read_timer(ms(5000)), read_timer(ms(1))), (14, 17, 4));
        let plan = read("10.0.0.2 --backend verbs --pull --window 9000").unwrap();
        let BackendPlan::Verbs(VerbsConfig { pull: Some(pull), .. }) = plan.backend else { panic!() };
        assert_eq!(pull.window, PullWindow::Bytes(9000));
        let plan = read("10.0.0.2 --pull --window 100000").unwrap();
        let BackendPlan::Packet(PacketConfig { pull: Some(pull), .. }) = plan.backend else { panic!() };
        assert_eq!(pull.window, PullWindow::Bytes(100_000));
    }

    #[test]
    fn boards_are_lists_as_for_ctl() {
        let ips = |line: &str| -> Vec<String> {
            boards(&arguments::<Arguments>(&format!("recv {line}")).unwrap().boards, false)
                .unwrap()
                .iter()
                .map(|board| board.spec.ip.to_string())
                .collect()
        };
        assert_eq!(ips("10.0.0.2-4 localhost,10.0.0.9"), ["10.0.0.2", "10.0.0.3", "10.0.0.4", "127.0.0.1", "10.0.0.9"]);
        assert!(refusal("10.0.0.2:50003").contains("no port of their own; give 10.0.0.2"));
        assert!(refusal("10.0.0.2 10.0.0.1-3").contains("10.0.0.2 is there twice"));
    }

    #[test]
    fn files_are_as_on_the_command_line() {
        let line = "10.0.0.2 --out run --rows fragments --file-size 7MB --file-time 3s --encoders 3 --flush 50";
        let files = read(line).unwrap().files;
        assert_eq!((files.writer.table, files.file_bytes), (Table::Fragments, 7_000_000));
        assert_eq!(files.file_time, Some(Time::from_s(3)));
        assert_eq!(files.writer.row_group_time, Some(Time::from_ms(50)));
        assert_eq!((files.encoders.get(), files.row_groups_waiting.get()), (3, 6));
    }

    #[test]
    fn a_name_with_a_port_is_no_unix_socket() {
        assert_eq!(serve_at("127.0.0.1:9000"), Ok(ServeAt::Tcp(([127, 0, 0, 1], 9000).into())));
        assert!(matches!(serve_at("/run/events"), Ok(ServeAt::Unix(_))));
        assert!(matches!(serve_at("./localhost:9000"), Ok(ServeAt::Unix(_))));
        assert!(serve_at("localhost:9000").unwrap_err().contains("./localhost:9000"));
    }

    #[test]
    fn every_option_is_under_a_heading_of_the_help() {
        assert_eq!(without_heading::<Arguments>(), None);
    }
}
