// SPDX-License-Identifier: Apache-2.0
//! Writes to standard output, and the message of a command that ends without a verdict.

use super::screen::notify;
use crate::outcome::{Failure, Verdict};
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Prints a report on standard output; the verdict, or a fault where it cannot be written. A reader that has gone, as
/// of `penstock ... | head`, has had enough: that is no fault.
pub fn print(report: impl Display, verdict: Verdict) -> Verdict {
    match writeln!(std::io::stdout(), "{report}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            notify(format_args!("error: cannot write to standard output: {error}"));
            Verdict::Fault
        }
        _ => verdict,
    }
}

/// The verdict of a command; prints what kept it from one of its own.
pub fn to_verdict(result: Result<Verdict, Failure>) -> Verdict {
    let (message, verdict) = match result {
        Ok(verdict) => return verdict,
        Err(Failure::Refused(message)) => (message, Verdict::Refused),
        Err(Failure::Fault(message)) => (message, Verdict::Fault),
    };
    notify(format_args!("error: {message}"));
    verdict
}
