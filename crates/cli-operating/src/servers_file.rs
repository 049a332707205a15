// SPDX-License-Identifier: Apache-2.0
//! The file of servers that share a run: the live servers, from which event on. It is read again when it changes.
//! Promise: announced changes hold; a file that contradicts them, or that cannot be read, changes nothing and is
//! reported. A change that was refused may be taken out of the file, or stay in it.
//! Source: docs/servers.md; event n goes to row n modulo their number (docs/integration.md).

use penstock_farm::{Change, Mark, Tables};
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
    #[serde(default)]
    begin: bool,
    #[serde(default)]
    end: bool,
}

/// The contents of a file, in which all changes are in order.
pub fn read_tables(file: &Path) -> Result<Tables, String> {
    let document = parse(file, &text_of(file)?)?;
    tables(file, &document, &[])
}

fn text_of(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn parse(file: &Path, text: &str) -> Result<Document, String> {
    toml::from_str(text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Its tables without those changes.
fn tables(file: &Path, document: &Document, without: &[Change]) -> Result<Tables, String> {
    let changes: Vec<Change> = document.change.iter().map(change).filter(|change| !without.contains(change)).collect();
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    // The end of a run may be before a change that no event has reached.
    let in_order = changes.iter().filter(|change| change.mark != Mark::End);
    let each = in_order.map(|change| (change.first, change.live.clone()));
    Servers::of(document.live.clone(), each).map_err(|error| fail(&error))?;
    let mut tables = Tables::new(document.run.clone(), document.live.clone());
    match changes.into_iter().find(|change| !tables.announce(change.clone())) {
        None => Ok(tables),
        Some(change) if change.mark == Mark::End => {
            Err(fail(&format!("the run ends before event {}, and has changes there that were reached", change.first)))
        }
        Some(change) => Err(fail(&format!("the run has ended before the change at event {}", change.first))),
    }
}

fn change(entry: &ChangeEntry) -> Change {
    let mark = match (entry.begin, entry.end) {
        (_, true) => Mark::End,
        (true, false) => Mark::Begin,
        (false, false) => Mark::None,
    };
    Change { first: entry.first, live: entry.live.clone(), mark }
}

/// The servers of these tables.
pub fn servers(tables: &Tables) -> Servers {
    let mut all = tables.in_force();
    let live = all.next().map(|first| first.live.clone()).unwrap_or_default();
    Servers::of(live, all.map(|change| (change.first, change.live.clone())))
        .expect("they were checked when they were read")
}

/// The file, and which of the servers this is.
pub struct Farm {
    file: PathBuf,
    server: u16,
    text: String,
    /// The tables that were read from the file, refused ones as well.
    read: Tables,
    /// What holds here.
    tables: Tables,
    refused: Vec<Change>,
}

impl Farm {
    pub fn open(file: &Path, server: u16) -> Result<Farm, String> {
        let text = text_of(file)?;
        let tables = tables(file, &parse(file, &text)?, &[])?;
        Ok(Farm { file: file.to_owned(), server, text, read: tables.clone(), tables, refused: Vec::new() })
    }

    pub fn server(&self) -> u16 {
        self.server
    }

    pub fn servers(&self) -> Servers {
        servers(&self.tables)
    }

    /// All tables of the file as it was last understood.
    pub fn read(&self) -> &Tables {
        &self.read
    }

    /// The tables that hold here.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Reads the file again. None: it is as it was; else the changes that are new, or why it changes nothing. Each is
    /// to be accepted or refused, in this order.
    pub fn look(&mut self) -> Option<Result<Vec<Change>, String>> {
        // Who writes it may have moved it away for a moment: what is known holds.
        let text = std::fs::read_to_string(&self.file).ok().filter(|text| *text != self.text)?;
        self.text = text;
        Some(parse(&self.file, &self.text).and_then(|document| {
            let now = tables(&self.file, &document, &self.refused)?;
            let count = self.tables.count();
            if now.run() != self.tables.run() || !now.all().take(count).eq(self.tables.all()) {
                let file = self.file.display();
                return Err(format!(
                    "{file}: what was announced has changed; add [[change]] behind it, with a later event"
                ));
            }
            self.read = tables(&self.file, &document, &[]).unwrap_or_else(|_| now.clone());
            Ok(now.all().skip(count).cloned().collect())
        }))
    }

    /// A new change holds.
    pub fn accept(&mut self, change: Change) {
        self.tables.announce(change);
    }

    /// A new change cannot be made here, whether it stays in the file or not.
    pub fn refuse(&mut self, change: Change) {
        self.refused.push(change);
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
            "live = [0, 1, 2]\n[[change]]\nfirst = 7\nlive = [0]\n[[change]]\nfirst = 7\nlive = [1]\n",
            "live = [0, 1, 2]\n[[change]]\nfirst = 7\nlive = []\nend = true\n[[change]]\nfirst = 9\nlive = [1]\n",
            "live = [0, 1",
            "alive = []",
        ] {
            std::fs::write(&file, wrong).unwrap();
            let message = farm.look().unwrap().unwrap_err();
            assert!(message.starts_with(&*file.to_string_lossy()) && farm.look().is_none(), "{message}: told once");
            assert_eq!(farm.servers(), Servers::new(3).unwrap());
        }
        std::fs::write(&file, "live = [0, 1, 2]\n[[change]]\nfirst = 7\nlive = [0, 2]\n").unwrap();
        let [change] = &farm.look().unwrap().unwrap()[..] else { panic!() };
        farm.accept(change.clone());
        assert_eq!((farm.servers().server_of(6), farm.servers().server_of(7)), (Some(0), Some(2)));
    }

    #[test]
    fn the_end_of_a_run_may_be_before_a_change_that_no_event_has_reached() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("servers.toml");
        let text = "live = [0, 1]\n[[change]]\nfirst = 7\nlive = [0]\n[[change]]\nfirst = 20\nlive = [1]\n";
        std::fs::write(&file, text).unwrap();
        let mut farm = Farm::open(&file, 0).unwrap();
        let end = |first: u64| format!("{text}[[change]]\nfirst = {first}\nlive = []\nend = true\n");
        std::fs::write(&file, end(6)).unwrap();
        let message = farm.look().unwrap().unwrap_err();
        assert!(message.contains("ends before event 6"), "{message}");
        std::fs::write(&file, end(9)).unwrap();
        let [change] = &farm.look().unwrap().unwrap()[..] else { panic!() };
        farm.accept(change.clone());
        let servers = farm.servers();
        assert_eq!([6, 8, 9, 20].map(|event| servers.server_of(event)), [Some(0), Some(0), None, None]);
    }

    #[test]
    fn a_change_that_was_refused_may_stay_in_the_file_or_be_taken_out_and_later_ones_hold() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("servers.toml");
        let (begin, late) = ("live = [0, 1]\n", "[[change]]\nfirst = 7\nlive = [0]\n");
        let (good, next) = ("[[change]]\nfirst = 90\nlive = [1]\n", "[[change]]\nfirst = 99\nlive = [0]\n");
        for is_kept in [true, false] {
            std::fs::write(&file, begin).unwrap();
            let mut farm = Farm::open(&file, 0).unwrap();
            std::fs::write(&file, format!("{begin}{late}")).unwrap();
            let [change] = &farm.look().unwrap().unwrap()[..] else { panic!() };
            farm.refuse(change.clone());
            let late = if is_kept { late } else { "" };
            for text in [format!("{begin}{late}{good}"), format!("{begin}{late}{good}{next}")] {
                std::fs::write(&file, text).unwrap();
                let [change] = &farm.look().unwrap().unwrap()[..] else { panic!() };
                farm.accept(change.clone());
            }
            let servers = farm.servers();
            assert_eq!([8, 89, 90, 99].map(|event| servers.server_of(event)), [0, 1, 1, 0].map(Some), "{is_kept}");
        }
    }
}
