// SPDX-License-Identifier: Apache-2.0
//! What a connection manager has done.

/// Counts since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RdmaCmCounters {
    /// REQs that were passed to the owner.
    pub requests: u64,
    /// REJs sent.
    pub refused: u64,
    /// Repeated messages that were answered again.
    pub repeated: u64,
    /// Messages of addresses that may not open connections.
    pub strangers: u64,
    /// Messages for connections that do not exist.
    pub unknown: u64,
    /// Messages that do not fit the state of their connection.
    pub ignored: u64,
    /// Answers to the last three kinds that were left out because too many waited.
    pub suppressed: u64,
    /// Connections that came up.
    pub established: u64,
    /// Connections that came to their end after that.
    pub disconnected: u64,
    /// Connections given up because the peer did not answer.
    pub silent: u64,
}
