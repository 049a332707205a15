// SPDX-License-Identifier: Apache-2.0
//! What a live switch has done, at its end.

use penstock_board::live::LiveSwitch;
use penstock_board::{switch_regs, PortCounts, RegisterError};
use penstock_cli_common::output::table::{columns, terminal_width};
use serde::Serialize;
use std::time::Duration;

/// The summary of `penstock switch`.
#[derive(Debug, Serialize)]
pub struct SwitchReport {
    end: &'static str,
    wall_s: f64,
    /// Time of the switch: its clock stands still while it is idle.
    simulated_s: f64,
    cycles: u64,
    /// Those that a wire did not take, of all ports.
    lost_frames: u64,
    management: Management,
    ports: Vec<Port>,
}

/// Registers of the same names.
#[derive(Debug, Serialize)]
struct Management {
    rx_frame: u32,
    rx_bad: u32,
    rx_lost: u32,
    arp_requests: u32,
    icmp_echo_replies: u32,
    ipbus_packets: u32,
    ipbus_bus_errors: u32,
    udp_strangers: u32,
}

/// Registers of the same names.
#[derive(Debug, Serialize)]
struct Port {
    port: u8,
    rx_frame: u64,
    rx_bad: u64,
    rx_lost: u64,
    rx_filtered: u64,
    tx_frame: u64,
    tx_dropped: u64,
    tx_cnm: u64,
    /// Frames sent that the port's wire did not take.
    wire_lost: u64,
    pauses_received: u64,
    pauses_sent: u64,
}

impl SwitchReport {
    /// # Errors
    /// The switch refuses a register.
    pub fn new(switch: &mut LiveSwitch, end: &'static str, wall: Duration) -> Result<Self, RegisterError> {
        use switch_regs::management as m;
        let port = |port: u8| {
            let PortCounts { rx_frame, rx_bad, rx_lost, rx_filtered, tx_frame, tx_dropped, tx_cnm, .. } =
                *switch.counts(port);
            let counts = switch.counts(port);
            Port {
                port,
                rx_frame,
                rx_bad,
                rx_lost,
                rx_filtered,
                tx_frame,
                tx_dropped,
                tx_cnm,
                wire_lost: switch.lost_frames(Some(port)),
                pauses_received: counts.rx_pause + counts.rx_pfc,
                pauses_sent: counts.tx_pause + counts.tx_pfc,
            }
        };
        let ports: Vec<Port> = (0..switch.ports()).map(port).collect();
        let lost_frames = ports.iter().map(|port| port.wire_lost).sum::<u64>() + switch.lost_frames(None);
        let (cycles, simulated_s) = (switch.cycle(), switch.now().as_secs_f64());
        Ok(Self {
            end,
            wall_s: wall.as_secs_f64(),
            simulated_s,
            cycles,
            lost_frames,
            management: Management {
                rx_frame: switch.read(m::RX_FRAME)?,
                rx_bad: switch.read(m::RX_BAD)?,
                rx_lost: switch.read(m::RX_LOST)?,
                arp_requests: switch.read(m::ARP_REQUESTS)?,
                icmp_echo_replies: switch.read(m::ICMP_ECHO_REPLIES)?,
                ipbus_packets: switch.read(m::IPBUS_PACKETS)?,
                ipbus_bus_errors: switch.read(m::IPBUS_BUS_ERRORS)?,
                udp_strangers: switch.read(m::UDP_STRANGERS)?,
            },
            ports,
        })
    }

    /// The report as text for people.
    pub fn text(&self) -> String {
        let Self { end, wall_s, simulated_s, cycles, lost_frames, management: m, ports } = self;
        let mut lines = vec![
            format!("{end} after {wall_s:.1} s, {cycles} cycles or {:.3} ms of the switch", simulated_s * 1e3),
            format!(
                "management: {} ARP requests, {} pings, {} IPbus packets, {} refused accesses, {} datagrams of strangers",
                m.arp_requests, m.icmp_echo_replies, m.ipbus_packets, m.ipbus_bus_errors, m.udp_strangers
            ),
        ];
        if m.rx_bad + m.rx_lost > 0 {
            lines.push(format!("management: {} bad frames, {} without room", m.rx_bad, m.rx_lost));
        }
        if *lost_frames > 0 {
            let of = ports.iter().filter(|port| port.wire_lost > 0);
            let of: String = of.map(|port| format!(", {} of port {}", port.wire_lost, port.port)).collect();
            lines.push(format!("{lost_frames} frames lost on wires that did not take them{of}"));
        }
        let header =
            ["port", "received", "bad", "lost", "filtered", "sent", "dropped", "notifications", "paused by", "pauses"];
        let row = |port: &Port| {
            let numbers = [
                u64::from(port.port),
                port.rx_frame,
                port.rx_bad,
                port.rx_lost,
                port.rx_filtered,
                port.tx_frame,
                port.tx_dropped,
                port.tx_cnm,
                port.pauses_received,
                port.pauses_sent,
            ];
            numbers.iter().map(u64::to_string).collect()
        };
        let rows: Vec<Vec<String>> = ports.iter().map(row).collect();
        if !rows.is_empty() {
            lines.push(columns(&header, &rows, 0, terminal_width()));
        }
        lines.join("\n")
    }
}
