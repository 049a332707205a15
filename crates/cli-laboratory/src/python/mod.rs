// SPDX-License-Identifier: Apache-2.0
//! The commands implemented in Python: sweeps over parameters and the search for good ones are in the package
//! `penstock`, the papers' figures in the folder `figures/`.
//! Promise: arguments, signals and the exit status are those of the Python process, which replaces this one.

mod home;
mod options;

pub use home::Home;
pub use options::described;

use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::screen::notify;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `python -m MODULE` with words instead of a traceback where a package is missing. The module is its first argument.
const PROGRAM: &str = "
import importlib, sys
try:
    status = importlib.import_module(sys.argv.pop(1) + '.__main__').main()
except ModuleNotFoundError as error:
    wanted = '`make setup` in a clone of the repository, or pip install \"penstock[plots,sweep,tune]\"'
    print(f'error: {sys.executable} has no {error.name}: {wanted}, or set PENSTOCK_PYTHON to a Python that has it',
          file=sys.stderr)
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
pub fn become_package(command: &str, arguments: &Arguments) -> Verdict {
    let home = Home::find();
    let path = home.python_path(&["python"]);
    become_python(&home, &["penstock", command], arguments, path)
}

/// Becomes `python -m figures ARGUMENTS`; returns only if that cannot be started, or if there are no figures.
pub fn become_figures(arguments: &Arguments) -> Verdict {
    let home = Home::find();
    match figures(&home) {
        Ok(()) => become_python(&home, &["figures"], arguments, home.python_path(&["python", "."])),
        Err(error) => {
            notify(format_args!("error: {error}"));
            Verdict::Refused
        }
    }
}

/// Whether the papers' figures are there, in a clone of the repository or installed; says what to do if not.
fn figures(home: &Home) -> Result<(), String> {
    match home.shared("figures/__main__.py") {
        Some(_) => Ok(()),
        None => Err("`penstock figures` runs scenarios of its own, which this executable was not installed with: \
             pip install penstock, or use the `penstock` that `make build` makes in a clone of the repository"
            .to_owned()),
    }
}

fn become_python(home: &Home, module: &[&str], arguments: &Arguments, path: OsString) -> Verdict {
    let python = home.interpreter();
    let mut process = Command::new(python);
    process.args(["-c", PROGRAM]).args(module).args(&arguments.all).env("PYTHONPATH", path);
    if let Ok(executable) = std::env::current_exe() {
        process.env("PENSTOCK", executable);
    }
    let error = process.exec();
    notify(format_args!(
        "error: cannot run {}: {error}; set PENSTOCK_PYTHON to a Python with the package penstock",
        python.display()
    ));
    Verdict::Refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_the_checkout_that_the_executable_lies_in() {
        assert_eq!(figures(&Home::find()), Ok(()));
    }
}
