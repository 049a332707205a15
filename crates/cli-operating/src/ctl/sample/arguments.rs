// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock ctl sample`.

use super::super::arguments::{patience, BoardArguments};
use penstock_units::Time;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub boards: BoardArguments,
    /// Queue pairs, 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0")]
    pub queue_pairs: Vec<u16>,
    /// Time from one sample to the next
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = interval)]
    pub interval: Time,
    /// End after so long [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = patience)]
    pub time: Option<Time>,
    /// Folder of the results
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    pub out: PathBuf,
    /// Replace the results of a scenario in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Serve the live page meanwhile [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8080")]
    pub live: Option<String>,
}

fn interval(text: &str) -> Result<Time, String> {
    match text.parse::<Time>().map_err(|error| error.to_string())? {
        time if time < Time::from_us(100) => Err(format!("{time}: allowed is 100us and more")),
        time => Ok(time),
    }
}
