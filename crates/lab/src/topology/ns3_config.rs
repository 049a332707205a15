// SPDX-License-Identifier: Apache-2.0
//! The configuration file of the ns-3 RDMA simulators as keys of a scenario.
//! Promise: every line becomes a key, has no effect here (files, outputs, parameters of unsupported laws), or gives a
//! warning that names it and the reason.
//! Source: `mix/config_doc.txt` of the public simulators (units: us for intervals, KB for marking, MB for buffers).

use super::ns3_lines::{number, rate, Lines, Ns3Error};
use crate::language::keys::Weight;
use crate::units::{ByteSize, Rate};

/// A line of a configuration file as a key of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ns3Setting {
    pub key: &'static str,
    /// TOML.
    pub value: String,
    pub file: String,
    pub line: usize,
}

/// Keys that only name files or say what to write down.
const OF_NO_EFFECT: [&str; 15] = [
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "ENABLE_TRACE",
    "DCTCP_RATE_AI",
    "U_TARGET",
    "MI_THRESH",
    "INT_MULTI",
    "MULTI_RATE",
];

/// The contents of one line.
enum Meaning {
    /// A key with its value.
    Key(&'static str, String),
    /// A key with a value that is only near the one in the file, and why.
    Near(&'static str, String, &'static str),
    Nothing,
    Warning(&'static str),
}

pub(super) fn read(
    file: &str,
    lines: Lines,
    settings: &mut Vec<Ns3Setting>,
    warnings: &mut Vec<String>,
) -> Result<(), Ns3Error> {
    let mut marking = Marking::default();
    let mut all: Vec<(usize, Vec<&str>)> = Vec::new();
    let numbered = lines.place(1) != file;
    let place = |line: usize| if numbered { format!("{file}:{line}") } else { file.to_owned() };
    for (line, words) in lines {
        // what follows in braces is a comment
        let words: Vec<&str> = words.into_iter().take_while(|word| !word.starts_with('{')).collect();
        if !words.is_empty() {
            all.push((line, words));
        }
    }
    for (line, words) in &all {
        let (key, values) = (words[0], &words[1..]);
        let first = values.first().copied().unwrap_or_default();
        let refuse = |allowed: &str| Ns3Error {
            place: place(*line),
            message: format!("{key} {}: allowed is {allowed}", values.join(" ")),
        };
        let meaning = match key {
            "KMAX_MAP" | "KMIN_MAP" | "PMAX_MAP" => {
                let map = bandwidth_map(values).ok_or_else(|| refuse("a count, then pairs of rate and threshold"))?;
                marking.set(key, *line, map);
                Meaning::Nothing
            }
            _ => meaning(key, first, values).map_err(refuse)?,
        };
        let written = format!("{}: {key} {}", place(*line), values.join(" "));
        let pair = match meaning {
            Meaning::Key(key, value) => Some((key, value)),
            Meaning::Near(key, value, why) => {
                warnings.push(format!("{written} is carried over as {key} = {value}: {why}"));
                Some((key, value))
            }
            Meaning::Nothing => None,
            Meaning::Warning(why) => {
                warnings.push(format!("{written} is not carried over: {why}"));
                None
            }
        };
        let setting =
            |(key, value)| Ns3Setting { key, value, file: file.to_owned(), line: if numbered { *line } else { 0 } };
        settings.extend(pair.map(setting));
    }
    if let Some((line, _)) = all.iter().find(|(_, words)| words[0] == "CC_MODE" && words.get(1) == Some(&"1")) {
        let line = if numbered { *line } else { 0 };
        settings.extend(rules(&all).map(|(key, value)| Ns3Setting { key, value, file: file.to_owned(), line }));
    }
    marking.finish(file, settings, warnings);
    Ok(())
}

/// How those simulators do DCQCN, which their files do not say.
fn rules(lines: &[(usize, Vec<&str>)]) -> impl Iterator<Item = (&'static str, String)> {
    let fast = lines.iter().find(|(_, words)| words[0] == "FAST_RECOVERY_TIMES");
    let fast: Option<u64> = fast.and_then(|(_, words)| words.get(1)?.parse().ok());
    let hyper = fast.map(|stages| ("cc.hyper_threshold", (stages + 1).to_string()));
    let text = |value: &str| format!("\"{value}\"");
    [("cc.profile", text("ns3")), ("qp.cnp_interval", text("0ps")), ("switch.mark_on", text("departure"))]
        .into_iter()
        .chain(hyper)
}

fn meaning(key: &str, first: &str, values: &[&str]) -> Result<Meaning, &'static str> {
    let micros = |key| match number(first) {
        Some(us) => Ok(Meaning::Key(key, format!("\"{}ns\"", (us * 1000.0).round()))),
        None => Err("a time in us"),
    };
    let speed = |key| match rate(first) {
        Some(rate) => Ok(Meaning::Key(key, format!("\"{rate}\""))),
        None => Err("a rate such as 50Mb/s"),
    };
    let flag = |key| match first {
        "0" | "1" => Ok(Meaning::Key(key, (first == "1").to_string())),
        _ => Err("0 or 1"),
    };
    let whole = |key| match first.parse::<u64>() {
        Ok(value) => Ok(Meaning::Key(key, value.to_string())),
        Err(_) => Err("a whole number"),
    };
    match key {
        "ENABLE_QCN" => flag("switch.ecn"),
        "ENABLE_PFC" => flag("switch.pfc"),
        "USE_DYNAMIC_PFC_THRESHOLD" => match first {
            "1" => Ok(Meaning::Key("switch.threshold", "\"dynamic\"".to_owned())),
            "0" => Ok(Meaning::Key("switch.threshold", "\"static\"".to_owned())),
            _ => Err("0 or 1"),
        },
        "CC_MODE" => match first {
            "1" => Ok(Meaning::Key("cc.law", "\"dcqcn\"".to_owned())),
            _ => Ok(Meaning::Warning("of the laws only 1, DCQCN, is here; the flows run under the scenario's cc.law")),
        },
        "ALPHA_RESUME_INTERVAL" => micros("cc.alpha_interval"),
        "RATE_DECREASE_INTERVAL" => micros("cc.decrease_interval"),
        "RP_TIMER" => micros("cc.increase_interval"),
        "CLAMP_TARGET_RATE" => flag("cc.clamp_target"),
        "EWMA_GAIN" => gain(first)
            .map(|gain| Meaning::Key("cc.g", gain))
            .ok_or("a fraction of three significant bits, such as 0.00390625"),
        "FAST_RECOVERY_TIMES" => whole("cc.stage_threshold"),
        "RATE_AI" => speed("cc.rate_ai"),
        "RATE_HAI" => speed("cc.rate_hai"),
        "MIN_RATE" => speed("cc.rate_min"),
        "PACKET_PAYLOAD_SIZE" => mtu(first).ok_or("a number of bytes"),
        "BUFFER_SIZE" => match number(first) {
            None if first.parse::<ByteSize>().is_ok() => Ok(Meaning::Key("switch.buffer", format!("\"{first}\""))),
            Some(mb) => {
                let bytes = ByteSize((mb * 1024.0 * 1024.0) as u64);
                Ok(Meaning::Key("switch.buffer", format!("\"{bytes}\"")))
            }
            None => Err("a number of MB"),
        },
        "ERROR_RATE_PER_LINK" => match number(first).filter(|p| *p <= 1.0) {
            Some(0.0) => Ok(Meaning::Nothing),
            Some(p) => Ok(Meaning::Key("link.loss", format!("{p:?}"))),
            None => Err("a probability"),
        },
        "SIMULATOR_STOP_TIME" => match number(first) {
            Some(0.0) => Ok(Meaning::Nothing),
            Some(s) => Ok(Meaning::Key("run.time_limit", format!("\"{}us\"", (s * 1e6).round()))),
            None => Err("a time in seconds"),
        },
        "RNG_SEED" => whole("run.seed"),
        "L2_ACK_INTERVAL" => whole("qp.ack_every"),
        "L2_BACK_TO_ZERO" if first == "0" => Ok(Meaning::Nothing),
        "L2_BACK_TO_ZERO" => Ok(Meaning::Warning("RC resends from the first lost packet (go-back-N)")),
        "L2_CHUNK_SIZE" => Ok(Meaning::Warning("RC resends from the first lost packet, whatever the chunk")),
        "HAS_WIN" | "VAR_WIN" | "GLOBAL_T" if first == "0" => Ok(Meaning::Nothing),
        "HAS_WIN" | "VAR_WIN" | "GLOBAL_T" => Ok(Meaning::Warning("RC under DCQCN has no congestion window")),
        "RATE_BOUND" if first == "1" => Ok(Meaning::Nothing),
        "RATE_BOUND" => Ok(Meaning::Warning("the rate limiter is part of the law; set cc.law = \"off\" to go without")),
        "ACK_HIGH_PRIO" if first == "0" => Ok(Meaning::Nothing),
        "ACK_HIGH_PRIO" => Ok(Meaning::Warning("acknowledgements travel in the class of the data")),
        "LINK_DOWN" if values.iter().all(|value| *value == "0") => Ok(Meaning::Nothing),
        "LINK_DOWN" => Ok(Meaning::Warning("write a [[change]] with down = true for that link")),
        "FAST_REACT" | "SAMPLE_FEEDBACK" | "PINT_LOG_BASE" | "PINT_PROB" => Ok(Meaning::Nothing),
        _ if OF_NO_EFFECT.contains(&key) => Ok(Meaning::Nothing),
        _ => Ok(Meaning::Warning("the key is not known")),
    }
}

fn gain(word: &str) -> Option<String> {
    let target = number(word)?;
    // As many digits as such a file gives.
    let found = Weight::all().find(|weight| (weight.value() / target - 1.0).abs() < 1e-6)?;
    Some(format!("\"{found}\""))
}

/// RoCEv2 has five MTUs; the nearest one replaces any other payload size.
fn mtu(word: &str) -> Option<Meaning> {
    let bytes: u64 = word.parse().ok()?;
    let nearest = [256, 512, 1024, 2048, 4096].into_iter().min_by_key(|mtu: &u64| mtu.abs_diff(bytes))?;
    Some(match nearest == bytes {
        true => Meaning::Key("qp.mtu", nearest.to_string()),
        false => Meaning::Near("qp.mtu", nearest.to_string(), "the nearest MTU that RoCEv2 has"),
    })
}

/// RED thresholds by line rate.
#[derive(Default)]
struct Marking {
    line: usize,
    kmin: Vec<(Rate, f64)>,
    kmax: Vec<(Rate, f64)>,
    pmax: Vec<(Rate, f64)>,
}

fn bandwidth_map(values: &[&str]) -> Option<Vec<(Rate, f64)>> {
    let count: usize = values.first()?.parse().ok()?;
    let pairs = values[1..].chunks(2).map(|pair| match pair {
        [bandwidth, value] => Some((rate(bandwidth)?, number(value)?)),
        _ => None,
    });
    let pairs: Vec<(Rate, f64)> = pairs.collect::<Option<_>>()?;
    (pairs.len() == count && count > 0).then_some(pairs)
}

impl Marking {
    fn set(&mut self, key: &str, line: usize, map: Vec<(Rate, f64)>) {
        self.line = line;
        match key {
            "KMIN_MAP" => self.kmin = map,
            "KMAX_MAP" => self.kmax = map,
            _ => self.pmax = map,
        }
    }

    /// Our thresholds are those of one rate and grow with the rate of the port: the first entry gives them, and a map
    /// that does not grow in proportion is warned of.
    fn finish(self, file: &str, settings: &mut Vec<Ns3Setting>, warnings: &mut Vec<String>) {
        let line = self.line;
        let mut put = |key, value: String| {
            settings.push(Ns3Setting { key, value, file: file.to_owned(), line });
        };
        let bytes = |kilobytes: f64| format!("\"{}\"", ByteSize((kilobytes * 1000.0).round() as u64));
        if let Some((rate, kilobytes)) = self.kmin.first() {
            put("switch.kmin", bytes(*kilobytes));
            put("switch.ecn_rate", format!("\"{rate}\""));
        }
        if let Some((_, kilobytes)) = self.kmax.first() {
            put("switch.kmax", bytes(*kilobytes));
        }
        if let Some((_, probability)) = self.pmax.first() {
            put("switch.pmax", format!("{probability:?}"));
        }
        let proportional = |map: &[(Rate, f64)]| {
            map.iter().all(|(rate, value)| (value * map[0].0 .0 as f64 - map[0].1 * rate.0 as f64).abs() < 1.0)
        };
        let constant = self.pmax.iter().all(|(_, value)| *value == self.pmax[0].1);
        if !(proportional(&self.kmin) && proportional(&self.kmax) && constant) {
            warnings.push(format!(
                "{file}:{line}: KMIN_MAP, KMAX_MAP and PMAX_MAP are carried over for the first rate only: thresholds here \
                 grow in proportion to the rate"
            ));
        }
    }
}
