// SPDX-License-Identifier: Apache-2.0
//! NVIDIA's driver without a GPU: `kernels/driver_standin.cpp`, compiled once a test program, one copy of it for each test.

use std::ffi::{CString, OsStr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

static LIBRARY: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let library = folder.path().join("libcuda.so.1");
    let options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-include", "on_cpu.h", "driver_standin.cpp", "-o"];
    let options = options.iter().map(OsStr::new).chain([library.as_os_str()]);
    let compiled = Command::new("c++").current_dir(kernels).args(options).status();
    assert!(compiled.expect("tests need a C++ compiler, as the gateware does").success());
    (folder, library)
});

/// A driver of this test's own: another copy of the library has its own state.
pub struct StandIn {
    folder: TempDir,
}

impl StandIn {
    /// `conf` as at the head of driver_standin.cpp.
    pub fn new(conf: &str) -> StandIn {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(&LIBRARY.1, folder.path().join("libcuda.so.1")).unwrap();
        std::fs::write(folder.path().join("standin.conf"), conf).unwrap();
        StandIn { folder }
    }

    pub fn path(&self) -> CString {
        CString::new(self.folder.path().join("libcuda.so.1").to_str().unwrap()).unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("standin.log")).unwrap()
    }

    /// How often a function was called.
    pub fn calls(&self, name: &str) -> usize {
        self.log().lines().filter(|line| *line == name).count()
    }

    /// Nothing was done that a driver forbids, and everything that was taken was given back.
    pub fn assert_clean(&self) {
        self.assert_clean_after_failed("");
    }

    /// The same where the last call of one function has failed.
    pub fn assert_clean_after_failed(&self, failed: &str) {
        assert!(!self.log().contains("wrong:"), "{}", self.log());
        for (taken, given) in [
            ("cuMemAlloc_v2", "cuMemFree_v2"),
            ("cuMemHostAlloc", "cuMemFreeHost"),
            ("cuStreamCreate", "cuStreamDestroy_v2"),
            ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"),
        ] {
            let failures = usize::from(taken == failed);
            assert_eq!(self.calls(taken) - failures, self.calls(given), "{taken}");
        }
    }
}
