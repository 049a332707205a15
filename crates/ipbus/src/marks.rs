// SPDX-License-Identifier: Apache-2.0
//! How long operators' marks of boards have not moved, over all fleets of a program.

use penstock_units::Time;
use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The words of a mark.
type Words = [u32; 3];

/// The last mark that was seen of each board, and since when; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Marks(Arc<Mutex<HashMap<SocketAddrV4, (Words, Instant)>>>);

impl Marks {
    /// A board has this mark now; for how long it is known to have it.
    pub(crate) fn unmoved(&self, board: SocketAddrV4, mark: Words) -> Time {
        let now = Instant::now();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, since) = seen.entry(board).or_insert((mark, now));
        if *last != mark {
            (*last, *since) = (mark, now);
        }
        Time::from_duration(now - *since)
    }
}
