// SPDX-License-Identifier: Apache-2.0
//! Replaces `gpu_check.rs` in a build without the feature `gpu`: names the build that has it.

use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::screen::notify;

/// Why there is no GPU, and what to do.
pub const WITHOUT_GPU: &str = "this penstock was built without GPUs, which are experimental; \
    `cargo build --release -p penstock-cli --features gpu` builds one with them";

#[derive(clap::Args)]
pub struct Arguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _options: Vec<String>,
}

/// Refuses.
pub fn run(_arguments: &Arguments) -> Verdict {
    notify(format_args!("error: gpu-check: {WITHOUT_GPU}"));
    Verdict::Refused
}
