// SPDX-License-Identifier: Apache-2.0
//! Former options of commands with their new names.
//! Promise: an option of this list is refused with its new name, not as an unknown option.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::Error;
use std::ffi::OsString;

/// Commands with their options: as they were, as they are.
const RENAMED: [(&str, &str, &str); 5] = [
    ("recv", "--reference", "--data"),
    ("recv", "--slot-bytes", "--slot-size"),
    ("recv", "--rate", "--throughput"),
    ("send", "--events-file", "--data"),
    ("send", "--slot-bytes", "--slot-size"),
];

/// The error of a command line; that of a former option says its new name. `words` begin with the executable.
pub fn explained(error: Error, words: impl IntoIterator<Item = OsString>) -> Error {
    let ErrorKind::UnknownArgument = error.kind() else { return error };
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return error };
    let command = words.into_iter().nth(1).unwrap_or_default();
    let command = command.to_string_lossy();
    match RENAMED.iter().find(|(of, old, _)| *of == command && old == given) {
        Some((_, old, new)) => {
            let message = format!("{old}: this option of `penstock {command}` is {new} now\n");
            Error::raw(ErrorKind::UnknownArgument, message)
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        let words = || line.split(' ').map(OsString::from);
        explained(crate::command().try_get_matches_from(words()).unwrap_err(), words()).to_string()
    }

    #[test]
    fn a_former_option_is_refused_with_its_new_name_which_is_taken() {
        for (command, old, new) in RENAMED {
            for form in [format!("{old} 1"), format!("{old}=1")] {
                let told = refusal(&format!("penstock {command} {form}"));
                assert!(told.contains(&format!("{old}: this option of `penstock {command}` is {new} now")), "{told}");
            }
            let options = crate::command();
            let options = options.find_subcommand(command).unwrap();
            assert!(options.get_arguments().any(|option| option.get_long() == new.strip_prefix("--")), "{new}");
        }
        let told = refusal("penstock send --iface lo --ip 127.0.0.2 --reference x");
        assert!(told.contains("--reference") && !told.contains("now"), "{told}");
    }
}
