// SPDX-License-Identifier: Apache-2.0
//! How a command ends: verified, with a fault, or refused.

use std::process::ExitCode;

/// How a command ended; the exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Done, and everything that could be verified was right.
    Verified,
    /// It ran, and found loss, corruption, an error or an interruption.
    Fault,
    /// The request itself was wrong: nothing ran.
    Refused,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Verified => ExitCode::SUCCESS,
            Verdict::Fault => ExitCode::from(1),
            Verdict::Refused => ExitCode::from(2),
        }
    }
}

/// Why a command did not come to a verdict of its own.
pub enum Failure {
    Refused(String),
    Fault(String),
}

/// An error on the way is a fault; what is a wrong request is mapped to `Refused` where it is met.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Fault(error.to_string())
    }
}
