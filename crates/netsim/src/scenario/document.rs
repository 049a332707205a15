// SPDX-License-Identifier: Apache-2.0
//! A scenario file as a tree in which every value knows where it was written, with `--set` overrides laid over it.
//! Promise: any value, right or wrong, can be traced to a line of the file or to the option that set it.
//! Source: TOML 1.0; the `toml` crate's spanned values.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::error::{Problem, ScenarioError};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    File { file: Arc<str>, line: usize },
    Set(Arc<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { file, line: 0 } => write!(f, "{file}"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
            Origin::Set(option) => write!(f, "--set {option}"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Integer(String),
    Float(String),
    Bool(bool),
    Table(Vec<Entry>),
    /// Arrays and dates, which no key of a scenario takes.
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) value: Value,
    /// As written, for messages.
    pub(super) text: String,
    pub(super) origin: Origin,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) item: Item,
}

/// A parsed scenario file.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) root: Item,
}

impl Document {
    pub(super) fn parse(file: &Path, text: &str) -> Result<Self, ScenarioError> {
        let name: Arc<str> = file.display().to_string().into();
        let source = Source { name: name.clone(), text };
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(0, |span| source.line(span.start));
            let origin = Origin::File { file: name.clone(), line };
            ScenarioError::one(Problem::new(&origin, "", None, format!("not TOML: {}", error.message())))
        })?;
        let origin = Origin::File { file: name.clone(), line: 0 };
        let value = Value::Table(source.entries(table.get_ref()));
        Ok(Document { root: Item { value, text: String::new(), origin } })
    }

    /// Lays `key.path=value` over the document. The value is TOML, or else a string without quotes.
    pub(super) fn set(&mut self, option: &str) -> Result<(), ScenarioError> {
        let origin = Origin::Set(option.into());
        let refuse = |why: &str| {
            Err(ScenarioError::one(Problem::new(&origin, "", None, format!("{why}; write --set section.key=value"))))
        };
        let Some((path, text)) = option.split_once('=') else {
            return refuse("there is no `=`");
        };
        let (path, text) = (path.trim(), text.trim());
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return refuse("the key has an empty part");
        }
        let value = match DeValue::parse(text) {
            Ok(value) => Source { name: "".into(), text }.value(value.get_ref()),
            Err(_) => Value::Text(text.to_owned()),
        };
        let item = Item { value, text: text.to_owned(), origin: origin.clone() };
        let mut table = &mut self.root;
        let mut keys = path.split('.').peekable();
        while let Some(key) = keys.next() {
            let Value::Table(entries) = &mut table.value else {
                return refuse(&format!("`{path}` goes through a value that is no table"));
            };
            let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
                let item = Item { value: Value::Table(Vec::new()), text: String::new(), origin: origin.clone() };
                entries.push(Entry { key: key.to_owned(), item });
                entries.len() - 1
            });
            if keys.peek().is_none() {
                entries[at].item = item;
                return Ok(());
            }
            table = &mut entries[at].item;
        }
        Ok(())
    }

    /// The value at a dotted path.
    pub(super) fn find(&self, path: &str) -> Option<&Item> {
        path.split('.').try_fold(&self.root, |item, key| item.get(key))
    }

    /// A problem with the value at `path`, or with its absence (`default` is then what it stands for).
    pub(super) fn problem(&self, path: &str, default: &str, message: String) -> Problem {
        match self.find(path) {
            Some(item) => Problem::new(&item.origin, path, Some(&item.text), message),
            None if default.is_empty() => Problem::new(&self.root.origin, path, None, message),
            None => Problem::new(&self.root.origin, path, Some(&format!("{default} (default)")), message),
        }
    }
}

impl Item {
    pub(super) fn get(&self, key: &str) -> Option<&Item> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }
}

struct Source<'a> {
    name: Arc<str>,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The entries of a table in the order of the file.
    fn entries(&self, table: &DeTable<'_>) -> Vec<Entry> {
        let mut entries: Vec<(usize, Entry)> = table
            .iter()
            .map(|(key, value)| {
                let at = key.span().start;
                (at, Entry { key: key.get_ref().to_string(), item: self.item(at, value) })
            })
            .collect();
        entries.sort_by_key(|(at, _)| *at);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    fn item(&self, at: usize, value: &Spanned<DeValue<'_>>) -> Item {
        let origin = Origin::File { file: self.name.clone(), line: self.line(at) };
        let text = self.text.get(value.span()).unwrap_or_default().to_owned();
        Item { value: self.value(value.get_ref()), text, origin }
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => {
                let decimal = i128::from_str_radix(integer.as_str(), integer.radix());
                Value::Integer(decimal.map_or_else(|_| integer.to_string(), |value| value.to_string()))
            }
            DeValue::Float(float) => Value::Float(float.to_string()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Table(table) => Value::Table(self.entries(table)),
            DeValue::Datetime(_) | DeValue::Array(_) => Value::Other,
        }
    }
}
