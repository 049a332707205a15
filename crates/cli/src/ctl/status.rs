// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl status`: who is there.

use super::arguments::BoardArguments;
use super::faults::Faults;
use super::get::named;
use super::session::Session;
use crate::outcome::{Failure, Verdict};
use crate::output::table::{columns, terminal_width};
use crate::output::{print, screen::say};
use penstock_ipbus::map::{find, Place, Scale, Unit, MAP_HASH};
use penstock_ipbus::regs::{cc, counters, global, port, qp, source};
use penstock_ipbus::{Access, AccessError, Identity, Request, Unfit};
use serde_json::{json, Value};
use std::net::Ipv4Addr;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    boards: BoardArguments,
}

/// What a board is doing.
struct Status {
    board: usize,
    identity: Identity,
    mac: String,
    ip: Ipv4Addr,
    link: &'static str,
    source_runs: bool,
    /// State of each queue pair, by name.
    queue_pairs: Vec<String>,
    messages_done: u32,
    qp_errors: u32,
    frames_lost: u32,
    operator: Option<Ipv4Addr>,
    /// Rate at which a flow of group 0 begins, where that is less than the line: the share that the board was told.
    share: Option<String>,
}

/// Counters whose sum says that frames of ours or for us were lost.
const LOST: [u32; 4] = [counters::RX_FCS_ERRORS, counters::RX_BAD_FRAMES, counters::TX_UNDERRUNS, counters::TX_DROPPED];

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut session = Session::open(&arguments.boards)?;
    let mut faults = Faults::default();
    let mut silent = 0;
    for board in &session.boards {
        match &board.identity {
            Err(Unfit::Silent(AccessError::Silent { .. })) if board.listed.is_sought => silent += 1,
            Err(why) => faults.push(board.listed.address, None, why),
            Ok(_) => {}
        }
    }
    let found = read(&mut session, &mut faults)?;
    if arguments.boards.link.json {
        let boards: Vec<Value> = found.iter().map(|status| as_json(&session, status)).collect();
        let all = json!({
            "map_hash": format!("0x{MAP_HASH:08X}"), "boards": boards, "silent_addresses": silent, "faults": faults.json(),
        });
        faults.tell();
        return Ok(print(all, verdict(&session, &faults)));
    }
    faults.tell();
    if silent > 0 {
        say(format_args!("{silent} addresses of ranges and networks are silent"));
    }
    let verdict = verdict(&session, &faults);
    if found.is_empty() {
        say("no board was found");
        return Ok(verdict);
    }
    let header = [
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
    let rows: Vec<Vec<String>> = found.iter().map(|status| row(&session, status)).collect();
    Ok(print(columns(&header, &rows, 6, terminal_width()), verdict))
}

/// Nothing found is a fault also where nothing had to be there.
fn verdict(session: &Session, faults: &Faults) -> Verdict {
    if session.fit().next().is_none() {
        return Verdict::Fault;
    }
    faults.verdict()
}

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
    let lost = LOST.map(Access::read);
    let states = (0..identity.build.queue_pairs).map(|row| Access::read(qp::BASE + row * qp::STRIDE + qp::STATE));
    let rates = [cc::RATE_LINE, cc::RATE_START].map(|offset| Access::read(cc::BASE + offset));
    single.into_iter().chain(lost).chain(states).chain(rates).collect()
}

fn read(session: &mut Session, faults: &mut Faults) -> Result<Vec<Status>, Failure> {
    let fit: Vec<(usize, Identity)> = session.fit().collect();
    let requests: Vec<_> = fit.iter().map(|(board, identity)| (*board, request(identity))).collect();
    let mut found = Vec::new();
    for ((board, identity), outcome) in fit.into_iter().zip(session.run(&requests)?) {
        match outcome {
            Ok(words) => found.push(status(board, identity, &words)),
            Err(error) => {
                let (register, message) = named(&error);
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
    let (pauses, faults) = (one(1) & global::LINK_STATUS_TX_PAUSED_MASK != 0, one(2));
    let link = match () {
        () if faults & port::LINK_LOCAL_FAULT_MASK != 0 => "no signal",
        () if faults & port::LINK_REMOTE_FAULT_MASK != 0 => "peer has no signal",
        () if pauses => "up, paused",
        () => "up",
    };
    let state = place("qp[0].state.state", identity);
    let named = |word: u32| state.map_or(word.to_string(), |place| place.show(place.number(&[word]), scale));
    let lost = &words[7..7 + LOST.len()];
    let [line, start] = [2, 1].map(|back| words[words.len() - back][0]);
    Status {
        board,
        identity,
        mac: mac.unwrap_or_default(),
        ip: Ipv4Addr::from_bits(words[0][2]),
        link,
        source_runs: one(3) & source::STATUS_RUNNING_MASK != 0,
        queue_pairs: words[7 + LOST.len()..words.len() - 2].iter().map(|word| named(word[0])).collect(),
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
fn states(queue_pairs: &[String]) -> String {
    let mut counted: Vec<(&String, usize)> = Vec::new();
    for state in queue_pairs {
        match counted.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counted.push((state, 1)),
        }
    }
    counted.sort_by_key(|(state, _)| (*state == "reset", state.as_str()));
    counted.iter().map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

fn row(session: &Session, status: &Status) -> Vec<String> {
    let identity = &status.identity;
    vec![
        session.address(status.board).to_string(),
        format!("{} {}", status.ip, status.mac),
        format!("{} {}, {} queue pairs", identity.version_text(), identity.line_rate(), identity.build.queue_pairs),
        status.link.to_owned(),
        if status.source_runs { "runs" } else { "" }.to_owned(),
        states(&status.queue_pairs),
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
            "ring_bytes": identity.ring_bytes,
        },
        "link": status.link,
        "source_runs": status.source_runs,
        "queue_pairs": status.queue_pairs,
        "messages_done": status.messages_done,
        "qp_errors": status.qp_errors,
        "frames_lost": status.frames_lost,
        "share": status.share,
        "operator": status.operator.map(|ip| ip.to_string()),
    })
}
