// SPDX-License-Identifier: Apache-2.0
//! The file of a farm: its boards, its servers and their log.
//! Promise: a wrong key or value is refused with its place in the file.
//! Source: ours; the format is in docs/servers.md.

use penstock_farm::MAX_ROWS;
use penstock_ipbus::BoardAddress;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

/// The largest weight: with more, a server of weight 1 would get more than its part, as it has one row at least.
const MAX_WEIGHT: u8 = MAX_ROWS as u8 - 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    servers: PathBuf,
    #[serde(default)]
    board: Vec<BoardEntry>,
    #[serde(default)]
    server: Vec<ServerEntry>,
}

/// One board, or `count` boards whose addresses follow each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardEntry {
    name: Option<String>,
    ip: String,
    #[serde(default = "one")]
    count: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerEntry {
    number: u16,
    ip: Ipv4Addr,
    metrics: Option<SocketAddr>,
    #[serde(default = "unit")]
    weight: u8,
    #[serde(default = "yes", rename = "use")]
    is_used: bool,
}

fn one() -> u16 {
    1
}

fn unit() -> u8 {
    1
}

fn yes() -> bool {
    true
}

#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    pub number: u16,
    pub ip: Ipv4Addr,
    pub metrics: Option<SocketAddr>,
    /// It gets so many times the events of a server of weight 1.
    pub weight: u8,
    pub is_used: bool,
}

/// The contents of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The file of servers.
    pub log: PathBuf,
    /// Names, as every `recv` has them, and addresses.
    pub boards: Vec<(String, BoardAddress)>,
    pub servers: Vec<Server>,
}

impl Plan {
    pub fn read(file: &Path) -> Result<Plan, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        parse(file, &text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Servers that shall take no events.
    pub fn unused(&self) -> impl Iterator<Item = u16> + '_ {
        self.servers.iter().filter(|server| !server.is_used).map(|server| server.number)
    }
}

fn parse(file: &Path, text: &str) -> Result<Plan, String> {
    let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut boards: Vec<(String, BoardAddress)> = Vec::new();
    for entry in document.board {
        let first: BoardAddress = entry.ip.parse()?;
        if entry.count == 0 {
            return Err(format!("count = 0 from {first} on: leave these boards out, or count 1 and more"));
        }
        for k in 0..entry.count {
            let ip = first.0.ip().to_bits().checked_add(k.into()).map(Ipv4Addr::from_bits);
            let ip = ip.ok_or_else(|| format!("{} boards from {first} on: no such addresses", entry.count))?;
            let name = match (&entry.name, entry.count) {
                (None, _) => ip.to_string(),
                (Some(name), 1) => name.clone(),
                (Some(name), _) => format!("{name}{k}"),
            };
            if boards.iter().any(|(other, _)| *other == name) {
                return Err(format!("two boards are called {name}"));
            }
            boards.push((name, BoardAddress(SocketAddrV4::new(ip, first.0.port()))));
        }
    }
    let mut servers: Vec<Server> = Vec::new();
    for ServerEntry { number, ip, metrics, weight, is_used } in document.server {
        if !(1..=MAX_WEIGHT).contains(&weight) {
            return Err(format!(
                "server {number}: weight = {weight}: allowed are 1 to {MAX_WEIGHT}; use = false takes a server out"
            ));
        }
        if let Some(other) = servers.iter().find(|other| other.number == number || other.ip == ip) {
            return Err(format!(
                "server {number} at {ip} and server {} at {}: each has a number and an address of its own",
                other.number, other.ip
            ));
        }
        servers.push(Server { number, ip, metrics, weight, is_used });
    }
    match (boards.len(), servers.len()) {
        (0, _) => return Err("there is no [[board]] in it".into()),
        (_, 0) => return Err("there is no [[server]] in it".into()),
        (_, count) if count > MAX_ROWS => return Err(format!("{count} servers: a board's table has {MAX_ROWS} rows")),
        _ => {}
    }
    if servers.iter().all(|server| !server.is_used) {
        return Err("no server has use = true: events go to one at least".into());
    }
    servers.sort_by_key(|server| server.number);
    let log = file.parent().unwrap_or(Path::new("")).join(document.servers);
    Ok(Plan { log, boards, servers })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "servers = \"servers.toml\"\n[[board]]\nip = \"10.0.0.2\"\ncount = 2\n\
        [[server]]\nnumber = 1\nip = \"10.0.1.2\"\n[[server]]\nnumber = 0\nip = \"10.0.1.1\"\nmetrics = \"10.0.1.1:9100\"\n";

    #[test]
    fn a_file_has_boards_servers_and_the_place_of_the_log() {
        let plan = parse(Path::new("/etc/farm.toml"), GOOD).unwrap();
        assert_eq!(plan.log, Path::new("/etc/servers.toml"));
        assert_eq!(plan.boards[1], ("10.0.0.3".into(), "10.0.0.3".parse().unwrap()));
        assert_eq!(plan.servers.iter().map(|server| server.number).collect::<Vec<_>>(), [0, 1]);
        let out = parse(Path::new("farm.toml"), &GOOD.replace("number = 1\n", "number = 1\nuse = false\n")).unwrap();
        assert_eq!(out.unused().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_value() {
        for (from, to, why) in [
            ("ip = \"10.0.0.2\"", "ip = \"10.0.0.2:0x\"", "no UDP port"),
            ("count = 2", "count = 0", "count = 0 from 10.0.0.2"),
            ("10.0.1.2", "10.0.1.1", "an address of its own"),
            ("number = 1\n", "number = 0\n", "an address of its own"),
            ("number = 1\n", "number = 1\nweight = 0\n", "weight = 0: allowed are 1 to 63"),
            ("number = 1\n", "nummer = 1\n", "nummer"),
            ("[[server]]", "[[board]]\nip = \"10.0.0.3\"\n[[server]]", "two boards are called 10.0.0.3"),
        ] {
            let message = parse(Path::new("farm.toml"), &GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(message.contains(why), "{message}");
        }
        let message = parse(Path::new("f"), &GOOD.replace("ip = \"10.0.1", "use = false\nip = \"10.0.1")).unwrap_err();
        assert!(message.contains("use = true"), "{message}");
    }
}
