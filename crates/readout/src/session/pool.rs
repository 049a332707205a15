// SPDX-License-Identifier: Apache-2.0
//! One pool of slots for the SENDs of all boards (a shared receive queue), and who is served when it is dry.
//! Promise: a pool that is full of fragments of events which wait for other boards lets these boards in.
//! Source: IBTA 10.2.9, 9.7.5.2.8 (RNR NAK); a NIC tells the boards of a shared queue no credits, so RNR NAK is all it has.
//!
//! The shared queue of a NIC serves whoever asks first. Boards that are ahead can so take every slot and every copy, and
//! the fragments that would complete the events in them never come in. Then, and only then: boards that the next event
//! waits for are asked to come back soon, all others late, and a few slots of a reserve are posted at a time. Back ends
//! that keep room for every board (`SharedPool::keeps_room`) need none of this.

use std::num::NonZeroU16;

use penstock_wire::RnrTimer;

use super::{Core, PS_PER_MS};
use crate::backend::{Backend, BackendError, PoolSpec, SharedPool};
use crate::sys::{Pages, RingMemory};
use crate::{EventSink, PoolConfig, RingConfig};

/// What boards are told that the next event waits for, and what the others.
const SOON_US: u32 = 80;
const LATE_US: u32 = 20_480;
/// How long the pool must not have been dry until all boards are equal again.
const CALM_PS: u64 = 100 * PS_PER_MS;
/// Within this every board has asked again, and was told when to come back.
const TOLD_PS: u64 = 5 * PS_PER_MS;
/// A board that has not come back within this is dead, and events wait for it no longer than for others.
const ALIVE_PS: u64 = 2000 * PS_PER_MS;
/// From the first board that is up, how long the others are waited for before the first receives are posted: who comes
/// first would have the pool for itself.
const TOGETHER_PS: u64 = 1000 * PS_PER_MS;
/// How often a dry pool is looked at.
pub(super) const LOOK_PS: u64 = PS_PER_MS;

/// The size of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSize {
    /// At least two a board: an event that is stored, and one that comes in.
    pub slots: u32,
    /// Fragments that may be copied out of it while they wait for others; memory for them is taken when it is needed.
    pub copies: u32,
}

/// State of the pool, as a session sees it.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) config: PoolConfig,
    keeps_room: bool,
    /// Boards that come first; none while all are equal.
    first: Option<Vec<u16>>,
    dry_at_ps: u64,
    /// When boards were told last.
    told_ps: u64,
    first_up_ps: Option<u64>,
    open: bool,
    /// Nothing more is drawn from the reserve before.
    due_ps: u64,
    /// That it is full for good was said.
    told_full: bool,
    /// How often receives have run low, and how many of the reserve were posted.
    pub(super) ran_low: u64,
    pub(super) drawn: u64,
}

impl Pool {
    /// The memory of a pool, and its queue.
    pub(super) fn make(
        backend: &mut dyn Backend,
        shape: RingConfig,
        pages: Pages,
        copies: u32,
        boards: NonZeroU16,
    ) -> Result<(RingConfig, RingMemory, Pool), super::SessionError> {
        let memory = RingMemory::allocate(shape.len(), pages);
        let pool = || "the pool of all boards".to_owned();
        let memory = memory.map_err(|source| super::SessionError::Memory { board: pool(), source })?;
        let (mapping, max_receives) = (memory.mapping().clone(), shape.slots);
        let spec = PoolSpec { memory: mapping, len: shape.len(), max_receives, low: max_receives / 8 };
        let SharedPool { base, keeps_room } = backend.share_receives(&spec)?;
        // What one event needs of the boards is always left, and a quarter of a large pool.
        let reserve = if keeps_room { 0 } else { u32::from(boards.get()).max(shape.slots / 4) };
        let pool = Pool {
            config: PoolConfig { reserve, copies },
            keeps_room,
            first: None,
            dry_at_ps: 0,
            told_ps: 0,
            first_up_ps: None,
            open: keeps_room,
            due_ps: 0,
            told_full: false,
            ran_low: 0,
            drawn: 0,
        };
        Ok((RingConfig { va: base, rkey: 0, ..shape }, memory, pool))
    }

    /// Whether it must be looked at again soon.
    pub(super) fn looks<S: EventSink>(&self, core: &Core<S>) -> bool {
        !self.keeps_room && Pool::is_dry(core)
    }

    /// Whether no board may find a receive: each may have taken one that it has not filled yet.
    fn is_dry<S: EventSink>(core: &Core<S>) -> bool {
        core.receiver.credits(0) as usize <= core.boards.len()
    }

    /// Whether it is, and nothing comes any more of what had begun to.
    pub(super) fn is_stuck<S: EventSink>(&self, core: &Core<S>) -> bool {
        let waited_ps = core.now_ps.saturating_sub(core.last_ps);
        core.first_ps.is_some() && self.looks(core) && waited_ps > wait_ps(core.rnr_timer)
    }

    /// Looks after it.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn turn<S: EventSink>(&mut self, core: &mut Core<S>) -> Result<(), BackendError> {
        if !self.looks(core) {
            if self.first.is_some() && core.now_ps > self.dry_at_ps + CALM_PS {
                self.first = None;
                let timer = core.rnr_timer;
                set_timers(core, |_| timer);
            }
            return Ok(());
        }
        self.dry_at_ps = core.now_ps;
        let Some(missing) = core.receiver.waits_for().filter(|_| self.is_stuck(core)) else { return Ok(()) };
        if self.first.as_ref() != Some(&missing) {
            let (soon, late) = (RnrTimer::at_least(SOON_US), RnrTimer::at_least(LATE_US));
            set_timers(core, |board| if missing.contains(&board) { soon } else { late });
            self.told_ps = core.now_ps;
            self.due_ps = core.now_ps + TOLD_PS.max(2 * wait_ps(core.rnr_timer));
            self.first = Some(missing);
        } else if core.now_ps >= self.due_ps {
            let mut receives = Vec::new();
            // One for each; those that nobody has taken yet are still there.
            let wanted = missing.len().saturating_sub(core.receiver.credits(0) as usize);
            core.receiver.draw_reserve(wanted, |wr| receives.push(wr));
            self.drawn += receives.len() as u64;
            if !receives.is_empty() {
                core.backend.post_shared(&receives)?;
            }
        }
        if core.receiver.pool_can_let_in() {
            if core.now_ps < self.told_ps + ALIVE_PS {
                core.receiver.restart_patience(core.now_ps);
            }
        } else if !std::mem::replace(&mut self.told_full, true) {
            let missing = self.first.iter().flatten().map(|board| core.boards[usize::from(*board)].spec.name.as_str());
            tracing::warn!(
                "the pool and its copies are full of events that wait for {}: those that are older than --event-timeout \
                 are given up; raise --srq or --srq-copies, or give boards rings",
                missing.collect::<Vec<_>>().join(", ")
            );
        }
        Ok(())
    }

    /// Whether receives may be posted.
    pub(super) fn is_open<S: EventSink>(&mut self, core: &Core<S>) -> bool {
        let up = core.boards.iter().filter(|board| board.is_up()).count();
        if up > 0 {
            let first_up_ps = *self.first_up_ps.get_or_insert(core.now_ps);
            self.open |= up == core.boards.len() || core.now_ps > first_up_ps + TOGETHER_PS;
        }
        self.open
    }

    /// Asks the device whether receives have run low.
    pub(super) fn listen<S: EventSink>(&mut self, core: &mut Core<S>) {
        let more = core.backend.ran_low();
        if more > 0 && self.ran_low == 0 {
            tracing::warn!("the pool of receives runs low: boards will be held back together; is --srq large enough?");
        }
        self.ran_low += more;
    }
}

fn wait_ps(timer: RnrTimer) -> u64 {
    const PS_PER_US: u64 = 1_000_000;
    u64::from(timer.microseconds()) * PS_PER_US
}

fn set_timers<S: EventSink>(core: &mut Core<S>, timer: impl Fn(u16) -> RnrTimer) {
    for board in (0..core.boards.len()).filter(|board| core.boards[*board].is_up()) {
        let board = board as u16;
        if let Err(error) = core.backend.set_rnr_timer(board, timer(board)) {
            tracing::debug!(board, %error, "a queue pair in error keeps its wait");
        }
    }
}
