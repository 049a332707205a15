// SPDX-License-Identifier: Apache-2.0
//! The trace: one row per sampled value, in a Parquet file or in memory.
//! Promise: a file is finished when dropped, so an early end leaves a valid one; a sample needs no hashing; one seed
//! gives one file, byte for byte. Columns: time_ps u64, node string (dictionary), channel u16 (port or queue pair),
//! metric string (dictionary), value f64. Rows come in groups; in a group the values of one node, channel and metric
//! are next to each other, in the order in which they were recorded. docs/lab.md lists the metrics.

mod dictionary;
mod error;
mod file;
mod rows;
mod series;
mod write_behind;

pub use error::TraceError;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};

use self::file::TraceFile;
use self::rows::{Group, Rows};
use self::series::{Series, SeriesTable};
use self::write_behind::WriteBehind;
use crate::units::Time;

/// Strings by number, each written once per row group.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<String, u16>,
    strings: Vec<String>,
}

/// A name known to the trace, for `TraceSink::begin_numbered`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameNumber(u16);

/// One recorded value, as a tee sees it.
#[derive(Debug, Clone, Copy)]
pub struct TraceRow<'a> {
    pub time: Time,
    /// The number of its node, channel and metric; these are numbered as they come, from 0.
    pub series: usize,
    pub node: &'a str,
    pub channel: u16,
    pub metric: &'a str,
    pub value: f64,
}

/// A second consumer of all recorded values, see `TraceSink::set_tee`.
pub type TraceTee = Box<dyn FnMut(TraceRow) + Send>;

/// A metric by the address of its name; names are literals, so an address identifies one name.
#[derive(Debug, Clone, Copy)]
struct CachedName {
    address: usize,
    len: usize,
    /// `None`: not selected.
    number: Option<u16>,
}

/// The metrics met lately, found by address without a look at the name.
#[derive(Debug)]
struct MetricCache([Option<CachedName>; MetricCache::SIZE]);

impl MetricCache {
    const SIZE: usize = 256;
    /// Places that a name may have.
    const NEAR: usize = 4;

    /// The place of a name: literals lie side by side, so their addresses differ in low bits.
    #[inline]
    fn place(name: &'static str) -> usize {
        let mixed = (name.as_ptr() as usize as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        (mixed as usize + name.len()) % Self::SIZE
    }

    /// A name is stored at its place or at one of the few after it, so that two names do not evict each other.
    #[inline]
    fn find(&self, name: &'static str) -> Option<Option<u16>> {
        let first = Self::place(name);
        for at in first..first + Self::NEAR {
            let cached = self.0[at % Self::SIZE]?;
            if cached.address == name.as_ptr() as usize && cached.len == name.len() {
                return Some(cached.number);
            }
        }
        None
    }

    fn keep(&mut self, name: &'static str, number: Option<u16>) {
        let first = Self::place(name);
        let free = (first..first + Self::NEAR).find(|at| self.0[at % Self::SIZE].is_none());
        let cached = CachedName { address: name.as_ptr() as usize, len: name.len(), number };
        self.0[free.unwrap_or(first) % Self::SIZE] = Some(cached);
    }
}

impl Names {
    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(self.strings.len()).ok()?;
        self.strings.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Some(number)
    }

    fn values(&self) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(&self.strings))
    }
}

/// Where rows go that are complete.
enum Store {
    File(Box<WriteBehind>),
    Memory(Vec<Group>),
    /// Nothing more is to come.
    Closed,
}

/// Where nodes record their samples.
pub struct TraceSink {
    store: Store,
    names: Names,
    cache: MetricCache,
    /// The selected metrics and whether each was recorded; empty: all are selected.
    selected: Vec<(String, bool)>,
    series: SeriesTable,
    rows: Rows,
    /// The last data written; its memory is reused for the next.
    group: Group,
    now: Time,
    node: u16,
    error: Option<TraceError>,
    written: u64,
    tee: Option<TraceTee>,
}

impl TraceSink {
    const ROWS_PER_GROUP: usize = 1 << 17;

    /// Begins a trace at `path`; `metadata` goes into the file's key-value metadata.
    pub fn create(path: impl AsRef<Path>, metadata: &[(&str, &str)]) -> Result<Self, TraceError> {
        let file = TraceFile::create(path.as_ref(), metadata)?;
        Ok(Self::into_store(Store::File(Box::new(WriteBehind::new(file)?))))
    }

    /// Begins a trace that is kept, for `into_batches`, which makes 22 bytes of a row.
    pub fn in_memory() -> Self {
        Self::into_store(Store::Memory(Vec::new()))
    }

    fn into_store(store: Store) -> Self {
        TraceSink {
            store,
            names: Names::default(),
            cache: MetricCache([None; MetricCache::SIZE]),
            selected: Vec::new(),
            series: SeriesTable::default(),
            rows: Rows::default(),
            group: Group::default(),
            now: Time::ZERO,
            node: 0,
            error: None,
            written: 0,
            tee: None,
        }
    }

    /// Passes every recorded value to `tee` during the run: the same values as in the file.
    pub fn set_tee(&mut self, tee: TraceTee) {
        self.tee = Some(tee);
    }

    /// Keeps these metrics only; none: all.
    pub fn select(&mut self, metrics: &[String]) {
        self.selected = metrics.iter().map(|metric| (metric.clone(), false)).collect();
        self.cache = MetricCache([None; MetricCache::SIZE]);
    }

    /// The metrics selected by `select` without any record: possibly misspelt.
    pub fn never_recorded(&self) -> impl Iterator<Item = &str> {
        self.selected.iter().filter(|(_, seen)| !seen).map(|(metric, _)| metric.as_str())
    }

    /// Whether this metric is recorded: a node need not compute unused values.
    pub fn records(&mut self, metric: &'static str) -> bool {
        self.metric(metric).is_some()
    }

    /// The following values are recorded at `now` for the node called `name`.
    pub fn begin(&mut self, now: Time, name: &str) {
        let number = self.name_number(name);
        self.begin_numbered(now, number);
    }

    /// The number by which `begin_numbered` takes a name.
    pub fn name_number(&mut self, name: &str) -> NameNumber {
        NameNumber(self.number(name))
    }

    /// Does the same as `begin`, by the number of a name.
    pub fn begin_numbered(&mut self, now: Time, name: NameNumber) {
        self.now = now;
        self.node = name.0;
    }

    /// Records a value of the current node at the current time. `channel` is a port or queue pair, 0 where there is
    /// but one.
    #[inline]
    pub fn record(&mut self, channel: u16, metric: &'static str, value: f64) {
        self.record_at(self.now, channel, metric, value);
    }

    /// Records a value of the current node at a time of its own (windowed nodes look back).
    // Metrics that are not selected, usually most of them, cost no call.
    #[inline]
    pub fn record_at(&mut self, time: Time, channel: u16, metric: &'static str, value: f64) {
        if self.selected.is_empty() || self.metric(metric).is_some() {
            self.push(time, channel, metric, value);
        }
    }

    fn push(&mut self, time: Time, channel: u16, metric: &'static str, value: f64) {
        let series = match self.series.following(self.node, channel, metric) {
            Some(series) => series,
            None => self.other_series(channel, metric),
        };
        if let Some(tee) = &mut self.tee {
            let node = self.names.strings[usize::from(self.node)].as_str();
            tee(TraceRow { time, series: series as usize, node, channel, metric, value });
        }
        self.rows.push(series, time.0, value);
        if self.rows.len() >= Self::ROWS_PER_GROUP {
            self.flush();
        }
    }

    #[cold]
    fn other_series(&mut self, channel: u16, metric: &'static str) -> u32 {
        let number = self.metric(metric).unwrap_or(0); // selected, or it would not be recorded
        self.series.look_up(Series { node: self.node, channel, metric: number }, metric)
    }

    #[inline]
    fn metric(&mut self, metric: &'static str) -> Option<u16> {
        match self.cache.find(metric) {
            Some(number) => number,
            None => self.new_metric(metric),
        }
    }

    #[cold]
    fn new_metric(&mut self, metric: &'static str) -> Option<u16> {
        let kept = match self.selected.iter_mut().find(|(name, _)| name == metric) {
            Some((_, seen)) => {
                *seen = true;
                true
            }
            None => self.selected.is_empty(),
        };
        let number = kept.then(|| self.number(metric));
        self.cache.keep(metric, number);
        number
    }

    fn number(&mut self, name: &str) -> u16 {
        self.names.number(name).unwrap_or_else(|| {
            let path = if let Store::File(file) = &self.store { file.path().to_owned() } else { "the trace".into() };
            self.error.get_or_insert(TraceError::TooManyNames { path });
            0
        })
    }

    /// The first error met while recording, if there was one.
    pub fn check(&mut self) -> Result<(), TraceError> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn flush(&mut self) {
        if self.rows.len() == 0 {
            return;
        }
        self.written += self.rows.len() as u64;
        self.rows.move_into(&mut self.group, self.series.all());
        match &mut self.store {
            Store::File(file) => match file.write(std::mem::take(&mut self.group), &self.names.strings) {
                Ok(spare) => self.group = spare,
                Err(error) => {
                    self.error.get_or_insert(error);
                }
            },
            Store::Memory(kept) => kept.push(std::mem::take(&mut self.group)),
            Store::Closed => {}
        }
    }

    /// Writes the rest, closes the file and gives it its name. Returns the number of rows.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        self.close()?;
        Ok(self.written)
    }

    /// The rows of a trace in memory, with the names of all in each batch; at least one batch, without rows if there
    /// were none. Of a trace in a file, whose rows are there, it has none.
    pub fn into_batches(mut self) -> Result<Vec<RecordBatch>, TraceError> {
        self.flush();
        self.check()?;
        let names = self.names.values();
        let kept = match std::mem::replace(&mut self.store, Store::Closed) {
            Store::Memory(kept) if kept.is_empty() => vec![Group::default()],
            Store::Memory(kept) => kept,
            file => {
                self.store = file;
                self.close()?;
                vec![Group::default()]
            }
        };
        Ok(kept.into_iter().map(|rows| rows.into_batch(&names)).collect())
    }

    fn close(&mut self) -> Result<(), TraceError> {
        self.flush();
        self.check()?;
        match std::mem::replace(&mut self.store, Store::Closed) {
            Store::File(file) => file.close(),
            _ => Ok(()),
        }
    }
}

impl Drop for TraceSink {
    /// A run that ends early still leaves its records; an error here cannot be reported.
    fn drop(&mut self) {
        let _ = self.close();
    }
}
