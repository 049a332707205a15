// SPDX-License-Identifier: Apache-2.0
//! The arguments that all subcommands of `penstock ctl` share.

use crate::board_list::BoardList;
use penstock_ipbus::change::Manner;
use penstock_units::Time;
use std::path::PathBuf;

/// Which boards, and how they are spoken to.
#[derive(clap::Args)]
pub struct BoardArguments {
    /// 10.0.0.2, 10.0.0.2:50001, 10.0.0.2-10.0.0.9, 10.0.0.0/24, @FILE with one of these a line; several with commas
    #[arg(value_name = "BOARDS")]
    pub boards: BoardList,
    #[command(flatten)]
    pub link: LinkArguments,
}

/// How boards are spoken to, and how the answer is given.
#[derive(clap::Args)]
pub struct LinkArguments {
    /// Time to wait for a silent board
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = patience)]
    pub patience: Time,
    /// Print the answer as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// Options of commands that write.
#[derive(clap::Args)]
pub struct WriteArguments {
    /// Also write registers that break a run (addresses, keys, PSNs, states of queue pairs), and do not wait for another
    /// operator's change
    #[arg(long)]
    pub force: bool,
    /// File that records every write, as JSON lines [default: ~/.local/state/penstock/ctl.jsonl]
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

impl WriteArguments {
    pub fn manner(&self, wait: Time) -> Manner {
        Manner {
            force: self.force,
            wait,
            journal: self.journal.clone(),
            operator: None,
            to_force: "--force",
            to_name_journal: "--journal FILE",
        }
    }
}

pub fn patience(text: &str) -> Result<Time, String> {
    match text.parse::<Time>().map_err(|error| error.to_string())? {
        time if time < Time::from_ms(1) => Err(format!("{time}: allowed is 1ms and more")),
        time => Ok(time),
    }
}
