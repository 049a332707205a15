// SPDX-License-Identifier: Apache-2.0
//! Names of registers: `local_ip`, `cc[0].rate_ai`, `flow_control.pfc_en`, `qp[0-3].state`, `qp[2]`.
//!
//! | name | stands for |
//! |---|---|
//! | `register` | a register of the top level |
//! | `group.register` | a register of a group; of every copy that the board has, where there are several |
//! | `group[2].register`, `group[0-3].register` | of these copies |
//! | `... .field` | bits of it |
//! | `group`, `group[2]` | all registers of it |
//! | `register` for `register_lo` and `register_hi` | both as one number |

use super::{Field, Group, Map, Register, BOARD};

/// How many copies of a group a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copies {
    /// That a name without an index stands for.
    pub named: u32,
    /// That an index may name.
    pub all: u32,
}

/// The meaning of a name depends on the board's build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    #[allow(missing_docs)]
    pub queue_pairs: u32,
    #[allow(missing_docs)]
    pub clock_khz: u32,
}

/// Which bits of a place are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    #[allow(missing_docs)]
    Register,
    #[allow(missing_docs)]
    Field(&'static Field),
    /// The register is the low half of a number; this is its high half.
    Pair(&'static Register),
}

/// A register of a board, or some of its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Place {
    pub group: &'static Group,
    /// Copy of the group.
    pub index: u32,
    pub register: &'static Register,
    pub target: Target,
}

/// A name without a register.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum NameError {
    #[error("{name:?}: there is no such register; {hint}")]
    Unknown { name: String, hint: String },
    #[error("{name:?}: {group} has {count} copies on this {device}, 0 to {}", .count - 1)]
    NoCopy { name: String, group: &'static str, count: u32, device: &'static str },
    #[error("{name:?}: this board has no queue pairs: its gateware is built without RoCE (WITH_ROCE is 0)")]
    NoQueuePairs { name: String },
    #[error("{name:?}: write copies as {group}[0] or {group}[0-3]")]
    BadIndex { name: String, group: String },
}

impl Place {
    /// Byte address of its first word.
    pub fn address(&self) -> u32 {
        self.group.address(self.register, self.index)
    }

    /// The addresses to read, low half first.
    pub fn addresses(&self) -> impl Iterator<Item = u32> {
        let high = match self.target {
            Target::Pair(high) => Some(self.group.address(high, self.index)),
            _ => None,
        };
        std::iter::once(self.address()).chain(high)
    }

    /// The name that finds it again.
    pub fn name(&self) -> String {
        let group = match (self.group.name, self.group.count) {
            ("", _) => String::new(),
            (name, 1) => format!("{name}."),
            (name, _) => format!("{name}[{}].", self.index),
        };
        let register = match self.target {
            Target::Pair(_) => self.register.name.trim_end_matches("_lo"),
            _ => self.register.name,
        };
        match self.target {
            Target::Field(field) => format!("{group}{register}.{}", field.name),
            _ => format!("{group}{register}"),
        }
    }

    /// The only field that it is about, if it is one: a register with one field, or the field of the register's own
    /// name.
    pub fn field(&self) -> Option<&'static Field> {
        match self.target {
            Target::Field(field) => Some(field),
            Target::Pair(_) => self.register.fields.first(),
            Target::Register => match self.register.fields {
                [field] => Some(field),
                fields => fields.iter().find(|field| field.name == self.register.name),
            },
        }
    }

    /// Whether software may write it.
    pub fn writable(&self) -> bool {
        match self.target {
            Target::Field(field) => field.writable,
            _ => self.register.writable,
        }
    }
}

/// The register places of a name on a board.
///
/// # Errors
/// There is no such register, or no such copy.
pub fn find(name: &str, build: Build) -> Result<Vec<Place>, NameError> {
    let copies =
        |group: &Group| Copies { named: group.copies(build.queue_pairs), all: group.indices(build.queue_pairs) };
    BOARD.find(name, copies)
}

impl Map {
    /// The register places of a name on a device that has these copies of each group.
    ///
    /// # Errors
    /// There is no such register, or no such copy.
    pub fn find(&'static self, name: &str, copies_of: impl Fn(&Group) -> Copies) -> Result<Vec<Place>, NameError> {
        let top = self.groups.iter().find(|group| group.name.is_empty());
        if let Some(place) = top.and_then(|group| within(group, 0, name)) {
            return Ok(vec![place]);
        }
        let (head, rest) = name.split_once('.').unwrap_or((name, ""));
        let (group_name, index) = match head.split_once('[') {
            Some((group, index)) => (group, Some(index)),
            None => (head, None),
        };
        let unknown = || NameError::Unknown { name: name.to_owned(), hint: self.hint(name) };
        let is_named = |group: &&Group| group.name == group_name && !group_name.is_empty();
        let group = self.groups.iter().find(is_named).ok_or_else(unknown)?;
        let Copies { named, all } = copies_of(group);
        let (first, last) = match index {
            None => (0, named.saturating_sub(1)),
            Some(index) => copies(name, group_name, index)?,
        };
        if all == 0 {
            return Err(NameError::NoQueuePairs { name: name.to_owned() });
        }
        if last >= all {
            let (name, device) = (name.to_owned(), self.device);
            return Err(NameError::NoCopy { name, group: group.name, count: all, device });
        }
        if rest.is_empty() {
            let all = |index| {
                group.registers.iter().map(move |register| Place { group, index, register, target: Target::Register })
            };
            return Ok((first..=last).flat_map(all).collect());
        }
        (first..=last).map(|index| within(group, index, rest).ok_or_else(unknown)).collect()
    }

    /// The register at an address.
    pub fn place_of(&'static self, address: u32) -> Option<Place> {
        self.groups.iter().filter(|group| address >= group.base).find_map(|group| {
            let index = if group.count > 1 { (address - group.base) / group.stride } else { 0 };
            let found = group
                .registers
                .iter()
                .find(|register| index < group.copies(group.count) && group.address(register, index) == address);
            found.map(|register| Place { group, index, register, target: Target::Register })
        })
    }

    /// The name of the register at an address.
    pub fn name_of(&'static self, address: u32) -> String {
        self.place_of(address).map_or_else(|| format!("0x{address:05X}"), |place| place.name())
    }

    /// Every name without copies and fields.
    fn all_names(&self) -> impl Iterator<Item = String> {
        self.groups.iter().flat_map(|group| {
            let prefix = match (group.name, group.count) {
                ("", _) => String::new(),
                (name, 1) => format!("{name}."),
                (name, _) => format!("{name}[0]."),
            };
            group.registers.iter().map(move |register| format!("{prefix}{}", register.name))
        })
    }

    /// Suggestions for an unknown name.
    fn hint(&self, name: &str) -> String {
        let last = name.rsplit('.').next().unwrap_or(name);
        let far = |candidate: &str| {
            (distance(candidate.rsplit('.').next().unwrap_or(candidate), last), distance(candidate, name))
        };
        let names = self.all_names().map(|candidate| (far(&candidate), candidate));
        let mut near: Vec<_> = names.filter(|((far, _), _)| *far <= 2).collect();
        near.sort();
        let near: Vec<String> = near.into_iter().take(2).map(|(_, candidate)| candidate).collect();
        let lists_all = format!("`{}` lists all", self.listed_by);
        match near.is_empty() {
            true => lists_all,
            false => format!("is {} meant? {lists_all}", near.join(" or ")),
        }
    }
}

/// `0]` or `0-3]`.
fn copies(name: &str, group: &str, text: &str) -> Result<(u32, u32), NameError> {
    let bad = || NameError::BadIndex { name: name.to_owned(), group: group.to_owned() };
    let inner = text.strip_suffix(']').ok_or_else(bad)?;
    let (first, last) = inner.split_once('-').unwrap_or((inner, inner));
    let number = |text: &str| text.parse::<u32>().map_err(|_| bad());
    match (number(first)?, number(last)?) {
        (first, last) if first <= last => Ok((first, last)),
        _ => Err(bad()),
    }
}

/// `register`, `register.field`, or the stem of two halves.
fn within(group: &'static Group, index: u32, name: &str) -> Option<Place> {
    let (register_name, field_name) =
        name.split_once('.').map_or((name, None), |(register, field)| (register, Some(field)));
    let of = |part: &str| group.registers.iter().find(|register| register.name == part);
    if let Some(register) = of(register_name) {
        let target = match field_name {
            None => Target::Register,
            Some(part) => Target::Field(register.fields.iter().find(|field| field.name == part)?),
        };
        return Some(Place { group, index, register, target });
    }
    let low = of(&format!("{register_name}_lo"))?;
    let high = of(&format!("{register_name}_hi"))?;
    field_name.is_none().then_some(Place { group, index, register: low, target: Target::Pair(high) })
}

/// The board's register at an address.
pub fn place_of(address: u32) -> Option<Place> {
    BOARD.place_of(address)
}

/// The name of the board's register at an address.
pub fn name_of(address: u32) -> String {
    BOARD.name_of(address)
}

/// Names of the board's registers that contain a word.
pub fn names_like(word: &str) -> Vec<String> {
    BOARD.all_names().filter(|name| name.contains(word)).collect()
}

/// Changes of single characters from one word to another (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let least = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], least);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: Build = Build { queue_pairs: 4, clock_khz: 156_250 };

    fn addresses(name: &str) -> Vec<u32> {
        find(name, BUILD).unwrap().iter().map(Place::address).collect()
    }

    #[test]
    fn names_find_their_addresses() {
        use crate::regs::{cc, global, qp, ring};
        assert_eq!(addresses("local_ip"), [global::LOCAL_IP]);
        assert_eq!(addresses("ring"), [global::RING]);
        assert_eq!(addresses("ring[1].slots"), [ring::BASE + ring::STRIDE + ring::SLOTS]);
        assert_eq!(addresses("ring.slots").len(), 4);
        assert_eq!(addresses("cc[2].rate_ai"), [cc::BASE + 2 * cc::STRIDE + cc::RATE_AI]);
        assert_eq!(
            addresses("qp[0-3].state"),
            (0..4).map(|i| qp::BASE + i * qp::STRIDE + qp::STATE).collect::<Vec<_>>()
        );
        assert_eq!(addresses("qp.state").len(), 4);
        let mac = find("local_mac", BUILD).unwrap()[0];
        assert_eq!(mac.addresses().collect::<Vec<_>>(), [global::LOCAL_MAC_LO, global::LOCAL_MAC_HI]);
        assert_eq!(find("qp[3]", BUILD).unwrap().len(), find("qp[2]", BUILD).unwrap().len());
    }

    #[test]
    fn addresses_have_the_names_by_which_they_are_found() {
        use crate::regs::{global, qp, ring};
        assert_eq!(name_of(global::LOCAL_IP), "local_ip");
        assert_eq!(name_of(qp::BASE + 3 * qp::STRIDE + qp::STATE), "qp[3].state");
        assert_eq!(name_of(ring::BASE + 255 * ring::STRIDE), "ring[255].base_lo");
        assert_eq!(name_of(0xFC), "0x000FC");
        for place in find("qp[3]", BUILD).unwrap() {
            assert_eq!(name_of(place.address()), place.name());
        }
    }

    #[test]
    fn every_name_finds_its_place_again() {
        for name in BOARD.all_names() {
            let place = find(&name, BUILD).unwrap()[0];
            assert_eq!(place.name(), name);
            assert_eq!(find(&place.name(), BUILD).unwrap()[0], place);
        }
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_may_be_meant() {
        let message = |name: &str| find(name, BUILD).unwrap_err().to_string();
        assert!(message("cc[0].rate_io").contains("is cc[0].rate_ai or "), "{}", message("cc[0].rate_io"));
        assert!(message("qp[4].state").contains("4 copies on this board, 0 to 3"), "{}", message("qp[4].state"));
        let without = Build { queue_pairs: 0, ..BUILD };
        // The meters of streams follow those of queue pairs.
        assert_eq!(find("meter.bytes", BUILD).unwrap().len(), 4);
        assert_eq!(find("meter[4-67].bytes", BUILD).unwrap().len(), 64);
        assert!(message("meter[68].bytes").contains("68 copies on this board"), "{}", message("meter[68].bytes"));
        assert_eq!(find("latency.longest", without).unwrap().len(), 64);
        for name in ["qp.state", "cc[0].rate_ai", "ring[2]"] {
            assert_eq!(find(name, without), Err(NameError::NoQueuePairs { name: name.to_owned() }));
        }
        for bad in ["qp[x].state", "qp[3-1].state", "qp[1.state", "qp[].state"] {
            assert!(message(bad).contains("write copies as qp[0]"), "{bad}: {}", message(bad));
        }
        for nothing in ["", ".", "local_ip.first", "nothing.at.all", "[0].x"] {
            assert!(message(nothing).contains("no such register"), "{nothing}");
        }
    }
}
