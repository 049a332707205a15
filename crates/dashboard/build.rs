// SPDX-License-Identifier: Apache-2.0
//! Builds `web/` into `build/web`, from where the page is embedded. `tools/web.sh` does nothing if the build is
//! current.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let repo = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    for watched in ["web/src", "web/index.html", "web/package-lock.json", "web/vite.config.ts", "tools/web.sh"] {
        println!("cargo::rerun-if-changed={}", repo.join(watched).display());
    }
    let page = repo.join("build/web");
    println!("cargo::rerun-if-changed={}", page.display());
    let built = Command::new("sh").arg("tools/web.sh").current_dir(&repo).output();
    let output = built.unwrap_or_else(|error| panic!("cannot run sh: {error}"));
    assert!(
        output.status.success(),
        "the live page could not be built:\n{}{}\nRun `make setup` once, then try again.",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    println!("cargo::rustc-env=PENSTOCK_PAGE={}", page.display());
}
