// SPDX-License-Identifier: Apache-2.0
//! The recording of a run for its page: one column per series, one row per interval of simulated time.
//! Promise: values are kept exactly, to the last bit; a row is published when all sources of values have passed its
//! time; memory is bounded: a long run repeatedly drops every second row, and reports this. What is a mean over an
//! interval, as throughput, then becomes the mean over all intervals since the row before.

use crate::control::{Applied, Settings};
use crate::manifest::Manifest;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    #[default]
    Running,
    Ended,
}

/// How far a run is.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Progress {
    pub phase: Phase,
    /// How it ended: "done", "interrupted", ...; empty while it runs.
    pub end: String,
    pub now_ps: u64,
    /// The number of finished `unit`s, of `total`.
    pub done: u64,
    pub total: u64,
    pub unit: &'static str,
    /// Wall time since it began.
    pub wall_s: f64,
    /// Boards that do not answer, with the reason.
    pub silent: Vec<String>,
}

/// A run as its page sees it.
#[derive(Debug, Default)]
pub struct Recording {
    pub manifest: Manifest,
    pub progress: Progress,
    pub settings: Settings,
    pub applied: Vec<Applied>,
    /// The contents of summary.json after the run.
    pub summary: Option<serde_json::Value>,
    columns: Vec<Vec<f64>>,
    /// Columns whose values are means over an interval that ends at their row, with what came since the last row.
    means: Vec<(usize, Mean)>,
    /// Row r is of time r * stride * interval.
    stride: u64,
    /// Counts how often rows were thinned out, and settings changed.
    generation: u64,
    steered: u64,
}

/// The mean of the values that there are.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    intervals: u64,
}

impl Mean {
    fn with(mut self, value: f64, intervals: u64) -> Self {
        if !value.is_nan() {
            self.sum += value * intervals as f64;
            self.intervals += intervals;
        }
        self
    }

    /// NaN where there are none; a single value to the last bit.
    fn value(self) -> f64 {
        if self.intervals == 1 {
            self.sum
        } else {
            self.sum / self.intervals as f64
        }
    }
}

/// A recording that a run fills and pages read.
pub type Shared = Arc<Mutex<Recording>>;

/// A poisoned lock only means that some reader panicked; the recording is consistent after every call.
pub(crate) fn lock(shared: &Shared) -> MutexGuard<'_, Recording> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    /// Values kept, 64 MB of them.
    const MAX_VALUES: usize = 8 << 20;

    pub fn new(manifest: Manifest, settings: Settings) -> Self {
        let columns = vec![Vec::new(); manifest.columns];
        let series = manifest.senders.iter().flat_map(|sender| &sender.series);
        let means = series.filter(|(name, _)| ["throughput", "paused"].contains(*name));
        let means = means.map(|(_, &column)| (column, Mean::default())).collect();
        Self { manifest, settings, columns, means, stride: 1, ..Self::default() }
    }

    pub fn shared(self) -> Shared {
        Arc::new(Mutex::new(self))
    }

    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Rows `from` to `to` (not included) of every column.
    pub fn slice(&self, from: usize, to: usize) -> Vec<Vec<f64>> {
        self.columns.iter().map(|column| column[from..to].to_vec()).collect()
    }

    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Changes when the rows that were published before are no longer those that are kept.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Changes with the settings.
    pub fn steered(&self) -> u64 {
        self.steered
    }

    /// Settings that changed by themselves, as a script has it.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
        self.steered += 1;
    }

    /// Notes what a control has done.
    pub fn steer(&mut self, settings: Settings, applied: Applied) {
        self.applied.push(applied);
        self.set(settings);
    }

    /// Row number `index`, counted in intervals from the beginning of the run; rows come in their order.
    fn publish(&mut self, index: u64, row: &[f64]) {
        for (column, mean) in &mut self.means {
            *mean = mean.with(row[*column], 1);
        }
        if !index.is_multiple_of(self.stride) {
            return;
        }
        // A row without values still has its place.
        let place = (index / self.stride) as usize;
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.resize(place, f64::NAN);
            column.push(*value);
        }
        for (column, mean) in &mut self.means {
            self.columns[*column][place] = std::mem::take(mean).value();
        }
        if (self.rows() + 1) * self.columns.len() > Self::MAX_VALUES && self.rows() >= 2 {
            self.thin();
        }
    }

    /// Keeps every second row.
    pub(crate) fn thin(&mut self) {
        for (column, mean) in &mut self.means {
            let values = &mut self.columns[*column];
            for row in (2..values.len()).step_by(2) {
                values[row] = Mean::default().with(values[row - 1], 1).with(values[row], 1).value();
            }
            if values.len().is_multiple_of(2) {
                *mean = values.last().map_or(*mean, |&dropped| mean.with(dropped, self.stride));
            }
        }
        for column in &mut self.columns {
            *column = column.iter().copied().step_by(2).collect();
        }
        self.stride *= 2;
        self.generation += 1;
    }
}

/// The run's side of a recording: takes values one by one and publishes them in rows.
pub struct Recorder {
    shared: Shared,
    interval_ps: u64,
    /// Rows that may still get values.
    open: VecDeque<Vec<f64>>,
    first_open: u64,
    columns: usize,
    /// How many rows stay open.
    settle: usize,
}

impl Recorder {
    /// `settle_ps`: how far back in time a value may lie when it is recorded.
    pub fn new(shared: Shared, settle_ps: u64) -> Self {
        let (interval_ps, columns) = {
            let recording = lock(&shared);
            (recording.manifest.interval_ps.max(1), recording.manifest.columns)
        };
        let settle = (settle_ps / interval_ps) as usize + 2;
        Self { shared, interval_ps, open: VecDeque::new(), first_open: 0, columns, settle }
    }

    /// Records a value of a moment. Of several in one row and column the greatest stays. What lies before the rows
    /// that are open is dropped: it has been shown as missing.
    pub fn record(&mut self, time_ps: u64, column: usize, value: f64) {
        let index = time_ps / self.interval_ps;
        let Some(place) = index.checked_sub(self.first_open) else { return };
        let place = place as usize;
        while self.open.len() <= place {
            self.open.push_back(vec![f64::NAN; self.columns]);
        }
        let cell = &mut self.open[place][column];
        *cell = cell.max(value);
        if self.open.len() > self.settle {
            self.publish(self.open.len() - self.settle);
        }
    }

    /// Publishes what is still open; the run is over.
    pub fn finish(&mut self) {
        self.publish(self.open.len());
    }

    fn publish(&mut self, count: usize) {
        let mut recording = lock(&self.shared);
        for row in self.open.drain(..count) {
            recording.publish(self.first_open, &row);
            self.first_open += 1;
        }
    }
}

impl Drop for Recorder {
    /// Open rows are published when the recorder is dropped.
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Sender;

    fn recorder(columns: usize, settle_ps: u64) -> (Shared, Recorder) {
        let manifest = Manifest { interval_ps: 10, columns, ..Manifest::default() };
        let shared = Recording::new(manifest, Settings::default()).shared();
        (shared.clone(), Recorder::new(shared, settle_ps))
    }

    #[test]
    fn a_row_is_published_when_no_late_value_can_reach_it() {
        let (shared, mut recorder) = recorder(2, 20);
        for row in 0..6 {
            recorder.record(row * 10, 0, row as f64);
            if row >= 2 {
                recorder.record((row - 2) * 10, 1, 100.0 + row as f64);
            }
            let recording = lock(&shared);
            let published = recording.slice(0, recording.rows());
            assert!(published[1].iter().all(|value| !value.is_nan()), "{published:?}");
        }
        recorder.finish();
        let recording = lock(&shared);
        assert_eq!(recording.slice(0, 6)[0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(recording.slice(0, 4)[1], [102.0, 103.0, 104.0, 105.0]);
        assert!(recording.slice(4, 6)[1].iter().all(|value| value.is_nan()));
    }

    #[test]
    fn moments_without_a_value_are_missing_and_keep_their_place() {
        let (shared, mut recorder) = recorder(1, 0);
        recorder.record(0, 0, 1.0);
        recorder.record(49, 0, 5.0);
        recorder.finish();
        let values = lock(&shared).slice(0, 5).remove(0);
        assert_eq!((values[0], values[4]), (1.0, 5.0));
        assert!(values[1..4].iter().all(|value| value.is_nan()));
    }

    #[test]
    fn of_several_values_in_a_row_the_greatest_stays() {
        let (shared, mut recorder) = recorder(1, 0);
        for value in [0.0, 1.0, 0.0] {
            recorder.record(0, 0, value);
        }
        recorder.finish();
        assert_eq!(lock(&shared).slice(0, 1)[0], [1.0]);
    }

    #[test]
    fn a_run_too_long_for_memory_keeps_every_second_row_in_its_place() {
        let (shared, mut recorder) = recorder(1 << 16, 0);
        for row in 0..200_u64 {
            recorder.record(row * 10, 3, row as f64);
        }
        recorder.finish();
        let recording = lock(&shared);
        assert_eq!((recording.stride(), recording.generation()), (2, 1));
        let values = recording.slice(0, recording.rows()).swap_remove(3);
        assert_eq!(values, (0..100).map(|row| f64::from(row) * 2.0).collect::<Vec<_>>());
    }

    #[test]
    fn a_throughput_of_a_thinned_run_is_the_mean_since_the_row_before() {
        let sender = Sender { series: [("throughput", 0), ("alpha", 1)].into(), ..Sender::default() };
        let manifest = Manifest { interval_ps: 10, columns: 2, senders: vec![sender], ..Manifest::default() };
        let mut recording = Recording::new(manifest, Settings::default());
        for row in 0..4_u64 {
            recording.publish(row, &[row as f64; 2]);
        }
        recording.thin();
        for row in 4..7_u64 {
            recording.publish(row, &[row as f64; 2]);
        }
        assert_eq!(recording.slice(0, 4), [[0.0, 1.5, 3.5, 5.5], [0.0, 2.0, 4.0, 6.0]]);
        recording.thin();
        for row in 7..9_u64 {
            recording.publish(row, &[f64::NAN, row as f64]);
        }
        assert_eq!(recording.slice(0, 3), [[0.0, 2.5, 5.5], [0.0, 4.0, 8.0]]);
    }
}
