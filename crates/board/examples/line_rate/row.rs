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
    /// A share of a line: what was measured and what is possible.
    pub gbps: Option<(f64, f64)>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, value, unit, target, better, gbps } = self;
        let target = target.map_or("null".to_owned(), |target| target.to_string());
        write!(
            f,
            r#"{{"name": {name:?}, "value": {value}, "unit": {unit:?}, "target": {target}, "better": {better:?}"#
        )?;
        if let Some((goodput, limit)) = gbps {
            write!(f, r#", "goodput_gbps": {goodput:.5}, "limit_gbps": {limit:.5}"#)?;
        }
        f.write_str("}")
    }
}

pub fn json(rows: &[Row]) -> String {
    let rows: Vec<String> = rows.iter().map(Row::to_string).collect();
    format!("[{}]", rows.join(",\n "))
}
