// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl switch counters`: shows the counters of each port of switches, and the octets in its queues.

use super::arguments::SwitchArguments;
use crate::ctl::get::{self, BoardReadings, Reading};
use crate::ctl::session::SessionOf;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_cli_common::output::table::{columns, terminal_width};
use penstock_ipbus::map::SWITCH;
use penstock_ipbus::Switch;
use serde_json::{json, Map, Value};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: SwitchArguments,
    /// Also counters that are 0 at every port
    #[arg(long)]
    all: bool,
}

/// A port of a switch: its number, and what was counted there by name.
struct Port {
    switch: usize,
    port: u32,
    counted: Vec<(String, u64)>,
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut session = arguments.of.open()?;
    let mut faults = session.unfit();
    let places = session.places(&["port".to_owned(), "queue".to_owned()])?;
    let readings = get::read(&mut session, &places, &mut faults)?;
    let mut ports = Vec::new();
    for BoardReadings { board: switch, readings } in &readings {
        let Ok(build) = session.boards[*switch].identity else { continue };
        ports.extend((0..build.ports).map(|port| Port {
            switch: *switch,
            port,
            counted: of_port(build, port, readings),
        }));
    }
    let text = match arguments.of.link.json {
        true => {
            let switches: Vec<Value> = readings.iter().map(|of| as_json(&session, of.board, &ports)).collect();
            json!({"boards": switches, "faults": faults.json()}).to_string()
        }
        false => table(&session, &ports, arguments.all),
    };
    faults.print();
    Ok(print(text, faults.verdict()))
}

/// The counters of a port by the names of its registers, and `queue_N` for the octets in each queue.
fn of_port(build: Switch, port: u32, readings: &[Reading]) -> Vec<(String, u64)> {
    let of = |group: &'static str, index: u32| {
        readings.iter().filter(move |(place, _)| place.group.name == group && place.index == index)
    };
    let counters = of("port", port).map(|(place, number)| (place.register.name.to_owned(), *number));
    let queues = (0..build.queues).flat_map(|queue| {
        of("queue", port * build.queues + queue).map(move |(_, number)| (format!("queue_{queue}"), *number))
    });
    counters.chain(queues).collect()
}

/// A row for each counter, a column for each port.
fn table(session: &SessionOf<Switch>, ports: &[Port], all: bool) -> String {
    let mut header = vec!["counter".to_owned()];
    header.extend(ports.iter().map(|port| format!("{} port {}", session.address(port.switch), port.port)));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    // Switches may have different numbers of queues: those of the first with the most.
    let longest = ports.iter().map(|port| &port.counted).max_by_key(|counted| counted.len());
    let of =
        |port: &Port, name: &str| port.counted.iter().find(|(counter, _)| counter == name).map(|(_, number)| *number);
    let rows: Vec<Vec<String>> = longest
        .into_iter()
        .flatten()
        .map(|(name, _)| (name, ports.iter().map(|port| of(port, name)).collect::<Vec<_>>()))
        .filter(|(_, numbers)| all || numbers.iter().flatten().any(|number| *number > 0))
        .map(|(name, numbers)| {
            let cell = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
            std::iter::once(name.clone()).chain(numbers.into_iter().map(cell)).collect()
        })
        .collect();
    columns(&header, &rows, 1, terminal_width())
}

fn as_json(session: &SessionOf<Switch>, switch: usize, ports: &[Port]) -> Value {
    let of_switch = ports.iter().filter(|port| port.switch == switch);
    let of_switch: Vec<Value> = of_switch
        .map(|port| {
            let counted: Map<String, Value> =
                port.counted.iter().map(|(name, number)| (name.clone(), json!(number))).collect();
            json!({"port": port.port, "counters": counted})
        })
        .collect();
    json!({"board": session.address(switch).to_string(), "map_hash": format!("0x{:08X}", SWITCH.hash), "ports": of_switch})
}
