// SPDX-License-Identifier: Apache-2.0
//! Reads typed values from a document, one section at a time, and collects all errors.
//! Promise: an unknown key is an error; an invalid value is an error and reads as its default until the end of the
//! check. The code that reads the keys is the only list of keys. It works on the syntax tree of the `toml` crate,
//! because `serde` stops at the first wrong value; this reader names all wrong values and unknown keys, each with its
//! line.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::document::{Document, Item, Origin, Value};
use super::error::Problem;
use crate::units::{ByteSize, Frequency, Probability, Rate, Time, UnitError};

/// A type of a key's value. The error names the allowed values.
pub(crate) trait FromItem: Sized {
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

impl FromItem for u64 {
    fn from_item(item: &Item) -> Result<Self, String> {
        let number = match &item.value {
            Value::Integer(text) => text.parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| "allowed is a whole number, 0 or more".to_owned())
    }
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

/// The findings of reading so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) problems: RefCell<Vec<Problem>>,
    /// Every key with the value in force.
    pub(crate) settings: RefCell<Vec<(String, String)>>,
    /// The folder of the scenario file.
    pub(crate) folder: PathBuf,
    /// The place of an error about something missing outside all tables.
    pub(crate) origin: Origin,
}

/// Jaro similarity above which an unknown key is taken for a misspelt one; as for options of the command line.
const SIMILAR: f64 = 0.7;

/// One table of the document while it is read.
pub(crate) struct Section<'a> {
    path: String,
    item: Option<&'a Item>,
    allowed: Vec<String>,
    findings: &'a Findings,
}

impl<'a> Section<'a> {
    pub(crate) fn root(document: &'a Document, findings: &'a Findings) -> Self {
        Section { path: String::new(), item: Some(&document.root), allowed: Vec::new(), findings }
    }

    pub(crate) fn exists(&self) -> bool {
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
        self.allowed.push(key.to_owned());
        self.item?.get(key)
    }

    /// A sub-table; absent and empty are the same.
    pub(crate) fn section(&mut self, key: &str) -> Section<'a> {
        let mut item = self.item(key);
        if let Some(found) = item.filter(|item| !matches!(item.value, Value::Table(_))) {
            self.problem(key, found, format!("allowed is a table, [{}]", self.path_of(key)));
            item = None;
        }
        self.child(self.path_of(key), item)
    }

    /// The tables of an array, `[[key]]`; none if it is absent.
    pub(crate) fn sections(&mut self, key: &str) -> Vec<Section<'a>> {
        let Some(item) = self.item(key) else { return Vec::new() };
        let whole = self.path_of(key);
        let Value::Array(elements) = &item.value else {
            let hint = match (&item.origin, &item.value) {
                (Origin::Set(_), Value::Table(_)) => "; --set changes those of the file, which has none",
                _ => "",
            };
            self.problem(key, item, format!("allowed are tables, [[{whole}]]{hint}"));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let path = format!("{whole}.{index}");
            match element.value {
                Value::Table(_) => sections.push(self.child(path, Some(element))),
                _ => self.problem(key, element, format!("allowed are tables, [[{whole}]]")),
            }
        }
        sections
    }

    /// The sub-tables of a table whose keys are names of the user's: `[key.NAME]`.
    pub(crate) fn named_sections(&mut self, key: &str) -> Vec<(String, Section<'a>)> {
        let whole = self.section(key);
        let Some(Value::Table(entries)) = whole.item.map(|item| &item.value) else { return Vec::new() };
        let mut sections = Vec::new();
        for entry in entries {
            let path = whole.path_of(&entry.key);
            match entry.item.value {
                Value::Table(_) => sections.push((entry.key.clone(), self.child(path, Some(&entry.item)))),
                _ => whole.problem(&entry.key, &entry.item, format!("allowed is a table, [{path}]")),
            }
        }
        sections
    }

    fn child(&self, path: String, item: Option<&'a Item>) -> Section<'a> {
        Section { path, item, allowed: Vec::new(), findings: self.findings }
    }

    /// Notes something wrong with a value that was read, or with its absence.
    pub(crate) fn refuse(&self, key: &str, message: impl Into<String>) {
        match self.item.and_then(|item| item.get(key)) {
            Some(item) => self.problem(key, item, message.into()),
            None => {
                let origin = self.item.map_or(&self.findings.origin, |item| &item.origin);
                let problem = Problem::new(origin, &self.path_of(key), None, message.into());
                self.findings.problems.borrow_mut().push(problem);
            }
        }
    }

    /// Notes something wrong with the table as a whole.
    pub(crate) fn refuse_whole(&self, message: impl Into<String>) {
        let origin = self.item.map_or(&self.findings.origin, |item| &item.origin);
        self.findings.problems.borrow_mut().push(Problem::new(origin, &self.path, None, message.into()));
    }

    /// How many problems there are so far, in all sections.
    pub(crate) fn problem_count(&self) -> usize {
        self.findings.problems.borrow().len()
    }

    /// Records the default value of an absent key, for cases that `read` cannot handle.
    pub(crate) fn note_default(&self, key: &str, value: impl Display) {
        let path = self.path_of(key);
        self.findings.settings.borrow_mut().retain(|(other, _)| *other != path);
        self.note(key, value);
    }

    /// Whether the key is written out.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.item.is_some_and(|item| item.get(key).is_some())
    }

    /// A list of values; one value alone is a list of one. Empty if absent, and only then.
    pub(crate) fn list<T: FromItem + Display>(&mut self, key: &str) -> Vec<T> {
        self.list_or(key, "allowed is one value or more; leave the key out for its default")
    }

    /// The same; `none` says what is allowed in the place of a list without elements.
    pub(crate) fn list_or<T: FromItem + Display>(&mut self, key: &str, none: &str) -> Vec<T> {
        let Some(item) = self.item(key) else { return Vec::new() };
        let elements = match &item.value {
            Value::Array(elements) => elements.as_slice(),
            _ => std::slice::from_ref(item),
        };
        if elements.is_empty() {
            self.problem(key, item, none.to_owned());
        }
        let mut values = Vec::new();
        for element in elements {
            match T::from_item(element) {
                Ok(value) => values.push(value),
                Err(allowed) if std::ptr::eq(element, item) => {
                    self.problem(key, element, format!("{allowed}, or a list of such in brackets"));
                }
                Err(allowed) => self.problem(key, element, allowed),
            }
        }
        let shown: Vec<String> = values.iter().map(T::to_string).collect();
        self.note(key, shown.join(", "));
        values
    }

    /// The value of `key` if it is there and right.
    pub(crate) fn optional<T: FromItem + Display>(&mut self, key: &str) -> Option<T> {
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
    pub(crate) fn read<T: FromItem + Display>(&mut self, key: &str, default: T) -> T {
        self.optional(key).unwrap_or_else(|| {
            self.note(key, &default);
            default
        })
    }

    /// A whole number.
    pub(crate) fn integer(&mut self, key: &str, default: u64, range: RangeInclusive<u64>) -> u64 {
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
    pub(crate) fn one_of(&mut self, key: &str, default: u64, allowed: &[u64]) -> u64 {
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
    pub(crate) fn choice<T: Copy + PartialEq>(&mut self, key: &str, default: T, words: &[(&str, T)]) -> T {
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
    pub(crate) fn path(&mut self, key: &str, default: &str) -> PathBuf {
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
    pub(crate) fn finish(self) {
        let Some(Value::Table(entries)) = self.item.map(|item| &item.value) else { return };
        let is_new = |key: &String| !self.allowed.contains(key);
        for entry in entries.iter().filter(|entry| is_new(&entry.key)) {
            let whole = if self.path.is_empty() { "the file".to_owned() } else { format!("[{}]", self.path) };
            let likeness = |key: &&String| strsim::jaro(key, &entry.key);
            let similar = self.allowed.iter().filter(|key| likeness(key) > SIMILAR);
            let meant = match similar.max_by(|a, b| likeness(a).total_cmp(&likeness(b))) {
                Some(nearest) => format!(", is {nearest} meant?"),
                None => ";".to_owned(),
            };
            let message = format!("unknown key{meant} {whole} allows {}", self.allowed.join(", "));
            let value = Some(entry.item.text.as_str()).filter(|text| !text.starts_with('['));
            let problem = Problem::new(&entry.item.origin, &self.path_of(&entry.key), value, message);
            self.findings.problems.borrow_mut().push(problem);
        }
    }
}
