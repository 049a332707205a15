// SPDX-License-Identifier: Apache-2.0
//! `penstock check`: verifies stored runs, and completes files that a killed receiver left.
//! Promise: exit status 0 only if every stored byte is right and no event is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use penstock_farm::Tables;
use penstock_readout::{
    recover_file, recover_folder, verify_file, FileReport, PartCounts, Recovered, Servers, StoreError, PARTIAL,
};
use serde::Serialize;

use crate::servers_file::{read_tables, servers};
use penstock_cli_common::arguments::pattern::PatternName;
use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::print;
use penstock_cli_common::output::screen::notify;
use penstock_cli_common::output::table::{columns, terminal_width};

/// The maximum number of listed gaps in the event numbers.
const GAPS_SHOWN: usize = 20;

#[derive(clap::Args)]
pub struct Arguments {
    /// Event files, or folders of them; folders of several servers are one run together
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// First complete files that a killed receiver has left open (*.partial)
    #[arg(long)]
    recover: bool,
    /// What payloads must be, source by source
    #[arg(long, value_enum)]
    payload: Option<PatternName>,
    /// Events without all their sources are no fault
    #[arg(long)]
    allow_incomplete: bool,
    /// File of the servers that shared the run, as for `penstock recv`: says whose the missing events were
    #[arg(long, value_name = "FILE")]
    servers: Option<PathBuf>,
    /// Event numbers that are not there are no fault: a part of a run
    #[arg(long)]
    allow_gaps: bool,
    /// Events in more than one file are no fault if they are equal there: a receiver that was restarted stores what
    /// boards send again
    #[arg(long)]
    allow_twice: bool,
    /// Print JSON instead of tables
    #[arg(short = 'J', long)]
    json: bool,
}

/// Numbers `from` to `to`, both included, that no file holds.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Gap {
    from: u64,
    to: u64,
}

/// The events that one server has not stored.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct MissingOf {
    /// None: no server was left to take them.
    server: Option<u16>,
    events: u64,
    /// The numbers of the first million.
    numbers: Vec<u64>,
}

#[derive(Serialize)]
struct Report {
    verified: bool,
    /// Why it is not verified, each with what allows it if something does; empty if it is.
    reasons: Vec<String>,
    recovered: Vec<Recovered>,
    /// Files that were not closed; `--recover` completes them.
    unfinished: Vec<PathBuf>,
    files: Vec<FileReport>,
    /// The run by the file of servers; none without it. The end is the event after the last one, none if the run has not ended.
    run: Option<String>,
    begin: Option<u64>,
    end: Option<u64>,
    /// Where the file of servers has no end of the run: nobody knows of the events from here on.
    not_known_from: Option<u64>,
    /// Event numbers missing between the first and the last of all files, or of the run.
    events_missing: u64,
    gaps: Vec<Gap>,
    /// The same events one by one, by their server; none without `--servers`.
    missing_of: Option<Vec<MissingOf>>,
    misplaced: Misplaced,
    /// Events that more than one file holds.
    events_twice: u64,
    /// Events whose copies differ: other sources, or other payloads.
    events_differing: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Verdict {
    match check(arguments) {
        Ok(report) => {
            let json = || serde_json::to_string_pretty(&report).expect("a report has only plain keys");
            let verdict = if report.verified { Verdict::Verified } else { Verdict::Fault };
            print(if arguments.json { json() } else { text(&report) }, verdict)
        }
        Err(refusal) => {
            notify(format_args!("error: {refusal}"));
            Verdict::Refused
        }
    }
}

/// Files that were found, those that were not closed apart.
#[derive(Default)]
struct Found {
    recovered: Vec<Recovered>,
    files: BTreeSet<PathBuf>,
    unfinished: Vec<PathBuf>,
}

impl Found {
    fn of(arguments: &Arguments) -> Result<Found, String> {
        let mut found = Found::default();
        for path in &arguments.paths {
            if !path.exists() {
                return Err(format!("{}: there is no such file or folder", path.display()));
            }
            if arguments.recover {
                found.recovered.extend(recover(path).map_err(|error| error.to_string())?);
            }
            for file in event_files(path, &found.recovered)? {
                match file.to_string_lossy().ends_with(PARTIAL) {
                    true => found.unfinished.push(file),
                    false => drop(found.files.insert(file)),
                }
            }
        }
        match found.files.is_empty() && found.unfinished.is_empty() && found.recovered.is_empty() {
            true => Err("no events*.parquet is there; name files, or folders that hold some".to_owned()),
            false => Ok(found),
        }
    }
}

fn check(arguments: &Arguments) -> Result<Report, String> {
    let Found { recovered, files, unfinished } = Found::of(arguments)?;
    let tables = arguments.servers.as_deref().map(read_tables).transpose()?;
    let pattern = arguments.payload.map(PatternName::pattern);
    // The decoder panics at some damaged pages: the report has them, standard error need not.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let files: Vec<FileReport> = files.iter().map(|file| verify_file(file, pattern)).collect();
    std::panic::set_hook(hook);
    let events = |file: &FileReport| file.numbers.iter().copied().zip(file.digests.iter().copied()).collect::<Vec<_>>();
    let mut events: Vec<(u64, u32)> = files.iter().flat_map(events).collect();
    events.sort_unstable();
    let differs = |pair: &&[(u64, u32)]| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1;
    let events_differing = events.windows(2).filter(differs).count() as u64;
    let numbers: Vec<u64> = events.into_iter().map(|(number, _)| number).collect();
    let span = tables.as_ref().map_or(Span::default(), |t| Span { begin: Some(t.begin()), end: t.end() });
    let holes = holes(&numbers, span);
    let events_missing = holes.iter().map(|hole| hole.end - hole.start).sum();
    let events_twice = numbers.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    let shown = holes.iter().take(GAPS_SHOWN).map(|hole| Gap { from: hole.start, to: hole.end - 1 });
    let gaps = shown.collect();
    let misplaced = tables.as_ref().map_or_else(Misplaced::default, |tables| Misplaced::of(tables, &files));
    let missing_of = tables.as_ref().map(|tables| missing_of(&servers(tables), &holes));
    let mut report = Report {
        verified: false,
        reasons: Vec::new(),
        recovered,
        unfinished,
        files,
        run: tables.as_ref().map(|tables| tables.run().to_owned()),
        begin: span.begin,
        end: span.end,
        not_known_from: span.not_known_from(&numbers),
        events_missing,
        gaps,
        missing_of,
        misplaced,
        events_twice,
        events_differing,
    };
    report.reasons = reasons(&report, arguments);
    report.verified = report.reasons.is_empty();
    Ok(report)
}

/// Why the files are not what a run should leave; a sentence each.
fn reasons(report: &Report, arguments: &Arguments) -> Vec<String> {
    let sum = |of: &dyn Fn(&FileReport) -> u64| report.files.iter().map(of).sum::<u64>();
    let incomplete = if arguments.allow_incomplete { 0 } else { sum(&|file| file.events_incomplete) };
    let parts = if arguments.allow_incomplete { 0 } else { sum(&|file| file.parts.lost()) };
    let missing = if arguments.allow_gaps { 0 } else { report.events_missing };
    let twice = if arguments.allow_twice { 0 } else { report.events_twice };
    let Misplaced { files, nameless, events, outside } = report.misplaced;
    let reasons = [
        (report.unfinished.len() as u64, "files were not closed (--recover completes them)"),
        (sum(&|file| file.problems), "problems in files"),
        (incomplete, "events lack sources (--allow-incomplete: that is no fault)"),
        (parts, "parts of fragments are missing, cut or stopped (--allow-incomplete: that is no fault)"),
        (missing, "events are missing (--allow-gaps: that is no fault)"),
        (files, "files are of another run than the file of servers"),
        (nameless, "files do not say of which run they are"),
        (events, "events are in the files of a server that they did not belong to"),
        (outside, "events are before the begin of the run, or after its end"),
        (twice, "events are in more than one file (--allow-twice: that is no fault where they are equal)"),
        (report.events_differing, "events are in more than one file, and differ there"),
    ];
    let reasons = reasons.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let nothing =
        (report.files.is_empty() && report.unfinished.is_empty()).then(|| "no file with events is left".to_owned());
    reasons.chain(nothing).collect()
}

fn recover(path: &Path) -> Result<Vec<Recovered>, StoreError> {
    match (path.is_dir(), path.to_string_lossy().ends_with(PARTIAL)) {
        (true, _) => recover_folder(path),
        (false, true) => Ok(vec![recover_file(path)?]),
        (false, false) => Ok(Vec::new()),
    }
}

/// The files of a path; a recovered `.partial` is represented by the resulting file.
fn event_files(path: &Path, recovered: &[Recovered]) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        let became = recovered.iter().find(|recovered| recovered.partial == path);
        return Ok(became.map_or_else(|| vec![path.into()], |became| became.file.iter().cloned().collect()));
    }
    let fail = |error: std::io::Error| format!("{}: cannot be listed: {error}", path.display());
    let entries = std::fs::read_dir(path).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let is_event_file = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("events") && (name.ends_with(".parquet") || name.ends_with(&format!(".parquet{PARTIAL}")))
    };
    Ok(entries.into_iter().map(|entry| entry.path()).filter(is_event_file).collect())
}

/// The first event of a run, and the one after its last, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    begin: Option<u64>,
    end: Option<u64>,
}

impl Span {
    /// The event after the last stored one, where it is known that the run has begun and not that it has ended.
    fn not_known_from(self, numbers: &[u64]) -> Option<u64> {
        let begin = self.begin.filter(|_| self.end.is_none())?;
        Some(numbers.last().map_or(begin, |last| begin.max(last.saturating_add(1))))
    }
}

/// What is where it does not belong, by the file of servers.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Misplaced {
    /// Files of another run, and files that name none.
    files: u64,
    nameless: u64,
    /// Events in files of other servers than their own.
    events: u64,
    /// Events that the run does not have.
    outside: u64,
}

impl Misplaced {
    fn of(tables: &Tables, files: &[FileReport]) -> Misplaced {
        let servers = servers(tables);
        let mut found = Misplaced::default();
        for file in files {
            match &file.run {
                Some(run) => found.files += u64::from(run != tables.run()),
                None => found.nameless += u64::from(!tables.run().is_empty()),
            }
            let is_outside = |event: &u64| *event < tables.begin() || tables.end().is_some_and(|end| *event >= end);
            let is_foreign = |event: &u64| servers.server_of(*event) != file.server;
            found.outside += file.numbers.iter().filter(|event| is_outside(event)).count() as u64;
            if file.server.is_some() {
                let inside = file.numbers.iter().filter(|event| !is_outside(event));
                found.events += inside.filter(|event| is_foreign(event)).count() as u64;
            }
        }
        found
    }
}

/// The numbers between ascending ones, and up to them from the begin and on to the end, that are not there.
fn holes(numbers: &[u64], span: Span) -> Vec<Range<u64>> {
    let begin = span.begin.or(numbers.first().copied()).unwrap_or(0);
    let end = span.end.or(numbers.last().map(|last| last + 1)).unwrap_or(begin);
    let (mut holes, mut next) = (Vec::new(), begin);
    for &number in numbers.iter().chain([&end]) {
        if number > next {
            holes.push(next..number.min(end.max(next)));
        }
        next = next.max(number.saturating_add(1));
    }
    holes.retain(|hole| !hole.is_empty());
    holes
}

/// The owners of the numbers that are not there.
fn missing_of(servers: &Servers, holes: &[Range<u64>]) -> Vec<MissingOf> {
    let mut by_server = BTreeMap::<Option<u16>, MissingOf>::new();
    for event in holes.iter().cloned().flatten() {
        let server = servers.server_of(event);
        let missing = by_server.entry(server).or_insert(MissingOf { server, events: 0, numbers: Vec::new() });
        missing.events += 1;
        if missing.numbers.len() < 1_000_000 {
            missing.numbers.push(event);
        }
    }
    by_server.into_values().collect()
}

fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    for Recovered { file, partial, row_groups, rows, bytes_dropped } in &report.recovered {
        lines.push(match file {
            Some(file) => format!(
                "recovered {}: {row_groups} row groups, {rows} rows; {bytes_dropped} bytes behind them dropped",
                file.display()
            ),
            None => format!("removed {}: no row group had been written", partial.display()),
        });
    }
    if !report.files.is_empty() {
        lines.push(table(&report.files));
    }
    for file in &report.files {
        if let Some(program) = &file.rewritten_by {
            lines.push(format!("{}: rewritten by {program}: only payloads have a checksum", file.file.display()));
        }
        for problem in &file.described {
            let place = [
                problem.row_group.map(|group| format!("row group {group}")),
                problem.row.map(|row| format!("row {row}")),
                problem.event.map(|event| format!("event {event}")),
                problem.source.map(|source| format!("source {source}")),
            ];
            let place: Vec<String> =
                std::iter::once(file.file.display().to_string()).chain(place.into_iter().flatten()).collect();
            lines.push(format!("{}: {}", place.join(", "), problem.what));
        }
        if file.problems > file.described.len() as u64 {
            lines.push(format!("{}: {} problems in all", file.file.display(), file.problems));
        }
    }
    lines
        .extend(report.unfinished.iter().map(|file| format!("{}: not closed; --recover completes it", file.display())));
    lines.extend(report.gaps.iter().map(|Gap { from, to }| format!("events {from} to {to} are in no file")));
    for MissingOf { server, events, numbers } in report.missing_of.iter().flatten() {
        let shown: Vec<String> = numbers.iter().take(GAPS_SHOWN).map(u64::to_string).collect();
        let more = if numbers.len() > GAPS_SHOWN { ", ... (all of them: --json)" } else { "" };
        let whose = match server {
            Some(server) => format!("server {server} has not stored {events} events"),
            None => format!("{events} events came while no server was left"),
        };
        lines.push(format!("{whose}: {}{more}", shown.join(", ")));
    }
    if let Some(from) = report.not_known_from {
        let run = report.run.as_deref().filter(|run| !run.is_empty()).map_or(String::new(), |run| format!(" {run}"));
        lines.push(format!(
            "events from {from} on of run{run}: not known, as the file of servers has no end of the run. `penstock farm \
             --end` ends it; if it was abandoned, the next `penstock farm --begin` says before which event"
        ));
    }
    lines.push(match report.verified {
        true => "verified".to_owned(),
        false => format!("NOT verified: {}", report.reasons.join("; ")),
    });
    lines.join("\n")
}

/// How many there are, and how many of each fault.
fn parts(counts: &PartCounts) -> String {
    let PartCounts { missing, cut, stopped, dropped, trigger_differs, .. } = *counts;
    let faults = [
        (missing, "missing"),
        (cut, "cut"),
        (stopped, "stopped"),
        (dropped, "after dropped ones"),
        (trigger_differs, "of another trigger"),
    ];
    let faults = faults.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    format!("{}{}", counts.all, faults.collect::<String>())
}

fn table(files: &[FileReport]) -> String {
    let header =
        ["file", "schema", "row groups", "events", "incomplete", "fragments", "parts", "payload [MB]", "problems"];
    let row = |file: &FileReport| {
        vec![
            file.file.display().to_string(),
            file.schema.clone().unwrap_or_else(|| "-".to_owned()),
            file.row_groups.to_string(),
            file.events.to_string(),
            file.events_incomplete.to_string(),
            file.fragments.to_string(),
            parts(&file.parts),
            format!("{:.3}", file.payload_bytes as f64 / 1e6),
            file.problems.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = files.iter().map(row).collect();
    columns(&header, &rows, 2, terminal_width())
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_farm::{Change, Mark};

    #[test]
    #[allow(clippy::single_range_in_vec_init)] // ranges are what it is about
    fn events_that_are_not_there_are_found_between_others_and_at_both_ends_of_the_run() {
        let of = |begin, end| holes(&[3, 4, 4, 5, 8, 10], Span { begin, end });
        assert_eq!(of(None, None), [6..8, 9..10]);
        assert_eq!(of(Some(0), None), [0..3, 6..8, 9..10], "what nobody has stored at the begin");
        assert_eq!(of(Some(2), Some(14)), [2..3, 6..8, 9..10, 11..14], "and at the end");
        assert_eq!(of(Some(4), Some(7)), [6..7], "what is outside of the run is no gap");
        assert_eq!(holes(&[], Span::default()), []);
        let unknown_from = |numbers: &[u64], begin, end| Span { begin, end }.not_known_from(numbers);
        assert_eq!(unknown_from(&[3, 10], Some(2), None), Some(11));
        assert_eq!(unknown_from(&[], Some(2), None), Some(2), "nothing was stored");
        assert_eq!(unknown_from(&[3, 10], Some(2), Some(14)), None, "all that is missing is named");
        assert_eq!(unknown_from(&[3, 10], None, None), None, "there is no file of servers");
        assert_eq!(holes(&[], Span { begin: Some(5), end: Some(7) }), [5..7]);
    }

    #[test]
    fn missing_events_are_listed_one_by_one_for_the_server_that_owned_them() {
        let mut servers = Servers::new(3).unwrap();
        servers.take_out(1, 6).unwrap();
        let missing = |servers: &Servers| missing_of(servers, &holes(&[0, 0, 2, 3, 5, 9], Span::default()));
        let of = |server, numbers: &[u64]| MissingOf { server, events: numbers.len() as u64, numbers: numbers.into() };
        assert_eq!(missing(&servers), [of(Some(0), &[6, 8]), of(Some(1), &[1, 4]), of(Some(2), &[7])]);
        servers.change(8, Vec::new()).unwrap();
        assert_eq!(missing(&servers)[0], of(None, &[8]));
    }

    #[test]
    fn files_of_another_run_and_events_of_another_server_are_found() {
        let mut tables = Tables::new("a".into(), vec![0, 1]);
        assert!(tables.announce(Change { first: 4, live: vec![0, 1], mark: Mark::Begin }));
        assert!(tables.announce(Change { first: 9, live: vec![], mark: Mark::End }));
        let file = |run: Option<&str>, server, numbers: &[u64]| FileReport {
            run: run.map(str::to_owned),
            server,
            numbers: numbers.into(),
            ..FileReport::default()
        };
        let found = |files: &[FileReport]| Misplaced::of(&tables, files);
        assert_eq!(
            found(&[file(Some("a"), Some(0), &[4, 6, 8]), file(Some("a"), Some(1), &[5, 7])]),
            Misplaced::default()
        );
        let wrong = [file(Some("b"), Some(0), &[3, 4, 5]), file(None, None, &[6, 7, 9])];
        assert_eq!(found(&wrong), Misplaced { files: 1, nameless: 1, events: 1, outside: 2 });
    }
}
