// SPDX-License-Identifier: Apache-2.0
//! The language of scenario files: TOML with units, every key checked, every value traced to its line or its `--set`.
//! Promise: all errors are reported at once with file, line, key, value and allowed values.
//! The readers define the meaning of keys: `read` (networks), `SwitchScenario` (the switch of a live board).

pub(crate) mod document;
mod error;
pub(crate) mod keys;
mod kind;
mod origin;
pub(crate) mod reader;

pub use error::{Problem, ScenarioError};
pub use kind::ScenarioKind;
