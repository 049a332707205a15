// SPDX-License-Identifier: Apache-2.0
//! Events as they were recorded: a time, and for every board the size of its fragment.
//! Promise: what is read is complete and in order of time, or refused with the line.
//! Source: issue D (replay of recorded events); RFC 4180 for the table.

use crate::units::Time;

/// Recorded events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvents {
    boards: Vec<String>,
    times: Vec<Time>,
    /// Event by event, board by board.
    bytes: Vec<u32>,
}

/// A table that cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordedError {
    #[error(
        "line 1 is `{0}`: allowed is time_us (or time_ps, time_ns, time_ms, time_s), then the name of one board a column"
    )]
    Header(String),
    #[error("line {line} has {found} columns, the first line has {expected}")]
    Columns { line: usize, found: usize, expected: usize },
    #[error("line {line}, {column}: `{value}` is no whole number of {unit}; allowed are {low} to {high}")]
    Number { line: usize, column: String, value: String, unit: &'static str, low: u64, high: u64 },
    #[error("line {line}: the event at {at} comes before that at {last}; sort the table by time")]
    Order { line: usize, at: Time, last: Time },
    #[error("there are no events in the table")]
    Empty,
}

impl RecordedEvents {
    /// Reads a table of comma-separated values: a header `time_us,board0,board1,...`, then for every event its time and
    /// the bytes of each board.
    ///
    /// # Errors
    /// [`RecordedError`] names the first line that cannot be replayed.
    pub fn from_csv(text: &str) -> Result<Self, RecordedError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, header) = lines.next().ok_or(RecordedError::Empty)?;
        let mut names = header.split(',').map(str::trim);
        let scale = match names.next() {
            Some("time_ps") => 1,
            Some("time_ns") => 1_000,
            Some("time_us") => 1_000_000,
            Some("time_ms") => 1_000_000_000,
            Some("time_s") => 1_000_000_000_000,
            _ => return Err(RecordedError::Header(header.to_owned())),
        };
        let boards: Vec<String> = names.map(str::to_owned).collect();
        if boards.is_empty() {
            return Err(RecordedError::Header(header.to_owned()));
        }
        let mut events = RecordedEvents { boards, times: Vec::new(), bytes: Vec::new() };
        for (index, line) in lines {
            events.add_line(index + 1, line, scale)?;
        }
        if events.times.is_empty() {
            return Err(RecordedError::Empty);
        }
        Ok(events)
    }

    fn add_line(&mut self, line: usize, text: &str, scale: u64) -> Result<(), RecordedError> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let expected = self.boards.len() + 1;
        if words.len() != expected {
            return Err(RecordedError::Columns { line, found: words.len(), expected });
        }
        let number = |column: &str, value: &str, unit, low, high| {
            let number = value.parse().ok().filter(|number| (low..=high).contains(number));
            let (column, value) = (column.to_owned(), value.to_owned());
            number.ok_or(RecordedError::Number { line, column, value, unit, low, high })
        };
        let at = Time(number("time", words[0], "its unit", 0, u64::MAX / scale)? * scale);
        if let Some(last) = self.times.last().copied().filter(|last| *last > at) {
            return Err(RecordedError::Order { line, at, last });
        }
        for (board, word) in self.boards.iter().zip(&words[1..]) {
            self.bytes.push(number(board, word, "bytes", 1, 1 << 31)? as u32);
        }
        self.times.push(at);
        Ok(())
    }

    /// Names of the boards, in the order of the columns.
    pub fn boards(&self) -> &[String] {
        &self.boards
    }

    pub fn times(&self) -> &[Time] {
        &self.times
    }

    /// Bytes of a board's fragment.
    pub fn bytes(&self, event: usize, board: usize) -> u64 {
        u64::from(self.bytes[event * self.boards.len() + board])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_its_times_and_sizes() {
        let events = RecordedEvents::from_csv("time_us, board1, board0\n3,10,20\n\n7,30,40\n").unwrap();
        assert_eq!(events.boards(), ["board1", "board0"]);
        assert_eq!(events.times(), [Time::from_us(3), Time::from_us(7)]);
        assert_eq!((events.bytes(0, 1), events.bytes(1, 0)), (20, 30));
    }

    #[test]
    fn tables_that_cannot_be_replayed_are_refused_with_the_line() {
        let cases = ["", "board0\n", "time_us\n", "time_us,a\n", "time_us,a\n1\n", "time_us,a\n1,x\n"];
        let more = ["time_us,a\n1,0\n", "time_us,a\n2,5\n1,5\n", "time_s,a\n99999999999,5\n"];
        let refuse = |text: &&str| RecordedEvents::from_csv(text).unwrap_err().to_string();
        let report: Vec<String> = cases.iter().chain(&more).map(refuse).collect();
        insta::assert_snapshot!(report.join("\n"));
    }
}
