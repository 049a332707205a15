// SPDX-License-Identifier: Apache-2.0
//! `penstock._native`: laboratories for Python. `python/penstock/lab.py` is what people use.
//! Promise: the interpreter is free while a simulation runs; a mistake in a scenario is a ValueError with the reader's
//! own words; tables cross by Arrow's C stream interface, without a copy.
//! Source: Arrow PyCapsule interface; docs/lab.md.

mod run;
mod stream;
mod tables;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::run::{check, run, Outcome};
    #[pymodule_export]
    use crate::stream::Stream;
}
