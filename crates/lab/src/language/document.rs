// SPDX-License-Identifier: Apache-2.0
//! A scenario file as a tree in which every value has its source position; `--set` options override values of the file.
//! Promise: every value, valid or not, can be traced to a line of the file or to the option that set it.
//! Source: TOML 1.0; the `toml` crate's spanned values.

use std::path::Path;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::error::{Problem, ScenarioError};
pub(crate) use super::origin::Origin;

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Integer(String),
    Float(String),
    Bool(bool),
    Table(Vec<Entry>),
    Array(Vec<Item>),
    /// Dates, which no key of a scenario takes.
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) value: Value,
    /// The text as written, for messages.
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) item: Item,
}

/// A parsed scenario file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) root: Item,
}

impl Document {
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ScenarioError> {
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
    pub(crate) fn set(&mut self, option: &str) -> Result<(), ScenarioError> {
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
        let mut item = Item { value, text: text.to_owned(), origin: origin.clone() };
        item.come_from(&origin);
        match self.root.place(path.split('.'), item) {
            Ok(()) => Ok(()),
            Err(why) => refuse(&why),
        }
    }

    /// Gives a key that is absent a value, as if it were written in `file`.
    pub(crate) fn lay_under(&mut self, path: &str, value: &str, file: &str, line: usize) {
        if self.find(path).is_some() {
            return;
        }
        let origin = Origin::File { file: file.into(), line };
        let parsed = match DeValue::parse(value) {
            Ok(parsed) => Source { name: file.into(), text: value }.value(parsed.get_ref()),
            Err(_) => Value::Text(value.to_owned()),
        };
        let item = Item { value: parsed, text: value.to_owned(), origin };
        // a section that is no table is a problem that its reader reports
        let _ = self.root.place(path.split('.'), item);
    }

    /// The value at a dotted path.
    pub(crate) fn find(&self, path: &str) -> Option<&Item> {
        path.split('.').try_fold(&self.root, |item, key| item.get(key))
    }

    /// A problem with the value at `path`, or with its absence (`default` is then what it stands for).
    pub(crate) fn problem(&self, path: &str, default: &str, message: String) -> Problem {
        match self.find(path) {
            // the text of a table is its header
            Some(Item { value: Value::Table(_), origin, .. }) => Problem::new(origin, path, None, message),
            Some(item) => Problem::new(&item.origin, path, Some(&item.text), message),
            None if default.is_empty() => Problem::new(&self.root.origin, path, None, message),
            None => Problem::new(&self.root.origin, path, Some(&format!("{default} (default)")), message),
        }
    }
}

impl Item {
    /// The entry of a table, or the element of an array.
    pub(crate) fn get(&self, key: &str) -> Option<&Item> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// Gives this value and all values in it one origin.
    fn come_from(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::Table(entries) => entries.iter_mut().for_each(|entry| entry.item.come_from(origin)),
            Value::Array(items) => items.iter_mut().for_each(|item| item.come_from(origin)),
            _ => {}
        }
    }

    /// Puts `item` at the end of a path; tables on the way that are missing are made, elements of arrays are not.
    fn place<'k>(&mut self, mut path: impl Iterator<Item = &'k str>, item: Item) -> Result<(), String> {
        let Some(key) = path.next() else {
            *self = item;
            return Ok(());
        };
        let next = match &mut self.value {
            Value::Table(entries) => {
                let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
                    let origin = item.origin.clone();
                    let item = Item { value: Value::Table(Vec::new()), text: String::new(), origin };
                    entries.push(Entry { key: key.to_owned(), item });
                    entries.len() - 1
                });
                &mut entries[at].item
            }
            Value::Array(items) => {
                let count = items.len();
                let element = key.parse::<usize>().ok().and_then(|index| items.get_mut(index));
                element.ok_or_else(|| format!("`{key}` is no element of an array of {count}, numbered from 0"))?
            }
            _ => return Err(format!("`{key}` would lie in a value that is no table")),
        };
        next.place(path, item)
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
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| self.item(item.span().start, item)).collect())
            }
            DeValue::Datetime(_) => Value::Other,
        }
    }
}
