// SPDX-License-Identifier: Apache-2.0
//! Flows of a verilated board that their servers pull: it keeps their messages and announces them.
//! Promise: events have the numbers that boards of software announce.

use penstock_board::{Board, BoardNode, PullConfig, SetupError};
use penstock_lab::{BoardFlow, Mode, Workload};
use penstock_netsim::{FlowId, SharedLedger};
use std::rc::Rc;

pub fn is_pulled(flow: &BoardFlow) -> bool {
    flow.spec.mode == Mode::Pull
}

/// The numbers of a flow's events.
pub struct Numbers {
    /// Servers of which each gets one event in this number; none: messages are numbered as they come.
    servers: Option<u64>,
}

impl Numbers {
    /// None: the flow is pushed.
    pub fn of(flow: &BoardFlow) -> Option<Self> {
        let servers = match flow.spec.workload {
            Workload::Events { servers, .. } => Some(servers as u64),
            Workload::Steady(_) => None,
        };
        is_pulled(flow).then_some(Numbers { servers })
    }

    /// That of the message `number`, which is of this event.
    pub fn event(&self, number: u32, event: u64) -> u64 {
        self.servers.map_or(number.into(), |servers| event / servers)
    }
}

/// Has a board keep the messages of these flows, the longest of which has `longest` bytes.
///
/// # Errors
/// They are too long.
pub fn set_up(board: &mut Board, flows: &[BoardFlow], longest: u64) -> Result<(), SetupError> {
    if !flows.iter().any(is_pulled) {
        return Ok(());
    }
    board.keep_fragments(longest)?;
    for (index, flow) in (0u8..).zip(flows).filter(|(_, flow)| is_pulled(flow)) {
        let ring = flow.fragments.as_ref().map_or(0, |fragments| fragments.ring.va);
        board.set_pull(index, &PullConfig { psn: flow.first_read_psn, rkey: RKEY, ring })?;
    }
    Ok(())
}

/// The key of fragments: that of a board of software.
const RKEY: u32 = 0;

/// Gives the ledger what the board has of flow `number`: all its messages are known, and a failure is that of an
/// announcement.
pub fn report(node: &mut BoardNode, index: u8, number: FlowId, ledger: &SharedLedger) {
    ledger.borrow_mut().ended(number);
    let ledger = Rc::clone(ledger);
    node.at_failure(index, move |tally| {
        if let Some((at, completion)) = tally.first_error {
            ledger.borrow_mut().failed(number, at, &completion.status.to_string());
        }
    });
}
