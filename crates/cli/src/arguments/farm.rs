// SPDX-License-Identifier: Apache-2.0
//! The file of servers that share a run: the live servers, from which event on. It is read again when it changes.
//! Promise: announced changes hold; a file that contradicts them, or that cannot be read, changes nothing and is
//! reported.
//! Source: docs/servers.md; event n goes to live server n modulo their number (docs/integration.md).

use penstock_readout::Servers;
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    live: Vec<u16>,
    #[serde(default)]
    change: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    first: u64,
    live: Vec<u16>,
}

/// The contents of a file of servers.
pub fn read_servers(file: &Path) -> Result<Servers, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    parse(file, &text)
}

fn parse(file: &Path, text: &str) -> Result<Servers, String> {
    let document: Document = toml::from_str(text).map_err(|error| format!("{}: {error}", file.display()))?;
    let changes = document.change.into_iter().map(|change| (change.first, change.live));
    Servers::of(document.live, changes).map_err(|error| format!("{}: {error}", file.display()))
}

/// The file, and which of the servers this is.
pub struct Farm {
    file: PathBuf,
    server: u16,
    text: String,
    servers: Servers,
}

impl Farm {
    pub fn open(file: &Path, server: u16) -> Result<Farm, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let servers = parse(file, &text)?;
        Ok(Farm { file: file.to_owned(), server, text, servers })
    }

    pub fn server(&self) -> u16 {
        self.server
    }

    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Reads the file again. None: it is as it was; else how many tables were known before, or why it changes nothing.
    pub fn look(&mut self) -> Option<Result<usize, String>> {
        // Who writes it may have moved it away for a moment: what is known holds.
        let text = std::fs::read_to_string(&self.file).ok().filter(|text| *text != self.text)?;
        self.text = text;
        let known = self.servers.shares(self.server).count();
        Some(parse(&self.file, &self.text).and_then(|servers| {
            if !servers.goes_on_from(&self.servers) {
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
        for wrong in
            ["live = [0, 2]\n", "live = [0, 1, 2]\n[[change]]\nfirst = 7\nlive = []\n", "live = [0, 1", "alive = []"]
        {
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
