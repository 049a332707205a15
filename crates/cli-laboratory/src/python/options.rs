// SPDX-License-Identifier: Apache-2.0
//! The options of the commands implemented in Python, for the manual and the completions; the parsers are in Python.
//! Promise: they are those of `penstock COMMAND --help` (tests/test_command.py).

use clap::{Arg, ArgAction, Command, ValueHint};

/// Name, the value's name (none: a flag), help.
type Described = (&'static str, Option<&'static str>, &'static str);

const SWEEP: [Described; 7] = [
    ("set", Some("KEY=VALUE[,VALUE...]"), "One value sets a key, several sweep it"),
    ("out", Some("OUT"), "Folder for the tables and the points [default: out/sweep]"),
    ("jobs", Some("JOBS"), "Processes at a time [default: one for each core]"),
    ("dask", Some("tcp://HOST:PORT"), "Scheduler of a Dask cluster"),
    ("keep", None, "Keep the traces of every point"),
    ("overwrite", None, "Replace the tables of another scenario in that folder"),
    ("quiet", None, "No progress bar"),
];
const TUNE: [Described; 8] = [
    (
        "objective",
        Some("NAME[,NAME...]"),
        "To be made small, several together: fairness, event-time, queue, pause-free, goodput [default: fairness]",
    ),
    (
        "set",
        Some("KEY=VALUE[,VALUE...]"),
        "One value sets a key in every run; several are searched, instead of the default space",
    ),
    ("trials", Some("TRIALS"), "Runs [default: 40]"),
    ("seed", Some("SEED"), "Of the search [default: 1]"),
    ("out", Some("OUT"), "Folder for the results [default: out/tune]"),
    ("jobs", Some("JOBS"), "Processes at a time [default: one for each core]"),
    ("overwrite", None, "Replace the results of another scenario in that folder"),
    ("quiet", None, "No progress bar"),
];
const FIGURES: [Described; 6] = [
    ("out", Some("OUT"), "Folder [default: out/figures]"),
    ("docs", None, "Write the tables into docs/measured"),
    ("check", None, "Exit status 1 if docs/measured has other numbers"),
    ("sampled", Some("FOLDER"), "AdvCam 12 to 14 of boards that `penstock ctl sample` has read"),
    ("board", Some("ADDRESS"), "Of --sampled: the board of figures 13 and 14 [default: the first]"),
    ("queue-pair", Some("N"), "Of --sampled [default: the first]"),
];

/// `command` with these options in place of the words that are handed to Python.
pub fn described(command: Command) -> Command {
    let scenario = || Arg::new("scenario").required(true).value_hint(ValueHint::FilePath).help("Scenario file");
    let names = Arg::new("names").value_name("NAME").num_args(0..).help("Figures; all when none is given");
    command
        .mut_subcommand("sweep", |command| page(Command::new("sweep").arg(scenario()), &command, &SWEEP))
        .mut_subcommand("tune", |command| page(Command::new("tune").arg(scenario()), &command, &TUNE))
        .mut_subcommand("figures", |command| page(Command::new("figures").arg(names), &command, &FIGURES))
}

fn page(page: Command, command: &Command, options: &[Described]) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let json = Arg::new("json").short('J').long("json").action(ArgAction::SetTrue).help("Print the results as JSON");
    let options = options.iter().map(|&(name, value, help)| {
        let option = Arg::new(name).long(name).help(help);
        match value {
            Some(value) if name == "out" => option.value_name(value).value_hint(ValueHint::DirPath),
            Some(value) => option.value_name(value),
            None => option.action(ArgAction::SetTrue),
        }
    });
    page.about(about).args(options).arg(json)
}
