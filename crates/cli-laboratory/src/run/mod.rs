// SPDX-License-Identifier: Apache-2.0
//! `penstock run`: one scenario, from its file to tables, Parquet files and plots.

mod arguments;
mod board;
mod counters;
mod course;
mod flow_tables;
mod helm;
mod page;
mod parts;
mod plots;
mod pull;
mod pulled;
mod readout;
mod readout_tables;
mod stream;
mod summary;
mod switch;
mod tables;
mod usage;

pub use arguments::Arguments;
pub use parts::Parts;

use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::to_verdict;

/// Runs a scenario; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(course::run(arguments))
}
