// SPDX-License-Identifier: Apache-2.0
//! The commands that the Python package answers: sweeps over parameters, the search for good ones, the papers' figures.
//! Promise: arguments, signals and the exit status are those of the Python process, which takes the place of this one.

use crate::screen::say;
use crate::{plots, Verdict};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// `python -m penstock` with words instead of a traceback where a package is missing.
const PROGRAM: &str = "
import sys
try:
    from penstock.__main__ import main
    status = main()
except ModuleNotFoundError as error:
    wanted = 'requirements.txt (`make setup`), or set PENSTOCK_PYTHON to a Python that has it'
    print(f'error: {sys.executable} has no {error.name}; install {wanted}', file=sys.stderr)
    status = 2
sys.exit(status)
";

/// What follows the name of the command; Python reads it, `--help` included.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    all: Vec<OsString>,
}

/// Becomes `python -m penstock COMMAND ARGUMENTS`; returns only if that cannot be started. The points of a sweep are
/// run by this same executable.
pub fn become_python(command: &str, arguments: &Arguments) -> Verdict {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = plots::interpreter(&repo);
    let mut process = Command::new(&python);
    process.args(["-c", PROGRAM, command]).args(&arguments.all).env("PYTHONPATH", python_path(&repo));
    if let Ok(own) = std::env::current_exe() {
        process.env("PENSTOCK", own);
    }
    let error = process.exec();
    say(format_args!(
        "error: cannot run {}: {error}; set PENSTOCK_PYTHON to a Python with requirements.txt",
        python.display()
    ));
    Verdict::Refused
}

/// The package first, then what the user has.
fn python_path(repo: &Path) -> OsString {
    let given = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let others = std::env::split_paths(&given).filter(|folder| !folder.as_os_str().is_empty());
    let folders = std::iter::once(repo.join("python")).chain(others);
    std::env::join_paths(folders).unwrap_or_else(|_| repo.join("python").into())
}
