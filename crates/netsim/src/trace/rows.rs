// SPDX-License-Identifier: Apache-2.0
//! The rows and the columns of a trace.
//! Promise: the values of a series stay in their order; a row costs 8 bytes until its group is written, and 4 more where
//! the samples of its series are irregular.

use std::sync::Arc;

use arrow_array::types::UInt16Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, UInt16Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::series::Series;

/// The values of one series.
#[derive(Debug, Default)]
struct Samples {
    values: Vec<f64>,
    /// Number of the time of the first value; the others follow at the times that follow, unless `listed`.
    first: u32,
    /// Of each value the number of its time, once one did not follow.
    listed: Vec<u32>,
}

/// Rows that are not written yet, by series.
#[derive(Debug, Default)]
pub struct Rows {
    /// Times of rows, each once as long as it stays; a row has the number of its own.
    times: Vec<u64>,
    /// By number of the series.
    samples: Vec<Samples>,
    rows: usize,
}

/// Rows of one series next to each other.
#[derive(Debug, Default)]
pub struct Group {
    /// Each series that has rows, with their number.
    pub runs: Vec<(Series, u32)>,
    pub times: Vec<u64>,
    /// Of each row, its place in `times`.
    pub time: Vec<u32>,
    pub value: Vec<f64>,
}

impl Samples {
    #[inline]
    fn push(&mut self, time: u32, value: f64) {
        if self.values.is_empty() {
            self.first = time;
        } else if !self.listed.is_empty() || time != self.first + self.values.len() as u32 {
            self.list(time);
        }
        self.values.push(value);
    }

    #[cold]
    fn list(&mut self, time: u32) {
        if self.listed.is_empty() {
            self.listed.extend(self.first..self.first + self.values.len() as u32);
        }
        self.listed.push(time);
    }

    fn move_into(&mut self, group: &mut Group) {
        match self.listed.is_empty() {
            true => group.time.extend(self.first..self.first + self.values.len() as u32),
            false => group.time.append(&mut self.listed),
        }
        group.value.append(&mut self.values);
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
        let series = series as usize;
        if series >= self.samples.len() {
            self.samples.resize_with(series + 1, Samples::default);
        }
        self.samples[series].push(self.times.len() as u32 - 1, value);
        self.rows += 1;
    }

    /// Moves all rows into `group`; `known` are all series by number.
    pub fn move_into(&mut self, group: &mut Group, known: &[Series]) {
        group.runs.clear();
        group.time.clear();
        group.value.clear();
        for (series, samples) in known.iter().zip(&mut self.samples).filter(|(_, samples)| !samples.values.is_empty()) {
            group.runs.push((*series, samples.values.len() as u32));
            samples.move_into(group);
        }
        std::mem::swap(&mut group.times, &mut self.times);
        self.times.clear();
        self.rows = 0;
    }
}

impl Group {
    /// As a batch; `names` are those that the numbers of nodes and metrics stand for.
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
            Arc::new(Float64Array::from(self.value)),
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
