// SPDX-License-Identifier: Apache-2.0
//! The flows of a summary as a table, one row each, columns named as the keys of summary.json.

use std::sync::Arc;

use arrow_array::{
    builder::{ListBuilder, StringBuilder},
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;
use penstock_lab::report::FlowSummary;

/// One row for each flow, in the order of their numbers. Units are in the names of the columns.
pub fn flows(flows: &[FlowSummary]) -> Result<RecordBatch, ArrowError> {
    let text =
        |of: fn(&FlowSummary) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(flows.iter().map(of))) };
    let count =
        |of: fn(&FlowSummary) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(flows.iter().map(of))) };
    let real =
        |of: fn(&FlowSummary) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(flows.iter().map(of))) };
    let maybe =
        |of: fn(&FlowSummary) -> Option<f64>| -> ArrayRef { Arc::new(flows.iter().map(of).collect::<Float64Array>()) };
    let truth = |of: fn(&FlowSummary) -> bool| -> ArrayRef {
        Arc::new(BooleanArray::from(flows.iter().map(of).collect::<Vec<_>>()))
    };
    let failed: StringArray = flows.iter().map(|flow| flow.failed.as_deref()).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(UInt32Array::from_iter_values(flows.iter().map(|flow| flow.id))) as ArrayRef, false),
        ("name", text(|flow| &flow.name), false),
        ("from", text(|flow| &flow.from), false),
        ("to", text(|flow| &flow.to), false),
        ("protocol", text(|flow| &flow.protocol), false),
        ("law", text(|flow| &flow.law), false),
        ("posted_bytes", count(|flow| flow.posted_bytes), false),
        ("delivered_bytes", count(|flow| flow.delivered_bytes), false),
        ("start_s", maybe(|flow| flow.start_s), true),
        ("end_s", maybe(|flow| flow.end_s), true),
        ("complete", truth(|flow| flow.complete), false),
        ("goodput_gbps", real(|flow| flow.goodput_gbps), false),
        ("messages", count(|flow| flow.messages), false),
        ("mct_p50_us", maybe(|flow| flow.mct_us.p50), true),
        ("mct_p99_us", maybe(|flow| flow.mct_us.p99), true),
        ("mct_p999_us", maybe(|flow| flow.mct_us.p999), true),
        ("mct_max_us", maybe(|flow| flow.mct_us.max), true),
        ("packets", count(|flow| flow.packets), false),
        ("retransmissions", count(|flow| flow.retransmissions), false),
        ("cnps", count(|flow| flow.cnps), false),
        ("feedbacks", count(|flow| flow.feedbacks), false),
        ("timeouts", count(|flow| flow.timeouts), false),
        ("naks", count(|flow| flow.naks), false),
        ("rnr_naks", count(|flow| flow.rnr_naks), false),
        ("refused", count(|flow| flow.refused), false),
        ("limiter_drops", count(|flow| flow.limiter_drops), false),
        ("failed", Arc::new(failed), true),
        ("path", paths(flows), false),
        ("paused_s", real(|flow| flow.paused_s), false),
        ("hol_victim", truth(|flow| flow.hol_victim), false),
    ])
}

fn paths(flows: &[FlowSummary]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for flow in flows {
        lists.append_value(flow.path.iter().map(Some));
    }
    Arc::new(lists.finish())
}
