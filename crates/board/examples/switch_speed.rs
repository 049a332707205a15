// SPDX-License-Identifier: Apache-2.0
//! Measures how fast the verilated QCN switch runs, and prints rows of `make bench` as JSON: four full lines in both
//! directions, every port sends to the next one.

#[path = "line_rate/row.rs"]
mod row;
#[path = "line_rate/stopwatch.rs"]
mod stopwatch;

use bytes::{Bytes, BytesMut};
use penstock_board::{QcnSwitch, SwitchError, SwitchLine, SwitchSettings};
use penstock_wire::MacAddr;
use row::Row;
use stopwatch::Stopwatch;

const PORTS: u8 = 4;
/// A frame's bytes without FCS, and its octets on the line with all that is around it.
const FRAME: usize = 1512;
const FRAME_OCTETS: u64 = FRAME as u64 + 24;
const FRAMES: u64 = 2_000;

fn station(port: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, port])
}

fn frame(port: u8) -> Bytes {
    let mut frame = BytesMut::new();
    frame.extend_from_slice(&station((port + 1) % PORTS).0);
    frame.extend_from_slice(&station(port).0);
    frame.extend_from_slice(&[0x88, 0xb5]);
    frame.resize(FRAME, port);
    frame.freeze()
}

fn main() -> Result<(), SwitchError> {
    let rows = [measured(SwitchLine::Gbps10, Some(3e5))?, measured(SwitchLine::Gbps1, None)?];
    println!("{}", row::json(&rows));
    Ok(())
}

fn measured(line: SwitchLine, target: Option<f64>) -> Result<Row, SwitchError> {
    let frame_cycles = line.clock().cycles(line.clock().octet * FRAME_OCTETS);
    let settings = SwitchSettings {
        mac: MacAddr([2, 0, 0, 0, 2, 0]),
        table: (0..PORTS).map(|port| (station(port), port)).collect(),
        limit_bytes: 200_000,
        point: Some(Default::default()),
        pause: None,
    };
    let mut switch = QcnSwitch::new(line, &settings)?;
    for index in 0..FRAMES {
        for port in 0..PORTS {
            switch.receive(port, index * frame_cycles, frame(port), true);
        }
    }
    let (cycles, watch) = (FRAMES * frame_cycles, Stopwatch::start());
    switch.run_until(cycles);
    let speed = cycles as f64 / watch.seconds();
    let sent = std::iter::from_fn(|| switch.poll_transmit()).count() as u64;
    assert!(sent + 20 > FRAMES * u64::from(PORTS), "lines are full: {sent} frames sent");
    let name = format!("verilated QCN switch, four full lines of {}, one core", line.clock().rate());
    Ok(Row { name, value: speed.round(), unit: "cycles/s", target, better: "higher", gbps: None })
}
