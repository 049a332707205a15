// SPDX-License-Identifier: Apache-2.0
//! The commands implemented in Python: sweeps over parameters and the search for good ones are in the package
//! `penstock`, the papers' figures in the folder `figures/` of a checkout.
//! Promise: arguments, signals and the exit status are those of the Python process, which replaces this one.

mod interpreter;

pub use interpreter::interpreter;

use crate::outcome::Verdict;
use crate::output::screen::say;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `python -m MODULE` with words instead of a traceback where a package is missing. The module is its first argument.
const PROGRAM: &str = "
import importlib, sys
try:
    status = importlib.import_module(sys.argv.pop(1) + '.__main__').main()
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
pub fn become_package(command: &str, arguments: &Arguments) -> Verdict {
    let repo = repository();
    become_python(&repo, &["penstock", command], arguments, python_path([repo.join("python")]))
}

/// Becomes `python -m figures ARGUMENTS`; returns only if that cannot be started, or if the checkout that this command
/// was built from is gone.
pub fn become_figures(arguments: &Arguments) -> Verdict {
    let repo = repository();
    match figures(&repo) {
        Ok(()) => become_python(&repo, &["figures"], arguments, python_path([repo.join("python"), repo.clone()])),
        Err(error) => {
            say(format_args!("error: {error}"));
            Verdict::Refused
        }
    }
}

/// The checkout that this command was built from.
fn repository() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    crates.unwrap_or(Path::new(env!("CARGO_MANIFEST_DIR"))).to_path_buf()
}

/// Whether the repository has the papers' figures; otherwise an error with the remedy.
fn figures(repo: &Path) -> Result<(), String> {
    let program = repo.join("figures/__main__.py");
    if program.is_file() {
        return Ok(());
    }
    Err(format!(
        "{}: no such file; `penstock figures` draws from the checkout it was built in: run the `penstock` that \
         `make build` makes in a clone of the repository",
        program.display()
    ))
}

fn become_python(repo: &Path, module: &[&str], arguments: &Arguments, path: OsString) -> Verdict {
    let python = interpreter(repo);
    let mut process = Command::new(&python);
    process.args(["-c", PROGRAM]).args(module).args(&arguments.all).env("PYTHONPATH", path);
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

/// These folders first, then what the user has.
fn python_path(folders: impl IntoIterator<Item = PathBuf>) -> OsString {
    let given = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let others = std::env::split_paths(&given).filter(|folder| !folder.as_os_str().is_empty());
    let folders: Vec<PathBuf> = folders.into_iter().chain(others).collect();
    std::env::join_paths(&folders).unwrap_or_else(|_| folders[0].clone().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_without_a_checkout_are_refused_with_where_to_get_them() {
        let told = figures(Path::new("/no/checkout")).unwrap_err();
        assert!(told.starts_with("/no/checkout/figures/__main__.py: no such file"), "{told}");
        assert!(told.contains("clone of the repository"), "{told}");
        assert_eq!(figures(&repository()), Ok(()));
    }
}
