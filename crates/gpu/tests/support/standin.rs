// SPDX-License-Identifier: Apache-2.0
//! NVIDIA's driver without a GPU: `kernels/driver_standin.cpp`, compiled once per test program. A process can load
//! only one driver, so a test runs in a separate process for each behaviour of the driver.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

static LIBRARY: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let library = folder.path().join(NAMES[0]);
    let options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-include", "on_cpu.h", "driver_standin.cpp", "-o"];
    let options = options.iter().map(OsStr::new).chain([library.as_os_str()]);
    let compiled = Command::new("c++").current_dir(kernels).args(options).status();
    assert!(compiled.expect("tests need a C++ compiler, as the gateware does").success());
    (folder, library)
});

/// The driver's, and what it is looked for first where its development files are installed.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
/// Tells a process where its driver is.
const FOLDER: &str = "PENSTOCK_STANDIN";
/// A `conf` with which the library is no library.
pub const BROKEN: &str = "broken";

/// The driver of this process.
pub struct StandIn {
    folder: PathBuf,
}

/// Runs `test` in a process whose driver behaves as `conf` says, in the words at the head of driver_standin.cpp. A test
/// may ask for several drivers, each of another `conf`.
pub fn with_driver<F: FnOnce(&StandIn)>(conf: &str, test: F) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        // This is such a process: of all drivers that the test asks for it has one.
        let driver = StandIn { folder: folder.into() };
        if std::fs::read_to_string(driver.folder.join("standin.conf")).unwrap() == conf {
            test(&driver);
        }
        return;
    }
    let made = tempfile::tempdir().unwrap();
    let folder = made.path();
    match conf {
        BROKEN => std::fs::write(folder.join(NAMES[0]), "").unwrap(),
        _ => assert!(std::fs::copy(&LIBRARY.1, folder.join(NAMES[0])).is_ok()),
    }
    symlink(NAMES[0], folder.join(NAMES[1])).unwrap();
    std::fs::write(folder.join("standin.conf"), conf).unwrap();
    // The closure's type is called crate::test::{{closure}}.
    let name = std::any::type_name::<F>().split("::").nth(1).unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args([name, "--exact", "--nocapture"]).env("LD_LIBRARY_PATH", folder).env(FOLDER, folder);
    let done = process.output().unwrap();
    let output = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(done.status.success() && output[0].contains("1 passed"), "{conf:?}: {}{}", output[0], output[1]);
}

impl StandIn {
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("standin.log")).unwrap()
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
