// SPDX-License-Identifier: Apache-2.0
//! Records acknowledged and stored fragments, one by one, and the accounts of one life of a server.
//! Promise: an acknowledged fragment is stored, or counted for its board with the reason why not.

use std::cell::{Cell, RefCell};
use std::io::{Error, ErrorKind};
use std::rc::Rc;

use penstock_readout::session::SessionReport;
use penstock_readout::{Event, EventSink, StoreError};

use super::wire::Random;

/// The payload of a fragment, 0 to 699 bytes: every pair of event and board has its own.
pub fn payload(event: u64, board: u16) -> Vec<u8> {
    let mut random = Random(event << 16 | u64::from(board));
    let len = random.below(700) as usize;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The events of all servers' lives together; a bit for each board, so at most 64.
#[derive(Default)]
pub struct Ledger {
    acknowledged: Vec<u64>,
    stored: Vec<u64>,
    /// Events that were stored whole, by number.
    complete: Vec<bool>,
    /// Fragments by board that some server has counted and not stored, or held when it was killed.
    accounted: Vec<u64>,
}

fn grown<T: Clone + Default>(list: &mut Vec<T>, event: u64) -> &mut T {
    let at = usize::try_from(event).expect("events of a run");
    if list.len() <= at {
        list.resize(at + 1, T::default());
    }
    &mut list[at]
}

impl Ledger {
    pub fn acknowledged(&mut self, board: u16, event: u64) {
        *grown(&mut self.acknowledged, event) |= 1 << board;
    }

    /// The events from `from` on and before `until` that are not stored whole.
    pub fn incomplete(&self, from: u64, until: u64) -> Vec<u64> {
        (from..until).filter(|event| !self.complete.get(*event as usize).is_some_and(|whole| *whole)).collect()
    }

    pub fn complete(&self) -> u64 {
        self.complete.iter().filter(|whole| **whole).count() as u64
    }

    /// Nothing that was acknowledged is missing without having been counted.
    pub fn check(&self, boards: u16) {
        for board in 0..boards {
            let bit = 1u64 << board;
            let stored = |event: usize| self.stored.get(event).is_some_and(|bits| bits & bit != 0);
            let lost = (0..self.acknowledged.len()).filter(|at| self.acknowledged[*at] & bit != 0 && !stored(*at));
            let (lost, accounted) = (lost.count() as u64, self.accounted[usize::from(board)]);
            assert!(
                lost <= accounted,
                "board {board}: {lost} acknowledged fragments are gone, {accounted} are counted"
            );
        }
    }

    /// Closes the books of one server: `stored` is its sink, `killed` whether it had no time to store what it held.
    pub fn close(&mut self, report: &SessionReport, stored: &Stored, killed: bool) {
        let (receiver, builder) = (&report.readout.receiver, &report.readout.builder);
        let of_rings = |board: usize| report.readout.rings.get(board).map_or(0, |ring| ring.completions_refused);
        let came: u64 = report.boards.iter().map(|board| board.messages).sum();
        let refused: u64 = (0..report.boards.len()).map(of_rings).sum();
        let unreadable: u64 = report.boards.iter().map(|board| board.events.unreadable()).sum();
        let of_receiver = receiver.fragments_malformed + receiver.fragments_crc_error + receiver.fragments_wrong_source;
        assert_eq!(unreadable, of_receiver, "each unreadable message is counted for its board");
        let seen = receiver.fragments_good + unreadable + refused;
        // Before the first event is agreed messages are held in their slots; who is killed then loses them.
        let unseen = came - seen;
        assert!(killed || unseen == 0, "{unseen} messages were never looked at");
        let classified = builder.fragments_accepted + builder.strays() + builder.before_begin + builder.after_end;
        let twice = builder.duplicates + builder.resent_after_reconnect;
        assert_eq!(receiver.fragments_good, classified + twice, "each fragment is counted once: {builder:?}");
        let strays: u64 = report.boards.iter().map(|board| board.events.strays()).sum();
        assert_eq!(strays, builder.strays(), "each stray is counted for its board");
        let held = builder.fragments_accepted - stored.fragments;
        assert!(killed || held == 0, "{held} fragments were taken and never stored");
        let missing: u64 = report.boards.iter().map(|board| board.events.events_missing).sum();
        assert_eq!(missing, stored.missing, "each event that lacks a board is counted for it");
        self.accounted.resize(report.boards.len(), 0);
        for (at, board) in report.boards.iter().enumerate() {
            let rejected = board.events.strays() + board.events.unreadable() + of_rings(at);
            self.accounted[at] += rejected + builder.before_begin + builder.after_end + unseen + held;
        }
    }
}

/// One life's storage: compares every byte, and has no room while a test sets so.
pub struct Stored {
    ledger: Rc<RefCell<Ledger>>,
    pub full: Rc<Cell<bool>>,
    next: Option<u64>,
    pub fragments: u64,
    pub missing: u64,
}

impl Stored {
    pub fn new(ledger: Rc<RefCell<Ledger>>, full: Rc<Cell<bool>>) -> Stored {
        Stored { ledger, full, next: None, fragments: 0, missing: 0 }
    }
}

impl EventSink for Stored {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.full.get() {
            let source = Error::from(ErrorKind::StorageFull);
            return Err(StoreError::Io { file: "disk".into(), action: "written", source });
        }
        assert!(self.next.is_none_or(|next| next == event.number), "event {} after {:?}", event.number, self.next);
        self.next = Some(event.number + 1);
        let mut ledger = self.ledger.borrow_mut();
        for fragment in event.fragments {
            let sent = payload(event.number, fragment.source);
            assert!(fragment.payload == sent, "event {} of board {}", event.number, fragment.source);
            *grown(&mut ledger.stored, event.number) |= 1 << fragment.source;
        }
        self.fragments += event.fragments.len() as u64;
        self.missing += event.missing.len() as u64;
        *grown(&mut ledger.complete, event.number) |= event.complete;
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
