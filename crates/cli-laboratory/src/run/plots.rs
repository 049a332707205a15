// SPDX-License-Identifier: Apache-2.0
//! Plots of a run, drawn by the Python package (matplotlib).

use super::summary::Summary;
use crate::python::Home;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a drawing that goes on is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// Draws the plots of a run with a readout, of its boards and switch, unless it is interrupted.
pub fn draw_of(summary: &Summary, out: &Path, interrupted: &AtomicBool) -> Result<(), String> {
    match summary.readout.is_some() && !summary.boards.is_empty() {
        true => draw(out, interrupted),
        false => Ok(()),
    }
}

/// Draws the plots of the run in `out`; reports an error if it cannot. A missing plot does not make a run fail.
fn draw(out: &Path, interrupted: &AtomicBool) -> Result<(), String> {
    let home = Home::find();
    let python = home.interpreter();
    let failed = |error: io::Error| format!("no plots: cannot run {}: {error}", python.display());
    let mut drawing = Command::new(python)
        .args(["-m", "penstock.plots"])
        .arg(out)
        .env("PYTHONPATH", home.python_path(&["python"]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stderr = drawing.stderr.take();
    let output = std::thread::spawn(move || {
        let mut output = Vec::new();
        // What it printed before an error is reported all the same.
        stderr.map(|mut stderr| stderr.read_to_end(&mut output));
        output
    });
    let status = loop {
        if interrupted.load(Ordering::Relaxed) {
            drawing.kill().and_then(|()| drawing.wait()).map_err(failed)?;
            return Err(format!("no plots: interrupted; `python -m penstock.plots {}` draws them", out.display()));
        }
        match drawing.try_wait().map_err(failed)? {
            Some(status) => break status,
            None => std::thread::sleep(LOOK),
        }
    };
    match status.success() {
        true => Ok(()),
        // The last line of a traceback has the error.
        false => {
            let output = output.join().unwrap_or_default();
            let output = String::from_utf8_lossy(&output);
            Err(format!(
                "no plots: {}: {}",
                python.display(),
                output.trim_end().lines().last().unwrap_or("it broke off")
            ))
        }
    }
}
