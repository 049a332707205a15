// SPDX-License-Identifier: Apache-2.0
//! What several commands are told: numbers, patterns, the file of servers.

pub mod allowed;
pub mod farm;
#[cfg(test)]
pub mod line;
pub mod number;
pub mod pattern;
