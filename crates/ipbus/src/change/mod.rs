// SPDX-License-Identifier: Apache-2.0
//! Changes of boards' registers that are safe to make while others use them.
//!
//! ```text
//!  settings -> plan: what differs -> carry_out: possible, allowed? journal, begin, write, read back, roll back, end
//!  commands -----------------------> command:            journal, begin, write, end
//! ```
//!
//! Promise: commands, Python programs and gateways that change boards through this module make the same checks,
//! announce themselves to other operators, detect other operators, and write a journal line for every word.

mod error;
mod fault;
mod journal;
mod manner;
mod operator;
mod work;
mod writing;

pub use error::ChangeError;
pub use fault::{Fault, FaultKind};
pub use journal::{Entry, Journal, JournalError};
pub use manner::Manner;
pub use operator::local_address;
pub use writing::{carry_out, command, plan, possible, BoardSettings, Command, Plan, Setting, Word};
