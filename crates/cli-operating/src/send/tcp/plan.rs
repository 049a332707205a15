// SPDX-License-Identifier: Apache-2.0
//! The checked settings of `--protocol tcp`.
//! Promise: invalid settings are refused before anything is opened, with the value and what is allowed.

use crate::send::arguments::Arguments;
use crate::send::choices::StackName;
use crate::send::plan::Plan;
use penstock_readout::link::{has_address, Interface};
use penstock_transport::simple_tcp::{Parameters, MAX_MSS, MIN_MSS};
use penstock_wire::STREAM_HEADER_LEN;
use std::net::Ipv4Addr;

/// Headers of IPv4 and TCP.
const HEADERS: usize = 40;

pub struct TcpPlan {
    pub server: Ipv4Addr,
    pub port: u16,
    pub stack: StackName,
    pub parameters: Parameters,
    pub ring: usize,
    pub iss: Option<u32>,
}

impl TcpPlan {
    /// # Errors
    /// The option that cannot be done, with its value and what is allowed.
    pub fn read(a: &Arguments, plan: &Plan) -> Result<TcpPlan, String> {
        if plan.by_event {
            return Err("--by-event: goes with --protocol rc; over TCP a stream has one server".to_owned());
        }
        let server =
            a.boards.connect.ok_or("--protocol tcp: the front ends open the streams, so it needs --connect")?;
        if plan.sharing.is_some() {
            return Err("--servers: goes with --protocol rc; over TCP a stream has one server".to_owned());
        }
        if !plan.allow.is_empty() {
            return Err("--allow: goes with --protocol rc; over TCP no server opens anything here".to_owned());
        }
        let interface =
            Interface::find(&plan.iface).map_err(|error| format!("{}: no such interface: {error}", plan.iface))?;
        let link_mss = interface.mtu.saturating_sub(HEADERS).min(MAX_MSS.into()) as u16;
        let mss = a.tcp.mss.unwrap_or(link_mss);
        if !(MIN_MSS..=link_mss).contains(&mss) {
            let mtu = interface.mtu;
            return Err(format!("--mss {mss}: allowed are {MIN_MSS} to {link_mss}, as {} has MTU {mtu}", plan.iface));
        }
        let parameters = Parameters {
            mss,
            nagle: !a.tcp.no_nagle,
            back_off: !a.tcp.no_back_off,
            give_up: a.tcp.give_up,
            ..timeout(a.tcp.rto)?
        };
        let needed = plan.longest() + STREAM_HEADER_LEN * 2;
        let ring = a.tcp.ring as usize;
        if !(needed..=1 << 30).contains(&ring) {
            return Err(format!(
                "--ring {ring}: allowed are {needed}, a message of {} bytes with its header, to {}",
                plan.longest(),
                1 << 30
            ));
        }
        let tcp = TcpPlan {
            server,
            port: a.tcp.port,
            stack: a.tcp.stack,
            parameters: parameters.checked().map_err(|error| error.to_string())?,
            ring,
            iss: a.tcp.iss,
        };
        tcp.check_addresses(plan)?;
        Ok(tcp)
    }

    /// The kernel would answer with RST for addresses of its own, and not let the emulator's segments leave for them.
    fn check_addresses(&self, plan: &Plan) -> Result<(), String> {
        if self.stack == StackName::Sockets {
            return match plan.ips().find(|ip| !is_the_kernels(*ip)) {
                Some(ip) => Err(format!(
                    "--ip {ip}: --stack sockets needs an address of this machine: ip addr add {ip}/16 dev {}",
                    plan.iface
                )),
                None => Ok(()),
            };
        }
        if let Some(ip) = plan.ips().find(|ip| is_the_kernels(*ip)) {
            return Err(format!(
                "--ip {ip}: this machine's kernel has that address and would answer for the emulator with RST; take one that no machine has, or --stack sockets"
            ));
        }
        if is_the_kernels(self.server) {
            return Err(format!(
                "--connect {}: that is this machine itself, which frames on {} do not reach; send from another network namespace",
                self.server, plan.iface
            ));
        }
        Ok(())
    }
}

fn timeout(fixed_ms: Option<u32>) -> Result<Parameters, String> {
    let adaptive = Parameters::default();
    match fixed_ms {
        None => Ok(adaptive),
        Some(ms @ 1..=60_000) => {
            Ok(Parameters { adaptive: false, rto_initial: ms * 1000, rto_min: ms * 1000, ..adaptive })
        }
        Some(ms) => Err(format!("--rto {ms}: allowed are 1 to 60000 ms")),
    }
}

fn is_the_kernels(ip: Ipv4Addr) -> bool {
    has_address(ip).unwrap_or(false)
}
