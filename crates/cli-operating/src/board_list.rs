// SPDX-License-Identifier: Apache-2.0
//! Lists of boards on the command line: addresses, names of hosts, ranges, networks, files.
//! Promise: a board appears in a list only once.

use penstock_ipbus::BoardAddress;
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::str::FromStr;

/// Boards that one command speaks to.
pub const MOST: usize = 65_536;

/// A board of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    pub address: BoardAddress,
    /// It is one of a range or a network, where not every address needs to be a board.
    pub is_sought: bool,
}

/// The boards of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardList(pub Vec<Listed>);

impl FromStr for BoardList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut boards = Vec::new();
        text.split(',').try_for_each(|item| read_item(item.trim(), &mut boards))?;
        checked(boards)
    }
}

fn checked(boards: Vec<Listed>) -> Result<BoardList, String> {
    let mut seen = HashSet::new();
    if let Some(twice) = boards.iter().find(|board| !seen.insert(board.address)) {
        return Err(format!("{} stands twice in the list; each board has an address of its own", twice.address));
    }
    Ok(BoardList(boards))
}

fn read_item(item: &str, boards: &mut Vec<Listed>) -> Result<(), String> {
    if let Some(file) = item.strip_prefix('@') {
        return read_file(Path::new(file), boards);
    }
    if let Some((network, prefix)) = item.split_once('/') {
        return hosts(network, prefix, boards);
    }
    // A host's name may have a hyphen.
    if let Some((first, last)) = item.split_once('-').filter(|_| item.starts_with(|c: char| c.is_ascii_digit())) {
        return range(first, last, boards);
    }
    push(boards, Listed { address: item.parse()?, is_sought: false })
}

fn push(boards: &mut Vec<Listed>, board: Listed) -> Result<(), String> {
    if boards.len() == MOST {
        return Err(format!("more than {MOST} boards; give fewer at a time"));
    }
    boards.push(board);
    Ok(())
}

fn addresses(first: u32, last: u32, port: u16, boards: &mut Vec<Listed>) -> Result<(), String> {
    (first..=last).try_for_each(|ip| {
        let address = BoardAddress(SocketAddrV4::new(Ipv4Addr::from_bits(ip), port));
        push(boards, Listed { address, is_sought: true })
    })
}

/// 10.0.0.2-10.0.0.9, 10.0.0.2-9.
fn range(first: &str, last: &str, boards: &mut Vec<Listed>) -> Result<(), String> {
    let BoardAddress(first_address) = first.parse()?;
    let begin = first_address.ip().to_bits();
    let end = match last.parse::<u8>() {
        Ok(octet) => begin & !0xFF | u32::from(octet),
        Err(_) => last
            .parse::<Ipv4Addr>()
            .map_err(|_| format!("{last:?} is no IPv4 address; write a range as 10.0.0.2-10.0.0.9"))?
            .to_bits(),
    };
    if end < begin {
        return Err(format!("{first}-{last}: the last address is below the first"));
    }
    addresses(begin, end, first_address.port(), boards)
}

/// 10.0.0.0/24, without the network's own address and that of all its hosts.
fn hosts(network: &str, prefix: &str, boards: &mut Vec<Listed>) -> Result<(), String> {
    let bits = prefix.parse().ok().filter(|bits| (16..=32).contains(bits));
    let bits: u32 = bits.ok_or_else(|| format!("/{prefix}: the length of a prefix is 16 to 32 here"))?;
    let BoardAddress(address) = network.parse()?;
    let mask = u32::MAX << (32 - bits);
    let base = address.ip().to_bits();
    if base & !mask != 0 {
        return Err(format!("{network}/{prefix}: the network is {}/{bits}", Ipv4Addr::from_bits(base & mask)));
    }
    let (first, last) = if bits >= 31 { (base, base | !mask) } else { (base + 1, (base | !mask) - 1) };
    addresses(first, last, address.port(), boards)
}

/// One item a line; what follows a # is a comment.
fn read_file(file: &Path, boards: &mut Vec<Listed>) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    // Some editors put a byte order mark in front.
    let text = text.trim_start_matches('\u{FEFF}');
    for (number, line) in text.lines().enumerate() {
        let item = line.split('#').next().unwrap_or("").trim();
        let place = |error| format!("{}:{}: {error}", file.display(), number + 1);
        if item.starts_with('@') {
            return Err(place(format!("{item}: a list names no other file")));
        }
        if !item.is_empty() {
            read_item(item, boards).map_err(place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        text.parse::<BoardList>().unwrap().0.iter().map(|board| board.address.to_string()).collect()
    }

    #[test]
    fn addresses_ranges_networks_and_files_are_lists() {
        assert_eq!(shown("10.0.0.2,10.0.0.9:50003"), ["10.0.0.2", "10.0.0.9:50003"]);
        assert_eq!(shown("localhost,10.0.0.2"), ["127.0.0.1", "10.0.0.2"]);
        assert_eq!(shown("10.0.0.2-4"), ["10.0.0.2", "10.0.0.3", "10.0.0.4"]);
        assert_eq!(shown("10.0.0.254-10.0.1.1"), ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]);
        assert_eq!(shown("10.0.0.0/30"), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(shown("10.0.0.0/24").len(), 254);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("boards.txt");
        std::fs::write(&file, "10.0.0.2  # module 0\n\n10.0.0.4-5\n").unwrap();
        assert_eq!(shown(&format!("@{}", file.display())), ["10.0.0.2", "10.0.0.4", "10.0.0.5"]);
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_place() {
        let refusal = |text: &str| text.parse::<BoardList>().unwrap_err();
        assert!(refusal("10.0.0.2,10.0.0.1-3").contains("10.0.0.2 stands twice"));
        assert!(refusal("10.0.0").contains("\"10.0.0\" is no IPv4 address"));
        assert!(refusal("no-such-board.invalid").contains("no host of this name is found"));
        assert!(refusal("10.0.0.9-2").contains("below the first"));
        assert!(refusal("10.0.0.1/24").contains("the network is 10.0.0.0/24"));
        assert!(refusal("10.0.0.0/8").contains("16 to 32"));
        assert!(refusal("10.0.0.2:x").contains("no UDP port"));
        assert!(refusal("@/no/such/file").contains("/no/such/file"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("boards.txt");
        std::fs::write(&file, "10.0.0.2\nmodule 1\n").unwrap();
        assert!(refusal(&format!("@{}", file.display())).contains("boards.txt:2: "));
    }
}
