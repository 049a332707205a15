// SPDX-License-Identifier: Apache-2.0
//! `[link]`, `[link.uplink]`, `[link.server]` and `[link.at."a-b"]`: the parameters of links, from the general to the
//! specific.
//! Promise: a key missing in a table is taken from the more general one: `at` from its kind, `uplink` and `server` from
//! `[link]`.

use penstock_netsim::LinkParams;

use crate::language::keys::{link_keys, refuse_link};
use crate::language::reader::Section;
use crate::topology::{LinkKinds, Topology};

/// The tables of links while the topology is read.
pub(super) struct Links<'a> {
    section: Section<'a>,
    pub(super) kinds: LinkKinds,
}

/// The keys of one link, with what is out of range refused.
pub(super) fn checked_link(section: &mut Section, default: LinkParams) -> LinkParams {
    let params = link_keys(section, default);
    for (key, message) in refuse_link(&params) {
        if section.has(key) {
            section.refuse(key, message);
        }
    }
    params
}

impl<'a> Links<'a> {
    pub(super) fn read(mut section: Section<'a>) -> Self {
        let access = checked_link(&mut section, LinkParams::default());
        let mut kind = |name: &str| {
            let mut table = section.section(name);
            let params = if table.exists() { checked_link(&mut table, access) } else { access };
            table.finish();
            params
        };
        let (uplink, server) = (kind("uplink"), kind("server"));
        Links { section, kinds: LinkKinds { access, server, uplink } }
    }

    /// Lays `[link.at]` over the links of the topology.
    pub(super) fn apply(&mut self, topology: &mut Topology) {
        for (name, mut table) in self.section.named_sections("at") {
            match topology.link(&name) {
                Some((link, _)) => {
                    let params = checked_link(&mut table, topology.links[link].params);
                    topology.links[link].params = params;
                    table.finish();
                }
                None => table.refuse_whole(format!("there is no such link; {}", links_like(topology, &name))),
            }
        }
    }

    pub(super) fn finish(self) {
        self.section.finish();
    }
}

/// A suggestion for an unknown link: its name, if it is named after one of its ends; else the names of some links.
pub(super) fn links_like(topology: &Topology, name: &str) -> String {
    let names: Vec<String> = (0..topology.links.len()).map(|link| topology.link_name(link)).collect();
    match link_of_node(name, names.iter().map(String::as_str)) {
        Some(link) => format!("a link is called after both its ends: write {link}"),
        None => some_links(topology),
    }
}

/// The link that one of its ends names: "board0-switch" for "board0".
fn link_of_node<'a>(name: &str, mut links: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let node = if name == "server" { "server0" } else { name };
    links.find(|link| link.split('-').any(|end| end == node))
}

/// The names of some links, for messages.
pub(super) fn some_links(topology: &Topology) -> String {
    const SHOWN: usize = 8;
    let count = topology.links.len();
    let names: Vec<String> = (0..count.min(SHOWN)).map(|link| topology.link_name(link)).collect();
    match count {
        0 => "there are none".to_owned(),
        _ if count > SHOWN => format!("there are {}, ... ({count} in all)", names.join(", ")),
        _ => format!("there are {}", names.join(", ")),
    }
}
