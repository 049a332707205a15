// SPDX-License-Identifier: Apache-2.0
//! The language of scenario files: TOML with units, every key checked, every value traced to its line or its `--set`.
//! Promise: everything that is wrong is reported at once with file, line, key, value and what is allowed; a key that was
//! renamed is refused with its new name.
//! What the keys mean is said by those who read them: `read` (networks), `SwitchScenario` (the switch of a live board).

pub(crate) mod document;
mod error;
pub(crate) mod keys;
mod kind;
mod origin;
pub(crate) mod reader;
pub(crate) mod renamed;

pub use error::{Problem, ScenarioError};
pub use kind::ScenarioKind;
