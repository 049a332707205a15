// SPDX-License-Identifier: Apache-2.0
//! Reads the topology, flow and configuration files of the ns-3 RDMA simulators (ns3-roce, HPCC).
//! Promise: nothing is dropped silently: a key without a counterpart here gives a warning that names it; unreadable
//! input is an error with file and line.
//! Source: the formats as published with github.com/alibaba-edu/High-Precision-Congestion-Control and
//! github.com/Eren121/ns3-roce (`mix/config_doc.txt`, `mix/topology.txt`, `mix/flow.txt`).

use penstock_netsim::{Faults, LinkParams};

use super::ns3_config::{self, Ns3Setting};
use super::ns3_json::{self, Content};
use super::ns3_lines::{number, rate, time, Lines, Ns3Error};
use super::{LinkClass, NodeKind, Topology, TopologyError};
use crate::units::{Probability, Time};

/// The texts of the files, each with its name for messages.
#[derive(Debug, Clone, Copy)]
pub struct Ns3Files<'a> {
    pub topology: (&'a str, &'a str),
    pub flows: Option<(&'a str, &'a str)>,
    pub config: Option<(&'a str, &'a str)>,
}

/// One line of a flow file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ns3Flow {
    pub from: usize,
    pub to: usize,
    /// Priority group: the traffic class.
    pub class: u8,
    pub bytes: u64,
    pub start: Time,
}

/// The contents of the files in the terms of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Ns3Import {
    /// Nodes are called `n0` ..., as numbered in the file.
    pub topology: Topology,
    pub flows: Vec<Ns3Flow>,
    /// Keys of a scenario with their values: (key, value as in TOML, file, line).
    pub settings: Vec<Ns3Setting>,
    /// Lines that could not be carried over, and why.
    pub warnings: Vec<String>,
}

impl Ns3Import {
    /// Reads the files.
    ///
    /// # Errors
    /// [`Ns3Error`] names the first line that cannot be read.
    pub fn parse<'f>(files: &Ns3Files<'f>) -> Result<Self, Ns3Error> {
        let mut warnings = Vec::new();
        let mut text = |file: (&str, &'f str), what| ns3_json::as_text(file.0, file.1, what, &mut warnings);
        let topology_text = text(files.topology, Content::Topology)?;
        let flows_text = files.flows.map(|file| text(file, Content::Flows)).transpose()?;
        let config_text = files.config.map(|file| text(file, Content::Config)).transpose()?;
        let topology = topology(lines(files.topology.0, &topology_text))?;
        let mut import = Ns3Import { topology, flows: Vec::new(), settings: Vec::new(), warnings };
        if let (Some((file, _)), Some(text)) = (files.flows, &flows_text) {
            import.flows = flows(lines(file, text), &import.topology)?;
        }
        if let (Some((file, _)), Some(text)) = (files.config, &config_text) {
            ns3_config::read(file, lines(file, text), &mut import.settings, &mut import.warnings)?;
        }
        Ok(import)
    }
}

/// The lines of a file; those of JSON are not numbered.
fn lines<'a>(file: &'a str, text: &'a str) -> Lines<'a> {
    match ns3_json::is_json(file) {
        true => Lines::translated(file, text),
        false => Lines::new(file, text),
    }
}

/// "nodes switches links", the numbers of the switches, then "from to rate delay error_rate".
fn topology(mut lines: Lines) -> Result<Topology, Ns3Error> {
    let (at, words) = lines.expect("\"nodes switches links\"")?;
    let counts: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let [nodes, switches, links] = counts[..] else {
        return Err(lines.error(at, format!("`{}` is not \"nodes switches links\"", words.join(" "))));
    };
    if nodes > 1_000_000 || switches > nodes {
        return Err(
            lines.error(at, format!("{nodes} nodes with {switches} switches: allowed are up to a million nodes"))
        );
    }
    let mut is_switch = vec![false; nodes];
    let mut found = 0;
    while found < switches {
        let (at, words) = lines.expect("the numbers of the switches")?;
        for word in words {
            let node = word.parse().ok().filter(|node: &usize| *node < nodes);
            let node = node.ok_or_else(|| lines.error(at, format!("switch {word}: allowed are 0 to {}", nodes - 1)))?;
            is_switch[node] = true;
            found += 1;
        }
    }
    let mut topology = Topology::new();
    for (node, is_switch) in is_switch.into_iter().enumerate() {
        let kind = if is_switch { NodeKind::Switch } else { NodeKind::Host };
        topology.add(format!("n{node}"), kind).map_err(|error| lines.error(at, error.to_string()))?;
    }
    for _ in 0..links {
        let (at, words) = lines.expect("a link")?;
        link(&mut topology, &words).map_err(|message| lines.error(at, message))?;
    }
    Ok(topology)
}

fn link(topology: &mut Topology, words: &[&str]) -> Result<(), String> {
    let [from, to, rate_word, delay_word, rest @ ..] = words else {
        return Err(format!("`{}` is not \"from to rate delay error_rate\"", words.join(" ")));
    };
    let node = |word: &str| topology.expect_node(&format!("n{word}")).map_err(|error: TopologyError| error.to_string());
    let (from, to) = (node(from)?, node(to)?);
    let rate = rate(rate_word).ok_or_else(|| format!("`{rate_word}` is no rate; write it as 10Gbps"))?;
    let delay = time(delay_word).ok_or_else(|| format!("`{delay_word}` is no delay; write it as 1us or 0.001ms"))?;
    let loss = rest.first().map_or(Some(Probability::NEVER), |word| number(word).and_then(Probability::new));
    let loss = loss.ok_or_else(|| format!("`{}` is no error rate; allowed are 0 to 1", rest[0]))?;
    let params = LinkParams { rate, delay, faults: Faults { loss, ..Faults::default() } };
    let switches = [from, to].iter().all(|end| topology.nodes[*end].kind == NodeKind::Switch);
    let class = if switches { LinkClass::Uplink } else { LinkClass::Access };
    topology.connect(from, to, class, params).map(|_| ()).map_err(|error| error.to_string())
}

/// The number of flows, then "from to priority port bytes start"; start in seconds.
fn flows(mut lines: Lines, topology: &Topology) -> Result<Vec<Ns3Flow>, Ns3Error> {
    let (at, words) = lines.expect("the number of flows")?;
    let count: usize = match words[..] {
        [word] => word.parse().map_err(|_| lines.error(at, format!("`{word}` is no number of flows")))?,
        _ => return Err(lines.error(at, format!("`{}` is no number of flows", words.join(" ")))),
    };
    let mut flows = Vec::new();
    for _ in 0..count {
        let (at, words) = lines.expect("a flow")?;
        flows.push(flow(&words, topology).map_err(|message| lines.error(at, message))?);
    }
    Ok(flows)
}

fn flow(words: &[&str], topology: &Topology) -> Result<Ns3Flow, String> {
    let [from, to, class, _port, bytes, start] = words else {
        return Err(format!("`{}` is not \"from to priority port bytes start\"", words.join(" ")));
    };
    let host = |word: &str| {
        let node = topology.expect_node(&format!("n{word}")).map_err(|error| error.to_string())?;
        match topology.nodes[node].kind {
            NodeKind::Host => Ok(node),
            NodeKind::Switch => Err(format!("n{word} is a switch; flows join hosts")),
        }
    };
    let class_number = class.parse().ok().filter(|class| *class < 8);
    let bytes_number: Option<u64> = bytes.parse().ok().filter(|bytes| *bytes > 0);
    Ok(Ns3Flow {
        from: host(from)?,
        to: host(to)?,
        class: class_number.ok_or_else(|| format!("priority {class}: allowed are 0 to 7"))?,
        bytes: bytes_number.ok_or_else(|| format!("`{bytes}` is no number of bytes"))?,
        start: number(start).and_then(|_| time(start)).ok_or_else(|| format!("`{start}` is no time in seconds"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPOLOGY: &str = "4 1 3\n3\n0 3 100Gbps 0.001ms 0\n1 3 25Gb/s 1us 0.01\n2 3 100000000000 0.000002 0\n";
    const FLOWS: &str = "2\n0 2 3 100 200000 2\n1 2 3 100 5000 2.5\n\nFirst line: # of flows\n";

    fn parse(topology: &str, flows: &str, config: &str) -> Result<Ns3Import, String> {
        let files = Ns3Files {
            topology: ("topology.txt", topology),
            flows: Some(("flow.txt", flows)),
            config: Some(("config.txt", config)),
        };
        Ns3Import::parse(&files).map_err(|error| error.to_string())
    }

    #[test]
    fn nodes_links_and_flows_are_those_of_the_files() {
        let import = parse(TOPOLOGY, FLOWS, "").unwrap();
        let links: Vec<String> = (0..3)
            .map(|link| {
                let params = import.topology.links[link].params;
                let loss = params.faults.loss;
                format!("{} {} {} {loss}", import.topology.link_name(link), params.rate, params.delay)
            })
            .collect();
        assert_eq!(links, ["n0-n3 100Gbps 1us 0", "n1-n3 25Gbps 1us 0.01", "n2-n3 100Gbps 2us 0"]);
        assert_eq!(import.flows[0], Ns3Flow { from: 0, to: 2, class: 3, bytes: 200_000, start: Time::from_s(2) });
        assert_eq!(import.flows[1].start, Time::from_ms(2500));
    }

    #[test]
    fn a_configuration_becomes_keys_of_a_scenario_and_the_rest_is_warned_of() {
        let config = "ENABLE_QCN 1 {comment}\nUSE_DYNAMIC_PFC_THRESHOLD 1\nPACKET_PAYLOAD_SIZE 1000\n\
            TOPOLOGY_FILE mix/topology.txt\nSIMULATOR_STOP_TIME 4.00\nCC_MODE 1\nALPHA_RESUME_INTERVAL 55\n\
            RATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\nRP_TIMER 900\nEWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\n\
            RATE_AI 50Mb/s\nRATE_HAI 100Mb/s\nMIN_RATE 100Mb/s\nERROR_RATE_PER_LINK 0.0001\nL2_CHUNK_SIZE 4000\n\
            L2_BACK_TO_ZERO 0\nHAS_WIN 1\nLINK_DOWN 0 0 0\nKMAX_MAP 2 25000000000 400 100000000000 1600\n\
            KMIN_MAP 2 25000000000 100 100000000000 400\nPMAX_MAP 2 25000000000 0.2 100000000000 0.2\nBUFFER_SIZE 32\n\
            U_TARGET 0.95\nRNG_SEED 500\nNOVELTY 7\n";
        let import = parse(TOPOLOGY, FLOWS, config).unwrap();
        let settings = import.settings.iter().map(|s| format!("{} = {} ({}:{})", s.key, s.value, s.file, s.line));
        let lines: Vec<String> = settings.chain(import.warnings.iter().cloned()).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn the_json_of_ns3_roce_says_the_same() {
        let topology = r#"{"nodes": [{"id": 3, "is_switch": true}, {"id": 0, "is_switch": false},
            {"id": 1, "is_switch": false}, {"id": 2, "is_switch": false}], "groups": [], "links": [
            {"src": 0, "dst": 3, "bandwidth": 100e9, "latency": 1e-06, "error_rate": 0.0},
            {"src": 1, "dst": 3, "bandwidth": 25000000000.0, "latency": 1e-06, "error_rate": 0.01},
            {"src": 2, "dst": 3, "bandwidth": 100e9, "latency": 2e-6, "error_rate": 0}]}"#;
        let flows = r#"{"flows": [{"path": "ns3::RdmaFlowUnicast", "enable": true, "start_time": 2.0, "attributes":
            {"SourceNode": 0, "DestinationNode": 2, "WriteByteAmount": 2e5, "PfcPriority": 3}},
            {"type": "unicast", "start_time": 2.5, "priority": 3, "size": 5000, "src": 1, "dst": 2},
            {"path": "ns3::RdmaFlowBisection", "enable": true, "start_time": 0, "attributes": {}}]}"#;
        let config = r#"{"default_attributes": {"ns3::SwitchNode::EcnEnabled": true, "ns3::RdmaHw::RateAI": "50Mb/s",
            "ns3::RdmaHw::RPTimer": 900.0, "ns3::RdmaHw::CcMode": 1, "ns3::RdmaHw::Mtu": 4096,
            "ns3::SwitchMmu::BufferSize": "12MiB", "ns3::QbbNetDevice::PauseTime": 5e-6},
            "rng_seed": 50, "simulator_stop_time": 0, "topology_file": "t.json",
            "ecn": [{"bandwidth_bps": 25e9, "min_buf_bytes": 100e3, "max_buf_bytes": 400e3, "max_probability": 0.2}]}"#;
        let files = Ns3Files {
            topology: ("t.json", topology),
            flows: Some(("f.json", flows)),
            config: Some(("c.json", config)),
        };
        let import = Ns3Import::parse(&files).unwrap();
        let text = parse(TOPOLOGY, FLOWS, "").unwrap();
        assert_eq!((import.topology, import.flows), (text.topology, text.flows));
        let settings = import.settings.iter().map(|s| format!("{} = {}", s.key, s.value));
        let lines: Vec<String> = settings.chain(import.warnings.iter().cloned()).collect();
        insta::assert_snapshot!(lines.join("\n"));
        let wrong = |topology| {
            let files = Ns3Files { topology: ("t.json", topology), flows: None, config: None };
            Ns3Import::parse(&files).unwrap_err().to_string()
        };
        assert_eq!(wrong("{\"nodes\": []}"), "t.json: links is missing, or is no array");
        assert!(wrong("{").starts_with("t.json: not JSON: "), "{}", wrong("{"));
    }

    #[test]
    fn mistakes_are_refused_with_file_and_line() {
        let cases = [
            ("", FLOWS, ""),
            ("4 1\n", FLOWS, ""),
            ("4 1 3\n9\n", FLOWS, ""),
            ("4 1 3\n3\n0 3 100Gbps 1us 0\n", FLOWS, ""),
            ("4 1 1\n3\n0 3 fast 1us 0\n", FLOWS, ""),
            ("4 1 1\n3\n0 7 1Gbps 1us 0\n", FLOWS, ""),
            ("4 1 1\n3\n0 3 1Gbps 1us 2\n", FLOWS, ""),
            (TOPOLOGY, "many\n", ""),
            (TOPOLOGY, "1\n0 3 3 100 200 2\n", ""),
            (TOPOLOGY, "1\n0 1 9 100 200 2\n", ""),
            (TOPOLOGY, "2\n0 1 3 100 200 2\n", ""),
            (TOPOLOGY, FLOWS, "RATE_AI soon\n"),
            (TOPOLOGY, FLOWS, "KMAX_MAP 2 25000000000 400\n"),
            (TOPOLOGY, FLOWS, "EWMA_GAIN 0.3\n"),
        ];
        let report: Vec<String> =
            cases.iter().map(|(topology, flows, config)| parse(topology, flows, config).unwrap_err()).collect();
        insta::assert_snapshot!(report.join("\n"));
    }
}
