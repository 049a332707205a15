// SPDX-License-Identifier: Apache-2.0
// Of build scripts, for `include!`: makes what regs/generate.py makes, and copies files of it to where `include!` finds them.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn generate(names: &[&str]) {
    let repo = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..").canonicalize().unwrap();
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    // The repository's, else one that the builder of a wheel brings.
    let own = repo.join(".venv/bin/python");
    let own = if own.exists() { own } else { PathBuf::from("python3") };
    let python = env::var_os("PENSTOCK_PYTHON").map_or(own, PathBuf::from);
    // File by file: Python writes its compiled modules into the folder, and each crate would be compiled once more.
    for entry in fs::read_dir(repo.join("regs")).unwrap_or_else(|e| panic!("regs/: {e}")) {
        let path = entry.unwrap().path();
        if path.extension().is_some() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rerun-if-env-changed=PENSTOCK_PYTHON");

    let generator = repo.join("regs/generate.py");
    let output = Command::new(&python)
        .arg(&generator)
        .output()
        .unwrap_or_else(|e| panic!("cannot run {python:?}: {e}; `make setup` makes .venv"));
    assert!(output.status.success(), "{}: {}", generator.display(), String::from_utf8_lossy(&output.stderr));
    for name in names {
        let made = repo.join("build/gen").join(name);
        fs::copy(&made, out.join(name)).unwrap_or_else(|e| panic!("{}: {e}; `make regs` writes it", made.display()));
    }
}
