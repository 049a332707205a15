// SPDX-License-Identifier: Apache-2.0
//! The registers of a front end that `penstock farm` steers: destination table, queue pairs that are given away or failed.
//! Promise: they act as the gateware's do (regs/destination.rdl, regs/connection.rdl), and at once: `status.busy` is never 1.

use super::front_end::FrontEnd;
use super::plan::SHARED_QUEUE_PAIRS;
use penstock_farm::{Command, IN_ERROR};
use penstock_ipbus::regs::{cc, connection, destination, latency, meter, qp, server};
use penstock_ipbus::Responder;
use std::ops::Range;

const TABLE: Range<u32> = server::BASE..server::BASE + server::COUNT * server::STRIDE;
const ROW: u32 = server::STRIDE;
/// Groups of parameters in addition to the first; no queue pair uses them.
const GROUPS: Range<u32> = cc::BASE + cc::STRIDE..cc::BASE + cc::COUNT * cc::STRIDE;

/// What can be written with `--by-event`, in addition.
pub fn writes() -> impl Iterator<Item = Range<u32>> {
    let states = (0..SHARED_QUEUE_PAIRS).map(|at| qp::BASE + at * qp::STRIDE + qp::STATE);
    let words = states.chain([destination::OWNER, destination::OPTIONS, connection::CONTROL]);
    words.map(|word| word..word + 4).chain([TABLE, GROUPS, destination::SWITCH_EVENT_LO..destination::CONTROL + 4])
}

/// What can be read, in addition.
pub fn reads() -> impl Iterator<Item = Range<u32>> {
    let rows = |base: u32, stride: u32| base..base + SHARED_QUEUE_PAIRS * stride;
    [
        destination::SWITCH_EVENT_LO..destination::OPTIONS + 4,
        rows(qp::BASE, qp::STRIDE),
        rows(meter::BASE, meter::STRIDE),
        rows(latency::BASE, latency::STRIDE),
    ]
    .into_iter()
}

/// The state of the table.
pub fn show(board: &mut Responder, front_end: &mut FrontEnd) {
    let view = front_end.table().view();
    let last = view.next_event.saturating_sub(1);
    let status = destination::STATUS_LIVE_BITS.at(view.live)
        | destination::STATUS_PENDING_BITS.at(view.pending)
        | destination::STATUS_PREPARED_BITS.at(view.prepared)
        | destination::STATUS_REFUSED_BITS.at(view.refused)
        | destination::STATUS_HELD_BITS.at(view.held)
        | destination::STATUS_WAITS_BITS.at(view.waits)
        | destination::STATUS_BEGUN_BITS.at(view.next_event > 0);
    for (address, word) in [
        (destination::STATUS, status),
        (destination::LAST_EVENT_LO, last as u32),
        (destination::LAST_EVENT_HI, (last >> 32) as u32),
        (destination::ANNOUNCED_LO, view.announced as u32),
        (destination::ANNOUNCED_HI, (view.announced >> 32) as u32),
    ] {
        board.set(address, word);
    }
}

/// Carries out what was written.
pub fn act(board: &Responder, front_end: &mut FrontEnd) {
    for (address, word) in board.written().iter().copied() {
        match address {
            destination::OWNER => front_end.table().owner = destination::OWNER_ID_BITS.of(word) as u16,
            destination::OPTIONS => {
                front_end.table().waits_for_server = destination::OPTIONS_WAIT_FOR_SERVER_BITS.of(word) != 0;
            }
            destination::CONTROL => {
                if let Some(command) = command(board, word) {
                    let key = destination::CONTROL_KEY_BITS.of(word) as u16;
                    front_end.table().command(key, command, &rows(board));
                }
            }
            connection::CONTROL => front_end.set_door(
                connection::CONTROL_ENGAGED_BITS.of(word) != 0,
                connection::CONTROL_KEEP_PEER_BITS.of(word) != 0,
            ),
            _ => {
                let at = address.wrapping_sub(qp::BASE + qp::STATE);
                let lane = front_end.lanes_mut().get_mut((at / qp::STRIDE) as usize);
                if at.is_multiple_of(qp::STRIDE) && qp::STATE_BITS.of(word) == u32::from(IN_ERROR) {
                    lane.into_iter().for_each(super::lane::Lane::fail);
                }
            }
        }
    }
}

fn command(board: &Responder, word: u32) -> Option<Command> {
    let high = u64::from(board.get(destination::SWITCH_EVENT_HI)) << 32;
    let first = high | u64::from(board.get(destination::SWITCH_EVENT_LO));
    let is = |mask: u32| word & mask != 0;
    match () {
        () if is(destination::CONTROL_COMMIT_BITS.mask) => Some(Command::Commit { first }),
        () if is(destination::CONTROL_PREPARE_BITS.mask) => Some(Command::Prepare { first }),
        () if is(destination::CONTROL_CONFIRM_BITS.mask) => Some(Command::Confirm),
        () if is(destination::CONTROL_CANCEL_BITS.mask) => Some(Command::Cancel),
        () => None,
    }
}

/// Queue pairs of the live servers, as edited.
fn rows(board: &Responder) -> Vec<u8> {
    let words = TABLE.step_by(ROW as usize).map(|address| board.get(address));
    let live = words.filter(|word| server::ENTRY_LIVE_BITS.of(*word) != 0);
    live.map(|word| server::ENTRY_QP_BITS.of(word) as u8).collect()
}
