// SPDX-License-Identifier: Apache-2.0
//! The end of a run over TCP: streams end, and what was acknowledged in them after the run's end is kept for the next run.
//! Promise: nothing that the kernel has acknowledged is lost, whatever boards do meanwhile; it lasts no longer than asked
//! for. Source: RFC 9293 section 3.6 (FIN: a side that has closed continues to receive); socket(7), SO_ATTACH_FILTER.

use std::collections::VecDeque;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::time::Duration;

use penstock_transport::Memory;
use penstock_units::Time;
use socket2::{SockFilter, SockRef};

use super::connection::{Stream, Turn};
use super::kept::{Keeper, Scratch};
use super::TcpBackend;
use crate::backend::BackendError;

/// Has the kernel drop what comes from here on, without an acknowledgement.
fn deafen(socket: &impl AsFd) {
    let drops_all = [SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0)];
    if let Err(error) = SockRef::from(socket).attach_filter(&drops_all) {
        tracing::warn!("what boards send at the very end of this run may be lost: {error}");
    }
}

impl TcpBackend {
    /// A board ends its stream when it sees the FIN, and sends what it has no acknowledgement of to the next run. One
    /// that does not is cut off after `limit`.
    ///
    /// # Errors
    /// What has come cannot be kept.
    pub(super) fn end_streams(&mut self, memory: &mut dyn Memory, limit: Time) -> Result<(), BackendError> {
        if self.config.bare || self.listener.is_none() {
            return Ok(());
        }
        self.stop_listening();
        for connection in self.connections.iter_mut().flatten().filter(|connection| connection.board.is_some()) {
            // One that fails is over.
            connection.stream.socket().map(|stream| stream.shutdown(Shutdown::Write));
        }
        let until = self.clock.now().saturating_add(limit);
        let longest = self.ends.iter().map(|end| end.slot_bytes).max().unwrap_or(0);
        let (folder, mut scratch) = (self.config.kept.clone(), Scratch::new(longest));
        for board in 0..self.ends.len() {
            let ip = self.config.boards[board];
            let mut keeper = Keeper::new(folder.as_deref(), ip, board as u16);
            let connections: Vec<usize> = self.ends[board].connections.drain(..).collect();
            for at in &connections {
                self.drain(*at, memory, &mut scratch, &mut keeper, until)?;
            }
            let is_kept = keeper.finish().map_err(|source| BackendError::Io {
                action: format!("{ip}: keeping {} that came after the run's end", keeper.messages).into(),
                source,
            })?;
            let (end, messages) = (&mut self.ends[board], keeper.messages);
            match is_kept {
                true => end.kept_after = messages.count,
                false => {
                    tracing::warn!("{ip}: {messages} that came after the run's end are in no run (--state none)");
                    end.between_runs += messages.count;
                }
            }
            // Of a board that has not connected everything stays.
            if let Some(kept) = end.kept.take_if(|_| !connections.is_empty() && (messages.count == 0 || !is_kept)) {
                kept.remove();
            }
        }
        Ok(())
    }

    /// No connection is made any more. Those that the kernel has made and not handed out are taken: a board may have
    /// acknowledged data there.
    fn stop_listening(&mut self) {
        let Some(listener) = &self.listener else { return };
        deafen(listener);
        self.accepts = true;
        self.accept();
        let now = self.clock.now();
        for at in 0..self.connections.len() {
            let Some(connection) = self.connections[at].as_mut().filter(|connection| connection.board.is_none()) else {
                continue;
            };
            // What does not say whose it is now has not sent a whole message.
            connection.stream.socket().into_iter().for_each(|socket| deafen(socket));
            connection.became_readable();
            self.introduce(at, now);
        }
        self.listener = None;
    }

    /// Reads one connection to its end, and keeps its whole messages: what the kernel has acknowledged is among them.
    fn drain(
        &mut self,
        at: usize,
        memory: &mut dyn Memory,
        scratch: &mut Scratch,
        keeper: &mut Keeper,
        until: Time,
    ) -> Result<(), BackendError> {
        let io = |source| BackendError::Io { action: "keeping what came after the run's end".into(), source };
        let (mut slots, mut out, mut is_deaf) = (VecDeque::new(), Vec::new(), false);
        if let Some(connection) = self.connections[at].as_mut() {
            if let (Stream::Kept(_), Some(board)) = (&connection.stream, connection.board) {
                self.ends[usize::from(board)].kept_before += connection.messages;
            }
            connection.became_readable();
            connection.received_up_to = connection.received_up_to.max(keeper.messages.events.map(|(_, last)| last));
            if !connection.change_slot(memory, scratch.slot(), scratch) {
                slots.push_back(scratch.slot());
            }
        }
        while let Some(connection) = self.connections[at].as_mut() {
            let turn = connection.turn(0, &mut slots, scratch, &mut self.stage, &mut out);
            let came = !out.is_empty();
            for done in out.drain(..) {
                keeper.push(scratch.message(done.byte_len)).map_err(io)?;
                slots.push_back(scratch.slot());
            }
            let is_late = self.clock.now() >= until;
            match (turn, connection.stream.socket()) {
                (Turn::Over(_), _) => break,
                (Turn::Refused(len), _) => self.refuse(at, len),
                (_, Some(socket)) if is_late && !is_deaf => {
                    deafen(socket);
                    connection.became_readable();
                    is_deaf = true;
                }
                (Turn::Waits, Some(socket)) if is_deaf && !came => {
                    let _ = SockRef::from(&*socket).set_linger(Some(Duration::ZERO));
                    break;
                }
                (Turn::Waits, _) if !is_deaf && !came => {
                    self.listen(self.clock.until(until))?;
                }
                (Turn::Waits | Turn::Busy, _) => {}
            }
        }
        self.connections[at] = None;
        Ok(())
    }
}
