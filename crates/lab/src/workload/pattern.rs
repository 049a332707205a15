// SPDX-License-Identifier: Apache-2.0
//! Groups of hosts selected by pattern, and the pairing of senders of one group with receivers of another.
//! Promise: hosts come in the order of the topology, each once; no host is paired with itself.

use penstock_netsim::Stream;
use std::collections::BTreeSet;

use crate::topology::{NodeKind, Topology};

/// A pattern that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error(
        "`{pattern}` names no host; {existing}; allowed are names, * for any part, {{0..7}} for a range of numbers"
    )]
    NoMatch { pattern: String, existing: String },
    #[error("`{pattern}` names number {number}, and no host has it; {existing}")]
    Missing { pattern: String, number: u64, existing: String },
    #[error("`{0}` is a switch; allowed are hosts")]
    Switch(String),
    #[error("`{0}` has a range that is none; write it as board{{0..7}}")]
    Range(String),
}

/// The hosts that a list of patterns names. Every number of a range must be that of a host: a scenario of fewer boards
/// than it says would carry another load.
pub fn expand_names(topology: &Topology, patterns: &[String]) -> Result<Vec<usize>, PatternError> {
    let mut hosts: Vec<usize> = Vec::new();
    let mut add = |found: &[usize]| {
        for host in found {
            if !hosts.contains(host) {
                hosts.push(*host);
            }
        }
    };
    for pattern in patterns {
        if let Some(node) = topology.node(pattern) {
            if topology.nodes[node].kind == NodeKind::Switch {
                return Err(PatternError::Switch(pattern.clone()));
            }
            add(&[node]);
            continue;
        }
        let pieces = pieces(pattern)?;
        let existing = || topology.names(|node| node.kind == NodeKind::Host);
        let mut numbers = vec![BTreeSet::new(); pieces.len()];
        let found =
            topology.of_kind(NodeKind::Host).filter(|host| matches(&pieces, topology.name(*host), &mut numbers));
        let found: Vec<usize> = found.collect();
        add(&found);
        if found.is_empty() {
            return Err(PatternError::NoMatch { pattern: pattern.clone(), existing: existing() });
        }
        if let Some(number) = pieces.iter().zip(&numbers).find_map(|(piece, found)| piece.missing(found)) {
            return Err(PatternError::Missing { pattern: pattern.clone(), number, existing: existing() });
        }
    }
    Ok(hosts)
}

/// A part of a pattern.
enum Piece<'a> {
    Text(&'a str),
    Any,
    /// A number in this range, both ends included.
    Range(u64, u64),
}

impl Piece<'_> {
    /// The first number of a range that is not there.
    fn missing(&self, there: &BTreeSet<u64>) -> Option<u64> {
        match self {
            Piece::Range(low, high) => (*low..=*high).find(|number| !there.contains(number)),
            Piece::Text(_) | Piece::Any => None,
        }
    }
}

fn pieces(pattern: &str) -> Result<Vec<Piece<'_>>, PatternError> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['*', '{']) {
        pieces.push(Piece::Text(&rest[..at]));
        if rest.as_bytes()[at] == b'*' {
            pieces.push(Piece::Any);
            rest = &rest[at + 1..];
            continue;
        }
        let range = rest[at + 1..].split_once('}').and_then(|(range, after)| {
            let (low, high) = range.split_once("..")?;
            Some((low.trim().parse().ok()?, high.trim().parse().ok()?, after))
        });
        let (low, high, after) = range.ok_or_else(|| PatternError::Range(pattern.to_owned()))?;
        pieces.push(Piece::Range(low, high));
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// Whether a name fits; the numbers that it has where pieces are ranges are noted by piece.
fn matches(pieces: &[Piece], name: &str, numbers: &mut [BTreeSet<u64>]) -> bool {
    match pieces {
        [] => name.is_empty(),
        [Piece::Text(text), rest @ ..] => {
            name.strip_prefix(text).is_some_and(|name| matches(rest, name, &mut numbers[1..]))
        }
        [Piece::Any, rest @ ..] => (0..=name.len()).any(|at| matches(rest, &name[at..], &mut numbers[1..])),
        [Piece::Range(low, high), rest @ ..] => {
            let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number = name[..digits].parse::<u64>().ok().filter(|number| (*low..=*high).contains(number));
            let fits = number.is_some() && matches(rest, &name[digits..], &mut numbers[1..]);
            numbers[0].extend(number.filter(|_| fits));
            fits
        }
    }
}

/// The senders and receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Every sender to every receiver: incast with one receiver, all-to-all with the same hosts on both sides.
    All,
    /// The first to the first, the second to the second, ...; the shorter list begins again.
    Zip,
    /// Every sender to one receiver drawn at random, each receiver equally often (as far as the numbers allow).
    Permutation,
}

/// The pairs (sender, receiver) without those of a host with itself.
pub fn pairs(pairing: Pairing, from: &[usize], to: &[usize], random: &mut Stream) -> Vec<(usize, usize)> {
    let zipped = |to: &[usize]| -> Vec<(usize, usize)> {
        let length = from.len().max(to.len());
        from.iter().copied().cycle().zip(to.iter().copied().cycle()).take(length).collect()
    };
    let mut pairs = match pairing {
        Pairing::All => from.iter().flat_map(|sender| to.iter().map(move |receiver| (*sender, *receiver))).collect(),
        Pairing::Zip => zipped(to),
        Pairing::Permutation => {
            let mut receivers: Vec<usize> = to.iter().copied().cycle().take(from.len()).collect();
            random.shuffle(&mut receivers);
            // a host that drew itself swaps with its neighbour, which cannot have drawn it, too
            let count = receivers.len();
            for index in 0..count {
                if receivers[index] == from[index] {
                    receivers.swap(index, (index + 1) % count);
                }
            }
            from.iter().copied().zip(receivers).collect()
        }
    };
    pairs.retain(|(sender, receiver)| sender != receiver);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology() -> Topology {
        let mut topology = Topology::new();
        topology.add("switch", NodeKind::Switch).unwrap();
        for number in 0..12 {
            topology.add(format!("board{number}"), NodeKind::Host).unwrap();
        }
        topology.add("server0", NodeKind::Host).unwrap();
        topology
    }

    fn expand(patterns: &[&str]) -> Result<Vec<usize>, String> {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        expand_names(&topology(), &patterns).map_err(|error| error.to_string())
    }

    #[test]
    fn patterns_name_hosts_in_order() {
        assert_eq!(expand(&["board1"]), Ok(vec![2]));
        assert_eq!(expand(&["board{8..11}", "server*"]), Ok(vec![9, 10, 11, 12, 13]));
        assert_eq!(expand(&["*1"]), Ok(vec![2, 12]));
        assert_eq!(expand(&["*"]).unwrap().len(), 13, "the switch is no host");
    }

    #[test]
    fn patterns_that_name_nothing_are_refused() {
        let report = [&["bord*"][..], &["switch"], &["board{1-3}"], &["board{20..30}"], &["board{8..99}"]]
            .map(|p| expand(p).unwrap_err());
        insta::assert_snapshot!(report.join("\n"));
    }

    #[test]
    fn pairs_are_those_of_the_pairing_and_never_of_a_host_with_itself() {
        let mut random = Stream::new(1, "pairs");
        let mut of = |pairing, from: &[usize], to: &[usize]| pairs(pairing, from, to, &mut random);
        assert_eq!(of(Pairing::All, &[1, 2], &[1, 2, 3]), [(1, 2), (1, 3), (2, 1), (2, 3)]);
        assert_eq!(of(Pairing::Zip, &[1, 2, 3], &[7, 8]), [(1, 7), (2, 8), (3, 7)]);
        for seed in 0..200 {
            let hosts: Vec<usize> = (0..9).collect();
            let mut random = Stream::new(seed, "pairs");
            let drawn = pairs(Pairing::Permutation, &hosts, &hosts, &mut random);
            let mut receivers: Vec<usize> = drawn.iter().map(|pair| pair.1).collect();
            receivers.sort_unstable();
            assert_eq!(receivers, hosts, "seed {seed}: {drawn:?}");
        }
    }
}
