// SPDX-License-Identifier: Apache-2.0
//! The state that the connection manager works on: back end, receiver and boards; passes completions to the receiver.
//! Promise: messages acknowledged to a board are delivered before its slots are written again, even if its queue pair
//! has failed. Source: IBTA 9.7.5.1 (an acknowledgement means that the message has arrived).

use penstock_transport::{CmAddress, CmEvent, CmListener, LifeSign, Mtu, RecvOpcode, RecvStatus};
use penstock_units::Time;
use penstock_wire::{CmInfo, RnrTimer};

use super::board::{Board, Sign, IN_ERROR};
use super::error::SessionError;
use super::first_event::FirstEvent;
use crate::backend::{Backend, BackendError, Completion, LinkChange, QpSpec, SessionClock};
use crate::receiver::Receiver;
use crate::sink::{EventSink, StoreError};

/// Less than the ACK timer of boards, after which they send again what nobody took.
const LATE: Time = Time::from_ms(50);
/// Added to faults of boards that share a pool.
const SEND_ONLY: &str = "; boards must SEND into a shared pool: a WRITE needs a ring of the board's own";

/// The state that the connection manager works on, separate from the listener, which calls it.
pub(super) struct Core<S> {
    pub(super) backend: Box<dyn Backend>,
    pub(super) receiver: Receiver<S>,
    pub(super) boards: Vec<Board>,
    pub(super) memory: Vec<QpSpec>,
    pub(super) clock: SessionClock,
    pub(super) now: Time,
    pub(super) mtu: Mtu,
    pub(super) rnr_timer: RnrTimer,
    pub(super) reopen: Time,
    /// Until then boards that have never come up are waited for.
    pub(super) bring_up: Time,
    /// All boards share one pool.
    pub(super) shared: bool,
    /// No receives are posted any more.
    pub(super) ending: bool,
    /// Received data that is not delivered yet.
    pub(super) completions: Vec<Completion>,
    /// None once the first event is known.
    pub(super) first_event: Option<FirstEvent>,
    /// Time of the first message.
    pub(super) first_at: Option<Time>,
    pub(super) last_at: Time,
}

/// A completion of a pool: where it lies the receive says. A WRITE WITH IMMEDIATE of no bytes, which needs no key, has
/// put nothing there, whatever it says.
fn into_pool(done: Completion) -> Completion {
    let byte_len = if done.opcode == RecvOpcode::Send { done.byte_len } else { 0 };
    Completion { opcode: RecvOpcode::Send, byte_len, ..done }
}

fn deliver<S: EventSink>(receiver: &mut Receiver<S>, now: Time, done: &Completion) -> Result<(), StoreError> {
    receiver.on_checked(now, done.board, done.slot(), done.byte_len, done.payload_crc)
}

impl<S: EventSink> Core<S> {
    /// Reads the clock, which shows `expected` unless this process was given no processor, or something else held it up.
    pub(super) fn advance(&mut self, expected: Time) {
        self.now = self.clock.now();
        if self.now > expected.saturating_add(LATE) {
            self.receiver.leap(self.now);
        }
    }

    /// Gives what has come to the receiver. Whether a receive has ended without a message.
    ///
    /// # Errors
    /// Those of the sink.
    pub(super) fn deliver(&mut self) -> Result<bool, StoreError> {
        let mut failed = false;
        let mut came = std::mem::take(&mut self.completions);
        for done in came.drain(..) {
            let done = if self.shared { into_pool(done) } else { done };
            if done.status != RecvStatus::Success {
                failed = true;
                if self.shared {
                    self.receiver.unfilled(done.receive());
                }
                continue;
            }
            self.boards[usize::from(done.board)].message(self.now, done.byte_len);
            self.first_at.get_or_insert(self.now);
            self.last_at = self.now;
            match &mut self.first_event {
                Some(search) => search.hold(self.now, done, self.receiver.event_in(done.board, done.slot())),
                None => deliver(&mut self.receiver, self.now, &done)?,
            }
        }
        self.completions = came; // its memory
        if let Some(search) = &mut self.first_event {
            self.receiver.following().for_each(|(board, event)| search.follows(usize::from(board), event));
        }
        if let Some((event, held)) = self.first_event.as_mut().and_then(|search| search.found(self.now)) {
            self.first_event = None;
            self.begin(event, held)?;
        }
        Ok(failed)
    }

    /// Waits no longer for the first message of every board: what is here decides which event is the first.
    ///
    /// # Errors
    /// Those of the sink.
    pub(super) fn end_search(&mut self) -> Result<(), StoreError> {
        let Some(mut search) = self.first_event.take() else { return Ok(()) };
        let (event, held) = search.found(Time::MAX).unwrap_or((self.receiver.next_event(), Vec::new()));
        self.begin(event, held)
    }

    /// The run ends before this event, or without one, or if that is later, with the last event that has begun. Nothing
    /// that follows is acknowledged. Where a NIC acknowledges by itself, queue pairs that could take more end; those of
    /// boards that lack something are opened again.
    ///
    /// # Errors
    /// Those of the sink and of the device.
    pub(super) fn end(&mut self, before: Option<u64>, listener: &mut CmListener) -> Result<(), SessionError> {
        let mut cut = Vec::new();
        if !self.backend.admits_before_ack() && !self.backend.connects_itself() {
            let takes_more = |i: &usize| self.boards[*i].has_qp() && self.receiver.takes_more(*i as u16, before);
            cut.extend((0..self.boards.len()).filter(takes_more));
        }
        for &i in &cut {
            self.backend.close_qp(i as u16, &mut self.completions)?;
            self.boards[i].qp_gone();
        }
        self.deliver()?;
        match before {
            // The first event may still be searched for.
            Some(event) => self.receiver.end_before(event),
            None => {
                self.end_search()?;
                self.receiver.end_now();
            }
        }
        for i in cut.into_iter().filter(|i| !self.boards[*i].is_waiting()).collect::<Vec<_>>() {
            listener.forget(i);
            self.boards[i].cut(self.now);
        }
        Ok(())
    }

    /// Reports the boards for which events no longer wait, and those for which they wait again.
    pub(super) fn note_standings(&mut self) {
        while let Some(notice) = self.receiver.poll_notice() {
            self.boards[usize::from(notice.source)].noticed(&notice);
        }
    }

    /// Whether messages of a board are here that the receiver has not seen: their slots must not be written again.
    fn holds_back(&self, board: u16) -> bool {
        let of_board = |done: &Completion| done.board == board && done.status == RecvStatus::Success;
        self.completions.iter().any(of_board)
            || self.first_event.as_ref().is_some_and(|search| search.held_of(board) > 0)
    }

    /// Whether a board has no connection, and nothing of it can be on its way.
    pub(super) fn is_away(&self, i: usize) -> bool {
        self.boards[i].is_away() && !self.holds_back(i as u16)
    }

    /// The first event was announced: nothing is looked for.
    ///
    /// # Errors
    /// Those of the sink.
    pub(super) fn begin_at(&mut self, event: u64) -> Result<(), StoreError> {
        let held = self.first_event.take().and_then(|mut search| search.found(Time::MAX));
        self.begin(event, held.map(|(_, held)| held).unwrap_or_default())
    }

    /// The first event is known, and what has come of it and of others.
    fn begin(&mut self, event: u64, held: Vec<Completion>) -> Result<(), StoreError> {
        let following: Vec<_> = self.receiver.following().collect();
        self.receiver.begin_at(event);
        held.iter().try_for_each(|done| deliver(&mut self.receiver, self.now, done))?;
        following.into_iter().for_each(|(board, event)| self.receiver.offered(board, event));
        Ok(())
    }

    /// Requests that came again, of all boards, where the back end counts them.
    pub(super) fn retries(&mut self) -> u64 {
        const AGAIN: &str = "duplicate_request";
        let boards = (0..self.boards.len()).flat_map(|board| self.backend.board_counters(board as u16));
        let of_boards: u64 = boards.filter(|(name, _)| name == AGAIN).map(|(_, count)| count).sum();
        let of_device = self.backend.counters().into_iter().find(|(name, _)| name == AGAIN);
        of_boards + of_device.map_or(0, |(_, count)| count)
    }

    /// How many messages of a pool a board may still fill before the run's end; those that the receiver has not seen are
    /// among them.
    fn bound(&mut self, board: u16) -> Result<(), BackendError> {
        if self.backend.admits_before_ack() {
            return Ok(());
        }
        let is_here = |done: &&Completion| done.board == board && done.status == RecvStatus::Success;
        let waiting = self.completions.iter().filter(is_here).count();
        let searched = self.first_event.as_ref().map_or(0, |search| search.held_of(board));
        let most = self.receiver.short_of_end(board).saturating_sub((waiting + searched) as u64);
        self.backend.bound(board, most)
    }

    pub(super) fn post_receives(&mut self) -> Result<(), BackendError> {
        if self.ending {
            return Ok(());
        }
        let mut receives = Vec::new();
        if self.shared {
            (0..self.boards.len() as u16).try_for_each(|board| self.bound(board))?;
            self.receiver.take_receives(0, |wr| receives.push(wr));
            return if receives.is_empty() { Ok(()) } else { self.backend.post_shared(&receives) };
        }
        for board in 0..self.boards.len() as u16 {
            self.receiver.take_receives(board, |wr| receives.push(wr));
            if !receives.is_empty() && self.boards[usize::from(board)].has_qp() {
                self.backend.post_receives(board, &receives)?;
            }
            receives.clear();
        }
        Ok(())
    }

    pub(super) fn event(&mut self, i: usize, event: CmEvent, listener: &mut CmListener) {
        let now = self.now;
        match event {
            CmEvent::Open(peer) => match self.connect(i, &peer) {
                Ok(()) => self.came_up(i, listener),
                Err(error) => self.boards[i].fail(now, error.to_string()),
            },
            CmEvent::Closed => {
                listener.forget(i);
                self.boards[i].closed(now, self.reopen);
            }
            CmEvent::Failed(failure) => {
                listener.forget(i);
                let twin = self.twin(i).map(|name| format!("; {name} is up at the same address")).unwrap_or_default();
                let trouble = self.boards[i].why(&failure) + &twin;
                self.boards[i].fail(now, trouble);
            }
        }
    }

    /// Another board at the address of this one, which is up: queue pairs of one board are sources of their own, but
    /// two boards may have been given one address by mistake.
    fn twin(&self, i: usize) -> Option<&str> {
        let ip = self.boards[i].spec.ip;
        let twin = self.boards.iter().enumerate().find(|(k, board)| *k != i && board.spec.ip == ip && board.is_up());
        twin.map(|(_, board)| board.spec.name.as_str())
    }

    pub(super) fn connect(&mut self, i: usize, peer: &CmInfo) -> Result<(), BackendError> {
        let (mtu, rnr_timer) = (self.mtu, self.rnr_timer);
        let peer = crate::backend::PeerQp { qpn: peer.qpn, psn: peer.psn, ip: peer.ip, mtu, rnr_timer };
        self.boards[i].used();
        if self.shared {
            self.bound(i as u16)?;
        }
        self.backend.connect(i as u16, &peer)
    }

    /// A board that this server has opened may send, and may ask here for its connection to be closed.
    fn came_up(&mut self, i: usize, listener: &mut CmListener) {
        let board = &self.boards[i];
        let from = CmAddress { ip: board.spec.ip, port: board.opener.port() };
        listener.adopt(i, board.local_info(), board.opener.peer(), from);
        self.mark_up(i);
    }

    /// A board may send.
    pub(super) fn mark_up(&mut self, i: usize) {
        self.boards[i].up();
        let (board, now) = (i as u16, self.now);
        if self.boards[i].lives == 1 {
            // What it sends first shows what it does not have.
            self.receiver.reconnected(board);
        }
        self.receiver.set_connected(now, board, true);
        if let Some(search) = &mut self.first_event {
            search.connected(now, i, true);
        }
    }

    /// Passes signs of life on, and asks boards for which events wait for one.
    pub(super) fn look_for_life(&mut self) {
        let now = self.now;
        for (i, board) in self.boards.iter_mut().enumerate().filter(|(_, board)| board.is_up()) {
            let seen = self.backend.silent_for(i as u16).map(|ago| now.saturating_sub(ago));
            let seen = seen.and_then(|at| board.sign_at(at));
            if seen == Some(Sign::Again) {
                self.receiver.reached(now, i as u16);
            }
            let alive = (seen == Some(Sign::Alive)).then_some(LifeSign::Present);
            let sign = alive.or_else(|| board.opener.take_life());
            sign.into_iter().for_each(|sign| self.receiver.alive(now, i as u16, sign == LifeSign::Returned));
        }
        for at in 0..self.receiver.suspects().len() {
            let board = &mut self.boards[usize::from(self.receiver.suspects()[at])];
            if board.is_up() {
                board.opener.request_life_sign(now);
            }
        }
    }

    /// The connection of a board has changed, of a back end that takes connections itself.
    pub(super) fn link_changed(&mut self, board: u16, change: LinkChange) {
        let i = usize::from(board);
        match change {
            LinkChange::Up => {
                if self.boards[i].lives > 0 {
                    self.receiver.reconnected(board);
                }
                self.mark_up(i);
            }
            LinkChange::Down(why) => {
                self.boards[i].lost(self.now, why);
                self.report_if_lost(i);
            }
            LinkChange::Refused(why) => {
                let trouble = format!("{}: its stream was ended: {why}", self.boards[i].spec.ip);
                self.boards[i].refused = Some(why);
                self.boards[i].lost(self.now, trouble);
                self.report_if_lost(i);
            }
        }
    }

    /// Tells the receiver of a board that is down and has nothing here that is not delivered.
    fn report_if_lost(&mut self, i: usize) {
        let board = &self.boards[i];
        if board.is_up() {
            return;
        }
        if let Some(search) = &mut self.first_event {
            search.connected(self.now, i, false);
        }
        match board.lives {
            0 if self.now >= self.bring_up => self.receiver.absent(i as u16),
            0 => {}
            _ if self.holds_back(i as u16) => {}
            _ => self.receiver.set_connected(self.now, i as u16, false),
        }
    }

    /// Opens what is due, ends what has failed.
    pub(super) fn look_after(&mut self, i: usize, listener: &mut CmListener) -> Result<(), BackendError> {
        let now = self.now;
        if self.boards[i].is_up() {
            if let Some(fault) = self.backend.fault(i as u16) {
                listener.forget(i);
                let hint = if self.shared { SEND_ONLY } else { "" };
                let trouble = format!("{}: {IN_ERROR}: {fault}{hint}", self.boards[i].spec.ip);
                if !self.backend.is_unanswered(i as u16) {
                    self.boards[i].refused = Some(fault);
                }
                self.boards[i].fail(now, trouble);
            }
        }
        // A board that has sent all before the end of the run needs no connection any more.
        if self.boards[i].is_due(now) && self.receiver.expects(i as u16) && self.fresh_qp(i)? {
            self.boards[i].open(now);
        }
        self.report_if_lost(i);
        Ok(())
    }

    /// An unused queue pair, over a ring that restarts. False while fragments of the previous one are not stored, or not
    /// even delivered, and until the event that the board has passed was read, if that is possible.
    pub(super) fn fresh_qp(&mut self, i: usize) -> Result<bool, BackendError> {
        let board = i as u16;
        if self.boards[i].is_fresh() {
            return Ok(true);
        }
        self.backend.close_qp(board, &mut self.completions)?;
        self.boards[i].qp_gone();
        let awaits_passed = self.boards[i].awaits_passed() && !self.receiver.is_gone(board);
        if self.holds_back(board) || awaits_passed || !self.receiver.restart_ring(board, 0) {
            return Ok(false);
        }
        let local = self.backend.create_qp(&self.memory[i])?;
        let restarted = self.receiver.restart_ring(board, local.rkey);
        debug_assert!(restarted, "nothing was received in between");
        self.boards[i].qp_made(local);
        if !self.shared {
            self.post_receives()?;
        }
        Ok(true)
    }
}
