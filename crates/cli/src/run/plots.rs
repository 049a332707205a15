// SPDX-License-Identifier: Apache-2.0
//! Plots of a run, drawn by the Python package (matplotlib).

use super::summary::Summary;
use crate::python::Home;
use std::path::Path;
use std::process::Command;

/// Draws the plots of a run with a readout: its boards and switch.
pub fn draw_of(summary: &Summary, out: &Path) -> Result<(), String> {
    match summary.readout.is_some() && !summary.boards.is_empty() {
        true => draw(out),
        false => Ok(()),
    }
}

/// Draws the plots of the run in `out`; reports an error if it cannot. A missing plot does not make a run fail.
fn draw(out: &Path) -> Result<(), String> {
    let home = Home::find();
    let python = home.interpreter();
    let result = Command::new(python)
        .args(["-m", "penstock.plots"])
        .arg(out)
        .env("PYTHONPATH", home.python_path(&["python"]))
        .output()
        .map_err(|error| format!("no plots: cannot run {}: {error}", python.display()))?;
    match result.status.success() {
        true => Ok(()),
        // The last line of a traceback has the error.
        false => {
            let said = String::from_utf8_lossy(&result.stderr);
            Err(format!("no plots: {}: {}", python.display(), said.trim_end().lines().last().unwrap_or("it broke off")))
        }
    }
}
