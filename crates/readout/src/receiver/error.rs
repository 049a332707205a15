// SPDX-License-Identifier: Apache-2.0
//! Why a receiver cannot be made.

use crate::ring::RingConfigError;

/// Why a receiver cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiverError {
    #[error("board {board}: {reason}")]
    Ring { board: usize, reason: RingConfigError },
    #[error("the rings of boards {a} and {b} overlap; give each its own addresses (RingConfig::for_board)")]
    Overlap { a: usize, b: usize },
    #[error("{rings} rings for {sources} sources; there must be one ring per source")]
    RingCount { rings: usize, sources: u16 },
}
