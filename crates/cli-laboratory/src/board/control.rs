// SPDX-License-Identifier: Apache-2.0
//! Commands to a running board, a line of standard input each (`--control`): resets of single clock domains, at the
//! moment of the caller's choice.
//! Promise: each line is answered by one line on standard error; what is no command changes nothing.

use super::plan::Plan;
use super::session::Session;
use super::setup::configure;
use penstock_cli_common::outcome::Failure;
use penstock_cli_common::output::screen::notify;
use penstock_wire::gateware::BOARD_INPUTS;
use serde::Serialize;
use std::io::BufRead;
use std::sync::mpsc::{channel, Receiver};

/// What was done so far.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Resets {
    pub front_end: u64,
    /// A value for each detector input.
    inputs: [u64; BOARD_INPUTS],
    /// Fragments that were lost with their digitisers.
    fragments_lost: usize,
}

/// What has a reset of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Domain {
    FrontEnd,
    Input(usize),
}

/// The lines that have come.
pub struct Control {
    lines: Receiver<String>,
    resets: Resets,
}

impl Control {
    /// Reads standard input from here on.
    pub fn open() -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = std::io::stdin().lock().lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
        });
        Self { lines, resets: Resets::default() }
    }

    /// Does what was asked for since the last call.
    ///
    /// # Errors
    /// The front end cannot be set up again.
    pub fn turn(&mut self, session: &mut Session, plan: &Plan) -> Result<(), Failure> {
        while let Ok(line) = self.lines.try_recv() {
            match domain_of(&line).and_then(|domain| may_reset(domain, plan)) {
                Ok(Domain::Input(input)) => {
                    let lost = session.board.board().reset_input(input);
                    self.resets.inputs[input] += 1;
                    self.resets.fragments_lost += lost;
                    notify(format_args!("input {input} was reset; its digitiser has lost {lost} fragments"));
                }
                Ok(Domain::FrontEnd) => {
                    reset(session, plan)?;
                    self.resets.front_end += 1;
                    notify("the front end was reset and set up again");
                }
                Err(why) => notify(format_args!("WARNING: {why}")),
            }
        }
        Ok(())
    }

    pub fn resets(&self) -> &Resets {
        &self.resets
    }
}

/// Software writes the settings again, and a server opens the queue pair.
fn reset(session: &mut Session, plan: &Plan) -> Result<(), Failure> {
    session.board.reset();
    let clock = session.board.clock();
    while let Some(completion) = session.board.poll_completion() {
        session.connections.completed(clock, &completion);
    }
    configure(session.board.board(), plan)?;
    session.connections.closed(session.board.now(), "the front end was reset", false);
    Ok(())
}

fn may_reset(domain: Domain, plan: &Plan) -> Result<Domain, String> {
    let is_opened = plan.open || plan.connect.is_some() || plan.messages.by_event;
    match domain {
        Domain::FrontEnd if is_opened => {
            Err("reset front-end: only where a server opens the queue pair, without --by-event".into())
        }
        _ => Ok(domain),
    }
}

fn domain_of(line: &str) -> Result<Domain, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let domain = match words[..] {
        ["reset", "front-end"] => Some(Domain::FrontEnd),
        ["reset", "input", number] => number.parse().ok().filter(|input| *input < BOARD_INPUTS).map(Domain::Input),
        _ => None,
    };
    let last = BOARD_INPUTS - 1;
    domain
        .ok_or_else(|| format!("{line:?}: allowed are `reset front-end` and `reset input N`, with N from 0 to {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_reset_is_reset() {
        let accepted = ["reset input 0", " reset  input 3 ", "reset front-end"].map(|line| domain_of(line).unwrap());
        assert_eq!(accepted, [Domain::Input(0), Domain::Input(3), Domain::FrontEnd]);
        for wrong in ["", "reset", "reset input", "reset input 4", "reset input -1", "reset input 1 2", "set input 1"] {
            assert!(domain_of(wrong).unwrap_err().contains("`reset input N`, with N from 0 to 3"), "{wrong}");
        }
    }
}
