// SPDX-License-Identifier: Apache-2.0
//! `penstock switch`: the verilated QCN switch (`rtl/top/penstock_switch_1g.sv`) as a live one. `penstock ctl switch`
//! operates it over its management port. Manual: docs/qcn-switch.md.

mod arguments;
mod report;

pub use arguments::Arguments;
use arguments::Cable;

use penstock_board::live::{LiveSwitch, WireError};
use penstock_board::{switch_regs, RegisterError};
use penstock_cli_common::interrupt::on_interrupt;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_cli_common::output::{print, to_verdict};
use penstock_wire::gateware::SWITCH_PORTS;
use penstock_wire::MacAddr;
use report::SwitchReport;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long Ctrl-C may have to wait.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Runs the switch; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(live(arguments))
}

fn live(arguments: &Arguments) -> Result<Verdict, Failure> {
    let Arguments { management, ports, ip, wall, json, .. } = arguments;
    if ports.len() > SWITCH_PORTS {
        return Err(Failure::Refused(format!("--port: {} wires; the switch has {SWITCH_PORTS} ports", ports.len())));
    }
    let mac = arguments.mac.unwrap_or_else(|| crate::board::mac_of(*ip));
    if mac.is_multicast() {
        return Err(Failure::Refused(format!("--mac {mac}: is a group address; give that of one station")));
    }
    let interrupted = on_interrupt()?;
    let refused = |error: WireError| Failure::Refused(error.to_string());
    let management_wire = management.open().map_err(refused)?;
    let wires = ports.iter().map(Cable::open).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let mut switch = LiveSwitch::new(management_wire, wires);
    set_address(&mut switch, mac, u32::from(*ip))?;
    if !json {
        let of = ports.iter().enumerate().map(|(port, cable)| format!(", port {port} on {cable}")).collect::<String>();
        notify(format_args!("switch {ip} ({mac}), management port on {management}{of}; Ctrl-C ends it"));
    }
    let begun = Instant::now();
    let end = loop {
        switch.turn(LONGEST_SLEEP)?;
        if interrupted.load(Ordering::Relaxed) {
            break "interrupted";
        }
        if wall.is_some_and(|limit| begun.elapsed().as_secs_f64() >= limit) {
            break "wall time limit";
        }
    };
    let report = SwitchReport::new(&mut switch, end, begun.elapsed())?;
    let as_json = || serde_json::to_string_pretty(&report).expect("a report has only plain keys");
    let text = if *json { as_json() } else { report.text() };
    Ok(print(text, Verdict::Verified))
}

/// The addresses of the management port.
fn set_address(switch: &mut LiveSwitch, mac: MacAddr, ip: u32) -> Result<(), RegisterError> {
    use switch_regs::management as m;
    let bits = mac.0.iter().fold(0, |bits, octet| bits << 8 | u64::from(*octet));
    switch.write(m::MAC_HI, (bits >> 32) as u32)?;
    switch.write(m::MAC_LO, bits as u32)?;
    switch.write(m::IP, ip)
}
