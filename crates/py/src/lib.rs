// SPDX-License-Identifier: Apache-2.0
//! `penstock._native`: laboratories and boards for Python; the public interface is `python/penstock/lab.py` and
//! `boards.py`. Promise: the interpreter lock is released while a simulation runs; an error in a scenario raises
//! ValueError with the reader's message; tables pass through Arrow's C stream interface without a copy.
//! The allocator is the system's: mimalloc, used by the command, saves nothing in AdvCam 5 and 12 to 16 % of the CPU
//! time with 1,024 senders; but a module that is loaded late may find no room for the thread-local storage that it
//! needs.
//! Source: Arrow PyCapsule interface; docs/lab.md.

mod boards;
mod group;
mod run;
mod stream;
mod writing;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::boards::BoardLink;
    #[pymodule_export]
    use crate::group::BoardGroup;
    #[pymodule_export]
    use crate::run::{check, run, Outcome};
    #[pymodule_export]
    use crate::stream::Stream;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
