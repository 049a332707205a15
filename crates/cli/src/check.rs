// SPDX-License-Identifier: Apache-2.0
//! `penstock check`: verifies stored runs, and completes files that a killed receiver left.
//! Promise: exit status 0 only if every stored byte is right and no event is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use penstock_readout::{
    recover_file, recover_folder, verify_file, FileReport, PartCounts, Recovered, Servers, StoreError, PARTIAL,
};
use serde::Serialize;

use crate::arguments::farm::read_servers;
use crate::arguments::pattern::PatternName;
use crate::outcome::Verdict;
use crate::output::print;
use crate::output::screen::say;
use crate::output::table::{columns, terminal_width};

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
    server: u16,
    events: u64,
    /// At most the first million.
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
    /// Event numbers missing between the first and the last of all files.
    events_missing: u64,
    gaps: Vec<Gap>,
    /// The same events one by one, by their server; none without `--servers`.
    missing_of: Option<Vec<MissingOf>>,
    /// Events that more than one file holds.
    events_twice: u64,
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
            say(format_args!("error: {refusal}"));
            Verdict::Refused
        }
    }
}

fn check(arguments: &Arguments) -> Result<Report, String> {
    let mut recovered = Vec::new();
    let mut files = BTreeSet::new();
    let mut unfinished = Vec::new();
    for path in &arguments.paths {
        if !path.exists() {
            return Err(format!("{}: there is no such file or folder", path.display()));
        }
        if arguments.recover {
            recovered.extend(recover(path).map_err(|error| error.to_string())?);
        }
        for file in event_files(path, &recovered)? {
            match file.to_string_lossy().ends_with(PARTIAL) {
                true => unfinished.push(file),
                false => drop(files.insert(file)),
            }
        }
    }
    if files.is_empty() && unfinished.is_empty() && recovered.is_empty() {
        return Err("no events*.parquet is there; name files, or folders that hold some".to_owned());
    }
    let servers = arguments.servers.as_deref().map(read_servers).transpose()?;
    let pattern = arguments.payload.map(PatternName::pattern);
    let files: Vec<FileReport> = files.iter().map(|file| verify_file(file, pattern)).collect();
    let mut numbers: Vec<u64> = files.iter().flat_map(|file| file.numbers.iter().copied()).collect();
    numbers.sort_unstable();
    let (gaps, events_missing, events_twice) = gaps(&numbers);
    let missing_of = servers.map(|servers| missing_of(&servers, &numbers));
    let sum = |of: &dyn Fn(&FileReport) -> u64| files.iter().map(of).sum::<u64>();
    let incomplete = if arguments.allow_incomplete { 0 } else { sum(&|file| file.events_incomplete) };
    let parts = if arguments.allow_incomplete { 0 } else { sum(&|file| file.parts.lost()) };
    let missing = if arguments.allow_gaps { 0 } else { events_missing };
    let reasons = [
        (unfinished.len() as u64, "files were not closed (--recover completes them)"),
        (sum(&|file| file.problems), "problems in files"),
        (incomplete, "events lack sources (--allow-incomplete: that is no fault)"),
        (parts, "parts of fragments are missing, cut or stopped (--allow-incomplete: that is no fault)"),
        (missing, "events are missing between the first and the last (--allow-gaps: that is no fault)"),
        (events_twice, "events are in more than one file"),
    ];
    let reasons = reasons.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let nothing = files.is_empty().then(|| "no file with events is left".to_owned());
    let reasons: Vec<String> = reasons.chain(nothing.filter(|_| unfinished.is_empty())).collect();
    Ok(Report {
        verified: reasons.is_empty(),
        reasons,
        recovered,
        unfinished,
        files,
        events_missing,
        gaps,
        missing_of,
        events_twice,
    })
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

/// The gaps between ascending numbers: the first gaps, the number of missing numbers, the number of duplicates.
fn gaps(numbers: &[u64]) -> (Vec<Gap>, u64, u64) {
    let (mut gaps, mut missing, mut twice) = (Vec::new(), 0, 0);
    for pair in numbers.windows(2) {
        match pair[1] - pair[0] {
            0 => twice += 1,
            1 => {}
            step => {
                missing += step - 1;
                if gaps.len() < GAPS_SHOWN {
                    gaps.push(Gap { from: pair[0] + 1, to: pair[1] - 1 });
                }
            }
        }
    }
    (gaps, missing, twice)
}

/// The owners of the numbers in the gaps between ascending ones.
fn missing_of(servers: &Servers, numbers: &[u64]) -> Vec<MissingOf> {
    let mut by_server = BTreeMap::<u16, MissingOf>::new();
    for event in numbers.windows(2).flat_map(|pair| pair[0] + 1..pair[1].max(pair[0] + 1)) {
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
        lines.push(format!("server {server} has not stored {events} events: {}{more}", shown.join(", ")));
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

    #[test]
    fn gaps_and_doubles_of_event_numbers_are_counted() {
        let gap = |from, to| Gap { from, to };
        assert_eq!(gaps(&[3, 4, 4, 5, 8, 10]), (vec![gap(6, 7), gap(9, 9)], 3, 1));
        assert_eq!(gaps(&[]), (vec![], 0, 0));
    }

    #[test]
    fn missing_events_are_told_one_by_one_of_the_server_whose_they_were() {
        let mut servers = Servers::new(3).unwrap();
        servers.take_out(1, 6).unwrap();
        let missing = missing_of(&servers, &[0, 0, 2, 3, 5, 9]);
        let of = |server, numbers: &[u64]| MissingOf { server, events: numbers.len() as u64, numbers: numbers.into() };
        assert_eq!(missing, [of(0, &[6, 8]), of(1, &[1, 4]), of(2, &[7])]);
    }
}
