// SPDX-License-Identifier: Apache-2.0
//! What the commands of `penstock` share: argument types, verdicts, output, interrupts, the live page.

// They panic where the other end of a pipe has gone; `output::screen::notify` and `output::print` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod arguments;
pub mod interrupt;
pub mod live;
pub mod outcome;
pub mod output;
