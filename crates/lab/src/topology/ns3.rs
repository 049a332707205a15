// SPDX-License-Identifier: Apache-2.0
//! Reads the topology, flow and configuration files of the ns-3 RDMA simulators (ns3-roce, HPCC).
//! Promise: nothing is dropped silently: a key without a counterpart here gives a warning that names it; unreadable
//! input is an error with file and line.
//! Source: the formats as published with github.com/alibaba-edu/High-Precision-Congestion-Control and
//! github.com/Eren121/ns3-roce (`mix/config_doc.txt`, `mix/topology.txt`, `mix/flow.txt`).

use std::collections::{BTreeMap, VecDeque};

use penstock_netsim::{Faults, LinkParams};

use super::ns3_config::{self, Ns3Setting};
use super::ns3_json::{self, Content};
use super::ns3_lines::{number, rate, time, Lines, Ns3Error};
use super::{LinkClass, NodeKind, Topology};
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
    /// Nodes are called `n0` ..., as numbered in the file. A host with several links is a host for each of them here:
    /// `n0`, `n0_2` ...
    pub topology: Topology,
    pub flows: Vec<Ns3Flow>,
    /// Keys of a scenario with their values: (key, value as in TOML, file, line).
    pub settings: Vec<Ns3Setting>,
}

impl Ns3Import {
    /// Reads the files. What could not be carried over, and why, is added to `warnings`, also if the files are refused.
    ///
    /// # Errors
    /// [`Ns3Error`] names the first line that cannot be read.
    pub fn parse<'f>(files: &Ns3Files<'f>, warnings: &mut Vec<String>) -> Result<Self, Ns3Error> {
        let mut text = |file: (&str, &'f str), what| ns3_json::as_text(file.0, file.1, what, warnings);
        let topology_text = text(files.topology, Content::Topology);
        let flows_text = files.flows.map(|file| text(file, Content::Flows)).transpose();
        let config_text = files.config.map(|file| text(file, Content::Config)).transpose();
        let (topology_text, flows_text, config_text) = (topology_text?, flows_text?, config_text?);
        let mut settings = Vec::new();
        if let (Some((file, _)), Some(text)) = (files.config, &config_text) {
            ns3_config::read(file, lines(file, text), &mut settings, warnings)?;
        }
        let network = topology(lines(files.topology.0, &topology_text))?;
        warnings.extend(network.several_links(files.topology.0));
        let mut import = Ns3Import { topology: Topology::new(), flows: Vec::new(), settings };
        if let (Some((file, _)), Some(text)) = (files.flows, &flows_text) {
            let dialect = Dialect::of(text, packet_payload(config_text.as_deref()));
            import.flows = flows(lines(file, text), &network, dialect, warnings)?;
        }
        import.topology = network.topology;
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

/// Nodes by their numbers in the file.
#[derive(Default)]
struct Network {
    topology: Topology,
    /// The nodes that stand for each: one, but for a host with several links.
    nodes: Vec<Vec<usize>>,
}

impl Network {
    fn number(&self, word: &str) -> Result<usize, String> {
        let number = word.parse().ok().filter(|number: &usize| *number < self.nodes.len());
        number.ok_or_else(|| {
            let last = self.nodes.len().saturating_sub(1);
            format!("there is no node {word}; there are 0 to {last}")
        })
    }

    fn kind(&self, number: usize) -> NodeKind {
        self.topology.nodes[self.nodes[number][0]].kind
    }

    /// The node that gets the next link: of a host a node without one, which is added if there is none.
    fn free_port(&mut self, number: usize) -> Result<usize, String> {
        let ports = &mut self.nodes[number];
        let last = *ports.last().unwrap_or(&0);
        let (kind, linked) = (self.topology.nodes[last].kind, !self.topology.nodes[last].ports.is_empty());
        if kind == NodeKind::Switch || !linked {
            return Ok(last);
        }
        let name = format!("n{number}_{}", ports.len() + 1);
        let added = self.topology.add(name, NodeKind::Host).map_err(|error| error.to_string())?;
        ports.push(added);
        Ok(added)
    }

    /// A warning of hosts with several links.
    fn several_links(&self, file: &str) -> Option<String> {
        let several = self.nodes.iter().enumerate().filter(|(_, ports)| ports.len() > 1);
        let numbers: Vec<usize> = several.map(|(number, _)| number).collect();
        let first = numbers.first()?;
        Some(format!(
            "{file}: {} hosts with several links, the first {first}, are carried over as a host for each link (n{first}, \
             n{first}_2): a flow takes the shortest way between two of them, of several such ways the next in turn",
            numbers.len()
        ))
    }
}

/// Which links the flows between hosts with several of them take.
#[derive(Default)]
struct Ports {
    /// Links from a node to each other one.
    distances: BTreeMap<usize, Vec<u32>>,
    /// Flows so far between two numbers of the file.
    flows: BTreeMap<(usize, usize), usize>,
}

impl Ports {
    /// The ends of the next flow between two hosts.
    fn take(&mut self, network: &Network, from: usize, to: usize) -> (usize, usize) {
        let (ours, theirs) = (&network.nodes[from], &network.nodes[to]);
        if let ([from], [to]) = (&ours[..], &theirs[..]) {
            return (*from, *to);
        }
        let mut nearest: (u32, Vec<(usize, usize)>) = (u32::MAX, Vec::new());
        for from in ours {
            let distances = self.distances.entry(*from).or_insert_with(|| distances(&network.topology, *from));
            for to in theirs.iter().filter(|to| *to != from) {
                if distances[*to] < nearest.0 {
                    nearest = (distances[*to], Vec::new());
                }
                if distances[*to] == nearest.0 {
                    nearest.1.push((*from, *to));
                }
            }
        }
        let turn = self.flows.entry((from, to)).or_default();
        *turn += 1;
        // begins elsewhere for each pair of hosts, so that single flows spread, too
        nearest.1.get((*turn - 1 + from + to) % nearest.1.len().max(1)).copied().unwrap_or((ours[0], theirs[0]))
    }
}

/// How many links each node is away; hosts forward nothing.
fn distances(topology: &Topology, from: usize) -> Vec<u32> {
    let mut distances = vec![u32::MAX; topology.nodes.len()];
    distances[from] = 0;
    let mut reached = VecDeque::from([from]);
    while let Some(node) = reached.pop_front() {
        if node != from && topology.nodes[node].kind == NodeKind::Host {
            continue;
        }
        for link in &topology.nodes[node].ports {
            let peer = topology.links[*link].peer(node);
            if distances[peer] == u32::MAX {
                distances[peer] = distances[node] + 1;
                reached.push_back(peer);
            }
        }
    }
    distances
}

/// "nodes switches links", the numbers of the switches, then "from to rate delay error_rate".
fn topology(mut lines: Lines) -> Result<Network, Ns3Error> {
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
    let mut network = Network::default();
    for (node, is_switch) in is_switch.into_iter().enumerate() {
        let kind = if is_switch { NodeKind::Switch } else { NodeKind::Host };
        let added =
            network.topology.add(format!("n{node}"), kind).map_err(|error| lines.error(at, error.to_string()))?;
        network.nodes.push(vec![added]);
    }
    for _ in 0..links {
        let (at, words) = lines.expect("a link")?;
        link(&mut network, &words).map_err(|message| lines.error(at, message))?;
    }
    Ok(network)
}

fn link(network: &mut Network, words: &[&str]) -> Result<(), String> {
    let [from, to, rate_word, delay_word, rest @ ..] = words else {
        return Err(format!("`{}` is not \"from to rate delay error_rate\"", words.join(" ")));
    };
    let (from, to) = (network.number(from)?, network.number(to)?);
    let rate = rate(rate_word).ok_or_else(|| format!("`{rate_word}` is no rate; write it as 10Gbps"))?;
    let delay = time(delay_word).ok_or_else(|| format!("`{delay_word}` is no delay; write it as 1us or 0.001ms"))?;
    let loss = rest.first().map_or(Some(Probability::NEVER), |word| number(word).and_then(Probability::new));
    let loss = loss.ok_or_else(|| format!("`{}` is no error rate; allowed are 0 to 1", rest[0]))?;
    let params = LinkParams { rate, delay, faults: Faults { loss, ..Faults::default() } };
    let switches = [from, to].iter().all(|end| network.kind(*end) == NodeKind::Switch);
    let class = if switches { LinkClass::Uplink } else { LinkClass::Access };
    let ends = [network.free_port(from)?, network.free_port(to)?];
    network.topology.connect(ends[0], ends[1], class, params).map(|_| ()).map_err(|error| error.to_string())
}

/// The number of flows, then "from to priority port bytes start"; start in seconds.
/// What the last three words of a flow mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// "port bytes start" (HPCC, ns3-roce).
    Bytes,
    /// "packets start end" (ns3-rdma), with so many bytes in a packet.
    Packets(u64),
}

const PACKETS: &str = "from to priority packets start end";
/// Payload of a packet where the configuration has none: that of ns3-rdma.
const PACKET_PAYLOAD_BYTES: u64 = 1000;

impl Dialect {
    /// Files name their columns after the flows, or in a comment. Without a name the numbers decide: no port is above
    /// 65535, no number of bytes has a fraction.
    fn of(text: &str, packet_payload: u64) -> Dialect {
        let flow = |words: &[&str]| -> bool {
            let [.., count, third, _] = words else { return false };
            let numbers = words.len() == 6 && words.iter().all(|word| number(word).is_some());
            let is_port = count.parse::<u16>().is_ok();
            numbers && (!is_port || third.parse::<u64>().is_err())
        };
        let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let is_named = text.lines().any(|line| {
            let line = line.to_lowercase();
            line.contains("packet") && !line.contains("bytes")
        });
        let has_packets = text.lines().any(|line| {
            let owned = words(line.split('#').next().unwrap_or_default());
            flow(&owned.iter().map(String::as_str).collect::<Vec<_>>())
        });
        match is_named || has_packets {
            true => Dialect::Packets(packet_payload),
            false => Dialect::Bytes,
        }
    }
}

/// Bytes of a packet by the configuration.
fn packet_payload(config: Option<&str>) -> u64 {
    let value = |line: &str| -> Option<u64> {
        let mut words = line.split_whitespace();
        words.next().filter(|key| *key == "PACKET_PAYLOAD_SIZE")?;
        words.next()?.parse().ok().filter(|bytes| *bytes > 0)
    };
    config.and_then(|text| text.lines().find_map(value)).unwrap_or(PACKET_PAYLOAD_BYTES)
}

fn flows(
    mut lines: Lines,
    network: &Network,
    dialect: Dialect,
    warnings: &mut Vec<String>,
) -> Result<Vec<Ns3Flow>, Ns3Error> {
    let (at, words) = lines.expect("the number of flows")?;
    let count: usize = match words[..] {
        [word] => word.parse().map_err(|_| lines.error(at, format!("`{word}` is no number of flows")))?,
        _ => return Err(lines.error(at, format!("`{}` is no number of flows", words.join(" ")))),
    };
    let mut flows = Vec::new();
    let mut ports = Ports::default();
    let mut first = None;
    for _ in 0..count {
        let (at, words) = lines.expect("a flow")?;
        flows.push(flow(&words, network, &mut ports, dialect).map_err(|message| lines.error(at, message))?);
        first.get_or_insert(lines.place(at));
    }
    match (dialect, first) {
        (Dialect::Packets(bytes), Some(place)) => warnings.push(format!(
            "{place}: flows are read as \"{PACKETS}\", with packets of {bytes} bytes; their ends are not carried over: a flow \
             ends when its bytes are delivered"
        )),
        (Dialect::Bytes, Some(place)) if flows.iter().all(is_like_packets) => warnings.push(format!(
            "{place}: every flow has fewer bytes than seconds before its start; if the file means \"{PACKETS}\", add the \
             line \"# {PACKETS}\""
        )),
        _ => {}
    }
    Ok(flows)
}

/// Whether the fifth word is a start and the sixth an end, as in ns3-rdma's files: so few bytes so late.
fn is_like_packets(flow: &Ns3Flow) -> bool {
    (flow.bytes as f64) < flow.start.as_secs_f64()
}

fn flow(words: &[&str], network: &Network, ports: &mut Ports, dialect: Dialect) -> Result<Ns3Flow, String> {
    let [from, to, class, fourth, fifth, sixth] = words else {
        let expected = if dialect == Dialect::Bytes { "from to priority port bytes start" } else { PACKETS };
        return Err(format!("`{}` is not \"{expected}\"", words.join(" ")));
    };
    let host = |word: &str| {
        let node = network.number(word)?;
        match network.kind(node) {
            NodeKind::Host => Ok(node),
            NodeKind::Switch => Err(format!("n{word} is a switch; flows join hosts")),
        }
    };
    let class_number = class.parse().ok().filter(|class| *class < 8);
    let (from, to) = (host(from)?, host(to)?);
    if from == to {
        return Err(format!("a flow of n{from} to itself: flows join two hosts"));
    }
    let (from, to) = ports.take(network, from, to);
    let seconds =
        |word: &str| number(word).and_then(|_| time(word)).ok_or_else(|| format!("`{word}` is no time in seconds"));
    let whole = |word: &str, what: &str| {
        let found: Option<u64> = word.parse().ok().filter(|number| *number > 0);
        found.ok_or_else(|| format!("`{word}` is no number of {what}"))
    };
    let (bytes, start) = match dialect {
        Dialect::Bytes => (whole(fifth, "bytes")?, seconds(sixth)?),
        Dialect::Packets(size) => {
            let (packets, start, end) = (whole(fourth, "packets")?, seconds(fifth)?, seconds(sixth)?);
            if end <= start {
                return Err(format!("the flow ends at {sixth} s, and starts at {fifth} s"));
            }
            (packets.checked_mul(size).ok_or_else(|| format!("{packets} packets are too many"))?, start)
        }
    };
    let class = class_number.ok_or_else(|| format!("priority {class}: allowed are 0 to 7"))?;
    Ok(Ns3Flow { from, to, class, bytes, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPOLOGY: &str = "4 1 3\n3\n0 3 100Gbps 0.001ms 0\n1 3 25Gb/s 1us 0.01\n2 3 100000000000 0.000002 0\n";
    const FLOWS: &str = "2\n0 2 3 100 200000 2\n1 2 3 100 5000 2.5\n\nFirst line: # of flows\n";

    fn parse(topology: &str, flows: &str, config: &str) -> Result<Ns3Import, String> {
        warned(topology, flows, config).map(|(import, _)| import)
    }

    fn warned(topology: &str, flows: &str, config: &str) -> Result<(Ns3Import, Vec<String>), String> {
        let files = Ns3Files {
            topology: ("topology.txt", topology),
            flows: Some(("flow.txt", flows)),
            config: Some(("config.txt", config)),
        };
        let mut warnings = Vec::new();
        let import = Ns3Import::parse(&files, &mut warnings).map_err(|error| error.to_string())?;
        Ok((import, warnings))
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
        let (import, warnings) = warned(TOPOLOGY, FLOWS, config).unwrap();
        let settings = import.settings.iter().map(|s| format!("{} = {} ({}:{})", s.key, s.value, s.file, s.line));
        let lines: Vec<String> = settings.chain(warnings).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn the_json_of_ns3_roce_gives_the_same() {
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
        let mut warnings = Vec::new();
        let import = Ns3Import::parse(&files, &mut warnings).unwrap();
        let text = parse(TOPOLOGY, FLOWS, "").unwrap();
        assert_eq!((import.topology, import.flows), (text.topology, text.flows));
        let settings = import.settings.iter().map(|s| format!("{} = {}", s.key, s.value));
        let lines: Vec<String> = settings.chain(warnings).collect();
        insta::assert_snapshot!(lines.join("\n"));
        let wrong = |topology| {
            let files = Ns3Files { topology: ("t.json", topology), flows: None, config: None };
            Ns3Import::parse(&files, &mut Vec::new()).unwrap_err().to_string()
        };
        assert_eq!(wrong("{\"nodes\": []}"), "t.json: links is missing, or is no array");
        assert!(wrong("{").starts_with("t.json: not JSON: "), "{}", wrong("{"));
    }

    #[test]
    fn flows_of_packets_are_distinguished_from_flows_of_bytes() {
        let bytes = |flows: &str, config: &str| {
            let (import, warnings) = warned(TOPOLOGY, flows, config).unwrap();
            let found = import.flows.iter().map(|flow| (flow.bytes, flow.start.as_secs_f64())).collect::<Vec<_>>();
            (found, warnings.join("\n"))
        };
        let (found, warnings) = bytes("2\n0 1 3 100000 2 9\n1 2 3 7 2 9\n", "");
        assert_eq!(found, [(100_000_000, 2.0), (7000, 2.0)]);
        assert!(
            warnings.contains("packets of 1000 bytes") && warnings.contains("ends are not carried over"),
            "{warnings}"
        );
        let (found, _) = bytes("1\n0 1 3 100 2.5 9\n", "");
        assert_eq!(found, [(100_000, 2.5)]);
        let named = "1\n0 1 3 100 2 9\n\nFirst line: flow #\nsrc dst priority packet# start_time end_time\n";
        let (found, _) = bytes(named, "PACKET_PAYLOAD_SIZE 4096\n");
        assert_eq!(found, [(409_600, 2.0)]);
        let (found, warnings) = bytes("1\n0 1 3 100 2 9\n", "");
        assert_eq!(found, [(2, 9.0)]);
        assert!(warnings.contains("add the line \"# from to priority packets start end\""), "{warnings}");
        let (found, warnings) = bytes("1\n0 1 3 100 200000 2\n", "");
        assert_eq!((found, warnings), (vec![(200_000, 2.0)], String::new()));
        let refused = |flow: &str| parse(TOPOLOGY, &format!("1\n{flow}\n"), "").unwrap_err().to_string();
        assert!(refused("0 1 3 100000 9 2").contains("ends at 2 s, and starts at 9 s"));
        assert!(refused("0 0 3 100 5000 2").contains("a flow of n0 to itself"));
    }

    #[test]
    fn flows_of_hosts_with_several_links_take_the_shortest_ways_in_turn() {
        // hosts 0 and 1 at the switches 3 and 4, host 2 at 4 alone
        let links =
            "0 3 1Gbps 1us 0\n0 4 1Gbps 1us 0\n1 3 1Gbps 1us 0\n1 4 1Gbps 1us 0\n2 4 1Gbps 1us 0\n3 4 1Gbps 1us 0\n";
        let flows = "5\n0 1 3 100 10 0\n0 1 3 100 10 0\n0 1 3 100 10 0\n0 2 3 100 10 0\n2 1 3 100 10 0\n";
        let (import, warnings) = warned(&format!("5 2 6\n3 4\n{links}"), flows, "").unwrap();
        let name = |node: usize| import.topology.name(node);
        let ends: Vec<String> =
            import.flows.iter().map(|flow| format!("{}>{}", name(flow.from), name(flow.to))).collect();
        assert_eq!(ends, ["n0_2>n1_2", "n0>n1", "n0_2>n1_2", "n0_2>n2", "n2>n1_2"]);
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.contains("2 hosts with several links") && warning.contains("n0_2"), "{warning}");
    }

    #[test]
    fn the_older_json_of_ns3_roce_gives_the_same_and_unsupported_keys_are_warned_of() {
        let topology = r#"{"nodes": [{"id": 2, "is_switch": true}, {"id": 0, "is_switch": false},
            {"id": 1, "is_switch": false}], "links": [
            {"src": 0, "dst": 2, "bandwidth": 1e9, "latency": 1e-06, "error_rate": 0.0},
            {"src": 1, "dst": 2, "bandwidth": 1e9, "latency": 1e-06, "error_rate": 0.0}]}"#;
        let flows = r#"{"flows": [
            {"src": 0, "dst": 1, "size": 1e6, "start_time": 1, "multicast": false, "reliable": true},
            {"src": 0, "dst": 1, "priority": 0, "size": 1e6, "start_time": 1, "multicast": false, "reliable": false},
            {"type": "unicast", "background": true, "parameters":
                {"SrcNode": 0, "DstNode": 1, "SrcPort": 900, "DstPort": 901, "WriteSize": 1e6, "BandwidthPercent": 0.5}},
            {"type": "flow", "start_time": 0, "priority": 3, "multicast": true, "size": 1e6, "src": 0, "dst": 1},
            {"path": "ns3::RdmaFlowUnicast", "enable": true, "start_time": 1, "in_background": true, "attributes":
                {"SourceNode": 0, "DestinationNode": 1, "WriteByteAmount": 1e6, "PfcPriority": 3, "IsReliable": false}},
            {"type": "allgather", "group": 1, "start_time": 0, "priority": 3, "size": 1e7}]}"#;
        let config = r#"{"enable_pfc": true, "enable_qcn": false, "packet_payload_size": 1024, "flow_file": "f.json",
            "qlen_monitor": {"enable": false}, "rate_ai": "50Mb/s", "cc_mode": 1, "ack_high_prio": true,
            "kmin_map": [{"bandwidth": 25e9, "ecn_threshold": 100}], "link_down": {"time": 0, "src": 0, "dst": 0},
            "kmax_map": [{"bandwidth": 25e9, "ecn_threshold": 400}], "novelty": 7}"#;
        let files = Ns3Files {
            topology: ("t.json", topology),
            flows: Some(("f.json", flows)),
            config: Some(("c.json", config)),
        };
        let mut warnings = Vec::new();
        let import = Ns3Import::parse(&files, &mut warnings).unwrap();
        let flow = |at| Ns3Flow { from: 0, to: 1, class: 3, bytes: 1_000_000, start: Time::from_s(at) };
        let classed = Ns3Flow { class: 0, ..flow(1) };
        assert_eq!(import.flows, [flow(1), classed, flow(0), flow(1)]);
        let settings = import.settings.iter().map(|s| format!("{} = {}", s.key, s.value));
        insta::assert_snapshot!(settings.chain(warnings).collect::<Vec<String>>().join("\n"));
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
