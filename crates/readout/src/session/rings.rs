// SPDX-License-Identifier: Apache-2.0
//! The memory that boards write to: a ring for each, or one pool, and the queue pairs on it.
//! Promise: memory is registered before a board can be connected.

use std::num::NonZeroU16;

use super::board::Board;
use super::config::SessionConfig;
use super::error::SessionError;
use super::pool::Pool;
use crate::backend::{Backend, QpSpec};
use crate::ring::RingConfig;
use crate::sys::RingMemory;

/// The rings, and the boards that have them.
pub(super) struct Rings {
    pub(super) rings: Vec<RingConfig>,
    pub(super) memories: Vec<RingMemory>,
    pub(super) boards: Vec<Board>,
    pub(super) specs: Vec<QpSpec>,
    pub(super) pool: Option<Pool>,
}

impl Rings {
    /// Allocates memory of this shape and creates the queue pairs of all boards, which it takes out of `config`.
    pub(super) fn make(
        backend: &mut dyn Backend,
        shape: RingConfig,
        config: &mut SessionConfig,
        sources: NonZeroU16,
    ) -> Result<Rings, SessionError> {
        let (mut rings, mut memories, mut boards, mut specs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut pool = None;
        if let Some(size) = config.pool {
            let (ring, memory, made) = Pool::make(backend, shape, config.pages, size.copies, sources)?;
            rings.push(ring);
            memories.push(memory);
            pool = Some(made);
        }
        for (spec, board) in std::mem::take(&mut config.boards).into_iter().zip(0..) {
            if pool.is_none() {
                let memory = RingMemory::allocate(shape.len(), config.pages);
                memories.push(memory.map_err(|source| SessionError::Memory { board: spec.name.clone(), source })?);
            }
            let memory = memories[memories.len() - 1].mapping().clone();
            let qp = QpSpec { board, memory, len: shape.len(), max_receives: shape.slots };
            let local = backend.create_qp(&qp)?;
            if pool.is_none() {
                rings.push(RingConfig { va: local.ring, rkey: local.rkey, ..shape });
            }
            specs.push(qp);
            boards.push(Board::new(spec, config.cm, local));
        }
        Ok(Rings { rings, memories, boards, specs, pool })
    }
}
