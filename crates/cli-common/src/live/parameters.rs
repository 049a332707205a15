// SPDX-License-Identifier: Apache-2.0
//! The parameters that can be changed while boards run.

use std::sync::LazyLock;

use penstock_cc::DcqcnSettings;
use penstock_dashboard::{Parameter, Scope};

const fn of_switch(key: &'static str, label: &'static str, help: &'static str) -> Parameter {
    Parameter { key, label, help, scope: Scope::Run, choices: &[] }
}

/// The parameters that can be changed while boards run: their registers, and the switch's marking.
pub static PARAMETERS: LazyLock<Vec<Parameter>> = LazyLock::new(|| {
    let law = Parameter {
        key: "cc.law",
        label: "Law",
        help: "Who decides the rate: DCQCN, or nobody",
        scope: Scope::Sender,
        choices: &["dcqcn", "off"],
    };
    let of_switch = [
        of_switch("switch.kmin", "K_min", "The switch never marks below this queue: 50KB"),
        of_switch("switch.kmax", "K_max", "It marks every packet above this queue: 200KB"),
        of_switch("switch.pmax", "P_max", "Between them with a probability up to this, 0 to 1"),
    ];
    let of_board = DcqcnSettings::PARAMETERS.iter().filter(|parameter| !parameter.key.is_empty());
    let of_board = of_board.map(|&penstock_cc::Parameter { key, label, help, choices, .. }| Parameter {
        key,
        label,
        help,
        scope: Scope::Sender,
        choices,
    });
    [law].into_iter().chain(of_board).chain(of_switch).collect()
});
