// SPDX-License-Identifier: Apache-2.0
//! Failed requests, by board and register.

use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::screen::notify;
use penstock_ipbus::change::{Fault, FaultKind};
use penstock_ipbus::BoardAddress;
use serde_json::{json, Value};

/// All of a command.
#[derive(Debug, Default)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    pub fn push(&mut self, board: BoardAddress, register: Option<String>, message: impl ToString) {
        self.0.push(Fault { board, kind: FaultKind::Other, register, message: message.to_string() });
    }

    pub fn verdict(&self) -> Verdict {
        if self.0.is_empty() {
            Verdict::Verified
        } else {
            Verdict::Fault
        }
    }

    /// Prints them to standard error, equal ones of many boards in one line.
    pub fn print(&self) {
        let mut listed: Vec<(&Fault, Vec<BoardAddress>)> = Vec::new();
        for fault in &self.0 {
            let is_like = |other: &&mut (&Fault, Vec<BoardAddress>)| {
                other.0.message == fault.message && other.0.register == fault.register
            };
            match listed.iter_mut().find(is_like) {
                Some((_, boards)) => boards.push(fault.board),
                None => listed.push((fault, vec![fault.board])),
            }
        }
        for (fault, boards) in listed {
            let register = fault.register.as_ref().map_or(String::new(), |register| format!(" {register}:"));
            let message = &fault.message;
            match boards.as_slice() {
                [board] => notify(format_args!("{board}:{register} {message}")),
                [first, rest @ ..] => notify(format_args!("{first} and {} more:{register} {message}", rest.len())),
                [] => {}
            }
        }
    }

    pub fn json(&self) -> Value {
        let all = self.0.iter();
        all.map(|fault| json!({"board": fault.board.to_string(), "register": fault.register, "message": fault.message}))
            .collect()
    }
}
