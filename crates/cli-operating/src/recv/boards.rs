// SPDX-License-Identifier: Apache-2.0
//! The file of boards: describes hundreds of boards in a few lines of TOML.
//! Promise: a wrong key or value is refused with its place in the file.
//! Source: ours; the format is in docs/readout.md.

use penstock_readout::session::{BoardSpec, Opens};
use serde::Deserialize;
use std::net::Ipv4Addr;
use std::path::Path;

/// The contents of a file of boards.
pub struct Boards {
    pub boards: Vec<Weighted>,
}

/// A source, and its weight in the sharing of the server's line.
#[derive(Debug, Clone)]
pub struct Weighted {
    pub spec: BoardSpec,
    pub weight: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    board: Vec<Entry>,
}

/// One board, or `count` boards whose addresses follow each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    ip: Ipv4Addr,
    opens: Option<Opens>,
    /// Part of the server's line, in proportion to the weights of all boards (`--line`).
    #[serde(default = "one_part")]
    weight: u32,
    #[serde(default = "one")]
    count: u16,
}

fn one() -> u16 {
    1
}

fn one_part() -> u32 {
    1
}

/// Reads it; `opens` is for boards that do not say.
pub fn read_boards(file: &Path, opens: Opens) -> Result<Boards, String> {
    let fail = |what: &dyn std::fmt::Display| format!("{}: {what}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| fail(&error))?;
    let document: Document = toml::from_str(&text).map_err(|error| fail(&error))?;
    if document.board.is_empty() {
        return Err(fail(&"there is no [[board]] in it"));
    }
    let mut boards: Vec<Weighted> = Vec::new();
    for entry in document.board {
        if entry.count == 0 {
            return Err(fail(&format!("count = 0 from {} on: leave these boards out, or count 1 and more", entry.ip)));
        }
        if entry.weight == 0 {
            return Err(fail(&format!("weight = 0 of {}: allowed is 1 and more", entry.ip)));
        }
        for k in 0..entry.count {
            let bits = entry.ip.to_bits().checked_add(k.into());
            let ip = bits.map(Ipv4Addr::from_bits);
            let ip =
                ip.ok_or_else(|| fail(&format!("{} boards from {} on: no such addresses", entry.count, entry.ip)))?;
            let name = match (&entry.name, entry.count) {
                (None, _) => ip.to_string(),
                (Some(name), 1) => name.clone(),
                (Some(name), _) => format!("{name}{k}"),
            };
            if boards.iter().any(|board| board.spec.name == name) {
                return Err(fail(&format!("two boards are called {name}")));
            }
            if let Some(other) = boards.iter().find(|other| other.spec.ip == ip && other.weight != entry.weight) {
                let weight = other.weight;
                return Err(fail(&format!(
                    "{ip} has weight {weight} and {}: queue pairs of one board have one weight",
                    entry.weight
                )));
            }
            let spec = BoardSpec { name, ip, opens: entry.opens.unwrap_or(opens) };
            boards.push(Weighted { spec, weight: entry.weight });
        }
    }
    Ok(Boards { boards })
}
