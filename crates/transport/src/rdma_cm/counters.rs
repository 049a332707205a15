// SPDX-License-Identifier: Apache-2.0
//! What a connection manager has done.

use super::RdmaCmInboxCounters;
use crate::by_name::by_name;

/// Counts since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RdmaCmCounters {
    /// REQs that were passed to the owner.
    pub requests: u64,
    /// REJs sent.
    pub refused: u64,
    /// Repeated messages that were answered again.
    pub repeated: u64,
    /// REQs of addresses that may not open connections.
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

by_name!(RdmaCmCounters: requests, refused, repeated, strangers, unknown, ignored, suppressed, established, disconnected, silent);

impl RdmaCmCounters {
    /// The counters of a connection manager and its inbox, as `rdma_cm_<name>`; without those of strangers, which are
    /// counted for every connection manager.
    pub fn with_inbox(&self, inbox: &RdmaCmInboxCounters) -> Vec<(String, u64)> {
        let RdmaCmInboxCounters { malformed, dropped, .. } = *inbox;
        let of_inbox = [("malformed", malformed), ("dropped", dropped)];
        let all = self.named().into_iter().chain(of_inbox).filter(|(name, _)| *name != "strangers");
        all.map(|(name, n)| (format!("rdma_cm_{name}"), n)).collect()
    }
}
