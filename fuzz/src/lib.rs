// SPDX-License-Identifier: Apache-2.0
//! The bodies of the fuzz targets; `fuzz_targets/` only passes the fuzzer's bytes to them.
//! Promise: `run` panics exactly when a promise of the tested code is broken. The crates' own tests
//! (`crates/*/tests/corpus.rs`) include these files and replay the committed corpus through them.

pub mod cm;
pub mod input;
pub mod rdma_cm;
pub mod receiver;
pub mod requester;
pub mod responder;
pub mod scenario;
pub mod tcp_stream;
pub mod wire;
