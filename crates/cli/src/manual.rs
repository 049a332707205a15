// SPDX-License-Identifier: Apache-2.0
//! `penstock completions` and `penstock man`: shell completions and manual pages for packages, made from the options.

use clap_complete::Shell;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::{print, to_verdict};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Completions {
    /// The shell: its file goes where its completions lie, as ~/.local/share/bash-completion/completions/penstock
    shell: Shell,
}

#[derive(clap::Args)]
pub struct Man {
    /// Folder for penstock.1, penstock-run.1 and so on; made where it is missing
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

/// Prints the completions of `command` for a shell.
pub fn completions(arguments: &Completions, mut command: clap::Command) -> Verdict {
    let mut text = Vec::new();
    let name = command.get_name().to_string();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    print(String::from_utf8_lossy(&text).trim_end(), Verdict::Verified)
}

/// Writes a page of the manual for `command` and for each command below it.
pub fn man(arguments: &Man, command: clap::Command) -> Verdict {
    let folder = &arguments.out;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    to_verdict(match written {
        Ok(()) => Ok(Verdict::Verified),
        Err(error) => Err(Failure::Fault(format!("cannot write the manual to {}: {error}", folder.display()))),
    })
}
