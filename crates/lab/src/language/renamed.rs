// SPDX-License-Identifier: Apache-2.0
//! Former keys of scenarios with their new names.
//! Promise: a key of this list is refused with its place, its value and its new name, not as an unknown key.

use super::document::{Document, Value};
use super::error::Problem;

/// Dotted paths of keys: as they were, as they are.
pub(crate) const RENAMED: [(&str, &str); 13] = [
    ("data.file", "replay.file"),
    ("data.events", "replay.events"),
    ("data.trigger", "replay.trigger"),
    ("data.trigger_rate", "replay.rate"),
    ("boards.count", "topology.boards"),
    ("server.slots", "readout.slots"),
    ("server.slot_size", "readout.slot_size"),
    ("server.event_timeout", "readout.event_timeout"),
    ("server.consumer_rate", "readout.consumer_rate"),
    ("server.vanish_at", "readout.vanish_at"),
    ("server.ack_delay", "qp.ack_delay"),
    ("server.cnp_interval", "qp.cnp_interval"),
    ("server.rnr_delay", "qp.rnr_delay"),
];

/// Tables that are gone, with what took their place.
pub(crate) const GONE: [(&str, &str); 3] =
    [("data", "[replay]"), ("boards", "[topology]"), ("server", "[readout] and [qp]")];

/// Metrics of the trace: as they were, as they are.
pub(crate) const RENAMED_METRICS: [(&str, &str); 4] = [
    ("rate_current", "rate_current_bps"),
    ("rate_target", "rate_target_bps"),
    ("throughput", "wire_throughput_bps"),
    ("paused", "paused_fraction"),
];

/// Every key of a scenario that is no more, as a problem.
pub(crate) fn problems(document: &Document) -> Vec<Problem> {
    let renamed = |(old, new): &(&str, &str)| {
        document.find(old)?;
        let (table, key) = new.rsplit_once('.').unwrap_or(("", new));
        Some(document.problem(old, "", format!("this key is {new} now; write {key} in [{table}], or --set {new}=...")))
    };
    let mut problems: Vec<Problem> = RENAMED.iter().filter_map(renamed).collect();
    for (table, place) in GONE {
        let Some(item) = document.find(table) else { continue };
        let entries = match &item.value {
            Value::Table(entries) => entries.as_slice(),
            _ => &[],
        };
        let known = |key: &str| RENAMED.iter().any(|(old, _)| *old == format!("{table}.{key}"));
        let strangers = entries.iter().filter(|entry| !known(&entry.key));
        let message = || format!("there is no table [{table}] any more; its keys are in {place}");
        problems.extend(strangers.map(|entry| document.problem(&format!("{table}.{}", entry.key), "", message())));
        if entries.is_empty() {
            problems.push(document.problem(table, "", message()));
        }
    }
    problems
}

/// The name that a link had which is called after its two ends now: "board0" of "board0-switch".
pub(crate) fn link_of_node<'a>(name: &str, mut links: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let node = if name == "server" { "server0" } else { name };
    links.find(|link| link.split('-').any(|end| end == node))
}
