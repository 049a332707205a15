// SPDX-License-Identifier: Apache-2.0
//! The settings of a session.

use penstock_transport::{CmListenerConfig, CmOpenerConfig, Mtu};
use penstock_units::{Rate, Time};
use penstock_wire::RnrTimer;

use super::board::BoardSpec;
use super::pool::PoolSize;
use crate::backend::PollMode;
use crate::builder::{BuilderConfig, Share};
use crate::ring::RingConfig;
use crate::sys::Pages;

/// How boards and server agree on their queue pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// FEROCE's connection manager, over UDP.
    Feroce,
    /// The standard one (RDMA CM): boards open, to this port.
    Rdma(u16),
    /// Lines of JSON at this TCP port.
    Exchange(u16),
}

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Board `i` is source `i` of the event builder.
    pub boards: Vec<BoardSpec>,
    /// Slots of each board's ring, and bytes of a slot.
    pub slots: u32,
    pub slot_bytes: u32,
    /// Boards SEND into one pool, and have no rings: memory for what is under way and not for what might be.
    pub pool: Option<PoolSize>,
    pub pages: Pages,
    /// `sources` is set to the number of boards, `window` to at least the slots.
    pub builder: BuilderConfig,
    /// The first event is the first of the boards that agree, and not that of `builder`: for a run that is under way.
    pub find_first_event: bool,
    /// This server's part of the events, as announced until now; none: all events are its own.
    pub shares: Vec<Share>,
    pub consumer_rate: Option<Rate>,
    pub poll: PollMode,
    pub mtu: Mtu,
    /// Wait that our RNR NAKs ask for.
    pub rnr_timer: RnrTimer,
    pub cm: CmOpenerConfig,
    pub manager: Manager,
    /// Wait before a board that failed is opened again, ps.
    pub reopen: Time,
    /// How long a board that opens its connection itself may take for all steps of it.
    pub half_open: Time,
    /// How long events wait for a board that has not come up yet, ps; one that was up is waited for as long as an
    /// event.
    pub bring_up: Time,
    /// How long boards must have been silent at the end, ps: the last acknowledgement may be lost, and a board asks for
    /// it again when its ACK timer expires.
    pub linger: Time,
}

impl Default for SessionConfig {
    /// No boards; rings of 64 slots of 128 KiB, hybrid polling, MTU 4096, RNR after 0.64 ms, boards opened every
    /// second, waited for during 5 s, 5 s for a board to finish opening, and 0.3 s of silence at the end (ACK timers of
    /// 268 ms, code 16).
    fn default() -> Self {
        let RingConfig { slots, slot_bytes, .. } = RingConfig::default();
        SessionConfig {
            boards: Vec::new(),
            slots,
            slot_bytes,
            pool: None,
            pages: Pages::Normal,
            builder: BuilderConfig::default(),
            find_first_event: true,
            shares: Vec::new(),
            consumer_rate: None,
            poll: PollMode::default(),
            mtu: Mtu::B4096,
            rnr_timer: RnrTimer::from_code(12),
            cm: CmOpenerConfig::default(),
            manager: Manager::Feroce,
            reopen: Time::from_ms(1000),
            half_open: CmListenerConfig::new(1).half_open,
            bring_up: Time::from_ms(5000),
            linger: Time::from_ms(300),
        }
    }
}
