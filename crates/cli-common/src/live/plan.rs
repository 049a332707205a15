// SPDX-License-Identifier: Apache-2.0
//! Selects the values of a trace that a page shows, and maps each to a column of the recording.

use penstock_dashboard::{Recorder, Series, Shared};
use penstock_netsim::{Time, TraceRow, TraceTee, CLASS_METRICS};
use std::collections::HashMap;

/// Columns by node, channel and metric of the trace.
#[derive(Debug, Default)]
pub struct Plan {
    columns: HashMap<(String, u16), HashMap<&'static str, usize>>,
    count: usize,
}

impl Plan {
    /// The column of a value of the trace; a new one on first use.
    pub fn column(&mut self, node: &str, channel: u16, metric: &'static str) -> usize {
        let metrics = self.columns.entry((node.to_owned(), channel)).or_default();
        *metrics.entry(metric).or_insert_with(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// One column that has the greatest of several channels' values.
    pub fn greatest(&mut self, node: &str, channels: impl IntoIterator<Item = u16>, metric: &'static str) -> usize {
        let column = self.count;
        self.count += 1;
        for channel in channels {
            self.columns.entry((node.to_owned(), channel)).or_default().insert(metric, column);
        }
        column
    }

    /// The series of a switch's egress queue, or of its part that is of one class where a trace has class by class;
    /// `pausing`: the column that shows whether the switch pauses a port.
    pub fn queue(&mut self, switch: &str, port: u16, class: Option<usize>, pausing: usize) -> Series {
        let mut column = |metric| self.column(switch, port, metric);
        let Some(class) = class else {
            return [
                ("depth", column("queue_bytes")),
                ("marked", column("ecn_marked")),
                ("paused", column("pfc_paused")),
                ("pausing", pausing),
            ]
            .into();
        };
        let [depth, paused, _] = CLASS_METRICS[class];
        [("depth", column(depth)), ("paused", column(paused)), ("pausing", pausing)].into()
    }

    /// How many columns there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The selection of trace values: it looks up the column of each series once.
    pub fn tee(self, recording: Shared, settle: Time) -> TraceTee {
        let mut recorder = Recorder::new(recording, settle.as_ps());
        let mut cache: Vec<Option<Option<usize>>> = Vec::new();
        Box::new(move |row: TraceRow| {
            cache.resize(cache.len().max(row.series + 1), None);
            let column = cache[row.series].get_or_insert_with(|| {
                let metrics = self.columns.get(&(row.node.to_owned(), row.channel))?;
                metrics.get(row.metric).copied()
            });
            if let Some(column) = *column {
                recorder.record(row.time.as_ps(), column, row.value);
            }
        })
    }
}
