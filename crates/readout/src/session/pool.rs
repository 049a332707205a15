// SPDX-License-Identifier: Apache-2.0
//! One pool of slots for the SENDs of all boards.
//! Promise: the pool exists before the queue pairs that use it; when it runs low, this is counted, and reported once as
//! a warning. The back end decides which board may take a slot (`backend::lending`).

use std::num::NonZeroU16;

use super::core::Core;
use super::error::SessionError;
use crate::backend::{Backend, PoolSpec};
use crate::receiver::PoolConfig;
use crate::ring::RingConfig;
use crate::sink::EventSink;
use crate::sys::{Pages, RingMemory};

/// The size of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSize {
    /// Slots, at least two a board: an event that is stored, and one that comes in.
    pub slots: u32,
    /// Fragments that may be copied out of it while they wait for others; memory for them is taken when it is needed.
    pub copies: u32,
}

/// State of the pool, as a session sees it.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) config: PoolConfig,
    /// How often receives have run low.
    pub(super) ran_low: u64,
}

impl Pool {
    /// The memory of a pool, and its place in the back end.
    pub(super) fn make(
        backend: &mut dyn Backend,
        shape: RingConfig,
        pages: Pages,
        copies: u32,
        boards: NonZeroU16,
    ) -> Result<(RingConfig, RingMemory, Pool), SessionError> {
        let memory = RingMemory::allocate(shape.len(), pages);
        let pool = || "the pool of all boards".to_owned();
        let memory = memory.map_err(|source| SessionError::Memory { board: pool(), source })?;
        let (mapping, max_receives, boards) = (memory.mapping().clone(), shape.slots, boards.get());
        let spec = PoolSpec { memory: mapping, len: shape.len(), max_receives, low: max_receives / 8, boards };
        let base = backend.share_receives(&spec)?;
        let pool = Pool { config: PoolConfig { copies }, ran_low: 0 };
        Ok((RingConfig { va: base, rkey: 0, ..shape }, memory, pool))
    }

    /// Checks with the back end whether receives have run low.
    pub(super) fn listen<S: EventSink>(&mut self, core: &mut Core<S>) {
        let more = core.backend.ran_low();
        if more > 0 && self.ran_low == 0 {
            tracing::warn!("the pool of receives runs low: boards will be held back together; is --srq large enough?");
        }
        self.ran_low += more;
    }
}
