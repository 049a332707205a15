// SPDX-License-Identifier: Apache-2.0
//! Readers of scenario files with arbitrary text: TOML of both kinds, and files of ns-3.
//! Promise: no panic; every refusal has a message that names a place.

use crate::input::Input;
use penstock_lab::{LabScenario, Ns3Files, Ns3Import, ScenarioError, SwitchScenario};
use std::io;
use std::path::Path;

/// Longer texts only cost time.
const LONGEST: usize = 4096;

/// The first byte chooses the reader. A scenario of the laboratory that names a file gets the text behind a zero byte.
pub fn run(data: &[u8]) {
    let mut input = Input(&data[..data.len().min(LONGEST)]);
    let mode = input.u8();
    let text = String::from_utf8_lossy(input.0);
    let mut parts = text.splitn(3, '\0');
    let [first, second, third] = [(); 3].map(|()| parts.next());
    let first = first.unwrap_or_default();
    match mode % 4 {
        0 => refused_with_words(SwitchScenario::parse("scenarios/fuzz.toml", first, &options(second)).err()),
        1 | 2 => {
            let read = |_: &Path| {
                third.map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            };
            let parsed = LabScenario::parse("scenarios/fuzz.toml", first, &options(second), &read);
            refused_with_words(parsed.err());
        }
        _ => ns3(first, second, third, mode >= 0x80),
    }
}

/// `--set` options, one a line.
fn options(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

fn refused_with_words(error: Option<ScenarioError>) {
    if let Some(error) = error {
        assert!(!error.to_string().is_empty());
    }
}

fn ns3(topology: &str, flows: Option<&str>, config: Option<&str>, json: bool) {
    let name = if json { "fuzz.json" } else { "fuzz.txt" };
    let files = Ns3Files {
        topology: (name, topology),
        flows: flows.map(|text| (name, text)),
        config: config.map(|text| (name, text)),
    };
    if let Err(error) = Ns3Import::parse(&files, &mut Vec::new()) {
        assert!(error.to_string().contains(name), "{error}");
    }
}
