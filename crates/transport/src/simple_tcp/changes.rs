// SPDX-License-Identifier: Apache-2.0
//! Changes of a stream that several kinds of event share: the stream ends, or a segment is lost.

use super::{Actions, End, Row, State};

/// The connection is over; the peer is notified unless it ended the connection.
pub(super) fn end(row: &mut Row, actions: &mut Actions, why: End) {
    let sends_rst = row.state == State::Established && why != End::Reset;
    *row =
        Row { reset_due: sends_rst, reset_acks: sends_rst, reset_seq: row.max, rcv_nxt: row.rcv_nxt, ..Row::default() };
    actions.ended = Some(why);
}

/// The segment at `una` is lost, and with `all` every one that is under way.
pub(super) fn lost(row: &mut Row, all: bool) {
    row.repairing = true;
    row.recover = row.max;
    row.resend = true;
    if all {
        row.nxt = row.una;
    }
}
