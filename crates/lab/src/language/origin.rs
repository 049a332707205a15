// SPDX-License-Identifier: Apache-2.0
//! The origin of a scenario key (file and line, or option), for messages.

use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    File { file: Arc<str>, line: usize },
    Set(Arc<str>),
}

impl Default for Origin {
    fn default() -> Self {
        Origin::File { file: "".into(), line: 0 }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { file, line: 0 } => write!(f, "{file}"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
            Origin::Set(option) => write!(f, "--set {option}"),
        }
    }
}
