// SPDX-License-Identifier: Apache-2.0
//! Names the commit that `--version` prints: `PENSTOCK_COMMIT` where a package is built, else the checkout's.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_string())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PENSTOCK_COMMIT");
    // What changes with each commit: the log of HEAD, or HEAD itself where no log is kept.
    for file in ["logs/HEAD", "HEAD"] {
        let path = git(&["rev-parse", "--git-path", file]).map(std::path::PathBuf::from);
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
            break;
        }
    }
    let commit = std::env::var("PENSTOCK_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let version = env!("CARGO_PKG_VERSION");
    let text = commit.map_or_else(|| version.to_string(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=PENSTOCK_VERSION={text}");
}
