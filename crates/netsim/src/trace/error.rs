// SPDX-License-Identifier: Apache-2.0
//! Why a trace could not be written.

use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("cannot write {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: {source}")]
    Parquet { path: PathBuf, source: ParquetError },
    #[error("{path}: more than 65536 different names of nodes or metrics; use the channel column for numbers")]
    TooManyNames { path: PathBuf },
}
