// SPDX-License-Identifier: Apache-2.0
//! The output of commands: the terminal, standard output, the folder of results.

mod print;
pub mod results;
pub mod screen;
pub mod table;

pub use print::{print, to_verdict};
