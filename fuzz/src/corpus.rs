// SPDX-License-Identifier: Apache-2.0
//! Replays the committed inputs of one fuzz target; included by the tests of the crates.

use std::path::Path;

/// Runs every input in `fuzz/corpus/<target>`. A broken promise panics, and the last name printed is its input.
///
/// # Panics
/// As the target does; or when there are no inputs.
pub fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no inputs", folder.display());
    for file in files {
        println!("{}", file.display());
        run(&std::fs::read(&file).expect("a readable input"));
    }
}
