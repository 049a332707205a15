// SPDX-License-Identifier: Apache-2.0
//! Reads typed values out of a document, one section at a time, and notes everything that is wrong on the way.
//! Promise: a key that nothing reads is a problem; a value that cannot be read is a problem and yields its default
//! meanwhile.
//! Source: none; the list of keys is the code that reads them.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::document::{Document, Item, Origin, Value};
use super::error::Problem;
use crate::units::{ByteSize, Frequency, Probability, Rate, Time, UnitError};

/// A type a key may have. The error says what is allowed.
pub(super) trait FromItem: Sized {
    fn from_item(item: &Item) -> Result<Self, String>;
}

macro_rules! quantity_from_item {
    ($($type:ty: $example:literal),*) => {$(
        impl FromItem for $type {
            fn from_item(item: &Item) -> Result<Self, String> {
                let parsed: Result<Self, UnitError> = match &item.value {
                    Value::Text(text) => text.parse(),
                    Value::Integer(text) | Value::Float(text) => text.parse(),
                    _ => return Err(concat!("allowed is a string such as \"", $example, "\"").to_owned()),
                };
                parsed.map_err(|error| error.to_string())
            }
        }
    )*};
}

quantity_from_item!(Time: "4us", Rate: "10Gbps", ByteSize: "150KB", Frequency: "10kHz");

impl FromItem for bool {
    fn from_item(item: &Item) -> Result<Self, String> {
        match item.value {
            Value::Bool(flag) => Ok(flag),
            _ => Err("allowed are true and false".to_owned()),
        }
    }
}

impl FromItem for Probability {
    fn from_item(item: &Item) -> Result<Self, String> {
        let number = match &item.value {
            Value::Integer(text) | Value::Float(text) => text.replace('_', "").parse().ok(),
            _ => None,
        };
        number.and_then(Probability::new).ok_or_else(|| "allowed is a probability from 0 to 1, such as 1e-3".to_owned())
    }
}

impl FromItem for String {
    fn from_item(item: &Item) -> Result<Self, String> {
        match &item.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err("allowed is a string".to_owned()),
        }
    }
}

/// What reading has brought to light so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: RefCell<Vec<Problem>>,
    /// Every key with the value in force.
    pub(super) settings: RefCell<Vec<(String, String)>>,
    /// Where the scenario file lies.
    pub(super) folder: PathBuf,
}

/// One table of the document while it is read.
pub(super) struct Section<'a> {
    path: String,
    item: Option<&'a Item>,
    known: Vec<String>,
    findings: &'a Findings,
}

impl<'a> Section<'a> {
    pub(super) fn root(document: &'a Document, findings: &'a Findings) -> Self {
        Section { path: String::new(), item: Some(&document.root), known: Vec::new(), findings }
    }

    pub(super) fn exists(&self) -> bool {
        self.item.is_some()
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn problem(&self, key: &str, item: &Item, message: String) {
        let problem = Problem::new(&item.origin, &self.path_of(key), Some(&item.text), message);
        self.findings.problems.borrow_mut().push(problem);
    }

    fn note(&self, key: &str, value: impl Display) {
        self.findings.settings.borrow_mut().push((self.path_of(key), value.to_string()));
    }

    fn item(&mut self, key: &str) -> Option<&'a Item> {
        self.known.push(key.to_owned());
        self.item?.get(key)
    }

    /// A sub-table; absent and empty are the same.
    pub(super) fn section(&mut self, key: &str) -> Section<'a> {
        let mut item = self.item(key);
        if let Some(found) = item.filter(|item| !matches!(item.value, Value::Table(_))) {
            self.problem(key, found, format!("allowed is a table, [{}]", self.path_of(key)));
            item = None;
        }
        Section { path: self.path_of(key), item, known: Vec::new(), findings: self.findings }
    }

    /// The value of `key` if it is there and right.
    pub(super) fn optional<T: FromItem + Display>(&mut self, key: &str) -> Option<T> {
        let item = self.item(key)?;
        match T::from_item(item) {
            Ok(value) => {
                self.note(key, &value);
                Some(value)
            }
            Err(allowed) => {
                self.problem(key, item, allowed);
                None
            }
        }
    }

    /// The value of `key`, or its default.
    pub(super) fn read<T: FromItem + Display>(&mut self, key: &str, default: T) -> T {
        self.optional(key).unwrap_or_else(|| {
            self.note(key, &default);
            default
        })
    }

    /// A whole number.
    pub(super) fn integer(&mut self, key: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
        let value = self.item(key).and_then(|item| {
            let parsed = match &item.value {
                Value::Integer(text) => text.parse().ok().filter(|value| range.contains(value)),
                _ => None,
            };
            if parsed.is_none() {
                let (low, high) = (range.start(), range.end());
                self.problem(key, item, format!("allowed is a whole number from {low} to {high}"));
            }
            parsed
        });
        let value = value.unwrap_or(default);
        self.note(key, value);
        value
    }

    /// One of a few numbers.
    pub(super) fn one_of(&mut self, key: &str, default: u64, allowed: &[u64]) -> u64 {
        let value = self.item(key).and_then(|item| {
            let number: Option<u64> = match &item.value {
                Value::Integer(text) => text.parse().ok(),
                _ => None,
            };
            let found = number.filter(|number| allowed.contains(number));
            if found.is_none() {
                let allowed: Vec<String> = allowed.iter().map(u64::to_string).collect();
                self.problem(key, item, format!("allowed are {}", allowed.join(", ")));
            }
            found
        });
        let value = value.unwrap_or(default);
        self.note(key, value);
        value
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy + PartialEq>(&mut self, key: &str, default: T, words: &[(&str, T)]) -> T {
        let value = self.item(key).and_then(|item| {
            let found = match &item.value {
                Value::Text(text) => words.iter().find(|(word, _)| word == text),
                _ => None,
            };
            if found.is_none() {
                let allowed: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                self.problem(key, item, format!("allowed are {}", allowed.join(", ")));
            }
            found.map(|(_, value)| *value)
        });
        let value = value.unwrap_or(default);
        if let Some((word, _)) = words.iter().find(|(_, other)| *other == value) {
            self.note(key, word);
        }
        value
    }

    /// A path; one in the file is relative to the file's folder, one from `--set` to the working directory.
    pub(super) fn path(&mut self, key: &str, default: &str) -> PathBuf {
        let from_option =
            self.item.and_then(|item| item.get(key)).is_some_and(|item| matches!(item.origin, Origin::Set(_)));
        let path = PathBuf::from(self.read(key, default.to_owned()));
        if from_option {
            path
        } else {
            self.findings.folder.join(path)
        }
    }

    /// Notes every key that nothing has read.
    pub(super) fn finish(self) {
        let Some(Value::Table(entries)) = self.item.map(|item| &item.value) else { return };
        for entry in entries.iter().filter(|entry| !self.known.contains(&entry.key)) {
            let whole = if self.path.is_empty() { "the file".to_owned() } else { format!("[{}]", self.path) };
            let message = format!("unknown key; {whole} allows {}", self.known.join(", "));
            let value = Some(entry.item.text.as_str()).filter(|text| !text.starts_with('['));
            let problem = Problem::new(&entry.item.origin, &self.path_of(&entry.key), value, message);
            self.findings.problems.borrow_mut().push(problem);
        }
    }
}
