// SPDX-License-Identifier: Apache-2.0
//! The parameters that can be changed while boards run.

use penstock_dashboard::{Parameter, Scope};

const fn of_board(key: &'static str, label: &'static str, help: &'static str) -> Parameter {
    Parameter { key, label, help, scope: Scope::Sender, choices: &[] }
}

const fn of_switch(key: &'static str, label: &'static str, help: &'static str) -> Parameter {
    Parameter { key, label, help, scope: Scope::Run, choices: &[] }
}

const fn choice(parameter: Parameter, choices: &'static [&'static str]) -> Parameter {
    Parameter { choices, ..parameter }
}

/// The parameters that can be changed while boards run: their registers, and the switch's marking.
pub const PARAMETERS: [Parameter; 18] = [
    choice(of_board("cc.law", "Law", "Who decides the rate: DCQCN, or nobody"), &["dcqcn", "off"]),
    of_board("cc.g", "g", "Weight of a new CNP in alpha, three significant bits: 1/256, 5/1024"),
    of_board("cc.rate_ai", "R_AI", "Additive increase of R_T: 40Mbps"),
    of_board("cc.rate_hai", "R_HAI", "Hyper increase of R_T: 100Mbps"),
    of_board("cc.rate_min", "R_min", "R_C never falls below this: 10Mbps"),
    of_board("cc.decrease_interval", "Decrease interval", "At most one cut in this time: 3us"),
    of_board("cc.alpha_interval", "Alpha interval", "Alpha decays after each such time without a CNP: 40us"),
    of_board("cc.increase_interval", "Increase interval", "Recovery events by time: 55us; 0us: none"),
    of_board("cc.byte_threshold", "Byte counter", "Recovery events by bytes sent: 10MB; 0B: none"),
    of_board("cc.stage_threshold", "F", "Recovery events before additive increase, 0 to 15"),
    of_board("cc.hyper_threshold", "Hyper after", "Recovery events before hyper increase (single counter)"),
    choice(
        of_board("cc.stage_counting", "Stage counting", "One counter (AdvCam) or one a trigger (Zhu et al.)"),
        &["single", "per-trigger"],
    ),
    choice(of_board("cc.clamp_target", "Clamp R_T", "A cut lowers the target rate too"), &["true", "false"]),
    choice(
        of_board("cc.hold_timer", "Hold timer", "The increase interval stands still during a pause"),
        &["false", "true"],
    ),
    choice(of_board("cc.restart_timer", "Restart timer", "A cut restarts the increase interval"), &["true", "false"]),
    of_switch("switch.kmin", "K_min", "The switch never marks below this queue: 50KB"),
    of_switch("switch.kmax", "K_max", "It marks every packet above this queue: 200KB"),
    of_switch("switch.pmax", "P_max", "Between them with a probability up to this, 0 to 1"),
];
