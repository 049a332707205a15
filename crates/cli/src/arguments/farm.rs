// SPDX-License-Identifier: Apache-2.0
//! The file of servers that share a run: the live servers, from which event on. It is read again when it changes.
//! Promise: announced changes hold; a file that contradicts them, or that cannot be read, changes nothing and is
//! reported.
//! Source: docs/servers.md; event n goes to row n modulo their number (docs/integration.md).

use penstock_farm::Tables;
use penstock_readout::Servers;
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Tells this run's file from those of others.
    #[serde(default)]
    run: String,
    live: Vec<u16>,
    #[serde(default)]
    change: Vec<ChangeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeEntry {
    first: u64,
    live: Vec<u16>,
}

/// The contents of a file of servers.
pub fn read_servers(file: &Path) -> Result<Servers, String> {
    Ok(parse(file, &text_of(file)?)?.1)
}

/// The same as a coordinator keeps it.
pub fn read_tables(file: &Path) -> Result<Tables, String> {
    let (run, servers) = parse(file, &text_of(file)?)?;
    Ok(tables(run, &servers))
}

fn text_of(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// The run's name, and its tables.
fn parse(file: &Path, text: &str) -> Result<(String, Servers), String> {
    let document: Document = toml::from_str(text).map_err(|error| format!("{}: {error}", file.display()))?;
    let changes = document.change.into_iter().map(|change| (change.first, change.live));
    let servers = Servers::of(document.live, changes).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok((document.run, servers))
}

fn tables(run: String, servers: &Servers) -> Tables {
    let mut all = servers.tables().iter().cloned();
    let mut tables = Tables::new(run, all.next().map(|(_, live)| live).unwrap_or_default());
    for (first, live) in all {
        tables.announce(penstock_farm::Change { first, live });
    }
    tables
}

/// The file, and which of the servers this is.
pub struct Farm {
    file: PathBuf,
    server: u16,
    text: String,
    run: String,
    servers: Servers,
}

impl Farm {
    pub fn open(file: &Path, server: u16) -> Result<Farm, String> {
        let text = text_of(file)?;
        let (run, servers) = parse(file, &text)?;
        Ok(Farm { file: file.to_owned(), server, text, run, servers })
    }

    pub fn server(&self) -> u16 {
        self.server
    }

    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    pub fn tables(&self) -> Tables {
        tables(self.run.clone(), &self.servers)
    }

    /// Reads the file again. None: it is as it was; else how many tables were known before, or why it changes nothing.
    pub fn look(&mut self) -> Option<Result<usize, String>> {
        // Who writes it may have moved it away for a moment: what is known holds.
        let text = std::fs::read_to_string(&self.file).ok().filter(|text| *text != self.text)?;
        self.text = text;
        let known = self.servers.shares(self.server).count();
        Some(parse(&self.file, &self.text).and_then(|(run, servers)| {
            if run != self.run || !servers.goes_on_from(&self.servers) {
                let file = self.file.display();
                return Err(format!(
                    "{file}: what was announced has changed; add [[change]] behind it, with a later event"
                ));
            }
            self.servers = servers;
            Ok(known)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_contradicts_what_was_announced_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("servers.toml");
        std::fs::write(&file, "live = [0, 1, 2]\n").unwrap();
        let mut farm = Farm::open(&file, 1).unwrap();
        assert!(farm.look().is_none());
        for wrong in [
            "live = [0, 2]\n",
            "run = \"another\"\nlive = [0, 1, 2]\n",
            "live = [0, 1, 2]\n[[change]]\nfirst = 7\nlive = []\n",
            "live = [0, 1",
            "alive = []",
        ] {
            std::fs::write(&file, wrong).unwrap();
            let told = farm.look().unwrap().unwrap_err();
            assert!(told.starts_with(&*file.to_string_lossy()) && farm.look().is_none(), "{told}: told once");
            assert_eq!(farm.servers(), &Servers::new(3).unwrap());
        }
        std::fs::write(&file, "live = [0, 1, 2]\n[[change]]\nfirst = 7\nlive = [0, 2]\n").unwrap();
        assert_eq!(farm.look(), Some(Ok(1)));
        assert_eq!((farm.servers().server_of(6), farm.servers().server_of(7)), (0, 2));
    }
}
