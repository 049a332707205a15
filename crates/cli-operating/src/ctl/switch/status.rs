// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl switch status`: shows which switches answer, their settings, and what their ports have forwarded.

use super::arguments::SwitchArguments;
use crate::ctl::faults::Faults;
use crate::ctl::get::{self, BoardReadings, Reading};
use crate::ctl::session::SessionOf;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::table::{columns, terminal_width};
use penstock_cli_common::output::{print, screen::notify};
use penstock_ipbus::map::{Place, Scale, SWITCH};
use penstock_ipbus::{AccessError, Switch, Unfit};
use serde_json::{json, Value};

/// What is read besides all counters and queues.
const SETTINGS: [&str; 9] = [
    "mac",
    "control.learn",
    "control.qcn_queues",
    "q_eq",
    "pause.pause_en",
    "pause.pfc_en",
    "pause.quanta",
    "xoff",
    "xon",
];

/// One switch.
struct Status {
    switch: usize,
    build: Switch,
    mac: String,
    learns: bool,
    /// Numbers of the queues of a port with a congestion point.
    congestion_points: Vec<u32>,
    q_eq: u64,
    /// "off", "802.3x" or "PFC": what it sends.
    pause: &'static str,
    xoff: u64,
    xon: u64,
    /// Octets in all queues.
    waiting: u64,
    forwarded: u64,
    /// Frames that found a queue or a store full.
    dropped: u64,
    bad: u64,
    notifications: u64,
    pauses: u64,
}

pub fn run(arguments: &SwitchArguments) -> Result<Verdict, Failure> {
    let mut session = arguments.open()?;
    let (mut faults, mut silent) = (Faults::default(), 0);
    for switch in &session.boards {
        match &switch.identity {
            Err(Unfit::Silent(AccessError::Silent { .. })) if switch.listed.is_sought => silent += 1,
            Err(why) => faults.push(switch.listed.address, None, why),
            Ok(_) => {}
        }
    }
    let names: Vec<String> = SETTINGS.iter().chain(&["port", "queue"]).map(|name| (*name).to_owned()).collect();
    let places = session.places(&names)?;
    let readings = get::read(&mut session, &places, &mut faults)?;
    let found: Vec<Status> = readings
        .iter()
        .filter_map(|BoardReadings { board: switch, readings }| {
            let build = *session.boards[*switch].identity.as_ref().ok()?;
            Some(status(*switch, build, readings))
        })
        .collect();
    let verdict = if session.fit().next().is_none() { Verdict::Fault } else { faults.verdict() };
    if arguments.link.json {
        let switches: Vec<Value> = found.iter().map(|status| as_json(&session, status)).collect();
        faults.print();
        let all = json!({
            "map_hash": format!("0x{:08X}", SWITCH.hash), "boards": switches, "silent_addresses": silent,
            "faults": faults.json(),
        });
        return Ok(print(all, verdict));
    }
    faults.print();
    if silent > 0 {
        notify(format_args!("{silent} addresses of ranges and networks are silent"));
    }
    if found.is_empty() {
        notify("no switch was found");
        return Ok(verdict);
    }
    let header = [
        "switch",
        "MAC address",
        "ports x queues",
        "learns",
        "congestion points",
        "sends pause",
        "waiting",
        "forwarded",
        "dropped",
        "bad",
        "notifications",
        "pauses",
    ];
    let rows: Vec<Vec<String>> = found.iter().map(|status| row(&session, status)).collect();
    Ok(print(columns(&header, &rows, 6, terminal_width()), verdict))
}

fn status(switch: usize, build: Switch, readings: &[Reading]) -> Status {
    let of = |name: &str| readings.iter().find(|(place, _)| place.name() == name).map_or(0, |(_, number)| *number);
    let sum = |group: &str, registers: &[&str]| -> u64 {
        let is_one = |place: &Place| place.group.name == group && registers.contains(&place.register.name);
        readings.iter().filter(|(place, _)| is_one(place)).map(|(_, number)| *number).sum()
    };
    Status {
        switch,
        build,
        mac: readings
            .iter()
            .find(|(place, _)| place.name() == "mac")
            .map_or_else(String::new, |(place, number)| place.show(*number, Scale { clock_khz: 1 })),
        learns: of("control.learn") != 0,
        congestion_points: (0..build.queues).filter(|queue| of("control.qcn_queues") >> queue & 1 != 0).collect(),
        q_eq: of("q_eq"),
        pause: match (of("pause.quanta"), of("pause.pfc_en"), of("pause.pause_en")) {
            (0, ..) | (_, 0, 0) => "no",
            (_, 0, _) => "802.3x",
            _ => "PFC",
        },
        xoff: of("xoff"),
        xon: of("xon"),
        waiting: sum("queue", &["octets"]),
        forwarded: sum("port", &["tx_frame"]),
        dropped: sum("port", &["tx_dropped", "rx_lost"]),
        bad: sum("port", &["rx_bad"]),
        notifications: sum("port", &["tx_cnm"]),
        pauses: sum("port", &["tx_pause", "tx_pfc"]),
    }
}

fn row(session: &SessionOf<Switch>, status: &Status) -> Vec<String> {
    let queues: Vec<String> = status.congestion_points.iter().map(u32::to_string).collect();
    vec![
        session.address(status.switch).to_string(),
        status.mac.clone(),
        format!("{} x {}", status.build.ports, status.build.queues),
        if status.learns { "yes" } else { "no" }.to_owned(),
        match queues.is_empty() {
            true => "none".to_owned(),
            false => format!("queue {}, Q_eq {}B", queues.join(", "), status.q_eq),
        },
        match status.pause {
            "no" => "no".to_owned(),
            pause => format!("{pause}, {}B to {}B", status.xoff, status.xon),
        },
        format!("{}B", status.waiting),
        status.forwarded.to_string(),
        status.dropped.to_string(),
        status.bad.to_string(),
        status.notifications.to_string(),
        status.pauses.to_string(),
    ]
}

fn as_json(session: &SessionOf<Switch>, status: &Status) -> Value {
    json!({
        "board": session.address(status.switch).to_string(), "mac": status.mac,
        "build": {
            "ports": status.build.ports, "queues": status.build.queues, "entries": status.build.entries,
        },
        "learns": status.learns, "congestion_points": status.congestion_points, "q_eq": status.q_eq,
        "pause": status.pause, "xoff": status.xoff, "xon": status.xon, "waiting": status.waiting,
        "forwarded": status.forwarded, "dropped": status.dropped, "bad": status.bad,
        "notifications": status.notifications, "pauses": status.pauses,
    })
}
