// SPDX-License-Identifier: Apache-2.0
//! The file as a list of boards with keys, each with its line.
//! Source: TOML 1.0; the `toml` crate's spanned values. The laboratory's reader is not used, because its keys are
//! fixed; here they are names of registers.

use penstock_ipbus::BoardAddress;
use std::collections::HashMap;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// A value as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    List(Vec<String>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Dotted; copies as numbers of their own or in brackets.
    pub key: String,
    pub value: Value,
    pub line: usize,
}

/// A board of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardEntry {
    pub address: BoardAddress,
    pub name: Option<String>,
    pub entries: Vec<Entry>,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    pub file: String,
    /// Entries for every board.
    pub all: Vec<Entry>,
    pub boards: Vec<BoardEntry>,
}

/// The error, with `file:line`.
pub type Problems = Vec<String>;

impl Configuration {
    pub fn load(path: &Path) -> Result<Configuration, Problems> {
        let text = std::fs::read_to_string(path).map_err(|error| vec![format!("{}: {error}", path.display())])?;
        Configuration::parse(&path.display().to_string(), &text)
    }

    pub fn parse(file: &str, text: &str) -> Result<Configuration, Problems> {
        let source = Source { file, text };
        let table = DeTable::parse(text).map_err(|error| {
            let place = source.place(error.span().map_or(0, |span| span.start));
            vec![format!("{place}: not TOML: {}", error.message())]
        })?;
        let mut problems = Problems::new();
        let (mut all, mut boards) = (Vec::new(), Vec::new());
        let by_line = |entries: &mut Vec<Entry>| entries.sort_by_key(|entry| entry.line);
        for (key, value) in table.get_ref() {
            let place = source.place(key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("all", DeValue::Table(table)) => source.flatten("", table, &mut all, &mut problems),
                ("board", DeValue::Array(tables)) => {
                    boards.extend(tables.iter().filter_map(|table| source.board(table, &mut problems)));
                }
                ("all", _) => problems.push(format!("{place}: all: allowed is a table, [all]")),
                ("board", _) => problems.push(format!("{place}: board: allowed are tables, [[board]]")),
                (other, _) => problems.push(format!("{place}: {other}: unknown key; allowed are [all] and [[board]]")),
            }
        }
        if boards.is_empty() && problems.is_empty() {
            problems.push(format!("{file}: no board; write [[board]] with its address"));
        }
        twice(file, &boards, &mut problems);
        match problems.is_empty() {
            true => {
                let mut boards: Vec<BoardEntry> = boards.into_iter().map(|(board, _)| board).collect();
                boards.iter_mut().for_each(|board| by_line(&mut board.entries));
                by_line(&mut all);
                Ok(Configuration { file: file.to_owned(), all, boards })
            }
            false => Err(problems),
        }
    }
}

/// Boards must differ in where they are and in who they say they are.
fn twice(file: &str, boards: &[(BoardEntry, usize)], problems: &mut Problems) {
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    for (board, line) in boards {
        let of_board = board.entries.iter().filter(|entry| ["local_mac", "local_ip"].contains(&entry.key.as_str()));
        let of_board = of_board.filter_map(|entry| match &entry.value {
            Value::Text(text) => Some((entry.key.clone(), text.clone())),
            Value::List(_) => None,
        });
        let names = board.name.iter().map(|name| ("name".to_owned(), name.clone()));
        for unique in of_board.chain(names).chain([("address".to_owned(), board.address.to_string())]) {
            let (key, value) = unique.clone();
            if let Some(first) = seen.insert(unique, *line) {
                problems.push(format!("{file}:{line}: {key} = {value}: the board of line {first} has it too"));
            }
        }
    }
}

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count()
    }

    fn place(&self, at: usize) -> String {
        format!("{}:{}", self.file, self.line(at))
    }

    fn board(&self, table: &Spanned<DeValue>, problems: &mut Problems) -> Option<(BoardEntry, usize)> {
        let line = self.line(table.span().start);
        let DeValue::Table(table) = table.get_ref() else {
            problems.push(format!("{}:{line}: board: allowed are tables, [[board]]", self.file));
            return None;
        };
        let mut entries = Vec::new();
        self.flatten("", table, &mut entries, problems);
        let mut take = |key: &str| {
            let at = entries.iter().position(|entry| entry.key == key)?;
            Some(entries.remove(at))
        };
        let name = match take("name") {
            Some(Entry { value: Value::Text(name), .. }) => Some(name),
            _ => None,
        };
        let address = match take("address") {
            Some(Entry { value: Value::Text(text), line, .. }) => match text.parse() {
                Ok(address) => Some(address),
                Err(error) => {
                    problems.push(format!("{}:{line}: address: {error}", self.file));
                    None
                }
            },
            _ => {
                problems.push(format!("{}:{line}: board: has no address; write address = \"10.0.0.2\"", self.file));
                None
            }
        };
        Some((BoardEntry { address: address?, name, entries }, line))
    }

    /// The values of a table and of those in it, by dotted keys.
    fn flatten(&self, prefix: &str, table: &DeTable, entries: &mut Vec<Entry>, problems: &mut Problems) {
        for (key, value) in table {
            let line = self.line(value.span().start);
            let name = key.get_ref();
            let key = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            match value.get_ref() {
                DeValue::Table(table) => self.flatten(&key, table, entries, problems),
                DeValue::Array(items) => match items.iter().map(|item| scalar(item.get_ref())).collect() {
                    Some(list) => entries.push(Entry { key, value: Value::List(list), line }),
                    None => problems.push(format!("{}:{line}: {key}: allowed are numbers and strings", self.file)),
                },
                other => match scalar(other) {
                    Some(text) => entries.push(Entry { key, value: Value::Text(text), line }),
                    None => problems.push(format!("{}:{line}: {key}: allowed are numbers and strings", self.file)),
                },
            }
        }
    }
}

fn scalar(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => match number.radix() {
            10 => Some(number.as_str().to_owned()),
            radix => u64::from_str_radix(number.as_str(), radix).ok().map(|number| number.to_string()),
        },
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(u8::from(*flag).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_dotted_keys_are_the_same_and_have_their_lines() {
        let text = "[all]\ncc.rate_ai = \"40Mbps\"\n[all.source]\ncount = 0x10\n[[board]]\naddress = \"10.0.0.2\"\nname = \"m0\"\n\
                    ring.0 = { slots = 64 }\nflow_control.pfc_en = true\n";
        let read = Configuration::parse("boards.toml", text).unwrap();
        let mut all: Vec<_> = read.all.iter().map(|entry| (entry.key.as_str(), entry.line)).collect();
        all.sort_unstable();
        assert_eq!(all, [("cc.rate_ai", 2), ("source.count", 4)]);
        assert_eq!(read.boards[0].name.as_deref(), Some("m0"));
        let mut of_board = read.boards[0].entries.clone();
        of_board.sort_by_key(|entry| entry.line);
        assert_eq!((of_board[0].key.as_str(), &of_board[0].value), ("ring.0.slots", &Value::Text("64".into())));
        assert_eq!((of_board[1].key.as_str(), &of_board[1].value), ("flow_control.pfc_en", &Value::Text("1".into())));
    }

    #[test]
    fn everything_wrong_is_reported_with_its_line() {
        let text = "colour = 1\n[[board]]\naddress = \"10.0.0\"\n[[board]]\nname = \"a\"\n[[board]]\naddress = \"10.0.0.3\"\n\
                    local_mac = \"02:00:00:00:00:01\"\n[[board]]\naddress = \"10.0.0.3\"\nlocal_mac = \"02:00:00:00:00:01\"\nx = 1979-05-27\n";
        let message = Configuration::parse("boards.toml", text).unwrap_err().join("\n");
        for words in [
            "boards.toml:1: colour: unknown key; allowed are [all] and [[board]]",
            "boards.toml:3: address: \"10.0.0\" is no IPv4 address",
            "boards.toml:4: board: has no address",
            "boards.toml:9: address = 10.0.0.3: the board of line 6 has it too",
            "boards.toml:9: local_mac = 02:00:00:00:00:01: the board of line 6 has it too",
            "boards.toml:12: x: allowed are numbers and strings",
        ] {
            assert!(message.contains(words), "{words}\n{message}");
        }
        assert!(Configuration::parse("b", "[all").unwrap_err()[0].starts_with("b:1: not TOML"));
        assert!(Configuration::parse("b", "[all]\n").unwrap_err()[0].contains("no board"));
    }
}
