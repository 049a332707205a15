// SPDX-License-Identifier: Apache-2.0
//! What the fuzz targets do with a fuzzer's bytes; `fuzz_targets/` only hands them over.
//! Promise: `run` panics exactly when a promise of ours is broken. The crates' own tests (`crates/*/tests/corpus.rs`)
//! include these files and replay the committed corpus through them.

pub mod cm;
pub mod input;
pub mod receiver;
pub mod requester;
pub mod responder;
pub mod scenario;
pub mod tcp_stream;
pub mod wire;
