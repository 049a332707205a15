// SPDX-License-Identifier: Apache-2.0
//! The keyword values of options of `penstock recv`.

use penstock_cli_common::arguments::number::share;
use penstock_readout::backend::SocketChoice;
use penstock_units::Rate;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendName {
    /// An RDMA NIC, or rdma_rxe
    Verbs,
    /// Any Ethernet interface, by AF_XDP or a packet socket; needs CAP_NET_RAW
    Packet,
    /// The kernel's TCP, on any host and without privileges; boards connect to --port
    Tcp,
}

/// Whether the NIC writes to the memory of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GpuDirectChoice {
    /// Never
    Off,
    /// If GPU and NIC can
    Auto,
    /// Or else the run does not begin
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SocketName {
    /// AF_XDP where the driver runs XDP programs, or else the ring
    Auto,
    /// AF_XDP, past the kernel's network stack; needs root, or CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN
    Xdp,
    /// A packet socket with a shared ring
    Ring,
}

impl From<SocketName> for SocketChoice {
    fn from(name: SocketName) -> Self {
        match name {
            SocketName::Auto => SocketChoice::Auto,
            SocketName::Xdp => SocketChoice::Xdp,
            SocketName::Ring => SocketChoice::Ring,
        }
    }
}

/// Where to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumaChoice {
    Node(u32),
    Nic,
}

impl FromStr for NumaChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nic" => Ok(NumaChoice::Nic),
            _ => text.parse().map(NumaChoice::Node).map_err(|_| format!("{text}: a node's number, or nic")),
        }
    }
}

/// This server's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChoice {
    /// The interface's speed as the kernel reports it.
    Auto,
    Rate(Rate),
    /// Boards get no share.
    None,
}

impl FromStr for LineChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(LineChoice::Auto),
            "none" => Ok(LineChoice::None),
            _ => share(text).map(LineChoice::Rate).map_err(|why| format!("{why}, auto or none")),
        }
    }
}

/// Contents of a row of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Rows {
    /// An event
    Events,
    /// A fragment
    Fragments,
}
