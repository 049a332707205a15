// SPDX-License-Identifier: Apache-2.0
//! The words of an ns-3 file, line by line, and the ns-3 formats of rates, times and numbers.

use crate::units::{Rate, Time};

/// A file that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Ns3Error {
    /// `file:line`.
    pub place: String,
    pub message: String,
}

/// The words of a file, line by line; what follows `#` is a comment.
pub(super) struct Lines<'a> {
    file: &'a str,
    /// Lines are those of the file, not of its translation from JSON.
    numbered: bool,
    lines: std::vec::IntoIter<(usize, Vec<&'a str>)>,
    last: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        let words =
            |line: &'a str| -> Vec<&'a str> { line.split('#').next().unwrap_or_default().split_whitespace().collect() };
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, words(line)));
        let lines: Vec<(usize, Vec<&str>)> = lines.filter(|(_, words)| !words.is_empty()).collect();
        let last = lines.last().map_or(0, |(line, _)| *line);
        Lines { file, numbered: true, lines: lines.into_iter(), last }
    }

    /// A translation of a file of another format; its lines differ from the file's.
    pub(super) fn translated(file: &'a str, text: &'a str) -> Self {
        Lines { numbered: false, ..Lines::new(file, text) }
    }

    /// Where a line is, for messages.
    pub(super) fn place(&self, line: usize) -> String {
        if self.numbered {
            format!("{}:{line}", self.file)
        } else {
            self.file.to_owned()
        }
    }

    pub(super) fn error(&self, line: usize, message: impl Into<String>) -> Ns3Error {
        Ns3Error { place: self.place(line), message: message.into() }
    }

    pub(super) fn expect(&mut self, what: &str) -> Result<(usize, Vec<&'a str>), Ns3Error> {
        self.lines.next().ok_or_else(|| self.error(self.last, format!("the file ends where {what} should follow")))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, Vec<&'a str>);

    fn next(&mut self) -> Option<Self::Item> {
        self.lines.next()
    }
}

/// ns-3 writes rates as "10Gb/s", "10Gbps", or as a number of bits per second.
pub(super) fn rate(word: &str) -> Option<Rate> {
    let ours = word.replace("Kb", "kb").replace("b/s", "bps");
    ours.parse().ok().or_else(|| number(word).map(|bits| Rate(bits.round() as u64)))
}

/// ns-3 writes times as "1us" or as a number of seconds.
pub(super) fn time(word: &str) -> Option<Time> {
    word.parse().ok().or_else(|| number(word).map(|seconds| Time((seconds * 1e12).round() as u64)))
}

pub(super) fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite() && (0.0..1e18).contains(number))
}
