// SPDX-License-Identifier: Apache-2.0
//! The errors of a scenario, worded so that the user can correct them.
//! Promise: each error names the place, the key, the value and the allowed values; all errors of a file are reported
//! at once.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::origin::Origin;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `file:line`, or the `--set` option.
    pub place: String,
    /// Dotted path of the key; empty when the file as a whole is meant.
    pub key: String,
    /// The value as written.
    pub value: Option<String>,
    /// The error and the allowed values.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(origin: &Origin, key: &str, value: Option<&str>, message: String) -> Self {
        let value = value.filter(|text| !text.is_empty()).map(str::to_owned);
        Problem { place: origin.to_string(), key: key.to_owned(), value, message }
    }
}

impl Problem {
    /// A problem with a line of another file.
    pub(crate) fn at(place: String, message: String) -> Self {
        Problem { place, key: String::new(), value: None, message }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match &self.value {
            _ if self.key.is_empty() => {}
            Some(value) => write!(f, "{} = {}: ", self.key, value)?,
            None => write!(f, "{}: ", self.key)?,
        }
        f.write_str(&self.message)
    }
}

/// A scenario that cannot be run.
#[derive(Debug)]
pub enum ScenarioError {
    /// The file cannot be read.
    Io { path: PathBuf, source: io::Error },
    /// The file is wrong in at least one place.
    Invalid(Vec<Problem>),
}

impl ScenarioError {
    pub(crate) fn one(problem: Problem) -> Self {
        ScenarioError::Invalid(vec![problem])
    }

    /// Adds these warnings after the problems, which they may explain.
    pub(crate) fn with_warnings(self, warnings: Vec<Problem>) -> Self {
        let note = |warning: Problem| Problem { message: format!("warning: {}", warning.message), ..warning };
        match self {
            ScenarioError::Invalid(problems) => {
                ScenarioError::Invalid(problems.into_iter().chain(warnings.into_iter().map(note)).collect())
            }
            error => error,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScenarioError::Io { path, source } => write!(f, "cannot read scenario {}: {source}", path.display()),
            ScenarioError::Invalid(problems) => {
                for (index, problem) in problems.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    write!(f, "{separator}{problem}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ScenarioError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ScenarioError::Io { source, .. } => Some(source),
            ScenarioError::Invalid(_) => None,
        }
    }
}
