// SPDX-License-Identifier: Apache-2.0
//! The listening side of a session: boards that open their connections to this server.
//! Source: `penstock_transport::cm`.

use penstock_transport::{CmAddress, CmHost, Ending, Refusal};
use penstock_units::Time;
use penstock_wire::{CmInfo, CmTransmit, Ipv4Addr};

use super::board::{BoardState, Opens};
use super::core::Core;
use crate::sink::EventSink;

/// A board that does not know keep-alives and whose data have not come for so long may take its place with another
/// queue pair. One that does is asked.
const QUIET: Time = Time::from_s(1);

/// Entry `i` of the listener is board `i`.
impl<S: EventSink> CmHost for Core<S> {
    fn open(&mut self, entry: usize, from: CmAddress, _peer: &CmInfo) -> Result<CmInfo, Refusal> {
        if !self.serves(entry, from.ip) {
            return Err(Refusal::NoQp);
        }
        match self.fresh_qp(entry) {
            Ok(true) => Ok(self.boards[entry].local_info()),
            Ok(false) => Err(Refusal::NotYet),
            Err(error) => {
                self.boards[entry].trouble = Some(error.to_string());
                Err(Refusal::Failed)
            }
        }
    }

    fn connect(&mut self, entry: usize, from: CmAddress, peer: &CmInfo) -> Result<(), Refusal> {
        self.boards[entry].state = BoardState::Opening;
        Core::connect(self, entry, peer).map_err(|error| {
            self.boards[entry].trouble = Some(error.to_string());
            Refusal::Failed
        })?;
        let board = &mut self.boards[entry];
        board.opener.adopt(self.now, board.local_info(), *peer, from.port);
        Ok(())
    }

    fn ready(&mut self, entry: usize) {
        self.mark_up(entry);
    }

    fn close(&mut self, entry: usize, why: Ending) {
        let board = &mut self.boards[entry];
        board.used();
        board.opener.forget();
        board.closed(self.now, Time::ZERO);
        let ip = board.spec.ip;
        match why {
            Ending::Failed => board.trouble = Some(format!("{ip}: the board says that its queue pair has failed")),
            Ending::HalfOpen => {
                board.trouble = Some(format!(
                    "{ip}: OPEN_QP came and the steps after it did not, so its connection was given up; \
                     does the board send SEND_QP_INFO and MODIFY_QP_RTS, or all in OPEN_QP?"
                ));
            }
            Ending::PeerClosed | Ending::Replaced => {}
        }
    }

    fn serves(&self, entry: usize, from: Ipv4Addr) -> bool {
        let board = &self.boards[entry];
        board.spec.ip == from && board.spec.opens == Opens::Board && !board.ending()
    }

    fn is_quiet(&self, entry: usize) -> bool {
        self.boards[entry].opener.is_quiet(self.now, QUIET)
    }

    fn check_peer(&mut self, entry: usize) {
        self.boards[entry].opener.probe_if_idle(self.now);
    }

    fn is_dead(&self, entry: usize) -> bool {
        !matches!(self.boards[entry].state, BoardState::Opening | BoardState::Up) && !self.boards[entry].is_fresh()
            || self.backend.fault(entry as u16).is_some()
    }

    /// A server sends nothing.
    fn transmit(&mut self, _entry: usize, _transmit: &CmTransmit) -> bool {
        false
    }
}
