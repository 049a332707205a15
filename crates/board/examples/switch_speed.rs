// SPDX-License-Identifier: Apache-2.0
//! Measures how fast the verilated QCN switch runs, and prints a row of `make bench` as JSON: four full lines in both
//! directions, every port sends to the next one.

#[path = "line_rate/row.rs"]
mod row;
#[path = "line_rate/stopwatch.rs"]
mod stopwatch;

use bytes::{Bytes, BytesMut};
use penstock_board::{QcnSwitch, SwitchError, SwitchSettings};
use penstock_wire::MacAddr;
use row::Row;
use stopwatch::Stopwatch;

const PORTS: u8 = 4;
/// Without FCS, and in cycles of the line with all that is around it.
const FRAME: usize = 1512;
const FRAME_CYCLES: u64 = (FRAME as u64 + 24) / 8;
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
    let settings = SwitchSettings {
        mac: MacAddr([2, 0, 0, 0, 2, 0]),
        table: (0..PORTS).map(|port| (station(port), port)).collect(),
        limit_bytes: 200_000,
        point: Some(Default::default()),
        pause: None,
    };
    let mut switch = QcnSwitch::new(&settings)?;
    for index in 0..FRAMES {
        for port in 0..PORTS {
            switch.receive(port, index * FRAME_CYCLES, frame(port), true);
        }
    }
    let (cycles, watch) = (FRAMES * FRAME_CYCLES, Stopwatch::start());
    switch.run_until(cycles);
    let speed = cycles as f64 / watch.seconds();
    let sent = std::iter::from_fn(|| switch.poll_transmit()).count() as u64;
    assert!(sent + 20 > FRAMES * u64::from(PORTS), "lines are full: {sent} frames sent");
    let name = "verilated QCN switch, four full lines, one core".to_owned();
    let (value, target) = (speed.round(), Some(3e5));
    println!("{}", row::json(&[Row { name, value, unit: "cycles/s", target, better: "higher", gbps: None }]));
    Ok(())
}
