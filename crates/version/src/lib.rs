// SPDX-License-Identifier: Apache-2.0
//! The version and the commit that `penstock --version` prints. A crate of its own, so that a commit compiles only this
//! crate and the thin binary again.

/// Version of the workspace, and the commit in parentheses where it is known: "0.1.0 (0123456789ab)".
pub const VERSION: &str = env!("PENSTOCK_VERSION");
