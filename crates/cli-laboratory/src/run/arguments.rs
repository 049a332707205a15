// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock run`.

use penstock_cli_common::live::LiveOptions;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// Scenario file (TOML)
    pub scenario: PathBuf,
    /// Folder for summary.json, trace.parquet, events.parquet, capture.pcapng and the plots
    #[arg(long, default_value = "out")]
    pub out: PathBuf,
    /// Replace the results of another scenario or command in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Set a key of the scenario, as in cc.law=off or link.loss=1e-3; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the summary as JSON instead of tables
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Do not draw plots and do not write report.html
    #[arg(long)]
    pub no_plots: bool,
    #[command(flatten)]
    pub live: LiveOptions,
}
