// SPDX-License-Identifier: Apache-2.0
//! One line of the performance table, as `tests/bench.py` reads it.

use std::fmt;

pub struct Row {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    /// `None` marks a figure that only explains another.
    pub target: Option<f64>,
    /// "higher" or "lower".
    pub better: &'static str,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, value, unit, target, better } = self;
        let target = target.map_or("null".to_owned(), |target| target.to_string());
        write!(
            f,
            r#"{{"name": {name:?}, "value": {value}, "unit": {unit:?}, "target": {target}, "better": {better:?}}}"#
        )
    }
}

pub fn json(rows: &[Row]) -> String {
    let rows: Vec<String> = rows.iter().map(Row::to_string).collect();
    format!("[{}]", rows.join(",\n "))
}
