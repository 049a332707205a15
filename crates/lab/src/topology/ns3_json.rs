// SPDX-License-Identifier: Apache-2.0
//! Translates the JSON files of ns3-roce into the text format of its predecessors, so that the same code reads both.
//! Promise: everything that the translation omits gives a warning that names it.
//! Source: `rdma-config/*.json` of github.com/Eren121/ns3-roce, also of earlier commits, which had other keys.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::ns3_lines::Ns3Error;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Topology,
    Flows,
    Config,
}

/// ns-3 attributes and the keys of the text format that mean the same.
const ATTRIBUTES: [(&str, &str); 19] = [
    ("ns3::SwitchNode::EcnEnabled", "ENABLE_QCN"),
    ("ns3::QbbNetDevice::QbbEnabled", "ENABLE_PFC"),
    ("ns3::QbbNetDevice::DynamicThreshold", "USE_DYNAMIC_PFC_THRESHOLD"),
    ("ns3::RdmaHw::ClampTargetRate", "CLAMP_TARGET_RATE"),
    ("ns3::RdmaHw::AlphaResumInterval", "ALPHA_RESUME_INTERVAL"),
    ("ns3::RdmaHw::RPTimer", "RP_TIMER"),
    ("ns3::RdmaHw::FastRecoveryTimes", "FAST_RECOVERY_TIMES"),
    ("ns3::RdmaHw::EwmaGain", "EWMA_GAIN"),
    ("ns3::RdmaHw::RateAI", "RATE_AI"),
    ("ns3::RdmaHw::RateHAI", "RATE_HAI"),
    ("ns3::RdmaHw::MinRate", "MIN_RATE"),
    ("ns3::RdmaHw::RateDecreaseInterval", "RATE_DECREASE_INTERVAL"),
    ("ns3::RdmaHw::Mtu", "PACKET_PAYLOAD_SIZE"),
    ("ns3::RdmaHw::CcMode", "CC_MODE"),
    ("ns3::RdmaHw::L2ChunkSize", "L2_CHUNK_SIZE"),
    ("ns3::RdmaHw::L2BackToZero", "L2_BACK_TO_ZERO"),
    ("ns3::RdmaHw::VarWin", "VAR_WIN"),
    ("ns3::RdmaHw::RateBound", "RATE_BOUND"),
    ("ns3::SwitchMmu::BufferSize", "BUFFER_SIZE"),
];

/// Keys that say what to write down, and one that the switches repeat.
const OF_NO_EFFECT: [&str; 6] = [
    "modules",
    "qlen_monitor",
    "qp_monitor",
    "link_stats_monitor",
    "ns3::SwitchNode::CcMode",
    "ns3::RdmaHw::FastReact",
];

/// What a flow may have that is not here: its names in the dialects, the value that says the usual, and the reason.
const FLOW_EXTRAS: [(&[&str], Usual, &str); 3] = [
    (&["IsReliable", "reliable"], Usual::Flag(true), "every flow is a reliable connection"),
    (&["in_background", "background"], Usual::Flag(false), "the run waits for every flow"),
    (&["BandwidthPercent", "bandwidth_percent"], Usual::Number(1.0), "give the flow a rate as a [[flow]]"),
];

#[derive(Clone, Copy)]
enum Usual {
    Flag(bool),
    Number(f64),
}

impl Usual {
    fn is(self, value: &Value) -> bool {
        match self {
            Usual::Flag(usual) => value.as_bool() == Some(usual),
            Usual::Number(usual) => value.as_f64() == Some(usual),
        }
    }
}

pub(super) fn is_json(file: &str) -> bool {
    file.ends_with(".json")
}

/// The text form of a file; a text file is its own.
pub(super) fn as_text<'a>(
    file: &str,
    text: &'a str,
    content: Content,
    warnings: &mut Vec<String>,
) -> Result<Cow<'a, str>, Ns3Error> {
    if !is_json(file) {
        return Ok(Cow::Borrowed(text));
    }
    let error = |message: String| Ns3Error { place: file.to_owned(), message };
    let json: Value = serde_json::from_str(text).map_err(|why| error(format!("not JSON: {why}")))?;
    let mut warn = |message: String| warnings.push(format!("{file}: {message}"));
    let translated = match content {
        Content::Topology => topology(&json),
        Content::Flows => flows(&json, &mut warn),
        Content::Config => Ok(config(&json, &mut warn)),
    };
    translated.map(Cow::Owned).map_err(error)
}

fn array<'j>(json: &'j Value, key: &str) -> Result<&'j Vec<Value>, String> {
    json.get(key).and_then(Value::as_array).ok_or_else(|| format!("{key} is missing, or is no array"))
}

/// A value as a word of the text format; whole numbers without a fraction.
fn word(value: Option<&Value>) -> String {
    match value {
        Some(Value::Bool(flag)) => u8::from(*flag).to_string(),
        Some(Value::String(text)) => text.split_whitespace().collect(),
        Some(Value::Number(number)) => match number.as_f64() {
            Some(real) if real.fract() == 0.0 && real.abs() < 1e18 => format!("{real:.0}"),
            _ => number.to_string(),
        },
        _ => "-".to_owned(),
    }
}

fn topology(json: &Value) -> Result<String, String> {
    let (nodes, links) = (array(json, "nodes")?, array(json, "links")?);
    let switches = nodes.iter().filter(|node| node.get("is_switch").and_then(Value::as_bool) == Some(true));
    let switches: Vec<String> = switches.map(|node| word(node.get("id"))).collect();
    let mut text = format!("{} {} {}\n{}\n", nodes.len(), switches.len(), links.len(), switches.join(" "));
    for link in links {
        let words = ["src", "dst", "bandwidth", "latency", "error_rate"].map(|key| word(link.get(key)));
        let _ = writeln!(text, "{}", words.join(" "));
    }
    Ok(text)
}

/// Flows of all dialects: the keys are in the flow itself, in its `parameters` or in its `attributes`.
fn flows(json: &Value, warn: &mut dyn FnMut(String)) -> Result<String, String> {
    let mut lines = Vec::new();
    let mut left: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, flow) in array(json, "flows")?.iter().enumerate() {
        if flow.get("enable").and_then(Value::as_bool) == Some(false) {
            continue;
        }
        let of = flow.get("attributes").or(flow.get("parameters")).unwrap_or(flow);
        let find = |keys: &[&'static str]| {
            keys.iter().find_map(|key| of.get(*key).or(flow.get(*key)).map(|value| (*key, value)))
        };
        let kind = flow.get("path").or(flow.get("type")).and_then(Value::as_str).unwrap_or("unicast");
        let multicast = find(&["multicast"]).is_some_and(|(_, value)| value.as_bool() == Some(true));
        if multicast || !["ns3::RdmaFlowUnicast", "unicast", "flow"].contains(&kind) {
            let kind = if multicast { "multicast" } else { kind };
            left.entry(format!("kind {kind} is not carried over: write it as a [[flow]]")).or_default().push(index);
            continue;
        }
        for (keys, usual, why) in FLOW_EXTRAS {
            if let Some((key, value)) = find(keys).filter(|(_, value)| !usual.is(value)) {
                left.entry(format!("{key} = {value} is not carried over: {why}")).or_default().push(index);
            }
        }
        let number = |keys: &[&'static str], missing: &str| {
            find(keys).map_or(missing.to_owned(), |(_, value)| word(Some(value)))
        };
        let from = number(&["SourceNode", "SrcNode", "src"], "-");
        let to = number(&["DestinationNode", "DstNode", "dst"], "-");
        let bytes = number(&["WriteByteAmount", "WriteSize", "size"], "-");
        let (class, start) = (number(&["PfcPriority", "priority"], "3"), number(&["start_time"], "0"));
        lines.push(format!("{from} {to} {class} 0 {bytes} {start}"));
    }
    for (what, of) in left {
        let first: Vec<String> = of.iter().take(5).map(usize::to_string).collect();
        let more = if of.len() > 5 { format!(" ... ({} in all)", of.len()) } else { String::new() };
        warn(format!("flow {}{more}: {what}", first.join(", ")));
    }
    Ok(format!("{}\n{}\n", lines.len(), lines.join("\n")))
}

/// Keys of all dialects; those that have the names of the text format in small letters are left to its reader.
fn config(json: &Value, warn: &mut dyn FnMut(String)) -> String {
    let mut text = String::new();
    for (key, value) in json.as_object().into_iter().flatten() {
        match key.as_str() {
            "default_attributes" | "defaults" => attributes(value, &mut text, warn),
            "ecn" => marking(value, &mut text),
            "link_down" => {
                let words = ["time", "src", "dst"].map(|part| word(value.get(part)));
                let _ = writeln!(text, "LINK_DOWN {}", words.join(" "));
            }
            _ if OF_NO_EFFECT.contains(&key.as_str()) || key.ends_with("_file") => {}
            _ => {
                let _ = writeln!(text, "{} {}", key.to_uppercase(), words(value));
            }
        }
    }
    text
}

/// A value as words of the text format; maps by line rate as a count and pairs.
fn words(value: &Value) -> String {
    let Some(entries) = value.as_array() else { return word(Some(value)) };
    let pair = |entry: &Value| {
        let threshold = entry.as_object().into_iter().flatten().find(|(key, _)| *key != "bandwidth");
        format!(" {} {}", word(entry.get("bandwidth")), word(threshold.map(|(_, value)| value)))
    };
    format!("{}{}", entries.len(), entries.iter().map(pair).collect::<String>())
}

fn attributes(json: &Value, text: &mut String, warn: &mut dyn FnMut(String)) {
    for (key, value) in json.as_object().into_iter().flatten() {
        match ATTRIBUTES.iter().find(|(attribute, _)| attribute == key) {
            Some((_, ours)) => {
                let _ = writeln!(text, "{ours} {}", word(Some(value)));
            }
            None if OF_NO_EFFECT.contains(&key.as_str()) => {}
            None => warn(format!("{key} is not carried over: there is nothing like it here")),
        }
    }
}

/// Thresholds in bytes as maps in KB.
fn marking(json: &Value, text: &mut String) {
    let rates = json.as_array().map(Vec::as_slice).unwrap_or_default();
    let keys = [
        ("KMIN_MAP", "min_buf_bytes", 1000.0),
        ("KMAX_MAP", "max_buf_bytes", 1000.0),
        ("PMAX_MAP", "max_probability", 1.0),
    ];
    for (key, field, unit) in keys {
        let pair = |rate: &Value| {
            let number = rate.get(field).and_then(Value::as_f64).unwrap_or(-1.0);
            format!(" {} {}", word(rate.get("bandwidth_bps")), number / unit)
        };
        let pairs: String = rates.iter().map(pair).collect();
        let _ = writeln!(text, "{key} {}{pairs}", rates.len());
    }
}
