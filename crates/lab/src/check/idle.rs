// SPDX-License-Identifier: Apache-2.0
//! Keys without effect, because another key switches off the feature they belong to: a threshold of PFC
//! without PFC, a parameter of a law that no flow uses.
//! Promise: such keys give one warning for each table and reason. There is no warning for keys of the file whose
//! feature `--set` has switched off for one run, nor for keys imported from ns-3.
//! Source: docs/lab.md ("What is refused, and what is warned of").

use std::collections::BTreeMap;

use penstock_cc::{DcqcnSettings, Law};

use crate::language::document::{Document, Item, Origin, Value};
use crate::language::Problem;
use crate::scenario::{FlowSpec, LabScenario, LabVerb, Mode, Protocol, SenderKind, Workload};
use crate::topology::{LinkClass, NodeKind};
use crate::units::Time;

const MARKING: [&str; 5] = ["kmin", "kmax", "pmax", "mark_on", "ecn_rate"];
const PFC: [&str; 8] = ["lossless", "pause", "threshold", "xoff", "xon", "alpha", "hysteresis", "headroom"];
const QCN_POINT: [&str; 4] = ["q_eq", "w", "sample", "jitter"];
/// Keys of `[tcp]` that the simplified sender has not.
const TCP_ONLY: [&str; 3] = ["variant", "sack", "initial_window"];

/// The warnings of a scenario that has been read without a problem.
pub(super) fn warnings(scenario: &LabScenario, document: &Document) -> Vec<Problem> {
    let settings = scenario.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let mut idle = Idle { scenario, document, settings, warnings: Vec::new() };
    idle.laws();
    idle.shares();
    idle.tcp();
    idle.queue_pairs();
    idle.switches();
    idle.links();
    idle.measurement();
    idle.warnings
}

/// Flows that share their settings.
struct Group {
    /// "flow.0", or empty for flows that no `[[flow]]` made.
    path: String,
    protocol: Protocol,
    law: String,
    /// Its receivers pull.
    is_pulled: bool,
    /// Messages have their own times, independent of the sender.
    paced: bool,
}

struct Idle<'a> {
    scenario: &'a LabScenario,
    document: &'a Document,
    /// Every key with the value in force.
    settings: BTreeMap<&'a str, &'a str>,
    warnings: Vec<Problem>,
}

impl Idle<'_> {
    fn setting(&self, key: &str) -> &str {
        self.settings.get(key).copied().unwrap_or_default()
    }

    /// A key that the scenario's own file or `--set` has.
    fn written(&self, path: &str) -> Option<&Item> {
        let is_chosen = |item: &&Item| match (&item.origin, &self.document.root.origin) {
            (Origin::File { file, .. }, Origin::File { file: scenario, .. }) => file == scenario,
            _ => true,
        };
        self.document.find(path).filter(is_chosen)
    }

    fn has(&self, path: &str) -> bool {
        self.document.find(path).is_some()
    }

    /// Warns of those of `keys` in `table` that are written; `gates` are the keys that leave them without effect.
    fn warn(&mut self, table: &str, keys: &[&str], gates: &[&str], reason: &str) {
        let set = |item: &Item| matches!(item.origin, Origin::Set(_));
        let toggled = gates.iter().any(|gate| self.document.find(gate).is_some_and(set));
        let path = |key: &str| format!("{table}.{key}");
        let loud = |key: &&&str| self.written(&path(key)).is_some_and(|item| set(item) || !toggled);
        let loud: Vec<&str> = keys.iter().filter(loud).copied().collect();
        let Some((first, rest)) = loud.split_first() else { return };
        let more = if rest.is_empty() { String::new() } else { format!(", like {}", rest.join(", ")) };
        let message = format!("without effect{more}: {reason}");
        self.warnings.push(self.document.problem(&path(first), "", message));
    }

    /// The keys that a table has.
    fn keys_of(&self, table: &str) -> Vec<String> {
        match self.document.find(table).map(|item| &item.value) {
            Some(Value::Table(entries)) => entries.iter().map(|entry| entry.key.clone()).collect(),
            _ => Vec::new(),
        }
    }

    fn warn_whole(&mut self, table: &str, gates: &[&str], reason: &str) {
        let keys = self.keys_of(table);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.warn(table, &keys, gates, reason);
    }

    fn groups(&self) -> Vec<Group> {
        let tables = match self.document.find("flow").map(|item| &item.value) {
            Some(Value::Array(tables)) => tables.len(),
            _ => 0,
        };
        let group = |index: usize| {
            let path = format!("flow.{index}");
            let protocol = match self.setting(&format!("{path}.protocol")) {
                "tcp" => Protocol::Tcp,
                "simple-tcp" => Protocol::SimpleTcp,
                _ => Protocol::Rc,
            };
            let special = self.setting(&format!("{path}.cc.law"));
            let law = if special.is_empty() { self.setting("cc.law") } else { special }.to_owned();
            let paced = self.has(&format!("{path}.rate")) || self.has(&format!("{path}.interval"));
            let is_pulled = protocol == Protocol::Rc && self.setting(&format!("{path}.mode")) == "pull";
            Group { path, protocol, law, is_pulled, paced }
        };
        let mut groups: Vec<Group> = (0..tables).map(group).collect();
        let imported = self.has("topology.flows");
        let of_events = |flow: &FlowSpec| matches!(flow.workload, Workload::Events { .. });
        let events = self.scenario.flows.iter().find(|flow| of_events(flow));
        if imported || events.is_some() {
            let law = self.setting("cc.law").to_owned();
            let protocol = events.filter(|_| !imported).map_or(Protocol::Rc, |flow| flow.protocol);
            let mode = events.filter(|_| !imported).map_or(self.scenario.qp.mode, |flow| flow.mode);
            let is_pulled = mode == Mode::Pull && protocol == Protocol::Rc;
            groups.push(Group { path: String::new(), protocol, law: law.clone(), is_pulled, paced: true });
            for table in ["triggers.group", "replay.group"] {
                let Some(Value::Array(tables)) = self.document.find(table).map(|item| &item.value) else { continue };
                groups.extend((0..tables.len()).map(|index| {
                    let path = format!("{table}.{index}");
                    let special = self.setting(&format!("{path}.cc.law"));
                    let law = if special.is_empty() { law.clone() } else { special.to_owned() };
                    Group { path, protocol, law, is_pulled, paced: true }
                }));
            }
        }
        groups
    }

    /// Parameters of a law that no flow of theirs has.
    fn laws(&mut self) {
        let groups = self.groups();
        let is_controlled = |group: &Group, law: &str| {
            group.law == law && !group.is_pulled && (law == "qcn" || group.protocol == Protocol::Rc)
        };
        for (law, inner) in [("dcqcn", ""), ("qcn", ".qcn")] {
            let common = format!("cc{inner}");
            let keys: Vec<String> = match law {
                "dcqcn" => {
                    ["profile", "share"].iter().chain(&DcqcnSettings::KEYS).map(|key| (*key).to_owned()).collect()
                }
                _ => self.keys_of(&common),
            };
            let idle: Vec<&str> = keys
                .iter()
                .filter(|key| {
                    let overrides =
                        |group: &Group| !group.path.is_empty() && self.has(&format!("{}.{common}.{key}", group.path));
                    !groups.iter().any(|group| is_controlled(group, law) && !overrides(group))
                })
                .map(String::as_str)
                .collect();
            let laws: Vec<String> = groups.iter().map(|group| format!("{}.cc.law", group.path)).collect();
            let mut gates: Vec<&str> =
                laws.iter().map(String::as_str).chain(["cc.law", "qp.mode", "readout.mode"]).collect();
            let protocols: Vec<String> = groups.iter().map(|group| format!("{}.protocol", group.path)).collect();
            gates.extend(protocols.iter().map(String::as_str));
            let reason = match groups.iter().any(|group| is_controlled(group, law)) {
                true => "every flow under this law has its own".to_owned(),
                false => format!("no flow is under cc.law = \"{law}\""),
            };
            self.warn(&common, &idle, &gates, &reason);
            for group in groups.iter().filter(|group| !group.path.is_empty() && !is_controlled(group, law)) {
                let table = format!("{}.{common}", group.path);
                let keys = if law == "dcqcn" { keys.clone() } else { self.keys_of(&table) };
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                let (special, protocol) = (format!("{}.cc.law", group.path), format!("{}.protocol", group.path));
                let reason = match group.protocol {
                    Protocol::Rc if group.is_pulled => "these flows are pulled, without a law".to_owned(),
                    Protocol::Rc => format!("the law of these flows is \"{}\"", group.law),
                    _ => format!("these flows are TCP, under \"{}\"", if group.law == "qcn" { "qcn" } else { "off" }),
                };
                let gates = [special.as_str(), &protocol, "cc.law", "qp.mode", "readout.mode"];
                self.warn(&table, &keys, &gates, &reason);
                if law == "dcqcn" {
                    self.warn(&group.path, &["weight"], &gates, &reason);
                }
            }
        }
    }

    /// Shares, where no profile looks at them.
    fn shares(&mut self) {
        let profiles = self.settings.iter().filter(|(key, _)| key.ends_with("cc.profile"));
        let (gates, profiles): (Vec<&str>, Vec<&str>) = profiles.map(|(key, value)| (*key, *value)).unzip();
        if !profiles.contains(&"penstock") {
            for table in gates.iter().filter_map(|gate| gate.strip_suffix(".profile")) {
                self.warn(table, &["share"], &gates, "no flow has cc.profile = \"penstock\"");
            }
            let groups = self.groups();
            for group in groups.iter().filter(|group| group.law == "dcqcn" && !group.is_pulled) {
                self.warn(&group.path, &["weight"], &gates, "no flow has cc.profile = \"penstock\"");
            }
        }
    }

    /// Settings of TCP for flows that are none.
    fn tcp(&mut self) {
        let groups = self.groups();
        let protocols: Vec<String> = groups.iter().map(|group| format!("{}.protocol", group.path)).collect();
        let gates: Vec<&str> = protocols.iter().map(String::as_str).collect();
        let tables = groups.iter().map(|group| (format!("{}.tcp", group.path), std::slice::from_ref(group)));
        let tables: Vec<(String, &[Group])> =
            tables.filter(|(path, _)| path != ".tcp").chain([("tcp".to_owned(), groups.as_slice())]).collect();
        for (table, groups) in tables {
            let is = |protocol| groups.iter().any(|group: &Group| group.protocol == protocol);
            let (tcp, simple) = (is(Protocol::Tcp), is(Protocol::SimpleTcp));
            if !tcp && !simple {
                let whose = if table == "tcp" { "no flow is" } else { "these flows are not" };
                self.warn_whole(&table, &gates, &format!("{whose} TCP (flow.protocol)"));
                continue;
            }
            if !tcp {
                self.warn(&table, &TCP_ONLY, &gates, "for flows with protocol = \"tcp\" only");
            }
            if !simple {
                self.warn(&table, &["back_off", "nagle"], &gates, "for flows with protocol = \"simple-tcp\" only");
            }
            if !self.has(&format!("{table}.limiter_queue")) && !self.has("tcp.limiter_queue") {
                self.warn(&table, &["limiter_full"], &[], "there is no limiter_queue that could be full");
            }
            if !groups.iter().any(|group| group.protocol != Protocol::Rc && group.paced) {
                self.warn(&table, &["send_buffer"], &gates, "for flows with a rate or interval only");
            }
        }
    }

    fn queue_pairs(&mut self) {
        let (verb, is_read) = (["qp.verb"], self.scenario.qp.verb == LabVerb::Read);
        if is_read {
            let keys = ["ack_every", "rnr_retry", "rnr_delay"];
            self.warn("qp", &keys, &verb, "READs are acknowledged by their responses (qp.verb)");
        } else {
            let pulls = self.scenario.flows.iter().any(|flow| flow.mode == Mode::Pull);
            if !pulls {
                self.warn("qp", &["responder_resources"], &verb, "nothing is read; qp.verb is not \"read\"");
                let gates = ["qp.mode", "readout.mode"];
                self.warn_whole("pull", &gates, "no flow is pulled (qp.mode, flow.mode, readout.mode)");
            }
        }
        if self.scenario.qp.consumer.is_none() {
            let reason = "receivers take every message at once; qp.consumer_rate is not set";
            let keys: &[&str] = if is_read { &["consumer_slots"] } else { &["consumer_slots", "rnr_delay"] };
            self.warn("qp", keys, &["qp.consumer_rate"], reason);
        }
        let is_board = |flow: &FlowSpec| flow.sender == SenderKind::Gateware && flow.protocol == Protocol::Rc;
        if !self.scenario.flows.iter().any(is_board) {
            let senders: Vec<String> = self.groups().iter().map(|group| format!("{}.sender", group.path)).collect();
            let gates: Vec<&str> = senders.iter().map(String::as_str).collect();
            self.warn("qp", &["rings"], &gates, "no verilated board sends over RoCEv2 (flow.sender)");
        }
        let is_written = |flow: &FlowSpec| flow.protocol == Protocol::Rc && flow.mode == Mode::Push && !is_read;
        if !self.scenario.flows.iter().any(is_written) {
            self.warn("qp", &["cnp_port_interval"], &["qp.verb", "qp.mode"], "no flow is pushed over RoCEv2");
        }
        let is_tagged =
            |flow: &FlowSpec| is_written(flow) && flow.law == Law::Qcn && flow.sender != SenderKind::Gateware;
        if !self.scenario.flows.iter().any(is_tagged) {
            let reason = "no software host sends under QCN over RoCEv2 (cc.law, qp.verb, qp.mode)";
            self.warn("qp", &["cn_tag"], &["cc.law", "qp.verb", "qp.mode"], reason);
        }
        if self.scenario.qp.cnp_above.is_none() {
            self.warn("qp", &["cnp_window"], &["qp.cnp_above"], "receivers measure nothing; qp.cnp_above is not set");
        }
    }

    /// Thresholds of features that a switch does not use.
    fn switches(&mut self) {
        if self.scenario.switches.is_empty() {
            return self.warn_whole("switch", &[], "there is no switch");
        }
        let named: Vec<String> = self.keys_of("switch.at").iter().map(|name| format!("switch.at.{name}")).collect();
        let special: Vec<&str> = named.iter().map(String::as_str).collect();
        // a table of one switch, or the common one for the switches that have none
        let tables: Vec<(String, Vec<usize>)> = self.tables_of_switches();
        for (table, nodes) in tables {
            let of = |node: &usize| self.scenario.switches.iter().find(|switch| switch.node == *node);
            let params: Vec<_> = nodes.iter().filter_map(of).map(|switch| &switch.params).collect();
            let marks = params.iter().any(|params| params.ecn.iter().any(Option::is_some));
            let pfc = params.iter().any(|params| params.pfc.is_some());
            let dynamic = |dynamic: bool| {
                let threshold = |params: &&penstock_netsim::SwitchParams| params.pfc.map(|pfc| pfc.threshold);
                let mut kinds = params.iter().filter_map(threshold);
                kinds.any(|kind| dynamic == matches!(kind, penstock_netsim::PfcThreshold::Dynamic { .. }))
            };
            let (fixed, dynamic) = (dynamic(false), dynamic(true));
            let qcn = params.iter().any(|params| params.qcn.is_some());
            let gate = |key: &str| -> Vec<String> {
                let tables = special.iter().copied().chain(["switch"]);
                tables.flat_map(|table| [format!("{table}.{key}"), format!("{table}.preset")]).collect()
            };
            let (by_ecn, by_pfc, by_kind) = (gate("ecn"), gate("pfc"), gate("threshold"));
            fn words(gates: &[String]) -> Vec<&str> {
                gates.iter().map(String::as_str).collect()
            }
            if !marks {
                self.warn(&table, &MARKING, &words(&by_ecn), "nothing is marked with ecn = false");
            }
            if !pfc {
                self.warn(&table, &PFC, &words(&by_pfc), "nothing is paused with pfc = false");
            } else if !fixed {
                self.warn(&table, &["xoff", "xon"], &words(&by_kind), "for threshold = \"static\" and \"queue\" only");
            } else if !dynamic {
                let keys = ["alpha", "hysteresis"];
                self.warn(&table, &keys, &words(&by_kind), "for threshold = \"dynamic\" only");
            }
            if !qcn {
                let inner = format!("{table}.qcn");
                self.warn(&inner, &QCN_POINT, &[&format!("{inner}.enabled")], "enabled = false");
            }
        }
    }

    /// Tables of `[switch]` with the nodes that they speak of.
    fn tables_of_switches(&self) -> Vec<(String, Vec<usize>)> {
        let topology = &self.scenario.topology;
        let special = self.keys_of("switch.at");
        let table = |name: &String| Some((format!("switch.at.{name}"), vec![topology.node(name)?]));
        let tables = special.iter().filter_map(table);
        tables.chain([("switch".to_owned(), topology.of_kind(NodeKind::Switch).collect())]).collect()
    }

    fn links(&mut self) {
        let mut tables = vec!["link".to_owned()];
        for (table, class, reason) in [
            ("link.uplink", LinkClass::Uplink, "no link lies between two switches"),
            ("link.server", LinkClass::Server, "no link is a server's"),
        ] {
            match self.scenario.topology.links.iter().any(|link| link.class == class) {
                true => tables.push(table.to_owned()),
                false => self.warn_whole(table, &[], reason),
            }
        }
        let reorders = |params: &penstock_netsim::LinkParams| params.faults.reorder.as_f64() > 0.0;
        if self.scenario.topology.links.iter().any(|link| reorders(&link.params)) {
            return;
        }
        let special = self.keys_of("link.at");
        let special = special.iter().map(|name| format!("link.at.{name}"));
        for table in special.chain(tables) {
            let gate = format!("{table}.reorder");
            self.warn(&table, &["reorder_by"], &[&gate, "link.reorder"], "no link has reorder above 0");
        }
    }

    fn measurement(&mut self) {
        if self.setting("replay.trigger") == "recorded" {
            self.warn("replay", &["rate"], &["replay.trigger"], "events come as they were recorded (replay.trigger)");
        }
        if self.scenario.trace.interval == Time::ZERO {
            self.warn(
                "trace",
                &["metrics", "classes"],
                &["trace.interval"],
                "there is no trace with interval = \"0ps\"",
            );
        }
        if self.scenario.capture.links.is_empty() {
            self.warn("capture", &["snap"], &["capture.links"], "no link is captured (capture.links)");
        }
        for (index, change) in self.scenario.changes.iter().enumerate() {
            if change.at >= self.scenario.run.time_limit {
                let message =
                    format!("without effect: the run ends at run.time_limit, {}", self.scenario.run.time_limit);
                let at = change.at.to_string();
                self.warnings.push(self.document.problem(&format!("change.{index}.at"), &at, message));
            }
        }
    }
}
