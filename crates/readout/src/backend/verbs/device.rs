// SPDX-License-Identifier: Apache-2.0
//! Selects device, port and GID: by name, by address, or the only suitable one.
//! Promise: gives a RoCE v2 GID of an IPv4 address on an active port, or an error that lists the available ones.
//! Source: IBTA annex A17.4.5 (GIDs of RoCEv2); the table is the one `ibv_devinfo -v` and `rdma link` show.

use std::fmt;
use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::sync::Arc;

use penstock_transport::Mtu;
use penstock_wire::{Ipv4Addr, MacAddr};

use crate::backend::{BackendError, LocalAddress, PullSettings};
use crate::sys::verbs::{device_names, library_is_there, Context, GidEntry};

/// Which GID to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GidChoice {
    /// The first one that can be used.
    #[default]
    Any,
    /// The GID with this address.
    Address(Ipv4Addr),
    /// The GID at this line of the port's table, as perftest's `-x`.
    Index(u8),
}

impl FromStr for GidChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let index = text.parse().map(GidChoice::Index);
        index
            .or_else(|_| text.parse().map(GidChoice::Address))
            .map_err(|_| format!("{text}: a GID is named by its index (0 .. 255) or by its IPv4 address"))
    }
}

/// The device or socket to open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerbsConfig {
    /// Name as in `rdma link`: `mlx5_0`, `rxe0`. None: the only device that can be used.
    pub device: Option<String>,
    pub gid: GidChoice,
    /// Path MTU that boards will use.
    pub mtu: Option<Mtu>,
    /// Boards announce, and are read; none: they send.
    pub pull: Option<PullSettings>,
}

/// The identity of a back end: the opened device and its addresses.
#[derive(Debug, Clone)]
pub struct Found {
    pub device: String,
    pub entry: GidEntry,
    pub address: LocalAddress,
    /// Largest path MTU that the port takes now.
    pub mtu: Mtu,
    pub interface: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { device, entry, interface, .. } = self;
        let GidEntry { port, index, .. } = entry;
        let mtu = self.mtu.bytes();
        write!(f, "{device} port {port}, GID {index} {} on {interface}, path MTU up to {mtu}", describe(entry))
    }
}

/// A GID's address and kind.
fn describe(entry: &GidEntry) -> String {
    let kind = match entry.kind {
        0 => "InfiniBand",
        1 => "RoCE v1",
        2 => "RoCE v2",
        _ => "of an unknown kind",
    };
    match ipv4(entry) {
        Some(ip) => format!("{ip} ({kind}, IPv4)"),
        None => format!("{} ({kind}, IPv6)", Ipv6Addr::from(entry.gid)),
    }
}

fn ipv4(entry: &GidEntry) -> Option<Ipv4Addr> {
    Ipv6Addr::from(entry.gid).to_ipv4_mapped()
}

/// A device with what its ports have.
struct Candidate {
    device: String,
    context: Arc<Context>,
    gids: Vec<GidEntry>,
}

/// Finds and opens the device that `config` requests.
///
/// # Errors
/// `Unavailable`, with what there is and what can be done.
pub(super) fn open(config: &VerbsConfig) -> Result<(Arc<Context>, Found), BackendError> {
    if !library_is_there() {
        return Err(unavailable(
            "libibverbs.so.1 is not on this machine: `apt-get install libibverbs1 ibverbs-providers`, or receive \
             without an RDMA NIC by `--backend packet`",
        ));
    }
    let names = device_names().map_err(|error| {
        unavailable(format!("this kernel has no RDMA devices ({error}); is the NIC's driver loaded, and ib_uverbs?"))
    })?;
    if let Some(requested) = config.device.as_ref().filter(|requested| !names.contains(requested)) {
        return Err(unavailable(format!("there is no RDMA device {requested}; there are: {}", listed(&names))));
    }
    let mut candidates = Vec::new();
    for name in names.iter().filter(|name| config.device.as_ref().is_none_or(|requested| requested == *name)) {
        let context = Context::open(name).map_err(|source| failed(format!("opening {name}"), source))?;
        let gids = context.gids().map_err(|source| failed(format!("reading the GIDs of {name}"), source))?;
        candidates.push(Candidate { device: name.clone(), context, gids });
    }
    let mut usable = candidates.iter().filter_map(|candidate| Some((candidate, choose(candidate, config.gid)?)));
    let Some((candidate, entry)) = usable.next() else {
        return Err(unavailable(nothing_usable(&candidates, config.gid)));
    };
    let candidates: Vec<_> = usable.map(|(other, entry)| format!("{} ({})", other.device, describe(&entry))).collect();
    if !candidates.is_empty() && config.gid == GidChoice::Any {
        let first = format!("{} ({})", candidate.device, describe(&entry));
        return Err(unavailable(format!("several devices can be used: {first}, {}; name one", candidates.join(", "))));
    }
    let found = look_at(candidate, entry)?;
    Ok((candidate.context.clone(), found))
}

/// The requested GID of a device, if boards can send to it.
fn choose(candidate: &Candidate, choice: GidChoice) -> Option<GidEntry> {
    let is_chosen = |entry: &GidEntry| match choice {
        GidChoice::Any => true,
        GidChoice::Address(ip) => ipv4(entry) == Some(ip),
        GidChoice::Index(index) => entry.index == index,
    };
    let active = |entry: &GidEntry| candidate.context.port(entry.port).is_ok_and(|port| port.active);
    candidate.gids.iter().copied().find(|entry| {
        const ROCE_V2: u32 = 2;
        is_chosen(entry) && entry.kind == ROCE_V2 && ipv4(entry).is_some() && active(entry)
    })
}

fn nothing_usable(candidates: &[Candidate], choice: GidChoice) -> String {
    let of_device = |candidate: &Candidate| {
        let line = |entry: &GidEntry| {
            let down = candidate.context.port(entry.port).map_or(true, |port| !port.active);
            let state = if down { ", port down" } else { "" };
            format!("{} port {} GID {} {}{state}", candidate.device, entry.port, entry.index, describe(entry))
        };
        candidate.gids.iter().map(line).collect::<Vec<_>>()
    };
    let all: Vec<_> = candidates.iter().flat_map(of_device).collect();
    let chosen = match choice {
        GidChoice::Any => String::new(),
        GidChoice::Address(ip) => format!(" of {ip}"),
        GidChoice::Index(index) => format!(" at index {index}"),
    };
    format!(
        "no active port with a RoCE v2 GID{chosen} of an IPv4 address (give the interface one: `ip addr add`); there \
         are: {}",
        listed(&all)
    )
}

fn look_at(candidate: &Candidate, entry: GidEntry) -> Result<Found, BackendError> {
    let device = &candidate.device;
    let port = candidate.context.port(entry.port).map_err(|source| failed(format!("port of {device}"), source))?;
    let mtu = Mtu::ALL.into_iter().find(|mtu| u32::from(mtu.code()) == port.mtu_code).unwrap_or(Mtu::B1024);
    let interface = interface(device, &entry);
    let mac = fs::read_to_string(format!("/sys/class/net/{interface}/address")).ok();
    let mac = mac.and_then(|text| mac_address(text.trim()));
    let ip = ipv4(&entry).unwrap_or(Ipv4Addr::UNSPECIFIED);
    let address = LocalAddress { ip, mac, gid: entry.gid };
    Ok(Found { device: device.clone(), entry, address, mtu, interface })
}

/// Name of the network interface of a GID.
fn interface(device: &str, entry: &GidEntry) -> String {
    let path = format!("/sys/class/infiniband/{device}/ports/{}/gid_attrs/ndevs/{}", entry.port, entry.index);
    fs::read_to_string(path).map_or_else(|_| "an unknown interface".into(), |name| name.trim().into())
}

fn mac_address(text: &str) -> Option<MacAddr> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        *octet = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(MacAddr(octets))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

fn unavailable(message: impl Into<String>) -> BackendError {
    BackendError::Unavailable(message.into())
}

fn failed(action: String, source: io::Error) -> BackendError {
    BackendError::Io { action: action.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(gid: &str, kind: u32) -> GidEntry {
        let gid: Ipv6Addr = gid.parse().unwrap();
        GidEntry { gid: gid.octets(), port: 1, index: 3, kind, interface: 2 }
    }

    #[test]
    fn gids_are_described_by_address_and_kind() {
        assert_eq!(describe(&entry("::ffff:10.0.0.1", 2)), "10.0.0.1 (RoCE v2, IPv4)");
        assert_eq!(describe(&entry("fe80::1", 1)), "fe80::1 (RoCE v1, IPv6)");
    }

    #[test]
    fn a_gid_is_named_by_index_or_address() {
        assert_eq!("3".parse(), Ok(GidChoice::Index(3)));
        assert_eq!("10.0.0.1".parse(), Ok(GidChoice::Address(Ipv4Addr::new(10, 0, 0, 1))));
        assert!("300".parse::<GidChoice>().unwrap_err().contains("index (0 .. 255)"));
    }

    #[test]
    fn a_mac_address_is_read_as_the_kernel_writes_it() {
        assert_eq!(mac_address("52:54:00:77:00:01"), Some(MacAddr([0x52, 0x54, 0, 0x77, 0, 1])));
        assert_eq!(mac_address("52:54:00:77:00"), None);
    }

    #[test]
    fn without_library_or_device_the_error_gives_the_remedy() {
        let config = VerbsConfig { device: Some("no_such_device".into()), ..VerbsConfig::default() };
        let error = open(&config).unwrap_err().to_string();
        let reasons = ["--backend packet", "is the NIC's driver loaded", "there is no RDMA device no_such_device"];
        assert!(reasons.iter().any(|text| error.contains(text)), "{error}");
    }
}
