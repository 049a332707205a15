// SPDX-License-Identifier: Apache-2.0
//! Commands to a running board, a line of standard input each (`--control`): resets of single clock domains, at the
//! moment of the caller's choice.
//! Promise: each line is answered by one line on standard error; what is no command changes nothing.

use penstock_board::Board;
use penstock_cli_common::output::screen::say;
use penstock_wire::gateware::BOARD_INPUTS;
use serde::Serialize;
use std::io::BufRead;
use std::sync::mpsc::{channel, Receiver};

/// What was done so far.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Resets {
    /// Of each detector input.
    inputs: [u64; BOARD_INPUTS],
    /// Fragments that were lost with their digitisers.
    fragments_lost: usize,
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
    pub fn turn(&mut self, board: &mut Board) {
        while let Ok(line) = self.lines.try_recv() {
            match input_of(&line) {
                Ok(input) => {
                    let lost = board.reset_input(input);
                    self.resets.inputs[input] += 1;
                    self.resets.fragments_lost += lost;
                    say(format_args!("input {input} was reset; its digitiser has lost {lost} fragments"));
                }
                Err(why) => say(format_args!("WARNING: {why}")),
            }
        }
    }

    pub fn resets(&self) -> &Resets {
        &self.resets
    }
}

/// The input that a line names.
fn input_of(line: &str) -> Result<usize, String> {
    let wrong = || format!("{line:?}: allowed is `reset input N`, with N from 0 to {}", BOARD_INPUTS - 1);
    let mut words = line.split_whitespace();
    let number = (words.next() == Some("reset") && words.next() == Some("input")).then(|| words.next()).flatten();
    let input = number.filter(|_| words.next().is_none()).and_then(|number| number.parse().ok());
    input.filter(|input| *input < BOARD_INPUTS).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_input_that_is_there_is_reset() {
        assert_eq!((input_of("reset input 0"), input_of(" reset  input 3 ")), (Ok(0), Ok(3)));
        for wrong in ["", "reset", "reset input", "reset input 4", "reset input -1", "reset input 1 2", "set input 1"] {
            assert!(input_of(wrong).unwrap_err().contains("`reset input N`, with N from 0 to 3"), "{wrong}");
        }
    }
}
