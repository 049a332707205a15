// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl status`: shows which boards answer, and their state.

mod sweep;

use super::arguments::LinkArguments;
use super::faults::Faults;
use super::session::Session;
use super::streams::{self, BoardStreams, Stream};
use crate::board_list::BoardList;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::table::{columns, terminal_width};
use penstock_cli_common::output::{print, screen::notify};
use penstock_ipbus::map::{find, Place, Scale, Unit, MAP_HASH};
use penstock_ipbus::regs::{cc, counters, global, port, qp, source};
use penstock_ipbus::{Access, AccessError, BoardAddress, Identity, Options, Request, Unfit, PORT};
use penstock_units::ByteSize;
use serde_json::{json, Value};
use std::net::{Ipv4Addr, SocketAddrV4};
use sweep::Sweep;

#[derive(clap::Args)]
pub struct Arguments {
    /// 10.0.0.2, 10.0.0.2:50001, 10.0.0.2-10.0.0.9, 10.0.0.0/24, @FILE with one of these a line; several with commas
    #[arg(value_name = "BOARDS", required_unless_present = "arp")]
    boards: Option<BoardList>,
    /// Find boards by ARP at this interface: of BOARDS, or of its whole network; needs root or CAP_NET_RAW
    #[arg(long, value_name = "INTERFACE")]
    arp: Option<String>,
    #[command(flatten)]
    link: LinkArguments,
}

/// The activity of a board.
struct Status {
    board: usize,
    identity: Identity,
    options: Options,
    mac: String,
    ip: Ipv4Addr,
    link: &'static str,
    source_runs: bool,
    /// State of each queue pair, by name.
    queue_pairs: Vec<String>,
    streams: Vec<Stream>,
    messages_done: u32,
    qp_errors: u32,
    frames_lost: u32,
    operator: Option<Ipv4Addr>,
    /// Rate at which a flow of group 0 begins, where that is less than the line: the share that was set at the board.
    share: Option<String>,
}

/// Counters whose sum shows that frames from or to us were lost.
const LOST: [u32; 4] = [counters::RX_FCS_ERRORS, counters::RX_BAD_FRAMES, counters::TX_UNDERRUNS, counters::TX_DROPPED];

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let listed = arguments.boards.as_ref().map(|boards| boards.0.as_slice());
    let patience = arguments.link.patience;
    let sweep = arguments.arp.as_ref().map(|name| sweep::of(name, listed, patience)).transpose()?;
    let targets = sweep.as_ref().map(|sweep| sweep.found.as_slice()).or(listed).unwrap_or_default();
    let mut session = Session::of(targets, &arguments.link)?;
    let mut faults = sweep.as_ref().map(of_sweep).unwrap_or_default();
    let mut silent = Vec::new();
    for board in &session.boards {
        match &board.identity {
            Err(Unfit::Silent(AccessError::Silent { .. })) if board.listed.is_sought => {
                silent.push(board.listed.address.to_string());
            }
            Err(why) => faults.push(board.listed.address, None, why),
            Ok(_) => {}
        }
    }
    let found = read(&mut session, &mut faults)?;
    if arguments.link.json {
        let boards: Vec<Value> = found.iter().map(|status| as_json(&session, status)).collect();
        let mut all = json!({
            "map_hash": format!("0x{MAP_HASH:08X}"), "boards": boards, "silent_addresses": silent.len(),
            "faults": faults.json(),
        });
        if let Some(Sweep { interface, targets, found, .. }) = &sweep {
            all["arp"] = json!({
                "interface": interface, "asked": targets, "answers": found.len(), "no_boards": silent,
            });
        }
        faults.print();
        return Ok(print(all, verdict(&session, &faults)));
    }
    faults.print();
    match &sweep {
        Some(sweep) => notify(summary(sweep, &silent)),
        None if !silent.is_empty() => {
            notify(format_args!("{} addresses of ranges and networks are silent", silent.len()));
        }
        None => {}
    }
    let verdict = verdict(&session, &faults);
    if found.is_empty() {
        notify("no board was found");
        return Ok(verdict);
    }
    let table = table(&session, &found);
    Ok(print(if found.len() > 1 { format!("{}\n\n{table}", overview(&found)) } else { table }, verdict))
}

/// "300 boards: 298 up, 2 no signal; 1190 queue pairs rts, 10 err; failed messages at 2, lost frames at 1"
fn overview(found: &[Status]) -> String {
    let links: Vec<String> = found.iter().map(|status| status.link.to_owned()).collect();
    let queue_pairs: Vec<String> = found.iter().flat_map(|status| status.queue_pairs.iter().cloned()).collect();
    let mut parts = vec![format!("{} boards: {}", found.len(), counted(&links))];
    if !queue_pairs.is_empty() {
        parts.push(format!("queue pairs: {}", counted(&queue_pairs)));
    }
    let faulty = |what: &str, count: fn(&Status) -> u32| match found.iter().filter(|status| count(status) > 0).count() {
        0 => None,
        boards => Some(format!("{what} at {boards}")),
    };
    parts.extend(faulty("failed messages", |status| status.qp_errors));
    parts.extend(faulty("lost frames", |status| status.frames_lost));
    parts.join("; ")
}

/// A line for each board.
fn table(session: &Session, found: &[Status]) -> String {
    let mut header = vec![
        "board",
        "name on the net",
        "build",
        "link",
        "source",
        "queue pairs",
        "messages",
        "failed",
        "lost",
        "share",
        "operator",
    ];
    let mut rows: Vec<Vec<String>> = found.iter().map(|status| row(session, status)).collect();
    if found.iter().any(|status| !status.streams.is_empty()) {
        header.insert(STREAMS_AT, "streams");
        rows.iter_mut().zip(found).for_each(|(row, status)| row.insert(STREAMS_AT, of_streams(&status.streams)));
    }
    columns(&header, &rows, 6, terminal_width())
}

/// Column of the streams, if a board has some.
const STREAMS_AT: usize = 6;

/// The faults of boards found by a sweep.
fn of_sweep(sweep: &Sweep) -> Faults {
    let mut faults = Faults::default();
    for board in &sweep.missing {
        faults.push(*board, None, format!("no answer to ARP at {}", sweep.interface));
    }
    for (ip, who) in &sweep.shared {
        let board = BoardAddress(SocketAddrV4::new(*ip, PORT));
        faults.push(board, None, format!("{who}; give each an address of its own"));
    }
    faults
}

/// "eth1: 254 addresses asked, 4 answer ARP; no IPbus at 10.0.0.1"
fn summary(sweep: &Sweep, silent: &[String]) -> String {
    const NAMED: usize = 4;
    let Sweep { interface, targets, found, .. } = sweep;
    let more = silent.len().saturating_sub(NAMED);
    let suffix = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = silent[..silent.len() - more].join(", ");
    let no_ipbus = if named.is_empty() { String::new() } else { format!("; no IPbus at {named}{suffix}") };
    format!("{interface}: {targets} addresses asked, {} answer ARP{no_ipbus}", found.len())
}

/// Nothing found is a fault also where nothing had to be there.
fn verdict(session: &Session, faults: &Faults) -> Verdict {
    if session.fit().next().is_none() {
        return Verdict::Fault;
    }
    faults.verdict()
}

/// Place in `request` of the first register with the build's options, and of the counters of lost frames.
const OPTIONS_AT: usize = 7;
const LOST_AT: usize = OPTIONS_AT + Options::REGISTERS.len();

fn request(identity: &Identity) -> Request {
    let single = [
        Access::Read { address: global::LOCAL_MAC_HI, count: 3 },
        Access::read(global::LINK_STATUS),
        Access::read(port::LINK),
        Access::read(source::STATUS),
        Access::read(counters::MESSAGES_DONE),
        Access::read(counters::QP_ERRORS),
        Access::Read { address: global::OPERATOR_IP, count: 3 },
    ];
    let options = Options::REGISTERS.map(Access::read);
    let lost = LOST.map(Access::read);
    let states = (0..identity.build.queue_pairs).map(|row| Access::read(qp::BASE + row * qp::STRIDE + qp::STATE));
    let rates = [cc::RATE_LINE, cc::RATE_START].map(|offset| Access::read(cc::BASE + offset));
    single.into_iter().chain(options).chain(lost).chain(states).chain(rates).collect()
}

fn read(session: &mut Session, faults: &mut Faults) -> Result<Vec<Status>, Failure> {
    let fit: Vec<(usize, Identity)> = session.fit().collect();
    let requests: Vec<_> = fit.iter().map(|(board, identity)| (*board, request(identity))).collect();
    let mut found = Vec::new();
    let mut counts = Vec::new();
    for ((board, identity), outcome) in fit.into_iter().zip(session.run(&requests)?) {
        match outcome {
            Ok(words) => {
                let status = status(board, identity, &words);
                counts.push((board, status.options.streams));
                found.push(status);
            }
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(session.address(board), register, message);
            }
        }
    }
    counts.retain(|(_, streams)| *streams > 0);
    for BoardStreams { board, streams } in streams::read(session, &counts)? {
        match streams {
            Ok(streams) => {
                found
                    .iter_mut()
                    .filter(|status| status.board == board)
                    .for_each(|status| status.streams = streams.clone());
            }
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(session.address(board), register, message);
            }
        }
    }
    Ok(found)
}

fn status(board: usize, identity: Identity, words: &[Vec<u32>]) -> Status {
    let scale = identity.scale();
    let one = |at: usize| words[at][0];
    let mac = place("local_mac", identity).map(|place| place.show(place.number(&[words[0][1], words[0][0]]), scale));
    let (pauses, faults) = (global::LINK_STATUS_TX_PAUSED_BITS.of(one(1)) != 0, one(2));
    let link = match () {
        () if port::LINK_LOCAL_FAULT_BITS.of(faults) != 0 => "no signal",
        () if port::LINK_REMOTE_FAULT_BITS.of(faults) != 0 => "peer has no signal",
        () if pauses => "up, paused",
        () => "up",
    };
    let state = place("qp[0].state.state", identity);
    let named = |word: u32| state.map_or(word.to_string(), |place| place.show(place.number(&[word]), scale));
    let lost = &words[LOST_AT..LOST_AT + LOST.len()];
    let [line, start] = [2, 1].map(|back| words[words.len() - back][0]);
    Status {
        board,
        identity,
        options: Options::of(std::array::from_fn(|register| one(OPTIONS_AT + register))),
        mac: mac.unwrap_or_default(),
        ip: Ipv4Addr::from_bits(words[0][2]),
        link,
        source_runs: source::STATUS_RUNNING_BITS.of(one(3)) != 0,
        queue_pairs: words[LOST_AT + LOST.len()..words.len() - 2].iter().map(|word| named(word[0])).collect(),
        streams: Vec::new(),
        messages_done: one(4),
        qp_errors: one(5),
        frames_lost: lost.iter().fold(0, |sum, word| sum.wrapping_add(word[0])),
        share: (0 < start && start < line).then(|| scale.show(Unit::Rate, start.into())),
        operator: (words[6][1] != words[6][2]).then(|| Ipv4Addr::from_bits(words[6][0])),
    }
}

fn place(name: &str, identity: Identity) -> Option<Place> {
    find(name, identity.build).ok()?.into_iter().next()
}

/// "3 rts, 1 reset"
fn counted(states: &[String]) -> String {
    let mut counted: Vec<(&String, usize)> = Vec::new();
    for state in states {
        match counted.iter_mut().find(|(other, _)| *other == state) {
            Some((_, count)) => *count += 1,
            None => counted.push((state, 1)),
        }
    }
    counted.sort_by_key(|(state, _)| (*state == "reset", state.as_str()));
    counted.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

/// "2 established to 10.0.0.1:10000, 12MB; 1 closed (refused)"
fn of_streams(streams: &[Stream]) -> String {
    let mut groups: Vec<(String, usize, u64)> = Vec::new();
    for stream in streams {
        // A stream without a configured receiver has none to name.
        let to = if stream.peer.port() == 0 { String::new() } else { format!(" to {}", stream.peer) };
        let text = format!("{}{to}", stream.state_text());
        match groups.iter_mut().find(|(other, ..)| *other == text) {
            Some((_, count, bytes)) => (*count, *bytes) = (*count + 1, *bytes + stream.bytes_acked),
            None => groups.push((text, 1, stream.bytes_acked)),
        }
    }
    let group = |(text, count, bytes): &(String, usize, u64)| match bytes {
        0 => format!("{count} {text}"),
        _ => format!("{count} {text}, {}", ByteSize(*bytes)),
    };
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// ", QCN, source, 2 inputs, triggers"
fn parts(options: &Options, queue_pairs: u32) -> String {
    let inputs = format!("{} inputs", options.inputs);
    let parts = [
        (queue_pairs > 0 && !options.retransmission, "no retransmission"),
        (options.qcn, "QCN"),
        (options.source, "source"),
        (options.inputs > 0, inputs.as_str()),
        (options.hook, "hook"),
        (options.streaming, "streaming"),
        (options.triggers, "triggers"),
    ];
    parts.iter().filter(|(has, _)| *has).map(|(_, part)| format!(", {part}")).collect()
}

fn stream_json(stream: &Stream) -> Value {
    json!({
        "state": stream.state_text(),
        "peer": stream.peer.to_string(),
        "bytes_acked": stream.bytes_acked,
        "ring_fill": stream.ring_fill,
        "round_trip_us": stream.round_trip_us,
    })
}

fn row(session: &Session, status: &Status) -> Vec<String> {
    let identity = &status.identity;
    let of = |count: usize, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
    let connections = format!("{}{}", of(status.queue_pairs.len(), "queue pairs"), of(status.streams.len(), "streams"));
    let parts = parts(&status.options, identity.build.queue_pairs);
    vec![
        session.address(status.board).to_string(),
        format!("{} {}", status.ip, status.mac),
        format!("{} {}{connections}{parts}", identity.version_text(), identity.line_rate()),
        status.link.to_owned(),
        if status.source_runs { "runs" } else { "" }.to_owned(),
        counted(&status.queue_pairs),
        status.messages_done.to_string(),
        status.qp_errors.to_string(),
        status.frames_lost.to_string(),
        status.share.clone().unwrap_or_default(),
        status.operator.map_or(String::new(), |ip| format!("{ip} changes it")),
    ]
}

fn as_json(session: &Session, status: &Status) -> Value {
    let identity = &status.identity;
    let Scale { clock_khz } = identity.scale();
    json!({
        "board": session.address(status.board).to_string(),
        "mac": status.mac,
        "ip": status.ip.to_string(),
        "version": identity.version_text(),
        "build": {
            "data_width": identity.data_width, "queue_pairs": identity.build.queue_pairs, "clock_khz": clock_khz,
            "streams": status.options.streams, "ring_bytes": identity.ring_bytes,
            "qcn": status.options.qcn, "source": status.options.source, "services": status.options.services,
            "inputs": status.options.inputs, "hook": status.options.hook, "streaming": status.options.streaming,
            "triggers": status.options.triggers, "retransmission": status.options.retransmission,
        },
        "link": status.link,
        "source_runs": status.source_runs,
        "queue_pairs": status.queue_pairs,
        "streams": status.streams.iter().map(stream_json).collect::<Vec<_>>(),
        "messages_done": status.messages_done,
        "qp_errors": status.qp_errors,
        "frames_lost": status.frames_lost,
        "share": status.share,
        "operator": status.operator.map(|ip| ip.to_string()),
    })
}
