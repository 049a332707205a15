// SPDX-License-Identifier: Apache-2.0
//! The names of all metrics of a laboratory's trace.
//! Promise: `trace.metrics` may name these and no others; `docs/lab.md` describes each (both tested).

use penstock_netsim::CLASS_METRICS;

/// Metrics of flows, the network, hosts, switches and verilated boards; those of switches' classes are
/// [`CLASS_METRICS`].
pub const METRICS: [&str; 34] = [
    "throughput_bps",
    "jain",
    "rate_current_bps",
    "rate_target_bps",
    "alpha",
    "cnp_handled",
    "feedback",
    "stage_timer",
    "stage_bytes",
    "stage_sent_bytes",
    "retransmissions",
    "tx_payload_bytes",
    "congestion_window_bytes",
    "smoothed_rtt_us",
    "limiter_queue_bytes",
    "ring_fill_bytes",
    "window_bytes",
    "requested_bytes",
    "reads",
    "announcement_share",
    "segments",
    "segments_out_of_order",
    "rx_payload_bytes",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "events_built",
    "buffer_bytes",
    "queue_bytes",
    "ecn_marked",
    "pfc_paused",
    "pfc_pausing",
    "cnm_sent",
    "wire_throughput_bps",
    "paused_fraction",
];

/// The error of a name in `trace.metrics`, if any; `classes` as in `trace.classes`.
pub(crate) fn wrong_metric(name: &str, classes: bool) -> Option<String> {
    let of_port = ["queue_bytes", "pfc_paused", "pfc_pausing"];
    let of_class = CLASS_METRICS.as_flattened().contains(&name);
    if of_class && !classes {
        return Some("recorded only with trace.classes = true".to_owned());
    }
    if classes && of_port.contains(&name) {
        return Some(format!("with trace.classes = true these are recorded class by class: {name}_class3"));
    }
    if of_class || METRICS.contains(&name) {
        return None;
    }
    let ports = of_port.join("_class0 to 7, ");
    Some(format!(
        "no such metric; allowed are {}, and with trace.classes = true {ports}_class0 to 7",
        METRICS.join(", ")
    ))
}
