// SPDX-License-Identifier: Apache-2.0
//! The rows and the columns of a trace.
//! Promise: the values of a series keep their order. Until its group is written, a row needs no memory if its value is
//! that of the row before it, 16 bytes otherwise, and 4 more if the samples of its series are irregular.

use std::sync::Arc;

use arrow_array::types::UInt16Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, UInt16Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::series::Series;

/// Equal values of one series, one after the other: most counters and states stay for many samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Run {
    /// The value's IEEE 754 bits: they distinguish -0 from 0 and compare NaN.
    pub bits: u64,
    pub rows: u32,
}

/// The values of one series. A value that stays touches this struct alone, one line of the cache.
#[derive(Debug, Default)]
struct Samples {
    /// The present run of equal values; without rows there is none yet.
    run: Run,
    rows: u32,
    /// Number of the time of the first value; the others follow at the times that follow, unless they are `listed`.
    first: u32,
    listed: bool,
    ended: Vec<Run>,
}

/// Rows that are not written yet, by series.
#[derive(Debug, Default)]
pub struct Rows {
    /// Times of rows, each once as long as it stays; a row has the number of its own.
    times: Vec<u64>,
    /// One for each number of the series.
    samples: Vec<Samples>,
    /// One for each number of the series, of each value the number of its time, once one did not follow.
    lists: Vec<Vec<u32>>,
    rows: usize,
}

/// Rows of one series next to each other.
#[derive(Debug, Default)]
pub struct Group {
    /// Each series that has rows, with their number.
    pub runs: Vec<(Series, u32)>,
    pub times: Vec<u64>,
    /// Place in `times` of each row.
    pub time: Vec<u32>,
    /// Values of all rows, in their order; a run belongs to one series.
    pub values: Vec<Run>,
}

impl Samples {
    /// Whether a value at `time` follows the one before it.
    #[inline]
    fn follows(&self, time: u32) -> bool {
        self.rows == 0 || (!self.listed && time == self.first + self.rows)
    }

    #[inline]
    fn push(&mut self, time: u32, bits: u64) {
        if self.rows == 0 {
            self.first = time;
        }
        self.rows += 1;
        if self.run.bits == bits {
            self.run.rows += 1;
            return;
        }
        let ended = std::mem::replace(&mut self.run, Run { bits, rows: 1 });
        if ended.rows > 0 {
            self.ended.push(ended);
        }
    }
}

impl Rows {
    pub fn len(&self) -> usize {
        self.rows
    }

    #[inline]
    pub fn push(&mut self, series: u32, time_ps: u64, value: f64) {
        if self.times.last() != Some(&time_ps) {
            self.times.push(time_ps);
        }
        let time = self.times.len() as u32 - 1;
        self.rows += 1;
        match self.samples.get_mut(series as usize) {
            Some(samples) if samples.follows(time) => samples.push(time, value.to_bits()),
            _ => self.push_unlike(series as usize, time, value.to_bits()),
        }
    }

    /// A value of a new series, or of a time that does not follow.
    #[cold]
    fn push_unlike(&mut self, series: usize, time: u32, bits: u64) {
        if series >= self.samples.len() {
            self.samples.resize_with(series + 1, Samples::default);
        }
        if !self.samples[series].follows(time) {
            self.list(series, time);
        }
        self.samples[series].push(time, bits);
    }

    fn list(&mut self, series: usize, time: u32) {
        if series >= self.lists.len() {
            self.lists.resize_with(series + 1, Vec::new);
        }
        let (samples, list) = (&mut self.samples[series], &mut self.lists[series]);
        if !samples.listed {
            samples.listed = true;
            list.extend(samples.first..samples.first + samples.rows);
        }
        list.push(time);
    }

    /// Moves all rows into `group`; `all` are all series by number.
    pub fn move_into(&mut self, group: &mut Group, all: &[Series]) {
        group.runs.clear();
        group.time.clear();
        group.values.clear();
        let taken = all.iter().zip(&mut self.samples).enumerate().filter(|(_, (_, samples))| samples.rows > 0);
        for (number, (series, samples)) in taken {
            group.runs.push((*series, samples.rows));
            match samples.listed {
                false => group.time.extend(samples.first..samples.first + samples.rows),
                true => group.time.append(&mut self.lists[number]),
            }
            group.values.append(&mut samples.ended);
            group.values.push(samples.run);
            (samples.run, samples.rows, samples.listed) = (Run::default(), 0, false);
        }
        std::mem::swap(&mut group.times, &mut self.times);
        self.times.clear();
        self.rows = 0;
    }
}

impl Group {
    /// The value of each row.
    pub fn each_value(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().flat_map(|run| std::iter::repeat_n(f64::from_bits(run.bits), run.rows as usize))
    }

    /// Makes a batch; `names` are those that the numbers of nodes and metrics stand for.
    pub fn into_batch(self, names: &ArrayRef) -> RecordBatch {
        let column = |of: fn(&Series) -> u16| {
            let rows = self.runs.iter().flat_map(|(series, rows)| std::iter::repeat_n(of(series), *rows as usize));
            UInt16Array::from_iter_values(rows)
        };
        let words = |of| DictionaryArray::<UInt16Type>::new(column(of), names.clone());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from_iter_values(self.time.iter().map(|time| self.times[*time as usize]))),
            Arc::new(words(|series| series.node)),
            Arc::new(column(|series| series.channel)),
            Arc::new(words(|series| series.metric)),
            Arc::new(Float64Array::from_iter_values(self.each_value())),
        ];
        RecordBatch::try_new(schema(), columns).expect("columns of one length and of the schema's types")
    }
}

/// The columns of a trace.
pub fn schema() -> SchemaRef {
    let names = || DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("time_ps", DataType::UInt64, false),
        Field::new("node", names(), false),
        Field::new("channel", DataType::UInt16, false),
        Field::new("metric", names(), false),
        Field::new("value", DataType::Float64, false),
    ]))
}
