// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock switch`.

use crate::board::{mac, Network, SocketPair};
use penstock_board::live::{PacketSocket, Tap, UnixWire, Wire, WireError};
use penstock_cli_common::arguments::quantity::seconds;
use penstock_wire::{Ipv4Addr, MacAddr};
use std::fmt;
use std::str::FromStr;

#[derive(clap::Args)]
pub struct Arguments {
    /// The wire of the management port: tap:NAME (a TAP device), packet:INTERFACE (a packet socket), or
    /// unix:LOCAL,REMOTE (datagram sockets, ours and that of a virtual machine)
    #[arg(long, value_name = "WIRE")]
    pub management: Cable,
    /// The wire of a port, from port 0 on; up to four times. Ports without one have no link
    #[arg(long = "port", value_name = "WIRE")]
    pub ports: Vec<Cable>,
    /// Address of the management port: 10.0.0.9
    #[arg(long, value_parser = host)]
    pub ip: Ipv4Addr,
    /// Its MAC address; made of the IP address if left out: 02:00 and the four octets
    #[arg(long, value_parser = mac)]
    pub mac: Option<MacAddr>,
    /// End after this number of seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wall: Option<f64>,
    /// Print the summary as JSON instead of text
    #[arg(short = 'J', long)]
    pub json: bool,
}

fn host(text: &str) -> Result<Ipv4Addr, String> {
    match text.contains('/') {
        true => Err(format!("{text}: the switch answers hosts of any network: leave out the length of the prefix")),
        false => text.parse::<Network>().map(|network| network.ip),
    }
}

/// A wire by its kind and name.
#[derive(Debug, Clone)]
pub enum Cable {
    Tap(String),
    Packet(String),
    Unix(SocketPair),
}

impl Cable {
    /// # Errors
    /// There is no such interface, or no right to it.
    pub fn open(&self) -> Result<Box<dyn Wire>, WireError> {
        Ok(match self {
            Self::Tap(name) => Box::new(Tap::open(name)?),
            Self::Packet(name) => Box::new(PacketSocket::open(name)?),
            Self::Unix(pair) => Box::new(UnixWire::open(&pair.local, &pair.remote)?),
        })
    }
}

impl fmt::Display for Cable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tap(name) => write!(f, "TAP device {name}"),
            Self::Packet(name) => write!(f, "interface {name}"),
            Self::Unix(pair) => write!(f, "socket {}", pair.local.display()),
        }
    }
}

impl FromStr for Cable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((_, "")) | None => Err("allowed are tap:NAME, packet:INTERFACE and unix:LOCAL,REMOTE".into()),
            Some(("tap", name)) => Ok(Self::Tap(name.into())),
            Some(("packet", name)) => Ok(Self::Packet(name.into())),
            Some(("unix", pair)) => Ok(Self::Unix(pair.parse()?)),
            Some((kind, _)) => Err(format!("{kind:?} is no kind of wire; there are tap, packet and unix")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_named_by_kind_and_name_and_others_are_refused() {
        let read = |text: &str| text.parse::<Cable>().map(|cable| cable.to_string());
        assert_eq!(read("tap:sw0"), Ok("TAP device sw0".into()));
        assert_eq!(read("packet:eth0"), Ok("interface eth0".into()));
        assert_eq!(read("unix:/run/a,/run/b"), Ok("socket /run/a".into()));
        for (text, why) in [
            ("sw0", "tap:NAME"),
            ("tap:", "tap:NAME"),
            ("vde:sw0", "\"vde\" is no kind of wire"),
            ("unix:/run/a", "two paths"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}");
        }
        assert!(host("10.0.0.9/24").unwrap_err().contains("leave out"));
        assert!(host("224.0.0.1").unwrap_err().contains("multicast"));
    }
}
