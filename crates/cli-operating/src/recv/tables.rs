// SPDX-License-Identifier: Apache-2.0
//! The output of `penstock recv`: start-up lines, missing boards, the final table with perftest's columns.
//! Promise: a run is called good only if every board came up and every fragment and event was right.

use super::plan::{BackendPlan, Plan};
use penstock_cli_common::output::table::{columns, terminal_width};
use penstock_readout::backend::{LocalAddress, TcpConfig};
use penstock_readout::session::{BoardReport, BoardState, PoolSize, SessionReport, IN_ERROR};
use penstock_readout::{PatternPlace, PatternReport, RingCounters, SourceCounters};
use std::borrow::Cow;

/// More boards than this are not listed one by one.
const LISTED: usize = 32;
/// Boards that are down for the same reason are reported together from this number on.
const ALIKE: usize = 5;

pub fn opening(plan: &Plan, address: &LocalAddress) -> String {
    let config = &plan.session;
    let (count, slot_bytes) = (config.boards.len(), config.slot_bytes);
    let megabytes = |slots: f64| slots * f64::from(slot_bytes) / 1e6;
    let memory = match config.pool {
        Some(PoolSize { slots, copies }) => {
            let (pool, more) = (megabytes(f64::from(slots)), megabytes(f64::from(copies)));
            format!("one pool of {slots} x {slot_bytes} bytes ({pool:.1} MB; copies out of it: {copies}, {more:.1} MB)")
        }
        None => {
            let all = megabytes(f64::from(config.slots) * count as f64);
            format!("rings of {} x {slot_bytes} bytes ({all:.1} MB in all)", config.slots)
        }
    };
    let s = if count == 1 { "" } else { "s" };
    format!("{}, polling {}; {count} board{s} with {memory}", receives_at(plan, address), config.poll)
}

fn receives_at(plan: &Plan, address: &LocalAddress) -> String {
    match &plan.backend {
        BackendPlan::Tcp(TcpConfig { ip, port, .. }) if ip.is_unspecified() => {
            format!("TCP at port {port} of each of this machine's addresses")
        }
        BackendPlan::Tcp(TcpConfig { ip, port, .. }) => format!("TCP at {ip}, port {port}"),
        BackendPlan::Verbs(_) | BackendPlan::Packet(_) => {
            let device = plan.nic.as_deref().unwrap_or("RDMA device");
            let gid = std::net::Ipv6Addr::from(address.gid);
            format!("{device}: address {}, GID {gid} (RoCEv2), MTU {}", address.ip, plan.session.mtu.bytes())
        }
    }
}

/// Which boards are up after so long; a line for each that is not, or for many of which the same is known.
pub fn brought_up(report: &SessionReport) -> Vec<String> {
    let missing: Vec<&BoardReport> = report.boards.iter().filter(|board| board.state != BoardState::Up).collect();
    let (count, all) = (report.boards.len() - missing.len(), report.boards.len());
    let mut lines = vec![format!("{count} of {all} boards are up after {:.1} s", report.seconds)];
    let missing = alike(missing.into_iter().map(with_reason));
    lines.extend(missing.into_iter().map(|(names, why)| format!("not up: {names}: {why}")));
    lines
}

/// Boards of which the same is to be said: their names, and what. Of each its name, what it is called where it stands
/// alone, and what is to be reported of it; a few are listed one by one.
pub fn alike(boards: impl IntoIterator<Item = (String, String, String)>) -> Vec<(String, String)> {
    let mut groups: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for (name, called, what) in boards {
        match groups.iter_mut().find(|(other, _)| *other == what) {
            Some((_, group)) => group.push((name, called)),
            None => groups.push((what, vec![(name, called)])),
        }
    }
    let mut listed = Vec::new();
    for (what, group) in groups {
        if group.len() < ALIKE {
            listed.extend(group.into_iter().map(|(_, called)| (called, what.clone())));
        } else {
            let names: Vec<String> = group.into_iter().map(|(name, _)| name).collect();
            listed.push((format!("{} boards ({})", names.len(), names.join(", ")), what));
        }
    }
    listed
}

/// A board's name, what it is called alone, and why it is not up.
fn with_reason(board: &BoardReport) -> (String, String, String) {
    (board.name.clone(), called(board), why(board).into_owned())
}

/// A board by its name, and by its address where that is another.
fn called(board: &BoardReport) -> String {
    if board.name == board.ip {
        return board.ip.clone();
    }
    format!("{} ({})", board.name, board.ip)
}

/// Why a board is not up: the message without its address.
pub fn why(board: &BoardReport) -> Cow<'_, str> {
    match (&board.trouble, &board.step) {
        (Some(trouble), _) => {
            let rest = trouble.strip_prefix(&board.ip).and_then(|rest| rest.strip_prefix(": "));
            rest.unwrap_or(trouble).into()
        }
        (None, Some(request)) => format!("has not answered {request} yet").into(),
        (None, None) => "has not asked for a connection".into(),
    }
}

/// Everything that keeps a run from being good; a sentence each. `needs_boards`: a board that never came up does.
pub fn faults(report: &SessionReport, needs_boards: bool) -> Vec<String> {
    let mut faults = faults_of_connections(report, needs_boards);
    faults.extend(faults_of_data(report));
    let left_out = report
        .boards
        .iter()
        .filter(|board| board.lives > 0)
        .filter_map(|board| Some((called(board), board.left_out.as_ref()?)));
    faults.extend(left_out.map(|(name, why)| format!("{name} was left out at the end: {why}")));
    faults.extend(pattern_faults(report));
    if let Some(check) = &report.readout.check {
        if check.fragments_differing > 0 {
            faults.push(format!("{} fragments differ from the reference", check.fragments_differing));
        }
        faults.extend(check.first_difference.map(|difference| format!("first difference: {difference}")));
    }
    faults
}

/// Boards that never came up, or sent nothing, or were refused.
fn faults_of_connections(report: &SessionReport, needs_boards: bool) -> Vec<String> {
    // A message may overtake the last answer of the connection manager.
    let never_up = report.boards.iter().filter(|board| needs_boards && board.lives == 0 && board.messages == 0);
    let mut faults: Vec<String> = alike(never_up.map(with_reason))
        .into_iter()
        .map(|(names, why)| format!("{names} never came up: {why}"))
        .collect();
    // One that came up once and has not failed may have had nothing to send.
    let fruitless = |board: &&BoardReport| match board.lives {
        0 => false,
        1 => board.messages == 0 && board.trouble.is_some(),
        _ => board.messages == 0,
    };
    faults.extend(report.boards.iter().filter(fruitless).map(|board| {
        let times = if board.lives == 1 { "once".to_owned() } else { format!("{} times", board.lives) };
        let trouble = board.trouble.as_ref().map_or(String::new(), |_| format!(": {}", why(board)));
        // Only the board knows of packets that the interface or the network drops for their length; TCP finds it out.
        let is_explained = board.trouble.is_some() && why(board).starts_with(IN_ERROR);
        let hint =
            if is_explained || report.backend == "tcp" { "" } else { "; is its path MTU no longer than ours (--mtu)?" };
        format!("{} came up {times} and sent nothing{trouble}{hint}", called(board))
    }));
    let ended = report.boards.iter().filter(|board| !fruitless(board) && board.lives > 0);
    faults.extend(ended.filter_map(|board| {
        let refused = board.refused.as_ref()?;
        let what = if report.backend == "tcp" { "stream" } else { "queue pair" };
        Some(format!("{}: its {what} was ended: {refused}", called(board)))
    }));
    faults
}

/// Events that are not complete, and messages that are in none.
fn faults_of_data(report: &SessionReport) -> Vec<String> {
    let (builder, readout) = (&report.readout.builder, &report.readout.receiver);
    let mut faults = Vec::new();
    let mut count = |n: u64, what: &str| {
        if n > 0 {
            faults.push(format!("{n} {what}"));
        }
    };
    let lacking = by_board(report, "lacking ", &|events| events.events_missing);
    count(builder.events_incomplete, &format!("events are incomplete{lacking}"));
    count(builder.events_skipped, "events came from no board: all went on with later ones");
    let of = |counter: &dyn Fn(&SourceCounters) -> u64| by_board(report, "of ", counter);
    let crc = of(&|events| events.fragments_crc_error);
    count(readout.fragments_crc_error, &format!("fragments with a wrong CRC-32C{crc}"));
    let malformed = of(&|events| events.fragments_malformed);
    count(readout.fragments_malformed, &format!("messages that are no fragments{malformed}"));
    let wrong = of(&|events| events.fragments_wrong_source);
    let hint = "are the boards in the order of their sources?";
    count(readout.fragments_wrong_source, &format!("fragments with another board's number{wrong}: {hint}"));
    let refused = |of: &dyn Fn(&RingCounters) -> u64| report.readout.rings.iter().map(of).sum::<u64>();
    let slots = "that is not the board's next one: do both ends have the same slots?";
    count(refused(&|ring| ring.completions_refused), &format!("messages in a slot {slots}"));
    count(refused(&|ring| ring.writes_refused), &format!("writes to a slot {slots}"));
    count(builder.duplicates, &format!("fragments came twice{}", of(&|events| events.duplicates)));
    let strays = of(&SourceCounters::strays);
    count(builder.strays(), &format!("fragments were acknowledged and belong to no event{strays}"));
    let apart = of(&|events| events.strays_timestamp);
    let hint = "do the boards have one clock?";
    count(builder.strays_timestamp, &format!("of these have a timestamp that contradicts the event's{apart}: {hint}"));
    faults
}

/// The boards of a total over all boards, those with the largest counts first.
fn by_board(report: &SessionReport, what: &str, count: &dyn Fn(&SourceCounters) -> u64) -> String {
    let mut boards: Vec<(u64, &str)> = report.boards.iter().map(|b| (count(&b.events), b.name.as_str())).collect();
    boards.retain(|(count, _)| *count > 0);
    boards.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let named: Vec<String> = boards.iter().take(ALIKE).map(|(count, name)| format!("{what}{name}: {count}")).collect();
    match boards.len().saturating_sub(ALIKE) {
        0 if named.is_empty() => String::new(),
        0 => format!(" ({})", named.join(", ")),
        more => format!(" ({}, and {more} more boards)", named.join(", ")),
    }
}

/// Faults of test patterns; a run in which nothing was compared proves nothing.
fn pattern_faults(report: &SessionReport) -> Vec<String> {
    let Some(patterns) = &report.readout.pattern else { return Vec::new() };
    let mut faults = Vec::new();
    for (board, found) in report.boards.iter().zip(patterns) {
        let name = &board.name;
        let place = |place: &PatternPlace| {
            let event = place.event.map_or(String::new(), |event| format!(" (event {event})"));
            format!("message {}{event}", place.message)
        };
        if found.messages == 0 {
            faults.push(format!("{name}: no message came to compare with the pattern"));
        }
        if let Some(first) = &found.first_error {
            let (errors, wrong, all) = (found.errors, found.messages_wrong, found.messages);
            let at = format!("{}, byte {}", place(first), first.byte);
            faults.push(format!("{name}: {errors} errors in the pattern of {wrong} of {all} messages, first in {at}"));
        }
        if let Some(first) = &found.first_gap {
            let bytes = match found.first_gap_bytes {
                Some(bytes) if bytes < 0 => format!(", where it goes back by {} bytes", bytes.unsigned_abs()),
                Some(bytes) => format!(", where {bytes} bytes are missing"),
                None => String::new(),
            };
            faults.push(format!("{name}: {} gaps in the pattern, first before {}{bytes}", found.gaps, place(first)));
        }
    }
    faults
}

/// `is_stored`: events go to files.
pub fn closing(report: &SessionReport, is_stored: bool, gpu: Option<String>, faults: &[String]) -> String {
    let mut lines = vec![rates(report), totals(report, is_stored)];
    lines.extend(gpu);
    lines.extend(faults.iter().map(|fault| format!("fault: {fault}")));
    lines.join("\n")
}

/// Frames that were not taken, by the names of their counters; nothing where there were none.
fn dropped(report: &SessionReport) -> String {
    let is_drop = |name: &str| {
        name.starts_with("dropped_")
            || ["rx_dropped", "rx_ring_full", "rx_malformed", "rx_icrc_encapsulated", "rx_foreign_vlan"].contains(&name)
    };
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    let all = report.boards.iter().flat_map(|board| &board.counters).chain(&report.counters);
    for (name, count) in all.filter(|(name, count)| is_drop(name) && **count > 0) {
        *counts.entry(name).or_default() += count;
    }
    let named: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if named.is_empty() {
        String::new()
    } else {
        format!("\nframes dropped: {}", named.join(", "))
    }
}

/// Boards that are up and have sent nothing that is reported, each with its details.
pub fn silent(report: &SessionReport) -> Vec<String> {
    let silent = report.boards.iter().filter(|board| board.state == BoardState::Up && board.messages == 0);
    let silent = silent.map(|board| {
        let of = |name: &str| board.counters.get(name).copied().unwrap_or(0);
        (board, why_silent(of("rcvd_pkts"), of("rx_write_requests"), of("rx_payload_bytes")))
    });
    let mut lines: Vec<String> =
        silent.map(|(board, trouble)| format!("{} is up, and no message has come: {trouble}", called(board))).collect();
    let more = lines.len().saturating_sub(ALIKE);
    lines.truncate(ALIKE);
    if more > 0 {
        lines.push(format!("{more} more boards are up, and no message of theirs has come"));
    }
    lines
}

/// Why no message of a board has come that has sent so much.
fn why_silent(packets: u64, writes: u64, bytes: u64) -> String {
    match (writes, bytes) {
        (0, _) if packets == 0 => "it has sent nothing yet".to_owned(),
        (0, _) => format!("of its {packets} packets none has ended a message"),
        // A gateware's keep-alive is a WRITE without data.
        (signs, 0) => format!("it has sent nothing yet but {signs} signs of life"),
        (writes, _) => format!(
            "its {writes} WRITEs have no immediate, so they end unseen: it must send WRITE WITH IMMEDIATE or SEND \
             (`penstock board --verb write-imm`)"
        ),
    }
}

/// The columns of `ib_write_bw`.
fn rates(report: &SessionReport) -> String {
    let header = ["board", "#bytes", "#messages", "BW average[Gb/sec]", "MsgRate[Mpps]", "retried", "RNR", "lives"];
    let mut rows = Vec::new();
    let seconds = report.readout_seconds;
    let mut row = |name: &str, messages: u64, bytes: u64, counter: &dyn Fn(&str) -> u64, lives: String| {
        let per_s = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        rows.push(vec![
            name.to_owned(),
            bytes.checked_div(messages).unwrap_or(0).to_string(),
            messages.to_string(),
            format!("{:.3}", per_s(bytes) * 8e-9),
            format!("{:.6}", per_s(messages) * 1e-6),
            counter("duplicate_request").to_string(),
            counter("out_of_buffer").to_string(),
            lives,
        ]);
    };
    if report.boards.len() <= LISTED {
        for board in &report.boards {
            let counter = |name: &str| board.counters.get(name).copied().unwrap_or(0);
            row(&board.name, board.messages, board.bytes, &counter, board.lives.to_string());
        }
    }
    let sum = |of: &dyn Fn(&BoardReport) -> u64| report.boards.iter().map(of).sum::<u64>();
    let counter = |name: &str| sum(&|board| board.counters.get(name).copied().unwrap_or(0));
    row("all", sum(&|b| b.messages), sum(&|b| b.bytes), &counter, String::new());
    columns(&header, &rows, 1, terminal_width())
}

/// How many bytes of events there were, and whether they were kept.
pub fn megabytes(bytes: u64, is_stored: bool) -> String {
    let kept = if is_stored { "stored" } else { "received, none stored (no --out)" };
    format!("{:.1} MB {kept}", bytes as f64 / 1e6)
}

fn totals(report: &SessionReport, is_stored: bool) -> String {
    let (builder, readout) = (&report.readout.builder, &report.readout.receiver);
    let busy = if report.seconds > 0.0 { 100.0 * report.cpu_seconds / report.seconds } else { 0.0 };
    let mut text = format!(
        "events {} complete, {} incomplete; {}\npolling {}: CPU {busy:.1} %",
        builder.events_complete,
        builder.events_incomplete,
        megabytes(readout.bytes_stored, is_stored),
        report.poll,
    );
    if let Some(latency) = &report.latency {
        let us = |ns: u64| ns as f64 / 1e3;
        let (median, p99) = (us(latency.median_ns), us(latency.p99_ns));
        text += &format!(", messages handed on after {median:.1} us (median), {p99:.1} us (99 %)");
    }
    text += &dropped(report);
    for (count, place) in
        [(builder.before_begin, "before the first event"), (builder.after_end, "after the last event")]
    {
        if count > 0 {
            text += &format!("\nbetween runs: {count} fragments from {place} of this run are not stored");
        }
    }
    let counted = |name| report.boards.iter().filter_map(|board| board.counters.get(name)).sum::<u64>();
    for (count, place) in [
        (counted("messages_of_last_run"), "of the last run are in this one"),
        (counted("messages_for_next_run"), "that came after the end are kept for the next run"),
        (counted("messages_between_runs"), "are in no run"),
    ] {
        if count > 0 {
            text += &format!("\nbetween runs: {count} messages {place}");
        }
    }
    if let Some(patterns) = &report.readout.pattern {
        let sum = |of: &dyn Fn(&PatternReport) -> u64| patterns.iter().map(of).sum::<u64>();
        let (messages, bytes) = (sum(&|board| board.messages), sum(&|board| board.bytes));
        let (errors, gaps) = (sum(&|board| board.errors), sum(&|board| board.gaps));
        let megabytes = bytes as f64 / 1e6;
        text =
            format!("pattern: {messages} messages, {megabytes:.1} MB compared, {errors} errors, {gaps} gaps\n{text}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(name: &str, trouble: &str) -> BoardReport {
        BoardReport {
            name: name.into(),
            ip: format!("10.0.0.{}", name.len()),
            state: BoardState::Waiting,
            step: None,
            lives: 0,
            queue_pair: 0x11,
            credits: 0,
            slots: 64,
            messages: 0,
            bytes: 0,
            trouble: Some(trouble.into()),
            left_out: None,
            refused: None,
            events: Default::default(),
            counters: Default::default(),
        }
    }

    #[test]
    fn bytes_are_called_stored_where_files_take_them() {
        assert_eq!(megabytes(1_500_000, true), "1.5 MB stored");
        assert_eq!(megabytes(1_500_000, false), "1.5 MB received, none stored (no --out)");
    }

    #[test]
    fn keep_alives_are_not_taken_for_messages_without_an_immediate() {
        assert_eq!(why_silent(0, 0, 0), "it has sent nothing yet");
        assert_eq!(why_silent(3, 0, 8192), "of its 3 packets none has ended a message");
        assert_eq!(why_silent(10, 10, 0), "it has sent nothing yet but 10 signs of life");
        assert!(why_silent(10, 10, 640).starts_with("its 10 WRITEs have no immediate"));
    }

    #[test]
    fn hundreds_of_boards_that_are_not_up_are_a_few_lines_and_none_is_left_out() {
        let mut boards: Vec<BoardReport> = (0..264).map(|k| board(&format!("m{k}"), "no answer to OPEN_QP")).collect();
        boards.insert(7, board("trigger", "no free queue pair"));
        let listed = alike(boards.iter().map(with_reason));
        assert_eq!(listed.len(), 2);
        assert!(
            listed[0].0.starts_with("264 boards (m0, m1, ") && listed[0].0.ends_with(", m262, m263)"),
            "{}",
            listed[0].0
        );
        assert_eq!(listed[1], ("trigger (10.0.0.7)".to_owned(), "no free queue pair".to_owned()));
        assert_eq!(alike(boards.iter().take(3).map(with_reason)).len(), 3, "a few are told one by one");
    }
}
