// SPDX-License-Identifier: Apache-2.0
//! `[[triggers.group]]` and `[[replay.group]]`: boards whose share, law, fragments or part in the events are not those
//! of all.
//! Promise: a board is in one group at most; boards of no group have the settings of `[cc]` and of their table.
//! Source: docs/lab.md.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::files::read_text;
use super::traffic::{Boards, Milli, Traffic, LONGEST};
use super::transport::Laws;
use crate::language::reader::Section;
use crate::units::{ByteSize, Probability, Time};
use crate::workload::{zipf, BoardLoad, FragmentBytes, Loads, SizeTable};

/// The largest exponent of Zipf's law: the second rank has a sixteenth of the first.
const STEEPEST: Milli = Milli(4_000);
/// The largest weight.
const HEAVIEST: u64 = 1_000_000;

/// Where the size of a fragment comes from.
#[derive(Clone, Copy, PartialEq)]
enum Sizes {
    OfTable,
    Fixed,
    Zipf,
    Measured,
}

const SIZES: [(&str, Sizes); 4] =
    [("table", Sizes::OfTable), ("fixed", Sizes::Fixed), ("zipf", Sizes::Zipf), ("measured", Sizes::Measured)];

fn always() -> Probability {
    Probability::new(1.0).unwrap_or_default()
}

impl Traffic<'_> {
    /// The boards at `hosts`, and the groups that they are in. `has_data`: the recording has the bytes of the fragments,
    /// so that groups cannot have other sizes.
    pub(super) fn boards(&self, mut groups: Vec<Section>, hosts: Vec<usize>, has_data: bool) -> Boards {
        let members = self.members(&mut groups, &hosts);
        let of_group: Vec<u64> = groups.iter_mut().map(|group| group.integer("weight", 1, 1..=HEAVIEST)).collect();
        let mut weights = vec![1; hosts.len()];
        for (weight, members) in of_group.iter().zip(&members) {
            members.iter().for_each(|board| weights[*board] = *weight);
        }
        let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        let law_of = |weight: u64| self.laws.weighted(weight, (all, hosts.len() as u128));
        let mut laws: Vec<Laws> = weights.iter().map(|weight| law_of(*weight)).collect();
        let of_table = BoardLoad { probability: always(), bytes: FragmentBytes::OfTable };
        let mut loads = vec![of_table.clone(); hosts.len()];
        for ((mut group, weight), members) in groups.into_iter().zip(of_group).zip(&members) {
            let (has_cc, cc) = (group.has("cc"), group.section("cc"));
            if cc.has("share") && group.has("weight") {
                group.refuse("weight", "allowed is one of weight and cc.share");
            }
            if has_cc {
                let law = law_of(weight).overlaid(cc);
                members.iter().for_each(|board| laws[*board] = law);
            }
            if !has_data {
                self.loads(&mut group, members, &mut loads);
            }
            group.finish();
        }
        let is_special = loads.iter().any(|load| *load != of_table);
        Boards { hosts, laws, loads: is_special.then(|| Loads::new(self.seed, loads)), stagger: Time::ZERO }
    }

    /// The boards of each group, by their place in `hosts`.
    fn members(&self, groups: &mut [Section], hosts: &[usize]) -> Vec<Vec<usize>> {
        let place: BTreeMap<usize, usize> = hosts.iter().enumerate().map(|(board, host)| (*host, board)).collect();
        let mut group_of: Vec<Option<usize>> = vec![None; hosts.len()];
        let mut rest = None;
        for (number, group) in groups.iter_mut().enumerate() {
            if !group.has("from") {
                if let Some(other) = rest.replace(number) {
                    let message = format!("group {other} has no from either; name the boards of one of them");
                    group.refuse("from", message);
                }
            }
            for host in self.named(group) {
                let name = self.topology.name(host);
                match place.get(&host).map(|board| &mut group_of[*board]) {
                    Some(Some(other)) => {
                        group.refuse("from", format!("{name} is in group {other} already; allowed is one group"));
                    }
                    Some(place) => *place = Some(number),
                    None if hosts.is_empty() => {}
                    None => group.refuse("from", format!("{name} has no fragments here; allowed are boards that have")),
                }
            }
        }
        let of_group = |number: usize| {
            let is_its = |board: &usize| group_of[*board].or(rest) == Some(number);
            (0..hosts.len()).filter(is_its).collect()
        };
        (0..groups.len()).map(of_group).collect()
    }

    /// The hosts that a group names.
    fn named(&self, group: &mut Section) -> Vec<usize> {
        if group.has("from") {
            return self.hosts(group, "from", "");
        }
        group.list::<String>("from");
        group.note_default("from", "boards of no other group");
        Vec::new()
    }

    /// What the boards of a group send, and how often.
    fn loads(&self, group: &mut Section, members: &[usize], loads: &mut [BoardLoad]) {
        let usual = if group.has("fragment") { Sizes::Fixed } else { Sizes::OfTable };
        let sizes = group.choice("sizes", usual, &SIZES);
        let probability = group.read("probability", always());
        if probability.is_never() {
            group.refuse("probability", "allowed is more than 0; leave boards that send nothing out of from");
        }
        let fragment = match sizes {
            Sizes::Fixed | Sizes::Zipf => group.read("fragment", ByteSize(1_000)).bytes(),
            Sizes::OfTable | Sizes::Measured => 1,
        };
        if !(1..=LONGEST).contains(&fragment) {
            group.refuse("fragment", "allowed is 1B to 2GiB, the longest RDMA message");
            return;
        }
        let mut bytes = vec![FragmentBytes::OfTable; members.len()];
        match sizes {
            Sizes::OfTable => {}
            Sizes::Fixed => bytes.fill(FragmentBytes::Fixed(fragment)),
            Sizes::Zipf => self.by_rank(group, fragment, &mut bytes),
            Sizes::Measured => match self.measured(group) {
                Ok(sizes) => bytes.fill(FragmentBytes::Drawn(Rc::new(sizes))),
                Err(message) => group.refuse("sizes_file", message),
            },
        }
        for (board, bytes) in members.iter().zip(bytes) {
            loads[*board] = BoardLoad { probability, bytes };
        }
    }

    /// Sizes by Zipf's law: of a board in all events, or of a rank that is drawn for each fragment.
    fn by_rank(&self, group: &mut Section, fragment: u64, boards: &mut [FragmentBytes]) {
        let exponent = group.read("exponent", Milli(1_000));
        if exponent.0 > STEEPEST.0 {
            group.refuse("exponent", format!("allowed is 0.001 to {STEEPEST}"));
        }
        let by_event = group.choice("ranks", true, &[("event", true), ("board", false)]);
        let sizes = zipf(boards.len(), fragment, exponent.0);
        if let Some(largest) = sizes.first().filter(|bytes| **bytes > LONGEST) {
            let message = format!("the first rank would have {largest} bytes; allowed are up to 2GiB");
            group.refuse("fragment", message);
        }
        match by_event {
            true if !sizes.is_empty() => {
                boards.fill(FragmentBytes::Drawn(Rc::new(SizeTable::uniform(sizes))));
            }
            _ => boards.iter_mut().zip(sizes).for_each(|(board, bytes)| *board = FragmentBytes::Fixed(bytes)),
        }
    }

    fn measured(&self, group: &mut Section) -> Result<SizeTable, String> {
        let path = group.path("sizes_file", "sizes.csv");
        let text =
            read_text(self.read_file, &path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        SizeTable::from_csv(&text).map_err(|error| format!("{}, {error}", path.display()))
    }
}
