// SPDX-License-Identifier: Apache-2.0
//! The arguments that all subcommands of `penstock ctl switch` share.

use crate::board_list::BoardList;
use crate::ctl::arguments::LinkArguments;
use crate::ctl::session::SessionOf;
use penstock_cli_common::outcome::Failure;
use penstock_ipbus::Switch;

/// Which switches, and how they are spoken to.
#[derive(clap::Args)]
pub struct SwitchArguments {
    /// Addresses of switches, as those of boards: 10.0.0.2, 10.0.0.2:50001, 10.0.0.2-10.0.0.9, @FILE; several with commas
    #[arg(value_name = "SWITCHES")]
    pub switches: BoardList,
    #[command(flatten)]
    pub link: LinkArguments,
}

impl SwitchArguments {
    /// Speaks to all switches and identifies them.
    pub fn open(&self) -> Result<SessionOf<Switch>, Failure> {
        SessionOf::of(&self.switches.0, &self.link)
    }
}
