// SPDX-License-Identifier: Apache-2.0
//! Scenario files: what a run simulates, in TOML, every key checked, units written out.
//! Promise: what is returned can be built; everything wrong is reported at once with file, line, key, value and what
//! is allowed.
//! Defaults are AdvCam Table II and its test bench (10 Gb/s links, MTU 4096).
//! `scenarios/incast-3.toml` documents every key.

pub(crate) mod check;
pub(crate) mod document;
mod error;
pub(crate) mod read;
pub(crate) mod reader;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use penstock_cc::DcqcnSettings;
use penstock_wire::MacAddr;

use crate::link::LinkParams;
use crate::switch::SwitchParams;
use crate::units::{ByteSize, Frequency, Rate, Time};
use document::Document;
pub use error::{Problem, ScenarioError};

/// A checked scenario: boards 0 .. n behind one switch, one server.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub run: Run,
    pub data: Data,
    pub boards: Boards,
    pub server: Server,
    pub switch: SwitchParams,
    /// The link of every node that `links_at` does not name.
    pub link: LinkParams,
    /// Links of single nodes ("board0", "server"), complete.
    pub links_at: BTreeMap<String, LinkParams>,
    pub cc: DcqcnSettings,
    pub qp: Qp,
    pub trace: Trace,
    pub capture: Capture,
    /// Every key with the value in force, in the order of reading: `("switch.kmin", "50KB")`.
    pub settings: Vec<(String, String)>,
    /// What is allowed but will probably hurt.
    pub warnings: Vec<Problem>,
}

/// `[run]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// One seed replays one run.
    pub seed: u64,
    /// Simulated time after which the run is given up.
    pub time_limit: Time,
}

/// When triggers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// At random, independent of each other.
    Poisson,
    Periodic,
}

/// `[data]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Recorded events; already relative to the working directory.
    pub file: PathBuf,
    pub events: u64,
    pub trigger: Trigger,
    pub trigger_rate: Frequency,
}

/// `[boards]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boards {
    pub count: u16,
}

/// `[server]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Receive slots per board; each free one is a posted receive.
    pub slots: u32,
    pub slot_size: ByteSize,
    /// From a packet's last bit to its acknowledgement's first.
    pub ack_delay: Time,
    /// At most one CNP per queue pair in this time.
    pub cnp_interval: Time,
    /// How long the sender is asked to wait when no receive is posted.
    pub rnr_delay: Time,
    /// How fast events can be stored; `None`: as fast as they come.
    pub consumer_rate: Option<Rate>,
    /// An event whose fragments are not all there after this time is stored incomplete.
    pub event_timeout: Time,
    /// From this time on the server is silent and deaf.
    pub vanish_at: Option<Time>,
}

/// `[qp]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qp {
    /// 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Local ACK timeout, zero: never.
    pub ack_timeout: Time,
    /// 0 to 7 retransmissions before the queue pair fails.
    pub retry_cnt: u8,
    /// 0 to 7; 7 is without end.
    pub rnr_retry: u8,
    /// DSCP of data and acknowledgements; its class (DSCP / 8) is the lossless one.
    pub dscp: u8,
    /// DSCP of CNPs.
    pub cnp_dscp: u8,
}

impl Qp {
    /// The traffic class of data.
    pub fn class(&self) -> u8 {
        self.dscp >> 3
    }

    /// IBTA 9.7.6.1.3: the smallest code whose time, 4.096 us * 2^code, is not below `ack_timeout`; 0 for never.
    pub fn ack_timeout_code(&self) -> u8 {
        if self.ack_timeout == Time::ZERO {
            return 0;
        }
        (1..31).find(|code| Time::from_ns(4096) * (1 << code) >= self.ack_timeout).unwrap_or(31)
    }
}

/// `[trace]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Zero: no trace.
    pub interval: Time,
}

/// `[capture]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Nodes ("board0", "server") whose links go into a pcapng file; empty: no capture.
    pub links: Vec<String>,
    /// Bytes kept of each frame.
    pub snap: ByteSize,
}

impl Scenario {
    /// Reads and checks a scenario file, `overrides` ("link.loss=1e-3") laid over it.
    pub fn load(path: impl AsRef<Path>, overrides: &[String]) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let text =
            std::fs::read_to_string(path).map_err(|source| ScenarioError::Io { path: path.to_owned(), source })?;
        Self::parse(path, &text, overrides)
    }

    /// Like `load`, for a text that is in memory; `path` is used in messages and to resolve relative paths.
    pub fn parse(path: impl AsRef<Path>, text: &str, overrides: &[String]) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let mut document = Document::parse(path, text)?;
        for option in overrides {
            document.set(option)?;
        }
        read::scenario(&document, path.parent().unwrap_or(Path::new("")))
    }

    /// The line rate of the boards' gateware, `penstock_10g`.
    pub const BOARD_RATE: Rate = Rate::from_gbps(10);
    pub const SERVER: &'static str = "server";
    pub const SWITCH: &'static str = "switch";

    /// The name of board `k`, in traces, reports and `[link.at]`.
    pub fn board_name(k: u16) -> String {
        format!("board{k}")
    }

    /// The link between a node and the switch.
    pub fn link_of(&self, node: &str) -> LinkParams {
        self.links_at.get(node).copied().unwrap_or(self.link)
    }

    pub fn server_ip() -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, 1)
    }

    /// 10.0.1.1, 10.0.1.2, ... with 250 boards in each third octet.
    pub fn board_ip(k: u16) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 1 + (k / 250) as u8, 1 + (k % 250) as u8)
    }

    /// The locally administered MAC address that goes with an IP address of a scenario.
    pub fn mac_of(ip: Ipv4Addr) -> MacAddr {
        let [_, b, c, d] = ip.octets();
        MacAddr([0x02, 0x50, 0x53, b, c, d])
    }
}
