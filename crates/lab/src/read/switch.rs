// SPDX-License-Identifier: Apache-2.0
//! `[switch]` and `[switch.at.NAME]`: buffers, thresholds, marking and scheduling of switches.
//! Promise: values that are not given are computed from the rates, delays and the MTU of the switch's links so that no
//! frame is lost; a given value that is too small for that causes a warning with the value needed.
//! Source: `switch::lossless_headroom`.

mod gateware;

use std::fmt::Display;

use penstock_cc::QcnMarking;
use penstock_netsim::{
    lossless_buffer, lossless_headroom, max_frame, Alpha, EcnParams, Headroom, LinkParams, PauseFrame, PfcParams,
    PfcThreshold, QcnPoints, Scheduling, SwitchParams,
};

use crate::language::document::{Document, Item};
use crate::language::keys::share_of_256;
use crate::language::reader::{FromItem, Section};
use crate::language::Problem;
use crate::scenario::{scaled, LabScenario, Protocol, SwitchSpec};
use crate::topology::{NodeKind, Topology};
use crate::units::{ByteSize, Rate};

/// `threshold`: what is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threshold {
    Static,
    Dynamic,
    Queue,
}

/// The keys of one switch as they are written, before anything is computed.
#[derive(Debug, Clone)]
struct Keys {
    gateware: bool,
    buffer: Option<ByteSize>,
    marks: bool,
    ecn: EcnParams,
    on_departure: bool,
    ecn_rate: Rate,
    pfc: bool,
    threshold: Threshold,
    frame: PauseFrame,
    lossless: Vec<u64>,
    xoff: Option<ByteSize>,
    xon: Option<ByteSize>,
    alpha: Alpha,
    hysteresis: Option<ByteSize>,
    headroom: Option<ByteSize>,
    weights: Option<Vec<u64>>,
    lossy_alpha: Option<Alpha>,
    qcn: Option<QcnMarking>,
}

impl Default for Keys {
    fn default() -> Self {
        Keys {
            gateware: false,
            buffer: None,
            marks: true,
            ecn: EcnParams::default(),
            on_departure: false,
            ecn_rate: Rate::from_gbps(10),
            pfc: true,
            threshold: Threshold::Static,
            frame: PauseFrame::Pfc,
            lossless: Vec::new(),
            xoff: None,
            xon: None,
            alpha: Alpha::ONE,
            hysteresis: None,
            headroom: None,
            weights: None,
            lossy_alpha: None,
            qcn: None,
        }
    }
}

impl Keys {
    /// The keys that make a switch as a preset has it.
    fn of_preset(params: &SwitchParams) -> Self {
        let usual = Keys::default();
        let ecn = params.ecn.iter().flatten().next().copied();
        let mut keys = Keys {
            buffer: Some(params.buffer),
            marks: ecn.is_some(),
            ecn: ecn.unwrap_or_default(),
            // presets that mark do so for 40 Gb/s (Zhu et al. 2015)
            ecn_rate: if ecn.is_some() { Rate::from_gbps(40) } else { usual.ecn_rate },
            pfc: params.pfc.is_some(),
            lossy_alpha: params.lossy_alpha,
            qcn: params.qcn.map(|qcn| qcn.marking),
            ..usual
        };
        match params.pfc.map(|pfc| pfc.threshold) {
            Some(PfcThreshold::Static { xoff, xon }) => (keys.xoff, keys.xon) = (Some(xoff), Some(xon)),
            Some(PfcThreshold::Dynamic { alpha, .. }) => (keys.threshold, keys.alpha) = (Threshold::Dynamic, alpha),
            Some(PfcThreshold::Queue { xoff, xon }) => {
                (keys.threshold, keys.xoff, keys.xon) = (Threshold::Queue, Some(xoff), Some(xon));
            }
            None => {}
        }
        keys.frame = params.pfc.map(|pfc| pfc.frame).unwrap_or_default();
        keys
    }
}

impl FromItem for Alpha {
    fn from_item(item: &Item) -> Result<Self, String> {
        let number = item.text.replace('_', "").parse().ok();
        number.and_then(Alpha::new).ok_or_else(|| "allowed is a number from 0.001 to 1024, such as 0.125".to_owned())
    }
}

const THRESHOLDS: [(&str, Threshold); 3] =
    [("static", Threshold::Static), ("dynamic", Threshold::Dynamic), ("queue", Threshold::Queue)];

/// Beyond every switch's memory.
const MOST_MEMORY: ByteSize = ByteSize(1_000_000_000_000);

impl Keys {
    /// The keys of a section; what is not there is as in `default`.
    fn read(section: &mut Section, default: &Keys) -> Self {
        let preset = section.optional::<String>("preset").and_then(|name| {
            let params = SwitchParams::preset(&name).map_err(|error| section.refuse("preset", error.to_string()));
            params.ok().map(|params| Keys::of_preset(&params))
        });
        let default = preset.as_ref().unwrap_or(default);
        let usual = default.ecn;
        let marks = section.read("ecn", default.marks);
        let ecn = EcnParams {
            kmin: section.read("kmin", usual.kmin),
            kmax: section.read("kmax", usual.kmax),
            pmax: section.read("pmax", usual.pmax),
        };
        if ecn.kmin > ecn.kmax {
            section.refuse("kmin", format!("allowed is at most kmax, {}", ecn.kmax));
        }
        let ecn_rate = section.read("ecn_rate", default.ecn_rate);
        if ecn_rate < Rate(1_000_000) {
            section.refuse("ecn_rate", "allowed is 1Mbps and more");
        }
        let keys = Keys {
            gateware: section.read("gateware", default.gateware),
            buffer: section.optional("buffer").or(default.buffer),
            marks,
            ecn,
            on_departure: section.choice("mark_on", default.on_departure, &[("arrival", false), ("departure", true)]),
            ecn_rate,
            pfc: section.read("pfc", default.pfc),
            threshold: section.choice("threshold", default.threshold, &THRESHOLDS),
            frame: section.choice("pause", default.frame, &[("class", PauseFrame::Pfc), ("port", PauseFrame::Port)]),
            lossless: classes(section, "lossless", &default.lossless),
            xoff: section.optional("xoff").or(default.xoff),
            xon: section.optional("xon").or(default.xon),
            alpha: section.read("alpha", default.alpha),
            hysteresis: section.optional("hysteresis").or(default.hysteresis),
            headroom: section.optional("headroom").or(default.headroom),
            weights: weights(section).or_else(|| default.weights.clone()),
            lossy_alpha: section.optional("lossy_alpha").or(default.lossy_alpha),
            qcn: qcn(section, default.qcn),
        };
        if let (Some(xon), Some(xoff)) = (keys.xon, keys.xoff) {
            if xon >= xoff {
                section.refuse("xon", format!("allowed is less than xoff, {xoff}"));
            }
        }
        // Sums over all ports and classes must stay within 64 bits.
        let sizes = [
            ("buffer", keys.buffer),
            ("kmax", Some(ecn.kmax)),
            ("xoff", keys.xoff),
            ("hysteresis", keys.hysteresis),
            ("headroom", keys.headroom),
        ];
        for (key, size) in sizes {
            if size.is_some_and(|size| size > MOST_MEMORY) {
                section.refuse(key, format!("allowed is up to {MOST_MEMORY}"));
            }
        }
        keys
    }
}

fn classes(section: &mut Section, key: &str, default: &[u64]) -> Vec<u64> {
    let classes: Vec<u64> = section.list_or(key, "allowed is one class or more; for none set pfc = false");
    if classes.iter().any(|class| *class > 7) {
        section.refuse(key, "allowed are classes from 0 to 7");
    }
    if classes.is_empty() {
        default.to_vec()
    } else {
        classes
    }
}

/// Strict priority without the key.
fn weights(section: &mut Section) -> Option<Vec<u64>> {
    let weights: Vec<u64> = section.list("weights");
    if section.has("weights") && (weights.len() != 8 || weights.iter().any(|weight| *weight > 1_000)) {
        section
            .refuse("weights", "allowed are eight numbers from 0 to 1000, of class 0 to class 7; 0 is strict priority");
        return None;
    }
    (!weights.is_empty()).then_some(weights)
}

/// `[switch.qcn]`: congestion points, if the table is there and not switched off.
fn qcn(section: &mut Section, default: Option<QcnMarking>) -> Option<QcnMarking> {
    let mut point = section.section("qcn");
    if !point.exists() {
        return default;
    }
    let usual = default.unwrap_or_default();
    let on = point.read("enabled", true);
    let q_eq = point.read("q_eq", ByteSize(usual.q_eq.into())).bytes();
    let base = point.read("sample", ByteSize(usual.sample_bytes[0].into())).bytes();
    let jitter = point.read("jitter", share_of_256(usual.jitter));
    let marking = QcnMarking {
        q_eq: q_eq as u32,
        w: point.integer("w", usual.w.into(), 0..=64) as u32,
        // the table of the standard's pseudo-code, in proportion to its first entry
        sample_bytes: QcnMarking::default().sample_bytes.map(|bytes| (u64::from(bytes) * base / 150_000) as u32),
        jitter: (jitter.as_f64() * 256.0).round().min(127.0) as u8,
    };
    if !(1_000..=1_000_000_000).contains(&q_eq) {
        point.refuse("q_eq", "allowed is 1KB to 1GB");
    }
    if !(10_000..=100_000_000).contains(&base) {
        point.refuse("sample", "allowed is 10KB to 100MB");
    }
    if jitter.as_f64() > 127.0 / 256.0 {
        point.refuse("jitter", "allowed is 0 to 0.496");
    }
    point.finish();
    on.then_some(marking)
}

/// The keys of all switches.
pub(super) struct Switches {
    common: Keys,
    /// One for each node.
    special: Vec<(usize, String, Keys)>,
}

impl Switches {
    pub(super) fn read(mut section: Section, topology: Option<&Topology>) -> Self {
        let common = Keys::read(&mut section, &Keys::default());
        let mut special = Vec::new();
        for (name, mut table) in section.named_sections("at") {
            let Some(topology) = topology else { continue };
            let node = topology.node(&name).filter(|node| topology.nodes[*node].kind == NodeKind::Switch);
            match node {
                Some(node) => {
                    special.push((node, name, Keys::read(&mut table, &common)));
                    table.finish();
                }
                None => {
                    let names = topology.names(|node| node.kind == NodeKind::Switch);
                    table.refuse_whole(format!("there is no switch {name}; {names}"));
                }
            }
        }
        section.finish();
        Switches { common, special }
    }

    /// The parameters of every switch, with what was not given computed.
    pub(super) fn finish(
        self,
        scenario: &mut LabScenario,
        document: &Document,
        problems: &mut Vec<Problem>,
    ) -> Vec<SwitchSpec> {
        let mut specs = Vec::new();
        let mut notes = Notes { document, warnings: Vec::new(), problems, settings: Vec::new() };
        let rc = scenario.flows.iter().filter(|flow| flow.protocol == Protocol::Rc);
        let data_classes = match rc.fold(0, |classes, flow| classes | 1 << (flow.dscp >> 3)) {
            0 => 1 << scenario.qp.class(),
            classes => classes,
        };
        for node in scenario.topology.of_kind(NodeKind::Switch) {
            let special = self.special.iter().find(|(other, ..)| *other == node);
            let (keys, path) = match special {
                Some((_, name, keys)) => (keys, format!("switch.at.{name}")),
                None => (&self.common, "switch".to_owned()),
            };
            let links = scenario.topology.nodes[node].ports.iter().map(|link| scenario.topology.links[*link].params);
            let switch = OneSwitch {
                name: scenario.topology.name(node),
                path,
                keys,
                links: links.collect(),
                mtu: scenario.qp.mtu,
                data_classes,
            };
            let params = if keys.gateware { switch.gateware(&mut notes) } else { switch.params(&mut notes) };
            specs.push(SwitchSpec { node, params, gateware: keys.gateware, ecn_rate: Some(keys.ecn_rate) });
        }
        scenario.warnings.append(&mut notes.warnings);
        scenario.settings.append(&mut notes.settings);
        specs
    }
}

/// The collector of findings; equal texts about two switches are reported once.
struct Notes<'a> {
    document: &'a Document,
    warnings: Vec<Problem>,
    problems: &'a mut Vec<Problem>,
    settings: Vec<(String, String)>,
}

impl Notes<'_> {
    fn warn(&mut self, key: &str, value: ByteSize, message: String) {
        let problem = self.document.problem(key, &value.to_string(), message);
        let is_same = |other: &Problem| other.key == problem.key;
        if !self.warnings.iter().any(is_same) {
            self.warnings.push(problem);
        }
    }

    fn refuse(&mut self, key: &str, value: impl Display, message: String) {
        let problem = self.document.problem(key, &value.to_string(), message);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// A computed value of one switch.
    fn note(&mut self, switch: &str, key: &str, value: ByteSize) {
        self.settings.push((format!("computed.{switch}.{key}"), value.to_string()));
    }
}

/// A switch whose parameters are computed.
struct OneSwitch<'a> {
    name: &'a str,
    /// Section that its keys come from.
    path: String,
    keys: &'a Keys,
    links: Vec<LinkParams>,
    mtu: u16,
    /// Those of RC flows, bit i for class i.
    data_classes: u8,
}

impl OneSwitch<'_> {
    /// The smallest buffer of a switch without a configured size.
    const USUAL: u64 = 2_000_000;

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    /// Bit i for lossless class i.
    fn lossless(&self) -> u8 {
        match self.keys.lossless.as_slice() {
            [] => self.data_classes,
            classes => classes.iter().fold(0, |mask, class| mask | 1 << class),
        }
    }

    fn params(&self, notes: &mut Notes) -> SwitchParams {
        let keys = self.keys;
        let needed = lossless_buffer(self.lossless(), &self.links, self.mtu);
        // Also of a switch that does not mark: a comparison with ecn = false keeps its buffer.
        let kmax = self.largest_kmax(keys.ecn);
        let usual = [Self::USUAL, 2 * needed.bytes(), 2 * kmax].into_iter().max().unwrap_or(Self::USUAL);
        let buffer = keys.buffer.unwrap_or(ByteSize(usual.next_multiple_of(100_000)));
        notes.note(self.name, "buffer", buffer);
        let smallest = ByteSize(16 * max_frame(self.mtu).bytes());
        if buffer < smallest {
            notes.refuse(&self.key("buffer"), buffer, format!("allowed is {smallest} or more, 16 frames of the MTU"));
        }
        if keys.pfc && buffer < needed {
            let message = format!(
                "frames may be dropped: {} needs {needed} to be lossless on its {} ports (rate, delay and MTU)",
                self.name,
                self.links.len()
            );
            notes.warn(&self.key("buffer"), buffer, message);
        }
        if keys.marks && kmax > buffer.bytes() {
            let message = format!(
                "{} has a port whose kmax would be {}, more than its buffer of {buffer}: it will never mark every packet",
                self.name,
                ByteSize(kmax)
            );
            notes.warn(&self.key("kmax"), ByteSize(kmax), message);
        }
        SwitchParams {
            buffer,
            ecn: [keys.marks.then_some(keys.ecn); 8],
            mark_on_departure: keys.on_departure,
            pfc: keys.pfc.then(|| self.pfc(buffer, notes)),
            scheduling: self.scheduling(),
            lossy_alpha: keys.lossy_alpha,
            qcn: keys.qcn.map(|marking| QcnPoints { marking, ..QcnPoints::default() }),
            ..SwitchParams::default()
        }
    }

    /// K_max of the fastest port.
    fn largest_kmax(&self, ecn: EcnParams) -> u64 {
        let fastest = self.links.iter().map(|link| link.rate).max().unwrap_or_default();
        scaled(ecn, fastest, self.keys.ecn_rate).kmax.bytes()
    }

    fn scheduling(&self) -> Scheduling {
        match &self.keys.weights {
            None => Scheduling::Strict,
            Some(weights) => Scheduling::weighted(std::array::from_fn(|class| weights[class] as u16)),
        }
    }

    fn pfc(&self, buffer: ByteSize, notes: &mut Notes) -> PfcParams {
        let keys = self.keys;
        let frame = max_frame(self.mtu).bytes();
        let needed: Vec<u64> = self.links.iter().map(|link| lossless_headroom(link, self.mtu).bytes()).collect();
        let largest = ByteSize(needed.iter().copied().max().unwrap_or(0));
        let headroom = match keys.headroom {
            Some(headroom) => {
                if headroom < largest {
                    let message =
                        format!("frames may be dropped: rate, delay and MTU of a link of {} need {largest}", self.name);
                    notes.warn(&self.key("headroom"), headroom, message);
                }
                Headroom::Fixed(headroom)
            }
            None => Headroom::OfLink { mtu: self.mtu },
        };
        let classes = self.lossless();
        let threshold = match keys.threshold {
            Threshold::Dynamic => {
                PfcThreshold::Dynamic { alpha: keys.alpha, hysteresis: keys.hysteresis.unwrap_or(ByteSize(2 * frame)) }
            }
            Threshold::Static => {
                let (xoff, xon) = self.watermarks(buffer, &needed, notes);
                PfcThreshold::Static { xoff, xon }
            }
            Threshold::Queue => {
                let (xoff, xon) = self.watermarks(buffer, &needed, notes);
                PfcThreshold::Queue { xoff, xon }
            }
        };
        PfcParams { classes, threshold, headroom, frame: keys.frame }
    }

    /// The buffer minus the headroom of all ports, in equal shares of ports, or of their queues; two frames less.
    fn watermarks(&self, buffer: ByteSize, needed: &[u64], notes: &mut Notes) -> (ByteSize, ByteSize) {
        let keys = self.keys;
        let frame = max_frame(self.mtu).bytes();
        let classes = u64::from(self.lossless().count_ones());
        let headroom: u64 = match keys.headroom {
            Some(headroom) => headroom.bytes() * needed.len() as u64,
            None => needed.iter().sum(),
        };
        let ports = needed.len().max(1) as u64 * classes;
        let share = buffer.bytes().saturating_sub(headroom * classes) / ports;
        let xoff = keys.xoff.unwrap_or(ByteSize(share.max(2 * frame)));
        let xon = keys.xon.unwrap_or(ByteSize(xoff.bytes().saturating_sub(2 * frame)));
        let all = ByteSize(ports * xoff.bytes() + headroom * classes);
        if keys.xoff.is_some() && all > buffer {
            let message = format!(
                "frames may be dropped: with their headroom the {} ports of {} need {all}, its buffer has {buffer}",
                needed.len(),
                self.name
            );
            notes.warn(&self.key("xoff"), xoff, message);
        }
        if xon >= xoff {
            notes.refuse(&self.key("xon"), xon, format!("allowed is less than xoff, which is {xoff} at {}", self.name));
        }
        notes.note(self.name, "xoff", xoff);
        notes.note(self.name, "xon", xon);
        (xoff, xon)
    }
}
