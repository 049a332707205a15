// SPDX-License-Identifier: Apache-2.0
//! Arguments shared by several commands: numbers, quantities, patterns.

pub mod allowed;
pub mod cm;
pub mod number;
pub mod pattern;
pub mod quantity;

/// Parses command lines for tests as the command does.
pub mod line {
    use clap::{Args, CommandFactory, Parser};

    #[derive(Parser)]
    struct Line<A: Args> {
        #[command(flatten)]
        arguments: A,
    }

    /// The arguments of a command in a line of words, the command's name first.
    pub fn arguments<A: Args>(line: &str) -> Result<A, String> {
        let line = Line::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        Ok(line.arguments)
    }

    /// The first option that stands under no heading of the command's help.
    pub fn without_heading<A: Args>() -> Option<String> {
        let command = Line::<A>::command();
        let mut flat = command.get_arguments().filter(|option| option.get_help_heading().is_none());
        flat.next().map(|option| option.get_id().to_string())
    }
}
