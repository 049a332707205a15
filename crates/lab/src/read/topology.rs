// SPDX-License-Identifier: Apache-2.0
//! `[topology]`: a generator with its numbers, nodes and links written out, or the files of an ns-3 simulation.
//! Promise: a topology without hosts or with a node that has no link is refused; so are numbers that do not fit.

use std::path::{Path, PathBuf};

use super::files::{read_text, ReadFile};
use super::links::checked_link;
use crate::language::document::{Document, Item, Origin, Value};
use crate::language::reader::Section;
use crate::language::{Problem, ScenarioError};
use crate::topology::{
    Camera, FatTree, Grouping, LeafSpine, LinkClass, LinkKinds, NodeKind, Ns3Files, Ns3Import, StarShape, Topology,
    TopologyError, Tree,
};

/// Most nodes and links a topology may have.
const LARGEST: u64 = 100_000;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Star,
    Tree,
    LeafSpine,
    FatTree,
    Camera,
    Nodes,
    Ns3,
}

const KINDS: [(&str, Kind); 7] = [
    ("star", Kind::Star),
    ("tree", Kind::Tree),
    ("leaf-spine", Kind::LeafSpine),
    ("fat-tree", Kind::FatTree),
    ("camera", Kind::Camera),
    ("nodes", Kind::Nodes),
    ("ns3", Kind::Ns3),
];

/// Reads the files of an ns-3 simulation, if the scenario names some, and lays their settings under the document.
pub(super) fn import(
    document: &mut Document,
    folder: &Path,
    read_file: ReadFile,
    warnings: &mut Vec<Problem>,
) -> Result<Option<Ns3Import>, ScenarioError> {
    let word = |key: &str| match document.find(&format!("topology.{key}")) {
        Some(Item { value: Value::Text(text), origin, .. }) => Some((text.clone(), origin.clone())),
        _ => None,
    };
    if word("kind").is_none_or(|(kind, _)| kind != "ns3") {
        return Ok(None);
    }
    let load = |key: &str| -> Result<Option<(String, String)>, ScenarioError> {
        let Some((name, origin)) = word(key) else { return Ok(None) };
        let path = match origin {
            Origin::Set(_) => PathBuf::from(&name),
            Origin::File { .. } => folder.join(&name),
        };
        let text = read_text(read_file, &path).map_err(|source| ScenarioError::Io { path: path.clone(), source })?;
        Ok(Some((path.display().to_string(), text)))
    };
    let Some(topology) = load("file")? else {
        let message = "topology.kind = \"ns3\" needs the name of a topology file".to_owned();
        return Err(ScenarioError::one(document.problem("topology.file", "", message)));
    };
    let (flows, config) = (load("flows")?, load("config")?);
    fn pair(file: &(String, String)) -> (&str, &str) {
        (&file.0, &file.1)
    }
    let files =
        Ns3Files { topology: pair(&topology), flows: flows.as_ref().map(pair), config: config.as_ref().map(pair) };
    let mut findings = Vec::new();
    let import = Ns3Import::parse(&files, &mut findings);
    warnings.extend(findings.iter().map(|warning| {
        let (place, message) = warning.split_once(": ").unwrap_or(("", warning));
        Problem::at(place.to_owned(), message.to_owned())
    }));
    let import = import.map_err(|error| ScenarioError::Invalid(vec![Problem::at(error.place, error.message)]))?;
    for setting in &import.settings {
        document.lay_under(setting.key, &setting.value, &setting.file, setting.line);
    }
    Ok(Some(import))
}

/// `None` when there was a problem, which is noted.
pub(super) fn topology(mut section: Section, links: &LinkKinds, import: Option<&Ns3Import>) -> Option<Topology> {
    if !section.has("kind") {
        let words: Vec<String> = KINDS.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        section.refuse("kind", format!("the topology is missing; allowed are {}", words.join(", ")));
        return None;
    }
    let before = section.problem_count();
    let kind = section.choice("kind", Kind::Star, &KINDS);
    let built = match kind {
        Kind::Star => star(&mut section, links),
        Kind::Tree => tree(&mut section, links),
        Kind::LeafSpine => leaf_spine(&mut section, links),
        Kind::FatTree => fat_tree(&mut section, links),
        Kind::Camera => camera(&mut section, links),
        Kind::Nodes => nodes(&mut section, links),
        Kind::Ns3 => {
            let read: Vec<Option<String>> =
                ["file", "flows", "config"].iter().map(|key| section.optional(key)).collect();
            debug_assert!(read[0].is_some());
            import.map(|import| with_faults(&import.topology, links))
        }
    };
    let topology = built.filter(|_| section.problem_count() == before);
    if let Some(topology) = &topology {
        complete(&section, topology);
    }
    section.finish();
    topology
}

/// A count of things.
fn count(section: &mut Section, key: &str, default: u64, range: std::ops::RangeInclusive<u64>) -> u32 {
    section.integer(key, default, range) as u32
}

fn built(section: &Section, topology: Result<Topology, TopologyError>) -> Option<Topology> {
    topology.map_err(|error| section.refuse("kind", error.to_string())).ok()
}

fn star(section: &mut Section, links: &LinkKinds) -> Option<Topology> {
    let boards = count(section, "boards", 3, 0..=50_000);
    let servers = count(section, "servers", 1, 0..=10_000);
    built(section, StarShape { boards, servers }.build(links))
}

fn tree(section: &mut Section, links: &LinkKinds) -> Option<Topology> {
    let mut boards_per_leaf: Vec<u64> = section.list("boards_per_leaf");
    if boards_per_leaf.is_empty() {
        boards_per_leaf = vec![2, 4, 2];
        section.note_default("boards_per_leaf", "2, 4, 2");
    }
    if boards_per_leaf.iter().sum::<u64>() > LARGEST || boards_per_leaf.iter().any(|boards| *boards > LARGEST) {
        section.refuse("boards_per_leaf", format!("allowed are up to {LARGEST} boards"));
        return None;
    }
    let boards_per_leaf = boards_per_leaf.into_iter().map(|boards| boards as u32).collect();
    let servers = count(section, "servers", 1, 1..=10_000);
    let uplinks = count(section, "uplinks", 1, 1..=64);
    built(section, Tree { boards_per_leaf, servers, uplinks }.build(links))
}

fn leaf_spine(section: &mut Section, links: &LinkKinds) -> Option<Topology> {
    let leaves = count(section, "leaves", 4, 1..=1_000);
    let spines = count(section, "spines", 2, 1..=64);
    let hosts_per_leaf = count(section, "hosts_per_leaf", 4, 1..=100);
    built(section, LeafSpine { leaves, spines, hosts_per_leaf }.build(links))
}

fn fat_tree(section: &mut Section, links: &LinkKinds) -> Option<Topology> {
    let k = count(section, "k", 4, 2..=64);
    if !k.is_multiple_of(2) {
        section.refuse("k", "allowed are even numbers from 2 to 64");
        return None;
    }
    let usual = FatTree::of_k(k);
    let shape = FatTree {
        pods: count(section, "pods", usual.pods.into(), 1..=64),
        edges_per_pod: count(section, "edges_per_pod", usual.edges_per_pod.into(), 1..=64),
        aggs_per_pod: count(section, "aggs_per_pod", usual.aggs_per_pod.into(), 1..=64),
        cores: count(section, "cores", usual.cores.into(), 1..=1_024),
        hosts_per_edge: count(section, "hosts_per_edge", usual.hosts_per_edge.into(), 1..=256),
    };
    if !shape.cores.is_multiple_of(shape.aggs_per_pod) {
        section.refuse("cores", format!("allowed are multiples of aggs_per_pod, {}", shape.aggs_per_pod));
        return None;
    }
    let hosts = u64::from(shape.pods) * u64::from(shape.edges_per_pod) * u64::from(shape.hosts_per_edge);
    if hosts > LARGEST {
        section.refuse("k", format!("that makes {hosts} hosts; allowed are up to {LARGEST}"));
        return None;
    }
    built(section, shape.build(links))
}

fn camera(section: &mut Section, links: &LinkKinds) -> Option<Topology> {
    let groupings = [("cluster", Grouping::Cluster), ("spread", Grouping::Spread)];
    let shape = Camera {
        modules: count(section, "modules", 265, 1..=10_000),
        leaves: count(section, "leaves", 6, 1..=1_000),
        cores: count(section, "cores", 1, 1..=64),
        servers: count(section, "servers", 4, 1..=1_000),
        uplinks: count(section, "uplinks", 1, 1..=64),
        grouping: section.choice("grouping", Grouping::Cluster, &groupings),
    };
    if shape.leaves > shape.modules {
        section.refuse("leaves", format!("allowed are at most as many as modules, {}", shape.modules));
        return None;
    }
    built(section, shape.build(links))
}

/// `[[topology.node]]` and `[[topology.link]]`.
fn nodes(section: &mut Section, links: &LinkKinds) -> Option<Topology> {
    let mut topology = Topology::new();
    for mut node in section.sections("node") {
        let kinds = [("host", NodeKind::Host), ("switch", NodeKind::Switch)];
        let kind = node.choice("kind", NodeKind::Host, &kinds);
        match node.optional::<String>("name") {
            Some(name) => {
                if let Err(error) = topology.add(name, kind) {
                    node.refuse("name", error.to_string());
                }
            }
            None if node.has("name") => {}
            None => node.refuse("name", "the node has no name"),
        }
        node.finish();
    }
    for mut link in section.sections("link") {
        let mut end = |key: &str| {
            let Some(name) = link.optional::<String>(key) else {
                if !link.has(key) {
                    link.refuse(key, "the link has two ends, a and b, each the name of a node");
                }
                return None;
            };
            topology.expect_node(&name).map_err(|error| link.refuse(key, error.to_string())).ok()
        };
        let ends = (end("a"), end("b"));
        let (class, default) = match ends {
            (Some(a), Some(b)) if [a, b].iter().all(|node| topology.nodes[*node].kind == NodeKind::Switch) => {
                (LinkClass::Uplink, links.uplink)
            }
            _ => (LinkClass::Access, links.access),
        };
        let params = checked_link(&mut link, default);
        if let (Some(a), Some(b)) = ends {
            if let Err(error) = topology.connect(a, b, class, params) {
                link.refuse("b", error.to_string());
            }
        }
        link.finish();
    }
    Some(topology)
}

/// The links of the file with their rates, delays and losses; other faults as in `[link]`.
fn with_faults(imported: &Topology, links: &LinkKinds) -> Topology {
    let mut topology = imported.clone();
    for link in &mut topology.links {
        let common = links.of(link.class).faults;
        let loss = link.params.faults.loss;
        link.params.faults = common;
        if !loss.is_never() {
            link.params.faults.loss = loss;
        }
    }
    topology
}

fn complete(section: &Section, topology: &Topology) {
    if topology.of_kind(NodeKind::Host).next().is_none() {
        section.refuse("kind", "there are no hosts; a network needs at least one that sends and one that receives");
    }
    let lonely = topology.nodes.iter().filter(|node| node.ports.is_empty());
    for node in lonely.take(5) {
        section.refuse("kind", format!("{} has no link; join it to a switch", node.name));
    }
}
